"""docs/control.md: the example of a graph of one's own is executed in every run of the tests."""

from __future__ import annotations

import subprocess
import sys

from pages import ROOT, blocks

PAGE = ROOT / "docs" / "control.md"


def test_the_example_prints_what_the_page_says(tmp_path) -> None:
    (script,) = (each for each in blocks(PAGE) if each.words == ("own.py",))
    (command,) = (c for b in blocks(PAGE) if b.runs for c in b.commands() if "own.py" in c.text)
    file = tmp_path / "own.py"
    file.write_text(script.text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(file)], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert command.prints is not None
    assert done.stdout.splitlines() == [line for line in command.prints if line != "..."]
