"""Benchmark of the executor `jax_refs`: programs in a second, and the share of time outside JAX."""

from __future__ import annotations

import time
from statistics import median
from typing import TYPE_CHECKING, Final

from litmusfuzz.fuzz.executors.jax_refs.executor import JaxRefsExecutor
from litmusfuzz.fuzz.executors.protocol import Noise, Refused
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.fuzz.executors.traced.failures import SystemFailed
from litmusfuzz.fuzz.finding.judge import judge
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
_JAX_LEAST: Final = 0.9


def _generated() -> tuple[list[LitmusTest], float]:
    """Tests of all families, and the seconds for each."""
    support = JaxRefsExecutor.support
    # Which families fit is found once in a campaign: for `mutations` the corpus is read.
    families = families_for(support)
    start = time.process_time()
    made = [generate(family, 1, index, support) for family in families for index in range(TESTS)]
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


def _in_jax(
    executor: JaxRefsExecutor,
    tests: list[LitmusTest],
    preset: str,
    outside_s: float,
    first_s: float,
) -> Figure:
    """The share of time in JAX, at least: that of compilation, which a second time does without.

    Parameters
    ----------
    executor : JaxRefsExecutor
    tests : list of LitmusTest
        Those that ran.
    preset : str
    outside_s : float
        Seconds to generate and judge a test.
    first_s : float
        Seconds that the first executions of all took.
    """
    again = (_execution(executor, test, preset) for test in tests)
    again_s = sum(each for each in again if each is not None)
    share = (first_s - again_s) / (first_s + len(tests) * outside_s)
    note = "compiling: what takes no time when the same tests run again"
    return Figure(f"in JAX, of {preset} time", share, "%", least=_JAX_LEAST, note=note)


def report(progress: Callable[[str], None]) -> BenchReport:
    """Run the whole benchmark.

    Parameters
    ----------
    progress : callable
        Receives the name of each part before it begins.
    """
    progress("generation")
    tests, generating_s = _generated()
    # A worker comes from a process that has imported JAX.
    import litmusfuzz.fuzz.executors.jax_refs.program  # noqa: F401

    within = [test for test in tests if not JaxRefsExecutor.support.lacking(test)]
    judging_s = median(map(_judging, within))
    executor = JaxRefsExecutor()
    figures = []
    for name, preset, gradients, least in _PRESETS:
        progress(name)
        chosen = [t for t in within if ("gradients" in t.features) is gradients]
        found = [(t, s) for t in chosen if (s := _execution(executor, t, preset)) is not None]
        times = [seconds for _, seconds in found]
        one = median(times) if times else None
        speed = None if one is None else 1 / (one + generating_s + judging_s)
        note = f"{len(times)} of {len(chosen)} tests ran"
        figures.append(Figure(f"programs in a second, {name}", speed, least=least, note=note))
        if one is not None and preset == "eager":
            outside_s = generating_s + judging_s
            share = outside_s / (one + outside_s)
            figures.append(
                Figure("generating and judging, of eager time", share, "%", most=_OUTSIDE_MOST)
            )
            ran = [test for test, _ in found]
            figures.append(_in_jax(executor, ran, preset, outside_s, sum(times)))
    about = (
        "CPU times, medians of tests: generated, judged, traced, compiled, and executed"
        " twice on one thread. Refused tests and failures of JAX are left out.",
        f"{len(within)} tests, {TESTS} of each family at most.",
    )
    return BenchReport(tuple(figures), about)
