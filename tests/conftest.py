"""Makes `helpers` importable, and one command line for all tests that need it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TextIO
from unittest.mock import patch

import pytest

sys.path.insert(0, str(Path(__file__).parent))

Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def tmp_path(tmp_path: Path) -> Path:
    """A folder with none beside it: campaigns read the reports in the folders beside theirs."""
    folder = tmp_path / "alone"
    folder.mkdir()
    return folder


@pytest.fixture
def litmusfuzz(tmp_path: Path) -> Command:
    """Run the command line in a process of its own, in an empty folder."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-P", "-m", "litmusfuzz", *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.fixture
def litmusfuzz_here(tmp_path: Path) -> Command:
    """The same in this process, for tests of what a command does: see `run_here`."""
    return partial(run_here, tmp_path)


@pytest.fixture(scope="session")
def litmusfuzz_in() -> Command:
    """The same in the folder that comes first, for campaigns that several tests look at."""
    return run_here


def run_here(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command line in this process, in that folder.

    A process of its own would import everything for half a second, and each fork server again what
    its workers need.
    """
    from litmusfuzz.fuzz.cli.main import run_command

    with (
        _kept("stdout", 1) as out,
        _kept("stderr", 2) as err,
        contextlib.chdir(folder),
        patch.object(sys, "argv", ["litmusfuzz", *arguments]),
        pytest.raises(SystemExit) as end,
    ):
        run_command()
    code = end.value.code
    assert isinstance(code, int)
    return subprocess.CompletedProcess(arguments, code, "".join(out), "".join(err))


@contextlib.contextmanager
def _kept(name: str, descriptor: int) -> Iterator[list[str]]:
    """Keep what is written to a standard stream, by Python or not; it is there at the end."""
    text: list[str] = []
    stream: TextIO = getattr(sys, name)
    with tempfile.TemporaryFile("w+", encoding="utf-8") as file:
        stream.flush()
        before = os.dup(descriptor)
        os.dup2(file.fileno(), descriptor)
        try:
            with patch.object(sys, name, file):
                yield text
        finally:
            os.dup2(before, descriptor)
            os.close(before)
            file.seek(0)
            text.append(file.read())
