"""Shards: what they log, what they minimize, and what they know of earlier ones."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from campaign.shards import STALE, begun, events_of, pending, run_until, shard

from litmusfuzz.corpus.textfile import dumps, load, loads
from litmusfuzz.fuzz.campaign.shard import ShardFinding
from litmusfuzz.fuzz.finding.known_findings import KnownFindings
from litmusfuzz.fuzz.nightly.planner import ShardPlanner
from litmusfuzz.fuzz.nightly.shard_settings import TESTS_PER_FAMILY
from litmusfuzz.fuzz.store.report_builder import ReportBuilder
from litmusfuzz.fuzz.store.shard_log import EVENTS
from litmusfuzz.reports.events import (
    Confirmed,
    Executed,
    FindingAdded,
    SeenAgain,
    ShardEnded,
    ShardPlanned,
    ShardStarted,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from litmusfuzz.fuzz.store.store import Store
    from litmusfuzz.reports.events import Event


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A shard has logged a finding, one more test that shows it, and one that waits."""
    folder = tmp_path_factory.mktemp("logged")

    def enough(events: Sequence[Event]) -> bool:
        again = [e for e in events if isinstance(e, SeenAgain) or getattr(e, "unreduced", None)]
        known = [e for e in again if getattr(e, "key", None)]
        found = any(isinstance(e, FindingAdded) for e in events)
        return found and bool(known) and bool(pending(events))

    run_until(shard(folder, minimizing_share=1.0), enough)
    return folder


def first_events(folder: Path) -> list[Event]:
    """The events that the first shard has logged."""
    return events_of(folder / "shards" / "1")


@pytest.fixture
def store(tmp_path: Path, logged: Path) -> Iterator[Store]:
    """The store of a campaign whose one shard has ended."""
    shutil.copytree(logged, tmp_path / "n")
    with begun(tmp_path / "n") as store:
        store.finish_shard(1)
        yield store


def test_each_test_is_counted_once_and_its_findings_reported(store: Store, logged: Path) -> None:
    events = first_events(logged)
    executed = [event for event in events if isinstance(event, Executed)]
    assert len({event.index for event in executed}) == len(executed)
    assert {event.index // 32 // TESTS_PER_FAMILY for event in executed} == {0}
    assert isinstance(events[-1], ShardEnded)
    report = ReportBuilder(store, KnownFindings()).build()
    assert sum(share.graphs for share in report.by_config) == len(executed)
    assert {each.index for each in report.pending} == pending(events)
    assert report.findings
    for each in report.findings:
        assert each.in_this_run == sum(each.configs.values()) > 0
        assert each.forbidden
        assert each.nearest in each.allowed
        assert each.reason
        assert load(store.folder / each.file) == each.entry
    for event in executed:
        if event.unreduced:
            entry = load(store.folder / event.unreduced)
            assert entry.finding is not None
            assert entry.finding.index == event.index


def test_a_shard_minimizes_what_another_left_and_finds_nothing_known_again(
    store: Store, logged: Path
) -> None:
    left = pending(first_events(logged))
    before = ReportBuilder(store, KnownFindings()).build()
    known = tuple(
        ShardFinding(each.key, dumps(each.entry), tuple(each.configs)) for each in before.findings
    )
    files = [each.file for each in before.pending]
    assert {each.index for each in before.pending} == left != set()
    texts = tuple(((store.folder / file).read_text(), False) for file in files)
    second = shard(store.folder, 2, known=known, pending=texts, minimizing_share=1.0)
    store.append(2, ShardPlanned(configurations={STALE: ("plain",)}, minimizes=tuple(files)))
    planner = ShardPlanner(store)
    assert planner.pending(store.fold.report(str(store.folder)), planner.groups[0]) == []

    def resolved(events: Sequence[Event]) -> set[int]:
        """Those of the tests that were left."""
        kinds = FindingAdded | SeenAgain
        return {event.index for event in events if isinstance(event, kinds)} & left

    run_until(second, lambda events: bool(resolved(events)))
    events = events_of(store.log_folder(2))
    gone = resolved(events)
    store.finish_shard(2)
    assert not {e.key for e in events if isinstance(e, FindingAdded)} & {e.key for e in known}
    indices = {event.index for event in events if isinstance(event, Executed)}
    assert {index // 32 // TESTS_PER_FAMILY for index in indices} <= {1}
    after = ReportBuilder(store, KnownFindings()).build()
    assert {each.index for each in after.pending} & left == left - gone - {
        each.index for each in events if getattr(each, "file", "").startswith("unconfirmed/")
    }
    assert sum(each.count for each in after.findings) > sum(each.count for each in before.findings)


def test_a_suspect_is_confirmed_in_a_fresh_process_before_it_counts(
    tmp_path: Path, store: Store
) -> None:
    files = [each.unreduced for _, each in store.events_of(Executed) if each.unreduced][:2]
    texts = [(store.folder / file).read_text() for file in files]
    given = ((texts[0], False), (texts[1], True))
    first, second = (loads(text).finding for text in texts)
    assert first is not None
    assert second is not None
    asked = shard(tmp_path / "second", pending=given, tests=0, minimizing_share=1.0)
    run_until(asked, lambda _: False)  # it ends by itself
    events = first_events(tmp_path / "second")
    about = [each for each in events if getattr(each, "index", None) == second.index]
    kind = Confirmed | FindingAdded | SeenAgain
    assert isinstance(next(each for each in about if isinstance(each, kind)), Confirmed)
    kinds = FindingAdded | SeenAgain
    resolved = [each.index for each in events if isinstance(each, kinds)]
    assert sorted(resolved) == sorted([first.index, second.index])


def test_a_shard_on_another_machine_gives_the_same_store(tmp_path: Path) -> None:
    """It returns its files, which then lie in the campaign's folder, and its log is ingested."""
    asked = shard(tmp_path / "nowhere", log=False)
    files = run_until(asked, lambda events: bool(pending(events)))
    assert not (tmp_path / "nowhere").exists()
    with begun(tmp_path / "n") as store:
        before = {path.name for path in store.folder.iterdir()}
        store.add_files(1, files)
        assert [path.name for path in store.log_folder(1).iterdir()] == [EVENTS]
        store.finish_shard(1)
        after = {path.name for path in store.folder.iterdir()}
        events = list(store.events())
        report = store.fold.report("n")
    written = files[EVENTS].splitlines()
    assert len(events) == 2 + len(written)
    (line,) = report.shards
    assert (line.host != "", line.seconds > 0, line.graphs > 0) == (True, True, True)
    assert any(isinstance(event, ShardStarted) for _, event in events)
    assert report.pending
    for each in report.pending:
        assert (tmp_path / "n" / each.file).read_text() == files[each.file]
    assert after - before == {"shards", *(name.partition("/")[0] for name in files)} - {EVENTS}
    lying = {str(path.relative_to(tmp_path / "n")) for path in (tmp_path / "n").glob("*/*")}
    assert lying == set(files) - {EVENTS}
    assert not list((tmp_path / "n" / "shards").iterdir())
