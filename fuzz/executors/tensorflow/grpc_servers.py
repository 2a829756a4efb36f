"""Starts and stops TensorFlow gRPC servers on this machine.

They listen on all interfaces, without authentication: their worker has a network of its own
(`litmusfuzz.fuzz.executors.network`). A configuration spreads the devices of a graph over them:
`two_workers` needs two.

A process has at most one set of servers, made before its first session: the configuration has
an environment, and so a worker process, of its own. There they are forked, which takes
milliseconds. A process with several threads spawns them instead.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from functools import cache
from typing import Final, NoReturn, Protocol

from litmusfuzz.fuzz.executors import network
from litmusfuzz.fuzz.executors.process_tree import die_with, thread_names
from litmusfuzz.fuzz.executors.protocol import Unavailable

_START_S: Final = 120.0
"""Time limit until all servers accept sessions; a spawned one must first import TensorFlow."""
_TRIES: Final = 3
"""Number of attempts: another process may take a port between the check and its use."""


@cache
def grpc_servers(count: int, threads: int) -> GrpcServers:
    """The servers of this process, started with the first call."""
    return GrpcServers(count, threads)


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
        If the servers do not start, or others could connect to them.
    """

    def __init__(self, count: int, threads: int) -> None:
        network.require()
        self._servers: list[_Server] = []
        for _ in range(_TRIES):
            addresses = _free(count)
            self.target = f"grpc://{addresses[0]}"
            start = _Forked if len(thread_names()) == 1 else _Spawned
            self._servers = [start(number, threads, addresses) for number in range(count)]
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
            server.close()

    def _watch(self, server: _Server) -> None:
        code = server.wait()
        if server in self._servers:  # nobody closed it
            how = f"signal {-code}" if code < 0 else f"exit {code}"
            sys.stderr.write(f"a TensorFlow gRPC server exited: {how}\n")
            sys.stderr.flush()
            os._exit(1)


class _Server(Protocol):
    """A server process: it writes "serving" to `output`, and ends at the end of its input."""

    output: int

    def wait(self) -> int:
        """Wait until the process has ended; its exit status."""

    def close(self) -> None:
        """Kill the process."""


class _Spawned:
    """A server with an interpreter of its own."""

    def __init__(self, number: int, threads: int, addresses: list[str]) -> None:
        module = "litmusfuzz.fuzz.executors.tensorflow.grpc_server_main"
        # No other child inherits the pipe, so that it closes when this process ends.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", module, str(number), str(threads), *addresses],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        self.output = self._process.stdout.fileno()

    def wait(self) -> int:
        return self._process.wait()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()


class _Forked:
    """A server forked from this process, which has one thread and has imported TensorFlow."""

    def __init__(self, number: int, threads: int, addresses: list[str]) -> None:
        theirs_in, self._input = os.pipe()
        self.output, theirs_out = os.pipe()
        parent = os.getpid()
        sys.stderr.flush()
        self._pid = os.fork()
        if not self._pid:
            _become_server(parent, theirs_in, theirs_out, number, threads, addresses)
        os.close(theirs_in)
        os.close(theirs_out)
        self._code: int | None = None
        self._waiting = threading.Lock()

    def wait(self) -> int:
        with contextlib.suppress(ChildProcessError):  # closed, and reaped there
            os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOWAIT)
        with self._waiting:
            if self._code is None:
                _, status = os.waitpid(self._pid, 0)
                self._code = os.waitstatus_to_exitcode(status)
            return self._code

    def close(self) -> None:
        with self._waiting:
            if self._code is None:  # not reaped, so that the ID is its own
                os.kill(self._pid, signal.SIGKILL)
                _, status = os.waitpid(self._pid, 0)
                self._code = os.waitstatus_to_exitcode(status)
        os.close(self._input)
        os.close(self.output)


def _become_server(
    parent: int, theirs_in: int, theirs_out: int, number: int, threads: int, addresses: list[str]
) -> NoReturn:
    """In the forked process: run the server."""
    try:
        die_with(parent)
        os.dup2(theirs_in, 0)
        os.dup2(theirs_out, 1)
        # The worker's channel to its parent and the pipes of other servers: each must close
        # when the one process ends that it belongs to.
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        from litmusfuzz.fuzz.executors.tensorflow.grpc_server_main import serve

        serve(number, threads, addresses)
    except BaseException:  # noqa: BLE001 - the end of this process; nothing is hidden
        traceback.print_exc()
    finally:
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


def _serves(server: _Server, deadline: float) -> bool:
    """True once the server accepts sessions; False if it exits or does not start in time."""
    ready, _, _ = select.select([server.output], [], [], max(0.0, deadline - time.monotonic()))
    return bool(ready) and os.read(server.output, 64) == b"serving"
