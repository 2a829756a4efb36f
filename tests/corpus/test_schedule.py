"""Schedules by names: switches, what an outcome needs, and the form in a finding's file."""

from __future__ import annotations

from pathlib import Path

import pytest

from litmusfuzz import corpus
from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.schedule import (
    AFTER_PARTS,
    BEGIN,
    Decision,
    need,
    node_of,
    part_of,
    switches,
)
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import FileError, Schedule, dumps, load, loads

FINDING = load(Path(corpus.__file__).parent / "findings" / "first-assignment-writes-twice.yaml")
EVENTS = (
    Decision("", "w1"),
    Decision("", "w1", point="shared lock"),
    Decision("", "w1", point="lock"),
    Decision("", "w0"),
    Decision("", "w0", point="lock of X"),
    Decision("", "w1", point="lock", again=1),
)


def held(events: tuple[Decision, ...] = EVENTS) -> str:
    """The file of a finding with that schedule."""
    finding = FINDING.finding
    assert finding is not None
    outcome = finding.forbidden[0][0]
    made = replace(finding, schedule=Schedule(outcome, events=events))
    return dumps(replace(FINDING, finding=made))


def test_a_switch_is_where_an_op_that_is_not_over_gives_way() -> None:
    assert switches(EVENTS) == (2,)
    assert switches((EVENTS[0], EVENTS[3])) == ()
    back_and_forth = (EVENTS[0], EVENTS[3], EVENTS[1], EVENTS[4])
    assert switches(back_and_forth) == (0, 1)
    twice = (Decision("a", "w1"), Decision("b", "w1"), Decision("a", "w1", point="lock"))
    assert switches(twice) == (0,)


def events_of(*points: str) -> tuple[Decision, ...]:
    """Events of nodes, each written as the path of its node, and its point behind a colon."""
    split = [each.partition(":") for each in points]
    return tuple(Decision("", node, point=point or BEGIN) for node, _, point in split)


def test_an_op_that_waits_for_its_parts_gives_no_way() -> None:
    waits = events_of("w1", "w1/part 1", "w1/part 2", "w0", f"w1:{AFTER_PARTS}")
    assert switches(waits) == ()
    inside = events_of("w1", "w1/part 1", "w1/part 1/part 2", "w1/part 1:lock", "w1:after parts")
    assert switches(inside) == (1,)
    assert [part_of(each) for each in inside] == ["", "part 1", "part 1.2", "part 1", ""]
    assert {node_of(FINDING.test, each) for each in inside} == {"w1"}
    goes_on = events_of("w1:after parts", "w0", "w1:lock")
    assert switches(goes_on) == (0,)


@pytest.mark.parametrize(
    ("events", "words"),
    [
        (EVENTS[:1], "needs no switch: ops in this order"),
        (EVENTS, "needs a switch inside AssignVariableOp, between two locks"),
        (
            (EVENTS[0], EVENTS[3], EVENTS[1], EVENTS[4]),
            "needs 2 switches, the first inside AssignVariableOp, between its beginning and a lock",
        ),
        (
            (EVENTS[2], EVENTS[3], Decision("", "w1", point="page 1 of X")),
            "needs a switch inside AssignVariableOp, between a lock and a page",
        ),
        (
            tuple(
                Decision("", node, point=f"{kind} at element 0 of X")
                for node, kind in (("w1", "read"), ("w0", "write"), ("w1", "write"))
            ),
            "needs a switch inside AssignVariableOp, between two touches",
        ),
        (
            events_of("w1", "w1/part 1", "w0", "w1/part 1:lock", "w1:after parts"),
            "needs a switch inside part 1 of AssignVariableOp, between its beginning and a lock",
        ),
        (
            events_of("w1:after parts", "w0", "w1:lock"),
            "needs a switch inside AssignVariableOp, between the end of its parts and a lock",
        ),
    ],
)
def test_what_an_outcome_needs_is_said(events: tuple[Decision, ...], words: str) -> None:
    assert need(FINDING.test, events) == words


def test_an_event_belongs_to_the_innermost_node() -> None:
    test = litmus("X=1 || r0=X")
    assert node_of(test, Decision("", "f/r0")) == "r0"
    assert node_of(test, Decision("", "w0/lock")) == "w0"
    assert node_of(test, Decision("", "lock")) == ""
    assert node_of(test, Decision("", "ArithmeticOptimizer/Stage_ReadVar_r0")) == "r0"
    assert node_of(test, Decision("", "ArithmeticOptimizer/Stage_ReadVar_r1")) == ""


def test_a_file_keeps_a_schedule_by_names() -> None:
    text = held()
    assert "    - {node: w1}\n    - {node: w1, point: shared lock}\n" in text
    assert "    - {node: w1, point: lock, again: 1}\n" in text
    read = loads(text).finding
    assert read is not None
    assert read.schedule is not None
    assert read.schedule.events == EVENTS
    assert read.schedule.choices == ()
    assert dumps(loads(text)) == text


@pytest.mark.parametrize(
    ("old", "new", "where", "why"),
    [
        ("{node: w0}", "{node: w9}", "events.3.node", "the test has no node 'w9'"),
        ("{node: w0}", "{node: w0, run: r}", "events.3.run", "the test has no run 'r'"),
        ("{node: w0}", "{node: w1, point: lock}", "events.3", "stands twice"),
        ("{node: w0}", "{run: ''}", "events.3", "missing field `node`"),
        ("{node: w0}", "{node: w0, instance: x}", "events.3.instance", "FRAME.ITERATION"),
        ("again: 1", "again: -1", "events.5.again", "must be a small number, got -1"),
        ("again: 1", "again: x", "events.5.again", "got"),
        ("point: lock of X", "point: ''", "events.4.point", "the name of a point"),
        ("point: lock of X", "place: X", "events.4.place", "unknown field"),
    ],
)
def test_a_wrong_event_is_named_with_its_line_and_field(
    old: str, new: str, where: str, why: str
) -> None:
    text = held()
    assert old in text
    changed = text.replace(old, new, 1)
    before = text[: text.index(old)]
    line = 1 + before.count("\n")
    with pytest.raises(FileError) as error:
        loads(changed, "F.yaml")
    assert str(error.value).startswith(f"F.yaml:{line}: finding.schedule.{where}: ")
    assert why in str(error.value)


def test_a_schedule_has_either_choices_or_events() -> None:
    choices = "    choices: ['0/1:0000000000000000']\n"
    both = held().replace("    events:\n", f"{choices}    events:\n", 1)
    with pytest.raises(FileError, match=r"finding\.schedule: has either choices or events"):
        loads(both)
    none = held(EVENTS[:1]).replace("    events:\n    - {node: w1}\n", "    events: []\n", 1)
    with pytest.raises(FileError, match=r"finding\.schedule\.events: must not be empty"):
        loads(none)
