"""Replays a litmus file with the settings of its finding, or forces one total order."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.textfile import Entry, plain_of
from litmusfuzz.fuzz.campaign.judge import Judgement, Oracle, judge
from litmusfuzz.fuzz.campaign.slots import Job
from litmusfuzz.fuzz.executors import messages
from litmusfuzz.fuzz.executors.protocol import EventKey, Noise, noise_from
from litmusfuzz.fuzz.executors.worker import Died

if TYPE_CHECKING:
    from collections.abc import Iterable

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Outcome
    from litmusfuzz.corpus.textfile import Schedule
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

    def record_refusal(self, worker: Worker, reply: messages.Reply) -> None:
        """Note why the executor does not run the test."""
        self.refused = reply.refused
        self.problem = f"{worker.executor}: {reply.refused or reply.unavailable}"


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
    start = time.monotonic()
    total: Counter[Outcome] = Counter()
    follow = options.schedule or (options.schedule is None and options.count is None)
    try:
        if recorded is not None and follow:
            _follow(entry.test, recorded, worker, config, result, total)
        if not (options.schedule or judge(oracle, total).forbidden or result.problem):
            _run(entry, oracle, worker, config, options, noise, result, total)
    except KeyboardInterrupt:
        if not options.keeps_partial:
            raise
        result.interrupted = True
        worker.close()  # it may still run the last job
    result.judgement = judge(oracle, total)
    result.seconds = time.monotonic() - start
    return result


def _follow(
    test: LitmusTest,
    recorded: Schedule,
    worker: Worker,
    config: Config,
    result: ReplayResult,
    total: Counter[Outcome],
) -> None:
    """Follow the recorded schedule, choice by choice."""
    job = Job(test, choices=recorded.choices)
    reply = worker.ask(job.request(config), _SCHEDULE_S, test)
    if isinstance(reply, Died):
        result.died.append(reply.message)
    elif reply.refused == messages.NO_SCHEDULES:
        result.schedule = f"{worker.executor} follows no schedules"
    elif reply.refused or reply.unavailable:
        result.record_refusal(worker, reply)
    elif reply.diverged:
        result.schedule = f"its schedule cannot be followed any more: {reply.diverged}"
    else:
        result.drivers = reply.drivers
        total.update(messages.histogram(test, reply))
        (outcome,) = total
        same = outcome == recorded.outcome
        result.schedule = f"replayed by its schedule: {'same' if same else 'another'} outcome"


def _run(
    entry: Entry,
    oracle: Oracle,
    worker: Worker,
    config: Config,
    options: ReplayOptions,
    noise: Noise,
    result: ReplayResult,
    total: Counter[Outcome],
) -> None:
    """Execute the test until a forbidden outcome shows, or as often as requested."""
    found = entry.finding
    count = options.count or (None if found else DEFAULT_COUNT)
    seed, batch = options.seed or 0, _BATCH
    if found and found.run_seed is not None and options.seed is None:
        # An executor that is deterministic for a seed shows the outcome again within the same
        # number of executions.
        seed, batch = found.run_seed, min(max(_BATCH, found.executions), _MAX_BATCH)
    start = time.monotonic()
    executions, largest = 0, _BATCH
    most_deaths = _MAX_DEATHS_OF_A_FINDING if found else _MAX_DEATHS
    for number in range(1 << 31):
        left = options.time_s - (time.monotonic() - start)
        done = executions >= count if count else judge(oracle, total).forbidden
        if done or left <= 0 or len(result.died) >= most_deaths:
            return
        step = min(batch, count - executions) if count else batch
        job = Job(entry.test, step, noise, seed + number)
        reply = worker.ask(job.request(config), max(left, 10.0), entry.test)
        if isinstance(reply, Died):
            result.died.append(reply.message)
            if found:
                largest = max(_SMALLEST_BATCH, min(step, largest) // 4)
        elif reply.refused or reply.unavailable:
            result.record_refusal(worker, reply)
            return
        else:
            result.drivers = reply.drivers
            seen = messages.histogram(entry.test, reply)
            executions += sum(seen.values())
            total.update(seen)
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
    reply = worker.ask(request, timeout_s + _SCHEDULE_S, test)
    if isinstance(reply, Died):
        return Forced(diverged=f"the worker died: {reply.message}")
    if reply.refused == messages.NO_SCHEDULES:
        return Forced(problem=f"{worker.executor} cannot be made to follow an order")
    if reply.refused or reply.unavailable:
        return Forced(problem=f"{worker.executor}: {reply.refused or reply.unavailable}")
    if reply.diverged:
        return Forced(diverged=reply.diverged)
    (outcome,) = messages.histogram(test, reply)
    return Forced(outcome)


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
