"""What was seen and has no finding: every output names it and its file, with the exit code."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest
from helpers_open_stores import OTHERS, STORES
from helpers_outputs import outputs

from litmusfuzz.reports import drawing
from litmusfuzz.reports.html import page
from litmusfuzz.reports.junit import junit
from litmusfuzz.reports.open_tests import EXIT_CODES, MOST_IN_FULL, OpenState
from litmusfuzz.reports.outputs import as_json
from litmusfuzz.reports.sarif import sarif
from litmusfuzz.reports.stats import plain
from litmusfuzz.reports.summary import summary

if TYPE_CHECKING:
    from collections.abc import Mapping

    from litmusfuzz.reports.report import Report

ROOT = Path(__file__).parents[2]


def elements(report: Report) -> Mapping[str, int]:
    """Numbers of JUnit's failures, errors and skipped cases."""
    top = ElementTree.fromstring(junit(report))  # noqa: S314 - we wrote it
    return {name: int(top.attrib[name]) for name in ("failures", "errors", "skipped")}


@pytest.mark.parametrize("unattended", [False, True], ids=["run", "nightly"])
@pytest.mark.parametrize("name", STORES)
def test_every_output_has_what_was_seen_with_its_file_and_the_exit_code(
    tmp_path: Path, name: str, *, unattended: bool
) -> None:
    made = STORES[name]
    report = made.report(tmp_path / "n", unattended=unattended)
    (test,) = report.open_tests
    assert (test.index, test.state, test.file) == (5, made.state, made.file)
    assert (report.exit_code(), test.exit_code) == (made.exits[unattended],) * 2
    assert test.headline == f"wrong value: graph 5 on native/plain, {made.state}"
    assert test.replay == f"litmusfuzz replay {tmp_path}/n/{made.file}"
    assert (test.seen, test.executions, test.model) == (4, 64, "rfc")
    ((outcome, _),) = test.outcomes
    shown = outputs(report)
    for output, words in shown.items():
        assert made.file in words, output
        assert test.headline in words, output
    del shown["stats"]  # has a line for each
    for output, words in shown.items():
        assert test.replay in words, output
        assert str(outcome) in words, output
        assert "4 of 64 executions" in words, output
        assert test.why in words, output
    # The picture.
    assert test.entry is not None
    (_, *lines) = drawing.text(test.entry.test).splitlines()
    for output in ("terminal", "markdown", "junit", "html"):
        for line in lines:
            assert " ".join(line.split()) in shown[output], output
    assert '<svg class="graph"' in page(report)
    assert as_json(report)["open_tests"][0]["picture"].splitlines()[1:] == lines
    (result,) = (each for each in sarif(report)["runs"][0]["results"] if each["ruleId"] == "open")
    assert result["properties"]["picture"].splitlines()[1:] == lines
    assert result["level"] == {0: "note", 1: "error", 3: "warning"}[test.exit_code]
    counts = elements(report)
    assert (counts["failures"] > 0) is (test.exit_code == 1)
    assert bool(counts["failures"] + counts["errors"]) is (report.exit_code() != 0)
    assert counts["skipped"] > 0 or test.exit_code != 0
    assert json.loads(json.dumps(as_json(report)))["exit_code"] == report.exit_code()
    assert plain(report)["exit_code"] == str(report.exit_code())


@pytest.mark.parametrize("unattended", [False, True], ids=["run", "nightly"])
@pytest.mark.parametrize("name", OTHERS)
def test_a_store_without_one_lists_none(tmp_path: Path, name: str, *, unattended: bool) -> None:
    made = OTHERS[name]
    report = made.report(tmp_path / "n", unattended=unattended)
    assert report.open_tests == ()
    assert report.exit_code() == made.exits[unattended]
    assert 'id="open"' not in page(report)


def test_the_exit_codes_are_those_of_the_page() -> None:
    """The table of `docs/reading-a-report.md`."""
    words = (ROOT / "docs/reading-a-report.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \*([a-z ]+)\* \|.*\| (\d) \| (\d) \|$", words, re.MULTILINE)
    assert {state: (int(run), int(unattended)) for state, run, unattended in rows} == {
        str(state): codes for state, codes in EXIT_CODES.items()
    }
    assert set(EXIT_CODES) == set(OpenState)
    assert {each.state for each in STORES.values()} == {str(state) for state in OpenState}


def test_of_many_the_first_are_in_full_and_the_others_by_file(tmp_path: Path) -> None:
    report = STORES["not minimized"].report(tmp_path / "n")
    (first,) = report.pending
    number = MOST_IN_FULL + 30
    lines = tuple(
        type(first)(
            *(n, "native", "plain", f"unreduced/{n}.yaml", 1),
            seen=4,
            executions=64,
            model="rfc",
        )
        for n in range(number)
    )
    entries = {each.file: report.entries[first.file] for each in lines[:MOST_IN_FULL]}
    many = type(report)(
        **{
            **{name: getattr(report, name) for name in report.__dataclass_fields__},
            "pending": lines,
            "entries": entries,
        }
    )
    whole = page(many)
    assert len(whole.encode()) < 1_000_000
    assert whole.count('<svg class="graph"') == MOST_IN_FULL
    for output, words in outputs(many).items():
        named = sum(f"unreduced/{n}.yaml" in words for n in range(number))
        assert named == {"terminal": MOST_IN_FULL, "stats": 10}.get(output, number), output
    assert "and 30 more graphs, which report.html and report.json name" in summary(many)
