"""Translation validation of every clustered test of a campaign.

Clusters that a test was generated with are judged only to be counted: the oracle judges their
outcomes as those of clusters. Clusters that an executor chose must add no outcome to the test
without clusters; if they may, that is a finding even before a run.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.textfile import Entry, dumps, save
from litmusfuzz.fuzz.campaign.canonical import key
from litmusfuzz.fuzz.campaign.causes import name_for
from litmusfuzz.fuzz.campaign.reducer import reduce
from litmusfuzz.fuzz.campaign.relations import races
from litmusfuzz.fuzz.campaign.renaming import normalized
from litmusfuzz.oracles.errors import NoAllowedSet
from litmusfuzz.oracles.translation import Soundness, Translation
from litmusfuzz.oracles.translation import validate as validated
from litmusfuzz.reports.events import ClustersChosen, FindingAdded, FindingKind, SeenAgain

if TYPE_CHECKING:
    from collections.abc import Callable

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.campaign.sampler import SampledConfiguration
    from litmusfuzz.fuzz.campaign.settings import Settings
    from litmusfuzz.fuzz.executors.protocol import Clusters, Config
    from litmusfuzz.reports.events import Event

REDUCTION_S: Final = 2.0
"""Seconds for each unsound clustering. The campaign waits meanwhile."""
MAX_REDUCED: Final = 8
"""Unsound clusterings that are reduced; further ones are only counted."""


def validate(test: LitmusTest, settings: Settings) -> Translation:
    """Judge a test's clusters; unknown where an order makes a value too large."""
    try:
        return validated(test, settings.budget)
    except NoAllowedSet:
        return Translation(Soundness.UNKNOWN, 0)


@dataclass(frozen=True, slots=True)
class Clustering:
    """Verdict on a test's clusters; `racing` if one of several resource ops races."""

    verdict: Soundness
    racing: bool


class Validator:
    """Judges clusters as tests are generated, and stores unsound ones.

    Parameters
    ----------
    settings : Settings
    log : callable
        Receives the events.
    """

    def __init__(self, settings: Settings, log: Callable[[Event], None]) -> None:
        self.settings = settings
        self.log = log
        self.reduced = 0
        self.names: dict[str, str] = {}
        """Names of its findings by key."""

    def given(self, test: LitmusTest) -> Clustering:
        """The verdict on clusters that a test was generated with."""
        return Clustering(validate(test, self.settings).verdict, races(test))

    def judge_chosen(
        self, index: int, test: LitmusTest, made: type[Clusters], sampled: SampledConfiguration
    ) -> None:
        """Judge the clusters that an executor chooses for a test without clusters."""
        start = time.monotonic()
        clustered = made.clustered(test, sampled.config)
        if not clustered.clusters:
            return
        verdict = validate(clustered, self.settings).verdict
        if verdict is Soundness.UNSOUND and self.reduced < MAX_REDUCED:
            self.reduced += 1
            self._found(index, test, made, sampled)
        self.log(
            ClustersChosen(
                index=index,
                executor=sampled.executor,
                configuration=sampled.config.name,
                verdict=verdict,
                racing=races(clustered),
                seconds=round(time.monotonic() - start, 6),
            )
        )

    def _found(
        self, index: int, test: LitmusTest, made: type[Clusters], sampled: SampledConfiguration
    ) -> None:
        """Reduce and store a test that is clustered unsoundly."""
        smallest = normalized(self._reduced(test, made, sampled.config), "unsound")
        added = validate(smallest, self.settings).added
        assert added is not None
        executor, config, of = sampled.executor, sampled.config.name, sampled.executor_class
        found = key(smallest, kind=FindingKind.UNSOUND, rules=(), executor_class=of)
        if found in self.names:
            self.log(SeenAgain(index=None, executor=executor, configuration=config, key=found))
            return
        name = name_for("unsound", smallest)
        if name in self.names.values():  # of another executor
            name += f"-{len(self.names)}"
        self.names[found] = name
        about = f"{sampled.title} chose these clusters; they add {added}"
        entry = Entry(replace(smallest, name=name, description=about))
        file = f"findings/{name}{self.settings.suffix}.yaml"
        save(entry, self.settings.out / file)
        self.log(
            FindingAdded(
                index=index,
                key=found,
                file=file,
                entry=dumps(entry),
                kind=FindingKind.UNSOUND,
                executor=executor,
                configuration=config,
                executor_class=of,
                cause="unsound clusters",
                reason=(f"the clusters add {added}",),
            )
        )

    def _reduced(self, test: LitmusTest, made: type[Clusters], config: Config) -> LitmusTest:
        """The smallest test found that the executor clusters unsoundly, with those clusters."""
        end = time.monotonic() + REDUCTION_S
        smallest = made.clustered(test, config)
        reduction = reduce(test)
        try:
            candidate = next(reduction)
            while time.monotonic() < end:
                clustered = made.clustered(candidate, config)
                unsound = validate(clustered, self.settings).verdict is Soundness.UNSOUND
                if unsound:
                    smallest = clustered
                candidate = reduction.send(unsound)
        except StopIteration:
            pass
        return smallest
