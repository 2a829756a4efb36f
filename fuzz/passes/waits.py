"""Analysis of blocking: for each node, the ops that may block it forever.

In a cluster every member waits for the inputs of all members. If one input never
arrives, members that would otherwise have run never run: the cluster then blocks where
the graph without it does not. Members must therefore wait for the same blocking ops.

Sources of blocking are an element or free capacity of a queue, a mutex, and the results
of a loop or conditional that contains or follows such an op. The results of a loop
leave it one by one, so that each result is a source of its own, as is each argument of
a body.

References
----------
semantics.md, section 3, "Blocked" and "Loops"; docs/clusters.md.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model import (
    CallAttrs,
    Graph,
    LoopAttrs,
    NestAttrs,
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

_BLOCKING: Final = (Kind.QUEUE, Kind.ACCUMULATOR, Kind.SECTION)


def waits(test: LitmusTest) -> dict[str, int]:
    """For each node the sources of blocking that it waits for, as bits.

    Returns
    -------
    dict of str to int
        By name, nodes in bodies included. Of two nodes of one level with the same bits,
        either both finish or neither does; for loops and conditionals this holds if the
        executor is strict with them (`oracles.events.Strictness`).
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
    """Analyse a graph or body.

    Parameters
    ----------
    given : mapping
        Bits of each argument, by its name in the body.
    base : int
        Bits that every node of the body waits for.
    fresh : iterator of int
        Bits for further sources of blocking.
    """
    done = dict(given)  # name: the bits of a node that waits for it
    sections = [node for node in nodes if isinstance(node.attrs, SectionAttrs)]
    held: dict[str, int] = {}  # section: the bits that its members wait for

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
        elif isinstance(node.attrs, NestAttrs):
            mask = _with_bodies(node, node.attrs, own, done, fresh, found)
        else:
            mask = own | all_of(node.inputs)
            if node.definition.blocks:
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
    attrs: NestAttrs,
    own: int,
    done: dict[str, int],
    fresh: Iterator[int],
    found: dict[str, int],
) -> int:
    """Analyse a node with bodies; the bits of a node that waits for it."""
    given = {inner: own | done[outer] for inner, outer in attrs.captures}
    inputs = [own | done[name] for name in node.inputs]
    # Every instance inside waits for the predicate, or the first carried value.
    base, everything = inputs[0] if inputs else own, [*given.values(), *inputs]
    blocks = any(inner.definition.kind in _BLOCKING for inner in all_nodes([node]))
    even = not blocks and len({base, *everything}) == 1
    if isinstance(attrs, LoopAttrs):
        results = attrs.carried
        later = (base if even else base | next(fresh) for _ in attrs.carried[1:])
        given |= dict(zip(attrs.carried, (base, *later), strict=True))
    else:
        results = attrs.results
    for _, body in bodies(node):
        _level(body.nodes, given, base, fresh, found)
    mask = base
    if isinstance(attrs, CallAttrs):  # all instances come before it
        mask |= 0 if even else next(fresh)
    for name in results:
        done[f"{node.name}.{name}"] = base if even else base | next(fresh)
        mask |= done[f"{node.name}.{name}"]
    return mask
