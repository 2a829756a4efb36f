"""The folder of a campaign: who may write there, what may stand there, and its files."""

from __future__ import annotations

import fcntl
import os
import re
import stat
from contextlib import suppress
from itertools import chain
from typing import IO, TYPE_CHECKING, Final

from litmusfuzz.corpus.document import open_at_once
from litmusfuzz.corpus.ops import MAX_MESSAGE
from litmusfuzz.corpus.textfile import write_text
from litmusfuzz.fuzz.store.shard_log import EVENTS, open_lock, remove_log
from litmusfuzz.reports.events import VERSION
from litmusfuzz.reports.outputs import FILES

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

DATABASE: Final = "campaign.sqlite"
_TEMPORARY: Final = re.compile(rf"\.({'|'.join(map(re.escape, FILES))}|.+\.yaml|.+\.py)\.\d+\.tmp")
"""A file that a killed process has written in part (`corpus.textfile.write_text`)."""
_ROLLBACK_MAGIC: Final = bytes.fromhex("d9d505f920a163d7")
DELETABLE: Final = ("unreduced", "unconfirmed", "crashed", "timed-out")
"""Folders of files that the campaign's seed, or its findings, can replace."""


class StoreError(ValueError):
    """A folder without campaign, of another version, damaged, or in use; one line."""

    def __init__(self, message: str) -> None:
        # What a damaged event holds may be long.
        super().__init__(" ".join(message.split())[:MAX_MESSAGE])


class CampaignFolder:
    """A campaign's folder, locked for the process that runs the campaign; see `Store`."""

    def __init__(self, folder: Path, *, write: bool) -> None:
        self.folder = folder
        self.path = folder / DATABASE
        self._lock: IO[bytes] | None = None
        self._directory: int | None = None
        self._database: tuple[int, int] | None = None
        """What tells the database that is open from another one in its place."""
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

    def release(self) -> None:
        """Let another process write here."""
        self._close_directory()
        if self._lock is not None:
            self._lock.close()

    @property
    def is_gone(self) -> bool:
        """True if the database was removed or renamed since it was opened."""
        return self._database != _identity(self.path)

    @property
    def is_replaced(self) -> bool:
        """True if another database has taken its place."""
        return self.is_gone and _identity(self.path) is not None

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

    def _note_database(self) -> None:
        """Note which file the database is that was opened."""
        self._database = _identity(self.path)

    # --- files of shards ---------------------------------------------------------------

    def log_folder(self, number: int) -> Path:
        """Folder of a shard's log."""
        return self.folder / "shards" / str(number)

    def add_files(self, number: int, files: Mapping[str, str]) -> None:
        """Add the files of a shard from another machine; the events last, as on that machine."""
        for name in sorted(files, key=lambda name: name == EVENTS):
            path = (self.log_folder(number) if name == EVENTS else self.folder) / name
            if name != EVENTS and not is_campaign_file(name):
                raise StoreError(f"{self.folder}: shard {number} sends a file {name!r:.80}")
            write_text(files[name], path)

    def remove_unnamed(self, named: Collection[str], since: float = 0.0) -> None:
        """Remove what killed processes have left: logs of shards, and files that no event names.

        Parameters
        ----------
        named : collection of str
            Files that events name.
        since : float
            When the first of the killed processes started. Older files that no event names are
            somebody's own, and stay.
        """
        for folder in (self.folder / "shards").glob("*"):
            if re.fullmatch(r"[1-9]\d{0,9}", folder.name, re.ASCII):
                remove_log(folder)
        for name in ("findings", *DELETABLE):
            for path in (self.folder / name).glob("*"):
                file = f"{name}/{path.name}"
                ours = is_campaign_file(file) or _TEMPORARY.fullmatch(path.name)
                if ours and file not in named and path.is_file() and path.stat().st_mtime >= since:
                    path.unlink()
        for path in self.folder.glob(".*.tmp"):
            if _TEMPORARY.fullmatch(path.name) and path.is_file():
                path.unlink()

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


def is_campaign_file(file: str) -> bool:
    """True for the name of a litmus file, a script or a log in one of a campaign's folders.

    Directly in it, or beside the folders.

    A campaign reads, writes and runs files of such names. Others could be anywhere.
    """
    *folders, name = file.split("/")
    inside = not folders or (len(folders) == 1 and folders[0] in ("findings", *DELETABLE))
    suffix = name.endswith((".yaml", ".py", ".txt"))
    return inside and suffix and not name.startswith(".") and name.isprintable()


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
