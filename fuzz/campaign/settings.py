"""What a campaign is asked to do."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from litmusfuzz.fuzz.executors.protocol import Config, Noise
from litmusfuzz.fuzz.executors.table import executor_class
from litmusfuzz.fuzz.executors.worker import DEFAULT_MEMORY_BYTES
from litmusfuzz.fuzz.generators import WEIGHTS, families_for
from litmusfuzz.oracles.explorer import Budget
from litmusfuzz.oracles.model import RFC

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from litmusfuzz.oracles.model import Model

MAX_REDUCTION_S: Final = 20.0
FINISHING: Final = 0.2
"""Of a campaign's time, so much comes on top for what it has found."""
CAMPAIGN_BUDGET: Final = Budget(states=100_000, memory_bytes=1 << 28)
"""For each question: a tenth of a second. A verdict takes some microseconds."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a campaign is asked to do.

    `executors` names each executor with its configuration, or with several, of
    which each graph runs in one (`fuzz.campaign.sampler`); the canary comes on top.
    `families` are drawn from, each as often as `weights` says, or as often as the others
    where it does not; if empty, all that one of the executors runs, by their weights;
    of weight 0 are those that must be named.
    `time_s` or `tests`, a number of graphs, ends it, whichever is first. `count`
    is executions of each graph by each executor. `model` is judged by; if None,
    what each configuration promises. `command` is what was typed, for the record.
    `python` is another environment's interpreter for the executors' workers
    (`fuzz.executors.interpreter`), not for the canary's: that tests this program.
    `first` is the number of each family's first graph. Of the time, `minimizing_share` is
    for findings, the rest for new graphs. What is not minimized when the campaign ends
    stays in ``unreduced/`` if another `goes_on` with it; else `finishing_s` more are for it; what
    is begun even then is kept as small as it has become. One finding takes `reduction_s` at
    most; if None, as `longest_reduction_s` says. The record is kept in a file if it `saves`.
    Where configurations of an executor are much slower than its first, or than the one in
    `quick`, in which nothing is drawn, findings are first made small there.
    """

    seed: int
    out: Path
    executors: tuple[tuple[str, *tuple[Config, ...]], ...]
    time_s: float = 60.0
    tests: int | None = None
    families: tuple[str, ...] = ()
    weights: Mapping[str, float] = field(default_factory=dict)
    count: int = 3072
    workers: int = 1
    budget: Budget = CAMPAIGN_BUDGET
    memory_bytes: int = DEFAULT_MEMORY_BYTES
    model: Model | None = field(default=RFC)
    noise: Noise = field(default=Noise())
    command: str = ""
    python: str | None = None
    first: int = 0
    minimizing_share: float = 0.5
    goes_on: bool = False
    reduction_s: float | None = None
    saves: bool = True
    quick: Mapping[str, Config] = field(default_factory=dict)

    @property
    def longest_reduction_s(self) -> float:
        """For one finding: so many seconds, or a twelfth of the campaign, if that is longer.

        Few take a fifth of that. What does is compiled again for each smaller test, or rare.
        """
        return self.reduction_s or max(MAX_REDUCTION_S, self.time_s / 12)

    @property
    def finishing_s(self) -> float:
        """How long findings are minimized when no time for new graphs is left, at most."""
        return 0.0 if self.goes_on else FINISHING * self.time_s

    def weight(self, family: str) -> float:
        """How often a family is drawn, at first."""
        return self.weights.get(family, 1.0 if self.families else WEIGHTS[family])

    def families_of(self, executor: str) -> tuple[str, ...]:
        """What an executor chooses from, when it is its turn."""
        taken = families_for(executor_class(executor).features)
        wanted = self.families or (name for name in taken if WEIGHTS[name])
        return tuple(name for name in wanted if name in taken)
