"""Folders of campaigns that somebody has made to harm who opens or resumes them."""

from __future__ import annotations

import os
import shutil
import sqlite3
import struct
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from campaign.shards import STARTED, begun
from helpers_events import PLAIN, executed, started
from helpers_events import STARTED as BEGUN
from msgspec.structs import replace as with_changes

from litmusfuzz.fuzz.campaign.shard_log import ShardLog, is_writing, kill_writer
from litmusfuzz.fuzz.campaign.store import DATABASE, MAX_SHARD, Store, StoreError
from litmusfuzz.fuzz.cli.campaigns import reopened
from litmusfuzz.reports.events import Generated, ShardPlanned, encode

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


def test_who_holds_another_lock_is_not_killed(tmp_path: Path) -> None:
    code = "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.flock(f, 2); print(flush=True)"
    command = [sys.executable, "-S", "-c", f"{code}; input()", str(tmp_path / "theirs")]
    (tmp_path / "lock").symlink_to(tmp_path / "theirs")
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
