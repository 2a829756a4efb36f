"""One campaign: draw, run, judge, minimize, store, until the time is up.

One thread, many processes. What is to be done with an executor is written as
a *task*: a generator that yields jobs and is sent their results, so that
fuzzing and minimizing read as straight code while all workers stay busy. The
loop gives a task to each idle worker, and waits for whichever answers first.
"""

from __future__ import annotations

import json
import random
import select
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from corpus.graph import all_nodes
from corpus.outcome import Status, Verdict
from corpus.textfile import Entry, Finding, Schedule, Script, dumps, save, write_text
from fuzz.campaign.canonical import form
from fuzz.campaign.causes import explains, finding_name, likely_cause, same_cause, symptom
from fuzz.campaign.dealing import Dealer, Drawn, System
from fuzz.campaign.journal import Journal, Tested
from fuzz.campaign.judge import Judgement, explorer_or_none, judge, listed, together
from fuzz.campaign.reducer import normalized, reduce, widened
from fuzz.campaign.rota import Profile, Rota
from fuzz.campaign.scripts import ScriptRun, script_of
from fuzz.campaign.tuning import Shown, Tuning, described
from fuzz.executors import wire
from fuzz.executors.process import Died, Worker
from fuzz.executors.protocol import Clusters, Noise
from fuzz.executors.table import CANARY, configuration, executor_class
from oracles.explorer import Explorer
from oracles.model import MODELS, PROMISES
from oracles.reason import explain
from reports.records import Death, ExecutorState, ReportedFinding, RunRecord
from reports.script import NoScript

if TYPE_CHECKING:
    from corpus.graph import LitmusTest
    from corpus.outcome import Outcome
    from fuzz.campaign.settings import Settings
    from fuzz.executors.protocol import Choice, Config
    from reports.sides import Sides

JOB_TIMEOUT_S: Final = 60.0
PROBE_RUNS: Final = 3
PROBE_NEEDED: Final = 2
"""A smaller test counts as failing if this many of `PROBE_RUNS` runs, each in
fresh sessions, show a forbidden outcome often enough."""
PROBE_HITS: Final = 3
"""How often at least. A replay of as many executions then misses with
probability about exp(-3), and goes on until it sees one."""
PROBE_DEATHS: Final = 1
"""So often a process may crash in it: what an op has corrupted says nothing of the race."""
CONFIRM_COUNT: Final = 1024
CONFIRM_S: Final = 6.0
"""How long a fresh process may take to show a minimized finding again. When the
machine's other core is busy, racing ops seldom meet, for seconds on end."""
PROBE_STEP: Final = 3072
"""A run stops after so many executions, or twice as many, ..., once it has seen it
often enough. As many as there are in one build (`Noise`)."""
MIN_PROBE_COUNT: Final = 256
MIN_BLOCKED_COUNT: Final = 64
MAX_PROBE_COUNT: Final = 1 << 15
MAX_REDUCTION_EXECUTIONS: Final = 1 << 24
RECORD_S: Final = 2.0
"""How long an execution that shows a finding is looked for, to be recorded."""
MAX_RECORDED: Final = 1 << 14
SAVE_S: Final = 30.0
"""How often the record is saved while the campaign goes on."""
QUICKER: Final = 3.0
"""By so much another profile must be faster at graphs, to be worth a start of its own."""
SWITCH_S: Final = 8.0
"""To start a framework in another environment, and then again in this one."""
MAX_KEPT_BYTES: Final = 1 << 25
"""Of histograms side by side: some ten thousand graphs."""


@dataclass(frozen=True, slots=True)
class Job:
    """One request to an executor: run `test` at least `count` times.

    Without a test it asks whether the configuration can run here.

    `fresh` asks for a process that has run nothing before: a system under test
    may have damaged its own memory on an earlier test, and what it shows then
    is no finding on this one. With `wanted` an execution with one of these
    outcomes is recorded instead; with `choices` one is replayed.
    """

    test: LitmusTest | None
    count: int = 0
    noise: Noise = field(default=Noise())
    seed: int = 0
    fresh: bool = False
    wanted: tuple[Outcome, ...] = ()
    choices: tuple[Choice, ...] | None = None

    def request(self, config: Config) -> wire.Request:
        """As the worker takes it."""
        if self.test is None:
            return wire.Request(config=config.name)
        return wire.Request(
            test=dumps(Entry(self.test)),
            task="record" if self.wanted else "run" if self.choices is None else "replay",
            config=config.name,
            count=self.count,
            noise=asdict(self.noise),
            seed=self.seed,
            wanted=wire.rows(dict.fromkeys(self.wanted, 1)),
            choices=list(self.choices or ()),
            timeout_s=RECORD_S,
        )


Result = dict["Outcome", int] | Schedule | Died | wire.Reply
"""A histogram, or what was recorded; or why there is neither: the worker died,
refused, or found nothing to record."""
Task = Generator[Job | ScriptRun, Result, None]
"""Of a script there is no result: whoever started it asks it."""


@dataclass(slots=True)
class _Slot:
    """A worker, and the task that it is busy with.

    `ran` counts the jobs of its present process, `counted` is what that has counted
    of itself, `checked` are the configurations that it is known to run.
    """

    worker: Worker
    system: System
    profile: Profile
    ran: int = 0
    counted: Mapping[str, float] = field(default_factory=dict)
    checked: set[str] = field(default_factory=set)
    seconds: float = 0.0
    """That the worker spent on its last job."""
    task: Task | None = None
    job: Job | None = None
    script: ScriptRun | None = None
    since: float = 0.0

    @property
    def state(self) -> ExecutorState:
        """What is reported of it."""
        return self.profile.state

    @property
    def config(self) -> Config:
        """Its configuration."""
        return self.profile.config

    @property
    def awaited(self) -> Worker | ScriptRun:
        """What its task waits for."""
        return self.script or self.worker

    def count(self, counters: Mapping[str, float]) -> None:
        """Take over what its process has counted since the last time."""
        new = {name: number - self.counted.get(name, 0) for name, number in counters.items()}
        self.state.count(new)
        self.counted = counters

    def move(self, profile: Profile) -> None:
        """Go on in another profile."""
        if profile.config.environment != self.config.environment:
            self.restarted()  # as the worker does, when it is asked
        self.profile = profile

    def restarted(self) -> None:
        """Begin with another process."""
        self.ran = 0
        self.counted = {}
        self.checked = set()


@dataclass(slots=True)
class _Raw:
    """A forbidden outcome on a test as drawn, not minimized."""

    drawn: Drawn
    system: System
    judgement: Judgement
    noise: Noise
    seed: int

    @property
    def profile(self) -> Profile:
        """Who showed it."""
        return self.drawn.profiles[self.system]


@dataclass(slots=True)
class _Best:
    """The smallest test so far that shows a finding, and what it showed."""

    test: LitmusTest
    judgement: Judgement
    rate: float = 0.0
    """The highest share of forbidden executions that any of its forms showed."""
    symptom: str = ""
    run_seed: int | None = None
    schedule: Schedule | None = None

    def __post_init__(self) -> None:
        self.symptom = symptom(self.judgement.forbidden[0][0])
        self.judgement = self.of_its_cause(self.judgement)
        self.improve(self.test, self.judgement)

    def of_its_cause(self, judgement: Judgement) -> Judgement:
        """What was seen, where only outcomes that may have its cause count."""
        kept = (each for each in judgement.forbidden if same_cause(self.symptom, each[0]))
        return replace(judgement, forbidden=tuple(kept))

    def improve(self, test: LitmusTest, judgement: Judgement) -> None:
        """Go on from a smaller test."""
        self.test, self.judgement = test, judgement
        # One less: runs stop when they have seen it, which makes the share too large.
        hits = max(judgement.forbidden_count - 1, 0.5)
        self.rate = max(self.rate, hits / judgement.executions)

    @property
    def count(self) -> int:
        """Executions in which it shows about 24 times, if that is possible."""
        # What blocks costs a session, which others would share.
        blocked = self.symptom == Status.BLOCKED
        return _probe_count(self.rate, MIN_BLOCKED_COUNT if blocked else MIN_PROBE_COUNT)

    @property
    def needed(self) -> int:
        """Forbidden executions, of `count`, that a smaller test must show.

        An eighth of what the best form shows: one that shows more seldom is
        smaller, but of less use to whoever replays it.
        """
        return max(PROBE_HITS, round(self.count * self.rate / 8))


class Campaign:
    """One run; `record` tells, at any moment, how it stands.

    Parameters
    ----------
    settings : Settings
    show : callable
        Called now and then with the record, for a view; it must not change it.
    journal : Journal, optional
        Told of each thing that happened.
    known : sequence of ReportedFinding, optional
        Minimized findings of others: what they explain is not minimized again.
    stop : callable, optional
        Asked several times a second whether to end early.
    """

    def __init__(
        self,
        settings: Settings,
        show: Callable[[RunRecord], None],
        journal: Journal | None = None,
        known: Sequence[ReportedFinding] = (),
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self.settings = settings
        self.show = show
        self.journal = journal or Journal()
        self.known = tuple(known)
        self.stop = stop
        self.record = RunRecord(settings.seed, str(settings.out), command=settings.command)
        self.slots: list[_Slot] = []
        systems = []
        for name, *configs in (*settings.executors, (CANARY, configuration(CANARY))):
            made = executor_class(name)
            profiles = [self._profile(name, config, len(configs)) for config in configs]
            counted = settings.tests is not None
            rota = Rota(profiles, settings.tests or settings.time_s, counted=counted)
            families = () if name == CANARY else settings.families_of(name)
            clusterer = made if issubclass(made, Clusters) else None
            system = System(name, rota, families, made.features, clusterer)
            systems.append(system)
            for _ in range(1 if name == CANARY else settings.workers):
                python = None if name == CANARY else settings.python
                worker = Worker(name, settings.memory_bytes, python)
                self.slots.append(_Slot(worker, system, rota.current))
        self.dealer = Dealer(settings, systems, self.record, self._compared, self.journal)
        self.kept_bytes = 0
        self.raw: list[_Raw] = []
        self.saved = 0.0

    def _profile(self, name: str, config: Config, of: int) -> Profile:
        """One of an executor's configurations, with a line of its own in the record."""
        model = self.settings.model or PROMISES[config.promises]
        state = ExecutorState(name, config.name, config.promises, model.name, spread=of > 1)
        self.record.executors.append(state)
        return Profile(config, model, state, Tuning(self.settings.noises))

    def take_up(self, entry: Entry) -> None:
        """Minimize, too, what another campaign left as a file in its ``raw/``."""
        finding = entry.finding
        assert finding is not None
        system = next(each for each in self.dealer.systems if each.name == finding.executor)
        profile = next(p for p in system.rota.profiles if p.config.name == finding.config)
        oracle = explorer_or_none(entry.test, profile.model, self.settings.budget)
        assert oracle is not None  # it was judged by one
        verdicts = {
            Verdict.FORBIDDEN: finding.count,
            Verdict.ALLOWED: finding.executions - finding.count,
        }
        judgement = Judgement(oracle, dict(finding.forbidden), verdicts, finding.forbidden)
        drawn = Drawn(
            index=finding.index,
            family=finding.family,
            test=entry.test,
            oracles={profile.model.name: oracle},
            allowed={},
            profiles={system: profile},
            left=set(),
        )
        noise = Noise(**cast("dict[str, Any]", dict(finding.noise)))
        self.raw.append(_Raw(drawn, system, judgement, noise, finding.run_seed or 0))

    # --- the loop ----------------------------------------------------------------------

    def run(self) -> RunRecord:
        """Go on until the time is up, or Ctrl-C; then store what is left.

        Ctrl-C is not an error: all that was found is kept and reported.
        """
        try:
            if self._start():
                self._loop()
        except KeyboardInterrupt:
            self.record.interrupted = True
        except OSError as error:
            self._broken(error)
        finally:
            for slot in self.slots:
                if slot.task is not None and not self.record.problem:
                    slot.task.close()  # a reduction keeps the best that it has
                slot.worker.close()
                slot.state.state = "ended"
            self.record.minimizing = ""
            try:
                self.dealer.finish()
            except OSError as error:
                self._broken(error)
            self._store_rest()
            self._check_canary()
            try:
                self._save()
            except OSError as error:
                self._broken(error)
            self.show(self.record)
        return self.record

    def _broken(self, error: OSError) -> None:
        """A full disk, a folder gone: what was found so far is still told."""
        self.record.problem = f"{error.filename or self.settings.out}: {error.strerror}"

    def _start(self) -> bool:
        """Start every worker; False if an executor cannot run here."""
        for slot in self.slots:
            slot.worker.send(wire.Request(config=slot.config.name), JOB_TIMEOUT_S)
        for _ in self.dealer.choosers:
            self.dealer.deal()
        for slot in self.slots:
            self.show(self.record)
            while why := self._why_not(slot, reply := slot.worker.receive()):
                others = self._without(slot.system, slot.profile, why)
                if not others:
                    self.record.problem = f"{slot.state.name}{why}"
                    return False
                slot.profile = others[0]
                slot.worker.send(wire.Request(config=slot.config.name), JOB_TIMEOUT_S)
            assert isinstance(reply, wire.Reply)
            self.record.versions[slot.state.name] = reply.versions
            slot.state.state = "idle"
        # What frameworks need to start is not taken from the fuzzing time.
        self.record.started = time.monotonic()
        for slot in self.slots:
            slot.system.took = self.record.started
        self.journal.started(self.record.versions)
        return True

    @staticmethod
    def _why_not(slot: _Slot, reply: Result) -> str:
        """Why a worker cannot run its configuration; "" if it can, which is noted."""
        if isinstance(reply, Died):
            return f" does not start: {reply.message}"
        if isinstance(reply, wire.Reply) and reply.unavailable:
            return f": {reply.unavailable}"
        slot.checked.add(slot.config.name)
        return ""

    def _without(self, system: System, profile: Profile, why: str) -> list[Profile]:
        """Go on without a profile that cannot run here; those that are left."""
        profile.state.unavailable = why.removeprefix(":").strip()
        profile.state.state = "unavailable"
        self.journal.unavailable(profile.config.name, profile.state.unavailable)
        return system.rota.running

    @property
    def time_left_s(self) -> float:
        """Seconds until the end."""
        return self.settings.time_s - (time.monotonic() - self.record.started)

    @property
    def _to_finish(self) -> bool:
        """Whether findings are left, and time to minimize them, when that for graphs is up."""
        minimizing = any(s.task is not None and s.state.state == "minimizing" for s in self.slots)
        left = self.time_left_s + self.settings.finishing_s > 0
        return left and (minimizing or bool(self.raw))

    def _loop(self) -> None:
        while (self.time_left_s > 0 or self._to_finish) and not self.stop():
            for slot in self.slots:
                if slot.task is None:
                    self._assign(slot)
            busy = [slot for slot in self.slots if slot.task is not None]
            if not (busy or self.raw) and self.dealer.empty:
                return  # as many graphs as were asked for, and nothing to minimize
            ready = self._wait(busy, 0.0)
            if not ready and self.time_left_s > 0 and self.dealer.low and self.dealer.deal():
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
        """Keep the record, whole at any moment: what `litmusfuzz page` reads."""
        self.saved = self.record.elapsed_s
        path = self.settings.out / f"record-{self.record.seed}.json"
        write_text(json.dumps(self.record.as_json(), indent=1) + "\n", path)

    @staticmethod
    def _wait(busy: list[_Slot], timeout_s: float) -> list[_Slot]:
        """Slots whose worker has answered, ended, or is overdue."""
        readable, _, _ = select.select([slot.awaited for slot in busy], [], [], timeout_s)
        return [slot for slot in busy if slot.awaited in readable or slot.awaited.overdue]

    def _assign(self, slot: _Slot) -> None:
        """Give an idle worker its next task, if there is one."""
        raw = self._next_to_minimize(slot)
        if raw is not None:
            self._begin(slot, raw.profile, self._minimize(slot, raw))
            return
        if self.time_left_s <= 0:
            return  # findings are finished, nothing is begun
        if not (slot.system.waiting or slot.state.canary):
            self.dealer.deal()
        drawn = slot.system.take()
        if drawn is not None:
            profile = drawn.profiles.get(slot.system, slot.profile)
            task = self._fly_canary if slot.state.canary else self._fuzz
            self._begin(slot, profile, task(slot, drawn))

    def _begin(self, slot: _Slot, profile: Profile, task: Task) -> None:
        slot.move(profile)
        slot.task = task
        try:
            self._send(slot, next(task))
        except StopIteration:
            slot.task = None

    def _send(self, slot: _Slot, job: Job | ScriptRun) -> None:
        if isinstance(job, ScriptRun):
            slot.script = job
            return
        if job.fresh:
            # No second process that gets ready meanwhile: what imports a
            # framework on one of two cores keeps racing ops from meeting.
            slot.worker.close()
            slot.restarted()
        slot.ran += 1
        slot.job = job
        slot.since = time.monotonic()
        slot.worker.send(job.request(slot.config), JOB_TIMEOUT_S)

    def _compared(self, sides: Sides) -> None:
        """Count what several executors showed on a graph; keep it, while there is room."""
        record = self.record
        record.compare(sides)
        line = json.dumps(
            {
                "seed": record.seed,
                "index": sides.index,
                "family": sides.family,
                "test": dumps(Entry(sides.test)),
                **sides.as_json(),
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

    def _advance(self, slot: _Slot) -> None:
        """Take a worker's answer to its task, and send what that asks for next."""
        assert slot.task is not None
        if slot.script is not None:
            slot.script = None
            self._resume(slot, {})
            return
        assert slot.job is not None
        reply = slot.worker.receive()
        slot.state.busy_s += time.monotonic() - slot.since
        result: Result = reply
        if isinstance(reply, Died):
            self._note_death(slot, reply)
        else:
            slot.count(reply.counters)
            slot.seconds = reply.seconds
        if isinstance(reply, wire.Reply) and reply.rows:
            assert slot.job.test is not None
            seen = wire.histogram(slot.job.test, reply)
            result = seen
            if slot.job.wanted:
                (outcome,) = seen
                result = Schedule(outcome, tuple(reply.choices))
            count = sum(seen.values())
            slot.state.outcomes += count
            if slot.state.state == "minimizing":
                slot.state.minimizing_outcomes += count
        self._resume(slot, result)

    def _resume(self, slot: _Slot, result: Result) -> None:
        """Tell a task what it waited for, and send what it asks for next."""
        assert slot.task is not None
        try:
            self._send(slot, slot.task.send(result))
        except StopIteration:
            slot.task = None
            slot.state.state = "unavailable" if slot.state.unavailable else "idle"

    def _note_death(self, slot: _Slot, died: Died) -> None:
        """Count a crash or hang, and keep the test that it happened on."""
        assert slot.job is not None
        what = "timed-out" if died.timed_out else "crashed"
        if died.timed_out:
            slot.state.timed_out += 1
        else:
            slot.state.crashed += 1
        slot.state.restarts += 1
        ran = slot.ran - 1
        slot.restarted()
        if slot.job.test is None:
            return  # `_without` tells
        seed = self.settings.seed
        test = replace(
            slot.job.test,
            name=f"{what}-{seed}-{len(self.record.deaths) + 1}",
            about=f"{slot.state.name}/{slot.config.name}: {died.message}\n"
            f"seed {seed}, while {slot.state.state}, "
            f"after {ran} other jobs in the same process\n"
            + ", ".join(f"{k} {v}" for k, v in self.record.versions[slot.state.name].items()),
        )
        path = self.settings.out / what / f"{test.name}.yaml"
        save(Entry(test), path)
        self.record.deaths.append(Death(str(path), died.message, died.timed_out))
        self.journal.died(
            Entry(test), path, died.message, config=slot.config.name, timed_out=died.timed_out
        )

    # --- tasks -------------------------------------------------------------------------

    def _fly_canary(self, _: _Slot, drawn: Drawn) -> Task:
        result = yield Job(drawn.test, 1, Noise(), 0)
        if isinstance(result, dict):
            oracle = next(iter(drawn.oracles.values()))  # wrong by any
            judgement = judge(oracle, result)
            if Verdict.UNKNOWN not in judgement.verdicts:  # counted as such where it was fuzzed
                reported = judgement.forbidden_count > 0
                self.record.canary_runs += 1
                self.record.canary_reported += reported
                self.journal.canary(reported=reported)

    def _fuzz(self, slot: _Slot, drawn: Drawn) -> Task:
        """Run one drawn test and judge what it shows."""
        profile, system, rota = slot.profile, slot.system, slot.system.rota
        if rota.several and not (profile.state.unavailable or profile.config.name in slot.checked):
            # Apart, so that a framework's start is taken from no profile's share.
            why = self._why_not(slot, (yield Job(None)))
            if why:
                self._without(system, profile, why)
        if profile.state.unavailable:
            profile.state.refuse([profile.state.unavailable])
            rota.ran(profile, 0.0)
            self.dealer.done(drawn, system, None)
            return
        profile.state.state = "fuzzing"
        asked = time.monotonic()
        shown: list[_Raw] = []
        runs: list[tuple[Noise, int]] = []
        result = yield from self._execute(slot, drawn, shown, runs)
        seconds = time.monotonic() - asked
        rota.ran(profile, seconds)
        profile.state.fuzzing_s += seconds
        self.dealer.spent(drawn.family, seconds)
        model = profile.model.name
        tested = Tested(
            index=drawn.index,
            family=drawn.family,
            test=drawn.test,
            config=profile.config.name,
            model=model,
            runs=tuple(runs),
            count=self.settings.count,
            seconds=seconds,
            allowed=drawn.allowed.get(model),
        )
        if isinstance(result, wire.Reply):
            # A feature; which node it is that has it does not matter here.
            lacks = (result.refused or result.unavailable).partition(" (")[0]
            profile.state.refuse([lacks])
            self.journal.tested(replace(tested, end=f"refused: {lacks}"))
        else:
            profile.state.tests += 1
            profile.state.families[drawn.family] += 1
        if isinstance(result, Died):
            self.journal.tested(replace(tested, end="timed out" if result.timed_out else "crashed"))
        if result is not None:
            self.dealer.done(drawn, system, None)
            return
        start = time.monotonic()
        judgement = together([raw.judgement for raw in shown])
        if model in drawn.allowed:
            profile.state.reach(drawn.family, len(judgement.allowed) / drawn.allowed[model])
        self.dealer.done(drawn, system, judgement)
        seconds = time.monotonic() - start
        self.record.judging_s += seconds
        self.dealer.spent(drawn.family, seconds)
        new = judgement.verdicts.keys() - drawn.shown
        drawn.shown |= new
        for counts in (self.record, self.record.families[drawn.family]):
            counts.unknown_graphs += Verdict.UNKNOWN in new
            counts.forbidden_graphs += Verdict.FORBIDDEN in new
        verdicts = {str(v): n for v, n in judgement.verdicts.items()}
        self.record.verdicts.update(verdicts)
        profile.state.verdicts.update(verdicts)
        tested = replace(tested, judged=judgement)
        if not judgement.forbidden:
            self.journal.tested(tested)
            return
        profile.state.forbidden_graphs += 1
        raw = max(shown, key=lambda raw: raw.judgement.rate)
        known = self._explained(raw, exact=True)
        path = self._store_raw(raw)
        self.journal.tested(replace(tested, raw=path, known=known))
        if known is not None:
            known.again(profile.config.name)
        else:
            self.raw.append(raw)

    def _execute(
        self, slot: _Slot, drawn: Drawn, shown: list[_Raw], runs: list[tuple[Noise, int]]
    ) -> Generator[Job, Result, Result | None]:
        """Run a drawn test under each noise whose turn it is, into `shown`.

        Returns why that could not be done, None if it could; `runs` are those begun.
        """
        profile = slot.profile
        rng = random.Random(f"{self.settings.seed}/noise/{drawn.index}")
        tried = []
        for noise in profile.tuning.next():
            seed = rng.getrandbits(31)
            runs.append((noise, seed))
            result = yield Job(drawn.test, self.settings.count, noise, seed)
            if not isinstance(result, dict):
                return result
            start = time.monotonic()
            judgement = judge(drawn.oracles[profile.model.name], result)
            tried.append(Shown(noise, judgement.allowed, slot.seconds))
            shown.append(_Raw(drawn, slot.system, judgement, noise, seed))
            profile.state.noise[described(noise)] += 1
            self.record.judging_s += time.monotonic() - start
        profile.tuning.learn(tried)
        return None

    def _minimize(self, slot: _Slot, raw: _Raw) -> Task:
        """Reduce a finding, see it again in a fresh process, and store it."""
        slot.state.state = "minimizing"
        self.record.minimizing = f"graph {raw.drawn.index} of {slot.state.title}"
        start = time.monotonic()
        rng = random.Random(f"{self.settings.seed}/minimize/{raw.drawn.index}")
        best = _Best(raw.drawn.test, raw.judgement)
        try:
            known = yield from self._shown_elsewhere(raw, rng)
            if known is not None:
                self._again(raw, known)
                return
            complete = yield from self._reduce_elsewhere(slot, raw, best, rng)
            complete = complete or (yield from self._reduce(slot, raw, best, rng))
            self._normalize(raw, best)  # from here on it is what the file will hold
            yield from self._record(raw, best, rng)
            confirmed = yield from self._confirm(raw, best, rng)
        except GeneratorExit:
            if self.settings.goes_on:
                self.raw.append(raw)
            else:  # the time is up: the best so far is worth keeping
                self._store(raw, best, minimized=False, confirmed=False)
            raise
        finally:
            slot.system.minimizing_s += time.monotonic() - start
            self.record.minimizing = ""
        if confirmed is None:
            self._store_unconfirmed(raw, best)
        else:
            best.judgement = confirmed
            found = self._store(raw, best, minimized=complete, confirmed=True)
            if found is not None:
                yield from self._run_script(found)

    def _run_script(self, found: ReportedFinding) -> Generator[ScriptRun, Result, None]:
        """Write the script of a finding on TensorFlow beside it, and see whether it shows it."""
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
        self.journal.scripted(found)

    def _shown_elsewhere(
        self, raw: _Raw, rng: random.Random
    ) -> Generator[Job, Result, ReportedFinding | None]:
        """A finding in another profile, inside this graph, that shows in this profile too.

        It is run here: nothing is taken for the same because it looks alike.
        """
        if not self._spread(raw):
            return None
        for known in self._inside(raw, exact=True, elsewhere=True):
            best = _Best(known.entry.test, raw.judgement)
            finding = known.entry.finding
            assert finding is not None
            best.symptom = symptom(finding.forbidden[0][0])
            best.rate = finding.count / finding.executions
            shown = yield from self._probe(known.entry.test, best, raw, rng)
            if shown is not None:
                return known
        return None

    def _reduce_elsewhere(
        self, slot: _Slot, raw: _Raw, best: _Best, rng: random.Random
    ) -> Generator[Job, Result, bool]:
        """Make `best` small in a profile that is much quicker, if it shows there.

        Then it is run at home, where it counts; False if it has to be done there. Where each
        test is compiled, that takes minutes; and most races are not the compiler's.
        """
        quick = self._quicker(raw)
        if quick is None:
            return False
        there = copy(best)
        slot.move(quick)
        quick.state.state = "minimizing"
        try:
            shown = yield from self._probe(best.test, there, raw, rng)
            if shown is None:
                return False
            complete = yield from self._reduce(slot, raw, there, rng)
        finally:
            quick.state.state = "idle"
            slot.move(raw.profile)
        shown = yield from self._probe(there.test, best, raw, rng)
        if shown is None:
            return False
        best.improve(there.test, shown)
        return complete

    @staticmethod
    def _quicker(raw: _Raw) -> Profile | None:
        """The executor's first profile, if it runs graphs so much faster than a finding's own."""
        first, own = raw.system.rota.running[0], raw.profile
        return first if 0 < first.seconds_each * QUICKER < own.seconds_each else None

    def _reduce(
        self, slot: _Slot, raw: _Raw, best: _Best, rng: random.Random
    ) -> Generator[Job, Result, bool]:
        """Make `best` as small as it gets; False if that took too long."""
        start = time.monotonic()
        if best.rate < 0.05:
            for wider in widened(best.test):
                shown = yield from self._probe(wider, best, raw, rng)
                if shown is not None and shown.rate > 2 * best.rate:
                    best.improve(wider, shown)
                    break
        reduction = reduce(best.test)
        answer: bool | None = None
        outcomes, state = slot.state.outcomes, slot.state
        while (
            time.monotonic() - start < self.settings.longest_reduction_s
            and state.outcomes - outcomes < MAX_REDUCTION_EXECUTIONS
        ):
            try:
                candidate = next(reduction) if answer is None else reduction.send(answer)
            except StopIteration:
                return True
            shown = yield from self._probe(candidate, best, raw, rng)
            answer = shown is not None
            if shown is not None:
                best.improve(candidate, shown)
        return False

    def _record(self, raw: _Raw, best: _Best, rng: random.Random) -> Generator[Job, Result, None]:
        """Look for an execution that shows it, choice by choice, if the executor can tell."""
        if raw.profile.schedulable:
            wanted = tuple(outcome for outcome, _ in best.judgement.forbidden)
            job = Job(best.test, MAX_RECORDED, raw.noise, rng.getrandbits(31), wanted=wanted)
            found = yield job
            raw.profile.schedulable = not (isinstance(found, wire.Reply) and found.refused)
            if isinstance(found, Schedule):
                best.schedule = found

    def _confirm(
        self, raw: _Raw, best: _Best, rng: random.Random
    ) -> Generator[Job, Result, Judgement | None]:
        """What `best` shows in a process that ran nothing else; None if nothing forbidden.

        Its schedule comes first, and is kept only if it gives the same outcome there.
        """
        total: Counter[Outcome] = Counter()
        fresh = True
        if best.schedule is not None:
            choices = best.schedule.choices
            result = yield Job(best.test, 1, raw.noise, 0, fresh=True, choices=choices)
            if result != {best.schedule.outcome: 1}:
                best.schedule = None
            fresh = False
        count = max(CONFIRM_COUNT, best.count)
        deadline = 0.0
        while True:
            seed = rng.getrandbits(31)
            result = yield Job(best.test, count, raw.noise, seed, fresh=fresh)
            if not isinstance(result, dict):
                return None
            total.update(result)
            if best.of_its_cause(judge(best.judgement.oracle, result)).forbidden:
                best.run_seed = seed
                return best.of_its_cause(judge(best.judgement.oracle, total))
            # From the first answer on: the process's start is not counted.
            deadline = deadline or time.monotonic() + CONFIRM_S
            if time.monotonic() > deadline:
                return None
            if total.total() <= count:
                count *= 4
            fresh = False

    def _probe(
        self, test: LitmusTest, best: _Best, raw: _Raw, rng: random.Random
    ) -> Generator[Job, Result, Judgement | None]:
        """Whether enough of a few runs show it often enough: judged, or None."""
        oracle = explorer_or_none(test, raw.profile.model, self.settings.budget)
        if oracle is None:
            return None
        total: Counter[Outcome] = Counter()
        failed = deaths = 0
        for done in range(PROBE_RUNS):
            if failed + PROBE_RUNS - done < PROBE_NEEDED:
                return None
            ran = hits = 0
            while ran < best.count and hits < best.needed:
                count = min(best.count - ran, PROBE_STEP)
                result = yield Job(test, count, raw.noise, rng.getrandbits(31))
                if isinstance(result, Died) and not result.timed_out and deaths < PROBE_DEATHS:
                    deaths += 1
                    continue
                if not isinstance(result, dict):
                    return None
                total.update(result)
                ran += sum(result.values())
                hits += best.of_its_cause(judge(oracle, result)).forbidden_count
            failed += hits >= best.needed
            if failed == PROBE_NEEDED:
                return best.of_its_cause(judge(oracle, total))
        return None

    # --- findings ----------------------------------------------------------------------

    def _explained(self, raw: _Raw, *, exact: bool) -> ReportedFinding | None:
        """A minimized finding in the same profile whose shape this graph contains."""
        return next(self._inside(raw, exact=exact, elsewhere=False), None)

    def _spread(self, raw: _Raw) -> bool:
        """Whether a finding is looked for over configurations: its executor's, or a night's."""
        return raw.system.rota.several or self.settings.goes_on

    def _inside(self, raw: _Raw, *, exact: bool, elsewhere: bool) -> Iterator[ReportedFinding]:
        """Minimized findings of the same executor whose shapes this graph contains.

        `elsewhere` asks for those that its profile has not shown yet, else for the others.
        """
        for known in (*self.known, *self.record.findings):
            finding = known.entry.finding
            assert finding is not None
            if finding.executor != raw.system.name or not finding.minimized:
                continue
            if (raw.profile.config.name in known.configs) is elsewhere:
                continue
            if explains(known.entry.test, raw.drawn.test, exact=exact):
                yield known

    def _again(self, raw: _Raw, known: ReportedFinding) -> None:
        """A graph showed what is there already."""
        config = raw.profile.config.name
        known.again(config)
        self.journal.again(raw.drawn.index, config, known)

    def _next_to_minimize(self, slot: _Slot) -> _Raw | None:
        """Of an executor's raw findings the one most likely to show something new.

        None if there is none, or no time.
        """
        system = slot.system
        waiting = []
        for raw in self.raw:
            known = self._explained(raw, exact=True)
            if known is None:
                waiting.append(raw)
            else:
                self._again(raw, known)
        self.raw = waiting
        waiting = [raw for raw in waiting if raw.system is system]
        if not waiting:
            return None

        def cost_s(raw: _Raw) -> float:
            elsewhere = raw.profile.config.environment != slot.config.environment
            return _expected_cost_s(raw) + (SWITCH_S if elsewhere else 0.0)

        new = [raw for raw in waiting if self._explained(raw, exact=False) is None]
        chosen = min(new or waiting, key=cost_s)
        if self.time_left_s <= 0 or (self.dealer.drawn_out and not system.waiting):
            pass  # nothing else is left to do
        elif self.settings.tests is not None and self.time_left_s > self.settings.time_s / 2:
            return None  # a run of so many tests draws them all first: it is repeatable
        else:
            # A share of the time, so that a rare finding early on does not eat
            # all of it; what looks new may run ahead of its share.
            elapsed = self.settings.time_s - self.time_left_s
            share = self.settings.minimizing_share * elapsed * self.settings.workers
            cost = cost_s(chosen) * (0.25 if new else 0.5)
            if system.minimizing_s + cost > share:
                return None
        self.raw.remove(chosen)
        return chosen

    def _entry(
        self, raw: _Raw, best: _Best, name: str, *, minimized: bool, confirmed: bool
    ) -> Entry:
        judgement = best.judgement
        model = raw.profile.model
        finding = Finding(
            executor=raw.system.name,
            config=raw.profile.config.name,
            model=model.name,
            forbidden=judgement.forbidden[:8],
            executions=judgement.executions,
            noise=asdict(raw.noise),
            settings=dict(raw.profile.config.settings),
            versions=self.record.versions[raw.system.name],
            seed=self.settings.seed,
            index=raw.drawn.index,
            family=raw.drawn.family,
            minimized=minimized,
            confirmed=confirmed,
            run_seed=best.run_seed,
            schedule=best.schedule,
        )
        test = replace(best.test, name=name)
        return Entry(test, listed(test, model, self.settings.budget), finding)

    def _numbered(self, what: str, raw: _Raw) -> str:
        """A name for one graph on one executor, of which there may be several."""
        name = f"{what}-{self.settings.seed}-{raw.drawn.index}"
        choosers = self.dealer.choosers
        return name if len(choosers) == 1 else f"{name}-{1 + choosers.index(raw.system)}"

    def _store_raw(self, raw: _Raw) -> Path:
        """Keep every graph that showed something, as it was drawn."""
        name = self._numbered("raw", raw)
        best = _Best(raw.drawn.test, raw.judgement, run_seed=raw.seed)
        best.judgement = raw.judgement  # whatever its cause
        entry = self._entry(raw, best, name, minimized=False, confirmed=False)
        path = self.settings.out / "raw" / f"{name}.yaml"
        save(entry, path)
        return path

    def _store_unconfirmed(self, raw: _Raw, best: _Best) -> None:
        """Keep, apart, what a fresh process does not show: it is not reported."""
        self.record.unconfirmed += 1
        name = self._numbered("unconfirmed", raw)
        entry = self._entry(raw, best, name, minimized=False, confirmed=False)
        path = self.settings.out / "unconfirmed" / f"{name}.yaml"
        save(entry, path)
        self.journal.unconfirmed(raw.drawn.index, path)

    def _store(
        self, raw: _Raw, best: _Best, *, minimized: bool, confirmed: bool
    ) -> ReportedFinding | None:
        """Write a finding and report it; once: None if it was found before."""
        self._normalize(raw, best)
        seen = best.judgement.forbidden[0][0]
        name = finding_name(best.test, seen)
        entry = self._entry(raw, best, name, minimized=minimized, confirmed=confirmed)
        cause = likely_cause(entry.test, seen)
        reported = ReportedFinding(entry, "", cause, python=self.settings.python)
        spread, model = self._spread(raw), raw.profile.model
        shape, by = form(entry.test, model), _by(reported, spread=spread)
        for known in (*self.known, *self.record.findings):
            if _by(known, spread=spread) == by and form(known.entry.test, model) == shape:
                self._again(raw, known)
                return None
        path = self.settings.out / f"{name}.yaml"
        if any(known.path == str(path) for known in self.record.findings):
            # Of another executor.
            name += f"-{len(self.record.findings)}"
            path = self.settings.out / f"{name}.yaml"
            reported.entry = replace(entry, test=replace(entry.test, name=name))
        save(reported.entry, path)
        reported.path = str(path)
        why = explain(entry.test, raw.profile.model, seen)
        reported.reason = str(why or "")
        reported.allowed_by = self._allowed_by(entry.test, best.judgement)
        if all(known.cause != reported.cause for known in self.record.findings):
            self.dealer.weights.found(raw.drawn.family)
        self.record.families[raw.drawn.family].findings += 1
        self.record.findings.append(reported)
        verdicts = {
            outcome: (count, str(best.judgement.oracle.judge(outcome)))
            for outcome, count in best.judgement.histogram.items()
        }
        self.journal.found(raw.drawn.index, reported, verdicts, why)
        return reported

    def _allowed_by(self, test: LitmusTest, judgement: Judgement) -> tuple[str, ...]:
        """Models, weaker than the one it is judged by, that allow all of it."""
        forbidden = dict(judgement.forbidden)
        return tuple(
            name
            for name, model in MODELS.items()
            if set(judge(Explorer(test, model, self.settings.budget), forbidden).verdicts)
            == {Verdict.ALLOWED}
        )

    def _normalize(self, raw: _Raw, best: _Best) -> None:
        """The same test and judgement, under names that tell."""
        test = normalized(best.test, "finding")
        names = dict(zip(best.test.names, test.names, strict=True))

        def of(outcome: Outcome) -> Outcome:
            values = tuple((names[name], value) for name, value in outcome.values)
            return replace(outcome, values=values)

        best.judgement = replace(
            best.judgement,
            oracle=Explorer(test, raw.profile.model, self.settings.budget),
            histogram={of(o): n for o, n in best.judgement.histogram.items()},
            forbidden=tuple((of(o), n) for o, n in best.judgement.forbidden),
        )
        best.test = test

    def _store_rest(self) -> None:
        """At the end: what was not minimized is told, and lies in ``raw/``."""
        self.record.raw_findings = len(self.raw)
        self.record.elapsed_s = time.monotonic() - self.record.started

    def _check_canary(self) -> None:
        record = self.record
        if record.problem or record.interrupted or self.settings.tests == 0:
            return  # where nothing is drawn, there is nothing for the canary
        if record.canary_runs == 0 or record.canary_reported < record.canary_runs:
            record.problem = (
                f"the canary was reported in {record.canary_reported} of {record.canary_runs} "
                "runs: this campaign proves nothing"
            )


def _by(reported: ReportedFinding, *, spread: bool) -> tuple[str, ...]:
    """Who showed a finding: in which configuration, if the campaign is not spread over them."""
    finding = reported.entry.finding
    assert finding is not None
    return (finding.executor,) if spread else (finding.executor, finding.config)


def _probe_count(rate: float, least: int = MIN_PROBE_COUNT) -> int:
    return min(MAX_PROBE_COUNT, max(least, int(24 / max(rate, 1e-6))))


def _expected_cost_s(raw: _Raw) -> float:
    """How long a minimization takes, roughly.

    About three candidates a node, two runs for most, at 0.05 s each and 40,000
    executions a second.
    """
    candidates = 3 * sum(1 for g in raw.drawn.test.graphs for _ in all_nodes(g.nodes))
    return candidates * 2 * (0.05 + _probe_count(raw.judgement.rate) / 40_000)
