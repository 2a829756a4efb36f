"""The executor that docs/executors.md shows, installed by a real entry point."""

from __future__ import annotations

import os
import re
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
NAME = "interleaver"
CHANGED = "held.keys() >= {*n.inputs, *n.after}", "held.keys() >= {*n.inputs}"
"""The one line that the page has changed, before and after."""


def example() -> str:
    """The page's first block of Python."""
    page = (DOCS / "executors.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python[^\n]*\n(.*?)```", page, re.DOTALL)
    assert CHANGED[1] in blocks[1]
    return blocks[0]


def mutant() -> str:
    """The same with that line."""
    source = example()
    assert source.count(CHANGED[0]) == 1
    return source.replace(*CHANGED)


def installed(folder: Path, modules: dict[str, str], points: dict[str, str]) -> dict[str, str]:
    """The environment in which a package with these modules and entry points is installed."""
    made = folder / f"{folder.name}-1.dist-info"
    made.mkdir(parents=True)
    (made / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {folder.name}\nVersion: 1\n")
    lines = ["[litmusfuzz.executors]", *(f"{name} = {target}" for name, target in points.items())]
    (made / "entry_points.txt").write_text("\n".join([*lines, ""]))
    for name, source in modules.items():
        (folder / f"{name}.py").write_text(source)
    path = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | {"PYTHONPATH": os.pathsep.join(path)}


def with_guide(folder: Path) -> dict[str, str]:
    """The page's executor, and the changed one as ``careless``."""
    modules = {NAME: example(), "careless": mutant()}
    return installed(folder, modules, {n: f"{n}:Interleaver" for n in modules})
