"""Safety analysis: pairs of resource ops that must not be in one XLA cluster.

A cluster does all its reads at its snapshot, and all its writes later, at its
write-back. It therefore cannot keep the order of a write before a read. An update both
reads and writes. A node with a body that uses resources counts as an update.

References
----------
semantics.md, section 5, "Safety analysis"; BLOG, "The Solution".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model import Graph, Node, all_nodes, bodies, steps, steps_before
from litmusfuzz.corpus.ops import Kind
from litmusfuzz.corpus.struct import replace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from litmusfuzz.corpus.model import Step


@dataclass(frozen=True, slots=True)
class Analysis:
    """Options of the analysis. The defaults are sound; mutants use other values on purpose.

    Parameters
    ----------
    transitive : bool
        True to follow paths, not only single edges.
    control : bool
        True to follow control edges, not only data edges.
    update_reads, update_writes : bool
        True if an update counts as a read, and as a write.
    """

    transitive: bool = True
    control: bool = True
    update_reads: bool = True
    update_writes: bool = True

    def reads(self, node: Node) -> bool:
        """True if the node counts as a read."""
        kind = access(node)
        return kind is Kind.READ or (kind is Kind.UPDATE and self.update_reads)

    def writes(self, node: Node) -> bool:
        """True if the node counts as a write."""
        kind = access(node)
        return kind is Kind.WRITE or (kind is Kind.UPDATE and self.update_writes)


SOUND: Final = Analysis()


def access(node: Node) -> Kind | None:
    """The kind of access of a node to variables: `Kind.READ`, `WRITE`, `UPDATE`, or None."""
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
        All (A, B) such that A writes, B reads, and a path of data, control or section
        edges leads from A to B. The two may use different variables.
    """
    before = writers_before(nodes, {node.name: i for i, node in enumerate(nodes)}, analysis)
    return frozenset((nodes[i].name, name) for name, mask in before.items() for i in ones(mask))


def writers_before(
    nodes: Sequence[Node], numbers: Mapping[str, int], analysis: Analysis = SOUND
) -> dict[str, int]:
    """For each node that reads and is unsafe in a cluster with others, these, which write.

    Parameters
    ----------
    nodes : sequence of Node
        All of one graph or body, in topological order.
    numbers : mapping of str to int
        A bit for each node; the result has masks of these.

    Notes
    -----
    One pass in topological order. For each step, a bit mask holds the writers with a path
    to it.
    """
    if not analysis.control:
        nodes = [replace(node, after=()) for node in nodes]
    graph = Graph("", tuple(nodes))
    before = steps_before(graph)
    bits = {node.name: 1 << numbers[node.name] for node in nodes if analysis.writes(node)}
    above: dict[Step, int] = {}
    found: dict[str, int] = {}
    for kind, step in steps(graph):
        mask = 0
        for source in before[kind, step.name]:
            mask |= bits.get(source[1], 0) | (above[source] if analysis.transitive else 0)
        above[kind, step.name] = mask
        if mask and isinstance(step, Node) and analysis.reads(step):
            found[step.name] = found.get(step.name, 0) | mask
    return found


def ones(mask: int) -> Iterator[int]:
    """The positions of a mask's bits, from the lowest."""
    digits = bin(mask)[:1:-1]
    place = digits.find("1")
    while place >= 0:
        yield place
        place = digits.find("1", place + 1)
