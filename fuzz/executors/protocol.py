"""What an executor is, to the rest of the program.

To add one: a module with a class that has these members, and one line in
`fuzz.executors.table` (or an entry point in the group
``litmusfuzz.executors``); then `tests/conformance` passes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

import msgspec

from corpus.outcome import Outcome

if TYPE_CHECKING:
    from corpus.graph import LitmusTest

Histogram = Mapping[Outcome, int]
"""How often each outcome was seen."""


class Refused(Exception):
    """An executor cannot run a test; the message names the feature."""


class Unavailable(Exception):
    """An executor cannot run here at all; the message says what is missing."""


@dataclass(frozen=True, slots=True)
class Config:
    """One way to run an executor, by name.

    `promises` is the model (`oracles.model`) that the executor keeps in this
    configuration; `settings` what it is made of, for the record.
    """

    name: str
    promises: str
    settings: tuple[tuple[str, int | str | bool], ...] = ()


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
    transfer_delay_us_max : int
        Longest time that a transfer between devices is held back, so that
        transfers overtake each other as well; 0 for none. An executor may
        draw a bound below it for each execution.

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
    transfer_delay_us_max: int = 0

    def __post_init__(self) -> None:
        for name, least, most in (
            ("copies", 1, 4096),
            ("steps", 1, 1 << 20),
            ("padding", 0, 1 << 20),
            ("transfer_delay_us_max", 0, 1 << 20),
        ):
            value = getattr(self, name)
            if not least <= value <= most:
                raise ValueError(f"noise.{name} must be {least} to {most}, got {value}")


class Prepared(Protocol):
    """A test, built and compiled."""

    def run(self, count: int, noise: Noise, seed: int) -> Histogram:
        """Execute the test at least `count` times, at most one step more.

        All randomness comes from `seed`. The executions are independent: each
        starts from the initial contents.
        """

    def close(self) -> None:
        """Release what it holds."""


class Executor(Protocol):
    """A system under test."""

    name: ClassVar[str]

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
            Naming the feature that it lacks.
        """


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
