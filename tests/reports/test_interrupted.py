"""A campaign that was interrupted is not clean, and every output says how far it came."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

import pytest
from example_reports import short_run

from litmusfuzz.corpus.struct import replace
from litmusfuzz.reports.html import page
from litmusfuzz.reports.junit import junit
from litmusfuzz.reports.markdown import markdown
from litmusfuzz.reports.outputs import as_json
from litmusfuzz.reports.sarif import sarif
from litmusfuzz.reports.stats import read, text, together
from litmusfuzz.reports.summary import summary

if TYPE_CHECKING:
    from litmusfuzz.reports.report import Report

AFTER = "interrupted after 3 of 60 s"


def interrupted(findings: int = 0) -> Report:
    """A run of a minute that was interrupted after some seconds."""
    return replace(short_run(findings), spent_s=3.4, interrupted=True)


@pytest.mark.parametrize(("findings", "code"), [(0, 3), (1, 1)])
def test_every_output_says_so(findings: int, code: int) -> None:
    report = interrupted(findings)
    assert report.exit_code() == code
    assert AFTER in report.verdict
    *_, last = summary(report).splitlines()
    assert last == report.verdict
    assert markdown(report).startswith(f"# LitmusFuzz: {report.verdict}\n")
    assert f"<h1>{report.verdict}</h1>" in page(report)
    (run,) = sarif(report)["runs"]
    (invocation,) = run["invocations"]
    assert invocation["executionSuccessful"] is False
    assert invocation["exitCode"] == code
    notes = invocation["toolExecutionNotifications"]
    assert {"level": "error", "message": {"text": AFTER}} in notes
    data = json.loads(json.dumps(as_json(report)))
    assert (data["interruption"], data["exit_code"]) == (AFTER, code)
    suites = ET.fromstring(junit(report))  # noqa: S314 - our own
    assert (suites.attrib["errors"], suites.attrib["failures"]) == ("1", str(findings))
    assert [each.attrib["message"] for each in suites.iter("error")] == [AFTER]
    stats = read(text(report))
    assert (stats["state"], stats["interruption"]) == ("interrupted", AFTER)
    assert f"  {AFTER}" in together({"f": stats}).splitlines()


def test_a_campaign_that_was_not_interrupted_says_nothing_of_it() -> None:
    report = short_run(0)
    assert report.exit_code() == 0
    for made in (summary(report), page(report), junit(report), markdown(report)):
        assert "interrupted" not in made
    assert read(text(report))["interruption"] == "-"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"spent_s": 0.2}, "interrupted after 0.2 of 60 s"),
        ({"spent_s": 1500.0, "asked_s": 7200.0}, "interrupted after 1,500 of 7,200 s"),
        ({"spent_s": 61.0}, "interrupted after 60 s, before all findings were completed"),
        ({"tests": 400, "tests_done": 120}, "interrupted after 120 of 400 tests"),
    ],
)
def test_how_far_it_came(changes: dict[str, float], said: str) -> None:
    report = replace(interrupted(), **changes)
    assert report.verdict == f"{said}: nothing new so far"
    assert report.exit_code() == 3


def test_an_interrupted_campaign_that_judged_nothing_says_that_nothing_ran() -> None:
    idle = replace(interrupted(), verdicts={})
    assert idle.verdict == f"{AFTER}: no outcome was judged"
    assert replace(idle, by_config=()).verdict == f"{AFTER}: nothing ran"


def test_a_problem_is_said_first() -> None:
    report = replace(interrupted(), problem="the disk is full")
    assert report.verdict == f"broken: the disk is full; {AFTER}"
    assert report.exit_code() == 2
    (error,) = ET.fromstring(junit(report)).iter("error")  # noqa: S314 - our own
    assert error.attrib["message"] == f"the disk is full; {AFTER}"
