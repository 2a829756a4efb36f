"""Makes `helpers` importable, and one command line for all tests that need it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

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

    def run(*arguments: str, timeout_s: float = 120) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-P", "-m", "litmusfuzz", *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    return run


@pytest.fixture
def litmusfuzz_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    """The same in this process: for many mistakes, each of which would import all of it."""
    from litmusfuzz.fuzz.cli.main import run_command

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["litmusfuzz", *arguments])
        with pytest.raises(SystemExit) as end:
            run_command()
        printed = capsys.readouterr()
        code = end.value.code
        assert isinstance(code, int)
        return subprocess.CompletedProcess(arguments, code, printed.out, printed.err)

    return run
