"""Reduces candidates: first what looks new, and of that what takes the least time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from litmusfuzz.fuzz.campaign.best import expected_cost_s
from litmusfuzz.fuzz.campaign.scheduler import Lane, Work
from litmusfuzz.fuzz.campaign.tuning import ENVIRONMENT_SWITCH_S

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from litmusfuzz.fuzz.campaign.candidate import Candidate
    from litmusfuzz.fuzz.campaign.parts import Parts
    from litmusfuzz.fuzz.campaign.slots import Slot


class Reduce(Lane):
    """Candidates that wait to be reduced."""

    name = "reduce"

    def __init__(self, parts: Parts) -> None:
        self.shares = parts.shares
        self.candidates = parts.candidates
        self.reductions = parts.reductions

    def update(self, slot: Slot) -> None:
        """Set aside what looks like a known cause, unless nothing is reduced anyway."""
        if self.candidates.waiting and not self.shares.reducing_is_used_up(slot):
            self.candidates.set_look_alikes_aside()

    def peek(self, slot: Slot) -> Work | None:
        """The candidate of an executor that most likely shows something new."""
        if self.candidates.waiting and self.shares.reducing_is_used_up(slot):
            return None  # before each one is looked at
        waiting = self.candidates.reducible_by(slot)
        if not waiting:
            return None

        def cost_s(candidate: Candidate) -> float:
            switches = candidate.target.config.environment != slot.config.environment
            return expected_cost_s(candidate) + (ENVIRONMENT_SWITCH_S if switches else 0.0)

        findings = self.candidates.findings
        new = [each for each in waiting if not any(findings.contained(each))]
        chosen = min(new or waiting, key=cost_s)
        if not self.shares.may_reduce(slot, cost_s(chosen)):
            return None
        return Work(self.name, chosen, expected_cost_s(chosen))

    def start(self, slot: Slot, work: Work) -> Coroutine[Any, Any, None]:
        """Reduce it."""
        self.candidates.waiting.remove(work.about)
        return self.reductions.reduce(slot, work.about)

    def holds(self, *, overtime: bool) -> bool:
        """Overtime is for this lane."""
        return bool(self.candidates.waiting or self.candidates.in_work)
