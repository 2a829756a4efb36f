"""What is done with a candidate: confirm it, reduce it, and store what it shows.

All of it runs on one worker slot. `fuzz.campaign.minimizer` makes a test smaller,
`fuzz.campaign.explainer` compares it with known causes, and `fuzz.campaign.findings` stores it.
"""

from __future__ import annotations

import asyncio
import random
from copy import copy
from typing import TYPE_CHECKING, Final

from litmusfuzz.fuzz.campaign.best import Best
from litmusfuzz.fuzz.campaign.candidate import Candidate, State
from litmusfuzz.fuzz.campaign.shares import KNOWN, REDUCE, RETRY
from litmusfuzz.fuzz.campaign.taking_under_control import take
from litmusfuzz.reports.events import Confirmed, ReductionEnded, ReductionStarted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from litmusfuzz.fuzz.campaign.candidate_backlog import CandidateBacklog
    from litmusfuzz.fuzz.campaign.cluster_explanation import ClusterExplanation
    from litmusfuzz.fuzz.campaign.course import Course
    from litmusfuzz.fuzz.campaign.minimizer import Minimizer
    from litmusfuzz.fuzz.campaign.shares import Ledger
    from litmusfuzz.fuzz.campaign.slots import Slot
    from litmusfuzz.fuzz.finding.minimized_finding import MinimizedFinding

MAX_BEHIND: Final = 3
"""Defects of one test that are uncovered one behind another."""


class Reductions:
    """Reduces the candidates of a campaign.

    Parameters
    ----------
    course : Course
    ledger : Ledger
    candidates : CandidateBacklog
    minimizer : Minimizer
    clusters : ClusterExplanation
    found : callable
        Receives each new finding.
    """

    def __init__(
        self,
        course: Course,
        ledger: Ledger,
        candidates: CandidateBacklog,
        minimizer: Minimizer,
        clusters: ClusterExplanation,
        found: Callable[[MinimizedFinding], None],
    ) -> None:
        self.course = course
        self.settings = course.settings
        self.log = course.log
        self.ledger = ledger
        self.candidates = candidates
        self.findings = candidates.findings
        self.explainer = candidates.explainer
        self.minimizer = minimizer
        self.clusters = clusters
        self.found = found

    async def reduce(self, slot: Slot, candidate: Candidate) -> None:
        """Minimize a candidate, confirm it in a fresh process, and store it.

        What turns out to be known is charged to the account for that, whichever lane began it.
        """
        slot.switch_to(candidate.target)
        slot.minimizing = True
        self.candidates.in_work[slot] = candidate
        self.log(ReductionStarted(**candidate.event_fields))
        executions = slot.executions
        again = candidate.attempts > 0
        best = Best.of(candidate)
        with self.ledger.charged(RETRY if again else REDUCE, slot) as charge:
            try:
                await self._reduce_to(slot, candidate, best)
            except asyncio.CancelledError:
                if self.settings.keeps_partial and not again:
                    self.findings.store(candidate, best, minimized=False, confirmed=False)
                raise
            finally:
                if candidate.known and not again:
                    charge.account = KNOWN
                slot.minimizing = False
                del self.candidates.in_work[slot]
                self.log(
                    ReductionEnded(
                        **candidate.event_fields,
                        key=candidate.by,
                        known=candidate.known,
                        executions=slot.executions - executions,
                        seconds=round(charge.elapsed_s, 3),
                        counters=slot.take_counters(),
                    )
                )

    async def _reduce_to(self, slot: Slot, candidate: Candidate, best: Best) -> None:
        """Minimize a candidate to `best`."""
        attempt = f"/{candidate.attempts}" if candidate.attempts else ""
        place = f"{candidate.index}{attempt}"
        rng = random.Random(f"{self.settings.options.seed}/minimize/{place}")
        if why := await slot.why_unavailable():
            self.course.drop_target(slot, why)  # the candidate stays in ``unreduced/``
            return
        # As it was run, before a name or an edge of it is changed: these may be what it needs.
        before, was_suspect = slot.executions, candidate.suspect
        shown, as_run = await self._confirmed_as_run(slot, candidate, rng)
        self._settle(candidate, slot.executions - before, shown=as_run is not None)
        if as_run is None:
            return
        if shown is not candidate:
            best.take_over(shown)
        described = self.clusters.are_described(best.test, slot.clusterings)
        # Clusters had explained what a suspect had shown, until its process crashed.
        if was_suspect and await self.clusters.explain(slot, candidate, as_run, slot.clusterings):
            return
        if (known := self.candidates.likely_known(shown)) is not None:
            self.candidates.set_aside(candidate, known)
            return
        if shown.target.explorable:
            decided = await self.explainer.decide(slot, shown, rng)
            if decided.by is not None:
                self.findings.add_sighting(candidate, decided.by)
                return
            if decided.behind is not None:
                best = Best(*decided.behind, shown.target, shown.noise)
        best.rate = as_run.rate
        if best.is_large:
            best.pace = as_run.pace
        finding = await self._reduced(slot, candidate, as_run, best, rng, described=described)
        if finding is not None:
            candidate.to(State.NEW, finding.key)
            self.found(finding)

    async def _confirmed_as_run(
        self, slot: Slot, candidate: Candidate, rng: random.Random
    ) -> tuple[Candidate, Best | None]:
        """A candidate, under control if it shows there, as a fresh process shows it; else None."""
        prober = self.minimizer.prober
        controlled = await take(slot, candidate, self.settings.budget)
        if controlled is not None:
            if (as_run := await prober.confirm_as_run(slot, controlled, rng)) is not None:
                return controlled, as_run
            candidate.beyond_control = True
            slot.switch_to(candidate.target)
        return candidate, await prober.confirm_as_run(slot, candidate, rng)

    def _settle(self, candidate: Candidate, executions: int, *, shown: bool) -> None:
        """Note if a fresh process has shown a candidate as it was run, in so many executions."""
        if shown:
            candidate.to(State.CONFIRMED)
            self.log(Confirmed(**candidate.event_fields))
        else:
            candidate.to(State.UNCONFIRMED)
            if not candidate.target.explorable:  # there one replay decides
                self.candidates.unconfirmed.append(candidate)
            self.findings.store_unconfirmed(candidate, executions)

    async def _reduced(
        self,
        slot: Slot,
        candidate: Candidate,
        as_run: Best,
        best: Best,
        rng: random.Random,
        *,
        described: bool,
    ) -> MinimizedFinding | None:
        """Reduce a candidate to `best`, and store it if no known cause explains it.

        If the clusters of its run are not `described`, those of the minimized test may explain it.
        """
        explainer = self.explainer
        for left in reversed(range(MAX_BEHIND)):
            complete, smallest = await self._smallest(slot, best, rng)
            # It is shown in any case: by the test as it was run.
            confirmed = smallest or as_run
            explained, compared = await explainer.explain(slot, candidate, confirmed, rng)
            if explained.by is not None:
                explainer.log_comparisons(candidate, "", compared)
                self.findings.add_sighting(candidate, explained.by)
                return None
            if explained.behind is None or not left:
                break
            # What shows without what the cause needs is another defect: that one is reduced.
            explainer.log_comparisons(candidate, "", compared)
            best = Best(*explained.behind, confirmed.target, confirmed.noise)
            slot.switch_to(confirmed.target)
        if not described and await self.clusters.explain_minimized(slot, candidate, confirmed):
            explainer.log_comparisons(candidate, candidate.by, compared)
            return None
        stored = self.findings.store(candidate, confirmed, minimized=complete, confirmed=True)
        explainer.log_comparisons(candidate, stored.key if stored else "", compared)
        return stored

    async def _smallest(
        self, slot: Slot, best: Best, rng: random.Random
    ) -> tuple[bool, Best | None]:
        """Reduce `best`; whether it is complete, and the form that a fresh process shows."""
        minimizer = self.minimizer
        await minimizer.use_all_noise(slot, best, rng)
        await minimizer.reduce_configuration(slot, best, rng)
        complete = await minimizer.reduce(slot, best, rng)
        as_often = copy(best)
        simplest = await minimizer.reduce_configuration(slot, best, rng, lenient=True)
        reduced = copy(best)
        normal = await minimizer.normalize(slot, best, rng)
        # In the simplest configuration it may show too rarely to be confirmed.
        forms = (best, reduced) if as_often.target is best.target else (best, reduced, as_often)
        confirmed = await self._confirmed(slot, forms, rng)
        finished = complete and simplest and normal
        return finished and (confirmed is best or confirmed is reduced), confirmed

    async def _confirmed(
        self, slot: Slot, forms: Iterable[Best], rng: random.Random
    ) -> Best | None:
        """The first of these forms of a finding that a fresh process shows; None if none does."""
        for form in forms:
            slot.switch_to(form.target)
            if not form.target.explorable:
                form.schedule = None  # it must belong to the test in the file
            await self.minimizer.recorder.record(slot, form, rng)
            shown = await self.minimizer.prober.confirm(slot, form, rng)
            if shown is not None:
                form.judgement = shown
                return form
        return None
