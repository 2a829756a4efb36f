"""Benchmark of the executor `jax_refs`: programs in a second, and the share of time outside JAX."""

from __future__ import annotations

import time
from statistics import median
from typing import TYPE_CHECKING, Final

from litmusfuzz.fuzz.campaign.judge import judge
from litmusfuzz.fuzz.executors.jax_refs.executor import JaxRefsExecutor
from litmusfuzz.fuzz.executors.protocol import Noise, Refused
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.fuzz.executors.traced.failures import SystemFailed
from litmusfuzz.fuzz.generators import families_for, generate
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import SEQUENTIAL
from litmusfuzz.reports.bench import BenchReport, Figure

if TYPE_CHECKING:
    from collections.abc import Callable

    from litmusfuzz.corpus.model import LitmusTest

TESTS: Final = 8
"""Tests of each family."""
_PRESETS: Final = (
    ("eager", "eager", False, 8.0),
    ("under jit", "scan", False, 4.0),
    ("gradients under jit", "gradient", True, 2.0),
)
"""Name, preset, whether tests have gradients, and the least number of programs in a second."""
_OUTSIDE_MOST: Final = 0.05


def _generated() -> tuple[list[LitmusTest], float]:
    """Tests of all families, and the seconds for each."""
    support = JaxRefsExecutor.support
    start = time.process_time()
    made = [
        generate(family, 1, index, support)
        for family in families_for(support)
        for index in range(TESTS)
    ]
    return made, (time.process_time() - start) / len(made)


def _judging(test: LitmusTest) -> float:
    """Seconds to judge one outcome of a test, the oracle included."""
    start = time.process_time()
    explorer = Explorer(test, SEQUENTIAL)
    allowed = dict.fromkeys(explorer.allowed_outcomes().witnesses, 1)
    assert not judge(explorer, allowed).forbidden
    return time.process_time() - start


def _execution(executor: JaxRefsExecutor, test: LitmusTest, preset: str) -> float | None:
    """Seconds to trace, compile and execute a test twice; None if it does not run."""
    start = time.process_time()
    try:
        executor.prepare(test, configuration("jax_refs", preset)).run(2, Noise(), 1)
    except (Refused, SystemFailed):
        return None
    return time.process_time() - start


def report(progress: Callable[[str], None]) -> BenchReport:
    """Run the whole benchmark.

    Parameters
    ----------
    progress : callable
        Receives the name of each part before it begins.
    """
    progress("generation")
    tests, generating_s = _generated()
    within = [test for test in tests if not JaxRefsExecutor.support.lacking(test)]
    judging_s = median(map(_judging, within))
    executor = JaxRefsExecutor()
    figures = []
    for name, preset, gradients, least in _PRESETS:
        progress(name)
        chosen = [t for t in within if ("gradients" in t.features) is gradients]
        times = [s for t in chosen if (s := _execution(executor, t, preset)) is not None]
        one = median(times) if times else None
        speed = None if one is None else 1 / (one + generating_s + judging_s)
        note = f"{len(times)} of {len(chosen)} tests ran"
        figures.append(Figure(f"programs in a second, {name}", speed, least=least, note=note))
        if one is not None and preset == "eager":
            share = (generating_s + judging_s) / (one + generating_s + judging_s)
            figures.append(
                Figure("generating and judging, of eager time", share, "%", most=_OUTSIDE_MOST)
            )
    about = (
        "CPU times, medians of tests: generated, judged, traced, compiled, and executed"
        " twice on one thread. Refused tests and failures of JAX are left out.",
        f"{len(within)} tests, {TESTS} of each family at most.",
    )
    return BenchReport(tuple(figures), about)
