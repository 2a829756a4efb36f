"""What the executor over JAX costs beyond JAX."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from litmusfuzz.fuzz.bench.oracle import REPEATS
from litmusfuzz.fuzz.executors.jax_clustered.backend import Computing
from litmusfuzz.fuzz.executors.jax_clustered.executor import JaxClusteredExecutor, PreparedJaxTest
from litmusfuzz.fuzz.executors.jax_clustered.functions import Compiler
from litmusfuzz.fuzz.executors.protocol import Noise
from litmusfuzz.reports.speed import Speed, Unit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.executors.native import _executor
    from litmusfuzz.fuzz.executors.native.lowering import Program

GRAPHS: Final = 5
COPIES: Final = 64
LIMIT: Final = 3.0


@dataclass(frozen=True, slots=True)
class _Used:
    """A call of JAX's, and what with."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]


class _Noting(PreparedJaxTest):
    """Notes each call of JAX's."""

    def load(self, program: Program) -> _executor.Program:
        """With functions that note that they are called."""
        self.noted: list[_Used] = []
        computing = Computing(program, self._compiler)
        calls = [
            (_noting(function, self.noted), bound, flagged)
            for function, bound, flagged in computing.calls
        ]
        helpers = _Helpers(computing, self.noted)
        return self.load_with(computing.program, [self.module.PythonBackend(calls, helpers)])


def _noting(function: Callable[..., Any], noted: list[_Used]) -> Callable[..., Any]:
    def noting(*arguments: Any) -> Any:
        noted.append(_Used(function, arguments))
        return function(*arguments)

    return noting


class _Helpers:
    """As `Computing`'s; to see a value is a call of JAX's as well."""

    def __init__(self, computing: Computing, noted: list[_Used]) -> None:
        self.element = computing.element
        self.stacked = computing.stacked
        self.number = computing.number
        self.moved = computing.moved
        self.truth = computing.truth
        self._computing = computing
        self._noted = noted

    def read(self, value: Any) -> bytes:
        """Of a value of the outcome."""
        self._noted.append(_Used(np.asarray, (value,)))
        return self._computing.read(value)


def calls_of(test: LitmusTest, compiler: Compiler) -> list[_Used]:
    """What one execution of the test asks of JAX."""
    (config,) = (c for c in JaxClusteredExecutor.configurations() if c.name == "controlled")
    noting = _Noting(test, config, compiler)
    noting.run(1, Noise(), seed=1)
    return noting.noted


def _per_copy(work: Callable[[], object], copies: int) -> float:
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) / copies


def overhead(make: Callable[[random.Random], LitmusTest]) -> list[Speed]:
    """Seconds for a copy, beside a loop of nothing but the same calls of JAX's."""
    (config,) = (c for c in JaxClusteredExecutor.configurations() if c.name == "inline")
    compiler = Compiler()
    ratios: list[float] = []
    bare_s = copy_s = 0.0
    for number in range(GRAPHS):
        test = make(random.Random(number))
        calls = calls_of(test, compiler)
        prepared = PreparedJaxTest(test, config, compiler)
        noise = Noise(copies=COPIES)

        def bare(calls: Sequence[_Used] = calls) -> None:
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
        Speed("an executed copy", Unit.SECONDS, copy_s, copies=COPIES),
        Speed("the bare calls of JAX's that it makes", Unit.SECONDS, bare_s, copies=COPIES),
        Speed("a copy, against its bare calls, at worst", Unit.TIMES, max(ratios), limit=LIMIT),
        Speed("to compile one structure", Unit.SECONDS, seconds),
    ]
