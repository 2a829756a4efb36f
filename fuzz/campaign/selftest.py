"""Whether this program finds what it says it finds: every mutant, by random graphs.

Each mutant runs the generator's own graphs, of all families, until one of its
outcomes is forbidden. No graph is chosen for a mutant; what is drawn for one is drawn
for all, and for the executor that they were made from, which must survive it.
"""

from __future__ import annotations

import math
import statistics
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from corpus.outcome import Verdict
from fuzz.executors.jax_clustered.executor import JaxClusteredExecutor
from fuzz.executors.protocol import Noise, Refused, Unavailable
from fuzz.executors.table import EXECUTORS, executor_class
from fuzz.executors.tensorflow import TensorFlowExecutor
from fuzz.strategies import FAMILIES, draw
from oracles.explorer import Explorer
from oracles.model import MODELS
from reports.kills import Row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from corpus.graph import LitmusTest
    from fuzz.executors.protocol import Config, Executor

SOUND: Final = "native"
"""The executor that the mutants were made from."""
_DRAWN: Final = tuple(name for name in FAMILIES if name != "clusters")  # which none of them runs


@dataclass(frozen=True, slots=True)
class Hunt:
    """A way to run each graph: a configuration, the noise, executions of each graph."""

    config: str
    noise: Noise
    count: int


HUNTS: Final = MappingProxyType(
    {
        **{
            name: Hunt(name, Noise(), 200)
            for name in ("controlled", "pct", "pos", "urw", "surw", "inline")
        },
        "pool": Hunt("plain", Noise(copies=64), 1024),
        "two devices": Hunt("two_devices", Noise(copies=64), 1024),
        # Lanes, so that a torn value shows.
        "pool, wide": Hunt("plain", Noise(copies=32, lanes=2048), 512),
        # Each copy's chains on threads of their own, begun within nanoseconds.
        "gang": Hunt("gang", Noise(copies=1024, shuffle=False, together=True, pinned=True), 4096),
    }
)
"""Columns of the kill table: strategies of the controlled engine, then real threads."""


@lru_cache(maxsize=4096)
def _drawn(seed: int, index: int) -> LitmusTest:
    return draw(_DRAWN[index % len(_DRAWN)], seed, index)


@lru_cache(maxsize=8192)
def _judge(seed: int, index: int, model: str) -> Explorer:
    return Explorer(_drawn(seed, index), MODELS[model])


def mutants() -> tuple[str, ...]:
    """Names of the mutants of `SOUND`, and of those that need no framework.

    Not of `jax`: to compile what one graph needs takes as long as running thousands of
    them, and some of its mutants take thousands of graphs. Nor of `tf`, which a campaign
    runs (docs/decisions/0010-tensorflow-mutants.md). ``make test`` kills these.
    """
    ours = (name for name in EXECUTORS if name.startswith("mutant/"))
    others = (JaxClusteredExecutor, TensorFlowExecutor)
    return tuple(name for name in ours if not issubclass(executor_class(name), others))


def hunt(executor: str, strategy: str, seeds: int, tests: int) -> list[int | None]:
    """Run random graphs until one is a kill, with each of several seeds.

    Parameters
    ----------
    executor : str
    strategy : str
        One of `HUNTS`.
    seeds : int
    tests : int
        Graphs for each seed, at most.

    Returns
    -------
    list of (int or None)
        For each seed, executions up to and with the test that killed it; None
        if none did.
    """
    made = executor_class(executor)
    how = HUNTS[strategy]
    config = next((c for c in made.configurations() if c.name == how.config), None)
    if config is None:  # a mutant of another kind has no engines
        return [None] * seeds
    return [_first_kill(made(), config, how, seed, tests) for seed in range(seeds)]


def median(runs: list[int | None]) -> int | None:
    """Over all seeds; those that did not kill are taken for infinite."""
    known = [run for run in runs if run is not None]
    if 2 * len(known) <= len(runs):
        return None
    never = [math.inf] * (len(runs) - len(known))
    return int(statistics.median_high([*known, *never]))


def _first_kill(executor: Executor, config: Config, how: Hunt, seed: int, tests: int) -> int | None:
    """Executions up to the first kill."""
    runs = 0
    for index in range(tests):
        try:
            prepared = executor.prepare(_drawn(seed, index), config)
        except (Refused, Unavailable):
            continue
        with closing(prepared):
            try:
                seen = prepared.run(how.count, how.noise, seed)
            except Unavailable:
                continue
        runs += sum(seen.values())
        judge = _judge(seed, index, config.promises)
        if any(judge.judge(outcome) is Verdict.FORBIDDEN for outcome in seen):
            return runs
    return None


def hunts(
    chosen: tuple[str, ...], seeds: int, tests: int, told: Callable[[str, str], None]
) -> Iterator[Row]:
    """A row for each executor; `told` hears of each strategy before it is tried."""
    for executor in chosen:
        found = {}
        for strategy in HUNTS:
            told(executor, strategy)
            found[strategy] = hunt(executor, strategy, seeds, tests)
        killed = any(run is not None for runs in found.values() for run in runs)
        yield Row(executor, {name: median(runs) for name, runs in found.items()}, killed)
