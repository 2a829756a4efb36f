"""Picks the configuration in which each test runs, so that all get the same share of the time.

An executor may have several configurations, and a test runs in one of them. Changing to another
environment means another process. So the sampler keeps one environment for some seconds and
alternates, test by test, between the configurations of that environment. It picks what has had the
least time: a fast configuration gets more tests, not more time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from litmusfuzz.fuzz.executors.protocol import Config
    from litmusfuzz.oracles.model import Model

MAX_SLICE: Final = 25.0
"""Seconds, or tests, for which one environment is kept: starting it costs an eighth of them."""
MIN_SLICE: Final = 5.0
"""The same in a campaign too short for all environments."""
MIN_COST_S: Final = 0.05
"""Cost of a test at least, generating it included: a configuration that refuses every test gets no
more tests than the others."""


@dataclass(slots=True, eq=False)
class SampledConfiguration:
    """A configuration of an executor, and the time that it has had.

    Attributes
    ----------
    config : Config
    model : Model
        Judges its outcomes.
    executor : str
        Name of its executor.
    executor_class : str
        See `fuzz.campaign.canonical.executor_class`.
    unavailable : str
        Why it cannot run here; "" as far as known.
    schedulable : bool
        False once the executor has said that it follows no schedules.
    spent : float
        Seconds, or tests where tests are counted, over `runs` tests.
    waiting : int
        Tests that it has been picked for and has not run yet.
    ran, ran_s : int, float
        Tests that it has not refused, and the seconds that they took.
    seconds_earlier : float
        Seconds that a test took in an earlier shard.
    """

    config: Config
    model: Model
    executor: str
    executor_class: str
    unavailable: str = ""
    schedulable: bool = True  # until it says that it is not
    spent: float = 0.0
    runs: int = 0
    waiting: int = 0
    ran: int = 0
    ran_s: float = 0.0
    seconds_earlier: float = 0.0

    @property
    def title(self) -> str:
        """Executor and configuration."""
        return f"{self.executor}/{self.config.name}"

    @property
    def committed(self) -> float:
        """Time that it has had, and that its waiting tests will take."""
        each = self.spent / self.runs if self.runs else 1.0
        return self.spent + self.waiting * each

    @property
    def seconds_each(self) -> float:
        """Seconds that a test takes on average; 0 if unknown."""
        return self.ran_s / self.ran if self.ran else self.seconds_earlier


class ConfigurationSampler:
    """Distributes the time of an executor among its configurations.

    Parameters
    ----------
    configurations : sequence of SampledConfiguration
        At least one.
    length : float
        Length of the campaign, in seconds or tests.
    counted : bool
        Count tests instead of seconds: which configuration is next then depends on nothing else.
    """

    def __init__(
        self, configurations: Sequence[SampledConfiguration], length: float, *, counted: bool
    ) -> None:
        self.configurations = list(configurations)
        self.counted = counted
        environments = len({each.config.environment for each in configurations})
        self.slice_length = min(MAX_SLICE, max(MIN_SLICE, length / environments))
        self.current = self.configurations[0]
        self.slice_start = 0.0

    @property
    def several(self) -> bool:
        """True if there is more than one configuration."""
        return len(self.configurations) > 1

    @property
    def running(self) -> list[SampledConfiguration]:
        """Configurations not known to be unavailable."""
        return [each for each in self.configurations if not each.unavailable]

    def next(self) -> SampledConfiguration:
        """Pick the configuration in which the next test runs."""
        # When a configuration turns out to be unavailable is a matter of time.
        taking = self.configurations if self.counted else self.running or self.configurations
        groups: dict[object, list[SampledConfiguration]] = {}
        for each in taking:
            groups.setdefault(each.config.environment, []).append(each)
        group = groups.get(self.current.config.environment, [])
        if not group or _committed(group) - self.slice_start >= self.slice_length:
            group = min(groups.values(), key=lambda each: _committed(each) / len(each))
            self.slice_start = _committed(group)
        self.current = min(group, key=lambda each: each.committed)
        self.current.waiting += 1
        return self.current

    def add_run(self, sampled: SampledConfiguration, seconds: float) -> None:
        """Note that a configuration is done with one of its tests."""
        sampled.waiting -= 1
        sampled.runs += 1
        sampled.spent += 1.0 if self.counted else max(seconds, MIN_COST_S)


def _committed(configurations: Sequence[SampledConfiguration]) -> float:
    return sum(each.committed for each in configurations)
