"""Runs the job of a GitHub workflow here: scripts for real, and actions by what they leave.

A script runs in bash as a runner does it (``bash -e -o pipefail``), with the files that a runner
gives it. Of the actions only their effect on the working folder is imitated: a cache is a folder
that is copied. Nothing of GitHub itself is shown by this.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")


@dataclass
class Runner:
    """A machine that runs one job, and what it leaves behind.

    Parameters
    ----------
    project : Path
        The checkout.
    caches, artifacts : Path
        Folders in place of GitHub's.
    environment : mapping of str to str
        Of the machine.
    """

    project: Path
    caches: Path
    artifacts: Path
    environment: Mapping[str, str]
    run_id: int = 1
    failed: bool = False
    outputs: dict[str, dict[str, str]] = field(default_factory=dict)
    ran: list[str] = field(default_factory=list)
    """Names of the steps that ran."""
    log: str = ""

    def run(self, workflow: Path, changes: Mapping[str, str]) -> None:
        """Run the only job, with other values of the workflow's own variables."""
        data = yaml.safe_load(workflow.read_text(encoding="utf-8"))
        (job,) = data["jobs"].values()
        assert set(changes) <= set(data["env"])
        own = {name: str(value) for name, value in data["env"].items()} | dict(changes)
        for step in job["steps"]:
            if self.value(step.get("if", "success()")):
                self.ran.append(step.get("name") or step["uses"].partition("@")[0])
                given = {k: self.filled(str(v)) for k, v in step.get("env", {}).items()}
                if "run" in step:
                    self.script(step, own | given)
                else:
                    self.action(step["uses"].partition("@")[0], step.get("with", {}))

    def script(self, step: Mapping[str, Any], variables: Mapping[str, str]) -> None:
        """Run a script of a step."""
        folder = self.project.parent / "runner"
        folder.mkdir(exist_ok=True)
        files = {n: folder / n for n in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        files["GITHUB_OUTPUT"].write_text("")
        ids = {"GITHUB_RUN_ID": str(self.run_id), "GITHUB_RUN_ATTEMPT": "1"}
        done = subprocess.run(
            ["/bin/bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]],
            cwd=self.project,
            env={
                **self.environment,
                **variables,
                **ids,
                **{name: str(path) for name, path in files.items()},
                "GITHUB_ACTIONS": "true",
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        self.log += done.stdout
        self.failed = self.failed or done.returncode != 0
        lines = files["GITHUB_OUTPUT"].read_text().splitlines()
        self.outputs[step.get("id", "")] = dict(line.split("=", 1) for line in lines)

    def action(self, name: str, given: Mapping[str, str]) -> None:
        """Imitate an action's effect on the working folder."""
        if name == "actions/cache/restore":
            prefix = given["restore-keys"].strip()
            saved = sorted(self.caches.glob(f"{prefix}*"), key=lambda path: path.stat().st_mtime_ns)
            if saved:
                shutil.copytree(saved[-1], self.project / given["path"])
        elif name == "actions/cache/save":
            source = self.project / given["path"]
            if source.is_dir():
                shutil.copytree(source, self.caches / self.filled(given["key"]))
        elif name == "actions/upload-artifact":
            source = self.project / self.filled(given["path"])
            if source.is_dir():
                shutil.copytree(source, self.artifacts / self.filled(given["name"]))
        else:
            assert name in ("actions/checkout", "actions/setup-python"), name

    def filled(self, text: str) -> str:
        """A text with the values of its expressions."""
        return _EXPRESSION.sub(lambda match: str(self.value(match[1])), text)

    def value(self, expression: str) -> Any:
        """The value of an expression; of those that the workflows here have."""
        if "&&" in expression:
            return all(self.value(part.strip()) for part in expression.split("&&"))
        if match := re.fullmatch(r"(\S+) (==|!=) '(\w*)'", expression):
            return (self.value(match[1]) == match[3]) is (match[2] == "==")
        if match := re.fullmatch(r"steps\.(\w+)\.outputs\.(\w+)", expression):
            return self.outputs.get(match[1], {}).get(match[2], "")
        constants = {
            "always()": True,
            "success()": not self.failed,
            "github.run_id": str(self.run_id),
            "github.run_attempt": "1",
            "github.token": "no-token",
            "github.repository": "somebody/project",
            "github.server_url": "https://github.example",
        }
        return constants[expression]
