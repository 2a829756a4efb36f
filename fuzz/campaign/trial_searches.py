"""Searches the tests of trials: under control no odds are left (`fuzz.finding.experiments`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

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

WHOLE_BUDGET: Final = 2048
"""Executions after which a search may end with all schedules within a bound. Of a test of five ops
these are 2,429 within two preemptions, and all there are exceed `MAX_SEARCHED`."""

__all__ = ["SearchResult", "is_searched", "judged", "searched"]


def is_searched(case: Case) -> bool:
    """True if the configuration of a case is under control."""
    return switches_inside(case.executor, case.config) is not None


async def searched(
    ask: Ask, case: Case, test: LitmusTest, enough: Callable[[SearchResult], bool]
) -> SearchResult | Died | messages.Reply:
    """What the schedules of a test show in the configuration of a case; or why there is nothing.

    All schedules are executed if `WHOLE_BUDGET` suffices; else those within the case's bound on
    preemptions, or as many as `MAX_SEARCHED`.
    """

    def ends(found: SearchResult) -> bool:
        bounded = case.preemptions is not None and found.covers(case.preemptions)
        return enough(found) or (bounded and found.executions >= WHOLE_BUDGET)

    found = await search(ask, test, bounds(case.executor, case.config), MAX_SEARCHED, ends)
    assert isinstance(found, SearchResult | Died | messages.Reply)
    return found


def judged(oracle: Oracle, found: SearchResult) -> Judgement:
    """The judgement of what a test has shown, with a schedule of its first forbidden outcome."""
    return with_schedule(judge(oracle, found.histogram), found)
