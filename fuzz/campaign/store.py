"""The store of a campaign: a SQLite database of its events, with one writer, and files.

A process that runs a shard itself appends its events; the coordinator of many shard processes
ingests their shard logs as these grow. The files that events name are written by the shard, into
the campaign's folder, under names that no other shard uses, before the event.

Notes
-----
Nothing is lost or doubled by ``kill -9``, of whichever process at whatever moment: what a process
has written to a file or committed is the kernel's. The events of one ingestion, and with them the
position up to which the log was read, are one transaction: an event's position is the offset of
its line's end, so that a log is read on from the highest position of its shard.

A power failure may take what the kernel had not written yet: the events of the last moments, never
one from the middle (SQLite's write-ahead log keeps the order), so that the store is as it was a
little earlier. Events are not synchronized one by one, which would cost a test some milliseconds.
But a shard log is deleted only after its events are on the disk (`Store.finish_shard`): until then
the log ingests again what the store has forgotten.
"""

from __future__ import annotations

import fcntl
import math
import os
import shutil
import sqlite3
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import IO, TYPE_CHECKING, Any, Final, Self, TypeVar, cast

import msgspec

from litmusfuzz.fuzz.campaign.shard_log import EVENTS
from litmusfuzz.reports import events
from litmusfuzz.reports.events import (
    CampaignStarted,
    Event,
    ScriptRun,
    ShardEnded,
    ShardPlanned,
)
from litmusfuzz.reports.fold import Fold

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from litmusfuzz.reports.events import AnyEvent

DATABASE: Final = "campaign.sqlite"
VERSION: Final = events.VERSION
MAX_INGEST_BYTES: Final = 1 << 22
"""Bytes of one shard log that are ingested at once."""
_SCHEMA: Final = """
CREATE TABLE events (
  number INTEGER PRIMARY KEY, shard INTEGER NOT NULL, position INTEGER NOT NULL,
  data TEXT NOT NULL, UNIQUE (shard, position))
"""
_DELETABLE: Final = ("unreduced", "unconfirmed", "crashed", "timed-out")
"""Folders of files that the campaign's seed, or its findings, can replace."""

E = TypeVar("E", bound=Event)


class StoreError(ValueError):
    """A folder without campaign, of another version, damaged, or in use; one line."""


class Store:
    """The store in a folder.

    Parameters
    ----------
    folder : Path
    write : bool
        True for the process that runs the campaign, of which there is one: it creates what is
        missing.

    Raises
    ------
    StoreError
    """

    def __init__(self, folder: Path, *, write: bool) -> None:
        self.folder = folder
        self.path = folder / DATABASE
        self._lock: IO[bytes] | None = None
        _refuse_old(folder)
        if not write and not self.path.is_file():
            raise StoreError(f"{folder}: is no folder of a campaign: has no {DATABASE}")
        if write:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = (folder / "lock").open("wb")
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self._lock.close()
                raise StoreError(f"{folder}: another process writes this campaign") from None
        self._fold = Fold()
        self._folded = 0
        """Number of the last event that is folded."""
        self._running: dict[int, float] = {}
        """When each shard started that has not ended."""
        mode = "rwc" if write else "ro"
        uri = f"{self.path.resolve().as_uri()}?mode={mode}"
        try:
            self.db = sqlite3.connect(uri, uri=True, isolation_level=None)
            try:
                self._open(write=write)
            except BaseException:
                self.db.close()
                raise
        except sqlite3.Error as error:
            self._release()
            raise StoreError(f"{self.path}: {error}") from None
        except BaseException:
            self._release()
            raise

    def _open(self, *, write: bool) -> None:
        """Create the table if there is none, check the version, and fold what is there."""
        if write:
            self.db.execute("PRAGMA journal_mode = WAL")
            self.db.execute("PRAGMA synchronous = NORMAL")  # see the notes above
            if not self._version() and not self.rows("SELECT 1 FROM sqlite_master"):
                with self._transaction():
                    self.db.execute(_SCHEMA)
                    self.db.execute(f"PRAGMA user_version = {VERSION}")
        if (version := self._version()) != VERSION:
            raise StoreError(
                f"{self.path}: is version {version} of a store, this program reads version"
                f" {VERSION}: begin a campaign in another folder"
            )
        self._catch_up()

    def _version(self) -> int:
        return int(self.rows("PRAGMA user_version")[0][0])

    def close(self) -> None:
        """Close the database and release the lock."""
        self.db.close()
        self._release()

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Commit all of the block, or nothing if it raises."""
        self.db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.db.execute("COMMIT")
        except BaseException:
            if self.db.in_transaction:  # a full disk may have ended it
                self.db.execute("ROLLBACK")
            raise

    # --- reading -----------------------------------------------------------------------

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        return self.db.execute(query, values).fetchall()

    def events(self) -> Iterator[tuple[int, Event]]:
        """All events in the order in which they were stored, each with its shard's number."""
        for number, shard, data in self.db.execute(
            "SELECT number, shard, data FROM events ORDER BY number"
        ):
            yield shard, self._decoded(number, data)

    def events_of(self, kind: type[E]) -> Iterator[tuple[int, E]]:
        """All events of one type."""
        query = "SELECT number, shard, data FROM events WHERE data GLOB ? ORDER BY number"
        for number, shard, data in self.db.execute(query, (f'{{"event":"{kind.__name__}"[,}}]*',)):
            event = self._decoded(number, data)
            assert isinstance(event, kind)
            yield shard, event

    @property
    def started(self) -> CampaignStarted | None:
        """The settings; None if no campaign has started."""
        return next((event for _, event in self.events_of(CampaignStarted)), None)

    @property
    def fold(self) -> Fold:
        """The fold of all events."""
        self._catch_up()
        return self._fold

    def _decoded(self, number: int, data: str) -> Event:
        try:
            return events.decode(data)
        except msgspec.MsgspecError as error:
            raise StoreError(f"{self.path}: event {number}: {error}") from None

    def _catch_up(self) -> None:
        """Fold the events that another process has stored since."""
        for number, shard, data in self.db.execute(
            "SELECT number, shard, data FROM events WHERE number > ? ORDER BY number",
            (self._folded,),
        ):
            event = self._decoded(number, data)
            try:
                self._apply(number, shard, event)
            except (LookupError, ValueError, TypeError, ArithmeticError) as error:
                raise StoreError(
                    f"{self.path}: event {number}: {type(event).__name__} contradicts the events"
                    f" before it, or itself: {error!r}"
                ) from error

    def _apply(self, number: int, shard: int, event: Event) -> None:
        """Fold a stored event."""
        self._fold.apply(shard, cast("AnyEvent", event))
        self._folded = number
        if isinstance(event, ShardPlanned):
            self._running[shard] = event.at
        elif isinstance(event, ShardEnded):
            self._running.pop(shard, None)

    # --- writing -----------------------------------------------------------------------

    def append(self, shard: int, *added: Event) -> None:
        """Store events of a shard, or of the campaign (0).

        Raises
        ------
        OSError, sqlite3.Error
            A full disk, for example; nothing is stored then.
        """
        self._store(shard, enumerate(added, 1 + self._last_position(shard)))

    def ingest(self, number: int) -> bool:
        """Store the next events of a shard log; False if there are none.

        Raises
        ------
        StoreError
            If it was written by another version.
        """
        position = max(0, self._last_position(number))
        try:
            with (self.log_folder(number) / EVENTS).open("rb") as file:
                file.seek(position)
                data = file.read(MAX_INGEST_BYTES)
                while b"\n" not in data and (more := file.read(MAX_INGEST_BYTES)):
                    data += more
        except FileNotFoundError:
            return False
        placed = []
        for line in data[: data.rfind(b"\n") + 1].splitlines(keepends=True):
            position += len(line)
            placed.append((position, self._logged(number, line)))
        return self._store(number, placed)

    def _logged(self, number: int, line: bytes) -> Event:
        """An event of a shard log."""
        try:
            event = events.decode(line)
        except msgspec.MsgspecError as error:
            problem = str(error)
        else:
            version = getattr(event, "version", VERSION)
            if version == VERSION:
                return event
            problem = f"is version {version} of a shard log, this program reads version {VERSION}"
        raise StoreError(
            f"{self.log_folder(number)}: {problem}: install the same LitmusFuzz on all machines"
        )

    def _last_position(self, shard: int) -> int:
        """Highest position of a shard; -1 if it has no events."""
        return int(
            self.db.execute(
                "SELECT coalesce(max(position), -1) FROM events WHERE shard = ?", (shard,)
            ).fetchone()[0]
        )

    def _store(self, shard: int, placed: Iterable[tuple[int, Event]]) -> bool:
        """Store events, each with its position; False if there are none."""
        stored = []
        with self._transaction():
            for position, event in placed:
                row = self.db.execute(
                    "INSERT INTO events (shard, position, data) VALUES (?, ?, ?)",
                    (shard, position, events.encode(event).decode()),
                )
                assert row.lastrowid is not None
                stored.append((row.lastrowid, event))
        for number, event in stored:
            self._apply(number, shard, event)
        return bool(stored)

    # --- shards ------------------------------------------------------------------------

    def log_folder(self, number: int) -> Path:
        """Folder of a shard's log."""
        return self.folder / "shards" / str(number)

    @property
    def next_shard(self) -> int:
        """Number of the next shard, from 1 on."""
        last = self.db.execute("SELECT coalesce(max(shard), 0) FROM events").fetchone()[0]
        return 1 + int(last)

    @property
    def running(self) -> list[int]:
        """Shards that have started and of which no end is stored."""
        self._catch_up()
        return list(self._running)

    def finish_shard(self, number: int) -> None:
        """Ingest the rest of a shard whose process has ended, and remove its log.

        A shard that has logged no end is lost; its duration is that of its last event.
        """
        while self.ingest(number):
            pass
        if number in self.running:
            query = "SELECT number, data FROM events WHERE shard = ? ORDER BY position DESC LIMIT 1"
            last = self._decoded(*self.db.execute(query, (number,)).fetchone())
            seconds = round(max(0.0, last.at - self._running[number]), 3)
            self.append(number, ShardEnded(seconds=seconds, lost=True))
        folder = self.log_folder(number)
        if folder.is_dir():
            os.sync()  # the events are on the disk before their log is deleted
            shutil.rmtree(folder, ignore_errors=True)

    @property
    def unfinished_since(self) -> float:
        """When the first of the running shards started; infinity if none is running."""
        self._catch_up()
        return min(self._running.values(), default=math.inf)

    def remove_stale(self, since: float = 0.0) -> None:
        """Remove what killed processes have left: logs of shards, and files that no event names.

        Parameters
        ----------
        since : float
            When the first of the killed processes started. Older files that no event names are
            somebody's own, and stay.
        """
        for folder in (self.folder / "shards").glob("*"):
            shutil.rmtree(folder, ignore_errors=True)
        named = {file for _, event in self.events() for file in _files_of(event)}
        for name in ("findings", *_DELETABLE):
            for path in (self.folder / name).glob("*"):
                is_unnamed = path.is_file() and f"{name}/{path.name}" not in named
                if is_unnamed and path.stat().st_mtime >= since:
                    path.unlink()
        for path in self.folder.glob(".*.tmp"):
            path.unlink()

    def add_files(self, number: int, files: Mapping[str, str]) -> None:
        """Add the files of a shard from another machine; the events last, as on that machine."""
        for name in sorted(files, key=lambda name: name == EVENTS):
            path = (self.log_folder(number) if name == EVENTS else self.folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(files[name], encoding="utf-8")

    # --- disk --------------------------------------------------------------------------

    def disk_bytes(self) -> int:
        """Size of the folder on disk."""
        total = 0
        for root, _, files in os.walk(self.folder):
            for name in files:
                try:
                    total += os.lstat(os.path.join(root, name)).st_blocks * 512
                except FileNotFoundError:
                    continue
        return total

    def shrink(self, most: int, kept: Collection[str]) -> int:
        """Delete files that can be replaced until the folder is small enough; return its size.

        Deletes unreduced and unconfirmed tests, and tests of worker deaths, oldest first, except
        those in `kept`. Findings and events stay.
        """
        size = self.disk_bytes()
        if size <= most:
            return size
        files = [path for folder in _DELETABLE for path in (self.folder / folder).glob("*.yaml")]
        for path in sorted(files, key=lambda path: path.stat().st_mtime):
            if f"{path.parent.name}/{path.name}" not in kept:
                size -= path.stat().st_blocks * 512
                path.unlink()
            if size <= 0.9 * most:
                break
        return size


def _files_of(event: Event) -> Iterator[str]:
    """The files that an event names."""
    file: str = getattr(event, "file", None) or getattr(event, "unreduced", None) or ""
    if file:
        yield file
    if isinstance(event, ScriptRun):
        yield str(PurePath(file).with_suffix(".py"))


def _refuse_old(folder: Path) -> None:
    """Raise if an earlier version of LitmusFuzz has left its campaign in the folder."""
    old = [*folder.glob("nightly.sqlite"), *folder.glob("record-*.json")]
    if old and not (folder / DATABASE).exists():
        raise StoreError(
            f"{folder}: has {old[0].name}: is version 2 of a campaign, this program reads version"
            f" {VERSION}: begin a campaign in another folder"
        )


def has_writer(folder: Path) -> bool:
    """True if a process on this machine, or one that shares its locks, writes the campaign."""
    try:
        with (folder / "lock").open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
