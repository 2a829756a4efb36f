"""Benchmark of campaigns on TensorFlow: throughput, overhead, and outcomes reached.

Two contenders alternate on the same graphs, so that other load on the machine affects
both alike. The graphs are of the family `dense`, in which no known defect of TensorFlow
crashes the process. The campaign uses the family `dag`, which users run too.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections import Counter
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.fuzz.bench.native import IRIW, IRIW_OUTCOMES
from litmusfuzz.fuzz.campaign.engine import Engine
from litmusfuzz.fuzz.campaign.settings import CAMPAIGN_BUDGET, Settings
from litmusfuzz.fuzz.executors.protocol import Noise
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.fuzz.finding.judge import CachingOracle, judge, number_allowed
from litmusfuzz.fuzz.generators import generate
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import EXECUTOR
from litmusfuzz.reports.bench import BenchReport, Figure
from litmusfuzz.reports.events import Executed, Generated, Options, ReductionEnded, ShardStarted

if TYPE_CHECKING:
    from collections.abc import Callable

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.executors.tensorflow import TensorFlowExecutor
    from litmusfuzz.reports.events import Event

GRAPHS: Final = 6
STEPS: Final = 48
REPEATS: Final = 5
COUNT: Final = 3072
"""Executions of a graph, as in a campaign."""
SINGLE: Final = 512
"""Executions of a graph with one copy at a time, which is slow."""
CAMPAIGN_S: Final = 20.0
IRIW_S: Final = 2.0
IRIW_TRIES: Final = 10
SEED: Final = 1
SEVERAL: Final = 6
"""Smallest number of allowed outcomes of a graph."""


def graphs(first: int, count: int) -> list[LitmusTest]:
    """Random tests with several outcomes, generated from the indices `first` and up."""
    found = []
    for index in range(first, first + 100 * count):
        test = generate("dense", SEED, index)
        if (number_allowed(Explorer(test, EXECUTOR)) or 0) >= SEVERAL:
            found.append(test)
        if len(found) == count:
            break
    return found


def loop(executor: TensorFlowExecutor) -> Figure:
    """Throughput of steps with counting and judging, relative to a bare session loop.

    Both run the same built graph; `campaign` reports the cost of building.
    """
    from litmusfuzz.fuzz.executors.tensorflow import lowering, session
    from litmusfuzz.fuzz.executors.tensorflow.baselines import SessionLoop
    from litmusfuzz.fuzz.executors.tensorflow.configurations import Settings
    from litmusfuzz.fuzz.executors.tensorflow.histogram import HistogramBuilder
    from litmusfuzz.fuzz.executors.tensorflow.session_options import session_config

    settings = Settings.of(configuration("tf"))
    ours = theirs = 0.0
    noise = Noise()
    for number, test in enumerate(graphs(0, GRAPHS)):
        oracle = CachingOracle(Explorer(test, EXECUTOR, CAMPAIGN_BUDGET))
        template = lowering.lower(test)
        built = lowering.build(template, noise, np.random.default_rng(number))
        with (
            closing(session.LiveSession(template, built, settings, noise.copies)) as live,
            closing(SessionLoop(built, session_config(settings))) as plain,
        ):

            def judged(test: LitmusTest = test, live: session.LiveSession = live) -> None:
                builder = HistogramBuilder(test)
                for _ in range(STEPS):
                    builder.add(live.step())
                judge(oracle, builder.histogram())  # noqa: B023 - called in this iteration only

            def run(plain: SessionLoop = plain) -> None:
                for _ in range(STEPS):
                    plain()

            laps = [(_seconds(judged), _seconds(run)) for _ in range(1 + REPEATS)][1:]
        ours += min(lap for lap, _ in laps)
        theirs += min(lap for _, lap in laps)
    copies = GRAPHS * STEPS * noise.copies
    return Figure(
        "copies per second, judged, relative to a bare session loop",
        theirs / ours,
        "%",
        least=0.7,
        note=f"{copies / ours:,.0f} and {copies / theirs:,.0f} in a second",
    )


def copies(executor: TensorFlowExecutor) -> Figure:
    """Outcomes per second with many copies in a run, relative to one; building included."""
    many = one = 0.0
    for number, test in enumerate(graphs(10_000, GRAPHS)):
        with closing(executor.prepare(test, configuration("tf"))) as prepared:

            def together(prepared=prepared, number: int = number) -> None:  # type: ignore[no-untyped-def]
                prepared.run(COUNT, Noise(), number)

            def alone(prepared=prepared, number: int = number) -> None:  # type: ignore[no-untyped-def]
                prepared.run(SINGLE, Noise(copies=1, steps=SINGLE), number)

            laps = [(_seconds(together), _seconds(alone)) for _ in range(REPEATS)]
        many += min(lap for lap, _ in laps) / COUNT
        one += min(lap for _, lap in laps) / SINGLE
    return Figure(
        "outcomes per second, relative to one copy in a run",
        one / many,
        "times",
        least=10.0,
        note=f"{GRAPHS / many:,.0f} and {GRAPHS / one:,.0f} in a second, building included",
    )


def campaign() -> list[Figure]:
    """Shares of a campaign's time by activity."""
    events: list[Event] = []
    with tempfile.TemporaryDirectory() as folder:
        chosen = (("tf", configuration("tf")),)
        options = Options(seed=SEED, asked_s=CAMPAIGN_S, families={"dag": 1.0})
        settings = Settings(options, Path(folder), chosen, CAMPAIGN_S)
        start = time.process_time()
        asyncio.run(Engine(settings, events.extend).run())
        own_s = time.process_time() - start
    executed = [each for each in events if isinstance(each, Executed) and each.executor == "tf"]
    generated = [each for each in events if isinstance(each, Generated)]
    generating_s = sum(each.generating_s for each in generated)
    judging_s = sum(each.judging_s for each in generated)
    judging_s += sum(each.judging_s for each in executed)
    # Starting TensorFlow does not count.
    (started,) = (each for each in events if isinstance(each, ShardStarted))
    elapsed = events[-1].at - started.at
    counters: Counter[str] = Counter()
    for each in events:
        if isinstance(each, Executed | ReductionEnded):
            counters.update(each.counters)

    rest = own_s - generating_s + counters["counting_s"]
    share = partial(Figure, unit="%")
    whole = f"of a campaign of {elapsed:.0f} s, {len(executed)} graphs"
    judging = f"{whole}; judging alone {judging_s / elapsed:.1%}"
    return [
        share("judging, hashing, bookkeeping", rest / elapsed, most=0.15, note=judging),
        share("generating graphs", generating_s / elapsed, most=0.10, note=whole),
        share("building graphs and sessions", counters["building_s"] / elapsed, note=whole),
        share("TensorFlow's runs", counters["running_s"] / elapsed, note=whole),
    ]


def iriw(executor: TensorFlowExecutor) -> Figure:
    """Number of tries in which IRIW shows all outcomes in two seconds, building included."""
    found = []
    with closing(executor.prepare(litmus(IRIW), configuration("tf"))) as prepared:
        prepared.run(1, Noise(), 0)  # to warm up
        for attempt in range(IRIW_TRIES):
            seen: set[object] = set()
            seconds, ran = 0.0, 0
            while len(seen) < IRIW_OUTCOMES and seconds < IRIW_S:
                start = time.perf_counter()
                seen |= prepared.run(COUNT, Noise(), attempt << 20 | ran).keys()
                seconds += time.perf_counter() - start
                ran += 1
            found.append((seconds if len(seen) == IRIW_OUTCOMES else None, len(seen)))
    done = [seconds for seconds, _ in found if seconds is not None and seconds <= IRIW_S]
    late = f"; others showed {min(shown for _, shown in found)} or more" if len(done) < 10 else ""
    longest = f"; the slowest of these took {max(done):.2f} s" if done else ""
    return Figure(
        f"IRIW shows 15 of 15 outcomes within {IRIW_S:g} s",
        len(done),
        f"of {IRIW_TRIES} tries",
        least=9,
        note=f"{longest}{late}".removeprefix("; "),
    )


def _seconds(call: Callable[[], None]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def report(progress: Callable[[str], None]) -> BenchReport:
    """Run the whole benchmark.

    Parameters
    ----------
    progress : callable
        Receives the name of each part before it begins.
    """
    # Silence TensorFlow's messages at its import.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
    from litmusfuzz.fuzz.executors.tensorflow import TensorFlowExecutor

    progress("a campaign")
    shares = campaign()
    executor = TensorFlowExecutor()
    progress("a bare session loop")
    figures = [loop(executor)]
    progress("copies")
    figures.append(copies(executor))
    figures += shares
    progress("all outcomes of IRIW")
    figures.append(iriw(executor))
    about = (
        f"Elapsed times, best of {REPEATS}, alternating; {GRAPHS} random graphs of {SEVERAL} "
        f"outcomes or more, {COUNT:,} executions of each; configuration plain.",
    )
    return BenchReport(tuple(figures), about)
