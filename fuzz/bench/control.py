"""Benchmark of control: schedules of TensorFlow's ops a second, against executions without it.

Each lap runs both, so that other load on the machine affects them alike. Without control, a
session's callables initialize, race and read one copy of the test, one after another, as an
execution under control does. What is timed includes the outcome of each execution.
"""

from __future__ import annotations

import statistics
import time
from contextlib import closing
from typing import TYPE_CHECKING, Final

import numpy as np

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.fuzz.executors.protocol import Noise, Unavailable
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.fuzz.executors.tensorflow.executor import TensorFlowExecutor
from litmusfuzz.reports.bench import BenchReport, Figure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.executors.protocol import Prepared

LAPS: Final = 5
EXECUTIONS: Final = 600
LIMIT: Final = 100_000
RATIO: Final = 1.5
"""Schedules under control for each execution without it, at least."""
REPEATED: Final = 1.5
"""Executions of an exhaustive search for each schedule that differs, at most."""
LOCKS: Final = 2.0
"""Time of a schedule of locks in that of a schedule of ops, at most."""
PAGES: Final = 4.0
"""Time of a schedule of pages in that of a schedule of ops, at most."""
PAGED: Final = (1, 2048)
"""Shape of variables of two pages each."""
TESTS: Final = {
    "SB": "X=1; r0=Y || Y=1; r1=X",
    "IRIW": "X=1 || Y=1 || r0=X; r1=Y || r2=Y; r3=X",
}
# One graph, and nothing that delays ops.
_STILL: Final = Noise(copies=1, steps=EXECUTIONS, shuffle=False, padding=0)


def report(progress: Callable[[str], None]) -> BenchReport:
    """Measure everything; takes about half a minute."""
    about = (f"medians of {LAPS} laps of {EXECUTIONS} executions, in one process",)
    return BenchReport(tuple(_figures(progress)), about)


def _figures(progress: Callable[[str], None]) -> Iterator[Figure]:
    for name, written in TESTS.items():
        progress(name)
        try:
            yield from _of_test(name, litmus(written))
            yield _of_pages(name, litmus(written, shape=PAGED))
        except Unavailable as error:
            yield Figure(name, None, "", note=str(error))


def _of_test(name: str, test: LitmusTest) -> Iterator[Figure]:
    executor = TensorFlowExecutor()
    plain, ops, locks = (
        executor.prepare(test, configuration("tf", each))
        for each in ("plain", "controlled", "controlled_locks")
    )
    with closing(plain), closing(ops), closing(locks):
        times: dict[Prepared, list[float]] = {plain: [], ops: [], locks: []}
        for lap in range(LAPS + 1):
            for each, found in times.items():
                found.append(_seconds(each, lap))
        without, by_ops, by_locks = (np.array(found[1:]) for found in times.values())
        ratio = statistics.median(without / by_ops)
        yield Figure(f"{name}: executions without control", 1 / np.median(without), "/s")
        yield Figure(f"{name}: schedules of ops", 1 / np.median(by_ops), "/s")
        yield Figure(f"{name}: schedules of ops for each execution", ratio, "", least=RATIO)
        slower = statistics.median(by_locks / by_ops)
        yield Figure(f"{name}: a schedule of locks, in schedules of ops", slower, "", most=LOCKS)
        start = time.perf_counter()
        explored = ops.explore(LIMIT)  # type: ignore[union-attr]
        elapsed_s = time.perf_counter() - start
        assert explored.complete
        schedules = sum(explored.histogram.values())
        yield Figure(f"{name}: all {schedules} schedules", elapsed_s, "s")
        share = explored.executions / schedules
        yield Figure(f"{name}: executions for each of them", share, "", most=REPEATED)


def _of_pages(name: str, test: LitmusTest) -> Figure:
    executor = TensorFlowExecutor()
    ops, pages = (
        executor.prepare(test, configuration("tf", each))
        for each in ("controlled", "controlled_pages")
    )
    with closing(ops), closing(pages):
        laps = [[_seconds(each, lap) for each in (ops, pages)] for lap in range(LAPS + 1)]
    slower = statistics.median(by_pages / by_ops for by_ops, by_pages in laps[1:])
    return Figure(f"{name}: a schedule of pages, in schedules of ops", slower, "", most=PAGES)


def _seconds(prepared: Prepared, seed: int) -> float:
    """Seconds of an execution; the first lap of each builds what it keeps."""
    start = time.perf_counter()
    found = prepared.run(EXECUTIONS, _STILL, seed)
    return (time.perf_counter() - start) / sum(found.values())
