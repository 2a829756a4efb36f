"""Benchmark of the executor `jax`: its overhead over the JAX calls that it makes."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from litmusfuzz.fuzz.bench.oracle import REPEATS
from litmusfuzz.fuzz.executors.jax_clustered.backend import JaxBackend
from litmusfuzz.fuzz.executors.jax_clustered.executor import JaxClusteredExecutor, PreparedJaxTest
from litmusfuzz.fuzz.executors.jax_clustered.functions import Compiler
from litmusfuzz.fuzz.executors.protocol import Noise
from litmusfuzz.reports.bench import Figure

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.executors.native import _executor
    from litmusfuzz.fuzz.executors.native.lowering import Program

GRAPHS: Final = 5
COPIES: Final = 64
LIMIT: Final = 3.0


@dataclass(frozen=True, slots=True)
class _RecordedCall:
    """A recorded call of JAX, with its arguments."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]


class _Recording(PreparedJaxTest):
    """A prepared test that records each call of JAX."""

    def load(self, program: Program) -> _executor.Program:
        """Load the program with functions that record their calls."""
        self.calls_made: list[_RecordedCall] = []
        backend = JaxBackend(program, self._compiler)
        calls = [
            (_recording(function, self.calls_made), bound, flagged)
            for function, bound, flagged in backend.calls
        ]
        helpers = _Helpers(backend, self.calls_made)
        return self.load_with(backend.program, [self.module.PythonBackend(calls, helpers)])


def _recording(function: Callable[..., Any], calls_made: list[_RecordedCall]) -> Callable[..., Any]:
    def recording(*arguments: Any) -> Any:
        calls_made.append(_RecordedCall(function, arguments))
        return function(*arguments)

    return recording


class _Helpers:
    """The helpers of `JaxBackend`; reading a value of the outcome is recorded as well."""

    def __init__(self, backend: JaxBackend, calls_made: list[_RecordedCall]) -> None:
        self.element = backend.element
        self.stacked = backend.stacked
        self.number = backend.number
        self.moved = backend.moved
        self.truth = backend.truth
        self._backend = backend
        self._calls_made = calls_made

    def read(self, value: Any) -> bytes:
        """Elements of a value of the outcome."""
        self._calls_made.append(_RecordedCall(np.asarray, (value,)))
        return self._backend.read(value)


def calls_of(test: LitmusTest, compiler: Compiler) -> list[_RecordedCall]:
    """The calls of JAX in one execution of the test."""
    (config,) = (c for c in JaxClusteredExecutor.configurations() if c.name == "controlled")
    recording = _Recording(test, config, compiler)
    recording.run(1, Noise(), seed=1)
    return recording.calls_made


def _per_copy(work: Callable[[], object], copies: int) -> float:
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) / copies


def overhead(make: Callable[[random.Random], LitmusTest]) -> list[Figure]:
    """Seconds for a copy, compared with a loop of only the same JAX calls."""
    (config,) = (c for c in JaxClusteredExecutor.configurations() if c.name == "inline")
    compiler = Compiler()
    ratios: list[float] = []
    bare_s = copy_s = 0.0
    for number in range(GRAPHS):
        test = make(random.Random(number))
        calls = calls_of(test, compiler)
        prepared = PreparedJaxTest(test, config, compiler)
        noise = Noise(copies=COPIES)

        def bare(calls: Sequence[_RecordedCall] = calls) -> None:
            for _ in range(COPIES):
                for each in calls:
                    each.function(*each.arguments)

        def copies(prepared: PreparedJaxTest = prepared, noise: Noise = noise) -> None:
            prepared.run(COPIES, noise, seed=1)

        copies()
        pairs = [(_per_copy(copies, COPIES), _per_copy(bare, COPIES)) for _ in range(REPEATS)]
        prepared.close()
        of_copy, of_bare = (min(column) for column in zip(*pairs, strict=True))
        ratios.append(of_copy / of_bare)
        copy_s += of_copy / GRAPHS
        bare_s += of_bare / GRAPHS
    seconds = compiler.statistics.seconds / compiler.statistics.compiled
    return [
        Figure("an executed copy", copy_s, "s", copies=COPIES),
        Figure("the JAX calls that it makes, alone", bare_s, "s", copies=COPIES),
        Figure(
            "a copy, relative to its JAX calls, largest ratio", max(ratios), "times", most=LIMIT
        ),
        Figure("to compile one structure", seconds, "s"),
    ]
