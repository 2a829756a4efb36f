"""The course of a campaign: its time, whether it ends, and the tasks that wait for a change."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from litmusfuzz.fuzz.campaign import clock
from litmusfuzz.fuzz.campaign.tuning import POLL_S
from litmusfuzz.reports.events import ConfigurationUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable

    from litmusfuzz.fuzz.campaign.settings import Settings
    from litmusfuzz.fuzz.campaign.slots import Slot
    from litmusfuzz.reports.events import Event


class Course:
    """How far a campaign is; all tasks of the campaign share it.

    Parameters
    ----------
    settings : Settings
    log : callable
        Receives the events.

    Attributes
    ----------
    started : float
        On the clock of campaigns. The start of the frameworks does not count as fuzzing time.
    stopping : bool
        True if the campaign is to end, though there may be time.
    problem : str
        Why the campaign has ended before its time; "" if there is no reason.
    """

    def __init__(self, settings: Settings, log: Callable[[Event], None]) -> None:
        self.settings = settings
        self.log = log
        self.started = clock.now()
        self.stopping = False
        self.problem = ""
        self._change = asyncio.Event()

    def stop(self) -> None:
        """End the campaign soon."""
        self.stopping = True
        self.notify()

    @property
    def elapsed_s(self) -> float:
        """Seconds since it began."""
        return clock.now() - self.started

    @property
    def time_left_s(self) -> float:
        """Seconds until no more tests are generated."""
        return self.settings.time_s - self.elapsed_s

    @property
    def overtime_is_over(self) -> bool:
        """True once no time is left to minimize what was found."""
        return self.time_left_s + self.settings.extra_minimizing_s <= 0

    def notify(self) -> None:
        """Wake the tasks that wait for something to do."""
        self._change.set()
        self._change = asyncio.Event()

    async def changed(self) -> None:
        """Wait until something has changed, or a while."""
        # Not `wait_for`, which may lose a cancellation in Python 3.11.
        with suppress(TimeoutError):
            async with asyncio.timeout(POLL_S):
                await self._change.wait()

    def drop_target(self, slot: Slot, why: str) -> None:
        """Do not use a slot's target, which cannot run here; end if it was the last one."""
        target, executor = slot.target, slot.executor
        sampled = executor.sampled(target)
        if sampled is None or not sampled.unavailable:
            if sampled is not None:
                sampled.unavailable = why
            name = target.config.name
            self.log(ConfigurationUnavailable(executor=executor.name, configuration=name, why=why))
        if executor.sampler.exhausted:
            self.problem = self.problem or f"{executor.name}: {why}"
            self.stop()
