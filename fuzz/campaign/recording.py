"""Records an execution that shows a finding, where the executor can record schedules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.textfile import Schedule
from litmusfuzz.fuzz.campaign.job import Job, SearchStep, is_slow
from litmusfuzz.fuzz.campaign.preemption_bounds import (
    PORTION,
    bounds,
    coarser,
    switches_inside,
)
from litmusfuzz.fuzz.campaign.probing import run_again
from litmusfuzz.fuzz.executors import messages
from litmusfuzz.fuzz.executors.protocol import Explored

if TYPE_CHECKING:
    import random

    from litmusfuzz.fuzz.campaign.best import Best
    from litmusfuzz.fuzz.campaign.slots import Slot

MAX_RECORDED: Final = 1 << 14
MAX_SEARCHED: Final = 1 << 14
"""Executions of all searches for the simplest schedule of a finding at one level."""


class ScheduleRecorder:
    """Records schedules on a worker slot."""

    def __init__(self) -> None:
        self.unschedulable: set[str] = set()
        """Titles of targets whose executor has said that it follows no schedules."""

    async def record(self, slot: Slot, best: Best, rng: random.Random) -> None:
        """Record an execution that shows the finding, if the executor can record schedules.

        Where all schedules can be executed, it is one with the fewest preemptions, at the coarsest
        level at which the finding shows. It moves there.
        """
        explorable = switches_inside(slot.executor.name, best.target.config) is not None
        if explorable and await self._search(slot, best):
            return
        if best.target.title not in self.unschedulable:
            wanted = tuple(outcome for outcome, _ in best.judgement.forbidden)
            job = Job(best.test, MAX_RECORDED, best.noise, rng.getrandbits(31), wanted=wanted)
            found = await run_again(slot, job)
            refused = isinstance(found, messages.Reply) and found.refused
            if refused and not is_slow(found):
                self.unschedulable.add(best.target.title)
            if isinstance(found, Schedule):
                best.schedule = found

    async def _search(self, slot: Slot, best: Best) -> bool:
        """Search the schedules at each level, the coarsest first; true if one shows the finding."""
        finest = best.target
        for config in (*coarser(slot.executor.name, finest.config), finest.config):
            target = finest if config is finest.config else slot.executor.sample(config)
            slot.switch_to(target)
            if await slot.why_unavailable():
                continue
            shown = await self._first(slot, best)
            if shown is not None:
                best.target, best.schedule = target, shown
                return True
        slot.switch_to(finest)
        return False

    async def _first(self, slot: Slot, best: Best) -> Schedule | None:
        """The first schedule that shows the finding, by number of preemptions; None if none does.

        The search is counted, not timed: the same schedule is found on a busy machine.
        """
        wanted = {outcome for outcome, _ in best.judgement.forbidden}
        left = MAX_SEARCHED
        for bound in bounds(slot.executor.name, slot.config):
            done = 0
            while left > 0:
                step = SearchStep(bound, done)
                found = await run_again(slot, Job(best.test, min(PORTION, left), search=step))
                if not isinstance(found, Explored):
                    return None  # refused at this level, perhaps
                hits = [each for each in found.schedules if each in wanted]
                if hits:
                    return Schedule(hits[0], events=found.schedules[hits[0]])
                left -= found.executions - done
                if found.whole:
                    return None
                if found.complete or found.executions == done:
                    break
                done = found.executions
        return None
