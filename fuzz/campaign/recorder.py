"""Judges what executions of a test have shown, logs it, and keeps what is to be followed up.

What executes tests (`fuzz.campaign.packs`, `fuzz.campaign.lanes.rounds`) has it in common.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import structs

from litmusfuzz.fuzz.campaign import clock
from litmusfuzz.fuzz.campaign.candidate import Candidate, State
from litmusfuzz.fuzz.campaign.depth import UnfinishedRun, WaitingRuns
from litmusfuzz.fuzz.campaign.schedule_search import with_schedule
from litmusfuzz.fuzz.executors import messages
from litmusfuzz.fuzz.executors.process_log import in_a_line
from litmusfuzz.fuzz.executors.worker import Died
from litmusfuzz.fuzz.finding.causes import symptom

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from litmusfuzz.fuzz.campaign.candidate_backlog import CandidateBacklog
    from litmusfuzz.fuzz.campaign.cluster_validation import ChosenVerdict
    from litmusfuzz.fuzz.campaign.course import Course
    from litmusfuzz.fuzz.campaign.dispatcher import Dispatcher
    from litmusfuzz.fuzz.campaign.job import Job, Result
    from litmusfuzz.fuzz.campaign.schedule_search import SearchResult
    from litmusfuzz.fuzz.campaign.slots import Slot
    from litmusfuzz.fuzz.campaign.unsound_clusters import UnsoundClusters
    from litmusfuzz.reports.events import Executions


class Recorder:
    """Judges executions.

    Parameters
    ----------
    course : Course
    dispatcher : Dispatcher
    candidates : CandidateBacklog
        Receives what is forbidden.
    unsound : UnsoundClusters

    Attributes
    ----------
    unfinished : dict of int to WaitingRuns
        By number of the executor: the runs that have earned another round.
    """

    def __init__(
        self,
        course: Course,
        dispatcher: Dispatcher,
        candidates: CandidateBacklog,
        unsound: UnsoundClusters,
    ) -> None:
        self.settings = course.settings
        self.log = course.log
        self.dispatcher = dispatcher
        self.candidates = candidates
        self.unsound = unsound
        self.unfinished = {each.number: WaitingRuns() for each in dispatcher.executors}

    def judge(
        self,
        slot: Slot,
        unfinished: UnfinishedRun,
        event: Executions,
        job: Job,
        histogram: Mapping[Any, int],
        found: SearchResult | None = None,
    ) -> Candidate | None:
        """Judge what a test showed, log it, and keep it, as it was run, if it is forbidden."""
        generated, run, variant = unfinished.generated, unfinished.run, unfinished.variant
        start = clock.now()
        judgement = run.add(variant.as_generated(histogram), event.seconds)
        seconds = clock.now() - start
        self.dispatcher.weights.add_time(generated.family, seconds)
        event = structs.replace(
            event,
            verdicts={str(v): n for v, n in judgement.verdicts.items()},
            reached=run.reached if event.allowed else None,
            judging_s=round(seconds, 6),
        )
        candidate = None
        if not judgement.forbidden:
            self.log(event)
        else:
            as_run = variant.as_run(judgement)
            if found is not None:
                as_run = with_schedule(as_run, found)
            candidate = Candidate(
                index=generated.index,
                family=generated.family,
                test=variant.test,
                executor=slot.executor.number,
                target=unfinished.sampled.target,
                judgement=as_run,
                noise=job.noise,
                seed=job.seed,
                repetition=generated.repetition,
            )
            slot.shown.append(candidate)
            file = self.candidates.findings.store_unreduced(candidate)
            known = self.candidates.likely_known(candidate)
            self.log(
                structs.replace(
                    event,
                    unreduced=file,
                    symptoms=tuple(sorted({symptom(o) for o, _ in judgement.forbidden})),
                    looks_like=known.key if known else "",
                )
            )
            self.candidates.waiting.append(candidate)
        ended = [unfinished]
        goes_on = self.settings.options.count is None and found is None and run.earns_round
        if goes_on and not judgement.forbidden:
            ended = self.unfinished[slot.executor.number].add(unfinished)
        for each in ended:
            self.finish(each)
        return candidate

    def explaining(
        self, candidate: Candidate | None, unsound: Sequence[ChosenVerdict]
    ) -> ChosenVerdict | None:
        """The unsound clusters that explain a candidate, which is then not reduced as well."""
        if candidate is None:
            return None
        model = candidate.target.model
        explaining = self.unsound.explaining(model, candidate.judgement, unsound)
        if explaining is not None:
            candidate.to(State.CLUSTERS)
            self.candidates.waiting.remove(candidate)
        return explaining

    def finish(self, unfinished: UnfinishedRun) -> None:
        """Note that a run does not go on."""
        generated, sampled = unfinished.generated, unfinished.sampled
        executor = next(each for each, of in generated.sampled.items() if of is sampled)
        self.dispatcher.done(generated, executor, unfinished.run.judgement)

    def finish_all(self) -> None:
        """Note that no run goes on."""
        for waiting in self.unfinished.values():
            for unfinished in waiting.clear():
                self.finish(unfinished)


def why_no_outcomes(result: Result) -> str:
    """Why a job has shown no outcomes, as an event says it."""
    if isinstance(result, Died):
        return "timed out" if result.timed_out else "crashed"
    assert isinstance(result, messages.Reply)
    # The feature without the name of its node, so that refusals are counted by feature.
    lacks = in_a_line(result.refused or result.unavailable).partition(" (")[0]
    return f"refused: {lacks}"
