"""What all shards of a campaign have: its settings, and what earlier shards have left."""

from __future__ import annotations

import math
from collections import defaultdict
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.document import FileError, read_text
from litmusfuzz.corpus.textfile import dumps
from litmusfuzz.fuzz.campaign.settings import Settings
from litmusfuzz.fuzz.campaign.shard import ShardFinding
from litmusfuzz.fuzz.campaign.tuning import MIN_SLICE
from litmusfuzz.fuzz.executors.configuration_generator import PRODUCT, listed
from litmusfuzz.fuzz.executors.entries import loads
from litmusfuzz.fuzz.store.folder import StoreError
from litmusfuzz.fuzz.store.open_tests import wrong_entry
from litmusfuzz.reports.events import FindingKind
from litmusfuzz.reports.report import Known

if TYPE_CHECKING:
    from collections.abc import Iterable

    from litmusfuzz.fuzz.finding.known_findings import KnownFindings
    from litmusfuzz.fuzz.store.store import Store
    from litmusfuzz.reports.events import Configured
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
        for each in store.fold.options.configurations:
            listed(each.executor, each.name)
        base_settings(store, 1).check()
    except ValueError as error:
        raise StoreError(f"{store.path}: settings: {error}") from None


def base_settings(store: Store, number: int) -> Settings:
    """Settings of a shard, apart from what it runs and for how long."""
    return Settings(
        store.fold.options,
        store.folder,
        first_index=(number - 1) * TESTS_PER_FAMILY,
        suffix=f"-shard{number}" if number > 1 else "",
    )


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
