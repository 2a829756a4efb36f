"""Benchmark of the explorer: whole allowed sets, membership of one outcome, and growth."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Final, TypeVar

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.model import LitmusTest
from litmusfuzz.corpus.outcome import Outcome, Verdict
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.bench.programs import (
    chains,
    changed,
    computed,
    executed,
    hidden,
    looped,
    simulated,
)
from litmusfuzz.fuzz.campaign.settings import CAMPAIGN_BUDGET
from litmusfuzz.oracles import reference
from litmusfuzz.oracles.bounds import has_small_values
from litmusfuzz.oracles.explorer import Budget, Explorer
from litmusfuzz.oracles.model import RFC
from litmusfuzz.reports.bench import BenchReport, Curve, Figure, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

REPEATS: Final = 7
ENOUGH_S: Final = 0.5  # a call this long is not repeated: its noise is small
TESTS: Final = 50
LARGE_TESTS: Final = 8
POINT_TESTS: Final = 9
BUDGET: Final = Budget(states=200_000)
LARGE_BUDGET: Final = Budget(states=200_000, memory_bytes=64 << 20)
POINT_BUDGET: Final = Budget(states=20_000, memory_bytes=256 << 20)
HIDDEN: Final = 1 / 3
_T = TypeVar("_T")


def best(action: Callable[[], _T], repeats: int = REPEATS) -> tuple[float, _T]:
    """Smallest CPU time of several calls, and the result of the last."""
    times: list[float] = []
    while True:
        start = time.process_time()
        result = action()
        times.append(time.process_time() - start)
        if len(times) >= repeats or sum(times) > ENOUGH_S:
            return min(times), result


def timed(
    name: str, times: Sequence[float], cut_off: Sequence[float] = (), limit_s: float | None = None
) -> Figure:
    """Median and largest of the times of answered questions; `cut_off` has those of the others."""
    return Figure(
        name,
        median(times) if times else None,
        "s",
        most=limit_s,
        worst=max(times) if len(times) > 1 else None,
        asked=len(times) + len(cut_off),
        unknown=len(cut_off),
        cut_off_s=median(cut_off) if cut_off else None,
    )


# --- whole sets ------------------------------------------------------------------------


def whole_set(
    name: str, test: LitmusTest, limit_s: float | None = None, *, compare: bool = False
) -> Figure:
    """Time to find a whole allowed set; with `compare`, the ratio to the reference oracle."""
    load_s, explorer = best(lambda: Explorer(test, RFC))
    seconds, allowed = best(explorer.allowed_outcomes)
    made_s, _ = best(lambda: frozenset(explorer.allowed_outcomes().witnesses), 3)
    note = f"as objects {shown(made_s, 's')}"
    if compare:
        # Once: it takes many seconds, so that its noise is small.
        slow_s, slow = best(lambda: reference.allowed_outcomes(test, RFC, 1 << 40), 1)
        assert set(slow.witnesses) == set(allowed.witnesses)
        note += f"; {slow_s / (load_s + seconds):,.0f} times faster than the reference"
    times, cut_off = ([seconds], []) if allowed.complete else ([], [seconds])
    figure = timed(name, times, cut_off, limit_s)
    return replace(figure, load_s=load_s, outcomes=len(allowed.witnesses), note=note)


def increments(count: int) -> LitmusTest:
    """Unordered increments of one variable, by distinct powers of two: every sum is possible."""
    return litmus(" || ".join(f"X+={1 << number}" for number in range(count)))


def queue_ends(count: int) -> LitmusTest:
    """Unordered producers of distinct elements, and as many consumers that are observed."""
    ends = [f"Q!{number + 1} || r{number}=Q?" for number in range(count)]
    return litmus(" || ".join(ends), queues={"Q": count})


# --- membership ------------------------------------------------------------------------

OF_A_RUN: Final = "of a run"
CHANGED: Final = "changed"
Answer = tuple[str, Verdict, float]
"""Kind of outcome (`OF_A_RUN`, which is allowed, or `CHANGED`), verdict, seconds."""
Run = Callable[[LitmusTest, random.Random], Outcome]
"""The outcome of some total order."""


def answers(
    test: LitmusTest, rng: random.Random, budget: Budget, run: Run = simulated
) -> tuple[float, list[Answer]]:
    """Time to load, and verdicts on the outcome of a random run and on a changed outcome.

    The outcome of a run is allowed; the benchmark stops if the oracle says otherwise. The
    changed outcome is the first random change that is not judged allowed, so that the
    second verdict is forbidden or unknown.
    """
    load_s, explorer = best(lambda: Explorer(test, RFC, budget))
    seen = run(test, rng)
    found = [_answer(OF_A_RUN, explorer, seen)]
    assert found[0][1] is not Verdict.FORBIDDEN, f"wrong on {seen} of {test}"
    for _ in range(200):
        other = changed(test, seen, rng)
        if other != seen and explorer.judge(other) is not Verdict.ALLOWED:
            found.append(_answer(CHANGED, explorer, other))
            break
    return load_s, found


def _answer(what: str, explorer: Explorer, outcome: Outcome) -> Answer:
    seconds, verdict = best(lambda: explorer.judge(outcome))
    return what, verdict, seconds


def judged(
    name: str,
    found: Sequence[Answer],
    loads: Sequence[float],
    limits_s: tuple[float | None, float | None] = (None, None),
) -> list[Figure]:
    """A figure for the outcomes of runs, and one for the changed outcomes."""
    figures = []
    for what, limit_s in zip((OF_A_RUN, CHANGED), limits_s, strict=True):
        asked = [each for each in found if each[0] == what]
        times = [seconds for _, verdict, seconds in asked if verdict is not Verdict.UNKNOWN]
        cut_off = [seconds for _, verdict, seconds in asked if verdict is Verdict.UNKNOWN]
        figure = timed(f"{name}, {what}", times, cut_off, limit_s)
        figures.append(replace(figure, load_s=median(loads)))
    return figures


def membership(
    name: str,
    make: Callable[[random.Random], LitmusTest],
    limits_s: tuple[float | None, float | None] = (None, None),
    *,
    tests: int = TESTS,
    budget: Budget = BUDGET,
    run: Run = simulated,
) -> list[Figure]:
    """Times of verdicts over random tests."""
    found: list[Answer] = []
    loads = []
    for number in range(tests):
        rng = random.Random(number)
        load_s, more = answers(make(rng), rng, budget, run)
        loads.append(load_s)
        found += more
    return judged(name, found, loads, limits_s)


def _hidden(make: Callable[[random.Random], LitmusTest], rng: random.Random) -> LitmusTest:
    """The test, with a third of its reads unobserved."""
    return hidden(make(rng), rng, HIDDEN)


# --- 100 ops with computed operands ------------------------------------------------------

COMPUTED: Final = (100, 12)
"""Ops, and those of them that read or write variables."""


def _computed(rng: random.Random) -> LitmusTest:
    """A test of 100 ops with small values."""
    while True:
        test = computed(rng, *COMPUTED)
        if has_small_values(test):
            return test


def computed_operands() -> list[Figure]:
    """Membership where operands are computed: times, time to load, and the share of `unknown`."""
    name = "100 ops, computed operands"
    figures = []
    for about, make in (("", _computed), (", third unobserved", partial(_hidden, _computed))):
        limits_s = (5e-3, 5e-3)
        figures += membership(name + about, make, limits_s, budget=CAMPAIGN_BUDGET, run=executed)
    loads = [each.load_s for each in figures if each.load_s is not None]
    figures.append(Figure(f"{name}, to load", max(loads), "s", most=15e-3))
    asked, unknown = (sum(getattr(each, n) or 0 for each in figures) for n in ("asked", "unknown"))
    figures.append(Figure(f"{name}, unknown", 100 * unknown / asked, "%", most=1.0))
    return figures


# --- 256 ops with a loop ---------------------------------------------------------------

LARGE: Final = ((8, 31), 8, 8, "WXYZ")
"""248 ops in 8 chains, and 8 in the body of a loop of 8 iterations: 312 events."""


def large(number: int) -> tuple[float, list[Answer], int | None]:
    """As `answers`, for one large test, with the peak memory in bytes.

    It runs in a process of its own: earlier allocations would hide its peak.
    """
    command = [sys.executable, "-P", "-m", "litmusfuzz.fuzz.bench.large", str(number)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    result = json.loads(done.stdout)
    found = [(what, Verdict(verdict), seconds) for what, verdict, seconds in result["answers"]]
    return result["load_s"], found, result["peak_bytes"]


def peak_memory(peaks_bytes: Sequence[int]) -> Figure:
    """The most that a large test took, above what its process had before; the budget limits it."""
    name, cap = "256 ops with a loop, peak memory", LARGE_BUDGET.memory_bytes / (1 << 20)
    if not peaks_bytes:
        return Figure(name, None, note=f"not measured on this system; cap {shown(cap, 'MiB')}")
    return Figure(name, max(peaks_bytes) / (1 << 20), "MiB", most=cap)


# --- growth ----------------------------------------------------------------------------


def _point(size: int, make: Callable[[random.Random], LitmusTest]) -> tuple[int, Figure]:
    """One point of a curve: membership of a random run's outcome."""
    figure, _ = membership("", make, tests=POINT_TESTS, budget=POINT_BUDGET)
    return size, figure


def _largest(size: int, make: Callable[[random.Random], LitmusTest]) -> tuple[int, Figure]:
    """One point of a curve: the whole set of the test with the most outcomes."""
    tests = [make(random.Random(seed)) for seed in range(POINT_TESTS)]
    test = max(tests, key=lambda t: len(Explorer(t, RFC).allowed_outcomes().witnesses))
    return size, whole_set("", test)


def _seen_by_events() -> Curve:
    points = [
        _point(8 * n, partial(chains, shape=(8, n), names="WXYZ", values=0))
        for n in (4, 8, 16, 24, 32)
    ]
    return Curve("membership of a run's outcome, 8 chains", "events", tuple(points))


def _seen_by_chains() -> Curve:
    points = [
        _point(n, partial(chains, shape=(n, 64 // n), names="WXYZ", values=0))
        for n in (2, 4, 8, 16, 32)
    ]
    return Curve("membership of a run's outcome, 64 events", "chains", tuple(points))


def _seen_by_iterations() -> Curve:
    points = [
        _point(n, partial(looped, shape=(4, 8), ops=4, iterations=n, names="WXYZ"))
        for n in (1, 2, 4, 8, 16)
    ]
    name = "membership of a run's outcome, 4 chains of 8 and a loop of 4 ops"
    return Curve(name, "iterations", tuple(points))


def _sets_by_events() -> Curve:
    points = [
        _largest(3 * n, partial(chains, shape=(3, n), names="XYZ", values=0))
        for n in (2, 3, 4, 5, 6)
    ]
    return Curve("whole set, 3 chains", "events", tuple(points))


def _sets_by_chains() -> Curve:
    points = [
        _largest(n, partial(chains, shape=(n, 4), names="XYZ", values=0)) for n in (1, 2, 3, 4)
    ]
    return Curve("whole set, chains of 4", "chains", tuple(points))


def _sets_by_iterations() -> Curve:
    points = [
        _largest(n, partial(looped, shape=(2, 2), ops=2, iterations=n, names="XY"))
        for n in (1, 2, 4, 8, 16)
    ]
    return Curve("whole set, 2 chains of 2 and a loop of 2 ops", "iterations", tuple(points))


CURVES: Final = (
    *(_seen_by_events, _seen_by_chains, _seen_by_iterations),
    *(_sets_by_events, _sets_by_chains, _sets_by_iterations),
)


# --- the whole bench -------------------------------------------------------------------


def report(progress: Callable[[str], None], *, compare: bool = True) -> BenchReport:
    """Run the whole benchmark.

    Parameters
    ----------
    progress : callable
        Receives the name of each part before it begins.
    compare : bool
        Also run the reference oracle, for most of a minute.
    """
    figures: list[Figure] = []
    rng = random.Random(1)
    unique = [chains(random.Random(seed), (4, 5), "XYZ", 0) for seed in range(8)]
    largest = max(unique, key=lambda t: len(Explorer(t, RFC).allowed_outcomes().witnesses))
    threads = 10
    sb = " || ".join(f"X{i}=1; r{i}=X{(i + 1) % threads}" for i in range(threads))
    three = chains(rng, (3, 5), "XYZ", 0)
    sets = (
        ("set of 3x5", three, 0.001),
        ("set of 3x6", chains(rng, (3, 6), "XYZ", 0), 0.005),
        ("set of 8 increments", litmus(" || ".join(["X+=1"] * 8)), 0.05),
        ("set of 7 distinct increments", increments(7), 0.1),
        ("set of 8 distinct increments", increments(8), 0.5),
        ("set of 4x5", largest, 0.1),
        ("set of ten-thread SB", litmus(sb), 0.05),
        ("set of a queue with 8 and 8 ends", queue_ends(8), 1),
        ("set of 5x5", chains(random.Random(44), (5, 5), "WXYZ", 0), 2),
        ("set of 5x5 of 1,2,3", chains(random.Random(11), (5, 5), "WXYZ", 3), 4),
    )
    for name, test, limit_s in sets:
        progress(name + (", also by the reference" if compare and test is three else ""))
        figures.append(whole_set(name, test, limit_s, compare=compare and test is three))
    for name, shape, names, values, limits_s in (
        ("4x4 unique", (4, 4), "XYZ", 0, (20e-6, 20e-6)),
        ("8x8 unique", (8, 8), "WXYZ", 0, (1e-3, 2e-3)),
        ("8x8 of 1,2,3", (8, 8), "WXYZ", 3, (5e-3, 20e-3)),
    ):
        make = partial(chains, shape=shape, names=names, values=values)
        progress(name)
        figures += membership(name, make, limits_s)
        progress(f"{name}, a third of the reads unobserved")
        figures += membership(f"{name}, third unobserved", partial(_hidden, make))
    progress("100 ops with computed operands")
    figures += computed_operands()
    progress("256 ops without a loop")
    figures += membership(
        "256 ops, no loop",
        partial(chains, shape=(8, 32), names="WXYZ", values=0),
        tests=LARGE_TESTS,
        budget=LARGE_BUDGET,
    )
    found: list[Answer] = []
    loads, peaks = [], []
    for number in range(LARGE_TESTS):
        progress(f"256 ops with a loop, {number + 1} of {LARGE_TESTS}")
        load_s, more, peak = large(number)
        found += more
        loads.append(load_s)
        peaks.append(peak)
    figures += judged("256 ops with a loop of 8", found, loads)
    figures.append(peak_memory([peak for peak in peaks if peak is not None]))
    curves = []
    for number, measure in enumerate(CURVES, 1):
        progress(f"growth, {number} of {len(CURVES)}")
        curves.append(measure())
    return BenchReport(
        figures=tuple(figures),
        curves=tuple(curves),
        about=(
            f"CPU times, medians, each the best of {REPEATS}; long calls count once.",
            f"Budgets: {_budget(BUDGET)}; 256 ops {_budget(LARGE_BUDGET)}; "
            f"growth {_budget(POINT_BUDGET)}.",
            "The outcome of a run is allowed; no verdict called one forbidden.",
        ),
    )


def _budget(budget: Budget) -> str:
    return f"{budget.states:,} states, {budget.memory_bytes >> 20} MiB"
