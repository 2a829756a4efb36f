"""What a night knows: a SQLite file that only its writer writes, and files beside it.

A shard's spool is taken over as it grows: its next lines and how far it was read are one
transaction, and each graph that showed something has one row, which says what became of
it. So nothing counts twice, however often the writer is killed and goes on; findings'
files are there before the row that names them.
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
from litmusfuzz.reports.nightly_report import Sort

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from litmusfuzz.fuzz.campaign.nightly.shard import Shard

NAME: Final = "nightly.sqlite"
VERSION: Final = 2
MAX_TAKEN: Final = 1 << 22
"""Bytes of one spool that are taken over at once."""
_SCHEMA: Final = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE shards (
  number INTEGER PRIMARY KEY, executor TEXT NOT NULL, configs TEXT NOT NULL,
  begun INTEGER NOT NULL, state TEXT NOT NULL DEFAULT 'running', taken INTEGER NOT NULL DEFAULT 0,
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
  state TEXT NOT NULL DEFAULT 'pending', given INTEGER, tries INTEGER NOT NULL DEFAULT 0);
CREATE TABLE findings (
  key TEXT PRIMARY KEY, sort TEXT NOT NULL, executor TEXT NOT NULL, class TEXT NOT NULL,
  config TEXT NOT NULL, model TEXT NOT NULL, file TEXT NOT NULL UNIQUE, told TEXT NOT NULL);
CREATE TABLE sightings (
  shard INTEGER, line INTEGER, number INTEGER UNIQUE, key TEXT NOT NULL, config TEXT NOT NULL,
  at INTEGER NOT NULL, PRIMARY KEY (shard, line)) WITHOUT ROWID;
CREATE TABLE deaths (
  shard INTEGER, line INTEGER, sort TEXT NOT NULL, config TEXT NOT NULL, class TEXT NOT NULL,
  message TEXT NOT NULL, file TEXT NOT NULL, ops TEXT NOT NULL, at INTEGER NOT NULL,
  PRIMARY KEY (shard, line)) WITHOUT ROWID;
CREATE TABLE unavailable (executor TEXT, config TEXT, why TEXT NOT NULL,
  PRIMARY KEY (executor, config));
CREATE TABLE moments (at INTEGER PRIMARY KEY, graphs INTEGER NOT NULL,
  outcomes INTEGER NOT NULL, findings INTEGER NOT NULL, disk_bytes INTEGER NOT NULL);
CREATE TABLE kills (mutant TEXT PRIMARY KEY, executor TEXT NOT NULL, seconds REAL,
  graphs INTEGER NOT NULL, family TEXT NOT NULL, strategy TEXT NOT NULL);
"""


class StoreError(ValueError):
    """A folder that is no night's, or another version's, or in use; in one line."""


class Store:
    """The night in a folder.

    Parameters
    ----------
    folder : Path
    write : bool
        Whether this is the writer, of which there is one: it makes what is missing.

    Raises
    ------
    StoreError
    """

    def __init__(self, folder: Path, *, write: bool) -> None:
        self.folder = folder
        self._lock: IO[bytes] | None = None
        path = folder / NAME
        if not write and not path.is_file():
            raise StoreError(f"{folder}: holds no night ({NAME})")
        if write:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = (folder / "lock").open("wb")
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self._lock.close()
                raise StoreError(f"{folder}: another process writes this night") from None
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
            raise StoreError(f"{path}: version {version}; this program has {VERSION}")

    def _version(self) -> int:
        (version,) = self.db.execute("PRAGMA user_version").fetchone()
        return int(version)

    def _open(self) -> int:
        """Make what is missing; the version."""
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.execute("PRAGMA synchronous = FULL")  # spools go once they are taken over
        if not self._version() and not self.rows("SELECT 1 FROM sqlite_master"):
            with self.transaction():
                for statement in filter(str.strip, _SCHEMA.split(";")):
                    self.db.execute(statement)
                self.db.execute(f"PRAGMA user_version = {VERSION}")
        return self._version()

    def close(self) -> None:
        """Another may write."""
        self.db.close()
        if self._lock is not None:
            self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All of it or nothing."""
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
        """What is known of the night as a whole."""
        return {name: json.loads(value) for name, value in self.db.execute("SELECT * FROM meta")}

    def note(self, **facts: Any) -> None:
        """Set some of that."""
        with self.transaction():
            self.db.executemany(
                "INSERT OR REPLACE INTO meta VALUES (?, ?)",
                [(name, json.dumps(value)) for name, value in facts.items()],
            )

    def rows(self, query: str, *values: Any) -> list[sqlite3.Row]:
        """Answers to a question."""
        return self.db.execute(query, values).fetchall()

    # --- shards -------------------------------------------------------------------------

    def spool(self, number: int) -> Path:
        """Where a shard writes."""
        return self.folder / "shards" / str(number)

    @property
    def running(self) -> list[int]:
        """Turns that have begun, and are not yet taken over whole."""
        return [n for (n,) in self.rows("SELECT number FROM shards WHERE state = 'running'")]

    def pending(self, executor: str, configs: tuple[str, ...], most: int) -> list[sqlite3.Row]:
        """Unreduced findings that somebody has to minimize, least tried first."""
        marks = ", ".join("?" * len(configs))
        return self.rows(
            f"""SELECT u.number, u.file FROM unreduced_findings AS u
            JOIN shards ON shards.number = u.shard WHERE u.state = 'pending' AND given IS NULL
              AND shards.state != 'running'
              AND executor = ? AND config IN ({marks})
            ORDER BY tries, u.number LIMIT ?""",  # noqa: S608 - question marks
            executor,
            *configs,
            most,
        )

    def begin(self, shard: Shard, given: list[int]) -> None:
        """A shard is about to begin, and minimizes these, too."""
        with self.transaction():
            self.db.execute(
                "INSERT INTO shards (number, executor, configs, begun) VALUES (?, ?, ?, ?)",
                (shard.number, shard.executor, json.dumps(shard.configs), int(time.time())),
            )
            self.db.executemany(
                "UPDATE unreduced_findings SET given = ?, tries = tries + 1 WHERE number = ?",
                [(shard.number, number) for number in given],
            )

    def ingest(self, number: int) -> bool:
        """Take over the next lines of a shard's spool; whether there were any."""
        folder = self.spool(number)
        ((taken,),) = self.rows("SELECT taken FROM shards WHERE number = ?", number)
        try:
            with (folder / shard_log.LINES).open("rb") as file:
                file.seek(taken)
                data = file.read(MAX_TAKEN)
                while b"\n" not in data and (more := file.read(MAX_TAKEN)):
                    data += more
        except FileNotFoundError:
            return False
        lines = data[: data.rfind(b"\n") + 1].splitlines(keepends=True)
        if not lines:
            return False
        with self.transaction():
            for line in lines:
                told = json.loads(line)
                _Taking(self, number, taken).line(told)
                taken += len(line)
            # Of one that is lost, its last line tells how long it took.
            self.db.execute(
                "UPDATE shards SET taken = ?, seconds = max(seconds, ? - begun) WHERE number = ?",
                (taken, told["at"], number),
            )
        return True

    def finish(self, number: int, *, lost: bool) -> None:
        """Take over what is left of a shard that has ended; its spool goes."""
        while self.ingest(number):
            pass
        folder = self.spool(number)
        for kept in ("unreduced", "unconfirmed"):
            for file in (folder / kept).glob("[!.]*.yaml"):
                (self.folder / kept).mkdir(exist_ok=True)
                file.replace(self.folder / kept / file.name)
        with self.transaction():
            self.db.execute(
                "UPDATE shards SET state = ? WHERE number = ?", ("lost" if lost else "done", number)
            )
            self.db.execute("UPDATE unreduced_findings SET given = NULL WHERE given = ?", (number,))
        shutil.rmtree(folder, ignore_errors=True)

    def sweep(self) -> None:
        """Nothing runs: remove what shards left that began as their writer was killed."""
        for folder in (self.folder / "shards").glob("*"):
            shutil.rmtree(folder, ignore_errors=True)

    def put(self, number: int, files: Mapping[str, str]) -> None:
        """The files of a shard done elsewhere; the lines last, as where it was done."""
        folder = self.spool(number)
        for name in sorted(files, key=lambda name: name == shard_log.LINES):
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(files[name], encoding="utf-8")

    def copy(self, source: Path, file: str) -> None:
        """Bring a file of a spool into the folder, in one step."""
        target = self.folder / file
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{target.name}.tmp")
        with temporary.open("wb") as out:
            out.write(source.read_bytes())
            out.flush()
            os.fsync(out.fileno())
        temporary.replace(target)

    def moment(self, disk_bytes: int) -> None:
        """Note how far it is."""
        with self.transaction():
            self.db.execute(
                """INSERT OR REPLACE INTO moments SELECT ?, coalesce(sum(graphs), 0),
                coalesce(sum(outcomes), 0), (SELECT count(DISTINCT key) FROM sightings), ?
                FROM shards""",
                (int(time.time()), disk_bytes),
            )

    # --- disk --------------------------------------------------------------------------

    def disk_bytes(self) -> int:
        """What the folder takes."""
        total = 0
        for root, _, files in os.walk(self.folder):
            for name in files:
                try:
                    total += os.lstat(os.path.join(root, name)).st_blocks * 512
                except FileNotFoundError:
                    continue
        return total

    def shrink(self, most: int, kept: Collection[str]) -> int:
        """Drop what can be made again until the folder takes less; what it takes then.

        The oldest first of the files of graphs that are settled, and of tests that ended a
        worker, but for those `kept`. Findings and records stay.
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


def is_written(folder: Path) -> bool:
    """Whether a process, of those that share its locks, writes the night in a folder."""
    try:
        with (folder / "lock").open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


class _Taking:
    """One line of a spool on its way into the store; a method for each kind."""

    def __init__(self, store: Store, shard: int, line: int) -> None:
        self.store = store
        self.db = store.db
        self.shard = shard
        self.place = (shard, line)
        self.folder = store.spool(shard)

    def line(self, told: dict[str, Any]) -> None:
        """Take it."""
        getattr(self, f"_{told['kind']}")(told)

    def _add(self, **numbers: float) -> None:
        """To what the shard has done."""
        sets = ", ".join(f"{name} = {name} + ?" for name in numbers)
        query = f"UPDATE shards SET {sets} WHERE number = ?"  # noqa: S608 - our own names
        self.db.execute(query, (*numbers.values(), self.shard))

    def _start(self, told: dict[str, Any]) -> None:
        self.db.execute(
            "UPDATE shards SET host = ?, pid = ?, versions = ? WHERE number = ?",
            (told["host"], told["pid"], json.dumps(told["versions"]), self.shard),
        )

    def _unavailable(self, told: dict[str, Any]) -> None:
        self.db.execute(
            "INSERT OR REPLACE INTO unavailable SELECT executor, ?, ? FROM shards WHERE number = ?",
            (told["config"], told["why"], self.shard),
        )

    def _test(self, told: dict[str, Any]) -> None:
        verdicts = told["verdicts"]
        reached = (
            min(1.0, told["reached"] / told["allowed"]) if told["reached"] is not None else None
        )
        self.db.execute(
            f"INSERT INTO tests VALUES ({', '.join('?' * 17)})",  # noqa: S608
            (
                *self.place,
                *(told[name] for name in ("index", "family", "parent", "config", "model")),
                told["noise"],
                told["run_seed"],
                told["count"],
                told["sha256"],
                *(verdicts.get(name, 0) for name in ("allowed", "forbidden", "unknown")),
                reached,
                told["seconds"],
                told["end"],
            ),
        )
        self._add(graphs=1, outcomes=sum(verdicts.values()))
        if told["unreduced"]:
            self.db.execute(
                """INSERT OR IGNORE INTO unreduced_findings (number, shard, config, file)
                VALUES (?, ?, ?, ?)""",
                (told["index"], self.shard, told["config"], told["unreduced"]),
            )
            if told["key"]:
                self._again(told)

    def _again(self, told: dict[str, Any]) -> None:
        """One row for each graph that shows it."""
        self._settle(told["index"], "settled")
        self.db.execute(
            "INSERT OR IGNORE INTO sightings VALUES (?, ?, ?, ?, ?, ?)",
            (*self.place, told["index"], told["key"], told["config"], told["at"]),
        )

    def _settle(self, number: int, state: str) -> None:
        self.db.execute("UPDATE unreduced_findings SET state = ? WHERE number = ?", (state, number))

    def _found(self, told: dict[str, Any]) -> None:
        self._finding(told, Sort.FORBIDDEN)
        self._again(told)

    def _unsound(self, told: dict[str, Any]) -> None:
        self._finding(told | {"model": ""}, Sort.UNSOUND)
        self._again(told | {"index": None})

    def _finding(self, told: dict[str, Any], sort: Sort) -> None:
        """Keep the first of its key, and its file under a name that no other has."""
        known = self.store.rows("SELECT 1 FROM findings WHERE key = ?", told["key"])
        if known:
            return
        stem, number = Path(told["file"]).stem, 1
        file = f"findings/{stem}.yaml"
        while self.store.rows("SELECT 1 FROM findings WHERE file = ?", file):
            number += 1
            file = f"findings/{stem}-{number}.yaml"
        self.store.copy(self.folder / told["file"], file)
        ((executor,),) = self.store.rows("SELECT executor FROM shards WHERE number = ?", self.shard)
        self.db.execute(
            "INSERT INTO findings VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *(told["key"], sort, executor, told["executor_class"]),
                *(told["config"], told["model"], file, json.dumps(told | {"shard": self.shard})),
            ),
        )

    def _script(self, told: dict[str, Any]) -> None:
        """Of a finding that this shard was the first to show."""
        ((file, first),) = self.store.rows(
            "SELECT file, told FROM findings WHERE key = ?", told["key"]
        )
        first = json.loads(first)
        source = self.folder / told["file"]
        if (first["shard"], first["file"]) == (self.shard, told["file"]):
            self.store.copy(source.with_suffix(".py"), str(Path(file).with_suffix(".py")))
            self.store.copy(source, file)

    def _unconfirmed(self, told: dict[str, Any]) -> None:
        self._settle(told["index"], "unconfirmed")

    def _death(self, told: dict[str, Any]) -> None:
        source = Path(told["file"])
        file = f"{source.parent}/{self.shard}-{source.name}"
        self.store.copy(self.folder / source, file)
        self.db.execute(
            "INSERT INTO deaths VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *self.place,
                *(told[name] for name in ("sort", "config", "executor_class", "message")),
                *(file, json.dumps(told["ops"]), told["at"]),
            ),
        )

    def _canary(self, told: dict[str, Any]) -> None:
        self._add(canary_runs=1, canary_reported=int(told["reported"]))

    def _kill(self, told: dict[str, Any]) -> None:
        names = ("mutant", "executor", "seconds", "graphs", "by", "strategy")
        self.db.execute(
            "INSERT OR REPLACE INTO kills VALUES (?, ?, ?, ?, ?, ?)",
            tuple(told[name] for name in names),
        )

    def _end(self, told: dict[str, Any]) -> None:
        self.db.execute(
            "UPDATE shards SET problem = ?, restarts = ?, seconds = ? WHERE number = ?",
            (told["problem"], told["restarts"], told["seconds"], self.shard),
        )
