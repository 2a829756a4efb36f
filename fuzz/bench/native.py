"""Benchmark of the native executor: its engines and schedulers, compared with TensorFlow.

The contenders alternate, one lap each, so that other load on the machine affects all of
them alike. The timed code is the code that campaigns run, histogram included.
"""

from __future__ import annotations

import math
import os
import time
from collections import defaultdict
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.model import all_nodes
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.engines.settings import EngineSettings, Sort
from litmusfuzz.fuzz.executors.native import _executor
from litmusfuzz.fuzz.executors.native.lowering import lower
from litmusfuzz.fuzz.executors.native.running_engine import RunningEngine
from litmusfuzz.fuzz.executors.protocol import Noise, Unavailable
from litmusfuzz.reports.bench import COUNTS_FROM, BenchReport, Figure

if TYPE_CHECKING:
    from collections.abc import Callable

    from litmusfuzz.corpus.model import LitmusTest

REPEATS: Final = 7
COPIES: Final = 64
INLINE_NS: Final = 30.0
TWO_THREADS_NS: Final = 80.0
WALKS_PER_SECOND: Final = 3e6
IRIW_S: Final = 1.0
RATIO: Final = 5.0
COPIES_PER_SECOND: Final = "copies/s"

IRIW: Final = "X=1 || Y=1 || r0=X; r1=Y || r2=Y; r3=X"
IRIW_OUTCOMES: Final = 15
ROUND: Final = 16 * COPIES
"""Copies between two checks for missing outcomes."""
STILL: Final = Noise(copies=COPIES, shuffle=False)
VARIED: Final = Noise(copies=COPIES)

ENGINES: Final = (
    ("inline", 1),
    *((name, 2) for name in ("pool", "fifo", "stealing", "gang", "tbb", "openmp")),
    ("concurrent.futures:ThreadPoolExecutor", 2),
)
OURS: Final = ("pool", "fifo", "stealing", "gang")
"""Engines of LitmusFuzz; the best of them has a limit."""
# The first scheduler has a limit. Depths as in the executor's configurations.
SCHEDULERS: Final = (("random", 0), ("pct", 3), ("pos", 0), ("urw", 0), ("surw", 0))
EXECUTORS: Final = (("", "TensorFlow"), ("SINGLE_THREADED_EXECUTOR", "TensorFlow, static"))


@dataclass(frozen=True, slots=True)
class Effort:
    """Amount of work in a lap: about 50 ms for the benchmark, less for its tests.

    Parameters
    ----------
    repeats : int
        Laps, of which the best counts.
    ops : int
        Smallest number of ops in a lap of an engine.
    walks : int
        Executions in a lap of a scheduler.
    patience_s : float
        Time limit for all outcomes of IRIW.
    """

    repeats: int = REPEATS
    ops: int = 1_500_000
    walks: int = 50_000
    patience_s: float = 2.0


def graph() -> LitmusTest:
    """36 ops, 28 of them on four variables, in four chains of seven accesses.

    Each chain writes a constant and a value computed from two reads, and contains an
    update. Every chain uses all four variables.
    """
    chains = []
    for i in range(4):
        a, b, c, d = ("XYZW"[(i + k) % 4] for k in range(4))
        p, q, r = (f"r{3 * i + k}" for k in range(3))
        chains.append(f"{a}={i + 1}; {p}={b}; {c}={p}+1; {q}={d}; {b}+={q}*2; {r}={a}; {d}={r}")
    return litmus(" || ".join(chains))


def ops(test: LitmusTest) -> tuple[int, int]:
    """Number of ops of a test, without constants, and number of those on resources."""
    nodes = [node for node in all_nodes(test.graph.nodes) if not node.definition.constant]
    return len(nodes), sum(bool(node.resources) for node in nodes)


@dataclass(frozen=True, slots=True)
class Lap:
    """One measurement; `elsewhere` as in `reports.bench.Figure`."""

    seconds: float
    elsewhere: float | None = None


@dataclass(frozen=True, slots=True)
class Contender:
    """A contender of the benchmark: its figure, and a function that runs a lap.

    `amount` counts the ops or copies of a lap.
    """

    figure: Figure
    amount: int
    lap: Callable[[], Lap]

    def best(self, laps: list[Lap]) -> Figure:
        """The fastest lap; among the laps that used two threads, if there are any."""
        one = self.figure
        figures = [replace(one, value=self._value(lap), elsewhere=lap.elsewhere) for lap in laps]
        counting = [figure for figure in figures if figure.counts] or figures
        # All laps do the same amount: the fastest has the most per second.
        fastest = max if self.figure.unit == COPIES_PER_SECOND else min
        return fastest(counting, key=lambda figure: figure.value or 0.0)

    def _value(self, lap: Lap) -> float:
        if self.figure.unit == COPIES_PER_SECOND:
            return self.amount / lap.seconds
        return lap.seconds / self.amount * 1e9


def race(contenders: list[Contender], repeats: int) -> list[Figure]:
    """The best lap of each contender; the contenders alternate."""
    laps: dict[int, list[Lap]] = defaultdict(list)
    for contender in contenders:
        contender.lap()  # to warm up
    for _ in range(repeats):
        for number, contender in enumerate(contenders):
            laps[number].append(contender.lap())
    return [contender.best(laps[number]) for number, contender in enumerate(contenders)]


# --- contenders ------------------------------------------------------------------------


def _unmeasured(name: str, threads: int, copies: int = COPIES, note: str = "") -> Figure:
    """The figure of a contender before the race, or of one that is missing."""
    return Figure(name, None, "ns/op", note=note, threads=threads, copies=copies)


def _engine_lap(threads: _executor.Threads, count: int) -> Lap:
    start = time.perf_counter()
    _, here, elsewhere = threads.run(count, STILL.shuffle, 0, 1)
    return Lap(time.perf_counter() - start, elsewhere / (here + elsewhere))


def _engines(
    test: LitmusTest, effort: Effort, open_until: ExitStack
) -> tuple[list[Contender], list[Figure]]:
    """Contenders for all available engines, and a figure for each missing one."""
    core = _executor.load(lower(test, split_updates=False))
    size, _ = ops(test)
    contenders, missing = [], []
    for name, threads in ENGINES:
        try:
            settings = EngineSettings(name, threads)
            engine = open_until.enter_context(closing(RunningEngine(settings)))
        except Unavailable as error:
            missing.append(_unmeasured(name, threads, note=str(error)))
            continue
        for copies in (1, COPIES):
            figure = _unmeasured(name, threads, copies)
            if (name, copies) == ("inline", COPIES):
                figure = replace(figure, most=INLINE_NS)
            # One copy at a time is slow, above all if a thread must be woken for it. An
            # engine that takes the GIL for each op is always slow.
            wanted = effort.ops if copies > 1 else effort.ops // 10
            wanted //= 50 if settings.sort is Sort.PYTHON else 1
            count = max(1, wanted // size // copies) * copies
            running = _executor.Threads(core, [engine.core], copies)
            contenders.append(Contender(figure, count * size, partial(_engine_lap, running, count)))
    return contenders, missing


def _schedulers(effort: Effort) -> list[Contender]:
    core = _executor.load(lower(litmus("X=1; r0=Y || Y=1; r1=X"), split_updates=False))

    def lap(scheduler: str, depth: int) -> Lap:
        start = time.perf_counter()
        core.walk(scheduler, depth, effort.walks, 1)
        return Lap(time.perf_counter() - start, 0.0)  # all on the calling thread

    contenders = []
    for name, depth in SCHEDULERS:
        least = WALKS_PER_SECOND if name == "random" else None
        figure = Figure(f"SB, controlled, {name}", None, COPIES_PER_SECOND, least, threads=1)
        contenders.append(Contender(figure, effort.walks, partial(lap, name, depth)))
    return contenders


def tensorflow_contenders(
    test: LitmusTest, effort: Effort, open_until: ExitStack
) -> list[Contender]:
    """Contenders for TensorFlow's executors, on pools of one and two threads.

    Raises
    ------
    Unavailable
        If TensorFlow is not installed.
    """
    # Silence TensorFlow's messages at its import.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
    try:
        from litmusfuzz.fuzz.executors.tensorflow.baselines import UnobservedLoop
    except ModuleNotFoundError as error:
        raise Unavailable(f"no {error.name}") from None
    size = ops(test)[0] * COPIES
    calls = max(1, effort.ops // 10 // size)

    def lap(loop: UnobservedLoop) -> Lap:
        start = time.perf_counter()
        for _ in range(calls):
            loop()
        return Lap(time.perf_counter() - start)

    contenders = []
    for executor_type, name in EXECUTORS:
        for threads in (1, 2):
            loop = open_until.enter_context(
                closing(UnobservedLoop(test, COPIES, threads=threads, executor_type=executor_type))
            )
            figure = _unmeasured(name, threads)
            contenders.append(Contender(figure, calls * size, partial(lap, loop)))
    return contenders


# --- all outcomes of IRIW --------------------------------------------------------------


def iriw(effort: Effort) -> Figure:
    """Time until the engine `pool` has shown all outcomes of IRIW.

    One round before the measurement starts its threads; its outcomes do not count.
    """
    core = _executor.load(lower(litmus(IRIW), split_updates=False))
    name = "IRIW, pool, until all 15 outcomes"
    figure = Figure(name, None, "s", most=IRIW_S, threads=2, copies=COPIES)
    found = []
    with closing(RunningEngine(EngineSettings("pool", 2))) as engine:
        threads = _executor.Threads(core, [engine.core], COPIES)
        for seed in range(effort.repeats):
            threads.run(ROUND, VARIED.shuffle, 0, (1 << 63) + seed)
            found.append(_until_all(threads, seed << 32, effort.patience_s, figure))
        del threads  # before its engine
    best = min(found, key=lambda each: (each.value is None, not each.counts, each.value or 0.0))
    slowest = max((each.value or math.inf for each in found), default=math.inf)
    return replace(best, note=f"{best.note}; the slowest of {len(found)} took {slowest:.4f} s")


def _until_all(threads: _executor.Threads, seed: int, patience_s: float, figure: Figure) -> Figure:
    """Run until all outcomes are seen and enough ops ran on another thread to count."""
    seen: set[tuple[int, ...]] = set()
    here = elsewhere = copies = 0
    start = time.perf_counter()
    seconds = 0.0
    share = 0.0
    while (len(seen) < IRIW_OUTCOMES or share < COUNTS_FROM) and seconds < patience_s:
        rows, more_here, more_elsewhere = threads.run(ROUND, VARIED.shuffle, 0, seed + copies)
        seen |= {tuple(row) for row, _ in rows}
        here, elsewhere = here + more_here, elsewhere + more_elsewhere
        share = elsewhere / (here + elsewhere)
        copies += ROUND
        seconds = time.perf_counter() - start
    # The sixteenth outcome is forbidden.
    assert len(seen) <= IRIW_OUTCOMES
    return replace(
        figure,
        value=seconds if len(seen) == IRIW_OUTCOMES else None,
        elsewhere=share,
        note=f"{copies:,} copies showed {len(seen)}",
    )


# --- the whole bench -------------------------------------------------------------------


def report(
    progress: Callable[[str], None], *, compare: bool = True, effort: Effort = Effort()
) -> BenchReport:
    """Run the whole benchmark.

    Parameters
    ----------
    progress : callable
        Receives the name of each part before it begins.
    compare : bool
        Also run TensorFlow.
    effort : Effort
    """
    test = graph()
    size, on_variables = ops(test)
    assert size == 36
    assert on_variables >= 24
    missing: list[Figure] = []
    with ExitStack() as open_until:
        progress("starting engines")
        contenders, absent = _engines(test, effort, open_until)
        missing += absent
        if compare:
            progress("starting TensorFlow")
            try:
                contenders += tensorflow_contenders(test, effort, open_until)
            except Unavailable as error:
                missing.append(_unmeasured("TensorFlow", 2, note=str(error)))
        progress("engines, alternating" + (", with TensorFlow" if compare else ""))
        engines = race(contenders, effort.repeats)
        del contenders  # before their engines
    progress("schedulers, alternating")
    schedulers = race(_schedulers(effort), effort.repeats)
    progress("all outcomes of IRIW")
    return BenchReport(
        figures=(*engines, *missing, *_compared(engines), *schedulers, iriw(effort)),
        about=(
            f"Wall-clock times, best of {effort.repeats}, interleaved. Elsewhere: the share of ops "
            "run off the calling thread.",
            f"Graph: {size} ops, {on_variables} of them on variables; constants are not counted.",
            "TensorFlow: session.run of concurrent copies in one graph, built before; it does not "
            "report which thread ran which op.",
            f"A figure on two threads counts if {COUNTS_FROM:.0%} of the ops ran on the second.",
        ),
    )


def _compared(figures: list[Figure]) -> list[Figure]:
    """The best engine on two threads, and the ratio of TensorFlow's time to its time."""
    many = [figure for figure in figures if figure.copies == COPIES]
    ours = [figure for figure in many if figure.name in OURS]
    two = min(ours, key=lambda figure: (not figure.counts, figure.value or math.inf))
    found = [replace(two, name=f"best on two threads: {two.name}", most=TWO_THREADS_NS)]
    inline = next(figure for figure in many if figure.name == "inline")
    for mine in (inline, two):
        for theirs in many:
            if theirs.threads != mine.threads or theirs.name not in dict(EXECUTORS).values():
                continue
            assert mine.value
            assert theirs.value
            # The limit holds for TensorFlow's default executor; the other is for information.
            limit = RATIO if theirs.name == EXECUTORS[0][1] else None
            name = f"{mine.name}, compared with {theirs.name}"
            ratio = replace(mine, name=name, value=theirs.value / mine.value, unit="times faster")
            found.append(replace(ratio, least=limit, most=None))
    return found
