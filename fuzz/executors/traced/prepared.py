"""A prepared test of a traced system: executes it and counts its outcomes."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from litmusfuzz.corpus.outcome import TORN, Outcome
from litmusfuzz.fuzz.executors.tensorflow.histogram import one_lane

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Value
    from litmusfuzz.fuzz.executors.protocol import Histogram, Noise

EXECUTIONS: Final = 2
"""Executions of a test, at most. It has a single outcome; the second execution shows what the
system keeps of the first."""


class Executable(Protocol):
    """A program of one test."""

    def execute(self, place: int) -> Mapping[str, Any]:
        """Execute the program once; arrays by the keys of an outcome.

        Parameters
        ----------
        place : int
            A choice that the outcome does not depend on.
        """


class PreparedProgram:
    """A test as a program of a traced system.

    Parameters
    ----------
    test : LitmusTest
    program : Executable
    guarded : callable
        Makes the context in which the system runs (`failures.sorted_failures`, for one).
    """

    def __init__(
        self,
        test: LitmusTest,
        program: Executable,
        guarded: Callable[[], AbstractContextManager[Any]],
    ) -> None:
        self._test = test
        self._program = program
        self._guarded = guarded

    def run(self, count: int, noise: Noise, seed: int) -> Histogram:
        """Execute the test once or twice, however large `count` is."""
        del noise
        found: Counter[Outcome] = Counter()
        for number in range(min(count, EXECUTIONS)):
            with self._guarded():
                values = self._program.execute(seed + number)
            found[outcome_of(self._test, values)] += 1
        return found

    def close(self) -> None:
        """Nothing is kept outside of this object."""


def outcome_of(test: LitmusTest, arrays: Mapping[str, Any]) -> Outcome:
    """The outcome with these arrays; a value of another type than the test's is torn."""
    values: dict[str, Value] = {}
    for name in test.names:
        kind, array = test.type_of(name), np.asarray(arrays[name])
        if array.shape != kind.shape or array.dtype != kind.dtype:
            values[name] = TORN
            continue
        lane, torn = one_lane(array[None], whole=test.whole)
        values[name] = TORN if torn[0] else tuple(lane[0].tolist())
    return Outcome.of(test, values)
