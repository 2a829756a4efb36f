"""The SQLite database of a campaign's events, which may be a stranger's: all of it is checked."""

from __future__ import annotations

import sqlite3
from contextlib import closing, contextmanager
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

from litmusfuzz.fuzz.store.folder import StoreError, is_campaign_file
from litmusfuzz.reports import events
from litmusfuzz.reports.events import VERSION, CrashReduced, Event, ScriptRun, WorkerDied

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAX_SHARD: Final = 1 << 32
"""Highest number of a shard."""
MAX_EVENT_BYTES: Final = 32 << 20
"""Length of an event, at most: twice a worker's longest reply."""
_SCHEMA: Final = """
CREATE TABLE events (
  number INTEGER PRIMARY KEY, shard INTEGER NOT NULL, position INTEGER NOT NULL,
  data TEXT NOT NULL, UNIQUE (shard, position))
"""
_SCHEMA_STEPS: Final = 100_000
"""Instructions of SQLite's machine in which the schema is read, at most; ours takes a hundred."""


class EventDatabase:
    """The database in a file.

    Parameters
    ----------
    path : Path
    write : bool
        True if events may be added; a file that is missing is made.

    Raises
    ------
    StoreError, sqlite3.Error
    """

    def __init__(self, path: Path, *, write: bool) -> None:
        self.path = path
        uri = f"{path.resolve().as_uri()}?mode={'rwc' if write else 'ro'}"
        self._connection = sqlite3.connect(uri, uri=True, isolation_level=None)
        try:
            self._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_EVENT_BYTES)
            self._open(write=write)
        except BaseException:
            self.close()
            raise

    def _open(self, *, write: bool) -> None:
        """Create the table if there is none, and check what is there."""
        is_new = not self._schema() and not self._version()
        if write and is_new:
            with self.transaction():
                self.execute(_SCHEMA)
                self.execute(f"PRAGMA user_version = {VERSION}")
        if (version := self._version()) != VERSION:
            raise StoreError(
                f"{self.path}: is version {version} of a store, this program reads version"
                f" {VERSION}: begin a campaign in another folder"
            )
        # A view or a trigger of somebody's making would run when the events are read or added.
        if any(sql.split() != _SCHEMA.split() for sql in self._schema()):
            raise StoreError(f"{self.path}: has another table than events")
        if self.rows("SELECT 1 FROM events WHERE number < 1 LIMIT 1"):
            raise StoreError(f"{self.path}: has events before the first")
        if write:  # not before: the database of another program stays as it is
            self.execute("PRAGMA journal_mode = WAL")
            self.execute("PRAGMA synchronous = NORMAL")  # see the notes above

    def _schema(self) -> list[str]:
        """Statements that have made what is in the database.

        They are few, but the pages of a small file can name each other so that reading them never
        ends.
        """
        self._connection.set_progress_handler(lambda: 1, _SCHEMA_STEPS)
        try:
            return [sql for (sql,) in self.rows("SELECT sql FROM sqlite_master") if sql is not None]
        except sqlite3.OperationalError as error:
            if str(error) != "interrupted":
                raise
            raise StoreError(f"{self.path}: has more tables than events") from None
        finally:
            self._connection.set_progress_handler(None, 0)

    def _version(self) -> int:
        return int(self.rows("PRAGMA user_version")[0][0])

    def close(self) -> None:
        """Close it."""
        self._connection.close()

    def copy_to(self, path: Path) -> None:
        """Write it into another file."""
        with closing(sqlite3.connect(path)) as copy:
            self._connection.backup(copy)

    def execute(self, query: str, values: tuple[object, ...] = ()) -> sqlite3.Cursor:
        """Execute a query."""
        return self._connection.execute(query, values)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        return self.execute(query).fetchall()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit all of the block, or nothing if it raises."""
        self.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:  # a full disk may have ended it
                self.execute("ROLLBACK")
            raise

    def add(self, shard: int, position: int, event: Event) -> int:
        """Add an event, within a transaction; its number."""
        row = self.execute(
            "INSERT INTO events (shard, position, data) VALUES (?, ?, ?)",
            (shard, position, events.encode(event).decode()),
        )
        assert row.lastrowid is not None
        return row.lastrowid

    def events(self, after: int = 0) -> Iterator[tuple[int, int, int, Event]]:
        """The events after that number, in their order: number, shard, position and event.

        No row comes twice, whatever the pages of the database name: those of a small file can name
        each other so that a query of its rows never ends.
        """
        query = "SELECT number, shard, position, data FROM events WHERE number > ? ORDER BY number"
        for number, shard, position, data in self.execute(query, (after,)):
            if number <= after:
                raise StoreError(f"{self.path}: event {number}: stands after event {after}")
            after = number
            yield number, shard, position, self._decoded(number, shard, position, data)

    def _decoded(self, number: int, shard: object, position: object, data: object) -> Event:
        """The event of a row, whose columns SQLite lets hold values of any type.

        The number of a shard is also the name of its folder, which is deleted when the shard ends.
        """
        numbers = isinstance(shard, int) and 0 <= shard <= MAX_SHARD and isinstance(position, int)
        if not (numbers and isinstance(data, str)):
            columns = f"shard {shard!r:.80}, position {position!r:.80}, data {type(data).__name__}"
            raise StoreError(f"{self.path}: event {number}: has {columns}")
        try:
            return from_outside(data)
        except ValueError as error:
            raise StoreError(f"{self.path}: event {number}: {error}") from None


def from_outside(data: str | bytes) -> Event:
    """An event from a file, which names only files of a campaign.

    Raises
    ------
    ValueError
        Naming the file.
    """
    event = events.decode(data)
    for file in (*files_of(event), *getattr(event, "minimizes", ())):
        if not is_campaign_file(file):
            raise ValueError(f"{type(event).__name__} names the file {file!r:.80}")
    return event


def files_of(event: Event) -> Iterator[str]:
    """The files that an event names."""
    file: str = getattr(event, "file", None) or getattr(event, "unreduced", None) or ""
    if file:
        yield file
    if isinstance(event, WorkerDied) and event.log:
        yield event.log
    crash = isinstance(event, CrashReduced) and event.script_shows_it is not None
    if crash or isinstance(event, ScriptRun):
        yield str(PurePath(file).with_suffix(".py"))
