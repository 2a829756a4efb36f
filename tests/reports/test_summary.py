"""The summary at the end of a run, as plain text."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.model import Cluster
from litmusfuzz.corpus.outcome import Outcome
from litmusfuzz.corpus.textfile import Entry, Finding
from litmusfuzz.reports.differential import DifferentialTotals
from litmusfuzz.reports.records import (
    Death,
    ExecutorState,
    FamilyTotals,
    ReportedFinding,
    RunRecord,
    Unsound,
)
from litmusfuzz.reports.summary import summary
from litmusfuzz.reports.text import finding, headline

SB = litmus("X=1; r0=Y || Y=1; r1=X", name="SB")
STALE = Outcome.of(SB, {"r0": (0,), "r1": (0,), "X": (1,), "Y": (1,)})


def reported(times: int, path: str = "out/SB.yaml") -> ReportedFinding:
    found = Finding(
        executor="mutant/stale-reads",
        configuration="default",
        model="rfc",
        forbidden=((STALE, times),),
        executions=100,
        noise={},
        settings={},
        versions={},
        seed=1,
        index=2,
        family="dag",
        minimized=True,
        confirmed=True,
    )
    return ReportedFinding(Entry(SB, {}, found), path, "stale")


def test_the_end_of_a_run() -> None:
    record = RunRecord(
        seed=3,
        out="findings",
        executors=[
            ExecutorState("tensorflow", "two", tests=4, outcomes=950, minimizing_outcomes=50),
            ExecutorState("mutant/canary", "default"),
            ExecutorState(
                "jax",
                "",
                guarantees="executor",
                tests=5,
                refused=Counter({"queues": 2, "loops": 5}),
                refused_graphs=6,
                not_run=1,
                crashed=1,
            ),
        ],
        graphs=12,
        families={
            "loops": FamilyTotals(8, 3.25, 2, 2, 0),
            "dag": FamilyTotals(4, 12.0, 0, 0, 1),
        },
        ops=Counter({"ReadVariableOp": 3, "AssignVariableOp": 9}),
        verdicts=Counter({"forbidden": 7, "allowed": 893}),
        unknown_graphs=1,
        forbidden_graphs=2,
        unreduced=["unreduced-1-4.yaml"],
        unconfirmed=1,
        findings=[reported(7), reported(1, "again.yaml")],
        deaths=[Death("o p/c.yaml", "signal 6: free()", timed_out=False)],
        canary_runs=2,
        canary_reported=1,
        elapsed_s=1.26,
        interrupted=True,
        problem="the canary was reported in 1 of 2 runs: this campaign proves nothing",
    )
    first = finding(record.findings[0])
    assert summary(record) == "\n".join(
        [
            first,
            "  likely the same cause in 1 more finding:",
            f"    {headline(record.findings[1])}",
            "",
            "seed 3: 12 graphs in 1.3 s (interrupted)",
            "  tensorflow/two: 4 tests, 900 outcomes, and 50 more while minimizing",
            "  mutant/canary, which is always wrong: reported in 1 of 2 runs",
            "  jax/: 5 tests, 0 outcomes, and 0 more while minimizing",
            "    refused 6 (50.0%): loops 5 (41.7%), queues 2 (16.7%)",
            "    not run 1 (8.3%): it was busy, or the time was up",
            "    judged by rfc; it guarantees executor, see --model",
            "  family  graphs  seconds  forbidden  findings  unknown",
            "  dag          4     12.0          0         0        1",
            "  loops        8      3.2          2         2        0",
            "  outcomes judged: 893 allowed, 7 forbidden",
            "  generated: AssignVariableOp 9, ReadVariableOp 3",
            "  over the oracle's budget: 1 graph",
            "  2 graphs showed a forbidden outcome: 2 findings of 1 likely cause, in findings",
            "  1 not minimized, in findings/unreduced; to continue:",
            "    litmusfuzz minimize findings/record-3.json",
            "  1 not confirmed in a fresh process, in findings/unconfirmed",
            "  the process crashed 1 time, on generated tests or while minimizing:",
            "    o p/c.yaml: signal 6: free()",
            "    replay    litmusfuzz replay 'o p/c.yaml'",
        ]
    )


def test_a_run_that_saw_nothing() -> None:
    assert summary(RunRecord(seed=0, out="o")) == "\n".join(
        [
            "seed 0: 0 graphs in 0.0 s",
            "  outcomes judged: none",
            "  generated: none",
            "  0 graphs showed a forbidden outcome: 0 findings of 0 likely causes, in o",
        ]
    )


def test_counters_of_an_executor_are_listed() -> None:
    state = ExecutorState(
        "jax",
        "plain",
        tests=9,
        busy_s=20.0,
        clusterings=Counter({"sound": 6, "unknown": 1}),
        racing=4,
        counters={"compiled": 40, "found": 120, "seconds": 5.0, "other_thing": 2.5},
    )
    record = RunRecord(0, "o", [state], graphs=9, clusterings=Counter({"unsound": 1, "sound": 1}))
    lines = summary(record).splitlines()
    assert lines[1:5] == [
        "  jax/plain: 9 tests, 0 outcomes, and 0 more while minimizing",
        "    clustered 7 graphs: 6 sound, 1 unknown; in 4 a cluster of several resource ops races",
        "    compiled 40 structures in 5.0 s, 25.0% of its time; 120 were cached (75.0%)",
        "    other thing 2.5",
    ]
    given = "  clusters that tests came with, 2 graphs: 1 sound, 1 unsound"
    assert f"{given}; in 0 one of several resource ops races" in lines
    assert record.exit_code() == 3  # nothing was judged


def test_a_differential_comparison_has_a_column_for_each_executor() -> None:
    record = RunRecord(0, "o", compared=3, kept=2, kept_in="o/histograms-0.jsonl")
    record.differential = {
        "tf/plain": DifferentialTotals("executor", 3, 300, 7, 1, 2, 0),
        "jax/plain": DifferentialTotals("rfc", 3, 96, 8, 2, 1, 1),
    }
    assert summary(record).splitlines()[3:-1] == [
        "  differential comparison on 3 graphs:",
        "                             tf/plain  jax/plain",
        "    judged by                executor  rfc",
        "    graphs                   3         3",
        "    executions               300       96",
        "    outcomes seen            7         8",
        "    by no other              1         2",
        "    missed, seen by another  2         1",
        "    forbidden                0         1",
        "    the first 2 with all histograms: o/histograms-0.jsonl",
    ]
    assert record.as_json()["differential"]["executors"]["tf/plain"]["missed"] == 2


def test_an_unsound_clustering_is_reported_like_a_finding() -> None:
    clustered = replace(SB, name="unsound-SB", clusters=(Cluster("k0", ("w0", "r0")),))
    record = RunRecord(0, "o", [ExecutorState("jax", "plain", clusterings=Counter(unsound=3))])
    record.unsound.append(Unsound("o/it's.yaml", clustered, "jax/plain", STALE, more=1))
    lines = summary(record).splitlines()
    assert lines[:6] == [
        f"unsound-SB: {' + '.join(n.op for n in SB.effects)}",
        "  clusters  chosen by jax/plain",
        "    k0: w0, r0",
        "  add       r0=0 r1=0 X=1 Y=1   which the graph without them forbids",
        "  also      1 more graph with just this inside",
        "  validate  litmusfuzz validate 'o/it'\"'\"'s.yaml'",
    ]
    assert lines[-1] == "  3 graphs clustered unsoundly: 1 finding, in o"
    assert record.exit_code() == 1
    (data,) = record.as_json()["unsound"]
    assert (data["clusters"], data["added"]) == ([["w0", "r0"]], STALE.plain)
