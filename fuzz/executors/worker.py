"""`Worker`: an executor in a process of its own, as its parent process sees it.

If a worker process crashes, hangs or exceeds its memory limit, only the current request is
lost. `Worker.receive` then returns `Died`, and the next request starts a new process. Neither
a worker nor its child processes import anything from the working directory.

Workers are forked from a process that has imported the executor's framework
(`litmusfuzz.fuzz.executors.fork_server`). Where that is not possible they are spawned.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Final

from litmusfuzz.fuzz.executors import interpreter, messages
from litmusfuzz.fuzz.executors.fork_server import (
    END_TIMEOUT_S,
    CannotFork,
    ForkedProcess,
    ServerEnded,
    server_for,
)
from litmusfuzz.fuzz.executors.process_log import cause_of_death, last_lines
from litmusfuzz.fuzz.executors.protocol import Forkable
from litmusfuzz.fuzz.executors.table import UnknownExecutor, configuration, executor_class

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_MEMORY_BYTES: Final = 8 << 30
START_TIMEOUT_S: Final = 120.0
"""Additional time for the first reply of a process: a framework may have to be imported."""
_CHUNK: Final = 1 << 16
_POLL_S: Final = 0.005


@dataclass(frozen=True, slots=True)
class Died:
    """The result of a request whose process ended, or was killed, before it replied.

    Parameters
    ----------
    message : str
        The cause, in one line.
    log : str
        The last lines that the process wrote to standard error.
    timed_out : bool
        True for a hang, false for a crash.
    """

    message: str
    log: str
    timed_out: bool


class Worker:
    """An executor in a process of its own, which the first request starts.

    A request for a configuration with another environment (`Config.environment`) ends the
    process and starts a new one.

    Parameters
    ----------
    executor : str
        Its name in `litmusfuzz.fuzz.executors.table`.
    memory_bytes : int
        Limit on the private memory of the process.
    python : str, optional
        Interpreter of another environment, as found by
        `litmusfuzz.fuzz.executors.interpreter.interpreter`; default: `sys.executable`. Its
        workers are spawned.
    spawn : bool
        True to start a new interpreter even where a fork would do.

    Attributes
    ----------
    starts : int
        Processes started so far.
    """

    def __init__(
        self,
        executor: str,
        memory_bytes: int = DEFAULT_MEMORY_BYTES,
        python: str | None = None,
        *,
        spawn: bool = False,
    ) -> None:
        self.executor = executor
        self.memory_bytes = memory_bytes
        self.python = python
        self.spawn = spawn
        self.starts = 0
        self._process: ForkedProcess | SpawnedProcess | None = None
        self._why_spawned = ""
        self._environment: dict[str, str] = {}
        self._request = b""
        self._unsent = memoryview(b"")
        self._received = bytearray()
        self._killed = ""
        self._closed_at = 0.0
        self._answered = False
        self._deadline = 0.0
        self._timeout_s = 0.0

    def send(self, request: messages.Request, timeout_s: float) -> None:
        """Send a request. Its reply is due within `timeout_s` seconds.

        The time that the process needs to start comes on top.
        """
        self._begin(request, timeout_s)
        while self._unsent and not self.overdue:
            assert self._process is not None
            select.select([], [self._process.requests], [], self._remaining_s)
            self._write()

    def fileno(self) -> int:
        """File descriptor that becomes readable on a reply, or when the process ends."""
        assert self._process is not None
        return self._process.replies

    @property
    def overdue(self) -> bool:
        """True once the reply is late."""
        return time.monotonic() >= self._deadline

    @property
    def pid(self) -> int | None:
        """Id of the process; None if none is running, or none has been forked yet."""
        return self._process.pid if self._process else None

    @property
    def start_method(self) -> str:
        """How the last process was started: ``forked``, or ``spawned: `` and the reason."""
        return f"spawned: {self._why_spawned}" if self._why_spawned else "forked"

    def receive(self) -> messages.Reply | Died:
        """Wait for the reply to the last request, until it is overdue."""
        while (result := self._progress()) is None:
            writing = [self._process.requests] if self._process and self._unsent else []
            select.select([self], writing, [], self._remaining_s)
        return result

    def ask(self, request: messages.Request, timeout_s: float) -> messages.Reply | Died:
        """Send a request and wait for its reply."""
        self.send(request, timeout_s)
        return self.receive()

    async def run(self, request: messages.Request, timeout_s: float) -> messages.Reply | Died:
        """Send a request and wait for its reply, while other tasks of the event loop run.

        Cancelling it closes the worker: the reply of this request must not be taken for that
        of the next.
        """
        try:
            self._begin(request, timeout_s)
            while (result := self._progress(wait_s=0.0)) is None:
                await self._change()
        except BaseException:
            self.close()
            raise
        return result

    def kill(self, why: str) -> None:
        """Kill the process. The result of its request is `Died` with that message."""
        if self._process is not None:
            self._killed = why
            self._process.kill()

    def close(self) -> None:
        """Kill the process. A forked one may need another 0.2 s until it has ended."""
        if self._process is not None:
            self._end()

    def _begin(self, request: messages.Request, timeout_s: float) -> None:
        """Make sure that there is a process, and send as much of the request as it takes."""
        executor = request.executor or self.executor
        environment = dict(configuration(executor, request.config or None).environment)
        if self._process is not None and environment != self._environment:
            self._end()
        self._request = messages.encoded(request)
        if self._process is None:
            self._environment = environment
            self._start()
        else:
            self._unsent = memoryview(self._request)
        self._timeout_s = timeout_s if self._answered else timeout_s + START_TIMEOUT_S
        self._deadline = time.monotonic() + self._timeout_s
        self._write()

    def _start(self) -> None:
        """Start a process, with the present request as its first."""
        variables = self._variables()
        first = b""
        try:
            self._process = self._forked(variables)
            self._why_spawned = ""
            start = messages.Start.of(self.executor, self.memory_bytes, variables)
            first = messages.encoded(start)
        except CannotFork as error:
            self._why_spawned = str(error)
            self._process = SpawnedProcess(
                self.python or sys.executable, [self.executor, str(self.memory_bytes)], variables
            )
        self._unsent = memoryview(first + self._request)
        self._received.clear()
        self._killed = ""
        self._closed_at = 0.0
        self._answered = False
        self.starts += 1

    def _forked(self, variables: Mapping[str, str]) -> ForkedProcess:
        """A process forked from the fork server of the executor.

        Raises
        ------
        CannotFork
        """
        if self.spawn:
            raise CannotFork("as requested")
        if self.python:
            raise CannotFork("it has another interpreter")
        try:
            made = executor_class(self.executor)
        except (ImportError, UnknownExecutor) as error:
            raise CannotFork("the executor cannot be loaded") from error
        if not isinstance(made, Forkable):
            raise CannotFork("the executor has no `fork_after`")
        try:
            return server_for(made.fork_after, variables).fork()
        except ServerEnded:  # since its last request
            try:
                return server_for(made.fork_after, variables).fork()
            except ServerEnded as error:
                raise CannotFork(str(error)) from None

    def _variables(self) -> dict[str, str]:
        """Environment variables of the process."""
        variables = os.environ | self._environment
        if self.python:
            variables |= interpreter.environment()
        return variables | interpreter.safe_path(variables.get("PYTHONPATH", ""))

    def _write(self) -> None:
        """Write what the process takes of the request now."""
        assert self._process is not None
        try:
            while self._unsent:
                self._unsent = self._unsent[os.write(self._process.requests, self._unsent) :]
        except BlockingIOError:
            pass
        except BrokenPipeError:  # the process has ended: `_progress` reports how
            self._unsent = memoryview(b"")

    def _progress(self, wait_s: float = END_TIMEOUT_S) -> messages.Reply | Died | None:
        """Write and read what is possible now; the result, if it is there.

        Waits for nothing but, at most `wait_s`, for the end of a process that closed its output.
        """
        assert self._process is not None
        self._write()
        ended = False
        try:
            while part := os.read(self._process.replies, _CHUNK):
                self._received += part
            ended = True
        except BlockingIOError:
            pass
        reply = messages.complete_reply(self._received)
        if reply is not None:
            self._received = bytearray()
            self._answered = True
            return reply
        if ended:
            self._closed_at = self._closed_at or time.monotonic()
            return self._died(wait_s)
        if not self.overdue:
            return None
        if isinstance(self._process, ForkedProcess):
            self._process.give_up_server()
        return Died(f"no answer in {self._timeout_s:g} s", self._end(), timed_out=True)

    def _died(self, wait_s: float) -> Died | None:
        """The result of a process that has closed its output.

        None if another was started instead, or if it has not ended yet.
        """
        assert self._process is not None
        try:
            code = self._process.exit_code(wait_s)
        except CannotFork:
            self._end()
            self._start()  # spawned; the process that was not forked does not count
            self.starts -= 1
            return None
        except ServerEnded as error:
            return Died(self._killed or str(error), self._end(), timed_out=False)
        if code is None and time.monotonic() < self._closed_at + END_TIMEOUT_S:
            return None
        killed = self._killed
        log = self._end()
        # A process that lingers has closed its output as if it had ended.
        return Died(killed or cause_of_death(code or 0, log), log, timed_out=False)

    def _end(self) -> str:
        """Kill the process and return the end of its log."""
        assert self._process is not None
        self._process.kill()
        log = last_lines(self._process.log)
        self._process.close()
        self._process = None
        return log

    @property
    def _remaining_s(self) -> float:
        return max(0.0, self._deadline - time.monotonic())

    async def _change(self) -> None:
        """Wait until the process can be read from or written to, or is overdue.

        A process that has closed its output, but not ended, is looked at again soon: releasing
        the memory of a framework takes a tenth of a second.
        """
        assert self._process is not None
        if self._closed_at:
            await asyncio.sleep(_POLL_S)
            return
        loop = asyncio.get_running_loop()
        changed = loop.create_future()

        def change() -> None:
            if not changed.done():
                changed.set_result(None)

        reads, writes = self._process.replies, self._process.requests if self._unsent else None
        timer = loop.call_later(self._remaining_s, change)
        loop.add_reader(reads, change)
        if writes is not None:
            loop.add_writer(writes, change)
        try:
            await changed
        finally:
            timer.cancel()
            loop.remove_reader(reads)
            if writes is not None:
                loop.remove_writer(writes)


class SpawnedProcess:
    """A worker process with an interpreter of its own.

    Parameters
    ----------
    python : str
    arguments : list of str
        Name of the executor, and its memory limit.
    variables : mapping of str to str
        All environment variables.

    Attributes
    ----------
    requests, replies, log
        As in `ForkedProcess`.
    """

    def __init__(self, python: str, arguments: list[str], variables: Mapping[str, str]) -> None:
        self.log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as this
        # A session of its own, so that Ctrl-C reaches the parent only.
        self._process = subprocess.Popen(
            [
                *(python, "-P", "-m", "litmusfuzz.fuzz.executors.worker_main"),
                *(*arguments, str(os.getpid())),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            bufsize=0,
            env=variables,
            start_new_session=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self.requests, self.replies = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self.requests, False)
        os.set_blocking(self.replies, False)

    @property
    def pid(self) -> int:
        """Process ID."""
        return self._process.pid

    def kill(self) -> None:
        """Kill the process."""
        self._process.kill()

    def exit_code(self, wait_s: float) -> int | None:
        """Exit status; None if the process does not end within that time."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(wait_s)
        return None

    def close(self) -> None:
        """Kill the process if it runs, and release everything here."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()
        self.log.close()
