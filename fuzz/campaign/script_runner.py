"""`ScriptRunner` runs the standalone scripts of findings, each in a process without LitmusFuzz.

A script spends most of its time, five to seven seconds, on the import of TensorFlow. So scripts are
forked from an isolated interpreter that has imported it, and nothing else. A script that sets
environment variables has an interpreter of its own, since TensorFlow may read them when it is
imported, and so has one on JAX.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from litmusfuzz.fuzz.campaign.tuning import JOB_TIMEOUT_S, MAX_REDUCTION_S
from litmusfuzz.fuzz.executors.jax_refs.script import END as END_ON_JAX
from litmusfuzz.reports.script import FIRST_SEEN, LAST_LINE

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

TENSORFLOW: Final = "tensorflow"
_IMPORT: Final = "import tensorflow as tf"
_ENVIRONMENT: Final = "os.environ["
_READY: Final = b"ready\n"
_MAX_OUTPUT: Final = 1 << 26
"""Bytes of a script's output."""
# It stands alone, and forks only while it has a single thread. The kernel ends it with the
# campaign, and a script with it.
_INTERPRETER: Final = """
import ctypes, importlib, json, os, runpy, signal, sys

def end_with(parent):
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)

end_with(int(sys.argv[1]))
for module in sys.argv[2:]:
    importlib.import_module(module)
if len(os.listdir("/proc/self/task")) > 1:
    sys.exit("the imported modules start threads")
print("ready", flush=True)
for line in sys.stdin:
    this = os.getpid()
    reads, writes = os.pipe()
    child = os.fork()
    if not child:
        end_with(this)
        os.dup(1)  # as long as it is open, this process runs
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(writes, 1)
        os.close(reads)
        os.close(writes)
        sys.argv[:] = json.loads(line)
        runpy.run_path(sys.argv[0], run_name="__main__")
        sys.exit()
    os.close(writes)
    with open(reads, "rb") as output:
        text = output.read().decode(errors="replace")
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(json.dumps([code, text]), flush=True)
"""


class ScriptRunner:
    """Runs scripts, one after the other.

    Parameters
    ----------
    python : str, optional
        Another interpreter than this one.
    imported : sequence of str
        Modules that a script on TensorFlow finds imported; none if each is to import its own.
    """

    def __init__(self, python: str | None = None, imported: Sequence[str] = (TENSORFLOW,)) -> None:
        self._python = python or sys.executable
        self._imported = tuple(imported)
        self._waiting: asyncio.subprocess.Process | None = None
        """An interpreter that has imported these, and runs no script."""
        self._last_used = 0.0

    async def shows_it(self, path: Path, seconds: float = MAX_REDUCTION_S, error: str = "") -> bool:
        """Run a script in an isolated interpreter, which cannot import LitmusFuzz.

        True if a forbidden outcome showed, or the exception. Where an op corrupts memory, the
        process may crash after that, or before: then another one tries in the time that is left.
        The process ends with this call, even a cancelled one.

        Parameters
        ----------
        path : Path
        seconds : float
            For which it tries.
        error : str
            The type of an exception of JAX's; "" for a forbidden outcome.
        """
        end = time.monotonic() + seconds
        while True:
            code, output = await self._run(path, max(0.0, end - time.monotonic()))
            if code is None or code >= 0:
                break
            if any(line.startswith(FIRST_SEEN) for line in output.splitlines()):
                return True
            if time.monotonic() > end:
                return False
        if values := END_ON_JAX.search(output.strip()):
            return code == 1 and (values[2] == error if error else values[1] != values[2])
        match = LAST_LINE.fullmatch(output.strip().rpartition("\n")[2])
        return code == 1 and match is not None and int(match[1]) > 0

    async def rest(self) -> None:
        """End the interpreter if no script has needed it for a while: it holds much memory."""
        if time.monotonic() > self._last_used + JOB_TIMEOUT_S:
            await self.close()

    async def close(self) -> None:
        """End the interpreter that waits for scripts."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            await _end(waiting)

    async def _run(self, path: Path, seconds: float) -> tuple[int | None, str]:
        """Run a script once: the exit code of its process, None if it hung, and its output."""
        if self._imported and _finds_all_imported(path.read_text(encoding="utf-8")):
            waiting, self._waiting = self._waiting, None
            if waiting is None or waiting.returncode is not None:
                waiting = await self._started(*self._imported)
            if waiting is None:
                self._imported = ()  # whatever the reason, a script meets it as well
            else:
                answer = await _asked(waiting, path, seconds)
                if waiting.returncode is None:
                    self._waiting, self._last_used = waiting, time.monotonic()
                return answer
        process = await self._started()
        if process is None:
            return None, ""
        try:
            return await _asked(process, path, seconds)
        finally:
            await _end(process)

    async def _started(self, *modules: str) -> asyncio.subprocess.Process | None:
        """An interpreter that has imported modules; None if it cannot, or may not fork then."""
        process = await asyncio.create_subprocess_exec(
            *(self._python, "-I", "-c", _INTERPRETER, str(os.getpid()), *modules),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            limit=_MAX_OUTPUT,
            # OpenBLAS would start threads when NumPy is imported.
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
            start_new_session=True,  # Ctrl-C reaches the campaign only
        )
        ready = False
        try:
            assert process.stdout is not None
            with suppress(TimeoutError):
                async with asyncio.timeout(JOB_TIMEOUT_S):
                    ready = await process.stdout.readline() == _READY
        finally:
            if not ready:
                await _end(process)
        return process if ready else None


def _finds_all_imported(text: str) -> bool:
    """True if a script imports TensorFlow, and sets no environment variables."""
    lines = text.splitlines()
    return _IMPORT in lines and not any(line.startswith(_ENVIRONMENT) for line in lines)


async def _asked(
    process: asyncio.subprocess.Process, path: Path, seconds: float
) -> tuple[int | None, str]:
    """Let an interpreter run a script (`ScriptRunner._run`); without an answer, end both."""
    assert process.stdin is not None
    assert process.stdout is not None
    answer = b""
    try:
        process.stdin.write(json.dumps([str(path), str(seconds)]).encode() + b"\n")
        with suppress(TimeoutError, ConnectionError, ValueError):  # or its output has no end
            async with asyncio.timeout(seconds + JOB_TIMEOUT_S):
                answer = await process.stdout.readline()
    finally:
        if not answer:
            await _end(process)
    if not answer:
        return None, ""
    code, output = json.loads(answer)
    return code, output


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill an interpreter, and with it the script that it runs; both have ended then."""
    assert process.stdout is not None
    with suppress(ProcessLookupError):
        process.kill()
    while await process.stdout.read(_MAX_OUTPUT):
        pass
    await process.wait()
