"""How fast clusters are validated, and executed."""

from __future__ import annotations

import random
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.fuzz.bench.oracle import REPEATS, best
from litmusfuzz.fuzz.mutants.clustering import CLUSTERING_MUTANTS
from litmusfuzz.fuzz.passes.clustering import Clustering, cluster
from litmusfuzz.oracles.explorer import Budget
from litmusfuzz.oracles.translation import Soundness, validate
from litmusfuzz.reports.bench import Figure
from litmusfuzz.reports.clusters import ClustersReport

if TYPE_CHECKING:
    from collections.abc import Callable

    from litmusfuzz.corpus.model import LitmusTest

TESTS: Final = 50
OPS: Final = 12
SHAPES: Final = ((3, 4), (2, 6), (4, 3))
"""Chains, and ops on variables in each: all of `OPS`."""
BUDGET: Final = Budget(states=200_000)
LIMIT_S: Final = 5e-3


def racing(rng: random.Random) -> LitmusTest:
    """Reads, writes and updates of three variables, alike often, in chains."""
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
    """Clusters that our rules permit, of random size, over half of the ops at least."""
    return cluster(racing(rng), Clustering(most=rng.choice((3, 5, 8, None))), rng)


def unsound(rng: random.Random) -> LitmusTest:
    """Clusters of a clusterer that does no safety analysis, which validation convicts."""
    mutant = CLUSTERING_MUTANTS["mutant/no-safety-analysis"]
    while True:
        test = mutant.cluster(racing(rng), rng)
        if validate(test, BUDGET).verdict is Soundness.UNSOUND:
            return test


def validation(
    name: str, make: Callable[[random.Random], LitmusTest], limit_s: float | None = None
) -> Figure:
    """Times of verdicts over random graphs."""
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
    return Figure(
        name=name,
        asked=TESTS,
        answered=len(times),
        seconds=median(times) if times else None,
        worst_s=max(times, default=None),
        limit_s=limit_s,
        cut_off_s=median(cut_off) if cut_off else None,
        outcomes=round(median(outcomes)) if outcomes else None,
    )


def choosing() -> Figure:
    """Time of the clusterer itself."""
    times = []
    for number in range(TESTS):
        test = racing(random.Random(number))
        times.append(best(partial(cluster, test))[0])
    return Figure("to choose clusters", TESTS, TESTS, median(times), max(times))


def report(progress: Callable[[str], None]) -> ClustersReport:
    """The whole bench."""
    progress("validation")
    figures = [
        validation(f"to validate {OPS} ops, sound", ours, LIMIT_S),
        validation(f"to validate {OPS} ops, unsound", unsound, LIMIT_S),
    ]
    progress("the clusterer")
    figures.append(choosing())
    progress("the executor over JAX")
    from litmusfuzz.fuzz.bench.compiled import COPIES, GRAPHS, overhead  # it imports JAX

    speeds = overhead(ours)
    about = (
        f"{TESTS} random graphs of {OPS} reads, writes and updates of three variables, "
        f"clustered; budget {BUDGET.states:,} states.",
        f"Executed: {GRAPHS} of them, {COPIES} copies on one thread, beside a loop of the same "
        "calls of JAX's, what is seen of an outcome included.",
    )
    return ClustersReport(tuple(figures), about, REPEATS, tuple(speeds))
