"""Drawings of a litmus test as columns of text and in DOT, Graphviz's language."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from litmusfuzz.corpus.model import (
    Accumulator,
    LoopAttrs,
    Queue,
    Variable,
    all_nodes,
    bodies,
    clusters_of,
)
from litmusfuzz.corpus.ops import ConstAttrs, Kind
from litmusfuzz.reports.structure import Structure, asked_of, literal, on_device
from litmusfuzz.reports.tables import table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from litmusfuzz.corpus.model import LitmusTest, Node, Resource
    from litmusfuzz.reports.structure import Level, NestedBody


def text(test: LitmusTest) -> str:
    """The test in the notation of people: resources, then a column for each chain.

    A chain is a path of effects, each ordered before the next. Whatever else an effect
    waits for follows it as ``after``. An effect below a loop or conditional comes after
    the results of it that the effect takes: instances inside may still be running. The
    bodies of a loop or conditional are below it, their chains one below another with
    ``||`` between; likewise the members of a critical section or cluster.
    """
    structure = Structure(test)
    drawing = _Text(structure)
    lines = [test.name]
    lines += [f"  {line}" for line in test.description.splitlines()]
    lines += [f"  {line}" for line in declarations(test)]
    for graph in test.graphs:
        columns = [[f"| {line}" for line in chain] for chain in drawing.chains(graph.nodes)]
        height = max((len(c) for c in columns), default=0)
        rows = [[c[i] if i < len(c) else "" for c in columns] for i in range(height)]
        lines.append("")
        if structure.has_client:
            lines.append(f"  graph {graph.name}:")
        headers = [f"| chain {i}" for i in range(len(columns))]
        lines += [f"  {line}" for line in table(headers, rows).splitlines()]
        if not columns:
            lines.append(f"  {graph.name} touches no resource")
        for cluster in clusters_of(all_nodes(graph.nodes), test.clusters):
            members = ", ".join(cluster.members)
            lines.append(f"  cluster {cluster.name}: {members}   (one node, in this order)")
    if structure.has_client:
        lines += ["", "  the client runs:", *_client(test)]
    values = [value for graph in test.graphs for value in structure.observed_values(graph.nodes)]
    lines += [""] if structure.has_client and values else []
    lines += [f"  {value}" for value in values]
    observed = f"reads {', '.join(test.observe)} and " if test.observe else ""
    queues = " and queue" if test.queues else ""
    lines += ["", f"  observed: {observed}the final value of every variable{queues}"]
    if test.condition is not None:
        lines.append(f"  asked: {test.condition}")
    return "\n".join(lines)


def shortened(test: LitmusTest, most: int) -> str:
    """The first lines of `text`, and the number of the others."""
    lines = text(test).splitlines()
    more = len(lines) - most
    return "\n".join([*lines[:most], *([f"and {more} more lines"] if more > 0 else [])])


def declarations(test: LitmusTest) -> list[str]:
    """A line for each resource: its type and initial content."""
    return [_declaration(resource) for resource in test.resources]


def _declaration(resource: Resource) -> str:
    content = "mutex"
    if isinstance(resource, Variable):
        content = str(resource.type)
        if resource.init is not None:
            content += f" = {literal(resource.init)}"
    elif isinstance(resource, Queue):
        elements = ", ".join(literal(each) for each in resource.init)
        content = f"queue of {resource.capacity} {resource.type} = [{elements}]"
    elif isinstance(resource, Accumulator):
        content = f"accumulator of {resource.type}"
    return f"{resource.name}: {content}{on_device(resource)}"


def _client(test: LitmusTest) -> Iterator[str]:
    """A line for each run; runs without a path between them are concurrent."""
    for run in test.runs:
        after = f"   after {', '.join(run.after)}" if run.after else ""
        graph = f": graph {run.graph}" if run.name != run.graph else ""
        asked = "".join(f"   {phrase}" for phrase in asked_of(run))
        yield f"    {run.name}{graph}{after}{asked}"


class _Text:
    """The columns of one test."""

    def __init__(self, structure: Structure) -> None:
        self.structure = structure

    def chains(self, nodes: tuple[Node, ...]) -> list[list[str]]:
        """Lines for each chain of the effects of one graph or body."""
        return self.columns(self.structure.level(nodes), "")

    def columns(self, level: Level, group: str) -> list[list[str]]:
        """Lines for each chain directly in a group; "" for none."""
        found: list[list[str]] = []
        for chain in level.chains(group):
            lines: list[str] = []
            for position, unit in enumerate(chain):
                first, *more = self.unit(level, unit)
                waits = self.waits(level, unit, level.waits(unit, chain[:position]))
                lines += [first + _after(waits), *more]
            found.append(lines)
        return found

    def unit(self, level: Level, unit: str) -> list[str]:
        """An effect, or a section or cluster with its members below."""
        if unit not in level.groups:
            node = level.nodes[unit]
            return [self.structure.statement(node), *self.bodies(node)]
        inside = _stacked(self.columns(level, unit), "  ")
        return [level.label(unit) + level.pure_members(unit), *inside]

    def bodies(self, node: Node) -> Iterator[str]:
        """The lines below the first of a loop, conditional or call."""
        for nested in self.structure.bodies(node):
            inside = _stacked(self.chains(nested.body.nodes), "    ")
            if nested.results or nested.field != "condition":
                yield f"  {nested.keyword}"
                yield from inside
                yield from self.results(nested)
                continue
            condition = self.structure.expression(nested.body.results[0], top=True)
            yield from (
                ["  while", *inside, f"    {condition}"] if inside else [f"  while {condition}"]
            )

    def results(self, nested: NestedBody) -> Iterator[str]:
        """The values that a body returns, each with its name."""
        level = self.structure.level(nested.body.nodes)
        for name, value in zip(nested.results, nested.body.results, strict=True):
            shown = self.structure.expression(value, top=True)
            waits = level.implied(value.partition(".")[0], frozenset(re.findall(r"\w+", shown)))
            yield f"    {name} = {shown}{_after(waits)}"

    def waits(self, level: Level, unit: str, waits: list[str]) -> list[str]:
        """Units that a unit waits for, and results, carried and captured values."""
        node = level.nodes.get(unit)
        if node is None:
            return waits
        given = [self.structure.source(name) for name in node.after if name not in level.nodes]
        results = {name.partition(".")[0] for name in given if "." in name} - set(node.after)
        # A result leaves by itself: to wait for it is not to wait for all of its node.
        kept = [name for name in waits if name not in results]
        return [*kept, *(name for name in given if not self.is_constant(name))]

    def is_constant(self, name: str) -> bool:
        """True for a constant, which nothing has to wait for."""
        node = self.structure.nodes.get(name)
        return node is not None and isinstance(node.attrs, ConstAttrs)


def _stacked(chains: list[list[str]], indent: str) -> list[str]:
    """Chains one below another."""
    lines: list[str] = []
    for chain in chains:
        lines += [f"{indent}||"] if lines else []
        lines += [f"{indent}{line}" for line in chain]
    return lines


def _after(names: list[str]) -> str:
    return f"   (after {', '.join(names)})" if names else ""


def dot(test: LitmusTest) -> str:
    """The graph in Graphviz's language: data edges solid, control edges dashed.

    Bodies, sections, XLA's clusters, graphs and the client are boxes around their
    contents; a dotted arrow back is a value that a body returns.
    """
    return "\n".join(
        [
            f"digraph {_quoted(test.name)} {{",
            '  graph [rankdir="TB", fontname="sans-serif"];',
            '  node [shape=box, fontname="sans-serif"];',
            *(f"  {line}" for line in _Dot(test).lines()),
            "}",
        ]
    )


class _Dot:
    """The statements in DOT of one test."""

    def __init__(self, test: LitmusTest) -> None:
        self.test = test
        self.structure = Structure(test)

    def lines(self) -> list[str]:
        test = self.test
        lines = [
            _node(f"var {resource.name}", _declaration(resource), "cylinder")
            for resource in test.resources
        ]
        for graph in test.graphs:
            inside = self.level(graph.nodes)
            boxed = self.structure.has_client
            lines += _box(f"graph {graph.name}", f"graph {graph.name}", inside) if boxed else inside
        if self.structure.has_client:
            client = [
                _node(f"run {r.name}", "\n".join((f"{r.name}: {r.graph}", *asked_of(r))), "oval")
                for r in test.runs
            ]
            client += [_edge(f"run {a}", f"run {r.name}") for r in test.runs for a in r.after]
            lines += _box("client", "client", client)
        edges = [edge for graph in test.graphs for edge in self.edges(graph.nodes)]
        return [*lines, *dict.fromkeys(edges)]

    def level(self, nodes: tuple[Node, ...]) -> list[str]:
        """The nodes of one graph or body, with the boxes around them."""
        level = self.structure.level(nodes)

        def within(group: str) -> list[str]:
            lines: list[str] = []
            for node in nodes:
                around = node.name if node.name in level.groups else level.inmost.get(node.name, "")
                if around == group:
                    lines += self.node(node)
            for other in level.group_order:
                if level.home[other] == group:
                    lines += _box(f"group {other}", level.label(other), within(other))
            return lines

        return within("")

    def node(self, node: Node) -> list[str]:
        """A node, with its bodies around it."""
        label = node.op
        if node.definition.has_effect:
            label = self.structure.statement(node) + "\n" + node.op
        elif isinstance(node.attrs, ConstAttrs):
            label = self.structure.expression(node.name)
        elif node.definition.kind is Kind.TRANSFER:
            label += on_device(node)
        fill = ", style=filled, fillcolor=coral" if node.definition.has_effect else ""
        lines = [f"{_quoted(node.name)} [label={_quoted(label)}{fill}];"]
        if isinstance(node.attrs, LoopAttrs):
            lines += [_node(name, f"{name} (carried)", "ellipse") for name in node.attrs.carried]
        nested = self.structure.bodies(node)
        for each in nested:
            title = f"{node.name}: {each.keyword}"
            lines += _box(f"{each.field} {node.name}", title, self.level(each.body.nodes))
        return _box(f"node {node.name}", node.name, lines) if nested else lines

    def edges(self, nodes: tuple[Node, ...]) -> Iterator[str]:
        """The edges between nodes, including those in bodies."""
        node_of = self.structure.node_of
        for node in nodes:
            given = (*node.inputs, node.handle) if node.handle else node.inputs
            for name in dict.fromkeys(map(node_of, given)):
                yield _edge(name, node.name)
            for name in dict.fromkeys(map(node_of, node.after)):
                yield _edge(name, node.name, "style=dashed")
            for name in node.resources:
                yield _edge(f"var {name}", node.name, "style=dotted, arrowhead=none")
            if isinstance(node.attrs, LoopAttrs):
                for name in node.attrs.carried:
                    yield _edge(node.name, name)
            for field_name, body in bodies(node):
                yield from self.edges(body.nodes)
                targets: tuple[str, ...] = (node.name,) * len(body.results)
                if isinstance(node.attrs, LoopAttrs) and field_name == "body":
                    targets = node.attrs.carried
                for name, target in zip(body.results, targets, strict=True):
                    # Against the direction of time: not part of the layout.
                    yield _edge(node_of(name), target, "style=dotted, constraint=false")


def _node(name: str, label: str, shape: str) -> str:
    return f"{_quoted(name)} [label={_quoted(label)}, shape={shape}];"


def _edge(source: str, target: str, attributes: str = "") -> str:
    behind = f" [{attributes}]" if attributes else ""
    return f"{_quoted(source)} -> {_quoted(target)}{behind};"


def _box(name: str, label: str, inside: list[str]) -> list[str]:
    """A subgraph with a box around it, which Graphviz draws if the name begins with cluster."""
    return [
        f"subgraph {_quoted('cluster ' + name)} {{",
        f"  label={_quoted(label)};",
        *(f"  {line}" for line in inside),
        "}",
    ]


def _quoted(label: str) -> str:
    escaped = label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
