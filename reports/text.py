"""Plain text for tables of outcomes, replays and findings.

Every function returns a string that ends without a newline.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from litmusfuzz.corpus.outcome import Outcome, nearest
from litmusfuzz.corpus.textfile import Script
from litmusfuzz.reports.tables import counted, outcome_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from litmusfuzz.corpus.textfile import Entry
    from litmusfuzz.reports.records import ReportedFinding


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """Result of one test on one executor.

    `verdicts` has each outcome of `histogram`; `allowed` lists the allowed set, all of it
    if `complete`; `died` has a message for each worker that died.
    """

    entry: Entry
    file: str
    executor: str
    config: str
    model: str
    histogram: Mapping[Outcome, int]
    verdicts: Mapping[Outcome, str]
    allowed: tuple[Outcome, ...]
    complete: bool
    died: tuple[str, ...]
    seconds: float
    schedule: str = ""
    """Result of the recorded execution, if it was followed."""

    @property
    def executions(self) -> int:
        """Number of executions."""
        return sum(self.histogram.values())

    @property
    def forbidden(self) -> int:
        """Number of executions with a forbidden outcome."""
        return sum(n for o, n in self.histogram.items() if self.verdicts[o] == "forbidden")

    @property
    def shown(self) -> list[Outcome]:
        """Observed outcomes: forbidden ones first, then the most frequent."""
        return sorted(
            self.histogram,
            key=lambda o: (self.verdicts[o] != "forbidden", -self.histogram[o], str(o)),
        )

    @property
    def unseen(self) -> list[Outcome]:
        """Allowed outcomes that did not show."""
        return [o for o in self.allowed if o not in self.histogram]

    @property
    def exit_code(self) -> int:
        """Exit code of the command: 1 forbidden, 3 undecided, 0 clean."""
        if self.forbidden:
            return 1
        undecided = self.died or "unknown" in self.verdicts.values()
        return 3 if undecided or self.entry.finding else 0

    def as_json(self) -> dict[str, Any]:
        """Plain data with everything that `replay_text` has."""
        return {
            "test": self.entry.test.name,
            "file": self.file,
            "executor": self.executor,
            "configuration": self.config,
            "model": self.model,
            "executions": self.executions,
            "forbidden": self.forbidden,
            "seconds": round(self.seconds, 3),
            "observed": [
                {"outcome": o.plain, "count": n, "verdict": self.verdicts[o]}
                for o, n in self.histogram.items()
            ],
            "allowed_not_seen": [o.plain for o in self.unseen],
            "schedule": self.schedule,
            "died": list(self.died),
            "exit_code": self.exit_code,
        }


def replay_line(report: ReplayReport) -> str:
    """One line of many."""
    seen = len(report.allowed) - len(report.unseen)
    line = (
        f"{report.entry.test.name}: {report.executions} executions, "
        f"{report.forbidden} forbidden, {seen} of {len(report.allowed)} allowed outcomes seen"
    )
    line += f"; {report.schedule}" if report.schedule else ""
    return line + "".join(f"; the worker died: {died}" for died in report.died)


def replay_text(report: ReplayReport) -> str:
    """Observed against allowed: forbidden outcomes, then by count, then unseen ones."""
    verdicts = report.verdicts
    rows = [
        (
            o,
            (
                str(report.histogram[o]),
                verdicts[o].upper() if verdicts[o] != "allowed" else "allowed",
            ),
        )
        for o in report.shown
    ]
    rows += [(o, ("0", "allowed")) for o in sorted(report.unseen, key=str)]
    shown = outcome_table(report.entry.test.names, ["count", "verdict"], rows)
    return "\n".join([shown, "", *replay_notes(report)])


def replay_notes(report: ReplayReport) -> list[str]:
    """Totals and remarks below a histogram."""
    lines = [
        f"{counted(report.executions, 'execution')} on {report.executor}/{report.config} "
        f"in {report.seconds:.1f} s: {report.forbidden} forbidden under {report.model}",
    ]
    if report.schedule:
        lines.append(report.schedule)
    if not report.complete:
        lines.append("the oracle ran out of its budget: outcomes that it did not reach are UNKNOWN")
    lines += [f"the worker died: {died}" for died in report.died]
    if report.died and report.forbidden:
        lines.append("a process that dies of damaged memory may have shown wrong outcomes before")
    if report.forbidden:
        lines.append(broken_rule(report.shown[0]))
    elif report.entry.finding:
        lines.append("the finding did not show again")
    return lines


def broken_rule(outcome: Outcome) -> str:
    """The rule of the RFC that a forbidden outcome breaks, as far as the outcome shows it."""
    if outcome.torn:
        return 'torn: "The writes and reads themselves are atomic" (RFC)'
    return "no total order of the events yields it (RFC, rules 1 to 4)"


def finding(reported: ReportedFinding) -> str:
    """A finding: shape, observed outcome, nearest allowed one, rule, replay command."""
    entry = reported.entry
    found = entry.finding
    assert found is not None
    seen, _ = found.forbidden[0]
    on, near = f"{found.executor}/{found.configuration}", nearest(seen, _listed(entry, found.model))
    lines = [headline(reported)]
    lines += violation(found.forbidden, found.executions, on, near, found.model)
    if reported.allowed_by:
        allow = "allows" if len(reported.allowed_by) == 1 else "allow"
        weaker = " and ".join(reported.allowed_by)
        lines.append(f"  only      {found.model} forbids it; {weaker} {allow} it")
    if reported.reason and not seen.torn:
        lines.append(f"  because   {reported.reason}")
    if not found.minimized:
        lines.append("  minimized in part: the time was up")
    if not found.confirmed:
        lines.append("  not yet confirmed in a fresh process: replay it")
    if reported.more:
        more = counted(reported.more, "more graph")
        contains = "contains" if reported.more == 1 else "contain"
        lines.append(f"  also      {more} that {contains} the same ops in the same relation")
    if len(reported.configs) > 1:
        counts = ", ".join(f"{name} {number}" for name, number in reported.configs.most_common())
        lines.append(f"  in        {counts}")
    if found.schedule is not None:
        steps = counted(len(found.schedule.choices), "choice")
        lines.append(f"  schedule  one execution of {steps} is in the file, and shows it again")
    if found.script is not None:
        path = shlex.quote(reported.path.removesuffix(".yaml") + ".py")
        shows = "shows it" if found.script is Script.SHOWS_IT else "unconfirmed by script"
        lines.append(f"  script    {shlex.quote(reported.python or 'python')} {path}   {shows}")
    replay = f"  replay    litmusfuzz replay {shlex.quote(reported.path)}"
    lines.append(replay + (f" --python {shlex.quote(reported.python)}" if reported.python else ""))
    return "\n".join(lines)


def violation(
    forbidden: Sequence[tuple[Outcome, int]],
    executions: int,
    on: str,
    near: Outcome | None,
    model: str,
) -> list[str]:
    """Observed outcomes that `model` forbids, most frequent first, and the nearest allowed."""
    (seen, times), *others = forbidden
    lines = [f"  seen      {seen}   in {times} of {executions} executions on {on}"]
    if others:
        more = sum(count for _, count in others)
        number = counted(len(others), "other forbidden outcome")
        lines.append(f"            {number} in {more} more")
    if near is not None:
        lines.append(f"  nearest   {near}   is allowed under {model}")
    return [*lines, f"  broken    {broken_rule(seen)}"]


def headline(reported: ReportedFinding) -> str:
    """One line: name and ops."""
    ops = " + ".join(n.op for n in reported.entry.test.effects)
    return f"{reported.entry.test.name}: {ops}"


def by_cause(findings: Iterable[ReportedFinding]) -> list[list[ReportedFinding]]:
    """Findings of an executor that likely have one cause together, the most frequent first.

    Causes in the order of their first finding.
    """
    groups: dict[tuple[str, str], list[ReportedFinding]] = {}
    for each in findings:
        assert each.entry.finding is not None
        groups.setdefault((each.entry.finding.executor, each.cause), []).append(each)
    return [sorted(group, key=_rate, reverse=True) for group in groups.values()]


def _rate(reported: ReportedFinding) -> tuple[bool, float]:
    found = reported.entry.finding
    assert found is not None
    return found.minimized, found.count / max(1, found.executions)


def _listed(entry: Entry, model: str) -> Iterable[Outcome]:
    outcomes = entry.allowed.get(model)
    return outcomes if isinstance(outcomes, frozenset) else ()
