"""The executor over JAX: all that it can do, against all that is allowed, both ways."""

from __future__ import annotations

import pytest
from helpers import LITMUS
from jax_clustered.helpers_jax import all_outcomes, prepared
from native.helpers_native import keys

from corpus.textfile import load
from fuzz.executors.protocol import Diverged
from oracles import explorer
from oracles.model import RFC

TRACES = 10_000
"""No test of the corpus needs more."""
CLUSTERED = [path for path in LITMUS if load(path).test.clusters]


@pytest.mark.parametrize("path", CLUSTERED, ids=lambda path: path.stem)
def test_all_executions_show_exactly_the_allowed_set_of_the_clustered(path) -> None:
    test = load(path).test
    found = all_outcomes(test, TRACES)
    assert found is not None, f"more than {TRACES} executions"
    allowed = explorer.allowed_outcomes(test, RFC)
    assert allowed.complete
    assert found == set(allowed.witnesses)


@pytest.mark.parametrize("path", CLUSTERED, ids=lambda path: path.stem)
def test_a_witness_can_be_forced_and_gives_its_outcome(path) -> None:
    test = load(path).test
    for outcome, order in explorer.allowed_outcomes(test, RFC).witnesses.items():
        assert any(follows(each, order, outcome) for each in prepared(test))


def follows(executor, order, outcome) -> bool:
    try:
        return executor.force(keys(order)) == outcome
    except Diverged:
        return False
