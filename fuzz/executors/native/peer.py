"""The second process of a test that two processes execute.

Run as ``python -m litmusfuzz.fuzz.executors.native.peer``.

It reads a key from its standard input, writes the port on which it listens to
its standard output, and serves the one that comes with the key: one test after
another, until the connection or the input ends.
"""

from __future__ import annotations

import os
import sys
import threading
from multiprocessing.connection import Listener
from typing import TYPE_CHECKING, Any

import msgspec

from litmusfuzz.corpus.textfile import loads
from litmusfuzz.fuzz.engines.settings import EngineSettings
from litmusfuzz.fuzz.executors.native import _executor
from litmusfuzz.fuzz.executors.native.lowering import lower
from litmusfuzz.fuzz.executors.native.running import RunningEngine
from litmusfuzz.fuzz.executors.native.transport import (
    HOST,
    KEY_BYTES,
    Carrier,
    Messages,
    Tag,
    arrive,
)
from litmusfuzz.fuzz.executors.protocol import Refused

if TYPE_CHECKING:
    from litmusfuzz.fuzz.executors.native.lowering import Program


class Load(msgspec.Struct, frozen=True):
    """A test, and how it is executed."""

    test: str
    devices: list[str]
    engine: str
    threads: int
    copies: int


def lowered(load: Load, part: int) -> Program:
    """The part of the test that a process executes.

    Raises
    ------
    Refused
        If the test cannot be taken apart.
    """
    return lower(loads(load.test).test, split_updates=True, devices=load.devices, part=part)


class Half:
    """One of the two parts of a test, loaded."""

    def __init__(self, load: Load, part: int) -> None:
        program = lowered(load, part)
        core = _executor.load(program)  # the station keeps it
        settings = EngineSettings(load.engine, load.threads, split=True)
        self._engines = [RunningEngine(settings) for _ in range(program.devices)]
        engines = [engine.core for engine in self._engines]
        self.station = _executor.Station(core, engines, load.copies, part == 0)


def serve(messages: Messages) -> None:
    """Do what the first process asks, until it is gone."""
    half: Half | None = None
    carrier: Carrier | None = None
    while (message := messages.receive()) is not None:
        tag, data = message
        if tag is Tag.LOAD:
            if carrier is not None:
                carrier.close()
                half = carrier = None
            refusal = ""
            try:
                half = Half(msgspec.msgpack.decode(data, type=Load), 1)
                carrier = Carrier(half.station, messages)
            except Refused as refused:
                refusal = str(refused)
            messages.send(Tag.LOAD, refusal.encode())
            continue
        assert half is not None
        if tag is Tag.ROWS:
            messages.send(Tag.ROWS, msgspec.msgpack.encode(half.station.rows()))
        else:
            arrive(half.station, tag, data)


def _end_with_input(stream: Any) -> None:
    """End this process when whoever started it is gone, whatever it is doing."""

    def watch() -> None:
        stream.read()
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()


def main() -> None:
    """Listen, serve one, end."""
    key = sys.stdin.buffer.read(KEY_BYTES)
    _end_with_input(sys.stdin.buffer)
    with Listener((HOST, 0), authkey=key) as listener:
        _, port = listener.address
        sys.stdout.write(f"{port}\n")
        sys.stdout.flush()
        connection = listener.accept()
    serve(Messages(connection))
    # Not by an exception, nor by threads that end in their turn: nobody is there.
    os._exit(0)


if __name__ == "__main__":
    main()
