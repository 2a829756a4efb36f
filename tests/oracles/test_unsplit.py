"""Total orders without split updates, and many-ops that run as early as possible."""

from __future__ import annotations

import pytest
from helpers import LITMUS, allowed_values, corpus_entry

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.oracles import explorer, reference
from litmusfuzz.oracles.events import Access
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import EXECUTOR, MODELS, RFC, unsplit

UNSPLIT = unsplit(EXECUTOR)


def test_no_update_is_split() -> None:
    test = corpus_entry(next(path for path in LITMUS if path.stem == "scatter-disjoint-rows")).test
    assert allowed_values(test, UNSPLIT) == {((10, 0, 20),)}
    assert allowed_values(litmus("X+=1 || X+=1"), unsplit(RFC)) == {(2,)}


@pytest.mark.parametrize("model", MODELS.values(), ids=lambda model: model.name)
def test_unsplit_outcomes_are_allowed_and_the_oracles_agree(model) -> None:
    """The reference covers tests with at most 200 orders."""
    compared = 0
    for path in LITMUS:
        test = corpus_entry(path).test
        without = explorer.allowed_outcomes(test, unsplit(model))
        assert without.complete
        witnesses = without.witnesses
        assert set(witnesses) <= set(explorer.allowed_outcomes(test, model).witnesses), path.stem
        if not test.features:
            found = reference.allowed_outcomes(test, unsplit(model), 200)
            if found.complete:
                compared += 1
                assert set(found.witnesses) == set(witnesses), path.stem
    assert compared > 100


def test_the_loosest_executor_has_fewer_blocked_outcomes() -> None:
    """The branch's result waits for its dequeue only where an executor gathers results."""
    test = corpus_entry(next(path for path in LITMUS if path.stem == "cond-silent-instance")).test
    strict = set(Explorer(test, EXECUTOR).allowed_outcomes().witnesses)
    loose = set(Explorer(test, EXECUTOR, loosest=True).allowed_outcomes().witnesses)
    assert loose < strict
    assert {str(outcome.status) for outcome in strict - loose} == {"blocked"}


def test_a_many_op_runs_without_interruption_where_possible() -> None:
    """Only a split many-op puts 9 between 1 and 2."""
    test = litmus("Q!1,2 || Q!9", queues={"Q": 4})
    made = {}
    for outcome, order in explorer.allowed_outcomes(test, UNSPLIT).witnesses.items():
        order, seen = reference.at_once(test, UNSPLIT, order)
        made[str(outcome)] = str(seen)
        puts = [event.part for event in order if event.node.op == "QueueEnqueueManyV2"]
        assert puts == [0, 1]
    assert set(made.values()) == {"Q=[1,2,9]", "Q=[9,1,2]"}
    assert made["Q=[9,1,2]"] == "Q=[9,1,2]"


def test_a_blocked_many_op_continues_as_soon_as_the_queue_is_not_full() -> None:
    test = litmus("Q!1,2 || r0=Q?; r1=Q?", queues={"Q": 1})
    ((outcome, order),) = explorer.allowed_outcomes(test, UNSPLIT).witnesses.items()
    order, seen = reference.at_once(test, UNSPLIT, order)
    assert seen == outcome
    assert [e.access for e in order] == [
        Access.ENQUEUE,
        Access.DEQUEUE,
        Access.ENQUEUE,
        Access.DEQUEUE,
    ]
