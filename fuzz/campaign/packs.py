"""Runs generated tests for the first time, in packs, and follows up what their clusters show.

Any lane may have tests run by it: a test that a lane has taken, with others that wait and may run
in one pack with it.
"""

from __future__ import annotations

import asyncio
import random
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import structs

from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.campaign import clock
from litmusfuzz.fuzz.campaign.depth import GraphRun, UnfinishedRun
from litmusfuzz.fuzz.campaign.graph_searcher import GraphSearcher
from litmusfuzz.fuzz.campaign.job import Job
from litmusfuzz.fuzz.campaign.recorder import Recorder, why_no_outcomes
from litmusfuzz.fuzz.campaign.schedule_search import STILL, SearchResult
from litmusfuzz.fuzz.campaign.variation import Variation, VariedTest, varied
from litmusfuzz.fuzz.executors.protocol import noise_text
from litmusfuzz.fuzz.executors.worker import Died
from litmusfuzz.fuzz.finding.canonical import digest
from litmusfuzz.reports.events import Executed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from litmusfuzz.fuzz.campaign.campaign_executor import GeneratedTest
    from litmusfuzz.fuzz.campaign.candidate import Candidate
    from litmusfuzz.fuzz.campaign.cluster_validation import ChosenVerdict
    from litmusfuzz.fuzz.campaign.course import Course
    from litmusfuzz.fuzz.campaign.event_log import EventLog
    from litmusfuzz.fuzz.campaign.job import Result
    from litmusfuzz.fuzz.campaign.sampler import SampledConfiguration
    from litmusfuzz.fuzz.campaign.slots import Slot
    from litmusfuzz.fuzz.executors.protocol import ChosenClusters

_PARENT: Final = re.compile(r"mutation of (\S+):")


class _Planned(NamedTuple):
    """A generated test, and how it is run."""

    generated: GeneratedTest
    sampled: SampledConfiguration
    job: Job
    variation: Variation
    variant: VariedTest
    sha256: str
    """Of the test as it is run; its plain data is made once, as it is soon sent as well."""

    @property
    def searched(self) -> bool:
        """True if its schedules are searched."""
        return self.sampled.target.explorable


class _Run(NamedTuple):
    """A test that was run: its result, and what came with that."""

    planned: _Planned
    result: Result | SearchResult
    seconds: float
    counters: dict[str, float]
    clusterings: tuple[ChosenClusters, ...] = ()


class _FollowUp(NamedTuple):
    """Unsound clusters that a test showed, and that which explains its forbidden outcomes."""

    planned: _Planned
    unsound: Sequence[ChosenVerdict]
    explaining: ChosenVerdict | None


class PackRunner:
    """Runs tests that wait for their first executions.

    Parameters
    ----------
    course : Course
    log : EventLog
    recorder : Recorder

    Attributes
    ----------
    searcher : GraphSearcher
    """

    def __init__(self, course: Course, log: EventLog, recorder: Recorder) -> None:
        self.course = course
        self.settings = course.settings
        self.log = log
        self.recorder = recorder
        self.dispatcher = recorder.dispatcher
        self.searcher = GraphSearcher(self.settings.options.count)

    async def run(
        self,
        slot: Slot,
        first: GeneratedTest,
        following: Callable[[], GeneratedTest | None] = lambda: None,
    ) -> None:
        """Run a test that a worker has taken, in a pack if others that wait may run with it.

        While the worker runs a pack, the first test of the one after it is taken by `following`, if
        there is to be one. That pack is planned and sent, so that the worker need not wait; it
        takes it up while the pack before is judged.
        """
        packs = await self._packs_of(slot, first)
        follow_ups: list[_FollowUp] = []
        while packs:
            pack, *packs = packs
            running = asyncio.create_task(self._run_pack(slot, pack))
            try:
                await asyncio.sleep(0)  # until the worker has been asked
                if not packs and not follow_ups and (after := following()) is not None:
                    packs = await self._packs_of(slot, after)
                if packs and not (pack[0].searched or packs[0][0].searched):
                    slot.send_ahead([each.job for each in packs[0]], packs[0][0].sampled.target)
                runs = await running
            finally:
                running.cancel()
            # Before it is seen how the next pack ends: if it ends the process, this is in doubt.
            with self.log.together():
                follow_ups += self._judge_pack(slot, runs)
        for each in follow_ups:
            planned = each.planned
            slot.switch_to(planned.sampled.target)
            await self.recorder.unsound.follow_up(
                slot, planned.generated.index, planned.job, each.unsound, each.explaining
            )

    async def _packs_of(self, slot: Slot, first: GeneratedTest) -> list[list[_Planned]]:
        """A test, and others that wait and may run with it, as packs of a worker, of one or more.

        Between two tests it is seen whether a worker has answered: none is to wait for long.
        """
        _, noise = self.settings.first_executions
        taken = slot.executor.take_pack(first, noise)
        self.log.flush()  # that they were generated, before they are run
        self.course.notify()  # more tests are wanted
        planned = []
        for each in taken:
            planned.append(self._planned(slot, each))
            await asyncio.sleep(0)
        # A test with many more lanes is not small, and may be run less often.
        together = [each for each in planned if not each.variation.lanes]
        alone = [[each] for each in planned if each.variation.lanes]
        return [together, *alone] if together else alone

    def _planned(self, slot: Slot, generated: GeneratedTest) -> _Planned:
        """How a generated test is run: all its executions, or shallow ones."""
        options = self.settings.options
        run_seed = random.Random(f"{options.seed}/noise/{generated.index}").getrandbits(31)
        variation = Variation()
        if not options.as_generated:
            variation = Variation.choose(generated.test, run_seed, slot.executor.support)
        sampled = generated.sampled[slot.executor]
        count, noise = self.settings.first_executions
        if sampled.target.explorable:
            # All schedules of a large tensor take minutes, and its pages are those of a small one.
            variation = replace(variation, lanes=0)
            count, noise = self.searcher.budget, STILL
        variant = varied(generated.test, variation, run_seed, sampled.model)
        job = Job(variant.test, variant.count(count), noise, run_seed)
        return _Planned(generated, sampled, job, variation, variant, digest(variant.test))

    async def _run_pack(self, slot: Slot, pack: Sequence[_Planned]) -> list[_Run]:
        """Run the tests of a pack together; one by one if that is impossible."""
        executor, sampled = slot.executor, pack[0].sampled
        slot.switch_to(sampled.target)
        # A job of its own, so that no configuration pays for a framework's start.
        if not sampled.unavailable and (why := await slot.why_unavailable()):
            self.course.drop_target(slot, why)
        if sampled.unavailable:
            for each in pack:
                executor.sampler.add_run(sampled, 0.0)
                self.dispatcher.comparisons.not_run(each.generated, sampled.target)
                self.dispatcher.done(each.generated, executor, None)
            return []
        if pack[0].searched:
            begun = clock.now()
            found = await self.searcher.search(slot, pack[0].job)
            seconds = clock.now() - begun
            return [_Run(pack[0], found, seconds, slot.take_counters(), slot.clusterings)]
        if len(pack) == 1:
            result = await slot.run(pack[0].job)
            counters = slot.take_counters()
            return [_Run(pack[0], result, slot.seconds, counters, slot.clusterings)]
        results = await slot.run_pack([each.job for each in pack])
        seconds = slot.seconds / len(pack)
        counters = slot.take_counters()  # of all; they count for the first
        runs = []
        for planned, each_result in zip(pack, results, strict=True):
            if each_result is None:
                runs += await self._run_pack(slot, [planned])
            else:
                runs.append(_Run(planned, each_result, seconds, counters))
                counters = {}
        return runs

    def _judge_pack(self, slot: Slot, runs: Sequence[_Run]) -> list[_FollowUp]:
        """Judge the runs of a pack; what there is to follow up."""
        follow_ups = []
        for run in runs:
            planned = run.planned
            candidate = self._judge(slot, run)
            unsound = self.recorder.unsound.validator.judge_read(
                planned.generated.index,
                planned.variant.test,
                run.clusterings,
                planned.sampled.target,
            )
            if unsound:
                explaining = self.recorder.explaining(candidate, unsound)
                follow_ups.append(_FollowUp(planned, unsound, explaining))
        return follow_ups

    def _judge(self, slot: Slot, run: _Run) -> Candidate | None:
        """Judge the first executions of a test; a candidate, if an outcome is forbidden."""
        generated, sampled, job, variation, variant, sha256 = run.planned
        executor, seconds = slot.executor, run.seconds
        refused = not isinstance(run.result, dict | Died)
        executor.sampler.add_run(sampled, seconds, generated.family, refused=refused)
        self.dispatcher.weights.add_time(generated.family, seconds)
        parent = _PARENT.match(generated.test.description)
        executed = Executed(
            index=generated.index,
            family=generated.family,
            parent=parent[1] if parent else "",
            executor=executor.name,
            configuration=sampled.config.name,
            model=sampled.model.name,
            noise=noise_text(job.noise),
            variation=str(variation),
            run_seed=job.seed,
            count=job.count,
            sha256=sha256,
            allowed=generated.allowed.get(sampled.model.name),
            seconds=round(seconds, 6),
            counters=run.counters,
        )
        result, found = run.result, None
        if isinstance(result, SearchResult):
            found, result = result, dict(result.histogram)
            begun = found.executions + found.sampled
            executed = structs.replace(executed, count=begun, searched=found.event)
        if not isinstance(result, dict):
            self.log(structs.replace(executed, end=why_no_outcomes(result)))
            self.dispatcher.done(generated, executor, None)
            return None
        oracle = generated.oracles[executed.model]
        graph_run = GraphRun(oracle, executed.allowed, generated.new_pairs > 0)
        unfinished = UnfinishedRun(generated, sampled, variant, graph_run)
        return self.recorder.judge(slot, unfinished, executed, job, result, found)
