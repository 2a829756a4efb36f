"""Benchmark of the native executor: its graph, counts and report. No test checks a time."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.fuzz.bench import native
from litmusfuzz.fuzz.executors.protocol import Unavailable
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import RFC
from litmusfuzz.reports.speed import Speed, SpeedReport, Unit

if TYPE_CHECKING:
    from litmusfuzz.reports.speed import SpeedReport as Report

LITTLE = native.Effort(repeats=2, ops=3_000, walks=100, patience_s=0.05)


def test_the_graph_has_36_ops() -> None:
    assert native.ops(native.graph()) == (36, 28)


def test_iriw_has_fifteen_outcomes() -> None:
    allowed = Explorer(litmus(native.IRIW), RFC).allowed_outcomes()
    assert len(allowed.witnesses) == native.IRIW_OUTCOMES


@pytest.fixture(scope="module")
def measured() -> Report:
    return native.report(lambda _: None, compare=False, effort=LITTLE)


def test_each_engine_is_there_with_one_copy_and_many(measured: Report) -> None:
    """Engines over missing runtimes have a note instead."""
    for name, threads in native.ENGINES:
        found = [each for each in measured.figures if each.name == name]
        if found[0].value is None:
            assert found[0].note
            continue
        assert [each.copies for each in found] == [1, native.COPIES]
        for each in found:
            assert each.value
            assert each.value > 0
            assert each.threads == threads
            assert each.share is not None
    assert next(each for each in measured.figures if each.name == "inline").share == 0


def test_every_limit_is_on_a_figure(measured: Report) -> None:
    limits = {(each.unit, each.limit) for each in measured.figures if each.limit is not None}
    assert limits == {
        (Unit.NS_PER_OP, native.INLINE_NS),
        (Unit.NS_PER_OP, native.TWO_THREADS_NS),
        (Unit.PER_SECOND, native.WALKS_PER_SECOND),
        (Unit.SECONDS, native.IRIW_S),
    }


def test_tensorflow_runs_the_same_graph() -> None:
    pytest.importorskip("tensorflow")
    figures = native.report(lambda _: None, effort=LITTLE).figures
    ratios = [each for each in figures if each.unit is Unit.RATIO]
    assert [each.limit for each in ratios] == [native.RATIO, None] * 2
    assert [each.threads for each in ratios] == [1, 1, 2, 2]
    assert all(each.share is not None for each in ratios)


def test_the_best_lap_is_one_on_two_threads_if_there_is_any() -> None:
    figure = Speed("pool", Unit.NS_PER_OP, None, threads=2)
    contender = native.Contender(figure, 10, lambda: native.Lap(1.0))
    lazy, slow, quick = native.Lap(1e-8, 0.1), native.Lap(4e-8, 0.3), native.Lap(2e-8, 0.25)
    assert contender.best([lazy, slow, quick]).value == pytest.approx(2.0)
    assert contender.best([lazy]).counts is False
    walk = replace(contender, figure=Speed("random", Unit.PER_SECOND, None))
    assert walk.best([lazy, slow]).value == pytest.approx(1e9)


def test_a_missing_framework_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> None:
        raise Unavailable("no tensorflow")

    monkeypatch.setattr(native, "tensorflow_contenders", missing)
    figures = native.report(lambda _: None, effort=LITTLE).figures
    (found,) = [each for each in figures if each.name == "TensorFlow"]
    assert found.value is None
    assert found.cells()[-1] == "no tensorflow"


# --- what is shown ---------------------------------------------------------------------

KEPT = Speed("inline", Unit.NS_PER_OP, 12.34, copies=64, share=0.0, limit=30.0)
LAZY = Speed("pool", Unit.NS_PER_OP, 20.0, 2, 64, share=0.24, limit=80.0)
SLOW = Speed("SB", Unit.PER_SECOND, 1234567.8, share=0.0, limit=3e6)
NONE = Speed("tbb", Unit.NS_PER_OP, None, 2, 64, note="not built")


def test_a_limit_is_met_only_on_as_many_threads_as_it_says() -> None:
    assert [each.met for each in (KEPT, LAZY, SLOW, NONE)] == [True, False, False, True]
    assert replace(LAZY, share=0.25).met
    assert not replace(NONE, limit=80.0).met
    lines = SpeedReport((KEPT, LAZY, SLOW, NONE), ("A.",), 7).text().splitlines()
    assert lines[1].split() == ["inline", "1", "64", "12.3", "ns/op", "<=", "30", "0%"]
    assert lines[2].endswith("24%        not on two threads: does not count; MISSED")
    assert lines[3].split()[3:] == ["1,234,568", "copies/s", ">=", "3,000,000", "0%", "MISSED"]
    assert lines[4].split()[3:] == ["-", "ns/op", "-", "-", "not", "built"]
    assert lines[-1] == "1 of 3 limits met"


def test_json_has_everything() -> None:
    data = json.loads(json.dumps(SpeedReport((KEPT, LAZY), ("A.",), 7).as_json()))
    assert [figure["met"] for figure in data["figures"]] == [True, False]
    assert data["figures"][1]["share"] == 0.24
    assert data["figures"][1]["counts"] is False
    assert data["figures"][0]["unit"] == "ns/op"
    assert (data["repeats"], data["about"]) == (7, ["A."])
