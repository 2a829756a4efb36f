"""Goes on with tests that have earned further executions (`fuzz.campaign.depth`)."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from msgspec import structs

from litmusfuzz.fuzz.campaign import clock
from litmusfuzz.fuzz.campaign.job import Job
from litmusfuzz.fuzz.campaign.recorder import why_no_outcomes
from litmusfuzz.fuzz.campaign.scheduler import Lane, Work
from litmusfuzz.fuzz.executors.protocol import noise_text
from litmusfuzz.reports.events import Continued

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from litmusfuzz.fuzz.campaign.depth import UnfinishedRun
    from litmusfuzz.fuzz.campaign.parts import Parts
    from litmusfuzz.fuzz.campaign.slots import Slot


class Rounds(Lane):
    """Runs that have earned another round."""

    name = "rounds"

    def __init__(self, parts: Parts) -> None:
        self.shares = parts.shares
        self.course = parts.course
        self.recorder = parts.recorder
        self.unfinished = parts.recorder.unfinished

    def peek(self, slot: Slot) -> Work | None:
        """The run of which most is expected."""
        if self.course.time_left_s <= 0:
            return None
        waiting = self.unfinished[slot.executor.number]
        chosen = waiting.next(slot.config.environment, self.shares.left_for_rounds_s(slot))
        return None if chosen is None else Work(self.name, chosen)

    def start(self, slot: Slot, work: Work) -> Coroutine[Any, Any, None]:
        """Execute its next round."""
        self.unfinished[slot.executor.number].remove(work.about)
        return self._continue(slot, work.about)

    async def _continue(self, slot: Slot, unfinished: UnfinishedRun) -> None:
        """Execute and judge one round of a test."""
        generated, sampled, run = unfinished.generated, unfinished.sampled, unfinished.run
        variant, number = unfinished.variant, run.rounds + 1
        recorder, settings = self.recorder, self.course.settings
        waiting = self.unfinished[slot.executor.number]
        finished = False
        try:
            slot.switch_to(sampled.target)
            if why := await slot.why_unavailable():
                self.course.drop_target(slot, why)
                return
            place = f"{settings.options.seed}/round/{generated.index}/{number}"
            run_seed = random.Random(place).getrandbits(31)
            count, noise = run.next_round(settings.noise)
            job = Job(variant.test, variant.count(count), noise, run_seed)
            asked = clock.now()
            result = await slot.run(job)
            seconds = clock.now() - asked
            waiting.add_time(sampled.title, seconds)
            recorder.dispatcher.weights.add_time(generated.family, seconds)
            event = Continued(
                index=generated.index,
                family=generated.family,
                executor=slot.executor.name,
                configuration=sampled.config.name,
                model=sampled.model.name,
                round=number,
                noise=noise_text(job.noise),
                run_seed=run_seed,
                count=job.count,
                allowed=run.allowed,
                reached_before=run.reached if run.allowed else None,
                reached=run.reached if run.allowed else None,
                seconds=round(seconds, 6),
                counters=slot.take_counters(),
            )
            clusterings = slot.clusterings
            candidate = None
            if isinstance(result, dict):
                before, unseen = run.reached, run.unseen
                finished = True
                candidate = recorder.judge(slot, unfinished, event, job, result)
                waiting.add_round(number, run.reached - before, unseen)
            else:
                self.course.log(structs.replace(event, end=why_no_outcomes(result)))
            unsound = recorder.unsound.validator.unsound(variant.test, clusterings)
            explaining = recorder.explaining(candidate, unsound)
            await recorder.unsound.follow_up(slot, generated.index, job, unsound, explaining)
        finally:
            if not finished:
                recorder.finish(unfinished)

    def holds(self, *, overtime: bool) -> bool:
        """Each round that is earned, if there is time."""
        return any(self.unfinished.values()) and not overtime
