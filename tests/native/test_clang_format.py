"""All C++ and CUDA files are formatted as ``.clang-format`` says."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted(
    path
    for folder in ("fuzz/native", "oracles/native", "tests/native")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in {".cc", ".cpp", ".cu", ".h"}
)


def clang_format() -> str:
    """Path of the pinned clang-format, which the extra ``dev`` installs beside Python."""
    found = shutil.which("clang-format", path=str(Path(sys.executable).parent))
    if found is None:
        pytest.skip("no clang-format in this environment: pip install -e '.[dev]' installs it")
    return found


def test_every_file_is_formatted() -> None:
    done = subprocess.run(
        [clang_format(), "--dry-run", "--Werror", *SOURCES],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"run clang-format -i on the files below\n{done.stderr}"
