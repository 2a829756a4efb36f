"""Files that a nightly run leaves for others, all from one `NightlyReport`."""

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


def write_all(night: NightlyReport, folder: Path) -> None:
    """Write the page, JUnit, Markdown, SARIF, and everything as JSON.

    Whoever reads one of them meanwhile reads the one before it, or this one, whole.
    """
    write_text(json.dumps(as_json(night), indent=1) + "\n", folder / "nightly.json")
    write_text(json.dumps(sarif(night), indent=1) + "\n", folder / "findings.sarif")
    write_text(junit(night), folder / "junit.xml")
    write_text(markdown(night), folder / "summary.md")
    write_text(page(night), folder / "report.html")


def as_json(night: NightlyReport) -> dict[str, Any]:
    """The night as plain data, tests as their files have them; and what follows from it."""
    follows = {
        "verdict": night.verdict,
        "exit_code": night.exit_code(),
        "mutation_score": night.mutation_score,
        "new": [each.key for each in night.new],
        "stale": [each.key for each in night.stale],
    }
    data: dict[str, Any] = _plain(night)
    return data | follows


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
