"""Differential comparison: histograms of one test, and totals over many graphs."""

from __future__ import annotations

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.outcome import Outcome
from litmusfuzz.reports.differential import (
    DifferentialComparison,
    DifferentialTotals,
    ExecutorResult,
    totals_table,
)
from litmusfuzz.reports.records import RunRecord

LOST = litmus("X+=1 || X+=1", name="lost-update")
ONE, TWO, THREE = (Outcome.of(LOST, {"X": (value,)}) for value in (1, 2, 3))
VERDICTS = {
    "executor": {ONE: "forbidden", TWO: "allowed", THREE: "forbidden"},
    "rfc": {ONE: "allowed", TWO: "allowed", THREE: "forbidden"},
}
TF = ExecutorResult("tf", "plain", "executor", {TWO: 100, ONE: 3})
JAX = ExecutorResult("jax", "plain", "rfc", {ONE: 40, TWO: 20})
BOTH = DifferentialComparison(LOST, (TF, JAX), VERDICTS, 8, "dag", unseen=(THREE,))


def test_an_outcome_is_forbidden_by_the_model_of_the_executor_that_shows_it() -> None:
    """X=1 is allowed under the model that one guarantees, and comes first for the other."""
    assert BOTH.table().splitlines() == [
        "X  tf/plain  jax/plain  executor   rfc",
        "1  3         40         FORBIDDEN  allowed",
        "2  100       20         allowed    allowed",
        "3  0         0          FORBIDDEN  FORBIDDEN",
    ]
    sound = DifferentialComparison(
        LOST, (ExecutorResult("tf", "plain", "executor", {TWO: 1}), JAX), VERDICTS
    )
    assert sound.listed == [ONE, TWO]


def test_a_long_table_is_cut() -> None:
    assert BOTH.table(1).splitlines()[1:] == [
        "1  3         40         FORBIDDEN  allowed",
        "and 2 more outcomes",
    ]


def test_histograms_as_data() -> None:
    data = BOTH.as_json()
    assert data["executors"] == {"tf/plain": "executor", "jax/plain": "rfc"}
    assert data["outcomes"][0] == {
        "outcome": {"X": 1},
        "counts": {"tf/plain": 3, "jax/plain": 40},
        "verdicts": {"executor": "forbidden", "rfc": "allowed"},
    }
    assert len(data["outcomes"]) == 3


def test_totals_count_what_one_shows_and_the_others_do_not() -> None:
    """What another shows is missed only if the own model allows it."""
    record = RunRecord(1, "out")
    record.compare(BOTH)
    strict = ExecutorResult("tf", "plain", "executor", {TWO: 100})
    record.compare(DifferentialComparison(LOST, (strict, JAX), VERDICTS))
    loose = ExecutorResult("jax", "plain", "rfc", {TWO: 5})
    third = ExecutorResult("native", "plain", "rfc", {TWO: 5, ONE: 1})
    record.compare(DifferentialComparison(LOST, (loose, third), VERDICTS))
    assert record.compared == 3
    assert record.latest is not None
    assert record.latest.results == (loose, third)
    assert record.differential == {
        "tf/plain": DifferentialTotals("executor", 2, 203, 3, 0, 0, 1),
        "jax/plain": DifferentialTotals("rfc", 3, 125, 5, 1, 1, 0),
        "native/plain": DifferentialTotals("rfc", 1, 6, 2, 1, 0, 0),
    }
    assert totals_table(record.differential).splitlines()[0].split() == [*record.differential]
