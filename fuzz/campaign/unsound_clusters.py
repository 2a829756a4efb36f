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

If a run shows forbidden outcomes, all of which its own unsound clusters allow, then these explain
it: the test is not minimized as well, but counts as a sighting of the finding that the clusters
are. So does a test whose clusters the semantics does not describe (a variable has no value, say),
once it is minimized to one whose clusters it does.
"""

from __future__ import annotations

import random
from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.outcome import Verdict
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.campaign import clock
from litmusfuzz.fuzz.campaign.job import Job
from litmusfuzz.fuzz.campaign.shares import REDUCE
from litmusfuzz.fuzz.campaign.tuning import MAX_REDUCTION_S
from litmusfuzz.fuzz.finding.causes import explains
from litmusfuzz.fuzz.finding.driver import drive
from litmusfuzz.fuzz.finding.judge import explorer_or_none
from litmusfuzz.fuzz.finding.reducer import reduce
from litmusfuzz.fuzz.finding.renaming import normalized
from litmusfuzz.oracles.model import RFC
from litmusfuzz.reports.events import SeenAgain

if TYPE_CHECKING:
    from collections.abc import Iterable

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Outcome
    from litmusfuzz.fuzz.campaign.cluster_validation import ChosenVerdict, Validator
    from litmusfuzz.fuzz.campaign.shares import Ledger
    from litmusfuzz.fuzz.campaign.slots import Slot
    from litmusfuzz.fuzz.campaign.target import Target
    from litmusfuzz.fuzz.finding.judge import Judgement
    from litmusfuzz.oracles.model import Model

SHOW_COUNT: Final = 1024
"""Executions of one build, at least, while one is looked for: to compile takes far longer."""


@dataclass(frozen=True, slots=True)
class _Found:
    """A finding: its key, the test without clusters, and the configurations that cluster it so."""

    key: str
    test: LitmusTest
    configurations: set[str]


@dataclass(slots=True)
class _Best:
    """The smallest test so far with unsound clusters: the verdict on these, and the test alone."""

    verdict: ChosenVerdict
    test: LitmusTest


@dataclass(slots=True)
class _Shown:
    """Outcomes of the executions that were to show unsound clusters."""

    histogram: Counter[Outcome] = field(default_factory=Counter)
    forbidden: set[Outcome] = field(default_factory=set)
    by_clusters: Counter[Outcome] = field(default_factory=Counter)
    """Forbidden outcomes that the clusters allow."""

    def verdict(self, outcome: Outcome) -> Verdict:
        """The verdict on an outcome of the test without clusters."""
        return Verdict.FORBIDDEN if outcome in self.forbidden else Verdict.ALLOWED

    @property
    def line(self) -> str:
        """How often the executions showed it."""
        total = self.histogram.total()
        if not total:
            return "not executed to show it"
        if not self.by_clusters:
            return f"not shown in {total:,} executions"
        outcome, _ = self.by_clusters.most_common(1)[0]
        return f"shown in {self.by_clusters.total():,} of {total:,} executions: {outcome}"


class UnsoundClusters:
    """Follows up unsound clusters that a worker has read.

    Parameters
    ----------
    validator : Validator
    ledger : Ledger
        Charged with the time of what is not part of a reduction.
    """

    def __init__(self, validator: Validator, ledger: Ledger) -> None:
        self.validator = validator
        self.ledger = ledger
        self.settings = validator.settings
        self.found: list[_Found] = []

    def explaining(
        self, model: Model, judgement: Judgement, unsound: Iterable[ChosenVerdict]
    ) -> ChosenVerdict | None:
        """The unsound clusters of a run that allow every forbidden outcome of it; None if none do.

        Parameters
        ----------
        model : Model
            By which the outcomes were judged.
        judgement : Judgement
            What the run showed.
        unsound : iterable of ChosenVerdict
            Clusters of the graphs that it ran, under the same names.
        """
        for verdict in unsound:
            if not verdict.test.clusters:
                continue  # the semantics does not describe them
            clustered = explorer_or_none(verdict.test, model, self.settings.budget)
            if clustered is not None and all(
                clustered.judge(outcome) is Verdict.ALLOWED for outcome, _ in judgement.forbidden
            ):
                return verdict
        return None

    async def follow_up(
        self,
        slot: Slot,
        index: int,
        job: Job,
        unsound: Iterable[ChosenVerdict],
        shown_by: ChosenVerdict | None = None,
        shown_in: str = "",
    ) -> str:
        """Reduce, show and store the unsound clusterings of one test; the key of the last one.

        Parameters
        ----------
        slot : Slot
        index : int
            Of the test.
        job : Job
            What ran it.
        unsound : iterable of ChosenVerdict
            The clusterings.
        shown_by : ChosenVerdict, optional
            The one of them that explains the forbidden outcomes of the run.
        shown_in : str
            The configuration of that run; "" for the present one.
        """
        target, test = slot.target, job.test
        assert test is not None
        executor, config = target.executor, target.config.name
        within = slot.minimizing  # the reduction that this is part of counts its time itself
        key = ""
        for verdict in unsound:
            seen = index if verdict is shown_by else None
            where = shown_in if verdict is shown_by and shown_in else config
            known = await self._known(verdict.test, slot)
            if known is not None:
                self.validator.log(
                    SeenAgain(index=seen, executor=executor, configuration=where, key=known)
                )
                key = known
                continue
            best, shown = _Best(verdict, replace(test, clusters=())), _Shown()
            slot.minimizing = True
            try:
                with nullcontext() if within else self.ledger.charged(REDUCE, slot):
                    await self._reduce(slot, best)
                    if self.validator.key(best.verdict.test, target) not in self.validator.names:
                        await self._show(slot, index, job, best, shown)
            finally:  # also if the campaign ends meanwhile
                slot.minimizing = within
                key = self._store(index, target, best, shown)
                if seen is not None:
                    self.validator.log(
                        SeenAgain(index=seen, executor=executor, configuration=where, key=key)
                    )
        return key

    async def _known(self, test: LitmusTest, slot: Slot) -> str | None:
        """Key of a finding whose shape this test contains, and that this configuration has."""
        plain, name = replace(test, clusters=()), slot.target.title
        for each in self.found:
            if not explains(each.test, plain, exact=True):
                continue
            if name not in each.configurations and await self._unsound(slot, each.test):
                each.configurations.add(name)
            if name in each.configurations:
                return each.key
        return None

    async def _reduce(self, slot: Slot, best: _Best) -> None:
        """Make a test with unsound clusters smaller, and its names canonical if it stays one.

        A framework's clusters may depend on names.
        """
        end = clock.now() + MAX_REDUCTION_S
        await drive(
            reduce(best.test), partial(self._improved, slot, best), lambda: clock.now() < end
        )
        await self._improved(slot, best, normalized(best.test, "unsound"))

    async def _improved(self, slot: Slot, best: _Best, test: LitmusTest) -> bool:
        """Put a test in the place of the best if its clusters are unsound; true if they are."""
        verdict = await self._unsound(slot, test)
        if verdict is None:
            return False
        best.verdict, best.test = verdict, test
        return True

    async def _unsound(self, slot: Slot, test: LitmusTest) -> ChosenVerdict | None:
        """The verdict on the clusters of a test that is not run; None if they are not unsound."""
        return next(iter(self.validator.unsound(test, await slot.clusters_of(test))), None)

    async def _show(self, slot: Slot, index: int, job: Job, best: _Best, shown: _Shown) -> None:
        """Execute a test until its unsound clusters show."""
        rng = random.Random(f"{self.settings.options.seed}/unsound/{index}")
        oracle = explorer_or_none(best.test, RFC, self.settings.budget)
        clustered = explorer_or_none(best.verdict.test, RFC, self.settings.budget)
        if oracle is None or clustered is None:
            return
        end = clock.now() + MAX_REDUCTION_S
        while not shown.by_clusters and clock.now() < end:
            count = max(job.count, SHOW_COUNT)
            again = Job(best.test, count, job.noise, rng.getrandbits(31))
            result = await slot.run(again)
            if not isinstance(result, dict):
                return
            for outcome, count in result.items():
                shown.histogram[outcome] += count
                if oracle.judge(outcome) is Verdict.FORBIDDEN:
                    shown.forbidden.add(outcome)
                    # An outcome that the clusters do not allow has another cause.
                    if best.verdict.lost or clustered.judge(outcome) is not Verdict.FORBIDDEN:
                        shown.by_clusters[outcome] += count

    def _store(self, index: int, target: Target, best: _Best, shown: _Shown) -> str:
        """Store what was found, unless it is there; return its key."""
        verdict = best.verdict
        found = self.validator.key(verdict.test, target)
        self.found.append(_Found(found, best.test, {target.title}))
        if self.validator.seen_again(found, target):
            return found
        self.validator.names[found] = self.validator.new_name(verdict.test)
        self.validator.store(
            index,
            found,
            verdict.test,
            target,
            f"{target.title} chose these clusters; {verdict.reason[0]}",
            (*verdict.reason, shown.line),
            tuple(
                (outcome.plain, count, str(shown.verdict(outcome)))
                for outcome, count in shown.histogram.items()
            ),
        )
        return found
