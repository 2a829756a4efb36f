"""What commits have changed in tests beside imports: ``python -m tests.moved_only BASE``.

For commits that move code: their tests must be those that there were. Names each file that differs
from that of the commit BASE by more than its imports, and exits with 1 if there is one.
"""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


class _WithoutImports(ast.NodeTransformer):
    """Takes imports out, wherever they are."""

    def visit_Import(self, node: ast.Import) -> None:
        """Nothing is left of it."""

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """Nothing is left of it."""


def without_imports(source: str) -> str:
    """What a module is but for its imports, comments and layout."""
    return ast.dump(_WithoutImports().visit(ast.parse(source)))


def changed_otherwise(base: str) -> list[str]:
    """Tests that differ from those of a commit by more than imports, or are in one only."""
    differ = git("diff", "--name-only", "--no-renames", base, "--", "tests").splitlines()
    there = {*git("ls-tree", "-r", "--name-only", base, "--", "tests").splitlines()}
    found = []
    for file in differ:
        is_module = file.endswith(".py") and file in there and (ROOT / file).exists()
        if not is_module or without_imports(git("show", f"{base}:{file}")) != without_imports(
            (ROOT / file).read_text(encoding="utf-8")
        ):
            found.append(file)
    return found


def git(*arguments: str) -> str:
    """What a command of git prints in this project."""
    program = shutil.which("git")
    assert program is not None, "git is missing"
    command = [program, "-C", str(ROOT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def main(arguments: list[str]) -> int:
    """Print the files; 1 if there are any."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m tests.moved_only BASE\n")
        return 2
    found = changed_otherwise(arguments[0])
    sys.stdout.writelines(f"{file}: more than its imports has changed\n" for file in found)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
