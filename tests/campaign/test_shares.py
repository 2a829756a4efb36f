"""Shares of the time of whole campaigns, on a clock that their executions turn."""

from __future__ import annotations

import runpy
from typing import TYPE_CHECKING

import pytest
from campaign.campaigns import Run
from docs.pages import ROOT, blocks
from helpers_settings import settings_of

from litmusfuzz.fuzz.campaign.lanes import LANES
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.reports.events import Continued

if TYPE_CHECKING:
    from pathlib import Path

TIME_S = 3.0
LONGEST_S = 0.1
"""One piece of work at most: a round of a thousand executions."""
NATIVE = "native", configuration("native", "controlled")


@pytest.mark.parametrize("share", [0.1, 0.4])
def test_rounds_have_their_share_and_no_more(tmp_path: Path, share: float) -> None:
    """More of them are earned than there is time for."""
    settings = settings_of(5, tmp_path, (NATIVE,), TIME_S, families=("dag",), rounds_share=share)
    run = Run(settings).run(one_at_a_time=True)
    spent_s = run.campaign.parts.shares.ledger.of("rounds", 0)
    assert share * TIME_S - LONGEST_S <= spent_s <= share * TIME_S + LONGEST_S
    executing_s = run.seconds_of(lambda each: isinstance(each, Continued))
    assert 0.75 * spent_s <= executing_s <= spent_s


def test_the_policy_of_the_page_gives_a_family_its_share(tmp_path: Path) -> None:
    """Beside one that is generated a million times as often."""
    (text,) = (
        each.text for each in blocks(ROOT / "docs/adding.md") if each.words[:1] == ("loops.py",)
    )
    (tmp_path / "loops.py").write_text(text, encoding="utf-8")
    page = runpy.run_path(str(tmp_path / "loops.py"))
    family, least_s = page["FAMILY"], page["LEAST_SHARE"] * TIME_S
    weights = {"dag": 1e6, family: 1.0}
    settings = settings_of(5, tmp_path, (NATIVE,), TIME_S, families=weights)
    run = Run(settings, lanes=(page["Loops"], *LANES))
    run.run(one_at_a_time=True)
    spent_s = run.campaign.parts.shares.ledger.of("loops", 0)
    assert least_s - LONGEST_S <= spent_s <= least_s + LONGEST_S
    assert run.seconds_of(lambda each: each.family == family) >= 0.75 * least_s
