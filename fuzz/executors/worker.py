"""`Worker`: an executor in a process of its own, as its parent process sees it.

If a worker process crashes, hangs or exceeds its memory limit, only the current request is
lost. `Worker.receive` then returns `Died`, and the next request starts a new process. Neither
a worker nor its child processes import anything from the working directory.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from typing import IO, Final

from litmusfuzz.fuzz.executors import interpreter, messages
from litmusfuzz.fuzz.executors.table import configuration

DEFAULT_MEMORY_BYTES: Final = 8 << 30
START_TIMEOUT_S: Final = 120.0
"""Additional time for the first reply of a process, which may import a framework."""
KEPT_BYTES: Final = 8000
"""Maximum number of bytes kept of an ended process's log."""


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
        `litmusfuzz.fuzz.executors.interpreter.interpreter`; default: `sys.executable`.
    """

    def __init__(
        self,
        executor: str,
        memory_bytes: int = DEFAULT_MEMORY_BYTES,
        python: str | None = None,
    ) -> None:
        self.executor = executor
        self.memory_bytes = memory_bytes
        self.python = python
        self.starts = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._environment: dict[str, str] = {}
        self._log: IO[bytes] | None = None
        self._answered = False
        self._deadline = 0.0
        self._timeout_s = 0.0

    def send(self, request: messages.Request, timeout_s: float) -> None:
        """Send a request. Its reply is due within `timeout_s` seconds.

        The time that the process needs to start comes on top.
        """
        executor = request.executor or self.executor
        environment = dict(configuration(executor, request.config or None).environment)
        if self._process is not None and environment != self._environment:
            self._end()
        if self._process is None:
            self._environment = environment
            self._start()
        assert self._process is not None
        assert self._process.stdin is not None
        self._timeout_s = timeout_s if self._answered else timeout_s + START_TIMEOUT_S
        self._deadline = time.monotonic() + self._timeout_s
        with contextlib.suppress(BrokenPipeError):  # the process has ended: `receive` reports how
            messages.write(self._process.stdin, request)

    def fileno(self) -> int:
        """File descriptor that becomes readable on a reply, or when the process ends."""
        assert self._process is not None
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    @property
    def overdue(self) -> bool:
        """True once the reply is late."""
        return time.monotonic() >= self._deadline

    @property
    def pid(self) -> int | None:
        """Id of the process; None if none is running."""
        return self._process.pid if self._process else None

    def receive(self) -> messages.Reply | Died:
        """Wait for the reply to the last request, until it is overdue."""
        remaining = max(0.0, self._deadline - time.monotonic())
        ready, _, _ = select.select([self], [], [], remaining)
        if not ready:
            log = self._end()
            return Died(f"no answer in {self._timeout_s:g} s", log, timed_out=True)
        assert self._process is not None
        assert self._process.stdout is not None
        reply = messages.read_reply(self._process.stdout)
        if reply is None:
            process = self._process
            try:
                code = process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                code = 0  # closed its output and lingers; `_end` kills it
            log = self._end()
            return Died(cause_of_death(code, log), log, timed_out=False)
        self._answered = True
        return reply

    def ask(self, request: messages.Request, timeout_s: float) -> messages.Reply | Died:
        """Send a request and wait for its reply."""
        self.send(request, timeout_s)
        return self.receive()

    def close(self) -> None:
        """Kill the process."""
        if self._process is not None:
            self._end()

    def _start(self) -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        arguments = [self.executor, str(self.memory_bytes), str(os.getpid())]
        # A new interpreter, not a fork, as frameworks have threads. A session of its own,
        # so that Ctrl-C reaches the parent only.
        self._process = subprocess.Popen(
            [
                *(self.python or sys.executable, "-P"),
                *("-m", "litmusfuzz.fuzz.executors.worker_main"),
                *arguments,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            bufsize=0,
            env=self._variables(),
            start_new_session=True,
        )
        self._answered = False
        self.starts += 1

    def _variables(self) -> dict[str, str]:
        """Environment variables of the process."""
        variables = os.environ | self._environment
        if self.python:
            variables |= interpreter.environment()
        return variables | interpreter.safe_path(variables.get("PYTHONPATH", ""))

    def _end(self) -> str:
        """Kill the process and return the end of its log."""
        assert self._process is not None
        assert self._log is not None
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()
        log = last_lines(self._log)
        self._log.close()
        self._process = self._log = None
        return log


def last_lines(log: IO[bytes]) -> str:
    """The last complete lines of a log, or the end of the last line if it exceeds `KEPT_BYTES`."""
    start = max(0, log.seek(0, os.SEEK_END) - KEPT_BYTES)
    log.seek(start)
    kept = log.read()
    _, _, whole = kept.partition(b"\n")
    return (whole if start and whole.strip() else kept).decode(errors="replace")


def cause_of_death(code: int, log: str) -> str:
    """How the process ended, with the last line of its log that may explain it.

    Skips log lines of a framework (``I0000 00:00:...``, ``2026-11-21 10:00:00.1: W ...``) and the
    second line of TensorFlow's message about the processor: they explain nothing.
    """
    how = f"signal {-code}" if code < 0 else f"exit {code}"
    log = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", log)  # colours
    log = "".join(c if c.isprintable() or c in "\r\n" else " " for c in log)
    logged = re.compile(
        r"[IWEF]\d{4} |\d{4}-\d\d-\d\d |WARNING: |To enable the following instructions: "
    )
    said = [line.strip() for line in log.splitlines() if line.strip() and not logged.match(line)]
    return f"{how}: {said[-1][:300]}" if said else how
