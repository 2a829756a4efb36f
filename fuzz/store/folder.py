"""The folder of a campaign: who may write there, what may stand there, and its files."""

from __future__ import annotations

import fcntl
import os
import re
import stat
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Final

from litmusfuzz.corpus.document import open_at_once
from litmusfuzz.corpus.tensors import MAX_MESSAGE
from litmusfuzz.corpus.textfile import write_text
from litmusfuzz.fuzz.store.shard_log import EVENTS, open_lock, remove_log
from litmusfuzz.reports.events import VERSION
from litmusfuzz.reports.outputs import FILES

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

DATABASE: Final = "campaign.sqlite"
DELETABLE: Final = ("unreduced", "unconfirmed", "crashed", "timed-out")
"""Folders of files that the campaign's seed, or its findings, can replace."""
_FOLDERS: Final = ("findings", *DELETABLE)
"""All folders of litmus files, scripts and logs of processes."""
_SHARDS: Final = "shards"
"""The folder of shard logs, a folder for each shard."""
_OUTPUT_IN_PART: Final = re.compile(rf"\.({'|'.join(map(re.escape, FILES))})\.\d+\.tmp")
"""A report that a killed process has written in part (`corpus.textfile.write_text`)."""
_FILE_IN_PART: Final = re.compile(r"\..+\.(yaml|py)\.\d+\.tmp")
"""The same of a litmus file or script."""
_ROLLBACK_MAGIC: Final = bytes.fromhex("d9d505f920a163d7")
"""First bytes of the file by which SQLite rolls back, and its last ones if it names another file
(SQLite, ``pager.c``)."""
_BLOCK_BYTES: Final = 512
"""The unit of `st_blocks`."""
_SHRUNK: Final = 0.9
"""Part of the allowed size that is left by `CampaignFolder.shrink`, so that it has nothing to do
again for a while."""


class StoreError(ValueError):
    """A folder without campaign, of another version, damaged, or in use; one line."""

    def __init__(self, message: str) -> None:
        # What a damaged event holds may be long.
        super().__init__(" ".join(message.split())[:MAX_MESSAGE])


class CampaignFolder:
    """A campaign's folder, locked for the process that runs the campaign.

    The base of `Store`, which opens the database there and then calls `_note_database`; before
    that, `is_gone` means nothing. `_open_directory` is called again when a folder that was removed
    is made anew.

    The folder may come from a stranger: it is refused if a file in it could make the campaign write
    or delete elsewhere. It is checked before it is locked, since already the file to lock may be a
    link. Nothing guards against a process that changes the folder at the same time: that process
    could write elsewhere itself.
    """

    def __init__(self, folder: Path, *, write: bool) -> None:
        self.folder = folder
        self.path = folder / DATABASE
        self._lock: IO[bytes] | None = None
        self._directory: int | None = None
        self._database: tuple[int, int] | None = None
        """What tells the database that is open from another one in its place."""
        _refuse_old(folder)
        _refuse_elsewhere(folder, write=write)
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
            try:
                self._open_directory()
            except OSError:
                self._lock.close()
                raise

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
        """Note which file is the database that has just been opened."""
        self._database = _identity(self.path)

    # --- files of shards ---------------------------------------------------------------

    def log_folder(self, shard: int) -> Path:
        """Folder of a shard's log, by the shard's number."""
        return self.folder / _SHARDS / str(shard)

    def add_files(self, shard: int, files: Mapping[str, str]) -> None:
        """Add the files of a shard from another machine, by their names in a campaign's folder.

        The events are written last: no event may name a file that is not there yet.

        Raises
        ------
        StoreError
            If a file would not lie in the folder; then none is written.
        """
        for name in files:
            if name != EVENTS and not is_campaign_file(name):
                raise StoreError(f"{self.folder}: shard {shard} sends a file {name!r:.80}")
        for name in sorted(files, key=lambda name: name == EVENTS):
            folder = self.log_folder(shard) if name == EVENTS else self.folder
            write_text(files[name], folder / name)

    def remove_unnamed(self, named: Collection[str], since: float = 0.0) -> None:
        """Remove what killed processes have left, while no shard runs.

        All logs of shards are removed, and all reports that were written in part: nobody else
        writes files of such names. Of the others, which a user may have added, those that no event
        names and that are no older than the killed processes.

        Parameters
        ----------
        named : collection of str
            Files that events name.
        since : float
            When the first of the killed processes started.
        """
        for folder in (self.folder / _SHARDS).glob("*"):
            if re.fullmatch(r"[1-9]\d{0,9}", folder.name, re.ASCII):
                remove_log(folder)
        for name in _FOLDERS:
            for path in (self.folder / name).glob("*"):
                file = f"{name}/{path.name}"
                ours = is_campaign_file(file) or _FILE_IN_PART.fullmatch(path.name)
                if ours and file not in named and _is_file_since(path, since):
                    path.unlink()
        for path in self.folder.glob(".*.tmp"):
            if _OUTPUT_IN_PART.fullmatch(path.name):
                if path.is_file():
                    path.unlink()
            elif _FILE_IN_PART.fullmatch(path.name) and _is_file_since(path, since):
                path.unlink()

    # --- disk --------------------------------------------------------------------------

    def disk_bytes(self) -> int:
        """Size of the folder on disk."""
        total = 0
        for root, _, files in os.walk(self.folder):
            for name in files:
                try:
                    total += os.lstat(os.path.join(root, name)).st_blocks * _BLOCK_BYTES
                except FileNotFoundError:
                    continue
        return total

    def shrink(self, most: int, kept: Collection[str]) -> int:
        """Delete files that can be replaced if the folder has more than `most` bytes.

        Deletes unreduced and unconfirmed tests, and tests of worker deaths, oldest first, except
        those in `kept`, until a tenth of `most` is free. Findings and events stay.

        Returns
        -------
        int
            Size of the folder afterwards. It is above `most` if too little could be deleted.
        """
        size = self.disk_bytes()
        if size <= most:
            return size
        files = [path for folder in DELETABLE for path in (self.folder / folder).glob("*.yaml")]
        for path in sorted(files, key=lambda path: path.stat().st_mtime):
            if f"{path.parent.name}/{path.name}" not in kept:
                for file in (path, path.with_suffix(".txt")):  # the log of the process
                    if file.is_file():
                        size -= file.stat().st_blocks * _BLOCK_BYTES
                        file.unlink()
            if size <= _SHRUNK * most:
                break
        return size


def _identity(path: Path) -> tuple[int, int] | None:
    """What tells a file from another one of its name; None if there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _is_file_since(path: Path, since: float) -> bool:
    """True for a file that was last written at that time, or later."""
    return path.is_file() and path.stat().st_mtime >= since


def is_campaign_file(file: str) -> bool:
    """True for the name of a litmus file, script or log of a process in a campaign's folder.

    It is ``NAME`` or ``FOLDER/NAME``, where ``FOLDER`` is ``findings`` or one of `DELETABLE`. Names
    come from events and from other machines, and files of such names are read, written and run: any
    other name could lead out of the folder.
    """
    *folders, name = file.split("/")
    inside = not folders or (len(folders) == 1 and folders[0] in _FOLDERS)
    suffix = name.endswith((".yaml", ".py", ".txt"))
    return inside and suffix and not name.startswith(".") and name.isprintable()


# --- folders that are refused ----------------------------------------------------------


def _refuse_elsewhere(folder: Path, *, write: bool) -> None:
    """Raise if a campaign in the folder would write, delete, or wait elsewhere.

    For a reader only the files of the database are checked. It writes some of those: SQLite makes
    two beside the database.
    """
    database_files = [DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm", f"{DATABASE}-journal"]
    if not write:
        for name in database_files:
            _refuse_no_plain_file(folder / name, may_have_names=True)
        return
    for name in (_SHARDS, *_FOLDERS):
        _refuse_link(folder / name)
    for path in (folder / _SHARDS).glob("*"):
        _refuse_link(path)
    for name in (*database_files, "lock"):
        _refuse_no_plain_file(folder / name)
    # A shard's process locks and writes files in its folder, and is known by its lock.
    for path in (folder / _SHARDS).glob("*/*"):
        _refuse_link(path)
        if not path.is_dir():  # no file of a log: neither written nor removed
            _refuse_no_plain_file(path)


def _refuse_link(path: Path) -> None:
    """Raise if a path is a link: what it leads to would be written or emptied."""
    if path.is_symlink():
        raise _is_a_link(path)


def _is_a_link(path: Path) -> StoreError:
    return StoreError(f"{path}: is a link, which a campaign does not follow")


def _refuse_no_plain_file(path: Path, *, may_have_names: bool = False) -> None:
    """Raise if a path is anything but a file of its own, or nothing.

    A hard link is refused unless `may_have_names`: the file under its other name would be written.
    So is a pipe: who opens it waits for the process at its other end.
    """
    try:
        status = path.lstat()
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}") from None
    if stat.S_ISLNK(status.st_mode):
        raise _is_a_link(path)
    if not stat.S_ISREG(status.st_mode):
        raise StoreError(f"{path}: is not a file")
    if status.st_nlink > 1 and not may_have_names:
        raise StoreError(f"{path}: has another name as well (a hard link): copy the folder")


def _refuse_rollback(database: Path) -> None:
    """Raise if SQLite would delete another file when it opens a database.

    A rollback journal of a transaction over several databases names, at its end, a file that SQLite
    deletes. A store has no such transaction.
    """
    path = database.with_name(f"{database.name}-journal")
    with suppress(FileNotFoundError), open_at_once(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - len(_ROLLBACK_MAGIC)))
        if file.read() == _ROLLBACK_MAGIC:
            raise StoreError(f"{path}: is of a transaction over several databases")


def _refuse_old(folder: Path) -> None:
    """Raise if an earlier version of LitmusFuzz has left its campaign in the folder."""
    # Version 2 kept a campaign in these files; the database of each later one has its version.
    old = [*folder.glob("nightly.sqlite"), *folder.glob("record-*.json")]
    if old and not (folder / DATABASE).exists():
        raise StoreError(
            f"{folder}: has {old[0].name}: is version 2 of a campaign, this program reads version"
            f" {VERSION}: begin a campaign in another folder"
        )


def has_writer(folder: Path) -> bool:
    """True if a process on this machine, or one that shares its locks, writes the campaign.

    The question takes the lock for an instant, shared with others that ask. A campaign that starts
    in that instant is refused as if the folder had a writer.
    """
    try:
        with open_at_once(folder / "lock", "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
