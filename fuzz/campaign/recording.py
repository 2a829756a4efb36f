"""The schedule of a finding: under control the simplest one, else one that is recorded."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.textfile import Schedule
from litmusfuzz.fuzz.campaign.job import Job, is_slow
from litmusfuzz.fuzz.campaign.preemption_bounds import bounds, coarser
from litmusfuzz.fuzz.campaign.probing import run_again
from litmusfuzz.fuzz.campaign.schedule_search import (
    MAX_SEARCHED,
    SEARCH_BUDGET,
    SearchResult,
    search,
    with_schedule,
)
from litmusfuzz.fuzz.executors import messages
from litmusfuzz.fuzz.finding.judge import judge

if TYPE_CHECKING:
    import random

    from litmusfuzz.fuzz.campaign.best import Best
    from litmusfuzz.fuzz.campaign.slots import Slot
    from litmusfuzz.fuzz.finding.judge import Judgement

MAX_RECORDED: Final = 1 << 14


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
        if best.target.explorable:
            await self._search(slot, best)
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

    async def _search(self, slot: Slot, best: Best) -> None:
        """Search the schedules at each level, the coarsest first, until one shows the finding.

        The searches are counted, not timed: a busy machine finds the same schedule.
        """
        finest, name = best.target, slot.executor.name
        for config in (*coarser(name, finest.config), finest.config):
            target = finest if config is finest.config else slot.executor.sample(config)
            slot.switch_to(target)
            if await slot.why_unavailable():
                continue
            found = await search(
                partial(run_again, slot),
                best.test,
                bounds(name, target.config),
                MAX_SEARCHED,
                enough=lambda found: (
                    found.executions >= SEARCH_BUDGET and bool(self._shown(best, found).forbidden)
                ),
            )
            if isinstance(found, SearchResult) and (shown := self._shown(best, found)).forbidden:
                best.target, best.judgement = target, shown
                best.schedule = shown.schedule
                return
        slot.switch_to(finest)

    @staticmethod
    def _shown(best: Best, found: SearchResult) -> Judgement:
        """What a search has shown of a finding, with the first schedule."""
        shown = best.with_same_cause(judge(best.judgement.oracle, found.histogram))
        return with_schedule(shown, found)
