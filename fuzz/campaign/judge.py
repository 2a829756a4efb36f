"""The one place that decides: outcomes seen against outcomes allowed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from corpus.outcome import Verdict
from oracles.arithmetic import ValueTooLarge
from oracles.reference import allowed_outcomes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpus.graph import LitmusTest
    from corpus.outcome import Outcome
    from oracles.allowed import AllowedSet
    from oracles.model import Model


@dataclass(frozen=True, slots=True)
class Judgement:
    """A histogram, judged.

    `forbidden` has the most frequent outcome first; `verdicts` counts
    executions, not distinct outcomes.
    """

    allowed: AllowedSet
    histogram: Mapping[Outcome, int]
    verdicts: Mapping[Verdict, int]
    forbidden: tuple[tuple[Outcome, int], ...]

    @property
    def executions(self) -> int:
        """How many there were."""
        return sum(self.histogram.values())

    @property
    def forbidden_count(self) -> int:
        """How many of them showed a forbidden outcome."""
        return sum(count for _, count in self.forbidden)

    @property
    def rate(self) -> float:
        """Share of executions that showed a forbidden outcome."""
        return self.forbidden_count / max(1, self.executions)


def judge(allowed: AllowedSet, histogram: Mapping[Outcome, int]) -> Judgement:
    """The verdict on each outcome of a histogram."""
    verdicts: Counter[Verdict] = Counter()
    forbidden = []
    for outcome, count in histogram.items():
        verdict = allowed.judge(outcome)
        verdicts[verdict] += count
        if verdict is Verdict.FORBIDDEN:
            forbidden.append((outcome, count))
    forbidden.sort(key=lambda each: (-each[1], str(each[0])))
    return Judgement(allowed, histogram, verdicts, tuple(forbidden))


def allowed_or_none(test: LitmusTest, model: Model, budget_orders: int) -> AllowedSet | None:
    """The allowed set; None if some order makes a value too large."""
    try:
        return allowed_outcomes(test, model, budget_orders)
    except ValueTooLarge:
        return None
