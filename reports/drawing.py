"""A litmus test, drawn: as columns of text, and as DOT."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpus.graph import BranchAttrs, LoopAttrs, all_nodes, bodies, predecessors
from corpus.ops import ConstAttrs, CountAttrs, MomentumAttrs, RowsAttrs, SectionAttrs, SliceAttrs
from reports.text import table

if TYPE_CHECKING:
    from corpus.graph import Body, Graph, LitmusTest, Node
    from corpus.ops import Nested

_SIGNS = {
    "AssignVariableOp": "=",
    "AssignAddVariableOp": "+=",
    "AssignSubVariableOp": "-=",
    "ResourceScatterUpdate": "=",
    "ResourceScatterAdd": "+=",
    "ResourceScatterSub": "-=",
    "ResourceScatterMul": "*=",
    "ResourceScatterMin": "min=",
    "ResourceScatterMax": "max=",
    "ResourceStridedSliceAssign": "=",
    "AddV2": "+",
    "Sub": "-",
    "Mul": "*",
    "Less": "<",
    "Equal": "==",
}


def text(test: LitmusTest) -> str:
    """The test as people write it: variables, then a column for each chain.

    A chain is a path of effects, each ordered before the next. What else an
    effect waits for stands behind it as ``after``.
    """
    lines = [test.name]
    lines += [f"  {line}" for line in test.about.splitlines()]
    for variable in test.variables:
        where = f" on {variable.device}" if variable.device else ""
        lines.append(f"  {variable.name}: {variable.type} = {_literal(variable.init)}{where}")
    lines += [f"  {mutex.name}: mutex" for mutex in test.mutexes]
    for queue in test.queues:
        held = ", ".join(_literal(each) for each in queue.init)
        lines.append(f"  {queue.name}: queue of {queue.capacity} {queue.type} = [{held}]")
    several = len(test.graphs) > 1 or bool(test.client)
    for graph in test.graphs:
        columns = _chains(test, graph)
        height = max((len(c) for c in columns), default=0)
        rows = [[c[i] if i < len(c) else "" for c in columns] for i in range(height)]
        lines.append("")
        if several:
            lines.append(f"  graph {graph.name}:")
        lines += [f"  {line}" for line in table(_headers(columns), rows).splitlines()]
        if not columns:
            lines.append(f"  {graph.name} touches no resource")
    if several:
        lines.append("")
    for run in test.runs if several else ():
        after = f" after {', '.join(run.after)}" if run.after else ""
        lines.append(f"  run {run.name}: graph {run.graph}{after}")
    named = {key.rpartition(".")[2] for key in test.observe}
    others = [
        n
        for graph in test.graphs
        for n in graph.nodes
        if n.name in named and not n.definition.has_effect
    ]
    lines += [f"  {n.name} = {expression(test, n.name, top=True)}" for n in others]
    observed = f"reads {', '.join(test.observe)} and " if test.observe else ""
    queues = " and queue" if test.queues else ""
    lines += ["", f"  observed: {observed}the final value of every variable{queues}"]
    return "\n".join(lines)


def _headers(columns: list[list[str]]) -> list[str]:
    return [f"| chain {i}" for i in range(len(columns))]


def _chains(test: LitmusTest, graph: Graph) -> list[list[str]]:
    """Cells of each column: effects that are each ordered before the next."""
    above = {n.name: names for n, names in predecessors(graph)}
    effects = {n.name: n for n in graph.effects}
    chains: list[list[str]] = []
    cells: list[list[str]] = []
    for node in graph.effects:
        place = next((c for c in chains if c[-1] in above[node.name]), None)
        if place is None:
            chains.append([])
            cells.append([])
            place = chains[-1]
        column = cells[next(i for i, c in enumerate(chains) if c is place)]
        known: set[str] = set()  # what the column's order already tells
        for name in place:
            known |= {name} | (above[name] & effects.keys())
        extra = sorted((above[node.name] & effects.keys()) - known)
        # Only what nothing else implies.
        extra = [e for e in extra if not any(e in above[other] for other in extra)]
        note = f"   (after {', '.join(extra)})" if extra else ""
        column.append(f"| {statement(test, node)}{note}")
        place.append(node.name)
    return cells


def statement(test: LitmusTest, node: Node) -> str:
    """One effect, as a statement."""
    if isinstance(node.attrs, BranchAttrs):
        then, orelse = (_body(test, body) for _, body in bodies(node))
        predicate = expression(test, node.inputs[0])
        return f"{node.name}: if {predicate} {{{then}}} else {{{orelse}}}"
    if isinstance(node.attrs, LoopAttrs):
        carried = ", ".join(
            f"{name}={expression(test, source)}"
            for name, source in zip(node.attrs.carried, node.inputs, strict=True)
        )
        condition, body = (_body(test, each) for _, each in bodies(node))
        return f"{node.name}: for {carried} while {{{condition}}} do {{{body}}}"
    if isinstance(node.attrs, SectionAttrs):
        return f"{node.name}: lock {node.resources[0]} around {', '.join(node.attrs.members)}"
    target = node.resources[0] + _rows(node)
    if node.definition.on == "queue":
        op = node.op.removeprefix("Queue").removesuffix("V2")
        given = [expression(test, name) for name in node.inputs]
        given += [str(node.attrs.count)] if isinstance(node.attrs, CountAttrs) else []
        joint = " = " if test.types[node.name] is not None else ": "
        return f"{node.name}{joint}{target}.{op}({', '.join(given)})"
    if node.name in test.types and test.types[node.name] is not None:
        nd = " (Nd)" if node.op == "ResourceGatherNd" else ""
        return f"{node.name} = {target}{nd}"
    values = [expression(test, name) for name in node.inputs]
    sign = _SIGNS.get(node.op.replace("ScatterNd", "Scatter"))
    if sign:
        nd = " (Nd)" if "ScatterNd" in node.op else ""
        return f"{node.name}: {target} {sign} {values[0]}{nd}"
    if node.op == "ResourceApplyGradientDescent":
        return f"{node.name}: {target} -= {values[0]} * {values[1]}"
    named = [f"{r}={v}" for r, v in zip(node.definition.operands, values, strict=True)]
    if isinstance(node.attrs, MomentumAttrs) and node.attrs.use_nesterov:
        named.append("nesterov")
    op = node.op.removeprefix("Resource")
    return f"{node.name}: {op}({', '.join([*node.resources, *named])})"


def _literal(value: Nested) -> str:
    return str(value).replace("(", "[").replace(")", "]").replace(",]", "]")


def _body(test: LitmusTest, body: Body) -> str:
    """The effects inside, with what each waits for, and what leaves."""
    parts = []
    for node in body.nodes:
        if node.definition.has_effect:
            after = f" (after {', '.join(node.after)})" if node.after else ""
            parts.append(statement(test, node) + after)
    returned = ", ".join(expression(test, name) for name in body.results)
    return "; ".join([*parts, f"return {returned}"])


def _rows(node: Node) -> str:
    if isinstance(node.attrs, RowsAttrs):
        return f"[{','.join(map(str, node.attrs.indices))}]"
    if isinstance(node.attrs, SliceAttrs):
        return f"[{node.attrs.begin}:{node.attrs.end}:{node.attrs.strides}]"
    return ""


def expression(test: LitmusTest, name: str, *, top: bool = False, depth: int = 0) -> str:
    """A node's value in terms of reads and constants."""
    node = next(
        (n for graph in test.graphs for n in all_nodes(graph.nodes) if n.name == name), None
    )
    if node is None:  # a carried value, one taken from outside, or a result
        return name
    if isinstance(node.attrs, ConstAttrs):
        return _literal(node.attrs.value)
    if node.definition.has_effect or depth > 6:
        return node.name
    values = [expression(test, i, depth=depth + 1) for i in node.inputs]
    if node.op == "Identity" and not top:
        return values[0]
    sign = _SIGNS.get(node.op)
    if sign:
        joined = f" {sign} ".join(values)
        return joined if top else f"({joined})"
    return f"{node.op}({', '.join(values)})"


def dot(test: LitmusTest) -> str:
    """The graph in Graphviz's language: data edges solid, control edges dashed."""
    lines = [
        f"digraph {_quoted(test.name)} {{",
        '  graph [rankdir="TB", fontname="sans-serif"];',
        '  node [shape=box, fontname="sans-serif"];',
    ]
    for variable in test.variables:
        label = f"{variable.name}: {variable.type} = {_literal(variable.init)}"
        lines.append(
            f"  {_quoted('var ' + variable.name)} [label={_quoted(label)}, shape=cylinder];"
        )
    nodes = [n for graph in test.graphs for n in graph.nodes]
    for node in nodes:
        label = node.op
        if node.definition.has_effect:
            label = statement(test, node) + "\n" + node.op
        elif isinstance(node.attrs, ConstAttrs):
            label = expression(test, node.name)
        fill = ", style=filled, fillcolor=coral" if node.definition.has_effect else ""
        lines.append(f"  {_quoted(node.name)} [label={_quoted(label)}{fill}];")
    for node in nodes:
        lines += [
            f"  {_quoted(i)} -> {_quoted(node.name)};"
            for i in dict.fromkeys(map(_base, node.inputs))
        ]
        lines += [f"  {_quoted(a)} -> {_quoted(node.name)} [style=dashed];" for a in node.after]
        lines += [
            f"  {_quoted('var ' + r)} -> {_quoted(node.name)} [style=dotted, arrowhead=none];"
            for r in node.resources
        ]
    return "\n".join([*lines, "}"])


def _base(reference: str) -> str:
    """The node that a reference to one of its results goes to."""
    return reference.partition(".")[0]


def _quoted(label: str) -> str:
    escaped = label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
