"""Unsound clusters that a framework chose: reduced, run to show them, and stored.

The clusters are known from the graph that the framework runs, so that they are a finding without an
execution. To reduce it, the framework is asked for the clusters of each smaller test, which is not
run. The smallest is then executed until an outcome shows that the clusters allow and the test
without clusters forbids.

No forced order can show it. A gate can hold back other ops until a cluster begins, or until it is
done, but nothing can come between a cluster's snapshot and its write-back except by chance: both
happen inside one kernel. And if nothing comes between them, the cluster is as atomic as its members
one after the other, which the test without clusters allows. What is left is a blocked outcome,
which shows in nearly every execution.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.outcome import Verdict
from litmusfuzz.fuzz.campaign.causes import explains
from litmusfuzz.fuzz.campaign.judge import explorer_or_none
from litmusfuzz.fuzz.campaign.reducer import normalized, reduce
from litmusfuzz.fuzz.campaign.slots import Job
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import RFC
from litmusfuzz.oracles.translation import Soundness
from litmusfuzz.reports.events import SeenAgain

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Outcome
    from litmusfuzz.fuzz.campaign.cluster_validation import ChosenVerdict, Validator
    from litmusfuzz.fuzz.campaign.slots import Slot

REDUCE_S: Final = 10.0
"""Seconds to reduce one unsound clustering. A framework needs some tens of milliseconds to say
which clusters a smaller test has."""
SHOW_S: Final = 20.0
"""Seconds to look for an execution that shows an unsound clustering."""


@dataclass(frozen=True, slots=True)
class _Found:
    """A finding so far: its key, the test without clusters, and the configurations it is of."""

    key: str
    test: LitmusTest
    configurations: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _Shown:
    """Outcomes of the executions that were to show unsound clusters, with their verdicts."""

    histogram: Counter[Outcome] = field(default_factory=Counter)
    by_clusters: Counter[Outcome] = field(default_factory=Counter)

    def add(self, verdict: ChosenVerdict, seen: Mapping[Outcome, int], oracle: Explorer) -> None:
        """Add a run; an outcome that the clusters do not allow has another cause."""
        self.histogram.update(seen)
        clustered = Explorer(verdict.test, RFC, oracle.budget)
        for outcome, count in seen.items():
            forbidden = oracle.judge(outcome) is Verdict.FORBIDDEN
            if forbidden and (
                not verdict.added or clustered.judge(outcome) is not Verdict.FORBIDDEN
            ):
                self.by_clusters[outcome] += count

    @property
    def line(self) -> str:
        """How often the executions showed it."""
        total = self.histogram.total()
        if not self.by_clusters:
            return f"not shown in {total:,} executions"
        outcome, _ = self.by_clusters.most_common(1)[0]
        return f"shown in {self.by_clusters.total():,} of {total:,} executions: {outcome}"


class UnsoundClusters:
    """Follows up unsound clusters that a worker has read.

    Parameters
    ----------
    validator : Validator
    """

    def __init__(self, validator: Validator) -> None:
        self.validator = validator
        self.settings = validator.settings
        self.found: list[_Found] = []

    async def follow_up(
        self, slot: Slot, index: int, job: Job, unsound: Iterable[ChosenVerdict]
    ) -> None:
        """Reduce, show and store the unsound clusterings of one test."""
        sampled, test = slot.sampled, job.test
        assert test is not None
        for verdict in unsound:
            known = self._known(verdict.test, slot)
            if known is not None:
                executor, config = sampled.executor, sampled.config.name
                self.validator.log(
                    SeenAgain(index=None, executor=executor, configuration=config, key=known)
                )
                continue
            start = time.monotonic()
            slot.minimizing = True
            try:
                smallest = await self._reduced(slot, test, verdict)
                found = self.validator.key(smallest.test, sampled)
                plain = replace(smallest.test, clusters=())
                self.found.append(_Found(found, plain, {sampled.config.name}))
                if not self.validator.seen_again(found, sampled):
                    self.validator.names[found] = self.validator.new_name(smallest.test)
                    await self._show(slot, index, job, found, smallest)
            finally:
                slot.minimizing = False
                slot.executor.minimizing_s += time.monotonic() - start

    def _known(self, test: LitmusTest, slot: Slot) -> str | None:
        """Key of a finding in this configuration whose shape this test contains."""
        plain, name = replace(test, clusters=()), slot.sampled.config.name
        for each in self.found:
            if name in each.configurations and explains(each.test, plain, exact=True):
                return each.key
        return None

    async def _reduced(self, slot: Slot, test: LitmusTest, verdict: ChosenVerdict) -> ChosenVerdict:
        """The smallest test found that has unsound clusters, under canonical names if these do.

        A framework's clusters may depend on names.
        """
        end = time.monotonic() + REDUCE_S
        smallest, plain = verdict, replace(test, clusters=())
        reduction = reduce(plain)
        try:
            candidate = next(reduction)
            while time.monotonic() < end:
                shown = await self._unsound(slot, candidate)
                if shown is not None:
                    smallest, plain = shown, candidate
                candidate = reduction.send(shown is not None)
        except StopIteration:
            pass
        return await self._unsound(slot, normalized(plain, "unsound")) or smallest

    async def _unsound(self, slot: Slot, test: LitmusTest) -> ChosenVerdict | None:
        """The verdict on the clusters of a test, if they are unsound."""
        for chosen in await slot.clusters_of(test):
            verdict = self.validator.judge(test, chosen)
            if verdict.verdict == Soundness.UNSOUND:
                return verdict
        return None

    async def _show(
        self, slot: Slot, index: int, job: Job, found: str, verdict: ChosenVerdict
    ) -> None:
        """Execute a test until its unsound clusters show, and store it as a finding.

        It is stored as well if the campaign ends meanwhile.
        """
        sampled, test = slot.sampled, replace(verdict.test, clusters=())
        rng = random.Random(f"{self.settings.seed}/unsound/{index}")
        shown = _Shown()
        try:
            oracle = explorer_or_none(test, RFC, self.settings.budget)
            end = time.monotonic() + SHOW_S
            while oracle is not None and not shown.by_clusters and time.monotonic() < end:
                again = Job(test, job.count, job.noise, rng.getrandbits(31))
                result = await slot.run(again)
                if not isinstance(result, dict):
                    break
                shown.add(verdict, result, oracle)
        finally:
            self.validator.store(
                index,
                found,
                verdict.test,
                sampled,
                f"{sampled.title} chose these clusters; {verdict.reason[0]}",
                (*verdict.reason, shown.line),
                tuple(
                    (
                        o.plain,
                        n,
                        str(Verdict.FORBIDDEN if o in shown.by_clusters else Verdict.ALLOWED),
                    )
                    for o, n in shown.histogram.items()
                ),
            )
