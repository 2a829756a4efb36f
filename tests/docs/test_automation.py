"""The workflow and the line for cron that users copy for nightly runs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from guide import example, installed
from pages import ROOT, blocks
from workflow import Runner

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
        checked = subprocess.run(
            ["/bin/bash", "-n", "-c", script], capture_output=True, check=False
        )
        assert not checked.returncode, checked.stderr


def test_the_commands_of_the_workflow_exist(
    steps: list[dict[str, Any]], mistake: Callable[[str], str]
) -> None:
    scripts = "\n".join(step.get("run", "") for step in steps).replace("\\\n", "")
    commands = re.findall(r"^\s*(litmusfuzz .*?)(?: \|\| .*)?$", scripts, re.MULTILINE)
    assert any(command.startswith("litmusfuzz nightly ") for command in commands)
    for command in commands:
        plain = command.replace('"$TIME"', "2h").replace('"$KEPT"', "30")
        plain = plain.replace('"${known[@]}"', "--known known.yaml")
        assert not mistake(plain), command


def test_each_action_is_pinned_by_the_commit_of_a_release() -> None:
    """In each workflow of the repository, and with the release behind it."""
    files = [p for p in ROOT.rglob("*.yml") if not {".venv", "build"} & set(p.parts)]
    used = [
        line
        for path in files
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.match(r"\s*(- )?uses:", line)
    ]
    assert len(used) == 5
    for line in used:
        assert re.fullmatch(r"\s*(- )?uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line), line


def test_no_script_of_the_workflow_has_an_expression_in_it(steps: list[dict[str, Any]]) -> None:
    """Its value would be shell text; a variable's is not."""
    assert not [step["run"] for step in steps if "${{" in step.get("run", "")]


def test_each_step_has_the_keys_that_github_knows(steps: list[dict[str, Any]]) -> None:
    for step in steps:
        assert ("run" in step) is not ("uses" in step)
        assert set(step) <= {"name", "id", "if", "env", "run", "uses", "with"}


@pytest.fixture
def machine(tmp_path: Path) -> Callable[[int], Runner]:
    """Makes the machine of each run, on a project that is not ours.

    `gh`, which would talk to GitHub, is a script here that notes how it was called.
    """
    tools, caches, artifacts = (tmp_path / name for name in ("tools", "caches", "artifacts"))
    tools.mkdir()
    caches.mkdir()
    gh = tools / "gh"
    gh.write_text(f'#!/bin/sh\necho "$@" >> "{tmp_path}/gh.log"\n')
    gh.chmod(0o755)
    path = os.pathsep.join([str(tools), str(Path(sys.executable).parent), os.environ["PATH"]])

    def made(run_id: int) -> Runner:
        project = tmp_path / f"machine-{run_id}" / "project"
        project.mkdir(parents=True)
        (project / "README.md").write_text("Somebody's project.\n")
        environment = {**os.environ, "PATH": path, "PIP_NO_INDEX": "1"}
        return Runner(project, caches, artifacts, environment, run_id)

    return made


# What pip installs here is there already: tests/packaging installs the wheel in such a project.
TINY = {"PACKAGE": "pip", "EXECUTORS": "mutant/stale-reads", "KEPT": "2"}
WORKFLOW = FOLDER / "nightly.yml"
EARLIER = {
    "started": 1,
    "ended": 2,
    "graphs": 3,
    "outcomes": 4,
    "new": [],
    "mutation_score": None,
    "kills": [],
    "findings": [],
}
"""What later runs read of a `report.json`."""
KNOWN = """\
litmusfuzz_known: 3
findings:
  - name: not-here
    why: this project's own file
    pattern: {symptoms: [crashed], kernels: [ResourceScatter], classes: [tf/xla]}
"""


def test_a_run_with_new_findings_is_kept_and_reported(
    machine: Callable[[int], Runner], tmp_path: Path
) -> None:
    """It begins with the history of earlier runs, and takes the project's known findings."""
    old = tmp_path / "caches" / "litmusfuzz-nightly-0-1" / "2026-01-01"
    old.mkdir(parents=True)
    (old / "report.json").write_text(json.dumps(EARLIER))
    # On a busy machine hardly anything starts in 5 s: the first run that tests something will do.
    # A test in three kills this mutant.
    for number, seconds in enumerate((5, 20, 80, 320), 1):
        done = machine(number)
        (done.project / "known.yaml").write_text(KNOWN)
        done.run(WORKFLOW, TINY | {"TIME": f"{seconds}s"})
        if done.outputs["fuzz"]["code"] == "1":
            break
    assert done.outputs["fuzz"]["code"] == "1", done.log
    assert done.failed  # the last step ends as the run did
    folder = done.outputs["fuzz"]["folder"]
    cache = tmp_path / "caches" / f"litmusfuzz-nightly-{number}-1"
    report = json.loads((cache / Path(folder).name / "report.json").read_text(encoding="utf-8"))
    assert report["earlier"][0]["graphs"] == 3
    assert "--keep 2 --out nightly/" in report["command"]
    assert [each["why"] for each in report["known"]] == ["this project's own file"]
    summary = (tmp_path / f"machine-{number}" / "runner" / "GITHUB_STEP_SUMMARY").read_text()
    assert summary.startswith("# LitmusFuzz: ")
    assert (tmp_path / "artifacts" / f"nightly-run-1-{number}" / "report.html").is_file()
    opened = (tmp_path / "gh.log").read_text()
    assert "issue create --label litmusfuzz --title LitmusFuzz: new findings" in opened
    issue = (done.project / "issue.md").read_text(encoding="utf-8")
    assert (
        issue
        == f"Report: https://github.example/somebody/project/actions/runs/{number}\n\n" + summary
    )


def test_a_run_with_nothing_new_opens_no_issue(
    machine: Callable[[int], Runner], steps: list[dict[str, Any]]
) -> None:
    (issue,) = (step for step in steps if "issue" in step.get("name", ""))
    runner = machine(1)
    for code, opens in (("0", False), ("1", True), ("2", False), ("3", False), ("", False)):
        runner.outputs["fuzz"] = {"code": code}
        assert runner.value(issue["if"]) is opens


CRASHES = example().replace(
    "    while waiting:\n",
    """    if any(node.op == "AssignAddVariableOp" for node in waiting):
        import os

        os._exit(7)
    while waiting:
""",
)
"""An executor that dies on some tests, and is right on all others."""
CRASH_IS_KNOWN = """\
litmusfuzz_known: 3
findings:
  - name: no-additions
    why: it cannot add
    pattern:
      symptoms: [crashed]
      kernels: [AssignAddVariableOp]
      classes: [breaks/executor]
      message: exit 7
"""


def test_the_first_day_opens_nothing_if_all_that_shows_is_known(
    machine: Callable[[int], Runner], tmp_path: Path
) -> None:
    """The whole workflow, on a project without earlier runs whose executor has a known defect."""
    theirs = installed(tmp_path / "theirs", {"breaks": CRASHES}, {"breaks": "breaks:Interleaver"})
    # On a busy machine hardly anything starts in 5 s: the first run that shows it will do.
    for number, seconds in enumerate((5, 20, 80, 320), 1):
        done = machine(number)
        done.environment = {**done.environment, "PYTHONPATH": theirs["PYTHONPATH"]}
        (done.project / "known.yaml").write_text(CRASH_IS_KNOWN)
        done.run(WORKFLOW, TINY | {"EXECUTORS": "breaks", "TIME": f"{seconds}s"})
        folder = done.project / done.outputs["fuzz"]["folder"]
        report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
        if report["findings"] and done.outputs["fuzz"]["code"] == "0":
            break
    assert done.outputs["fuzz"]["code"] == "0", done.log
    assert {(each["kind"], each["known"]) for each in report["findings"]} == {
        ("crashed", "it cannot add")
    }
    assert report["verdict"] == "nothing new; 1 known cause showed"
    assert not done.failed
    assert {"Fuzz", "Save the history", "Summary", "Exit as the nightly run did"} <= {*done.ran}
    assert "Open an issue for new findings" not in done.ran
    assert not (tmp_path / "gh.log").exists()
    assert not (done.project / "issue.md").exists()


def test_what_is_shipped_is_known_to_the_workflow(steps: list[dict[str, Any]]) -> None:
    """Otherwise the first day would open an issue."""
    (fuzz,) = (step["run"] for step in steps if step.get("id") == "fuzz")
    assert "known=()" in fuzz
    assert "none" not in fuzz
    (command,) = re.findall(r"litmusfuzz nightly (?:.|\n)*? \|\|", fuzz)
    assert command.count("--known") == 0


def test_a_broken_run_is_kept_as_well(machine: Callable[[int], Runner], tmp_path: Path) -> None:
    """And all that is left of earlier runs: `--keep` prunes these."""
    broken = machine(3)
    for day in range(1, 5):
        old = tmp_path / "caches" / "litmusfuzz-nightly-2-1" / f"2026-01-0{day}"
        old.mkdir(parents=True)
        (old / "stats").write_text("")
    broken.run(WORKFLOW, TINY | {"EXECUTORS": "nobody", "TIME": "1s"})
    assert broken.outputs["fuzz"]["code"] == "2"
    assert broken.failed
    assert "Save the history" in broken.ran
    kept = sorted(path.name for path in tmp_path.glob("caches/litmusfuzz-nightly-3-1/*"))
    assert kept == [f"2026-01-0{day}" for day in range(1, 5)]


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
