"""What an executor is, to the rest of the program.

To add one: a module with a class that has these members, and one line in
`litmusfuzz.fuzz.executors.table` (or an entry point in the group
``litmusfuzz.executors``); then `tests/conformance` passes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

import msgspec

from litmusfuzz.corpus.outcome import Outcome
from litmusfuzz.fuzz.support import EVERYTHING, Support

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest

__all__ = [
    "EVERYTHING",
    "Choice",
    "Clustered",
    "Clusters",
    "Config",
    "Configurable",
    "Counts",
    "Diverged",
    "EventKey",
    "Executor",
    "Forceable",
    "Histogram",
    "Mutant",
    "Noise",
    "Prepared",
    "Refused",
    "Schedulable",
    "Support",
    "Unavailable",
    "noise_from",
    "noise_named",
]

Histogram = Mapping[Outcome, int]
"""How often each outcome was seen."""


class Refused(Exception):
    """An executor cannot run a test; the message names the feature."""


class Diverged(ValueError):
    """A record or total order that the executor cannot follow; says how far it came."""


class Unavailable(Exception):
    """An executor cannot run here at all; the message says what is missing."""


@dataclass(frozen=True, slots=True)
class Config:
    """One way to run an executor, by name.

    `guarantees` is the model (`oracles.model`) that the executor keeps in this
    configuration; `settings` what it is made of, for the record; `environment`
    the variables that its worker process has beside our own: what a framework
    reads only once, when it is imported.
    """

    name: str
    guarantees: str
    settings: tuple[tuple[str, int | str | bool], ...] = ()
    environment: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Noise:
    """What is varied between executions of one test, to see more of its outcomes.

    None of it changes the allowed set.

    Parameters
    ----------
    copies : int
        Renamed copies of the test that run side by side.
    steps : int
        Runs before everything is built afresh, session included.
    shuffle : bool
        Whether each copy's nodes are created in an order of its own.
    padding : int
        Largest number of elements of pure work put before a resource op;
        0 for none.
    delay_us_max : int
        Longest random wait before an event; 0 for none.
    transfer_delay_us_max : int
        Longest time that a transfer between devices is held back, so that
        transfers overtake each other as well; 0 for none. An executor may
        draw a bound below it for each execution.
    yield_percent : int
        How many events in a hundred have their thread let others go first.
    barrier : bool
        Whether no event happens before all that can come first are scheduled.
    lanes : int
        Lanes of what has none, so that a torn access shows; 1 for none. Not of a
        test with queues, MatMul, or lanes of its own.
    pinned : bool
        Whether each thread stays on one core.
    together : bool
        Whether the first events of each copy wait for each other, a short time:
        where each has a thread, they then race within nanoseconds.

    An executor takes no notice of those that it has no use for, and says which
    in its `run`. In which order ready ops are taken is the engine's matter: a
    configuration.

    Notes
    -----
    The defaults are what shows most per second on two cores: a build grows
    faster than linearly with copies, and 32 copies keep it at 25 ms; beyond 96
    steps nothing is gained, since padding and order are those of the build.
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
        """Whether threads are to be disturbed at their work."""
        return bool(
            self.barrier or self.pinned or self.together or self.delay_us_max or self.yield_percent
        )


class Prepared(Protocol):
    """A test, built and compiled."""

    def run(self, count: int, noise: Noise, seed: int) -> Histogram:
        """Execute the test at least `count` times, at most one step more.

        Or fewer, at least once, where executions are costly; the histogram tells.
        All randomness comes from `seed`. The executions are independent: each
        starts from the initial contents.
        """

    def close(self) -> None:
        """Release what it holds."""


Choice = tuple[int, int, int]
"""Of a controlled execution: index of the event chosen, how many could have come
next, and a digest of which."""


@dataclass(frozen=True, slots=True)
class EventKey:
    """An event by names: what an oracle's total order is made of.

    Parameters
    ----------
    run : str
        "" if there is only one.
    frame : str
        The loop iterations around the node, outermost first: ``loop[2]/``.
    node : str
    access : str
        "R" and "W" for the halves of an update in parts, "lock" and "unlock";
        anything else for the only event of its kind.
    resource : str
        The first that it touches.
    part : int
        Which element of a many-op it is for.
    """

    run: str
    frame: str
    node: str
    access: str
    resource: str
    part: int = 0


@runtime_checkable
class Forceable(Prepared, Protocol):
    """A prepared test that can be made to follow one total order. Optional."""

    def force(self, order: Sequence[EventKey], timeout_s: float) -> Outcome:
        """The outcome of exactly that total order.

        Raises
        ------
        Diverged
            If an event cannot come where the order has it, or more can come
            when it ends.
        TimeoutError
            If that takes longer; names the time.
        """


@runtime_checkable
class Schedulable(Forceable, Protocol):
    """A prepared test that can be executed one event at a time, as a scheduler chooses.

    Optional: an executor that cannot does not have these members.
    """

    def record(self, seed: int) -> tuple[Outcome, Sequence[Choice]]:
        """One controlled execution, with the choices that lead to it.

        The same seed gives the same execution.
        """

    def replay(self, choices: Sequence[Choice]) -> Outcome:
        """The execution that those choices lead to.

        Raises
        ------
        Diverged
            If other events could come next than when they were recorded.
        """


@runtime_checkable
class Clustered(Prepared, Protocol):
    """A prepared test of which the system under test made clusters itself. Optional."""

    def clusters(self) -> Mapping[str, Sequence[str]]:
        """Members of each cluster that it chose, in SSA order; none if it made none.

        Raises
        ------
        Refused
            If it makes no clusters in this configuration, or some that the
            semantics has no words for.
        """


class Executor(Protocol):
    """A system under test."""

    name: ClassVar[str]
    support: ClassVar[Support]
    """The ops, dtypes, shapes and features that it takes: campaigns and Hypothesis
    strategies generate tests within it. Whether it takes a single test, `prepare` decides.
    """

    @classmethod
    def configurations(cls) -> tuple[Config, ...]:
        """The first is the default. Cheap: imports no framework."""

    @classmethod
    def versions(cls) -> Mapping[str, str]:
        """Of what is tested, for the record; may import it.

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
            Naming the first feature, op, dtype or shape that it does not take:
            `Support.lacking` lists those beyond its support.
        """


@runtime_checkable
class Configurable(Protocol):
    """An executor with more configurations than it lists. Optional."""

    @classmethod
    def configured(cls, name: str) -> Config:
        """The configuration that `name` spells out.

        Raises
        ------
        ValueError
            In one line.
        """

    def check(self, config: Config) -> None:
        """Whether it can run here.

        Raises
        ------
        Unavailable
            Saying what is missing.
        """


@runtime_checkable
class Mutant(Protocol):
    """An executor that is wrong on purpose, and can be had without its defect. Optional."""

    @classmethod
    def control(cls) -> type[Executor]:
        """The same with its defect switched off: whatever it shows is allowed."""


@runtime_checkable
class Counts(Protocol):
    """An executor that counts what it does. Optional."""

    def counters(self) -> Mapping[str, float]:
        """What it did since it was made, by name.

        Summed over all its processes, and shown as they are, but for those of a
        compiler: ``compiled``, how often it compiled; ``found``, how often it had
        what was asked for; ``seconds``, spent on compiling.
        """


@runtime_checkable
class Clusters(Protocol):
    """An executor that compiles parts of a test as one. Optional."""

    @classmethod
    def clustered(cls, test: LitmusTest, config: Config) -> LitmusTest:
        """The test with the clusters that it runs it with; `test` if that has its own.

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
