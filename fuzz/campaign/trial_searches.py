"""Searches the tests of trials: under control no odds are left (`fuzz.finding.experiments`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from litmusfuzz.fuzz.campaign.preemption_bounds import bounds, switches_inside
from litmusfuzz.fuzz.campaign.schedule_search import (
    MAX_SEARCHED,
    SearchResult,
    search,
    with_schedule,
)
from litmusfuzz.fuzz.executors import messages
from litmusfuzz.fuzz.executors.worker import Died
from litmusfuzz.fuzz.finding.judge import judge

if TYPE_CHECKING:
    from collections.abc import Callable

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.campaign.schedule_search import Ask
    from litmusfuzz.fuzz.finding.judge import Judgement, Oracle
    from litmusfuzz.fuzz.finding.trials import Case

__all__ = ["SearchResult", "is_searched", "judged", "searched"]


def is_searched(case: Case) -> bool:
    """True if the configuration of a case is under control."""
    return switches_inside(case.executor, case.config) is not None


async def searched(
    ask: Ask, case: Case, test: LitmusTest, enough: Callable[[SearchResult], bool]
) -> SearchResult | Died | messages.Reply:
    """What the schedules of a test show in the configuration of a case; or why there is nothing."""
    limits = bounds(case.executor, case.config, case.preemptions)
    found = await search(ask, test, limits, MAX_SEARCHED, enough)
    assert isinstance(found, SearchResult | Died | messages.Reply)
    return found


def judged(oracle: Oracle, found: SearchResult) -> Judgement:
    """The judgement of what a test has shown, with a schedule of its first forbidden outcome."""
    return with_schedule(judge(oracle, found.histogram), found)
