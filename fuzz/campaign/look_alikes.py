"""Candidates that look like a known cause, and how much time they get.

A test looks like a cause if it contains the cause's ops in the same relations, and shows nothing
but its symptoms, in a configuration that shows the cause. It is not reduced: most such tests show
the cause and nothing else. But a defect may hide among them, so each is *checked* as time permits:
without what the causes need (`without_causes`) it must show nothing forbidden. And of each cause in
each configuration, ever fewer are reduced in full, whatever they look like.

Both begin only within `tuning.KNOWN_SHARE` of the campaign's time. What is left unchecked at the
end counts as the cause that it looks like.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from litmusfuzz.fuzz.campaign.best import expected_cost_s
from litmusfuzz.fuzz.campaign.candidate import Candidate, State
from litmusfuzz.fuzz.campaign.tuning import ENVIRONMENT_SWITCH_S, RUN_S
from litmusfuzz.fuzz.finding.configuration_reducer import beyond_plain

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from litmusfuzz.fuzz.campaign.campaign_executor import CampaignExecutor
    from litmusfuzz.fuzz.finding.minimized_finding import MinimizedFinding

MAX_WAITING: Final = 64
"""Look-alikes that wait to be checked; others count as known at once."""
FIRST_IN_FULL: Final = 2
IN_FULL_FACTOR: Final = 4
"""The second look-alike of a cause in a configuration is reduced in full, then the 8th, the 32nd,
and so on, each as soon as its share of the time suffices."""


LookAlike = tuple[Candidate, "MinimizedFinding"]
"""A candidate, and the known cause that it looks like."""
Stratum = tuple[str, str, str]
"""Key of a cause, executor and configuration."""


@dataclass(slots=True)
class LookAlikes:
    """The look-alikes of a campaign that wait to be checked."""

    waiting: list[LookAlike] = field(default_factory=list)
    checked: Counter[Stratum] = field(default_factory=Counter)
    in_full_at: dict[Stratum, int] = field(default_factory=dict)
    """By stratum, how many are checked before the next one that is reduced in full; at first
    `FIRST_IN_FULL`."""

    def add(self, candidate: Candidate, known: MinimizedFinding) -> LookAlike | None:
        """Add one; the one that it displaces, if too many wait."""
        self.waiting.append((candidate, known))
        if len(self.waiting) <= MAX_WAITING:
            return None
        strata = Counter(_stratum(*each) for each in self.waiting)
        most = max(self.waiting, key=lambda each: strata[_stratum(*each)])
        self.waiting.remove(most)
        return most

    def peek(
        self, executor: CampaignExecutor, wanted: Callable[[Candidate], bool] = lambda _: True
    ) -> LookAlike | None:
        """The one of the stratum of an executor that was checked least; None if none waits."""
        mine = [
            each for each in self.waiting if each[0].executor == executor.number and wanted(each[0])
        ]
        return min(mine, key=lambda each: self.checked[_stratum(*each)], default=None)

    def is_due_in_full(self, chosen: LookAlike) -> bool:
        """True if this one is to be reduced in full, as soon as there is time."""
        stratum = _stratum(*chosen)
        return self.checked[stratum] + 1 >= self.in_full_at.get(stratum, FIRST_IN_FULL)

    def take(self, chosen: LookAlike, *, in_full: bool) -> None:
        """Remove one that is checked next, or reduced in full."""
        self.waiting.remove(chosen)
        stratum = _stratum(*chosen)
        self.checked[stratum] += 1
        if in_full:
            due_at = self.in_full_at.get(stratum, FIRST_IN_FULL)
            self.in_full_at[stratum] = due_at * IN_FULL_FACTOR
            chosen[0].to(State.IN_FULL)

    def drop(self, suspects: Sequence[Candidate]) -> None:
        """Remove those whose process crashed later: a fresh process must show them first."""
        self.waiting = [each for each in self.waiting if each[0] not in suspects]

    def take_all(self) -> list[LookAlike]:
        """Remove and return all that wait."""
        left, self.waiting = self.waiting, []
        return left


def in_full_s(candidate: Candidate, executor: CampaignExecutor) -> float:
    """Rough estimate of the seconds that it takes to reduce a look-alike in full.

    A run of a smaller test takes as long as a test of the campaign in that configuration, and each
    of its settings is put back to plain. What is new is reduced in any case; but this ends with a
    known cause nearly always, and one in a configuration that compiles would take the time of many.
    """
    target, sampled = candidate.target, executor.sampled(candidate.target)
    cost_s = 1.0 if sampled is None else sampled.cost
    run_s = RUN_S if executor.sampler.counted else max(RUN_S, cost_s)
    settings = beyond_plain(target.executor, target.config)
    return expected_cost_s(candidate, run_s) + ENVIRONMENT_SWITCH_S * len(settings)


def _stratum(candidate: Candidate, known: MinimizedFinding) -> Stratum:
    target = candidate.target
    return known.key, target.executor, target.config.name
