"""Front end that builds graphs as Python code does, with `tf.while_loop` and `tf.cond`.

The graph is that of a session, without a function, so nothing is added to the test's own order
(`program`). ``python_v1`` has the control flow of TensorFlow 1: Enter, Exit, NextIteration, Switch
and Merge, as `tf.compat.v1.disable_control_flow_v2` selects it. ``python_v2`` has While and If
nodes, which TensorFlow lowers. Calls are `tf.function`s in both.

A graph is built a few times, with different padding; each copy of the test is a renamed copy of one
of these graphs.

References
----------
TensorFlow, ``tensorflow/python/ops/control_flow_util.py``, `EnableControlFlowV2`.
"""

from __future__ import annotations

import random
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import tensorflow as tf
from tensorflow.python.ops import control_flow_util

from litmusfuzz.fuzz.executors.tensorflow.emission import Copy
from litmusfuzz.fuzz.executors.tensorflow.program import Program, ended
from litmusfuzz.fuzz.executors.tensorflow.traced import set_handle_data

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tensorflow.core.framework import function_pb2, graph_pb2

    from litmusfuzz.corpus.model import LitmusTest, Node

_GRAPHS: Final = 3
"""How often a graph is built, for all its copies."""
_START: Final = "start"


@dataclass(frozen=True, slots=True)
class PythonGraph:
    """A graph that Python code has built.

    Parameters
    ----------
    graph_def : GraphDef
        Its nodes wait for `start`; a VarHandleOp has the name of its variable as its shared name.
    values : mapping of str to str
        The tensor of each value of the test.
    ends : tuple of str
        Nodes that wait for all instances.
    """

    graph_def: graph_pb2.GraphDef
    values: Mapping[str, str]
    ends: tuple[str, ...]


class PythonGraphs:
    """The graphs of one built graph of copies.

    Parameters
    ----------
    test : LitmusTest
    library : FunctionDefLibrary
        Where functions are added.
    padding : int
    seed : int
    v2 : bool
        True for While and If nodes.
    share_handles : bool
        True if all ops that use a variable share one handle.
    """

    def __init__(
        self,
        test: LitmusTest,
        library: function_pb2.FunctionDefLibrary,
        padding: int,
        seed: int,
        *,
        v2: bool,
        share_handles: bool,
    ) -> None:
        self.test = test
        self.library = library
        self.padding = padding
        self.rng = random.Random(seed)
        self.v2 = v2
        self.share_handles = share_handles
        self._made: dict[tuple[str, ...], list[PythonGraph]] = {}

    def of(self, nodes: Sequence[Node]) -> PythonGraph:
        """One of the graphs that are built for these nodes."""
        made = self._made.setdefault(tuple(node.name for node in nodes), [])
        if len(made) < _GRAPHS:
            made.append(self._built(nodes, self.padding if len(made) % 2 else 0))
            return made[-1]
        return self.rng.choice(made)

    def _built(self, nodes: Sequence[Node], padding: int) -> PythonGraph:
        program = Program(self.test, self.rng, padding=padding, waits=True)
        values: dict[str, Any] = {}
        with tf.Graph().as_default() as graph, _generation(v2=self.v2):
            start = tf.raw_ops.NoOp(name=_START)
            handles = _Handles(self.test, graph, start, share=self.share_handles)
            with tf.control_dependencies([start]):
                for node in nodes:
                    if node.definition.fed:
                        kind = self.test.type_of(node.name)
                        values[node.name] = tf.compat.v1.placeholder(
                            kind.dtype, kind.shape, name=f"{node.name}/"
                        )
                        values[f"^{node.name}"] = [values[node.name].op]
                program.execute(nodes, values, handles)
        graph_def = graph.as_graph_def()
        self.library.function.extend(graph_def.library.function)
        ends = [each for node in nodes for each in ended(values, node.name)]
        return PythonGraph(
            graph_def,
            {
                name: value.name
                for name, value in values.items()
                if name[0] != "^" and tf.is_tensor(value)
            },
            tuple(getattr(each, "op", each).name for each in ends),
        )


class PythonCopy(Copy):
    """Emits one copy of a graph as a renamed copy of one of `graphs`."""

    def __init__(self, *given: Any, graphs: PythonGraphs, **named: Any) -> None:
        super().__init__(*given, **named)
        self.graphs = graphs

    def graph(self, nodes: Sequence[Node], start: str) -> list[str]:
        """Emit the graph after the control input `start`; control inputs that wait for its end."""
        made = self.graphs.of(nodes)
        place = f"{start[1:].removesuffix('.start')}.built/"
        fed = {node.name for node in nodes if node.definition.fed}

        def renamed(source: str) -> str:
            control, source = source[: source[0] == "^"], source.lstrip("^")
            name, _, number = source.partition(":")
            if name == _START:
                return start
            if name in fed:
                return f"{control}{self.prefix}{name}"
            return f"{control}{place}{name}" + (f":{number}" if number not in ("", "0") else "")

        inside = [node for node in made.graph_def.node if node.name != _START]
        order = self.rng.permutation(len(inside)) if self.shuffle else range(len(inside))
        for index in order:
            node = inside[index]
            name = renamed(node.name)
            self.emit.node(name, node, [renamed(source) for source in node.input])
            added = self.emit.last
            del added.input[: len(node.input)]
            added.attr.pop("_class", None)
            if node.op == "VarHandleOp":
                resource = node.attr["shared_name"].s.decode()
                added.attr["shared_name"].s = f"{self.resources}{resource}".encode()
            elif node.op == "Enter":
                added.attr["frame_name"].s = place.encode() + node.attr["frame_name"].s
        for key, tensor in made.values.items():
            kind = self.frame.test.types.get(key)
            if kind is not None and kind.is_tensor and key not in fed:
                self._copied(f"{self.prefix}{key}", kind.dtype, renamed(tensor), [])
        return [f"^{renamed(name)}" for name in dict.fromkeys(made.ends)]


class _Handles(dict[str, Any]):
    """A new handle of a variable each time that one is asked for, or one that all ops share."""

    def __init__(self, test: LitmusTest, graph: tf.Graph, start: Any, *, share: bool) -> None:
        super().__init__()
        self._variables = {each.name: each for each in test.variables}
        self._graph, self._start, self._share = graph, start, share

    def __missing__(self, name: str) -> Any:
        variable = self._variables[name]
        # Outside of all loops and conditionals, and of the functions of their bodies.
        with (
            self._graph.as_default(),
            tf.control_dependencies(None),
            tf.control_dependencies([self._start]),
        ):
            handle = tf.raw_ops.VarHandleOp(
                dtype=variable.dtype, shape=variable.shape, shared_name=name
            )
        set_handle_data(handle, variable)
        if self._share:
            self[name] = handle
        return handle


@contextmanager
def _generation(*, v2: bool) -> Iterator[None]:
    """Select the control flow of TensorFlow 1 or 2 outside of functions."""
    before = control_flow_util.ENABLE_CONTROL_FLOW_V2
    control_flow_util.ENABLE_CONTROL_FLOW_V2 = v2
    try:
        yield
    finally:
        control_flow_util.ENABLE_CONTROL_FLOW_V2 = before
