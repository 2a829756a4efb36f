"""Whose turn it is: an executor's configurations, each with its share of the time.

A graph runs in one of them, its *profile*. Another environment is another
process, which imports its framework again (3 to 4 s for TensorFlow); so the
profiles of one environment take turns graph by graph, and the environments for
some seconds each. Whoever has had least is next: a fast profile gets more
graphs, not more time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from litmusfuzz.fuzz.executors.protocol import Config
    from litmusfuzz.oracles.model import Model
    from litmusfuzz.reports.records import ExecutorState

MAX_TURN: Final = 25.0
"""Seconds, or graphs, that an environment has in a row: what it costs to start is then
an eighth of it."""
MIN_TURN: Final = 5.0
"""In a campaign too short for all environments."""
LEAST_S: Final = 0.05
"""What a graph costs at least, drawing it included: who refuses all gets no more of
them than others."""


@dataclass(slots=True, eq=False)
class SampledConfiguration:
    """A configuration of an executor, and what it has had.

    `spent` is seconds, or graphs where they are counted, over `ran` graphs;
    `waiting` are those that it has still to run. `seconds_before` is what one took in a campaign
    with which this goes on.
    """

    config: Config
    model: Model
    state: ExecutorState
    schedulable: bool = True  # until it says that it is not
    spent: float = 0.0
    ran: int = 0
    waiting: int = 0
    seconds_before: float = 0.0

    @property
    def used(self) -> float:
        """What it has had, and what waits for it will take."""
        each = self.spent / self.ran if self.ran else 1.0
        return self.spent + self.waiting * each

    @property
    def seconds_each(self) -> float:
        """What a graph took, on average; 0 if that is not known."""
        return self.state.fuzzing_s / self.state.tests if self.state.tests else self.seconds_before


class ConfigurationSampler:
    """Deals out the time among profiles.

    Parameters
    ----------
    profiles : sequence of SampledConfiguration
        At least one.
    length : float
        How long the campaign is, in seconds or graphs.
    counted : bool
        Whether graphs are counted instead of seconds: who is next then depends on
        nothing else.
    """

    def __init__(
        self, profiles: Sequence[SampledConfiguration], length: float, *, counted: bool
    ) -> None:
        self.profiles = list(profiles)
        self.counted = counted
        environments = len({each.config.environment for each in profiles})
        self.turn = min(MAX_TURN, max(MIN_TURN, length / environments))
        self.current = self.profiles[0]
        self.begun = 0.0

    @property
    def several(self) -> bool:
        """Whether there is anything to choose."""
        return len(self.profiles) > 1

    @property
    def running(self) -> list[SampledConfiguration]:
        """Those not known to be unable to run here."""
        return [each for each in self.profiles if not each.state.unavailable]

    def next(self) -> SampledConfiguration:
        """The profile that the next graph runs in."""
        # When it is known who cannot run is a matter of time.
        taking = self.profiles if self.counted else self.running or self.profiles
        groups: dict[object, list[SampledConfiguration]] = {}
        for each in taking:
            groups.setdefault(each.config.environment, []).append(each)
        group = groups.get(self.current.config.environment, [])
        if not group or _used(group) - self.begun >= self.turn:
            group = min(groups.values(), key=lambda each: _used(each) / len(each))
            self.begun = _used(group)
        self.current = min(group, key=lambda each: each.used)
        self.current.waiting += 1
        return self.current

    def ran(self, profile: SampledConfiguration, seconds: float) -> None:
        """A profile is done with one of its graphs."""
        profile.waiting -= 1
        profile.ran += 1
        profile.spent += 1.0 if self.counted else max(seconds, LEAST_S)


def _used(profiles: Sequence[SampledConfiguration]) -> float:
    return sum(each.used for each in profiles)
