"""The graphs of a litmus test as Python text: functions that build them from ``tf.raw_ops``.

A function gets the copy that it builds (`litmusfuzz.reports.script_text`) and the op with which
the graph, iteration or branch begins, and returns what leaves it and what nothing in it
waits for. Names are those of the test.
"""

from __future__ import annotations

import builtins
import keyword
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model import (
    CallAttrs,
    Graph,
    LoopAttrs,
    all_nodes,
    bodies,
    captures_of,
    enclosing,
    first_results,
    steps,
)
from litmusfuzz.corpus.ops import (
    BOOL,
    DTYPES,
    ConstAttrs,
    CountAttrs,
    HandleAttrs,
    Kind,
    MomentumAttrs,
    PlaceholderAttrs,
    PureAttrs,
    RowsAttrs,
    SectionAttrs,
    SliceAttrs,
)
from litmusfuzz.corpus.tensors import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from litmusfuzz.corpus.model import Body, LitmusTest, Node, Run
    from litmusfuzz.corpus.ops import Nested
    from litmusfuzz.corpus.pure.definition import AttrValue

# What raw_ops call an operand that the test calls otherwise.
_OPERANDS: Final = {
    ("Identity", "x"): "input",
    ("Relu", "x"): "features",
    ("Select", "t"): "x",
    ("Select", "e"): "y",
    ("Send", "tensor"): "input",
    ("Recv", "sent"): "input",
}
_AXIS: Final = frozenset({"reduction_indices", "dim", "squeeze_dims", "split_dim"})
"""What raw_ops call `axis`, of the ops in `_WITH_AXIS`."""
_WITH_AXIS: Final = frozenset(
    {"Sum", "Prod", "Max", "Min", "All", "Any", "ExpandDims", "Squeeze", "Split", "SplitV"}
)
_OF_LISTS: Final = frozenset(
    f"TensorList{name}" for name in ("ConcatLists", "Gather", "GetItem", "PopBack", "Stack")
)
"""Ops on lists that raw_ops ask for the dtype of an element."""
MAX_LINE: Final = 88
_RESERVED: Final = {
    *keyword.kwlist,
    *dir(builtins),
    *("begin", "copy", "np", "os", "random", "raw", "sys", "tf", "time", "wait", "Counter"),
    *("build", "columns", "conditional", "config", "execute", "forbidden", "loop", "main", "rows"),
    *("COPIES", "STEPS", "SECONDS", "PADDING", "BLOCKED_S", "NAMES", "ALLOWED", "FORBIDDEN"),
    *("VARIABLES", "QUEUES", "DEVICES", "GRAPHS", "RUNS", "OBSERVED", "OPTIONS", "COMPILED"),
    *("BACK", "Copy", "ThreadPoolExecutor", "closing", "h0", "h1"),
    *("CALLED", "FED", "Given", "Fresh", "JIT_COMPILE", "KNOWN", "LOWERED", "MAY_FAIL", "Node"),
    *("ONE_HANDLE", "PROGRAMS", "RENAMED", "SHAPES", "SHOWN", "TRACES", "UNEVEN", "Values"),
    *("Variables", "WAITS", "ACCUMULATORS", "call", "function_of", "keep", "lane", "listed"),
    *("named", "namedtuple", "nullcontext", "outcomes", "partial", "program", "run", "threading"),
    *("trace", "turn", "typed", "v", "variables", "write", "text", "handle_data_util"),
    "results",
    "with_aliases",
}
"""Names that mean something else in a script."""


class Names:
    """A Python name for everything in a test: its own, where that is free."""

    def __init__(self, test: LitmusTest) -> None:
        own = {name for name in test.types if "." not in name}
        self._given = {name: name for name in own - _RESERVED}
        self._taken = own | _RESERVED

    def of(self, name: str) -> str:
        """The name of a value, op, function or lock."""
        if name not in self._given:
            free = name.replace(".", "_")
            while free in self._taken:
                free += "_"
            self._taken.add(free)
            self._given[name] = free
        return self._given[name]

    def graph(self, name: str) -> str:
        """The name of the function that builds a graph."""
        return self.of(f"{name}.graph")


@dataclass(frozen=True, slots=True)
class Part:
    """A graph, or what some of its runs execute of it.

    The script builds each part by a function of its own, under `key`: the graph's name, or the
    first run's where runs of one graph fetch different things.
    """

    key: str
    graph: Graph
    runs: tuple[Run, ...]

    @property
    def wanted(self) -> tuple[str, ...]:
        """What the runs fetch and target; nothing if they execute the whole graph."""
        return self.runs[0].wanted


def parts_of(test: LitmusTest) -> list[Part]:
    """The parts of graphs that the runs of a test execute."""
    parts = []
    for graph in test.graphs:
        found: dict[tuple[str, ...], list[Run]] = {}
        for run in test.runs:
            if run.graph == graph.name:
                found.setdefault(run.wanted, []).append(run)
        for runs in found.values():
            key = graph.name if len(found) == 1 else runs[0].name
            parts.append(Part(key, graph, tuple(runs)))
    return parts


def fed_nodes(test: LitmusTest, part: Part) -> list[Node]:
    """The placeholders that the runs of a part feed."""
    return [node for node in test.graph_of(part.runs[0]).nodes if node.definition.fed]


def written(test: LitmusTest, part: Part, names: Names, *, clustered: bool) -> str:
    """The function that builds a graph, below those for the bodies in it.

    It builds the whole graph. If runs fetch, what it returns to be done is what they need. If XLA
    clusters it, all ops on a variable have one handle, those of function calls included.
    """
    graph = part.graph
    executed = frozenset(node.name for node in test.graph_of(part.runs[0]).nodes)
    writer = Writer(test, names, executed, clustered=clustered)
    lines, rest = writer.level(graph.nodes, ())
    if part.wanted:
        rest = writer.asked(part.wanted)
    values = ", ".join(names.of(name) for name in observed(test, part))
    function = [
        f"def {names.graph(part.key)}(copy, begin):",
        f'    """Graph {graph.name} of a copy: what is observed, and what else is to be done."""',
        *indented(lines),
        f"    return [{values}], [{', '.join(rest)}]",
    ]
    return "\n\n\n".join([*writer.functions, "\n".join(function)])


def shown_by(test: LitmusTest) -> list[tuple[str, int]]:
    """For each key of `LitmusTest.observe`: the run, and which value of its graph."""
    keys = test.nodes_by_key()
    mine = {run.name: observed(test, part) for part in parts_of(test) for run in part.runs}
    places = []
    for key in test.observe:
        run = next(r for r in test.runs if len(test.runs) == 1 or key.startswith(f"{r.name}."))
        places.append((run.name, mine[run.name].index(keys[key])))
    return places


def observed(test: LitmusTest, part: Part) -> list[str]:
    """The observed values of a part of a graph, each once."""
    keys = test.nodes_by_key()
    mine = set(part.runs[0].fetches)
    if not part.wanted:
        mine = {key for node in part.graph.nodes for key in node.keys}
    return [each for each in dict.fromkeys(keys[key] for key in test.observe) if each in mine]


def literal(value: Nested, shape: Sequence[int], dtype: str, *, whole: bool) -> str:
    """A literal as ``tf.constant`` takes it: an int for all elements, or all rows."""
    if isinstance(value, int):
        return str(bool(value)) if dtype == BOOL else str(value)
    if whole:
        return str(_plain(value, shape, dtype))
    listed = str(_plain(value, shape[:1], dtype))
    return listed if len(shape) < 2 else f"rows({listed}, {list(shape)})"


def _plain(value: Nested, shape: Sequence[int], dtype: str) -> object:
    """The elements in lists; a row that is one number has it in all places."""
    if not shape:
        assert isinstance(value, int)
        return bool(value) if dtype == BOOL else value
    parts = (value,) * shape[0] if isinstance(value, int) else value
    return [_plain(part, shape[1:], dtype) for part in parts]


def _argument_name(op: str, name: str) -> str:
    """The name of an operand or attribute of a pure op in ``tf.raw_ops``."""
    if op in _WITH_AXIS and name in _AXIS:
        return "axis"
    return "condition" if (op, name) == ("Where", "input") else name


def _argument(node: Node, key: str, value: AttrValue) -> str:
    """An attribute of a pure op as ``tf.raw_ops`` takes it."""
    if (node.op, key) == ("EnsureShape", "shape") and isinstance(value, tuple):
        return str([None if extent == UNKNOWN else extent for extent in value])
    if value in (*DTYPES, BOOL):
        return f"tf.{value}"
    return repr(list(value) if isinstance(value, tuple) else value)


def compiles(test: LitmusTest, node: Node) -> bool:
    """True if XLA can compile a node.

    It accepts a slice with strides, and then fails; it does not report an op that fails.
    """
    if node.name in test.failing:
        return False
    if node.definition.meaning is not None and not node.definition.meaning.compiles:
        return False
    return not (isinstance(node.attrs, SliceAttrs) and node.attrs.strides != 1)


def indented(lines: Iterable[str]) -> list[str]:
    """Lines, indented once."""
    return [f"    {line}" if line else "" for line in lines]


class Writer:
    """Writes the functions of one graph."""

    def __init__(
        self, test: LitmusTest, names: Names, executed: frozenset[str], *, clustered: bool
    ) -> None:
        self.test = test
        self.clustered = clustered
        self.names = names
        self.executed = executed
        """Nodes of the graph, bodies apart, that its runs execute."""
        self.functions: list[str] = []
        self.dtypes = {v.name: v.dtype for v in test.variables}
        self.dtypes |= {q.name: q.dtype for q in test.queues}
        self.dtypes |= {a.name: a.dtype for a in test.accumulators}
        self.nests = {n.name for n in test.nodes if bodies(n)}
        """Loops, conditionals and calls."""
        self.calls = {n.name for n in test.nodes if isinstance(n.attrs, CallAttrs)}
        self.firsts = first_results(test.graphs)
        self.written: set[str] = set()
        """First results of ops that are written: the op's other results take theirs from it."""

    def level(self, nodes: Sequence[Node], results: Iterable[str]) -> tuple[list[str], list[str]]:
        """The lines of a graph or body, and what in it nothing else waits for."""
        sections = [node for node in nodes if isinstance(node.attrs, SectionAttrs)]
        used = set(results).union(*((*node.references, *node.members) for node in nodes))
        lines: list[str] = []
        rest: list[str] = []
        for kind, step in steps(Graph("", tuple(nodes))):
            node = next(each for each in nodes if each.name == step.name)
            around = [each for each in sections if node.name in each.members]
            if node in sections:
                around = enclosing(node, sections)
            waits = self.done(node.after) + [self.names.of(f"{s.name}.lock") for s in around]
            if kind == "acquire":
                lock = self.names.of(f"{node.name}.lock")
                given = "".join(f", {wait}" for wait in waits)
                lines.append(f'{lock} = copy.acquire("{node.resources[0]}", begin{given})')
                continue
            if kind == "release":
                lines += self.release(node, sections)
            else:
                lines += self.node(node, waits)
            if node.name in self.nests:
                # What leaves it by itself may depend on what nothing else waits for.
                rest += [f"*{self.names.of(node.name)}", self.names.of(f"{node.name}.rest")]
            elif node.name not in used:
                rest.append(self.names.of(node.name))
        return lines, rest

    def asked(self, wanted: Iterable[str]) -> list[str]:
        """What a run that fetches waits for.

        Besides what it fetches and targets, the ends of what it executes whole: loops,
        conditionals, and the sections that it enters.
        """
        of = self.names.of
        found = [of(name) for name in wanted if name not in self.nests]
        for node in self.test.nodes:
            if node.name not in self.executed:
                continue
            if node.name in self.nests:
                found += [f"*{of(node.name)}", of(f"{node.name}.rest")]
            elif node.members:
                found.append(of(node.name))
        return list(dict.fromkeys(found))

    def done(self, names: Iterable[str]) -> list[str]:
        """What to wait for, to come after these nodes."""
        of = self.names.of

        def ended(name: str) -> str:
            if name in self.calls:  # of a call all instances
                return of(f"{name}.rest")
            return f"*{of(name)}" if name in self.nests else of(name)

        return [ended(name) for name in names]

    def release(self, node: Node, sections: Iterable[Node]) -> list[str]:
        """A section's end: its lock is free when its last reference is gone."""
        inner = [each.name for each in sections if set(each.members) < set(node.members)]
        within = [*node.members, *inner]
        if node.name in self.executed:  # it may hold members that no run needs
            within = [name for name in within if name in self.executed]
        waits = self.done(within)
        # Of a loop or conditional all instances.
        waits += [self.names.of(f"{name}.rest") for name in within if name in self.nests]
        lock, name = self.names.of(f"{node.name}.lock"), self.names.of(node.name)
        call = f'{name} = raw.ConsumeMutexLock(mutex_lock={lock}, name="{node.name}")'
        return [f"with tf.control_dependencies([{', '.join(waits)}]):", f"    {call}"]

    def node(self, node: Node, waits: list[str]) -> list[str]:
        """The lines of one node."""
        if node.name in self.nests:
            return self.nested(node, waits)
        lines: list[str] = []
        handles: list[str] = []
        name = self.names.of(node.name)
        if node.resources:
            late = [self.names.of(source) for source in node.inputs] + waits
            given = "".join(f", {each}" for each in dict.fromkeys(late))
            handles = [f'copy.handle("{each}", begin{given})' for each in node.resources]
            if node.handle:
                handles = [self.names.of(node.handle)]
            elif waits:
                # Outside of what the op itself waits for: it may come early.
                lines += [f"h{i} = {handle}" for i, handle in enumerate(handles)]
                handles = [f"h{i}" for i in range(len(handles))]
        if isinstance(node.attrs, HandleAttrs):
            waits = ["begin", *waits]
        if isinstance(node.attrs, ConstAttrs):
            attrs = node.attrs
            value = literal(attrs.value, attrs.shape, attrs.dtype, whole=self.test.whole)
            call = (
                f'tf.constant({value}, tf.{attrs.dtype}, {list(attrs.shape)}, name="{node.name}")'
            )
        elif isinstance(node.attrs, PlaceholderAttrs):
            kind = f"tf.{node.attrs.dtype}, {list(node.attrs.shape)}"
            call = f'tf.compat.v1.placeholder({kind}, "{node.name}")'
            if node.name in self.executed:
                call = f'copy.placeholder("{node.name}", {kind})'
        elif isinstance(node.attrs, HandleAttrs):
            call = f'copy.resource("{node.attrs.variable}")'
        else:
            call = self.call(node, handles, f'name="{node.name}"')
        first = self.firsts.get(node.name)
        if first in self.written:
            return [f"{name} = {self.names.of(f'{first}.all')}{self.output(node)}"]
        several = ""
        if first is not None:
            self.written.add(first)
            several, name = name, self.names.of(f"{first}.all")
        scopes = [f'tf.device("/{node.device}")'] if node.device else []
        if waits:
            scopes.append(f"tf.control_dependencies([{', '.join(dict.fromkeys(waits))}])")
        made = wrapped(f"{name} = {call}")
        if scopes:
            made = [f"with {', '.join(scopes)}:", *indented(made)]
        if several:
            made.append(f"{several} = {name}{self.output(node)}")
        return [*lines, *made]

    def output(self, node: Node) -> str:
        """The index of a node's value among the outputs of its op; "" for an op with one."""
        row, attrs = node.definition.meaning, node.attrs
        if row is None or not (row.results or row.count):
            return ""
        assert isinstance(attrs, PureAttrs)
        return f"[{row.outputs(attrs, len(node.inputs))[0]}]"

    def value(self, name: str) -> str:
        """A value of the test in the script."""
        return self.names.of(name)

    def call(self, node: Node, handles: Sequence[str], *last: str) -> str:
        """The call of an op that makes its value, with these handles and last arguments.

        Of an op with several results it makes all.
        """
        keys = node.definition.roles
        if keys == ("var",) and node.definition.kernel_class != "ResourceApply":
            nd_scatter = node.definition.nd and node.definition.scatter
            is_ref = nd_scatter or node.op == "ResourceStridedSliceAssign"
            keys = ("ref" if is_ref else "resource",)
        elif keys in (("queue",), ("accumulator",)):
            keys = ("handle",)
        arguments = [f"{key}={handle}" for key, handle in zip(keys, handles, strict=True)]
        arguments += self.attributes(node)
        row = None if node.definition.computed else node.definition.meaning
        own = zip(node.definition.operands, node.inputs, strict=True) if row is None else ()
        if row is not None:
            values = row.grouped([self.value(source) for source in node.inputs])
            for operand, given in zip(node.definition.operands, values, strict=True):
                listed = f"[{', '.join(given)}]" if isinstance(given, list) else given
                arguments.append(f"{_argument_name(node.op, operand)}={listed}")
        for operand, source in own:
            value = self.value(source)
            if operand in ("element", "elements"):
                arguments.append(f"components=[{value}]")
            else:
                arguments.append(f"{_OPERANDS.get((node.op, operand), operand)}={value}")
        if node.op in _OF_LISTS:
            kinds = [self.test.types.get(name) for name in (*node.inputs, node.name)]
            element = next(kind.stacked.dtype for kind in kinds if kind and kind.is_list)
            arguments.append(f"element_dtype=tf.{element}")
        arguments += last
        op = "Identity" if node.definition.kind is Kind.TRANSFER else node.op
        call = f"raw.{op}({', '.join(arguments)})"
        return f"{call}[0]" if node.definition.takes else call

    def attributes(self, node: Node) -> list[str]:
        """The arguments that are no operands."""
        attrs = node.attrs
        found: list[str] = []
        if isinstance(attrs, RowsAttrs):
            rows = [[i] for i in attrs.indices] if node.definition.nd else list(attrs.indices)
            found.append(f"indices={rows}")
        elif isinstance(attrs, SliceAttrs):
            found += [f"{key}=[{getattr(attrs, key)}]" for key in ("begin", "end", "strides")]
        elif isinstance(attrs, MomentumAttrs):
            found.append(f"use_nesterov={attrs.use_nesterov}")
        elif isinstance(attrs, CountAttrs):
            found.append(f"n={attrs.count}")
        elif isinstance(attrs, PureAttrs):
            row = node.definition.meaning
            several = row is not None and bool(row.results or row.count)
            for key, value in attrs.values:
                if several and key == "result":
                    continue
                found.append(f"{_argument_name(node.op, key)}={_argument(node, key, value)}")
        if node.definition.kind is Kind.READ:
            found.append(f"dtype=tf.{self.dtypes[node.resources[0]]}")
        elif node.definition.takes:
            found.append(f"component_types=[tf.{self.dtypes[node.resources[0]]}]")
        elif node.definition.takes_sum:
            found.append(f"dtype=tf.{self.dtypes[node.resources[0]]}")
        return found

    def nested(self, node: Node, waits: list[str]) -> list[str]:
        """A loop, conditional or call: its bodies are functions."""
        made = [self.body(node, field, body) for field, body in bodies(node)]
        after = ", ".join(["begin", *waits])
        outer = ", ".join(self.names.of(source) for _, source in captures_of(node))
        name, rest = self.names.of(node.name), self.names.of(f"{node.name}.rest")
        if isinstance(node.attrs, LoopAttrs):
            first = ", ".join(self.names.of(source) for source in node.inputs)
            call = f'loop(copy, "{node.name}", [{after}], [{first}], [{outer}], {", ".join(made)}'
            call += f", {node.attrs.parallel_iterations})"
        elif isinstance(node.attrs, CallAttrs):
            # The way back into a loop can be written outside of functions only.
            loops = any(isinstance(each.attrs, LoopAttrs) for each in all_nodes([node]))
            used = {each for inner in all_nodes([node]) for each in inner.resources}
            used |= {a.variable for n in all_nodes([node]) if isinstance(a := n.attrs, HandleAttrs)}
            shared = [v.name for v in self.test.variables if v.name in used and self.clustered]
            call = f"{'inlined' if loops else 'call'}(copy, [{after}], [{outer}], {made[0]}"
            call += f", {shared})" if shared else ")"
        else:
            predicate = self.lane(node.inputs[0])
            call = f"conditional(copy, [{after}], {predicate}, [{outer}], {', '.join(made)})"
        each = "".join(f"{self.names.of(f'{node.name}.{result}')}, " for result in node.results)
        unpacked = [f"{each.strip()} = {name}"] if each else []
        return [f"*{name}, {rest} = {call}", *unpacked]

    def body(self, node: Node, field: str, body: Body) -> str:
        """Write a body's function; its name."""
        given = "".join(f", {self.names.of(name)}" for name in node.arguments)
        lines, rest = self.level(body.nodes, body.results)
        results = ", ".join(self.names.of(name) for name in body.results)
        if field == "condition":
            results = self.lane(body.results[0])
        function = self.names.of(f"{node.name}.{field}.body")
        text = [
            f"def {function}(copy, begin{given}):",
            "    with tf.control_dependencies([begin]):",
            *indented(indented(lines)),
            f"        return [{results}], [{', '.join(rest)}]",
        ]
        self.functions.append("\n".join(text))
        return function

    def lane(self, name: str) -> str:
        """A predicate: the first lane of a value."""
        kind = self.test.types[name]
        assert kind is not None
        value = self.names.of(name)
        return f"tf.reshape({value}, [-1])[0]" if kind.shape else value


def wrapped(line: str) -> list[str]:
    """An assignment of a call, its arguments on a line of their own if it is long."""
    if len(line) <= MAX_LINE:
        return [line]
    head, _, rest = line.partition("(")
    arguments, _, tail = rest.rpartition(")")
    return [f"{head}(", f"    {arguments}", f"){tail}"]
