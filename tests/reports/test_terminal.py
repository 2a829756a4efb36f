"""The live view: plain lines without a terminal, a panel on one."""

from __future__ import annotations

import io
import json
import re
from typing import TYPE_CHECKING

import pytest
from example_reports import ended_finding, nightly_run, short_run

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.struct import replace
from litmusfuzz.reports.events import Executed, FindingKind
from litmusfuzz.reports.seen import Became, SeenTest
from litmusfuzz.reports.terminal import LiveView

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.reports.report import Report

GRAPH = "graph 7 of tf/plain"
(BUSY,) = short_run(0).by_config


class Terminal(io.StringIO):
    """A stream that calls itself a terminal."""

    def isatty(self) -> bool:
        """Yes."""
        return True


def panel(report: Report, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Lines of the panel."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "xterm")
    out = Terminal()
    with LiveView(out) as view:
        view(report)
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", out.getvalue())
    # At its end the view shows it again, and clears it.
    first, *_ = shown.split("\N{BOX DRAWINGS LIGHT ARC UP AND RIGHT}")
    return [line.strip("\N{BOX DRAWINGS LIGHT VERTICAL} ") for line in first.splitlines()]


@pytest.mark.parametrize(
    ("spent_s", "minimizing", "said"),
    [
        (12.0, (), " unknown"),
        (12.0, (GRAPH,), " unknown, minimizing graph 7 of tf/plain"),
        (61.0, (GRAPH,), " unknown, time is up, minimizing graph 7 of tf/plain"),
        (12.0, (GRAPH, "graph 9 of x"), ", minimizing graph 7 of tf/plain, graph 9 of x"),
    ],
)
def test_a_line_says_what_takes_long(
    spent_s: float, minimizing: tuple[str, ...], said: str
) -> None:
    report = replace(short_run(0), ended=None, spent_s=spent_s, minimizing=minimizing)
    out = io.StringIO()
    with LiveView(out) as view:
        view(report)
    (line,) = out.getvalue().splitlines()
    assert line.startswith(f"{spent_s:6.1f} s  118 graphs ({118 / spent_s:.1f}/s)  40700 outcomes")
    assert line.endswith(said)


def test_each_new_finding_is_printed_once_and_at_once() -> None:
    """Known ones are not; the order of the report's findings may change."""
    made = short_run(3)
    one, two, three = made.findings
    dead = ended_finding(FindingKind.CRASHED)
    out = io.StringIO()
    with LiveView(out) as view:
        view(replace(made, findings=(two,)))
        view(replace(made, findings=(one, two, replace(three, known="a link"))))
        view(replace(made, findings=(dead, one, two)))
    lines = out.getvalue().splitlines()
    heads = [line for line in lines if line.startswith("finding: ")]
    assert heads == [f"finding: {each.headline}" for each in (two, one, dead)]
    assert lines[1].startswith("  seen      r0=")
    assert lines[-1] == (
        "  crashed   on tf/plain, tf/one_thread:"
        " the worker ended by SIGSEGV after 3 of 64 executions"
    )
    # And one line of progress in ten seconds.
    assert len(lines) == 2 * len(heads) + 1


def test_control_characters_are_not_printed() -> None:
    died = replace(
        ended_finding(FindingKind.CRASHED),
        reason=("\x1b[2Jx",),
        executor="[red]\x1b",
    )
    out = io.StringIO()
    with LiveView(out) as view:
        view(replace(short_run(0), findings=(died,), minimizing=("\x1b[2J",)))
    assert "\x1b" not in out.getvalue()
    assert "[red]" in out.getvalue()


def test_the_panel_has_a_row_for_each_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    report = replace(nightly_run(2), minimizing=("[bold]graph 3[/bold] of tf/plain",))
    lines = panel(report, monkeypatch)
    rows = {cells[0]: cells[1:] for line in lines if (cells := line.split())}
    assert rows["configuration"] == ["graphs", "outcomes", "crashed", "timed", "out"]
    assert rows["tf/plain"] == ["2,400", "2,990,000", "2", "0"]
    assert rows["native/stealing"] == ["1,160", "900,000", "0", "0"]
    assert rows["mutant/canary"] == ["412/412"]
    # Text from files is no markup.
    assert "minimizing [bold]graph 3[/bold] of tf/plain" in lines
    assert (
        "610 graphs on several executors: 4 forbidden outcomes, 42 seen on one executor only"
        in lines
    )
    assert sum(line.startswith("finding: ") for line in lines) == len(report.new)


def test_many_configurations_are_added_up_by_executor(monkeypatch: pytest.MonkeyPatch) -> None:
    made = short_run(0)
    (share,) = made.by_config
    many = tuple(replace(share, name=f"tf/{n}", crashed=1) for n in range(46))
    lines = panel(replace(made, by_config=(*many, replace(share, executor="jax"))), monkeypatch)
    rows = [line.split("  ")[0] for line in lines if "configuration" in line]
    assert rows == ["configuration", "tf, 46 configurations", "jax, 1 configuration"]
    (tf,) = (line for line in lines if line.startswith("tf, "))
    assert tf.split()[-4:] == ["5,428", "1,872,200", "46", "0"]


def seen(folder: str = "c") -> SeenTest:
    """A test that has just shown a forbidden outcome."""
    (found, *_) = short_run(1).findings
    finding = found.entry.finding
    assert finding is not None
    event = Executed(
        index=9,
        family="dag",
        executor="tf",
        configuration="plain",
        model="rfc",
        run_seed=1,
        count=64,
        sha256="",
        verdicts={"forbidden": finding.count, "allowed": 3},
        unreduced="unreduced/unreduced-7-9.yaml",
    )
    command = "litmusfuzz replay c/unreduced/unreduced-7-9.yaml"
    return SeenTest(event, folder, found.entry, found.nearest, command)


def test_what_was_seen_is_printed_whole_and_then_what_became_of_it() -> None:
    """The test, the outcome, how often, where, the file, and how to replay it."""
    out = io.StringIO()
    with LiveView(out) as view:
        view.say(seen())
        view.say(Became((9, "tf", "plain"), "minimized", "c/findings/x.yaml"))
        view(replace(short_run(0), ended=None, by_config=(replace(BUSY, forbidden_graphs=5),)))
    lines = out.getvalue().splitlines()
    assert lines[0] == "FORBIDDEN: graph 9 on tf/plain, family dag, judged by rfc"
    assert lines[1].startswith("  test      ")
    (shown,) = (line for line in lines if line.startswith("  seen  "))
    assert shown.endswith("executions on tf/plain")
    assert "  file      c/unreduced/unreduced-7-9.yaml" in lines
    assert "  replay    litmusfuzz replay c/unreduced/unreduced-7-9.yaml" in lines
    assert lines[-2] == "graph 9 on tf/plain: minimized: c/findings/x.yaml"
    assert lines[-1].endswith(", 4 more forbidden tests not printed, time is up")


def test_with_json_what_was_seen_is_a_line_of_json() -> None:
    out = io.StringIO()
    with LiveView(out, as_json=True) as view:
        view.say(seen())
        view.say(Became((9, "tf", "plain"), "a fresh process shows it again"))
    first, second = map(json.loads, out.getvalue().splitlines())
    assert (first["event"], first["index"], first["family"]) == ("forbidden", 9, "dag")
    assert first["outcomes"][0]["count"] > 0
    assert first["file"] == "c/unreduced/unreduced-7-9.yaml"
    assert (second["event"], second["what"]) == ("became", "a fresh process shows it again")


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_with_json_all_that_is_printed_is_lines_of_json(stream: type[io.StringIO]) -> None:
    """New findings and the progress as well, and no panel on a terminal."""
    made = replace(short_run(2), ended=None, minimizing=(GRAPH,))
    dead = replace(ended_finding(FindingKind.CRASHED), traceback="\x1b[2J")
    out = stream()
    with LiveView(out, as_json=True) as view:
        view.say(seen())
        view(replace(made, by_config=(replace(BUSY, forbidden_graphs=5),)))
        view(replace(made, findings=(*made.findings, dead)))
        view.say(Became((9, "tf", "plain"), "minimized", "c/findings/x.yaml"))
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    events = ["forbidden", "finding", "finding", "progress", "finding", "became"]
    assert [each["event"] for each in lines] == events
    found = [each for each in lines if each["event"] == "finding"]
    shown = (*made.findings, dead)
    assert [each["headline"] for each in found] == [each.headline for each in shown]
    assert [each["replay"] for each in found] == [each.replay for each in shown]
    assert (found[0]["seen"], found[2]["because"]) == (shown[0].seen, list(dead.reason))
    (progress,) = (each for each in lines if each["event"] == "progress")
    assert progress["graphs"] == made.graphs
    assert (progress["new"], progress["not_printed"], progress["minimizing"]) == (2, 4, [GRAPH])


def test_on_a_terminal_it_stands_above_the_panel_in_one_piece(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A command that is longer than a line is not broken; control characters are not printed."""
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("TERM", "xterm")
    out = Terminal()
    with LiveView(out) as view:
        view(short_run(0))
        view.say(replace(seen("c\x1b[2J[bold]"), replay="litmusfuzz replay " + "x" * 100))
    shown = out.getvalue()
    assert "litmusfuzz replay " + "x" * 100 in shown
    assert "[2J[bold]/unreduced/unreduced-7-9.yaml" in shown
    assert "\x1b[2J" not in shown


@pytest.mark.parametrize(
    ("test", "said"),
    [
        (litmus("X=1; r0=Y || Y=1; r1=X"), ["  test      X=1; r0=Y || Y=1; r1=X"]),
        (
            litmus("X=1; r0=X", dtype="float32", init={"X": 2}),
            ["  test      X=1; r0=X", "            X: float32[] = 2"],
        ),
    ],
)
def test_a_small_test_is_printed_in_notation_with_what_that_does_not_say(
    test: LitmusTest, said: list[str]
) -> None:
    made = seen()
    assert made.entry is not None
    entry = replace(made.entry, test=test, finding=None)
    assert replace(made, entry=entry).text().splitlines()[1 : 1 + len(said)] == said


def test_of_a_large_test_the_number_and_the_family_are_printed() -> None:
    made = seen()
    assert made.entry is not None
    test = litmus(" || ".join(f"X={n}; r{n}=X; Y=1; Z=1; X=1" for n in range(12)))
    lines = replace(made, entry=replace(made.entry, test=test, finding=None)).text().splitlines()
    assert lines[0] == "FORBIDDEN: graph 9 on tf/plain, family dag, judged by rfc"
    assert lines[1].startswith("  seen  ")
