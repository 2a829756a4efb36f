"""A job without an answer in time hangs, or is slow: only what hangs is reported as timed out."""

from __future__ import annotations

import asyncio
import math
import random
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from msgspec import structs

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.outcome import Outcome
from litmusfuzz.corpus.textfile import Schedule
from litmusfuzz.fuzz.campaign import clock
from litmusfuzz.fuzz.campaign.counters import SLOW
from litmusfuzz.fuzz.campaign.job import Job, Result, is_slow
from litmusfuzz.fuzz.campaign.recording import ScheduleRecorder
from litmusfuzz.fuzz.campaign.settings import shallow
from litmusfuzz.fuzz.campaign.slots import Slot
from litmusfuzz.fuzz.campaign.tuning import HANG_TIMEOUT_S, JOB_TIMEOUT_S
from litmusfuzz.fuzz.executors import messages
from litmusfuzz.fuzz.executors.protocol import Noise
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.fuzz.executors.worker import Died

if TYPE_CHECKING:
    from collections.abc import Callable

MANY, FEW = 3072, 16
TEST = litmus("X=1 || r0=X")
SHOWN = Outcome.of(TEST, {"r0": (1,), "X": (1,)})
DAMAGING = "AssignVariableOp"
CUT_SHORT = "no answer in 60 s; the campaign ended before a longer try"


CLOCK = SimpleNamespace(now=0.0)


@pytest.fixture(autouse=True)
def _no_time_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Except in a `TimedWorker`."""
    monkeypatch.setattr(clock, "now", lambda: CLOCK.now)


@dataclass
class TimedWorker:
    """A worker whose requests take as long as a test says, on `CLOCK`.

    `takes_s` gets the executions of a request, and how many requests were sent before it. A
    negative number of seconds is a crash. `counters` are those of each reply. From request number
    `cancelled` on, the campaign ends while the worker works.
    """

    takes_s: Callable[[int, int], float]
    asked: list[tuple[int, float]] = field(default_factory=list)
    copies: list[int] = field(default_factory=list)
    counters: dict[str, float] = field(default_factory=dict)
    cancelled: float = math.inf
    closed: int = 0
    started: int = 0

    async def run(  # noqa: D102
        self, request: messages.Request, timeout_s: float, test: object
    ) -> messages.Reply | Died:
        if test is None:  # it starts
            self.started += 1
            return messages.Reply()
        if len(self.asked) >= self.cancelled:
            raise asyncio.CancelledError
        seconds = self.takes_s(request.count, len(self.asked))
        self.asked.append((request.count, timeout_s))
        self.copies.append(request.noise.get("copies", 0))
        if seconds < 0:
            return Died("signal 6", "", timed_out=False)
        CLOCK.now += min(seconds, timeout_s)
        if seconds > timeout_s:
            return Died(f"no answer in {timeout_s:g} s", "", timed_out=True)
        rows = messages.rows({SHOWN: max(1, request.count)})
        packed = [rows for _ in request.pack]
        return messages.Reply(
            rows=[] if packed else rows, packed=packed, seconds=seconds, counters=self.counters
        )

    def close(self) -> None:  # noqa: D102
        self.closed += 1


@dataclass
class Timed:
    """A slot on such a worker, and the deaths that it reports."""

    takes_s: Callable[[int, int], float]
    died: list[Died] = field(default_factory=list)
    damaging_ops: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        config = configuration("mutant/stale-reads")
        executor = SimpleNamespace(name="timed", damaging_ops=self.damaging_ops, drivers={})
        self.worker = TimedWorker(self.takes_s)
        self.slot = Slot(
            self.worker,
            executor,
            SimpleNamespace(config=config),
            on_death=lambda _, job, died: self.died.append(died),
        )

    def run(self, job: Job) -> Result:
        """What a job comes to."""
        return asyncio.run(self.slot.run(job))


def test_a_slow_job_is_refused_for_lack_of_time() -> None:
    """Thousands of executions with large tensors, as a reduction asks for."""
    timed = Timed(lambda count, _: 0.1 * count)
    result = timed.run(Job(TEST, MANY, Noise(copies=8), 1))
    assert timed.worker.asked == [(MANY, JOB_TIMEOUT_S), (FEW, HANG_TIMEOUT_S)]
    assert timed.worker.copies == [8, 1]
    assert is_slow(result)
    assert isinstance(result, messages.Reply)
    assert result.refused == "time (3072 executions take more than 300 s)"
    assert timed.died == []
    assert timed.slot.take_counters() == {SLOW: 1}
    assert timed.slot.executions == 0


def test_what_hangs_in_a_few_executions_is_reported() -> None:
    timed = Timed(lambda *_: math.inf)
    result = timed.run(Job(TEST, MANY))
    assert timed.worker.asked == [(MANY, JOB_TIMEOUT_S), (FEW, HANG_TIMEOUT_S)]
    assert timed.died == [result]
    assert (timed.died[0].message, timed.died[0].timed_out) == (
        "no answer in 60 s, no answer in 300 s in a fresh process",
        True,
    )
    assert timed.slot.take_counters() == {}


def test_what_hangs_rarely_is_reported() -> None:
    """A few executions end too soon for the job to be slow."""
    timed = Timed(lambda count, _: math.inf if count > FEW else 0.1)
    result = timed.run(Job(TEST, MANY))
    assert [count for count, _ in timed.worker.asked] == [MANY, FEW, MANY]
    assert [limit for _, limit in timed.worker.asked] == [60, HANG_TIMEOUT_S, HANG_TIMEOUT_S]
    assert timed.died == [result]
    assert timed.died[0].timed_out


def test_building_takes_no_longer_for_more_executions() -> None:
    """A compiled test that hangs rarely: a few executions take little but the compiler's time."""
    timed = Timed(lambda count, _: math.inf if count > FEW else 3.0)
    timed.worker.counters = {"building_s": 2.9, "running_s": 0.1}
    result = timed.run(Job(TEST, MANY, Noise(copies=8)))
    assert [count for count, _ in timed.worker.asked] == [MANY, FEW, MANY]
    assert timed.died == [result]


@pytest.mark.parametrize(
    ("job", "few", "counters", "seconds"),
    [
        (Job(TEST, 320, Noise(copies=1)), 16, {}, 100.0),
        (Job(TEST, 320, Noise(copies=1)), 16, {"running_s": 1.0}, 24.0),
        (Job(TEST, 320, Noise(copies=8)), 16, {"running_s": 1.0}, 52.0),
        (Job(TEST, 320, Noise(copies=1)), 16, {"running_s": 6.0}, 100.0),
        (Job(TEST, 4, Noise(copies=8)), 4, {"running_s": 1.0}, 33.0),
    ],
)
def test_only_running_takes_longer_with_more_executions(
    job: Job, few: int, counters: dict[str, float], seconds: float
) -> None:
    assert job.few.count == few
    reply = messages.Reply(seconds=5.0, counters=counters)
    assert job.expected_s(job.few, reply) == pytest.approx(seconds)


@pytest.mark.parametrize("cancelled", [1, 2])
def test_a_hang_is_reported_if_the_campaign_ends_before_a_longer_try(cancelled: int) -> None:
    timed = Timed(lambda count, _: math.inf if count > FEW else 0.1)
    timed.worker.cancelled, timed.slot.jobs_run = cancelled, 6
    seen = []
    timed.slot.on_death = lambda slot, job, died: seen.append((job, died, slot.jobs_run))
    job = Job(TEST, MANY)
    with pytest.raises(asyncio.CancelledError):
        timed.run(job)
    assert len(timed.worker.asked) == cancelled
    assert seen == [(job, Died(CUT_SHORT, "", timed_out=True), 7)]


def test_a_job_that_ends_with_the_campaign_is_no_hang() -> None:
    timed = Timed(lambda *_: math.inf)
    timed.worker.cancelled = 0
    with pytest.raises(asyncio.CancelledError):
        timed.run(Job(TEST, MANY))
    assert timed.died == []


def test_a_job_that_was_held_up_once_is_run_again() -> None:
    timed = Timed(lambda count, before: 1e-3 * count if before else math.inf)
    assert timed.run(Job(TEST, MANY)) == {SHOWN: MANY}
    assert [count for count, _ in timed.worker.asked] == [MANY, FEW, MANY]
    assert timed.died == []
    assert timed.slot.take_counters() == {SLOW: 1}


def test_a_late_answer_to_the_first_executions_counts() -> None:
    """These are few: the same job, with a later limit."""
    timed = Timed(lambda *_: 100.0)
    count, noise = shallow(Noise())
    assert timed.run(Job(TEST, count, noise, 1)) == {SHOWN: FEW}
    assert timed.worker.asked == [(FEW, JOB_TIMEOUT_S), (FEW, HANG_TIMEOUT_S)]
    assert timed.died == []
    assert timed.slot.take_counters() == {SLOW: 1}
    assert timed.slot.seconds == JOB_TIMEOUT_S + 100.0


def test_a_process_that_crashes_then_throws_no_doubt_on_what_another_showed() -> None:
    timed = Timed(lambda _, before: -1 if before else math.inf)
    timed.slot.shown, timed.slot.jobs_run = [None], 7
    seen = []
    timed.slot.on_death = lambda slot, job, died: seen.append((died, slot.shown, slot.jobs_run))
    result = timed.run(Job(TEST, MANY))
    assert seen == [(Died("signal 6", "", timed_out=False), [], 1)]
    assert result == seen[0][0]


@pytest.mark.parametrize(
    "job", [Job(TEST, MANY, wanted=(SHOWN,)), Job(TEST, 1, recorded=Schedule(SHOWN))]
)
def test_a_job_with_a_schedule_is_asked_for_as_a_whole(job: Job) -> None:
    timed = Timed(lambda *_: 100.0)
    timed.run(job)
    assert timed.worker.asked == [(job.count, JOB_TIMEOUT_S), (job.count, HANG_TIMEOUT_S)]
    assert timed.slot.take_counters() == {SLOW: 1}


@pytest.mark.parametrize(("refused", "schedulable"), [("time (60 s)", True), ("schedules", False)])
def test_a_slow_recording_does_not_say_that_nothing_is_recorded(
    refused: str, *, schedulable: bool
) -> None:
    async def run(job: Job) -> Result:
        return messages.Reply(refused=refused)

    best = SimpleNamespace(
        test=TEST,
        noise=Noise(),
        judgement=SimpleNamespace(forbidden=((SHOWN, 1),)),
        target=SimpleNamespace(
            title="native/controlled_split",
            config=configuration("native", "controlled_split"),
            explorable=False,
        ),
    )
    slot = SimpleNamespace(run=run, executor=SimpleNamespace(name="native"))
    recorder = ScheduleRecorder()
    asyncio.run(recorder.record(slot, best, random.Random(1)))
    assert (best.target.title not in recorder.unschedulable) is schedulable


def test_a_process_that_a_slow_test_has_damaged_runs_nothing_more() -> None:
    timed = Timed(lambda *_: 100.0, damaging_ops=frozenset({DAMAGING}))
    timed.run(Job(TEST, *shallow(Noise())))
    closed = timed.worker.closed
    timed.run(Job(TEST, *shallow(Noise())))
    assert timed.worker.closed > closed + 1  # before the second job, and again once it is late


@pytest.mark.parametrize("held_up", [1, 99])
def test_a_pack_of_which_no_test_hangs_alone_is_asked_for_again(held_up: int) -> None:
    """Alone its tests have no count of their own here: only a pack takes long."""
    jobs = [Job(TEST, FEW, seed=1), Job(TEST, FEW, seed=2)]
    timed = Timed(lambda *_: 0.0)
    honest, packs = timed.worker.run, []

    async def run(request, timeout_s, test):
        if request.pack:
            packs.append(timeout_s)
            if len(packs) <= held_up:
                return Died(f"no answer in {timeout_s:g} s", "", timed_out=True)
        return await honest(request, timeout_s, test)

    timed.worker.run = run
    assert asyncio.run(timed.slot.run_pack(jobs)) == [{SHOWN: FEW}] * 2
    assert packs == [JOB_TIMEOUT_S, HANG_TIMEOUT_S]
    assert timed.slot.jobs_run == (2 if held_up == 1 else 0)
    assert timed.slot.take_counters() == ({SLOW: 1} if held_up == 1 else {})
    assert [each.message for each in timed.died] == (
        []
        if held_up == 1
        else [
            "in a pack of 2 tests, none of which does so alone: no answer in 60 s, "
            "no answer in 300 s in a fresh process"
        ]
    )


def test_a_pack_whose_tests_take_long_alone_is_slow() -> None:
    jobs = [Job(TEST, FEW, seed=seed) for seed in range(8)]
    timed = Timed(lambda _, before: 40.0 if before else math.inf)
    assert asyncio.run(timed.slot.run_pack(jobs)) == [{SHOWN: FEW}] * 8
    assert [limit for _, limit in timed.worker.asked] == [JOB_TIMEOUT_S] * 9
    assert timed.died == []
    assert timed.slot.take_counters() == {SLOW: 1}
    assert timed.slot.seconds == JOB_TIMEOUT_S + 8 * 40.0


@pytest.mark.parametrize(
    ("takes_s", "cancelled", "where"),
    [
        (lambda _, before: 1.0 if before else math.inf, 1, "in a pack of 2 tests: "),
        (lambda _, before: 1.0 if before else math.inf, 3, "in a pack of 2 tests: "),
        (lambda *_: math.inf, 2, ""),  # the first of them, alone
    ],
)
def test_a_pack_is_reported_once_if_the_campaign_ends(
    takes_s: Callable[[int, int], float], cancelled: int, where: str
) -> None:
    timed = Timed(takes_s)
    timed.worker.cancelled = cancelled
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(timed.slot.run_pack([Job(TEST, FEW, seed=1), Job(TEST, FEW, seed=2)]))
    assert len(timed.worker.asked) == cancelled
    assert timed.died == [Died(where + CUT_SHORT, "", timed_out=True)]


@pytest.mark.parametrize(("seconds", "died"), [(100.0, 0), (math.inf, 1)])
def test_clusters_that_are_slow_to_make_are_no_hang(seconds: float, died: int) -> None:
    timed = Timed(lambda *_: seconds)
    assert asyncio.run(timed.slot.clusters_of(TEST)) == ()
    assert [limit for _, limit in timed.worker.asked] == [JOB_TIMEOUT_S, HANG_TIMEOUT_S]
    assert timed.worker.started == 1  # before the late try: the start does not count
    late = "no answer in 60 s, no answer in 300 s in a fresh process"
    assert [each.message for each in timed.died] == [late] * died
    assert timed.slot.take_counters() == ({} if died else {SLOW: 1})


def test_clusters_without_an_answer_are_reported_if_the_campaign_ends() -> None:
    timed = Timed(lambda *_: math.inf)
    timed.worker.cancelled = 1
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(timed.slot.clusters_of(TEST))
    assert timed.died == [Died(CUT_SHORT, "", timed_out=True)]


def test_a_slow_reply_keeps_what_else_it_says() -> None:
    """Counters and the last request of a process count in any case."""
    timed = Timed(lambda count, _: 1.0 * count)
    honest = timed.worker.run

    async def run(request, timeout_s, test):
        reply = await honest(request, timeout_s, test)
        if isinstance(reply, messages.Reply) and test is not None:
            reply = structs.replace(reply, counters={"graphs": 3}, last=True)
        return reply

    timed.worker.run = run
    assert is_slow(timed.run(Job(TEST, MANY)))
    assert timed.slot.jobs_run == 0
    assert timed.slot.take_counters() == {"graphs": 3, SLOW: 1}
