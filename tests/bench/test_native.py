"""Benchmark of the native executor: its graph, counts and report. No test checks a time."""

from __future__ import annotations

import json

import pytest

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.bench import native
from litmusfuzz.fuzz.executors.protocol import Unavailable
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import RFC
from litmusfuzz.reports.bench import BenchReport, Figure

LITTLE = native.Effort(repeats=2, ops=3_000, walks=100, patience_s=0.05)


def test_the_graph_has_36_ops() -> None:
    assert native.ops(native.graph()) == (36, 28)


def test_iriw_has_fifteen_outcomes() -> None:
    allowed = Explorer(litmus(native.IRIW), RFC).allowed_outcomes()
    assert len(allowed.witnesses) == native.IRIW_OUTCOMES


@pytest.fixture(scope="module")
def measured() -> BenchReport:
    return native.report(lambda _: None, compare=False, effort=LITTLE)


def test_each_engine_is_there_with_one_copy_and_many(measured: BenchReport) -> None:
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
            assert each.elsewhere is not None
    assert next(each for each in measured.figures if each.name == "inline").elsewhere == 0


def test_every_limit_is_on_a_figure(measured: BenchReport) -> None:
    limits = {(each.unit, each.least, each.most) for each in measured.figures if each.limited}
    assert limits == {
        ("ns/op", None, native.INLINE_NS),
        ("ns/op", None, native.TWO_THREADS_NS),
        ("copies/s", native.WALKS_PER_SECOND, None),
        ("s", None, native.IRIW_S),
    }


def test_tensorflow_runs_the_same_graph() -> None:
    pytest.importorskip("tensorflow")
    figures = native.report(lambda _: None, effort=LITTLE).figures
    ratios = [each for each in figures if each.unit == "times faster"]
    assert [(each.least, each.most) for each in ratios] == [(native.RATIO, None), (None, None)] * 2
    assert [each.threads for each in ratios] == [1, 1, 2, 2]
    assert all(each.elsewhere is not None for each in ratios)


def test_the_best_lap_is_one_on_two_threads_if_there_is_any() -> None:
    figure = Figure("pool", None, "ns/op", threads=2)
    contender = native.Contender(figure, 10, lambda: native.Lap(1.0))
    lazy, slow, quick = native.Lap(1e-8, 0.1), native.Lap(4e-8, 0.3), native.Lap(2e-8, 0.25)
    assert contender.best([lazy, slow, quick]).value == pytest.approx(2.0)
    assert contender.best([lazy]).counts is False
    walk = replace(contender, figure=Figure("random", None, "copies/s"))
    assert walk.best([lazy, slow]).value == pytest.approx(1e9)


def test_a_missing_framework_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> None:
        raise Unavailable("no tensorflow")

    monkeypatch.setattr(native, "tensorflow_contenders", missing)
    figures = native.report(lambda _: None, effort=LITTLE).figures
    (found,) = [each for each in figures if each.name == "TensorFlow"]
    assert found.value is None
    assert found.cells()["note"] == "no tensorflow"


# --- what is shown ---------------------------------------------------------------------

KEPT = Figure("inline", 12.34, "ns/op", most=30.0, threads=1, copies=64, elsewhere=0.0)
LAZY = Figure("pool", 20.0, "ns/op", most=80.0, threads=2, copies=64, elsewhere=0.24)
SLOW = Figure("SB", 1234567.8, "copies/s", least=3e6, threads=1, elsewhere=0.0)
NONE = Figure("tbb", None, "ns/op", threads=2, copies=64, note="not built")


def test_a_limit_is_met_only_on_as_many_threads_as_it_says() -> None:
    assert [each.met for each in (KEPT, LAZY, SLOW, NONE)] == [True, False, False, True]
    assert replace(LAZY, elsewhere=0.25).met
    assert replace(LAZY, elsewhere=None).met
    assert not replace(NONE, most=80.0).met
    lines = BenchReport((KEPT, LAZY, SLOW, NONE), ("A.",)).text().splitlines()
    assert lines[1].split() == [
        *("inline", "1", "64", "12.3", "ns/op", "<=", "30", "ns/op", "met", "0.0%"),
    ]
    assert lines[2].endswith("MISSED      24.0%  not on two threads: does not count")
    assert lines[3].split()[3:] == [
        *("1,234,568", "copies/s", ">=", "3,000,000", "copies/s", "MISSED", "0.0%"),
    ]
    assert lines[4].split()[3:] == ["-", "-", "-", "not", "built"]
    assert lines[-1] == "1 of 3 limits met"


def test_json_says_what_counts() -> None:
    data = json.loads(json.dumps(BenchReport((KEPT, LAZY), ("A.",)).as_json()))
    assert [(each["met"], each["counts"]) for each in data["figures"]] == [
        *((True, True), (False, False)),
    ]
    assert (data["figures"][1]["elsewhere"], data["about"]) == (0.24, ["A."])
