"""Report of `litmusfuzz force` on all allowed outcomes of tests."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from litmusfuzz.reports.allowed import ended_as, numbered
from litmusfuzz.reports.tables import counted, table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Outcome

_NO_FEATURE = "straight graphs"
_BLOCKED = "blocked"


@dataclass(frozen=True, slots=True)
class CoverReport:
    """One test on one executor.

    Parameters
    ----------
    judged_by : str
        The memory model that allows the orders, and why it is that one.
    left_out : str
        Reason why the test was not run; "" if it was.
    reached : tuple of Outcome
    wrong : tuple of (Outcome, tuple of str, Outcome)
        Expected outcome of an order, its events, observed outcome.
    not_followed : tuple of (Outcome, str)
        Outcomes whose orders were not followed, with the reason.
    apart : mapping of Outcome to str
        Allowed outcomes that were not forced, with the reason.
    interrupted : str
        How far it came until it was interrupted; "" if it was not.
    """

    test: LitmusTest
    file: str
    executor: str
    config: str
    judged_by: str
    left_out: str
    reached: tuple[Outcome, ...]
    wrong: tuple[tuple[Outcome, tuple[str, ...], Outcome], ...]
    not_followed: tuple[tuple[Outcome, str], ...]
    apart: Mapping[Outcome, str]
    seconds: float
    interrupted: str = ""

    @property
    def where(self) -> str:
        """Executor and configuration."""
        return f"{self.executor}/{self.config}"

    @property
    def allowed(self) -> int:
        """Number of outcomes whose orders were tried."""
        return len(self.reached) + len(self.wrong) + len(self.not_followed)

    @property
    def exit_code(self) -> int:
        """Exit code of the command: 1 another outcome, 3 undecided, 0 all reached."""
        if self.wrong:
            return 1
        return 3 if self.not_followed or self.left_out or self.interrupted else 0

    @property
    def kinds(self) -> tuple[str, ...]:
        """Rows of the summary in which the test counts."""
        forced = [*self.reached, *(outcome for outcome, _ in self.not_followed)]
        forced += (outcome for outcome, _, _ in self.wrong)
        blocked = any(str(outcome.status) == _BLOCKED for outcome in forced)
        found = sorted(self.test.features) or [_NO_FEATURE]
        return (*found, _BLOCKED) if blocked else tuple(found)

    def line(self) -> str:
        """One line of many."""
        if self.left_out:
            return f"{self.test.name}: left out on {self.where}: {self.left_out}"
        apart = "".join(f"; {n} apart: {why}" for why, n in Counter(self.apart.values()).items())
        apart += f"; {self.interrupted}" if self.interrupted else ""
        return f"{self.test.name}: {len(self.reached)} of {self.allowed} on {self.where}{apart}"

    def troubles(self) -> list[str]:
        """Lines on outcomes that were wrong or not reached."""
        lines: list[str] = []
        for outcome, order, seen in self.wrong:
            lines.append(f"{self.test.name}: FORBIDDEN on {self.where}: this order")
            lines += numbered(order)
            lines.append(f"yields  {ended_as(outcome)}")
            lines.append(f"but showed  {ended_as(seen)}")
        for outcome, why in self.not_followed:
            lines.append(f"{self.test.name}: not reached on {self.where}: {ended_as(outcome)}")
            lines.append(f"  {why}")
        if self.interrupted:
            lines.append(f"{self.test.name}: {self.interrupted} on {self.where}")
        return lines

    def text(self) -> str:
        """Everything about one test."""
        lines = [self.judged_by, self.line()]
        lines += (f"  reached  {ended_as(outcome)}" for outcome in self.reached)
        lines += (f"  apart    {ended_as(outcome)}  ({why})" for outcome, why in self.apart.items())
        return "\n".join([*lines, *self.troubles()])

    def as_json(self) -> dict[str, Any]:
        """Plain data with everything that `text` has."""
        return {
            "test": self.test.name,
            "file": self.file,
            "executor": self.executor,
            "configuration": self.config,
            "judged_by": self.judged_by,
            "features": sorted(self.test.features),
            "left_out": self.left_out,
            "reached": [outcome.plain for outcome in self.reached],
            "wrong": [
                {"expected": outcome.plain, "events": list(order), "outcome": seen.plain}
                for outcome, order, seen in self.wrong
            ],
            "not_followed": [
                {"outcome": outcome.plain, "problem": why} for outcome, why in self.not_followed
            ],
            "apart": [
                {"outcome": outcome.plain, "reason": why} for outcome, why in self.apart.items()
            ],
            "interrupted": self.interrupted,
            "seconds": round(self.seconds, 3),
            "exit_code": self.exit_code,
        }


def cover_text(reports: Sequence[CoverReport]) -> str:
    """Report of several tests: troubles, then the reached outcomes by feature."""
    lines = [*dict.fromkeys(report.judged_by for report in reports)]
    lines += (line for report in reports for line in report.troubles())
    for where in dict.fromkeys(report.where for report in reports):
        mine = [report for report in reports if report.where == where]
        run = [report for report in mine if not report.left_out]
        lines += ["", _by_kind(where, run), "", *_why(run), *_left_out(mine)]
    return "\n".join(lines).strip("\n")


def _by_kind(where: str, reports: Sequence[CoverReport]) -> str:
    kinds = sorted({kind for report in reports for kind in report.kinds})
    rows = [_row(kind, [report for report in reports if kind in report.kinds]) for kind in kinds]
    titles = (f"on {where}", "tests", "reached", "allowed", "apart")
    return table(titles, [*rows, _row("all", reports)])


def _row(kind: str, reports: Iterable[CoverReport]) -> list[str]:
    """One feature: tests with several count for each."""
    listed = list(reports)
    counts = (
        len(listed),
        sum(len(report.reached) for report in listed),
        sum(report.allowed for report in listed),
        sum(len(report.apart) for report in listed),
    )
    return [kind, *map(str, counts)]


def _why(reports: Iterable[CoverReport]) -> list[str]:
    reasons = Counter(why for report in reports for why in report.apart.values())
    return [f"apart: {counted(n, 'outcome')}: {why}" for why, n in reasons.most_common()]


def _left_out(reports: Iterable[CoverReport]) -> list[str]:
    reasons: dict[str, list[str]] = {}
    for report in reports:
        if report.left_out:
            reasons.setdefault(report.left_out, []).append(report.test.name)
    return [
        f"left out: {counted(len(names), 'test')}: {why}: {' '.join(names)}"
        for why, names in reasons.items()
    ]
