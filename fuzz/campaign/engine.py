"""The engine of a campaign: its workers, its tasks, and its end.

Plain asyncio: one task for each worker slot, which does one work after another, and one that
generates tests ahead while nobody waits for an answer. All of it runs in one thread, and what
happens is written as events (`litmusfuzz.reports.events`). The scheduler
(`fuzz.campaign.scheduler`) decides what a worker does; what there is to do is in
`fuzz.campaign.lanes`.
"""

from __future__ import annotations

import asyncio
import gc
import os
from typing import TYPE_CHECKING

from litmusfuzz.fuzz.campaign import clock
from litmusfuzz.fuzz.campaign.earlier import Earlier
from litmusfuzz.fuzz.campaign.lanes import LANES
from litmusfuzz.fuzz.campaign.parts import Parts
from litmusfuzz.fuzz.campaign.slots import Slot
from litmusfuzz.fuzz.executors.memory import COLLECTED_EVERY, MemoryCap, available_bytes, watch
from litmusfuzz.fuzz.executors.table import CANARY
from litmusfuzz.fuzz.executors.worker import Worker
from litmusfuzz.reports.events import ShardEnded, ShardStarted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from litmusfuzz.fuzz.campaign.campaign_executor import CampaignExecutor
    from litmusfuzz.fuzz.campaign.scheduler import Lane
    from litmusfuzz.fuzz.campaign.settings import Settings
    from litmusfuzz.reports.events import Event

NOTHING_EARLIER = Earlier()


class Engine:
    """Runs one campaign, or one shard of it.

    Parameters
    ----------
    settings : Settings
    write : callable
        Receives the events, in their order, one or more at a time.
    earlier : Earlier
        What earlier shards have left.
    lanes : sequence of callable
        What makes each lane of the parts, in their order.

    Attributes
    ----------
    slots : list of Slot
        The workers.
    parts : Parts
    """

    def __init__(
        self,
        settings: Settings,
        write: Callable[[Sequence[Event]], None],
        earlier: Earlier = NOTHING_EARLIER,
        lanes: Sequence[Callable[[Parts], Lane]] = LANES,
    ) -> None:
        self.settings = settings
        self.slots: list[Slot] = []
        self.parts = parts = Parts(settings, write, earlier, self.slots)
        self.log = parts.log
        self.course = parts.course
        self.dispatcher = parts.dispatcher
        self.scheduler = parts.scheduler
        self.scheduler.lanes = tuple(lane(parts) for lane in lanes)
        for executor in self.dispatcher.executors:
            self._add_workers(executor)

    def _add_workers(self, executor: CampaignExecutor) -> None:
        settings, name = self.settings, executor.name
        for _ in range(1 if name == CANARY else settings.workers):
            python = None if name == CANARY else settings.options.python
            worker = Worker(name, settings.memory_bytes, python, spawn=settings.options.spawn)
            target = executor.sampler.current.target
            self.slots.append(Slot(worker, executor, target, self.parts.crashes.note_death))

    def stop(self) -> None:
        """End the campaign soon; what is not minimized stays in ``unreduced/``."""
        self.course.stop()

    async def run(self) -> None:
        """Run until the time is over, or `stop` is called.

        Raises
        ------
        OSError
            If a file or event cannot be written: the disk is full.
        """
        begun = clock.now()
        thresholds = gc.get_threshold()
        gc.set_threshold(COLLECTED_EVERY)
        try:
            await self._start()
            if not self.course.stopping:
                await self._run_tasks()
        finally:
            gc.set_threshold(*thresholds)
            for slot in self.slots:
                slot.worker.close()
            await self.parts.scripts.runner.close()
        self.parts.finish()
        self.log(
            ShardEnded(
                seconds=round(clock.now() - begun, 3),
                problem=self.course.problem,
                drivers={
                    each.name: devices
                    for each in self.dispatcher.fuzzed
                    if (devices := each.devices())
                },
            )
        )

    async def _start(self) -> None:
        """Start every worker."""
        for _ in self.dispatcher.fuzzed:
            self.dispatcher.dispatch_next()
        starts = [asyncio.create_task(self._start_worker(slot)) for slot in self.slots]

        def started() -> bool:
            return self.course.stopping or all(each.done() for each in starts)

        await self._run_until(started, starts)
        # Starting the frameworks does not count as fuzzing time.
        self.course.started = clock.now()
        for slot in self.slots:
            slot.executor.last_taken_at = self.course.started
        self.log(
            ShardStarted(
                host=os.uname().nodename,
                pid=os.getpid(),
                versions={slot.executor.name: dict(slot.executor.versions) for slot in self.slots},
            )
        )

    async def _start_worker(self, slot: Slot) -> None:
        """Start a worker, in the first configuration that can run here."""
        while why := await slot.why_unavailable():
            self.course.drop_target(slot, why)
            if self.course.problem:
                return
            if not slot.executor.sampler.running:
                break  # another one is generated for the first test
            slot.switch_to(slot.executor.sampler.running[0].target)
        self.course.notify()

    @property
    def _over(self) -> bool:
        """True once nothing more is to be done, or no time is left for it."""
        if self.course.stopping or self.course.overtime_is_over:
            return True
        overtime = self.course.time_left_s <= 0
        if self.parts.scripts.waiting or self.scheduler.holds(overtime=overtime):
            return False
        return overtime or not any(slot.busy for slot in self.slots)

    async def _run_tasks(self) -> None:
        """Serve all slots until the campaign is over."""
        tasks = [asyncio.create_task(self._serve(slot)) for slot in self.slots]
        tasks.append(asyncio.create_task(self._generate_ahead()))
        tasks.append(asyncio.create_task(self.parts.scripts.run()))
        tasks.append(asyncio.create_task(self._watch_memory()))
        await self._run_until(lambda: self._over, tasks)

    async def _run_until(
        self, over: Callable[[], bool], tasks: Sequence[asyncio.Task[None]]
    ) -> None:
        """Run tasks until one fails, or it is over; cancel the rest, and raise what failed."""
        try:
            while not (over() or any(each.done() and each.exception() for each in tasks)):
                await self.course.changed()
        finally:
            for each in tasks:
                each.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
        for result in ended:
            if isinstance(result, Exception):  # not a cancellation
                raise result

    async def _generate_ahead(self) -> None:
        """Generate tests while a backlog is nearly empty, one between two looks at the workers."""
        while self.course.time_left_s > 0:
            idle = [each for each in self.dispatcher.executors if not each.waiting]
            if self.dispatcher.running_low and self.dispatcher.dispatch_next():
                # A worker waits for a test only if none waits for it.
                if self.dispatcher.all_generated or any(each.waiting for each in idle):
                    self.course.notify()
                await asyncio.sleep(0)
            else:
                await self.course.changed()

    async def _watch_memory(self) -> None:
        """Keep all workers together within the memory that they may use."""
        cap = MemoryCap(int(self.settings.machine_share * available_bytes()))
        await watch(lambda: [slot.worker for slot in self.slots], cap)

    async def _serve(self, slot: Slot) -> None:
        """Give a worker one work after another."""
        while True:
            work = self.scheduler.next(slot)
            if work is None:
                await self.course.changed()
                continue
            slot.busy = True
            try:
                await work
            finally:
                slot.busy = False
                self.course.notify()
