"""Worker slots of a campaign: each runs one job or pack at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from msgspec import structs

from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import Schedule
from litmusfuzz.fuzz.campaign import clock
from litmusfuzz.fuzz.campaign.job import Job, Result, SentAhead, request_of, tests_of
from litmusfuzz.fuzz.campaign.slot_process import SlotProcess
from litmusfuzz.fuzz.campaign.tuning import HANG_TIMEOUT_S, JOB_TIMEOUT_S
from litmusfuzz.fuzz.executors import messages
from litmusfuzz.fuzz.executors.worker import Died

if TYPE_CHECKING:
    from collections.abc import Sequence

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.campaign.target import Target
    from litmusfuzz.fuzz.executors.protocol import ChosenClusters

MAX_SHOWN: Final = 256
"""Tests with a forbidden outcome that a process runs before another one takes its place: until then
all of these are kept in memory, and a crash throws doubt on them."""


@dataclass(slots=True, eq=False)
class Slot(SlotProcess):
    """A worker of a campaign.

    Attributes
    ----------
    executions : int
        Executions so far.
    clusterings : tuple of ChosenClusters
        Of the last job: the clusterings of the graphs that the executor ran.
    minimizing : bool
    reducing : str
        The exception (`fuzz.finding.worker_deaths.exception_of`) that its candidates are to end it
        with; "" if it reduces no crash.
    busy : bool
        True while it works on a test or a finding.
    """

    executions: int = 0
    clusterings: tuple[ChosenClusters, ...] = ()
    minimizing: bool = False
    reducing: str = ""
    busy: bool = False

    async def run(self, job: Job) -> Result:
        """Run a job; the death of the worker is reported, and the next job has a new process."""
        assert job.test is not None
        self.clusterings = ()
        damaging = any(node.op in self.executor.damaging_ops for node in job.test.effects)
        full = len(self.shown) >= MAX_SHOWN
        if self.jobs_run and (job.fresh or self._damaged or full):
            self.renew()
        if damaging:
            # A kernel that may damage the process's memory is the last of its process. If it ends
            # it, that throws no doubt on what was shown before.
            self.shown = []
        self._damaged = damaging
        self._last = job
        self.jobs_run += 1
        reply = await self._ask(job)
        if isinstance(reply, Died) and reply.timed_out:
            reply = await self._without_answer(job, reply)
            self._damaged = damaging
        if isinstance(reply, Died):
            self._report(job, reply)
            self._begin()
            return reply
        self._note(reply)
        if reply.drivers:
            self.executor.drivers[self.config.name] = reply.drivers
        self.clusterings = messages.chosen_clusters(reply)
        if job.explores and reply.explored is not None:
            found = messages.explored(job.test, reply)
            self.executions += found.executions - (job.search.done if job.search else 0)
            return found
        if not reply.rows:
            return reply
        seen = messages.histogram(job.test, reply)
        self.executions += sum(seen.values())
        if job.wanted:
            (outcome,) = seen
            return Schedule(outcome, tuple(reply.choices))
        return seen

    async def clusters_of(self, test: LitmusTest) -> tuple[ChosenClusters, ...]:
        """The clusters that the executor chooses for a test, which is not run; () if none."""
        if self._damaged:
            self.renew()
        job = Job(test)
        request = structs.replace(job.request(self.config), task="clusters")
        self._last = job
        reply = await self.worker.run(request, JOB_TIMEOUT_S, test)
        if isinstance(reply, Died) and reply.timed_out:
            with self._reports(job, reply):
                await self._renew_for(job)
                late = await self.worker.run(request, HANG_TIMEOUT_S, test)
            reply = self._late(reply, late)
        if isinstance(reply, Died):
            self._report(job, reply)
            self._begin()
            return ()
        self._note(reply)
        return messages.chosen_clusters(reply)

    def send_ahead(self, jobs: Sequence[Job], target: Target) -> None:
        """Let the process find a job, or a pack, when it has ended the present one.

        It is to be run next. Not sent if another process may have to run it.
        """
        checked = target.config.name in self._checked
        if checked and not self._damaged and len(self.shown) < MAX_SHOWN:
            request = request_of(jobs, target.config)
            self._ahead = SentAhead(jobs, request, clock.now())
            self.worker.queue(request, tests_of(jobs))

    async def run_pack(self, jobs: Sequence[Job]) -> list[Result | None]:
        """Run jobs together; the result of each, or None for all if they cannot run together.

        If the process dies, the jobs are run one by one, in another: the death counts for the
        job that causes it alone, and for the pack only if none does. For a pack that had no answer
        in time, see the module, "Hangs".
        """
        if self._damaged or len(self.shown) >= MAX_SHOWN:
            self.renew()
        self._last = jobs[0]
        self.jobs_run += len(jobs)
        tests = tuple(job.test for job in jobs if job.test is not None)
        reply = await self._ask(*jobs)
        if isinstance(reply, Died):
            begun_at = self._begun_at
            why = f"in a pack of {len(jobs)} tests: {reply.message}"
            with self._reports(jobs[0], replace(reply, message=why)):
                results = await self._run_alone(jobs, reply)
            self._begun_at = begun_at
            return results
        self._note(reply)
        if not reply.packed:
            return [None] * len(jobs)
        results = []
        for test, rows in zip(tests, reply.packed, strict=True):
            seen = messages.histogram(test, messages.Reply(rows=rows))
            self.executions += sum(seen.values())
            results.append(seen)
        return results

    async def _run_alone(self, jobs: Sequence[Job], died: Died) -> list[Result | None]:
        """Run jobs one by one whose process has died."""
        shown = self.shown
        self._begin()
        self.shown = shown  # in doubt if one of the jobs ends a process again
        await self._ask(Job(None))  # the start of the process does not count
        results: list[Result | None] = []
        seconds = 0.0
        for job in jobs:
            results.append(await self.run(job))
            seconds += self.seconds
        if any(isinstance(each, Died) for each in results):
            return results
        late = died.timed_out
        if late and seconds >= JOB_TIMEOUT_S:
            self.counters.note_slow()
            return results
        if late:
            again = self._late(died, await self._ask_again(*jobs))
            if isinstance(again, messages.Reply):
                self._note(again)
                return results
            died = again
        why = f"in a pack of {len(jobs)} tests, none of which does so alone: {died.message}"
        self._report(jobs[0], replace(died, message=why))
        self.shown = []
        if late:  # the process has ended
            self._begin()
        return results
