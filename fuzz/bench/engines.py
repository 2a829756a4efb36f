"""Benchmark of engines that run TensorFlow's ops, against TensorFlow's own pool.

All contenders run the same graphs of small ops, in one session or in sixteen at once, each in a
thread of its own. They alternate, so that other load on the machine affects all of them alike, and
laps are short: the fastest is the one that other processes have disturbed least.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass
from threading import Barrier
from typing import TYPE_CHECKING, Final

from litmusfuzz.fuzz.engines.settings import ONE_THREAD, EngineSettings
from litmusfuzz.fuzz.executors.protocol import Unavailable
from litmusfuzz.reports.bench import BenchReport, Figure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from litmusfuzz.fuzz.executors.tensorflow.baselines import SmallOps
    from litmusfuzz.fuzz.executors.tensorflow.engines import DrivenEngine

THREADS: Final = 2
SIZES: Final = (10, 100, 1000)
SESSIONS: Final = (1, 16)
LAPS: Final = 15
OPS: Final = 4_000
"""Ops of a lap, about."""
_RUNS: Final = 5
"""Runs of each session in a lap, at least."""
POOLS: Final = (
    ("TensorFlow's pool", "global"),
    ("TensorFlow, a pool of each session", "own"),
    ("TensorFlow, calling thread", "caller"),
)
"""The first, which all sessions of the process share, is what the engines are compared with."""
ENGINES: Final = (
    *("pool", "fifo", "stealing", "gang", "inline", "tbb", "openmp"),
    "concurrent.futures:ThreadPoolExecutor",
)


def report(
    progress: Callable[[str], None],
    *,
    laps: int = LAPS,
    ops: int = OPS,
    sizes: Sequence[int] = SIZES,
    sessions: Sequence[int] = SESSIONS,
) -> BenchReport:
    """Measure everything; takes about half a minute on free cores.

    Parameters
    ----------
    progress : callable
        Receives the name of each part before it begins.
    laps : int
        Of each contender, of which the fastest counts.
    ops : int
        Ops of a lap, about.
    sizes : sequence of int
        Ops of the graphs.
    sessions : sequence of int
        Sessions that execute such graphs at once.
    """
    cases = [(size, number) for size in sizes for number in sessions]
    about = (
        f"Ops a second, best of {laps} laps, interleaved; graphs of additions of two scalars, by"
        " layers of ten. Processor time: of all threads, in the lap that used least.",
        f"TensorFlow's pool and the engines have {THREADS} threads; with an engine that includes"
        " those that called.",
    )
    return BenchReport(tuple(_figures(progress, cases, laps, ops)), about)


@dataclass(frozen=True, slots=True)
class _Contender:
    """Sessions that execute graphs of one size."""

    name: str
    threads: int
    runs: Sequence[SmallOps]

    def lap(self, size: int, ops: int) -> _Lap:
        """All its sessions execute their graphs some times."""
        each = max(_RUNS, ops // size // len(self.runs))
        count = each * len(self.runs) * size
        if len(self.runs) == 1:
            (run,) = self.runs
            start, cpu = time.perf_counter(), time.process_time()
            for _ in range(each):
                run()
            return _Lap(count, time.perf_counter() - start, time.process_time() - cpu)
        begin = Barrier(len(self.runs) + 1)

        def client(run: SmallOps) -> None:
            begin.wait()
            for _ in range(each):
                run()

        with ThreadPoolExecutor(len(self.runs)) as clients:
            done = [clients.submit(client, run) for run in self.runs]
            begin.wait()
            start, cpu = time.perf_counter(), time.process_time()
            for future in done:
                future.result()
            return _Lap(count, time.perf_counter() - start, time.process_time() - cpu)


@dataclass(frozen=True, slots=True)
class _Lap:
    """So many ops took `seconds`, and `cpu_s` seconds of the processor."""

    ops: int
    seconds: float
    cpu_s: float


def _figures(
    progress: Callable[[str], None], cases: Sequence[tuple[int, int]], laps: int, ops: int
) -> Iterator[Figure]:
    progress("starting engines")
    try:
        from litmusfuzz.fuzz.executors.tensorflow.engines import DrivenEngine
    except ModuleNotFoundError as error:
        yield Figure("TensorFlow", None, note=f"no {error.name}")
        return
    with ExitStack() as open_until:
        engines: dict[str, tuple[int, DrivenEngine]] = {}
        for name in ENGINES:
            threads = 1 if name in ONE_THREAD else THREADS
            try:
                engine = open_until.enter_context(
                    closing(DrivenEngine(EngineSettings(name, threads)))
                )
            except Unavailable as error:
                yield Figure(name, None, note=str(error), threads=threads)
                continue
            engines[name] = threads, engine
        for size, sessions in cases:
            of = f"{size:,} ops, {sessions} session{'s' * (sessions > 1)}"
            progress(of)
            yield from _compared(of, engines, size, sessions, laps, ops)
        for _, engine in engines.values():
            engine.check()


def _compared(
    of: str,
    engines: dict[str, tuple[int, DrivenEngine]],
    size: int,
    sessions: int,
    laps: int,
    ops: int,
) -> Iterator[Figure]:
    from litmusfuzz.fuzz.executors.tensorflow.baselines import SmallOps
    from litmusfuzz.fuzz.executors.tensorflow.configurations import Settings

    with ExitStack() as open_until:

        def made(settings: Settings, engine: DrivenEngine | None = None) -> list[SmallOps]:
            return [
                open_until.enter_context(closing(SmallOps(size, settings, engine)))
                for _ in range(sessions)
            ]

        contenders = [
            _Contender(name, THREADS, made(Settings(THREADS, pool))) for name, pool in POOLS
        ]
        for name, (threads, engine) in engines.items():
            contenders.append(_Contender(name, threads, made(Settings(engine="pool"), engine)))
        found: list[list[_Lap]] = [[] for _ in contenders]
        for lap in range(laps + 1):
            for contender, its in zip(contenders, found, strict=True):
                measured = contender.lap(size, ops)
                if lap:  # the first one warms up
                    its.append(measured)
        speeds = [max(each.ops / each.seconds for each in its) for its in found]
        for contender, its, speed in zip(contenders, found, speeds, strict=True):
            cpu_ns = min(each.cpu_s / each.ops for each in its) * 1e9
            ratio = f"{speed / speeds[0]:.2f} times TensorFlow's pool"
            note = f"{ratio}; {cpu_ns:.0f} ns of processor time"
            yield Figure(
                f"{of}: {contender.name}", speed, "/s", note=note, threads=contender.threads
            )
