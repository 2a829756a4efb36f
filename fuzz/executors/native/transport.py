"""What carries parcels from one process to the other: TCP on the loopback.

`multiprocessing.connection` frames messages, keeps their order, tells a lost
peer by `EOFError`, and lets nobody in who does not have the key. Nothing is
pickled.

Each side has a `Carrier`, a thread that takes from its station and sends; what
arrives is read by a thread of the first side, and by the main thread of the
second (`litmusfuzz.fuzz.executors.native.peer`).
"""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import suppress
from enum import Enum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from litmusfuzz.fuzz.executors.native._executor import Station

HOST: Final = "127.0.0.1"
KEY_BYTES: Final = 32
_SETTING: Final = struct.Struct("<QI")
_NUMBER: Final = struct.Struct("<Q")


class Tag(Enum):
    """The first byte of a message: what the rest is."""

    LOAD = b"L"
    """A test, as a file; a station is made. Answered with a refusal, "" for none."""

    BEGIN = b"B"
    """A setting."""

    PARCEL = b"P"
    IDLE = b"I"
    """How many settings and parcels have arrived."""

    ROWS = b"R"
    """Answered with what each copy showed."""


class Messages:
    """A connection on which several threads may send, and one receives."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        # Small messages one after another: without this, each waits for the
        # acknowledgement of the one before it.
        with socket.socket(fileno=socket.dup(connection.fileno())) as same:
            same.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, tag: Tag, data: bytes = b"") -> None:
        """Send a message; one that nobody can receive any more is dropped."""
        with self._lock, suppress(OSError):  # who receives finds out
            self._connection.send_bytes(tag.value + data)

    def receive(self) -> tuple[Tag, bytes] | None:
        """The next message; None when the other side is gone."""
        try:
            message = self._connection.recv_bytes()
        except (EOFError, OSError):
            return None
        return Tag(message[:1]), message[1:]


class Carrier:
    """Sends what a station hands out, on a thread of its own, until it is closed."""

    def __init__(self, station: Station, messages: Messages) -> None:
        self._station = station
        self._messages = messages
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Close the station, and wait for the thread."""
        self._station.close()
        self._thread.join()

    def _work(self) -> None:
        while (outgoing := self._station.take()) is not None:
            if isinstance(outgoing, tuple):
                self._messages.send(Tag.BEGIN, _SETTING.pack(*outgoing))
            elif isinstance(outgoing, bytes):
                self._messages.send(Tag.PARCEL, outgoing)
            else:
                self._messages.send(Tag.IDLE, _NUMBER.pack(outgoing))


def arrive(station: Station, tag: Tag, data: bytes) -> None:
    """Give a station what the other one's carrier sent."""
    if tag is Tag.BEGIN:
        station.begin(*_SETTING.unpack(data))
    elif tag is Tag.PARCEL:
        station.deliver(data)
    else:
        assert tag is Tag.IDLE
        station.peer_idle(*_NUMBER.unpack(data))
