"""Picks the configuration in which each test runs, so that each gets a fair share of the time.

An executor may have several configurations, and a test runs in some of them. Changing to another
environment means another process. So the sampler keeps one environment for some seconds and
alternates, test by test, between the configurations of that environment. Each gets as many tests
that run as any other, whatever they cost, up to `MAX_COST_S`: with equal times a slow configuration
had hardly any test. Rounds do not count: which tests earn them is decided elsewhere
(`fuzz.campaign.depth`).

Beside the configurations that are listed there may be *generated* ones, in endless number
(`fuzz.executors.configuration_generator`). Once each environment of the listed ones has had a turn,
the generated ones together get `GENERATED_SHARE` of the time, each for a short slice.

Some configurations refuse most tests of most families: one with Keras's optimizers takes only
training steps. Such a family is given to a configuration only now and then, so that its time goes
to tests that run.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from litmusfuzz.fuzz.campaign.tuning import GENERATED_SHARE, MAX_COST_S, MAX_SLICE, MIN_SLICE, RUN_S

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from litmusfuzz.fuzz.campaign.target import Target
    from litmusfuzz.fuzz.executors.protocol import Config
    from litmusfuzz.oracles.model import Model

SLICES_OF_EACH: Final = 2
"""How often each configuration has a slice in a campaign, if these are long enough."""
MAX_UNAVAILABLE: Final = 16
"""Generated configurations that cannot run here, one after another, before that holds for all."""
MIN_REFUSED: Final = 2
"""Tests of a family that a setting refuses before that says anything."""
MIN_TAKEN: Final = 1 / 4
"""Share of a family's tests that a setting takes if it is given them as often as any other's."""
TRIES: Final = 4
"""Tests that a configuration which has refused all so far gets for each that another one runs:
without 64 bits, say, JAX refuses half of them, and in minutes each configuration has five."""
TRIED_EVERY: Final = 8
"""One in so many choices of a family is among all: what a setting refuses is learned from few
tests, and some of a family may be unlike the others."""


class Refusals:
    """How many tests of each family configurations and their settings ran, or refused.

    A configuration that is generated is given few tests, but its settings are part of others. So a
    family is tried with each configuration once; if that is refused, what its settings have refused
    elsewhere counts as well.
    """

    def __init__(self) -> None:
        self._ran: Counter[tuple[object, str]] = Counter()
        self._refused: Counter[tuple[object, str]] = Counter()
        self._choices: Counter[str] = Counter()

    def note(self, config: Config, family: str, *, refused: bool) -> None:
        """Note that a configuration has refused a test of a family, or has run it."""
        for who in (config.name, *config.settings):
            (self._refused if refused else self._ran)[who, family] += 1

    def next_choice(self, config: Config, families: tuple[str, ...]) -> tuple[str, ...]:
        """The families of which a configuration may be given a test, at least one; counts calls."""
        self._choices[config.name] += 1
        if self._choices[config.name] % TRIED_EVERY == 0:
            return families
        return tuple(f for f in families if not self.refuses(config, f)) or families

    def refuses(self, config: Config, family: str) -> bool:
        """True if a configuration has refused a family, and it or a setting refuses most of it."""
        return self._refuses_most(config.name, family, 1) and any(
            self._refuses_most(who, family, MIN_REFUSED) for who in (config.name, *config.settings)
        )

    def _refuses_most(self, who: object, family: str, least: int) -> bool:
        refused, ran = self._refused[who, family], self._ran[who, family]
        return refused >= least and ran < MIN_TAKEN * (ran + refused)


@dataclass(slots=True, eq=False)
class SampledConfiguration:
    """A target in which tests of a campaign run, and the time that it has had.

    Attributes
    ----------
    target : Target
    unavailable : str
        Why it cannot run here; "" as far as known.
    spent : float
        Seconds, or tests where tests are counted, over `runs` tests that ran and `refused` others.
    waiting : int
        Tests that it has been picked for and has not run yet.
    """

    target: Target
    unavailable: str = ""
    spent: float = 0.0
    runs: int = 0
    refused: int = 0
    waiting: int = 0

    @property
    def title(self) -> str:
        """Executor and configuration."""
        return self.target.title

    @property
    def config(self) -> Config:
        """The configuration."""
        return self.target.config

    @property
    def model(self) -> Model:
        """The model that judges its outcomes."""
        return self.target.model

    @property
    def cost(self) -> float:
        """Mean cost of a test that ran, with those that were refused beside it."""
        ran = self.runs or self.refused / TRIES
        return self.spent / ran if ran else 1.0

    @property
    def committed(self) -> float:
        """Time that it has had, and that its waiting tests will take."""
        return self.spent + self.waiting * self.cost

    @property
    def served(self) -> float:
        """Tests that it has had: the configuration with the fewest is next."""
        return self.committed / min(self.cost, MAX_COST_S)


class ConfigurationSampler:
    """Distributes the time of an executor among its configurations.

    Parameters
    ----------
    configurations : sequence of SampledConfiguration
        Those that are listed; at least one, unless others are generated.
    length : float
        Length of the campaign, in seconds or tests.
    counted : bool
        Count tests instead of seconds: which configuration is next then depends on nothing else.
    generate : callable, optional
        Generates another configuration.

    Attributes
    ----------
    generated : list of SampledConfiguration
        Those generated so far.
    refusals : Refusals
        Of all its configurations.
    current : SampledConfiguration
        The configuration of the last test, or of the next one once that is settled.
    """

    def __init__(
        self,
        configurations: Sequence[SampledConfiguration],
        length: float,
        *,
        counted: bool,
        generate: Callable[[], SampledConfiguration] | None = None,
    ) -> None:
        self.configurations = list(configurations)
        self.counted = counted
        self.generated: list[SampledConfiguration] = []
        self.refusals = Refusals()
        self._generate = generate
        self._of_each = max(MIN_SLICE, length / (SLICES_OF_EACH * max(1, len(configurations))))
        self.slice_start = 0.0
        self._slice: list[SampledConfiguration] = []
        if not self.configurations:
            self._slice = [self._generated()]
        self.current = (self.configurations or self._slice)[0]

    @property
    def several(self) -> bool:
        """True if there is more than one configuration."""
        return len(self.configurations) > 1 or self._generate is not None

    @property
    def running(self) -> list[SampledConfiguration]:
        """Configurations not known to be unavailable; those generated so far included."""
        every = (*self.configurations, *self.generated)
        return [each for each in every if not each.unavailable]

    @property
    def exhausted(self) -> bool:
        """True if no configuration can run here, as far as known."""
        return not self.running and (
            self._generate is None or len(self.generated) >= MAX_UNAVAILABLE
        )

    def next(self) -> SampledConfiguration:
        """Pick the configuration in which the next test runs."""
        self.settle()
        self.current.waiting += 1
        return self.current

    def settle(self) -> SampledConfiguration:
        """Settle which is `next`, as long as no time passes and none is picked; begin its slice."""
        group = self._taking(self._slice) if self._slice else self._environment(self.current)
        length = MIN_SLICE if self._slice else min(MAX_SLICE, self._of_each * len(group))
        if not group or _committed(group) - self.slice_start >= length:
            group = self._next_group()
            self.slice_start = _committed(group)
        self.current = min(group, key=lambda each: each.served)
        return self.current

    def _taking(self, configurations: Sequence[SampledConfiguration]) -> list[SampledConfiguration]:
        """Those not known to be unavailable."""
        # When a configuration turns out to be unavailable is a matter of time.
        return [each for each in configurations if self.counted or not each.unavailable]

    def _environment(self, sampled: SampledConfiguration) -> list[SampledConfiguration]:
        """The listed configurations of an environment."""
        taking = self._taking(self.configurations)
        if not taking and self._generate is None:
            taking = self.configurations
        return [each for each in taking if each.config.environment == sampled.config.environment]

    def _next_group(self) -> list[SampledConfiguration]:
        """The configurations of the next slice: of one environment, or a generated one."""
        found: dict[object, list[SampledConfiguration]] = {}
        for each in self.configurations:
            if group := self._environment(each):
                found[each.config.environment] = group
        groups = found.values()
        if self._generate is not None and all(_committed(group) > 0 for group in groups):
            listed = sum(_committed(group) for group in groups)
            share = GENERATED_SHARE / (1 - GENERATED_SHARE)
            if not groups or _committed(self.generated) < share * listed:
                self._slice = [self._generated()]
                return self._slice
        self._slice = []
        return min(groups, key=lambda group: sum(each.served for each in group) / len(group))

    def _generated(self) -> SampledConfiguration:
        assert self._generate is not None
        made = self._generate()
        for each in self.configurations:
            if each.config.name == made.config.name:
                return each  # which has its own time, and runs no test twice
        self.generated.append(made)
        return made

    def add_run(
        self,
        sampled: SampledConfiguration,
        seconds: float,
        family: str = "",
        *,
        refused: bool = False,
    ) -> None:
        """Note that a configuration is done with one of its tests.

        Parameters
        ----------
        family : str, optional
            If it has run the test, or refused it.
        """
        sampled.waiting -= 1
        # Where tests are counted, what is refused counts: it may be known late.
        sampled.runs += self.counted or not refused
        sampled.refused += refused
        sampled.spent += 1.0 if self.counted else max(seconds, RUN_S)
        if family:
            self.refusals.note(sampled.config, family, refused=refused)


def _committed(configurations: Sequence[SampledConfiguration]) -> float:
    return sum(each.committed for each in configurations)
