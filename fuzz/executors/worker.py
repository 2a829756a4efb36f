"""`Worker`: an executor in a process of its own, as its parent process sees it.

If a worker process crashes, hangs, exceeds its memory limit or sends what is no reply to its
request, only that request is lost. `Worker.receive` then returns `Died`, and the next request
starts a new process; so it does after a reply that is the last of its process. Neither a worker nor
its child processes import anything from the working directory.

Workers are forked from a process that has imported the executor's framework
(`litmusfuzz.fuzz.executors.fork_server`). Where that is not possible they are spawned: the process
that is forked, from a server without a framework, starts another interpreter.

When a worker ends, however it does, all processes end that it has started.
"""

from __future__ import annotations

import asyncio
import os
import select
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import msgspec

from litmusfuzz.fuzz.executors import interpreter, messages, reply_check
from litmusfuzz.fuzz.executors.fork_server import (
    END_TIMEOUT_S,
    CannotFork,
    ForkedProcess,
    ServerEnded,
    server_for,
)
from litmusfuzz.fuzz.executors.process_log import cause_of_death, printable, traceback_of
from litmusfuzz.fuzz.executors.protocol import Forkable, ForkAfter
from litmusfuzz.fuzz.executors.table import UnknownExecutor, configuration, executor_class

if TYPE_CHECKING:
    from collections.abc import Mapping

    from litmusfuzz.corpus.model import LitmusTest

DEFAULT_MEMORY_BYTES: Final = 8 << 30
START_TIMEOUT_S: Final = 120.0
"""Additional time for the first reply of a process: a framework may have to be imported."""
_CHUNK: Final = 1 << 16
_POLL_S: Final = 0.005


Tests: TypeAlias = "LitmusTest | tuple[LitmusTest, ...] | None"
"""The test of a request, or the tests of a pack."""


class _Queued(NamedTuple):
    """A request that was sent before the one before it was answered."""

    asked: messages.Request
    numbered: messages.Request
    test: Tests
    encoded: bytes


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

    @property
    def traceback(self) -> str:
        """Of the exception that has ended the process; "" if none has."""
        return "" if self.timed_out else traceback_of(self.log)


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
        `litmusfuzz.fuzz.executors.interpreter.interpreter`; default: `sys.executable`.
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
        self._process: ForkedProcess | None = None
        self._why_spawned = ""
        self._environment: dict[str, str] = {}
        self._request = messages.Request()
        self._test: Tests = None
        self._encoded = b""
        self._queued: _Queued | None = None
        self._number = 0
        self._unstarted = ""
        self._unsent = memoryview(b"")
        self._received = bytearray()
        self._killed = ""
        self._closed_at = 0.0
        self._answered = False
        self._deadline = 0.0
        self._timeout_s = 0.0

    def send(self, request: messages.Request, timeout_s: float, test: Tests = None) -> None:
        """Send a request. Its whole reply is due within `timeout_s` seconds.

        The time that the process needs to start comes on top. The reply is checked against the
        request's test or pack, which is read from its text if `test` is not given.
        """
        self._begin(request, timeout_s, test)
        while self._unsent and not self.overdue:
            assert self._process is not None
            log = [] if self._process.log.ended else [self._process.log]
            select.select(log, [self._process.requests], [], self._remaining_s)
            self._process.log.drain()
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
            assert self._process is not None
            writing = [self._process.requests] if self._unsent else []
            select.select(self._readable(), writing, [], self._remaining_s)
        return result

    def ask(
        self, request: messages.Request, timeout_s: float, test: Tests = None
    ) -> messages.Reply | Died:
        """Send a request and wait for its reply."""
        self.send(request, timeout_s, test)
        return self.receive()

    async def run(
        self, request: messages.Request, timeout_s: float, test: Tests = None
    ) -> messages.Reply | Died:
        """Send a request and wait for its reply, while other tasks of the event loop run.

        Cancelling it closes the worker: the reply of this request must not be taken for that
        of the next.
        """
        try:
            self._begin(request, timeout_s, test)
            while (result := self._progress(wait_s=0.0)) is None:
                await self._change()
        except BaseException:
            self.close()
            raise
        return result

    def queue(self, request: messages.Request, test: Tests = None) -> None:
        """Send a request that the process finds as soon as it has answered the present one.

        The next one that is run must be this one, the same object. If the process ends before it
        has answered it, or is another one by then, it is sent again.
        """
        if self._process is None or self._queued is not None:
            return
        if self._environment_of(request) != self._environment:
            return
        self._number += 1
        numbered = msgspec.structs.replace(request, number=self._number)
        encoded = messages.encoded(numbered)
        self._queued = _Queued(request, numbered, test, encoded)
        self._unsent = memoryview(bytes(self._unsent) + encoded)
        self._write()

    def kill(self, why: str) -> None:
        """Kill the process. The result of its request is `Died` with that message."""
        if self._process is not None:
            self._killed = why
            self._process.kill()

    def close(self) -> None:
        """Kill the process. A forked one may need another 0.2 s until it has ended."""
        if self._process is not None:
            self._end()

    def _begin(self, request: messages.Request, timeout_s: float, test: Tests) -> None:
        """Make sure that there is a process, and send as much of the request as it takes."""
        queued, self._queued = self._queued, None
        if queued is not None and queued.asked is request:
            self._request, self._test, self._encoded = queued[1:]
        else:
            environment = self._environment_of(request)
            # A process that has another request before it would answer that one.
            if self._process is not None and (queued or environment != self._environment):
                self._end()
            self._number += 1
            self._request = msgspec.structs.replace(request, number=self._number)
            self._test = test
            self._encoded = messages.encoded(self._request)
            if self._process is None:
                self._environment = environment
                self._start()
            else:
                self._unsent = memoryview(self._encoded)
        self._timeout_s = timeout_s if self._answered else timeout_s + START_TIMEOUT_S
        self._deadline = time.monotonic() + self._timeout_s
        self._write()

    def _environment_of(self, request: messages.Request) -> dict[str, str]:
        """The environment variables that a request asks for."""
        executor = request.executor or self.executor
        return dict(configuration(executor, request.config or None).environment)

    def _start(self) -> None:
        """Start a process, with the present request as its first."""
        variables = self._variables()
        python = self._unstarted = ""
        try:
            self._process = self._forked(variables)
            self._why_spawned = ""
        except CannotFork as error:
            self._why_spawned = str(error)
            python = self.python or sys.executable
            try:
                self._process = _fork(ForkAfter(()), os.environ)
            except CannotFork as problem:
                self._unstarted = str(problem)
                return
        start = messages.Start.of(self.executor, self.memory_bytes, variables, python)
        self._unsent = memoryview(messages.encoded(start) + self._encoded)
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
        try:
            made = executor_class(self.executor)
        except (ImportError, UnknownExecutor) as error:
            raise CannotFork("the executor cannot be loaded") from error
        if not isinstance(made, Forkable):
            raise CannotFork("the executor has no `fork_after`")
        return _fork(made.fork_after, variables, self.python)

    def _variables(self) -> dict[str, str]:
        """Environment variables of the process."""
        variables = os.environ | self._environment
        if self.python:
            variables |= interpreter.environment()
        return variables | interpreter.safe_path(variables.get("PYTHONPATH", ""))

    def _write(self) -> None:
        """Write what the process takes of the request now."""
        if self._process is None:
            return
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
        if self._process is None:
            return Died(self._unstarted, "", timed_out=False)
        self._write()
        has_ended = self._process.has_ended()  # before what it wrote last is read
        self._process.log.drain()
        ended = self._read() or has_ended
        try:
            reply = messages.take_reply(self._received, another=self._queued is not None)
            if reply is not None:
                reply_check.check(self._request, self._test, reply)
        except messages.BadReply as error:
            return self._bad(str(error))
        # The server may have said something since it was looked whether the process has ended.
        if reply is not None and self._process.is_doubtful:
            reply, ended = None, True
        if reply is not None:
            self._answered = True
            if reply.last:
                self._end()
            return reply
        if ended:
            self._closed_at = self._closed_at or time.monotonic()
            return self._died(wait_s)
        if not self.overdue:
            return None
        self._process.give_up_server()
        return Died(f"no answer in {self._timeout_s:g} s", self._end(), timed_out=True)

    def _read(self) -> bool:
        """Read what there is of the reply, but not much more than the longest one; true at its end.

        A process that sends more and more is thus found out.
        """
        assert self._process is not None
        try:
            while len(self._received) <= messages.MAX_REPLY_BYTES:
                part = os.read(self._process.replies, _CHUNK)
                if not part:
                    return True
                self._received += part
        except BlockingIOError:
            pass
        return False

    def _bad(self, why: str) -> Died:
        """The result of a request with a bad reply: nothing that this process says is believed."""
        return Died(f"a bad reply: {printable(why)}", self._end(), timed_out=False)

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
        killed, received = self._killed, len(self._received)
        log = self._end()
        # A process that lingers has closed its output as if it had ended.
        cause = cause_of_death(code or 0, log)
        if received:
            cause = f"a bad reply: it ends after {received:,} bytes ({cause})"
        return Died(killed or cause, log, timed_out=False)

    def _end(self) -> str:
        """Kill the process and return its log."""
        assert self._process is not None
        self._process.kill()
        self._process.log.drain()
        log = self._process.log.text()
        self._process.close()
        self._process = None
        self._queued = None
        return log

    @property
    def _remaining_s(self) -> float:
        return max(0.0, self._deadline - time.monotonic())

    def _readable(self) -> list[int]:
        """Descriptors of the replies, the status and the log of the process."""
        assert self._process is not None
        log = [] if self._process.log.ended else [self._process.log.fileno()]
        return [self._process.replies, self._process.status, *log]

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

        reads, writes = self._readable(), self._process.requests if self._unsent else None
        timer = loop.call_later(self._remaining_s, change)
        for each in reads:
            loop.add_reader(each, change)
        if writes is not None:
            loop.add_writer(writes, change)
        try:
            await changed
        finally:
            timer.cancel()
            for each in reads:
                loop.remove_reader(each)
            if writes is not None:
                loop.remove_writer(writes)


def _fork(
    after: ForkAfter, variables: Mapping[str, str], python: str | None = None
) -> ForkedProcess:
    """A process from the fork server of these modules, or a new one if that has just ended.

    Raises
    ------
    CannotFork
    """
    try:
        return server_for(after, variables, python).fork()
    except ServerEnded:  # since its last request
        try:
            return server_for(after, variables, python).fork()
        except ServerEnded as error:
            raise CannotFork(str(error)) from None
