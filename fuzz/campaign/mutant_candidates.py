"""The candidates of a self-test: a mutant, or its control, the tests that it runs, and how.

Mutants with the same support share one suite. A mutant runs each test in the run setups of its
*base*, the executor that it was made from (`base_executor`). In some setups it runs in generated
configurations: then all mutants of a base meet the same ones, one after another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

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

_OF_ENGINES: Final = frozenset(("controlled", "opencl_gated"))
"""Configurations of executors that are made from `native` and run on its engines: each has one."""


def mutants() -> tuple[str, ...]:
    """Names of all mutants."""
    return tuple(name for name in EXECUTORS if name.startswith(MUTANT))


def controls() -> tuple[str, ...]:
    """Names of all mutants' controls. The canary has none: it runs nothing."""
    return tuple(_control(name) for name in mutants() if name != CANARY)


def _control(name: str) -> str:
    """Name of a mutant's control; that of a control is its own."""
    return CONTROL + name.partition("/")[2]


@dataclass(slots=True, eq=False)
class MutantCandidate:
    """A mutant, or its control, and its results so far."""

    name: str
    origin: str
    """Name of its base."""
    suite: Suite
    setups: tuple[tuple[RunSetup, Config], ...]
    """The run setups that it can run in, each with its configuration (but see `config`)."""
    tests: int = 0
    """Tests of the suite that it has begun."""
    seconds: float = 0.0
    """Time that it has had."""
    running: bool = False
    """True while a task of the self-test runs it: no other task may."""
    killed_by: tuple[str, str, str] | None = None
    """Family of the test, name of the setup, and name of the test."""
    unavailable: str = ""
    """Reason why it cannot run; "" while it can."""
    left_out: str = ""
    """Reason why neither it nor its control can run here: a device that is missing."""
    shown: Entry | None = None
    """The last test that showed a forbidden outcome, with the outcome."""

    @property
    def made(self) -> type[Executor]:
        """Its class of executors."""
        return executor_class(self.name)

    @property
    def control(self) -> str:
        """Name of its control. The canary has none, and is not to be asked."""
        return _control(self.name)

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
        self._generated: dict[str, _Generated] = {}
        """Generated configurations by name of the base."""

    def candidate(self, name: str) -> MutantCandidate:
        """The candidate of that name."""
        executor, base = executor_class(name), base_executor(name)
        key = (base, executor.support)
        if key not in self._suites:
            # TensorFlow itself tears sparse writes: they would kill its mutants and controls alike.
            self._suites[key] = Suite(executor.support, self.seed, sparse=base != "tf")
        return MutantCandidate(name, base, self._suites[key], _setups(executor, base))

    def config(self, candidate: MutantCandidate, setup: RunSetup, config: Config) -> Config:
        """The configuration of a setup in which the candidate's present test runs.

        Parameters
        ----------
        candidate : MutantCandidate
            Its `tests` counts the present test already.
        setup : RunSetup
            With `RunSetup.settings`, so many tests run in one generated configuration.
        config : Config
            That of `setup` in `MutantCandidate.setups`: the answer if it generates none.
        """
        if not setup.settings:
            return config
        if candidate.origin not in self._generated:
            executor = candidate.made
            assert isinstance(executor, HasConfigurationSpace)
            # Whichever mutant asks first: all inherit the space of their base.
            space = _space_of_sessions(executor, config)
            generated = points(space, f"{self.seed}/selftest/{candidate.origin}")
            self._generated[candidate.origin] = _Generated(
                map(executor.configuration_at, generated)
            )
        return self._generated[candidate.origin][(candidate.tests - 1) // setup.settings]


class _Generated:
    """Endless generated configurations by number: each is generated once, when it is asked for."""

    def __init__(self, endless: Iterator[Config]) -> None:
        self._endless = endless
        self._first: list[Config] = []

    def __getitem__(self, number: int) -> Config:
        while number >= len(self._first):
            self._first.append(next(self._endless))
        return self._first[number]


def _setups(executor: type[Executor], base: str) -> tuple[tuple[RunSetup, Config], ...]:
    """The run setups of its base that an executor can run in, each with its configuration."""
    configurations = executor.configurations()
    by_name = {config.name: config for config in configurations}
    setups = RUN_SETUPS[base]
    if base == "native" and by_name.keys().isdisjoint(_OF_ENGINES):
        # It has no engines, and so nothing that the setups differ in but configurations of its own.
        setups = tuple(replace(setups[0], config=name) for name in by_name)
    by_name[""] = configurations[0]  # a setup that names no configuration runs in the first one
    return tuple(
        (setup, by_name[setup.config])
        for setup in setups
        if setup.config in by_name and (not setup.settings or _runs_anywhere_in_its_space(executor))
    )


def _runs_anywhere_in_its_space(executor: type[Executor]) -> bool:
    """True if an executor runs in the points of a space; most mutants run in one configuration.

    The protocol has only what a class has, so a class can be asked.
    """
    return isinstance(executor, HasConfigurationSpace) and len(executor.configurations()) > 1


def _space_of_sessions(executor: type[HasConfigurationSpace], config: Config) -> ConfigurationSpace:
    """The space of an executor, without values that need a process of their own.

    A setting that has a value of another environment than `config` is kept at its plain value: a
    self-test would need a process for each mutant and value.
    """
    plain = executor.space.plain

    def needs_a_process(setting: str, value: Setting) -> bool:
        point = {**plain, setting: value}
        if executor.space.problem(point):  # no configuration has it without another setting
            return False
        return executor.configuration_at(point).environment != config.environment

    values = {
        setting: (plain[setting],)
        if any(needs_a_process(setting, value) for value in values)
        else values
        for setting, values in executor.space.values.items()
    }
    return replace(executor.space, values=values)
