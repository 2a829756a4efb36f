"""`ForkServer`: a process that has imported a framework, from which workers are forked.

A new interpreter takes seconds to import a framework; a fork of a process that has imported it
takes milliseconds. The server makes nothing itself, and forks only while it has one thread
(`litmusfuzz.fuzz.executors.fork_server_main`). Where forking is not safe, it says why, and
workers are spawned.

Each worker has a status socket to the server. It carries the worker's process ID and, later, its
exit status. When this end is shut down or closed, the server kills the worker. So
no process is ever killed by an ID that may belong to another by then: only the server, which
has not reaped it yet, kills it.

The server is also the parent of all that an ended worker has started and left, and kills it. If the
server is killed itself, its owner kills what has the server's mark.
"""

from __future__ import annotations

import atexit
import contextlib
import fnmatch
import os
import re
import select
import socket
import subprocess
import sys
import tempfile
import threading
import time
from typing import TYPE_CHECKING, Final

from litmusfuzz.fuzz.executors.process_log import ProcessLog, cause_of_death, printable
from litmusfuzz.fuzz.executors.process_tree import MARK, kill_marked

if TYPE_CHECKING:
    from collections.abc import Mapping

    from litmusfuzz.fuzz.executors.protocol import ForkAfter

SEND_TIMEOUT_S: Final = 5.0
"""A server that takes no request for so long has stopped."""
END_TIMEOUT_S: Final = 1.0
"""Time for a process that closed its output to end by itself."""
SERVER_END_TIMEOUT_S: Final = 3.0
"""Time for a server to end its workers, and all that these have started, and then itself."""
_MAX_STATUS: Final = 4096
"""Bytes that a server says of a worker, at most."""
MAX_FAILED_STARTS: Final = 2
"""After so many servers that ended before they forked anything, workers are spawned."""
_STATUS_LINE: Final = re.compile(rb"pid [1-9]\d{0,9}|exit (0|-?[1-9]\d{0,2})|cannot fork: .*")
_READ_AT_START: Final = ("PYTHON*", "LD_*")
"""Environment variables that every interpreter reads when it starts."""


class CannotFork(Exception):
    """Workers of these modules cannot be forked; the message says why."""


class ServerEnded(Exception):
    """The fork server ended; the message says how."""


class ForkServer:
    """A running server, as the process sees it that started it. `server_for` starts one.

    Parameters
    ----------
    after : ForkAfter
        Modules that the server imports before it forks. Without any, its workers start another
        interpreter.
    variables : mapping of str to str
        Environment variables of the server. A worker has its own.
    python : str, optional
        Interpreter of another environment.

    Attributes
    ----------
    refusal : str
        Why the server cannot fork; "" while it can, as far as is known.
    forked : bool
        True once the server has forked a worker.
    """

    def __init__(
        self, after: ForkAfter, variables: Mapping[str, str], python: str | None = None
    ) -> None:
        self.refusal = ""
        self.forked = False
        self._ended = ""
        self._ending = threading.Lock()
        self._mark = os.urandom(16).hex()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._requests.settimeout(SEND_TIMEOUT_S)
        with theirs:
            # A session of its own, so that Ctrl-C reaches this process only.
            self._process = subprocess.Popen(
                [
                    *(python or sys.executable, "-P"),
                    *("-m", "litmusfuzz.fuzz.executors.fork_server_main"),
                    *(str(theirs.fileno()), str(os.getpid()), *after.modules),
                ],
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=self._log,
                pass_fds=[theirs.fileno()],
                # OpenBLAS would start threads when NumPy is imported.
                env=dict(variables) | {"OPENBLAS_NUM_THREADS": "1", MARK: self._mark},
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Process ID."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """True while the process runs."""
        return self._process.poll() is None

    def fork(self) -> ForkedProcess:
        """Ask for a process. The answer comes later, by its status socket.

        Raises
        ------
        ServerEnded
            If the server has ended, or takes no requests any more.
        OSError
            If this process may not open more files.
        """
        made = ForkedProcess(self)
        with contextlib.ExitStack() as theirs:
            try:
                descriptors = made.open_other_ends(theirs)
            except OSError:
                made.close()
                raise
            try:
                socket.send_fds(self._requests, [b"fork"], descriptors)
            except OSError as error:
                made.close()
                if isinstance(error, TimeoutError):
                    self.kill()
                raise ServerEnded(self.end()) from None
        return made

    def kill(self) -> None:
        """Kill the server; its workers end with it. `end` kills what they have started."""
        self._process.kill()

    def end(self) -> str:
        """How the server ended, in one line; if it still runs without its socket, kill it."""
        with self._ending:
            if self._ended:
                return self._ended
            self._requests.close()
            try:
                code = self._process.wait(SERVER_END_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self.kill()
                code = self._process.wait()
            if code:
                kill_marked(self._mark)
            what = "was killed" if code < 0 else "ended"
            self._ended = f"the fork server {what}: {cause_of_death(code, self._said())}"
            self._log.close()
            return self._ended

    def _said(self) -> str:
        """The log of the server."""
        self._log.seek(0)
        log = ProcessLog(os.dup(self._log.fileno()))
        while not log.ended:
            log.drain()
        log.close()
        return log.text()

    def release(self) -> None:
        """Let the server end, without waiting until it has."""
        if self.forked:
            self._requests.close()
        else:  # it may import for seconds, and has no workers yet
            self.kill()

    def close(self) -> None:
        """End the server, its workers, and all that these have started."""
        self.release()
        self.end()

    def abandon(self) -> None:
        """Give up this end, in a process that was forked from the one that started the server."""
        self._requests.close()


class ForkedProcess:
    """A worker process that was asked for.

    Attributes
    ----------
    requests, replies : int
        Descriptors: what is written here is the process's input, and what it writes to its
        output is read here. Both are non-blocking.
    """

    def __init__(self, server: ForkServer) -> None:
        self._server = server
        self._log: ProcessLog | None = None
        self.requests = self.replies = -1
        self._status: socket.socket | None = None
        self._said = b""
        self._problem = ""

    def open_other_ends(self, stack: contextlib.ExitStack) -> list[int]:
        """Make the channels; the ends for the server, which `stack` closes here.

        These are the worker's input, output and log, and the server's end of the status
        socket.
        """
        theirs_in, self.requests = os.pipe()
        stack.callback(os.close, theirs_in)
        self.replies, theirs_out = os.pipe()
        stack.callback(os.close, theirs_out)
        reads, theirs_log = os.pipe()
        stack.callback(os.close, theirs_log)
        self._log = ProcessLog(reads)
        self._status, status = socket.socketpair()
        stack.enter_context(status)
        os.set_blocking(self.requests, False)
        os.set_blocking(self.replies, False)
        return [theirs_in, theirs_out, theirs_log, status.fileno()]

    @property
    def log(self) -> ProcessLog:
        """Standard error of the process."""
        assert self._log is not None
        return self._log

    @property
    def pid(self) -> int | None:
        """Process ID; None until it runs, at the latest when its first reply can be read."""
        self._read_status(0.0)
        return self._number(b"pid")

    @property
    def status(self) -> int:
        """Descriptor that becomes readable when the server says something of it, or ends."""
        assert self._status is not None
        return self._status.fileno()

    def has_ended(self) -> bool:
        """True if it has ended, with its server or before, or if its server cannot be believed.

        The output need not have ended: processes that it has forked may hold that.
        """
        ended = self._read_status(0.0) == b""
        return ended or bool(self._problem) or self._number(b"exit") is not None

    @property
    def is_doubtful(self) -> bool:
        """True if its server has said what it never says."""
        self._read_status(0.0)
        return bool(self._problem)

    def kill(self) -> None:
        """Kill the process, without waiting until it has ended."""
        assert self._status is not None
        with contextlib.suppress(OSError):  # the server has ended, and the process with it
            self._status.shutdown(socket.SHUT_WR)

    def exit_code(self, wait_s: float) -> int | None:
        """Exit status; None if the process does not end within that time.

        Raises
        ------
        CannotFork
            If the server did not fork.
        ServerEnded
            If the server ended, and the process with it.
        """
        deadline = time.monotonic() + wait_s
        while self._number(b"exit") is None:
            said = self._read_status(max(0.0, deadline - time.monotonic()))
            if said is None:
                return None
            if not said:
                break
        if self._problem:
            self._server.end()
            raise ServerEnded(self._problem)
        if self._said.startswith(b"cannot fork: "):
            reason = printable(self._said.partition(b": ")[2].decode(errors="replace"))
            self._server.refusal = reason
            raise CannotFork(reason)
        code = self._number(b"exit")
        if code is None:
            raise ServerEnded(self._server.end())
        return code

    def give_up_server(self) -> None:
        """Kill a server that did not even fork in time, and would not the next time."""
        if self.pid is None:
            self._server.kill()

    def close(self) -> None:
        """Kill the process if it runs, and release everything here."""
        for descriptor in (self.requests, self.replies):
            if descriptor >= 0:
                os.close(descriptor)
        self.requests = self.replies = -1
        if self._status is not None:
            self._status.close()
        if self._log is not None:
            self._log.close()

    def _read_status(self, timeout_s: float) -> bytes | None:
        """Read what comes next from the status socket; None if nothing comes in time."""
        assert self._status is not None
        ready, _, _ = select.select([self._status], [], [], timeout_s)
        if not ready:
            return None
        try:
            said = self._status.recv(4096)
        except ConnectionResetError:  # the server ended before it read that we gave up
            said = b""
        if not self._problem:
            self._said += said
            self._check_status()
        self._server.forked = self._server.forked or self._number(b"pid") is not None
        return said

    def _check_status(self) -> None:
        """Give up a server that says anything else than what it is to say."""
        *lines, partial = self._said.split(b"\n")
        wrong = [line for line in lines if not _STATUS_LINE.fullmatch(line)]
        if len(partial) > _MAX_STATUS or len(lines) > 2:
            wrong = wrong or [self._said]
        if wrong:
            shown = printable(wrong[0].decode(errors="replace"), 80)
            self._problem = f"the fork server says what it never says: {shown!r}"
            self._said = b""
            self._server.kill()

    def _number(self, word: bytes) -> int | None:
        """The number in a complete line of the status, ``pid 12`` or ``exit -9``."""
        for line in self._said.split(b"\n")[:-1]:
            name, _, number = line.partition(b" ")
            if name == word:
                return int(number)
        return None


_Key = tuple["ForkAfter", tuple[tuple[str, str], ...], str | None]
_lock = threading.Lock()  # shards of one process may run in threads
_servers: dict[_Key, ForkServer] = {}
_failed_starts: dict[_Key, int] = {}


def server_for(
    after: ForkAfter, variables: Mapping[str, str], python: str | None = None
) -> ForkServer:
    """The running server for these modules, started if there is none.

    Parameters
    ----------
    after : ForkAfter
    variables : mapping of str to str
        Environment variables of the worker. A server serves only workers whose variables are
        equal to its own as far as the modules read them when they are imported.
    python : str, optional
        Interpreter of another environment, whose workers find our modules by these variables.

    Raises
    ------
    CannotFork
        If the server said so before, or could not be started several times.
    """
    patterns = (*_READ_AT_START, *after.variables)
    early = {n: v for n, v in variables.items() if any(fnmatch.fnmatchcase(n, p) for p in patterns)}
    key = (after, tuple(sorted(early.items())), python)
    with _lock:
        server = _servers.get(key)
        if server is not None and server.refusal:
            raise CannotFork(server.refusal)
        if server is not None and not server.alive:
            how = server.end()
            failed = 0 if server.forked else _failed_starts.get(key, 0) + 1
            _failed_starts[key] = failed
            if failed >= MAX_FAILED_STARTS:
                server.refusal = how
                raise CannotFork(how)
            server = None
        if server is None:
            server = _servers[key] = ForkServer(after, os.environ | early, python)
        return server


def servers() -> tuple[ForkServer, ...]:
    """All servers of this process that run."""
    with _lock:
        return tuple(server for server in _servers.values() if server.alive)


@atexit.register
def close_all() -> None:
    """End all servers of this process, and with them all their workers."""
    with _lock:
        for server in _servers.values():
            server.release()
        for server in _servers.values():
            server.close()
        _servers.clear()


def _forget() -> None:
    """In a process that was forked from this one: the servers are not its own."""
    global _lock
    _lock = threading.Lock()
    for server in _servers.values():
        server.abandon()
    _servers.clear()


os.register_at_fork(after_in_child=_forget)
