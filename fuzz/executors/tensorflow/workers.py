"""TensorFlow's workers, in processes of their own, over gRPC on this machine."""

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
"""For all of them to serve: each imports TensorFlow."""
_TRIES: Final = 3
"""Another process may take a port between our finding it free and our using it."""


class Workers:
    """Processes that serve until they are closed, or this process ends.

    And the other way round: if one of them ends by itself, so does this process. A
    session would wait for it for ever, and a crash be taken for a hang.

    Parameters
    ----------
    count : int
    threads : int
        Of each one's pool for ops.

    Attributes
    ----------
    target : str
        What a session is connected to.

    Raises
    ------
    Unavailable
        If they do not come to serve.
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
        """End them."""
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
            sys.stderr.write(f"a worker of TensorFlow has ended: {how}\n")
            sys.stderr.flush()
            os._exit(1)


def _free(count: int) -> list[str]:
    """Addresses that nobody listens at."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    addresses = [f"127.0.0.1:{each.getsockname()[1]}" for each in sockets]
    for each in sockets:
        each.close()
    return addresses


def _start(number: int, threads: int, addresses: list[str]) -> subprocess.Popen[bytes]:
    # Other children do not inherit the pipes, so that the input ends with this process.
    arguments = [str(number), str(threads), *addresses]
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "litmusfuzz.fuzz.executors.tensorflow.task", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )


def _serves(task: subprocess.Popen[bytes], deadline: float) -> bool:
    """Whether it does, in time; not if it has ended."""
    assert task.stdout is not None
    ready, _, _ = select.select([task.stdout], [], [], max(0.0, deadline - time.monotonic()))
    return bool(ready) and task.stdout.read() == b"serving"
