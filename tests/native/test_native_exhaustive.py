"""Exhaustive execution of the native executor gives exactly the allowed sets.

A missing outcome would hide defects, and an extra one is a defect; the tests check both
directions under both models.
"""

from __future__ import annotations

import pytest
from helpers import LITMUS, LOCKED_OUT, corpus_entry, for_each
from native.generated import generate_test
from native.helpers_native import all_outcomes, is_supported, prepared

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.textfile import loads
from litmusfuzz.oracles import explorer
from litmusfuzz.oracles.model import EXECUTOR, MODELS, RFC, Model

LIMIT = 20_000
"""Limit of executions for each test, model and strictness; the corpus needs no more."""


@for_each("path", LITMUS, where=is_supported)
def test_all_executions_show_exactly_the_allowed_set(path) -> None:
    test = corpus_entry(path).test
    for model in MODELS.values():
        if test.clusters:
            continue  # refused; see test_native_executor.py
        found = all_outcomes(test, model, LIMIT)
        assert found is not None, f"more than {LIMIT} executions"
        allowed = explorer.allowed_outcomes(test, model)
        assert allowed.complete
        assert found[0] == set(allowed.witnesses)


@pytest.mark.parametrize(
    ("program", "model", "traces"),
    [
        # SB has four traces by the orders of the events on X and on Y, less the cyclic one.
        ("X=1; r0=Y || Y=1; r1=X", EXECUTOR, 3),
        # Each order of three writes; a read between any two of them, or around.
        ("X=1 || X=2 || X=3", EXECUTOR, 6),
        ("X=1 || X=2 || X=3 || r0=X", EXECUTOR, 24),
        # Reads do not depend on each other.
        ("r0=X || r1=X || r2=X || Y=1 || Z=2", EXECUTOR, 1),
        # Indivisible: two orders. Split: R R then W W in either order, or one update after
        # the other.
        ("X+=1 || X+=1", EXECUTOR, 2),
        ("X+=1 || X+=1", RFC, 4),
    ],
)
def test_one_execution_for_each_trace(program: str, model: Model, traces: int) -> None:
    found = prepared(litmus(program), model).exhaust(1000)
    assert found.complete
    assert found.traces == traces


def test_an_op_that_is_locked_out_for_ever_races_all_the_same() -> None:
    """Where the search abandons an execution, too: two outcomes came in none that it tried."""
    test = loads(LOCKED_OUT).test
    for model in (EXECUTOR, RFC):
        found = all_outcomes(test, model, LIMIT)
        assert found is not None
        assert found[0] == set(explorer.allowed_outcomes(test, model).witnesses)


def test_an_unfinished_exploration_is_reported_as_incomplete() -> None:
    found = prepared(litmus("X=1 || X=2 || X=3 || X=4"), EXECUTOR).exhaust(23)
    assert not found.complete
    assert found.executions == 23
    assert prepared(litmus("X=1 || X=2 || X=3 || X=4"), EXECUTOR).exhaust(24).complete


# --- within a bound ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("program", "outcomes", "executions", "all_within"),
    [
        # No switch inside an update, one, two; then those are all.
        ("X+=1 || X+=1", (1, 2, 2), (2, 4, 6), (2, 4, 6)),
        ("X+=1; Y+=1 || Y+=1; X+=1", (1, 3, 3), (4, 12, 22), (6, 22, 48)),
        # An event that is a whole op is not preempted.
        ("X=1; r0=Y || Y=1; r1=X", (3, 3, 3), (4, 4, 4), (6, 6, 6)),
    ],
)
def test_a_bound_counts_switches_inside_ops(
    program: str,
    outcomes: tuple[int, ...],
    executions: tuple[int, ...],
    all_within: tuple[int, ...],
) -> None:
    executor = prepared(litmus(program), RFC)
    bounded = [executor.exhaust(1000, preemptions) for preemptions in range(3)]
    assert tuple(len(each.histogram) for each in bounded) == outcomes
    assert tuple(each.executions for each in bounded) == executions
    assert tuple(
        executor.exhaust(1000, preemptions, reduced=False).executions for preemptions in range(3)
    ) == (all_within)
    for each in bounded:
        assert each.complete
        assert not each.whole or set(each.histogram) == set(executor.exhaust(1000).histogram)


@pytest.mark.parametrize("chunk", range(2))
def test_within_a_bound_the_reduction_leaves_out_no_outcome(chunk: int) -> None:
    """Beside every execution within the bound, on tests of all features."""
    compared = more = executions = all_within = 0
    for seed in range(200 * chunk, 200 * chunk + 200):
        test = generate_test(seed, effects=4)
        if test is None:
            continue
        for model in MODELS.values():
            executor = prepared(test, model)
            everything = executor.exhaust(2_000)
            if not everything.complete:
                continue
            for preemptions in range(3):
                expected = executor.exhaust(2_000, preemptions, reduced=False)
                found = executor.exhaust(2_000, preemptions)
                if not expected.complete:
                    break
                assert found.complete
                assert set(found.histogram) == set(expected.histogram), (seed, model, preemptions)
                if found.whole:
                    assert set(found.histogram) == set(everything.histogram)
                else:
                    more += set(found.histogram) != set(everything.histogram)
                compared += 1
                executions += found.executions
                all_within += expected.executions
    assert compared > 500
    assert more > 5
    assert 3 * executions < all_within
