"""Noise shows more outcomes, and none that is not allowed."""

from __future__ import annotations

import os
import time
from dataclasses import asdict

import pytest
from helpers import UNCLUSTERED, corpus_entry, for_each
from native.helpers_native import is_supported

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.outcome import Verdict
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.executors.native.executor import PreparedTest, engine_config
from litmusfuzz.fuzz.executors.native.lowering import lower
from litmusfuzz.fuzz.executors.protocol import Noise, noise_from
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import EXECUTOR

IRIW = litmus("X=1 || Y=1 || r0=X; r1=Y || r2=Y; r3=X")
INLINE = engine_config("inline", "inline", 1, split_updates=False)
NOISES = {
    "delays": Noise(delay_us_max=20),
    "yields": Noise(yield_percent=50),
    "barrier": Noise(barrier=True),
    "lanes": Noise(lanes=64),
    "pinned": Noise(pinned=True),
    "all": Noise(4, delay_us_max=60, yield_percent=10, barrier=True, lanes=8, pinned=True),
}


@pytest.mark.parametrize("engine", ["inline", "pool", "fifo", "stealing", "gang"])
@pytest.mark.parametrize("name", NOISES)
def test_noise_shows_nothing_that_is_not_allowed(name: str, engine: str) -> None:
    threads = 1 if engine == "inline" else 3
    judge = Explorer(IRIW, EXECUTOR)
    prepared = PreparedTest(IRIW, engine_config("", engine, threads, split_updates=False))
    seen = prepared.run(640, NOISES[name], 0)
    prepared.close()
    assert sum(seen.values()) == 640
    assert all(judge.judge(outcome) is Verdict.ALLOWED for outcome in seen)


@for_each("path", UNCLUSTERED, where=is_supported)
def test_lanes_change_no_outcome(path) -> None:
    """The same choices, with one lane and with three."""
    test = corpus_entry(path).test
    prepared = PreparedTest(test, INLINE)
    narrow = prepared.run(32, Noise(), 7)
    wide = prepared.run(32, Noise(lanes=3), 7)
    prepared.close()
    assert wide == narrow


def test_lanes_are_there() -> None:
    assert [each.type.elements for each in lower(IRIW, lanes=8).resources] == [8, 8]
    rows = litmus("X[0]=1 || X[1]=2 || r0=X", shape=(2,))
    (variable,) = lower(rows, lanes=8).resources
    assert (variable.type.elements, variable.type.ints) == (16, 2)
    wide = litmus("X=1", shape=(2, 4))  # has its own
    assert lower(wide, lanes=8).resources == lower(wide).resources


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="pinning needs Linux")
def test_threads_are_pinned_as_long_as_that_was_asked_for() -> None:
    cores = os.sched_getaffinity(0)
    prepared = PreparedTest(IRIW, INLINE)
    prepared.run(1, NOISES["pinned"], 0)
    assert len(os.sched_getaffinity(0)) == 1
    prepared.run(1, Noise(), 0)
    assert os.sched_getaffinity(0) == cores
    prepared.run(1, NOISES["pinned"], 0)
    prepared.run(1, replace(NOISES["pinned"], yield_percent=1), 0)
    prepared.close()
    assert os.sched_getaffinity(0) == cores


def test_delays_take_time_and_depend_on_the_seed() -> None:
    """192 delays of 0 to 1 ms: their sum is below 20 ms with less than 1e-60."""
    prepared = PreparedTest(IRIW, INLINE)
    start = time.monotonic()
    seen = [prepared.run(32, Noise(delay_us_max=1000), 1) for _ in range(2)]
    assert time.monotonic() - start > 2 * 0.02
    assert seen[0] == seen[1]


def test_each_setting_stands_in_the_record_by_name() -> None:
    for noise in NOISES.values():
        assert noise_from(asdict(noise)) == noise
    for wrong in ({"lanes": 0}, {"yield_percent": 101}, {"delay_us_max": -1}, {"barrier": 3}):
        with pytest.raises(ValueError, match=next(iter(wrong)) + "|bool"):
            noise_from(wrong)
