"""Run one entry again, as it was found."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Final

from corpus.textfile import Entry, dumps
from fuzz.campaign.judge import Judgement, judge
from fuzz.executors import wire
from fuzz.executors.process import Died, Worker
from fuzz.executors.protocol import Noise, noise_from

if TYPE_CHECKING:
    from corpus.outcome import Outcome
    from fuzz.executors.protocol import Config
    from oracles.allowed import AllowedSet

DEFAULT_COUNT: Final = 20_000
_BATCH: Final = 4_096
_MAX_DEATHS: Final = 3


@dataclass(slots=True)
class Replayed:
    """What a replay came to; `problem` if it could not be run at all."""

    judgement: Judgement | None = None
    seconds: float = 0.0
    died: list[str] = field(default_factory=list)
    problem: str = ""


def replay_entry(
    entry: Entry,
    allowed: AllowedSet,
    executor: str,
    config: Config,
    *,
    time_s: float,
    count: int | None,
    seed: int,
) -> Replayed:
    """Execute the entry's test in a new worker process.

    A finding runs until one of its kind shows, a plain test `count` times
    (`DEFAULT_COUNT` if not given); both at most `time_s` seconds.

    Raises
    ------
    FileError
        Never: the entry was loaded.
    """
    result = Replayed()
    try:
        noise = noise_from(entry.finding.noise) if entry.finding else Noise()
    except ValueError as error:
        result.problem = f"finding.noise: {error}"
        return result
    worker = Worker(executor)
    total: Counter[Outcome] = Counter()
    start = time.monotonic()
    text = dumps(Entry(entry.test))
    batch = 0
    try:
        while True:
            left = time_s - (time.monotonic() - start)
            executions = sum(total.values())
            judgement = judge(allowed, total)
            enough = executions >= (count or (1 if entry.finding else DEFAULT_COUNT))
            if entry.finding and count is None and not judgement.forbidden:
                enough = False
            if enough or left <= 0 or len(result.died) >= _MAX_DEATHS:
                break
            wanted = min(
                _BATCH, (count or DEFAULT_COUNT) - executions if not entry.finding else _BATCH
            )
            request = wire.Request(
                test=text,
                config=config.name,
                count=max(1, wanted),
                noise=asdict(noise),
                seed=seed + batch,
            )
            batch += 1
            reply = worker.ask(request, max(left, 10.0))
            if isinstance(reply, Died):
                result.died.append(reply.message)
            elif reply.refused or reply.unavailable:
                result.problem = f"{executor}: {reply.refused or reply.unavailable}"
                return result
            else:
                total.update(wire.histogram(entry.test, reply))
    finally:
        worker.close()
    result.judgement = judge(allowed, total)
    result.seconds = time.monotonic() - start
    return result
