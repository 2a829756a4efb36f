"""Which pairs of resource ops may not share a cluster: BLOG's analysis.

A cluster reads all that it reads at its snapshot, and writes all that it writes
at its write-back, later. So it cannot keep an order from a write to a read. An
update is both, and so is, for all that is known here, a node with a body that
works on resources.

References
----------
semantics.md, section 5, "Safety analysis"; BLOG, "The Solution".
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model import Graph, Node, all_nodes, bodies, steps, steps_before
from litmusfuzz.corpus.ops import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from litmusfuzz.corpus.model import Step


@dataclass(frozen=True, slots=True)
class Analysis:
    """What the analysis looks at: anything but the default is a mutant.

    Parameters
    ----------
    transitive : bool
        Whether at paths, not only at edges.
    control : bool
        Whether at control edges, not only at data edges.
    update_reads, update_writes : bool
        Whether an update counts as a read, and as a write.
    """

    transitive: bool = True
    control: bool = True
    update_reads: bool = True
    update_writes: bool = True

    def reads(self, node: Node) -> bool:
        """Whether the node counts as one that reads."""
        kind = access(node)
        return kind is Kind.READ or (kind is Kind.UPDATE and self.update_reads)

    def writes(self, node: Node) -> bool:
        """Whether the node counts as one that writes."""
        kind = access(node)
        return kind is Kind.WRITE or (kind is Kind.UPDATE and self.update_writes)


SOUND: Final = Analysis()


def access(node: Node) -> Kind | None:
    """What a node does to variables: `Kind.READ`, `WRITE` or `UPDATE`, or None."""
    if bodies(node):
        return Kind.UPDATE if any(inner.resources for inner in all_nodes([node])) else None
    kind = node.definition.kind
    return kind if kind in (Kind.READ, Kind.WRITE, Kind.UPDATE) else None


def unsafe_pairs(nodes: Sequence[Node], analysis: Analysis = SOUND) -> frozenset[tuple[str, str]]:
    """Pairs of nodes that are unsafe in one cluster.

    Parameters
    ----------
    nodes : sequence of Node
        All of one graph or body, in topological order.

    Returns
    -------
    frozenset of (str, str)
        Each (A, B) with a path from A to B, by data, control or section edges,
        where A writes and B reads, whatever variables they touch.

    Notes
    -----
    One pass in reverse post-order. Of each step a bit mask says which writers
    have a path to it.
    """
    if not analysis.control:
        nodes = [replace(node, after=()) for node in nodes]
    graph = Graph("", tuple(nodes))
    before = steps_before(graph)
    bits = {node.name: 1 << i for i, node in enumerate(nodes) if analysis.writes(node)}
    above: dict[Step, int] = {}
    pairs: list[tuple[str, str]] = []
    for kind, step in steps(graph):
        mask = 0
        for source in before[kind, step.name]:
            mask |= bits.get(source[1], 0) | (above[source] if analysis.transitive else 0)
        above[kind, step.name] = mask
        if isinstance(step, Node) and analysis.reads(step):
            pairs += ((nodes[i].name, step.name) for i in ones(mask))
    return frozenset(pairs)


def ones(mask: int) -> Iterator[int]:
    """The positions of a mask's bits, from the lowest."""
    while mask:
        yield (mask & -mask).bit_length() - 1
        mask &= mask - 1
