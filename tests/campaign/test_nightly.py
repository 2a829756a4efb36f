"""Nightly runs: ended, killed and resumed ones, their reports, and reproduced tests.

They run a mutant that needs no framework. Tests wait for a state of the store or of a shard log,
never for a time.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from litmusfuzz.corpus.textfile import load
from litmusfuzz.fuzz.campaign import canonical
from litmusfuzz.fuzz.campaign.causes import symptom
from litmusfuzz.fuzz.campaign.known_findings import KERNELS, Cause, KnownFinding, KnownFindings
from litmusfuzz.fuzz.campaign.nightly.planner import ShardPlanner
from litmusfuzz.fuzz.campaign.nightly.report_builder import ReportBuilder, summary
from litmusfuzz.fuzz.campaign.nightly.shard import (
    SELFTEST,
    TESTS_PER_FAMILY,
    Shard,
    ShardFinding,
    run_shard,
)
from litmusfuzz.fuzz.campaign.nightly.shard_log import EVENTS, ShardLog
from litmusfuzz.fuzz.campaign.nightly.store import Store, StoreError
from litmusfuzz.fuzz.campaign.nightly.worker_deaths import group_deaths
from litmusfuzz.fuzz.executors.table import executor_class
from litmusfuzz.reports.nightly_report import Kill
from litmusfuzz.reports.outputs import write_all

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

STALE = "mutant/stale-reads"
META = {
    "command": "litmusfuzz nightly",
    "seed": 1,
    "started": 1_800_000_000,
    "asked_s": 60,
    "spent_s": 0,
    "disk_bytes": 1 << 30,
}

PLANNED = {
    "shard_s": 10.0,
    "selftest_s": 0.0,
    "workers": 2,
    "families": {},
    "count": None,
    "python": None,
    "asked_s": 36_000.0,
}
"""What a `ShardPlanner` reads of a nightly run, except the executors."""


def shard(number: int = 1, **changes: Any) -> Shard:
    return Shard(
        **{
            "number": number,
            "seed": 1,
            "executor": STALE,
            "configs": ("plain",),
            "time_s": 600.0,
            "deadline": time.time() + 600,
            "families": {"dag": 1.0},
            "count": 64,
            **changes,
        }
    )


Lines = list[dict[str, Any]]


def done(asked: Shard, folder: Path | None, enough: Callable[[Lines], bool]) -> Mapping[str, str]:
    """Do a shard until what it has written is enough: no clock decides."""
    from litmusfuzz.fuzz.campaign.nightly import shard as module

    class Until(ShardLog):
        @property
        def stop_requested(self) -> bool:
            """Whether it is."""
            return enough(lines_of(self.folder))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "ShardLog", Until)
        return run_shard(replace(asked, log_folder=folder and str(folder)))


def pending(lines: Lines) -> set[int]:
    """Graphs that wait to be minimized."""
    shown = {each["index"] for each in lines if each["kind"] == "test" and each["unreduced"]}
    resolved = {
        each["index"] for each in lines if each["kind"] in ("finding", "seen_again", "unconfirmed")
    }
    return shown - resolved - {each["index"] for each in lines if each.get("key")}


@pytest.fixture(scope="module")
def logged(tmp_path_factory) -> Path:
    """What a shard left that has a finding, one more graph that shows it, and one that waits."""
    folder = tmp_path_factory.mktemp("log")

    def enough(lines: Lines) -> bool:
        found = sum(each.get("key") is not None for each in lines)
        return found > 1 and bool(pending(lines))

    done(shard(minimizing_share=1.0), folder, enough)
    return folder


def lines_of(folder: Path) -> Lines:
    return [json.loads(line) for line in (folder / EVENTS).read_text().splitlines()]


@pytest.fixture
def store(tmp_path: Path, logged: Path) -> Iterator[Store]:
    """A nightly run of one shard that has ended."""
    with nightly_run(tmp_path / "n", logged) as store:
        store.finish_shard(1, lost=False)
        yield store


def nightly_run(folder: Path, log_folder: Path | None = None) -> Store:
    """A store in which shard 1 has begun, and left that."""
    store = Store(folder, write=True)
    if not store.meta:
        store.set_meta(**META)
        store.begin_shard(shard(), [])
        store.db.execute("UPDATE shards SET started = 1800000000")
    if log_folder is not None:
        shutil.copytree(log_folder, store.log_folder(1))
    return store


def dump(folder: Path) -> list[str]:
    with sqlite3.connect(folder / "nightly.sqlite") as db:
        return [line for line in db.iterdump() if "INSERT" in line]


def files(folder: Path) -> dict[str, bytes]:
    kept = ("findings", "unreduced", "unconfirmed", "crashed")
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for name in kept
        for path in (folder / name).rglob("*")
    }


# --- ingesting a shard log -------------------------------------------------------------


def test_a_shard_log_is_ingested_once_whatever_is_killed_when(tmp_path: Path, logged: Path) -> None:
    """In one go, or cut at any byte with the writer killed after each part: the same."""
    whole = nightly_run(tmp_path / "whole", logged)
    whole.finish_shard(1, lost=False)
    whole.close()
    data = (logged / EVENTS).read_bytes()
    cut = tmp_path / "cut"
    nightly_run(cut, logged).close()
    for size in range(0, len(data) + 4999, 4999):
        (cut / "shards" / "1" / EVENTS).write_bytes(data[:size])
        store = Store(cut, write=True)
        store.ingest(1)
        # Killed in the middle of the next lines: all of that transaction is undone.
        (cut / "shards" / "1" / EVENTS).write_bytes(data + b'{"kind":"test","at":1}\n')
        with pytest.raises(KeyError):
            store.ingest(1)
        store.close()
    (cut / "shards" / "1" / EVENTS).write_bytes(data)
    store = Store(cut, write=True)
    store.finish_shard(1, lost=False)
    store.finish_shard(1, lost=False)
    store.close()
    assert dump(cut) == dump(tmp_path / "whole")
    assert files(cut) == files(tmp_path / "whole")
    assert not list((cut / "shards").iterdir())


def test_the_log_of_another_version_is_refused(tmp_path: Path, logged: Path) -> None:
    store = nightly_run(tmp_path / "n", logged)
    log = tmp_path / "n" / "shards" / "1" / EVENTS
    text = log.read_text()
    for other in ("", '"version":1,', '"version":3,'):
        assert text.count('"version":2,') == 1
        log.write_text(text.replace('"version":2,', other))
        with pytest.raises(StoreError, match=r"version [13] of an event log, this program reads"):
            store.ingest(1)
    store.close()


def test_a_store_has_one_writer_and_one_version(tmp_path: Path) -> None:
    with nightly_run(tmp_path / "n") as store:
        with pytest.raises(StoreError, match="another process"):
            Store(tmp_path / "n", write=True)
        store.db.execute("PRAGMA user_version = 99")
    with pytest.raises(StoreError, match="is version 99 of a store, this program reads version "):
        Store(tmp_path / "n", write=False)
    with pytest.raises(StoreError, match="is no folder of a nightly run"):
        Store(tmp_path / "nothing", write=False)


def test_each_test_is_counted_once_and_its_findings_reported(
    store: Store, tmp_path: Path, logged: Path
) -> None:
    check(store)
    report = ReportBuilder(store, KnownFindings()).build()
    tests = [line for line in lines_of(logged) if line["kind"] == "test"]
    assert sum(share.graphs for share in report.by_config) == len(tests)
    assert {line["index"] // 32 // TESTS_PER_FAMILY for line in tests} == {1}
    assert report.findings
    assert report.not_minimized == len(store.pending(STALE, ("plain",), 1000))
    for each in report.findings:
        assert each.in_this_run == sum(each.configs.values()) > 0
        assert each.forbidden
        assert each.nearest in each.allowed
        assert each.reason
        assert load(tmp_path / "n" / each.file) == each.entry


def test_exit_code_is_0_if_all_findings_are_known_by_key_else_1(
    store: Store, tmp_path: Path, logged: Path
) -> None:
    keys = [each.key for each in ReportBuilder(store, KnownFindings()).build().findings]
    entries = tuple(KnownFinding("because", key) for key in [*keys, "v2-0000000000000000"])
    report = ReportBuilder(store, KnownFindings(entries)).build()
    assert report.exit_code() == (1 if report.undecided else 0)
    store.db.execute("UPDATE unreduced_findings SET state = 'resolved'")
    report = ReportBuilder(store, KnownFindings(entries)).build()
    assert report.exit_code() == 0
    assert [each.seen for each in report.known] == [True] * len(keys) + [False]
    report = ReportBuilder(store, KnownFindings(entries[1:])).build()
    assert report.exit_code() == 1
    assert [each.key for each in report.new] == keys[:1]


def test_a_crash_known_by_its_cause_stays_known_in_each_report(
    store: Store, tmp_path: Path
) -> None:
    """Also where its file is asked for first, as after a nightly run that has ended."""
    (row, *_) = store.rows("SELECT file FROM unreduced_findings")
    effects = load(tmp_path / "n" / row["file"]).test.effects
    store.db.execute(
        """INSERT INTO worker_deaths
        VALUES (1, 1, 'crashed', 'plain', 'tf/executor', 'signal 6', ?, ?, 1)""",
        (row["file"], json.dumps(sorted({node.op for node in effects}))),
    )
    kernels = tuple(sorted({node.definition.kernel_class for node in effects}))
    cause = Cause(("crashed",), kernels, None, ("tf/executor",))
    report = ReportBuilder(store, KnownFindings((KnownFinding("the heap", "", cause),)))
    assert report.kept == {row["file"]}
    for _ in range(2):
        made = report.build()
        assert [each.seen for each in made.known] == [True]
        assert [each.known for each in made.findings if each.kind == "crashed"] == ["the heap"]


def test_a_shard_minimizes_what_another_left_and_finds_nothing_known_again(
    store: Store, tmp_path: Path, logged: Path
) -> None:
    before = store.rows("SELECT key FROM sightings")
    left = [row["number"] for row in store.pending(STALE, ("plain",), 1000)]
    assert set(left) == pending(lines_of(logged)) != set()
    texts = tuple((tmp_path / "n" / f"unreduced/unreduced-1-{n}.yaml").read_text() for n in left)
    known = tuple(
        ShardFinding(key, (tmp_path / "n" / file).read_text(), ("plain",))
        for key, file in store.rows("SELECT key, file FROM findings")
    )
    second = shard(2, known=known, pending=texts, minimizing_share=1.0)
    store.begin_shard(second, left)
    assert not store.pending(STALE, ("plain",), 1000)

    def resolved(lines: Lines) -> set[int]:
        """Of those that were left."""
        kinds = ("finding", "seen_again")
        return {each["index"] for each in lines if each["kind"] in kinds} & set(left)

    done(second, store.log_folder(2), lambda lines: bool(resolved(lines)))
    gone = resolved(lines_of(store.log_folder(2)))
    store.finish_shard(2, lost=False)
    check(store)
    assert not gone & {row["number"] for row in store.pending(STALE, ("plain",), 1000)}
    assert len(store.rows("SELECT key FROM sightings")) > len(before)


def test_a_shard_on_another_machine_gives_the_same_store(tmp_path: Path) -> None:
    """It returns its files, and they are ingested like a shard log."""

    def enough(lines: Lines) -> bool:
        return bool(pending(lines))

    files = done(shard(), None, enough)
    with nightly_run(tmp_path / "n") as store:
        store.add_files(1, files)
        store.finish_shard(1, lost=False)
        check(store)
        assert store.rows("SELECT host != '', seconds > 0, graphs > 0 FROM shards")[0][:] == (
            1,
            1,
            1,
        )
        assert store.pending(STALE, ("plain",), 1000)


def test_sightings_of_earlier_nightly_runs_are_counted(store: Store, logged: Path) -> None:
    with nightly_run(store.folder.parent / "later", logged) as later:
        assert ReportBuilder(later, KnownFindings()).build().earlier == ()  # the first goes on
        first = ReportBuilder(store, KnownFindings()).build()
        store.set_meta(summary=summary(first))
        later.finish_shard(1, lost=False)
        report = ReportBuilder(later, KnownFindings()).build()
    (line,) = report.earlier
    assert (line.findings, line.graphs) == (len(first.findings), first.graphs)
    for one, other in zip(first.findings, report.findings, strict=True):
        assert other.key == one.key
        assert other.in_this_run == one.in_this_run
        assert other.count == one.count + one.in_this_run
        assert other.first_seen == one.first_seen


def test_a_mutant_that_is_not_reported_breaks_the_nightly_run(tmp_path: Path) -> None:
    killed = Kill("mutant/stale-reads", "native", 1.5, 7, "dag", "controlled")
    alive = Kill("mutant/early-sink", "native", None, 900)
    with nightly_run(tmp_path / "n") as store:
        for number, kill in ((1, killed), (2, alive)):
            if number == 2:
                store.begin_shard(shard(2), [])
            with ShardLog(store.log_folder(number), SELFTEST, ()) as log:
                log.mutant_done(kill)
                log.canary_run(reported=True)
                log.finished(2.0)
            store.finish_shard(number, lost=False)
            store.set_meta(ended=1_800_000_100)
            report = ReportBuilder(store, KnownFindings()).build()
            assert report.exit_code() == (0 if number == 1 else 2)
    assert report.kills == (alive, killed)
    assert report.mutation_score == 0.5


def test_executors_get_the_same_time_and_groups_by_the_root_of_their_size(tmp_path: Path) -> None:
    names = [config.name for config in executor_class("tf").configurations()]
    asked = {"executors": [["tf", *names], ["native", "plain"]], **PLANNED}
    had: Counter[tuple[str, int]] = Counter()
    with Store(tmp_path / "n", write=True) as store:
        store.set_meta(**META | asked)
        planner = ShardPlanner(store)
        for _ in range(600):
            made = planner.next(30_000.0, 0.0, write_log=False)
            assert made is not None
            store.begin_shard(made[0], [])
            store.db.execute("UPDATE shards SET state = 'done', seconds = 10")
            had[made[0].executor, len(made[0].configs)] += 1
    assert had["native", 1] == 300
    groups = Counter(len(group.configs) for group in planner.groups if group.executor == "tf")
    assert max(groups) >= 20
    assert groups[1] >= 5
    each = {size: had["tf", size] / count for size, count in groups.items()}
    for size, shards in each.items():
        # One shard more or less.
        assert abs(shards / size**0.5 - each[1]) <= 1


def test_shards_name_the_configuration_in_which_minimizing_is_fast(tmp_path: Path) -> None:
    executors = [["tf", "plain", "grappler", "autocluster"], ["native", "plain", "split"]]
    asked = {"executors": executors, **PLANNED}
    fast = {}
    with Store(tmp_path / "n", write=True) as store:
        store.set_meta(**META | asked)
        for line, (config, seconds) in enumerate((("plain", 1), ("plain", 3), ("autocluster", 9))):
            store.begin_shard(shard(1 + line, executor="tf", configs=(config,)), [])
            store.db.execute("UPDATE shards SET state = 'done', seconds = 10")
            columns = [1 + line, line, line, "dag", "", config, "rfc", "{}", "[]", 1, ""]
            columns += [1, 0, 0, None, seconds, ""]
            store.db.execute(f"INSERT INTO tests VALUES ({', '.join('?' * 17)})", columns)  # noqa: S608
        planner = ShardPlanner(store)
        for number in range(10, 20):
            made = planner.next(30_000.0, 0.0, write_log=False)
            assert made is not None
            store.begin_shard(made[0], [])
            fast[made[0].configs] = made[0].fast_config
            wanted = {"plain": 2.0, "autocluster": 9.0} if made[0].executor == "tf" else {}
            assert made[0].seconds_per_test == wanted, number
            store.db.execute("UPDATE shards SET state = 'done', seconds = 10")
    assert fast.pop(("autocluster",)) == "plain"
    assert fast == dict.fromkeys((("plain", "grappler"), ("plain",), ("split",)))


def test_shrinking_keeps_findings_and_pending_tests(
    store: Store, tmp_path: Path, logged: Path
) -> None:
    findings = set((tmp_path / "n/findings").iterdir())
    pending = {
        file
        for (file,) in store.rows("SELECT file FROM unreduced_findings WHERE state = 'pending'")
    }
    resolved = {
        file
        for (file,) in store.rows("SELECT file FROM unreduced_findings WHERE state = 'resolved'")
    }
    assert resolved
    assert store.shrink(1 << 30, set()) == store.disk_bytes()
    assert all((tmp_path / "n" / file).is_file() for file in resolved)
    store.shrink(1, set())
    assert set((tmp_path / "n/findings").iterdir()) == findings
    assert all((tmp_path / "n" / file).is_file() for file in pending)
    assert not any((tmp_path / "n" / file).is_file() for file in resolved)


def test_deaths_that_look_alike_are_one_finding() -> None:
    def death(message: str, *ops: str) -> dict[str, str]:
        report = {"kind": "crashed", "class": "tf/executor", "message": message}
        return {**report, "ops": json.dumps(ops)}

    deaths = [
        death("signal 6: free(): invalid pointer 0x7f10", "read", "A", "S"),
        death("signal 6: free(): invalid pointer 0x7f99", "B", "S"),
        death("signal 6: free(): invalid pointer 0x7f11", "A", "S"),
        death("signal 6: free(): invalid pointer 1", "B"),
        death("signal 11", "S"),
        death("signal 11", "read"),
    ]
    found = group_deaths(deaths, lambda each: "")
    assert [(each.message[:9], each.op, len(each.deaths)) for each in found] == [
        ("signal 6:", "S", 3),
        ("signal 6:", "B", 1),
        ("signal 11", "S", 1),
        ("signal 11", "read", 1),
    ]
    assert len({key for each in found for key in each.keys}) == 5
    # Who else is there does not matter; the numbers in the words do not either.
    alone = {each.keys[0] for death in deaths for each in group_deaths([death], lambda _: "")}
    assert alone == {key for each in found for key in each.keys}


def test_of_crashes_that_look_alike_some_may_be_known(store: Store, tmp_path: Path) -> None:
    (row, *_) = store.rows("SELECT file FROM unreduced_findings")
    for line, ops in enumerate((["A", "S"], ["B", "S"]), 1):
        store.db.execute(
            "INSERT INTO worker_deaths VALUES (1, ?, 'crashed', 'plain', ?, 'signal 6', ?, ?, 1)",
            (line, STALE, row["file"], json.dumps(ops)),
        )

    def crashes(*keys: str) -> list[tuple[int, str, tuple[str, ...]]]:
        known = KnownFindings(tuple(KnownFinding("w", key) for key in keys))
        found = [
            each for each in ReportBuilder(store, known).build().findings if each.kind == "crashed"
        ]
        return [(each.in_this_run, each.known, (each.key, *each.also)) for each in found]

    ((both, why, (first, second)),) = crashes()
    assert (both, why) == (2, "")
    assert crashes(first) == [(1, "w", (first,)), (1, "", (second,))]
    assert crashes(first, second) == [(2, "w", (first, second))]
    assert ReportBuilder(store, KnownFindings()).kept == {row["file"]}
    # What was dropped since the disk was too small is no damage.
    store.db.execute("UPDATE worker_deaths SET file = 'crashed/gone.yaml' WHERE line = 2")
    report = ReportBuilder(store, KnownFindings()).build()
    assert not report.problem
    assert [each.in_this_run for each in report.findings if each.kind == "crashed"] == [2]


def test_crashes_of_two_shards_have_two_names(store: Store, tmp_path: Path) -> None:
    """Each shard calls its first ``crashed-7-1``; a report of JUnit knows cases by their names."""
    (row, *_) = store.rows("SELECT file FROM unreduced_findings")
    (tmp_path / "n" / "crashed").mkdir(exist_ok=True)
    for number in (1, 2):
        file = f"crashed/{number}-crashed-7-1.yaml"
        shutil.copy(tmp_path / "n" / row["file"], tmp_path / "n" / file)
        store.db.execute(
            "INSERT INTO worker_deaths VALUES (?, 1, 'crashed', 'plain', ?, ?, ?, '[]', 1)",
            (number, STALE, f"signal {number}: ", file),
        )
    report = ReportBuilder(store, KnownFindings()).build()
    names = [each.entry.test.name for each in report.findings if each.kind == "crashed"]
    assert names == ["1-crashed-7-1", "2-crashed-7-1"]


def test_an_unreduced_finding_is_new_unless_a_known_one_may_explain_it(
    store: Store,
) -> None:
    (row, *more) = store.rows("SELECT number, file FROM unreduced_findings WHERE state = 'pending'")
    for each in more:
        store.db.execute(
            "UPDATE unreduced_findings SET state = 'resolved' WHERE number = ?", each[:1]
        )
    entry = load(store.folder / row["file"])
    kind = canonical.executor_class(STALE, dict(entry.finding.settings), entry.finding.model)
    symptoms = tuple({symptom(outcome) for outcome, _ in entry.finding.forbidden})
    right = Cause(
        symptoms, tuple(sorted(n.definition.kernel_class for n in entry.test.effects)), (), (kind,)
    )
    absent = min(KERNELS - set(right.kernels))

    def undecided(*entries: KnownFinding, found: bool = False) -> tuple[int, int]:
        # Without `found`, the exit code is that of a report without findings.
        builder = ReportBuilder(store, KnownFindings(entries))
        report = builder.build()
        return report.undecided, (report if found else replace(report, findings=())).exit_code()

    keys = [each.key for each in ReportBuilder(store, KnownFindings()).build().findings]
    assert undecided() == (1, 1)
    assert undecided(KnownFinding("w", "", right)) == (0, 0)
    for wrong in (
        replace(right, symptoms=("torn",)),
        replace(right, kernels=(absent,)),
        replace(right, classes=("tf/executor",)),
    ):
        assert undecided(KnownFinding("w", "", wrong)) == (1, 1)
    # A finding that is known by its key explains tests that contain its shape.
    assert undecided(*(KnownFinding("w", key) for key in keys), found=True)[0] in (0, 1)
    small = store.rows("SELECT file FROM findings")[0]["file"]
    store.copy(store.folder / small, row["file"])
    assert undecided(*(KnownFinding("w", key) for key in keys), found=True) == (0, 0)


@pytest.mark.parametrize("gone", [False, True])
def test_a_missing_or_damaged_file_is_reported_and_nothing_else_is_lost(
    store: Store, tmp_path: Path, *, gone: bool
) -> None:
    before = ReportBuilder(store, KnownFindings()).build()
    (file,) = (tmp_path / "n" / each.file for each in before.findings)
    if gone:
        file.unlink()
    else:
        file.write_text(file.read_text().replace("finding:", "findings:"))
    report = ReportBuilder(store, KnownFindings()).build()
    assert not report.findings
    assert report.exit_code() == 2
    assert str(file) in report.problem
    write_all(report, tmp_path / "n")
    assert (tmp_path / "n/report.html").is_file()


def test_an_unreadable_file_ends_no_shard(tmp_path: Path, store: Store) -> None:
    executors = {"executors": [[STALE, "plain"]], "shard_s": 10.0, "selftest_s": 0.0, "workers": 1}
    store.set_meta(**META | executors | {"families": {}, "count": None, "python": None})
    rows = store.rows("SELECT number, file FROM unreduced_findings WHERE state = 'pending'")
    (tmp_path / "n" / rows[0]["file"]).unlink()
    (tmp_path / "n" / store.rows("SELECT file FROM findings")[0]["file"]).write_text("no: test\n")
    made = ShardPlanner(store).next(600.0, 0.0, write_log=False)
    assert made is not None
    turn_, given = made
    assert len(turn_.pending) == len(rows) - 1
    assert set(given) == {row["number"] for row in rows}
    assert len(turn_.known) == len(store.rows("SELECT 1 FROM findings")) - 1


def test_damaged_nightly_runs_beside_it_are_ignored(tmp_path: Path) -> None:
    whole = {"started": 1, "graphs": 1, "outcomes": 1, "findings": 0, "new": 0}
    whole |= {"mutation_score": None, "seen": {"v2-0": {"count": 1, "first": 1, "last": 1}}}
    for number, report in enumerate(({"seen": {}, "started": 1}, {"started": 1}, 5, [], whole)):
        with Store(tmp_path / str(number), write=True) as beside:
            beside.set_meta(summary=report)
    with Store(tmp_path / "torn", write=True) as beside:
        beside.db.execute("INSERT INTO meta VALUES ('summary', '{')")
    with Store(tmp_path / "n", write=True) as store:
        store.set_meta(**META)
        assert [each.graphs for each in ReportBuilder(store, KnownFindings()).build().earlier] == [
            1
        ]


def test_an_unfinished_selftest_is_reported(tmp_path: Path) -> None:
    with Store(tmp_path / "n", write=True) as store:
        store.set_meta(**META, selftest_s=60.0, ended=2, interrupted=False)
        report = ReportBuilder(store, KnownFindings()).build()
        assert "the self-test did not finish" in report.complaint
        store.set_meta(interrupted=True)
        assert "self-test" not in ReportBuilder(store, KnownFindings()).build().complaint


def check(store: Store) -> None:
    """Nothing is lost, nothing is double."""
    one = lambda query: store.rows(query)[0][0]  # noqa: E731
    folder = store.folder
    assert one("SELECT count(*) FROM tests") == one("SELECT count(DISTINCT number) FROM tests")
    assert one("SELECT count(*) FROM tests") == one("SELECT sum(graphs) FROM shards")
    assert {n for (n,) in store.rows("SELECT number FROM tests WHERE forbidden > 0")} == {
        n for (n,) in store.rows("SELECT number FROM unreduced_findings")
    }
    assert {
        n for (n,) in store.rows("SELECT number FROM unreduced_findings WHERE state = 'resolved'")
    } == {n for (n,) in store.rows("SELECT number FROM sightings")}
    found = {file for (file,) in store.rows("SELECT file FROM findings")}
    assert {f"findings/{path.name}" for path in (folder / "findings").glob("*.yaml")} == found
    assert {key for (key,) in store.rows("SELECT key FROM sightings")} == {
        key for (key,) in store.rows("SELECT key FROM findings")
    }
    for state, file in store.rows("SELECT state, file FROM unreduced_findings"):
        assert (folder / file).is_file(), (state, file)
    # At most the test in flight is lost: numbers have no gaps but at a shard's end.
    for (number,) in store.rows("SELECT number FROM shards WHERE state != 'running'"):
        numbers = [n for (n,) in store.rows("SELECT number FROM tests WHERE shard = ?", number)]
        assert sorted(numbers) == [
            32 * (number * TESTS_PER_FAMILY + n) for n in range(len(numbers))
        ]


# --- whole nightly runs ----------------------------------------------------------------


class Running:
    """A nightly run in a process of its own."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "litmusfuzz", "nightly", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.seen: set[psutil.Process] = set()

    def wait(self, until: Callable[[Store], Any]) -> Any:
        """Until the store says so; what it says."""
        end = time.monotonic() + 200
        while time.monotonic() < end:
            assert self.process.poll() is None, self.process.communicate()
            self.look()
            try:
                store = Store(self.folder, write=False)
            except StoreError:
                time.sleep(0.05)
                continue
            try:
                found = until(store)
            except sqlite3.OperationalError:
                found = None  # another process is creating it
            finally:
                store.close()
            if found:
                return found
            time.sleep(0.05)
        self.process.kill()
        raise AssertionError(self.process.communicate())

    def look(self) -> None:
        """Remember all processes that belong to it."""
        self.seen |= {psutil.Process(self.process.pid)}
        self.seen |= set(psutil.Process(self.process.pid).children(recursive=True))

    def end(self, sent: signal.Signals) -> tuple[int, str, str]:
        """Send that; no process is left when it has ended."""
        self.look()
        self.process.send_signal(sent)
        out, err = self.process.communicate(timeout=120)
        _, alive = psutil.wait_procs(self.seen, timeout=120)
        assert not alive
        return self.process.returncode, out, err


def busy(store: Store) -> int | None:
    """The last shard that has tested something and goes on."""
    query = "SELECT max(number) FROM shards WHERE state = 'running' AND graphs > 2"
    return store.rows(query)[0][0]


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory) -> Path:
    """A run ended by SIGTERM, resumed, robbed of a worker, killed, resumed, ended by Ctrl-C."""
    folder = tmp_path_factory.mktemp("runs") / "nightly"
    first = Running(
        folder,
        *("--executors", STALE, "--families", "dag", "--count", "64", "--seed", "7"),
        *("--time", "20m", "--shard-time", "10m", "--workers", "2", "--out", str(folder)),
    )
    first.wait(lambda store: busy(store) and store.rows("SELECT 1 FROM sightings"))
    code, out, err = first.end(signal.SIGTERM)
    assert code == 1
    assert "Traceback" not in err
    assert (folder / "summary.md").read_text() in out
    again = ("--resume", str(folder), "--workers", "2")
    second = Running(folder, *again)
    second.wait(busy)
    with Store(folder, write=False) as store:
        number = busy(store)
        ((victim,),) = store.rows("SELECT pid FROM shards WHERE number = ?", number)
    os.kill(victim, signal.SIGKILL)
    second.wait(lambda store: number not in store.running)
    second.wait(lambda store: (busy(store) or 0) > number)
    assert second.end(signal.SIGKILL)[0] == -signal.SIGKILL
    with Store(folder, write=False) as store:
        last = max(n for (n,) in store.rows("SELECT number FROM shards"))
    third = Running(folder, *again)
    third.wait(lambda store: (busy(store) or 0) > last)
    code, _, err = third.end(signal.SIGINT)
    assert code == 1
    assert "Traceback" not in err
    return folder


def test_no_finding_is_lost_or_doubled_and_no_process_left(interrupted: Path) -> None:
    with Store(interrupted, write=False) as store:
        check(store)
        assert not store.running
        states = {state for (state,) in store.rows("SELECT state FROM shards")}
        report = ReportBuilder(store, KnownFindings()).build()
    assert not list((interrupted / "shards").iterdir())
    assert "lost" in states
    assert report.interrupted
    assert not report.problem
    assert report.canary[0] == report.canary[1] > 0
    names = [path.name for path in (interrupted / "findings").glob("*.yaml")]
    assert sorted(names) == sorted(Path(each.file).name for each in report.findings)
    for name in names:
        assert name in (interrupted / "summary.md").read_text()


def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    """Both come while it is stopped, so that it has not ended when it sees the second."""
    folder = tmp_path / "nightly"
    running = Running(
        folder,
        *("--executors", STALE, "--families", "dag", "--count", "64", "--seed", "7"),
        *("--time", "20m", "--shard-time", "10m", "--workers", "1", "--out", str(folder)),
    )
    running.wait(busy)
    running.look()
    for sent in (signal.SIGSTOP, signal.SIGTERM, signal.SIGINT):
        running.process.send_signal(sent)
    code, _, err = running.end(signal.SIGCONT)
    assert code == 2
    assert "Traceback" not in err
    assert not (folder / "nightly.json").exists()
    with Store(folder, write=True) as store:  # no other process writes
        assert store.running  # test_no_finding_is_lost... resumes such a run


def test_its_tests_are_reproduced_byte_for_byte(interrupted: Path) -> None:
    arguments = ["reproduce", str(interrupted), "--tests", "64", "--workers", "3", "--json"]
    result = subprocess.run(
        [sys.executable, "-P", "-m", "litmusfuzz", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    with Store(interrupted, write=False) as store:
        tests = store.rows("SELECT count(*) FROM tests")[0][0]
    assert report == {"tests": min(64, tests), "equal": min(64, tests), "different": []}


def test_a_wrong_record_is_reported(interrupted: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(interrupted, tmp_path / "wrong")
    with Store(folder, write=True) as store:
        store.db.execute("UPDATE tests SET sha256 = 'x' WHERE line = (SELECT min(line) FROM tests)")
    result = subprocess.run(
        [sys.executable, "-P", "-m", "litmusfuzz", "reproduce", str(folder), "--tests", "100000"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 2
    assert "differs: dag " in result.stdout
