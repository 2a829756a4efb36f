"""Standalone scripts of findings, on TensorFlow and on JAX's references: written, and run.

A script runs without LitmusFuzz. One on JAX's references stays as it is found: it executes a
program of one thread, which chance has no part in.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Final

from litmusfuzz.fuzz.executors.jax_refs.script import END as END_ON_JAX
from litmusfuzz.fuzz.executors.jax_refs.script import script as references_script
from litmusfuzz.fuzz.executors.jax_refs.space import COPIES, FORBIDDEN, Settings
from litmusfuzz.fuzz.executors.protocol import Refused
from litmusfuzz.fuzz.executors.table import UnknownExecutor, configuration, executor_class
from litmusfuzz.oracles import sequential
from litmusfuzz.oracles.errors import NoGradient, NoProgramOrder, ValueTooLarge
from litmusfuzz.reports.script import FIRST_SEEN, LAST_LINE, NoScript, script

if TYPE_CHECKING:
    from pathlib import Path

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.textfile import Entry, Finding
    from litmusfuzz.fuzz.executors.protocol import Config

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
"""Further seconds for the import of TensorFlow or JAX and the last session."""


def script_of(entry: Entry, reason: str) -> str:
    """The script for a finding, with the environment variables of its configuration.

    Raises
    ------
    NoScript
        Saying what a script cannot have.
    """
    found = entry.finding
    if found is not None and found.executor == "jax_refs":
        return _jax_script(entry, found)
    environment: dict[str, str] = {}
    if found is not None and found.executor == "tf":
        try:
            environment = dict(configuration("tf", found.configuration).environment)
        except UnknownExecutor as error:
            raise NoScript(str(error)) from None
    return script(entry, environment, reason)


def _jax_script(entry: Entry, found: Finding) -> str:
    try:
        config = configuration("jax_refs", found.configuration)
    except UnknownExecutor as error:
        raise NoScript(str(error)) from None
    torn = any(outcome.torn for outcome, _ in found.forbidden)
    # What all executions show, the first one does.
    always = sum(count for _, count in found.forbidden) >= found.executions
    place = found.run_seed if always else None
    return jax_script(entry.test, config, found.versions.get("jax", ""), dtypes=torn, place=place)


def jax_script(
    test: LitmusTest,
    config: Config,
    version: str,
    *,
    dtypes: bool = False,
    place: int | None = None,
    error: str = "",
) -> str:
    """The script of a test in a configuration of `jax_refs`.

    Parameters
    ----------
    test : LitmusTest
    config : Config
    version : str
        Of JAX.
    dtypes : bool
        Show the values' dtypes too.
    place : int, optional
        The seed of a run whose first execution shows it: the script executes that one alone.
    error : str
        Type and place of the exception that it shows; "" for an outcome.

    Raises
    ------
    NoScript
        If the test is no program over references.
    """
    plain = config.name.replace("\\", "").replace('"', "")
    seen = " ".join(("JAX", *re.findall(r"^[\w.+-]+$", version)))
    settings = Settings.of(config)
    title = f"{seen}, {plain}: {error or 'not what program order gives, or it fails'}."
    if settings.forbidden:
        title = f"{seen}, forbidden: {FORBIDDEN[settings.forbidden]}. Not what program order gives."
    try:
        if lacking := executor_class("jax_refs").support.lacking(test):
            raise NoScript(f"a script cannot have {', '.join(lacking)}")
        return references_script(
            test,
            settings,
            sequential.outcome(test),
            title,
            dtypes=dtypes,
            place=None if place is None else place % COPIES,
            fails=bool(error),
        )
    except (Refused, NoProgramOrder, ValueTooLarge, NoGradient) as error:
        raise NoScript(str(error)) from None


def crash_script(
    test: LitmusTest, executor: str, config: Config, version: str, place: int | None, error: str
) -> str:
    """The script of a test on which an exception of JAX's ended a worker.

    Parameters
    ----------
    test : LitmusTest
    executor : str
    config : Config
    version, place, error
        As of `jax_script`.

    Raises
    ------
    NoScript
        If the test is no program over references.
    """
    if executor != "jax_refs":
        raise NoScript(f"there are no scripts of what ends a process of {executor}")
    return jax_script(test, config, version, place=place, error=error)


async def shows_it(
    path: Path, seconds: float = SCRIPT_S, python: str | None = None, error: str = ""
) -> bool:
    """Run a script in an isolated interpreter, which cannot import LitmusFuzz.

    True if a forbidden outcome showed, or the exception. Where an op corrupts memory, the
    interpreter may crash after that, or before: then another one tries in the time that is left.
    The process ends with this call, even a cancelled one.

    Parameters
    ----------
    path : Path
    seconds : float
        For which it tries.
    python : str, optional
        Another interpreter than this one.
    error : str
        The type of an exception of JAX's; "" for a forbidden outcome.
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
    if values := END_ON_JAX.search(output.strip()):
        return code == 1 and (values[2] == error if error else values[1] != values[2])
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
