"""Tests that showed a forbidden outcome and have no finding: what is left of a campaign.

Nothing that was seen and judged forbidden is left out of a report. A test has a finding, or shows
one that is known, or is *open*, in one of the states here. Every output lists the open tests, each
with its file, and the exit code depends on their states (`EXIT_CODES`).
"""

# ruff: noqa: D102 - Report document what the protocols name.
from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Protocol

from litmusfuzz.reports.commands import replay_command
from litmusfuzz.reports.events import FindingKind
from litmusfuzz.reports.headline import symptom_of
from litmusfuzz.reports.tables import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from litmusfuzz.corpus.outcome import Outcome
    from litmusfuzz.corpus.textfile import Entry

MOST_IN_FULL: Final = 50
"""Open tests that reports show in full; the others are listed by their files."""
MOST_OUTCOMES: Final = 3
"""Forbidden outcomes of an open test that are listed; its file has more."""


@dataclass(frozen=True, slots=True)
class Pending:
    """A test with a forbidden outcome that is not minimized yet.

    `attempts` counts the shards that tried; `minimizing_in` is the number of the running shard
    that tries now. `shard` has executed it, `suspect` is True if its process crashed later. It
    showed a forbidden outcome in `seen` of `executions`, judged by `model`.
    """

    index: int
    executor: str
    configuration: str
    file: str
    shard: int
    attempts: int = 0
    minimizing_in: int | None = None
    suspect: bool = False
    seen: int = 0
    executions: int = 0
    model: str = ""


@dataclass(frozen=True, slots=True)
class UnconfirmedTest:
    """A test whose forbidden outcome no fresh process has shown again.

    It showed a forbidden outcome in `seen` of `executions`, judged by `model`. Since then,
    `attempts` fresh processes have executed it `tried` times in all. The file has it as it was run.
    """

    index: int
    executor: str
    configuration: str
    file: str
    seen: int
    executions: int
    attempts: int
    tried: int
    model: str = ""


@dataclass(frozen=True, slots=True)
class UncheckedTest:
    """A test that shows a known cause, and perhaps something else: experiments could not decide.

    It showed a forbidden outcome in `seen` of `executions`, judged by `model`. `causes` names the
    known causes.
    """

    index: int
    executor: str
    configuration: str
    file: str
    seen: int
    executions: int
    model: str
    causes: tuple[str, ...]


class OpenState(StrEnum):
    """Why a test that showed a forbidden outcome has no finding."""

    MINIMIZING = "being minimized"
    INTERRUPTED = "interrupted"
    """The campaign was interrupted before the test was minimized."""
    NOT_MINIMIZED = "not minimized"
    """The time was up, or has not come yet."""
    NOT_CONFIRMED = "not confirmed"
    """A fresh process did not show it again."""
    SUSPECT = "suspect"
    """Its process crashed later, and no fresh process has run it since."""
    UNDECIDED = "undecided"
    """A known cause may explain it, and no experiment has decided that."""


EXIT_CODES: Final[Mapping[OpenState, tuple[int, int]]] = {
    OpenState.MINIMIZING: (1, 1),
    OpenState.INTERRUPTED: (1, 1),
    OpenState.NOT_MINIMIZED: (1, 1),
    OpenState.NOT_CONFIRMED: (3, 3),
    OpenState.SUSPECT: (3, 3),
    OpenState.UNDECIDED: (3, 0),
}
"""Exit code of a campaign with a test in a state and nothing worse: `run`, and unattended.

An unattended campaign always leaves tests that look like a known cause; they do not count.
"""
_LEVELS: Final = {1: "error", 3: "warning", 0: "note"}


@dataclass(frozen=True, slots=True)
class OpenTest:
    """A test that showed a forbidden outcome and has no finding.

    Parameters
    ----------
    index : int
    executor, configuration, model : str
    file : str
        Has the test as it was run; relative to the campaign's folder.
    state : OpenState
    why : str
        The state in a sentence, without its end.
    seen, executions : int
        It showed a forbidden outcome in `seen` of `executions`.
    exit_code : int
        Of a campaign with this test and nothing worse.
    replay : str
        The command that shows it again.
    entry : Entry or None
        What the file has; None if it was not loaded, or cannot be read.
    known : tuple of str
        Names of the known causes that may explain it.
    """

    index: int
    executor: str
    configuration: str
    model: str
    file: str
    state: OpenState
    why: str
    seen: int
    executions: int
    exit_code: int
    replay: str
    entry: Entry | None = None
    known: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The test and its configuration, in words."""
        return f"graph {self.index} on {self.executor}/{self.configuration}"

    @property
    def headline(self) -> str:
        """One line: symptom, test, configuration, and state."""
        what = symptom_of(self.entry) if self.entry is not None else str(FindingKind.FORBIDDEN)
        return f"{what}: {self.name}, {self.state}"

    @property
    def level(self) -> str:
        """How much it weighs: error, warning or note, as the exit code says."""
        return _LEVELS[self.exit_code]

    @property
    def outcomes(self) -> tuple[tuple[Outcome, int], ...]:
        """Forbidden outcomes, with how many executions showed each; the first ones in the file."""
        if self.entry is None or self.entry.finding is None:
            return ()
        return self.entry.finding.forbidden[:MOST_OUTCOMES]

    @property
    def facts(self) -> Mapping[str, str]:
        """What was seen, how often, by which model, why it is left, and its file."""
        shown = "; ".join(f"{outcome}, {counted(n, 'time')}" for outcome, n in self.outcomes)
        often = f"a forbidden outcome in {self.seen:,} of {self.executions:,} executions"
        facts = {
            "seen": f"{often}: {shown}" if shown else often,
            "judged by": self.model,
            "left": self.why,
            "file": self.file,
        }
        return {what: text for what, text in facts.items() if text}


class Campaign(Protocol):
    """What a report knows of its campaign; see `litmusfuzz.reports.report.Report`."""

    @property
    def folder(self) -> str: ...
    @property
    def python(self) -> str | None: ...
    @property
    def ended(self) -> int | None: ...
    @property
    def interrupted(self) -> bool: ...
    @property
    def unattended(self) -> bool: ...
    @property
    def pending(self) -> Sequence[Pending]: ...
    @property
    def unconfirmed(self) -> Sequence[UnconfirmedTest]: ...
    @property
    def unchecked(self) -> Sequence[UncheckedTest]: ...
    @property
    def may_be_known(self) -> Mapping[str, tuple[str, ...]]: ...
    @property
    def entries(self) -> Mapping[str, Entry]: ...


def open_tests(report: Campaign) -> tuple[OpenTest, ...]:
    """All open tests of a campaign, those that weigh most first."""
    return tuple(sorted(_open(report), key=lambda each: (_ORDER[each.exit_code], each.index)))


_ORDER: Final = {1: 0, 3: 1, 0: 2}


def _open(report: Campaign) -> Iterator[OpenTest]:
    for line in report.pending:
        known = report.may_be_known.get(line.file, ())
        state = OpenState.UNDECIDED if known else _state(report, line)
        yield _made(report, line, state, _why(report, line, state), known)
    for test in report.unconfirmed:
        known = report.may_be_known.get(test.file, ())
        again = "a fresh process" if test.attempts == 1 else f"{test.attempts} fresh processes"
        why = f"{again} did not show it again, in {test.tried:,} executions"
        if known:
            why += f"; {_may_explain(known)}"
        state = OpenState.UNDECIDED if known else OpenState.NOT_CONFIRMED
        yield _made(report, test, state, why, known)
    for each in report.unchecked:
        why = f"{_may_explain(each.causes)}, and no experiment decided whether that is all"
        yield _made(report, each, OpenState.UNDECIDED, why, each.causes)


def _made(
    report: Campaign,
    line: Pending | UnconfirmedTest | UncheckedTest,
    state: OpenState,
    why: str,
    known: tuple[str, ...],
) -> OpenTest:
    # A command runs code that a configuration's name lists only if it names it too.
    names = f"{line.executor}:{line.configuration}" if "=" in line.configuration else ""
    command = replay_command(FindingKind.FORBIDDEN, line.file, report.folder, report.python, names)
    return OpenTest(
        index=line.index,
        executor=line.executor,
        configuration=line.configuration,
        model=line.model,
        file=line.file,
        state=state,
        why=why,
        seen=line.seen,
        executions=line.executions,
        exit_code=EXIT_CODES[state][report.unattended],
        replay=command,
        entry=report.entries.get(line.file),
        known=known,
    )


def _state(report: Campaign, line: Pending) -> OpenState:
    if line.suspect:
        return OpenState.SUSPECT
    if report.ended is None and line.minimizing_in is not None:
        return OpenState.MINIMIZING
    return OpenState.INTERRUPTED if report.interrupted else OpenState.NOT_MINIMIZED


def _why(report: Campaign, line: Pending, state: OpenState) -> str:
    """Why a pending test has no finding."""
    if line.suspect:
        why = "its process crashed later, and no fresh process has run it since"
    elif state is OpenState.MINIMIZING:
        why = "it is being minimized"
    elif report.interrupted:
        why = "the campaign was interrupted before it was minimized"
    elif report.ended is None:
        why = "it is not minimized yet"
    else:
        why = "the time was up before it was minimized"
    if line.attempts > 1:
        why += f"; {counted(line.attempts, 'shard')} tried"
    if state is OpenState.UNDECIDED:
        why += f"; {_may_explain(report.may_be_known[line.file])}"
    return why


def _may_explain(causes: tuple[str, ...]) -> str:
    what = "the known cause" if len(causes) == 1 else "known causes"
    return f"{what} {', '.join(causes)} may explain it"
