"""Tests of the installed corpus, by name."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

FOLDERS: Final = tuple(Path(__file__).parent / name for name in ("litmus", "findings"))
"""Tests with their exact allowed sets, and findings; names are unique across both."""
JAX: Final = FOLDERS[1] / "jax"
"""Findings of JAX's references; before their names stands ``jax-``, as in `known.yaml`."""


@cache
def paths() -> dict[str, Path]:
    """Every test of the corpus, by name, in alphabetical order."""
    named = {path.stem: path for folder in FOLDERS for path in folder.glob("*.yaml")}
    named |= {f"jax-{path.stem}": path for path in JAX.glob("*.yaml")}
    return dict(sorted(named.items()))


def script_of(name: str) -> Path | None:
    """The script of a finding that no test shows; None if there is none of that name."""
    scripts = {path.stem: path for path in FOLDERS[1].glob("*.py")}
    return None if name in paths() else scripts.get(name)


def title(path: Path) -> str:
    """First line of a test's description."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("description: |"):
                return next(lines, "").strip()
            if line.startswith("description:"):
                return line.removeprefix("description:").strip()
    return ""
