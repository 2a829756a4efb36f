"""Judges outcomes: the only place where observed outcomes meet allowed ones."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from litmusfuzz.corpus.outcome import Verdict, digest
from litmusfuzz.corpus.textfile import MAX_LISTED, Digest
from litmusfuzz.oracles.bounds import has_small_values
from litmusfuzz.oracles.errors import NoAllowedSet
from litmusfuzz.oracles.explorer import Budget, Explorer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Outcome
    from litmusfuzz.corpus.textfile import Schedule
    from litmusfuzz.oracles.model import Model


COUNTING_BUDGET: Final = Budget(states=4_000, memory_bytes=1 << 24)
"""For counting a test's allowed outcomes: some milliseconds, of which most tests take a tenth."""
MAX_COUNTED: Final = 1_000
"""Above this number of allowed outcomes, the executions of a campaign show only a part."""


class Oracle(Protocol):
    """Judges outcomes of one test: an allowed set, or an explorer."""

    def judge(self, outcome: Outcome) -> Verdict:
        """The verdict on one outcome."""


@dataclass(frozen=True, slots=True)
class CachingOracle:
    """An oracle that judges each outcome once: several executors show the same outcomes."""

    oracle: Oracle
    verdicts: dict[Outcome, Verdict] = field(default_factory=dict)

    def judge(self, outcome: Outcome) -> Verdict:
        """The verdict on one outcome."""
        verdict = self.verdicts.get(outcome)
        if verdict is None:
            verdict = self.verdicts[outcome] = self.oracle.judge(outcome)
        return verdict


@dataclass(frozen=True, slots=True)
class Judgement:
    """A judged histogram.

    `forbidden` has the most frequent outcome first; `verdicts` counts executions, not distinct
    outcomes. `schedule` is one of the first forbidden outcome, where all schedules can be executed.
    """

    oracle: Oracle
    histogram: Mapping[Outcome, int]
    verdicts: Mapping[Verdict, int]
    forbidden: tuple[tuple[Outcome, int], ...]
    schedule: Schedule | None = None

    @property
    def executions(self) -> int:
        """Number of executions."""
        return sum(self.verdicts.values())

    @property
    def forbidden_count(self) -> int:
        """Executions that showed a forbidden outcome."""
        return sum(count for _, count in self.forbidden)

    @property
    def allowed(self) -> Mapping[Outcome, int]:
        """The allowed part of the histogram."""
        return {
            outcome: count
            for outcome, count in self.histogram.items()
            if self.oracle.judge(outcome) is Verdict.ALLOWED
        }

    @property
    def rate(self) -> float:
        """Share of executions that showed a forbidden outcome."""
        return self.forbidden_count / max(1, self.executions)


def judge(oracle: Oracle, histogram: Mapping[Outcome, int]) -> Judgement:
    """Judge each outcome of a histogram."""
    verdicts: Counter[Verdict] = Counter()
    forbidden = []
    for outcome, count in histogram.items():
        verdict = oracle.judge(outcome)
        verdicts[verdict] += count
        if verdict is Verdict.FORBIDDEN:
            forbidden.append((outcome, count))
    forbidden.sort(key=lambda each: (-each[1], str(each[0])))
    return Judgement(oracle, histogram, verdicts, tuple(forbidden))


NO_JUDGE: Final = "some order makes a value too large, or the model says nothing about it"
"""Why a test has no oracle, in words."""


def explorer_or_none(test: LitmusTest, model: Model, budget: Budget) -> Explorer | None:
    """The oracle of a test; None if the model says nothing about it, or might not.

    The verdict on one outcome looks at few orders. So it must be known beforehand that no value
    grows too large: by a bound, or else by looking at all orders.
    """
    try:
        explorer = Explorer(test, model, budget)
        small = has_small_values(test, model, explorer.unfolding)
        return explorer if small or explorer.allowed_outcomes().complete else None
    except NoAllowedSet:
        return None


def number_allowed(explorer: Explorer) -> int | None:
    """Number of allowed outcomes; None if it is one, large, or takes long to count."""
    try:
        allowed = explorer.allowed_outcomes(COUNTING_BUDGET)
    except NoAllowedSet:
        return None
    number = len(allowed.witnesses)
    return number if allowed.complete and 1 < number <= MAX_COUNTED else None


def listed(
    test: LitmusTest, model: Model, budget: Budget
) -> dict[str, frozenset[Outcome] | Digest]:
    """The allowed set for a finding's file; empty if it is over budget."""
    allowed = Explorer(test, model, budget).allowed_outcomes()
    if not allowed.complete:
        return {}
    if len(allowed.witnesses) > MAX_LISTED:
        return {model.name: Digest(len(allowed.witnesses), digest(allowed.witnesses))}
    return {model.name: frozenset(allowed.witnesses)}
