"""Starts and stops TensorFlow gRPC servers on this machine.

A configuration spreads the devices of a graph over them: `two_workers` needs two.
"""

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
"""Time limit until all servers accept sessions; each must first import TensorFlow."""
_TRIES: Final = 3
"""Number of attempts: another process may take a port between the check and its use."""


class GrpcServers:
    """gRPC servers, which run until they are closed or this process ends.

    If a server exits by itself, this process exits too. Otherwise a session would wait
    for the server for ever, and a crash would be reported as a hang.

    Parameters
    ----------
    count : int
    threads : int
        Inter-op threads of each server.

    Attributes
    ----------
    target : str
        Address that a session connects to.

    Raises
    ------
    Unavailable
        If the servers do not start.
    """

    def __init__(self, count: int, threads: int) -> None:
        self._servers: list[subprocess.Popen[bytes]] = []
        for _ in range(_TRIES):
            addresses = _free(count)
            self.target = f"grpc://{addresses[0]}"
            self._servers = [_start(number, threads, addresses) for number in range(count)]
            deadline = time.monotonic() + _START_S
            if all(_serves(server, deadline) for server in self._servers):
                for server in self._servers:
                    threading.Thread(target=self._watch, args=(server,), daemon=True).start()
                return
            self.close()
        raise Unavailable("TensorFlow's gRPC servers do not start: no free ports on 127.0.0.1?")

    def close(self) -> None:
        """Kill all servers."""
        servers, self._servers = self._servers, []
        for server in servers:
            server.kill()
            server.wait()
            for pipe in (server.stdin, server.stdout):
                assert pipe is not None
                pipe.close()

    def _watch(self, server: subprocess.Popen[bytes]) -> None:
        code = server.wait()
        if server in self._servers:  # nobody closed it
            how = f"signal {-code}" if code < 0 else f"exit {code}"
            sys.stderr.write(f"a TensorFlow gRPC server exited: {how}\n")
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
        [
            sys.executable,
            "-P",
            "-m",
            "litmusfuzz.fuzz.executors.tensorflow.grpc_server_main",
            *arguments,
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )


def _serves(server: subprocess.Popen[bytes], deadline: float) -> bool:
    """True once the server accepts sessions; False if it exits or does not start in time."""
    assert server.stdout is not None
    ready, _, _ = select.select([server.stdout], [], [], max(0.0, deadline - time.monotonic()))
    return bool(ready) and server.stdout.read() == b"serving"
