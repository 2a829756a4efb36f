"""Forced outcomes, the reasons for outcomes that are not forced, and reports of other outcomes."""

from __future__ import annotations

from contextlib import closing

import pytest
from helpers import LITMUS, corpus_entry

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.fuzz.commands.force_all import (
    ELEMENTS,
    FAILS,
    ITERATIONS,
    SPLIT,
    STRICTER,
    Limits,
    cover,
    plan,
)
from litmusfuzz.fuzz.executors.table import configuration, executor_class
from litmusfuzz.fuzz.executors.worker import Worker
from litmusfuzz.oracles.model import EXECUTOR, RFC


def corpus(name):
    return corpus_entry(next(path for path in LITMUS if path.stem == name)).test


@pytest.mark.parametrize(
    ("test", "guaranteed", "reasons"),
    [
        (litmus("X=1; r0=Y || Y=1; r1=X"), EXECUTOR, []),
        (litmus("X+=1 || X+=1"), EXECUTOR, [SPLIT]),
        (litmus("X+=1 || X+=1"), RFC, [SPLIT]),
        (corpus("scatter-disjoint-rows"), EXECUTOR, [SPLIT, SPLIT]),
        (corpus("enqueue-many-interleaved"), EXECUTOR, [ELEMENTS, ELEMENTS]),
        (corpus("rule-parallel-1"), EXECUTOR, [ITERATIONS]),
        (corpus("rule-parallel-1"), RFC, []),
        # The window holds on each of two devices, though the model asks for none.
        (corpus("devices-window"), EXECUTOR, [ITERATIONS, SPLIT, SPLIT]),
        (corpus("h-strict-take"), EXECUTOR, [STRICTER]),
        (corpus("close-many-too-few"), EXECUTOR, [FAILS]),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_an_outcome_that_is_not_forced_has_a_reason(test, guaranteed, reasons) -> None:
    assert sorted(plan(test, guaranteed, Limits()).apart.values()) == sorted(reasons)


def test_forced_and_unforced_outcomes_are_all_allowed_ones() -> None:
    for path in LITMUS:
        entry = corpus_entry(path)
        for guaranteed in (EXECUTOR, RFC):
            planned = plan(entry.test, guaranteed, Limits())
            assert not planned.orders.keys() & planned.apart.keys()
            allowed = entry.allowed["rfc"]
            assert {*planned.orders, *planned.apart} == set(allowed), path.stem


def test_limits_leave_a_test_out_with_the_reason() -> None:
    test = litmus("X=1; r0=Y || Y=1; r1=X")
    with closing(Worker("native")) as worker:
        config = configuration("native", "controlled")
        few = cover(test, worker, config, Limits(events=3))
        assert few.left_out == "4 events, more than 3"
        assert cover(test, worker, config, Limits(outcomes=2)).left_out == (
            "3 outcomes, more than 2"
        )
        assert len(cover(test, worker, config, Limits(4, 3)).reached) == 3


@pytest.mark.parametrize(
    ("executor", "config"), [("native", "controlled"), ("native", "controlled_split"), ("jax", "")]
)
def test_other_executors_that_can_be_forced_reach_all_as_well(executor: str, config: str) -> None:
    """A forced order has the two events of an update next to each other."""
    with closing(Worker(executor)) as worker:
        chosen = configuration(executor, config or "unclustered")
        support = executor_class(executor).support
        tests = [(path.stem, corpus_entry(path).test) for path in LITMUS[::10]]
        taken = [(n, t) for n, t in tests if not (t.clusters or support.lacking(t))]
        assert len(taken) >= len(tests) // 2
        for name, test in taken:
            found = cover(test, worker, chosen, Limits())
            assert found.complete, name


def test_another_outcome_of_an_order_that_was_followed_is_reported() -> None:
    """The mutant's queues return the last element first."""
    test = litmus("Q!1; Q!2; r0=Q?", queues={"Q": 2})
    name = "mutant/last-in-first-out"
    with closing(Worker(name)) as worker:
        found = cover(test, worker, configuration(name), Limits())
    ((wanted, order, seen),) = found.wrong
    assert (wanted.plain, seen.plain) == ({"r0": 1, "Q": [2]}, {"r0": 2, "Q": [1]})
    assert len(order) == 3
    assert not found.reached
