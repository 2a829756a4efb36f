"""Differential comparison: histograms of one test, and the totals of each executor on it."""

from __future__ import annotations

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.outcome import Outcome
from litmusfuzz.reports.differential import DifferentialComparison, ExecutorResult
from litmusfuzz.reports.events import ExecutorTotals

LOST = litmus("X+=1 || X+=1", name="lost-update")
ONE, TWO, THREE = (Outcome.of(LOST, {"X": (value,)}) for value in (1, 2, 3))
VERDICTS = {
    "executor": {ONE: "forbidden", TWO: "allowed", THREE: "forbidden"},
    "rfc": {ONE: "allowed", TWO: "allowed", THREE: "forbidden"},
}
TF = ExecutorResult("tf", "plain", "executor", {TWO: 100, ONE: 3})
JAX = ExecutorResult("jax", "plain", "rfc", {ONE: 40, TWO: 20})
BOTH = DifferentialComparison(LOST, (TF, JAX), VERDICTS, unseen=(THREE,))


def test_an_outcome_is_forbidden_by_the_model_of_the_executor_that_shows_it() -> None:
    """X=1 is allowed under the model that one guarantees, and comes first for the other."""
    assert BOTH.table().splitlines() == [
        "X  tf/plain  jax/plain  model executor  rfc",
        "1  3         40         FORBIDDEN       allowed",
        "2  100       20         allowed         allowed",
        "3  0         0          FORBIDDEN       FORBIDDEN",
    ]
    sound = DifferentialComparison(
        LOST, (ExecutorResult("tf", "plain", "executor", {TWO: 1}), JAX), VERDICTS
    )
    assert sound.listed == [ONE, TWO]


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
    assert BOTH.totals() == {
        "tf/plain": totals("executor", 103, 2, 0, 0, 1),
        "jax/plain": totals("rfc", 60, 2, 0, 0, 0),
    }
    strict = ExecutorResult("tf", "plain", "executor", {TWO: 100})
    # X=1 is not missed: the model of `strict` forbids it.
    assert DifferentialComparison(LOST, (strict, JAX), VERDICTS).totals() == {
        "tf/plain": totals("executor", 100, 1, 0, 0, 0),
        "jax/plain": totals("rfc", 60, 2, 1, 0, 0),
    }
    loose = ExecutorResult("jax", "plain", "rfc", {TWO: 5})
    third = ExecutorResult("native", "plain", "rfc", {TWO: 5, ONE: 1})
    assert DifferentialComparison(LOST, (loose, third), VERDICTS).totals() == {
        "jax/plain": totals("rfc", 5, 1, 0, 1, 0),
        "native/plain": totals("rfc", 6, 2, 1, 0, 0),
    }


def test_an_outcome_is_alone_if_none_of_several_others_shows_it() -> None:
    third = ExecutorResult("native", "plain", "rfc", {THREE: 1, ONE: 2})
    made = DifferentialComparison(LOST, (TF, JAX, third), VERDICTS).totals()
    assert {title: (each.alone, each.missed) for title, each in made.items()} == {
        "tf/plain": (0, 0),
        "jax/plain": (0, 0),
        "native/plain": (1, 1),
    }


def totals(
    model: str, executions: int, outcomes: int, alone: int, missed: int, forbidden: int
) -> ExecutorTotals:
    return ExecutorTotals(
        model=model,
        executions=executions,
        outcomes=outcomes,
        alone=alone,
        missed=missed,
        forbidden=forbidden,
    )
