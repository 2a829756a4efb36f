"""Calls in a file and in the short notation."""

from __future__ import annotations

import pytest

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.textfile import Entry, FileError, dumps, loads
from litmusfuzz.oracles.explorer import allowed_outcomes
from litmusfuzz.oracles.model import RFC

CALL = """\
litmusfuzz: 2
name: call
variables:
  X: {dtype: int32, shape: [], init: 0}
graphs:
  main:
    one: {op: Const, dtype: int32, shape: [], value: 1}
    f:
      op: Call
      captures: {k: one}
      results: [was]
      body:
        nodes:
          r: {op: ReadVariableOp, resources: [X]}
          w: {op: AssignVariableOp, resources: [X], inputs: [k], after: [r]}
        results: [r]
    s: {op: ReadVariableOp, resources: [X], after: [f]}
observe: [f.was, s]
"""


def test_a_call_is_read_and_written_alike() -> None:
    assert dumps(loads(CALL)) == CALL
    empty = litmus("call { X=1 }; r0=X")
    assert loads(dumps(Entry(empty))).test == empty


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("captures: {k: one}", "captures: {k: two}", "graphs.main.f.captures.k: no value"),
        ("results: [was]", "results: [was, more]", "main.f.body.results: returns 1 values, not 2"),
        ("results: [was]", "results: [was, was]", "main.f.results.1: 'was' stands twice"),
        ("results: [r]", "results: [w]", "main.f.body.results.0: no value 'w' in the body"),
        # A function is written where it is called: it cannot name itself, nor what is around it.
        ("captures: {k: one}", "captures: {k: f}", "main.f.captures.k: no value 'f' above"),
        ("inputs: [k]", "inputs: [one]", "f.body.nodes.w.inputs.0: no node 'one'"),
        ("op: Call", "op: Call\n      resources: [X]", "main.f.resources: Call takes 0, got 1"),
        ("op: Call", "op: Call\n      inputs: [one]", "main.f.inputs: Call takes 0, got 1"),
    ],
)
def test_a_call_is_refused_with_its_line_and_field(old: str, new: str, message: str) -> None:
    with pytest.raises(FileError) as error:
        loads(CALL.replace(old, new, 1), "a.yaml")
    assert message in str(error.value)


def test_the_short_notation_returns_the_registers_of_a_call() -> None:
    test = litmus("call { r0=X; X=r0+1 }; r1=X || X=5")
    assert "calls" in test.features
    shown = {str(outcome) for outcome in allowed_outcomes(test, RFC).witnesses}
    # r1 comes after the call's store; 5 comes first, between the two, before r1, or last.
    assert shown == {
        *("call0.r0=5 r1=6 X=6", "call0.r0=0 r1=1 X=1"),
        *("call0.r0=0 r1=5 X=5", "call0.r0=0 r1=1 X=5"),
    }
