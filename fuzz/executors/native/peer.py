"""The second of the two processes that execute one test.

Run as ``python -m litmusfuzz.fuzz.executors.native.peer SOCKET``.

The process serves the first one by the socket whose descriptor it was given, one test after
another, until the connection or its standard input ends.
"""

from __future__ import annotations

import os
import sys
import threading
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

import msgspec

from litmusfuzz.corpus.textfile import loads
from litmusfuzz.fuzz.engines.settings import EngineSettings
from litmusfuzz.fuzz.executors.native import _executor
from litmusfuzz.fuzz.executors.native.lowering import lower
from litmusfuzz.fuzz.executors.native.running_engine import RunningEngine
from litmusfuzz.fuzz.executors.native.transport import Messages, Sender, Tag, deliver
from litmusfuzz.fuzz.executors.protocol import Refused

if TYPE_CHECKING:
    from litmusfuzz.fuzz.executors.native.lowering import Program


class LoadRequest(msgspec.Struct, frozen=True):
    """Request to load a test, with its execution settings."""

    test: str
    devices: list[str]
    engine: str
    threads: int
    copies: int


def lowered(request: LoadRequest, part: int) -> Program:
    """Lower the partition of a test that process number `part` executes.

    Raises
    ------
    Refused
        If the test cannot be partitioned.
    """
    return lower(loads(request.test).test, split_updates=True, devices=request.devices, part=part)


class Partition:
    """One of the two partitions of a test, loaded, with its engines."""

    def __init__(self, request: LoadRequest, part: int) -> None:
        program = lowered(request, part)
        core = _executor.load(program)  # the runner keeps it
        settings = EngineSettings(request.engine, request.threads, split=True)
        self._engines = [RunningEngine(settings) for _ in range(program.devices)]
        engines = [engine.core for engine in self._engines]
        self.runner = _executor.PartitionRunner(core, engines, request.copies, part == 0)


def serve(messages: Messages) -> None:
    """Serve the requests of the first process until the connection ends."""
    partition: Partition | None = None
    sender: Sender | None = None
    while (message := messages.receive()) is not None:
        tag, data = message
        if tag is Tag.LOAD:
            if sender is not None:
                sender.close()
                partition = sender = None
            refusal = ""
            try:
                partition = Partition(msgspec.msgpack.decode(data, type=LoadRequest), 1)
                sender = Sender(partition.runner, messages)
            except Refused as refused:
                refusal = str(refused)
            messages.send(Tag.LOAD, refusal.encode())
            continue
        assert partition is not None
        if tag is Tag.ROWS:
            messages.send(Tag.ROWS, msgspec.msgpack.encode(partition.runner.rows()))
        else:
            deliver(partition.runner, tag, data)


def _end_with_input(stream: Any) -> None:
    """End this process when its standard input ends, since its parent is gone then."""

    def watch() -> None:
        stream.read()
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()


def main() -> None:
    """Serve the process that has started this one, and exit."""
    _end_with_input(sys.stdin.buffer)
    messages = Messages(Connection(int(sys.argv[1])))
    messages.send(Tag.READY)
    serve(messages)
    # At once, without waiting for other threads: the first process is gone.
    os._exit(0)


if __name__ == "__main__":
    main()
