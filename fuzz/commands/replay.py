"""Replays a litmus file with the settings of its finding, or forces one total order."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.textfile import plain_of
from litmusfuzz.fuzz.campaign.job import Job
from litmusfuzz.fuzz.executors import messages
from litmusfuzz.fuzz.executors.protocol import EventKey, Noise, noise_from
from litmusfuzz.fuzz.executors.table import executor_class, unsupported
from litmusfuzz.fuzz.executors.worker import Died
from litmusfuzz.fuzz.finding.judge import Judgement, Oracle, judge

if TYPE_CHECKING:
    from collections.abc import Iterable

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Outcome
    from litmusfuzz.corpus.textfile import Entry, Finding, Schedule
    from litmusfuzz.fuzz.executors.protocol import Config
    from litmusfuzz.fuzz.executors.worker import Worker
    from litmusfuzz.oracles.allowed import Witness

DEFAULT_COUNT: Final = 20_000
_BATCH: Final = 4_096
_MAX_BATCH: Final = 1 << 17
_SMALLEST_BATCH: Final = 32
_MAX_DEATHS: Final = 3
_MAX_DEATHS_OF_A_FINDING: Final = 8
"""Batches of a finding that end with the worker's death, at most. After each, the next has a
quarter of the executions: what a process had seen is lost with it, and a kernel that damages memory
may show a wrong outcome long before it ends its process. Of other tests, which are run to see
whether all is well, the death is the result."""
_SCHEDULE_S: Final = 10.0
GRACE_S: Final = 5.0
"""After its time, before a process that has not answered counts as hanging."""


@dataclass(slots=True)
class ReplayResult:
    """The result of a replay.

    `problem` is set if the test could not be run at all. `refused` names the feature that the
    executor lacks, if that was the reason. `schedule` says what happened when the recorded
    schedule was followed, or is empty. `drivers` has the devices on which the test ran, with their
    drivers. `interrupted` is True if Ctrl-C ended it: the judgement is on what was seen until then.
    """

    judgement: Judgement | None = None
    seconds: float = 0.0
    died: list[str] = field(default_factory=list)
    problem: str = ""
    refused: str = ""
    schedule: str = ""
    drivers: dict[str, str] = field(default_factory=dict)
    interrupted: bool = False
    tracebacks: list[str] = field(default_factory=list)
    """Of the exceptions that have ended processes."""
    hangs: bool = False
    """True once a process did not answer in time; it is the last one."""

    def record_death(self, died: Died, message: str) -> None:
        """Note that a process ended, or was killed, before it replied."""
        self.died.append(message)
        if died.traceback and died.traceback not in self.tracebacks:
            self.tracebacks.append(died.traceback)

    def record_refusal(self, worker: Worker, test: LitmusTest, reply: messages.Reply) -> None:
        """Note why the executor does not run the test."""
        self.refused = reply.refused
        self.problem = why_not_run(worker, test, reply)


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """Options of a replay.

    Parameters
    ----------
    time_s : float
        Time limit.
    count : int, optional
        Number of executions. If None, a finding runs until its forbidden outcome shows, and a
        test without a finding runs `DEFAULT_COUNT` times.
    seed : int, optional
        If None, the seed recorded in the finding.
    schedule : bool, optional
        True: only follow the recorded schedule. False: never follow it. None: follow it first
        (unless `count` is given), and if it does not show the forbidden outcome, run the test
        normally.
    keeps_partial : bool
        True: what was seen until Ctrl-C is the result. False: it raises `KeyboardInterrupt`.
    """

    time_s: float
    count: int | None = None
    seed: int | None = None
    schedule: bool | None = None
    keeps_partial: bool = False


def replay_entry(
    entry: Entry, oracle: Oracle, worker: Worker, config: Config, options: ReplayOptions
) -> ReplayResult:
    """Execute the entry's test. A finding runs in a fresh worker process."""
    result = ReplayResult()
    try:
        noise = noise_from(entry.finding.noise) if entry.finding else Noise()
    except ValueError as error:
        result.problem = f"finding.noise: {error}"
        return result
    if entry.finding:
        worker.close()
    recorded = entry.finding.schedule if entry.finding else None
    if options.schedule and recorded is None:
        result.problem = "has no schedule to follow"
        return result
    replaying = _Replaying(entry.test, worker, config, result, options.time_s)
    follow = options.schedule or (options.schedule is None and options.count is None)
    try:
        if recorded is not None and follow:
            replaying.follow(recorded)
        if not (options.schedule or judge(oracle, replaying.total).forbidden or result.problem):
            replaying.run(entry.finding, oracle, options, noise)
    except KeyboardInterrupt:
        if not options.keeps_partial:
            raise
        result.interrupted = True
        worker.close()  # it may still run the last job
    result.judgement = judge(oracle, replaying.total)
    result.seconds = replaying.seconds
    return result


class _Replaying:
    """The replay of one test on one executor, within `time_s` seconds and a grace.

    A process that starts takes none of that time: it may have to import a framework.
    """

    def __init__(
        self,
        test: LitmusTest,
        worker: Worker,
        config: Config,
        result: ReplayResult,
        time_s: float,
    ) -> None:
        self.test = test
        self.worker = worker
        self.config = config
        self.result = result
        self.total: Counter[Outcome] = Counter()
        self.time_s = time_s
        self._began = time.monotonic()
        self._starting_s = 0.0
        self._started = False

    @property
    def seconds(self) -> float:
        """Time spent, without that in which processes started."""
        return time.monotonic() - self._began - self._starting_s

    @property
    def left_s(self) -> float:
        """Time left; negative in the grace."""
        return self.time_s - self.seconds

    def ask(self, request: messages.Request, limit_s: float) -> messages.Reply | None:
        """The reply to a request; None if there is none, for a reason that the result then has.

        It is due within `limit_s` seconds, or the time that is left, and a grace.
        """
        title = f"{self.worker.executor}/{self.config.name}"
        if not self._started and not self._start(title):
            return None
        within_s = max(0.0, min(limit_s, self.left_s))
        reply = self.worker.ask(request, within_s + GRACE_S, self.test)
        if isinstance(reply, Died):
            limits = f"{round(within_s, 1):g} s and a grace of {GRACE_S:g} s"
            late = f"{title} did not answer within {limits}"
            self._note(reply, late if reply.timed_out else reply.message)
            return None
        self._started = not reply.last
        unfollowed = reply.refused == messages.NO_SCHEDULES
        if (reply.refused and not unfollowed) or reply.unavailable:
            self.result.record_refusal(self.worker, self.test, reply)
            return None
        self.result.drivers = reply.drivers or self.result.drivers
        return reply

    def _start(self, title: str) -> bool:
        """Let the process start; true if it can run the configuration."""
        asked = time.monotonic()
        reply = self.worker.ask(messages.Request(config=self.config.name), GRACE_S)
        self._starting_s += time.monotonic() - asked
        if isinstance(reply, Died):
            self._note(reply, f"{title} does not start: {reply.message}")
        elif reply.unavailable:
            self.result.record_refusal(self.worker, self.test, reply)
        else:
            self._started = True
        return self._started

    def _note(self, died: Died, message: str) -> None:
        """Note that the process ended, or was killed since it did not answer in time."""
        self._started = False
        self.result.hangs |= died.timed_out
        self.result.record_death(died, message)

    def follow(self, recorded: Schedule) -> None:
        """Follow the recorded schedule, choice by choice or event by event."""
        job = Job(self.test, recorded=recorded)
        reply = self.ask(job.request(self.config), _SCHEDULE_S)
        if reply is None:
            return
        if reply.refused:
            self.result.schedule = f"{self.worker.executor} follows no schedules"
        elif reply.diverged:
            why = f"its schedule cannot be followed any more: {reply.diverged}"
            self.result.schedule = why
        else:
            self.total.update(messages.histogram(self.test, reply))
            (outcome,) = self.total
            same = outcome == recorded.outcome
            what = "same" if same else "another"
            self.result.schedule = f"replayed by its schedule: {what} outcome"

    def run(
        self, found: Finding | None, oracle: Oracle, options: ReplayOptions, noise: Noise
    ) -> None:
        """Execute the test until a forbidden outcome shows, or as often as requested."""
        count = options.count or (None if found else DEFAULT_COUNT)
        seed, batch = options.seed or 0, _BATCH
        if found and found.run_seed is not None and options.seed is None:
            # An executor that is deterministic for a seed shows the outcome again within the same
            # number of executions.
            seed, batch = found.run_seed, min(max(_BATCH, found.executions), _MAX_BATCH)
        executions, largest = 0, _BATCH
        most_deaths = _MAX_DEATHS_OF_A_FINDING if found else _MAX_DEATHS
        for number in range(1 << 31):
            done = executions >= count if count else judge(oracle, self.total).forbidden
            result = self.result
            if done or self.left_s <= 0 or result.hangs or len(result.died) >= most_deaths:
                return
            step = min(batch, count - executions) if count else batch
            job = Job(self.test, step, noise, seed + number)
            reply = self.ask(job.request(self.config), self.left_s)
            if result.problem:
                return
            if reply is None:
                if found:
                    largest = max(_SMALLEST_BATCH, min(step, largest) // 4)
            else:
                seen = messages.histogram(self.test, reply)
                executions += sum(seen.values())
                self.total.update(seen)
            batch = largest


@dataclass(frozen=True, slots=True)
class Forced:
    """Outcome of a forced total order, or why there is none.

    `diverged` says why the executor could not follow the order, or that its worker died.
    `problem` is set if the executor cannot be forced at all.
    """

    outcome: Outcome | None = None
    diverged: str = ""
    problem: str = ""


def force(
    test: LitmusTest, worker: Worker, config: Config, order: Witness, timeout_s: float
) -> Forced:
    """Make an executor follow exactly this order, within `timeout_s` seconds."""
    request = messages.Request(
        test=plain_of(test),
        task="force",
        config=config.name,
        order=list(event_keys(order)),
        timeout_s=timeout_s,
    )
    # The worker stops by itself after `timeout_s`, unless it hangs.
    reply: messages.Reply | Died = messages.Reply()
    if worker.pid is None:  # its start does not count
        reply = worker.ask(messages.Request(config=config.name), GRACE_S)
    if isinstance(reply, messages.Reply) and not reply.unavailable:
        reply = worker.ask(request, timeout_s + GRACE_S, test)
    if isinstance(reply, Died):
        why = f"the worker died: {reply.message}"
        if reply.timed_out:
            limits = f"{timeout_s:g} s and a grace of {GRACE_S:g} s"
            why = f"{worker.executor}/{config.name} did not answer within {limits}"
        return Forced(diverged="\n".join(filter(None, [why, reply.traceback])))
    if reply.refused == messages.NO_SCHEDULES:
        return Forced(problem=f"{worker.executor} cannot be made to follow an order")
    if reply.refused or reply.unavailable:
        return Forced(problem=why_not_run(worker, test, reply))
    if reply.diverged:
        return Forced(diverged=reply.diverged)
    (outcome,) = messages.histogram(test, reply)
    return Forced(outcome)


def why_not_run(worker: Worker, test: LitmusTest, reply: messages.Reply) -> str:
    """Why an executor does not run a test, in a line; and which executors can."""
    name = worker.executor
    lacking = executor_class(name).support.lacking(test) if reply.refused else ()
    why = unsupported(name, test, lacking) if lacking else reply.refused or reply.unavailable
    return f"{name}: {why}"


def event_keys(order: Witness) -> Iterable[EventKey]:
    """Convert an oracle's total order to the event keys that executors accept."""
    for event in order:
        yield EventKey(
            event.run,
            event.frame,
            event.node.name,
            event.access.value,
            event.variables[0],
            event.part,
        )
