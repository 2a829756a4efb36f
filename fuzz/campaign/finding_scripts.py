"""Writes and runs the standalone scripts of new findings, one after the other.

No worker does it: a script runs in a process of its own, without LitmusFuzz, beside the workers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import Script, save, write_text
from litmusfuzz.fuzz.campaign.script_runner import ScriptRunner
from litmusfuzz.fuzz.campaign.scripts import script_of
from litmusfuzz.reports.events import ScriptRun
from litmusfuzz.reports.script import NoScript

if TYPE_CHECKING:
    from pathlib import Path

    from litmusfuzz.fuzz.campaign.course import Course
    from litmusfuzz.fuzz.campaign.findings import Findings
    from litmusfuzz.fuzz.finding.minimized_finding import MinimizedFinding


class Scripts:
    """The scripts of one campaign.

    Parameters
    ----------
    course : Course
    findings : Findings

    Attributes
    ----------
    waiting : list of MinimizedFinding
        New findings whose scripts are to be written and run; the first one is run.
    """

    def __init__(self, course: Course, findings: Findings) -> None:
        self.course = course
        self.findings = findings
        self.waiting: list[MinimizedFinding] = []
        self.runner = ScriptRunner(course.settings.options.python)

    def add(self, finding: MinimizedFinding) -> None:
        """Let a new finding wait for its script."""
        self.waiting.append(finding)
        self.course.notify()

    async def run(self) -> None:
        """Run the script of each new finding, until it is cancelled."""
        while True:
            while self.waiting:
                try:
                    await self._run(self.waiting[0])
                finally:
                    del self.waiting[0]
                    self.course.notify()
            await self.course.changed()
            await self.runner.rest()

    async def _run(self, finding: MinimizedFinding) -> None:
        """Write and run the standalone script of a finding on TensorFlow."""
        script = self._write(finding)
        if script is None:
            return
        shows = False
        try:
            shows = await self.runner.shows_it(script)
        finally:  # also if the time is over
            self._note(finding, shows=shows)

    def write_unrun(self) -> None:
        """Write the scripts that there was no time to run."""
        for finding in self.waiting:
            if self._write(finding) is not None:
                self._note(finding, shows=False)

    def _write(self, finding: MinimizedFinding) -> Path | None:
        """Write the script of a finding; None if it has none."""
        script = self.findings.path(finding.file).with_suffix(".py")
        try:
            write_text(script_of(finding.entry, finding.reason), script)
        except NoScript:
            return None
        return script

    def _note(self, finding: MinimizedFinding, *, shows: bool) -> None:
        """Note in the file of a finding whether its script has shown it."""
        state = Script.SHOWS_IT if shows else Script.UNCONFIRMED
        finding.entry = replace(finding.entry, finding=replace(finding.finding, script=state))
        save(finding.entry, self.findings.path(finding.file))
        self.course.log(ScriptRun(key=finding.key, file=finding.file, shows_it=shows))
