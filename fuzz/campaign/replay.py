"""Runs one entry again as it was found, or in one given total order."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.textfile import Entry, dumps
from litmusfuzz.fuzz.campaign.judge import Judgement, Oracle, judge
from litmusfuzz.fuzz.executors import messages
from litmusfuzz.fuzz.executors.protocol import EventKey, Noise, noise_from
from litmusfuzz.fuzz.executors.worker import Died

if TYPE_CHECKING:
    from collections.abc import Iterable

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Outcome
    from litmusfuzz.fuzz.executors.protocol import Config
    from litmusfuzz.fuzz.executors.worker import Worker
    from litmusfuzz.oracles.allowed import Witness

DEFAULT_COUNT: Final = 20_000
_BATCH: Final = 4_096
_MAX_BATCH: Final = 1 << 17
_MAX_DEATHS: Final = 3
_SCHEDULE_S: Final = 10.0


@dataclass(slots=True)
class Replayed:
    """Result of a replay; `problem` says why the test could not be run at all.

    `refused` names the feature that the executor lacks. `schedule` says in words whether the
    recorded execution could be followed.
    """

    judgement: Judgement | None = None
    seconds: float = 0.0
    died: list[str] = field(default_factory=list)
    problem: str = ""
    refused: str = ""
    schedule: str = ""

    def cannot(self, worker: Worker, reply: messages.Reply) -> None:
        """Note why the executor does not run the test."""
        self.refused = reply.refused
        self.problem = f"{worker.executor}: {reply.refused or reply.unavailable}"


@dataclass(frozen=True, slots=True)
class Replay:
    """Options of a replay.

    Parameters
    ----------
    time_s : float
        Limit.
    count : int, optional
        Executions. If not given, a finding runs until it shows, and a plain test `DEFAULT_COUNT`
        times.
    seed : int, optional
        If not given, the seed with which the finding was seen.
    schedule : bool, optional
        True to follow the recorded execution only, False to ignore it. If not given, the recorded
        execution is followed first, and the test is run if the execution does not show the
        finding.
    """

    time_s: float
    count: int | None = None
    seed: int | None = None
    schedule: bool | None = None


def replay_entry(
    entry: Entry, oracle: Oracle, worker: Worker, config: Config, how: Replay
) -> Replayed:
    """Run an entry's test; a finding runs in a new process."""
    result = Replayed()
    try:
        noise = noise_from(entry.finding.noise) if entry.finding else Noise()
    except ValueError as error:
        result.problem = f"finding.noise: {error}"
        return result
    if entry.finding:
        worker.close()
    recorded = entry.finding.schedule if entry.finding else None
    if how.schedule and recorded is None:
        result.problem = "has no schedule to follow"
        return result
    start = time.monotonic()
    total: Counter[Outcome] = Counter()
    if recorded is not None and how.schedule is not False and how.count is None:
        _follow(entry, worker, config, result, total)
    if not (how.schedule or judge(oracle, total).forbidden or result.problem):
        _run(entry, oracle, worker, config, how, noise, result, total)
    result.judgement = judge(oracle, total)
    result.seconds = time.monotonic() - start
    return result


def _follow(
    entry: Entry, worker: Worker, config: Config, result: Replayed, total: Counter[Outcome]
) -> None:
    """Replay the recorded execution, choice by choice."""
    assert entry.finding is not None
    recorded = entry.finding.schedule
    assert recorded is not None
    request = messages.Request(
        test=dumps(Entry(entry.test)),
        task="replay",
        config=config.name,
        choices=list(recorded.choices),
    )
    reply = worker.ask(request, _SCHEDULE_S)
    if isinstance(reply, Died):
        result.died.append(reply.message)
    elif reply.refused == messages.NO_SCHEDULES:
        result.schedule = f"{worker.executor} follows no schedules"
    elif reply.refused or reply.unavailable:
        result.cannot(worker, reply)
    elif reply.diverged:
        result.schedule = f"its schedule cannot be followed any more: {reply.diverged}"
    else:
        total.update(messages.histogram(entry.test, reply))
        (outcome,) = total
        same = outcome == recorded.outcome
        result.schedule = f"replayed by its schedule: {'same' if same else 'another'} outcome"


def _run(
    entry: Entry,
    oracle: Oracle,
    worker: Worker,
    config: Config,
    how: Replay,
    noise: Noise,
    result: Replayed,
    total: Counter[Outcome],
) -> None:
    """Run until the finding shows, or as often as requested."""
    found = entry.finding
    count = how.count or (None if found else DEFAULT_COUNT)
    seed, batch = how.seed or 0, _BATCH
    if found and found.run_seed is not None and how.seed is None:
        # An executor that is deterministic by seed shows it in as many executions again.
        seed, batch = found.run_seed, min(max(_BATCH, found.executions), _MAX_BATCH)
    start = time.monotonic()
    text = dumps(Entry(entry.test))
    executions = 0
    for number in range(1 << 31):
        left = how.time_s - (time.monotonic() - start)
        done = executions >= count if count else judge(oracle, total).forbidden
        if done or left <= 0 or len(result.died) >= _MAX_DEATHS:
            return
        request = messages.Request(
            test=text,
            config=config.name,
            count=min(batch, count - executions) if count else batch,
            noise=asdict(noise),
            seed=seed + number,
        )
        reply = worker.ask(request, max(left, 10.0))
        batch = _BATCH
        if isinstance(reply, Died):
            result.died.append(reply.message)
        elif reply.refused or reply.unavailable:
            result.cannot(worker, reply)
            return
        else:
            seen = messages.histogram(entry.test, reply)
            executions += sum(seen.values())
            total.update(seen)


@dataclass(frozen=True, slots=True)
class Forced:
    """Outcome of a forced total order, or why there is none.

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
        test=dumps(Entry(test)),
        task="force",
        config=config.name,
        order=list(event_keys(order)),
        timeout_s=timeout_s,
    )
    # It ends by itself when its time is up, unless it hangs.
    reply = worker.ask(request, timeout_s + _SCHEDULE_S)
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
    """An oracle's total order in the form that an executor takes."""
    for event in order:
        yield EventKey(
            event.run,
            event.frame,
            event.node.name,
            event.access.value,
            event.variables[0],
            event.part,
        )
