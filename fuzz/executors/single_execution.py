"""`PreparedFunction`: an executor's prepared test, from a function that executes it once.

For simulators and models in Python, such as the example in ``docs/executors.md``.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING

from litmusfuzz.corpus.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.executors.protocol import Histogram, Noise


@dataclass(frozen=True, slots=True)
class PreparedFunction:
    """Prepared test over scalars (`litmusfuzz.fuzz.executors.protocol.Prepared`).

    Parameters
    ----------
    test : LitmusTest
    execute : callable
        Function of the test and a seeded random generator, its only source of randomness.
        It executes the test once and returns the value of each of `test.names` at the end;
        it may return more values. A `ValueError` names one that is missing, and a `TypeError` one
        that is no int.
    """

    test: LitmusTest
    execute: Callable[[LitmusTest, random.Random], Mapping[str, int]]

    def run(self, count: int, noise: Noise, seed: int) -> Histogram:
        """Execute the test `count` times; of the arguments, `noise` is ignored."""
        rng = random.Random(seed)
        return Counter(self._once(rng) for _ in range(count))

    def _once(self, rng: random.Random) -> Outcome:
        values = self.execute(self.test, rng)
        for name in self.test.shown:
            if not isinstance(value := values.get(name, 0), Integral):
                kind = type(value).__name__
                raise TypeError(f"the value of {name!r} is an int, got {kind}: {value!r}"[:200])
        return Outcome.of(self.test, {name: (value,) for name, value in values.items()})

    def close(self) -> None:
        """Do nothing: there is nothing to release."""
