"""Worker slots of a campaign: each runs one job at a time, in a process that may be replaced.

Hangs
-----
A job that has no answer in `JOB_TIMEOUT_S` hangs, or is slow: it may ask for thousands of
executions with large tensors, on busy cores. So a fresh process tries a few executions of the test
within `HANG_TIMEOUT_S`. If it does not answer either, the test hangs. If it answers, the time of
the whole job is estimated. A job of more than `HANG_TIMEOUT_S` is slow, and counts as refused for
lack of time. Any other job may hang rarely, or an earlier test may have hindered the process: a
fresh process tries the whole job within `HANG_TIMEOUT_S`, and if it does not answer, the test
hangs. A job that records or replays an execution is tried as a whole at once, and so is the choice
of clusters. Each job that does not hang counts as `SLOW`.

The tests of a pack without an answer run one by one. If together they take `JOB_TIMEOUT_S`, the
pack is slow. Otherwise a fresh process tries the pack within `HANG_TIMEOUT_S`.

A campaign that ends during a further try reports the first one as timed out, and says so.

What the few executions show does not count. They have another noise than the job, and callers take
their number for that of the job: for the pace, for rates, and to reproduce a finding.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import structs

from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import Schedule, plain_of
from litmusfuzz.fuzz.campaign import clock
from litmusfuzz.fuzz.campaign.job import NO_TIME, Job, Result
from litmusfuzz.fuzz.executors import messages
from litmusfuzz.fuzz.executors.process_log import in_a_line
from litmusfuzz.fuzz.executors.table import CANARY
from litmusfuzz.fuzz.executors.worker import Died, Worker
from litmusfuzz.reports.events import DOES_NOT_START

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.campaign.campaign_executor import CampaignExecutor
    from litmusfuzz.fuzz.campaign.candidate import Candidate
    from litmusfuzz.fuzz.campaign.target import Target
    from litmusfuzz.fuzz.executors.protocol import ChosenClusters, Config
    from litmusfuzz.fuzz.executors.worker import Tests

JOB_TIMEOUT_S: Final = 60.0
HANG_TIMEOUT_S: Final = 300.0
"""Limit of each further try, in a fresh process; see the module, "Hangs". Even a test with a
million lanes is executed hundreds of times in a minute."""
SLOW: Final = "slow jobs"
"""Counter of an executor's jobs that had no answer in `JOB_TIMEOUT_S`, and do not hang."""
CUT_SHORT: Final = "the campaign ended before a longer try"
MAX_SHOWN: Final = 256
"""Tests with a forbidden outcome that a process runs before another one takes its place: until then
all of these are kept in memory, and a crash throws doubt on them."""
OTHER_COUNTERS: Final = "other counters"
"""All counters of an executor together that have a name after the first `messages.MAX_NAMED`: a
report has a figure for each name, and an executor may make one for each test."""


def _request(jobs: Sequence[Job], config: Config) -> messages.Request:
    """The message to the worker for a job, or a pack that differ in their tests and seeds only."""
    request = jobs[0].request(config)
    if len(jobs) == 1:
        return request
    pack = [messages.Packed(plain_of(job.test), job.seed) for job in jobs if job.test is not None]
    return structs.replace(request, test={}, seed=0, pack=pack)


def _tests(jobs: Sequence[Job]) -> Tests:
    """The test of a job, or the tests of a pack, as a worker takes them."""
    if len(jobs) == 1:
        return jobs[0].test
    return tuple(job.test for job in jobs if job.test is not None)


class _Queued(NamedTuple):
    """A job or a pack that was sent before the one before it had ended, and when."""

    jobs: Sequence[Job]
    request: messages.Request
    at: float

    def holds(self, jobs: Sequence[Job]) -> bool:
        """True if it is these jobs, the same objects."""
        return [id(each) for each in self.jobs] == [id(each) for each in jobs]


@dataclass(slots=True, eq=False)
class Slot:
    """A worker of a campaign, and the configuration that it is in.

    Attributes
    ----------
    on_death : callable
        Called with the slot, the job and the death of a worker, before the process is replaced.
    jobs_run : int
        Jobs of the present process.
    shown : list of Candidate
        What the present process has shown; believed only in a fresh process if it crashes.
    executions : int
        Executions so far.
    clusterings : tuple of ChosenClusters
        Of the last job: the clusterings of the graphs that the executor ran.
    minimizing : bool
    reducing : str
        The exception (`fuzz.finding.worker_deaths.raised`) that its candidates are to end it
        with; "" if it reduces no crash.
    busy : bool
        True while it works on a test or a finding.
    """

    worker: Worker
    executor: CampaignExecutor
    target: Target
    on_death: Callable[[Slot, Job, Died], None]
    jobs_run: int = 0
    shown: list[Candidate] = field(default_factory=list)
    executions: int = 0
    clusterings: tuple[ChosenClusters, ...] = ()
    minimizing: bool = False
    reducing: str = ""
    busy: bool = False
    _damaged: bool = False
    _deaths: int = 0
    """Deaths reported so far."""
    _last: Job | None = None
    """The last job of the present process."""
    _queued: _Queued | None = None
    _begun_at: float = 0.0
    _answered_at: float = 0.0
    _checked: set[str] = field(default_factory=set)
    _counters_seen: Mapping[str, float] = field(default_factory=dict)
    _counters: dict[str, float] = field(default_factory=dict)
    _counter_names: set[str] = field(default_factory=set)

    @property
    def config(self) -> Config:
        """Its present configuration."""
        return self.target.config

    @property
    def canary(self) -> bool:
        """True for the canary, which runs only to be reported."""
        return self.executor.name == CANARY

    def switch_to(self, target: Target) -> None:
        """Continue in another configuration."""
        if target.config.environment != self.config.environment:
            self.renew()
        self.target = target

    def renew(self) -> None:
        """End the process; the next job starts another."""
        self.worker.close()
        self._begin()

    def _begin(self) -> None:
        self.jobs_run = 0
        self.shown = []
        self._damaged = False
        self._last = None
        self._checked = set()
        self._counters_seen = {}

    def take_counters(self) -> dict[str, float]:
        """What its executor has counted since the last call."""
        counters, self._counters = self._counters, {}
        return {name: number for name, number in counters.items() if number}

    async def why_unavailable(self) -> str:
        """Why its configuration cannot run here; "" if it can. Asked once for each process."""
        if self._damaged:
            self.renew()
        if self.config.name in self._checked:
            return ""
        reply = await self._ask(Job(None))
        if isinstance(reply, Died) and not reply.timed_out:
            # The configuration need not be the reason: another process may start.
            if self._last is not None:
                self._report(self._last, reply)
            self._begin()
            reply = await self._ask(Job(None))
        if isinstance(reply, Died):
            self._begin()
            return f"{DOES_NOT_START}: {reply.message}"
        if not reply.unavailable:
            self._checked.add(self.config.name)
            self.executor.versions = reply.versions
        return in_a_line(reply.unavailable)

    @property
    def seconds(self) -> float:
        """Time that the last job or pack has taken, waits for the process included."""
        return self._answered_at - self._begun_at

    async def _ask(self, *jobs: Job, timeout_s: float | None = None) -> messages.Reply | Died:
        """Send a job or a pack, unless it has been sent already, and wait for the reply.

        It is due in `JOB_TIMEOUT_S`, unless `timeout_s` is given.
        """
        queued, self._queued = self._queued, None
        if queued is not None and queued.holds(jobs):
            request = queued.request
            self._begun_at = max(queued.at, self._answered_at)
        else:
            request = _request(jobs, self.config)
            self._begun_at = clock.now()
        reply = await self.worker.run(request, timeout_s or JOB_TIMEOUT_S, _tests(jobs))
        self._answered_at = clock.now()
        return reply

    async def _renew_for(self, *jobs: Job) -> None:
        """Start a fresh process for a job or a pack."""
        self.renew()
        self._last = jobs[0]
        self.jobs_run = len(jobs)
        await self._ask(Job(None))  # the start of the process does not count

    async def _ask_again(self, *jobs: Job) -> messages.Reply | Died:
        """Let a fresh process have far longer for a job or a pack; see the module, "Hangs"."""
        begun_at = self._begun_at
        await self._renew_for(*jobs)
        reply = await self._ask(*jobs, timeout_s=HANG_TIMEOUT_S)
        self._begun_at = begun_at
        return reply

    async def _without_answer(self, job: Job, died: Died) -> messages.Reply | Died:
        """What a job comes to that had no answer in time: a late one, a refusal, or a hang."""
        with self._reports(job, died):
            few = job.few
            reply = await self._ask_again(few)
            if isinstance(reply, messages.Reply) and few != job:
                if job.expected_s(few, reply) > HANG_TIMEOUT_S:
                    why = f"{NO_TIME} ({job.count} executions take more than {HANG_TIMEOUT_S:g} s)"
                    reply = structs.replace(reply, rows=[], refused=why)
                else:
                    self._note(reply)
                    reply = await self._ask_again(job)
        return self._late(died, reply)

    def _late(self, died: Died, reply: messages.Reply | Died) -> messages.Reply | Died:
        """The last reply to a job that had no answer in time: it counts as slow, or hangs."""
        if isinstance(reply, messages.Reply):
            self._count_slow()
        elif reply.timed_out:
            return replace(reply, message=f"{died.message}, {reply.message} in a fresh process")
        return reply

    @contextmanager
    def _reports(self, job: Job, died: Died) -> Iterator[None]:
        """Report a job without an answer if the campaign ends before the further tries do.

        It is not reported if one of these tries has reported a death by then.
        """
        jobs_run, deaths = self.jobs_run, self._deaths
        try:
            yield
        except asyncio.CancelledError:
            if died.timed_out and self._deaths == deaths:
                self.jobs_run = jobs_run
                self._report(job, replace(died, message=f"{died.message}; {CUT_SHORT}"))
            raise

    def _report(self, job: Job, died: Died) -> None:
        self._deaths += 1
        self.on_death(self, job, died)

    def _count_slow(self) -> None:
        self._counters[SLOW] = self._counters.get(SLOW, 0) + 1

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
        if job.search and reply.explored is not None:
            found = messages.explored(job.test, reply)
            self.executions += found.executions - job.search.done
            return found
        if not reply.rows:
            return reply
        seen = messages.histogram(job.test, reply)
        self.executions += sum(seen.values())
        if job.wanted:
            (outcome,) = seen
            events = reply.explored.schedules[0] if reply.explored is not None else ()
            return Schedule(outcome, tuple(reply.choices), tuple(events))
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

    def queue(self, jobs: Sequence[Job], target: Target) -> None:
        """Let the process find a job, or a pack, when it has ended the present one.

        It is to be run next. Not sent if another process may have to run it.
        """
        checked = target.config.name in self._checked
        if checked and not self._damaged and len(self.shown) < MAX_SHOWN:
            request = _request(jobs, target.config)
            self._queued = _Queued(jobs, request, clock.now())
            self.worker.queue(request, _tests(jobs))

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
            self._count_slow()
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

    def _note(self, reply: messages.Reply) -> None:
        """Count what the executor has counted; after the last reply of a process, begin anew."""
        for name, number in reply.counters.items():
            new = number - self._counters_seen.get(name, 0)
            if len(self._counter_names) < messages.MAX_NAMED:
                self._counter_names.add(name)
            named = name if name in self._counter_names else OTHER_COUNTERS
            self._counters[named] = self._counters.get(named, 0) + new
        self._counters_seen = reply.counters
        if reply.last:
            self._begin()
