"""Exhaustive execution of generated tests gives exactly the allowed set."""

from __future__ import annotations

from itertools import islice

import pytest
from native.generated import generate_test
from native.helpers_native import all_outcomes

from litmusfuzz.corpus.outcome import Status
from litmusfuzz.oracles import explorer
from litmusfuzz.oracles.events import strictnesses
from litmusfuzz.oracles.model import MODELS

LIMIT = 2_000
CHOICES = 32
"""Largest number of choices of strictness; nested bodies have thousands."""


@pytest.mark.parametrize("chunk", range(4))
def test_all_executions_of_a_generated_test_show_exactly_the_allowed_set(chunk: int) -> None:
    """Deterministic: fixed seeds, and all executions of each test."""
    compared = 0
    features: set[str] = set()
    statuses: set[Status] = set()
    for seed in range(70 * chunk, 70 * chunk + 70):
        test = generate_test(seed, effects=5)
        if test is None:
            continue
        for model in MODELS.values():
            if len(list(islice(strictnesses(test, model), CHOICES + 1))) > CHOICES:
                continue
            found = all_outcomes(test, model, LIMIT)
            if found is None:
                continue
            allowed = explorer.allowed_outcomes(test, model)
            assert allowed.complete
            assert found[0] == set(allowed.witnesses), (seed, model.name)
            compared += 1
            features |= test.features
            statuses |= {outcome.status for outcome in found[0]}
    assert compared >= 80
    assert features >= {"queues", "critical sections", "conditionals", "loops", "several runs"}
    assert statuses >= {Status.COMPLETED, Status.BLOCKED}
