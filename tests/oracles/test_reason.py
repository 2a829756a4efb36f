"""Reasons: enough to forbid, nothing too much, and told as the cycle that people know."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from corpus.builder import litmus
from corpus.outcome import TORN, Value
from corpus.textfile import value_from_plain
from fuzz.strategies.graphs import resource_graphs
from oracles.axiomatic import Budget
from oracles.model import EXECUTOR, MODELS, RFC
from oracles.reason import Reason, explain, matches
from oracles.reference import allowed_outcomes
from oracles.relaxed import relaxed, with_rules

BUDGET = 20_000


def because(text: str, model=RFC, /, **wanted: int) -> Reason | None:
    test = litmus(text)
    return explain(test, model, {n: value_from_plain(test, n, v) for n, v in wanted.items()})


@pytest.mark.parametrize(
    ("text", "wanted", "cycle"),
    [
        (
            "X=1; r0=Y || Y=1; r1=X",
            {"r0": 0, "r1": 0},
            "r0 waits for w0; r0 read 0 of Y, so it came before w1; "
            "r1 waits for w1; r1 read 0 of X, so it came before w0",
        ),
        (
            "X=1; Y=2 || r0=Y; r1=X",
            {"r0": 2, "r1": 0},
            "w1 waits for w0; r0 read 2 of Y, so it came after w1; "
            "r1 waits for r0; r1 read 0 of X, so it came before w0",
        ),
        (
            "X=1; Y=2 || Y=1; X=2",
            {"X": 1, "Y": 1},
            "w1 waits for w0; Y ended as 1, so w1 came before w2; "
            "w3 waits for w2; X ended as 1, so w3 came before w0",
        ),
    ],
)
def test_classic_shapes_are_told_as_their_cycle(text: str, wanted, cycle: str) -> None:
    found = because(text, **wanted)
    assert found is not None
    assert str(found) == cycle
    assert found.rules == ()


def test_a_rule_of_the_model_is_named() -> None:
    lost = because("X+=1 || X+=1", EXECUTOR, X=1)
    assert lost is not None
    assert (lost.edges, lost.rules) == ((), ("dense updates indivisible",))
    assert because("X+=1 || X+=1", RFC, X=1) is None  # allowed there
    section = because(
        "lock M; r0=X; X=r0+1; unlock M || lock M; r1=X; X=r1+1; unlock M", r0=0, r1=0
    )
    assert section is not None
    assert section.rules == ("critical sections",)


def test_orders_of_runs_are_named() -> None:
    from corpus.graph import Run

    test = litmus("X=1 ||| r0=X")
    ordered = replace(test, client=(Run("a", "g0"), Run("b", "g1", ("a",))), observe=("b.r0",))
    found = explain(ordered, RFC, {"b.r0": (0,)})
    assert found is not None
    assert [str(edge) for edge in found.edges] == ["b waits for a"]
    assert found.cycle == ("b.r0 waits for a.w0", "b.r0 read 0 of X, so it came before a.w0")


def test_values_that_nothing_makes_need_no_edge() -> None:
    found = because("X=1; r0=X", r0=7)
    assert found is not None
    assert (found.edges, found.rules, found.cycle) == ((), (), ())


def test_torn_and_allowed_and_over_budget() -> None:
    test = litmus("X=1; r0=X")
    torn = explain(test, RFC, {"r0": TORN})
    assert torn is not None
    assert "atomic" in str(torn)
    assert explain(test, RFC, {"r0": (1,)}) is None
    assert (
        explain(litmus("X=1; r0=Y || Y=1; r1=X"), RFC, {"r0": (0,), "r1": (0,)}, Budget(events=3))
        is None
    )


@given(resource_graphs(), st.integers(0, 1 << 30), st.sampled_from(sorted(MODELS)))
@settings(max_examples=40, deadline=None, derandomize=True, database=None)
def test_a_reason_forbids_alone_and_each_part_is_needed(test, pick: int, model_name: str) -> None:
    model = MODELS[model_name]
    assume(len(test.observe) > 0)
    allowed = allowed_outcomes(test, model, 400)
    assume(allowed.complete)
    # An outcome that mixes values of two allowed ones: near, and often forbidden.
    outcomes = sorted(allowed.witnesses, key=str)
    left, right = outcomes[pick % len(outcomes)], outcomes[pick // 7 % len(outcomes)]
    wanted: dict[str, Value] = {
        name: (a if (pick >> i) & 1 else b)
        for i, ((name, a), (_, b)) in enumerate(zip(left.values, right.values, strict=True))
    }
    found = explain(test, model, wanted)
    if any(matches(outcome, wanted) for outcome in outcomes):
        assert found is None
        return
    if found is None:  # some relaxed question was over budget
        return

    def forbids(edges, rules) -> bool | None:
        named = [axiom for axiom in model.axioms if str(axiom) in rules]
        answer = allowed_outcomes(relaxed(test, edges), with_rules(model, named), BUDGET)
        if any(matches(outcome, wanted) for outcome in answer.witnesses):
            return False
        return True if answer.complete else None

    assert forbids(found.edges, found.rules) is True
    for edge in found.edges:
        assert forbids([e for e in found.edges if e != edge], found.rules) is False
    for rule in found.rules:
        assert forbids(found.edges, [r for r in found.rules if r != rule]) is False
