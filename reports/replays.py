"""Report of a replay: one test on one executor or several."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from litmusfuzz.reports.differential import ExecutorResult
from litmusfuzz.reports.schedule import schedule_of
from litmusfuzz.reports.tables import counted, each_once, the_model
from litmusfuzz.reports.text import broken_rule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from litmusfuzz.corpus.outcome import Outcome
    from litmusfuzz.corpus.textfile import Entry
    from litmusfuzz.reports.differential import DifferentialComparison
    from litmusfuzz.reports.schedule import ScheduleTable


def worst(histogram: Mapping[Outcome, int], verdicts: Mapping[Outcome, str]) -> Outcome | None:
    """The most frequent forbidden outcome of a histogram; None if there is none."""
    wrong = [outcome for outcome in histogram if verdicts[outcome] == "forbidden"]
    return min(wrong, key=lambda o: (-histogram[o], str(o)), default=None)


@dataclass(frozen=True, slots=True)
class ReplayReport(ExecutorResult):
    """Result of one test on one executor.

    `judged_by` says which model judges, and why it is that one; `verdicts` has each outcome of
    `histogram`; `allowed` lists the allowed set, all of it if `complete`; `died` has a message for
    each worker that died, or did not answer in time; `tracebacks` has those of the exceptions
    that ended them.
    """

    entry: Entry
    file: str
    judged_by: str
    verdicts: Mapping[Outcome, str]
    allowed: tuple[Outcome, ...]
    complete: bool
    died: tuple[str, ...]
    seconds: float
    schedule: str = ""
    """Result of the recorded execution, if it was followed."""
    drivers: Mapping[str, str] = field(default_factory=dict)
    """Devices on which the test ran, with their drivers."""
    interrupted: bool = False
    tracebacks: tuple[str, ...] = ()
    rules: tuple[str, ...] | None = None
    """A minimal set of the model's rules that forbid the most frequent forbidden outcome; empty if
    those of the RFC do, None if it is not known."""
    allowed_by: tuple[str, ...] = ()
    """Weaker models that allow that outcome."""
    more: str = "a larger --count"
    """What may show a forbidden outcome where none was seen."""

    @property
    def executions(self) -> int:
        """Number of executions."""
        return sum(self.histogram.values())

    @property
    def forbidden(self) -> int:
        """Number of executions with a forbidden outcome."""
        return sum(n for o, n in self.histogram.items() if self.verdicts[o] == "forbidden")

    @property
    def worst(self) -> Outcome | None:
        """The most frequent forbidden outcome."""
        return worst(self.histogram, self.verdicts)

    @property
    def unseen(self) -> list[Outcome]:
        """Allowed outcomes that did not show."""
        return [o for o in self.allowed if o not in self.histogram]

    @property
    def exit_code(self) -> int:
        """Exit code of the command: 1 forbidden, 3 undecided, 0 clean."""
        if self.forbidden:
            return 1
        undecided = self.died or not self.executions or "unknown" in self.verdicts.values()
        undecided = undecided or self.interrupted
        return 3 if undecided or self.entry.finding else 0

    @property
    def caution(self) -> str:
        """What a clean replay does not say; "" of another one."""
        if self.exit_code or not self.executions:
            return ""
        return (
            "no forbidden outcome was seen, which does not prove that none is possible: "
            f"{self.more} may show one"
        )

    def line(self) -> str:
        """One line of many."""
        seen = len(self.allowed) - len(self.unseen)
        line = (
            f"{self.entry.test.name}: {self.executions} executions, "
            f"{self.forbidden} forbidden, {seen} of {len(self.allowed)} allowed outcomes seen"
        )
        line += f"; most often forbidden: {self.worst}" if self.worst is not None else ""
        line += f"; {self.schedule}" if self.schedule else ""
        line += "; interrupted" if self.interrupted else ""
        line += f"; {self.condition}" if self.condition else ""
        return line + "".join(f"; {death}" for death in self.deaths())

    @property
    def deciding(self) -> dict[Outcome, int]:
        """Outcomes that showed, and that are witnesses or counterexamples of the condition."""
        condition = self.entry.test.condition
        if condition is None:
            return {}
        return {o: n for o, n in self.histogram.items() if condition.decides(o)}

    @property
    def condition(self) -> str:
        """What showed of the test's condition, in a line; "" without one.

        It changes no verdict: an outcome that the model forbids is forbidden with or without it.
        """
        condition = self.entry.test.condition
        if condition is None or not self.executions:
            return ""
        if not self.deciding:
            never = "never observed" if condition.quantifier == "exists" else "held"
            return f"{condition}: {never} in {counted(self.executions, 'execution')}"
        times = counted(sum(self.deciding.values()), "time")
        # One that the model forbids says most.
        first = min(
            self.deciding,
            key=lambda o: (self.verdicts[o] != "forbidden", -self.deciding[o], str(o)),
        )
        seen = "observed" if condition.quantifier == "exists" else "violated"
        verdict = self.verdicts[first]
        return f"{condition}: {seen} {times}, as {first} ({verdict} under {the_model(self.model)})"

    def notes(self) -> list[str]:
        """Totals and remarks below a histogram."""
        lines = [
            f"{counted(self.executions, 'execution')} on {self.title} "
            f"in {self.seconds:.1f} s: {self.forbidden} forbidden under "
            f"{the_model(self.model)}",
        ]
        if self.schedule:
            lines.append(self.schedule)
            if self.followed is not None:
                lines += [f"  {self.followed.need}", *(f"  {x}" for x in self.followed.lines())]
        if condition := self.condition:
            lines.append(condition)
        lines += self.devices()
        if self.interrupted:
            lines.append("interrupted: more executions were asked for")
        elif not self.executions:
            lines.append("nothing ran in the time: it says nothing of the executor")
        if not self.complete:
            lines.append(
                "the oracle ran out of its budget: outcomes that it did not reach are UNKNOWN"
            )
        lines += self.deaths()
        lines += (f"  {line}" for text in self.tracebacks for line in text.splitlines())
        if self.died and self.forbidden:
            lines.append(
                "a process that dies of damaged memory may have shown wrong outcomes before"
            )
        if self.forbidden:
            allow = "allows" if len(self.allowed_by) == 1 else "allow"
            weaker = f"; {' and '.join(self.allowed_by)} {allow} it" if self.allowed_by else ""
            assert self.worst is not None
            lines.append(f"{broken_rule(self.worst, self.model, self.rules)}{weaker}")
        elif self.entry.finding:
            lines.append("the finding did not show again")
        return lines

    @property
    def followed(self) -> ScheduleTable | None:
        """The schedule in the finding's file, by names, if it was to be followed."""
        return schedule_of(self.entry) if self.schedule else None

    def _condition_as_json(self) -> dict[str, Any]:
        condition = self.entry.test.condition
        if condition is None:
            return {}
        deciding = [{"outcome": o.plain, "count": n} for o, n in self.deciding.items()]
        return {"condition": {"condition": str(condition), "deciding": deciding}}

    @property
    def drivers_of_the_finding(self) -> dict[str, str]:
        """What the finding recorded of these devices."""
        recorded = self.entry.finding.versions if self.entry.finding else {}
        return {device: recorded[device] for device in self.drivers if device in recorded}

    def devices(self) -> list[str]:
        """A line for each device, which says if the finding was seen on another one or driver."""
        lines = []
        for device, here in self.drivers.items():
            seen_on = self.drivers_of_the_finding.get(device, here)
            other = f"; the finding was seen on {seen_on}" if seen_on != here else ""
            lines.append(f"{device} is {here}{other}")
        return lines

    def deaths(self) -> list[str]:
        """A line for each message of a worker that died, with how often it came."""
        hang = f"{self.title} "
        return [
            died if died.startswith(hang) else f"the worker died: {died}"
            for died in each_once(self.died)
        ]

    def as_json(self) -> dict[str, Any]:
        """Plain data with everything that `line` and `notes` have."""
        return {
            "test": self.entry.test.name,
            "file": self.file,
            "executor": self.executor,
            "configuration": self.config,
            "model": self.model,
            "judged_by": self.judged_by,
            "executions": self.executions,
            "forbidden": self.forbidden,
            "broken": self.worst and broken_rule(self.worst, self.model, self.rules),
            "allowed_by": list(self.allowed_by),
            "seconds": round(self.seconds, 3),
            "observed": [
                {"outcome": o.plain, "count": n, "verdict": self.verdicts[o]}
                for o, n in self.histogram.items()
            ],
            "allowed_not_seen": [o.plain for o in self.unseen],
            **self._condition_as_json(),
            "schedule": self.schedule,
            "schedule_events": None if self.followed is None else self.followed.as_json(),
            "drivers": dict(self.drivers),
            "drivers_of_the_finding": self.drivers_of_the_finding,
            "died": list(self.died),
            "interrupted": self.interrupted,
            "tracebacks": list(self.tracebacks),
            "caution": self.caution,
            "exit_code": self.exit_code,
        }


@dataclass(frozen=True, slots=True)
class RefusedReplay:
    """A test, of several, that ran on no executor; `not_run` has the reason of each."""

    test: str
    file: str
    not_run: Mapping[str, str]

    def line(self) -> str:
        """One line."""
        reasons = "; ".join(f"{name}: {why}" for name, why in self.not_run.items())
        return f"{self.test}: not run: {reasons}"

    def as_json(self) -> dict[str, Any]:
        """Plain data with everything that `line` has."""
        return {"test": self.test, "file": self.file, "not_run": dict(self.not_run)}


@dataclass(frozen=True, slots=True)
class Replays:
    """Reports of at least one executor; `not_run` has the reason for the others.

    `cut_short` is True if an interruption kept another executor from running.
    """

    reports: tuple[ReplayReport, ...]
    not_run: Mapping[str, str]
    comparison: DifferentialComparison
    cut_short: bool = False

    @property
    def alone(self) -> bool:
        """True if one executor was asked for."""
        return len(self.reports) + len(self.not_run) == 1

    @property
    def judged_by(self) -> list[str]:
        """A line for each model that judges, with the reason."""
        return [*dict.fromkeys(report.judged_by for report in self.reports)]

    @property
    def caution(self) -> str:
        """What it does not say if all executors were clean."""
        return "" if self.exit_code else self.reports[0].caution

    @property
    def interrupted(self) -> bool:
        """True if the last one was interrupted, or another one kept from running."""
        return self.cut_short or self.reports[-1].interrupted

    @property
    def exit_code(self) -> int:
        """Exit code of the command: 1 forbidden, 3 undecided or not run, 0 clean."""
        codes = {report.exit_code for report in self.reports} | ({3} if self.not_run else set())
        return next((code for code in (1, 3) if code in codes), 0)

    def text(self) -> str:
        """Observed against allowed outcomes; of several executors as a comparison."""
        notes = [line for report in self.reports for line in report.notes()]
        lines = [*self.judged_by, "", self.comparison.table(), ""]
        caution = [self.caution] if self.caution else []
        return "\n".join([*lines, *notes, *caution, *self._not_run()])

    def lines(self) -> str:
        """A line for each executor."""
        if self.alone:
            return self.reports[0].line()
        lines = [f"{report.title}: {report.line()}" for report in self.reports]
        return "\n".join([*lines, *self._not_run()])

    def _not_run(self) -> list[str]:
        return [f"{title}: not run: {why}" for title, why in self.not_run.items()]

    def as_json(self) -> dict[str, Any]:
        """Plain data with everything that `text` has."""
        if self.alone:
            return self.reports[0].as_json()
        return {
            "test": self.comparison.test.name,
            "file": self.reports[0].file,
            **self.comparison.as_json(),
            "replays": [report.as_json() for report in self.reports],
            "not_run": dict(self.not_run),
            "interrupted": self.interrupted,
            "caution": self.caution,
            "exit_code": self.exit_code,
        }
