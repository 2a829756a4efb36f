"""An executor of a campaign, and the generated tests that wait for it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.campaign import clock

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.campaign.sampler import ConfigurationSampler, SampledConfiguration
    from litmusfuzz.fuzz.campaign.target import Target
    from litmusfuzz.fuzz.executors.protocol import Clusters, Config, Noise, Packing
    from litmusfuzz.fuzz.finding.judge import Judgement, Oracle
    from litmusfuzz.fuzz.support import Support

MAX_WAITING: Final = 16
"""Tests in an executor's backlog: some seconds of work, so that a restart or a short minimization
in one executor does not stop the others."""
MOST_FAMILIES: Final = 32
DAMAGING_EVERY: Final = 128
"""Of a family's tests, one in so many may have ops that damage the memory of their process. One
graph in fourteen would have such an op, and end its process. Another one costs fifteen other
graphs: it is forked, and TensorFlow looks up its kernels for each op anew."""
DEADLY_EVERY: Final = 50
"""Of a family's tests, one in so many may have ops that are known to end their process."""


@dataclass(slots=True, eq=False)
class GeneratedTest:
    """A generated test, its oracles, and the verdicts on it so far.

    Attributes
    ----------
    index : int
        Number of the test in the campaign's seed.
    oracles : dict of str to Oracle
        By name of the memory model.
    allowed : dict of str to int
        Number of allowed outcomes by model, where it is more than one, small, and known.
    new_pairs : int
        Number of its pairs of ops on one resource that no test before it had.
    sampled : dict of CampaignExecutor to SampledConfiguration
        The configuration in which each executor runs the test.
    pending : set of CampaignExecutor
        Executors that have not run the test yet.
    judgements : dict of CampaignExecutor to Judgement
        Of the executors that have run it.
    repetition : int
        Configurations of the same executor that were given the test before.
    """

    index: int
    family: str
    test: LitmusTest
    oracles: dict[str, Oracle]
    allowed: dict[str, int]
    sampled: dict[CampaignExecutor, SampledConfiguration]
    pending: set[CampaignExecutor]
    new_pairs: int = 0
    judgements: dict[CampaignExecutor, Judgement] = field(default_factory=dict)
    repetition: int = 0

    def again(self, executor: CampaignExecutor, sampled: SampledConfiguration) -> GeneratedTest:
        """The same test, to be run in a further configuration of an executor."""
        return replace(
            self,
            sampled={executor: sampled},
            pending={executor},
            new_pairs=0,  # they count once
            judgements={},
            repetition=self.repetition + 1,
        )


def _no_other_configuration(config: Config) -> Target:
    raise AssertionError(f"no finding is tried in {config.name}")


@dataclass(slots=True, eq=False)
class CampaignExecutor:
    """An executor of a campaign, its configurations, and the tests that wait for it.

    Attributes
    ----------
    name : str
    sampler : ConfigurationSampler
        Picks the configuration in which a test runs.
    families : tuple of str
        Families that are generated for it. The canary has none: it runs some tests of the others.
    support : Support
        What it takes.
    clusterer : type of Clusters, optional
        The executor's class, if it chooses clusters itself.
    sample : callable
        Makes a configuration in which a finding of another one is tried.
    damaging_ops : frozenset of str
        Ops whose kernels may damage the memory of their process.
    packing : type of Packing, optional
        The executor's class, if it runs packs of tests.
    deadly_ops : frozenset of str
        Ops that are known to end their process.
    versions : mapping of str to str
        Versions of its frameworks, once a worker has started.
    drivers : dict of str to mapping of str to str
        By configuration: the devices on which its last test ran, with their drivers.
    waiting : deque of GeneratedTest
    number : int
        Its place among the executors of the campaign.
    controllable : bool
        False once its processes cannot run tests under control.
    """

    name: str
    sampler: ConfigurationSampler
    families: tuple[str, ...]
    support: Support
    clusterer: type[Clusters] | None = None
    damaging_ops: frozenset[str] = frozenset()
    deadly_ops: frozenset[str] = frozenset()
    sample: Callable[[Config], Target] = field(default=_no_other_configuration)
    packing: type[Packing] | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    drivers: dict[str, Mapping[str, str]] = field(default_factory=dict)
    waiting: deque[GeneratedTest] = field(default_factory=deque)
    number: int = 0
    controllable: bool = True
    last_taken_at: float = 0.0
    """Time of the last `take`, on the clock of campaigns."""

    def versions_of(self, configuration: str) -> dict[str, str]:
        """Versions of its frameworks, and devices and drivers of a configuration."""
        return {**self.versions, **self.drivers.get(configuration, {})}

    def sampled(self, target: Target) -> SampledConfiguration | None:
        """The time that a target has had here; None if no test of the campaign runs in it."""
        sampler = self.sampler
        every = (*sampler.configurations, *sampler.generated)
        return next((each for each in every if each.target is target), None)

    def devices(self) -> dict[str, str]:
        """Devices of all configurations, with their drivers; parts of one device are several."""
        found: dict[str, set[str]] = {}
        for drivers in self.drivers.values():
            for device, driver in drivers.items():
                found.setdefault(device, set()).add(driver)
        return {device: "; ".join(sorted(each)) for device, each in sorted(found.items())}

    def take(
        self, wanted: Callable[[GeneratedTest], bool] = lambda _: True
    ) -> GeneratedTest | None:
        """Remove and return the test that has waited longest, of those that are wanted, if any."""
        taken = next(filter(wanted, self.waiting), None)
        if taken is not None:
            self.waiting.remove(taken)
            self.last_taken_at = clock.now()
        return taken

    def take_pack(self, first: GeneratedTest, noise: Noise) -> list[GeneratedTest]:
        """Remove waiting tests that may run in a pack with one that was taken.

        Returns
        -------
        list of GeneratedTest
            All tests of the pack; the one that was taken alone if it may not run in a pack.
        """
        config, pack = first.sampled[self].config, [first]
        most = self.pack_size(config, noise)
        if most == 1 or not self._may_pack(first, config):
            return pack
        for each in list(self.waiting):
            if len(pack) == most:
                break
            if each.sampled[self] is first.sampled[self] and self._may_pack(each, config):
                self.waiting.remove(each)
                pack.append(each)
        return pack

    def pack_size(self, config: Config, noise: Noise) -> int:
        """Tests of a pack, at most."""
        return 1 if self.packing is None else self.packing.pack_size(config, noise)

    def next_pack_size(self, noise: Noise) -> int:
        """Tests of the next pack, at most."""
        return self.pack_size(self.sampler.current.config, noise)

    def _may_pack(self, generated: GeneratedTest, config: Config) -> bool:
        return self.packing is not None and self.packing.may_pack(generated.test, config)

    def support_of(self, index: int) -> Support:
        """The tests that it takes of those with this number in the campaign."""
        return support_of(self.support, self.damaging_ops, index, self.deadly_ops)

    @property
    def full(self) -> bool:
        """True if no more tests may wait for this executor."""
        return len(self.waiting) >= MAX_WAITING


def support_of(
    support: Support,
    damaging_ops: frozenset[str],
    index: int,
    deadly_ops: frozenset[str] = frozenset(),
) -> Support:
    """An executor's support for test number `index`: most tests have no damaging or deadly op."""
    number, family = divmod(index, MOST_FAMILIES)
    rare = damaging_ops - deadly_ops if number % DAMAGING_EVERY else frozenset()
    if (number + family) % DEADLY_EVERY:  # the first test of each family would be many
        rare |= deadly_ops
    return _without(support, rare) if rare else support


@cache
def _without(support: Support, ops: frozenset[str]) -> Support:
    """The support less these ops; a campaign has few such sets, and asks for each test."""
    return replace(support, ops=support.ops - ops)
