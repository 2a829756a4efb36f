"""Summary at the end of a campaign, as text: findings, executors, and undecided results."""

from __future__ import annotations

import shlex
import textwrap
from typing import TYPE_CHECKING

from litmusfuzz.reports.differential import totals_table
from litmusfuzz.reports.records import reached_json
from litmusfuzz.reports.tables import counted, table
from litmusfuzz.reports.text import by_cause, finding, headline

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator, Mapping

    from litmusfuzz.reports.records import ExecutorState, ReportedFinding, RunRecord, Unsound


def _group(group: list[ReportedFinding]) -> str:
    """One finding in full, and the names of others that likely have the same cause."""
    first, *others = group
    lines = [finding(first)]
    if others:
        lines.append(f"  likely the same cause in {counted(len(others), 'more finding')}:")
        lines += [f"    {headline(each)}" for each in others]
    return "\n".join(lines)


def _wrapped(text: str, indent: int) -> str:
    """A long line as several."""
    margin = " " * indent
    further = margin + "  "
    return textwrap.fill(
        text, 96, initial_indent=margin, subsequent_indent=further, break_on_hyphens=False
    )


def _executor(state: ExecutorState, record: RunRecord) -> Iterator[str]:
    """Graphs that one executor ran, and those that it did not run, with the reasons."""
    if state.canary:
        # It is always wrong: if it is reported, so are other wrong executors.
        yield (
            f"  {state.name}, which is always wrong: reported in {record.canary_reported}"
            f" of {counted(record.canary_runs, 'run')}"
        )
        return

    def share(count: int) -> str:
        return f"{count} ({count / max(1, record.graphs):.1%})"

    judged = state.outcomes - state.minimizing_outcomes
    yield (
        f"  {state.title}: {counted(state.tests, 'test')},"
        f" {counted(judged, 'outcome')}, and {state.minimizing_outcomes} more while minimizing"
    )
    if state.refused_graphs:
        why = ", ".join(f"{feature} {share(n)}" for feature, n in state.refused.most_common())
        yield _wrapped(f"refused {share(state.refused_graphs)}: {why}", 4)
    if state.not_run:
        yield f"    not run {share(state.not_run)}: it was busy, or the time was up"
    if state.clusterings:
        yield (
            f"    clustered {_clusterings(state.clusterings)};"
            f" in {state.racing} a cluster of several resource ops races"
        )
    if state.reached:
        yield f"    {_reached(state.reached)}"
    yield from _counters(state)
    if state.model != state.guarantees:
        yield f"    judged by {state.model}; it guarantees {state.guarantees}, see --model"


def _reached(reached: Mapping[str, list[float]]) -> str:
    """The share of allowed outcomes that were seen."""
    shares = reached_json(reached)
    return (
        f"reached {shares['median']:.0%} of the allowed outcomes of the median graph, of"
        f" {shares['graphs']} with several"
    )


def _configurations(record: RunRecord) -> Iterator[str]:
    """Results by configuration, of executors that go through several."""
    states = [each for each in record.executors if each.spread]
    if not states:
        return
    yield "  each graph in one configuration:"
    shown = [each for each in states if not each.unavailable]
    yield textwrap.indent(
        configuration_table([configuration_row(e, record) for e in shown]), "    "
    )
    for each in states:
        if each.unavailable:
            yield _wrapped(f"{each.title} cannot run here: {each.unavailable}", 4)
        elif each.refused:
            why = ", ".join(f"{feature} {n}" for feature, n in each.refused.most_common())
            yield _wrapped(f"{each.title} refused {each.refused_graphs}: {why}", 4)
    reached = [(family, s) for e in states for family, s in e.reached.items()]
    if reached:
        by_family: dict[str, list[float]] = {}
        for family, shares in reached:
            by_family.setdefault(family, []).extend(shares)
        yield f"    {_reached(by_family)}"


def _listed(counts: Counter[str]) -> str:
    return "; ".join(f"{what} {n}" for what, n in counts.most_common())


def configuration_row(state: ExecutorState, record: RunRecord) -> dict[str, str]:
    """One line of a table of configurations."""
    shown = [
        each.configs[state.configuration] for each in record.findings if _of(each) == state.name
    ]
    median = reached_json(state.reached)["median"]
    return {
        "": state.title,
        "by": state.model,
        "graphs": str(state.tests),
        "seconds": f"{state.fuzzing_s:.1f}",
        "outcomes": f"{state.outcomes - state.minimizing_outcomes:,}",
        "reached": "-" if median is None else f"{median:.0%}",
        "forbidden": str(state.forbidden_graphs),
        "findings": str(sum(n > 0 for n in shown)),
        "refused": str(state.refused_graphs),
        "not run": str(state.not_run),
        "crashed": str(state.crashed),
        "timed out": str(state.timed_out),
    }


def _of(reported: ReportedFinding) -> str:
    assert reported.entry.finding is not None
    return reported.entry.finding.executor


def configuration_table(rows: list[dict[str, str]]) -> str:
    """A table with a line for each configuration."""
    return table(list(rows[0]), [list(row.values()) for row in rows]) if rows else ""


def _clusterings(verdicts: Counter[str]) -> str:
    """Verdicts of translation validation."""
    counts = ", ".join(f"{n} {verdict}" for verdict, n in sorted(verdicts.items()))
    return f"{counted(verdicts.total(), 'graph')}: {counts}"


def unsound_headline(found: Unsound) -> str:
    """Two lines: name and ops of a graph, and the executor that chose the clusters."""
    ops = " + ".join(n.op for n in found.test.effects)
    return f"{found.test.name}: {ops}\n  clusters  chosen by {found.executor}"


def _unsound(found: Unsound) -> str:
    """Unsound clusters of an executor."""
    lines = [unsound_headline(found)]
    lines += [f"    {each.name}: {', '.join(each.members)}" for each in found.test.clusters]
    lines.append(f"  add       {found.added}   which the graph without them forbids")
    if found.more:
        lines.append(f"  also      {counted(found.more, 'more graph')} with just this inside")
    lines.append(f"  validate  litmusfuzz validate {shlex.quote(found.path)}")
    return "\n".join(lines)


def _counters(state: ExecutorState) -> Iterator[str]:
    """Counters of an executor (`fuzz.executors.protocol.Counts`)."""
    rest = dict(state.counters)
    busy = max(state.busy_s, 1e-9)
    if "compiled" in rest:
        new, found, seconds = (rest.pop(name, 0) for name in ("compiled", "found", "seconds"))
        yield (
            f"    compiled {new:.0f} structures in {seconds:.1f} s, {seconds / busy:.1%} of its"
            f" time; {found:.0f} were cached ({found / max(1, new + found):.1%})"
        )
    if rest:
        listed = ", ".join(f"{name.replace('_', ' ')} {n:.10g}" for name, n in rest.items())
        yield _wrapped(listed, 4)


def _families(record: RunRecord) -> Iterator[str]:
    """Costs and results of each family, the most expensive first."""
    ordered = sorted(record.families.items(), key=lambda each: (-each[1].seconds, each[0]))
    width = max(len(name) for name in ("family", *record.families))
    yield f"  {'family':{width}}  graphs  seconds  forbidden  findings  unknown"
    for name, each in ordered:
        yield (
            f"  {name:{width}}  {each.graphs:6}  {each.seconds:7.1f}  {each.forbidden_graphs:9}"
            f"  {each.findings:8}  {each.unknown_graphs:7}"
        )


def _differential(record: RunRecord) -> Iterator[str]:
    """Comparison of several executors on the same graphs."""
    if not record.compared:
        return
    yield f"  differential comparison on {counted(record.compared, 'graph')}:"
    yield textwrap.indent(totals_table(record.differential), "    ")
    kept = "each" if record.kept == record.compared else f"the first {record.kept}"
    yield f"    {kept} with all histograms: {record.kept_in}"


def summary(record: RunRecord) -> str:
    """The whole summary."""
    parts = [_group(group) for group in by_cause(record.findings)]
    parts += [_unsound(each) for each in record.unsound]
    lines = [f"seed {record.seed}: {counted(record.graphs, 'graph')} in {record.elapsed_s:.1f} s"]
    if record.interrupted:
        lines[0] += " (interrupted)"
    for each in record.executors:
        if not each.spread:
            lines += _executor(each, record)
    lines += _configurations(record)
    if set(record.families) - {"dag"}:
        lines += _families(record)
    verdicts = ", ".join(f"{n} {v}" for v, n in sorted(record.verdicts.items())) or "none"
    lines.append(f"  outcomes judged: {verdicts}")
    ops = ", ".join(f"{op} {n}" for op, n in record.ops.most_common()) or "none"
    lines.append(_wrapped(f"generated: {ops}", 2))
    if record.unknown_graphs:
        lines.append(f"  over the oracle's budget: {counted(record.unknown_graphs, 'graph')}")
    if record.clusterings:
        lines.append(
            f"  clusters that tests came with, {_clusterings(record.clusterings)};"
            f" in {record.racing} one of several resource ops races"
        )
    lines += _differential(record)
    lines.append(
        f"  {counted(record.forbidden_graphs, 'graph')} showed a forbidden outcome: "
        f"{counted(len(record.findings), 'finding')} of "
        f"{counted(len(by_cause(record.findings)), 'likely cause')}, in {record.out}"
    )
    unsound = sum(each.clusterings["unsound"] for each in record.executors)
    if unsound:
        lines.append(
            f"  {counted(unsound, 'graph')} clustered unsoundly:"
            f" {counted(len(record.unsound), 'finding')}, in {record.out}"
        )
    if record.unreduced:
        lines.append(
            f"  {len(record.unreduced)} not minimized, in {record.out}/unreduced; to continue:"
        )
        lines.append(f"    litmusfuzz minimize {shlex.quote(record.path)}")
    if record.unconfirmed:
        lines.append(
            f"  {record.unconfirmed} not confirmed in a fresh process, in {record.out}/unconfirmed"
        )
    for what, deaths in (
        ("crashed", [d for d in record.deaths if not d.timed_out]),
        ("timed out", [d for d in record.deaths if d.timed_out]),
    ):
        if deaths:
            lines.append(
                f"  the process {what} {counted(len(deaths), 'time')}, on generated tests or "
                "while minimizing:"
            )
            lines += [f"    {death.path}: {death.message}" for death in deaths[:4]]
            if len(deaths) > 4:
                lines.append(f"    and {len(deaths) - 4} more")
            lines.append(f"    replay    litmusfuzz replay {shlex.quote(deaths[0].path)}")
    return "\n\n".join([*parts, "\n".join(lines)])
