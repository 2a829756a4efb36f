"""What all shards of a campaign have: its settings, and what earlier shards have left."""

from __future__ import annotations

import math
from collections import defaultdict
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.document import FileError, read_text
from litmusfuzz.corpus.ops import OPS
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import dumps
from litmusfuzz.fuzz.campaign.settings import Settings
from litmusfuzz.fuzz.campaign.shard import ShardFinding
from litmusfuzz.fuzz.campaign.tuning import MIN_SLICE
from litmusfuzz.fuzz.executors.configuration_generator import PRODUCT, listed
from litmusfuzz.fuzz.executors.entries import loads
from litmusfuzz.fuzz.executors.protocol import Noise, noise_named
from litmusfuzz.fuzz.generators import FAMILIES
from litmusfuzz.fuzz.generators.seeds import Seeds
from litmusfuzz.fuzz.store.folder import StoreError
from litmusfuzz.fuzz.store.open_tests import wrong_entry
from litmusfuzz.oracles.model import GUARANTEES
from litmusfuzz.reports.events import FindingKind
from litmusfuzz.reports.report import Known

if TYPE_CHECKING:
    from collections.abc import Iterable

    from litmusfuzz.fuzz.finding.known_findings import KnownFindings
    from litmusfuzz.fuzz.store.store import Store
    from litmusfuzz.reports.events import CampaignStarted, Configured
    from litmusfuzz.reports.open_tests import Pending, UnconfirmedTest
    from litmusfuzz.reports.report import Report

TESTS_PER_FAMILY: Final = 1 << 26
"""Tests of a family that a shard may generate: more than it does in a week. Shard n starts with
number n - 1 times that, so that the tests of two shards are never the same."""
MAX_UNCONFIRMED: Final = 8
"""Unconfirmed tests of a shard, which has time for few of them."""
MAX_SHARD_S: Final = 60.0
GENERATED_AT_ONCE: Final = math.ceil(MAX_SHARD_S / MIN_SLICE)
"""Generated configurations that are left to a shard that runs: the next shard has later ones."""


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
