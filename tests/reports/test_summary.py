"""The summary at the end of a campaign, as plain text."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import pytest
from example_reports import (
    GPU,
    ended_finding,
    nightly_run,
    pending,
    short_run,
    torn_finding,
    unconfirmed,
    unsound_finding,
)

from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import loads, outcome_from_plain
from litmusfuzz.reports.events import ExecutorTotals, FindingKind, Kill
from litmusfuzz.reports.open_tests import Pending, UncheckedTest, UnconfirmedTest
from litmusfuzz.reports.outputs import as_json
from litmusfuzz.reports.report import (
    Earlier,
    FamilyTotals,
    Known,
    Moment,
    Pruned,
    Reached,
    Report,
    ReportedFinding,
    SettingCoverage,
    ShardLine,
    Share,
    ValueTotals,
    WorkerHealth,
)
from litmusfuzz.reports.sections import sections
from litmusfuzz.reports.summary import summary
from litmusfuzz.reports.text import finding

if TYPE_CHECKING:
    from litmusfuzz.corpus.outcome import Outcome

TF = Share(
    name="tf/two",
    executor="tf",
    model="rfc",
    guarantees="rfc",
    graphs=4,
    outcomes=900,
    seconds=3.25,
    findings=2,
    forbidden_graphs=2,
    reached=0.5,
    reached_graphs=3,
    minimizing_outcomes=50,
)
JAX = replace(
    TF,
    name="jax/plain",
    executor="jax",
    guarantees="executor",
    outcomes=0,
    findings=0,
    forbidden_graphs=0,
    reached=None,
    minimizing_outcomes=0,
    unknown={"over the oracle's budget": 1},
    refused=6,
    refused_for={"queues": 2, "loops": 5},
    not_run=1,
    crashed=1,
)


def run_of_two() -> Report:
    """An interrupted run of two executors, whose canary was not always reported."""
    made = short_run(2)
    dead = ended_finding(FindingKind.CRASHED)
    dead = replace(dead, file="crashed/o p.yaml", replay="litmusfuzz replay 'r/crashed/o p.yaml'")
    return replace(
        made,
        folder="my runs/r",
        seed=3,
        spent_s=1.26,
        interrupted=True,
        findings=(*made.findings, replace(dead, count=1, in_this_run=1)),
        by_config=(TF, JAX, GPU),
        unavailable={"native/gpu": "no CUDA device"},
        generated=12,
        families={
            "loops": FamilyTotals(8, 3.25, 2, 2, 0),
            "dag": FamilyTotals(4, 12.0, 0, 0, 1),
        },
        ops={"ReadVariableOp": 3, "AssignVariableOp": 9},
        verdicts={"forbidden": 7, "allowed": 893},
        unknown_graphs=1,
        forbidden_graphs=2,
        pending=pending(3),
        may_be_known={"unreduced/unreduced-7-0.yaml": ("tears",)},
        unconfirmed=unconfirmed(1),
        canary=(2, 1),
        clusterings={"unsound": 1, "sound": 2},
        racing=1,
        generating_s=0.0,
        judging_s=0.0,
    )


def pictured(*tests: tuple[str, int, int, str]) -> list[str]:
    """Pending tests whose files were not read: the headline, how often, the index, and why."""
    lines = []
    for head, seen, index, why in tests:
        file = f"unreduced/unreduced-7-{index}.yaml"
        lines += [
            head,
            f"  seen      a forbidden outcome in {seen} of 3,072 executions",
            "  judged by rfc",
            f"  left      the campaign was interrupted before {why}",
            f"  file      {file}",
            f"  replay    litmusfuzz replay 'my runs/r/{file}'",
            "",
        ]
    return lines


def test_the_end_of_a_run() -> None:
    report = run_of_two()
    mp, iriw, _ = report.findings
    assert summary(report) == "\n".join(
        [
            finding(iriw, "my runs/r"),
            "  likely the same cause in 1 more finding:",
            f"    {mp.headline}   {mp.file}",
            "",
            *pictured(
                ("forbidden: graph 1 on tf/plain, interrupted", 3, 1, "it was minimized"),
                ("forbidden: graph 2 on tf/plain, interrupted", 4, 2, "it was minimized"),
            ),
            "forbidden: graph 0 on tf/plain, undecided",
            "  seen      a forbidden outcome in 2 of 3,072 executions",
            "  judged by rfc",
            "  left      the campaign was interrupted before it was minimized; the known cause"
            " tears may explain it",
            "  file      unreduced/unreduced-7-0.yaml",
            "  replay    litmusfuzz replay 'my runs/r/unreduced/unreduced-7-0.yaml'",
            "",
            "also forbidden, without a finding              executions  file",
            "forbidden: graph 0 on tf/plain, not confirmed  1 of 3,072"
            "  unconfirmed/unconfirmed-7-0.yaml",
            "",
            "seed 3: 12 graphs generated in 1.3 s (interrupted after 1 of 60 s)",
            "  configurations:",
            "    configuration  judged by  graphs  outcomes  seconds  coverage  forbidden  findings"
            "  unknown  refused  not run  crashed  while minimizing",
            "    tf/two         rfc             4       900      3.2  50%, n=3          2         2"
            "        0        0        0        0                50",
            "    jax/plain      rfc             4         0      3.2         -          0         0"
            "        1        6        1        1                 0",
            "    native/gpu     rfc             0         0      0.0         -          0         0"
            "        0        0        0        0                 0",
            "    jax/plain: unknown: over the oracle's budget 1; refused for lack of: loops 5,"
            " queues 2;",
            "      judged by rfc, guarantees executor (see --model)",
            "    jax/plain: not run, for lack of time: 1 graph",
            "  families:",
            "    family  graphs  seconds  forbidden  findings  unknown",
            "    dag          4     12.0          0         0        1",
            "    loops        8      3.2          2         2        0",
            "  causes:",
            "    cause  needs  graphs  configurations  seconds  state",
            "    MP         -       1               1      0.0  new",
            "    IRIW       -       2               1      0.0  new",
            "    time on what is known: 0.0 s, 0.0%",
            "  tests and verdicts:",
            "    generated: 12 graphs: AssignVariableOp 9, ReadVariableOp 3",
            "    outcomes judged: allowed 893, forbidden 7",
            "    forbidden outcomes: in 2 graphs: 2 findings of 1 likely cause, in my runs/r",
            "    over the oracle's budget: 1 graph",
            "    clusters of generated tests: sound 2, unsound 1; in 1 one of several resource ops"
            " races",
            "    forbidden, without a finding: interrupted 2, not confirmed 1, undecided 1",
            "    mutant/canary: always wrong: reported in 1 of 2 runs",
            "    continue  litmusfuzz run --resume 'my runs/r' --tests 0 --time 5m",
            "  the process crashed on generated tests, or while minimizing:",
            "    crashed: 2 ReadVariableOp + 2 AssignAddVariableOp   crashed/o p.yaml",
            "      1 time: the worker ended by SIGSEGV after 3 of 64 executions",
            "    replay    litmusfuzz replay 'r/crashed/o p.yaml'",
            "  what ran:",
            "    executor  configurations  cannot run here   graphs  outcomes",
            "    tf                1 of 1                0   4 of 4       900",
            "    jax               1 of 1                0  4 of 11         0",
            "    native            0 of 1                1   0 of 0         0",
            "    asked for: 60 s; 1.3 s spent",
            "    native: 1 of 1 cannot run here (no CUDA device): gpu",
            "judged by rfc, as --model asks; 1 of 3 configurations guarantee another model",
            "broken: the canary was reported in 1 of 2 runs: this campaign proves nothing;"
            " interrupted after 1 of 60 s",
        ]
    )


def test_a_nightly_run_is_continued_by_its_own_command() -> None:
    report = replace(run_of_two(), unattended=True)
    assert "litmusfuzz nightly --resume 'my runs/r' --time 5m\n" in summary(report)


def test_a_run_that_saw_nothing() -> None:
    nothing = replace(
        short_run(0),
        folder="o",
        ended=None,
        spent_s=0.0,
        by_config=(),
        generated=0,
        families={},
        ops={},
        verdicts={},
        canary=(0, 0),
        generating_s=0.0,
        judging_s=0.0,
    )
    assert summary(nothing) == "\n".join(
        [
            "seed 7: 0 graphs generated in 0.0 s",
            "  tests and verdicts:",
            "    generated: 0 graphs: none",
            "    outcomes judged: none",
            "    forbidden outcomes: in 0 graphs: 0 findings of 0 likely causes, in o",
            "    mutant/canary: always wrong: reported in 0 of 0 runs",
            "  what ran:",
            "    asked for: 60 s; 0.0 s spent",
            "nothing new so far",
        ]
    )
    assert nothing.exit_code() == 3  # nothing was judged


def test_counters_of_an_executor_are_listed() -> None:
    share = replace(
        JAX,
        unknown={},
        refused_for={},
        guarantees="rfc",
        clusterings={"sound": 6, "unknown": 1},
        racing=4,
        not_run=0,
        counters={"compiled": 40, "found": 120, "seconds": 5.0, "other_thing": 2.5},
    )
    made, *_ = sections(replace(short_run(0), by_config=(share,)))
    assert made.notes == (
        (
            "jax/plain",
            "clustered sound 6, unknown 1, in 4 a cluster of several resource ops races;"
            " compiled 40 structures in 5.0 s, 120 were cached; other thing 2.5",
        ),
    )


def test_a_differential_comparison_has_a_row_for_each_executor() -> None:
    compared = {
        "tf/plain": ExecutorTotals("executor", 300, 7, 1, 2, 0, 3),
        "jax/plain": ExecutorTotals("rfc", 9600, 8, 2, 1, 1, 3),
    }
    report = replace(short_run(0), compared=3, differential=compared)
    lines = summary(report).splitlines()
    start = lines.index("  differential comparison on 3 graphs:")
    assert lines[start + 1 : start + 4] == [
        "    configuration  judged by  graphs  executions  outcomes seen  by no other"
        "  missed, seen by another  forbidden",
        "    tf/plain       executor        3         300              7            1"
        "                        2          0",
        "    jax/plain      rfc             3       9,600              8            2"
        "                        1          1",
    ]
    assert as_json(report)["differential"]["tf/plain"]["missed"] == 2


def test_an_unsound_clustering_is_reported_like_a_finding() -> None:
    found = unsound_finding()
    (cluster,) = found.entry.test.clusters
    report = replace(short_run(0), findings=(found,))
    assert summary(report).splitlines()[:7] == [
        found.headline,
        "  clusters  chosen by jax/plain",
        f"    k0: {', '.join(cluster.members)}",
        "  because   the clusters add r0=1 r1=0 X=1 Y=1",
        "  also      1 more graph that contains the same ops in the same relation",
        "  replay    litmusfuzz validate findings/unsound-700.yaml",
        "",
    ]
    assert report.exit_code() == 1


def test_many_deaths_and_known_findings_are_counted() -> None:
    dead = ended_finding(FindingKind.TIMED_OUT)
    dying = tuple(replace(dead, key=str(n), file=f"timed-out/{n}.yaml") for n in range(6))
    known = tuple(replace(torn_finding(), key=f"k{n}", known=f"why {n}") for n in range(5))
    entries = tuple(Known(f"k{n}", f"why {n}", seen=True, graphs=n, file="a") for n in range(5))
    report = replace(short_run(0), findings=(*dying, *known), known=entries)
    only_known = replace(report, findings=known)
    assert only_known.verdict == "nothing new; 5 known causes showed"
    lines = summary(report).splitlines()
    start = lines.index("  the process timed out on generated tests, or while minimizing:")
    assert [line.strip() for line in lines[start + 1 : start + 10 : 2]] == [
        *(f"{dead.headline}   timed-out/{n}.yaml" for n in range(4)),
        "and 2 more",
    ]
    at = lines.index("  known causes that showed (5):")
    assert lines[at + 1 : at + 3] == [
        "    k0: its own test; a; why 0",
        "    k1: 1 graph; a; why 1",
    ]
    assert lines[lines.index("  what ran:") - 1] == "    and 1 more"
    # A known finding is not shown in full.
    assert not any(line.startswith("  seen ") for line in lines)


def test_control_characters_of_files_do_not_reach_the_terminal() -> None:
    report = replace(short_run(1), unavailable={"x": "a\x1b[31mb"})
    assert "\x1b" not in summary(report)


def from_json(data: dict[str, Any]) -> Report:
    """The report that was written as this JSON."""
    made = {each.name: data[each.name] for each in fields(Report)}
    for name, kind in (
        ("known", Known),
        ("by_config", Share),
        ("by_family", Share),
        ("moments", Moment),
        ("workers", WorkerHealth),
        ("kills", Kill),
        ("earlier", Earlier),
        ("pending", Pending),
        ("unconfirmed", UnconfirmedTest),
        ("unchecked", UncheckedTest),
        ("shards", ShardLine),
    ):
        made[name] = tuple(kind(**each) for each in made[name])
    made["may_be_known"] = {file: tuple(names) for file, names in made["may_be_known"].items()}
    made["entries"] = {file: loads(text) for file, text in made["entries"].items()}
    made["families"] = {k: FamilyTotals(**each) for k, each in made["families"].items()}
    made["differential"] = {k: ExecutorTotals(**each) for k, each in made["differential"].items()}
    made["findings"] = tuple(map(finding_from_json, made["findings"]))
    made["damaged"] = tuple(made["damaged"])
    made["settings"] = tuple(map(coverage_from_json, made["settings"]))
    pruned = made["pruned"]
    made["pruned"] = Pruned(**pruned | {"folders": tuple(pruned["folders"])})
    made["canary"], made["minimizing"] = tuple(made["canary"]), tuple(made["minimizing"])
    return Report(**made)


def coverage_from_json(data: dict[str, Any]) -> SettingCoverage:
    """The settings of an executor in it."""
    made = {each.name: data[each.name] for each in fields(SettingCoverage)}
    made["not_reached"] = tuple(map(tuple, made["not_reached"]))
    made["rarest"] = tuple(made["rarest"])
    made["values"] = tuple(ValueTotals(**each) for each in made["values"])
    for name in ("ops", "op_pairs", "op_values"):
        made[name] = Reached(**made[name])
    return SettingCoverage(**made)


def finding_from_json(data: dict[str, Any]) -> ReportedFinding:
    """A finding of it."""
    data = dict(data)
    entry = loads(data["entry"])
    assert data.pop("headline")
    schedule = data.pop("schedule")
    no_histogram = data.pop("no_histogram")
    assert bool(no_histogram) != bool(data["histogram"])

    def outcome(plain: Any) -> Outcome:
        return outcome_from_plain(entry.test, plain)

    made = data | {"entry": entry, "kind": FindingKind(data["kind"])}
    made["histogram"] = {
        outcome(each["outcome"]): (each["count"], each["verdict"]) for each in data["histogram"]
    }
    made["allowed"] = tuple(map(outcome, data["allowed"]))
    made["nearest"] = None if data["nearest"] is None else outcome(data["nearest"])
    for name in ("reason", "rules", "allowed_by", "undecided"):
        made[name] = tuple(data[name])
    for name in ("edges", "arcs", "also_on"):
        made[name] = tuple(map(tuple, data[name]))
    finding = ReportedFinding(**made)
    assert schedule == (None if finding.schedule is None else finding.schedule.as_json())
    return finding


@pytest.mark.parametrize(
    "report", [short_run(3), nightly_run(6), run_of_two()], ids=lambda each: each.folder
)
def test_everything_in_the_summary_is_in_the_json(report: Report) -> None:
    """The report, and thus the summary with each of its numbers, can be made from report.json."""
    again = from_json(json.loads(json.dumps(as_json(report))))
    assert again == report
    assert summary(again) == summary(report)
