"""What a node waits for that may never come.

A cluster makes each of its members wait for what any of them waits for. Where
one of these never comes, the others, which would have happened, never do: an
order that ends blocked, and that the graph without the cluster does not have.
So members must wait alike.

What may never come: an element, room in a queue, a mutex, and what a loop or
conditional around or behind one of these returns. A loop's results leave it one
by one, so that each is a thing of its own; so is what a body is given.

References
----------
semantics.md, section 3, "Blocked" and "Loops"; docs/clusters.md.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model import (
    BranchAttrs,
    Graph,
    LoopAttrs,
    Node,
    all_nodes,
    bodies,
    enclosing,
    steps,
)
from litmusfuzz.corpus.ops import Kind, SectionAttrs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from litmusfuzz.corpus.model import LitmusTest

_BLOCKING: Final = (Kind.QUEUE, Kind.SECTION)
_NEVER_BLOCK: Final = ("QueueSizeV2", "QueueCloseV2")


def waits(test: LitmusTest) -> dict[str, int]:
    """For each node, as bits, what may never come and it waits for.

    Returns
    -------
    dict of str to int
        By name, nodes in bodies too. Two nodes of one level with the same bits
        are done together, or not at all; a loop or conditional at least where
        the executor is strict with it (`oracles.events.Strictness`).
    """
    found: dict[str, int] = {}
    fresh = (1 << i for i in count())
    for graph in test.graphs:
        _level(graph.nodes, {}, 0, fresh, found)
    return found


def _level(
    nodes: Sequence[Node],
    given: Mapping[str, int],
    base: int,
    fresh: Iterator[int],
    found: dict[str, int],
) -> None:
    """Go through a graph or body.

    Parameters
    ----------
    given : mapping
        For what comes in, by its name inside, what it waits for.
    base : int
        What every instance of the body waits for.
    fresh : iterator of int
        Bits for things that have none yet.
    """
    done = dict(given)  # names: what those wait for who wait for them
    sections = [node for node in nodes if isinstance(node.attrs, SectionAttrs)]
    held: dict[str, int] = {}  # sections: what their members wait for

    def all_of(names: Iterable[str]) -> int:
        mask = base
        for name in names:
            mask |= done[name]
        return mask

    for kind, node in steps(Graph("", tuple(nodes))):
        assert isinstance(node, Node)
        around = enclosing(node, sections) if node in sections else _holding(node, sections)
        own = all_of(node.after)
        for section in around:
            own |= held[section.name]
        if kind == "acquire":
            held[node.name] = own | next(fresh)
            continue
        if kind == "release":
            assert isinstance(node.attrs, SectionAttrs)
            inner = (each.name for each in sections if node in enclosing(each, sections))
            mask = held[node.name] | all_of((*node.attrs.members, *inner)) | next(fresh)
        elif isinstance(node.attrs, (BranchAttrs, LoopAttrs)):
            mask = _with_bodies(node, node.attrs, own, done, fresh, found)
        else:
            mask = own | all_of(node.inputs)
            if node.definition.kind is Kind.QUEUE and node.op not in _NEVER_BLOCK:
                mask |= next(fresh)
        found[node.name] = done[node.name] = mask


def _holding(node: Node, sections: Iterable[Node]) -> list[Node]:
    """Sections that the node is a member of."""
    return [
        each
        for each in sections
        if isinstance(each.attrs, SectionAttrs) and node.name in each.attrs.members
    ]


def _with_bodies(
    node: Node,
    attrs: BranchAttrs | LoopAttrs,
    own: int,
    done: dict[str, int],
    fresh: Iterator[int],
    found: dict[str, int],
) -> int:
    """Go through a loop or conditional; what waits for all its results waits for this."""
    given = {inner: own | done[outer] for inner, outer in attrs.captures}
    inputs = [own | done[name] for name in node.inputs]
    # Every instance inside waits for the predicate, or the first carried value.
    base, everything = inputs[0], [*given.values(), *inputs]
    blocks = any(inner.definition.kind in _BLOCKING for inner in all_nodes([node]))
    even = not blocks and len(set(everything)) == 1
    if isinstance(attrs, LoopAttrs):
        results = attrs.carried
        later = (base if even else base | next(fresh) for _ in attrs.carried[1:])
        given |= dict(zip(attrs.carried, (base, *later), strict=True))
    else:
        results = attrs.results
    for _, body in bodies(node):
        _level(body.nodes, given, base, fresh, found)
    mask = base
    for name in results:
        done[f"{node.name}.{name}"] = base if even else base | next(fresh)
        mask |= done[f"{node.name}.{name}"]
    return mask
