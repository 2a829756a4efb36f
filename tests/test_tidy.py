"""The plan of the house: who may import whom, and what no file may hold."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROOMS = {
    "corpus": {"corpus"},
    "oracles": {"oracles", "corpus"},
    "reports": {"reports", "corpus"},
    "fuzz": {"fuzz", "corpus", "oracles", "reports"},
}
# Inside `fuzz`: what lies under what.
FLOORS = [
    "passes",
    "strategies",
    "engines",
    "mutants",
    "executors",
    "campaign",
    "commands",
    "__main__",
]
SOURCES = sorted(p for room in ROOMS for p in (ROOT / room).rglob("*.py"))


def imported(path: Path) -> set[str]:
    """Modules that a file imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_down(path: Path) -> None:
    room = path.relative_to(ROOT).parts[0]
    ours = [name.split(".") for name in imported(path) if name.startswith("litmusfuzz.")]
    assert {name[1] for name in ours} & set(ROOMS) <= ROOMS[room]


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_inside_fuzz_imports_point_down_too(path: Path) -> None:
    parts = path.relative_to(ROOT / "fuzz").with_suffix("").parts if "fuzz" in path.parts else ()
    if not parts or parts[0] not in FLOORS:
        return
    above = set(FLOORS[FLOORS.index(parts[0]) + 1 :])
    used = {n.split(".")[2] for n in imported(path) if n.startswith("litmusfuzz.fuzz.")}
    if parts[0] == "mutants":
        above -= {"executors"}  # a mutant is an executor: it knows the protocol
    assert not used & above


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_an_executor_never_sees_an_oracle_nor_a_report(path: Path) -> None:
    if "executors" in path.parts:
        assert not [
            n for n in imported(path) if n.startswith(("litmusfuzz.oracles", "litmusfuzz.reports"))
        ]


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_frameworks_are_imported_by_their_own_executor_only(path: Path) -> None:
    names = {n.split(".")[0] for n in imported(path)}
    if path.parent.name != "tensorflow":
        assert "tensorflow" not in names
    if path.parent.name != "jax_clustered":
        assert "jax" not in names


@pytest.mark.parametrize(
    "arguments", [["oracle"], ["show"], ["validate"], ["herd", "log"], ["herd", "export"]]
)
def test_commands_that_run_nothing_load_nothing_heavy(arguments: list[str]) -> None:
    """No framework, no NumPy, no rich: what keeps `oracle` and `show` quick."""
    code = (
        "import sys; from litmusfuzz.fuzz.cli.main import main\n"
        f"sys.argv = ['litmusfuzz', *{arguments!r}, {str(ROOT / 'corpus/litmus/SB.yaml')!r}]\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
        "heavy = {'tensorflow', 'jax', 'numpy', 'rich', 'hypothesis', 'psutil', 'z3'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, timeout=60)


def test_every_source_has_a_docstring_and_no_stars() -> None:
    for path in SOURCES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert ast.get_docstring(tree), path
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                assert all(alias.name != "*" for alias in node.names), path


def test_the_lock_pins_every_requirement_by_hash_and_names_no_index() -> None:
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    assert "://" not in text
    requirements = [line for line in text.splitlines() if line[:1].strip() not in ("", "#")]
    assert requirements
    for line in requirements:
        assert re.match(r"[a-z0-9.-]+==[^ ]+ .*\\$", line), line  # a line of hashes follows
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = [*project["project"]["dependencies"], *project["build-system"]["requires"]]
    wanted += project["project"]["optional-dependencies"]["dev"]
    locked = {line.partition("==")[0] for line in requirements}
    names = {re.split(r"[^A-Za-z0-9_.-]", each)[0].lower().replace("_", "-") for each in wanted}
    assert names - {"litmusfuzz"} <= locked
