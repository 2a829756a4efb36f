"""Translation validation of every clustered test of a campaign.

Clusters that a test was generated with are judged only to be counted: the oracle judges their
outcomes as those of clusters. Clusters that an executor chose must add no outcome to the test
without clusters; if they may, that is a finding even before a run.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.textfile import Entry, save
from litmusfuzz.fuzz.campaign.causes import name_for
from litmusfuzz.fuzz.campaign.reducer import normalized, reduce
from litmusfuzz.fuzz.campaign.relations import races
from litmusfuzz.oracles.errors import NoAllowedSet
from litmusfuzz.oracles.translation import Soundness, Translation
from litmusfuzz.oracles.translation import validate as validated
from litmusfuzz.reports.records import Unsound

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.campaign.event_log import EventLog
    from litmusfuzz.fuzz.campaign.settings import Settings
    from litmusfuzz.fuzz.executors.protocol import Clusters, Config
    from litmusfuzz.reports.records import ExecutorState, RunRecord

REDUCTION_S: Final = 2.0
"""Seconds for each unsound clustering. The campaign waits meanwhile."""
MAX_REDUCED: Final = 8
"""Unsound clusterings that are reduced and stored; further ones are only counted."""


def validate(test: LitmusTest, settings: Settings) -> Translation:
    """Judge a test's clusters; unknown where an order makes a value too large."""
    try:
        return validated(test, settings.budget)
    except NoAllowedSet:
        return Translation(Soundness.UNKNOWN, 0)


class Validator:
    """Judges clusters as tests are generated, and stores unsound ones."""

    def __init__(self, settings: Settings, record: RunRecord, log: EventLog) -> None:
        self.settings = settings
        self.record = record
        self.log = log
        self.reduced = 0

    def count_given(self, test: LitmusTest) -> None:
        """Judge the clusters that a test was generated with."""
        start = time.monotonic()
        self.record.clusterings[validate(test, self.settings).verdict] += 1
        self.record.racing += races(test)
        self.record.validating_s += time.monotonic() - start

    def count_chosen(
        self, test: LitmusTest, made: type[Clusters], state: ExecutorState, config: Config
    ) -> None:
        """Judge the clusters that an executor chooses for a test without clusters."""
        start = time.monotonic()
        clustered = made.clustered(test, config)
        if clustered.clusters:
            verdict = validate(clustered, self.settings).verdict
            state.clusterings[verdict] += 1
            state.racing += races(clustered)
            if verdict is Soundness.UNSOUND:
                self._found(test, made, state, config)
        self.record.validating_s += time.monotonic() - start

    def _found(
        self, test: LitmusTest, made: type[Clusters], state: ExecutorState, config: Config
    ) -> None:
        """Reduce and store a test that is clustered unsoundly, unless there are many."""
        if self.reduced >= MAX_REDUCED:
            return
        self.reduced += 1
        smallest = normalized(self._reduced(test, made, config), "unsound")
        found = validate(smallest, self.settings)
        assert found.added is not None
        name = name_for("unsound", smallest)
        path = self.settings.out / f"{name}.yaml"
        about = f"{state.title} chose these clusters; they add {found.added}"
        smallest = replace(smallest, name=name, description=about)
        for known in self.record.unsound:
            if known.path == str(path):
                known.more += 1
                self.log.unsound_clusters(smallest, path, config.name, found.added)
                return
        save(Entry(smallest), path)
        self.log.unsound_clusters(smallest, path, config.name, found.added)
        self.record.unsound.append(Unsound(str(path), smallest, state.title, found.added))

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
