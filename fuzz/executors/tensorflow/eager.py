"""Eager execution: each run of a test is a Python thread, and the threads share the variables.

`TensorFlowExecutor.prepare` prepares a test as `PreparedEager` in configurations with the front
ends ``eager`` and ``eager_functions``. Each front end is a class of programs:

`eager_program.EagerProgram` (``eager``): a thread executes the ops of its graph one by one, in the
order of the litmus file; a conditional or a loop is Python's; a call is a `tf.function`, inside of
which TensorFlow adds automatic control dependencies. TensorFlow executes eager ops synchronously by
default: an op has ended when its call returns (`tf.config.experimental.set_synchronous_execution`).
So outcomes are those of the model `program`, program order.

`eager_parts.MixedProgram` (``eager_functions``): a thread executes the parts of its graph, some op
by op and some as a `tf.function`. Order between the parts is stricter than automatic control
dependencies, so the model is `acd`, automatic control dependencies. With ``compiled=whole`` XLA
compiles the whole graph of a run as one function; then the model is `one_cluster`, in which each
run is one cluster.

References
----------
semantics.md, section 3, models `program`, `acd` and `one_cluster`; TensorFlow,
``tensorflow/python/eager/context.py``.
"""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
import tensorflow as tf

from litmusfuzz.corpus.model import bodies
from litmusfuzz.corpus.ops import HandleAttrs
from litmusfuzz.corpus.outcome import Status
from litmusfuzz.fuzz.executors.protocol import Refused
from litmusfuzz.fuzz.executors.tensorflow import node_defs
from litmusfuzz.fuzz.executors.tensorflow.configurations import Settings
from litmusfuzz.fuzz.executors.tensorflow.eager_parts import MixedProgram
from litmusfuzz.fuzz.executors.tensorflow.eager_program import EagerProgram, observed_values
from litmusfuzz.fuzz.executors.tensorflow.histogram import STATUSES, Batch, HistogramBuilder
from litmusfuzz.fuzz.executors.tensorflow.regions import refuse_compiler, refuse_uncompiled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from concurrent.futures import Future

    from litmusfuzz.corpus.model import LitmusTest, Run
    from litmusfuzz.fuzz.executors.protocol import Config, Histogram, Noise
    from litmusfuzz.fuzz.executors.tensorflow.clock import Clock
    from litmusfuzz.fuzz.executors.tensorflow.program import Values

_BATCH: Final = 64
"""Executions that are counted together."""
_SWITCH_S: Final = 2e-5
"""Python's switch interval while a test runs: threads switch between ops, not after many."""


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

        The seed is that of the random parts of a program and of its pauses. It does not determine
        them, since the threads share one source of random numbers. `noise` has no effect. An op
        that fails raises an exception of `tensorflow.errors`. In a test with ops that may fail,
        that ends the execution: outcome `failed`.

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
        return program.execute_run(run)

    for run in test.runs:  # a run stands after those that it waits for
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
        for key, name in observed_values(test, run).items():
            outcome[key] = np.array(values[run.name][name])
    return outcome
