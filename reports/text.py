"""Plain text for findings.

Every function returns a string that ends without a newline.
"""

from __future__ import annotations

import os.path
import shlex
from typing import TYPE_CHECKING, Final

from litmusfuzz.reports import drawing
from litmusfuzz.reports.events import FindingKind
from litmusfuzz.reports.tables import counted, in_short, one_line, the_model

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from litmusfuzz.corpus.outcome import Outcome
    from litmusfuzz.corpus.textfile import Finding
    from litmusfuzz.reports.open_tests import OpenTest
    from litmusfuzz.reports.report import ReportedFinding
    from litmusfuzz.reports.schedule import ScheduleTable


MINIMIZED_IN_PART: Final = "minimized in part: the time was up"
BEYOND_RFC: Final = frozenset(
    {
        *("dense updates indivisible", "parallel iterations", "program order per resource"),
        *("results after effects", "program order", "one thing at a time", "one cluster"),
    }
)
"""Rules that other memory models add to those of the RFC (`litmusfuzz.oracles.model.Axiom`)."""


def broken_rule(outcome: Outcome, model: str, rules: Sequence[str] | None) -> str:
    """The rule that a forbidden outcome breaks.

    Parameters
    ----------
    outcome : Outcome
    model : str
        It forbids the outcome.
    rules : sequence of str or None
        A minimal set of its rules that do so; empty if those of the RFC do, None if it is not
        known.
    """
    if outcome.torn:
        return 'torn: "The writes and reads themselves are atomic" (RFC)'
    if added := [rule for rule in rules or () if rule in BEYOND_RFC]:
        noun = "rule" if len(added) == 1 else "rules"
        return f"{noun} of the model {model}: {', '.join(added)}"
    if rules is None and model != "rfc":
        return f"no total order that the model {model} allows yields it"
    return "no total order of the events yields it (RFC, rules 1 to 4)"


def finding(reported: ReportedFinding, folder: str = "", python: str | None = None) -> str:
    """A finding: shape, observed outcome, nearest allowed one, rule, replay command.

    Parameters
    ----------
    reported : ReportedFinding
    folder : str
        Folder of its campaign: the finding's script is in it.
    python : str or None
        Interpreter of another environment, which ran it.
    """
    found, more = reported.entry.finding, reported.count - 1
    lines = [reported.headline]
    if found is None:
        lines += ended_or_unsound(reported)
    else:
        on = f"{found.executor}/{found.configuration}"
        counts = [(outcome, reported.observed[outcome][0]) for outcome in reported.forbidden]
        rules = reported.rules if reported.reason else None
        near = reported.nearest
        lines += violation(counts, reported.executions, on, near, found.model, rules)
        if reported.reason and not reported.forbidden[0].torn:
            lines.append(f"  because   {in_short(reported.reason)}")
        lines += [f"  {each}" for each in remarks(reported)]
        if reported.schedule is not None:
            lines += schedule_lines(reported.schedule)
    if more:
        contains = "contains" if more == 1 else "contain"
        graphs = counted(more, "more graph")
        lines.append(f"  also      {graphs} that {contains} the same ops in the same relation")
    if len(reported.configs) > 1:
        ordered = sorted(reported.configs.items(), key=lambda each: -each[1])
        lines.append(f"  in        {', '.join(f'{name} {number}' for name, number in ordered)}")
    if reported.script:
        shows = "shows it" if reported.script_shows_it else "unconfirmed by script"
        command = shlex.join([python or "python", os.path.join(folder, reported.script)])
        lines.append(f"  script    {command}   {shows}")
    return "\n".join(map(one_line, [*lines, f"  replay    {reported.replay}"]))


def schedule_lines(schedule: ScheduleTable) -> list[str]:
    """A schedule in the text of a finding: what it needs, then its table."""
    table = (f"            {line}" for line in schedule.lines())
    return [f"  schedule  {schedule.need}", *table]


def remarks(reported: ReportedFinding) -> list[str]:
    """Models that allow it, and how certain it is."""
    found, weaker = reported.entry.finding, reported.allowed_by
    if found is None:
        return []
    allow = "allows" if len(weaker) == 1 else "allow"
    by_one = f"only the model {found.model} forbids it"
    lines = [f"{by_one}: {' and '.join(weaker)} {allow} it"] if weaker else []
    lines += needs(found)
    lines += [] if found.minimized else [MINIMIZED_IN_PART]
    lines += [] if found.confirmed else ["not yet confirmed in a fresh process: replay it"]
    if found.schedule is not None:
        made = found.schedule
        steps = counted(len(made.choices or made.events), "event" if made.events else "choice")
        lines.append(f"one execution of {steps} is in the file, and shows it again")
    return lines


def needs(found: Finding) -> list[str]:
    """Names and the order of nodes without which a finding did not show."""
    parts = []
    if found.needs_names:
        what = "this name" if len(found.needs_names) == 1 else "these names"
        parts.append(f"{what}: {', '.join(found.needs_names)}")
    if found.needs_order:
        parts.append("its nodes in this order")
    return [f"only with {' and '.join(parts)}"] if parts else []


def ended_or_unsound(reported: ReportedFinding) -> list[str]:
    """Evidence of a finding without an outcome: unsound clusters, or the end of a worker."""
    on = ", ".join(f"{reported.executor}/{name}" for name in reported.configs)
    if reported.kind is not FindingKind.UNSOUND:
        return [f"  {reported.kind:9} on {on}: {'; '.join(reported.reason)}"]
    clusters = [f"    {k.name}: {', '.join(k.members)}" for k in reported.entry.test.clusters]
    heads = ("  because   ", *("            ",) * len(reported.reason))
    reason = [f"{start}{each}" for start, each in zip(heads, reported.reason, strict=False)]
    return [f"  clusters  chosen by {on}", *clusters, *reason]


def violation(
    forbidden: Sequence[tuple[Outcome, int]],
    executions: int,
    on: str,
    near: Outcome | None,
    model: str,
    rules: Sequence[str] | None = None,
) -> list[str]:
    """Observed outcomes that `model` forbids, and the allowed one nearest to the first.

    `rules` are those that forbid the first, as for `broken_rule`.
    """
    (seen, times), *others = forbidden
    lines = [f"  seen      {seen}   in {times} of {executions} executions on {on}"]
    if others:
        more = sum(count for _, count in others)
        number = counted(len(others), "other forbidden outcome")
        lines.append(f"            {number} in {more} more")
    if near is not None:
        lines.append(f"  nearest   {near}   is allowed under {the_model(model)}")
    return [*lines, f"  broken    {broken_rule(seen, model, rules)}"]


def open_test(test: OpenTest, most_lines: int) -> str:
    """A test with a forbidden outcome and no finding: what it showed, its picture, its replay.

    The picture has `most_lines` at most, and is left out if the file was not read.
    """
    lines = [test.headline]
    lines += [f"  {what:9} {text}" for what, text in test.facts.items()]
    if test.entry is not None and most_lines:
        picture = drawing.shortened(test.entry.test, most_lines).splitlines()
        lines += [f"    {line}".rstrip() for line in picture[1:]]
    return "\n".join(map(one_line, [*lines, f"  replay    {test.replay}"]))


def by_cause(findings: Iterable[ReportedFinding]) -> list[list[ReportedFinding]]:
    """Findings of an executor that likely have one cause together, the most frequent first.

    Two that need different settings are set apart.

    Causes in the order of their first finding.
    """
    groups: dict[tuple[str, str, str], list[ReportedFinding]] = {}
    for each in findings:
        groups.setdefault((each.executor, each.cause, each.needs), []).append(each)
    return [sorted(group, key=_rate, reverse=True) for group in groups.values()]


def _rate(reported: ReportedFinding) -> tuple[bool, float]:
    found = reported.entry.finding
    if found is None:
        return True, float(reported.count)
    return found.minimized, found.count / max(1, found.executions)
