"""Report of `litmusfuzz force` on an executor under control: every schedule of a test."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from litmusfuzz.reports.allowed import ended_as
from litmusfuzz.reports.schedule import schedule_table
from litmusfuzz.reports.tables import counted, outcome_table, verdict_cell

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Outcome
    from litmusfuzz.corpus.schedule import Decision


@dataclass(frozen=True, slots=True)
class Reached:
    """An outcome that schedules have.

    Parameters
    ----------
    schedules : int
        How many of the last search have it.
    preemptions : int or None
        The bound of the first search that has reached it; None if it had none.
    events : tuple of Decision
        One schedule, of that search.
    verdict : str
    """

    schedules: int
    preemptions: int | None
    events: tuple[Decision, ...]
    verdict: str


@dataclass(frozen=True, slots=True)
class ExploredReport:
    """One test on one executor.

    Parameters
    ----------
    judged_by : str
        The memory model that judges, and why it is that one.
    left_out : str
        Reason why the test was not run; "" if it was.
    reached : mapping of Outcome to Reached
    unreached : mapping of Outcome to str
        Allowed outcomes that no schedule has reached, each with the reason if it is known.
    all_allowed : bool
        True if all allowed outcomes are in `reached` or `unreached`.
    bound : int or None
        Preemptions of the last search; None if it had no bound.
    schedules, executions : int
        Of the last search; executions include those that would have repeated a schedule.
    complete : bool
        True if the last search has executed every schedule within its bound.
    whole : bool
        True if it has executed every schedule that there is.
    within : int or None
        Preemptions within which every schedule was executed; None if no bounded search was.
    stopped : str
        Why the last search did not execute every schedule; "" if it did.
    files : mapping of Outcome to str
        Files with forbidden outcomes, to be replayed.
    """

    test: LitmusTest
    file: str
    executor: str
    config: str
    judged_by: str
    left_out: str = ""
    reached: Mapping[Outcome, Reached] = field(default_factory=dict)
    unreached: Mapping[Outcome, str] = field(default_factory=dict)
    all_allowed: bool = True
    bound: int | None = None
    schedules: int = 0
    executions: int = 0
    complete: bool = False
    whole: bool = False
    within: int | None = None
    stopped: str = ""
    files: Mapping[Outcome, str] = field(default_factory=dict)
    seconds: float = 0.0
    interrupted: bool = False

    @property
    def where(self) -> str:
        """Executor and configuration."""
        return f"{self.executor}/{self.config}"

    @property
    def forbidden(self) -> list[Outcome]:
        """The forbidden outcomes that schedules have."""
        return [o for o, reached in self.reached.items() if reached.verdict == "forbidden"]

    @property
    def undecided(self) -> bool:
        """True if there is an outcome that could not be judged."""
        return any(reached.verdict == "unknown" for reached in self.reached.values())

    @property
    def exit_code(self) -> int:
        """Exit code of the command: 1 forbidden, 3 cut off or undecided, 0 clean."""
        if self.forbidden:
            return 1
        return 3 if self.left_out or self.undecided or not self.complete else 0

    @property
    def extent(self) -> str:
        """How many schedules were executed, and whether these are all."""
        return extent(
            schedules=self.schedules,
            executions=self.executions,
            bound=self.bound,
            complete=self.complete,
            whole=self.whole,
            within=self.within,
            stopped=self.stopped,
        )

    def line(self) -> str:
        """One line of many."""
        if self.left_out:
            return f"{self.test.name}: left out on {self.where}: {self.left_out}"
        allowed = sum(each.verdict == "allowed" for each in self.reached.values())
        more = "" if self.all_allowed else " or more"
        wrong = f", {len(self.forbidden)} FORBIDDEN" if self.forbidden else ""
        return (
            f"{self.test.name}: {self.extent} on {self.where}: {allowed} of "
            f"{allowed + len(self.unreached)}{more} allowed outcomes{wrong}"
        )

    def findings(self) -> list[str]:
        """Each forbidden outcome with its schedule."""
        lines: list[str] = []
        for outcome in self.forbidden:
            made = schedule_table(self.test, self.reached[outcome].events)
            lines += ["", f"{self.test.name}: FORBIDDEN on {self.where}: {ended_as(outcome)}"]
            lines += [f"  {made.need}", *(f"  {line}" for line in made.lines())]
            if outcome in self.files:
                lines.append(f"  replay    litmusfuzz replay {shlex.quote(self.files[outcome])}")
        return lines

    def text(self) -> str:
        """Everything about one test."""
        lines = [self.judged_by, self.line()]
        if self.reached:
            rows = [
                (outcome, [str(each.schedules or "-"), verdict_cell(each.verdict)])
                for outcome, each in self.reached.items()
            ]
            lines += ["", outcome_table(self.test.names, ("schedules", "verdict"), rows)]
        if self.unreached:
            lines += ["", "allowed, and reached by no schedule that was executed:"]
            lines += [
                f"  {ended_as(outcome)}{f'  ({why})' if why else ''}"
                for outcome, why in self.unreached.items()
            ]
        return "\n".join([*lines, *self.findings()])

    def as_json(self) -> dict[str, Any]:
        """Plain data with everything that `text` has."""
        return {
            "test": self.test.name,
            "file": self.file,
            "executor": self.executor,
            "configuration": self.config,
            "judged_by": self.judged_by,
            "left_out": self.left_out,
            "reached": [
                {
                    "outcome": outcome.plain,
                    "verdict": each.verdict,
                    "schedules": each.schedules,
                    "preemptions": each.preemptions,
                    "schedule": schedule_table(self.test, each.events).as_json(),
                    "file": self.files.get(outcome, ""),
                }
                for outcome, each in self.reached.items()
            ],
            "not_reached": [
                {"outcome": outcome.plain, "reason": why} for outcome, why in self.unreached.items()
            ],
            "all_allowed_known": self.all_allowed,
            "preemptions": self.bound,
            "schedules": self.schedules,
            "executions": self.executions,
            "complete": self.complete,
            "all": self.whole,
            "complete_within_preemptions": self.within,
            "stopped": self.stopped,
            "interrupted": self.interrupted,
            "seconds": round(self.seconds, 3),
            "exit_code": self.exit_code,
        }


def extent(
    *,
    schedules: int,
    executions: int,
    bound: int | None,
    complete: bool,
    whole: bool,
    within: int | None,
    stopped: str,
) -> str:
    """How many schedules were executed, and whether these are all; as in `ExploredReport`."""
    of = "" if bound is None or whole else _within(bound)
    number = f"{counted(schedules, 'schedule')}{of}"
    begun = counted(executions, "execution")
    if complete:
        return f"all {number}, in {begun}"
    after = "" if within is None else f", after all{_within(within)}"
    return f"{number}, in {begun}{after}: {stopped}"


def _within(preemptions: int) -> str:
    return f" with at most {counted(preemptions, 'preemption')}"


def explored_text(reports: Sequence[ExploredReport]) -> str:
    """Report of several tests: a line each, then the forbidden outcomes."""
    lines = [*dict.fromkeys(report.judged_by for report in reports)]
    lines += (report.line() for report in reports)
    ran = [report for report in reports if not report.left_out]
    whole = sum(report.complete for report in ran)
    lines += ["", f"{whole} of {counted(len(ran), 'test')} in all their schedules"]
    lines += (line for report in reports for line in report.findings())
    return "\n".join(lines)
