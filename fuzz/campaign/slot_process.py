"""The process of a worker slot: asked one job after another, and replaced when it has to be.

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
from typing import TYPE_CHECKING, Any, Final

from msgspec import structs

from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.campaign import clock
from litmusfuzz.fuzz.campaign.counters import Counters
from litmusfuzz.fuzz.campaign.job import NO_TIME, Job, SentAhead, request_of, tests_of
from litmusfuzz.fuzz.campaign.tuning import HANG_TIMEOUT_S, JOB_TIMEOUT_S
from litmusfuzz.fuzz.executors import messages
from litmusfuzz.fuzz.executors.process_log import in_a_line
from litmusfuzz.fuzz.executors.table import CANARY
from litmusfuzz.fuzz.executors.worker import Died, Worker
from litmusfuzz.reports.events import DOES_NOT_START

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from litmusfuzz.fuzz.campaign.campaign_executor import CampaignExecutor
    from litmusfuzz.fuzz.campaign.candidate import Candidate
    from litmusfuzz.fuzz.campaign.target import Target
    from litmusfuzz.fuzz.executors.protocol import Config

CUT_SHORT: Final = "the campaign ended before a longer try"


@dataclass(slots=True, eq=False)
class SlotProcess:
    """A worker's process, and the target that it is in.

    Attributes
    ----------
    on_death : callable
        Called with the slot, the job and the death of a worker, before the process is replaced.
    jobs_run : int
        Jobs of the present process.
    shown : list of Candidate
        What the present process has shown; believed only in a fresh process if it crashes.
    counters : Counters
    """

    worker: Worker
    executor: CampaignExecutor
    target: Target
    on_death: Callable[[Any, Job, Died], None]
    jobs_run: int = 0
    shown: list[Candidate] = field(default_factory=list)
    counters: Counters = field(default_factory=Counters)
    _damaged: bool = False
    _deaths: int = 0
    """Deaths reported so far."""
    _last: Job | None = None
    """The last job of the present process."""
    _ahead: SentAhead | None = None
    _begun_at: float = 0.0
    _answered_at: float = 0.0
    _checked: set[str] = field(default_factory=set)

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
        self.counters.begin_process()

    def take_counters(self) -> dict[str, float]:
        """What its executor has counted since the last call."""
        return self.counters.take()

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
        ahead, self._ahead = self._ahead, None
        if ahead is not None and ahead.holds(jobs):
            request = ahead.request
            self._begun_at = max(ahead.at, self._answered_at)
        else:
            request = request_of(jobs, self.config)
            self._begun_at = clock.now()
        reply = await self.worker.run(request, timeout_s or JOB_TIMEOUT_S, tests_of(jobs))
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
            self.counters.note_slow()
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

    def _note(self, reply: messages.Reply) -> None:
        """Count what the executor has counted; after the last reply of a process, begin anew."""
        self.counters.note(reply.counters)
        if reply.last:
            self._begin()
