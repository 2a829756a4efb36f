"""Bounds on preemptions for the searches of all schedules of a test, and levels of control.

A *preemption* is a switch away from an op that could go on. Where ops stop inside, schedules with
few of them come first.
"""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from litmusfuzz.fuzz.executors.protocol import LEVELS, Explores
from litmusfuzz.fuzz.executors.table import executor_class

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from litmusfuzz.fuzz.executors.protocol import Config

FEW: Final = (0, 1, 2)
"""Bounds on preemptions, before none: most defects that a switch shows need one or two."""
PORTION: Final = 256
"""Executions that a worker begins before it says how far it is."""


def switches_inside(executor: str, config: Config) -> bool | None:
    """True if ops stop inside; None if the tests of this configuration are not explorable."""
    made = executor_class(executor)
    return made.switches_inside(config) if isinstance(made, Explores) else None


@lru_cache(1 << 10)  # asked for each candidate that waits
def at_levels(executor: str, config: Config) -> Mapping[str, Config]:
    """The configuration under control, on plain threads, by level; {} if it excludes that.

    The coarsest level comes first.
    """
    made = executor_class(executor)
    found: dict[str, Config] = {}
    if isinstance(made, Explores):
        for level in LEVELS:
            with suppress(ValueError):  # with what excludes it
                found[level] = made.controlled(config, level, plain_threads=True)
    return MappingProxyType(found)


def coarser(executor: str, config: Config) -> tuple[Config, ...]:
    """A configuration under control at coarser levels, the coarsest first."""
    made = executor_class(executor)
    if not isinstance(made, Explores) or not (own := made.level_of(config)):
        return ()
    before = LEVELS[: LEVELS.index(own)]
    return tuple(at for level, at in at_levels(executor, config).items() if level in before)


def schedulers(executor: str) -> tuple[str, ...]:
    """Names of the schedulers of configurations under control."""
    made = executor_class(executor)
    return made.schedulers if isinstance(made, Explores) else ()


def bounds(executor: str, config: Config, preemptions: int | None = None) -> Sequence[int | None]:
    """The bounds of the searches, one after another; up to `preemptions` if that is given."""
    return bounds_at(preemptions, inside=bool(switches_inside(executor, config)))


def bounds_at(preemptions: int | None = None, *, inside: bool) -> Sequence[int | None]:
    """The same, by whether ops stop inside."""
    if not inside:
        return (None,)  # no op is interrupted: each schedule has none
    if preemptions is None:
        return (*FEW, None)
    return tuple(range(preemptions + 1))
