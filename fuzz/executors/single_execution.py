"""For executors that are one function: it plays a test once, by a seeded generator.

What somebody else's simulator or model in Python needs around it; ours have more to do.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from litmusfuzz.corpus.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.executors.protocol import Histogram, Noise


@dataclass(frozen=True, slots=True)
class PreparedFunction:
    """A prepared test over scalars (`fuzz.executors.protocol.Prepared`).

    Parameters
    ----------
    test : LitmusTest
    play : callable
        From the test and a generator, from which comes all that is left to chance, to what
        each of `test.names` holds at the end; it may name more.
    """

    test: LitmusTest
    play: Callable[[LitmusTest, random.Random], Mapping[str, int]]

    def run(self, count: int, noise: Noise, seed: int) -> Histogram:
        """Play it `count` times."""
        rng = random.Random(seed)
        return Counter(self._once(rng) for _ in range(count))

    def _once(self, rng: random.Random) -> Outcome:
        held = self.play(self.test, rng)
        return Outcome.of(self.test, {name: (held[name],) for name in self.test.names})

    def close(self) -> None:
        """Nothing is held."""
