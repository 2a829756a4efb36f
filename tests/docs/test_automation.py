"""The workflow and the line for cron that users copy for nightly runs."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from pages import ROOT, blocks

if TYPE_CHECKING:
    from collections.abc import Callable

FOLDER = ROOT / "docs" / "automation"


@pytest.fixture(scope="module")
def steps() -> list[dict[str, Any]]:
    text = (FOLDER / "nightly.yml").read_text(encoding="utf-8")
    (job,) = yaml.safe_load(text)["jobs"].values()
    return list(job["steps"])


def test_the_scripts_of_the_workflow_are_valid_shell(steps: list[dict[str, Any]]) -> None:
    scripts = [step["run"] for step in steps if "run" in step]
    assert len(scripts) == 5
    for script in scripts:
        plain = re.sub(r"\$\{\{.*?\}\}", "value", script)
        checked = subprocess.run(["/bin/bash", "-n", "-c", plain], capture_output=True, check=False)
        assert not checked.returncode, checked.stderr


def test_the_commands_of_the_workflow_exist(
    steps: list[dict[str, Any]], mistake: Callable[[str], str]
) -> None:
    scripts = "\n".join(step.get("run", "") for step in steps).replace("\\\n", "")
    commands = re.findall(r"^\s*(litmusfuzz .*?)(?: \|\| .*)?$", scripts, re.MULTILINE)
    assert any(command.startswith("litmusfuzz nightly ") for command in commands)
    for command in commands:
        assert not mistake(re.sub(r"\$\([^)]*\)", "value", command)), command


def test_each_output_that_a_step_uses_is_written_by_a_step(
    steps: list[dict[str, Any]],
) -> None:
    text = (FOLDER / "nightly.yml").read_text(encoding="utf-8")
    written = {
        (step["id"], name)
        for step in steps
        if "id" in step
        for name in re.findall(r'echo "(\w+)=', step["run"])
    }
    assert set(re.findall(r"steps\.(\w+)\.outputs\.(\w+)", text)) <= written


def test_the_line_for_cron_runs_an_existing_command(mistake: Callable[[str], str]) -> None:
    (block,) = (b for b in blocks(ROOT / "docs" / "nightly.md") if b.language == "crontab")
    (line,) = block.text.splitlines()
    command = re.fullmatch(r"(?:[\d*/,-]+ +){5}(.*)", line)[1]
    # Cron ends a command at %, unless it is escaped.
    assert not re.search(r"(?<!\\)%", command)
    plain = command.replace("\\%", "%")
    checked = subprocess.run(["/bin/bash", "-n", "-c", plain], capture_output=True, check=False)
    assert not checked.returncode, checked.stderr
    (ours,) = re.findall(r"\.venv/bin/(litmusfuzz .*?) >", plain)
    assert not mistake(ours)
