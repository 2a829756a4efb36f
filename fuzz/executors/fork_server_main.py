"""Main program of a fork server, see `litmusfuzz.fuzz.executors.fork_server`.

``python -m litmusfuzz.fuzz.executors.fork_server_main SOCKET PARENT_PID MODULE...``

It imports the modules, and then forks a worker for each request that it receives on the socket
whose descriptor it was given. It ends, with its workers, when that socket closes or its parent
process has ended.

What a worker has started becomes a child of this process when the worker ends, and is killed.
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
import time
import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NoReturn

from litmusfuzz.fuzz.executors import messages, table
from litmusfuzz.fuzz.executors.process_log import in_a_line, printable
from litmusfuzz.fuzz.executors.process_tree import (
    MARK,
    adopt_orphans,
    children,
    die_with,
    mark_of,
    thread_names,
)
from litmusfuzz.fuzz.executors.worker_main import serve

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_POLL_MS: Final = 250
"""Milliseconds between two looks at the parent process."""
_POLL_ENDING_MS: Final = 5
"""The same, while processes that a worker has left are ending."""
_END_S: Final = 2.0
"""Seconds until all processes below the server have ended, at most."""
_MAX_LOG: Final = 1 << 16
"""Bytes that importing modules may leave in the log."""
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
        self.mark = os.environ.get(MARK, "")
        self.orphans_end = False
        """True while what ended workers have left may still run."""
        self.children: dict[int, _Child] = {}
        """By the descriptor that shows their end, and by that of their status socket."""
        # Not epoll: its descriptor would be one more that workers share with the server.
        self.poll = select.poll()
        self.poll.register(requests, select.POLLIN)

    def run(self) -> None:
        """Answer until the parent closes the socket, or ends."""
        while os.getppid() == self.parent:
            wait_ms = _POLL_ENDING_MS if self.orphans_end else _POLL_MS
            ready = [descriptor for descriptor, _ in self.poll.poll(wait_ms)]
            for descriptor in ready:
                child = self.children.get(descriptor)
                if child is None:
                    pass  # a request; or reaped in this round
                elif descriptor == child.pidfd:
                    self.reap(child)
                else:  # given up by the parent; the other descriptor will show its end
                    self.poll.unregister(descriptor)
                    os.kill(child.pid, signal.SIGKILL)
            self.end_orphans()
            # Last: a new worker may have the descriptors of one that was reaped in this round.
            if self.requests.fileno() in ready and not self.receive():
                return

    def end(self) -> None:
        """Kill all workers, and all that they have started."""
        end = time.monotonic() + _END_S
        while (left := children(self.pid)) and time.monotonic() < end:
            for pid in left:  # not reaped, so that the ID is its own
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, os.WNOHANG)
            time.sleep(_POLL_ENDING_MS / 1000)

    def end_orphans(self) -> None:
        """Reap children that are no workers; once a worker has ended, kill those it has left.

        A process that a worker of the present has started and disowned is spared.
        """
        workers = {child.pid for child in self.children.values()}
        killed = False
        for pid in children(self.pid):
            if pid in workers or os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG) is not None:
                continue
            if self.orphans_end and not self.owners(pid) & workers:
                os.kill(pid, signal.SIGKILL)  # not reaped, so that the ID is its own
                killed = True
        # What those have started becomes a child of this process when they have ended.
        self.orphans_end = killed

    def owners(self, pid: int) -> set[int]:
        """Workers that may have started a process: by its session, or by its environment."""
        found = {os.getsid(pid)}
        mark, _, worker = mark_of(pid).partition("/")
        if mark == self.mark and worker.isascii() and worker.isdigit():
            found.add(int(worker))
        return found

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
                status.sendall(f"cannot fork: {printable(refusal)}\n".encode())
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
        self.orphans_end = True
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
            # Unbuffered: what follows is for the interpreter that may take this one's place.
            requests = os.fdopen(0, "rb", buffering=0, closefd=False)
            start = messages.read_start(requests)
            if start is not None:
                os.environ.clear()
                added = {} if start.python else self.added
                mark = f"{self.mark}/{os.getpid()}"
                os.environ.update({**added, **start.environment(), MARK: mark})
                if start.folder:
                    with contextlib.suppress(OSError):
                        os.chdir(start.folder)
                if start.python:
                    _become_interpreter(start)
                serve(start.executor, start.memory_bytes, requests)
            code = 0
        except BaseException:  # noqa: BLE001 - the end of this process; nothing is hidden
            traceback.print_exc()
        finally:
            # At once: what is registered to run at exit is the server's.
            with contextlib.suppress(OSError, ValueError):
                sys.stderr.flush()
            os._exit(code)


def _become_interpreter(start: messages.Start) -> NoReturn:
    """In the forked process: start the interpreter of a spawned worker in its place."""
    program = ("-P", "-m", "litmusfuzz.fuzz.executors.worker_main")
    arguments = (start.python, *program, start.executor, str(start.memory_bytes))
    os.execv(start.python, arguments)  # noqa: S606 - no shell is needed


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
            return f"importing {module}: {in_a_line(f'{type(error).__name__}: {error}')}"
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError as error:
        return f"this kernel has no descriptors of processes: {error.strerror}"
    return ""


def _shorten_log() -> None:
    """Forget what the modules have written, if it is much; a worker has a log of its own."""
    sys.stdout.flush()
    sys.stderr.flush()
    written = os.fstat(2).st_size
    if written > _MAX_LOG:
        os.ftruncate(2, 0)
        os.lseek(2, 0, os.SEEK_SET)
        os.write(2, f"[{written:,} bytes of the imported modules are left out]\n".encode())


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
    adopt_orphans()
    _shorten_log()
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
