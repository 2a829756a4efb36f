"""Folders of campaigns that somebody has made to harm who opens or resumes them."""

from __future__ import annotations

import os
import shutil
import sqlite3
import struct
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from campaign.doubles import Spaced
from campaign.looped import tree_of_one_page
from campaign.shards import STARTED, begun
from helpers_events import PLAIN, added, executed, finding_text, shown, started
from helpers_events import STARTED as BEGUN
from msgspec import MsgspecError
from msgspec.structs import replace as with_changes

from litmusfuzz.fuzz.cli.campaigns import reopened
from litmusfuzz.fuzz.store.database import MAX_EVENT_BYTES, MAX_SHARD
from litmusfuzz.fuzz.store.folder import DATABASE, StoreError
from litmusfuzz.fuzz.store.history import read as read_report
from litmusfuzz.fuzz.store.shard_log import ShardLog, is_writing, kill_writer
from litmusfuzz.fuzz.store.store import Store
from litmusfuzz.reports.events import (
    Configured,
    Event,
    Generated,
    NotRun,
    ShardEnded,
    ShardPlanned,
    decode,
    encode,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Command

PLANNED = encode(ShardPlanned(at=BEGUN, configurations={})).decode()


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    """A folder that is none of a campaign's, with a file."""
    folder = tmp_path / "precious"
    folder.mkdir()
    (folder / "lock").write_text("kept")
    return folder


def intact(precious: Path) -> bool:
    """True if the folder has its file, as it was, and no other."""
    return {each.name: each.read_text() for each in precious.iterdir()} == {"lock": "kept"}


@pytest.mark.parametrize("shard", ["../../precious", b"../../precious", 1.5, -1, MAX_SHARD + 1])
@pytest.mark.parametrize("of_all", [False, True])
def test_a_shard_has_a_number(
    shard: object, *, of_all: bool, tmp_path: Path, precious: Path
) -> None:
    """Its folder is deleted when the shard has ended: a text would be a path."""
    begun(tmp_path / "c").close()
    with closing(sqlite3.connect(tmp_path / "c" / DATABASE)) as db, db:
        if of_all:
            db.execute("DELETE FROM events WHERE number > 1")
            db.execute("UPDATE events SET shard = 'aa'")
        db.execute("INSERT INTO events VALUES (99, ?, 0, ?)", (shard, PLANNED))
    with (
        pytest.raises(StoreError, match=r"event \d+: has shard "),
        Store(tmp_path / "c", write=True) as store,
    ):
        store.finish_shard(store.running[-1])
    assert intact(precious)


@pytest.mark.parametrize(("position", "data"), [("x", PLANNED), (1.5, PLANNED), (0, b"{}")])
def test_a_row_has_columns_of_their_types(position: object, data: object, tmp_path: Path) -> None:
    begun(tmp_path).close()
    with closing(sqlite3.connect(tmp_path / DATABASE)) as db, db:
        db.execute("INSERT INTO events VALUES (99, 7, ?, ?)", (position, data))
    for write in (False, True):
        with pytest.raises(StoreError, match="event 99: has shard 7, position "):
            Store(tmp_path, write=write)


@pytest.mark.parametrize("link", ["1", "1/lock", "1/events.jsonl", "1/stop"])
def test_links_among_the_shards_are_not_followed(link: str, tmp_path: Path, precious: Path) -> None:
    """The next shard would write into that folder, or empty that file."""
    begun(tmp_path / "c").close()
    path = tmp_path / "c" / "shards" / link
    path.parent.mkdir(parents=True)
    path.symlink_to(precious if link == "1" else precious / "lock")
    with pytest.raises(StoreError, match=f"shards/{link}: is a link"):
        Store(tmp_path / "c", write=True)
    assert intact(precious)


def test_a_reader_makes_no_files_beside_a_database_elsewhere(
    tmp_path: Path, precious: Path
) -> None:
    begun(tmp_path / "c").close()
    database = tmp_path / "c" / DATABASE
    theirs = database.replace(tmp_path / "theirs.sqlite")
    database.symlink_to(theirs)
    before = set(tmp_path.iterdir())
    with pytest.raises(StoreError, match=f"{DATABASE}: is a link"):
        Store(tmp_path / "c", write=False)
    assert set(tmp_path.iterdir()) == before
    assert intact(precious)


def test_a_lock_that_became_a_link_empties_nothing(tmp_path: Path, precious: Path) -> None:
    (tmp_path / "lock").symlink_to(precious / "lock")
    with pytest.raises(OSError, match="symbolic link"):
        ShardLog(tmp_path)
    with pytest.raises(OSError, match="symbolic link"):
        is_writing(tmp_path)
    assert intact(precious)


@pytest.mark.parametrize("link", [Path.symlink_to, Path.hardlink_to])
def test_who_holds_another_lock_is_not_killed(
    link: Callable[[Path, Path], None], tmp_path: Path
) -> None:
    code = "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.flock(f, 2); print(flush=True)"
    command = [sys.executable, "-S", "-c", f"{code}; input()", str(tmp_path / "theirs")]
    (tmp_path / "theirs").touch()
    link(tmp_path / "lock", tmp_path / "theirs")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert not kill_writer(tmp_path)
        process.communicate(b"\n")
    assert process.returncode == 0


def rollback_of(database: Path, named: Path) -> bytes:
    """A rollback journal of a database's first page that names another file at its end.

    References
    ----------
    https://www.sqlite.org/fileformat2.html (the rollback journal)
    """
    magic, sector = bytes.fromhex("d9d505f920a163d7"), 512
    page = database.read_bytes()[:4096]
    pages = database.stat().st_size // len(page)
    head = (magic + struct.pack(">5I", 1, 0, pages, sector, len(page))).ljust(sector, b"\0")
    check = sum(page[place] for place in range(len(page) - 200, 0, -200))
    name = str(named).encode()
    tail = struct.pack(">I", (1 << 30) // len(page) + 1) + name
    tail += struct.pack(">2I", len(name), sum(name)) + magic
    return head + struct.pack(">I", 1) + page + struct.pack(">I", check) + tail


def test_a_rollback_deletes_no_other_file(tmp_path: Path, precious: Path) -> None:
    """SQLite deletes the file that it names, once it has rolled the transaction back."""
    begun(tmp_path / "c").close()
    database = tmp_path / "c" / DATABASE
    rollback = database.with_name(f"{DATABASE}-journal")
    rollback.write_bytes(rollback_of(database, precious / "lock"))
    shutil.copytree(tmp_path / "c", tmp_path / "d")
    with pytest.raises(StoreError, match="-journal: is of a transaction over several databases"):
        Store(tmp_path / "c", write=True)
    assert intact(precious)
    # What the test is about: SQLite itself does it.
    with closing(sqlite3.connect(tmp_path / "d" / DATABASE)) as db:
        db.execute("SELECT * FROM events")
    assert not intact(precious)
    # A rollback journal of our own, of a process killed while it made the store, is rolled back.
    rollback.write_bytes(rollback.read_bytes()[: 512 + 4 + 4096 + 4])
    Store(tmp_path / "c", write=True).close()


def test_what_was_checked_is_what_continues(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    begun(tmp_path).close()
    reopened(str(tmp_path), STARTED).close()
    with pytest.raises(SystemExit):
        reopened(str(tmp_path), with_changes(STARTED, python="/evil"))
    assert "was replaced by another campaign just now" in capsys.readouterr().err


def test_a_process_of_ours_imports_nothing_from_the_working_directory(tmp_path: Path) -> None:
    """`multiprocessing` starts interpreters that would."""
    with Store(tmp_path / "c", write=True) as store:
        store.append(0, started(PLAIN))
        planned = ShardPlanned(at=BEGUN, configurations={"native": ("plain",)})
        made = Generated(
            at=BEGUN, index=1, family="dag", executor="native", ops={}, given=("native/plain",)
        )
        store.append(1, planned, made, executed(1, 1.0))
    for module in ("re", "random", "multiprocessing", "litmusfuzz"):
        (tmp_path / f"{module}.py").write_text(f"open('{module}-was-run', 'w').close()\n")
    command = [Path(sys.executable).with_name("litmusfuzz"), "reproduce", "c", "--workers", "1"]
    variables = {k: v for k, v in os.environ.items() if k != "PYTHONSAFEPATH"}
    done = subprocess.run(
        command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False
    )
    assert not list(tmp_path.glob("*-was-run")), done
    assert "1 of 1 tests are" in done.stdout or "0 of 1 tests are" in done.stdout, done


@pytest.mark.parametrize("name", [DATABASE, f"{DATABASE}-wal", "lock", "shards/1/lock"])
def test_a_file_that_has_another_name_is_not_written(
    name: str, tmp_path: Path, precious: Path
) -> None:
    begun(tmp_path / "c").close()
    path = tmp_path / "c" / name
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.hardlink_to(precious / "lock")
    with pytest.raises(StoreError, match=f"{name}: has another name as well"):
        Store(tmp_path / "c", write=True)
    assert intact(precious)


@pytest.mark.parametrize("part", ["", "-wal", "-shm", "-journal"])
def test_nobody_waits_at_a_pipe(part: str, tmp_path: Path) -> None:
    begun(tmp_path).close()
    path = tmp_path / f"{DATABASE}{part}"
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    for write in (False, True):
        with pytest.raises(StoreError, match=f"{DATABASE}{part}: is not a file"):
            Store(tmp_path, write=write)


def test_the_database_of_another_program_stays_as_it_is(tmp_path: Path) -> None:
    """The first attempt to use it would change its form."""
    path = tmp_path / DATABASE
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE letters (text)")
    before = path.read_bytes()
    with pytest.raises(StoreError, match="is version 0 of a store"):
        Store(tmp_path, write=True)
    assert path.read_bytes() == before


def test_a_campaign_begins_in_no_folder_with_shards(
    litmusfuzz_here: Command, tmp_path: Path
) -> None:
    """Those of a data set, for example: the logs of a campaign's own are deleted."""
    mine = tmp_path / "data/shards/1/events.jsonl"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    done = litmusfuzz_here("run", "--executors", "native", "--time", "1s", "--out", "data")
    assert done.returncode == 2
    assert "data/shards: holds files that are of no campaign" in done.stderr
    assert mine.read_text() == "mine"


def test_only_files_of_a_campaign_are_deleted(tmp_path: Path) -> None:
    kept = ["shards/1/notes", "shards/0001/stop", "shards/index", ".mine.tmp", ".stats.mine.tmp"]
    kept += ["findings/notes.md", "findings/.plan.txt.3.tmp", "unreduced/1.yaml.orig"]
    gone = ["shards/1/stop", "shards/2/events.jsonl", ".report.json.77.tmp"]
    gone += ["findings/1.py", "unreduced/.1.yaml.77.tmp"]
    with begun(tmp_path) as store:
        for name in (*kept, *gone):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).touch()
        store.finish_shard(1)
        store.remove_stale()
    assert [name for name in (*kept, *gone) if (tmp_path / name).exists()] == kept
    assert not (tmp_path / "shards/2").exists()


def test_a_line_without_end_takes_little_memory(tmp_path: Path) -> None:
    with begun(tmp_path) as store:
        log = tmp_path / "shards/1/events.jsonl"
        log.parent.mkdir(parents=True)
        with log.open("wb") as file:
            file.truncate(1 << 42)  # fills no disk
        with pytest.raises(StoreError, match=f"has a line of more than {MAX_EVENT_BYTES} bytes"):
            store.ingest(1)


def test_an_event_has_a_length(tmp_path: Path) -> None:
    begun(tmp_path).close()
    with closing(sqlite3.connect(tmp_path / DATABASE)) as db, db:
        long = "INSERT INTO events VALUES (9, 1, 9, CAST(zeroblob(?) AS TEXT))"
        db.execute(long, (MAX_EVENT_BYTES + 1,))
    with pytest.raises(StoreError, match="too big"):
        Store(tmp_path, write=False)


def test_no_event_is_read_twice(tmp_path: Path) -> None:
    """Three levels of pages would give each event a million times, and eight for ever."""
    begun(tmp_path).close()
    tree_of_one_page(tmp_path / DATABASE, 3, b"\x7f")
    with pytest.raises(StoreError, match="event 1: stands after event 2"):
        Store(tmp_path, write=False)


def test_the_tables_are_read_in_a_bounded_time(tmp_path: Path) -> None:
    """SQLite reads a hundred million rows, a minute, before it says that they have one name."""
    begun(tmp_path).close()
    tree_of_one_page(tmp_path / DATABASE, 4, b"\x7f", root=1)
    start = time.monotonic()
    with pytest.raises(StoreError, match=r"has more tables than events|malformed"):
        Store(tmp_path, write=False)
    assert time.monotonic() - start < 10  # milliseconds


def test_all_readers_see_the_same_events(tmp_path: Path) -> None:
    """None is hidden by its number, nor by another way to write the same JSON."""
    with begun(tmp_path) as store:
        store.append(1, ShardEnded(seconds=1.0))
        store.db.execute(
            "UPDATE events SET data = ' ' || data, number = 7 WHERE data LIKE '%ShardEnded%'"
        )
        assert len(list(store.events_of(ShardEnded))) == 1
        store.db.execute("UPDATE events SET number = -7 WHERE number = 7")
    with pytest.raises(StoreError, match="has events before the first"):
        Store(tmp_path, write=False)


LIBRARY = "engine=/theirs.so;threads=1"
SPACED = Configured(Spaced.name, "product", "executor", "executor", f"{Spaced.name}/executor")


def with_finding(index: int, executor: str, configuration: str) -> tuple[Event, ...]:
    """A finding whose file names another configuration than its event."""
    file = "findings/a.yaml"
    entry = finding_text("SB", executor, configuration, "dag", index, file)
    test = shown(index, 1.0)
    return test, added(test, "v3-0000000000000001", file, at=BEGUN + 2, entry=entry)


OUTSIDE: dict[str, tuple[Event, ...]] = {
    "library": (executed(1, 1.0, configuration=LIBRARY),),
    "Python": (executed(1, 1.0, configuration="engine=theirs:Engine;threads=1"),),
    "finding": with_finding(1, "native", LIBRARY),
    "executor": (executed(1, 1.0, executor="theirs", configuration="load=/theirs.so"),),
    "product": (executed(1, 1.0, executor=Spaced.name, configuration="load=/theirs.so"),),
}


@pytest.mark.usefixtures("doubles")
@pytest.mark.parametrize("what", OUTSIDE)
def test_events_name_only_code_that_the_settings_name(what: str, tmp_path: Path) -> None:
    """Whoever resumes a campaign trusts its settings, and the events name what runs."""
    planned = ShardPlanned(at=BEGUN, configurations={})
    with Store(tmp_path, write=True) as store:
        store.append(0, started(PLAIN, SPACED))
        with pytest.raises(StoreError, match=r"names (the |a )?.*theirs.*settings do not"):
            store.append(1, planned, *OUTSIDE[what])
        # What they do name runs, and so does what is generated.
        store.append(1, planned, executed(2, 1.0))
        name = "cache=large;threads=1"
        store.append(1, executed(3, 1.0, executor=Spaced.name, configuration=name))
    named = Configured("native", LIBRARY, "rfc", "rfc", "native/rfc")
    with Store(tmp_path / "named", write=True) as store:
        store.append(0, started(PLAIN, named))
        store.append(1, planned, executed(1, 1.0, configuration=LIBRARY))


def test_many_processes_are_asked_for_by_the_command(
    litmusfuzz_here: Command, tmp_path: Path
) -> None:
    with Store(tmp_path / "c", write=True) as store:
        store.append(0, with_changes(STARTED, workers=4096))
    done = litmusfuzz_here("nightly", "--resume", "c", "--time", "1s")
    assert done.returncode == 2
    assert "wants to start 4096 processes; if you want that, add --workers 4096" in done.stderr


def test_a_test_that_was_never_generated_is_not_run_again(
    litmusfuzz_here: Command, tmp_path: Path
) -> None:
    with Store(tmp_path / "c", write=True) as store:
        store.append(0, started(PLAIN, tests=1))
        planned = ShardPlanned(at=BEGUN, configurations={"native": ("plain",)})
        missed = NotRun(at=BEGUN + 5, index=5, executor="native", configuration="plain")
        store.append(1, planned, missed, ShardEnded(at=BEGUN + 9, seconds=1.0))
    done = litmusfuzz_here("run", "--resume", "c", "--tests", "1")
    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 3), done.stderr


def test_brackets_without_end_are_refused(tmp_path: Path) -> None:
    """Of an event, and of a report beside this one."""
    event = b'{"event": "Generated", "at": 1.0, "number": 1, "index": ' + b"[" * 100_000
    with pytest.raises(MsgspecError):
        decode(event)
    (tmp_path / "report.json").write_bytes(b'{"more": ' + b"[" * 100_000)
    with pytest.raises(MsgspecError):
        read_report(tmp_path / "report.json")
