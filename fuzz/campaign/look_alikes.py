"""Unreduced findings that look like a known cause, and how much time they get.

A test looks like a cause if it contains the cause's ops in the same relations, and shows nothing
but its symptoms, in a configuration that shows the cause. It is not reduced: most such tests show
the cause and nothing else. But a defect may hide among them, so each is *checked* as time permits:
without what the causes need (`without_causes`) it must show nothing forbidden. And of each cause in
each configuration, ever fewer are reduced in full, whatever they look like.

Both begin only within `BEGUN_SHARE` of the campaign's time, so that with the findings that looked
new all time on what is known stays within `KNOWN_SHARE`. What is left unchecked at the end counts
as the cause that it looks like.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from litmusfuzz.fuzz.campaign.minimizer import RUN_S, expected_cost_s
from litmusfuzz.fuzz.finding.configuration_reducer import beyond_plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from litmusfuzz.fuzz.campaign.dispatcher import CampaignExecutor, UnreducedFinding
    from litmusfuzz.fuzz.finding.minimized_finding import MinimizedFinding

KNOWN_SHARE: Final = 0.05
"""Share of the time for what is known: checks, reductions that end with a known cause, and whether
each cause still shows."""
BEGUN_SHARE: Final = 0.5 * KNOWN_SHARE
"""Share within which a check, or a full reduction of a look-alike, may begin. The rest is left for
findings that looked new until they were reduced, and then turned out to be known: reducing one that
is compiled takes 40 to 160 s, and `KNOWN_SHARE` of a worker's hour is 180 s."""
MAX_WAITING: Final = 64
"""Look-alikes that wait to be checked; others count as known at once."""
FIRST_IN_FULL: Final = 2
IN_FULL_FACTOR: Final = 4
"""The second look-alike of a cause in a configuration is reduced in full, then the 8th, the 32nd,
and so on, each as soon as its share of the time suffices."""

SETTING_S: Final = 1.0
"""Seconds to see whether a finding needs a setting, roughly."""

Stratum = tuple[str, str, str]
"""Key of a cause, executor and configuration."""


@dataclass(slots=True)
class LookAlikes:
    """The look-alikes of a campaign that wait to be checked."""

    waiting: list[tuple[UnreducedFinding, MinimizedFinding]] = field(default_factory=list)
    checked: Counter[Stratum] = field(default_factory=Counter)
    in_full_at: defaultdict[Stratum, int] = field(default_factory=lambda: defaultdict(_first))
    """By stratum, how many are checked before the next one that is reduced in full."""

    def add(
        self, unreduced: UnreducedFinding, known: MinimizedFinding
    ) -> tuple[UnreducedFinding, MinimizedFinding] | None:
        """Add one; the one that it displaces, if too many wait."""
        self.waiting.append((unreduced, known))
        if len(self.waiting) <= MAX_WAITING:
            return None
        strata = Counter(_stratum(*each) for each in self.waiting)
        most = max(self.waiting, key=lambda each: strata[_stratum(*each)])
        self.waiting.remove(most)
        return most

    def next(self, executor: CampaignExecutor, left_s: float) -> UnreducedFinding | None:
        """Remove and return the one of the stratum that was checked least; None if none waits.

        It is reduced in full if that is expected to take at most `left_s`.
        """
        mine = [each for each in self.waiting if each[0].executor is executor]
        if not mine:
            return None
        chosen = min(mine, key=lambda each: self.checked[_stratum(*each)])
        self.waiting.remove(chosen)
        unreduced, _ = chosen
        stratum = _stratum(*chosen)
        self.checked[stratum] += 1
        if self.checked[stratum] >= self.in_full_at[stratum] and in_full_s(unreduced) <= left_s:
            self.in_full_at[stratum] *= IN_FULL_FACTOR
            unreduced.in_full = True
        return unreduced

    def drop(self, suspects: Sequence[UnreducedFinding]) -> None:
        """Remove those whose process crashed later: a fresh process must show them first."""
        self.waiting = [each for each in self.waiting if each[0] not in suspects]

    def take_all(self) -> list[tuple[UnreducedFinding, MinimizedFinding]]:
        """Remove and return all that wait."""
        left, self.waiting = self.waiting, []
        return left


def in_full_s(unreduced: UnreducedFinding) -> float:
    """Rough estimate of the seconds that it takes to reduce a look-alike in full.

    A run of a candidate takes as long as a test of the campaign in that configuration, and each of
    its settings is put back to plain. What is new is reduced in any case; but this ends with a
    known cause nearly always, and one in a configuration that compiles would take the time of many.
    """
    sampled, counted = unreduced.sampled, unreduced.executor.sampler.counted
    run_s = RUN_S if counted else max(RUN_S, sampled.cost)
    settings = beyond_plain(sampled.executor, sampled.config)
    return expected_cost_s(unreduced, run_s) + SETTING_S * len(settings)


def _first() -> int:
    return FIRST_IN_FULL


def _stratum(unreduced: UnreducedFinding, known: MinimizedFinding) -> Stratum:
    return known.key, unreduced.executor.name, unreduced.sampled.config.name
