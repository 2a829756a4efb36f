"""Which finding explains which graph."""

from __future__ import annotations

from corpus.builder import litmus
from corpus.outcome import TORN, Outcome
from fuzz.campaign.causes import explains, finding_name, likely_cause

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
    assert finding_name(PAIR, wrong).startswith("wrong-")
    assert likely_cause(PAIR, torn) == "torn + ResourceScatter + read"
