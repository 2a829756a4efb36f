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
import re
import sqlite3
import stat
from contextlib import closing, contextmanager, suppress
from itertools import chain
from pathlib import Path, PurePath
from typing import IO, TYPE_CHECKING, Any, Final, Self, TypeVar, cast

from litmusfuzz.corpus.document import FileError, open_at_once
from litmusfuzz.corpus.ops import MAX_MESSAGE
from litmusfuzz.corpus.textfile import write_text
from litmusfuzz.fuzz.executors.configuration_generator import PRODUCT, is_generated
from litmusfuzz.fuzz.executors.entries import loads
from litmusfuzz.fuzz.executors.trust import outside_code
from litmusfuzz.fuzz.store.shard_log import EVENTS, open_lock, remove_log
from litmusfuzz.reports import events
from litmusfuzz.reports.events import (
    CampaignStarted,
    Configured,
    CrashReduced,
    Event,
    ScriptRun,
    ShardEnded,
    ShardPlanned,
    WorkerDied,
)
from litmusfuzz.reports.fold import Fold
from litmusfuzz.reports.outputs import FILES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from litmusfuzz.corpus.textfile import Entry
    from litmusfuzz.reports.events import AnyEvent

DATABASE: Final = "campaign.sqlite"
VERSION: Final = events.VERSION
MAX_SHARD: Final = 1 << 32
"""Highest number of a shard."""
MAX_INGEST_BYTES: Final = 1 << 22
"""Bytes of one shard log that are ingested at once."""
MAX_EVENT_BYTES: Final = 32 << 20
"""Length of an event, at most: twice a worker's longest reply."""
_SCHEMA: Final = """
CREATE TABLE events (
  number INTEGER PRIMARY KEY, shard INTEGER NOT NULL, position INTEGER NOT NULL,
  data TEXT NOT NULL, UNIQUE (shard, position))
"""
_SCHEMA_STEPS: Final = 100_000
"""Instructions of SQLite's machine in which the schema is read, at most; ours takes a hundred."""
_TEMPORARY: Final = re.compile(rf"\.({'|'.join(map(re.escape, FILES))}|.+\.yaml|.+\.py)\.\d+\.tmp")
"""A file that a killed process has written in part (`corpus.textfile.write_text`)."""
_ROLLBACK_MAGIC: Final = bytes.fromhex("d9d505f920a163d7")
DELETABLE: Final = ("unreduced", "unconfirmed", "crashed", "timed-out")
"""Folders of files that the campaign's seed, or its findings, can replace."""

E = TypeVar("E", bound=Event)


class StoreError(ValueError):
    """A folder without campaign, of another version, damaged, or in use; one line."""

    def __init__(self, message: str) -> None:
        # What a damaged event holds may be long.
        super().__init__(" ".join(message.split())[:MAX_MESSAGE])


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
        self._directory: int | None = None
        self.on_stored: Callable[[Sequence[Event]], None] = lambda _: None
        """Called with events that this process has stored, once they are."""
        self._changing = 0
        """Nested changes of the fold that are under way."""
        self._waiting: Callable[[], None] | None = None
        """Called when they have ended."""
        _refuse_old(folder)
        _refuse_strange(folder, write=write)
        if not write and not self.path.is_file():
            raise StoreError(f"{folder}: is no folder of a campaign: has no {DATABASE}")
        if write:
            folder.mkdir(parents=True, exist_ok=True)
            _refuse_rollback(self.path)
            self._lock = open_lock(folder / "lock")
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self._lock.close()
                raise StoreError(f"{folder}: another process writes this campaign") from None
            self._open_directory()
        self._forget()
        mode = "rwc" if write else "ro"
        uri = f"{self.path.resolve().as_uri()}?mode={mode}"
        try:
            self.db = sqlite3.connect(uri, uri=True, isolation_level=None)
            self.db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_EVENT_BYTES)
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
        is_new = not self._schema() and not self._version()
        if write and is_new:
            with self._transaction():
                self.db.execute(_SCHEMA)
                self.db.execute(f"PRAGMA user_version = {VERSION}")
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
            self.db.execute("PRAGMA journal_mode = WAL")
            self.db.execute("PRAGMA synchronous = NORMAL")  # see the notes above
        self._identity = _identity(self.path)
        self._catch_up()

    @property
    def is_gone(self) -> bool:
        """True if the database was removed or renamed since it was opened."""
        return self._identity != _identity(self.path)

    @property
    def is_replaced(self) -> bool:
        """True if another database has taken its place."""
        return self.is_gone and _identity(self.path) is not None

    def restore(self) -> None:
        """Write a database that is gone again, with all of its events.

        Raises
        ------
        OSError, sqlite3.Error
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        self._open_directory()
        with closing(sqlite3.connect(self.path)) as copy:
            self.db.backup(copy)

    @property
    def directory(self) -> int:
        """Descriptor of the folder, wherever it is now.

        What is written through it is never written into another folder that has taken its path.
        """
        assert self._directory is not None, "the store is open to write"
        return self._directory

    def _open_directory(self) -> None:
        self._close_directory()
        self._directory = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)

    def _close_directory(self) -> None:
        if self._directory is not None:
            os.close(self._directory)
            self._directory = None

    def _schema(self) -> list[str]:
        """Statements that have made what is in the database.

        They are few, but the pages of a small file can name each other so that reading them never
        ends.
        """
        self.db.set_progress_handler(lambda: 1, _SCHEMA_STEPS)
        try:
            return [sql for (sql,) in self.rows("SELECT sql FROM sqlite_master") if sql is not None]
        except sqlite3.OperationalError as error:
            if str(error) != "interrupted":
                raise
            raise StoreError(f"{self.path}: has more tables than events") from None
        finally:
            self.db.set_progress_handler(None, 0)

    def _version(self) -> int:
        return int(self.rows("PRAGMA user_version")[0][0])

    def close(self) -> None:
        """Close the database and release the lock."""
        self.db.close()
        self._release()

    def _release(self) -> None:
        self._close_directory()
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
        for number, shard, position, data in self._read(0):
            yield shard, self._decoded(number, shard, position, data)

    def events_of(self, kind: type[E]) -> Iterator[tuple[int, E]]:
        """All events of one type."""
        # By what they say, as the fold takes them: JSON has many ways to write the same.
        for shard, event in self.events():
            if isinstance(event, kind):
                yield shard, event

    def _read(self, after: int) -> Iterator[tuple[Any, ...]]:
        """The rows of the events after that number.

        No row comes twice, whatever the pages of the database name: those of a small file can name
        each other so that a query of its rows never ends.
        """
        query = "SELECT number, shard, position, data FROM events WHERE number > ? ORDER BY number"
        for row in self.db.execute(query, (after,)):
            if row[0] <= after:
                raise StoreError(f"{self.path}: event {row[0]}: stands after event {after}")
            after = row[0]
            yield row

    @property
    def started(self) -> CampaignStarted | None:
        """The settings; None if no campaign has started."""
        self._catch_up()
        return self._started

    @property
    def fold(self) -> Fold:
        """The fold of all events."""
        self._catch_up()
        return self._fold

    def _decoded(self, number: int, shard: object, position: object, data: object) -> Event:
        """The event of a row, whose columns SQLite lets hold values of any type.

        The number of a shard is also the name of its folder, which is deleted when the shard ends.
        """
        numbers = isinstance(shard, int) and 0 <= shard <= MAX_SHARD and isinstance(position, int)
        if not (numbers and isinstance(data, str)):
            columns = f"shard {shard!r:.80}, position {position!r:.80}, data {type(data).__name__}"
            raise StoreError(f"{self.path}: event {number}: has {columns}")
        try:
            return _with_our_files(events.decode(data))
        except ValueError as error:
            raise StoreError(f"{self.path}: event {number}: {error}") from None

    def _load_entry(self, text: str, source: str) -> Entry:
        """The entry of a finding; its configuration is none of code that only it names."""
        entry = loads(text, source)
        if (found := entry.finding) is not None:
            self._refuse_outside(found.executor, found.configuration)
        return entry

    def _refuse_outside(self, executor: str, configuration: str) -> None:
        """Raise if a configuration loads code that the settings of the campaign do not name.

        The settings are what a user trusts who resumes a campaign, and all its other events can
        only have those configurations and generated ones, which load no code.
        """
        if (executor, configuration) in self._trusted:
            return
        if wants := outside_code(executor, configuration):
            settings = self._started.configurations if self._started else ()
            named = {(each.executor, each.name) for each in settings}
            if (executor, configuration) not in named and not (
                (executor, PRODUCT) in named and is_generated(executor, configuration)
            ):
                raise ValueError(f"names {wants}, which the campaign's settings do not")
        self._trusted.add((executor, configuration))

    def _forget(self) -> None:
        """Begin the fold anew; `_catch_up` folds what is stored."""
        self._fold = Fold(self._load_entry)
        self._started: CampaignStarted | None = None
        self._trusted: set[tuple[str, str]] = set()
        """Executors and configurations that load no code that the settings do not name."""
        self._folded = 0
        """Number of the last event that is folded."""
        self._positions: dict[int, int] = {}
        """Highest position of each shard that has events."""
        self._running: dict[int, float] = {}
        """When each shard started that has not ended."""

    def when_whole(self, call: Callable[[], None]) -> None:
        """Call once the store can be read and written: now, or when an event is folded in full.

        For handlers of signals, which run between any two instructions.
        """
        if self._changing:
            self._waiting = call
        else:
            call()

    @contextmanager
    def _change(self) -> Iterator[None]:
        """Change the fold: while the block runs, the state of the store is of no use."""
        self._changing += 1
        try:
            yield
        finally:
            self._changing -= 1
            if not self._changing and self._waiting is not None:
                call, self._waiting = self._waiting, None
                call()

    def _catch_up(self) -> None:
        """Fold the events that another process has stored since."""
        with self._change():
            for number, shard, position, data in self._read(self._folded):
                event = self._decoded(number, shard, position, data)
                self._apply(number, shard, position, event)

    def _apply(self, number: int, shard: int, position: int, event: Event) -> None:
        """Fold a stored event, of this process or another."""
        try:
            for each in _configurations(event):
                self._refuse_outside(*each)
            self._fold.apply(shard, cast("AnyEvent", event))
        except FileError as error:  # the entry of a finding
            raise StoreError(f"{self.path}: event {number}: {error}") from None
        except (LookupError, ValueError, TypeError, ArithmeticError) as error:
            raise StoreError(
                f"{self.path}: event {number}: {type(event).__name__} contradicts the events"
                f" before it, or itself: {error!r:.1000}"
            ) from error
        if isinstance(event, CampaignStarted):
            self._started = event
        self._folded = number
        self._positions[shard] = max(position, self._last_position(shard))
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
        with self._storing():
            for position, event in enumerate(added, 1 + self._last_position(shard)):
                self._add(shard, position, event)
        self.on_stored(added)

    def ingest(self, number: int) -> bool:
        """Store the next events of a shard log; False if there are none.

        Raises
        ------
        StoreError
            If it was written by another version.
        """
        self._catch_up()
        position = max(0, self._last_position(number))
        try:
            path = self.log_folder(number) / EVENTS
            with open_at_once(path, "rb") as file:
                file.seek(position)
                data = file.read(MAX_INGEST_BYTES)
                while b"\n" not in data and (more := file.read(MAX_INGEST_BYTES)):
                    data += more
                    if len(data) > MAX_EVENT_BYTES:
                        raise StoreError(f"{path}: has a line of more than {MAX_EVENT_BYTES} bytes")
        except FileNotFoundError:
            return False
        placed = []
        for line in data[: data.rfind(b"\n") + 1].splitlines(keepends=True):
            position += len(line)
            placed.append((position, self._logged(number, line)))
        if placed:
            with self._storing():
                for position, event in placed:
                    self._add(number, position, event)
            self.on_stored([event for _, event in placed])
        return bool(placed)

    def _logged(self, number: int, line: bytes) -> Event:
        """An event of a shard log."""
        try:
            event = _with_our_files(events.decode(line))
        except ValueError as error:
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
        return self._positions.get(shard, -1)

    @contextmanager
    def _storing(self) -> Iterator[None]:
        """Store the events that the block adds, all of them, or none if it raises.

        They are folded before they are committed: one that cannot be is not stored, where it
        would make the store unreadable.
        """
        with self._change():
            try:
                with self._transaction():
                    self._catch_up()  # what another process has stored; none can until this ended
                    yield
            except BaseException:
                self._forget()  # the fold has events that the store has not
                raise

    def _add(self, shard: int, position: int, event: Event) -> None:
        """Add an event to those that are being stored."""
        row = self.db.execute(
            "INSERT INTO events (shard, position, data) VALUES (?, ?, ?)",
            (shard, position, events.encode(event).decode()),
        )
        assert row.lastrowid is not None
        self._apply(row.lastrowid, shard, position, event)

    # --- shards ------------------------------------------------------------------------

    def log_folder(self, number: int) -> Path:
        """Folder of a shard's log."""
        return self.folder / "shards" / str(number)

    @property
    def next_shard(self) -> int:
        """Number of the next shard, from 1 on."""
        self._catch_up()
        return 1 + max(self._positions, default=0)

    @property
    def running(self) -> list[int]:
        """Shards that have started and of which no end is stored."""
        self._catch_up()
        return list(self._running)

    def finish_shard(self, number: int) -> None:
        """Ingest the rest of a shard whose process has ended, and remove its log.

        A shard that has logged no end is lost; its duration is that up to its last event.
        """
        while self.ingest(number):
            pass
        if number in self.running:
            seconds = round(self._fold.seconds_of(number), 3)
            self.append(number, ShardEnded(seconds=seconds, lost=True))
        folder = self.log_folder(number)
        if folder.is_dir():
            os.sync()  # the events are on the disk before their log is deleted
            remove_log(folder)

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
            if re.fullmatch(r"[1-9]\d{0,9}", folder.name, re.ASCII):
                remove_log(folder)
        named = {file for _, event in self.events() for file in files_of(event)}
        for name in ("findings", *DELETABLE):
            for path in (self.folder / name).glob("*"):
                file = f"{name}/{path.name}"
                ours = is_campaign_file(file) or _TEMPORARY.fullmatch(path.name)
                if ours and file not in named and path.is_file() and path.stat().st_mtime >= since:
                    path.unlink()
        for path in self.folder.glob(".*.tmp"):
            if _TEMPORARY.fullmatch(path.name) and path.is_file():
                path.unlink()

    def add_files(self, number: int, files: Mapping[str, str]) -> None:
        """Add the files of a shard from another machine; the events last, as on that machine."""
        for name in sorted(files, key=lambda name: name == EVENTS):
            path = (self.log_folder(number) if name == EVENTS else self.folder) / name
            if name != EVENTS and not is_campaign_file(name):
                raise StoreError(f"{self.folder}: shard {number} sends a file {name!r:.80}")
            write_text(files[name], path)

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
        files = [path for folder in DELETABLE for path in (self.folder / folder).glob("*.yaml")]
        for path in sorted(files, key=lambda path: path.stat().st_mtime):
            if f"{path.parent.name}/{path.name}" not in kept:
                for each in (path, path.with_suffix(".txt")):  # the log of the process
                    if each.is_file():
                        size -= each.stat().st_blocks * 512
                        each.unlink()
            if size <= 0.9 * most:
                break
        return size


def _identity(path: Path) -> tuple[int, int] | None:
    """What tells a file from another one of its name; None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


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


def is_campaign_file(file: str) -> bool:
    """True for the name of a litmus file, a script or a log in one of a campaign's folders.

    Directly in it, or beside the folders.

    A campaign reads, writes and runs files of such names. Others could be anywhere.
    """
    *folders, name = file.split("/")
    inside = not folders or (len(folders) == 1 and folders[0] in ("findings", *DELETABLE))
    suffix = name.endswith((".yaml", ".py", ".txt"))
    return inside and suffix and not name.startswith(".") and name.isprintable()


def _with_our_files(event: Event) -> Event:
    """An event from outside, which names only files of a campaign.

    Raises
    ------
    ValueError
        Naming the file.
    """
    for file in (*files_of(event), *getattr(event, "minimizes", ())):
        if not is_campaign_file(file):
            raise ValueError(f"{type(event).__name__} names the file {file!r:.80}")
    return event


def _configurations(event: Event) -> Iterator[tuple[str, str]]:
    """Executors and configurations that an event names, if tests may run in them."""
    if (name := getattr(event, "configuration", None)) is not None:
        made = isinstance(name, Configured)
        yield (name.executor, name.name) if made else (getattr(event, "executor", ""), name)


def _refuse_strange(folder: Path, *, write: bool) -> None:
    """Raise if a part of a campaign's folder that is written or emptied stands elsewhere.

    A reader writes, too: SQLite makes two files beside the database. And it waits for whoever may
    write into a pipe.
    """
    parts = [DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm", f"{DATABASE}-journal"]
    parts += ["lock"] if write else []
    folders = ["shards", "findings", *DELETABLE] if write else []
    # A shard's process locks and writes files in its folder, and is known by its lock.
    shards = (folder / "shards").glob("*") if write else ()
    logs = (folder / "shards").glob("*/*") if write else ()
    for path in chain((folder / name for name in folders), shards):
        if path.is_symlink():
            raise StoreError(f"{path}: is a link, which a campaign does not follow")
    for path in chain((folder / name for name in parts), logs):
        try:
            found = path.lstat()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise StoreError(f"{path}: {error.strerror}") from None
        if stat.S_ISLNK(found.st_mode):
            raise StoreError(f"{path}: is a link, which a campaign does not follow")
        if stat.S_ISREG(found.st_mode):
            if write and found.st_nlink > 1:
                raise StoreError(f"{path}: has another name as well (a hard link): copy the folder")
        elif path.parent == folder or not stat.S_ISDIR(found.st_mode):
            raise StoreError(f"{path}: is not a file")


def _refuse_rollback(database: Path) -> None:
    """Raise if SQLite would delete another file when it opens a database.

    It does so with the file that a rollback journal names at its end, as those of transactions over
    several databases do. A store has none.
    """
    path = database.with_name(f"{database.name}-journal")
    with suppress(FileNotFoundError), open_at_once(path, "rb") as file:
        file.seek(-min(len(_ROLLBACK_MAGIC), file.seek(0, os.SEEK_END)), os.SEEK_END)
        if file.read() == _ROLLBACK_MAGIC:
            raise StoreError(f"{path}: is of a transaction over several databases")


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
        with open_at_once(folder / "lock", "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
