"""A campaign as one shard in this process."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from itertools import groupby
from typing import TYPE_CHECKING

from msgspec import structs

from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.campaign.settings import extra_minimizing_s
from litmusfuzz.fuzz.campaign.shard import Shard, run_watched
from litmusfuzz.fuzz.executors.configuration_generator import listed
from litmusfuzz.fuzz.nightly.coordinator import SHOW_S, Coordinator
from litmusfuzz.fuzz.nightly.shard_settings import (
    base_settings,
    generated,
    known_causes,
    known_findings,
    presets_of,
    reduced_crashes,
    unconfirmed,
    unreduced,
)
from litmusfuzz.reports.events import (
    Generated,
    ShardEnded,
    ShardPlanned,
    ShardStarted,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from litmusfuzz.fuzz.campaign.engine import Engine
    from litmusfuzz.fuzz.executors.protocol import Config
    from litmusfuzz.fuzz.finding.known_findings import KnownFindings
    from litmusfuzz.fuzz.store.store import Store
    from litmusfuzz.reports.events import Configured, Event
    from litmusfuzz.reports.report import Report
    from litmusfuzz.reports.seen import Said


class SingleShard(Coordinator):
    """A campaign as one shard in this process.

    Parameters
    ----------
    store, known, show, say
        As of `Coordinator`.
    time_s : float
        For new tests; `extra_minimizing_s` more are for findings.

    Notes
    -----
    A run that was limited by a number of tests from its start also runs those that were generated
    and not run, and the same new ones as if it had not been interrupted.
    """

    def __init__(
        self,
        store: Store,
        known: KnownFindings,
        show: Callable[[Report], None],
        *,
        time_s: float,
        say: Callable[[Said], None] = lambda _: None,
    ) -> None:
        super().__init__(store, known, show, say)
        self.time_s = time_s

    def _run_shards(self) -> None:
        report = self.store.fold.report(str(self.store.folder))
        number = self.store.next_shard
        pending = unreduced(self.store, report.pending)
        again = unconfirmed(self.store, report.unconfirmed)
        earlier = self._earlier()
        base = base_settings(self.store, number)
        settings = replace(
            base,
            executors=executors_of(
                self.options.configurations, {} if earlier is not None else generated(report)
            ),
            time_s=self.time_s,
            extra_minimizing_s=extra_minimizing_s(self.time_s),
        )
        if earlier is not None:  # it generates them all again
            settings = replace(settings, first_index=0)
        elif self.options.tests is not None:
            left = self.options.tests - report.generated
            settings = replace(settings, options=structs.replace(self.options, tests=left))
        shard = Shard(
            number,
            settings,
            known=(*known_causes(self.store, self.known), *known_findings(report)),
            pending=tuple(pending.values()),
            unconfirmed=again,
            earlier=earlier or {},
            known_deaths=self.known.patterns(datetime.now(UTC).date()),
            reduced=reduced_crashes(self.store),
        )
        planned = ShardPlanned(
            configurations=shard.configurations,
            minimizes=tuple(pending),
            workers=settings.workers,
        )
        self.store.append(number, planned)

        def write(added: Sequence[Event]) -> None:
            if any(isinstance(event, ShardStarted) for event in added):
                self.begun = time.monotonic()  # starting the frameworks does not count
            self.store.append(number, *added)
            for event in added:
                if isinstance(event, ShardEnded) and event.problem:
                    self._note_problem(event.problem)

        try:
            campaign = shard.campaign(write)
            asyncio.run(run_watched(campaign, self._watch(campaign)))
        finally:
            self.store.finish_shard(number)

    async def _watch(self, campaign: Engine) -> None:
        """Report the state, until the campaign is asked to end or the disk is full."""
        try:
            while not self.stopping:
                self._report()
                await asyncio.sleep(SHOW_S)
        finally:
            campaign.stop()

    def _earlier(self) -> dict[int, set[str]] | None:
        """Tests generated so far, with the titles of configurations that have yet to run them.

        None if the families of tests depended on time.
        """
        started = self.store.started
        if started is None or started.tests is None:
            return None
        made: dict[int, set[str]] = {e.index: set() for _, e in self.store.events_of(Generated)}
        for index, executor, config in self.store.fold.not_run:
            if index in made:
                made[index].add(f"{executor}/{config}")
        return made


def executors_of(
    configurations: Sequence[Configured], skipped: Mapping[str, int]
) -> tuple[tuple[str, *tuple[Config, ...]], ...]:
    """The executors of a campaign, as its settings have them.

    Parameters
    ----------
    configurations : sequence of Configured
    skipped : mapping of str to int
        By executor, the generated configurations that earlier shards have had.
    """
    presets = presets_of(configurations)
    return tuple(
        (
            executor,
            *(
                listed(executor, each.name, skipped.get(executor, 0), presets[executor])
                for each in group
            ),
        )
        for (executor, _), group in groupby(configurations, lambda c: (c.executor, c.group))
    )
