"""The one place that decides: outcomes seen against outcomes allowed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from litmusfuzz.corpus.ops import MAX_MAGNITUDE
from litmusfuzz.corpus.outcome import Verdict, digest
from litmusfuzz.corpus.textfile import MAX_LISTED, Digest
from litmusfuzz.oracles.bounds import largest_magnitude
from litmusfuzz.oracles.errors import NoAllowedSet
from litmusfuzz.oracles.explorer import Budget, Explorer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Outcome
    from litmusfuzz.oracles.model import Model


COUNTING_BUDGET: Final = Budget(states=4_000, memory_bytes=1 << 24)
"""To count a graph's outcomes: some milliseconds, and most graphs take a tenth of it."""
MAX_COUNTED: Final = 1_000
"""A graph with more shows but a part of them in the executions that it gets."""


class Oracle(Protocol):
    """What decides on outcomes of one test: an allowed set, or an explorer."""

    def judge(self, outcome: Outcome) -> Verdict:
        """The verdict on one outcome."""


@dataclass(frozen=True, slots=True)
class Remembering:
    """An oracle that is asked about each outcome once: several executors show the same."""

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
    """A histogram, judged.

    `forbidden` has the most frequent outcome first; `verdicts` counts
    executions, not distinct outcomes.
    """

    oracle: Oracle
    histogram: Mapping[Outcome, int]
    verdicts: Mapping[Verdict, int]
    forbidden: tuple[tuple[Outcome, int], ...]

    @property
    def executions(self) -> int:
        """How many there were."""
        return sum(self.verdicts.values())

    @property
    def forbidden_count(self) -> int:
        """How many of them showed a forbidden outcome."""
        return sum(count for _, count in self.forbidden)

    @property
    def allowed(self) -> Mapping[Outcome, int]:
        """What was seen of what is allowed."""
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
    """The verdict on each outcome of a histogram."""
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
"""Why there is none, in words."""


def explorer_or_none(test: LitmusTest, model: Model, budget: Budget) -> Explorer | None:
    """The judge of a test; None if the model says nothing about it, or might not.

    The verdict on one outcome looks at few orders, so that no value may grow too large
    must be known beforehand: by a bound, or else by looking at all.
    """
    try:
        explorer = Explorer(test, model, budget)
        small = largest_magnitude(test) < MAX_MAGNITUDE
        return explorer if small or explorer.allowed_outcomes().complete else None
    except NoAllowedSet:
        return None


def number_allowed(test: LitmusTest, model: Model) -> int | None:
    """How many outcomes a test has; None if that is one, many, or takes long to count."""
    try:
        allowed = Explorer(test, model, COUNTING_BUDGET).allowed_outcomes()
    except NoAllowedSet:
        return None
    number = len(allowed.witnesses)
    return number if allowed.complete and 1 < number <= MAX_COUNTED else None


def listed(
    test: LitmusTest, model: Model, budget: Budget
) -> dict[str, frozenset[Outcome] | Digest]:
    """What a finding's file says is allowed; nothing if that is over budget."""
    allowed = Explorer(test, model, budget).allowed_outcomes()
    if not allowed.complete:
        return {}
    if len(allowed.witnesses) > MAX_LISTED:
        return {model.name: Digest(len(allowed.witnesses), digest(allowed.witnesses))}
    return {model.name: frozenset(allowed.witnesses)}
