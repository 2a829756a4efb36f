"""Plain text for people: tables of outcomes, findings, the end of a run.

Every function returns a string that ends without a newline.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpus.outcome import Outcome, nearest, plain_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from corpus.textfile import Entry
    from reports.records import ReportedFinding, RunRecord


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Columns as wide as their widest cell, two blanks between."""
    lines = [list(header), *(list(row) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def cells(outcome: Outcome) -> list[str]:
    """One outcome's values, as `table` cells."""
    return [str(plain_value(value)).replace(" ", "") for _, value in outcome.values]


def outcome_table(names: Sequence[str], rows: Iterable[tuple[Outcome, Sequence[str]]]) -> str:
    """Outcomes one a line, each with further cells behind it."""
    listed = list(rows)
    more = max((len(extra) for _, extra in listed), default=0)
    header = [*names, *[""] * more]
    return table(header, ([*cells(outcome), *extra] for outcome, extra in listed))


def observed_table(
    names: Sequence[str],
    histogram: Mapping[Outcome, int],
    verdicts: Mapping[Outcome, str],
    unseen: Iterable[Outcome],
) -> str:
    """What was observed, with counts and verdicts, then what is allowed and was not.

    Forbidden outcomes come first, then by count.
    """
    order = sorted(histogram, key=lambda o: (verdicts[o] != "forbidden", -histogram[o], str(o)))
    rows = [
        (o, (str(histogram[o]), verdicts[o].upper() if verdicts[o] != "allowed" else "allowed"))
        for o in order
    ]
    rows += [(o, ("0", "allowed")) for o in sorted(unseen, key=str)]
    header = [*names, "count", "verdict"]
    return table(header, ([*cells(outcome), *extra] for outcome, extra in rows))


def broken_rule(outcome: Outcome) -> str:
    """The rule of the RFC that a forbidden outcome breaks, as far as it tells."""
    if outcome.torn:
        return 'torn: "The writes and reads themselves are atomic" (RFC)'
    return "no total order of the events yields it (RFC, rules 1 to 4)"


def finding(reported: ReportedFinding) -> str:
    """A finding: shape, outcome seen, nearest allowed one, rule, replay command."""
    entry = reported.entry
    found = entry.finding
    assert found is not None
    seen, _ = found.forbidden[0]
    lines = [
        headline(reported),
        f"  seen      {seen}   in {found.count} of {found.executions} executions"
        f" on {found.executor}/{found.config}",
    ]
    near = nearest(seen, _listed(entry, found.model))
    if near is not None:
        lines.append(f"  nearest   {near}   is allowed under {found.model}")
    lines.append(f"  broken    {broken_rule(seen)}")
    if not found.minimized:
        lines.append("  minimized in part: the time was up")
    if not found.confirmed:
        lines.append("  not yet seen again in a fresh process: replay it")
    if reported.more:
        lines.append(f"  also      {reported.more} more graphs that contain this shape")
    lines.append(f"  replay    litmusfuzz replay {reported.path}")
    return "\n".join(lines)


def headline(reported: ReportedFinding) -> str:
    """One line: name and ops."""
    ops = " + ".join(n.op for n in reported.entry.test.graph.effects)
    return f"{reported.entry.test.name}: {ops}"


def by_cause(findings: Iterable[ReportedFinding]) -> list[list[ReportedFinding]]:
    """Findings that likely have one cause together, the most frequent first.

    Causes in the order of their first finding.
    """
    groups: dict[str, list[ReportedFinding]] = {}
    for each in findings:
        groups.setdefault(each.cause, []).append(each)
    return [sorted(group, key=_rate, reverse=True) for group in groups.values()]


def _rate(reported: ReportedFinding) -> tuple[bool, float]:
    found = reported.entry.finding
    assert found is not None
    return found.minimized, found.count / max(1, found.executions)


def _group(group: list[ReportedFinding]) -> str:
    """One finding in full; of the others that likely have its cause, the files."""
    first, *others = group
    lines = [finding(first)]
    if others:
        lines.append(f"  likely the same cause in {len(others)} more findings:")
        lines += [f"    {headline(each)}" for each in others]
    return "\n".join(lines)


def _listed(entry: Entry, model: str) -> Iterable[Outcome]:
    outcomes = entry.allowed.get(model)
    return outcomes if isinstance(outcomes, frozenset) else ()


def summary(record: RunRecord) -> str:
    """The end of a run."""
    parts = [_group(group) for group in by_cause(record.findings)]
    head = f"seed {record.seed}: {record.graphs} graphs in {record.elapsed_s:.1f} s"
    if record.interrupted:
        head += " (interrupted)"
    lines = [head]
    for each in record.executors:
        line = f"  {each.name}/{each.config}: {each.tests} tests, {each.outcomes} outcomes"
        if each.tests == 0 and each.name.startswith("mutant/"):
            line = (
                f"  {each.name}: reported in {record.canary_reported} of {record.canary_runs} runs"
            )
        if each.crashed or each.timed_out:
            line += f", {each.crashed} crashed, {each.timed_out} timed out"
        lines.append(line)
        lines.extend(f"    refused {count}: {why}" for why, count in each.refused.most_common())
    verdicts = ", ".join(f"{n} {v}" for v, n in sorted(record.verdicts.items())) or "none"
    lines.append(f"  outcomes judged: {verdicts}")
    crashed = sum(e.crashed for e in record.executors)
    timed_out = sum(e.timed_out for e in record.executors)
    lines.append(
        f"  unknown {record.unknown_graphs}, crashed {crashed}, timed out {timed_out} graphs"
    )
    drawn = ", ".join(f"{op} {n}" for op, n in record.drawn.most_common())
    lines.append(f"  drawn: {drawn}")
    lines.append(
        f"  {record.forbidden_graphs} graphs showed a forbidden outcome: "
        f"{len(record.findings)} findings of {len(by_cause(record.findings))} likely causes, "
        f"in {record.out}"
    )
    if record.raw_findings:
        lines.append(f"  {record.raw_findings} of them not minimized, in {record.out}/raw")
    if record.unconfirmed:
        lines.append(
            f"  {record.unconfirmed} of them not seen again in a fresh process, "
            f"in {record.out}/unconfirmed"
        )
    if record.problem:
        lines.append(f"litmusfuzz: {record.problem}")
    return "\n\n".join([*parts, "\n".join(lines)])
