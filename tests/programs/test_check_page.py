"""The page of `check --html`: every anomaly, and a drawing of its neighbourhood."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from click.testing import CliRunner
from test_planted import FOLDER

from litmusfuzz.fuzz.cli.main import main
from litmusfuzz.fuzz.programs.checking import MAX_BESIDE, check
from litmusfuzz.fuzz.programs.program import Entry, Function, Operation, Program
from litmusfuzz.reports.html.check_page import check_page, neighbourhood

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def chain(reads: int) -> Program:
    """A read, a write that depends on it, an unordered write, and other accesses around."""
    handles = [
        Operation(f"h{n}", "VarHandleOp", shared_name=f"<v{n}>", stateful=True) for n in range(2)
    ]
    before = [
        Operation(f"n{n}", "ReadVariableOp", (("h1", 0),), stateful=True) for n in range(reads)
    ]
    first = tuple(each.name for each in before)
    race = [
        Operation("read", "ReadVariableOp", (("h0", 0),), first, stateful=True),
        Operation("back", "AssignVariableOp", (("h0", 0), ("read", 0)), stateful=True),
        Operation("other", "AssignAddVariableOp", (("h0", 0), ("n0", 0)), stateful=True),
    ]
    function = Function("f", (*handles, *before, *race))
    fetches = tuple(each.name for each in (*before, *race))
    return Program("p", function, {}, (Entry("f", "", fetches),))


def test_a_neighbourhood_has_the_example_and_what_is_right_beside_it() -> None:
    report, _ = check(chain(2), ())
    (anomaly,) = report.anomalies
    around = anomaly.neighbourhood
    assert around is not None
    names = [each.access.operation for each in around.accesses]
    assert sorted(names) == ["back", "n0", "n1", "other", "read"]
    numbers = {each.access.operation: each.number for each in around.accesses}
    assert sorted(numbers.values()) == [0, 0, 1, 2, 3]
    edges = {(names[first], names[second], kind) for first, second, kind in around.edges}
    assert edges == {
        ("n0", "read", "control"),
        ("n1", "read", "control"),
        ("read", "back", "data"),
        ("n0", "other", "data"),
    }
    assert around.left_out == 0


def test_a_large_neighbourhood_is_cut_and_says_so() -> None:
    report, _ = check(chain(30), ())
    around = report.anomalies[0].neighbourhood
    assert around is not None
    assert len(around.accesses) == 3 + MAX_BESIDE
    assert around.left_out == 30 - MAX_BESIDE


def test_a_drawing_is_well_formed_and_follows_the_first_order() -> None:
    """Names in it come from a file, and may be anything."""
    report, _ = check(chain(3), ())
    (anomaly,) = report.anomalies
    root = ElementTree.fromstring(neighbourhood(anomaly))  # noqa: S314 - we wrote it
    boxes = [group for group in root.iter("g") if "op" in group.get("class", "").split()]
    assert len(boxes) == 6
    assert sum(group.get("class") == "op race" for group in boxes) == 3
    steps = [text.text for group in root.iter("g") if group.get("class") == "no" for text in group]
    assert [text for text in steps if text] == ["1", "2"]
    page = check_page(report, "litmusfuzz check <p>")
    assert "<v0>" not in page
    assert "&lt;p&gt;" in page


def test_the_page_has_every_anomaly_and_json_the_neighbourhood(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(FOLDER)
    monkeypatch.syspath_prepend(str(FOLDER))
    file = tmp_path / "page.html"
    asked = ["check", "side_by_side:count_racy", "--concurrent", "count_racy", "--json"]
    result = CliRunner().invoke(main, [*asked, "--html", str(file)])
    assert result.exit_code == 1
    (anomaly,) = json.loads(result.stdout)["anomalies"]
    near = {each["access"]["operation"] for each in anomaly["neighbourhood"]["accesses"]}
    page = file.read_text("utf-8")
    assert len(re.findall(r'<details class="finding"', page)) == 1
    assert "lost update of counter: count_racy beside itself" in page
    assert all(name in page for name in near)
    # Two runs, a box each.
    assert page.count('<g class="graph">') == 2
    missing = tmp_path / "missing/page.html"
    result = CliRunner().invoke(main, [*asked, "--html", str(missing)])
    assert result.exit_code == 2
    assert "--html: " in result.output
