"""Benchmark of clusters: translation validation, the clusterer, and execution by XLA."""

from __future__ import annotations

import random
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.bench.oracle import REPEATS, best, timed
from litmusfuzz.fuzz.mutants.clustering import CLUSTERING_MUTANTS
from litmusfuzz.fuzz.passes.clustering import Clustering, cluster
from litmusfuzz.oracles.explorer import Budget
from litmusfuzz.oracles.translation import Soundness, validate
from litmusfuzz.reports.bench import BenchReport

if TYPE_CHECKING:
    from collections.abc import Callable

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.reports.bench import Figure

TESTS: Final = 50
OPS: Final = 12
SHAPES: Final = ((3, 4), (2, 6), (4, 3))
"""Number of chains, and of ops in each; together `OPS`."""
BUDGET: Final = Budget(states=200_000)
LIMIT_S: Final = 5e-3


def racing(rng: random.Random) -> LitmusTest:
    """Chains of reads, writes and updates of three variables, equally likely."""
    number = 0
    chains, length = rng.choice(SHAPES)
    parts = []
    for _ in range(chains):
        part = []
        for _ in range(length):
            number += 1
            variable = rng.choice("XYZ")
            part.append(
                rng.choice(
                    (f"{variable}={number}", f"{variable}+={number}", f"r{number}={variable}")
                )
            )
        parts.append("; ".join(part))
    return litmus(" || ".join(parts))


def ours(rng: random.Random) -> LitmusTest:
    """A random test with clusters of random size that the clusterer's rules permit."""
    return cluster(racing(rng), Clustering(most=rng.choice((3, 5, 8, None))), rng)


def unsound(rng: random.Random) -> LitmusTest:
    """A random test with unsound clusters, chosen without the safety analysis."""
    mutant = CLUSTERING_MUTANTS["mutant/no-safety-analysis"]
    while True:
        test = mutant.cluster(racing(rng), rng)
        if validate(test, BUDGET).verdict is Soundness.UNSOUND:
            return test


def validation(
    name: str, make: Callable[[random.Random], LitmusTest], limit_s: float | None = None
) -> Figure:
    """Time of translation validation over random graphs."""
    times = []
    outcomes = []
    cut_off = []
    for number in range(TESTS):
        test = make(random.Random(number))
        seconds, found = best(partial(validate, test, BUDGET))
        if found.verdict is Soundness.UNKNOWN:
            cut_off.append(seconds)
        else:
            times.append(seconds)
            outcomes.append(found.outcomes)
    middle = round(median(outcomes)) if outcomes else None
    return replace(timed(name, times, cut_off, limit_s), outcomes=middle)


def choosing() -> Figure:
    """Time of the clusterer."""
    times = []
    for number in range(TESTS):
        test = racing(random.Random(number))
        times.append(best(partial(cluster, test))[0])
    return timed("to choose clusters", times)


def report(progress: Callable[[str], None]) -> BenchReport:
    """Run the whole benchmark.

    Parameters
    ----------
    progress : callable
        Receives the name of each part before it begins.
    """
    progress("validation")
    figures = [
        validation(f"to validate {OPS} ops, sound", ours, LIMIT_S),
        validation(f"to validate {OPS} ops, unsound", unsound, LIMIT_S),
    ]
    progress("the clusterer")
    figures.append(choosing())
    progress("the executor jax")
    from litmusfuzz.fuzz.bench.compiled import COPIES, GRAPHS, overhead  # it imports JAX

    figures += overhead(ours)
    about = (
        f"CPU times, best of {REPEATS}; of outcomes the median. Execution on the clock.",
        f"{TESTS} random graphs of {OPS} reads, writes and updates of three variables, "
        f"clustered; budget {BUDGET.states:,} states.",
        f"Executed: {GRAPHS} of them, {COPIES} copies on one thread, compared with a loop of the "
        "same calls of JAX, reads of the outcome included.",
    )
    return BenchReport(tuple(figures), about)
