"""Interface that every executor implements.

To add an executor, write a class with the members of `Executor` and name it in
`litmusfuzz.fuzz.executors.table`, or in an entry point of the group
``litmusfuzz.executors``. `tests/conformance` checks every executor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Final, Protocol, runtime_checkable

import msgspec

from litmusfuzz.corpus.outcome import Outcome
from litmusfuzz.fuzz.support import EVERYTHING, Support

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.schedule import Decision

__all__ = [
    "EVERYTHING",
    "Checkable",
    "Choice",
    "ChosenClusters",
    "Clustered",
    "Clusters",
    "Config",
    "Configurable",
    "Counts",
    "Damaging",
    "Diverged",
    "EventKey",
    "Executor",
    "Explorable",
    "Explored",
    "Explores",
    "Forceable",
    "ForkAfter",
    "Forkable",
    "Histogram",
    "Mutant",
    "Noise",
    "Packing",
    "Prepared",
    "PreparedPack",
    "Refused",
    "Schedulable",
    "Search",
    "Support",
    "Unavailable",
    "noise_from",
    "noise_named",
]

Histogram = Mapping[Outcome, int]
"""Number of executions by outcome."""


class Refused(Exception):
    """The executor does not take this test; the message names what it lacks."""


class TooLarge(Refused):
    """A test has used up the memory. What is left of its process can run no other test."""


class Diverged(ValueError):
    """The executor cannot follow a recorded schedule or a total order; says how far it came."""


class Unavailable(Exception):
    """The executor cannot run on this machine; the message names what is missing."""


@dataclass(frozen=True, slots=True)
class Config:
    """A configuration: a named way to run an executor.

    Parameters
    ----------
    name : str
    guarantees : str
        Name of the memory model (`litmusfuzz.oracles.model`) that the executor keeps in
        this configuration.
    settings : tuple of (str, int or str or bool)
        Settings that the name stands for, kept in findings.
    environment : tuple of (str, str)
        Additional environment variables of the worker process, for settings that a
        framework reads only when it is imported.
    """

    name: str
    guarantees: str
    settings: tuple[tuple[str, int | str | bool], ...] = ()
    environment: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class ForkAfter:
    """What a process imports before workers are forked from it.

    Parameters
    ----------
    modules : tuple of str
        Modules that need long to import: those of a framework, and the executor's own. Importing
        them must start no threads; otherwise workers are spawned.
    variables : tuple of str
        Environment variables that the modules read when they are imported, as shell patterns:
        ``JAX_*``. Workers with other values are forked from another process. All other
        variables must be read later.
    """

    modules: tuple[str, ...]
    variables: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Noise:
    """Disturbances of the executions of a test, to see more of its outcomes.

    Noise never changes the allowed set. An executor ignores the settings that it has no use
    for; its `run` names these. Which ready op runs next is up to the engine, and thus to the
    configuration.

    Parameters
    ----------
    copies : int
        Renamed copies of the test that run concurrently.
    steps : int
        Runs before the executor builds everything anew, session included.
    shuffle : bool
        Create the nodes of each copy in another random order.
    padding : int
        Elements, at most, of the pure computation that is inserted before a resource op; 0
        for none.
    delay_us_max : int
        Longest random wait before an event; 0 for none.
    transfer_delay_us_max : int
        Longest random delay of a transfer between devices, so that transfers overtake each
        other; 0 for none. An executor may choose a lower bound for each execution.
    yield_percent : int
        Percentage of events before which the thread yields.
    barrier : bool
        Hold every event back until all events that can come first are scheduled.
    lanes : int
        Lanes added to values without lanes, so that torn accesses show; 1 for none. A test
        with queues, MatMul, or lanes of its own stays as it is.
    pinned : bool
        Pin each thread to a core.
    together : bool
        Let the first events of each copy wait shortly for each other: where each has a
        thread, they then race within nanoseconds.

    Notes
    -----
    The defaults show the most outcomes per second on two cores. The time of a build grows
    faster than linearly with copies. More than 96 steps gain nothing, as padding and order
    are fixed by the build.
    """

    copies: int = 32
    steps: int = 96
    shuffle: bool = True
    padding: int = 1024
    delay_us_max: int = 0
    transfer_delay_us_max: int = 0
    yield_percent: int = 0
    barrier: bool = False
    lanes: int = 1
    pinned: bool = False
    together: bool = False

    def __post_init__(self) -> None:
        for name, least, most in (
            ("copies", 1, 4096),
            ("steps", 1, 1 << 20),
            ("padding", 0, 1 << 20),
            ("delay_us_max", 0, 10_000),
            ("yield_percent", 0, 100),
            ("lanes", 1, 1 << 16),
            ("transfer_delay_us_max", 0, 1 << 20),
        ):
            value = getattr(self, name)
            if not least <= value <= most:
                raise ValueError(f"noise.{name} must be {least} to {most}, got {value}")

    @property
    def disturbs(self) -> bool:
        """True if threads are disturbed while they run events."""
        return bool(
            self.barrier or self.pinned or self.together or self.delay_us_max or self.yield_percent
        )


class Prepared(Protocol):
    """A test that an executor has built, ready to run."""

    def run(self, count: int, noise: Noise, seed: int) -> Histogram:
        """Execute the test at least `count` times, and at most one step more.

        Where executions are costly, an executor may do fewer, at least one: the histogram
        has the number. All randomness comes from `seed`. Executions are independent: each
        starts from the initial contents.
        """

    def close(self) -> None:
        """Release all resources of the system under test."""


Choice = tuple[int, int, int]
"""One choice of a controlled execution: index of the chosen event, number of events that
could have come next, and a digest of these."""


@dataclass(frozen=True, slots=True)
class EventKey:
    """An event, identified by names; an oracle's total order is a sequence of these.

    Parameters
    ----------
    run : str
        "" if the test has only one run.
    frame : str
        The loop iterations around the node, outermost first: ``loop[2]/``.
    node : str
    access : str
        "R" or "W" for the halves of a split update, "lock" or "unlock"; any other text for
        a node with a single event.
    resource : str
        The first resource of the node.
    part : int
        Element of an op on several elements.
    """

    run: str
    frame: str
    node: str
    access: str
    resource: str
    part: int = 0


@runtime_checkable
class Forceable(Prepared, Protocol):
    """Optional: a prepared test that can follow a given total order."""

    def force(self, order: Sequence[EventKey], timeout_s: float) -> Outcome:
        """Execute events in exactly that total order; the outcome.

        Raises
        ------
        Diverged
            If an event cannot happen at its place in the order, or events are left when
            the order ends.
        TimeoutError
            If it takes longer than `timeout_s`; names that time.
        """


@runtime_checkable
class Schedulable(Forceable, Protocol):
    """Optional: a prepared test that runs one event at a time, as a scheduler chooses."""

    def record(self, seed: int) -> tuple[Outcome, Sequence[Choice]]:
        """Execute once, controlled; the outcome, and the choices that lead to it.

        The same seed gives the same execution.
        """

    def replay(self, choices: Sequence[Choice]) -> Outcome:
        """Repeat the execution that those choices lead to; its outcome.

        Raises
        ------
        Diverged
            If other events can come next than when the choices were recorded.
        """


@dataclass(frozen=True, slots=True)
class Explored:
    """What an exhaustive search of schedules has found.

    Parameters
    ----------
    histogram : mapping of Outcome to int
        Number of schedules with each outcome. Without a bound no two of them are equivalent.
    schedules : mapping of Outcome to tuple of Decision
        The first one with each outcome.
    executions : int
        Executions begun: the schedules, and those that were abandoned because they would have
        repeated one.
    complete : bool
        True if these are all schedules, within the bound if there was one. False also where the
        outcome of one could not be read.
    whole : bool
        True if, moreover, no schedule is beyond the bound.
    """

    histogram: Histogram
    schedules: Mapping[Outcome, tuple[Decision, ...]]
    executions: int
    complete: bool
    whole: bool


class Search(Protocol):
    """A search that stops and goes on."""

    def go_on(self, executions: int) -> Explored:
        """Begin so many more executions, at most; all that it has found so far.

        Raises
        ------
        Diverged
            If other events are enabled than after the same choices before.
        """


@runtime_checkable
class Explorable(Prepared, Protocol):
    """Optional: a prepared test whose schedules can all be executed, and followed by names."""

    def search(self, preemptions: int | None = None) -> Search:
        """An exhaustive search that has not begun.

        Parameters
        ----------
        preemptions : int, optional
            Only schedules with so few switches away from an op that could go on; None for all.
        """

    def sample(self, scheduler: str, executions: int, seed: int) -> Explored:
        """Execute so many schedules that one of the executor's `schedulers` chooses.

        The same seed gives the same executions. They are not all schedules, as far as is known.
        """

    def follow(self, schedule: Sequence[Decision]) -> Outcome:
        """The outcome of a schedule.

        Raises
        ------
        Diverged
            Where an execution leaves it: the event that is not enabled, and those that are.
        """


LEVELS: Final = ("ops", "locks", "pages", "touches")
"""Levels of control, the coarsest first: the values of the setting `control` (docs/control.md)."""


@runtime_checkable
class Explores(Protocol):
    """Optional: an executor with configurations whose tests are `Explorable`.

    Attributes
    ----------
    schedulers : tuple of str
        Names of those that choose schedules: none is the best for all tests.
    """

    schedulers: ClassVar[tuple[str, ...]]
    name: ClassVar[str]

    @classmethod
    def switches_inside(cls, config: Config) -> bool | None:
        """True if ops stop inside in this configuration; None if its tests are not explorable.

        Cheap: imports no framework.
        """

    @classmethod
    def level_of(cls, config: Config) -> str:
        """Its level of control, one of `LEVELS`; "" without control."""

    @classmethod
    def controlled(cls, config: Config, level: str, *, plain_threads: bool = False) -> Config:
        """The same configuration under control, at one of `LEVELS`.

        Settings that only say which threads run ops exclude control, since none of these threads
        takes part; with `plain_threads` they are put back to plain first. Cheap: imports no
        framework.

        Raises
        ------
        ValueError
            With what excludes it, in one line.
        """


@dataclass(frozen=True, slots=True)
class ChosenClusters:
    """Clusters that the system under test chose for a test, as far as they could be read.

    Parameters
    ----------
    clusters : tuple of tuple of str
        Members of each cluster, in SSA order.
    lost : tuple of (str, str)
        Pairs of nodes that the test orders and the clustered graph does not.
    problem : str
        Why the clusters are not known: one of a few sentences without names, so that they
        can be counted. Then there are no others fields.
    in_functions : bool
        True if `tf.function`s built the graph: it has the edges of automatic control dependencies
        besides those of the test.
    """

    clusters: tuple[tuple[str, ...], ...]
    lost: tuple[tuple[str, str], ...] = ()
    problem: str = ""
    in_functions: bool = False


@runtime_checkable
class Clustered(Prepared, Protocol):
    """Optional: a prepared test in which the system under test chose clusters itself."""

    def clusters(self) -> Sequence[ChosenClusters]:
        """Clusters that it chooses for a test without noise.

        Raises
        ------
        Refused
            If it chooses no clusters in this configuration.
        """

    def clusters_run(self) -> Sequence[ChosenClusters]:
        """The distinct clusterings of the graphs that the last `run` executed."""


class Executor(Protocol):
    """System under test: it runs litmus tests and reports their outcomes."""

    name: ClassVar[str]
    support: ClassVar[Support]
    """Ops, dtypes, shapes and features of the tests that it takes. Campaigns and Hypothesis
    strategies generate tests within it; `prepare` has the last word on each test."""

    @classmethod
    def configurations(cls) -> tuple[Config, ...]:
        """All configurations, the default first. Cheap: imports no framework."""

    @classmethod
    def versions(cls) -> Mapping[str, str]:
        """Versions of the system under test, kept in findings; may import a framework.

        Raises
        ------
        Unavailable
            If a framework is missing.
        """

    def prepare(self, test: LitmusTest, config: Config) -> Prepared:
        """Build the test.

        Raises
        ------
        Refused
            Naming the first feature, op, dtype or shape that the executor does not take:
            `Support.lacking` lists those beyond its support.
        """


@runtime_checkable
class Forkable(Protocol):
    """Optional: an executor whose workers are forked, in milliseconds.

    Its workers are forked from a process that has imported these modules and done nothing
    else. The workers of other executors are spawned: each starts an interpreter.
    """

    fork_after: ClassVar[ForkAfter]


@runtime_checkable
class Damaging(Protocol):
    """Optional: an executor with ops that are known to damage the memory of its process.

    Tests with such an op run in a process of their own, so that no other test shows the
    damage.
    """

    damaging_ops: ClassVar[frozenset[str]]


class PreparedPack(Protocol):
    """Several tests that an executor has built, ready to run together."""

    def run(self, count: int, noise: Noise, seeds: Sequence[int]) -> Sequence[Histogram]:
        """Execute each test as `Prepared.run` does; `seeds` has one seed for each."""


@runtime_checkable
class Packing(Protocol):
    """Optional: an executor that runs several small tests together, faster than one by one.

    No test of a pack may race with another, show fewer outcomes than alone, or end the pack.
    """

    @classmethod
    def pack_size(cls, config: Config, noise: Noise) -> int:
        """Tests of a pack, at most; 1 for no packs with this configuration and noise."""

    @classmethod
    def may_pack(cls, test: LitmusTest, config: Config) -> bool:
        """True if a pack may have this test."""

    def prepare_pack(self, tests: Sequence[LitmusTest], config: Config) -> PreparedPack:
        """Build several tests.

        Raises
        ------
        Refused
            If one of them cannot run in a pack.
        """


@runtime_checkable
class Configurable(Protocol):
    """Optional: an executor with more configurations than it lists."""

    @classmethod
    def configured(cls, name: str) -> Config:
        """The configuration whose settings `name` lists.

        Raises
        ------
        ValueError
            With a message of one line.
        """


@runtime_checkable
class Checkable(Protocol):
    """Optional: an executor with configurations that need something of the machine."""

    def check(self, config: Config) -> None:
        """Check that this configuration can run on this machine.

        Raises
        ------
        Unavailable
            Naming what is missing.
        """


@runtime_checkable
class Mutant(Protocol):
    """Optional: an executor that is wrong on purpose, with a control."""

    @classmethod
    def control(cls) -> type[Executor]:
        """The same executor without its defect: all its outcomes are allowed."""


@runtime_checkable
class KnowsReach(Protocol):
    """Optional: a mutant that knows which tests it executes just as its control does."""

    @classmethod
    def reaches(cls, test: LitmusTest, config: Config) -> bool:
        """False only if no execution of the test in this configuration has the defect."""


@runtime_checkable
class Counts(Protocol):
    """Optional: an executor with counters."""

    def counters(self) -> Mapping[str, float]:
        """Counts since the executor was created, by name.

        Summaries add them up over the executor's processes and print them, except for a
        compiler's: ``compiled`` counts compilations, ``found`` hits in its cache, and
        ``seconds`` the time spent on compiling.
        """


@runtime_checkable
class Drives(Protocol):
    """Optional: a prepared test that may run on devices with a driver of their own."""

    def drivers(self) -> Mapping[str, str]:
        """By device, its name, platform, and version of the driver, each in one line."""


@runtime_checkable
class Clusters(Protocol):
    """Optional: an executor that compiles clusters of a test."""

    @classmethod
    def clustered(cls, test: LitmusTest, config: Config) -> LitmusTest:
        """The test with the clusters that the executor chooses; `test` if that has clusters.

        Cheap: imports no framework.
        """


def noise_named(text: str, base: Noise) -> Noise:
    """`base`, with the settings in ``delay_us_max=20,pinned,shuffle=false``.

    Raises
    ------
    ValueError
        Naming the setting that is unknown or out of range.
    """
    fields: dict[str, object] = asdict(base)
    for part in text.split(","):
        name, equals, value = (each.strip() for each in part.partition("="))
        if name not in fields:
            raise ValueError(f"no noise {name!r}; there are {', '.join(fields)}")
        if not equals or value in ("true", "false"):
            fields[name] = value != "false"
        elif value.isascii() and value.isdigit() and len(value) < 10:
            fields[name] = int(value)
        else:
            raise ValueError(f"noise {name} is a number, true or false, not {value!r}")
    return noise_from(fields)


@lru_cache(1 << 8)  # an event of each run has it
def noise_text(noise: Noise) -> str:
    """The fields that differ from the default, in the notation of ``--noise``."""
    default = asdict(Noise())
    parts = [
        f"{name}={str(value).lower()}"
        for name, value in asdict(noise).items()
        if value != default[name]
    ]
    return ",".join(parts) or "default"


def noise_from(fields: Mapping[str, object]) -> Noise:
    """A `Noise` from what a file or a message holds.

    Raises
    ------
    ValueError
        Naming the field that is unknown or has another type.
    """
    unknown = set(fields) - set(Noise.__dataclass_fields__)
    if unknown:
        raise ValueError(f"noise has no field {sorted(unknown)[0]!r}")
    return msgspec.convert(dict(fields), Noise)
