"""The model `acd`: what touches one resource comes in the order of the file."""

from __future__ import annotations

import pytest
from helpers import LITMUS, corpus_entry

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.textfile import loads
from litmusfuzz.oracles import explorer, reference
from litmusfuzz.oracles.errors import NoProgramOrder
from litmusfuzz.oracles.model import ACD, EXECUTOR

SB = corpus_entry(next(path for path in LITMUS if path.stem == "SB")).test


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


def test_no_program_has_clusters() -> None:
    test = litmus("cluster {X=1; r0=X} || Y=1")
    for oracle in (explorer, reference):
        with pytest.raises(NoProgramOrder, match=r"^clusters\.k0: no program has clusters .*acd"):
            oracle.allowed_outcomes(test, ACD)


def test_a_section_that_program_order_goes_through_is_a_cycle() -> None:
    """It waits for a write that stands behind its member in the file."""
    test = loads(
        """
litmusfuzz: 2
name: around
variables:
  X: {dtype: int32, shape: [], init: 0}
mutexes:
  M: {}
graphs:
  main:
    c: {op: Const, dtype: int32, shape: [], value: 1}
    r0: {op: ReadVariableOp, resources: [X]}
    w: {op: AssignVariableOp, resources: [X], inputs: [c]}
    s: {op: CriticalSection, resources: [M], members: [r0], after: [w]}
observe: [r0]
allowed: {}
"""
    ).test
    assert explorer.allowed_outcomes(test, EXECUTOR).complete
    with pytest.raises(NoProgramOrder, match=r"cycle through a section: .*, by program order"):
        explorer.allowed_outcomes(test, ACD)
