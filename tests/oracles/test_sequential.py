"""The sequential interpreter, and the model `sequential` of all oracles: one outcome each."""

from __future__ import annotations

import pytest
from helpers import LITMUS, corpus_entry, for_each, share_of

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.oracles import axiomatic, explorer, reference, sequential
from litmusfuzz.oracles.model import PROGRAM, SEQUENTIAL

PROGRAMS = [
    path for path in LITMUS if not corpus_entry(path).test.features - sequential.EXPRESSIBLE
]
"""Corpus tests that a program of one thread can express."""


@for_each("path", PROGRAMS)
def test_the_interpreter_yields_the_single_outcome(path) -> None:
    test = corpus_entry(path).test
    outcome = sequential.outcome(test)
    allowed = explorer.allowed_outcomes(test, SEQUENTIAL)
    assert allowed.complete
    assert set(allowed.witnesses) == {outcome}


@for_each("path", share_of(PROGRAMS, 4))
def test_the_other_oracles_agree(path) -> None:
    test = corpus_entry(path).test
    outcome = sequential.outcome(test)
    assert set(reference.allowed_outcomes(test, SEQUENTIAL).witnesses) == {outcome}
    assert axiomatic.judge(test, SEQUENTIAL, outcome) == explorer.Explorer(test, PROGRAM).judge(
        outcome
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        # By hand, from top to bottom.
        ("X=1; r0=Y || Y=1; r1=X", "r0=0 r1=1 X=1 Y=1"),
        ("r0=F; if r0==0 { X=1 } else { Y=1 }; r1=X", "r0=0 r1=1 F=0 X=1 Y=0"),
        ("X+=2 || X+=3 || r0=X", "r0=5 X=5"),
    ],
)
def test_outcomes_by_hand(text: str, shown: str) -> None:
    assert str(sequential.outcome(litmus(text))) == shown


def test_what_is_no_program_of_one_thread_is_refused_by_name() -> None:
    with pytest.raises(sequential.NotSequential, match=r"^queues$"):
        sequential.outcome(litmus("Q!1 || r0=Q?", queues={"Q": 1}))
