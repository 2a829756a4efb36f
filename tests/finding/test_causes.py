"""The likely cause of a finding, and the findings that explain another graph."""

from __future__ import annotations

from helpers import differentiated

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.outcome import TORN, Outcome, Status
from litmusfuzz.fuzz.campaign.findings import models_that_allow
from litmusfuzz.fuzz.campaign.settings import CAMPAIGN_BUDGET
from litmusfuzz.fuzz.finding.causes import (
    explains,
    likely_cause,
    may_keep_cause,
    may_share_cause,
)
from litmusfuzz.fuzz.finding.finding_names import finding_name

PAIR = litmus("X[0]+=1 || r0=X", shape=(1,))


def test_a_shape_explains_a_graph_that_contains_it() -> None:
    large = litmus("Y=1; Z[0]+=5 || Z[0]=3 || Y=2; r0=Z", shape=(1,))
    assert explains(PAIR, large, exact=True)
    assert explains(PAIR, PAIR, exact=True)


def test_not_if_ordered_there_or_on_different_variables() -> None:
    assert not explains(PAIR, litmus("X[0]+=1; r0=X", shape=(1,)), exact=True)
    assert not explains(PAIR, litmus("X[0]+=1 || r0=Y || Y=1", shape=(1,)), exact=True)


def test_classes_are_coarser_than_names() -> None:
    other = litmus("X[0]=1 || r0=X[0]", shape=(1,))
    assert not explains(PAIR, other, exact=True)
    assert explains(PAIR, other, exact=False)


def test_one_op_cannot_stand_for_two() -> None:
    two = litmus("X[0]+=1 || X[0]+=1", shape=(1,))
    assert not explains(two, PAIR, exact=False)


def test_names_tell_what_was_seen() -> None:
    torn = Outcome.of(PAIR, {"r0": TORN, "X": (1,)})
    wrong = Outcome.of(PAIR, {"r0": (7,), "X": (1,)})
    assert finding_name(PAIR, torn).startswith("torn-ReadVariableOp+ScatterAdd-")
    assert finding_name(PAIR, wrong).startswith("wrong-value-")
    assert likely_cause(PAIR, torn) == "torn + ResourceScatter + read"


def test_names_order_and_many_lanes_make_another_cause() -> None:
    large = litmus("X[0]+=1 || r0=X", shape=(1, 1 << 19))
    narrow = litmus("X[0]+=1 || r0=X", shape=(1, 1 << 12))
    torn = Outcome.of(large, {"r0": TORN, "X": (1,)})
    kernels = "torn + ResourceScatter + read"
    assert likely_cause(large, torn) == f"{kernels}, only with 524288 lanes"
    assert likely_cause(narrow, torn) == kernels
    assert (
        likely_cause(narrow, torn, names=["w0", "r0"], order=True)
        == f"{kernels}, only with the name r0 and the name w0 and its order of nodes"
    )
    assert explains(large, large, exact=True)
    assert not explains(large, narrow, exact=True)
    assert explains(narrow, large, exact=True)
    assert explains(narrow, PAIR, exact=True)


def test_sections_runs_and_bodies_are_part_of_a_shape() -> None:
    held = litmus("lock M; X=1; r0=X; unlock M || lock M; X=2; unlock M")
    assert explains(
        held, litmus("Y=1; lock N; X=1; r0=X; Y=1; unlock N || lock N; X=2; unlock N"), exact=True
    )
    # The read is not in the section there.
    assert not explains(
        held, litmus("lock M; X=1; unlock M; r0=X || lock M; X=2; unlock M"), exact=True
    )
    # A feature that is missing there.
    assert not explains(held, litmus("X=1; r0=X || X=2"), exact=True)
    ordered = litmus("X=1 ||| r0=X", client="a:g0; b:g1 after a")
    concurrent = litmus("X=1 ||| r0=X", client="a:g0; b:g1")
    assert explains(ordered, concurrent, exact=True)
    assert not explains(concurrent, ordered, exact=True)


def test_a_blocked_run_is_not_traded_for_a_wrong_value_nor_that_for_a_tear() -> None:
    test = litmus("X=1; r0=Q?", queues={"Q": 1})
    blocked = Outcome.of(test, {"X": (1,), "Q": ()}, Status.BLOCKED)
    wrong = Outcome.of(test, {"r0": (7,), "X": (1,), "Q": ()})
    torn = Outcome.of(test, {"r0": TORN, "X": (1,), "Q": ()})
    for before, after, kept in (
        ("blocked", blocked, True),
        ("blocked", wrong, False),
        ("wrong", blocked, False),
        ("wrong", torn, False),
        ("torn", wrong, True),
    ):
        assert may_keep_cause(before, after) is kept
    assert finding_name(test, blocked).startswith("blocked-AssignVariableOp+QueueDequeueV2-")


def test_what_may_share_a_cause_has_a_symptom_and_a_sparse_kernel_in_common() -> None:
    dense = litmus("X=1; r0=X", shape=(1,))
    other = litmus("X[0]=1 || r0=X[0]", shape=(1,))
    torn = Outcome.of(PAIR, {"r0": TORN, "X": (1,)})
    wrong = Outcome.of(PAIR, {"r0": (7,), "X": (1,)})
    assert may_share_cause(PAIR, [torn, wrong], other, [wrong])
    assert not may_share_cause(PAIR, [torn], other, [wrong])
    assert not may_share_cause(PAIR, [wrong], dense, [wrong])
    assert may_share_cause(dense, [wrong], dense, [wrong])


def test_a_model_that_does_not_apply_allows_nothing() -> None:
    """Gradients are those of the model `sequential` alone, which is no looser one."""
    plain = litmus("X=1; r0=X", dtype="float32")
    outcome = Outcome.of(plain, {"r0": (1,), "X": (1,)})
    assert "rfc" in models_that_allow(plain, [outcome], CAMPAIGN_BUDGET)
    test = differentiated(plain)
    outcome = Outcome.of(test, {"r0": (1,), "X": (1,), "grad(X)": (1,)})
    assert models_that_allow(test, [outcome], CAMPAIGN_BUDGET) == ()
