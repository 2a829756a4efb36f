"""Eager threads: each run is a Python thread, and its calls are functions."""

from __future__ import annotations

import sys
from typing import NoReturn

import pytest
from helpers import LITMUS, corpus_entry

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.outcome import Verdict
from litmusfuzz.fuzz.executors.protocol import Noise, Refused
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.fuzz.executors.tensorflow import TensorFlowExecutor
from litmusfuzz.fuzz.executors.tensorflow.eager import PreparedEager
from litmusfuzz.fuzz.finding.judge import judge
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import PROGRAM

EAGER = configuration("tf", "eager_threads")
TESTS = (
    *("runs-assign-add", "runs-diamond", "iriw-four-runs", "sb-two-graphs"),
    *("call-control-edges", "call-nested", "call-around-a-loop", "call-in-a-loop"),
    *("handle-into-a-call", "handle-chosen-by-a-race", "handle-carried", "h-branch-in-a-loop"),
)


@pytest.mark.parametrize("name", TESTS)
def test_eager_threads_show_what_program_order_allows(name: str) -> None:
    test = corpus_entry(next(path for path in LITMUS if path.stem == name)).test
    seen = TensorFlowExecutor().prepare(test, EAGER).run(100, Noise(), 1)
    assert sum(seen.values()) == 100
    assert judge(Explorer(test, PROGRAM), seen).verdicts.keys() == {Verdict.ALLOWED}, seen


def test_control_edges_inside_a_function_are_kept() -> None:
    """Two arguments with handles of one variable: TensorFlow itself orders nothing between them."""
    test = corpus_entry(next(path for path in LITMUS if path.stem == "handle-into-a-call")).test
    seen = TensorFlowExecutor().prepare(test, EAGER).run(200, Noise(), 2)
    assert {dict(outcome.values)["f.seen"] for outcome in seen} <= {(1,), (2,)}


@pytest.mark.parametrize(
    ("test", "feature"),
    [
        (litmus("Q!1; r0=Q?", queues={"Q": 1}), "queues"),
        (litmus("lock M; X=1; unlock M"), "critical sections"),
    ],
)
def test_what_may_block_is_refused(test, feature: str) -> None:
    with pytest.raises(Refused, match=rf"^{feature} in configuration eager_threads$"):
        TensorFlowExecutor().prepare(test, EAGER)


def test_a_program_that_cannot_be_built_leaves_the_switch_interval(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Later tests of the worker's process would be slower."""

    def fails(test: object, seed: int) -> NoReturn:
        raise MemoryError(f"program {seed} of {test}")

    prepared = TensorFlowExecutor().prepare(litmus("X=1"), EAGER)
    assert isinstance(prepared, PreparedEager)
    monkeypatch.setattr(prepared, "new_program", fails)
    before = sys.getswitchinterval()
    with pytest.raises(MemoryError):
        prepared.run(1, Noise(), 1)
    assert sys.getswitchinterval() == before
