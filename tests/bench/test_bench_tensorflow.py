"""Benchmark of campaigns on TensorFlow: its graphs and figures. No test checks a time."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING

from litmusfuzz.fuzz.bench import tensorflow
from litmusfuzz.fuzz.executors.protocol import Noise
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.fuzz.executors.tensorflow import TensorFlowExecutor
from litmusfuzz.fuzz.finding.judge import number_allowed
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import EXECUTOR
from litmusfuzz.reports.bench import BenchReport, Figure

if TYPE_CHECKING:
    import pytest


def test_a_limit_is_met_or_missed() -> None:
    least = Figure("a", 0.71, "%", least=0.7)
    most = Figure("b", 12.34, "times", most=10.0)
    none = Figure("c", 1234.5)
    assert (least.met, most.met, none.met) == (True, False, True)
    assert BenchReport((least, most, none), ("how",)).text().splitlines() == [
        "figure    measured        limit  state",
        "a            71.0%     >= 70.0%  met",
        "b       12.3 times  <= 10 times  MISSED",
        "c            1,234            -",
        "",
        "how",
        "",
        "1 of 2 limits met",
    ]


def test_graphs_have_several_outcomes_and_ranges_are_disjoint() -> None:
    first, second = tensorflow.graphs(0, 3), tensorflow.graphs(10_000, 3)
    assert len(first) == len(second) == 3
    assert not set(first) & set(second)
    for test in first:
        assert (number_allowed(Explorer(test, EXECUTOR)) or 0) >= tensorflow.SEVERAL


def test_alternating_contenders_give_a_ratio(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensorflow, "GRAPHS", 1)
    monkeypatch.setattr(tensorflow, "REPEATS", 1)
    executor = TensorFlowExecutor()
    for figure in (tensorflow.loop(executor), tensorflow.copies(executor)):
        assert figure.value
        assert figure.value > 0
        assert figure.limited


def test_the_executor_reports_the_seconds_of_each_part_of_its_work() -> None:
    executor = TensorFlowExecutor()
    (test,) = tensorflow.graphs(0, 1)
    start = time.perf_counter()
    with closing(executor.prepare(test, configuration("tf"))) as prepared:
        prepared.run(64, Noise(), seed=1)
    elapsed_s = time.perf_counter() - start
    counters = executor.counters()
    assert set(counters) == {"building_s", "running_s", "counting_s"}
    assert all(seconds > 0 for seconds in counters.values())
    assert sum(counters.values()) <= elapsed_s
