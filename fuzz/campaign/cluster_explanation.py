"""Explains a candidate by unsound clusters: then it counts as a sighting of these."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from litmusfuzz.fuzz.campaign.candidate import Candidate, State
from litmusfuzz.fuzz.campaign.job import Job
from litmusfuzz.fuzz.campaign.settings import shallow
from litmusfuzz.fuzz.finding.judge import judge

if TYPE_CHECKING:
    from collections.abc import Iterable

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.campaign.best import Best
    from litmusfuzz.fuzz.campaign.cluster_validation import ChosenVerdict
    from litmusfuzz.fuzz.campaign.slots import Slot
    from litmusfuzz.fuzz.campaign.unsound_clusters import UnsoundClusters
    from litmusfuzz.fuzz.executors.protocol import ChosenClusters

CLUSTERINGS: Final = 8
"""Graphs of a minimized test that are built to see which clusters it has: TensorFlow clusters ops
by their order in the graph, in which they are shuffled."""


class ClusterExplanation:
    """Explains confirmed candidates by the clusters that a framework chose.

    Parameters
    ----------
    unsound : UnsoundClusters
        Follows up those that explain one.
    """

    def __init__(self, unsound: UnsoundClusters) -> None:
        self.unsound = unsound
        self.validator = unsound.validator
        self.settings = unsound.settings

    def are_described(self, test: LitmusTest, clusterings: Iterable[ChosenClusters]) -> bool:
        """True if the semantics describes all these clusters."""
        return all(not self.validator.problem(test, each) for each in clusterings)

    async def explain(
        self,
        slot: Slot,
        candidate: Candidate,
        shown: Best,
        clusterings: Iterable[ChosenClusters],
        shown_in: str = "",
    ) -> bool:
        """True if some of these clusters are unsound, and allow what was shown: they count then.

        `shown_in` names the configuration that showed it, if that is not the present one.
        """
        explaining = self._explaining(clusterings, shown)
        if explaining is None:
            return False
        job = Job(shown.test, noise=shown.noise, seed=shown.run_seed or candidate.seed)
        key = await self.unsound.follow_up(
            slot, candidate.index, job, [explaining], explaining, shown_in
        )
        candidate.to(State.CLUSTERS, key)
        return True

    async def explain_minimized(self, slot: Slot, candidate: Candidate, minimized: Best) -> bool:
        """True if unsound clusters allow what a minimized test shows, which then counts as these.

        That is for a test whose own clusters the semantics does not describe: a variable has no
        value, say, until it is minimized. A file that is minimized by itself stays what it is.
        """
        if self.settings.keeps_partial:
            return False
        as_run = candidate.test
        # Of one copy, as those of the minimized test: a cluster of several copies is not described.
        if self.are_described(as_run, await slot.clusters_of(as_run)):
            return False
        shown_in = candidate.target.config.name
        explaining: tuple[ChosenClusters, ...] = ()
        for seed in range(CLUSTERINGS):
            result = await slot.run(Job(minimized.test, *shallow(minimized.noise), seed))
            if not isinstance(result, dict):
                return False
            clusterings = slot.clusterings
            if self._explaining(clusterings, minimized) is not None:
                explaining = clusterings
            elif minimized.with_same_cause(judge(minimized.judgement.oracle, result)).forbidden:
                return False  # it shows without unsound clusters too
        return await self.explain(slot, candidate, minimized, explaining, shown_in)

    def _explaining(
        self, clusterings: Iterable[ChosenClusters], shown: Best
    ) -> ChosenVerdict | None:
        """Unsound ones among these clusters that allow what was shown; None if none do."""
        unsound = self.validator.unsound(shown.test, clusterings)
        return self.unsound.explaining(shown.target.model, shown.judgement, unsound)
