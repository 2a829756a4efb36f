"""Eager execution: each run of a test is a Python thread, and the threads share the variables.

`TensorFlowExecutor.prepare` prepares a test as `PreparedEager` in configurations with the front
ends ``eager`` and ``eager_functions``. Each front end is a class here:

`EagerProgram` (``eager``): a thread executes the ops of its graph one by one, in the order of the
litmus file; a conditional or a loop is Python's; a call is a `tf.function`, inside of which
TensorFlow adds automatic control dependencies. TensorFlow executes eager ops synchronously by
default: an op has ended when its call returns (`tf.config.experimental.set_synchronous_execution`).
So outcomes are those of the model `program`, program order.

`MixedProgram` (``eager_functions``): a thread executes the *parts* of its graph: a part is some
consecutive nodes, either executed op by op or as one `tf.function`. A function takes each handle as
an argument or captures it; some functions are traced twice. Order between the parts is stricter
than automatic control dependencies, so the model is `acd`, automatic control dependencies. With
``compiled=whole`` XLA compiles the whole graph of a run as one function; then the model is
`one_cluster`, in which each run is one cluster.

References
----------
semantics.md, section 3, models `program`, `acd` and `one_cluster`; TensorFlow,
``tensorflow/python/eager/context.py``; https://www.tensorflow.org/guide/function, "Rules of
tracing".
"""

from __future__ import annotations

import random
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import tensorflow as tf

from litmusfuzz.corpus.model import all_nodes, bodies
from litmusfuzz.corpus.ops import HandleAttrs
from litmusfuzz.corpus.outcome import Status
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.executors.protocol import Refused
from litmusfuzz.fuzz.executors.tensorflow import node_defs
from litmusfuzz.fuzz.executors.tensorflow.configurations import Settings
from litmusfuzz.fuzz.executors.tensorflow.emission import variables_of
from litmusfuzz.fuzz.executors.tensorflow.histogram import STATUSES, Batch, HistogramBuilder
from litmusfuzz.fuzz.executors.tensorflow.node_defs import literal
from litmusfuzz.fuzz.executors.tensorflow.program import Program, Values
from litmusfuzz.fuzz.executors.tensorflow.regions import refuse_compiler, refuse_uncompiled
from litmusfuzz.fuzz.executors.tensorflow.traced import set_handle_data

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from concurrent.futures import Future

    from litmusfuzz.corpus.model import LitmusTest, Node, Run, Variable
    from litmusfuzz.corpus.ops import Nested, TensorType
    from litmusfuzz.fuzz.executors.protocol import Config, Histogram, Noise
    from litmusfuzz.fuzz.executors.tensorflow.clock import Clock

_BATCH: Final = 64
"""Executions that are counted together."""
_SWITCH_S: Final = 2e-5
"""Python's switch interval while a test runs: threads switch between ops, not after many."""
_YIELDS: Final = 0.3
"""Chance that a thread lets others go first before an op on a variable."""
_REWRITTEN: Final = 256
"""Executions after which a program is divided into other parts."""
_WHOLE: Final = 0.4
"""Chance that a run is one part."""
_OP_BY_OP: Final = 0.25
"""Chance that a part is executed op by op."""
_PASSED: Final = 0.5
"""Chance that a function takes a handle as an argument; else it captures the handle."""
_RETRACED: Final = 0.5
"""Chance that a function is traced twice."""
_PROGRAM_NUMBERS: Final = count()
"""Programs have variables of their own: their names contain the program's number."""


class EagerProgram(Program):
    """The graphs of one test as Python code over one set of variables.

    `_execution` calls `reset`, then `run` once for each run, in threads, then `final`.

    Parameters
    ----------
    test : LitmusTest
    seed : int
    """

    def __init__(self, test: LitmusTest, seed: int = 0) -> None:
        super().__init__(test, random.Random(seed))
        self._nodes = {run.name: test.graph_of(run).nodes for run in test.runs}
        self._variables = {variable.name: variable for variable in test.variables}
        number = next(_PROGRAM_NUMBERS)
        self.handles = {
            name: _handle(variable, f"eager{number}/{name}")
            for name, variable in self._variables.items()
        }
        self._initial = {
            name: self._constant(variable.init, variable)
            for name, variable in self._variables.items()
            if variable.init is not None
        }
        self._fed = {
            (run.name, name): self._constant(value, test.type_of(name))
            for run in test.runs
            for name, value in run.feeds
        }

    def _constant(self, value: Nested, kind: Variable | TensorType) -> Any:
        """A literal of the test as a tensor."""
        array = literal(value, kind.shape, kind.dtype, whole=self.test.whole)
        return tf.constant(np.array(array), kind.dtype)

    def reset(self) -> None:
        """Give all variables their initial values, or none."""
        for name, handle in self.handles.items():
            if name in self._initial:
                tf.raw_ops.AssignVariableOp(resource=handle, value=self._initial[name])
            else:
                tf.raw_ops.DestroyResourceOp(resource=handle)

    def final(self) -> Values:
        """The contents of all variables that have a value."""
        return {
            # A copy: the array may share memory with the variable.
            v.name: np.array(
                tf.raw_ops.ReadVariableOp(resource=self.handles[v.name], dtype=v.dtype)
            )
            for v in self.test.variables
            if v.init is not None
            or bool(tf.raw_ops.VarIsInitializedOp(resource=self.handles[v.name]))
        }

    def close(self) -> None:
        """Release the variables."""
        for handle in self.handles.values():
            tf.raw_ops.DestroyResourceOp(resource=handle)

    def run(self, run: Run) -> Values:
        """Execute the ops of a run in program order; all values."""
        values = self.started(run)
        self.execute(self.nodes_of(run), values, self.handles)
        return values

    def started(self, run: Run) -> Values:
        """The values of a run before its first op: those that the client feeds."""
        values = self.values_of(run)
        fed = (node.name for node in self.nodes_of(run) if node.definition.fed)
        values |= {name: self._fed[run.name, name] for name in fed}
        return values

    def nodes_of(self, run: Run) -> tuple[Node, ...]:
        """The nodes that a run needs, in the order of their execution; a mutant has another."""
        return self._nodes[run.name]

    def values_of(self, run: Run) -> Values:
        """Where a run puts its values: a new dict for each run; in a mutant, runs share one."""
        del run
        return {}

    def pause(self, node: Node) -> None:
        """Let other threads go first, now and then: `execute` calls this before each eager op."""
        if node.resources and self.rng.random() < _YIELDS:
            time.sleep(0)


def _handle(variable: Variable, shared_name: str) -> Any:
    """A handle of a variable that is shared by this name."""
    handle = tf.raw_ops.VarHandleOp(
        dtype=variable.dtype, shape=variable.shape, shared_name=shared_name
    )
    set_handle_data(handle, variable)
    return handle


@dataclass(frozen=True, slots=True)
class Part:
    """Consecutive nodes of a run.

    Parameters
    ----------
    nodes : tuple of Node
    function : tf.function, or None
        Executes the nodes; None if they are executed op by op, and the other fields are empty.
    handles : tuple of str
        Handles that the function takes as arguments: names of variables, and
        ``node/argument`` for the further handle of a variable that a node provides.
    inputs : tuple of str
        Values from before the part, or fed, that the function takes as arguments.
    results : tuple of str
        Values that the function returns: those that are needed after the part, or observed.
    retracing_arguments : tuple of tensor
        The function's first argument is one of these, at random. It is not used, but their shapes
        differ, so that TensorFlow traces the function once for each.
    """

    nodes: tuple[Node, ...]
    function: Any = None
    handles: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    retracing_arguments: tuple[Any, ...] = ()


class MixedProgram(EagerProgram):
    """The graphs of one test as Python code in which `tf.function`s execute some parts of a run.

    Parameters
    ----------
    test : LitmusTest
    seed : int
    compiled : bool
        True if each run is one function, which XLA compiles.
    """

    def __init__(self, test: LitmusTest, seed: int = 0, *, compiled: bool = False) -> None:
        super().__init__(test, seed)
        self.compiled = compiled
        self._resets = 0
        self._parts: dict[str, tuple[Part, ...]] = {}
        """The parts of each run, by the run's name."""
        self._further = {
            f"{node.name}/argument": node.attrs.variable
            for node in test.nodes
            if isinstance(node.attrs, HandleAttrs)
        }
        """For each argument that is a further handle: its variable."""

    def reset(self) -> None:
        """Give all variables their initial values; now and then, divide the runs anew."""
        super().reset()
        # A compiled program stays as it is: there is one way to divide it, and XLA takes seconds.
        if self._resets % _REWRITTEN == 0 and not (self.compiled and self._parts):
            self._parts = {run.name: tuple(self._divided(run)) for run in self.test.runs}
        self._resets += 1

    def run(self, run: Run) -> Values:
        """Execute the parts of a run in program order; the values that are observed."""
        values = self.started(run)
        for part in self._parts[run.name]:
            if part.function is None:
                self.execute(part.nodes, values, self.handles)
                continue
            self.pause(part.nodes[0])
            handles = [self.handles[self._variable_of(name)] for name in part.handles]
            retracing = self.rng.choice(part.retracing_arguments)
            returned = part.function(retracing, *handles, *self.arguments(part, values))
            values |= dict(zip(part.results, returned, strict=True))
        return values

    def arguments(self, part: Part, values: Values) -> list[Any]:
        """The inputs of a function; in a mutant, those of its first call."""
        return [values[name] for name in part.inputs]

    def _variable_of(self, handle: str) -> str:
        """The variable of a handle that is an argument."""
        return self._further.get(handle, handle)

    def _divided(self, run: Run) -> Iterator[Part]:
        """Divide the nodes of a run into parts."""
        later = self.nodes_of(run)
        whole = self.compiled or self.rng.random() < _WHOLE
        while later:
            length = len(later) if whole else self.rng.randint(1, len(later))
            nodes, later = later[:length], later[length:]
            if not self.compiled and self.rng.random() < _OP_BY_OP:
                yield Part(nodes)
            else:
                yield self._function_part(run, nodes, later)

    def _function_part(self, run: Run, nodes: tuple[Node, ...], later: tuple[Node, ...]) -> Part:
        """A part that is a function; `later` are the nodes of the run after it."""
        nodes = self._with_identities(run, nodes)
        keys = _keys(nodes)
        # Control edges from before the part go: it starts when all that has ended.
        nodes = tuple(
            replace(node, after=tuple(name for name in node.after if name in keys))
            for node in nodes
        )
        # XLA refuses two handles of one variable, one passed and one captured.
        handles = () if self.compiled else self._passed_handles(nodes)
        inputs = self._inputs_of(nodes)
        results = self._results_of(run, nodes, later)

        def traced(retracing: Any, *arguments: Any) -> list[Any]:
            del retracing
            passed = dict(zip(handles, arguments[: len(handles)], strict=True))
            for name, handle in passed.items():
                set_handle_data(handle, self._variables[self._variable_of(name)])
            values = dict(zip(inputs, arguments[len(handles) :], strict=True))
            self.execute(nodes, values, self.handles | passed)
            return [tf.identity(values[name]) for name in results]

        function = tf.function(traced, autograph=False, jit_compile=self.compiled or None)
        shapes = (1, 2) if self.rng.random() < _RETRACED else (1,)
        return Part(nodes, function, handles, inputs, results, tuple(tf.zeros([n]) for n in shapes))

    def _passed_handles(self, nodes: tuple[Node, ...]) -> tuple[str, ...]:
        """Handles of some nodes that a function takes as arguments; it captures the others."""
        variables = dict.fromkeys(name for n in all_nodes(nodes) for name in variables_of(n))
        further = [f"{node.name}/argument" for node in nodes if isinstance(node.attrs, HandleAttrs)]
        return tuple(name for name in (*variables, *further) if self.rng.random() < _PASSED)

    def _inputs_of(self, nodes: tuple[Node, ...]) -> tuple[str, ...]:
        """The values from before some nodes that they need, and the values fed to them."""
        keys = _keys(nodes)
        names: dict[str, None] = {}
        for node in nodes:
            names |= dict.fromkeys(name for name in node.references if name not in keys)
            if node.definition.fed:
                names[node.name] = None
        return tuple(name for name in names if self.test.types.get(name) is not None)

    def _results_of(
        self, run: Run, nodes: tuple[Node, ...], later: tuple[Node, ...]
    ) -> tuple[str, ...]:
        """The values of some nodes of a run that later nodes need, or that are observed."""
        needed = set(_observed(self.test, run).values())
        for node in self._with_identities(run, later):
            needed.update(node.references)
        return tuple(
            key
            for node in nodes
            for key in node.keys
            if key in needed and self.test.types.get(key) is not None
        )

    def _with_identities(self, run: Run, nodes: tuple[Node, ...]) -> tuple[Node, ...]:
        """Some nodes, after the earlier Identities of handles that they take.

        Automatic control dependencies see that an Identity of a handle is the same resource only if
        the Identity is in the function, not an argument of it: so the function repeats it.
        """
        taken = {name for node in nodes for name in node.references} - _keys(nodes)
        identities = tuple(
            node
            for node in self.nodes_of(run)
            if node.op == "Identity" and node.name in taken and self._is_handle(node.name)
        )
        return self._with_identities(run, identities + nodes) if identities else nodes

    def _is_handle(self, name: str) -> bool:
        kind = self.test.types[name]
        return kind is not None and kind.is_handle


def _keys(nodes: Sequence[Node]) -> set[str]:
    """Names of the values of some nodes."""
    return {key for node in nodes for key in node.keys}


def _observed(test: LitmusTest, run: Run) -> dict[str, str]:
    """For each key of an outcome that is a value of a run: the value's name in the graph."""
    if len(test.runs) == 1:
        return {key: key for key in test.observe}
    prefix = f"{run.name}."
    return {key: key.removeprefix(prefix) for key in test.observe if key.startswith(prefix)}


class PreparedEager:
    """A test that is executed by Python threads."""

    def __init__(self, test: LitmusTest, config: Config, clock: Clock) -> None:
        settings = Settings.of(config)
        for feature in sorted(test.features & settings.refuses):
            raise Refused(f"{feature} in configuration {config.name}")
        if settings.compiled:
            refuse_uncompiled(test)
        for placed in (*test.resources, *test.nodes):
            if placed.device not in ("", "cpu:0"):
                raise Refused(f"device {placed.device} in configuration {config.name}")
        for node in test.nodes:  # refuses what TensorFlow does not have
            if not (bodies(node) or isinstance(node.attrs, HandleAttrs)):
                node_defs.line(test, node)
        self._test = test
        self._clock = clock
        self.new_program: Callable[[LitmusTest, int], EagerProgram] = EagerProgram
        """Makes the program of a test from a seed; mutants, and steps of Keras, have others."""
        if settings.front_end == "eager_functions":
            self.new_program = partial(MixedProgram, compiled=bool(settings.compiled))

    def run(self, count: int, noise: Noise, seed: int) -> Histogram:
        """Execute the test `count` times.

        The seed chooses the parts of a program and its pauses; `noise` has no effect. An op that
        fails raises an exception of `tensorflow.errors`. In a test with ops that may fail, that
        ends the execution: outcome `failed`.

        Raises
        ------
        Refused
            If XLA cannot compile a function.
        """
        del noise
        builder = HistogramBuilder(self._test)
        with self._clock.part("building_s"):
            program = self.new_program(self._test, seed)
        threads = ThreadPoolExecutor(len(self._test.runs))
        with closing(program), _frequent_switches(), threads:
            while builder.count < count:
                rows: list[Values | None] = []
                with self._clock.part("running_s"):
                    for _ in range(min(_BATCH, count - builder.count)):
                        program.reset()
                        rows.append(_execution(program, threads))
                with self._clock.part("counting_s"):
                    builder.add(self._batch(rows))
        return builder.histogram()

    def _batch(self, rows: Sequence[Values | None]) -> Batch:
        """The values of several executions; None stands for one that failed, which has none."""
        test = self._test
        values, empty = {}, {}
        for name in test.names:
            kind = test.type_of(name)
            nothing = np.zeros(kind.shape, kind.dtype)
            values[name] = np.stack(
                [nothing if row is None else row.get(name, nothing) for row in rows]
            )
            empty[name] = np.array([row is not None and name not in row for row in rows])
        if all(row is not None for row in rows) and not any(e.any() for e in empty.values()):
            return Batch(values)
        completed, failed = STATUSES.index(Status.COMPLETED), STATUSES.index(Status.FAILED)
        status = np.array([failed if row is None else completed for row in rows])
        return Batch(values, status=status, empty=empty)

    def close(self) -> None:
        """Nothing is kept between runs."""


@contextmanager
def _frequent_switches() -> Iterator[None]:
    """Let Python's threads switch often, while a test runs."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_S)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def _execution(program: EagerProgram, threads: ThreadPoolExecutor) -> Values | None:
    """One execution: a thread for each run; runs that the client orders wait for each other.

    Returns
    -------
    dict of str to array, or None
        The final contents of the variables, and the observed values of the runs, by key; None if
        an op failed, in a test in which one may.
    """
    test = program.test
    together = threading.Barrier(sum(not run.after for run in test.runs))
    ended: dict[str, Future[Values]] = {}

    def thread(run: Run) -> Values:
        for name in run.after:
            ended[name].result()
        if not run.after:  # runs that wait for no other start together
            together.wait()
        return program.run(run)

    for run in test.runs:
        ended[run.name] = threads.submit(thread, run)
    wait(ended.values())
    try:
        values = {name: future.result() for name, future in ended.items()}
    except tf.errors.OpError as error:
        refuse_compiler(error)
        if test.failing or any(variable.init is None for variable in test.variables):
            return None
        raise
    outcome = program.final()
    for run in test.runs:
        for key, name in _observed(test, run).items():
            outcome[key] = np.array(values[run.name][name])
    return outcome
