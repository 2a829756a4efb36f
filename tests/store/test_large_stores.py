"""Stores of a stranger's with many of everything: reading them takes time in proportion."""

from __future__ import annotations

import time
from collections import Counter
from random import Random
from typing import TYPE_CHECKING

import pytest
from helpers_events import STARTED, died, executed, started

from litmusfuzz.fuzz.finding.worker_deaths import group_deaths
from litmusfuzz.reports.events import (
    Configured,
    Progress,
    ReductionStarted,
    ShardEnded,
    ShardPlanned,
    encode,
)
from litmusfuzz.reports.fold import Fold
from litmusfuzz.reports.outputs import write_all

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from helpers_events import Stream

    from litmusfuzz.reports.events import WorkerDied

SECONDS_EACH_MIB = 1.0
"""Of events. Those below take 0.2 to 0.3, and took more than 1.5 before each was repaired."""
CONTROLLED = Configured("native", "controlled", "rfc", "rfc", "native/rfc")


def in_time(does: Callable[[], object], limit_s: float) -> None:
    """Fail if something takes too long: the processor's time, the less of two measurements."""
    spent = []
    for _ in range(2):
        start = time.process_time()
        does()
        spent.append(time.process_time() - start)
        if spent[-1] < limit_s:
            return
    raise AssertionError(f"{min(spent):.1f} s, at most {limit_s:.1f} s")


def folded(events: Stream) -> Fold:
    fold = Fold()
    for shard, event in (
        (0, started(CONTROLLED)),
        (1, ShardPlanned(at=STARTED, configurations={})),
        *events,
    ):
        fold.apply(shard, event)
    return fold


def reductions_that_never_end() -> Stream:
    """Of one shard, while others end."""
    where = {"executor": "native", "configuration": "controlled"}
    events: Stream = []
    for n in range(15_000):
        events.append((1, ReductionStarted(at=STARTED + n, index=n, **where)))
        events.append((n + 2, ShardPlanned(at=STARTED, configurations={})))
        events.append((n + 2, ShardEnded(at=STARTED)))
    return events


def progress_of_many_configurations() -> Stream:
    """Each with a verdict of its own."""
    events: Stream = []
    for n in range(25_000):
        events.append((1, executed(n, n, configuration=f"c{n}", verdicts={f"v{n}": 1})))
    return events + [(0, Progress(at=STARTED + n, spent_s=float(n))) for n in range(25_000)]


@pytest.mark.parametrize("make", [reductions_that_never_end, progress_of_many_configurations])
def test_events_are_folded_in_time(make: Callable[[], Stream]) -> None:
    events = make()
    size = sum(len(encode(event)) for _, event in events) / (1 << 20)
    in_time(lambda: folded(events).report(""), SECONDS_EACH_MIB * size)


def test_a_report_of_many_rows_is_written_in_time(tmp_path: Path) -> None:
    """Of configurations, and of families; it takes a second, and took half a minute."""
    events: Stream = [
        (1, executed(n, n, configuration=f"c{n}", family=f"f{n}")) for n in range(2_500)
    ]
    report = folded(events).report("")
    in_time(lambda: write_all(report, tmp_path), 8.0)


def one_by_one(deaths: list[WorkerDied]) -> list[tuple[str, int]]:
    """Groups of deaths with one message: the op that most of those that are left have."""
    found, left = [], deaths
    while left:
        ops = Counter(op for each in left for op in each.ops)
        op = min(ops, key=lambda op: (-ops[op], op))
        found.append((op, sum(op in each.ops for each in left)))
        left = [each for each in left if op not in each.ops]
    return found


def test_deaths_are_grouped_as_one_by_one_in_time() -> None:
    rng = Random(1)
    for _ in range(300):
        ops = [f"o{n}" for n in range(rng.randrange(1, 9))]
        deaths = [
            died(1.0, ops=tuple(rng.sample(ops, rng.randrange(1, len(ops) + 1))))
            for _ in range(rng.randrange(1, 12))
        ]
        groups = group_deaths(deaths, lambda _: "")
        assert [(each.op, len(each.deaths)) for each in groups] == one_by_one(deaths)
    # Each with an op of its own, and one that another has as well: it took 12 s.
    deaths = [died(1.0, ops=(f"o{n}", f"o{n + 1}")) for n in range(4_000)]
    in_time(lambda: group_deaths(deaths, lambda _: ""), 2.0)
