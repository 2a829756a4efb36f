"""The table of pairs of ops under control: some of its rows."""

from __future__ import annotations

import pytest
from pairs_under_control import OPS, pair, short, wrong


@pytest.mark.parametrize(
    ("first", "second", "outcomes"),
    [
        ("ReadVariableOp", "ResourceScatterNdAdd", set()),
        ("ReadVariableOp", "ResourceScatterAdd", {"a=torn X=12"}),
        ("ResourceApplyMomentum", "ResourceApplyMomentum", set()),
        # The whole addition, a part of it or nothing is lost.
        ("AssignAddVariableOp", "ResourceStridedSliceAssign", {"X=torn", "X=10"}),
    ],
)
def test_a_pair_is_atomic_by_locks_and_perhaps_not_by_pages(
    first: str, second: str, outcomes: set[str]
) -> None:
    test = pair(first, second)
    schedules, _, complete = wrong(test, "locks")
    assert complete
    assert not schedules
    schedules, _, complete = wrong(test, "pages")
    assert complete
    assert {short(outcome) for outcome in schedules} == outcomes


def test_every_pair_is_a_test() -> None:
    for first in OPS:
        for second in OPS:
            assert pair(first, second).nodes
