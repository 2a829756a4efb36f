"""`check`: results and messages in a user's own test of an executor."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.outcome import Outcome
from litmusfuzz.corpus.textfile import loads
from litmusfuzz.fuzz.executors.native.executor import NativeExecutor
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.fuzz.mutants.stale_reads import StaleReads
from litmusfuzz.fuzz.testing import (
    RFC,
    ForbiddenOutcome,
    Refused,
    Undecided,
    check,
    resource_graphs,
)
from litmusfuzz.oracles.explorer import Budget

SUM = litmus("X+=1 || X+=2 || X+=4; r0=X")
SB = litmus("X=1; r0=Y || Y=1; r1=X")
REPEATED = settings(
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=100,
    suppress_health_check=list(HealthCheck),
)


def test_a_forbidden_outcome_is_reported_with_the_nearest_allowed_one_and_the_reason() -> None:
    with pytest.raises(AssertionError) as caught:
        check(SB, StaleReads)
    error = caught.value
    assert isinstance(error, ForbiddenOutcome)
    both_late = {"r0": 0, "r1": 0, "X": 1, "Y": 1}
    assert error.explanation.outcome.plain == both_late
    assert error.explanation.nearest is not None
    assert error.explanation.nearest.plain in (both_late | {"r0": 1}, both_late | {"r1": 1})
    assert error.explanation.reason is not None
    assert error.explanation.reason.cycle
    head, _, file = str(error).partition("\n\n")
    for part in ("seen", "nearest", "broken", "because"):
        assert f"\n  {part} " in head
    assert loads(file).test == SB


def test_allowed_outcomes_are_returned() -> None:
    seen = check(SB, NativeExecutor(), config=configuration("native", "controlled"), model=RFC)
    assert sum(seen.values()) >= 100
    assert all(isinstance(outcome, Outcome) for outcome in seen)


def test_an_unjudged_outcome_is_no_pass() -> None:
    with pytest.raises(Refused, match="queues"):
        check(litmus("Q!1 || r0=Q?", queues={"Q": 1}), StaleReads)
    # A sum needs a search, unlike values of which each has one write.
    with pytest.raises(Undecided, match="100 of 100 executions"):
        check(SUM, StaleReads, budget=Budget(states=1))


def test_hypothesis_shrinks_to_a_write_and_a_read() -> None:
    """Stale reads need no race: a read after a write shows them."""

    @given(resource_graphs())
    @REPEATED
    def property_(graph) -> None:
        check(graph, StaleReads, count=1)

    with pytest.raises(ForbiddenOutcome) as caught:
        property_()
    assert len(caught.value.test.effects) == 2


def test_graphs_that_an_executor_refuses_are_rejected() -> None:
    """All of them: Hypothesis says that it could check nothing."""

    class RunsNothing(StaleReads):
        def prepare(self, test, config):
            raise Refused("tests")

    @given(resource_graphs())
    @settings(REPEATED, max_examples=5)
    def property_(graph) -> None:
        check(graph, RunsNothing)

    with pytest.raises(Unsatisfiable):
        property_()
