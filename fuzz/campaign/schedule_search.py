"""Searches the schedules of a test: all of them, or as many as a counted budget has.

In a configuration under control a test is searched once. Where ops stop inside, schedules with few
preemptions come first (`fuzz.campaign.preemption_bounds`). Only what the budget does not reach is
sampled, by a portfolio of schedulers: each one's share follows what it has found.

References
----------
Musuvathi, Qadeer, "Iterative Context Bounding for Systematic Testing of Multithreaded Programs",
PLDI 2007: few preemptions first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.schedule import node_of
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import Schedule
from litmusfuzz.fuzz.campaign.job import Job, SearchStep
from litmusfuzz.fuzz.campaign.preemption_bounds import PORTION
from litmusfuzz.fuzz.executors import messages
from litmusfuzz.fuzz.executors.protocol import Explored, Noise
from litmusfuzz.reports.events import Searched

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Outcome
    from litmusfuzz.corpus.schedule import Decision
    from litmusfuzz.fuzz.campaign.job import Result
    from litmusfuzz.fuzz.finding.judge import Judgement

SEARCH_BUDGET: Final = 512
"""Executions of the search of a test, at most (decision 21).

Of 100 tests by ops, 99 need fewer; by locks, 34 of the 38 that 1,024 executions search to their
end."""
FIRST_PORTION: Final = 32
"""Executions before the first look whether a search has shown enough; then twice as many."""
MAX_SEARCHED: Final = 1 << 14
"""The same for the simplest schedule of a finding, at one level."""
STILL: Final = Noise(copies=1, steps=1, shuffle=False, padding=0)
"""Noise under control, where it has no effect."""
DIVERGES: Final = "schedules that repeat"
"""What a test lacks whose execution has left a schedule."""

Ask = Callable[[Job], Awaitable["Result"]]


@dataclass(slots=True)
class SearchResult:
    """What the schedules of a test have shown.

    Parameters
    ----------
    histogram : Counter of Outcome
        Number of schedules with each outcome, and of samples.
    schedules : dict of Outcome to tuple of Decision
        The first schedule with each outcome: one with the fewest preemptions.
    shown_by : dict of Outcome to str
        The search, or the scheduler, that has shown each outcome first.
    executions : int
        Begun by all searches.
    sampled : int
        Executions by schedulers.
    whole : bool
        True if these are all schedules.
    within : int, optional
        A bound on preemptions within which these are all.
    """

    histogram: Counter[Outcome] = field(default_factory=Counter)
    schedules: dict[Outcome, tuple[Decision, ...]] = field(default_factory=dict)
    shown_by: dict[Outcome, str] = field(default_factory=dict)
    executions: int = 0
    sampled: int = 0
    whole: bool = False
    within: int | None = None

    @property
    def extent(self) -> str:
        """Which schedules these are all of; "" if of none."""
        if self.whole:
            return "all schedules"
        return "" if self.within is None else f"all schedules within {_preemptions(self.within)}"

    def covers(self, preemptions: int | None) -> bool:
        """True if these are all schedules within a bound on preemptions; if None, all there are."""
        if self.whole or preemptions is None:
            return self.whole
        return self.within is not None and self.within >= preemptions

    @property
    def event(self) -> Searched:
        """What an event has of it."""
        return Searched(
            schedules=self.histogram.total() - self.sampled,
            executions=self.executions,
            whole=self.whole,
            sampled=self.sampled,
            first=dict(sorted(Counter(self.shown_by.values()).items())),
        )

    def schedule_of(self, outcomes: Iterable[Outcome]) -> Schedule | None:
        """The schedule of the first of some outcomes that it has shown."""
        shown = next((each for each in outcomes if each in self.schedules), None)
        return None if shown is None else Schedule(shown, events=self.schedules[shown])

    def _first(self, explored: Explored, by: str) -> None:
        for outcome, events in explored.schedules.items():
            if outcome not in self.schedules:
                self.schedules[outcome], self.shown_by[outcome] = events, by

    def add_search(self, explored: Explored, begun: int, by: str) -> None:
        """Add what one search has shown so far; a wider one repeats what a narrower one has."""
        self._first(explored, by)
        self.histogram |= Counter(explored.histogram)  # the larger number of the two
        self.executions += begun
        self.whole = explored.whole

    def add_sample(self, explored: Explored, scheduler: str) -> int:
        """Add what a scheduler has shown; the number of outcomes that are new."""
        known = len(self.schedules)
        self._first(explored, scheduler)
        self.histogram.update(explored.histogram)
        self.sampled += explored.executions
        return len(self.schedules) - known


def with_schedule(judgement: Judgement, found: SearchResult) -> Judgement:
    """The judgement, with a schedule of its first forbidden outcome."""
    shown = found.schedule_of(outcome for outcome, _ in judgement.forbidden)
    return replace(judgement, schedule=shown)


def searched_within(bound: int | None) -> str:
    """Name of a search in reports."""
    return "search" if bound is None else f"search, {_preemptions(bound)}"


def _preemptions(bound: int) -> str:
    return f"{bound} preemption{'s' * (bound != 1)}"


async def search(
    ask: Ask,
    test: LitmusTest,
    bounds: Sequence[int | None],
    budget: int = SEARCH_BUDGET,
    enough: Callable[[SearchResult], bool] = lambda _: False,
) -> SearchResult | Result:
    """Execute the schedules of a test, those with few preemptions first.

    Parameters
    ----------
    ask : callable
        Runs a job.
    test : LitmusTest
    bounds : sequence of int or None
        On preemptions, of the searches one after another.
    budget : int
        Executions of all searches together.
    enough : callable
        True for a result that nobody wants more of.

    Returns
    -------
    SearchResult
        Or why there is none: the test was refused, or its process has ended.
    """
    found = SearchResult()
    for bound in bounds:
        done, portion = 0, FIRST_PORTION
        while (left := budget - found.executions) > 0:
            count, portion = min(portion, left), min(2 * portion, PORTION)
            job = Job(test, count, STILL, search=SearchStep(bound, done))
            result = await ask(job)
            if not isinstance(result, Explored):
                return _refusal(result)
            begun = result.executions - done
            found.add_search(result, begun, searched_within(bound))
            done = result.executions
            if result.complete and bound is not None:
                found.within = bound
            if found.whole or enough(found):
                return found
            if result.complete or begun < count:
                break
    return found


def _refusal(result: Result) -> Result:
    """A result that is no search; a schedule that cannot be repeated is a refusal as well."""
    if isinstance(result, messages.Reply) and result.diverged:
        return messages.Reply(refused=f"{DIVERGES} ({result.diverged})")
    return result


def carried_over(schedule: Schedule, test: LitmusTest) -> Schedule | None:
    """What is left of a schedule in a smaller test, by the names of its decisions.

    None if nothing is.
    """
    runs, one = {each.name for each in test.runs}, len(test.runs) == 1
    resources = {"", *(each.name for each in test.resources)}
    events = tuple(
        replace(each, run="") if one else each
        for each in schedule.events
        if node_of(test, each)
        and (one or each.run in runs)
        and each.point.partition(" of ")[2].rpartition(" of ")[2] in resources
    )
    return Schedule(schedule.outcome, events=events) if events else None
