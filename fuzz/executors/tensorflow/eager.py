"""Eager execution: each run of a test is a Python thread that executes its ops one by one.

An op of a graph is executed when the thread reaches it, in the order of the file; a conditional
or a loop is Python's; a call is a `tf.function`, traced in the order of the file, which adds
automatic control dependencies inside. TensorFlow executes eager ops synchronously by default:
an op has ended when its call returns (`tf.config.experimental.set_synchronous_execution`), which is
the model `program`. The variables are shared by all threads.

References
----------
semantics.md, section 3, model `program`; TensorFlow, ``tensorflow/python/eager/context.py``.
"""

from __future__ import annotations

import random
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import context, execute
from tensorflow.python.ops import handle_data_util

from litmusfuzz.corpus.model import BranchAttrs, CallAttrs, LoopAttrs, bodies
from litmusfuzz.corpus.ops import ConstAttrs, HandleAttrs
from litmusfuzz.corpus.outcome import Status
from litmusfuzz.fuzz.executors.protocol import Refused
from litmusfuzz.fuzz.executors.tensorflow import node_defs
from litmusfuzz.fuzz.executors.tensorflow.configurations import Settings
from litmusfuzz.fuzz.executors.tensorflow.histogram import STATUSES, Batch, HistogramBuilder
from litmusfuzz.fuzz.executors.tensorflow.node_defs import literal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from litmusfuzz.corpus.model import Body, LitmusTest, Node, Run
    from litmusfuzz.fuzz.executors.protocol import Config, Histogram, Noise
    from litmusfuzz.fuzz.executors.tensorflow.clock import Clock
    from litmusfuzz.fuzz.executors.tensorflow.node_defs import Line

_BATCH: Final = 64
"""Executions that are counted together."""
_SWITCH_S: Final = 2e-5
"""Python's switch interval meanwhile: threads take turns between ops, not after many of them."""
_YIELDS: Final = 0.3
"""Chance that a thread lets others go first before an op on a variable."""
_NUMBERS: Final = count()

Values = dict[str, Any]
"""Tensors by the names of the values in a graph or body."""


class EagerProgram:
    """The graphs of one test as Python code over one set of variables.

    Parameters
    ----------
    test : LitmusTest
    """

    def __init__(self, test: LitmusTest, seed: int = 0) -> None:
        self.test = test
        self.rng = random.Random(seed)
        self._lines: dict[str, Line] = {}
        self._attrs: dict[str, tuple[Any, ...]] = {}
        self._functions: dict[str, Any] = {}
        self._graphs = {graph.name: graph for graph in test.graphs}
        self._place = f"eager{next(_NUMBERS)}"
        self.handles = {v.name: self._handle(v.name) for v in test.variables}
        self._initial = {
            v.name: tf.constant(
                np.array(literal(v.init, v.shape, v.dtype, whole=test.whole)), v.dtype
            )
            for v in test.variables
            if v.init is not None  # else it is refused
        }

    def _handle(self, name: str) -> Any:
        variable = next(v for v in self.test.variables if v.name == name)
        handle = tf.raw_ops.VarHandleOp(
            dtype=variable.dtype, shape=variable.shape, shared_name=f"{self._place}/{name}"
        )
        known = handle_data_util.create_handle_data(
            tf.TensorShape(variable.shape), tf.as_dtype(variable.dtype)
        )
        handle_data_util.set_handle_data(handle, known)
        return handle

    def reset(self) -> None:
        """Give all variables their initial values."""
        for name, value in self._initial.items():
            tf.raw_ops.AssignVariableOp(resource=self.handles[name], value=value)

    def final(self) -> Values:
        """The contents of all variables."""
        return {
            # A copy: the array may share memory with the variable.
            v.name: np.array(
                tf.raw_ops.ReadVariableOp(resource=self.handles[v.name], dtype=v.dtype)
            )
            for v in self.test.variables
        }

    def close(self) -> None:
        """Release the variables."""
        for handle in self.handles.values():
            tf.raw_ops.DestroyResourceOp(resource=handle)

    def run(self, run: Run) -> Values:
        """Execute the ops of a run in program order; all values."""
        values = self.values_of(run)
        self._execute(self.nodes_of(run), values, self.handles)
        return values

    def nodes_of(self, run: Run) -> tuple[Node, ...]:
        """The nodes of a run's graph in the order of their execution."""
        return self._graphs[run.graph].nodes

    def values_of(self, run: Run) -> Values:
        """Where a run puts its values: each in a place of its own."""
        del run
        return {}

    # --- ops -----------------------------------------------------------------------------

    def _execute(self, nodes: Sequence[Node], values: Values, handles: Mapping[str, Any]) -> None:
        """Execute nodes one by one, or add them to the function that is traced.

        Tracing adds edges between ops on one handle only: the test's own edges are added here.
        """
        for node in nodes:
            if context.executing_eagerly():
                if node.resources and self.rng.random() < _YIELDS:
                    time.sleep(0)
                self._node(node, values, handles)
                continue
            graph = tf.compat.v1.get_default_graph()
            first = len(graph.get_operations())
            with tf.control_dependencies([e for n in node.after for e in _ended(values, n)]):
                self._node(node, values, handles)
            values[f"^{node.name}"] = graph.get_operations()[first:]

    def _node(self, node: Node, values: Values, handles: Mapping[str, Any]) -> None:
        attrs = node.attrs
        if isinstance(attrs, BranchAttrs):
            self._branch(node, attrs, values, handles)
        elif isinstance(attrs, LoopAttrs):
            self._loop(node, attrs, values, handles)
        elif isinstance(attrs, CallAttrs):
            self._call(node, attrs, values, handles)
        elif isinstance(attrs, HandleAttrs):
            values[node.name] = tf.identity(handles[attrs.variable])
        else:
            values[node.name] = self._op(node, values, handles)

    def _op(self, node: Node, values: Values, handles: Mapping[str, Any]) -> Any:
        """Execute one op, or add it to the function that is traced; its result."""
        if node.name not in self._lines:
            self._lines[node.name] = node_defs.line(self.test, node)
            self._attrs[node.name] = _plain(self._lines[node.name].proto)
        line = self._lines[node.name]
        if isinstance(node.attrs, ConstAttrs):
            return tf.constant(tf.make_ndarray(line.proto.attr["value"].tensor))
        given = [values[node.handle]] if node.handle else [handles[r] for r in node.resources]
        given += [tf.constant(tf.make_ndarray(c.attr["value"].tensor)) for c in line.constants]
        given += [values[name] for name in node.inputs]
        attrs = self._attrs[node.name]
        outputs = int(node.definition.has_value)
        if context.executing_eagerly():
            made = execute.execute(line.proto.op, outputs, given, attrs, context.context())
            return made[0] if outputs else None
        graph: Any = tf.compat.v1.get_default_graph()
        op = graph._create_op_internal(
            line.proto.op, given, name=f"{node.name}/", attrs=dict(line.proto.attr)
        )
        return op.outputs[0] if outputs else None

    def _branch(
        self, node: Node, attrs: BranchAttrs, values: Values, handles: Mapping[str, Any]
    ) -> None:
        taken = _lane(values[node.inputs[0]])
        inside = {inner: values[outer] for inner, outer in attrs.captures}
        if not context.executing_eagerly():
            self._traced_branch(node, attrs, taken, inside, values, handles)
            return
        returned = self._body(attrs.then if bool(taken) else attrs.orelse, inside, handles)
        values |= _results(node, returned)

    def _traced_branch(
        self,
        node: Node,
        attrs: BranchAttrs,
        taken: Any,
        inside: Values,
        values: Values,
        handles: Mapping[str, Any],
    ) -> None:
        """A conditional in a `tf.function`, as AutoGraph writes it."""
        sides = [
            lambda body=body: [tf.identity(v) for v in self._body(body, inside, handles)]
            for body in (attrs.then, attrs.orelse)
        ]
        values |= _results(node, tf.cond(taken, *sides))

    def _loop(
        self, node: Node, attrs: LoopAttrs, values: Values, handles: Mapping[str, Any]
    ) -> None:
        captured = {inner: values[outer] for inner, outer in attrs.captures}
        carried = [values[name] for name in node.inputs]

        def tested(*given: Any) -> tuple[Any, Values]:
            inside = captured | dict(zip(attrs.carried, given, strict=True))
            (more,) = self._body(attrs.condition, inside, handles)
            return _lane(more), inside

        if context.executing_eagerly():
            while True:
                more, inside = tested(*carried)
                if not bool(more):
                    break
                carried = self._body(attrs.body, inside, handles)
        else:

            def step(*given: Any) -> list[Any]:
                inside = captured | dict(zip(attrs.carried, given, strict=True))
                return [tf.identity(v) for v in self._body(attrs.body, inside, handles)]

            carried = tf.while_loop(
                lambda *given: tested(*given)[0],
                step,
                carried,
                parallel_iterations=attrs.parallel_iterations,
            )
        values |= _results(node, carried)

    def _body(self, body: Body, inside: Values, handles: Mapping[str, Any]) -> list[Any]:
        values = dict(inside)
        self._execute(body.nodes, values, handles)
        return [values[name] for name in body.results]

    def _call(
        self, node: Node, attrs: CallAttrs, values: Values, handles: Mapping[str, Any]
    ) -> None:
        """Call a `tf.function`, traced when it is called first; inside another, while that is."""
        given = [values[outer] for _, outer in attrs.captures]
        made = self._functions.get(node.name)
        if made is None:

            def function(*arguments: Any) -> list[Any]:
                inside = {n: v for (n, _), v in zip(attrs.captures, arguments, strict=True)}
                return [tf.identity(v) for v in self._body(attrs.body, inside, handles)]

            made = self._functions[node.name] = tf.function(function, autograph=False)
        values |= _results(node, made(*given))


def _ended(values: Values, name: str) -> list[Any]:
    """The ops of a node in the function that is traced; for a value from outside, itself."""
    made = values.get(f"^{name}")
    return [values[name]] if made is None else list(made)


def _results(node: Node, returned: Sequence[Any]) -> Values:
    return {f"{node.name}.{n}": v for n, v in zip(node.results, returned, strict=True)}


def _lane(value: Any) -> Any:
    """A predicate: lane 0 of a value."""
    return tf.reshape(value, [-1])[0] if value.shape.rank else value


def _plain(proto: Any) -> tuple[Any, ...]:
    """The attributes of a NodeDef, as eager execution takes them."""
    found: list[Any] = []
    for name, value in proto.attr.items():
        if name.startswith("_"):
            continue
        found += [name, _attribute(value)]
    return tuple(found)


def _attribute(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "shape":
        return tf.TensorShape(value.shape)
    if kind == "list":
        held = (value.list.type, value.list.i, value.list.f)
        return next((list(each) for each in held if each), [])
    return getattr(value, kind)


class PreparedEager:
    """A test as Python threads."""

    def __init__(self, test: LitmusTest, config: Config, clock: Clock) -> None:
        for feature in sorted(test.features & Settings.of(config).refuses):
            raise Refused(f"{feature} in configuration {config.name}")
        for placed in (*test.resources, *test.nodes):
            if placed.device not in ("", "cpu:0"):
                raise Refused(f"device {placed.device} in configuration {config.name}")
        for node in test.nodes:  # refuses what TensorFlow does not have
            if not (bodies(node) or isinstance(node.attrs, HandleAttrs)):
                node_defs.line(test, node)
        self._test = test
        self._clock = clock
        self.program: Callable[[LitmusTest, int], EagerProgram] = EagerProgram

    def run(self, count: int, noise: Noise, seed: int) -> Histogram:
        """Execute the test `count` times. Of the noise, only the seed has an effect.

        An op that fails raises an exception of `tensorflow.errors`. In a test with ops that may
        fail, that ends the execution: outcome `failed`.
        """
        del noise
        builder = HistogramBuilder(self._test)
        interval = sys.getswitchinterval()
        sys.setswitchinterval(_SWITCH_S)
        with self._clock.part("building_s"):
            program = self.program(self._test, seed)
        try:
            with ThreadPoolExecutor(len(self._test.runs)) as threads:
                while builder.count < count:
                    rows: list[Values | None] = []
                    with self._clock.part("running_s"):
                        for _ in range(min(_BATCH, count - builder.count)):
                            program.reset()
                            rows.append(_execution(program, threads))
                    with self._clock.part("counting_s"):
                        builder.add(self._batch(rows))
        finally:
            sys.setswitchinterval(interval)
            program.close()
        return builder.histogram()

    def _batch(self, rows: Sequence[Values | None]) -> Batch:
        """The values of executions; None for one that failed."""
        kinds = {name: self._test.type_of(name) for name in self._test.names}
        nothing = {name: np.zeros(kind.shape, kind.dtype) for name, kind in kinds.items()}
        values = {n: np.stack([(row or nothing)[n] for row in rows]) for n in kinds}
        if None not in rows:
            return Batch(values)
        failed = STATUSES.index(Status.FAILED)
        return Batch(values, status=np.array([0 if row else failed for row in rows]))

    def close(self) -> None:
        """Nothing is kept between runs."""


def _execution(program: EagerProgram, threads: ThreadPoolExecutor) -> Values | None:
    """One execution: a thread for each run; runs that the client orders wait for each other.

    None if an op failed, in a test in which one may.
    """
    test = program.test
    first = sum(not run.after for run in test.runs)
    together = threading.Barrier(first)
    ended: dict[str, Any] = {}

    def thread(run: Run) -> Values:
        for name in run.after:
            ended[name].result()
        if not run.after:
            together.wait()
        return program.run(run)

    for run in test.runs:
        ended[run.name] = threads.submit(thread, run)
    wait(ended.values())
    if test.failing and any(isinstance(e.exception(), tf.errors.OpError) for e in ended.values()):
        return None
    shown = {name: each.result() for name, each in ended.items()}
    found = program.final()
    for key in test.observe:
        name, node = (test.runs[0].name, key) if len(test.runs) == 1 else key.split(".", 1)
        found[key] = np.array(shown[name][node])
    return found
