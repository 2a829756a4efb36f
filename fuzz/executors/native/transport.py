"""Messages between the two processes of one test, over a pair of connected sockets.

`multiprocessing.connection` frames messages, keeps their order, and reports a lost peer
by `EOFError`. Nothing is pickled. Nothing listens: the second process inherits its socket.

Each process has a `Sender`, a thread that sends the messages of its partition runner.
A thread of the first process receives messages, and the main thread of the second
(`litmusfuzz.fuzz.executors.native.peer`).
"""

from __future__ import annotations

import struct
import threading
from contextlib import suppress
from enum import Enum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from litmusfuzz.fuzz.executors.native._executor import PartitionRunner

_SETTINGS: Final = struct.Struct("<QI")
_NUMBER: Final = struct.Struct("<Q")


class Tag(Enum):
    """Kind of a message: its first byte."""

    READY = b"S"
    """The second process has started."""

    LOAD = b"L"
    """A `LoadRequest`. The answer is a refusal, or "" for success."""

    BEGIN = b"B"
    """Settings of an execution, which begins it."""

    VALUES = b"P"
    IDLE = b"I"
    """Number of settings and messages received."""

    ROWS = b"R"
    """Request for the outcome of each copy."""


class Messages:
    """A connection on which several threads send and one thread receives."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()

    def send(self, tag: Tag, data: bytes = b"") -> None:
        """Send a message; drop it if the connection is lost."""
        with self._lock, suppress(OSError):  # the receiving thread reports the loss
            self._connection.send_bytes(tag.value + data)

    def receive(self) -> tuple[Tag, bytes] | None:
        """Return the next message; None when the connection is lost."""
        try:
            message = self._connection.recv_bytes()
        except (EOFError, OSError):
            return None
        return Tag(message[:1]), message[1:]


class Sender:
    """Thread that sends the messages of a partition runner until it is closed."""

    def __init__(self, runner: PartitionRunner, messages: Messages) -> None:
        self._runner = runner
        self._messages = messages
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Close the runner and wait for the thread."""
        self._runner.close()
        self._thread.join()

    def _work(self) -> None:
        while (outgoing := self._runner.take()) is not None:
            if isinstance(outgoing, tuple):
                self._messages.send(Tag.BEGIN, _SETTINGS.pack(*outgoing))
            elif isinstance(outgoing, bytes):
                self._messages.send(Tag.VALUES, outgoing)
            else:
                self._messages.send(Tag.IDLE, _NUMBER.pack(outgoing))


def deliver(runner: PartitionRunner, tag: Tag, data: bytes) -> None:
    """Pass a message from the other process to a runner."""
    if tag is Tag.BEGIN:
        runner.begin(*_SETTINGS.unpack(data))
    elif tag is Tag.VALUES:
        runner.deliver(data)
    else:
        assert tag is Tag.IDLE
        runner.peer_idle(*_NUMBER.unpack(data))
