"""Takes a candidate under control: what has shown by chance, shows again by a schedule.

From there one replay confirms it, and searches reduce it and compare it with known causes, where
executions would have to be counted against odds (docs/decisions/0021-search.md).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.campaign.best import Best
from litmusfuzz.fuzz.campaign.preemption_bounds import at_levels, bounds
from litmusfuzz.fuzz.campaign.probing import run_again
from litmusfuzz.fuzz.campaign.schedule_search import STILL, SearchResult, search, with_schedule
from litmusfuzz.fuzz.finding.judge import explorer_or_none, judge
from litmusfuzz.reports.events import DOES_NOT_START

if TYPE_CHECKING:
    from litmusfuzz.fuzz.campaign.candidate import Candidate
    from litmusfuzz.fuzz.campaign.slots import Slot
    from litmusfuzz.fuzz.finding.judge import Judgement, Oracle
    from litmusfuzz.oracles.explorer import Budget


def may_be_taken(candidate: Candidate) -> bool:
    """True if nobody has looked yet whether it shows under control, and it may."""
    target = candidate.target
    if target.explorable or candidate.beyond_control:
        return False
    return bool(at_levels(target.executor, target.config))


async def take(slot: Slot, candidate: Candidate, budget: Budget) -> Candidate | None:
    """The candidate as a schedule shows it, at the coarsest level; None if none was found.

    The searches are counted, so that a busy machine finds the same schedule. What they show has to
    be a symptom of the candidate: whether it is the same cause is for the comparison to say, as it
    is for each smaller test.

    Parameters
    ----------
    slot : Slot
        Ends in the configuration of what is returned.
    candidate : Candidate
        Becomes `beyond_control` if no schedule shows it.
    budget : Budget
        Of the oracle.
    """
    if not may_be_taken(candidate):
        return None
    own, seen = candidate.target, Best.of(candidate)
    levels = at_levels(own.executor, own.config) if slot.executor.controllable else {}
    for config in levels.values():
        target = slot.executor.sample(config)
        oracle = explorer_or_none(candidate.test, target.model, budget)
        if oracle is None:
            continue
        slot.switch_to(target)
        if why := await slot.why_unavailable():
            slot.executor.controllable = why.startswith(DOES_NOT_START)  # the next one may
            break
        found = await search(
            partial(run_again, slot),
            candidate.test,
            bounds(own.executor, config),
            enough=partial(_shows, seen, oracle),
        )
        if isinstance(found, SearchResult) and (judgement := _judged(seen, oracle, found)):
            return replace(
                candidate,
                target=target,
                seen_in=own,
                judgement=judgement,
                noise=STILL,
                seed=0,
            )
    slot.switch_to(own)
    candidate.beyond_control = True
    return None


def _shows(seen: Best, oracle: Oracle, found: SearchResult) -> bool:
    return _judged(seen, oracle, found) is not None


def _judged(seen: Best, oracle: Oracle, found: SearchResult) -> Judgement | None:
    """The judgement of what a search has shown; None without a symptom of what was seen."""
    shown = seen.with_same_cause(judge(oracle, found.histogram))
    return with_schedule(shown, found) if shown.forbidden else None
