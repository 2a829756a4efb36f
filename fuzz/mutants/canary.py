"""The canary: an executor that is always wrong. A campaign that does not report it is broken."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from litmusfuzz.corpus.ops import MAX_MAGNITUDE
from litmusfuzz.corpus.outcome import Outcome
from litmusfuzz.fuzz.executors.protocol import Config, ForkAfter
from litmusfuzz.fuzz.support import EVERYTHING, Support

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Value
    from litmusfuzz.fuzz.executors.protocol import Histogram, Noise


@dataclass(frozen=True, slots=True)
class _Prepared:
    test: LitmusTest

    def run(self, count: int, noise: Noise, seed: int) -> Histogram:
        wrong: dict[str, Value] = {}
        for name in self.test.names:
            value = (MAX_MAGNITUDE,) * self.test.size_of(self.test.type_of(name).shape)
            queue = any(queue.name == name for queue in self.test.queues)
            wrong[name] = (value,) if queue else value
        return {Outcome.of(self.test, wrong): count}

    def close(self) -> None:
        pass


class Canary:
    """Mutant: every value is 2**24, which no litmus test can produce.

    Killed by every test. It runs in every campaign, through the same worker process,
    judgement and report as any other executor.

    References
    ----------
    semantics.md, section 1 (no value reaches 2**24).
    """

    name: ClassVar[str] = "mutant/canary"
    support: ClassVar[Support] = EVERYTHING
    fork_after: ClassVar[ForkAfter] = ForkAfter(("litmusfuzz.fuzz.mutants.canary",))

    @classmethod
    def configurations(cls) -> tuple[Config, ...]:
        """One configuration, which guarantees the model `executor`."""
        return (Config("plain", "executor"),)

    @classmethod
    def versions(cls) -> dict[str, str]:
        """Version of Python."""
        return {"python": sys.version.split()[0]}

    def prepare(self, test: LitmusTest, config: Config) -> _Prepared:
        """Accept every test. Of each queue the canary reports one element."""
        return _Prepared(test)
