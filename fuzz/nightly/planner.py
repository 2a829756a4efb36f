"""Decides which shard of a nightly run is next, and makes the settings that all shards share.

Every executor gets the same time. The configurations of an executor fall into *groups*: one
environment, because another one needs another process, and one class, because findings are
distinguished by class. A group gets time in proportion to the square root of its size: thirty
configurations need more than one, but differ less than thirty executors. Generated configurations
are one group, with a fixed share. The group that has had the least time is next, and its shard
minimizes the group's unreduced findings. Before all others come groups with a configuration that
has not been reached, so that a short run reaches as many as it can. Towards the end, shards do
little else than minimize. The self-test comes first.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.campaign.shard import Shard
from litmusfuzz.fuzz.campaign.tuning import GENERATED_SHARE, MAX_REDUCTION_S, MINIMIZING_SHARE
from litmusfuzz.fuzz.executors.configuration_generator import PRODUCT, listed
from litmusfuzz.fuzz.executors.memory import SHARE
from litmusfuzz.fuzz.executors.table import SELFTEST
from litmusfuzz.fuzz.finding.known_findings import NOTHING, KnownFindings
from litmusfuzz.fuzz.nightly.shard_settings import (
    MAX_SHARD_S,
    base_settings,
    generated,
    known_causes,
    known_findings,
    presets_of,
    reduced_crashes,
    unconfirmed,
    unreduced,
)
from litmusfuzz.fuzz.store.folder import StoreError
from litmusfuzz.reports.events import DOES_NOT_START

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from litmusfuzz.fuzz.executors.protocol import Config
    from litmusfuzz.fuzz.store.store import Store
    from litmusfuzz.reports.events import CampaignStarted, Configured
    from litmusfuzz.reports.open_tests import Pending
    from litmusfuzz.reports.report import Report

MIN_SHARD_S: Final = 5.0
"""In a nightly run too short for all groups."""
MAX_PENDING: Final = 24
"""Unreduced findings of a shard: each takes some seconds to minimize."""
MAX_FIRST: Final = 3
"""Shards of a group that come before all others: a configuration may refuse all that it gets."""
LATE: Final = 0.85
"""Share of the nightly run after which unreduced findings come first."""
MAX_FAILURES: Final = 3
"""Shards of a group that fail to start before the group is given up."""


class Group(NamedTuple):
    """Configurations of an executor that share shards."""

    executor: str
    executor_class: str
    configs: tuple[str, ...]


def groups(configurations: Iterable[Configured]) -> list[Group]:
    """The groups of configurations, in the order of the first of each."""
    found: dict[tuple[object, ...], list[Configured]] = defaultdict(list)
    for each in configurations:
        environment = listed(each.executor, each.name).environment
        found[each.executor, environment, each.executor_class].append(each)
    return [
        Group(part[0].executor, part[0].executor_class, tuple(each.name for each in part))
        for part in found.values()
    ]


class ShardPlanner:
    """Makes the shards of a nightly run.

    Parameters
    ----------
    store : Store
        Of a campaign that has started.
    known : KnownFindings, optional
        Its causes are known to all shards.
    """

    def __init__(self, store: Store, known: KnownFindings = NOTHING) -> None:
        self.store = store
        self.known = known
        self.settings: CampaignStarted = store.fold.settings
        self.groups = groups(self.settings.configurations)
        asked_s, workers = self.settings.asked_s, self.settings.workers
        self.shard_s: float = self.settings.shard_s or min(
            MAX_SHARD_S, max(MIN_SHARD_S, asked_s * workers / (2 * len(self.groups)))
        )
        self.of = {
            (group.executor, config): group for group in self.groups for config in group.configs
        }

    def next(self, left_s: float, *, write_log: bool) -> tuple[Shard, list[str]] | None:
        """The next shard, and the files of its unreduced findings; None if nothing can run."""
        report = self.store.fold.report(str(self.store.folder))
        number = self.store.next_shard
        settings = base_settings(self.store, number)
        log_folder = str(self.store.log_folder(number).resolve()) if write_log else None
        selftest_s = self.settings.selftest_s
        if 0 < selftest_s <= left_s and _selftest_due(report):
            settings = replace(settings, executors=((SELFTEST,),), time_s=selftest_s)
            return Shard(number, settings, left_s, log_folder=log_folder), []
        running = {
            group: configs for group in self.groups if (configs := self._running(report, group))
        }
        if not running:
            return None
        chosen = self._least_served(report, running)
        configs = running[chosen]
        is_late = left_s < (1 - LATE) * self.settings.asked_s
        pending = self.pending(chosen.executor, configs)
        given = unreduced(self.store, pending)
        time_s = min(self.shard_s, left_s)
        skipped = generated(report).get(chosen.executor, 0)
        settings = replace(
            settings,
            executors=(
                (chosen.executor, *(self._listed(chosen.executor, c, skipped) for c in configs)),
            ),
            time_s=time_s,
            minimizing_share=1.0 if is_late and given else MINIMIZING_SHARE,
            reduction_s=max(MAX_REDUCTION_S, time_s / 2),
            machine_share=SHARE / self.settings.workers,
            workers=1,
        )
        shard = Shard(
            number=number,
            settings=settings,
            limit_s=left_s,
            known=(
                *known_causes(self.store, self.known, chosen.executor),
                *known_findings(report, chosen.executor),
            ),
            pending=tuple(given.values()),
            unconfirmed=unconfirmed(
                self.store,
                (
                    each
                    for each in report.unconfirmed
                    if each.executor == chosen.executor
                    and self._of(each.executor, each.configuration) == chosen
                ),
            ),
            known_deaths=self.known.patterns(datetime.now(UTC).date()),
            reduced=reduced_crashes(self.store),
            log_folder=log_folder,
        )
        # Unreadable files included, so that the others come first next time.
        return shard, [each.file for each in pending]

    def pending(self, executor: str, configs: tuple[str, ...]) -> list[Pending]:
        """Unreduced findings that nobody minimizes or may still minimize, least attempted first."""
        report = self.store.fold.report(str(self.store.folder))
        running = {shard.number for shard in report.shards if shard.state == "running"}
        found = [
            each
            for each in report.pending
            # A name that an executor does not list may be that of a generated configuration.
            if each.executor == executor
            and self._of(executor, each.configuration) == self._of(executor, configs[0])
            and each.minimizing_in is None
            and each.shard not in running
        ]
        return sorted(found, key=lambda each: (each.attempts, each.index))[:MAX_PENDING]

    def _least_served(self, report: Report, running: Mapping[Group, tuple[str, ...]]) -> Group:
        """The group that has had the least time, of an executor that has had the least.

        One that has a configuration with too few graphs comes before, the first shards of all such
        groups in turn.
        """
        spent = self._spent(report)
        had = Counter(
            self.of.get((executor, configs[0]))
            for shard in report.shards
            for executor, configs in shard.configurations.items()
            if configs
        )
        ended = {each.name: each.graphs - each.died for each in report.by_config}

        def turn(group: Group) -> int:
            """The number of the shard that the group has to have now, before all others."""
            reached = all(
                ended.get(f"{group.executor}/{config}", 0) >= self.settings.min_graphs
                for config in running[group]
            )
            return MAX_FIRST if reached else min(MAX_FIRST, had[group])

        by_executor: dict[str, float] = defaultdict(float)
        for group in running:
            by_executor[group.executor] += spent[group]
        return min(
            running,
            key=lambda group: (
                turn(group),
                by_executor[group.executor],
                spent[group] / self._weight(group),
            ),
        )

    def _listed(self, executor: str, name: str, skipped: int) -> Config:
        presets = presets_of(self.settings.configurations)
        return listed(executor, name, skipped, presets[executor])

    def _of(self, executor: str, config: str) -> Group | None:
        """The group of a configuration, which may be a generated one."""
        return self.of.get((executor, config), self.of.get((executor, PRODUCT)))

    def _weight(self, group: Group) -> float:
        """The share of a group in the time of its executor, relative to others."""
        if group.configs != (PRODUCT,):
            return math.sqrt(len(group.configs))
        others = sum(
            math.sqrt(len(each.configs))
            for each in self.groups
            if each.executor == group.executor and each != group
        )
        return GENERATED_SHARE / (1 - GENERATED_SHARE) * others or 1.0

    def _spent(self, report: Report) -> dict[Group, float]:
        """Seconds that each group has had, or is about to have."""
        spent = dict.fromkeys(self.groups, 0.0)
        for shard in report.shards:
            for executor, configs in shard.configurations.items():
                if executor != SELFTEST:
                    running = shard.state == "running"
                    seconds = max(shard.seconds, self.shard_s) if running else shard.seconds
                    group = self.of.get((executor, configs[0])) if configs else None
                    if group is None:  # of a damaged campaign that is resumed
                        named = f"shard {shard.number} ran {executor}:{','.join(configs)}"
                        raise StoreError(f"{self.store.path}: {named}, which nobody asked for")
                    spent[group] += seconds
        return spent

    @staticmethod
    def _running(report: Report, group: Group) -> tuple[str, ...]:
        """Configurations of a group that can run here, as far as known."""
        configs = tuple(
            each
            for each in group.configs
            if report.unavailable.get(f"{group.executor}/{each}", DOES_NOT_START).startswith(
                DOES_NOT_START
            )
        )
        # An executor that does not start now may start later, but not for ever.
        failures = sum(
            shard.state == "done" and not shard.graphs and bool(shard.problem)
            for shard in report.shards
            if shard.configurations == {group.executor: configs}
        )
        return configs if failures < MAX_FAILURES else ()


def _selftest_due(report: Report) -> bool:
    """True if the self-test has not succeeded yet and is worth another attempt."""
    shards = [shard for shard in report.shards if SELFTEST in shard.configurations]
    if len(shards) >= MAX_FAILURES or any(shard.state == "running" for shard in shards):
        return False
    return not report.kills


# --- what all shards have ------------------------------------------------------------------
