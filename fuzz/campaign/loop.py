"""The campaign: generate, run, judge, minimize and store until the time is over.

Plain asyncio: one task for each worker slot, each of which takes the next test or finding, and
one that generates tests ahead while nobody waits for an answer. All of it runs in one thread, and
what happens is written as events (`litmusfuzz.reports.events`). `fuzz.campaign.dispatcher`
generates the tests, `fuzz.campaign.minimizer` minimizes findings, and `fuzz.campaign.findings`
stores them.
"""

from __future__ import annotations

import asyncio
import gc
import math
import os
import random
import re
from contextlib import suppress
from copy import copy
from datetime import UTC, datetime
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, cast

from msgspec import structs

from litmusfuzz.corpus.outcome import Verdict
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import Script, dumps, save, write_text
from litmusfuzz.fuzz.campaign import clock
from litmusfuzz.fuzz.campaign.cluster_validation import Validator
from litmusfuzz.fuzz.campaign.configured import configured
from litmusfuzz.fuzz.campaign.crash_reducer import Crash, SmallestCrash, UnreducedCrash
from litmusfuzz.fuzz.campaign.depth import (
    ENVIRONMENT_SWITCH_S,
    GraphRun,
    UnfinishedRun,
    WaitingRuns,
)
from litmusfuzz.fuzz.campaign.dispatcher import (
    CampaignExecutor,
    Dispatcher,
    GeneratedTest,
    UnreducedFinding,
)
from litmusfuzz.fuzz.campaign.event_log import EventLog
from litmusfuzz.fuzz.campaign.explainer import Explainer
from litmusfuzz.fuzz.campaign.findings import Findings
from litmusfuzz.fuzz.campaign.look_alikes import BEGUN_SHARE, LookAlikes, in_full_s
from litmusfuzz.fuzz.campaign.minimizer import CONFIRM_S, Best, Minimizer, expected_cost_s
from litmusfuzz.fuzz.campaign.sampler import ConfigurationSampler, SampledConfiguration
from litmusfuzz.fuzz.campaign.script_runner import ScriptRunner
from litmusfuzz.fuzz.campaign.scripts import crash_script, script_of
from litmusfuzz.fuzz.campaign.settings import shallow
from litmusfuzz.fuzz.campaign.slots import Job, Slot
from litmusfuzz.fuzz.campaign.unsound_clusters import UnsoundClusters
from litmusfuzz.fuzz.campaign.variation import Variation, VariedTest, varied
from litmusfuzz.fuzz.executors import messages
from litmusfuzz.fuzz.executors.configuration_generator import PRODUCT, ConfigurationGenerator
from litmusfuzz.fuzz.executors.memory import COLLECTED_EVERY, MemoryCap, available_bytes, watch
from litmusfuzz.fuzz.executors.process_log import in_a_line
from litmusfuzz.fuzz.executors.protocol import Clusters, Noise, Packing, noise_text
from litmusfuzz.fuzz.executors.table import CANARY, configuration, executor_class
from litmusfuzz.fuzz.executors.worker import Died, Worker
from litmusfuzz.fuzz.finding.canonical import digest
from litmusfuzz.fuzz.finding.canonical import executor_class as class_of
from litmusfuzz.fuzz.finding.causes import may_share_cause, symptom
from litmusfuzz.fuzz.finding.configuration_reducer import needs_in_words
from litmusfuzz.fuzz.finding.judge import Judgement, explorer_or_none, judge
from litmusfuzz.fuzz.finding.judging_model import guaranteed, judging_model
from litmusfuzz.fuzz.finding.known_findings import NOTHING, KnownFindings
from litmusfuzz.fuzz.finding.worker_deaths import raised
from litmusfuzz.reports.events import (
    CanaryRun,
    ConfigurationGenerated,
    ConfigurationUnavailable,
    Confirmed,
    Continued,
    CrashReduced,
    Executed,
    Executions,
    ReductionEnded,
    ReductionStarted,
    ScriptRun,
    ShardEnded,
    ShardStarted,
)
from litmusfuzz.reports.script import NoScript

if TYPE_CHECKING:
    from collections.abc import (
        Callable,
        Collection,
        Coroutine,
        Iterable,
        Iterator,
        Mapping,
        Sequence,
    )
    from pathlib import Path

    from litmusfuzz.corpus.textfile import Entry, Finding
    from litmusfuzz.fuzz.campaign.cluster_validation import ChosenVerdict
    from litmusfuzz.fuzz.campaign.settings import Settings
    from litmusfuzz.fuzz.campaign.slots import Result
    from litmusfuzz.fuzz.executors.protocol import ChosenClusters, Config
    from litmusfuzz.fuzz.finding.minimized_finding import MinimizedFinding
    from litmusfuzz.oracles.model import Model
    from litmusfuzz.reports.events import Event

POLL_S: Final = 0.25
"""Seconds after which a waiting task looks again: what it waits for may be a matter of time."""
EXPERIMENT_S: Final = 6.0
"""Seconds that an experiment on what is known takes at most, with the start of a process."""
ASKED_AT_END_S: Final = 5.0
"""Seconds for which a campaign of so many tests asks at its end whether known causes still show.
There are 50 of TensorFlow, for which it asks for twenty seconds."""
TRYING_AGAIN_SHARE: Final = 0.1
"""Share of the time for what a fresh process has not shown, while nothing waits to be minimized."""
LEAST_ATTEMPTS: Final = 2
"""Fresh processes that are given such a test before a campaign of so many tests ends."""
CRASH_S: Final = 10.0
"""Rough estimate of the seconds that the reduction of a crash takes."""
CLUSTERINGS: Final = 8
"""Graphs of a minimized test that are built to see which clusters it has: TensorFlow clusters ops
by their order in the graph, in which they are shuffled."""
MAX_BEHIND: Final = 3
"""Defects of one test that are uncovered one behind another."""
Known = TypeVar("Known")
_PARENT: Final = re.compile(r"mutation of (\S+):")


class _Planned(NamedTuple):
    """A generated test, and how it is run."""

    generated: GeneratedTest
    job: Job
    variation: Variation
    made: VariedTest
    sha256: str
    """Of the test as it is run; its plain data is made once, as it is soon sent as well."""


class _Shown(NamedTuple):
    """A test that was run: what it showed, and what came with that."""

    planned: _Planned
    result: Result
    seconds: float
    counters: dict[str, float]
    clusterings: tuple[ChosenClusters, ...] = ()


class _FollowUp(NamedTuple):
    """Unsound clusters that a test showed, and that which explains its forbidden outcomes."""

    planned: _Planned
    unsound: Sequence[ChosenVerdict]
    explaining: ChosenVerdict | None


class Campaign:
    """One campaign, or one shard of it.

    Parameters
    ----------
    settings : Settings
    write : callable
        Receives the events, in their order, one or more at a time.
    known : sequence of MinimizedFinding
        Minimized findings of earlier shards: what they explain is not minimized again.
    pending : sequence of Entry
        Unreduced findings of earlier shards, which this one minimizes.
    suspects : sequence of Entry
        Further ones, whose processes crashed later.
    unconfirmed : sequence of Entry
        Tests that fresh processes of earlier shards did not show again: tried when there is time.
    earlier : mapping of int to set of str
        As of `Dispatcher`.
    known_deaths : KnownFindings
        Patterns of the known-findings file: a crash that one of them explains is not reduced.
    reduced : collection of (str, str)
        Executors, and exceptions (`fuzz.finding.worker_deaths.raised`), of crashes that earlier
        shards have reduced.

    Attributes
    ----------
    problem : str
        Why the campaign has ended before its time; "" if there is no reason.
    """

    def __init__(
        self,
        settings: Settings,
        write: Callable[[Sequence[Event]], None],
        known: Sequence[MinimizedFinding] = (),
        pending: Sequence[Entry] = (),
        suspects: Sequence[Entry] = (),
        unconfirmed: Sequence[Entry] = (),
        earlier: Mapping[int, Collection[str]] = MappingProxyType({}),
        known_deaths: KnownFindings = NOTHING,
        reduced: Collection[tuple[str, str]] = (),
    ) -> None:
        self.settings = settings
        self.log = log = EventLog(write)
        self.known_deaths = known_deaths
        self.crashes: list[UnreducedCrash] = []
        """The first of each exception that is to be reduced."""
        self._exceptions = set(reduced)
        """Executors and exceptions, each of which is reduced once."""
        self.slots: list[Slot] = []
        executors = []
        for name, *configs in (*settings.executors, (CANARY, configuration(CANARY))):
            executor = self._executor(name, configs)
            executors.append(executor)
            for _ in range(1 if name == CANARY else settings.workers):
                python = None if name == CANARY else settings.python
                worker = Worker(name, settings.memory_bytes, python, spawn=settings.spawn)
                slot = Slot(worker, executor, executor.sampler.current, self._note_death)
                self.slots.append(slot)
        self.validator = Validator(settings, log)
        self.unsound_clusters = UnsoundClusters(self.validator)
        self.dispatcher = Dispatcher(settings, executors, self.validator, log, earlier)
        self.unfinished = {executor: WaitingRuns() for executor in executors}
        self.findings = Findings(settings, log, self.dispatcher, known)
        self.minimizer = Minimizer(settings)
        self.explainer = Explainer(settings, self.findings, log)
        self.look_alikes = LookAlikes()
        self.unreduced: list[UnreducedFinding] = []
        self.unconfirmed: list[UnreducedFinding] = []
        """What a fresh process has not shown."""
        self.scripts: list[MinimizedFinding] = []
        """New findings whose standalone scripts are to be written and run; the first one is run."""
        self.script_runner = ScriptRunner(settings.python)
        self.minimizing: dict[Slot, UnreducedFinding] = {}
        self.started = clock.now()
        self.stopping = False
        self.problem = ""
        self._change = asyncio.Event()
        for entry in pending:
            self.unreduced += self._pending(entry)
        for entry in suspects:
            self.unreduced += self._pending(entry, suspect=True)
        for entry in unconfirmed:
            self.unconfirmed += self._pending(entry, settled=True, attempts=1)

    def _executor(self, name: str, configs: Sequence[Config]) -> CampaignExecutor:
        settings, made = self.settings, executor_class(name)
        presets = [config for config in configs if config.name != PRODUCT]
        sampler = ConfigurationSampler(
            [self._configuration(name, config) for config in presets],
            settings.tests or settings.time_s,
            counted=settings.tests is not None,
            generate=next(
                (self._generator(name, each) for each in configs if each.name == PRODUCT), None
            ),
        )
        return CampaignExecutor(
            name,
            sampler,
            () if name == CANARY else settings.families_for_executor(name),
            made.support,
            made if issubclass(made, Clusters) else None,
            getattr(made, "damaging_ops", frozenset()),
            deadly_ops=settings.deadly_ops,
            packing=made if issubclass(made, Packing) else None,
            sample=partial(self._simpler, name),
        )

    def _generator(self, name: str, product: Config) -> Callable[[], SampledConfiguration]:
        """Generates further configurations of an executor, each with an event."""
        generator = ConfigurationGenerator(name, self.settings.seed, product)

        def generate() -> SampledConfiguration:
            config = generator.next()
            made = configured(name, config, self.settings.model)
            self.log(ConfigurationGenerated(configuration=made))
            return self._configuration(name, config)

        return generate

    def _configuration(self, name: str, config: Config) -> SampledConfiguration:
        """A configuration that tests run in."""
        judging = judging_model(name, config, asked=self.settings.model)
        return self._judged_by(name, config, judging.model)

    def _simpler(self, name: str, config: Config) -> SampledConfiguration:
        """A configuration in which a finding of another one is tried.

        It is judged by what it guarantees, or by the campaign's model if that is weaker.
        """
        model, keeps = self.settings.model, guaranteed(name, config)
        weaker = model is not None and model.axioms <= keeps.axioms
        return self._judged_by(name, config, model if model and weaker else keeps)

    @staticmethod
    def _judged_by(name: str, config: Config, model: Model) -> SampledConfiguration:
        of = class_of(name, dict(config.settings), model.name)
        return SampledConfiguration(config, model, name, of)

    def _pending(self, entry: Entry, **state: Any) -> Iterator[UnreducedFinding]:
        """The unreduced finding that an earlier shard left as a file, if it can be judged."""
        finding = entry.finding
        assert finding is not None
        executor, sampled = self._found_in(finding)
        oracle = explorer_or_none(entry.test, sampled.model, self.settings.budget)
        if oracle is None:  # of another version, or of a stranger: it stays as it is
            return
        verdicts = {
            Verdict.FORBIDDEN: finding.count,
            Verdict.ALLOWED: finding.executions - finding.count,
        }
        judgement = Judgement(oracle, dict(finding.forbidden), verdicts, finding.forbidden)
        generated = GeneratedTest(
            index=finding.index,
            family=finding.family,
            test=entry.test,
            oracles={sampled.model.name: oracle},
            allowed={},
            sampled={executor: sampled},
            pending=set(),
        )
        noise = Noise(**cast("dict[str, Any]", dict(finding.noise)))
        seed = finding.run_seed or 0
        yield UnreducedFinding(generated, executor, judgement, noise, seed, **state)

    def _found_in(self, finding: Finding) -> tuple[CampaignExecutor, SampledConfiguration]:
        """The executor and configuration of an unreduced finding; it may be a generated one."""
        executors = [e for e in self.dispatcher.executors if e.name == finding.executor]
        for executor in executors:
            for sampled in executor.sampler.configurations:
                if sampled.config.name == finding.configuration:
                    return executor, sampled
        config = configuration(finding.executor, finding.configuration)
        return executors[0], self._configuration(finding.executor, config)

    # --- start, end, and what is next ------------------------------------------------------

    def stop(self) -> None:
        """End the campaign soon; what is not minimized stays in ``unreduced/``."""
        self.stopping = True
        self._notify()

    async def run(self) -> None:
        """Run until the time is over, or `stop` is called.

        Raises
        ------
        OSError
            If a file or event cannot be written: the disk is full.
        """
        begun = clock.now()
        thresholds = gc.get_threshold()
        gc.set_threshold(COLLECTED_EVERY)
        try:
            await self._start()
            if not self.stopping:
                await self._run_tasks()
        finally:
            gc.set_threshold(*thresholds)
            for slot in self.slots:
                slot.worker.close()
            await self.script_runner.close()
        for left in self.scripts:  # no time to run them
            if self._write_script(left) is not None:
                self._note_script(left, shown=False)
        for each in self.look_alikes.take_all():
            self._count_unchecked(*each)
        for waiting in self.unfinished.values():
            for unfinished in waiting.clear():
                self._finish(unfinished)
        with self.log.together():
            self.dispatcher.finish()
        self.log(
            ShardEnded(
                seconds=round(clock.now() - begun, 3),
                problem=self.problem,
                drivers={e.name: found for e in self.dispatcher.fuzzed if (found := e.devices())},
            )
        )

    async def _start(self) -> None:
        """Start every worker."""
        for _ in self.dispatcher.fuzzed:
            self.dispatcher.dispatch_next()
        starts = [asyncio.create_task(self._start_worker(slot)) for slot in self.slots]
        await self._run_until(lambda: self.stopping or all(each.done() for each in starts), starts)
        # Starting the frameworks does not count as fuzzing time.
        self.started = clock.now()
        for slot in self.slots:
            slot.executor.last_taken_at = self.started
        self.log(
            ShardStarted(
                host=os.uname().nodename,
                pid=os.getpid(),
                versions={slot.executor.name: dict(slot.executor.versions) for slot in self.slots},
            )
        )

    async def _start_worker(self, slot: Slot) -> None:
        """Start a worker, in the first configuration that can run here."""
        while why := await slot.why_unavailable():
            self._drop_configuration(slot, why)
            if self.problem:
                return
            if not slot.executor.sampler.running:
                break  # another one is generated for the first test
            slot.switch_to(slot.executor.sampler.running[0])
        self._notify()

    def _drop_configuration(self, slot: Slot, why: str) -> None:
        """Do not use a slot's configuration, which cannot run here; end if it was the last one."""
        sampled, executor = slot.sampled, slot.executor
        if not sampled.unavailable:
            sampled.unavailable = why
            name = sampled.config.name
            self.log(ConfigurationUnavailable(executor=executor.name, configuration=name, why=why))
        if executor.sampler.exhausted:
            self.problem = self.problem or f"{executor.name}: {why}"
            self.stop()

    @property
    def time_left_s(self) -> float:
        """Seconds until no more tests are generated."""
        return self.settings.time_s - (clock.now() - self.started)

    @property
    def _over(self) -> bool:
        """True once nothing more is to be done, or no time is left for it."""
        if self.stopping or self.time_left_s + self.settings.extra_minimizing_s <= 0:
            return True
        once = any(each.attempts < LEAST_ATTEMPTS for each in self.unconfirmed)
        left = bool(self.unreduced or self.minimizing or self.crashes or self.scripts)
        left = left or any(slot.reducing for slot in self.slots)
        if self.time_left_s <= 0:
            return not left
        left = left or bool(self.look_alikes.waiting)
        busy = any(slot.busy for slot in self.slots)
        left = left or once or any(self.unfinished.values())
        return not (busy or left) and self.dispatcher.all_dispatched

    async def _run_tasks(self) -> None:
        """Serve all slots until the campaign is over."""
        tasks = [asyncio.create_task(self._serve(slot)) for slot in self.slots]
        tasks.append(asyncio.create_task(self._generate_ahead()))
        tasks.append(asyncio.create_task(self._run_scripts()))
        tasks.append(asyncio.create_task(self._watch_memory()))
        await self._run_until(lambda: self._over, tasks)

    async def _run_until(
        self, over: Callable[[], bool], tasks: Sequence[asyncio.Task[None]]
    ) -> None:
        """Run tasks until one fails, or it is over; cancel the rest, and raise what failed."""
        try:
            while not (over() or any(each.done() and each.exception() for each in tasks)):
                await self._changed()
        finally:
            for each in tasks:
                each.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
        for result in ended:
            if isinstance(result, Exception):  # not a cancellation
                raise result

    def _notify(self) -> None:
        """Wake the tasks that wait for something to do."""
        self._change.set()
        self._change = asyncio.Event()

    async def _changed(self) -> None:
        """Wait until something has changed, or a while."""
        # Not `wait_for`, which may lose a cancellation in Python 3.11.
        with suppress(TimeoutError):
            async with asyncio.timeout(POLL_S):
                await self._change.wait()

    async def _generate_ahead(self) -> None:
        """Generate tests while a queue is nearly empty, one between two looks at the workers."""
        while self.time_left_s > 0:
            idle = [each for each in self.dispatcher.executors if not each.waiting]
            if self.dispatcher.running_low and self.dispatcher.dispatch_next():
                # A worker waits for a test only if none waits for it.
                if self.dispatcher.all_generated or any(each.waiting for each in idle):
                    self._notify()
                await asyncio.sleep(0)
            else:
                await self._changed()

    async def _watch_memory(self) -> None:
        """Keep all workers together within the memory that they may use."""
        cap = MemoryCap(int(self.settings.machine_share * available_bytes()))
        await watch(lambda: [slot.worker for slot in self.slots], cap)

    async def _serve(self, slot: Slot) -> None:
        """Give a worker one task after another."""
        while True:
            task = self._next_task(slot)
            if task is None:
                await self._changed()
                continue
            slot.busy = True
            try:
                await task
            finally:
                slot.busy = False
                self._notify()

    def _next_task(self, slot: Slot) -> Coroutine[Any, Any, None] | None:
        """What a worker does next; None if there is nothing, or no time for it."""
        unreduced = self._next_to_minimize(slot)
        if unreduced is not None:
            self._take(unreduced)
            return self._minimize(slot, unreduced)
        if (crash := self._next_crash(slot)) is not None:
            self.crashes.remove(crash)
            return self._reduce_crash(slot, crash)
        if (task := self._next_known(slot)) is not None:
            return task
        if self.time_left_s <= 0:
            return None
        unfinished = self._next_to_continue(slot)
        if unfinished is not None:
            self.unfinished[slot.executor].remove(unfinished)
            return self._continue(slot, unfinished)
        if slot.canary:
            generated = slot.executor.take()
            return None if generated is None else self._run_canary(slot, generated)
        first = self._next_first(slot)
        return None if first is None else self._fuzz_packs(slot, first)

    # --- tests -----------------------------------------------------------------------------

    async def _run_canary(self, slot: Slot, generated: GeneratedTest) -> None:
        self.log.flush()  # that it was generated
        result = await slot.run(Job(generated.test, 1, Noise(), 0))
        if isinstance(result, dict):
            oracle = next(iter(generated.oracles.values()))  # every model forbids its outcome
            judgement = judge(oracle, result)
            if Verdict.UNKNOWN not in judgement.verdicts:  # the fuzzed executor counts it
                self.log(CanaryRun(reported=judgement.forbidden_count > 0))

    def _next_first(self, slot: Slot) -> GeneratedTest | None:
        """The next test of a worker, and the first of a pack if others may run with it."""
        self.dispatcher.fill_pack(slot.executor)
        return slot.executor.take()

    async def _packs_of(self, slot: Slot, first: GeneratedTest) -> list[list[_Planned]]:
        """A test, and others that wait and may run with it, as packs of a worker, of one or more.

        Between two tests it is seen whether a worker has answered: none is to wait for long.
        """
        _, noise = self.settings.first_executions
        taken = slot.executor.take_pack(first, noise)
        self.log.flush()  # that they were generated, before they are run
        self._notify()  # more tests are wanted
        planned = []
        for each in taken:
            planned.append(self._planned(slot, each))
            await asyncio.sleep(0)
        # A test with many more lanes is not small, and may be run less often.
        together = [each for each in planned if not each.variation.lanes]
        alone = [[each] for each in planned if each.variation.lanes]
        return [together, *alone] if together else alone

    def _planned(self, slot: Slot, generated: GeneratedTest) -> _Planned:
        """How a generated test is run."""
        run_seed = random.Random(f"{self.settings.seed}/noise/{generated.index}").getrandbits(31)
        variation = Variation()
        if not self.settings.as_generated:
            variation = Variation.choose(generated.test, run_seed, slot.executor.support)
        model = generated.sampled[slot.executor].model
        made = varied(generated.test, variation, run_seed, model)
        job = self._first_job(made, run_seed)
        return _Planned(generated, job, variation, made, digest(made.test))

    async def _fuzz_packs(self, slot: Slot, first: GeneratedTest) -> None:
        """Run tests, one pack after another, as long as nothing else is to be done.

        While the worker runs a pack, the next one is planned and sent, so that the worker need not
        wait; it takes that up while the pack before is judged.
        """
        packs = await self._packs_of(slot, first)
        follow_ups: list[_FollowUp] = []
        while packs:
            pack, *packs = packs
            running = asyncio.create_task(self._run_pack(slot, pack))
            try:
                await asyncio.sleep(0)  # until the worker has been asked
                if not packs and not follow_ups and (after := self._following(slot)) is not None:
                    packs = await self._packs_of(slot, after)
                if packs:
                    jobs = [each.job for each in packs[0]]
                    slot.queue(jobs, packs[0][0].generated.sampled[slot.executor])
                shown = await running
            finally:
                running.cancel()
            # Before it is seen how the next pack ends: if it ends the process, this is in doubt.
            with self.log.together():
                follow_ups += self._judge_pack(slot, shown)
        for each in follow_ups:
            planned = each.planned
            slot.switch_to(planned.generated.sampled[slot.executor])
            await self.unsound_clusters.follow_up(
                slot, planned.generated.index, planned.job, each.unsound, each.explaining
            )

    def _following(self, slot: Slot) -> GeneratedTest | None:
        """The first test of a worker's next pack; None if it is to do something else."""
        if self.time_left_s <= 0 or self.stopping or self._next_to_minimize(slot) is not None:
            return None
        if self._next_crash(slot) is not None:
            return None
        if self._may_look_at_known(slot) or self._next_to_continue(slot) is not None:
            return None
        return self._next_first(slot)

    async def _run_pack(self, slot: Slot, pack: Sequence[_Planned]) -> list[_Shown]:
        """Run the tests of a pack together; one by one if that is impossible."""
        executor = slot.executor
        sampled = pack[0].generated.sampled[executor]
        slot.switch_to(sampled)
        # A job of its own, so that no configuration pays for a framework's start.
        if not sampled.unavailable and (why := await slot.why_unavailable()):
            self._drop_configuration(slot, why)
        if sampled.unavailable:
            for each in pack:
                executor.sampler.add_run(sampled, 0.0)
                self.dispatcher.not_run(each.generated, sampled)
                self.dispatcher.done(each.generated, executor, None)
            return []
        if len(pack) == 1:
            shown_alone = await slot.run(pack[0].job)
            counters = slot.take_counters()
            return [_Shown(pack[0], shown_alone, slot.seconds, counters, slot.clusterings)]
        results = await slot.run_pack([each.job for each in pack])
        seconds = slot.seconds / len(pack)
        counters = slot.take_counters()  # of all; they count for the first
        shown = []
        for planned, result in zip(pack, results, strict=True):
            if result is None:
                shown += await self._run_pack(slot, [planned])
            else:
                shown.append(_Shown(planned, result, seconds, counters))
                counters = {}
        return shown

    def _judge_pack(self, slot: Slot, shown: Sequence[_Shown]) -> list[_FollowUp]:
        """Judge what the tests of a pack have shown; what there is to follow up."""
        follow_ups = []
        for each in shown:
            planned = each.planned
            generated, sampled = planned.generated, planned.generated.sampled[slot.executor]
            unreduced = self._judge_first(slot, each)
            unsound = self.validator.judge_read(
                generated.index, planned.made.test, each.clusterings, sampled
            )
            if unsound:
                explaining = self._explaining(unreduced, unsound)
                follow_ups.append(_FollowUp(planned, unsound, explaining))
        return follow_ups

    def _explaining(
        self, unreduced: UnreducedFinding | None, unsound: Sequence[ChosenVerdict]
    ) -> ChosenVerdict | None:
        """The unsound clusters that explain a finding, which is then not minimized as well."""
        if unreduced is None:
            return None
        model, judgement = unreduced.sampled.model, unreduced.judgement
        explaining = self.unsound_clusters.explaining(model, judgement, unsound)
        if explaining is not None:
            self.unreduced.remove(unreduced)
        return explaining

    def _judge_first(self, slot: Slot, shown: _Shown) -> UnreducedFinding | None:
        """Judge the first executions of a test; the finding, if an outcome is forbidden."""
        generated, job, variation, made, sha256 = shown.planned
        executor, seconds = slot.executor, shown.seconds
        sampled = generated.sampled[executor]
        refused = not isinstance(shown.result, dict | Died)
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
            counters=shown.counters,
        )
        if not isinstance(shown.result, dict):
            self.log(structs.replace(executed, end=_end(shown.result)))
            self.dispatcher.done(generated, executor, None)
            return None
        oracle = generated.oracles[executed.model]
        run = GraphRun(oracle, executed.allowed, generated.new_pairs > 0)
        unfinished = UnfinishedRun(generated, sampled, made, run)
        return self._judge(slot, unfinished, executed, job, shown.result)

    def _first_job(self, made: VariedTest, run_seed: int) -> Job:
        """The first executions of a test: all of them, or shallow ones."""
        count, noise = self.settings.first_executions
        return Job(made.test, made.count(count), noise, run_seed)

    def _judge(
        self,
        slot: Slot,
        unfinished: UnfinishedRun,
        event: Executions,
        job: Job,
        result: Mapping[Any, int],
    ) -> UnreducedFinding | None:
        """Judge what a test showed, and keep it, as it was run, if it is forbidden."""
        generated, run, made = unfinished.generated, unfinished.run, unfinished.made
        start = clock.now()
        judgement = run.add(made.as_generated(result), event.seconds)
        seconds = clock.now() - start
        self.dispatcher.weights.add_time(generated.family, seconds)
        event = structs.replace(
            event,
            verdicts={str(v): n for v, n in judgement.verdicts.items()},
            reached=run.reached if event.allowed else None,
            judging_s=round(seconds, 6),
        )
        unreduced = None
        if not judgement.forbidden:
            self.log(event)
        else:
            as_run = replace(generated, test=made.test), slot.executor, made.as_run(judgement)
            unreduced = UnreducedFinding(*as_run, job.noise, job.seed)
            slot.shown.append(unreduced)
            file = self.findings.store_unreduced(unreduced)
            known = self._looks_like(unreduced)
            self.log(
                structs.replace(
                    event,
                    unreduced=file,
                    symptoms=tuple(sorted({symptom(o) for o, _ in judgement.forbidden})),
                    looks_like=known.key if known else "",
                )
            )
            self.unreduced.append(unreduced)
        ended = [unfinished]
        if self.settings.count is None and run.earns_round and not judgement.forbidden:
            ended = self.unfinished[slot.executor].add(unfinished)
        for each in ended:
            self._finish(each)
        return unreduced

    def _next_to_continue(self, slot: Slot) -> UnfinishedRun | None:
        """The run that goes on for another round; None if there is none, or no time for it."""
        waiting = self.unfinished[slot.executor]
        budget_s = self.time_left_s
        if self.settings.tests is None:
            elapsed = self.settings.time_s - self.time_left_s
            budget_s = (
                self.settings.rounds_share * elapsed * self.settings.workers - waiting.spent_s
            )
        return waiting.next(slot.config.environment, budget_s)

    async def _continue(self, slot: Slot, unfinished: UnfinishedRun) -> None:
        """Execute and judge one round of a test."""
        generated, sampled, run = unfinished.generated, unfinished.sampled, unfinished.run
        made = unfinished.made
        waiting = self.unfinished[slot.executor]
        finished = False
        try:
            slot.switch_to(sampled)
            if why := await slot.why_unavailable():
                self._drop_configuration(slot, why)
                return
            number = run.rounds + 1
            place = f"{self.settings.seed}/round/{generated.index}/{number}"
            run_seed = random.Random(place).getrandbits(31)
            count, noise = run.next_round(self.settings.noise)
            job = Job(made.test, made.count(count), noise, run_seed)
            asked = clock.now()
            result = await slot.run(job)
            seconds = clock.now() - asked
            waiting.add_time(sampled.title, seconds)
            self.dispatcher.weights.add_time(generated.family, seconds)
            event = Continued(
                index=generated.index,
                family=generated.family,
                executor=slot.executor.name,
                configuration=sampled.config.name,
                model=sampled.model.name,
                round=number,
                noise=noise_text(job.noise),
                run_seed=run_seed,
                count=job.count,
                allowed=run.allowed,
                reached_before=run.reached if run.allowed else None,
                reached=run.reached if run.allowed else None,
                seconds=round(seconds, 6),
                counters=slot.take_counters(),
            )
            chosen = slot.clusterings
            unreduced = None
            if isinstance(result, dict):
                before, unseen = run.reached, run.unseen
                finished = True
                unreduced = self._judge(slot, unfinished, event, job, result)
                waiting.add_round(number, run.reached - before, unseen)
            else:
                self.log(structs.replace(event, end=_end(result)))
            unsound = self.validator.unsound(made.test, chosen)
            explaining = self._explaining(unreduced, unsound)
            await self.unsound_clusters.follow_up(slot, generated.index, job, unsound, explaining)
        finally:
            if not finished:
                self._finish(unfinished)

    def _finish(self, unfinished: UnfinishedRun) -> None:
        """Note that a run does not go on."""
        generated, sampled = unfinished.generated, unfinished.sampled
        executor = next(each for each, of in generated.sampled.items() if of is sampled)
        self.dispatcher.done(generated, executor, unfinished.run.judgement)

    def _note_death(self, slot: Slot, job: Job, died: Died) -> None:
        """Store the test on which a worker died; what its process had shown is run again."""
        exception = "" if died.timed_out else raised(died.message)
        if exception and exception == slot.reducing:
            return  # a candidate does what it should
        suspects = [] if died.timed_out else [each for each in slot.shown if not each.settled]
        event = self.findings.store_death(slot, job, died, suspects)
        if exception:
            self._add_crash(UnreducedCrash(slot.executor, slot.sampled, job, event, exception))
        for each in suspects:
            each.suspect = True
        self.look_alikes.drop(suspects)
        waiting = {*self.unreduced, *self.minimizing.values()}
        self.unreduced += [each for each in suspects if each not in waiting]

    # --- crashes -----------------------------------------------------------------------------

    def _add_crash(self, crash: UnreducedCrash) -> None:
        """Let a crash wait to be reduced, unless it is known, or another one of its kind does."""
        test, of = crash.job.test, crash.sampled.executor_class
        assert test is not None
        kind = crash.executor.name, crash.raised
        entries = self.known_deaths.of(crash.executor.versions)
        today = datetime.now(UTC).date()
        known = entries.match("", test, crash.died.kind, of, today, crash.died.message)
        if known is None and kind not in self._exceptions:
            self._exceptions.add(kind)
            self.crashes.append(crash)

    def _next_crash(self, slot: Slot) -> UnreducedCrash | None:
        """The crash that a worker reduces next; None if there is none, or no time for it."""
        waiting = [each for each in self.crashes if each.executor is slot.executor]
        return waiting[0] if waiting and self._may_minimize(slot, 0.25 * CRASH_S) else None

    async def _reduce_crash(self, slot: Slot, crash: UnreducedCrash) -> None:
        """Reduce a test on which an exception ended a worker, and store it with its script."""
        test = crash.job.test
        assert test is not None
        slot.minimizing, slot.reducing = True, crash.raised
        slot.executor.minimizing_s += CRASH_S  # until it ends: another worker may ask
        start = clock.now()
        smallest = SmallestCrash(Crash(test, crash.sampled.config))
        try:
            died = await self.minimizer.reduce_crash(slot, crash, smallest)
            if died is not None:
                await self._store_crash(slot, crash, smallest, died, start)
        finally:
            slot.executor.minimizing_s += clock.now() - start - CRASH_S
            slot.minimizing, slot.reducing = False, ""

    async def _store_crash(
        self, slot: Slot, crash: UnreducedCrash, smallest: SmallestCrash, died: Died, start: float
    ) -> None:
        """Store a reduced crash with its script, and run that."""
        executor, config = crash.executor, smallest.crash.config
        entry, file = self.findings.store_crash(crash, smallest, died)
        version = executor.versions_of(config.name).get("jax", "")
        needs = needs_in_words(executor.name, config, reduced=smallest.settings_tried)
        shows: bool | None = False
        try:
            script = self.findings.path(file).with_suffix(".py")
            shown = config, version, smallest.place, crash.raised, needs
            write_text(crash_script(entry.test, executor.name, *shown), script)
            error = crash.raised.split()[0]
            shows = await self.script_runner.shows_it(script, error=error)
        except NoScript:
            shows = None
        finally:  # also if the time is over
            self.log(
                CrashReduced(
                    died_on=crash.died.file,
                    raised=crash.raised,
                    file=file,
                    entry=dumps(entry),
                    executor=executor.name,
                    configuration=config.name,
                    needs=needs,
                    complete=smallest.complete,
                    script_shows_it=shows,
                    seconds=round(clock.now() - start, 3),
                )
            )

    # --- findings ----------------------------------------------------------------------------

    async def _minimize(self, slot: Slot, unreduced: UnreducedFinding) -> None:
        """Minimize a finding, confirm it in a fresh process, and store it."""
        slot.switch_to(unreduced.sampled)
        slot.minimizing = True
        self.minimizing[slot] = unreduced
        self.log(ReductionStarted(**unreduced.event_fields))
        start, executions = clock.now(), slot.executions
        again = unreduced.attempts > 0
        unreduced.known = None
        # Until it ends, what it is expected to take counts as spent: another worker may ask.
        reserved_s = 0.0 if again else expected_cost_s(unreduced)
        slot.executor.minimizing_s += reserved_s
        best = Best(
            unreduced.generated.test, unreduced.judgement, unreduced.sampled, unreduced.noise
        )
        try:
            await self._minimize_to(slot, unreduced, best)
        except asyncio.CancelledError:
            if self.settings.keeps_partial and not again:
                self.findings.store(unreduced, best, minimized=False, confirmed=False)
            raise
        finally:
            seconds = clock.now() - start
            slot.executor.minimizing_s -= reserved_s
            if again:
                slot.executor.trying_again_s += seconds
            elif unreduced.known is not None:
                slot.executor.known_s += seconds
            else:
                slot.executor.minimizing_s += seconds
            slot.minimizing = False
            del self.minimizing[slot]
            shows = unreduced.known or unreduced.found
            self.log(
                ReductionEnded(
                    **unreduced.event_fields,
                    key=shows.key if shows else unreduced.clusters,
                    known=unreduced.known is not None,
                    executions=slot.executions - executions,
                    seconds=round(seconds, 3),
                    counters=slot.take_counters(),
                )
            )

    async def _minimize_to(self, slot: Slot, unreduced: UnreducedFinding, best: Best) -> None:
        """Minimize a finding to `best`."""
        attempt = f"/{unreduced.attempts}" if unreduced.attempts else ""
        place = f"{unreduced.generated.index}{attempt}"
        rng = random.Random(f"{self.settings.seed}/minimize/{place}")
        if why := await slot.why_unavailable():
            self._drop_configuration(slot, why)  # the finding stays in ``unreduced/``
            return
        # As it was run, before a name or an edge of it is changed: these may be what it needs.
        before, was_suspect = slot.executions, unreduced.suspect
        as_run = await self.minimizer.confirm_as_run(slot, unreduced, rng)
        self._settle(unreduced, slot.executions - before, shown=as_run is not None)
        if as_run is None:
            return
        described = all(not self.validator.problem(best.test, each) for each in slot.clusterings)
        # Clusters had explained what a suspect had shown, until its process crashed.
        if was_suspect and await self._counts_as_clusters(
            slot, unreduced, as_run, slot.clusterings
        ):
            return
        if (known := self._looks_like(unreduced)) is not None:
            self._set_aside(unreduced, known)
            return
        best.rate = as_run.rate
        if best.is_large:
            best.pace = as_run.pace
        found = await self._reduced(slot, unreduced, as_run, best, rng, described=described)
        unreduced.found = found
        if found is not None:
            self.scripts.append(found)
            self._notify()

    async def _reduced(
        self,
        slot: Slot,
        unreduced: UnreducedFinding,
        as_run: Best,
        best: Best,
        rng: random.Random,
        *,
        described: bool,
    ) -> MinimizedFinding | None:
        """Reduce a finding to `best`, and store it if no known cause explains it.

        If the clusters of its run are not `described`, those of the minimized test may explain it.
        """
        explainer = self.explainer
        for left in reversed(range(MAX_BEHIND)):
            complete, smallest = await self._smallest(slot, unreduced, best, rng)
            found = smallest or as_run  # it is shown in any case: by the test as it was run
            explained, compared = await explainer.explain(slot, unreduced, found, rng)
            if explained.by is not None:
                explainer.log_comparisons(unreduced, "", compared)
                self.findings.add_sighting(unreduced, explained.by)
                return None
            if explained.behind is None or not left:
                break
            # What shows without what the cause needs is another defect: that one is reduced.
            explainer.log_comparisons(unreduced, "", compared)
            best = Best(*explained.behind, found.sampled, found.noise)
            slot.switch_to(found.sampled)
        if not described and await self._is_unsound_clusters(slot, unreduced, found):
            explainer.log_comparisons(unreduced, unreduced.clusters, compared)
            return None
        stored = self.findings.store(unreduced, found, minimized=complete, confirmed=True)
        explainer.log_comparisons(unreduced, stored.key if stored else "", compared)
        return stored

    async def _is_unsound_clusters(
        self, slot: Slot, unreduced: UnreducedFinding, found: Best
    ) -> bool:
        """True if unsound clusters allow what a minimized test shows, which then counts as these.

        That is for a test whose own clusters the semantics does not describe: a variable has no
        value, say, until it is minimized. A file that is minimized by itself stays what it is.
        """
        if self.settings.keeps_partial:
            return False
        as_run = unreduced.generated.test
        # Of one copy, as those of the minimized test: a cluster of several copies is not described.
        chosen = await slot.clusters_of(as_run)
        if not any(self.validator.problem(as_run, each) for each in chosen):
            return False
        shown_in = unreduced.sampled.config.name
        explaining: tuple[ChosenClusters, ...] = ()
        for seed in range(CLUSTERINGS):
            result = await slot.run(Job(found.test, *shallow(found.noise), seed))
            if not isinstance(result, dict):
                return False
            chosen = slot.clusterings
            if self._explain(chosen, found) is not None:
                explaining = chosen
            elif found.with_same_cause(judge(found.judgement.oracle, result)).forbidden:
                return False  # it shows without unsound clusters too
        return await self._counts_as_clusters(slot, unreduced, found, explaining, shown_in)

    def _explain(self, chosen: Iterable[ChosenClusters], shown: Best) -> ChosenVerdict | None:
        """Unsound ones among these clusters that allow what was shown; None if none do."""
        unsound = self.validator.unsound(shown.test, chosen)
        return self.unsound_clusters.explaining(shown.sampled.model, shown.judgement, unsound)

    async def _counts_as_clusters(
        self,
        slot: Slot,
        unreduced: UnreducedFinding,
        shown: Best,
        chosen: Iterable[ChosenClusters],
        shown_in: str = "",
    ) -> bool:
        """True if some of these clusters are unsound, and allow what was shown: they count then.

        `shown_in` names the configuration that showed it, if that is not the present one.
        """
        explaining = self._explain(chosen, shown)
        if explaining is None:
            return False
        job = Job(shown.test, noise=shown.noise, seed=shown.run_seed or unreduced.seed)
        unreduced.clusters = await self.unsound_clusters.follow_up(
            slot, unreduced.generated.index, job, [explaining], explaining, shown_in
        )
        return True

    async def _smallest(
        self, slot: Slot, unreduced: UnreducedFinding, best: Best, rng: random.Random
    ) -> tuple[bool, Best | None]:
        """Reduce `best`; whether it is complete, and the form that a fresh process shows."""
        minimizer = self.minimizer
        await minimizer.use_all_noise(slot, unreduced, best, rng)
        await minimizer.reduce_configuration(slot, unreduced, best, rng)
        complete = await minimizer.reduce(slot, unreduced, best, rng)
        as_often = copy(best)
        simplest = await minimizer.reduce_configuration(slot, unreduced, best, rng, lenient=True)
        reduced = copy(best)
        normal = await minimizer.normalize(slot, unreduced, best, rng)
        # In the simplest configuration it may show too rarely to be confirmed.
        forms = (best, reduced) if as_often.sampled is best.sampled else (best, reduced, as_often)
        found = await self._confirmed(slot, unreduced, forms, rng)
        finished = complete and simplest and normal
        return finished and (found is best or found is reduced), found

    def _looks_like(self, unreduced: UnreducedFinding) -> MinimizedFinding | None:
        """What a test looks like, unless it is to be reduced in full."""
        return None if unreduced.in_full else self.explainer.likely(unreduced)

    def _set_aside(self, unreduced: UnreducedFinding, known: MinimizedFinding) -> None:
        """Let a test wait that looks like a known cause."""
        unreduced.known = known
        displaced = self.look_alikes.add(unreduced, known)
        if displaced is not None:
            self._count_unchecked(*displaced)

    def _count_unchecked(self, unreduced: UnreducedFinding, known: MinimizedFinding) -> None:
        """Take a test for what it looks like, if its configuration has shown that.

        Else it stays in ``unreduced/``.
        """
        if unreduced.sampled.config.name in known.configurations:
            self.findings.add_sighting(unreduced, known)

    async def _check(self, slot: Slot, unreduced: UnreducedFinding) -> None:
        """Look whether a test shows anything beside the known causes that it contains."""
        slot.switch_to(unreduced.sampled)
        slot.minimizing = True
        self.minimizing[slot] = unreduced
        start = clock.now()
        rng = random.Random(f"{self.settings.seed}/check/{unreduced.generated.index}")
        try:
            if why := await slot.why_unavailable():
                self._drop_configuration(slot, why)  # the finding stays in ``unreduced/``
                return
            known = await self.explainer.known_here(slot, unreduced, rng)
            if known is None:
                self.unreduced.append(unreduced)
                return
            behind = await self.explainer.behind(slot, unreduced, known, rng)
            if unreduced.suspect:  # meanwhile its process has crashed
                return
            if behind is not None:
                self.unreduced.append(behind)
            else:
                self.findings.add_sighting(unreduced, known)
        finally:
            slot.minimizing = False
            del self.minimizing[slot]
            slot.executor.known_s += clock.now() - start

    async def _look_for(self, slot: Slot, known: MinimizedFinding) -> None:
        """Look whether a known cause still shows."""
        start = clock.now()
        rng = random.Random(f"{self.settings.seed}/known/{known.key}")
        slot.minimizing = True
        try:
            await self.explainer.still_shows(slot, known, rng)
        finally:
            slot.minimizing = False
            slot.executor.known_s += clock.now() - start

    def _next_known(self, slot: Slot) -> Coroutine[Any, Any, None] | None:
        """A task about what is known, if its share of the time suffices; None if there is none.

        At the end of a campaign of so many tests all that waits is checked. Whether causes still
        show says nothing about these tests: that is asked for `ASKED_AT_END_S`.
        """
        executor = slot.executor
        left_s = self._left_for_known_s(slot)
        if left_s < EXPERIMENT_S:
            return None
        unchecked = self._unchecked_causes(slot)
        cause = min(unchecked, key=lambda each: each.unseen, default=None)
        if cause is None or cause.unseen:  # others first: it was run before
            unreduced = self.look_alikes.next(executor, left_s)
            if unreduced is not None and unreduced.in_full:
                cost_s = in_full_s(unreduced)
                return self._within_share(executor, cost_s, self._minimize, slot, unreduced)
            if unreduced is not None:
                return self._within_share(executor, EXPERIMENT_S, self._check, slot, unreduced)
        if cause is None:
            return None
        cause.unchecked = False
        return self._within_share(executor, EXPERIMENT_S, self._look_for, slot, cause)

    def _left_for_known_s(self, slot: Slot) -> float:
        """Seconds that a worker may use for what is known."""
        if slot.canary:
            return 0.0
        if self.dispatcher.all_generated and not slot.executor.waiting:
            return math.inf
        if self.time_left_s <= 0:
            return 0.0
        return self._share_for_known_s(slot)

    def _share_for_known_s(self, slot: Slot) -> float:
        """What is left of the share of time for what is known, in seconds."""
        elapsed = self.settings.time_s - self.time_left_s
        return BEGUN_SHARE * elapsed * self.settings.workers - slot.executor.known_s

    def _unchecked_causes(self, slot: Slot) -> list[MinimizedFinding]:
        """Known causes of which nobody has asked whether they still show, if there is time."""
        ended = self.dispatcher.all_generated and not slot.executor.waiting
        in_time = ended and slot.executor.known_s < ASKED_AT_END_S
        if not in_time and self._share_for_known_s(slot) < EXPERIMENT_S:
            return []
        return [each for each in self.findings.of(slot.executor.name) if each.unchecked]

    def _may_look_at_known(self, slot: Slot) -> bool:
        """True if there may be a task about what is known, and time for it."""
        if self._left_for_known_s(slot) < EXPERIMENT_S:
            return False
        return bool(self.look_alikes.waiting or self._unchecked_causes(slot))

    @staticmethod
    async def _within_share(
        executor: CampaignExecutor,
        cost_s: float,
        task: Callable[[Slot, Known], Coroutine[Any, Any, None]],
        slot: Slot,
        about: Known,
    ) -> None:
        """Carry out a task about what is known; until it ends, its time counts as spent."""
        executor.known_s += cost_s
        try:
            await task(slot, about)
        finally:
            executor.known_s -= cost_s

    async def _confirmed(
        self, slot: Slot, unreduced: UnreducedFinding, forms: Iterable[Best], rng: random.Random
    ) -> Best | None:
        """The first of these forms of a finding that a fresh process shows; None if none does."""
        for form in forms:
            slot.switch_to(form.sampled)
            form.schedule = None  # it must belong to the test in the file
            await self.minimizer.record(slot, unreduced, form, rng)
            shown = await self.minimizer.confirm(slot, unreduced, form, rng)
            if shown is not None:
                form.judgement = shown
                return form
        return None

    def _settle(self, unreduced: UnreducedFinding, executions: int, *, shown: bool) -> None:
        """Note if a fresh process has shown a finding as it was run, in so many executions."""
        unreduced.settled = True
        if not shown:
            unreduced.attempts += 1
            self.unconfirmed.append(unreduced)
            self.findings.store_unconfirmed(unreduced, executions)
        else:
            unreduced.suspect = False
            self.log(Confirmed(**unreduced.event_fields))

    async def _run_scripts(self) -> None:
        """Run the script of each new finding, one after the other, beside the workers."""
        while True:
            while self.scripts:
                try:
                    await self._run_script(self.scripts[0])
                finally:
                    del self.scripts[0]
                    self._notify()
            await self._changed()
            await self.script_runner.rest()

    async def _run_script(self, found: MinimizedFinding) -> None:
        """Write and run the standalone script of a finding on TensorFlow."""
        script = self._write_script(found)
        if script is None:
            return
        shown = False
        try:
            shown = await self.script_runner.shows_it(script)
        finally:  # also if the time is over
            self._note_script(found, shown=shown)

    def _write_script(self, found: MinimizedFinding) -> Path | None:
        """Write the script of a finding; None if it has none."""
        script = self.findings.path(found.file).with_suffix(".py")
        try:
            write_text(script_of(found.entry, found.reason), script)
        except NoScript:
            return None
        return script

    def _note_script(self, found: MinimizedFinding, *, shown: bool) -> None:
        """Note in the file of a finding whether its script has shown it."""
        state = Script.SHOWS_IT if shown else Script.UNCONFIRMED
        found.entry = replace(found.entry, finding=replace(found.finding, script=state))
        save(found.entry, self.findings.path(found.file))
        self.log(ScriptRun(key=found.key, file=found.file, shows_it=shown))

    def _next_to_minimize(self, slot: Slot) -> UnreducedFinding | None:
        """The unreduced finding of an executor that most likely shows something new.

        None if there is none, or no time for it.
        """
        executor = slot.executor
        if self.settings.tests is None and self.time_left_s > 0:
            elapsed = self.settings.time_s - self.time_left_s
            share = self.settings.minimizing_share * elapsed * self.settings.workers
            if self.unreduced and executor.minimizing_s >= share:
                return None  # before each one is looked at
        waiting = []
        for unreduced in self.unreduced:
            known = self._looks_like(unreduced)
            if known is None or unreduced.suspect:
                waiting.append(unreduced)
            else:
                self._set_aside(unreduced, known)
        self.unreduced = waiting
        waiting = [
            unreduced
            for unreduced in waiting
            if unreduced.executor is executor and not self._may_show_what_is_minimized(unreduced)
        ]
        if not waiting:
            return self._next_to_try_again(executor)

        def cost_s(unreduced: UnreducedFinding) -> float:
            switches = unreduced.sampled.config.environment != slot.config.environment
            return expected_cost_s(unreduced) + (ENVIRONMENT_SWITCH_S if switches else 0.0)

        new = [each for each in waiting if not any(self.findings.contained(each))]
        chosen = min(new or waiting, key=cost_s)
        # A finding that looks new may exceed the share of the time.
        share_of_cost = 0.25 if new else 0.5
        return chosen if self._may_minimize(slot, share_of_cost * cost_s(chosen)) else None

    def _may_minimize(self, slot: Slot, cost_s: float) -> bool:
        """True if a worker may begin to minimize something that takes so long."""
        executor = slot.executor
        others = [other for other in self.slots if other.executor is executor and other is not slot]
        fuzzing = executor.waiting or any(each.busy and not each.minimizing for each in others)
        busy = sum(each.minimizing for each in others)
        if self.time_left_s <= 0 or (self.dispatcher.all_generated and not fuzzing):
            return True  # nothing else is left to do
        if self.settings.tests is not None and self.time_left_s > self.settings.time_s / 2:
            return False  # a campaign of so many tests generates all first, to be repeatable
        if busy and 2 * (busy + 1) > self.settings.workers:
            return False  # a finding can take minutes: half of the workers run new tests meanwhile
        # A share of the time, so that a rare finding early on does not use all of it.
        elapsed = self.settings.time_s - self.time_left_s
        share = self.settings.minimizing_share * elapsed * self.settings.workers
        return executor.minimizing_s + cost_s <= share

    def _take(self, unreduced: UnreducedFinding) -> None:
        """Remove what is minimized next from what waits."""
        waiting = self.unconfirmed if unreduced in self.unconfirmed else self.unreduced
        waiting.remove(unreduced)

    def _may_show_what_is_minimized(self, unreduced: UnreducedFinding) -> bool:
        """True if another worker minimizes what may well have the same cause."""
        return any(
            other.executor is unreduced.executor
            and may_share_cause(
                other.generated.test,
                (outcome for outcome, _ in other.judgement.forbidden),
                unreduced.generated.test,
                (outcome for outcome, _ in unreduced.judgement.forbidden),
            )
            for other in self.minimizing.values()
        )

    def _next_to_try_again(self, executor: CampaignExecutor) -> UnreducedFinding | None:
        """What a fresh process has not shown, the least tried first; None if there is no time."""
        waiting = [each for each in self.unconfirmed if each.executor is executor]
        if not waiting or self.time_left_s <= 0:
            return None
        chosen = min(waiting, key=lambda each: each.attempts)
        elapsed = self.settings.time_s - self.time_left_s
        share = TRYING_AGAIN_SHARE * elapsed * self.settings.workers
        if self.settings.tests is not None:
            # It ends after its tests, and tries each once more then.
            ready = self.dispatcher.all_generated and chosen.attempts < LEAST_ATTEMPTS
        else:
            ready = executor.trying_again_s + CONFIRM_S <= share
        return chosen if ready else None


def _end(result: Result) -> str:
    """Why a job has shown no outcomes, as an event says it."""
    if isinstance(result, Died):
        return "timed out" if result.timed_out else "crashed"
    assert isinstance(result, messages.Reply)
    # The feature without the name of its node, so that refusals are counted by feature.
    lacks = in_a_line(result.refused or result.unavailable).partition(" (")[0]
    return f"refused: {lacks}"
