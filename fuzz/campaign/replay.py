"""Run one entry again, as it was found."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Final

from corpus.textfile import Entry, dumps
from fuzz.campaign.judge import Judgement, Oracle, judge
from fuzz.executors import wire
from fuzz.executors.process import Died
from fuzz.executors.protocol import Noise, noise_from

if TYPE_CHECKING:
    from corpus.outcome import Outcome
    from fuzz.executors.process import Worker
    from fuzz.executors.protocol import Config

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
    oracle: Oracle,
    worker: Worker,
    config: Config,
    *,
    time_s: float,
    count: int | None,
    seed: int,
) -> Replayed:
    """Execute the entry's test.

    A finding runs in a process that ran nothing before, until an outcome of
    its kind shows; a plain test `count` times (`DEFAULT_COUNT` if not given).
    Both take at most `time_s` seconds.
    """
    result = Replayed()
    try:
        noise = noise_from(entry.finding.noise) if entry.finding else Noise()
    except ValueError as error:
        result.problem = f"finding.noise: {error}"
        return result
    if entry.finding:
        worker.close()
    if count is None and not entry.finding:
        count = DEFAULT_COUNT
    total: Counter[Outcome] = Counter()
    start = time.monotonic()
    text = dumps(Entry(entry.test))
    for batch in range(1 << 31):
        left = time_s - (time.monotonic() - start)
        executions = total.total()
        done = executions >= count if count else judge(oracle, total).forbidden
        if done or left <= 0 or len(result.died) >= _MAX_DEATHS:
            break
        request = wire.Request(
            test=text,
            config=config.name,
            count=min(_BATCH, count - executions) if count else _BATCH,
            noise=asdict(noise),
            seed=seed + batch,
        )
        reply = worker.ask(request, max(left, 10.0))
        if isinstance(reply, Died):
            result.died.append(reply.message)
        elif reply.refused or reply.unavailable:
            result.problem = f"{worker.executor}: {reply.refused or reply.unavailable}"
            return result
        else:
            total.update(wire.histogram(entry.test, reply))
    result.judgement = judge(oracle, total)
    result.seconds = time.monotonic() - start
    return result
