"""Looks at what is known: whether look-alikes show more, and whether causes still show.

Look-alikes come first, and causes that have been run before after those that have not. At the end
of a campaign of so many tests all that waits is checked. Whether causes still show says nothing
about these tests: that is asked for as long as one attempt takes.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from litmusfuzz.fuzz.campaign.candidate import State
from litmusfuzz.fuzz.campaign.look_alikes import LookAlike, in_full_s
from litmusfuzz.fuzz.campaign.scheduler import Lane, Work
from litmusfuzz.fuzz.campaign.taking_under_control import may_be_taken, take
from litmusfuzz.fuzz.campaign.tuning import ATTEMPT_S, ENVIRONMENT_SWITCH_S

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from litmusfuzz.fuzz.campaign.candidate import Candidate
    from litmusfuzz.fuzz.campaign.parts import Parts
    from litmusfuzz.fuzz.campaign.slots import Slot
    from litmusfuzz.fuzz.finding.minimized_finding import MinimizedFinding

SEARCH_S: Final = 2 * ENVIRONMENT_SWITCH_S
"""Seconds of a check by searches: most take as long as to begin in another environment."""


@dataclass(frozen=True, slots=True)
class Check:
    """A look-alike that is to be checked, or reduced in full."""

    look_alike: LookAlike
    in_full: bool


class Known(Lane):
    """Look-alikes, and known causes."""

    name = "known"

    def __init__(self, parts: Parts) -> None:
        self.shares = parts.shares
        self.course = parts.course
        self.candidates = parts.candidates
        self.findings = parts.findings
        self.explainer = parts.explainer
        self.reductions = parts.reductions

    def peek(self, slot: Slot) -> Work | None:
        """A `Check`, or a cause of which nobody has asked whether it still shows."""
        left_s = self.shares.left_for_known_s(slot)
        # A search may exceed what is left: shards of a nightly run last some seconds.
        if self.shares.in_overtime or left_s > 0:
            searched = self.candidates.look_alikes.peek(slot.executor, may_be_taken)
            if searched is not None:
                return Work(self.name, Check(searched, in_full=False), SEARCH_S)
        if left_s < ATTEMPT_S:
            return None
        unchecked = self._unchecked_causes(slot)
        cause = min(unchecked, key=lambda each: each.unseen, default=None)
        if cause is None or cause.unseen:  # others first: it was run before
            look_alikes, executor = self.candidates.look_alikes, slot.executor
            if (chosen := look_alikes.peek(executor)) is not None:
                cost_s = in_full_s(chosen[0], executor)
                if look_alikes.is_due_in_full(chosen) and cost_s <= left_s:
                    return Work(self.name, Check(chosen, in_full=True), cost_s)
                return Work(self.name, Check(chosen, in_full=False), ATTEMPT_S)
        return None if cause is None else Work(self.name, cause, ATTEMPT_S)

    def _unchecked_causes(self, slot: Slot) -> list[MinimizedFinding]:
        """Known causes of which nobody has asked whether they still show, if there is time."""
        executor, shares = slot.executor, self.shares
        ended = shares.dispatcher.all_generated and not executor.waiting
        asked_s = shares.ledger.of(self.account, executor.number)
        in_time = ended and asked_s < ATTEMPT_S
        if not in_time and shares.share_for_known_s(slot) < ATTEMPT_S:
            return []
        return [each for each in self.findings.of(executor.name) if each.unchecked]

    def start(self, slot: Slot, work: Work) -> Coroutine[Any, Any, None]:
        """Check a look-alike, reduce it in full, or look for a cause."""
        about = work.about
        if not isinstance(about, Check):
            about.unchecked = False
            return self._look_for(slot, about)
        self.candidates.look_alikes.take(about.look_alike, in_full=about.in_full)
        candidate, _ = about.look_alike
        if about.in_full:
            return self.reductions.reduce(slot, candidate)
        return self._check(slot, candidate)

    async def _check(self, slot: Slot, candidate: Candidate) -> None:
        """Look whether a test shows anything beside the known causes that it contains."""
        slot.switch_to(candidate.target)
        slot.minimizing = True
        self.candidates.in_work[slot] = candidate
        rng = random.Random(f"{self.course.settings.options.seed}/check/{candidate.index}")
        try:
            if why := await slot.why_unavailable():
                self.course.drop_target(slot, why)  # it stays in ``unreduced/``
                return
            controlled = await take(slot, candidate, self.course.settings.budget)
            if controlled is not None:
                await self._decide(slot, candidate, controlled, rng)
                return
            known = await self.explainer.known_here(slot, candidate, rng)
            if known is None:
                self._put_back(candidate, State.SEEN)
                return
            behind = await self.explainer.behind(slot, candidate, known, rng)
            if candidate.suspect or behind is candidate:
                self._put_back(candidate, State.IN_FULL)
            elif behind is not None:
                self.candidates.waiting.append(behind)
            else:
                self.findings.add_sighting(candidate, known)
        finally:
            slot.minimizing = False
            del self.candidates.in_work[slot]

    async def _decide(
        self, slot: Slot, candidate: Candidate, controlled: Candidate, rng: random.Random
    ) -> None:
        """The same, by searches, of a candidate that was taken under control."""
        decided = await self.explainer.decide(slot, controlled, rng)
        if candidate.suspect or not (decided.by or decided.behind):
            self._put_back(candidate, State.IN_FULL)
        elif decided.by is not None:
            self.findings.add_sighting(candidate, decided.by)
        elif decided.behind is not None:
            self.candidates.waiting.append(controlled.behind(*decided.behind))

    def _put_back(self, candidate: Candidate, state: State) -> None:
        """Let a look-alike wait to be reduced; if its process has crashed meanwhile, as a suspect.

        Nobody else lets a suspect wait that is in work.
        """
        if not candidate.suspect:
            candidate.to(state)
        self.candidates.waiting.append(candidate)

    async def _look_for(self, slot: Slot, cause: MinimizedFinding) -> None:
        """Look whether a known cause still shows."""
        rng = random.Random(f"{self.course.settings.options.seed}/known/{cause.key}")
        slot.minimizing = True
        try:
            await self.explainer.still_shows(slot, cause, rng)
        finally:
            slot.minimizing = False

    def holds(self, *, overtime: bool) -> bool:
        """In overtime, those that searches may decide; others count as what they look like."""
        waiting = self.candidates.look_alikes.waiting
        return any(not overtime or may_be_taken(each) for each, _ in waiting)
