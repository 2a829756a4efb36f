"""The run of a graph under control: a search, and samples of what exceeds its budget.

A graph that was searched to its end gets no further executions in that configuration.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from litmusfuzz.fuzz.campaign.job import Job
from litmusfuzz.fuzz.campaign.preemption_bounds import bounds, schedulers
from litmusfuzz.fuzz.campaign.schedule_search import SEARCH_BUDGET, STILL, SearchResult, search
from litmusfuzz.fuzz.executors import messages
from litmusfuzz.fuzz.executors.protocol import Explored

if TYPE_CHECKING:
    from collections.abc import Sequence

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.campaign.job import Result
    from litmusfuzz.fuzz.campaign.schedule_search import Ask
    from litmusfuzz.fuzz.campaign.slots import Slot

SAMPLE_BUDGET: Final = 128
"""Executions by schedulers, after a search that its budget has ended."""
SAMPLE: Final = 32
"""Executions of one scheduler at a time: some execute a few of these to count events."""
UNREADABLE: Final = "outcomes that can be read"
"""What a test lacks of which no execution has any."""


@dataclass(slots=True)
class Portfolio:
    """Schedulers that sample what searches leave, and what each has found in a campaign.

    Attributes
    ----------
    samples : Counter of str
        By scheduler, how many samples it has made.
    found : Counter of str
        Outcomes that it was the first to show.
    """

    samples: Counter[str] = field(default_factory=Counter)
    found: Counter[str] = field(default_factory=Counter)

    def next(self, schedulers: Sequence[str]) -> str:
        """The scheduler whose samples have found the most so far; each is tried first."""

        def rate(scheduler: str) -> tuple[bool, float]:
            samples = self.samples[scheduler]
            return not samples, (self.found[scheduler] + 1) / (samples + 1)

        return max(schedulers, key=rate)

    async def sample(
        self, ask: Ask, test: LitmusTest, schedulers: Sequence[str], found: SearchResult, seed: int
    ) -> None:
        """Sample schedules beyond a search."""
        for number in range(SAMPLE_BUDGET // SAMPLE):
            scheduler = self.next(schedulers)
            result = await ask(Job(test, SAMPLE, STILL, seed + number, scheduler=scheduler))
            if not isinstance(result, Explored):
                return
            self.samples[scheduler] += 1
            self.found[scheduler] += found.add_sample(result, scheduler)


class GraphSearcher:
    """Searches the graphs of a campaign.

    Parameters
    ----------
    count : int or None
        Executions of each search, if a user has said so: then nothing is sampled.

    Attributes
    ----------
    portfolio : Portfolio
        What schedulers have found so far.
    """

    def __init__(self, count: int | None) -> None:
        self.count = count
        self.portfolio = Portfolio()

    @property
    def budget(self) -> int:
        """Executions of a search, at most."""
        return self.count or SEARCH_BUDGET

    async def search(self, slot: Slot, job: Job) -> SearchResult | Result:
        """Execute all schedules of a test, or sample those beyond the budget."""
        assert job.test is not None
        executor, config = slot.executor.name, slot.config
        found = await search(slot.run, job.test, bounds(executor, config), job.count)
        if not isinstance(found, SearchResult):
            return found
        if not (found.whole or self.count):
            names = schedulers(executor)
            await self.portfolio.sample(slot.run, job.test, names, found, job.seed)
        return found if found.histogram else messages.Reply(refused=UNREADABLE)
