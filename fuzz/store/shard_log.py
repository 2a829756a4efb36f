"""The shard log: events of one shard as lines of a file, readable while the shard runs.

Lines are written whole, one or more at once, and a file that an event names is complete before its
line is written. So every complete line is valid and its file exists; at most the last line is
incomplete. Whatever process is killed, only the tests in progress are lost, and those that were
generated and that no worker had taken (`fuzz.campaign.event_log`).

The process that writes a log holds a lock on a file beside it. It is known by that lock, and never
by an ID that some record names: any process may have that by now.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, Self

from litmusfuzz.corpus.document import open_at_once
from litmusfuzz.fuzz.executors.process_tree import kill_if, processes
from litmusfuzz.reports.events import encode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from litmusfuzz.reports.events import Event

EVENTS: Final = "events.jsonl"
STOP: Final = "stop"
_LOCK: Final = "lock"


class ShardLog:
    """Writes the events of one shard.

    Parameters
    ----------
    folder : Path
        The shard's own folder; it is made here, and locked while this process lives.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = open_lock(folder / _LOCK)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        # Unbuffered, so that what is appended at once is one write.
        self._file = open_at_once(folder / EVENTS, "ab", buffering=0, links=False)

    @property
    def stop_requested(self) -> bool:
        """True if the coordinator wants the shard to end."""
        return (self.folder / STOP).exists()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._lock.close()

    def write(self, added: Sequence[Event]) -> None:
        """Append events."""
        data = memoryview(b"".join(encode(event) + b"\n" for event in added))
        while data:  # a full disk raises, a signal may cut it short
            data = data[self._file.write(data) :]


def open_lock(path: Path) -> IO[bytes]:
    """Open a file to lock it, and make it if there is none; nothing is written, no link followed.

    Raises
    ------
    OSError
        If it is a link, for example.
    """
    return open_at_once(path, "ab", links=False)


class LineTooLong(Exception):
    """A line of a shard log that no program of ours writes; one line."""


def lines_after(folder: Path, position: int, at_once: int, most: int) -> list[bytes]:
    """Complete lines of a shard log from a position on: about `at_once` bytes; none without a log.

    Raises
    ------
    LineTooLong
        If a line has more than `most` bytes.
    OSError
        If it is not a file, or cannot be read.
    """
    path = folder / EVENTS
    try:
        with open_at_once(path, "rb") as file:
            file.seek(position)
            data = file.read(at_once)
            while b"\n" not in data and (more := file.read(at_once)):
                data += more
                if len(data) > most:
                    raise LineTooLong(f"{path}: has a line of more than {most} bytes")
    except FileNotFoundError:
        return []
    return data[: data.rfind(b"\n") + 1].splitlines(keepends=True)


def remove_log(folder: Path) -> None:
    """Remove a shard's log; a folder that holds anything else stays, with that."""
    with suppress(OSError):
        for name in (EVENTS, STOP, _LOCK):
            (folder / name).unlink(missing_ok=True)
        folder.rmdir()


def request_stop(folder: Path) -> None:
    """Ask the shard of a folder to end; it may not have started yet."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / STOP).touch()


def is_writing(folder: Path) -> bool:
    """True if the process that writes a shard log on this machine is still alive."""
    try:
        lock = open_at_once(folder / _LOCK, "rb", links=False)
    except FileNotFoundError:
        return False
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def kill_writer(folder: Path) -> bool:
    """Kill the process that writes a shard log, if it runs on this machine; true if one was found.

    Processes that only have the lock's file open are left alone.
    """
    lock = folder / _LOCK
    found = [pid for pid in processes() if pid != os.getpid() and _holds(lock, pid)]
    killed = [kill_if(pid, partial(_holds, lock, pid)) for pid in found]
    return any(killed)


def _holds(lock: Path, pid: int) -> bool:
    """True if a process holds the lock on a file."""
    with suppress(OSError):
        wanted = lock.lstat()  # what a link leads to is held by others
        if wanted.st_nlink != 1:  # and so may be what has another name
            return False
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):  # closed by now
                if os.path.samestat(link.stat(), wanted):
                    about = Path(f"/proc/{pid}/fdinfo/{link.name}").read_text(encoding="ascii")
                    if "FLOCK" in about:
                        return True
    return False
