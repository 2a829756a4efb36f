"""Tests of the installed corpus, by name."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

FOLDERS: Final = tuple(Path(__file__).parent / name for name in ("litmus", "findings"))
"""Tests with their exact allowed sets, and findings; names are unique across both."""


@cache
def paths() -> dict[str, Path]:
    """Every test of the corpus, by name, in alphabetical order."""
    files = [path for folder in FOLDERS for path in folder.glob("*.yaml")]
    return {path.stem: path for path in sorted(files, key=lambda path: path.stem)}


def title(path: Path) -> str:
    """First line of a test's description."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("description: |"):
                return next(lines, "").strip()
            if line.startswith("description:"):
                return line.removeprefix("description:").strip()
    return ""
