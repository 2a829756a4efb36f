"""A schedule as a table, in every output of the report."""

from __future__ import annotations

import json
from pathlib import Path

from example_reports import finding, short_run

from litmusfuzz import corpus
from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.schedule import Decision
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import Schedule, load
from litmusfuzz.reports import text
from litmusfuzz.reports.html.page import environment
from litmusfuzz.reports.markdown import markdown
from litmusfuzz.reports.outputs import plain
from litmusfuzz.reports.schedule import schedule_table

EVENTS = (
    Decision("", "w1"),
    Decision("", "w1", point="lock"),
    Decision("", "w0"),
    Decision("", "w1", point="lock", again=1),
)
TABLE = [
    "   chain 0          chain 1",
    "1                   w1: X = 1",
    "2                   w1: lock   <- switch inside AssignVariableOp",
    "3  w0: X += 1",
    "4                   w1: lock",
]


def entry():
    path = Path(corpus.__file__).parent / "findings" / "first-assignment-writes-twice.yaml"
    found = load(path)
    assert found.finding is not None
    schedule = Schedule(found.finding.forbidden[0][0], events=EVENTS)
    return replace(found, finding=replace(found.finding, schedule=schedule))


def reported_with(made):
    """A reported finding with that entry."""
    by_rfc = replace(made, allowed={"rfc": made.allowed["executor"]})
    outcome = entry().finding.forbidden[0][0]
    return replace(finding(by_rfc, outcome, explained=False), entry=made)


def test_a_column_is_a_chain_of_the_picture_and_a_switch_is_marked() -> None:
    made = schedule_table(entry().test, EVENTS)
    assert [line.split() for line in made.lines()] == [line.split() for line in TABLE]
    assert made.need == "needs a switch inside AssignVariableOp, between two locks"


def test_an_op_that_stands_for_pure_ops_is_in_no_chain() -> None:
    """Grappler has a lookup read its variable itself, by an op that no node of the test is."""
    found = load(Path(corpus.__file__).parent / "findings" / "lookup-loses-its-edges.yaml")
    (pure,) = (node for node in found.test.nodes if node.op == "SparseSegmentSum")
    write = next(node for node in found.test.effects if node.op == "AssignVariableOp")
    added = f"SimplifyEmbeddingLookupStage_ReadVar_{pure.name}"
    events = (Decision("", f"ArithmeticOptimizer/{added}"), Decision("", write.name))
    made = schedule_table(found.test, events)
    assert made.columns[0] == "added by an optimizer"
    assert made.rows[0].text == added
    assert made.rows[1].text.startswith(f"{write.name}: ")
    assert made.columns[made.rows[1].column].startswith("chain ")


def test_columns_have_the_run_where_there_are_several_and_bodies_their_node() -> None:
    path = Path(corpus.__file__).parent / "litmus"
    loop = load(next(path.rglob("call-in-a-loop.yaml"))).test
    events = (Decision("", "f/r", "7.0"), Decision("", "see"), Decision("", "f/w", "7.1"))
    made = schedule_table(loop, events)
    assert [row.column for row in made.rows] == [0, 1, 0]
    assert [row.text.rpartition("   ")[2] for row in made.rows][::2] == ["[0]", "[1]"]
    runs = load(next(path.rglob("call-seen-by-another-run.yaml"))).test
    names = [run.name for run in runs.runs]
    nodes = {run.name: _effect(runs, run.graph) for run in runs.runs}
    made = schedule_table(runs, [Decision(name, nodes[name]) for name in names])
    assert made.columns == tuple(f"{name}: chain 0" for name in names)


def _effect(test, graph: str) -> str:
    nodes = next(each.nodes for each in test.graphs if each.name == graph)
    return next(each.name for each in nodes if each.definition.has_effect)


def test_members_of_a_section_are_in_its_column() -> None:
    test = litmus("lock M; X=1; unlock M || r0=X")
    section = next(node.name for node in test.nodes if node.members)
    write = next(n.name for n in test.effects if n.op == "AssignVariableOp")
    made = schedule_table(
        test, [Decision("", f"{section}/lock"), Decision("", "r0"), Decision("", write)]
    )
    assert [row.column for row in made.rows] == [0, 1, 0]


def test_every_output_has_the_schedule_of_a_finding() -> None:
    made = entry()
    assert made.finding is not None
    reported = reported_with(made)
    need = "needs a switch inside AssignVariableOp, between two locks"
    assert reported.headline.endswith(need)
    on_screen = text.finding(reported)
    assert on_screen.splitlines()[0] == reported.headline
    assert "<- switch inside AssignVariableOp" in on_screen
    assert "one execution of 4 events is in the file" in on_screen
    in_markdown = markdown(replace(short_run(), findings=(reported,)))
    assert need in in_markdown
    assert "<- switch inside AssignVariableOp" in in_markdown
    data = json.loads(json.dumps(plain(reported)))["schedule"]
    assert data["needs"] == need
    assert [each["switch"] for each in data["events"]] == [False, True, False, False]
    assert data["columns"] == ["chain 0", "chain 1"]
    source = Path(str(environment().get_template("finding.html").filename)).read_text()
    assert "f.schedule.cells()" in source


def test_a_finding_without_a_schedule_by_names_has_no_table() -> None:
    made = entry()
    assert made.finding is not None
    without = replace(made, finding=replace(made.finding, schedule=None))
    reported = reported_with(without)
    assert reported.schedule is None
    assert "schedule" not in text.finding(reported)
    assert plain(reported)["schedule"] is None


def test_a_part_of_an_op_stands_in_the_column_of_its_op() -> None:
    nodes = ("w1", "w1/part 1", "w0", "w1/part 1", "w1")
    points = ("begin", "begin", "begin", "write of page 1 of X", "after parts")
    events = [Decision("", node, point=p) for node, p in zip(nodes, points, strict=True)]
    rows = schedule_table(entry().test, events).rows
    assert [row.column for row in rows] == [1, 1, 0, 1, 1]
    assert [row.text for row in rows if row.column == 1] == [
        "w1: X = 1",
        "w1, part 1: begin",
        "w1, part 1: write of page 1 of X",
        "w1: after parts",
    ]
    assert [row.switch for row in rows] == ["", "AssignVariableOp", "", "", ""]
