"""The shard log: events of one shard as lines of a file, readable while the shard runs.

A line is one write, and a file that an event names is complete before the line is written. So
every complete line is valid and its file exists; at most the last line is incomplete. Whatever
process is killed, only the test in progress is lost.
"""

from __future__ import annotations

import fcntl
from typing import IO, TYPE_CHECKING, Final, Self

from litmusfuzz.reports.events import encode

if TYPE_CHECKING:
    from pathlib import Path

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
        self._lock = (folder / _LOCK).open("wb")
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        # Unbuffered, so that a line is one write.
        self._file = (folder / EVENTS).open("ab", buffering=0)

    @property
    def stop_requested(self) -> bool:
        """True if the coordinator wants the shard to end."""
        return (self.folder / STOP).exists()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._lock.close()

    def write(self, event: Event) -> None:
        """Append an event."""
        data = memoryview(encode(event) + b"\n")
        while data:  # a full disk raises, a signal may cut it short
            data = data[self._file.write(data) :]


def request_stop(folder: Path) -> None:
    """Ask the shard of a folder to end; it may not have started yet."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / STOP).touch()


def is_writing(folder: Path) -> bool:
    """True if the process that writes a shard log on this machine is still alive."""
    try:
        lock: IO[bytes] = (folder / _LOCK).open("rb")
    except FileNotFoundError:
        return False
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
