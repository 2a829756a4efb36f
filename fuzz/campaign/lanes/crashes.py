"""Reduces tests on which an exception has ended a worker, the first of each exception."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import dumps, write_text
from litmusfuzz.fuzz.campaign import clock
from litmusfuzz.fuzz.campaign.crash_reducer import Crash, SmallestCrash, smaller_crashes
from litmusfuzz.fuzz.campaign.scheduler import Lane, Work
from litmusfuzz.fuzz.campaign.scripts import crash_script
from litmusfuzz.fuzz.campaign.shares import REDUCE
from litmusfuzz.fuzz.executors import messages
from litmusfuzz.fuzz.executors.worker import Died
from litmusfuzz.fuzz.finding.configuration_reducer import needs_in_words
from litmusfuzz.fuzz.finding.driver import drive
from litmusfuzz.fuzz.finding.worker_deaths import exception_of
from litmusfuzz.reports.events import CrashReduced
from litmusfuzz.reports.script import NoScript

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from litmusfuzz.fuzz.campaign.crash_reducer import UnreducedCrash
    from litmusfuzz.fuzz.campaign.job import Job, Result
    from litmusfuzz.fuzz.campaign.parts import Parts
    from litmusfuzz.fuzz.campaign.slots import Slot

STEPS: Final = 3
"""Steps of a reduction, each as long as that of a finding's test: the settings, the test, and what
is left of the settings."""


class Crashes(Lane):
    """Crashes that wait to be reduced."""

    name = "crashes"
    account = REDUCE

    def __init__(self, parts: Parts) -> None:
        self.shares = parts.shares
        self.crashes = parts.crashes
        self.files = parts.crashes.files
        self.put_back = parts.minimizer.put_back
        self.runner = parts.scripts.runner
        self._took_s: list[float] = []
        """Seconds of the reductions so far."""

    def peek(self, slot: Slot) -> Work | None:
        """The first one that waits."""
        waiting = [each for each in self.crashes.waiting if each.executor == slot.executor.number]
        if not waiting or not self.shares.may_reduce(slot, self._cost_s):
            return None
        return Work(self.name, waiting[0], self._cost_s)

    @property
    def _cost_s(self) -> float:
        """Seconds that a reduction takes: as those before it, at first as that of a finding."""
        return fmean(self._took_s or (self.shares.settings.max_reduction_s,))

    def start(self, slot: Slot, work: Work) -> Coroutine[Any, Any, None]:
        """Reduce it."""
        self.crashes.waiting.remove(work.about)
        return self._reduce(slot, work.about)

    async def _reduce(self, slot: Slot, crash: UnreducedCrash) -> None:
        """Reduce a test on which an exception ended a worker, and store it with its script."""
        test = crash.job.test
        assert test is not None
        slot.minimizing, slot.reducing = True, crash.raised
        start = clock.now()
        smallest = SmallestCrash(Crash(test, crash.target.config))
        try:
            died = await self._reduce_to(slot, crash, smallest)
            if died is not None:
                await self._store(slot, crash, smallest, died, start)
        finally:
            slot.minimizing, slot.reducing = False, ""
            self._took_s.append(clock.now() - start)

    async def _reduce_to(
        self, slot: Slot, unreduced: UnreducedCrash, smallest: SmallestCrash
    ) -> Died | None:
        """Reduce a test on which an exception ends a worker; how it ends a fresh process.

        None if a fresh process does not end in that way: on the test as it was run, or on the
        smallest one, which then says nothing.
        """
        others = set[str]()

        async def run(crash: Crash, job: Job) -> Result | None:
            slot.switch_to(slot.executor.sample(crash.config))
            if await slot.why_unavailable():
                return None
            return await slot.run(replace(job, test=crash.test))

        async def ends(crash: Crash, job: Job) -> Died | None:
            result = await run(crash, replace(job, fresh=True))
            shown = isinstance(result, Died) and exception_of(result.message) == unreduced.raised
            return result if isinstance(result, Died) and shown else None

        async def fails(crash: Crash) -> bool:
            """A candidate does not end its process, which takes far longer than to go on."""
            result = await run(crash, replace(unreduced.job, survives=True))
            failed = result.failed if isinstance(result, messages.Reply) else ""
            if failed not in ("", unreduced.raised, *others):
                others.add(failed)
                await run(crash, unreduced.job)  # another crash, which is to be stored
            return failed == unreduced.raised

        if await ends(smallest.crash, unreduced.job) is None:
            return None
        end = clock.now() + STEPS * self.shares.settings.max_reduction_s
        candidates = smaller_crashes(slot.executor.name, smallest, self.put_back)
        await drive(candidates, fails, lambda: clock.now() < end)
        first = replace(unreduced.job, count=1, seed=0)
        if (died := await ends(smallest.crash, first)) is not None:
            smallest.place = first.seed
            return died
        return await ends(smallest.crash, unreduced.job)

    async def _store(
        self, slot: Slot, crash: UnreducedCrash, smallest: SmallestCrash, died: Died, start: float
    ) -> None:
        """Store a reduced crash with its script, and run that."""
        executor, config = slot.executor, smallest.crash.config
        entry, file = self.files.store_crash(crash, smallest, died)
        version = executor.versions_of(config.name).get("jax", "")
        needs = needs_in_words(executor.name, config, reduced=smallest.settings_tried)
        shows: bool | None = False
        try:
            script = self.files.path(file).with_suffix(".py")
            shown = config, version, smallest.place, crash.raised, needs
            write_text(crash_script(entry.test, executor.name, *shown), script)
            error = crash.raised.split()[0]
            shows = await self.runner.shows_it(script, error=error)
        except NoScript:
            shows = None
        finally:  # also if the time is over
            self.files.log(
                CrashReduced(
                    died_on=crash.died.file,
                    raised=crash.raised,
                    file=file,
                    entry=dumps(entry),
                    executor=executor.name,
                    configuration=config.name,
                    needs=needs,
                    complete=smallest.complete,
                    script_shows_it=shows,
                    seconds=round(clock.now() - start, 3),
                )
            )

    def holds(self, *, overtime: bool) -> bool:
        """Overtime is for this lane as well."""
        return bool(self.crashes.waiting) or any(slot.reducing for slot in self.shares.slots)
