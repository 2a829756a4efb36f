"""What the terminal of a killed campaign had printed is in the report; `make nightly` kills 50."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from campaign.killed import kill_and_check

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("number", [0, 2, 4], ids=["early", "late", "nightly"])
def test_nothing_that_was_printed_is_lost(tmp_path: Path, number: int) -> None:
    assert "forbidden: " in kill_and_check(tmp_path / "c", number, seed=1)
