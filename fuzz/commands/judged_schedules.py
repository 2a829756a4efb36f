"""Executes the schedules of a test under control, and judges them: for tests of one's own.

The budget is counted, not timed, and a search depends on nothing but the test: the verdict is the
same each time. Schedules with few preemptions come first, and a search ends at a forbidden outcome;
so the schedule that is shown has the fewest.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.outcome import Verdict
from litmusfuzz.fuzz.campaign.preemption_bounds import bounds_at
from litmusfuzz.fuzz.commands.exploration import Exploration, search_all
from litmusfuzz.fuzz.executors.messages import NO_SCHEDULES
from litmusfuzz.fuzz.executors.protocol import LEVELS, Explores
from litmusfuzz.fuzz.finding.judge import Judgement, Oracle, judge
from litmusfuzz.reports.explored import extent
from litmusfuzz.reports.schedule import schedule_table
from litmusfuzz.reports.text import schedule_lines

if TYPE_CHECKING:
    from collections.abc import Callable

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.executors.protocol import Config, Refused, Search
    from litmusfuzz.oracles.model import Model

OFF: Final = "off"
"""In place of a level: no control."""
SCHEDULES: Final = 10_000
"""Executions of a search, at most, if nobody says: a second or two, of schedules of ops."""


class NotUnderControl(Exception):
    """Control does not reach a test in a configuration; the message is the reason."""


@dataclass(frozen=True, slots=True)
class Control:
    """How tests are executed under control.

    Parameters
    ----------
    level : str
        One of `LEVELS`, or `OFF`.
    schedules : int
        Executions of each search, at most.
    preemptions : int, optional
        Only schedules with so few; None for all.

    Raises
    ------
    ValueError
        Naming the parameter.
    """

    level: str = LEVELS[0]
    schedules: int = SCHEDULES
    preemptions: int | None = None

    def __post_init__(self) -> None:
        if self.level not in (*LEVELS, OFF):
            levels = ", ".join((*LEVELS, OFF))
            raise ValueError(f"control: one of {levels}, got {self.level!r:.80}")
        if self.schedules < 1:
            raise ValueError(f"schedules: at least 1, got {self.schedules}")
        if self.preemptions is not None and self.preemptions < 0:
            raise ValueError(f"preemptions: at least 0, got {self.preemptions}")

    def of(self, executor: object, config: Config) -> Config | None:
        """The configuration under control; None if that is not wanted, or an executor has none.

        One that is under control already stays as it is.

        Raises
        ------
        NotUnderControl
        """
        if self.level == OFF or not isinstance(executor, Explores):
            return None
        if executor.switches_inside(config) is not None:
            return config
        try:
            return executor.controlled(config, self.level)
        except ValueError as why:
            raise NotUnderControl(str(why)) from None


@dataclass(frozen=True, slots=True)
class JudgedSchedules:
    """Schedules of a test that were executed, and the judgement on their outcomes."""

    executor: str
    config: Config
    judgement: Judgement
    explored: Exploration

    @property
    def on(self) -> str:
        """Executor and configuration."""
        return f"{self.executor}/{self.config.name}"

    @property
    def extent(self) -> str:
        """How many schedules there were, and whether these are all."""
        last = self.explored.last
        of = extent(
            schedules=sum(last.histogram.values()) if last else 0,
            executions=last.executions if last else 0,
            bound=self.explored.bound,
            complete=not self.explored.stopped,
            whole=bool(last and last.whole),
            within=self.explored.within,
            stopped=self.explored.stopped,
        )
        return f"{of} on {self.on}"

    @property
    def undecided(self) -> bool:
        """True if a schedule that was not executed may have a forbidden outcome."""
        return bool(self.explored.stopped) and not self.judgement.forbidden

    def lines(self, test: LitmusTest) -> list[str]:
        """The schedule of the most frequent forbidden outcome: what it needs, then a table."""
        outcome, _ = self.judgement.forbidden[0]
        return schedule_lines(schedule_table(test, self.explored.found[outcome].events))

    def command(self, written: str, model: Model) -> str:
        """The command that executes that schedule again; see `force_command`."""
        outcome, _ = self.judgement.forbidden[0]
        bound = self.explored.found[outcome].preemptions
        return force_command(written, self.executor, self.config, model, bound)


def force_command(
    written: str, executor: str, config: Config, model: Model, preemptions: int | None = None
) -> str:
    """The command that executes the schedules of a file, or of a test in the short notation."""
    bound = [] if preemptions is None else ["--preemptions", str(preemptions)]
    on = ["--executors", f"{executor}:{config.name}", "--model", model.name]
    return shlex.join(["litmusfuzz", "force", written, *on, *bound])


def no_schedules(refusal: Refused) -> str:
    """Why an executor does not execute the schedules of a test."""
    reason = str(refusal)
    return "its tests have no schedules" if reason == NO_SCHEDULES else f"refused: {reason}"


def judged(
    oracle: Oracle,
    begin: Callable[[int | None], Search],
    executor: Explores,
    config: Config,
    control: Control,
) -> JudgedSchedules:
    """Execute the schedules of a test until one is forbidden, or all are executed.

    Parameters
    ----------
    oracle : Oracle
        Of the test.
    begin : callable
        Returns a search of the test with a bound on preemptions.
    executor : Explores
        Executes them.
    config : Config
        Under control.
    control : Control

    Raises
    ------
    Refused, Unavailable, WorkerDied
        As the searches do.
    """
    result = Exploration()

    def forbidden(so_far: Exploration) -> bool:
        return any(oracle.judge(outcome) is Verdict.FORBIDDEN for outcome in so_far.found)

    inside = bool(executor.switches_inside(config))
    within = bounds_at(control.preemptions, inside=inside)
    search_all(result, begin, within, control.schedules, enough=forbidden)
    counts = result.last.histogram if result.last else {}
    # The last search was perhaps cut off before it came to an outcome of one before it.
    seen = {outcome: max(1, counts.get(outcome, 0)) for outcome in result.found}
    return JudgedSchedules(executor.name, config, judge(oracle, seen), result)
