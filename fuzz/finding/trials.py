"""Cases, trials and their results, of which experiments consist (`fuzz.finding.experiments`)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import Entry, dumps
from litmusfuzz.fuzz.executors.protocol import Explores, noise_from
from litmusfuzz.fuzz.executors.table import UnknownExecutor, configuration, executor_class
from litmusfuzz.fuzz.finding.causes import symptom, symptoms_of
from litmusfuzz.fuzz.finding.configuration_reducer import beyond_plain, has_space
from litmusfuzz.fuzz.finding.resource_passes import LANES, width
from litmusfuzz.oracles.model import GUARANTEES

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.textfile import Finding
    from litmusfuzz.fuzz.executors.protocol import Config, Noise
    from litmusfuzz.fuzz.finding.judge import Judgement
    from litmusfuzz.oracles.model import Model


class Reason(StrEnum):
    """The experiment that a trial belongs to; see `fuzz.finding.experiments`."""

    CONTROL = "control"
    TRIGGER = "trigger"
    SETTINGS = "settings"
    TEST = "test"


@dataclass(frozen=True, slots=True)
class Case:
    """A minimized test, and how it shows its symptoms.

    Parameters
    ----------
    test : LitmusTest
    executor : str
    config : Config
        With the settings that it needs, as far as known.
    model : Model
        Forbids its outcomes.
    noise : Noise
    symptoms : tuple of str
        `causes.symptom` of its outcomes, the most frequent first.
    as_it_stands : bool
        True if it shows only under its names, or in its order of nodes.
    preemptions : int, optional
        Bound on preemptions within which searches decide, if all schedules are too many; None where
        nothing but all schedules does.
    """

    test: LitmusTest
    executor: str
    config: Config
    model: Model
    noise: Noise
    symptoms: tuple[str, ...]
    as_it_stands: bool = False
    preemptions: int | None = None

    @classmethod
    def of(cls, test: LitmusTest, found: Finding) -> Case:
        """The case of a finding's file.

        Raises
        ------
        UnknownExecutor
            If its executor or configuration is not here.
        """
        config = configuration(found.executor, found.configuration)
        return cls.in_configuration(test, found, config)

    @classmethod
    def if_here(cls, test: LitmusTest, found: Finding) -> Case | None:
        """The same; None if its executor or configuration is not here."""
        try:
            return cls.of(test, found)
        except UnknownExecutor:
            return None

    @classmethod
    def in_configuration(cls, test: LitmusTest, found: Finding, config: Config) -> Case:
        """The case of a finding, in a configuration."""
        model, noise = GUARANTEES[found.model], noise_from(found.noise)
        as_it_stands = bool(found.needs_names) or found.needs_order
        return cls(test, found.executor, config, model, noise, symptoms_of(found), as_it_stands)

    def beside(self, config: Config) -> Case | None:
        """The same case, to be compared with what shows in another configuration.

        If that is under control, both are searched: a cause that was seen without it is searched at
        the level of the other one, on plain threads. None if its settings exclude that.
        """
        made = executor_class(self.executor)
        if not isinstance(made, Explores) or not (level := made.level_of(config)):
            return self
        if made.level_of(self.config):
            return self
        try:
            controlled = made.controlled(self.config, level, plain_threads=True)
            return replace(self, config=controlled)
        except ValueError:
            return None

    @property
    def needs(self) -> frozenset[tuple[str, int | str | bool]]:
        """Settings that differ from the executor's plain ones."""
        return beyond_plain(self.executor, self.config)

    @property
    def is_large(self) -> bool:
        """True if its test is large; it needs that once it is minimized."""
        return is_large(self.test)

    @property
    def minimal_needs(self) -> bool:
        """True if its other settings were put back to plain, one by one."""
        return has_space(self.executor, self.config)


@dataclass(frozen=True, slots=True)
class Trial:
    """A request of `compare`: run a test until it shows a symptom, or has not often enough.

    Parameters
    ----------
    reason : Reason
    test : LitmusTest
    case : Case
        Its configuration, noise and model; not its test.
    symptoms : tuple of str
        Forbidden outcomes with one of these count.
    enough : int
        Runs that show one of them after which the trial ends.
    needed : float
        Executions after which none is an answer; infinite if no number is.
    length : int
        Executions of each run. If 0, runs are longer the more executions are needed.
    """

    reason: Reason
    test: LitmusTest
    case: Case
    symptoms: tuple[str, ...]
    enough: int
    needed: float
    length: int = 0

    def hits(self, judgement: Judgement) -> int:
        """Executions that show one of its symptoms."""
        return sum(n for outcome, n in judgement.forbidden if symptom(outcome) in self.symptoms)


@dataclass(frozen=True, slots=True)
class Tally:
    """What the executions of a trial showed; `problem` says why they ended early, if they did.

    Blocked executions count only if a trial is about these: one that did not end says nothing
    about its values. `showing` is the number of runs that showed a symptom, `length` the number of
    executions in the longest run. `searched` says which schedules these are all of, of a test under
    control; "" if they are not all of any: what such a search does not show, the test does not.
    """

    executions: int
    seen: int
    problem: str = ""
    showing: int = 0
    length: int = 0
    searched: str = ""


@dataclass(frozen=True, slots=True)
class Experiment:
    """A trial with its result.

    Parameters
    ----------
    reason : Reason
    test : LitmusTest
    configuration : str
        Where it ran.
    symptoms : tuple of str
    needed : int or None
        Executions after which none is an answer; None if no number is.
    executions, seen : int
    problem : str
        Why it ended early.
    showing : int
        Runs that showed it; 0 if nobody counted them.
    length : int
        Executions in the longest run.
    searched : str
        Which schedules these were all of; "" if there was no search, or it did not end.
    """

    reason: Reason
    test: LitmusTest
    configuration: str
    symptoms: tuple[str, ...]
    needed: int | None
    executions: int
    seen: int
    problem: str = ""
    showing: int = 0
    length: int = 0
    searched: str = ""

    def as_json(self) -> dict[str, Any]:
        """Plain data: what an event keeps of it, and what ``--json`` prints."""
        return {
            "reason": str(self.reason),
            "test": dumps(Entry(self.test)),
            "configuration": self.configuration,
            "symptoms": list(self.symptoms),
            "needed": self.needed,
            "executions": self.executions,
            "seen": self.seen,
            "runs_showing": self.showing,
            "searched": self.searched,
            "shows": self.shows,
            "problem": self.problem,
        }

    @property
    def shows(self) -> bool | None:
        """Whether the test shows the symptom there; None if that is undecided."""
        if self.seen:
            return True
        enough = bool(self.searched) or (self.needed is not None and self.executions >= self.needed)
        return False if enough and not self.problem else None


def is_large(test: LitmusTest) -> bool:
    """True if a test has more lanes than generated tests have."""
    return width(test) > LANES
