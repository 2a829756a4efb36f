"""Real threads stay inside the allowed set, on every engine."""

from __future__ import annotations

import pytest
from helpers import UNCLUSTERED, corpus_entry, for_each
from native.helpers_native import is_supported, prepared

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.model import Cluster
from litmusfuzz.corpus.outcome import Verdict
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.executors.native.executor import NativeExecutor, PreparedTest
from litmusfuzz.fuzz.executors.protocol import Config, Noise, Refused, Unavailable
from litmusfuzz.oracles.explorer import Explorer, allowed_outcomes
from litmusfuzz.oracles.model import EXECUTOR, MODELS


def here(config: Config) -> bool:
    """Whether its engine was built; tests/native/test_native_engines.py says which was not."""
    try:
        NativeExecutor().check(config)
    except Unavailable:
        return False
    return True


CONFIGS = {
    c.name: c
    for c in NativeExecutor.configurations()
    if here(c) and "devices" not in dict(c.settings)  # see test_native_devices.py
}
THREADED = [c for c in CONFIGS.values() if dict(c.settings)["engine"] != "controlled"]
COUNT = 160


@for_each("path", UNCLUSTERED, every=3, where=is_supported)
def test_every_outcome_is_allowed(path) -> None:
    test = corpus_entry(path).test
    judges = {name: Explorer(test, model) for name, model in MODELS.items()}
    for config in THREADED:
        executor = PreparedTest(test, config)
        seen = executor.run(COUNT, Noise(), seed=0)
        executor.close()
        assert sum(seen.values()) == COUNT
        for outcome in seen:
            verdict = judges[config.guarantees].judge(outcome)
            assert verdict in (Verdict.ALLOWED, Verdict.UNSPECIFIED), (config.name, str(outcome))


def test_a_pool_popped_at_random_shows_all_outcomes_of_iriw() -> None:
    """The pool chooses each of the six events at random, on one thread or several.

    Copies do not affect each other's order, so that each order of one copy has
    probability at least 1/4**6 with one thread; 300,000 copies miss one of 15 outcomes
    with 15 * (1 - 1/4**6)**300000 < 1e-30. Several threads only add orders.
    """
    test = litmus("X=1 || Y=1 || r0=X; r1=Y || r2=Y; r3=X")
    executor = PreparedTest(test, CONFIGS["plain"])
    seen = executor.run(300_000, Noise(), seed=0)
    executor.close()
    assert set(seen) == set(allowed_outcomes(test, EXECUTOR).witnesses)


def test_one_thread_gives_the_same_for_the_same_seed() -> None:
    test = litmus("X=1 || Y=1 || r0=X; r1=Y || r2=Y; r3=X")
    for name in ("inline", "controlled"):
        runs = [PreparedTest(test, CONFIGS[name]).run(1000, Noise(), seed) for seed in (3, 3)]
        assert runs[0] == runs[1]


WIDE = 4096


@pytest.mark.parametrize("config", ["plain", "split", "fifo", "stealing", "gang"])
@pytest.mark.parametrize(
    "program",
    ["X+=1 || X+=2 || r0=X || r1=X", "X=1 || X=2 || r0=X || X+=4", "X[0]+=1 || X[1]=2 || r0=X"],
)
def test_wide_values_never_tear(program: str, config: str) -> None:
    test = litmus(program, shape=(2, WIDE), dtype="float32")
    executor = PreparedTest(test, CONFIGS[config])
    seen = executor.run(2_000, Noise(), seed=0)
    executor.close()
    judge = Explorer(test, MODELS[CONFIGS[config].guarantees])
    assert all(judge.judge(outcome) is Verdict.ALLOWED for outcome in seen)


def test_clusters_are_refused() -> None:
    test = replace(litmus("X=1"), clusters=(Cluster("k", ("w0",)),))
    with pytest.raises(Refused, match="clusters"):
        prepared(test, EXECUTOR)
