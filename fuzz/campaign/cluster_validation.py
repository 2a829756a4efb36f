"""Translation validation of every clustered graph of a campaign.

Clusters that came with a test are judged only to be counted: the oracle judges what an
executor shows of them as what they are, clusters. Those that an executor chose may show
nothing that the graph without them forbids: one that may is a finding, before any run.
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
"""For each unsound clustering. Nothing else is done meanwhile."""
MAX_REDUCED: Final = 8
"""Unsound clusterings that are reduced and stored; the others are counted."""


def validate(test: LitmusTest, settings: Settings) -> Translation:
    """Judge a test's clusters; unknown where an order makes a value too large."""
    try:
        return validated(test, settings.budget)
    except NoAllowedSet:
        return Translation(Soundness.UNKNOWN, 0)


class Validator:
    """Judges clusters as the graphs are generated, and stores what is unsound."""

    def __init__(self, settings: Settings, record: RunRecord, log: EventLog) -> None:
        self.settings = settings
        self.record = record
        self.log = log
        self.reduced = 0

    def given(self, test: LitmusTest) -> None:
        """A graph with clusters was generated."""
        start = time.monotonic()
        self.record.clusterings[validate(test, self.settings).verdict] += 1
        self.record.racing += races(test)
        self.record.validating_s += time.monotonic() - start

    def chosen(
        self, test: LitmusTest, made: type[Clusters], state: ExecutorState, config: Config
    ) -> None:
        """A graph without clusters was generated, which an executor puts into clusters."""
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
        """Reduce and store a graph that is clustered unsoundly, unless there are many."""
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
                self.log.unsound(smallest, path, config.name, found.added)
                return
        save(Entry(smallest), path)
        self.log.unsound(smallest, path, config.name, found.added)
        self.record.unsound.append(Unsound(str(path), smallest, state.title, found.added))

    def _reduced(self, test: LitmusTest, made: type[Clusters], config: Config) -> LitmusTest:
        """The smallest test found that is clustered unsoundly, with the clusters chosen."""
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
