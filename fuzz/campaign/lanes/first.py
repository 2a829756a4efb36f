"""Has generated tests run for the first time, pack after pack while nothing else is to be done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from litmusfuzz.fuzz.campaign.scheduler import Lane, Work

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from litmusfuzz.fuzz.campaign.campaign_executor import GeneratedTest
    from litmusfuzz.fuzz.campaign.parts import Parts
    from litmusfuzz.fuzz.campaign.slots import Slot


class First(Lane):
    """Tests that wait for their first executions, or may be generated."""

    name = "first"

    def __init__(self, parts: Parts) -> None:
        self.packs = parts.packs
        self.course = parts.course
        self.dispatcher = parts.dispatcher
        self.scheduler = parts.scheduler

    def peek(self, slot: Slot) -> Work | None:
        """Any test: which one, the dispatcher decides."""
        if slot.canary or self.course.time_left_s <= 0:
            return None
        waits = slot.executor.waiting or self.dispatcher.may_generate
        return Work(self.name, slot.executor.name) if waits else None

    def start(self, slot: Slot, work: Work) -> Coroutine[Any, Any, None] | None:
        """Run a pack of tests, and further ones as long as nothing else is to be done."""
        first = self._take(slot)
        if first is None:
            return None
        return self.packs.run(slot, first, lambda: self._following(slot))

    def holds(self, *, overtime: bool) -> bool:
        """Each test that was asked for, if there is time."""
        return not (overtime or self.dispatcher.all_dispatched)

    def _take(self, slot: Slot) -> GeneratedTest | None:
        """The next test of a worker.

        Tests are generated until a pack waits, or none may be generated: a pack of few costs nearly
        as much as one of many.
        """
        executor, dispatcher = slot.executor, self.dispatcher
        _, noise = self.course.settings.first_executions
        while len(executor.waiting) < executor.next_pack_size(noise) and dispatcher.dispatch_next():
            pass
        return executor.take()

    def _following(self, slot: Slot) -> GeneratedTest | None:
        """The first test of a worker's next pack; None if it is to do something else."""
        if self.course.stopping:
            return None
        work = self.scheduler.following(slot)
        return self._take(slot) if work is not None and work.lane == self.name else None
