"""Output files of a nightly run: JSON, SARIF, JUnit, Markdown and HTML."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

from litmusfuzz.corpus.outcome import Outcome
from litmusfuzz.corpus.textfile import Entry, dumps, write_text
from litmusfuzz.reports.html import page
from litmusfuzz.reports.junit import junit
from litmusfuzz.reports.markdown import markdown
from litmusfuzz.reports.nightly_report import NightlyFinding
from litmusfuzz.reports.sarif import sarif

if TYPE_CHECKING:
    from pathlib import Path

    from litmusfuzz.reports.nightly_report import NightlyReport


def write_all(report: NightlyReport, folder: Path) -> None:
    """Write all output files to the run's folder.

    A reader of a file sees its previous version or this one, never a part.
    """
    write_text(json.dumps(as_json(report), indent=1) + "\n", folder / "nightly.json")
    write_text(json.dumps(sarif(report), indent=1) + "\n", folder / "findings.sarif")
    write_text(junit(report), folder / "junit.xml")
    write_text(markdown(report), folder / "summary.md")
    write_text(page(report), folder / "report.html")


def as_json(report: NightlyReport) -> dict[str, Any]:
    """The report as plain data, tests in the corpus format, and derived values."""
    derived = {
        "verdict": report.verdict,
        "exit_code": report.exit_code(),
        "mutation_score": report.mutation_score,
        "new": [each.key for each in report.new],
        "stale": [each.key for each in report.stale],
    }
    data: dict[str, Any] = _plain(report)
    return data | derived


def _plain(value: Any) -> Any:
    if isinstance(value, Outcome):
        return value.plain
    if isinstance(value, Entry):
        return dumps(value)
    if is_dataclass(value):
        plain = {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
        if isinstance(value, NightlyFinding):
            plain["histogram"] = [
                {"outcome": outcome.plain, "count": count, "verdict": verdict}
                for outcome, (count, verdict) in value.histogram.items()
            ]
        return plain
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return value
