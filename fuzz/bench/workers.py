"""Benchmark of workers: how long it takes until a new process answers, forked and spawned.

The limits are on forked workers of TensorFlow. Workers of other executors, and spawned ones, are
measured for comparison.
"""

from __future__ import annotations

import os
import signal
import statistics
import time
from contextlib import closing
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

import psutil

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.textfile import plain_of
from litmusfuzz.fuzz.executors import messages
from litmusfuzz.fuzz.executors.protocol import Noise
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.fuzz.executors.worker import Died, Worker
from litmusfuzz.reports.bench import BenchReport, Figure

if TYPE_CHECKING:
    from collections.abc import Callable

REPEATS: Final = 20
SPAWNS: Final = 2
"""Repetitions with spawned workers, which take seconds each."""
CONFIGURATIONS: Final = ("plain", "critical_section")
"""Two configurations of TensorFlow whose environments differ."""
FIRST_REPLY_MS: Final = 50.0
OTHER_CONFIGURATION_MS: Final = 150.0
AFTER_CRASH_MS: Final = 300.0
_TIMEOUT_S: Final = 120.0
_RUNNING_S: Final = 0.05
"""Time after which a worker that was sent a long request is in the middle of it."""
_TEST: Final = plain_of(litmus("X=1; r0=Y || Y=1; r1=X"))


def small(config: str) -> messages.Request:
    """One session that runs SB a few times."""
    noise = asdict(Noise(copies=2, steps=4))
    return messages.Request(test=_TEST, config=config, count=8, noise=noise)


def endless(config: str) -> messages.Request:
    """More executions of SB than any worker completes before it is killed."""
    return messages.Request(test=_TEST, config=config, count=1 << 40, noise=asdict(Noise()))


def answered(worker: Worker, request: messages.Request) -> messages.Reply:
    """The reply to a request, which no worker refuses."""
    reply = worker.ask(request, _TIMEOUT_S)
    assert isinstance(reply, messages.Reply), reply
    assert not reply.unavailable, reply
    assert not reply.refused, reply
    return reply


def first_reply_s(executor: str, *, spawn: bool) -> float:
    """Seconds from the start of a process to its first reply, that to a request for versions."""
    worker = Worker(executor, spawn=spawn)
    start = time.perf_counter()
    answered(worker, messages.Request())
    elapsed_s = time.perf_counter() - start
    _end(worker)
    return elapsed_s


def other_configuration_s(executor: str, *, spawn: bool) -> float:
    """Seconds that a worker takes to answer in another configuration, in a new process.

    The old process has run a test, and is killed within this time. The request has no test:
    the time of a session is none of the change.
    """
    first, second = CONFIGURATIONS
    assert configuration(executor, first).environment != configuration(executor, second).environment
    worker = Worker(executor, spawn=spawn)
    answered(worker, small(first))
    start = time.perf_counter()
    answered(worker, messages.Request(config=second))
    elapsed_s = time.perf_counter() - start
    assert worker.starts == 2
    _end(worker)
    return elapsed_s


def after_crash_s(executor: str, *, spawn: bool) -> float:
    """Seconds from a crash in the middle of a test to the outcomes of the next test.

    The crash is a segmentation fault; its report and the first session of the new process
    are included.
    """
    worker = Worker(executor, spawn=spawn)
    answered(worker, small("plain"))
    worker.send(endless("plain"), _TIMEOUT_S)
    time.sleep(_RUNNING_S)
    assert worker.pid is not None
    start = time.perf_counter()
    os.kill(worker.pid, signal.SIGSEGV)
    died = worker.receive()
    assert isinstance(died, Died)
    assert died.message.startswith(f"signal {signal.SIGSEGV.value}"), died
    reply = answered(worker, small("plain"))
    elapsed_s = time.perf_counter() - start
    assert reply.rows
    _end(worker)
    return elapsed_s


def _end(worker: Worker) -> None:
    """Close a worker, and wait: the end of its process must not slow down the next."""
    assert worker.pid is not None
    process = psutil.Process(worker.pid)
    worker.close()
    process.wait(_TIMEOUT_S)


def figure(
    name: str, measure: Callable[..., float], executor: str, most_ms: float | None = None
) -> Figure:
    """Median of a measurement with forked workers; with spawned ones in the note."""
    forked = [measure(executor, spawn=False) for _ in range(REPEATS)]
    spawned = statistics.median(measure(executor, spawn=True) for _ in range(SPAWNS))
    median = statistics.median(forked)
    return Figure(
        f"{executor}: {name}",
        median * 1000,
        "ms",
        most=most_ms,
        note=f"at most {max(forked) * 1000:,.0f}; spawned {spawned * 1000:,.0f} ms, "
        f"{spawned / median:,.0f} times as long",
    )


def report(progress: Callable[[str], None]) -> BenchReport:
    """Run the whole benchmark.

    Parameters
    ----------
    progress : callable
        Receives the name of each part before it begins.
    """
    figures = []
    for executor in ("tf", "native", "jax"):
        limited = executor == "tf"
        progress(f"{executor}: import")
        with closing(Worker(executor)) as first:  # its server imports the framework
            start = time.perf_counter()
            answered(first, messages.Request())
            imported_s = time.perf_counter() - start
            assert first.start_method == "forked", first.start_method
        parts = [("first reply", first_reply_s, FIRST_REPLY_MS)]
        if limited:  # no configuration of the others has an environment
            parts.append(("other configuration", other_configuration_s, OTHER_CONFIGURATION_MS))
        parts.append(("replaced after a crash", after_crash_s, AFTER_CRASH_MS))
        for name, measure, most_ms in parts:
            progress(f"{executor}: {name}")
            figures.append(figure(name, measure, executor, most_ms if limited else None))
        figures.append(
            Figure(
                f"{executor}: first worker",
                imported_s * 1000,
                "ms",
                note="its fork server starts and imports; once for each executor",
            )
        )
    load = f"load {os.getloadavg()[0]:.1f} on {len(os.sched_getaffinity(0))} cores"
    about = (
        f"Medians of {REPEATS} forked and of {SPAWNS} spawned workers, one at a time; {load}.",
        "First reply: a new worker answers a request for versions. Other configuration: a worker "
        "that has run SB is asked for versions in another environment; the old process is "
        "killed, and not waited for. Replaced after a crash: a worker that runs SB gets a "
        "segmentation fault; until it is reported, and a new process has run SB in its first "
        "session.",
    )
    return BenchReport(tuple(figures), about)
