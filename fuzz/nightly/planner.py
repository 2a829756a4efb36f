"""Plans the shards of a nightly run: what each runs, and which findings it minimizes.

`nightly.many` asks for the next shard (`ShardPlanner.next_shard`) whenever a shard process is free.

The configurations of an executor fall into *groups*: one environment, because another one needs
another process, and one class, because findings are distinguished by class. The generated
configurations of an executor are one group. The next shard is, in this order:

1. the self-test, if it is asked for, there is time left for it, and no shard runs it now; until it
   has reported its mutants or `MAX_FAILURES` shards have tried;
2. a shard of a group with a configuration that has not run enough graphs, so that a short nightly
   run reaches as many as it can: the first shard of all such groups, then the second, up to
   `MAX_FIRST`;
3. a shard of the executor whose groups have had the least time together, those that cannot run
   excepted;
4. of its groups, the one that has had the least time for its weight, which is the square root of
   its size: thirty configurations need more time than one, but differ less than thirty executors.
   Generated configurations have a fixed share of the executor's time.

A shard minimizes the unreduced findings of its group; towards the end it does little else.
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
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from litmusfuzz.fuzz.campaign.settings import Settings
    from litmusfuzz.fuzz.store.store import Store
    from litmusfuzz.reports.events import CampaignStarted, Configured
    from litmusfuzz.reports.open_tests import Pending
    from litmusfuzz.reports.report import Report, ShardLine

MIN_SHARD_S: Final = 5.0
"""Seconds of the shortest shard, though in a short nightly run not all groups then get one."""
SHARDS_OF_EACH: Final = 2
"""Shards of each group that a nightly run has time for, if they need not be too short."""
MAX_PENDING: Final = 24
"""Unreduced findings of a shard: each takes some seconds to minimize."""
MAX_FIRST: Final = 3
"""Shards of a group that come before all others: a configuration may refuse all that it gets."""
LATE: Final = 0.85
"""Share of the nightly run after which unreduced findings come first."""
MAX_FAILURES: Final = 3
"""Shards of a group that fail to start before the group is given up; also shards that try the
self-test."""


class Group(NamedTuple):
    """Configurations of an executor that share shards."""

    executor: str
    executor_class: str
    configs: tuple[str, ...]


class PlannedShard(NamedTuple):
    """A shard, and the files of the unreduced findings that it is to minimize.

    Unreadable files are among these, though not in `shard.pending`: they count as attempted, so
    that other findings come first the next time.
    """

    shard: Shard
    minimizes: tuple[str, ...] = ()


def groups(configurations: Iterable[Configured]) -> list[Group]:
    """The groups of configurations, in the order of the first configuration of each."""
    by_key: dict[tuple[object, ...], list[Configured]] = defaultdict(list)
    for each in configurations:
        environment = listed(each.executor, each.name).environment
        by_key[each.executor, environment, each.executor_class].append(each)
    return [
        Group(members[0].executor, members[0].executor_class, tuple(each.name for each in members))
        for members in by_key.values()
    ]


class ShardPlanner:
    """Plans the shards of a nightly run, from the events in its store.

    Parameters
    ----------
    store : Store
        Of a campaign that has started.
    known : KnownFindings, optional
        All shards know its causes and crashes.
    """

    def __init__(self, store: Store, known: KnownFindings = NOTHING) -> None:
        self.store = store
        self.known = known
        self.options: CampaignStarted = store.fold.options
        self.groups = groups(self.options.configurations)
        self.shard_s: float = self.options.shard_s or self._default_shard_s()
        self.group_by_config = {
            (group.executor, config): group for group in self.groups for config in group.configs
        }

    def _default_shard_s(self) -> float:
        """Seconds of a shard if the user does not say: a nightly run has some for each group."""
        shards = max(1, SHARDS_OF_EACH * len(self.groups))
        each_s = self.options.asked_s * self.options.workers / shards
        return min(MAX_SHARD_S, max(MIN_SHARD_S, each_s))

    def next_shard(self, left_s: float, *, write_log: bool) -> PlannedShard | None:
        """The next shard; None if nothing can run.

        Parameters
        ----------
        left_s : float
            Seconds left for shards.
        write_log : bool
            True if the shard process sees the campaign's folder, and writes a shard log there.
        """
        report = self.store.fold.report(str(self.store.folder))
        number = self.store.next_shard
        log_folder = str(self.store.log_folder(number).resolve()) if write_log else None
        if 0 < self.options.selftest_s <= left_s and _selftest_due(report):
            return PlannedShard(self._selftest_shard(number, left_s, log_folder))
        runnable = {
            group: configs for group in self.groups if (configs := _runnable(report, group))
        }
        if not runnable:
            return None
        group = self._next_group(report, runnable)
        return self._group_shard(
            report,
            group=group,
            configs=runnable[group],
            number=number,
            left_s=left_s,
            log_folder=log_folder,
        )

    def _group_shard(
        self,
        report: Report,
        *,
        group: Group,
        configs: tuple[str, ...],
        number: int,
        left_s: float,
        log_folder: str | None,
    ) -> PlannedShard:
        """The shard of that number, which runs these configurations of a group."""
        pending = self.pending(report, group)
        readable = unreduced(self.store, pending)
        is_late = left_s < (1 - LATE) * self.options.asked_s
        settings = replace(
            self._settings_of(report, number=number, executor=group.executor, names=configs),
            time_s=min(self.shard_s, left_s),
            minimizing_share=1.0 if is_late and readable else MINIMIZING_SHARE,
            # A long shard has more time for one finding than a short campaign.
            reduction_s=max(MAX_REDUCTION_S, min(self.shard_s, left_s) / 2),
        )
        shard = Shard(
            number=number,
            settings=settings,
            limit_s=left_s,
            known=(
                *known_causes(self.store, self.known, group.executor),
                *known_findings(report, group.executor),
            ),
            pending=tuple(readable.values()),
            unconfirmed=unconfirmed(
                self.store,
                (
                    each
                    for each in report.unconfirmed
                    if self._group_of(each.executor, each.configuration) == group
                ),
            ),
            known_deaths=self.known.patterns(datetime.now(UTC).date()),
            reduced=reduced_crashes(self.store),
            log_folder=log_folder,
        )
        return PlannedShard(shard, tuple(each.file for each in pending))

    def pending(self, report: Report, group: Group) -> list[Pending]:
        """The unreduced findings of a group that its next shard is to minimize.

        No shard is minimizing them, and the shard that showed them has ended, so that it will not
        either. Those that the fewest shards have attempted come first.
        """
        in_progress = {shard.number for shard in report.shards if shard.state == "running"}
        pending = [
            each
            for each in report.pending
            if self._group_of(each.executor, each.configuration) == group
            and each.minimizing_in is None
            and each.shard not in in_progress
        ]
        return sorted(pending, key=lambda each: (each.attempts, each.index))[:MAX_PENDING]

    def _selftest_shard(self, number: int, left_s: float, log_folder: str | None) -> Shard:
        settings = replace(
            base_settings(self.store, number),
            executors=((SELFTEST,),),
            time_s=self.options.selftest_s,
        )
        return Shard(number, settings, left_s, log_folder=log_folder)

    def _settings_of(
        self, report: Report, *, number: int, executor: str, names: Sequence[str]
    ) -> Settings:
        """Settings of a shard that runs these configurations, apart from its times."""
        already_generated = generated(report).get(executor, 0)
        presets = presets_of(self.options.configurations)[executor]
        configs = (
            listed(executor, name, skipped=already_generated, presets=presets) for name in names
        )
        return replace(
            base_settings(self.store, number),
            executors=((executor, *configs),),
            machine_share=SHARE / self.options.workers,
        )

    def _group_of(self, executor: str, config: str) -> Group | None:
        """The group of a configuration.

        A name that is in no group may be that of a generated configuration.
        """
        generated_group = self.group_by_config.get((executor, PRODUCT))
        return self.group_by_config.get((executor, config), generated_group)

    def _next_group(self, report: Report, runnable: Mapping[Group, tuple[str, ...]]) -> Group:
        """The group to run next, by rules 2 to 4 of the module's docstring.

        Parameters
        ----------
        report : Report
        runnable : mapping
            For each group that can run here: its configurations that can.
        """
        shards_had: Counter[Group] = Counter()
        spent_s = dict.fromkeys(self.groups, 0.0)
        for shard, group in self._shards(report):
            shards_had[group] += 1
            in_progress = shard.state == "running"
            spent_s[group] += max(shard.seconds, self.shard_s) if in_progress else shard.seconds
        executor_spent_s: dict[str, float] = defaultdict(float)
        for group in runnable:
            executor_spent_s[group.executor] += spent_s[group]
        unreached = self._unreached(report, runnable)

        def rank(group: Group) -> tuple[int, float, float]:
            first = min(MAX_FIRST, shards_had[group]) if group in unreached else MAX_FIRST
            weight = self._weight(group)
            return first, executor_spent_s[group.executor], spent_s[group] / weight

        return min(runnable, key=rank)

    def _unreached(self, report: Report, runnable: Mapping[Group, tuple[str, ...]]) -> set[Group]:
        """The groups with a configuration that can run, and has not run enough graphs yet."""
        graphs = {each.name: each.graphs - each.died for each in report.by_config}
        return {
            group
            for group, configs in runnable.items()
            for config in configs
            if graphs.get(f"{group.executor}/{config}", 0) < self.options.min_graphs
        }

    def _shards(self, report: Report) -> Iterator[tuple[ShardLine, Group]]:
        """The shards so far, those of the self-test excepted, each with its group.

        Raises
        ------
        StoreError
            If a shard ran what is in no group: the store is damaged.
        """
        for shard in report.shards:
            for executor, configs in shard.configurations.items():
                if executor == SELFTEST:
                    continue
                group = self.group_by_config.get((executor, configs[0])) if configs else None
                if group is None:
                    named = f"shard {shard.number} ran {executor}:{','.join(configs)}"
                    raise StoreError(f"{self.store.path}: {named}, which nobody asked for")
                yield shard, group

    def _weight(self, group: Group) -> float:
        """The share of a group in the time of its executor, relative to its other groups."""
        if group.configs != (PRODUCT,):
            return math.sqrt(len(group.configs))
        others = sum(
            math.sqrt(len(each.configs))
            for each in self.groups
            if each.executor == group.executor and each != group
        )
        share_to_others = GENERATED_SHARE / (1 - GENERATED_SHARE)
        return share_to_others * others if others else 1.0


def _runnable(report: Report, group: Group) -> tuple[str, ...]:
    """Configurations of a group that can run here, as far as known.

    An executor that does not start now may start later. But the group is given up after
    `MAX_FAILURES` shards that executed nothing; only shards with exactly the configurations that
    would run now count.
    """
    configs = []
    for config in group.configs:
        why_not = report.unavailable.get(f"{group.executor}/{config}")
        if why_not is None or why_not.startswith(DOES_NOT_START):
            configs.append(config)
    failures = sum(
        shard.state == "done" and not shard.graphs and bool(shard.problem)
        for shard in report.shards
        if shard.configurations == {group.executor: tuple(configs)}
    )
    return tuple(configs) if failures < MAX_FAILURES else ()


def _selftest_due(report: Report) -> bool:
    """True if no self-test has reported its mutants yet, and another attempt is worth it."""
    shards = [shard for shard in report.shards if SELFTEST in shard.configurations]
    if len(shards) >= MAX_FAILURES or any(shard.state == "running" for shard in shards):
        return False
    return not report.kills  # a self-test reports all its mutants, killed or not, when it ends
