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
    if path.suffix in {".cpp", ".cu", ".h"}
)


def clang_format() -> str:
    """Path of the pinned clang-format, which the extra ``dev`` installs beside Python."""
    found = shutil.which("clang-format", path=str(Path(sys.executable).parent))
    if found is None:
        pytest.skip("no clang-format in this environment: pip install -e '.[dev]' installs it")
    return found


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_file_is_formatted(path: Path) -> None:
    done = subprocess.run(
        [clang_format(), "--dry-run", "--Werror", path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"run clang-format -i {path.relative_to(ROOT)}\n{done.stderr}"
