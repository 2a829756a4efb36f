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
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from litmusfuzz.corpus.document import FileError, read_text
from litmusfuzz.corpus.ops import OPS
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import dumps
from litmusfuzz.fuzz.campaign.sampler import GENERATED_SHARE, MIN_SLICE
from litmusfuzz.fuzz.campaign.settings import Settings
from litmusfuzz.fuzz.campaign.shard import Shard, ShardFinding
from litmusfuzz.fuzz.campaign.tuning import MAX_REDUCTION_S, MINIMIZING_SHARE
from litmusfuzz.fuzz.executors.configuration_generator import PRODUCT, listed
from litmusfuzz.fuzz.executors.entries import loads
from litmusfuzz.fuzz.executors.memory import SHARE
from litmusfuzz.fuzz.executors.protocol import Noise, noise_named
from litmusfuzz.fuzz.executors.table import SELFTEST
from litmusfuzz.fuzz.finding.known_findings import NOTHING, KnownFindings
from litmusfuzz.fuzz.generators import FAMILIES
from litmusfuzz.fuzz.generators.seeds import Seeds
from litmusfuzz.fuzz.store.report_builder import wrong_entry
from litmusfuzz.fuzz.store.store import Store, StoreError
from litmusfuzz.oracles.model import GUARANTEES
from litmusfuzz.reports.events import DOES_NOT_START, FindingKind
from litmusfuzz.reports.report import Known

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from litmusfuzz.fuzz.executors.protocol import Config
    from litmusfuzz.reports.events import CampaignStarted, Configured
    from litmusfuzz.reports.open_tests import Pending, UnconfirmedTest
    from litmusfuzz.reports.report import Report

TESTS_PER_FAMILY: Final = 1 << 26
"""Tests of a family that a shard may generate: more than it does in a week. Shard n starts with
number n - 1 times that, so that the tests of two shards are never the same."""
MAX_SHARD_S: Final = 60.0
MIN_SHARD_S: Final = 5.0
"""In a nightly run too short for all groups."""
MAX_PENDING: Final = 24
"""Unreduced findings of a shard: each takes some seconds to minimize."""
MAX_UNCONFIRMED: Final = 8
"""Unconfirmed tests of a shard, which has time for few of them."""
GENERATED_AT_ONCE: Final = math.ceil(MAX_SHARD_S / MIN_SLICE)
"""Generated configurations that are left to a shard that runs: the next shard has later ones."""
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


def check_settings(store: Store) -> None:
    """Raise if a campaign cannot be continued here: executors and models may be others.

    Raises
    ------
    StoreError
        Naming what is unknown here.
    """
    try:
        check_numbers(store.fold.settings)
        for each in store.fold.settings.configurations:
            listed(each.executor, each.name)
        base_settings(store, 1)
    except KeyError as error:
        raise StoreError(f"{store.path}: settings: no memory model {error}") from None
    except ValueError as error:
        raise StoreError(f"{store.path}: settings: {error}") from None


_MOST: Final = (1 << 63) - 1
_MOST_S: Final = 10 * 365 * 86400.0
_LIMITS: Final = {
    "seed": (0, _MOST),
    "workers": (1, 4096),
    "tests": (0, _MOST),
    "count": (1, _MOST),
    "asked_s": (0, _MOST_S),
    "shard_s": (0.001, _MOST_S),
    "selftest_s": (0, _MOST_S),
    "disk_bytes": (0, _MOST),
    "min_graphs": (0, _MOST),
}
"""Least and greatest value of each number among a campaign's settings."""


def check_numbers(started: CampaignStarted) -> None:
    """Check the numbers among a campaign's settings, as the command line checks its options.

    Raises
    ------
    ValueError
        Naming the setting.
    """
    for name, (least, most) in _LIMITS.items():
        value = getattr(started, name)
        if value is not None and not least <= value <= most:
            raise ValueError(f"{name} must be {least} to {most}, got {value}")
    for family, weight in started.families.items():
        if family not in FAMILIES:
            raise ValueError(f"no family {family!r}")
        if not 0 < weight < 1000:
            raise ValueError(f"the weight of {family} must be between 0 and 1000, got {weight}")
    Seeds.of(started.seeds)
    for op in started.deadly_ops:
        if op not in OPS:
            raise ValueError(f"no op {op!r}")


def base_settings(store: Store, number: int) -> Settings:
    """Settings of a shard, apart from what it runs and for how long."""
    started = store.fold.settings
    settings = Settings(
        seed=started.seed,
        out=store.folder,
        executors=(),
        workers=started.workers,
        families=tuple(started.families),
        weights=started.families,
        model=GUARANTEES[started.judge_by] if started.judge_by else None,
        noise=Noise() if started.noise == "default" else noise_named(started.noise, Noise()),
        python=started.python,
        as_generated=started.as_generated,
        spawn=started.spawn,
        deadly_ops=frozenset(started.deadly_ops),
        seeds=Seeds.of(started.seeds),
        first_index=(number - 1) * TESTS_PER_FAMILY,
        suffix=f"-shard{number}" if number > 1 else "",
    )
    return settings if started.count is None else replace(settings, count=started.count)


def unreduced(store: Store, pending: Iterable[Pending]) -> dict[str, tuple[str, bool]]:
    """By file, the text of a pending test, and whether it is a suspect.

    Files that cannot be read are left out; `ReportBuilder` reports them.
    """
    found = {}
    for each in pending:
        with suppress(FileError):
            text = read_text(store.folder / each.file)
            if not wrong_entry(loads(text), each):
                found[each.file] = text, each.suspect
    return found


def unconfirmed(store: Store, tests: Iterable[UnconfirmedTest]) -> tuple[str, ...]:
    """Texts of tests that no fresh process has shown again, the least tried first.

    Files that cannot be read, or are gone, are left out.
    """
    found = []
    for each in sorted(tests, key=lambda each: (each.attempts, each.index))[:MAX_UNCONFIRMED]:
        with suppress(FileError, OSError):
            text = read_text(store.folder / each.file)
            if not wrong_entry(loads(text), each):
                found.append(text)
    return tuple(found)


def known_findings(report: Report, executor: str | None = None) -> tuple[ShardFinding, ...]:
    """Minimized findings so far, of one executor or of all.

    Those of other classes too: a finding of one class may show in all.
    """
    return tuple(
        ShardFinding(each.key, dumps(each.entry), tuple(each.configs))
        for each in report.findings
        if each.kind is FindingKind.FORBIDDEN and executor in (None, each.executor)
    )


def reduced_crashes(store: Store) -> tuple[tuple[str, str], ...]:
    """Executors and exceptions of the crashes that shards have reduced."""
    reduced = store.fold.reduced_crashes.values()
    return tuple({(each.executor, each.raised): None for each in reduced})


def known_causes(
    store: Store, known: KnownFindings, executor: str | None = None
) -> tuple[ShardFinding, ...]:
    """The causes in the known-findings file, of one executor or of all."""
    found = []
    for each in known.causes(datetime.now(UTC).date()):
        cause = each.cause
        assert cause is not None
        if executor is None or cause.finding.executor == executor:
            seen = store.fold.known_cause(Known(cause.key, each.why, seen=False))
            shown = tuple(sorted(seen.configurations))
            text, unchecked = dumps(cause.entry), seen.shows is None
            unseen = seen.executions if unchecked else 0
            found.append(
                ShardFinding(
                    cause.key, text, shown, each.name, unchecked, unseen, versions=each.versions
                )
            )
    return tuple(found)


def presets_of(configurations: Iterable[Configured]) -> dict[str, list[str]]:
    """By executor, the names of the configurations that are not generated."""
    found: dict[str, list[str]] = defaultdict(list)
    for each in configurations:
        found[each.executor] += [each.name] if each.name != PRODUCT else []
    return found


def generated(report: Report) -> dict[str, int]:
    """By executor, the configurations that shards have generated, or may be about to."""
    found: dict[str, int] = defaultdict(int)
    for shard in report.shards:
        for executor, configs in shard.configurations.items():
            if PRODUCT in configs:
                found[executor] += shard.generated
                if shard.state == "running":
                    found[executor] += GENERATED_AT_ONCE
    return dict(found)
