"""The candidates of a self-test: a mutant, or its control, the tests that it runs, and how.

Mutants with the same support share one suite; a mutant runs each test in the run setups of the
executor that it was made from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.campaign.job import Job
from litmusfuzz.fuzz.campaign.suite import RUN_SETUPS, RunSetup, Suite
from litmusfuzz.fuzz.executors.configuration_generator import points
from litmusfuzz.fuzz.executors.configuration_space import HasConfigurationSpace
from litmusfuzz.fuzz.executors.table import (
    CANARY,
    CONTROL,
    EXECUTORS,
    MUTANT,
    base_executor,
    executor_class,
)
from litmusfuzz.reports.events import Kill

if TYPE_CHECKING:
    from collections.abc import Iterator

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.textfile import Entry, Setting
    from litmusfuzz.fuzz.executors import messages
    from litmusfuzz.fuzz.executors.configuration_space import ConfigurationSpace
    from litmusfuzz.fuzz.executors.protocol import Config, Executor
    from litmusfuzz.fuzz.support import Support


def mutants() -> tuple[str, ...]:
    """Names of all mutants."""
    return tuple(name for name in EXECUTORS if name.startswith(MUTANT))


def controls() -> tuple[str, ...]:
    """Names of all mutants' controls. The canary has none: it runs nothing."""
    return tuple(CONTROL + name.removeprefix(MUTANT) for name in mutants() if name != CANARY)


@dataclass(slots=True, eq=False)
class MutantCandidate:
    """A mutant, or its control, and its results so far."""

    name: str
    origin: str
    """The executor that the mutant was made from."""
    suite: Suite
    setups: tuple[tuple[RunSetup, Config], ...]
    tests: int = 0
    seconds: float = 0.0
    running: bool = False
    killed_by: tuple[str, str, str] | None = None
    """Family of the test, name of the setup, and name of the test."""
    unavailable: str = ""
    left_out: str = ""
    """Reason why neither it nor its control can run here: a device that is missing."""
    shown: Entry | None = None
    """The last test that showed a forbidden outcome, with the outcome."""

    @property
    def made(self) -> type[Executor]:
        """Its executor."""
        return executor_class(self.name)

    @property
    def control(self) -> str:
        """Name of its control."""
        return CONTROL + self.name.partition("/")[2]

    @property
    def alive(self) -> bool:
        """True if it is not killed and can run."""
        return self.killed_by is None and not self.unavailable and not self.left_out

    def kill(self) -> Kill:
        """The result as it is reported."""
        seconds = None if self.killed_by is None else round(self.seconds, 3)
        return Kill(self.name, self.origin, seconds, self.tests, *(self.killed_by or ()))


@dataclass(frozen=True, slots=True)
class MutantTrial:
    """A test for a candidate in one of its run setups."""

    family: str
    test: LitmusTest
    setup: RunSetup
    config: Config
    seed: int

    def request(self, executor: str, number: int) -> messages.Request:
        """The message to a worker; each number gives another seed."""
        setup, seed = self.setup, self.seed + number
        job = Job(self.test, setup.count, setup.noise, seed, executor=executor)
        return job.request(self.config)


class MutantCandidates:
    """Makes candidates, which share suites and generated configurations; all depend on the seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._suites: dict[tuple[str, Support], Suite] = {}
        self._generated: dict[str, tuple[list[Config], Iterator[Config]]] = {}
        """By the executor that mutants were made from, configurations of its space."""

    def candidate(self, name: str) -> MutantCandidate:
        """The candidate of that name."""
        made = executor_class(name)
        made_from = base_executor(name)
        first, *_ = configs = made.configurations()
        by_name = {config.name: config for config in configs} | {"": first}
        setups = RUN_SETUPS[made_from]
        engines = {"controlled", "opencl_gated"}
        if made_from == "native" and not engines & by_name.keys():  # a mutant without engines
            setups = tuple(replace(setups[0], config=config.name) for config in configs)
        key = (made_from, made.support)
        if key not in self._suites:
            self._suites[key] = Suite(made.support, self.seed, sparse=made_from != "tf")
        there = tuple(
            (each, by_name[each.config])
            for each in setups
            if each.config in by_name and (not each.settings or _has_settings(made))
        )
        return MutantCandidate(name, made_from, self._suites[key], there)

    def config(self, candidate: MutantCandidate, setup: RunSetup, config: Config) -> Config:
        """The configuration of a setup in which the candidate's present test runs."""
        if not setup.settings:
            return config
        made = candidate.made
        assert isinstance(made, HasConfigurationSpace)
        if candidate.origin not in self._generated:
            space = _space_of_sessions(made, config)
            found = points(space, f"{self.seed}/selftest/{candidate.origin}")
            self._generated[candidate.origin] = [], map(made.configuration_at, found)
        listed, more = self._generated[candidate.origin]
        number = (candidate.tests - 1) // setup.settings
        while number >= len(listed):
            listed.append(next(more))
        return listed[number]


def _has_settings(made: type[Executor]) -> bool:
    """True if an executor runs in the points of a space; most mutants run in one configuration."""
    return isinstance(made, HasConfigurationSpace) and len(made.configurations()) > 1


def _space_of_sessions(made: type[HasConfigurationSpace], plain: Config) -> ConfigurationSpace:
    """The space of an executor without the settings of a process.

    A mutant would need a process for each value of these.
    """

    def of_the_process(setting: str, value: Setting) -> bool:
        point = {**made.space.plain, setting: value}
        if made.space.problem(point):
            return False
        return made.configuration_at(point).environment != plain.environment

    values = {
        setting: all_of[:1] if any(of_the_process(setting, each) for each in all_of) else all_of
        for setting, all_of in made.space.values.items()
    }
    return replace(made.space, values=values)
