"""Tables, findings and the end of a run, as plain text."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
from msgspec.structs import replace as replace_event

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.outcome import TORN, Outcome, Status, Value, nearest
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import Digest, Entry, Finding, Schedule, dumps
from litmusfuzz.oracles.model import GUARANTEES, RFC, Axiom
from litmusfuzz.reports import fold
from litmusfuzz.reports.differential import DifferentialComparison
from litmusfuzz.reports.events import FindingAdded, FindingKind
from litmusfuzz.reports.replays import ReplayReport, Replays
from litmusfuzz.reports.report import ReportedFinding
from litmusfuzz.reports.tables import cells, outcome_table, table
from litmusfuzz.reports.text import (
    BEYOND_RFC,
    broken_rule,
    by_cause,
    finding,
)

SB = litmus("X=1; r0=Y || Y=1; r1=X", name="SB")


JUDGED_BY = "judged by rfc, which mutant/stale-reads/default guarantees"


def sb(r0: Value, r1: Value) -> Outcome:
    return Outcome.of(SB, {"r0": r0, "r1": r1, "X": (1,), "Y": (1,)})


STALE, LEFT, RIGHT, BOTH = sb((0,), (0,)), sb((0,), (1,)), sb((1,), (0,)), sb((1,), (1,))
ALLOWED = frozenset({LEFT, RIGHT, BOTH})


def entry(*forbidden: tuple[Outcome, int], executions: int = 100, **more: Any) -> Entry:
    found = Finding(
        executor="mutant/stale-reads",
        configuration="default",
        model="rfc",
        forbidden=forbidden,
        executions=executions,
        noise={},
        settings={},
        versions={},
        seed=1,
        index=2,
        family="dag",
        minimized=True,
        confirmed=True,
    )
    return Entry(SB, {"rfc": ALLOWED}, replace(found, **more))


def reported(
    of: Entry, path: str = "out/SB.yaml", cause: str = "stale", more: int = 0, **rest: Any
) -> ReportedFinding:
    found, listed = of.finding, of.allowed["rfc"]
    assert found is not None
    known = listed if isinstance(listed, frozenset) else ()
    made = ReportedFinding(
        key=path,
        kind=FindingKind.FORBIDDEN,
        entry=of,
        file=path,
        executor=found.executor,
        config_class="",
        model="rfc",
        cause=cause,
        reason=(),
        is_cycle=False,
        edges=(),
        rules=(),
        count=1 + more,
        in_this_run=1 + more,
        first_seen=0,
        last_seen=0,
        configs={"default": 1 + more},
        histogram={},
        allowed=(),
        nearest=nearest(found.forbidden[0][0], known),
        replay=f"litmusfuzz replay {shlex.quote(path)}",
    )
    return replace(made, **rest)


def test_a_long_reason_is_shortened() -> None:
    steps = tuple(f"step {number}" for number in range(7))
    why = "  because   step 0; step 1; step 2; step 3; step 4; step 5; and 1 more step"
    assert why in finding(reported(entry((STALE, 7)), reason=steps)).splitlines()
    why = "  because   step 0; step 1; step 2; step 3; step 4; step 5"
    assert why in finding(reported(entry((STALE, 7)), reason=steps[:6])).splitlines()


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    assert table(["a", "long", ""], [["wider", "b", "x"], ["", "", ""], ["c", "d", ""]]) == (
        "a      long\nwider  b     x\n\nc      d"
    )


def test_a_table_without_rows_is_its_header() -> None:
    assert table(["a", "b"], []) == "a  b"


def test_a_row_has_as_many_cells_as_the_header() -> None:
    with pytest.raises((ValueError, IndexError)):
        table(["a", "b"], [["a"]])


def test_an_outcome_is_one_row() -> None:
    outcome = Outcome((("r0", (1, -2)), ("r1", TORN), ("X", (3,))))
    assert cells(outcome, ["r0", "r1", "X"]) == ["[1,-2]", "torn", "3"]
    assert cells(outcome, ["r0", "r2"]) == ["[1,-2]", "-"]
    assert outcome_table(["r0", "r1", "X"], ["n", "m"], [(outcome, ["7", "x"])]) == (
        "r0      r1    X  n  m\n[1,-2]  torn  3  7  x"
    )
    assert outcome_table(["r0"], [], []) == "r0"


def test_the_status_of_outcomes_is_a_column_if_it_differs() -> None:
    blocked = Outcome((("X", (1,)),), Status.BLOCKED)
    assert outcome_table(["r0", "X"], ["n"], [(blocked, ["7"])]) == (
        "r0  X  ended    n\n-   1  blocked  7"
    )
    stuck = ReplayReport(
        entry=Entry(SB),
        file="SB.yaml",
        executor="tf",
        config="plain",
        model="rfc",
        judged_by="judged by rfc, as --model asks; tf/plain guarantees executor",
        histogram={Outcome.of(SB, {"X": (1,), "Y": (0,)}, Status.BLOCKED): 3},
        verdicts={Outcome.of(SB, {"X": (1,), "Y": (0,)}, Status.BLOCKED): "forbidden"},
        allowed=(LEFT,),
        complete=True,
        died=(),
        seconds=1.0,
    )
    assert text(stuck).splitlines()[:5] == [
        stuck.judged_by,
        "",
        "r0  r1  X  Y  ended      count  verdict",
        "-   -   1  0  blocked    3      FORBIDDEN",
        "0   1   1  1  completed  0      allowed",
    ]


def test_a_finding_is_reported_in_full() -> None:
    """Style, "Errors": shape, outcome, nearest allowed, rule, replay command last."""
    assert finding(reported(entry((STALE, 7)))) == "\n".join(
        [
            "wrong value: 2 AssignVariableOp + 2 ReadVariableOp",
            "  seen      r0=0 r1=0 X=1 Y=1   in 7 of 100 executions on mutant/stale-reads/default",
            "  nearest   r0=0 r1=1 X=1 Y=1   is allowed under rfc",
            "  broken    no total order of the events yields it (RFC, rules 1 to 4)",
            "  replay    litmusfuzz replay out/SB.yaml",
        ]
    )


def test_a_finding_counts_the_outcome_that_it_shows() -> None:
    """Others are counted apart: the count behind `seen` is that outcome's own."""
    lines = finding(reported(entry((STALE, 7), (sb(TORN, (0,)), 2), (sb((5,), (0,)), 1))))
    assert lines.splitlines()[1:3] == [
        "  seen      r0=0 r1=0 X=1 Y=1   in 7 of 100 executions on mutant/stale-reads/default",
        "            2 other forbidden outcomes in 3 more",
    ]


def test_a_finding_says_what_is_not_certain() -> None:
    unsure = entry((sb(TORN, (0,)), 1), minimized=False, confirmed=False)
    unsure = replace(unsure, allowed={"rfc": Digest(2000, "ab" * 32)})
    assert finding(reported(unsure, "o p/it's.yaml", more=3)).splitlines()[2:] == [
        '  broken    torn: "The writes and reads themselves are atomic" (RFC)',
        "  minimized in part: the time was up",
        "  not yet confirmed in a fresh process: replay it",
        "  also      3 more graphs that contain the same ops in the same relation",
        "  replay    litmusfuzz replay 'o p/it'\"'\"'s.yaml'",
    ]


def test_a_finding_names_its_reason_models_configurations_and_script() -> None:
    made = reported(
        entry((STALE, 7)),
        more=1,
        reason=("r0 reads before X=1", "r1 reads before Y=1"),
        allowed_by=("executor", "acd"),
        configs={"one_thread": 1, "plain": 4},
        script="findings/SB.py",
    )
    lines = finding(made, "my run", "/opt/py").splitlines()
    assert lines[4:] == [
        "  because   r0 reads before X=1; r1 reads before Y=1",
        "  only the model rfc forbids it: executor and acd allow it",
        "  also      1 more graph that contains the same ops in the same relation",
        "  in        plain 4, one_thread 1",
        "  script    /opt/py 'my run/findings/SB.py'   unconfirmed by script",
        "  replay    litmusfuzz replay out/SB.yaml",
    ]
    shown = finding(replace(made, script_shows_it=True), "run")
    assert "  script    python run/findings/SB.py   shows it" in shown.splitlines()


def test_the_event_of_a_finding_is_enough_to_report_it() -> None:
    """`litmusfuzz minimize` reports a finding without a campaign around it."""
    of = entry((STALE, 7))
    added = FindingAdded(
        at=99.5,
        index=2,
        key="v3-7",
        file="SB.yaml",
        entry=dumps(of),
        executor="mutant/stale-reads",
        configuration="default",
        executor_class="mutant/stale-reads",
        model="rfc",
        cause="stale",
        reason=("r0 reads before X=1",),
        histogram=((STALE.plain, 7, "forbidden"), (LEFT.plain, 93, "allowed")),
    )
    made = fold.reported(added, "o p", "/opt/py", script_shows_it=True)
    assert (made.count, made.in_this_run, made.first_seen) == (1, 1, 99)
    assert made.allowed == tuple(sorted(ALLOWED, key=str))
    assert finding(made, "o p", "/opt/py").splitlines()[1:] == [
        "  seen      r0=0 r1=0 X=1 Y=1   in 7 of 100 executions on mutant/stale-reads/default",
        "  nearest   r0=0 r1=1 X=1 Y=1   is allowed under rfc",
        "  broken    no total order of the events yields it (RFC, rules 1 to 4)",
        "  because   r0 reads before X=1",
        "  script    /opt/py 'o p/SB.py'   shows it",
        "  replay    litmusfuzz replay 'o p/SB.yaml' --python /opt/py",
    ]
    clusters = replace_event(added, kind=FindingKind.UNSOUND, entry=dumps(Entry(SB)), histogram=())
    assert fold.reported(clusters, "o", "/opt/py").replay == "litmusfuzz validate o/SB.yaml"


def test_a_dead_worker_is_a_finding_with_its_message() -> None:
    died = reported(
        entry((STALE, 7)),
        kind=FindingKind.TIMED_OUT,
        reason=("no reply in 60 s", "in 2 tests with QueueDequeueV2"),
        configs={"plain": 1},
    )
    died = replace(died, entry=Entry(SB))
    assert finding(died).splitlines()[1:] == [
        "  timed out on mutant/stale-reads/plain: no reply in 60 s; in 2 tests with QueueDequeueV2",
        "  replay    litmusfuzz replay out/SB.yaml",
    ]


def test_torn_breaks_a_rule_of_its_own() -> None:
    assert broken_rule(sb((0,), TORN), "rfc", ()).startswith("torn: ")
    assert broken_rule(STALE, "rfc", None).startswith("no total order")


def test_the_findings_of_one_cause_stand_together_the_most_frequent_first() -> None:
    rare, often = reported(entry((STALE, 1)), "rare"), reported(entry((STALE, 9)), "often")
    other = reported(entry((STALE, 5)), "other", cause="torn")
    part = reported(entry((STALE, 99), minimized=False), "part")
    theirs = reported(entry((STALE, 5), executor="tf"), "theirs")
    groups = by_cause([rare, other, part, theirs, often])
    assert [[each.file for each in group] for group in groups] == [
        ["often", "rare", "part"],
        ["other"],
        ["theirs"],
    ]
    assert by_cause([]) == []


def replayed(histogram: dict[Outcome, int], **more: Any) -> ReplayReport:
    report = ReplayReport(
        entry=entry((STALE, 7)),
        file="SB.yaml",
        executor="mutant/stale-reads",
        config="default",
        model="rfc",
        judged_by=JUDGED_BY,
        histogram=histogram,
        verdicts={o: "allowed" if o in ALLOWED else "forbidden" for o in histogram},
        allowed=tuple(ALLOWED),
        complete=True,
        died=(),
        seconds=0.26,
    )
    return replace(report, **more)


def test_a_replay_names_its_devices_and_compares_the_driver_with_the_finding_s() -> None:
    report = replayed({LEFT: 1}, drivers={"opencl:0": "A (driver 2)", "opencl:1": "B (driver 1)"})
    found = report.entry.finding
    assert found is not None
    versions = {"numpy": "2.4", "opencl:0": "A (driver 1)", "opencl:1": "B (driver 1)"}
    seen = replace(found, versions=versions)
    report = replace(report, entry=replace(report.entry, finding=seen))
    lines = [line for line in text(report).splitlines() if line.startswith("opencl:")]
    assert lines == [
        "opencl:0 is A (driver 2); the finding was seen on A (driver 1)",
        "opencl:1 is B (driver 1)",
    ]
    assert report.as_json()["drivers"] == report.drivers
    assert report.as_json()["drivers_of_the_finding"] == {
        "opencl:0": "A (driver 1)",
        "opencl:1": "B (driver 1)",
    }


def text(report: ReplayReport) -> str:
    """The text of a replay on one executor."""
    verdicts = {report.model: {**dict.fromkeys(report.allowed, "allowed"), **report.verdicts}}
    comparison = DifferentialComparison(
        report.entry.test, (report,), verdicts, tuple(report.unseen)
    )
    return Replays((report,), {}, comparison).text()


def test_a_replay_shows_forbidden_outcomes_first_and_unseen_ones_last() -> None:
    report = replayed({BOTH: 1, LEFT: 60, sb(TORN, (0,)): 2, STALE: 37})
    assert text(report) == "\n".join(
        [
            JUDGED_BY,
            "",
            "r0    r1  X  Y  count  verdict",
            "0     0   1  1  37     FORBIDDEN",
            "torn  0   1  1  2      FORBIDDEN",
            "0     1   1  1  60     allowed",
            "1     1   1  1  1      allowed",
            "1     0   1  1  0      allowed",
            "",
            "100 executions on mutant/stale-reads/default in 0.3 s: 39 forbidden under rfc",
            "no total order of the events yields it (RFC, rules 1 to 4)",
        ]
    )
    assert report.line() == (
        "SB: 100 executions, 39 forbidden, 2 of 3 allowed outcomes seen;"
        " most often forbidden: r0=0 r1=0 X=1 Y=1"
    )
    assert report.exit_code == 1


def test_a_replay_without_the_finding_says_so() -> None:
    report = replayed({BOTH: 1, LEFT: 1}, died=("killed by signal 9",), complete=False)
    assert text(report).splitlines()[-3:] == [
        "the oracle ran out of its budget: outcomes that it did not reach are UNKNOWN",
        "the worker died: killed by signal 9",
        "the finding did not show again",
    ]
    assert report.line().endswith("; the worker died: killed by signal 9")
    assert report.exit_code == 3
    assert replayed({BOTH: 1}).exit_code == 3  # the finding did not show: nothing is decided
    plain = Entry(replayed({}).entry.test)
    assert replayed({BOTH: 1}, entry=plain).exit_code == 0
    assert replayed({STALE: 1}, verdicts={STALE: "unknown"}).exit_code == 3
    assert replayed({STALE: 1}, died=("x",)).exit_code == 1
    often = replayed({}, died=("signal 6", "signal 11", "signal 6"))
    deaths = "; the worker died: signal 6 (2 times); the worker died: signal 11"
    assert often.line().endswith(deaths)


def test_a_replay_says_which_rule_is_broken() -> None:
    """Where `rfc` allows the outcome, a rule that the judging model adds; also in a finding."""
    added = replayed(
        {STALE: 1},
        model="executor",
        rules=("dependencies", "dense updates indivisible"),
        allowed_by=("rfc",),
    )
    rule = "rule of the model executor: dense updates indivisible"
    assert added.notes()[0].endswith("1 forbidden under the model executor")
    assert added.notes()[-1] == f"{rule}; rfc allows it"
    assert added.as_json()["broken"] == rule
    assert added.as_json()["allowed_by"] == ["rfc"]
    unknown = replace(added, rules=None, allowed_by=()).notes()[-1]
    assert unknown == "no total order that the model executor allows yields it"
    assert replace(added, rules=(), allowed_by=()).notes()[-1].endswith("(RFC, rules 1 to 4)")
    of = entry((STALE, 7))
    assert of.finding is not None
    of = replace(of, finding=replace(of.finding, model="executor"))
    found = reported(of, reason=("x",), rules=added.rules, allowed_by=("rfc",))
    lines = finding(found).splitlines()
    assert f"  broken    {rule}" in lines
    assert "  only the model executor forbids it: rfc allows it" in lines


def test_the_rules_beyond_the_rfc_are_those_of_the_models() -> None:
    models = frozenset[Axiom]().union(*(each.axioms for each in GUARANTEES.values()))
    assert {*map(str, models - RFC.axioms)} == BEYOND_RFC


def test_a_clean_replay_does_not_say_that_the_executor_is_right() -> None:
    clean = replayed({BOTH: 1}, entry=Entry(replayed({}).entry.test), more="a larger --count")
    assert clean.caution == text(clean).splitlines()[-1] == clean.as_json()["caution"]
    assert clean.caution.endswith(
        "does not prove that none is possible: a larger --count may show one"
    )
    for other in (replayed({BOTH: 1}), replace(clean, histogram={}), replayed({STALE: 1})):
        assert not other.caution


def test_a_replay_as_data() -> None:
    data = replayed({BOTH: 4, STALE: 1}).as_json()
    assert data["executions"] == 5
    assert data["forbidden"] == 1
    assert data["observed"] == [
        {"outcome": {"r0": 1, "r1": 1, "X": 1, "Y": 1}, "count": 4, "verdict": "allowed"},
        {"outcome": {"r0": 0, "r1": 0, "X": 1, "Y": 1}, "count": 1, "verdict": "forbidden"},
    ]
    assert len(data["allowed_not_seen"]) == 2
    assert data["exit_code"] == 1


def test_a_schedule_is_reported_with_the_finding_and_with_its_replay() -> None:
    recorded = entry((STALE, 7), schedule=Schedule(STALE, ((0, 2, 9), (1, 2, 8))))
    assert (
        "  one execution of 2 choices is in the file, and shows it again"
        in finding(reported(recorded)).splitlines()
    )
    report = replayed({STALE: 1}, schedule="replayed by its schedule: same outcome")
    assert text(report).splitlines()[-3:] == [
        "1 execution on mutant/stale-reads/default in 0.3 s: 1 forbidden under rfc",
        "replayed by its schedule: same outcome",
        "no total order of the events yields it (RFC, rules 1 to 4)",
    ]
    assert report.line().endswith("Y=1; replayed by its schedule: same outcome")
    assert report.as_json()["schedule"] == "replayed by its schedule: same outcome"
