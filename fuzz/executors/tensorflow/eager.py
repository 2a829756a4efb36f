"""Eager execution: each run of a test is a Python thread, and the threads share the variables.

`EagerProgram`: a thread executes the ops of its graph one by one, in the order of the file; a
conditional or a loop is Python's; a call is a `tf.function`, traced in the order of the file, which
adds automatic control dependencies inside. TensorFlow executes eager ops synchronously by default:
an op has ended when its call returns (`tf.config.experimental.set_synchronous_execution`). That is
the model `program`.

`MixedProgram`: a thread's program is a sequence of ops and of `tf.function`s, each over some
consecutive nodes, and some functions are traced twice, for arguments of two shapes. A function
takes each handle as an argument or captures it. Program order between the parts is stricter than
automatic control dependencies, so the model is `acd`. If XLA compiles (``compiled=whole``), one
function has the whole graph, and the model is `one_cluster`.

References
----------
semantics.md, section 3, models `program` and `acd`; TensorFlow,
``tensorflow/python/eager/context.py``; https://www.tensorflow.org/guide/function, "Rules of
tracing".
"""

from __future__ import annotations

import random
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import cached_property, partial
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

    from litmusfuzz.corpus.model import LitmusTest, Node, Run
    from litmusfuzz.fuzz.executors.protocol import Config, Histogram, Noise
    from litmusfuzz.fuzz.executors.tensorflow.clock import Clock

_BATCH: Final = 64
"""Executions that are counted together."""
_SWITCH_S: Final = 2e-5
"""Python's switch interval meanwhile: threads take turns between ops, not after many of them."""
_YIELDS: Final = 0.3
"""Chance that a thread lets others go first before an op on a variable."""
_REWRITTEN: Final = 256
"""Executions after which a program with functions is written anew."""
_NUMBERS: Final = count()


class EagerProgram(Program):
    """The graphs of one test as Python code over one set of variables.

    Parameters
    ----------
    test : LitmusTest
    seed : int
    """

    def __init__(self, test: LitmusTest, seed: int = 0) -> None:
        super().__init__(test, random.Random(seed))
        self._nodes = {run.name: test.graph_of(run).nodes for run in test.runs}
        self._place = f"eager{next(_NUMBERS)}"
        self.handles = {v.name: self._handle(v.name) for v in test.variables}
        self._initial = {
            v.name: tf.constant(
                np.array(literal(v.init, v.shape, v.dtype, whole=test.whole)), v.dtype
            )
            for v in test.variables
            if v.init is not None
        }
        self._fed = {
            (run.name, name): tf.constant(
                np.array(literal(value, kind.shape, kind.dtype, whole=test.whole)), kind.dtype
            )
            for run in test.runs
            for name, value in run.feeds
            for kind in [test.type_of(name)]
        }

    def _handle(self, name: str) -> Any:
        variable = next(v for v in self.test.variables if v.name == name)
        handle = tf.raw_ops.VarHandleOp(
            dtype=variable.dtype, shape=variable.shape, shared_name=f"{self._place}/{name}"
        )
        set_handle_data(handle, variable)
        return handle

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
        values = self.values_of(run)
        nodes = self.nodes_of(run)
        values |= {n.name: self._fed[run.name, n.name] for n in nodes if n.definition.fed}
        self.execute(nodes, values, self.handles)
        return values

    def nodes_of(self, run: Run) -> tuple[Node, ...]:
        """The nodes that a run needs, in the order of their execution."""
        return self._nodes[run.name]

    def values_of(self, run: Run) -> Values:
        """Where a run puts its values: each in a place of its own."""
        del run
        return {}

    def pause(self, node: Node) -> None:
        """Let other threads go first, now and then, before an op on a variable."""
        if node.resources and self.rng.random() < _YIELDS:
            time.sleep(0)


@dataclass(frozen=True, slots=True)
class Part:
    """Consecutive nodes of a run that are a `tf.function`; if `function` is None they are eager.

    `handles` are the arguments that are handles, by the names that the nodes know; `given` are
    values from before the part, and `results` those that are needed after it. `shapes` are those of
    one more argument: a function is traced for each of them.
    """

    nodes: tuple[Node, ...]
    function: Any = None
    handles: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    shapes: tuple[Any, ...] = ()


class MixedProgram(EagerProgram):
    """The same, in which some parts are `tf.function`s.

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

    def reset(self) -> None:
        """Give all variables their initial values; now and then, write the program anew."""
        super().reset()
        if self._resets % _REWRITTEN == 0 and not (self.compiled and self._parts):
            self._parts = {run.name: tuple(self._written(run)) for run in self.test.runs}
        self._resets += 1

    def run(self, run: Run) -> Values:
        """Execute the parts of a run in program order; the values that are observed."""
        values = self.values_of(run)
        nodes = self.nodes_of(run)
        values |= {n.name: self._fed[run.name, n.name] for n in nodes if n.definition.fed}
        for part in self._parts[run.name]:
            if part.function is None:
                self.execute(part.nodes, values, self.handles)
                continue
            self.pause(part.nodes[0])
            given = [self.handles[self._resource(name)] for name in part.handles]
            given += self.arguments(part, values)
            returned = part.function(self.rng.choice(part.shapes), *given)
            values |= dict(zip(part.results, returned, strict=True))
        return values

    def arguments(self, part: Part, values: Values) -> list[Any]:
        """What a function gets besides handles."""
        return [values[name] for name in part.given]

    def _resource(self, handle: str) -> str:
        """The variable of an argument that is a handle."""
        return self._further.get(handle, handle)

    @cached_property
    def _further(self) -> dict[str, str]:
        """The variables of the test's further handles, by the names of the arguments."""
        return {
            f"{node.name}/argument": node.attrs.variable
            for node in self.test.nodes
            if isinstance(node.attrs, HandleAttrs)
        }

    def _written(self, run: Run) -> Iterator[Part]:
        """Divide the nodes of a run into parts."""
        nodes = self.nodes_of(run)
        left = nodes
        whole = self.compiled or self.rng.random() < 0.4
        while left:
            length = len(left) if whole else self.rng.randint(1, len(left))
            part, left = left[:length], left[length:]
            if not self.compiled and self.rng.random() < 0.25:
                yield Part(part)
            else:
                yield self._function(run, part, left)

    def _function(self, run: Run, nodes: tuple[Node, ...], after: tuple[Node, ...]) -> Part:
        """A part that is a function."""
        nodes = self._with_identities(run, nodes)
        mine = {key for node in nodes for key in node.keys}
        nodes = tuple(  # what came before the part is done
            replace(node, after=tuple(each for each in node.after if each in mine))
            for node in nodes
        )
        names = {variable.name: variable for variable in self.test.variables}
        given = tuple(
            dict.fromkeys(
                name
                for node in nodes
                for name in (*node.references, *(n.name for n in [node] if n.definition.fed))
                if self.test.types.get(name) is not None and (name not in mine or _fed(node, name))
            )
        )
        later = self._with_identities(run, after)
        needed = {name for node in later for name in node.references}
        shown = {key.rpartition(f"{run.name}.")[2] for key in self.test.observe}
        results = tuple(
            key
            for node in nodes
            for key in node.keys
            if self.test.types.get(key) is not None and (key in needed or key in shown)
        )
        known = dict.fromkeys(each for n in all_nodes(nodes) for each in variables_of(n))
        used = [name for name in known if self.rng.random() < 0.5]
        further = [f"{node.name}/argument" for node in nodes if isinstance(node.attrs, HandleAttrs)]
        used += [name for name in further if self.rng.random() < 0.5]
        if self.compiled:  # XLA takes no two handles of one variable
            used = []

        def traced(extra: Any, *arguments: Any) -> list[Any]:
            del extra
            known = self.handles | dict(zip(used, arguments, strict=False))
            for name in used:
                set_handle_data(known[name], names[self._resource(name)])
            values = dict(zip(given, arguments[len(used) :], strict=True))
            self.execute(nodes, values, known)
            return [tf.identity(values[name]) for name in results]

        function = tf.function(traced, autograph=False, jit_compile=self.compiled or None)
        shapes = [tf.zeros([n]) for n in ((1, 2) if self.rng.random() < 0.5 else (1,))]
        return Part(nodes, function, tuple(used), given, results, tuple(shapes))

    def _with_identities(self, run: Run, nodes: tuple[Node, ...]) -> tuple[Node, ...]:
        """A part, after those Identities of handles that it takes from earlier parts.

        They are one handle to automatic control dependencies only if the function has them.
        """
        mine = {key for node in nodes for key in node.keys}
        taken = {name for node in nodes for name in node.references} - mine
        again = tuple(
            node
            for node in self.nodes_of(run)
            if node.op == "Identity" and node.name in taken and self._is_handle(node.name)
        )
        return self._with_identities(run, again + nodes) if again else nodes

    def _is_handle(self, name: str) -> bool:
        kind = self.test.types[name]
        return kind is not None and kind.is_handle


def _fed(node: Node, name: str) -> bool:
    return node.definition.fed and node.name == name


class PreparedEager:
    """A test as Python threads."""

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
        self.program: Callable[[LitmusTest, int], EagerProgram] = EagerProgram
        if settings.front_end == "eager_functions":
            self.program = partial(MixedProgram, compiled=bool(settings.compiled))

    def run(self, count: int, noise: Noise, seed: int) -> Histogram:
        """Execute the test `count` times. Of the noise, only the seed has an effect.

        An op that fails raises an exception of `tensorflow.errors`. In a test with ops that may
        fail, that ends the execution: outcome `failed`.

        Raises
        ------
        Refused
            If XLA cannot compile a function.
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
        """The values of several executions; an execution that failed has none."""
        test = self._test
        values, empty = {}, {}
        for name in test.names:
            kind = test.type_of(name)
            nothing = np.zeros(kind.shape, kind.dtype)
            values[name] = np.stack([nothing if r is None else r.get(name, nothing) for r in rows])
            empty[name] = np.array([r is not None and name not in r for r in rows])
        failed = STATUSES.index(Status.FAILED)
        if all(row is not None for row in rows) and not any(e.any() for e in empty.values()):
            return Batch(values)
        status = np.array([failed if row is None else 0 for row in rows])
        return Batch(values, status=status, empty=empty)

    def close(self) -> None:
        """Nothing is kept between runs."""


def _execution(program: EagerProgram, threads: ThreadPoolExecutor) -> Values | None:
    """One execution: a thread for each run; runs that the client orders wait for each other.

    Returns
    -------
    dict of str to array, or None
        The values that there are in the end; None if an op failed, in a test in which one may.
    """
    test = program.test
    first = sum(not run.after for run in test.runs)
    together = threading.Barrier(first)
    ended: dict[str, Future[Values]] = {}

    def thread(run: Run) -> Values:
        for name in run.after:
            ended[name].result()
        if not run.after:
            together.wait()
        return program.run(run)

    for run in test.runs:
        ended[run.name] = threads.submit(thread, run)
    wait(ended.values())
    try:
        shown = {name: each.result() for name, each in ended.items()}
    except tf.errors.OpError as error:
        refuse_compiler(error)
        if test.failing or any(each.init is None for each in test.variables):
            return None
        raise
    found = program.final()
    for key in test.observe:
        name, node = (test.runs[0].name, key) if len(test.runs) == 1 else key.split(".", 1)
        found[key] = np.array(shown[name][node])
    return found
