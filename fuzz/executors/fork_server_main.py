"""Main program of a fork server, see `litmusfuzz.fuzz.executors.fork_server`.

``python -m litmusfuzz.fuzz.executors.fork_server_main SOCKET PARENT_PID MODULE...``

It imports the modules, and then forks a worker for each request that it receives on the socket
whose descriptor it was given. It ends, with its workers, when that socket closes or its parent
process has ended.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import select
import signal
import socket
import sys
import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from litmusfuzz.fuzz.executors import messages, table
from litmusfuzz.fuzz.executors.process_tree import die_with, thread_names
from litmusfuzz.fuzz.executors.worker_main import serve

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_POLL_MS: Final = 250
"""Milliseconds between two looks at the parent process."""
_DESCRIPTORS: Final = 4
"""Descriptors of a request: input, output and log of the worker, and its status socket."""


@dataclass(frozen=True, slots=True)
class _Child:
    """A worker that was not reaped yet."""

    pid: int
    pidfd: int
    status: socket.socket


class _Server:
    """Forks, kills and reaps workers. It has one thread, and starts none.

    Parameters
    ----------
    requests : socket
    parent : int
        Process ID of the process that started the server.
    refusal : str
        Why it cannot fork; "" if it can.
    added : mapping of str to str
        Environment variables that the imported modules have set.
    """

    def __init__(
        self, requests: socket.socket, parent: int, refusal: str, added: Mapping[str, str]
    ) -> None:
        self.requests = requests
        self.parent = parent
        self.refusal = refusal
        self.added = added
        self.pid = os.getpid()
        self.children: dict[int, _Child] = {}
        """By the descriptor that shows their end, and by that of their status socket."""
        # Not epoll: its descriptor would be one more that workers share with the server.
        self.poll = select.poll()
        self.poll.register(requests, select.POLLIN)

    def run(self) -> None:
        """Answer until the parent closes the socket, or ends."""
        while os.getppid() == self.parent:
            ready = [descriptor for descriptor, _ in self.poll.poll(_POLL_MS)]
            for descriptor in ready:
                child = self.children.get(descriptor)
                if child is None:
                    pass  # a request; or reaped in this round
                elif descriptor == child.pidfd:
                    self.reap(child)
                else:  # given up by the parent; the other descriptor will show its end
                    self.poll.unregister(descriptor)
                    os.kill(child.pid, signal.SIGKILL)
            # Last: a new worker may have the descriptors of one that was reaped in this round.
            if self.requests.fileno() in ready and not self.receive():
                return

    def end(self) -> None:
        """Kill all workers."""
        for child in self.children.values():
            with contextlib.suppress(ProcessLookupError):
                os.kill(child.pid, signal.SIGKILL)

    def receive(self) -> bool:
        """Answer one request; False if there will be no more."""
        try:
            said, received, _, _ = socket.recv_fds(self.requests, 64, _DESCRIPTORS)
        except ConnectionResetError:
            return False
        if len(received) == _DESCRIPTORS:
            *streams, status = received
            self.fork(streams, socket.socket(fileno=status))
        else:  # the limit on open files: the parent sees that the channels close
            for descriptor in received:
                os.close(descriptor)
        return bool(said)

    def fork(self, streams: Sequence[int], status: socket.socket) -> None:
        """Fork a worker, or say why not."""
        refusal = self.refusal or several_threads()
        if refusal:
            with contextlib.suppress(OSError):
                status.sendall(f"cannot fork: {refusal}\n".encode())
            status.close()
        else:
            sys.stdout.flush()
            sys.stderr.flush()
            try:
                pid = os.fork()
            except OSError as error:  # no memory, or too many processes: it may work again
                os.write(streams[2], f"the fork failed: {error.strerror}\n".encode())
                with contextlib.suppress(OSError):
                    status.sendall(b"exit 1\n")
                status.close()
            else:
                if not pid:
                    self.become_worker(streams, status)
                child = _Child(pid, os.pidfd_open(pid), status)
                self.children[child.pidfd] = self.children[status.fileno()] = child
                self.poll.register(child.pidfd, select.POLLIN)
                self.poll.register(status, select.POLLIN)
        for stream in streams:
            os.close(stream)

    def reap(self, child: _Child) -> None:
        """Take the exit status of a worker that has ended, and pass it on."""
        _, status = os.waitpid(child.pid, 0)
        self.poll.unregister(child.pidfd)
        with contextlib.suppress(KeyError):
            self.poll.unregister(child.status)
        del self.children[child.pidfd], self.children[child.status.fileno()]
        os.close(child.pidfd)
        with contextlib.suppress(OSError):
            child.status.sendall(b"exit %d\n" % os.waitstatus_to_exitcode(status))
        child.status.close()

    def become_worker(self, streams: Sequence[int], status: socket.socket) -> None:
        """In the forked process: serve requests like a spawned worker. Does not return."""
        code = 1
        try:
            die_with(self.pid)
            os.setsid()
            for number, stream in enumerate(streams):
                os.dup2(stream, number)
                os.close(stream)
            # Here, not in the server: the parent knows it before the first reply.
            with contextlib.suppress(OSError):  # given up already
                status.sendall(b"pid %d\n" % os.getpid())
            # Sockets of the server, and of its other workers.
            self.requests.close()
            status.close()
            for descriptor in {*self.children}:
                os.close(descriptor)
            requests = os.fdopen(0, "rb", closefd=False)
            start = messages.read_start(requests)
            if start is not None:
                os.environ.clear()
                os.environ.update({**self.added, **start.environment()})
                if start.folder:
                    with contextlib.suppress(OSError):
                        os.chdir(start.folder)
                serve(start.executor, start.memory_bytes, requests)
            code = 0
        except BaseException:  # noqa: BLE001 - the end of this process; nothing is hidden
            traceback.print_exc()
        finally:
            # At once: what is registered to run at exit is the server's.
            with contextlib.suppress(OSError, ValueError):
                sys.stderr.flush()
            os._exit(code)


def several_threads() -> str:
    """Why this process must not fork; "" if it has a single thread."""
    names = thread_names()
    if len(names) == 1:
        return ""
    return f"the imported modules start threads: {len(names)} run ({', '.join(names)})"


def _imported(modules: Sequence[str]) -> str:
    """Import the modules; why this or forking does not work, or ""."""
    for module in modules:
        try:
            importlib.import_module(module)
        except Exception as error:  # noqa: BLE001 - a worker reports it, in an interpreter of its own
            first, _, _ = f"{type(error).__name__}: {error}".partition("\n")
            return f"importing {module}: {first}"
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError as error:
        return f"this kernel has no descriptors of processes: {error.strerror}"
    return ""


def main() -> None:
    """Import modules, then fork workers."""
    descriptor, parent, *modules = sys.argv[1:]
    # Sent to the whole process group; the parent decides when this process ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    requests = socket.socket(fileno=int(descriptor))
    requests.set_inheritable(False)
    before = dict(os.environ)
    refusal = _imported(modules)
    table.names()  # looks into every installed package, and keeps what it found
    added = {name: value for name, value in os.environ.items() if before.get(name) != value}
    # A worker does not copy, for its collector's sake, the pages of what is here already.
    gc.collect()
    gc.freeze()
    server = _Server(requests, int(parent), refusal, added)
    code = 1
    try:
        server.run()
        code = 0
    except BaseException:  # noqa: BLE001 - the end of this process; nothing is hidden
        traceback.print_exc()
    finally:
        server.end()
        # At once: what the modules registered to run at exit may take long.
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
