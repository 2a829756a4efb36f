"""Front end that writes each run as a call of a `tf.function`, traced from the test.

A copy of a graph is one call. Its arguments are the handles of the copy's variables, the values fed
to placeholders, and the test's further handles of a variable, which may come in by themselves or as
Identities of the first. Loops and conditionals are While and If nodes, as `tf.while_loop` and
`tf.cond` write them, calls are functions of their own (`program`). What is traced is traced several
times, with different padding; each copy calls one of these functions.

TensorFlow inlines the call and lowers While and If, or executes all of them by their kernels
(``front_end=function_kernels``), or XLA compiles the function as a whole (``compiled=whole``). That
makes it one cluster (semantics.md, section 5): it reads all its variables at once, and writes them
at once.

References
----------
TensorFlow, ``tensorflow/python/eager/polymorphic_function``, and, for XlaLaunch,
``tensorflow/compiler/jit/xla_launch_util.h``.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import tensorflow as tf
from tensorflow.python.ops import handle_data_util

from litmusfuzz.corpus.model import all_nodes
from litmusfuzz.corpus.ops import HandleAttrs
from litmusfuzz.fuzz.executors.tensorflow.emission import Copy, variables_of
from litmusfuzz.fuzz.executors.tensorflow.node_defs import DATA_TYPES, proto
from litmusfuzz.fuzz.executors.tensorflow.program import Program

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorflow.core.framework import function_pb2

    from litmusfuzz.corpus.model import LitmusTest, Node, Variable

_TRACES: Final = 3
"""Functions that a graph is traced to, for all its copies."""


@dataclass(frozen=True, slots=True)
class Trace:
    """A traced graph: the name of its function, and the order of arguments and results.

    Parameters
    ----------
    function : str
    handles : tuple of (str, str)
        Names of the arguments that are handles, each with its resource.
    fed : tuple of str
        Names of the placeholders, the arguments after the handles.
    results : tuple of str
        Values that the function returns.
    """

    function: str
    handles: tuple[tuple[str, str], ...]
    fed: tuple[str, ...]
    results: tuple[str, ...]


class Traces:
    """The functions of one built graph.

    Parameters
    ----------
    test : LitmusTest
    library : FunctionDefLibrary
        Where the functions are added.
    padding : int
    seed : int
    compiled : bool
        True if XLA compiles each function as a whole.
    lowered : bool
        True if TensorFlow inlines calls, and lowers While and If.
    one_handle : bool
        True if each variable has one handle among the arguments: XLA takes no two.
    """

    def __init__(
        self,
        test: LitmusTest,
        library: function_pb2.FunctionDefLibrary,
        padding: int,
        seed: int,
        *,
        compiled: bool,
        lowered: bool,
        one_handle: bool,
    ) -> None:
        self.test = test
        self.library = library
        self.padding = 0 if compiled else padding
        self.rng = random.Random(seed)
        self.compiled = compiled
        self.lowered = lowered
        self.one_handle = one_handle
        self._made: dict[tuple[str, ...], list[Trace]] = {}
        observed = test.nodes_by_key()
        self._shown = {observed[key] for key in test.observe}

    def of(self, nodes: Sequence[Node]) -> Trace:
        """One of the traces of a graph."""
        made = self._made.setdefault(tuple(node.name for node in nodes), [])
        if len(made) < (1 if self.compiled else _TRACES):
            made.append(self._trace(nodes, self.padding if len(made) % 2 else 0))
            return made[-1]
        return self.rng.choice(made)

    def _trace(self, nodes: Sequence[Node], padding: int) -> Trace:
        variables = {each.name: each for each in self.test.variables}
        used = dict.fromkeys(each for n in all_nodes(nodes) for each in variables_of(n))
        handles = [(name, name) for name in used]
        for node in nodes:
            alone = isinstance(node.attrs, HandleAttrs) and self.rng.random() < 0.5
            if alone and not self.one_handle:
                assert isinstance(node.attrs, HandleAttrs)
                handles.append((f"{node.name}/argument", node.attrs.variable))
        fed = [node.name for node in nodes if node.definition.fed]
        keys = [key for node in nodes for key in node.keys]
        results = [key for key in keys if key in self._shown]
        program = Program(self.test, self.rng, padding=padding)

        def traced(*given: Any) -> list[Any]:
            known = dict(zip((name for name, _ in handles), given, strict=False))
            for name, resource in handles:
                set_handle_data(known[name], variables[resource])
            values: dict[str, Any] = dict(zip(fed, given[len(handles) :], strict=True))
            program.execute(nodes, values, known)
            return [tf.identity(values[name]) for name in results]

        specs = [tf.TensorSpec([], tf.resource) for _ in handles]
        for name in fed:
            kind = self.test.type_of(name)
            specs.append(tf.TensorSpec(kind.shape, tf.as_dtype(kind.dtype)))
        function = tf.function(traced, autograph=False, jit_compile=self.compiled or None)
        concrete = function.get_concrete_function(*specs)
        held = {each.signature.name for each in self.library.function}
        for made in (concrete.function_def, *concrete.graph.as_graph_def().library.function):
            if made.signature.name not in held:
                self._add(made)
        return Trace(
            concrete.function_def.signature.name, tuple(handles), tuple(fed), tuple(results)
        )

    def _add(self, made: function_pb2.FunctionDef) -> None:
        added = self.library.function.add()
        added.CopyFrom(made)
        if self.lowered:
            return
        added.attr["_noinline"].b = True
        for node in added.node_def:
            for name in ("_lower_using_switch_merge", "_lower_as_multi_device_function"):
                if name in node.attr:
                    node.attr[name].b = False


class TracedCopy(Copy):
    """Emits one copy of a graph as a call of one of `traces`."""

    def __init__(self, *given: Any, traces: Traces, **named: Any) -> None:
        super().__init__(*given, **named)
        self.traces = traces

    def graph(self, nodes: Sequence[Node], start: str) -> list[str]:
        """Emit the call after the control input `start`; control inputs that wait for its end."""
        trace = self.traces.of(nodes)
        unit = start[1:].removesuffix(".start")
        taken: dict[str, str] = {}
        values = []
        for name, resource in trace.handles:
            if name not in taken:
                own = f"{unit}.{name.replace('/', '.')}.handle"
                taken[name] = self._handle(own, resource, [start])
            values.append(taken[name])
        for name in trace.fed:
            # Fed from outside, as what the caller of the function passes.
            line = self.frame.lines[name]
            values.append(self.emit.helper(f"{self.prefix}{name}", line.proto))
        kinds = [self._type(name).dtype for name in trace.results]
        call = proto("StatefulPartitionedCall")
        call.attr["f"].func.name = trace.function
        call.attr["_lower_as_multi_device_function"].b = self.traces.lowered
        if self.traces.compiled:
            call.attr["_XlaMustCompile"].b = True
        given = [tf.resource.as_datatype_enum] * len(trace.handles)
        given += [DATA_TYPES[self._type(each).dtype] for each in trace.fed]
        call.attr["Tin"].list.type.extend(given)
        call.attr["Tout"].list.type.extend(DATA_TYPES[dtype] for dtype in kinds)
        name = f"{unit}.call"
        self.emit.node(name, call, [*values, start])
        for position, (result, dtype) in enumerate(zip(trace.results, kinds, strict=True)):
            self._copied(f"{self.prefix}{result}", dtype, f"{name}:{position}", [])
        return [f"^{name}"]


def set_handle_data(handle: Any, variable: Variable) -> None:
    """Tell shape inference the dtype and shape of the variable behind an argument."""
    known = handle_data_util.create_handle_data(
        tf.TensorShape(variable.shape), tf.as_dtype(variable.dtype)
    )
    handle_data_util.set_handle_data(handle, known)
