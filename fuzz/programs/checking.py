"""From a program to its report: all scenarios, their anomalies, repairs and evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from litmusfuzz.fuzz.programs.anomalies import (
    Analyzed,
    AnomalyKind,
    Site,
    analyzed,
    scenarios,
)
from litmusfuzz.fuzz.programs.effects import Access
from litmusfuzz.fuzz.programs.order import bits, exclusive, shortest_path
from litmusfuzz.fuzz.programs.skeleton import decided, outcomes
from litmusfuzz.reports.checked import (
    CheckReport,
    Neighbour,
    Neighbourhood,
    ReportedAccess,
    ReportedAnomaly,
    ReportedBenign,
    ReportedPath,
    ReportedRun,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from litmusfuzz.fuzz.programs.anomalies import Anomaly, Scenario
    from litmusfuzz.fuzz.programs.order import Order
    from litmusfuzz.fuzz.programs.program import Program
    from litmusfuzz.fuzz.programs.skeleton import Followed, Skeleton

MAX_PATHS: Final = 300
"""Paths of evidence in a report, at most."""
MAX_BESIDE: Final = 12
"""Accesses of a run that are drawn beside those of an anomaly's example, at most."""


@dataclass(frozen=True, slots=True)
class CheckedAnomaly:
    """An anomaly of a report, with all that it was found in; no skeleton if there is none."""

    scenario: Scenario
    anomaly: Anomaly
    skeleton: Skeleton | None


def check(
    program: Program,
    concurrent: Sequence[tuple[str, str]],
    *,
    unknown: bool | None = None,
) -> tuple[CheckReport, list[CheckedAnomaly]]:
    """The report of a program, and its anomalies in the order of the report.

    Parameters
    ----------
    program : Program
    concurrent : sequence of (str, str)
        Names of runs that may be concurrent.
    unknown : bool or None
        Whether an op of which nothing is known touches everything; None for: undecided.

    Raises
    ------
    ProgramError
        If a run cannot be expanded.
    """
    runs = analyzed(program)
    anomalies: list[ReportedAnomaly] = []
    sources: list[CheckedAnomaly] = []
    benign: list[ReportedBenign] = []
    clustered: list[ReportedBenign] = []
    evidence: list[ReportedPath] = []
    for scenario in scenarios(runs, concurrent, unknown=unknown):
        for each in scenario.anomalies:
            found = decided(scenario, each)
            anomalies.append(_reported(scenario, each, found))
            sources.append(CheckedAnomaly(scenario, each, found[0] if found else None))
        for pairs, listed in ((scenario.benign, benign), (scenario.clustered, clustered)):
            listed += (ReportedBenign(e.runs, e.variable, e.why, e.pairs) for e in pairs)
        if len(scenario.sides) == 1 and not scenario.anomalies:
            for path in _evidence(scenario.sides[0]):
                if len(evidence) == MAX_PATHS:
                    break
                evidence.append(path)
    ops = {op: None for each in runs.values() for op in each.run.unknown}
    reported = [_run(name, each) for name, each in runs.items()]
    report = CheckReport(
        program.name,
        tuple(reported),
        tuple(concurrent),
        tuple(anomalies),
        tuple(benign),
        tuple(evidence),
        tuple(ops) if unknown is None else (),
        program.notes,
        tuple(clustered),
    )
    return report, sources


def _run(name: str, each: Analyzed) -> ReportedRun:
    resources = {access.resource.name for access in each.run.accesses}
    return ReportedRun(name, len(each.run.labels), len(each.run.accesses), len(resources))


def _reported(
    scenario: Scenario, anomaly: Anomaly, found: tuple[Skeleton, Sequence[Followed]] | None
) -> ReportedAnomaly:
    accesses = tuple(_access(scenario, site) for site in anomaly.sites)
    return ReportedAnomaly(
        anomaly.kind.value,
        anomaly.runs,
        anomaly.variables,
        accesses,
        anomaly.orders,
        anomaly.pairs,
        anomaly.conditions,
        tuple(_repairs(scenario, anomaly, accesses)),
        anomaly.note,
        outcomes(found[1]) if found else (),
        neighbourhood=_neighbourhood(scenario, anomaly),
    )


def _neighbourhood(scenario: Scenario, anomaly: Anomaly) -> Neighbourhood:
    """The example's accesses, others to their resources, and those right before and after."""
    numbers = {site: place for place, site in enumerate(anomaly.sites, 1)}
    names = {scenario.access(site).resource.name for site in anomaly.sites}
    found: list[Neighbour] = []
    edges: list[tuple[int, int, str]] = []
    left_out = 0
    for side, each in enumerate(scenario.sides):
        mine = sum(1 << site.number for site in anomaly.sites if site.side == side)
        near = sum(
            1 << number
            for number, access in enumerate(each.run.accesses)
            if access.resource.name in names
        )
        for number in bits(mine):
            near |= _nearest(each.order, number)
        others = list(bits(near & ~mine))
        left_out += max(0, len(others) - MAX_BESIDE)
        chosen = mine | sum(1 << number for number in others[:MAX_BESIDE])
        places: dict[int, int] = {}
        for number in bits(chosen):
            places[number] = len(found)
            for other in bits(_last(each.order, each.order.before[number] & chosen)):
                flows = each.order.values[number] >> other & 1
                edges.append((places[other], len(found), "data" if flows else "control"))
            site = Site(side, number)
            found.append(Neighbour(side, _access(scenario, site), numbers.get(site, 0)))
    return Neighbourhood(tuple(found), tuple(edges), left_out)


def _last(order: Order, mask: int) -> int:
    """Those of some accesses that come before no other of them."""
    last = mask
    for number in reversed(list(bits(mask))):
        if last >> number & 1:
            last &= ~order.before[number]
    return last


def _nearest(order: Order, number: int) -> int:
    """The accesses right before one, and right after it."""
    after = first = 0
    for other in range(number + 1, len(order.before)):
        if order.ordered(number, other):
            if not order.before[other] & after:
                first |= 1 << other
            after |= 1 << other
    return first | _last(order, order.before[number])


def _access(scenario: Scenario, site: Site) -> ReportedAccess:
    access = scenario.access(site)
    words = {Access.READ: "reads", Access.WRITE: "writes", Access.UPDATE: "updates"}
    what = words.get(access.effect.access or Access.LOCK, "may touch")
    return ReportedAccess(
        scenario.sides[site.side].run.name,
        what,
        access.op,
        access.name,
        access.resource.name,
        access.location.file if access.location else "",
        access.location.line if access.location else 0,
    )


def _repairs(
    scenario: Scenario, anomaly: Anomaly, accesses: Sequence[ReportedAccess]
) -> Iterator[str]:
    """Edges, or other means, that would exclude it."""
    if anomaly.kind is AnomalyKind.UNDECIDED:
        yield "say with --unknown-ops whether such an op touches everything or nothing"
        return
    first, *_, last = anomaly.orders[0]
    if len(scenario.sides) > 1:
        outside = _after_sections(scenario, anomaly)
        if outside is not None:
            which = " and ".join(map(str, outside))
            yield f"the CriticalSection may end before {which}: let its result depend on that"
        elif anomaly.kind is AnomalyKind.TORN_SNAPSHOT:
            yield "take the values while the other run does not run, or both in one CriticalSection"
        else:
            yield "do not start these runs together, or put the accesses into one CriticalSection"
        return
    names = [
        f"{each.operation} ({each.where})" if each.file else each.operation for each in accesses
    ]
    if anomaly.note.startswith("documentation"):
        yield f"use one handle, or: {_edge(names[first], names[last])}"
    elif len(anomaly.sites) == 3 and anomaly.kind is AnomalyKind.LOST_UPDATE:
        _, other, back = anomaly.sites
        order = scenario.sides[0].order
        if not order.ordered(other.number, back.number):
            yield _edge(names[2], names[1])
        else:
            yield _edge(names[1], names[0])
    elif anomaly.kind is AnomalyKind.TORN_SNAPSHOT:
        reads = " and ".join(names[:2])
        yield f"both reads before the writes, or both after them: {_edge(names[2], reads)}"
    else:
        early, late = sorted(anomaly.sites)[0], sorted(anomaly.sites)[-1]
        places = {site: place for place, site in enumerate(anomaly.sites)}
        yield _edge(names[places[early]], names[places[late]])


def _after_sections(scenario: Scenario, anomaly: Anomaly) -> list[int] | None:
    """The accesses that a section does not wait for, of a mutex that is locked before them all."""
    locked: list[set[str]] = []
    late: dict[str, list[int]] = {}
    for place, site in enumerate(anomaly.sites, 1):
        side = scenario.sides[site.side]
        before = {
            side.mutex(lock)
            for lock in side.order.lock_ends
            if side.order.ordered(lock, site.number)
        }
        locked.append(before)
        for name in before - {side.mutex(lock) for lock in side.locks[site.number]}:
            late.setdefault(name, []).append(place)
    common = sorted(set.intersection(*locked) & late.keys())
    return late[common[0]] if common else None


def _edge(first: str, second: str) -> str:
    return f"with tf.control_dependencies([{first}]) around {second}"


def _evidence(side: Analyzed) -> Iterator[ReportedPath]:
    """Paths of edges between conflicting accesses that have none of their kind in between."""
    run, order = side.run, side.order
    by_resource: dict[str, int] = {}
    for number, access in enumerate(run.accesses):
        name = access.resource.name
        by_resource[name] = by_resource.get(name, 0) | 1 << number
    for name, mask in by_resource.items():
        writes = sum(1 << n for n in bits(mask) if run.accesses[n].writes)
        for number in bits(mask):
            access = run.accesses[number]
            near = order.before[number] & (mask if access.writes else writes)
            for other in reversed(list(bits(near))):
                near &= ~order.before[other]
            for other in bits(near):
                one = run.accesses[other]
                if one.node == access.node or exclusive(one.guards, access.guards):
                    continue
                steps = shortest_path(run, one.node, access.node)
                edges = [
                    f"{'-> ' if kind == 'data' else '=> ' if kind else ''}{run.labels[node]}"
                    for node, kind in steps
                ]
                yield ReportedPath(run.name, name, one.name, access.name, tuple(edges))


def concurrent_runs(
    program: Program, given: Sequence[str], names: Mapping[str, object]
) -> list[tuple[str, str]]:
    """Pairs of runs from what the user named; those of the program if that is nothing."""
    from litmusfuzz.fuzz.programs.program import ProgramError

    if not given:
        return list(program.concurrent)
    found = []
    for text in given:
        if text == "none":
            continue
        parts = [part.strip() for part in text.split(",")]
        for part in parts:
            if part not in names:
                known = ", ".join(names)
                raise ProgramError(f"--concurrent: no run {part!r:.80}; there are {known}")
        if len(parts) == 1:
            parts *= 2
        found += [(a, b) for i, a in enumerate(parts) for b in parts[i + 1 :]]
    return list(dict.fromkeys(found))
