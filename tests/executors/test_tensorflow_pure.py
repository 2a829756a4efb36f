"""Tests with pure ops of all kinds on TensorFlow: every outcome is allowed."""

from __future__ import annotations

import pytest

from litmusfuzz.corpus.outcome import Status
from litmusfuzz.corpus.textfile import loads
from litmusfuzz.fuzz.campaign.judge import judge
from litmusfuzz.fuzz.executors.protocol import Noise
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.fuzz.executors.tensorflow.executor import TensorFlowExecutor
from litmusfuzz.fuzz.generators import generate
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import EXECUTOR, RFC


@pytest.mark.parametrize("name", ["plain", "grappler_aggressive", "autocluster"])
def test_outcomes_are_allowed(name: str) -> None:
    config = configuration("tf", name)
    for index in range(4):
        test = generate("pure", 21, index)
        prepared = TensorFlowExecutor().prepare(test, config)
        try:
            judged = judge(Explorer(test, RFC), prepared.run(40, Noise(copies=8), index))
        finally:
            prepared.close()
        assert judged.forbidden_count == 0, (name, index)


def test_a_division_by_zero_fails() -> None:
    """X is 0 in every order."""
    test = loads(
        """
litmusfuzz: 2
name: by-zero
variables: {X: {dtype: int32}}
graphs:
  main:
    eight: {op: Const, dtype: int32, value: 8}
    r: {op: ReadVariableOp, resources: [X]}
    d: {op: FloorDiv, inputs: [eight, r]}
observe: [d]
"""
    ).test
    prepared = TensorFlowExecutor().prepare(test, configuration("tf", "plain"))
    try:
        histogram = prepared.run(2, Noise(copies=1), 1)
    finally:
        prepared.close()
    (outcome,) = histogram
    assert outcome.status is Status.FAILED
    assert set(Explorer(test, EXECUTOR).allowed_outcomes().witnesses) == {outcome}
