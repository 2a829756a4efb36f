"""Starts and stops TensorFlow's gRPC worker processes on this machine."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
import threading
import time
from typing import Final

from litmusfuzz.fuzz.executors.protocol import Unavailable

_START_S: Final = 120.0
"""Until all workers accept sessions; each imports TensorFlow first."""
_TRIES: Final = 3
"""Attempts to start: another process may take a port after it was found free."""


class Workers:
    """gRPC workers, which run until they are closed or this process ends.

    If a worker exits by itself, this process exits too. Otherwise a session would wait
    for the worker for ever, and a crash would be reported as a hang.

    Parameters
    ----------
    count : int
    threads : int
        Inter-op threads of each worker.

    Attributes
    ----------
    target : str
        Address that a session connects to.

    Raises
    ------
    Unavailable
        If the workers do not start.
    """

    def __init__(self, count: int, threads: int) -> None:
        self._tasks: list[subprocess.Popen[bytes]] = []
        for _ in range(_TRIES):
            addresses = _free(count)
            self.target = f"grpc://{addresses[0]}"
            self._tasks = [_start(number, threads, addresses) for number in range(count)]
            deadline = time.monotonic() + _START_S
            if all(_serves(task, deadline) for task in self._tasks):
                for task in self._tasks:
                    threading.Thread(target=self._watch, args=(task,), daemon=True).start()
                return
            self.close()
        raise Unavailable("TensorFlow's workers do not start: no free ports on 127.0.0.1?")

    def close(self) -> None:
        """Kill all workers."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.kill()
            task.wait()
            for pipe in (task.stdin, task.stdout):
                assert pipe is not None
                pipe.close()

    def _watch(self, task: subprocess.Popen[bytes]) -> None:
        code = task.wait()
        if task in self._tasks:  # nobody closed it
            how = f"signal {-code}" if code < 0 else f"exit {code}"
            sys.stderr.write(f"a TensorFlow gRPC worker exited: {how}\n")
            sys.stderr.flush()
            os._exit(1)


def _free(count: int) -> list[str]:
    """Addresses with ports that are free at the moment."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    addresses = [f"127.0.0.1:{each.getsockname()[1]}" for each in sockets]
    for each in sockets:
        each.close()
    return addresses


def _start(number: int, threads: int, addresses: list[str]) -> subprocess.Popen[bytes]:
    # No other child inherits the pipe, so that it closes when this process ends.
    arguments = [str(number), str(threads), *addresses]
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "litmusfuzz.fuzz.executors.tensorflow.task", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )


def _serves(task: subprocess.Popen[bytes], deadline: float) -> bool:
    """True once the worker accepts sessions; false if it exits or is too late."""
    assert task.stdout is not None
    ready, _, _ = select.select([task.stdout], [], [], max(0.0, deadline - time.monotonic()))
    return bool(ready) and task.stdout.read() == b"serving"
