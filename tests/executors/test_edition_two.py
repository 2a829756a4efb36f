"""A share of what `edition_two` does: outcomes that are reached, and front ends that are run."""

from __future__ import annotations

import pytest
from edition_two import FORCED, edition_two, shown
from helpers import share_of

EVERY = 9
"""`test_tensorflow_forced.py` forces a share of the tests in `plain`."""


@pytest.mark.parametrize("name", ["grappler_aggressive", "global_pool_4"])
def test_every_allowed_outcome_is_reached(name: str) -> None:
    assert name in FORCED
    found = shown(name, share_of(edition_two(), EVERY))
    assert not found.wrong
    assert found.reached == found.allowed >= 10
    assert not found.left_out


@pytest.mark.parametrize("name", ["function_kernels", "python_v1", "functional", "eager_functions"])
def test_front_ends_that_cannot_be_forced_show_nothing_forbidden(name: str) -> None:
    assert name not in FORCED
    found = shown(name, share_of(edition_two(), EVERY), executions=16)
    assert not found.wrong
    assert found.tests >= 2
    assert found.executions >= 16 * found.tests
    assert all(reason.endswith(f"in configuration {name}") for reason in found.left_out)
