"""The store: events appended or ingested, whatever is killed when."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from helpers import LITMUS

from litmusfuzz.fuzz.store.folder import DATABASE, StoreError, has_writer
from litmusfuzz.fuzz.store.shard_log import EVENTS, ShardLog
from litmusfuzz.fuzz.store.store import Store
from litmusfuzz.reports.events import (
    CampaignStarted,
    Configured,
    Event,
    Executed,
    FindingAdded,
    FindingKind,
    ScriptRun,
    SeenAgain,
    ShardEnded,
    ShardPlanned,
    ShardStarted,
    Unconfirmed,
    WorkerDied,
    encode,
)

if TYPE_CHECKING:
    from pathlib import Path

ENTRY = (LITMUS[0].parents[1] / "findings" / "scatter-beside-read.yaml").read_text()
WHERE: dict[str, Any] = {"executor": "native", "configuration": "plain"}
STARTED = CampaignStarted(
    at=1_800_000_000,
    command="litmusfuzz nightly",
    seed=1,
    asked_s=60.0,
    configurations=(Configured("native", "plain", "rfc", "rfc", "native/rfc"),),
)
PLANNED = ShardPlanned(at=1_800_000_001, configurations={"native": ("plain",)})


def executed(index: int, unreduced: str | None = None) -> Executed:
    return Executed(
        at=1_800_000_002 + index,
        index=index,
        family="dag",
        **WHERE,
        model="rfc",
        run_seed=7,
        count=64,
        sha256="5e",
        verdicts={"forbidden": 1, "allowed": 63} if unreduced else {"allowed": 64},
        unreduced=unreduced,
    )


def forbidden(index: int) -> Executed:
    return executed(index, f"unreduced/unreduced-1-{index}.yaml")


def finding(index: int, key: str = "v3-1", file: str = "findings/stale.yaml") -> FindingAdded:
    return FindingAdded(
        at=1_800_000_100,
        index=index,
        key=key,
        file=file,
        entry=ENTRY,
        **WHERE,
        executor_class="native/rfc",
        cause="stale read",
    )


def death(number: int) -> WorkerDied:
    file = f"crashed/crashed-1-{number}.yaml"
    return WorkerDied(
        at=1_800_000_110,
        kind=FindingKind.CRASHED,
        **WHERE,
        executor_class="native/rfc",
        message="signal 11",
        file=file,
        entry=f"text of {file}",
        ops=("assign",),
    )


def write_shard(folder: Path, number: int, *events: Event) -> Path:
    """A shard of the campaign in a folder writes its log, and the files that its events name."""
    with ShardLog(folder / "shards" / str(number)) as log:
        for event in events:
            write_file(folder, event)
        log.write(events)
    return log.folder


def write_file(folder: Path, event: Event) -> None:
    """The files that an event names."""
    file = getattr(event, "file", None) or getattr(event, "unreduced", None)
    if file:
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"text of {file}")
        if isinstance(event, ScriptRun):
            path.with_suffix(".py").write_text(f"script of {file}")


SHARD = (
    ShardStarted(at=1_800_000_001.5, host="here", pid=7, versions={"native": {}}),
    executed(32),
    forbidden(64),
    forbidden(96),
    finding(64),
    ScriptRun(at=1_800_000_105, key="v3-1", file="findings/stale.yaml", shows_it=True),
    Unconfirmed(at=1_800_000_106, index=96, **WHERE, file="unconfirmed/unconfirmed-1-96.yaml"),
    death(1),
    executed(128),
    ShardEnded(at=1_800_000_120, seconds=118.0),
)


def begun(folder: Path, shards: int = 1) -> Store:
    """A store in which shards are planned."""
    store = Store(folder, write=True)
    if store.started is None:
        store.append(0, STARTED)
        for number in range(1, shards + 1):
            store.append(number, PLANNED)
    return store


def everything(folder: Path) -> list[tuple[Any, ...]]:
    with Store(folder, write=False) as store:
        return store.db.rows("SELECT * FROM events ORDER BY number")


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.parent != folder
    }


def test_a_shard_log_is_ingested_once_whatever_is_killed_when(tmp_path: Path) -> None:
    """In one go, or cut at any byte with the writer killed after each part: the same."""
    with begun(tmp_path / "whole") as store:
        data = (write_shard(store.folder, 1, *SHARD) / EVENTS).read_bytes()
        written = files(store.folder)
        store.finish_shard(1)
        assert [event for _, event in store.events()] == [STARTED, PLANNED, *SHARD]
    cut = tmp_path / "cut"
    with begun(cut) as store:
        log = write_shard(cut, 1, *SHARD)
    for size in range(0, len(data), 97):
        # A line that is none: its transaction is undone.
        for wrong in (b"{}\n", b'{"event":"Unconfirmed","index":1}\n'):
            end = data.rfind(b"\n", 0, size) + 1
            (log / EVENTS).write_bytes(data[:end] + wrong)
            with Store(cut, write=True) as store, pytest.raises(StoreError, match="same Litmus"):
                store.ingest(1)
        (log / EVENTS).write_bytes(data[:size])
        with Store(cut, write=True) as store:
            store.ingest(1)
            assert not store.ingest(1)
    (log / EVENTS).write_bytes(data)
    with Store(cut, write=True) as store:
        store.finish_shard(1)
        store.finish_shard(1)
        assert not store.running
    assert everything(cut) == everything(tmp_path / "whole")
    logs = {name for name in written if name.startswith("shards/")}
    assert files(cut) == files(tmp_path / "whole")
    assert files(cut) == {name: text for name, text in written.items() if name not in logs}
    assert not list((cut / "shards").iterdir())


def test_appended_and_ingested_events_are_the_same(tmp_path: Path) -> None:
    with begun(tmp_path / "ingested") as store:
        write_shard(store.folder, 1, *SHARD)
        store.finish_shard(1)
        ingested = list(store.events())
    with begun(tmp_path / "appended") as store:
        for event in SHARD:
            write_file(store.folder, event)
            store.append(1, event)
        store.finish_shard(1)
        assert list(store.events()) == ingested
    assert files(tmp_path / "appended") == files(tmp_path / "ingested") != {}


def test_a_shard_that_logged_no_end_is_lost_and_took_until_its_last_event(tmp_path: Path) -> None:
    with begun(tmp_path) as store:
        write_shard(tmp_path, 1, *SHARD[:-1])
        store.finish_shard(1)
        *_, (shard, last) = store.events()
    assert shard == 1
    assert isinstance(last, ShardEnded)
    assert (last.lost, last.seconds) == (True, 128.5)


def test_of_two_shards_that_find_the_same_the_report_shows_the_first(tmp_path: Path) -> None:
    """Both files and scripts stay."""
    other = "findings/stale-shard2.yaml"
    script = ScriptRun(key="v3-1", file=other, shows_it=False)
    second = (forbidden(640), finding(640, file=other), script)
    with begun(tmp_path, shards=2) as store:
        write_shard(tmp_path, 1, *SHARD[:6])
        store.ingest(1)
        write_shard(tmp_path, 2, *second)
        store.finish_shard(2)
        added = list(store.events_of(FindingAdded))
        (reported,) = store.fold.report(".").findings
        scripts = list(store.events_of(ScriptRun))
    assert added == [(1, SHARD[4]), (2, second[1])]
    assert scripts == [(1, SHARD[5]), (2, script)]
    assert (reported.file, reported.count) == ("findings/stale.yaml", 2)
    assert (reported.script, reported.script_shows_it) == ("findings/stale.py", True)
    assert [path.name for path in sorted((tmp_path / "findings").iterdir())] == [
        "stale-shard2.py",
        "stale-shard2.yaml",
        "stale.py",
        "stale.yaml",
    ]


def test_what_killed_processes_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    """Opening the store, ingesting, and finishing a shard remove no file; `remove_stale` does."""
    orphans = (
        forbidden(2048).unreduced,
        "findings/orphan.yaml",
        "findings/orphan.py",
        "unconfirmed/orphan.yaml",
        "crashed/orphan.yaml",
        "timed-out/.orphan.yaml.77.tmp",
    )
    with begun(tmp_path, shards=2) as store:
        write_shard(tmp_path, 1, *SHARD)
        for each in orphans:
            assert each
            (tmp_path / each).parent.mkdir(exist_ok=True)
            (tmp_path / each).write_text("orphan")
        (tmp_path / "findings" / "kept").mkdir()
        (tmp_path / "report.json").write_text("{}")
        before = set(files(tmp_path))
        store.ingest(1)
        assert set(files(tmp_path)) == before > set(orphans)
        store.finish_shard(1)
        write_shard(tmp_path, 2, *SHARD[:3])
    before = {name for name in before if not name.startswith("shards/")}
    with Store(tmp_path, write=True) as store:
        assert set(files(tmp_path)) > before
        events = list(store.events())
        # All files are younger than the shards; one that is older is somebody's own.
        old = orphans[1]
        os.utime(tmp_path / old, (PLANNED.at - 1, PLANNED.at - 1))
        for orphan in (*orphans[:1], *orphans[2:]):
            os.utime(tmp_path / orphan, (PLANNED.at, PLANNED.at))
        assert store.unfinished_since == PLANNED.at
        store.remove_stale(store.unfinished_since)
        assert set(files(tmp_path)) == {old, *before} - {*orphans[:1], *orphans[2:]}
        store.remove_stale()
        assert set(files(tmp_path)) == before - set(orphans)
        assert not list((tmp_path / "shards").iterdir())
        assert list(store.events()) == events
        store.remove_stale()
        assert set(files(tmp_path)) == before - set(orphans)
    assert (tmp_path / "report.json").exists()
    assert (tmp_path / "findings" / "kept").is_dir()


def test_a_file_that_is_older_than_the_killed_processes_stays_wherever_it_is(
    tmp_path: Path,
) -> None:
    """Except reports written in part: a killed process leaves them when no shard runs, too."""
    with begun(tmp_path, shards=1) as store:
        store.finish_shard(1)
        older = (".mine.yaml.77.tmp", ".mine.py.77.tmp", ".report.json.77.tmp")
        for name in older:
            (tmp_path / name).touch()
            os.utime(tmp_path / name, (999, 999))
        (tmp_path / ".theirs.yaml.77.tmp").touch()
        store.remove_stale(since=1000)
        assert {path.name for path in tmp_path.glob(".*")} == {*older[:2]}
        store.remove_stale()
        assert not list(tmp_path.glob(".*"))


def test_files_of_another_machine_lie_where_its_events_name_them(tmp_path: Path) -> None:
    with begun(tmp_path / "there") as store:
        log = write_shard(store.folder, 1, *SHARD)
        there = {name: data.decode() for name, data in files(store.folder).items()}
    sent = {name: text for name, text in there.items() if not name.startswith("shards/")}
    with begun(tmp_path / "here") as store:
        store.add_files(1, {EVENTS: (log / EVENTS).read_text(), **sent})
        assert store.running == [1]  # nothing is ingested yet
        store.finish_shard(1)
        assert [event for _, event in store.events()] == [STARTED, PLANNED, *SHARD]
        store.remove_stale()  # each is named
    assert {name: data.decode() for name, data in files(tmp_path / "here").items()} == sent


def test_a_reader_sees_what_the_writer_appends(tmp_path: Path) -> None:
    with begun(tmp_path) as writer, Store(tmp_path, write=False) as reader:
        assert reader.running == [1]
        writer.append(1, ShardEnded(seconds=1.0))
        assert reader.running == writer.running == []
        assert list(reader.events()) == list(writer.events())


def test_what_another_process_has_stored_comes_before_what_is_appended(tmp_path: Path) -> None:
    """None should, as the folder is locked; but a lock may not hold between two machines."""
    with begun(tmp_path) as store, closing(sqlite3.connect(tmp_path / DATABASE)) as other:
        store.append(1, executed(5))
        ((number, place),) = store.db.rows("SELECT max(number), max(position) FROM events")
        row = number + 1, 1, place + 1, encode(executed(6)).decode()
        other.execute("INSERT INTO events VALUES (?, ?, ?, ?)", row)
        other.commit()
        store.append(1, executed(7), executed(8))
        assert [event for _, event in store.events()][2:] == list(map(executed, (5, 6, 7, 8)))
        assert store.fold.report("").verdicts == {"allowed": 4 * 64}
        assert store.db.rows("SELECT max(number), max(position) FROM events") == [
            (number + 3, place + 3)
        ]


@pytest.mark.parametrize(
    "line",
    [
        b'{"event":"ShardStarted","at":1.0,"version":2,"host":"h","pid":1,"versions":{}}\n',
        b'{"event":"ShardStarted","at":1.0,"version":2,"host":"h"}\n',
        b'{"event":"Renamed","at":1.0}\n',
    ],
)
def test_the_log_of_another_version_is_refused(tmp_path: Path, line: bytes) -> None:
    with begun(tmp_path) as store:
        folder = write_shard(tmp_path, 1)
        (folder / EVENTS).write_bytes(line)
        with pytest.raises(StoreError, match="install the same LitmusFuzz on all machines"):
            store.ingest(1)


def test_an_event_that_cannot_follow_is_not_stored(tmp_path: Path) -> None:
    """Nor are those that came with it; the store stays as it was, and can be read."""
    events = executed(5), SeenAgain(at=1_800_000_009, **WHERE, index=6, key="v3-0")
    with Store(tmp_path / "n", write=True) as store:
        store.append(0, STARTED)
        store.append(1, PLANNED)
        log = store.log_folder(1)
        log.mkdir(parents=True)
        (log / EVENTS).write_bytes(b"".join(encode(each) + b"\n" for each in events))
        for refused in (lambda: store.ingest(1), lambda: store.append(1, *events)):
            with pytest.raises(StoreError, match="event 4: SeenAgain contradicts"):
                refused()
            assert not store.fold.report("").verdicts
        store.append(1, executed(5))
        assert store.fold.report("").verdicts == {"allowed": 64}
        assert store.running == [1]
    with Store(tmp_path / "n", write=False) as store:
        assert [event for _, event in store.events()][2:] == [executed(5)]


def test_a_store_has_one_writer_and_one_version(tmp_path: Path) -> None:
    folder = tmp_path / "n"
    with begun(folder) as store:
        assert has_writer(folder)
        with pytest.raises(StoreError, match="another process writes this campaign"):
            Store(folder, write=True)
        store.db.execute("PRAGMA user_version = 99")
    assert not has_writer(folder)
    for write in (False, True):
        with pytest.raises(StoreError, match="is version 99 of a store, this program reads"):
            Store(folder, write=write)
    assert not has_writer(folder)
    with pytest.raises(StoreError, match="is no folder of a campaign"):
        Store(tmp_path / "nothing", write=False)
    assert not (tmp_path / "nothing").exists()


@pytest.mark.parametrize("name", ["nightly.sqlite", "record-7.json"])
def test_the_folder_of_an_old_version_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    for write in (False, True):
        with pytest.raises(StoreError, match=f"has {name}: is version 2 of a campaign, this"):
            Store(tmp_path, write=write)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_damaged_store_is_reported_in_one_line(tmp_path: Path) -> None:
    with begun(tmp_path / "event") as store:
        store.db.execute("UPDATE events SET data = '{}' WHERE number = 2")
    with pytest.raises(StoreError, match=f"event/{DATABASE}: event 2: "):
        Store(tmp_path / "event", write=False)
    (tmp_path / "file").mkdir()
    (tmp_path / "file" / DATABASE).write_bytes(b"no database" * 1000)
    with pytest.raises(StoreError, match="is not a database") as raised:
        Store(tmp_path / "file", write=False)
    assert "\n" not in str(raised.value)


def test_the_folder_stays_within_its_size(tmp_path: Path) -> None:
    """Tests that nothing waits for go, the oldest first; findings and events stay."""
    with begun(tmp_path) as store:
        write_shard(tmp_path, 1, *SHARD)
        store.finish_shard(1)
        before = files(tmp_path)
        size = store.disk_bytes()
        assert store.shrink(size, ()) == size
        assert files(tmp_path) == before
        kept = "unreduced/unreduced-1-64.yaml"
        assert store.shrink(1, {kept}) == store.disk_bytes() > 1
        assert len(list(store.events())) == 2 + len(SHARD)
    assert set(files(tmp_path)) == {kept, "findings/stale.yaml", "findings/stale.py"}


def test_events_are_read_by_their_type(tmp_path: Path) -> None:
    with begun(tmp_path) as store:
        write_shard(tmp_path, 1, *SHARD)
        store.finish_shard(1)
        everything = list(store.events())
        for kind in {type(event) for _, event in everything}:
            expected = [(shard, event) for shard, event in everything if type(event) is kind]
            assert list(store.events_of(kind)) == expected
        assert store.started == STARTED
        assert store.next_shard == 2


def test_what_a_signal_asks_for_finds_the_store_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A handler runs between any two instructions, also while an event is being folded."""
    graphs: list[int] = []
    with Store(tmp_path, write=True) as store:
        store.append(0, STARTED)
        store.append(1, PLANNED)
        add = store.db.add

        def interrupted(shard: int, position: int, event: Event) -> int:
            store.when_whole(lambda: graphs.append(store.fold.report(".").graphs))
            return add(shard, position, event)

        monkeypatch.setattr(store.db, "add", interrupted)
        store.append(1, executed(1), executed(2))
        assert graphs == [2]
        store.when_whole(lambda: graphs.append(0))
        assert graphs == [2, 0]
