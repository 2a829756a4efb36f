"""The graphs of a litmus test as Python text: functions, one for each node, in program order.

Unlike `raw_ops`, which writes a graph edge by edge, this is what a user writes: the same code is
executed op by op, traced by `tf.function`, or builds a graph with `tf.while_loop` and `tf.cond`
(`litmusfuzz.fuzz.executors.tensorflow.program`). Each node is a function, so that a script can
divide a program into parts. A node takes values from a mapping `v` and puts its own there: values
by their names, handles of variables by ``&`` and the name (`litmusfuzz.reports.python_text`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from litmusfuzz.corpus.model import (
    BranchAttrs,
    CallAttrs,
    LoopAttrs,
    all_nodes,
    bodies,
    captures_of,
)
from litmusfuzz.corpus.ops import ConstAttrs, HandleAttrs
from litmusfuzz.reports.raw_ops import Writer, indented, literal, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from litmusfuzz.corpus.model import Body, LitmusTest, Node
    from litmusfuzz.reports.raw_ops import Names, Part


def program(test: LitmusTest, part: Part, names: Names) -> tuple[list[str], list[str]]:
    """The functions of the nodes of a part, bodies included, and a row for each of its nodes."""
    writer = _NodeWriter(test, names, frozenset(), clustered=False)
    rows = []
    for node in test.graph_of(part.runs[0]).nodes:
        if not node.definition.fed:
            writer.function(node)
            rows.append(_row(test, node, names))
    return writer.functions, rows


def shapes(test: LitmusTest) -> list[str]:
    """Rows of static shapes of what bodies return, which TensorFlow does not always infer."""
    returned = [r for n in test.nodes for _, body in bodies(n) for r in body.results]
    found = []
    for name in dict.fromkeys(returned):
        kind = test.types[name]
        if kind is not None and kind.is_tensor:
            found.append(f"{name!r}: {list(kind.shape)}")
    return found


def variables_of(nodes: Iterable[Node]) -> list[str]:
    """The variables that nodes use, those in bodies included."""
    found: dict[str, None] = {}
    for node in all_nodes(nodes):
        found |= dict.fromkeys(node.resources)
        if isinstance(node.attrs, HandleAttrs):
            found[node.attrs.variable] = None
    return list(found)


def _row(test: LitmusTest, node: Node, names: Names) -> str:
    makes = [key for key in node.keys if test.types.get(key) is not None]
    takes = [n for n in dict.fromkeys(node.references) if test.types.get(n) is not None]
    further = node.attrs.variable if isinstance(node.attrs, HandleAttrs) else None
    uses = variables_of([node])
    kind = test.types.get(node.name)
    alias = node.op == "Identity" and kind is not None and kind.is_handle
    return f"Node({names.of(node.name)}, {makes}, {takes}, {uses}, {further!r}, {alias})"


class _NodeWriter(Writer):
    """Writes nodes as functions that take from `v`, and put there."""

    def value(self, name: str) -> str:
        """A value, taken from `v`."""
        return f'v["{name}"]'

    def function(self, node: Node) -> str:
        """Write the function of a node; its name."""
        name = self.names.of(node.name)
        self.functions.append("\n".join([f"def {name}(v):", *indented(self.lines(node))]))
        return name

    def lines(self, node: Node) -> list[str]:
        """What the function of a node executes."""
        if isinstance(node.attrs, (BranchAttrs, LoopAttrs, CallAttrs)):
            return self.nest(node, node.attrs)
        target = f'v["{node.name}"]'
        if isinstance(node.attrs, HandleAttrs):
            argument = f'"&{node.name}"'
            other = f'tf.identity(v["&{node.attrs.variable}"])'
            made = f"{target} = v[{argument}] if {argument} in v else {other}"
        elif isinstance(node.attrs, ConstAttrs):
            attrs = node.attrs
            value = literal(attrs.value, attrs.shape, attrs.dtype, whole=self.test.whole)
            made = f"{target} = tf.constant({value}, tf.{attrs.dtype}, {list(attrs.shape)})"
        else:
            handles = [f'v["&{each}"]' for each in node.resources]
            if node.handle:
                handles = [self.value(node.handle)]
            made = self.call(node, handles)
            if node.resources and node.definition.has_value:
                made = f"keep({made})"
            elif node.name in self.firsts:
                first = self.firsts[node.name]
                made = f'results(v, "{first}", lambda: {made}){self.output(node)}'
            made = f"{target} = {made}"
        if node.resources:
            given = f"v, {list(node.after)}, {list(node.inputs)}"
            return [f"with turn({given}):", *indented(wrapped(made))]
        if node.after:
            return [f"with turn(v, {list(node.after)}):", *indented(wrapped(made))]
        return wrapped(made)

    def nest(self, node: Node, attrs: BranchAttrs | LoopAttrs | CallAttrs) -> list[str]:
        """A conditional, loop or call: its bodies are lists of nodes, with their results."""
        captures = dict(captures_of(node))
        given = [f'v, "{node.name}", {list(node.after)}, {captures}']
        if isinstance(attrs, BranchAttrs):
            given += [f'"{node.inputs[0]}"', self.listed(attrs.then), self.listed(attrs.orelse)]
            called, results = "conditional", attrs.results
        elif isinstance(attrs, LoopAttrs):
            given += [f"{dict(zip(attrs.carried, node.inputs, strict=True))}"]
            given += [self.listed(attrs.condition), self.listed(attrs.body)]
            given += [f"{attrs.parallel_iterations}"]
            called, results = "loop", attrs.carried
        else:
            given.append(self.listed(attrs.body))
            called, results = "call", attrs.results
        keys = [f"{node.name}.{result}" for result in results]
        text = f"{called}({', '.join([*given, str(keys)])})"
        return wrapped(text) if len(text) <= 84 else _broken(called, [*given, str(keys)])

    def listed(self, body: Body) -> str:
        """The nodes of a body, and what it returns."""
        nodes: Sequence[str] = [self.function(node) for node in body.nodes]
        return f"([{', '.join(nodes)}], {list(body.results)})"


def _broken(called: str, given: Iterable[str]) -> list[str]:
    """A call with a line for each argument."""
    return [f"{called}(", *(f"    {each}," for each in given), ")"]
