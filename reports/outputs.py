"""Output files of a campaign: JSON, SARIF, JUnit, Markdown and HTML."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, Final

from litmusfuzz.corpus.outcome import Outcome
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import Entry, dumps, write_into
from litmusfuzz.reports import drawing, stats
from litmusfuzz.reports.denials import no_findings
from litmusfuzz.reports.events import FindingKind
from litmusfuzz.reports.html import page
from litmusfuzz.reports.junit import junit
from litmusfuzz.reports.markdown import markdown
from litmusfuzz.reports.report import ReportedFinding
from litmusfuzz.reports.sarif import sarif
from litmusfuzz.reports.text import by_cause

if TYPE_CHECKING:
    from pathlib import Path

    from litmusfuzz.reports.open_tests import OpenTest
    from litmusfuzz.reports.report import Report


JSON: Final = "report.json"
"""File of the whole report, which later campaigns beside this one read as well."""
MAX_JSON_BYTES: Final = 256 << 20
"""Of a report that is read again; each finding takes some kilobytes."""
STATS: Final = "stats"
PAGE: Final = "report.html"
FILES: Final = (STATS, JSON, "findings.sarif", "junit.xml", "summary.md", PAGE)
"""All files that `write_all` writes."""


def write_all(report: Report, folder: Path | int) -> None:
    """Write all output files to the campaign's folder.

    A reader of a file sees its previous version or this one, never a part.

    Parameters
    ----------
    report : Report
    folder : Path or int
        Or a descriptor of it: the files are written there, wherever it is now.

    Raises
    ------
    OSError
        The first; the other files are written.
    """
    made = (
        stats.text(report),
        json.dumps(as_json(report), indent=1) + "\n",
        json.dumps(sarif(report), indent=1) + "\n",
        junit(report),
        markdown(report),
        page(report),
    )
    failed = []
    for name, text in zip(FILES, made, strict=True):
        try:
            write_into(folder, name, text)
        except OSError as error:
            failed.append(error)
    if failed:
        raise failed[0]


def as_json(report: Report) -> dict[str, Any]:
    """The report as plain data, tests in the corpus format, and derived values."""
    derived = {
        "verdict": report.verdict,
        "interruption": report.interruption,
        "judged_by": report.judged_by,
        "exit_code": report.exit_code(),
        "graphs": report.graphs,
        "outcomes": report.outcomes,
        "ran": [plain(each) | {"reached": each.reached} for each in report.ran],
        "configurations": len(report.by_config),
        "settings": [plain(each) | {"reached": each.reached} for each in report.settings],
        "not_reached": report.not_reached,
        "causes": len(by_cause(f for f in report.findings if f.kind is FindingKind.FORBIDDEN)),
        "mutation_score": report.mutation_score,
        "undecided": report.undecided,
        "no_findings": no_findings(report),
        "open_tests": [_open(each) for each in report.open_tests],
        "new": [each.key for each in report.new],
        "stale": [each.key for each in report.stale],
    }
    data: dict[str, Any] = plain(report)
    return data | derived


def _open(test: OpenTest) -> dict[str, Any]:
    """An open test as plain data, with its picture if its file was read."""
    derived: dict[str, Any] = {"headline": test.headline, "facts": dict(test.facts)}
    derived["outcomes"] = [{"outcome": o.plain, "count": n} for o, n in test.outcomes]
    if test.entry is not None:
        derived["picture"] = drawing.text(test.entry.test)
    data: dict[str, Any] = plain(replace(test, entry=None))  # `entries` has it
    return data | derived


def plain(value: Any) -> Any:
    """A part of the report as plain data."""
    if isinstance(value, Outcome):
        return value.plain
    if isinstance(value, Entry):
        return dumps(value)
    if is_dataclass(value):
        data = {each.name: plain(getattr(value, each.name)) for each in fields(value)}
        if isinstance(value, ReportedFinding):
            data["headline"] = value.headline
            data["no_histogram"] = value.no_histogram
            data["schedule"] = None if value.schedule is None else value.schedule.as_json()
            data["histogram"] = [
                {"outcome": outcome.plain, "count": count, "verdict": verdict}
                for outcome, (count, verdict) in value.histogram.items()
            ]
        return data
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, tuple):
        return [plain(each) for each in value]
    return value
