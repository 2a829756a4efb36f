"""Standalone scripts of findings on TensorFlow: written, and run without LitmusFuzz."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.outcome import Verdict
from litmusfuzz.fuzz.campaign.judge import explorer_or_none, judge, listed
from litmusfuzz.fuzz.campaign.settings import CAMPAIGN_BUDGET
from litmusfuzz.fuzz.executors.table import UnknownExecutor, configuration
from litmusfuzz.oracles.model import ACD, RFC
from litmusfuzz.reports.script import FIRST_SEEN, LAST_LINE, NoScript, script

if TYPE_CHECKING:
    from pathlib import Path

    from litmusfuzz.corpus.textfile import Entry

# A script stands alone: it is another's matter to end it when we are gone.
_WATCHED: Final = """
import os, runpy, sys, threading, time
parent = int(sys.argv[1])
def watch():
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)
threading.Thread(target=watch, daemon=True).start()
del sys.argv[:2]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
SCRIPT_S: Final = 20.0
"""Seconds for which a script tries."""
START_S: Final = 60.0
"""Further seconds for TensorFlow's import and the last session."""


def script_of(entry: Entry, reason: str) -> str:
    """The script for a finding, with the environment variables of its configuration.

    Raises
    ------
    NoScript
        Saying what a script cannot have.
    """
    found = entry.finding
    environment: dict[str, str] = {}
    if found is not None and found.executor == "tf":
        try:
            environment = dict(configuration("tf", found.configuration).environment)
        except UnknownExecutor as error:
            raise NoScript(str(error)) from None
    return script(_without_front_end(entry), environment, reason)


def _without_front_end(entry: Entry) -> Entry:
    """A finding under `acd`, judged by `rfc` if that forbids all of it: a script adds no edges."""
    found = entry.finding
    if found is None or found.model != ACD.name:
        return entry
    oracle = explorer_or_none(entry.test, RFC, CAMPAIGN_BUDGET)
    if oracle is None or set(judge(oracle, dict(found.forbidden)).verdicts) != {Verdict.FORBIDDEN}:
        return entry
    allowed = listed(entry.test, RFC, CAMPAIGN_BUDGET)
    return replace(entry, allowed=allowed, finding=replace(found, model=RFC.name))


async def shows_it(path: Path, seconds: float = SCRIPT_S, python: str | None = None) -> bool:
    """Run a script in an isolated interpreter, which cannot import LitmusFuzz.

    True if a forbidden outcome showed. Where an op corrupts memory, the interpreter may crash
    after that, or before: then another one tries in the time that is left. The process ends with
    this call, even a cancelled one.

    Parameters
    ----------
    path : Path
    seconds : float
        For which it tries.
    python : str, optional
        Another interpreter than this one.
    """
    end = time.monotonic() + seconds
    while True:
        code, output = await _run(path, max(0.0, end - time.monotonic()), python)
        if code is None or code >= 0:
            break
        if any(line.startswith(FIRST_SEEN) for line in output.splitlines()):
            return True
        if time.monotonic() > end:
            return False
    match = LAST_LINE.fullmatch(output.strip().rpartition("\n")[2])
    return code == 1 and match is not None and int(match[1]) > 0


async def _run(path: Path, seconds: float, python: str | None) -> tuple[int | None, str]:
    """Run a script once: the exit code of its interpreter, None if it hung, and its output."""
    process = await asyncio.create_subprocess_exec(
        *(python or sys.executable, "-I", "-c", _WATCHED),
        *(str(os.getpid()), str(path), str(seconds)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(seconds + START_S):
            output, _ = await process.communicate()
    except TimeoutError:
        return None, ""
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode, output.decode(errors="replace")
