"""Every field of a report is filled in by a real campaign, or listed here with the reason."""

from __future__ import annotations

import html
import json
import sys
from dataclasses import fields
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import pytest
from campaign.doubles import Raising

from litmusfuzz.corpus.textfile import load
from litmusfuzz.fuzz.store.folder import DATABASE
from litmusfuzz.reports.open_tests import Pending, UncheckedTest, UnconfirmedTest
from litmusfuzz.reports.report import (
    Earlier,
    FamilyTotals,
    Known,
    Moment,
    Ran,
    Report,
    ReportedFinding,
    ShardLine,
    Share,
    WorkerHealth,
)

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Command

pytestmark = pytest.mark.usefixtures("doubles")

EXECUTORS = (
    "double/profiled:*",
    "double/unsafe-clusterer:controlled",
    *("double/counting:controlled", "double/raising"),
)
COMMON = (
    *("--executors", ",".join(EXECUTORS), "--families", "dag=3,clusterable,runs"),
    *("--seed", "3", "--count", "64", "--time", "10m"),
)
KNOWN_CAUSE = (
    *("name", "needs", "configurations", "checked", "undecided", "seconds", "shows"),
    "executions",
)
ELSEWHERE = {
    "ReportedFinding.undecided": "where experiments are too rare: test_report_builder",
    "Report.minimizing": "only while a campaign runs: test_fold",
    "Report.problem": "of a campaign that failed: test_coordinator, on a full disk",
    "Report.interrupted": "of one that was interrupted: test_coordinator",
    "Report.unattended": "of a nightly run: test_one_record",
    "ShardLine.problem": "of a shard that failed: test_failures",
    "Report.pending": "of one without time to minimize: test_coordinator",
    "Report.unchecked": "where experiments could not decide: test_open_tests",
    "UncheckedTest.*": "as those unchecked",
    "Report.may_be_known": "of one without time to minimize: test_open_tests",
    "Report.entries": "of one without time to minimize: test_open_tests",
    "Known.may_explain": "of one without time to minimize: test_open_tests",
    "Report.unconfirmed": "of one whose worker was damaged: test_suspects",
    "UnconfirmedTest.*": "as those unconfirmed",
    "Report.unknown_graphs": "of graphs over the budget: test_loop",
    "Share.unknown": "of graphs over the budget: test_loop",
    "Share.rounds": "of campaigns without --count: test_depth",
    **dict.fromkeys(
        (f"Share.{name}" for name in ("searched", "cut_off", "schedules", "sampled", "first")),
        "of configurations under control: test_search",
    ),
    "Share.timed_out": "a hang takes minutes: test_failures",
    "ShardLine.timed_out": "a hang takes minutes: test_failures",
    "WorkerHealth.timed_out": "a hang takes minutes: test_failures",
    "WorkerHealth.lost": "of a shard process that was killed: test_coordinator",
    "FamilyTotals.unknown_graphs": "of graphs over the budget: test_loop",
    "Report.clusterings": "of the family clusters: test_clusters of the dispatcher",
    "Report.racing": "as its clusterings",
    "Report.kills": "a self-test takes minutes: test_selftest",
    "Kill.*": "as the kills",
    "Earlier.mutation_score": "as the kills",
    "Earlier.mutants": "as the kills",
    "ReportedFinding.script": "of TensorFlow only: test_script",
    "ReportedFinding.script_shows_it": "of TensorFlow only: test_script",
    "Pending.*": "as those pending",
    "Report.settings": "of an executor with a configuration space: test_product",
    "ShardLine.generated": "as its settings",
    **dict.fromkeys(
        (f"Known.{name}" for name in KNOWN_CAUSE), "of a known cause: test_report_builder"
    ),
}
"""Fields that the campaigns here do not fill in."""
PARTS = {
    "findings": ReportedFinding,
    "known": Known,
    "by_config": Share,
    "by_family": Share,
    "families": FamilyTotals,
    "moments": Moment,
    "workers": WorkerHealth,
    "earlier": Earlier,
    "shards": ShardLine,
    "pending": Pending,
    "unconfirmed": UnconfirmedTest,
    "unchecked": UncheckedTest,
    "ran": Ran,
}


@pytest.fixture(scope="module")
def folder(doubles: None, litmusfuzz_in: Command, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two campaigns side by side, and a damaged one."""
    folder = tmp_path_factory.mktemp("campaigns")

    codes: dict[str, int] = {}

    def run(*arguments: str) -> None:
        done = litmusfuzz_in(folder, *arguments)
        assert "Traceback" not in done.stderr
        codes[arguments[-1]] = done.returncode
        (folder / f"{arguments[0]}-{arguments[-1]}.txt").write_text(done.stdout)

    run("run", *COMMON, "--tests", "40", "--noise", "pinned", "--out", "first")
    run("known", "add", "known.yaml", "--why", "a double", "first")
    (folder / "damaged").mkdir()
    (folder / "damaged" / "report.json").write_text("{")
    (folder / "damaged" / DATABASE).touch()  # else it is a file of another program
    again = ("--tests", "12", "--known", "known.yaml", "--python", sys.executable)
    run("run", *COMMON, *again, "--out", "second")
    # All that is new is known by then.
    assert codes == {"first": 0, "second": 2}
    return folder


def test_every_field_is_filled_in(folder: Path) -> None:
    filled: dict[str, Any] = {}
    for name in ("first", "second"):
        report = json.loads((folder / name / "report.json").read_text())
        parts: list[tuple[type, dict[str, Any]]] = [(Report, report)]
        for part, kind in PARTS.items():
            values = report[part].values() if isinstance(report[part], dict) else report[part]
            parts += [(kind, value) for value in values]
        for kind, data in parts:
            for field in fields(kind):
                name = f"{kind.__name__}.{field.name}"
                filled[name] = filled.get(name) or data[field.name]
    listed = {name for name in ELSEWHERE if not name.endswith(".*")}
    assert {name for name, value in filled.items() if not value} == listed
    assert {f"{kind.__name__}.*" for kind in PARTS.values()} - {
        f"{name.partition('.')[0]}.*" for name in filled
    } == {"Pending.*", "UncheckedTest.*", "UnconfirmedTest.*"}


def test_an_exception_of_several_lines_is_reported_by_its_first_and_last(folder: Path) -> None:
    first, _, last = (line.strip() for line in Raising.said.splitlines())
    words = f"exit 1: ValueError: {first} ... {last}"
    campaign = folder / "first"
    data = json.loads((campaign / "report.json").read_text())
    crashed = [each for each in data["findings"] if each["kind"] == "crashed"]
    assert {each["reason"][0] for each in crashed} == {words}
    found = crashed[0]
    assert found["no_histogram"] == "no outcome: the worker ended before it reported one"
    assert words in load(campaign / found["file"]).test.description
    cases = ElementTree.parse(campaign / "junit.xml").iter("failure")  # noqa: S314 - we wrote it
    assert any(words in case.attrib["message"] for case in cases)
    results = json.loads((campaign / "findings.sarif").read_text())["runs"][0]["results"]
    assert any(words in each["message"]["text"] for each in results)
    for name in ("first/report.html", "first/summary.md"):
        text = html.unescape((folder / name).read_text()).replace("\\", "")
        assert words in text
        assert found["no_histogram"] in text.replace("No outcome", "no outcome")
    assert words in " ".join((folder / "run-first.txt").read_text().split())
    # It is known by its key in the next campaign.
    again = json.loads((folder / "second" / "report.json").read_text())
    assert {e["known"] for e in again["findings"] if e["kind"] == "crashed"} == {"a double"}
