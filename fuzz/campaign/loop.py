"""The campaign loop: generate, run, judge, minimize and store until the time is over.

One thread, many processes. The loop gives each idle worker a task (`fuzz.campaign.jobs`) and waits
for the first worker to answer. `fuzz.campaign.dispatcher` generates the tests,
`fuzz.campaign.minimizer` minimizes findings, and `fuzz.campaign.findings` stores them.
"""

from __future__ import annotations

import json
import random
import select
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from litmusfuzz.corpus.outcome import Verdict
from litmusfuzz.corpus.textfile import Entry, Schedule, Script, dumps, save, write_text
from litmusfuzz.fuzz.campaign.causes import symptom
from litmusfuzz.fuzz.campaign.dispatcher import CampaignExecutor, Dispatcher, GeneratedTest
from litmusfuzz.fuzz.campaign.event_log import EventLog, ExecutedTest
from litmusfuzz.fuzz.campaign.findings import Findings
from litmusfuzz.fuzz.campaign.jobs import Job, Slot
from litmusfuzz.fuzz.campaign.judge import Judgement, explorer_or_none, judge
from litmusfuzz.fuzz.campaign.minimizer import Best, Minimizer, UnreducedFinding, expected_cost_s
from litmusfuzz.fuzz.campaign.sampler import ConfigurationSampler, SampledConfiguration
from litmusfuzz.fuzz.campaign.scripts import ScriptRun, script_of
from litmusfuzz.fuzz.executors import messages
from litmusfuzz.fuzz.executors.protocol import Clusters, Noise, noise_text
from litmusfuzz.fuzz.executors.table import CANARY, configuration, executor_class
from litmusfuzz.fuzz.executors.worker import Died, Worker
from litmusfuzz.oracles.model import GUARANTEES
from litmusfuzz.reports.records import Death, ExecutorState, ReportedFinding, RunRecord
from litmusfuzz.reports.script import NoScript

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    from litmusfuzz.fuzz.campaign.jobs import Result, Task
    from litmusfuzz.fuzz.campaign.settings import Settings
    from litmusfuzz.fuzz.executors.protocol import Config
    from litmusfuzz.reports.differential import DifferentialComparison

JOB_TIMEOUT_S: Final = 60.0
SAVE_S: Final = 30.0
"""Seconds between two writes of the record during a campaign."""
ENVIRONMENT_SWITCH_S: Final = 8.0
"""Seconds to start a framework in another environment, and later again in this one."""
MAX_KEPT_BYTES: Final = 1 << 25
"""Limit of the file of compared histograms: some ten thousand tests."""


class Campaign:
    """One campaign; `record` has its state at any moment.

    Parameters
    ----------
    settings : Settings
    show : callable
        Called repeatedly with the record, for a view; it must not change the record.
    log : EventLog, optional
        Receives each event.
    known : sequence of ReportedFinding, optional
        Minimized findings of other campaigns: what they explain is not minimized again.
    stop : callable, optional
        Called several times a second; the campaign ends early when it returns True.
    """

    def __init__(
        self,
        settings: Settings,
        show: Callable[[RunRecord], None],
        log: EventLog | None = None,
        known: Sequence[ReportedFinding] = (),
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self.settings = settings
        self.show = show
        self.log = log or EventLog()
        self.stop = stop
        self.record = RunRecord(settings.seed, str(settings.out))
        self.record.command, self.record.python = settings.command, settings.python
        self.record.noise = noise_text(settings.noise)
        self.slots: list[Slot] = []
        executors = []
        for name, *configs in (*settings.executors, (CANARY, configuration(CANARY))):
            made = executor_class(name)
            fast = settings.fast.get(name)
            number = len(configs) + (fast is not None)
            configurations = [self._add_configuration(name, config, number) for config in configs]
            counted = settings.tests is not None
            sampler = ConfigurationSampler(
                configurations, settings.tests or settings.time_s, counted=counted
            )
            families = () if name == CANARY else settings.families_for_executor(name)
            clusterer = made if issubclass(made, Clusters) else None
            fast_sampled = None if fast is None else self._add_configuration(name, fast, number)
            executor = CampaignExecutor(
                name, sampler, families, made.support, clusterer, fast_sampled
            )
            executors.append(executor)
            for _ in range(1 if name == CANARY else settings.workers):
                python = None if name == CANARY else settings.python
                worker = Worker(name, settings.memory_bytes, python)
                self.slots.append(Slot(worker, executor, sampler.current))
        self.dispatcher = Dispatcher(settings, executors, self.record, self._compared, self.log)
        self.findings = Findings(settings, self.record, self.log, self.dispatcher, known)
        self.minimizer = Minimizer(settings)
        self.kept_bytes = 0
        self.unreduced: list[UnreducedFinding] = []
        self.saved = 0.0

    def _add_configuration(self, name: str, config: Config, of: int) -> SampledConfiguration:
        """A configuration of an executor, with a line of its own in the record."""
        model = self.settings.model or GUARANTEES[config.guarantees]
        state = ExecutorState(name, config.name, config.guarantees, model.name, spread=of > 1)
        self.record.executors.append(state)
        return SampledConfiguration(config, model, state)

    def add_unreduced(self, entry: Entry) -> None:
        """Add an unreduced finding that another campaign left as a file in ``unreduced/``."""
        finding = entry.finding
        assert finding is not None
        executor, sampled = next(
            (executor, sampled)
            for executor in self.dispatcher.executors
            for sampled in executor.sampler.configurations
            if (executor.name, sampled.config.name) == (finding.executor, finding.configuration)
        )
        oracle = explorer_or_none(entry.test, sampled.model, self.settings.budget)
        assert oracle is not None  # it was judged by one
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
        self.unreduced.append(
            UnreducedFinding(generated, executor, judgement, noise, finding.run_seed or 0)
        )

    def set_earlier_costs(self, seconds: Mapping[tuple[str, str], float]) -> None:
        """Set the seconds that a test took in each configuration in an earlier campaign."""
        for executor in self.dispatcher.executors:
            fast = () if executor.fast is None else (executor.fast,)
            for sampled in (*executor.sampler.configurations, *fast):
                sampled.seconds_earlier = seconds.get((executor.name, sampled.config.name), 0.0)

    # --- the loop ----------------------------------------------------------------------

    def run(self) -> RunRecord:
        """Run until the time is over or Ctrl-C; then store the rest.

        Ctrl-C is not an error: everything found is kept and reported.
        """
        try:
            if self._start():
                self._loop()
        except KeyboardInterrupt:
            self.record.interrupted = True
        except OSError as error:
            self._note_error(error)
        finally:
            for slot in self.slots:
                if slot.task is not None and not self.record.problem:
                    slot.task.close()  # a reduction stores its best test so far
                slot.worker.close()
                slot.state.state = "ended"
            self.record.minimizing = ""
            try:
                self.dispatcher.finish()
            except OSError as error:
                self._note_error(error)
            self._note_not_minimized()
            self._check_canary()
            try:
                self._save()
            except OSError as error:
                self._note_error(error)
            self.show(self.record)
        return self.record

    def _note_error(self, error: OSError) -> None:
        """Note an error such as a full disk; what was found so far is still reported."""
        self.record.problem = f"{error.filename or self.settings.out}: {error.strerror}"

    def _start(self) -> bool:
        """Start every worker; False if an executor cannot run here."""
        for slot in self.slots:
            slot.worker.send(messages.Request(config=slot.config.name), JOB_TIMEOUT_S)
        for _ in self.dispatcher.fuzzed:
            self.dispatcher.dispatch_next()
        for slot in self.slots:
            self.show(self.record)
            while why := self._why_unavailable(slot, reply := slot.worker.receive()):
                others = self._drop_configuration(slot.executor, slot.sampled, why)
                if not others:
                    self.record.problem = f"{slot.state.name}{why}"
                    return False
                slot.sampled = others[0]
                slot.worker.send(messages.Request(config=slot.config.name), JOB_TIMEOUT_S)
            assert isinstance(reply, messages.Reply)
            self.record.versions[slot.state.name] = reply.versions
            slot.state.state = "idle"
        # Starting the frameworks does not count as fuzzing time.
        self.record.started = time.monotonic()
        for slot in self.slots:
            slot.executor.last_taken_at = self.record.started
        self.log.started(self.record.versions)
        return True

    @staticmethod
    def _why_unavailable(slot: Slot, reply: Result) -> str:
        """Why a worker cannot run its configuration; "" if it can."""
        if isinstance(reply, Died):
            return f" does not start: {reply.message}"
        if isinstance(reply, messages.Reply) and reply.unavailable:
            return f": {reply.unavailable}"
        slot.checked.add(slot.config.name)
        return ""

    def _drop_configuration(
        self, executor: CampaignExecutor, sampled: SampledConfiguration, why: str
    ) -> list[SampledConfiguration]:
        """Drop a configuration that cannot run here; return the remaining ones."""
        sampled.state.unavailable = why.removeprefix(":").strip()
        sampled.state.state = "unavailable"
        self.log.unavailable(sampled.config.name, sampled.state.unavailable)
        return executor.sampler.running

    @property
    def time_left_s(self) -> float:
        """Seconds until no more tests are generated."""
        return self.settings.time_s - (time.monotonic() - self.record.started)

    @property
    def _finishing(self) -> bool:
        """True while the time for new tests is over but findings are still minimized."""
        minimizing = any(s.task is not None and s.state.state == "minimizing" for s in self.slots)
        left = self.time_left_s + self.settings.extra_minimizing_s > 0
        return left and (minimizing or bool(self.unreduced))

    def _loop(self) -> None:
        while (self.time_left_s > 0 or self._finishing) and not self.stop():
            for slot in self.slots:
                if slot.task is None:
                    self._assign(slot)
            busy = [slot for slot in self.slots if slot.task is not None]
            if not (busy or self.unreduced) and self.dispatcher.all_dispatched:
                return  # all requested tests are done, and nothing is left to minimize
            ready = self._wait(busy, 0.0)
            if (
                not ready
                and self.time_left_s > 0
                and self.dispatcher.running_low
                and self.dispatcher.dispatch_next()
            ):
                continue
            until_end = self.time_left_s if self.time_left_s > 0 else 0.25
            for slot in ready or self._wait(busy, min(0.25, until_end)):
                self._advance(slot)
            self.record.elapsed_s = time.monotonic() - self.record.started
            self.show(self.record)
            if self.record.elapsed_s - self.saved > SAVE_S:
                self._save()
        self.record.interrupted = self.time_left_s > 0

    def _save(self) -> None:
        """Write the record anew; its file is complete at any moment."""
        if not self.settings.writes_record:
            return
        self.saved = self.record.elapsed_s
        write_text(json.dumps(self.record.as_json(), indent=1) + "\n", Path(self.record.path))

    @staticmethod
    def _wait(busy: list[Slot], timeout_s: float) -> list[Slot]:
        """Slots whose worker has answered, ended, or is overdue."""
        readable, _, _ = select.select([slot.awaited for slot in busy], [], [], timeout_s)
        return [slot for slot in busy if slot.awaited in readable or slot.awaited.overdue]

    def _assign(self, slot: Slot) -> None:
        """Give an idle worker its next task, if there is one."""
        unreduced = self._next_to_minimize(slot)
        if unreduced is not None:
            self._start_task(slot, unreduced.sampled, self._minimize(slot, unreduced))
            return
        if self.time_left_s <= 0:
            return  # only findings in progress are completed
        if not (slot.executor.waiting or slot.state.canary):
            self.dispatcher.dispatch_next()
        generated = slot.executor.take()
        if generated is not None:
            sampled = generated.sampled.get(slot.executor, slot.sampled)
            task = self._run_canary if slot.state.canary else self._fuzz
            self._start_task(slot, sampled, task(slot, generated))

    def _start_task(self, slot: Slot, sampled: SampledConfiguration, task: Task) -> None:
        slot.switch_to(sampled)
        slot.task = task
        try:
            self._send(slot, next(task))
        except StopIteration:
            slot.task = None

    def _send(self, slot: Slot, job: Job | ScriptRun) -> None:
        if isinstance(job, ScriptRun):
            slot.script = job
            return
        if job.fresh:
            # No second process is prepared in the background: a framework's import on
            # one of two cores keeps racing ops from meeting.
            slot.worker.close()
            slot.note_restart()
        slot.jobs_run += 1
        slot.job = job
        slot.job_started = time.monotonic()
        slot.worker.send(job.request(slot.config), JOB_TIMEOUT_S)

    def _compared(self, comparison: DifferentialComparison) -> None:
        """Count the outcomes of a test on several executors, and keep them in a file.

        The file's size is limited (`MAX_KEPT_BYTES`).
        """
        record = self.record
        record.compare(comparison)
        line = json.dumps(
            {
                "seed": record.seed,
                "index": comparison.index,
                "family": comparison.family,
                "test": dumps(Entry(comparison.test)),
                **comparison.as_json(),
            }
        )
        if record.problem or self.kept_bytes + len(line) > MAX_KEPT_BYTES:
            return
        path = self.settings.out / f"histograms-{record.seed}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a" if record.kept else "w", encoding="utf-8") as file:
            file.write(f"{line}\n")
        self.kept_bytes += len(line)
        record.kept += 1
        record.kept_in = str(path)

    def _advance(self, slot: Slot) -> None:
        """Pass a worker's answer to its task, and send the task's next job."""
        assert slot.task is not None
        if slot.script is not None:
            slot.script = None
            self._resume(slot, {})
            return
        assert slot.job is not None
        reply = slot.worker.receive()
        slot.state.busy_s += time.monotonic() - slot.job_started
        result: Result = reply
        if isinstance(reply, Died):
            self._note_death(slot, reply)
        else:
            slot.count(reply.counters)
            slot.seconds = reply.seconds
        if isinstance(reply, messages.Reply) and reply.rows:
            assert slot.job.test is not None
            seen = messages.histogram(slot.job.test, reply)
            result = seen
            if slot.job.wanted:
                (outcome,) = seen
                result = Schedule(outcome, tuple(reply.choices))
            count = sum(seen.values())
            slot.state.outcomes += count
            if slot.state.state == "minimizing":
                slot.state.minimizing_outcomes += count
        self._resume(slot, result)

    def _resume(self, slot: Slot, result: Result) -> None:
        """Resume a task with the result it waited for, and send its next job."""
        assert slot.task is not None
        try:
            self._send(slot, slot.task.send(result))
        except StopIteration:
            slot.task = None
            slot.state.state = "unavailable" if slot.state.unavailable else "idle"

    def _note_death(self, slot: Slot, died: Died) -> None:
        """Count a crash or timeout, and store the test on which it happened."""
        assert slot.job is not None
        what = "timed-out" if died.timed_out else "crashed"
        if died.timed_out:
            slot.state.timed_out += 1
        else:
            slot.state.crashed += 1
        slot.state.restarts += 1
        ran = slot.jobs_run - 1
        slot.note_restart()
        if slot.job.test is None:
            return  # `_drop_configuration` reports it
        seed = self.settings.seed
        test = replace(
            slot.job.test,
            name=f"{what}-{seed}-{len(self.record.deaths) + 1}",
            description=f"{slot.state.name}/{slot.config.name}: {died.message}\n"
            f"seed {seed}, while {slot.state.state}, "
            f"after {ran} other jobs in the same process\n"
            + ", ".join(f"{k} {v}" for k, v in self.record.versions[slot.state.name].items()),
        )
        path = self.settings.out / what / f"{test.name}.yaml"
        save(Entry(test), path)
        self.record.deaths.append(Death(str(path), died.message, died.timed_out))
        self.log.worker_died(
            Entry(test), path, died.message, config=slot.config.name, timed_out=died.timed_out
        )

    # --- tasks -------------------------------------------------------------------------

    def _run_canary(self, _: Slot, generated: GeneratedTest) -> Task:
        result = yield Job(generated.test, 1, Noise(), 0)
        if isinstance(result, dict):
            oracle = next(iter(generated.oracles.values()))  # every model forbids its outcome
            judgement = judge(oracle, result)
            if Verdict.UNKNOWN not in judgement.verdicts:  # the fuzzed executor counts it
                reported = judgement.forbidden_count > 0
                self.record.canary_runs += 1
                self.record.canary_reported += reported
                self.log.canary_run(reported=reported)

    def _fuzz(self, slot: Slot, generated: GeneratedTest) -> Task:
        """Run one generated test and judge its outcomes."""
        sampled, executor, sampler = slot.sampled, slot.executor, slot.executor.sampler
        if sampler.several and not (
            sampled.state.unavailable or sampled.config.name in slot.checked
        ):
            # A job of its own, so that no configuration pays for a framework's start.
            why = self._why_unavailable(slot, (yield Job(None)))
            if why:
                self._drop_configuration(executor, sampled, why)
        if sampled.state.unavailable:
            sampled.state.refuse([sampled.state.unavailable])
            sampler.add_run(sampled, 0.0)
            self.dispatcher.done(generated, executor, None)
            return
        sampled.state.state = "fuzzing"
        asked = time.monotonic()
        run_seed = random.Random(f"{self.settings.seed}/noise/{generated.index}").getrandbits(31)
        noise = self.settings.noise
        result = yield Job(generated.test, self.settings.count, noise, run_seed)
        seconds = time.monotonic() - asked
        sampler.add_run(sampled, seconds)
        sampled.state.fuzzing_s += seconds
        self.dispatcher.add_time(generated.family, seconds)
        model = sampled.model.name
        executed = ExecutedTest(
            index=generated.index,
            family=generated.family,
            test=generated.test,
            config=sampled.config.name,
            model=model,
            noise=noise,
            run_seed=run_seed,
            count=self.settings.count,
            seconds=seconds,
            allowed=generated.allowed.get(model),
        )
        if isinstance(result, messages.Reply):
            # The feature without the name of its node, so that refusals are counted by feature.
            lacks = (result.refused or result.unavailable).partition(" (")[0]
            sampled.state.refuse([lacks])
            self.log.test_executed(replace(executed, end=f"refused: {lacks}"))
        else:
            sampled.state.tests += 1
            sampled.state.families[generated.family] += 1
        if isinstance(result, Died):
            self.log.test_executed(
                replace(executed, end="timed out" if result.timed_out else "crashed")
            )
        if not isinstance(result, dict):
            self.dispatcher.done(generated, executor, None)
            return
        start = time.monotonic()
        judgement = judge(generated.oracles[model], result)
        if model in generated.allowed:
            sampled.state.reach(generated.family, len(judgement.allowed) / generated.allowed[model])
        self.dispatcher.done(generated, executor, judgement)
        seconds = time.monotonic() - start
        self.record.judging_s += seconds
        self.dispatcher.add_time(generated.family, seconds)
        new = judgement.verdicts.keys() - generated.verdicts
        generated.verdicts |= new
        for counts in (self.record, self.record.families[generated.family]):
            counts.unknown_graphs += Verdict.UNKNOWN in new
            counts.forbidden_graphs += Verdict.FORBIDDEN in new
        verdicts = {str(v): n for v, n in judgement.verdicts.items()}
        self.record.verdicts.update(verdicts)
        sampled.state.verdicts.update(verdicts)
        executed = replace(executed, judged=judgement)
        if not judgement.forbidden:
            self.log.test_executed(executed)
            return
        sampled.state.forbidden_graphs += 1
        unreduced = UnreducedFinding(generated, executor, judgement, noise, run_seed)
        known = self.findings.explained_by(unreduced, exact=True)
        path = self.findings.store_unreduced(unreduced)
        self.log.test_executed(replace(executed, unreduced=path, known=known))
        if known is not None:
            known.again(sampled.config.name)
        else:
            self.unreduced.append(unreduced)

    def _minimize(self, slot: Slot, unreduced: UnreducedFinding) -> Task:
        """Minimize a finding, confirm it in a fresh process, and store it."""
        slot.state.state = "minimizing"
        self.record.minimizing = f"graph {unreduced.generated.index} of {slot.state.title}"
        start = time.monotonic()
        rng = random.Random(f"{self.settings.seed}/minimize/{unreduced.generated.index}")
        best = Best(unreduced.generated.test, unreduced.judgement)
        try:
            known = yield from self._known_in_other_configuration(unreduced, rng)
            if known is not None:
                self.findings.add_sighting(unreduced, known)
                return
            complete = yield from self.minimizer.reduce_in_faster_configuration(
                slot, unreduced, best, rng
            )
            complete = complete or (yield from self.minimizer.reduce(slot, unreduced, best, rng))
            # Normalize now: the recorded schedule must belong to the test in the file.
            best.normalize(unreduced.sampled.model, self.settings.budget)
            yield from self.minimizer.record(unreduced, best, rng)
            confirmed = yield from self.minimizer.confirm(unreduced, best, rng)
        except GeneratorExit:
            if self.settings.defers_minimization:
                self.unreduced.append(unreduced)
            else:  # the time is over: store the best so far
                self.findings.store(unreduced, best, minimized=False, confirmed=False)
            raise
        finally:
            slot.executor.minimizing_s += time.monotonic() - start
            self.record.minimizing = ""
        if confirmed is None:
            self.findings.store_unconfirmed(unreduced, best)
        else:
            best.judgement = confirmed
            found = self.findings.store(unreduced, best, minimized=complete, confirmed=True)
            if found is not None:
                yield from self._run_script(found)

    def _run_script(self, found: ReportedFinding) -> Generator[ScriptRun, Result, None]:
        """Write and run the standalone script of a finding on TensorFlow."""
        path = Path(found.path).with_suffix(".py")
        try:
            path.write_text(script_of(found.entry, found.reason), encoding="utf-8")
        except NoScript:
            return
        found.set_script(Script.UNCONFIRMED)
        save(found.entry, found.path)
        script = ScriptRun(path, python=self.settings.python)
        try:
            yield script
            shown = script.shows_it()
        finally:
            script.close()
        if shown:
            found.set_script(Script.SHOWS_IT)
            save(found.entry, found.path)
        self.log.script_run(found)

    def _known_in_other_configuration(
        self, unreduced: UnreducedFinding, rng: random.Random
    ) -> Generator[Job, Result, ReportedFinding | None]:
        """A known finding of another configuration that this configuration shows as well.

        Its test is contained in the unreduced one, and is run here: similarity is no proof.
        """
        if not self.findings.across_configurations(unreduced):
            return None
        for known in self.findings.contained(unreduced, exact=True, other_configurations=True):
            best = Best(known.entry.test, unreduced.judgement)
            finding = known.entry.finding
            assert finding is not None
            best.symptom = symptom(finding.forbidden[0][0])
            best.rate = finding.count / finding.executions
            shown = yield from self.minimizer.probe(known.entry.test, best, unreduced, rng)
            if shown is not None:
                return known
        return None

    def _next_to_minimize(self, slot: Slot) -> UnreducedFinding | None:
        """The unreduced finding of an executor that most likely shows something new.

        None if there is none, or no time for it.
        """
        executor = slot.executor
        waiting = []
        for unreduced in self.unreduced:
            known = self.findings.explained_by(unreduced, exact=True)
            if known is None:
                waiting.append(unreduced)
            else:
                self.findings.add_sighting(unreduced, known)
        self.unreduced = waiting
        waiting = [unreduced for unreduced in waiting if unreduced.executor is executor]
        if not waiting:
            return None

        def cost_s(unreduced: UnreducedFinding) -> float:
            switches = unreduced.sampled.config.environment != slot.config.environment
            return expected_cost_s(unreduced) + (ENVIRONMENT_SWITCH_S if switches else 0.0)

        new = [
            unreduced
            for unreduced in waiting
            if self.findings.explained_by(unreduced, exact=False) is None
        ]
        chosen = min(new or waiting, key=cost_s)
        if self.time_left_s <= 0 or (self.dispatcher.all_generated and not executor.waiting):
            pass  # nothing else is left to do
        elif self.settings.tests is not None and self.time_left_s > self.settings.time_s / 2:
            return None  # a campaign of so many tests generates all first, to be repeatable
        else:
            # Minimizing has a share of the time, so that a rare finding early on does not
            # use all of it; a finding that looks new may exceed the share.
            elapsed = self.settings.time_s - self.time_left_s
            share = self.settings.minimizing_share * elapsed * self.settings.workers
            cost = cost_s(chosen) * (0.25 if new else 0.5)
            if executor.minimizing_s + cost > share:
                return None
        self.unreduced.remove(chosen)
        return chosen

    def _note_not_minimized(self) -> None:
        """Note in the record which unreduced findings remain in ``unreduced/``."""
        self.record.unreduced = [
            f"{self.findings.unreduced_name(unreduced)}.yaml" for unreduced in self.unreduced
        ]
        self.record.elapsed_s = time.monotonic() - self.record.started

    def _check_canary(self) -> None:
        record = self.record
        if record.problem or record.interrupted or self.settings.tests == 0:
            return  # without tests there is nothing for the canary to run
        if record.canary_runs == 0 or record.canary_reported < record.canary_runs:
            record.problem = (
                f"the canary was reported in {record.canary_reported} of {record.canary_runs} "
                "runs: this campaign proves nothing"
            )
