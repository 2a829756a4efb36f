"""The one fold and the one map over the nodes of graphs and of the bodies inside nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from litmusfuzz.corpus.model.graph import (
    Body,
    BranchAttrs,
    CallAttrs,
    Graph,
    LoopAttrs,
    NestAttrs,
    Node,
    bodies,
    captures_of,
)
from litmusfuzz.corpus.model.names import after_dot
from litmusfuzz.corpus.ops import HandleAttrs, SectionAttrs
from litmusfuzz.corpus.struct import replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from litmusfuzz.corpus.ops import Attrs


class Level(NamedTuple):
    """All nodes of one graph or one body."""

    nodes: tuple[Node, ...]
    path: tuple[str | int, ...] = ()
    """Keys that lead to the nodes."""
    around: tuple[str, ...] = ()
    """Names of the nodes that the level lies inside, outermost first."""


def all_nodes(nodes: Iterable[Node]) -> Iterator[Node]:
    """The nodes, each followed by the nodes inside it."""
    for node in nodes:
        yield node
        if node.attrs is not None:  # it may have bodies
            for _, body in bodies(node):
                yield from all_nodes(body.nodes)


def handles_of(graphs: Iterable[Graph]) -> dict[str, frozenset[str]]:
    """The variables that each value which is a handle may stand for, by the value's name.

    Of a value that a conditional chooses, those of both branches; of a carried value, those of
    all iterations. The graphs need not be well-formed.
    """
    nodes = [node for graph in graphs for node in all_nodes(graph.nodes)]
    found = {
        node.name: frozenset((node.attrs.variable,))
        for node in nodes
        if isinstance(node.attrs, HandleAttrs)
    }
    if not found:  # most tests
        return found
    flows: list[tuple[str, str]] = []  # from a value to another one that is the same handle
    for node in nodes:
        if node.op == "Identity":
            flows += ((source, node.name) for source in node.inputs)
        flows += ((outer, inner) for inner, outer in captures_of(node))
        outside = tuple(f"{node.name}.{result}" for result in node.results)
        if isinstance(node.attrs, LoopAttrs):
            carried = node.attrs.carried
            flows += zip(node.inputs, carried, strict=False)
            flows += zip(node.attrs.body.results, carried, strict=False)
            flows += zip(carried, outside, strict=False)
        else:
            for _, body in bodies(node):
                flows += zip(body.results, outside, strict=False)
    changed = True
    while changed:
        changed = False
        for source, target in flows:
            more = found.get(source, frozenset()) - found.get(target, frozenset())
            if more:
                found[target] = found.get(target, frozenset()) | more
                changed = True
    return found


def levels(graph: Graph) -> Iterator[Level]:
    """The nodes of a graph, then those of each body, outer bodies before inner ones."""
    return _levels(Level(graph.nodes, ("graphs", graph.name)))


def _levels(level: Level) -> Iterator[Level]:
    yield level
    for node in level.nodes:
        for field, body in bodies(node):
            path = (*level.path, node.name, field, "nodes")
            yield from _levels(Level(body.nodes, path, (*level.around, node.name)))


def map_bodies(node: Node, change: Callable[[Body], Body]) -> Node:
    """The node with its own bodies changed, if it has any."""
    attrs = node.attrs
    if isinstance(attrs, BranchAttrs):
        attrs = replace(attrs, then=change(attrs.then), orelse=change(attrs.orelse))
    elif isinstance(attrs, LoopAttrs):
        attrs = replace(attrs, condition=change(attrs.condition), body=change(attrs.body))
    elif isinstance(attrs, CallAttrs):
        attrs = replace(attrs, body=change(attrs.body))
    else:
        return node
    return replace(node, attrs=attrs)


def map_levels(graphs: Iterable[Graph], change: Callable[[Body], Body]) -> tuple[Graph, ...]:
    """The graphs with each graph and each body changed, innermost first.

    A graph counts as a body without results.
    """

    def deep(body: Body) -> Body:
        return change(replace(body, nodes=tuple(map_bodies(node, deep) for node in body.nodes)))

    return tuple(Graph(graph.name, deep(Body(graph.nodes, ())).nodes) for graph in graphs)


def map_nodes(graphs: Iterable[Graph], change: Callable[[Node], Node]) -> tuple[Graph, ...]:
    """The graphs with each node changed, innermost first."""
    return map_levels(graphs, lambda body: replace(body, nodes=tuple(map(change, body.nodes))))


def redirected(node: Node, swap: Callable[[str], str]) -> Node:
    """The node with other references to its own graph or body.

    Drops control edges to nodes that are also data inputs.
    """
    attrs = node.attrs
    if isinstance(attrs, NestAttrs):
        attrs = replace(
            attrs, captures=tuple((inner, swap(outer)) for inner, outer in attrs.captures)
        )
    inputs = tuple(map(swap, node.inputs))
    after = dict.fromkeys(swap(name) for name in node.after)
    return replace(
        node,
        inputs=inputs,
        after=tuple(name for name in after if name not in inputs),
        attrs=attrs,
        handle=node.handle and swap(node.handle),
    )


def renamed(node: Node, names: Mapping[str, str]) -> Node:
    """The node, and all that is inside it, under other names.

    Parameters
    ----------
    names : mapping
        New names of nodes, of values that come into bodies, of resources, and of results as
        ``node.result``. A name that is not in it stays.
    """
    # This is called for each node of half of the tests of a campaign: hence no inner functions.
    new = names.get
    attrs = node.attrs
    if attrs is not None:
        attrs = _renamed_attrs(node.name, attrs, names)
    return Node(
        new(node.name, node.name),
        node.op,
        tuple([new(name, name) for name in node.inputs]) if node.inputs else (),
        tuple([new(name, name) for name in node.resources]) if node.resources else (),
        tuple([new(name, name) for name in node.after]) if node.after else (),
        attrs,
        node.device,
        new(node.handle, node.handle) if node.handle else "",
    )


def _renamed_attrs(
    node: str, attrs: Attrs | NestAttrs, names: Mapping[str, str]
) -> Attrs | NestAttrs:
    """The attributes of a node under other names; see `renamed`."""
    if isinstance(attrs, SectionAttrs):
        return SectionAttrs(_renamed_all(attrs.members, names))
    if isinstance(attrs, HandleAttrs):
        return HandleAttrs(names.get(attrs.variable, attrs.variable))
    if not isinstance(attrs, NestAttrs):
        return attrs

    def inside(body: Body) -> Body:
        nodes = tuple([renamed(each, names) for each in body.nodes])
        return Body(nodes, _renamed_all(body.results, names))

    captures = tuple([(names.get(a, a), names.get(b, b)) for a, b in attrs.captures])
    if isinstance(attrs, LoopAttrs):
        carried = _renamed_all(attrs.carried, names)
        condition, body = inside(attrs.condition), inside(attrs.body)
        return LoopAttrs(carried, captures, condition, body, attrs.parallel_iterations)
    full = _renamed_all([f"{node}.{result}" for result in attrs.results], names)
    results = tuple(map(after_dot, full))
    if isinstance(attrs, BranchAttrs):
        return BranchAttrs(captures, inside(attrs.then), inside(attrs.orelse), results)
    return CallAttrs(captures, inside(attrs.body), results)


def _renamed_all(old: Iterable[str], names: Mapping[str, str]) -> tuple[str, ...]:
    return tuple([names.get(name, name) for name in old])
