"""The store of a nightly run: a SQLite database that only the coordinator writes, and files.

The coordinator ingests a shard log as it grows. The new events and the position up to which the
log was read are one transaction, and each unreduced finding has one row with its state. So nothing
is counted twice, however often the coordinator is killed and resumed. A finding's file exists
before the row that names it.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import sqlite3
import time
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, Self

from litmusfuzz.fuzz.campaign.nightly import shard_log
from litmusfuzz.reports.nightly_report import FindingKind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from litmusfuzz.fuzz.campaign.nightly.shard import Shard

DATABASE: Final = "nightly.sqlite"
VERSION: Final = 2
MAX_INGEST_BYTES: Final = 1 << 22
"""Bytes of one shard log that are ingested at once."""
_SCHEMA: Final = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE shards (
  number INTEGER PRIMARY KEY, executor TEXT NOT NULL, configs TEXT NOT NULL,
  started INTEGER NOT NULL, state TEXT NOT NULL DEFAULT 'running',
  ingested_bytes INTEGER NOT NULL DEFAULT 0,
  host TEXT NOT NULL DEFAULT '', pid INTEGER NOT NULL DEFAULT 0,
  versions TEXT NOT NULL DEFAULT '{}', seconds REAL NOT NULL DEFAULT 0,
  graphs INTEGER NOT NULL DEFAULT 0, outcomes INTEGER NOT NULL DEFAULT 0,
  canary_runs INTEGER NOT NULL DEFAULT 0, canary_reported INTEGER NOT NULL DEFAULT 0,
  restarts INTEGER NOT NULL DEFAULT 0, problem TEXT NOT NULL DEFAULT '');
CREATE TABLE tests (
  shard INTEGER, line INTEGER, number INTEGER NOT NULL, family TEXT NOT NULL,
  parent TEXT NOT NULL, config TEXT NOT NULL, model TEXT NOT NULL, noise TEXT NOT NULL,
  run_seed INTEGER NOT NULL, count INTEGER NOT NULL, sha256 TEXT NOT NULL,
  allowed INTEGER NOT NULL, forbidden INTEGER NOT NULL, unknown INTEGER NOT NULL,
  reached REAL, seconds REAL NOT NULL, ended TEXT NOT NULL,
  PRIMARY KEY (shard, line)) WITHOUT ROWID;
CREATE TABLE unreduced_findings (
  number INTEGER PRIMARY KEY, shard INTEGER NOT NULL, config TEXT NOT NULL, file TEXT NOT NULL,
  state TEXT NOT NULL DEFAULT 'pending', shard_minimizing INTEGER,
  attempts INTEGER NOT NULL DEFAULT 0);
CREATE TABLE findings (
  key TEXT PRIMARY KEY, kind TEXT NOT NULL, executor TEXT NOT NULL, class TEXT NOT NULL,
  config TEXT NOT NULL, model TEXT NOT NULL, file TEXT NOT NULL UNIQUE, details TEXT NOT NULL);
CREATE TABLE sightings (
  shard INTEGER, line INTEGER, number INTEGER UNIQUE, key TEXT NOT NULL, config TEXT NOT NULL,
  at INTEGER NOT NULL, PRIMARY KEY (shard, line)) WITHOUT ROWID;
CREATE TABLE worker_deaths (
  shard INTEGER, line INTEGER, kind TEXT NOT NULL, config TEXT NOT NULL, class TEXT NOT NULL,
  message TEXT NOT NULL, file TEXT NOT NULL, ops TEXT NOT NULL, at INTEGER NOT NULL,
  PRIMARY KEY (shard, line)) WITHOUT ROWID;
CREATE TABLE unavailable (executor TEXT, config TEXT, why TEXT NOT NULL,
  PRIMARY KEY (executor, config));
CREATE TABLE progress (at INTEGER PRIMARY KEY, graphs INTEGER NOT NULL,
  outcomes INTEGER NOT NULL, findings INTEGER NOT NULL, disk_bytes INTEGER NOT NULL);
CREATE TABLE kills (mutant TEXT PRIMARY KEY, executor TEXT NOT NULL, seconds REAL,
  graphs INTEGER NOT NULL, family TEXT NOT NULL, setup TEXT NOT NULL);
"""


class StoreError(ValueError):
    """A folder without nightly run, of another version, or in use; the message is one line."""


class Store:
    """The store in a folder.

    Parameters
    ----------
    folder : Path
    write : bool
        True for the coordinator, of which there is one: it creates what is missing.

    Raises
    ------
    StoreError
    """

    def __init__(self, folder: Path, *, write: bool) -> None:
        self.folder = folder
        self._lock: IO[bytes] | None = None
        path = folder / DATABASE
        if not write and not path.is_file():
            raise StoreError(f"{folder}: is no folder of a nightly run: has no {DATABASE}")
        if write:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = (folder / "lock").open("wb")
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self._lock.close()
                raise StoreError(f"{folder}: another process writes this nightly run") from None
        mode = "rwc" if write else "ro"
        uri = f"{path.resolve().as_uri()}?mode={mode}"
        self.db = sqlite3.connect(uri, uri=True, isolation_level=None)
        self.db.row_factory = sqlite3.Row
        try:
            version = self._open() if write else self._version()
        except sqlite3.Error as error:
            self.close()
            raise StoreError(f"{path}: {error}") from None
        if version != VERSION:
            self.close()
            raise StoreError(
                f"{path}: is version {version} of a store, this program reads version {VERSION}:"
                " begin a nightly run in another folder"
            )

    def _version(self) -> int:
        (version,) = self.db.execute("PRAGMA user_version").fetchone()
        return int(version)

    def _open(self) -> int:
        """Create the tables if there are none; return the version."""
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.execute("PRAGMA synchronous = FULL")  # shard logs are deleted after ingestion
        if not self._version() and not self.rows("SELECT 1 FROM sqlite_master"):
            with self.transaction():
                for statement in filter(str.strip, _SCHEMA.split(";")):
                    self.db.execute(statement)
                self.db.execute(f"PRAGMA user_version = {VERSION}")
        return self._version()

    def close(self) -> None:
        """Close the database and release the lock."""
        self.db.close()
        if self._lock is not None:
            self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit all of the block, or nothing if it raises."""
        self.db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self.db.execute("ROLLBACK")
            raise
        self.db.execute("COMMIT")

    # --- facts -------------------------------------------------------------------------

    @property
    def meta(self) -> dict[str, Any]:
        """Facts about the nightly run as a whole."""
        return {name: json.loads(value) for name, value in self.db.execute("SELECT * FROM meta")}

    def set_meta(self, **facts: Any) -> None:
        """Set some of these facts."""
        with self.transaction():
            self.db.executemany(
                "INSERT OR REPLACE INTO meta VALUES (?, ?)",
                [(name, json.dumps(value)) for name, value in facts.items()],
            )

    def rows(self, query: str, *values: Any) -> list[sqlite3.Row]:
        """All rows of a query."""
        return self.db.execute(query, values).fetchall()

    # --- shards -------------------------------------------------------------------------

    def log_folder(self, number: int) -> Path:
        """Folder of a shard's log."""
        return self.folder / "shards" / str(number)

    @property
    def running(self) -> list[int]:
        """Shards that have started and are not ingested completely."""
        return [n for (n,) in self.rows("SELECT number FROM shards WHERE state = 'running'")]

    def pending(self, executor: str, configs: tuple[str, ...], most: int) -> list[sqlite3.Row]:
        """Unreduced findings that still have to be minimized, least attempted first."""
        marks = ", ".join("?" * len(configs))
        return self.rows(
            f"""SELECT u.number, u.file FROM unreduced_findings AS u
            JOIN shards ON shards.number = u.shard WHERE u.state = 'pending'
              AND shard_minimizing IS NULL
              AND shards.state != 'running'
              AND executor = ? AND config IN ({marks})
            ORDER BY attempts, u.number LIMIT ?""",  # noqa: S608 - question marks
            executor,
            *configs,
            most,
        )

    def begin_shard(self, shard: Shard, minimized_here: list[int]) -> None:
        """Note that a shard starts, and which unreduced findings it minimizes."""
        with self.transaction():
            self.db.execute(
                "INSERT INTO shards (number, executor, configs, started) VALUES (?, ?, ?, ?)",
                (shard.number, shard.executor, json.dumps(shard.configs), int(time.time())),
            )
            self.db.executemany(
                """UPDATE unreduced_findings SET shard_minimizing = ?, attempts = attempts + 1
                WHERE number = ?""",
                [(shard.number, number) for number in minimized_here],
            )

    def ingest(self, number: int) -> bool:
        """Ingest the next events of a shard log; False if there are none."""
        folder = self.log_folder(number)
        ((position,),) = self.rows("SELECT ingested_bytes FROM shards WHERE number = ?", number)
        try:
            with (folder / shard_log.EVENTS).open("rb") as file:
                file.seek(position)
                data = file.read(MAX_INGEST_BYTES)
                while b"\n" not in data and (more := file.read(MAX_INGEST_BYTES)):
                    data += more
        except FileNotFoundError:
            return False
        lines = data[: data.rfind(b"\n") + 1].splitlines(keepends=True)
        if not lines:
            return False
        with self.transaction():
            for line in lines:
                event = json.loads(line)
                _Ingestion(self, number, position).line(event)
                position += len(line)
            # The duration of a lost shard is that of its last event.
            self.db.execute(
                """UPDATE shards SET ingested_bytes = ?, seconds = max(seconds, ? - started)
                WHERE number = ?""",
                (position, event["at"], number),
            )
        return True

    def finish_shard(self, number: int, *, lost: bool) -> None:
        """Ingest the rest of a shard that has ended, and remove its log."""
        while self.ingest(number):
            pass
        folder = self.log_folder(number)
        for kept in ("unreduced", "unconfirmed"):
            for file in (folder / kept).glob("[!.]*.yaml"):
                (self.folder / kept).mkdir(exist_ok=True)
                file.replace(self.folder / kept / file.name)
        state = "lost" if lost else "done"
        with self.transaction():
            self.db.execute("UPDATE shards SET state = ? WHERE number = ?", (state, number))
            self.db.execute(
                "UPDATE unreduced_findings SET shard_minimizing = NULL WHERE shard_minimizing = ?",
                (number,),
            )
        shutil.rmtree(folder, ignore_errors=True)

    def remove_stale_logs(self) -> None:
        """Remove logs of shards that an earlier coordinator had not noted before it was killed."""
        for folder in (self.folder / "shards").glob("*"):
            shutil.rmtree(folder, ignore_errors=True)

    def add_files(self, number: int, files: Mapping[str, str]) -> None:
        """Add the files of a shard from another machine; the events last, as on that machine."""
        folder = self.log_folder(number)
        for name in sorted(files, key=lambda name: name == shard_log.EVENTS):
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(files[name], encoding="utf-8")

    def copy(self, source: Path, file: str) -> None:
        """Copy a file of a shard log into the folder, in one step."""
        target = self.folder / file
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{target.name}.tmp")
        with temporary.open("wb") as out:
            out.write(source.read_bytes())
            out.flush()
            os.fsync(out.fileno())
        temporary.replace(target)

    def record_progress(self, disk_bytes: int) -> None:
        """Add a row with the present totals."""
        with self.transaction():
            self.db.execute(
                """INSERT OR REPLACE INTO progress SELECT ?, coalesce(sum(graphs), 0),
                coalesce(sum(outcomes), 0), (SELECT count(DISTINCT key) FROM sightings), ?
                FROM shards""",
                (int(time.time()), disk_bytes),
            )

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
        """Delete files that can be reproduced until the folder is small enough; return its size.

        Deletes files of resolved tests, and tests of worker deaths except those in `kept`,
        oldest first. Findings and records stay.
        """
        size = self.disk_bytes()
        if size <= most:
            return size
        pending = self.rows("SELECT file FROM unreduced_findings WHERE state = 'pending'")
        stay = {*kept, *(file for (file,) in pending)}
        folders = ("unreduced", "unconfirmed", "crashed", "timed-out")
        files = [path for folder in folders for path in (self.folder / folder).glob("*.yaml")]
        for path in sorted(files, key=lambda path: path.stat().st_mtime):
            if f"{path.parent.name}/{path.name}" not in stay:
                size -= path.stat().st_blocks * 512
                path.unlink()
            if size <= 0.9 * most:
                break
        return size


def has_writer(folder: Path) -> bool:
    """True if a process on this machine, or one that shares its locks, writes the nightly run."""
    try:
        with (folder / "lock").open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


class _Ingestion:
    """Ingests one event; a method for each kind."""

    def __init__(self, store: Store, shard: int, line: int) -> None:
        self.store = store
        self.db = store.db
        self.shard = shard
        self.place = (shard, line)
        self.folder = store.log_folder(shard)

    def line(self, event: dict[str, Any]) -> None:
        """Ingest the event."""
        getattr(self, f"_{event['kind']}")(event)

    def _add(self, **numbers: float) -> None:
        """Add to the totals of the shard."""
        sets = ", ".join(f"{name} = {name} + ?" for name in numbers)
        query = f"UPDATE shards SET {sets} WHERE number = ?"  # noqa: S608 - our own names
        self.db.execute(query, (*numbers.values(), self.shard))

    def _start(self, event: dict[str, Any]) -> None:
        if (version := event.get("version", 1)) != shard_log.VERSION:
            raise StoreError(
                f"{self.folder}: is version {version} of an event log, this program reads version"
                f" {shard_log.VERSION}: install the same LitmusFuzz on all machines"
            )
        self.db.execute(
            "UPDATE shards SET host = ?, pid = ?, versions = ? WHERE number = ?",
            (event["host"], event["pid"], json.dumps(event["versions"]), self.shard),
        )

    def _unavailable(self, event: dict[str, Any]) -> None:
        self.db.execute(
            "INSERT OR REPLACE INTO unavailable SELECT executor, ?, ? FROM shards WHERE number = ?",
            (event["config"], event["why"], self.shard),
        )

    def _test(self, event: dict[str, Any]) -> None:
        verdicts = event["verdicts"]
        reached = (
            min(1.0, event["reached"] / event["allowed"]) if event["reached"] is not None else None
        )
        self.db.execute(
            f"INSERT INTO tests VALUES ({', '.join('?' * 17)})",  # noqa: S608
            (
                *self.place,
                *(event[name] for name in ("index", "family", "parent", "config", "model")),
                event["noise"],
                event["run_seed"],
                event["count"],
                event["sha256"],
                *(verdicts.get(name, 0) for name in ("allowed", "forbidden", "unknown")),
                reached,
                event["seconds"],
                event["end"],
            ),
        )
        self._add(graphs=1, outcomes=sum(verdicts.values()))
        if event["unreduced"]:
            self.db.execute(
                """INSERT OR IGNORE INTO unreduced_findings (number, shard, config, file)
                VALUES (?, ?, ?, ?)""",
                (event["index"], self.shard, event["config"], event["unreduced"]),
            )
            if event["key"]:
                self._seen_again(event)

    def _seen_again(self, event: dict[str, Any]) -> None:
        """Add one row for each test that shows the finding."""
        self._set_state(event["index"], "resolved")
        self.db.execute(
            "INSERT OR IGNORE INTO sightings VALUES (?, ?, ?, ?, ?, ?)",
            (*self.place, event["index"], event["key"], event["config"], event["at"]),
        )

    def _set_state(self, number: int, state: str) -> None:
        self.db.execute("UPDATE unreduced_findings SET state = ? WHERE number = ?", (state, number))

    def _finding(self, event: dict[str, Any]) -> None:
        self._add_finding(event, FindingKind.FORBIDDEN)
        self._seen_again(event)

    def _unsound(self, event: dict[str, Any]) -> None:
        self._add_finding(event | {"model": ""}, FindingKind.UNSOUND)
        self._seen_again(event | {"index": None})

    def _add_finding(self, event: dict[str, Any], kind: FindingKind) -> None:
        """Keep the first finding of a key, and its file under a unique name."""
        known = self.store.rows("SELECT 1 FROM findings WHERE key = ?", event["key"])
        if known:
            return
        stem, number = Path(event["file"]).stem, 1
        file = f"findings/{stem}.yaml"
        while self.store.rows("SELECT 1 FROM findings WHERE file = ?", file):
            number += 1
            file = f"findings/{stem}-{number}.yaml"
        self.store.copy(self.folder / event["file"], file)
        ((executor,),) = self.store.rows("SELECT executor FROM shards WHERE number = ?", self.shard)
        self.db.execute(
            "INSERT INTO findings VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *(event["key"], kind, executor, event["executor_class"]),
                *(event["config"], event["model"], file, json.dumps(event | {"shard": self.shard})),
            ),
        )

    def _script(self, event: dict[str, Any]) -> None:
        """Keep the script if this shard was the first to show its finding."""
        ((file, first),) = self.store.rows(
            "SELECT file, details FROM findings WHERE key = ?", event["key"]
        )
        first = json.loads(first)
        source = self.folder / event["file"]
        if (first["shard"], first["file"]) == (self.shard, event["file"]):
            self.store.copy(source.with_suffix(".py"), str(Path(file).with_suffix(".py")))
            self.store.copy(source, file)

    def _unconfirmed(self, event: dict[str, Any]) -> None:
        self._set_state(event["index"], "unconfirmed")

    def _worker_death(self, event: dict[str, Any]) -> None:
        source = Path(event["file"])
        file = f"{source.parent}/{self.shard}-{source.name}"
        self.store.copy(self.folder / source, file)
        self.db.execute(
            "INSERT INTO worker_deaths VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *self.place,
                *(event[name] for name in ("finding_kind", "config", "executor_class", "message")),
                *(file, json.dumps(event["ops"]), event["at"]),
            ),
        )

    def _canary(self, event: dict[str, Any]) -> None:
        self._add(canary_runs=1, canary_reported=int(event["reported"]))

    def _kill(self, event: dict[str, Any]) -> None:
        names = ("mutant", "executor", "seconds", "graphs", "family", "setup")
        self.db.execute(
            "INSERT OR REPLACE INTO kills VALUES (?, ?, ?, ?, ?, ?)",
            tuple(event[name] for name in names),
        )

    def _end(self, event: dict[str, Any]) -> None:
        self.db.execute(
            "UPDATE shards SET problem = ?, restarts = ?, seconds = ? WHERE number = ?",
            (event["problem"], event["restarts"], event["seconds"], self.shard),
        )
