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
def litmusfuzz(tmp_path: Path) -> Command:
    """Run the command line in a process of its own, in an empty folder."""

    def run(*arguments: str, timeout_s: float = 120) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "fuzz", *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    return run
