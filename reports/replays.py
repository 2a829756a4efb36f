"""Report of a replay: one test on one executor or several."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from litmusfuzz.reports.text import replay_line, replay_notes, replay_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from litmusfuzz.reports.differential import DifferentialComparison
    from litmusfuzz.reports.text import ReplayReport


@dataclass(frozen=True, slots=True)
class Replays:
    """Reports of at least one executor; `not_run` has the reason for the others."""

    reports: tuple[ReplayReport, ...]
    not_run: Mapping[str, str]
    comparison: DifferentialComparison

    @property
    def alone(self) -> bool:
        """True if one executor was asked for."""
        return len(self.reports) + len(self.not_run) == 1

    @property
    def exit_code(self) -> int:
        """Exit code of the command: 1 forbidden, 3 undecided, 0 clean."""
        codes = {report.exit_code for report in self.reports}
        return next((code for code in (1, 3) if code in codes), 0)

    def text(self) -> str:
        """Observed against allowed outcomes; of several executors as a comparison."""
        if self.alone:
            return replay_text(self.reports[0])
        lines = [self.comparison.table(), ""]
        for report in self.reports:
            lines += replay_notes(report)
        lines += [f"{title}: not run: {why}" for title, why in self.not_run.items()]
        return "\n".join(lines)

    def lines(self) -> str:
        """A line for each executor."""
        if self.alone:
            return replay_line(self.reports[0])
        lines = [f"{r.executor}/{r.config}: {replay_line(r)}" for r in self.reports]
        lines += [f"{title}: not run: {why}" for title, why in self.not_run.items()]
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        """Plain data with everything that `text` has."""
        if self.alone:
            return self.reports[0].as_json()
        return {
            "test": self.comparison.test.name,
            "file": self.reports[0].file,
            **self.comparison.as_json(),
            "replays": [report.as_json() for report in self.reports],
            "not_run": dict(self.not_run),
            "exit_code": self.exit_code,
        }
