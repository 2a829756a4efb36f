"""Tries again what a fresh process has not shown, while nothing waits to be reduced."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from litmusfuzz.fuzz.campaign.scheduler import Lane, Work

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from litmusfuzz.fuzz.campaign.parts import Parts
    from litmusfuzz.fuzz.campaign.slots import Slot

LEAST_ATTEMPTS: Final = 2
"""Fresh processes that have tried a candidate before a campaign of so many tests ends."""


class Retry(Lane):
    """Candidates that a fresh process has not shown."""

    name = "retry"

    def __init__(self, parts: Parts) -> None:
        self.shares = parts.shares
        self.candidates = parts.candidates
        self.reductions = parts.reductions

    def peek(self, slot: Slot) -> Work | None:
        """The candidate that was tried least.

        A campaign of so many tests ends after its tests, and tries each once more then.
        """
        shares = self.shares
        number = slot.executor.number
        waiting = [each for each in self.candidates.unconfirmed if each.executor == number]
        if not waiting or shares.course.time_left_s <= 0:
            return None
        unknown = self.candidates.waiting and shares.reducing_is_used_up(slot)
        if unknown or self.candidates.reducible_by(slot):
            return None  # while nothing is reduced, nobody knows what looks new
        chosen = min(waiting, key=lambda each: each.attempts)
        if shares.settings.counted:
            ready = shares.dispatcher.all_generated and chosen.attempts < LEAST_ATTEMPTS
        else:
            ready = shares.may_retry(slot)
        return Work(self.name, chosen) if ready else None

    def start(self, slot: Slot, work: Work) -> Coroutine[Any, Any, None]:
        """Reduce it, if another fresh process shows it."""
        self.candidates.unconfirmed.remove(work.about)
        return self.reductions.reduce(slot, work.about)

    def holds(self, *, overtime: bool) -> bool:
        """Each has `LEAST_ATTEMPTS`, if there is time."""
        few = any(each.attempts < LEAST_ATTEMPTS for each in self.candidates.unconfirmed)
        return few and not overtime
