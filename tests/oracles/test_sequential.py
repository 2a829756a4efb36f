"""The sequential interpreter, and the model `sequential` of all oracles: one outcome each."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from helpers import LITMUS, corpus_entry, differentiated, for_each, share_of

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.outcome import Outcome, Verdict
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import loads
from litmusfuzz.fuzz.generators.gradients import differentiated as with_gradients
from litmusfuzz.fuzz.generators.gradients import in_floats
from litmusfuzz.oracles import axiomatic, explorer, reference, sequential
from litmusfuzz.oracles.errors import NoGradient, NoProgramOrder
from litmusfuzz.oracles.events import unfold
from litmusfuzz.oracles.model import PROGRAM, RFC, SEQUENTIAL

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from litmusfuzz.corpus.model import LitmusTest


def programs() -> Iterator[Path]:
    """Corpus tests that a program of one thread can express."""
    for path in LITMUS:
        test = corpus_entry(path).test
        if not test.features - sequential.EXPRESSIBLE:
            # Edges into or out of a section may ask for another order.
            with suppress(NoProgramOrder):
                unfold(test, SEQUENTIAL)
                yield path


PROGRAMS = list(programs())


def in_line(test: LitmusTest) -> LitmusTest:
    """The test whose client orders all runs."""
    runs = test.runs
    names = [run.name for run in runs]
    client = (replace(run, after=tuple(names[:place])) for place, run in enumerate(runs))
    return replace(test, client=tuple(client))


@for_each("path", PROGRAMS)
def test_the_interpreter_yields_the_single_outcome(path) -> None:
    test = corpus_entry(path).test
    outcome = sequential.outcome(test)
    assert outcome in explorer.allowed_outcomes(test, SEQUENTIAL).witnesses
    ordered = in_line(test)
    allowed = explorer.allowed_outcomes(ordered, SEQUENTIAL)
    assert allowed.complete
    assert set(allowed.witnesses) == {sequential.outcome(ordered)}


def test_programs_have_sections_and_several_runs() -> None:
    counted = Counter(each for path in PROGRAMS for each in corpus_entry(path).test.features)
    assert counted["critical sections"] > 20
    assert counted["several runs"] > 20


@for_each("path", share_of(PROGRAMS, 4))
def test_the_other_oracles_agree(path) -> None:
    test = in_line(corpus_entry(path).test)
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


FLOATS = [in_floats(in_line(corpus_entry(path).test)) for path in share_of(PROGRAMS, 3)]
DIFFERENTIABLE = [
    made for test in FLOATS if (made := with_gradients(test, [v.name for v in test.variables]))
]
"""Programs in floats with their gradients, where these are defined."""


@for_each("test", DIFFERENTIABLE)
def test_all_oracles_judge_gradients(test) -> None:
    outcome = sequential.outcome(test)
    assert set(explorer.allowed_outcomes(test, SEQUENTIAL).witnesses) == {outcome}
    name, value = outcome.values[-1]
    wrong = Outcome((*outcome.values[:-1], (name, (value[0] + 1, *value[1:]))))
    for oracle in (explorer.Explorer, axiomatic.Axiomatic):
        assert oracle(test, SEQUENTIAL).judge(outcome) is Verdict.ALLOWED
        assert oracle(test, SEQUENTIAL).judge(wrong) is Verdict.FORBIDDEN


@pytest.mark.parametrize(
    ("text", "gradients"),
    [
        # The sum of the floats is r0 + 2 r1 + 3 X + Y = x + 2 y + 3 x y + y, with x = 3 and y = 5.
        ("r0=X; r1=Y; X=r0*r1", {"grad(X)": 1 + 3 * 5, "grad(Y)": 2 + 3 * 3 + 1}),
        # An overwritten value has no part in it: r0 + 2 X.
        ("r0=X; X=7", {"grad(X)": 1}),
        # r0 + 2 r1 + 3 X, where both r1 and X are 2 x.
        ("r0=X; X+=r0; r1=X", {"grad(X)": 1 + 2 * 2 + 3 * 2}),
        ("r0=X; if r0==3 { X=9 } else { X+=1 }", {"grad(X)": 1}),
    ],
)
def test_gradients_by_hand(text: str, gradients: dict[str, int]) -> None:
    observed = litmus(text, dtype="float32", init={"X": 3, "Y": 5} if "Y" in text else {"X": 3})
    found = sequential.gradients(differentiated(observed))
    assert {key: value[0] for key, value in found.items()} == gradients


def test_gradients_go_through_ops_that_move_and_add_elements() -> None:
    """Here `t` adds up the columns of (X0 X1; X2 X3) in reverse: (X1 + X3, X0 + X2)."""
    test = loads(
        """
litmusfuzz: 2
name: moved
variables:
  X: {dtype: float32, shape: [4], init: [1, 2, 3, 4], gradient: true}
graphs:
  main:
    r: {op: ReadVariableOp, resources: [X]}
    square: {op: Const, dtype: int32, shape: [2], value: 2}
    m: {op: Reshape, inputs: [r, square]}
    rows: {op: Const, dtype: int32, shape: [1], value: 0}
    columns: {op: Const, dtype: int32, shape: [1], value: 1}
    back: {op: ReverseV2, inputs: [m, columns]}
    t: {op: Sum, inputs: [back, rows]}
observe: [t]
"""
    ).test
    (first, second), own = test.weights["t"], test.weights["X"]
    there = (second, first, second, first)
    expected = tuple(a + b for a, b in zip(there, own, strict=True))
    assert sequential.gradients(test) == {"grad(X)": expected}


def test_a_maximum_of_equals_has_no_gradient() -> None:
    test = loads(
        """
litmusfuzz: 2
name: tie
variables:
  X: {dtype: float32, shape: [], init: 0, gradient: true}
graphs:
  main:
    r: {op: ReadVariableOp, resources: [X]}
    t: {op: Relu, inputs: [r]}
    w: {op: AssignVariableOp, resources: [X], inputs: [t]}
"""
    ).test
    with pytest.raises(NoGradient, match="equal values"):
        explorer.Explorer(test, SEQUENTIAL)
    with pytest.raises(NoProgramOrder, match=r"^gradients .* \(model rfc\)$"):
        explorer.Explorer(test, RFC)


def test_what_is_no_program_of_one_thread_is_refused_by_name() -> None:
    with pytest.raises(sequential.NotSequential, match=r"^queues$"):
        sequential.outcome(litmus("Q!1 || r0=Q?", queues={"Q": 1}))


def test_a_body_that_never_runs_may_have_a_section_after_its_member() -> None:
    """In program order it would be a cycle: the section before its member, and after it."""
    test = loads(
        """
litmusfuzz: 2
name: never
variables: {X: {dtype: int32}}
mutexes: {M: {}}
graphs:
  main:
    zero: {op: Const, dtype: int32, value: 0}
    loop:
      op: While
      inputs: [zero]
      carried: [i]
      captures: {most: zero}
      condition:
        nodes: {again: {op: Less, inputs: [i, most]}}
        results: [again]
      body:
        nodes:
          r: {op: ReadVariableOp, resources: [X]}
          s: {op: CriticalSection, resources: [M], members: [r]}
          one: {op: Const, dtype: int32, value: 1}
          next: {op: AddV2, inputs: [i, one]}
        results: [next]
observe: [loop.i]
"""
    ).test
    outcome = Outcome.of(test, {"loop.i": (0,), "X": (0,)})
    for model in (PROGRAM, SEQUENTIAL):
        assert set(reference.allowed_outcomes(test, model).witnesses) == {outcome}
        assert set(explorer.allowed_outcomes(test, model).witnesses) == {outcome}
        assert axiomatic.judge(test, model, outcome) is Verdict.ALLOWED
