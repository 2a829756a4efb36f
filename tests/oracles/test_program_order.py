"""The model `acd`: what touches one resource comes in the order of the file."""

from __future__ import annotations

import pytest
from helpers import LITMUS

from corpus.builder import litmus
from corpus.textfile import load
from oracles import reference
from oracles.model import ACD

SB = load(next(path for path in LITMUS if path.stem == "SB")).test


@pytest.mark.parametrize(
    ("test", "observed", "values"),
    [
        # X=1; r0=Y; Y=1; r1=X in the file: r0 comes before Y=1, and r1 after X=1.
        (SB, ("r0", "r1"), {(0, 1)}),
        # Of different resources: nothing is added.
        (litmus("X=1; Z=1 || r0=Y; r1=W"), ("r0", "r1"), {(0, 0)}),
        # A body counts with all that it touches.
        (litmus("r1=F; if r1==1 { X=1 } else { Y=1 } || r0=X", init={"F": 1}), ("r0",), {(1,)}),
    ],
    ids=["SB", "others", "bodies"],
)
def test_program_order_per_resource(test, observed, values) -> None:
    allowed = reference.allowed_outcomes(test, ACD).witnesses
    assert {tuple(outcome.plain[name] for name in observed) for outcome in allowed} == values
