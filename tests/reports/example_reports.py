"""Campaigns for tests of reports, nightly runs and short ones.

Every forbidden outcome here is forbidden: it is made of values that the exact allowed
set has, and is not in the set. Reasons are those of the oracle.
"""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import TYPE_CHECKING

from helpers import LITMUS, corpus_entry

from litmusfuzz.corpus.model import Cluster
from litmusfuzz.corpus.outcome import TORN, Outcome, Status, nearest
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import Entry, Finding
from litmusfuzz.fuzz.finding.worker_deaths import death_cause
from litmusfuzz.oracles.model import RFC
from litmusfuzz.oracles.reason import explain
from litmusfuzz.reports.events import ExecutorTotals, FindingKind, Kill
from litmusfuzz.reports.open_tests import Pending, UnconfirmedTest
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
    Share,
    ValueTotals,
    WorkerHealth,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

STARTED = 1_795_000_000
EXPLAINED = ("MP", "IRIW", "2+2W", "Z6.0", "sb-two-graphs", "SB", "section-increments")
TORN_ONES = ("scatter-disjoint-rows", "scatter-update-torn-rows")
"""Tests with rows, of which a reader may see some old and some new."""


def forbidden_outcome(entry: Entry) -> Outcome | None:
    """One that its exact set lacks; None if all combinations of values are in it."""
    allowed = entry.allowed.get("rfc")
    if not isinstance(allowed, frozenset):
        return None
    names = entry.test.names
    full = [dict(o.values) for o in allowed if o.status is Status.COMPLETED]
    if not full:
        return None
    columns = [sorted({values[name] for values in full}, key=str) for name in names]
    for number, values in enumerate(product(*columns)):
        outcome = Outcome(tuple(zip(names, values, strict=True)))
        if outcome not in allowed:
            return outcome
        if number > 2_000:
            break
    return None


@cache
def entries() -> tuple[tuple[Entry, Outcome], ...]:
    """Tests of the corpus, each with an outcome that is forbidden."""
    found = []
    for path in LITMUS:
        entry = corpus_entry(path)
        outcome = forbidden_outcome(entry)
        if outcome is not None:
            found.append((entry, outcome))
    return tuple(found)


def finding(entry: Entry, outcome: Outcome, number: int = 0, *, explained: bool) -> ReportedFinding:
    """A finding on a test of the corpus."""
    allowed = entry.allowed["rfc"]
    assert isinstance(allowed, frozenset)
    ordered = sorted(allowed, key=str)
    shown = {each: (40_000 // (i + 1) ** 2 + i, "allowed") for i, each in enumerate(ordered[:-1])}
    shown[outcome] = (3 + 7 * number, "forbidden")
    total = sum(count for count, _ in shown.values())
    reason = explain(entry.test, RFC, outcome) if explained else None
    found = Finding(
        *("tf", "plain", "rfc", ((outcome, shown[outcome][0]),), total),
        *({"delay_us_max": 20}, {}, {"tensorflow": "2.21.0"}, 7, number, "dag"),
        minimized=True,
        confirmed=True,
    )
    name = entry.test.name
    return ReportedFinding(
        key=f"{number:04x}-tf-{name}",
        kind=FindingKind.FORBIDDEN,
        entry=replace(entry, finding=found),
        file=f"findings/{name}.yaml",
        executor="tf",
        config_class="plain",
        model="rfc",
        cause="ReadVariableOp beside AssignVariableOp",
        reason=reason.steps if reason else (),
        is_cycle=bool(reason and reason.cycle),
        edges=tuple((e.source, e.target) for e in reason.edges) if reason else (),
        rules=reason.broken if reason else (),
        count=12 + number,
        in_this_run=1 + number % 5,
        first_seen=STARTED - 86_400 * number,
        last_seen=STARTED + 600,
        configs={"plain": 9, "one_thread": 3},
        histogram=shown,
        allowed=tuple(ordered),
        nearest=nearest(outcome, ordered),
        replay=f"litmusfuzz replay findings/{name}.yaml",
        script=f"findings/{name}.py",
        script_shows_it=number % 2 == 0,
        known="https://github.com/tensorflow/tensorflow/issues/1" if number % 4 == 3 else "",
        arcs=reason.arcs if reason else (),
    )


def findings(most: int) -> Iterator[ReportedFinding]:
    """As many, those with reasons first."""
    named = {entry.test.name: (entry, outcome) for entry, outcome in entries()}
    first = [named.pop(name) for name in EXPLAINED if name in named]
    for number, (entry, outcome) in enumerate([*first, *named.values()][:most]):
        yield finding(entry, outcome, number, explained=number < len(first))


def torn_finding() -> ReportedFinding:
    """A read that returned lanes of two writes."""
    entry = next(corpus_entry(path) for path in LITMUS if path.stem == "gather-mp")
    allowed = entry.allowed["rfc"]
    assert isinstance(allowed, frozenset)
    base = dict(min(allowed, key=str).values)
    name = entry.test.observe[0]
    outcome = Outcome.of(entry.test, {**base, name: TORN})
    return replace(
        finding(entry, outcome, 900, explained=True),
        cause="torn: ResourceGather",
        count=87,
        in_this_run=87,
        known="",
    )


ENDED = "the worker ended by SIGSEGV after 3 of 64 executions"


def ended_finding(kind: FindingKind, name: str = "devices-neuron-two-workers") -> ReportedFinding:
    """A worker that ended on a test."""
    entry = next(corpus_entry(path) for path in LITMUS if path.stem == name)
    made = finding(*entries()[0], 500, explained=False)
    return replace(
        made,
        key=f"{kind}-{name}",
        kind=kind,
        entry=entry,
        file=f"findings/{name}.yaml",
        cause=death_cause(ENDED, "AssignAddVariableOp"),
        reason=(ENDED,),
        histogram={},
        allowed=(),
        nearest=None,
        script="",
        known="",
        replay=f"litmusfuzz replay findings/{name}.yaml",
    )


def unsound_finding() -> ReportedFinding:
    """Clusters that add an outcome."""
    made = finding(*entries()[0], 700, explained=False)
    test = made.entry.test
    clusters = (Cluster("k0", tuple(node.name for node in test.effects)),)
    return replace(
        made,
        key="unsound-700",
        kind=FindingKind.UNSOUND,
        entry=Entry(replace(test, name="unsound-700", clusters=clusters)),
        file="findings/unsound-700.yaml",
        executor="jax",
        config_class="jax/plain",
        cause="unsound clusters",
        reason=("the clusters add r0=1 r1=0 X=1 Y=1",),
        configs={"plain": 2},
        count=2,
        in_this_run=2,
        histogram={},
        allowed=(),
        nearest=None,
        script="",
        known="",
        replay="litmusfuzz validate findings/unsound-700.yaml",
    )


def pending(number: int) -> tuple[Pending, ...]:
    """Graphs that were not minimized."""
    return tuple(
        Pending(
            *(n, "tf", "plain", f"unreduced/unreduced-7-{n}.yaml", 1),
            seen=2 + n,
            executions=3_072,
            model="rfc",
        )
        for n in range(number)
    )


def unconfirmed(number: int) -> tuple[UnconfirmedTest, ...]:
    """Graphs that fresh processes did not show again."""
    return tuple(
        UnconfirmedTest(
            *(n, "tf", "plain", f"unconfirmed/unconfirmed-7-{n}.yaml"),
            *(1 + n, 3_072, 1 + n, 4_096 * (1 + n), "rfc"),
        )
        for n in range(number)
    )


GPU = Share(
    name="native/gpu",
    executor="native",
    model="rfc",
    guarantees="rfc",
    graphs=0,
    outcomes=0,
    seconds=0.0,
    findings=0,
    forbidden_graphs=0,
    reached=None,
)
"""A configuration that cannot run."""


def nightly_run(most: int = 8) -> Report:
    """A nightly run of two hours on two workers."""
    found = (*findings(most), torn_finding(), ended_finding(FindingKind.CRASHED))
    moments = tuple(
        Moment(
            at=STARTED + 60 * n,
            graphs=95 * n + 40 * (n % 7),
            outcomes=210_000 * n + 9_000 * (n % 11),
            findings=min(len(found), n // 6),
            disk_bytes=1_000_000 + 70_000 * n,
            spent_s=60 * n,
        )
        for n in range(121)
    )
    configs = ("tf/plain", "tf/one_thread", "tf/autocluster", "jax/plain", "native/stealing")
    families = ("dag", "clusterable", "sections", "queues", "loops", "cycles", "sparse", "training")
    return Report(
        folder="nightly",
        command="litmusfuzz nightly --time 2h --workers 2 --out nightly",
        seed=20261122,
        started=STARTED,
        ended=STARTED + 10_802,
        spent_s=7_202.4,
        asked_s=7200,
        unattended=True,
        findings=found,
        known=(
            *(Known(f.key, f.known, seen=True) for f in found if f.known),
            Known("00ff-tf-dense-around-two-scatters", "fixed in TensorFlow 2.22?", seen=False),
        ),
        settings=(
            SettingCoverage(
                executor="tf",
                possible=12,
                not_reached=(("rewrites=", "pool=caller"), ("loop_optimizer=true", "pool=caller")),
                rarest=("loop_optimizer=true", "pool=second"),
                rarest_graphs=12,
                values=(
                    ValueTotals("rewrites", "", 1_802, 1_191.75),
                    ValueTotals("rewrites", "all", 112, 80.0),
                    ValueTotals("loop_optimizer", "false", 1_812, 1_190.5),
                    ValueTotals("loop_optimizer", "true", 102, 81.25),
                    ValueTotals("pool", "own", 1_700, 1_100.0),
                    ValueTotals("pool", "second", 130, 101.5),
                    ValueTotals("pool", "caller", 84, 70.25),
                ),
                ops=Reached(40, 43),
                op_pairs=Reached(801, 946),
                op_values=Reached(277, 301),
            ),
        ),
        by_config=(
            *(
                Share(
                    name=name,
                    executor=name.split("/")[0],
                    model="rfc",
                    guarantees="executor" if n == 2 else "rfc",
                    graphs=2_400 - 310 * n,
                    outcomes=2_900_000 - 500_000 * n,
                    seconds=1_300.0 + n,
                    findings=max(0, 4 - n),
                    forbidden_graphs=max(0, 210 - 77 * n),
                    reached=None if n == 2 else 1 - n / 9,
                    reached_graphs=0 if n == 2 else 400,
                    refused=31 * n,
                    crashed=2 if n == 0 else 0,
                    unknown={"over the oracle's budget": 7 * n} if n else {},
                    refused_for={"clusters": 20 * n, "critical sections": 11 * n} if n else {},
                    minimizing_outcomes=90_000 if n == 0 else 0,
                    clusterings={"sound": 300, "unknown": 4} if n == 2 else {},
                    racing=45 if n == 2 else 0,
                    counters={"compiled": 40, "found": 120, "seconds": 5.0} if n == 3 else {},
                )
                for n, name in enumerate(configs)
            ),
            GPU,
        ),
        by_family=tuple(
            Share(
                *(f"{executor}/{family}", 300 + 10 * n, 400_000, 160.0, 0, 0),
                reached=None if executor == "jax" and n == 3 else 1 - (n + e) / 12,
            )
            for e, executor in enumerate(("tf", "jax", "native", "mutant/stale-reads"))
            for n, family in enumerate(families)
        ),
        moments=moments,
        workers=(
            WorkerHealth("worker-1", "localhost", 58, 1, 6_900.0, 3, 0),
            WorkerHealth("worker-2", "localhost", 59, 0, 7_010.5, 2, 1),
        ),
        kills=tuple(
            Kill(f"native/{name}", "native", 0.4 + 3.1 * n, 12 * n + 1, "dag", "pct")
            for n, name in enumerate(("torn-write", "lost-update", "early-release", "stale-cache"))
        ),
        canary=(412, 412),
        unconfirmed=unconfirmed(3),
        pending=pending(1),
        may_be_known={"unreduced/unreduced-7-0.yaml": ("tears",)},
        versions={"tf": {"tensorflow": "2.21.0", "python": "3.11.2"}, "jax": {"jax": "0.10.2"}},
        earlier=tuple(
            Earlier(STARTED - 86_400 * n, 11_000 - 90 * n, 24_000_000, 9 + n % 3, n % 2, 1.0)
            for n in range(14, 0, -1)
        ),
        pruned=Pruned(("2026-10-01",), 1_310_720, {"mine": "is a link"}),
        unavailable={"native/gpu": "no CUDA device on this machine"},
        generated=8_700,
        families={
            family: FamilyTotals(1_100 - 9 * n, 900.25 - n, 40 - n, 2 if n < 3 else 0, 8 * n)
            for n, family in enumerate(families)
        },
        ops={"AssignVariableOp": 40_100, "ReadVariableOp": 52_300, "ResourceScatterAdd": 770},
        verdicts={"allowed": 9_491_500, "forbidden": 8_400, "unknown": 100},
        forbidden_graphs=397,
        unknown_graphs=70,
        compared=610,
        differential={
            "tf/plain": ExecutorTotals("rfc", 120_400, 2_410, 31, 12, 4, 610),
            "jax/plain": ExecutorTotals("rfc", 98_000, 2_390, 11, 33, 0, 590),
        },
        generating_s=61.3,
        judging_s=810.2,
        validating_s=12.8,
    )


def short_run(most: int = 2) -> Report:
    """A run of a minute on one configuration, interrupted while it minimized."""
    found = tuple(findings(most))
    return Report(
        folder="findings/run 7",
        command="litmusfuzz run --time 60s --seed 7",
        seed=7,
        started=STARTED,
        ended=STARTED + 61,
        spent_s=61.3,
        asked_s=60,
        findings=tuple(replace(each, configs={"plain": 3}, known="") for each in found),
        known=(),
        by_config=(
            Share(
                name="tf/plain",
                executor="tf",
                model="rfc",
                guarantees="rfc",
                graphs=118,
                outcomes=40_700,
                seconds=58.9,
                findings=len(found),
                forbidden_graphs=9 if found else 0,
                reached=0.83,
                reached_graphs=77,
                minimizing_outcomes=3_100 if found else 0,
            ),
        ),
        by_family=(Share("tf/dag", 118, 40_700, 58.9, len(found), 9, reached=0.83),),
        moments=(Moment(STARTED + 61, 118, 40_700, len(found), 31_000, 61),),
        workers=(WorkerHealth("process 11", "localhost", 1, 0, 60.0, 0, 0),),
        kills=(),
        canary=(6, 6),
        unconfirmed=(),
        pending=(),
        versions={"tf": {"tensorflow": "2.21.0"}},
        generated=118,
        families={"dag": FamilyTotals(118, 58.9, 9 if found else 0, len(found), 0)},
        ops={"AssignVariableOp": 402, "ReadVariableOp": 511},
        verdicts={"allowed": 40_100, "forbidden": 600} if found else {"allowed": 40_700},
        forbidden_graphs=9 if found else 0,
        generating_s=1.2,
        judging_s=3.4,
    )
