"""One campaign: draw, run, judge, minimize, store, until the time is up.

One thread, many processes. What is to be done with an executor is written as
a *task*: a generator that yields jobs and is sent their results, so that
fuzzing and minimizing read as straight code while all workers stay busy. The
loop gives a task to each idle worker, and waits for whichever answers first.
"""

from __future__ import annotations

import random
import select
import time
from collections import Counter, deque
from collections.abc import Callable, Generator
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Final

from corpus.outcome import Verdict
from corpus.textfile import Entry, Finding, dumps, save
from fuzz.campaign.causes import explains, finding_name, likely_cause
from fuzz.campaign.judge import explorer_or_none, judge, listed
from fuzz.campaign.reducer import normalized, reduce, widened
from fuzz.executors import wire
from fuzz.executors.process import DEFAULT_MEMORY_BYTES, Died, Worker
from fuzz.executors.protocol import Config, Noise
from fuzz.executors.table import CANARY, configuration
from fuzz.strategies import draw
from oracles.explorer import Budget, Explorer
from oracles.model import RFC
from oracles.reason import explain
from reports.records import Death, ExecutorState, ReportedFinding, RunRecord

if TYPE_CHECKING:
    from pathlib import Path

    from corpus.graph import LitmusTest
    from corpus.outcome import Outcome
    from fuzz.campaign.judge import Judgement
    from oracles.model import Model

JOB_TIMEOUT_S: Final = 60.0
PROBE_RUNS: Final = 3
PROBE_NEEDED: Final = 2
"""A smaller test counts as failing if this many of `PROBE_RUNS` runs, each in
fresh sessions, show a forbidden outcome often enough."""
PROBE_HITS: Final = 3
"""How often at least. A replay of as many executions then misses with
probability about exp(-3), and goes on until it sees one."""
CONFIRM_COUNT: Final = 1024
CONFIRM_S: Final = 6.0
"""How long a fresh process may take to show a minimized finding again. When the
machine's other core is busy, racing ops seldom meet, for seconds on end."""
MAX_PROBE_COUNT: Final = 1 << 15
MAX_REDUCTION_S: Final = 20.0
REDUCTION_SHARE: Final = 0.5
"""Of the time; the rest is for new graphs."""
CAMPAIGN_BUDGET: Final = Budget(states=100_000, memory_bytes=1 << 28)
"""For each question: a tenth of a second. A verdict takes some microseconds."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a campaign is asked to do.

    `executors` names each executor with its configuration; the canary comes on
    top. `time_s` or `tests` ends it, whichever is first. `count` is executions
    of each test.
    """

    seed: int
    out: Path
    executors: tuple[tuple[str, Config], ...]
    time_s: float = 60.0
    tests: int | None = None
    family: str = "dag"
    count: int = 3072
    workers: int = 1
    budget: Budget = CAMPAIGN_BUDGET
    memory_bytes: int = DEFAULT_MEMORY_BYTES
    model: Model = field(default=RFC)
    noise: Noise = field(default=Noise())


@dataclass(frozen=True, slots=True)
class Job:
    """One request to an executor: run `test` at least `count` times.

    `fresh` asks for a process that has run nothing before: a system under test
    may have damaged its own memory on an earlier test, and what it shows then
    is no finding on this one.
    """

    test: LitmusTest
    count: int
    noise: Noise
    seed: int
    fresh: bool = False


Result = dict["Outcome", int] | Died | wire.Reply
"""A histogram; or why there is none: the worker died, or refused."""
Task = Generator[Job, Result, None]


@dataclass(frozen=True, slots=True)
class Drawn:
    """A test of the campaign with the judge of what it shows."""

    index: int
    test: LitmusTest
    oracle: Explorer


@dataclass(slots=True)
class _Slot:
    """A worker, and the task that it is busy with.

    `ran` counts the jobs of its present process.
    """

    worker: Worker
    config: Config
    state: ExecutorState
    ran: int = 0
    task: Task | None = None
    job: Job | None = None
    since: float = 0.0


@dataclass(slots=True)
class _Raw:
    """A forbidden outcome on a test as drawn, not minimized."""

    drawn: Drawn
    slot: _Slot
    judgement: Judgement
    noise: Noise


@dataclass(slots=True)
class _Best:
    """The smallest test so far that shows a finding, and what it showed."""

    test: LitmusTest
    judgement: Judgement
    rate: float = 0.0
    """The highest share of forbidden executions that any of its forms showed."""

    def __post_init__(self) -> None:
        self.improve(self.test, self.judgement)

    def improve(self, test: LitmusTest, judgement: Judgement) -> None:
        """Go on from a smaller test."""
        self.test, self.judgement = test, judgement
        self.rate = max(self.rate, judgement.rate)

    @property
    def count(self) -> int:
        """Executions in which it shows about 24 times, if that is possible."""
        return _probe_count(self.rate)

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
    """

    def __init__(self, settings: Settings, show: Callable[[RunRecord], None]) -> None:
        self.settings = settings
        self.show = show
        self.record = RunRecord(settings.seed, str(settings.out))
        self.slots: list[_Slot] = []
        for name, config in (*settings.executors, (CANARY, configuration(CANARY))):
            state = ExecutorState(name, config.name)
            self.record.executors.append(state)
            for _ in range(1 if name == CANARY else settings.workers):
                worker = Worker(name, settings.memory_bytes)
                self.slots.append(_Slot(worker, config, state))
        self.ahead: deque[Drawn] = deque()  # drawn and judged before a worker asks
        self.for_canary: deque[Drawn] = deque()
        self.next_index = 0
        self.raw: list[_Raw] = []
        self.versions: dict[str, dict[str, str]] = {}
        self.minimizing_s = 0.0

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
            # A full disk, a folder gone: what was found so far is still told.
            self.record.problem = f"{error.filename or self.settings.out}: {error.strerror}"
        finally:
            for slot in self.slots:
                if slot.task is not None and not self.record.problem:
                    slot.task.close()  # a reduction keeps the best that it has
                slot.worker.close()
                slot.state.state = "ended"
            self.record.minimizing = ""
            self._store_rest()
            self._check_canary()
            self.show(self.record)
        return self.record

    def _start(self) -> bool:
        """Start every worker; False if an executor cannot run here."""
        for slot in self.slots:
            slot.worker.send(wire.Request(config=slot.config.name), JOB_TIMEOUT_S)
        self._draw_ahead()
        for slot in self.slots:
            self.show(self.record)
            reply = slot.worker.receive()
            if isinstance(reply, Died):
                self.record.problem = f"{slot.state.name} does not start: {reply.message}"
                return False
            if reply.unavailable:
                self.record.problem = f"{slot.state.name}: {reply.unavailable}"
                return False
            self.versions[slot.state.name] = reply.versions
            slot.state.state = "idle"
        # What frameworks need to start is not taken from the fuzzing time.
        self.record.started = time.monotonic()
        return True

    @property
    def time_left_s(self) -> float:
        """Seconds until the end."""
        return self.settings.time_s - (time.monotonic() - self.record.started)

    def _loop(self) -> None:
        while self.time_left_s > 0:
            for slot in self.slots:
                if slot.task is None:
                    self._assign(slot)
            busy = [slot for slot in self.slots if slot.task is not None]
            if not busy:
                return  # as many tests as were asked for
            ready = self._wait(busy, 0.0)
            if not ready and len(self.ahead) < self.settings.workers + 1:
                self._draw_ahead()
                continue
            for slot in ready or self._wait(busy, min(0.25, max(0.0, self.time_left_s))):
                self._advance(slot)
            self.record.elapsed_s = time.monotonic() - self.record.started
            self.show(self.record)

    @staticmethod
    def _wait(busy: list[_Slot], timeout_s: float) -> list[_Slot]:
        """Slots whose worker has answered, ended, or is overdue."""
        readable, _, _ = select.select([slot.worker for slot in busy], [], [], timeout_s)
        return [slot for slot in busy if slot.worker in readable or slot.worker.overdue]

    def _assign(self, slot: _Slot) -> None:
        """Give an idle worker its next task, if there is one."""
        if slot.state.name == CANARY:
            if self.for_canary:
                self._begin(slot, self._fly_canary(self.for_canary.popleft()))
            return
        raw = self._next_to_minimize()
        if raw is not None:
            self._begin(slot, self._minimize(slot, raw))
            return
        if not self.ahead:
            self._draw_ahead()
        if self.ahead:
            drawn = self.ahead.popleft()
            self.for_canary.append(drawn)
            self._begin(slot, self._fuzz(slot, drawn))

    def _all_drawn(self) -> bool:
        """Whether as many tests as were asked for are drawn, and given out."""
        tests = self.settings.tests
        return tests is not None and self.next_index >= tests and not self.ahead

    def _draw_ahead(self) -> None:
        """Draw the next test and load it into the oracle."""
        settings = self.settings
        if settings.tests is not None and self.next_index >= settings.tests:
            return
        index = self.next_index
        self.next_index += 1
        test = draw(settings.family, settings.seed, index)
        start = time.monotonic()
        oracle = explorer_or_none(test, settings.model, settings.budget)
        self.record.judging_s += time.monotonic() - start
        assert oracle is not None, f"seed {settings.seed}, test {index}: a value of 2**24"
        self.record.graphs += 1
        self.record.drawn.update(n.op for n in test.graph.effects)
        self.ahead.append(Drawn(index, test, oracle))

    def _begin(self, slot: _Slot, task: Task) -> None:
        slot.task = task
        try:
            self._send(slot, next(task))
        except StopIteration:
            slot.task = None

    def _send(self, slot: _Slot, job: Job) -> None:
        if job.fresh:
            # No second process that gets ready meanwhile: what imports a
            # framework on one of two cores keeps racing ops from meeting.
            slot.worker.close()
            slot.ran = 0
        slot.ran += 1
        slot.job = job
        slot.since = time.monotonic()
        request = wire.Request(
            test=dumps(Entry(job.test)),
            config=slot.config.name,
            count=job.count,
            noise=asdict(job.noise),
            seed=job.seed,
        )
        slot.worker.send(request, JOB_TIMEOUT_S)

    def _advance(self, slot: _Slot) -> None:
        """Take a worker's answer to its task, and send what that asks for next."""
        assert slot.task is not None
        assert slot.job is not None
        reply = slot.worker.receive()
        slot.state.busy_s += time.monotonic() - slot.since
        result: Result = reply
        if isinstance(reply, Died):
            self._note_death(slot, reply)
        elif not reply.refused:
            result = wire.histogram(slot.job.test, reply)
            count = sum(result.values())
            slot.state.outcomes += count
            if slot.state.state == "minimizing":
                slot.state.minimizing_outcomes += count
        try:
            self._send(slot, slot.task.send(result))
        except StopIteration:
            slot.task = None
            slot.state.state = "idle"

    def _note_death(self, slot: _Slot, died: Died) -> None:
        """Count a crash or hang, and keep the test that it happened on."""
        assert slot.job is not None
        what = "timed-out" if died.timed_out else "crashed"
        if died.timed_out:
            slot.state.timed_out += 1
        else:
            slot.state.crashed += 1
        slot.state.restarts += 1
        seed = self.settings.seed
        test = replace(
            slot.job.test,
            name=f"{what}-{seed}-{slot.state.timed_out + slot.state.crashed}",
            about=f"{slot.state.name}/{slot.config.name}: {died.message}\n"
            f"seed {seed}, while {slot.state.state}, "
            f"after {slot.ran - 1} other jobs in the same process\n"
            + ", ".join(f"{k} {v}" for k, v in self.versions[slot.state.name].items()),
        )
        slot.ran = 0
        path = self.settings.out / what / f"{test.name}.yaml"
        save(Entry(test), path)
        self.record.deaths.append(Death(str(path), died.message, died.timed_out))

    # --- tasks -------------------------------------------------------------------------

    def _fly_canary(self, drawn: Drawn) -> Task:
        result = yield Job(drawn.test, 1, Noise(), 0)
        if isinstance(result, dict):
            self.record.canary_runs += 1
            self.record.canary_reported += judge(drawn.oracle, result).forbidden_count > 0

    def _fuzz(self, slot: _Slot, drawn: Drawn) -> Task:
        """Run one drawn test and judge what it shows."""
        slot.state.state = "fuzzing"
        rng = random.Random(f"{self.settings.seed}/noise/{drawn.index}")
        noise = self.settings.noise
        result = yield Job(drawn.test, self.settings.count, noise, rng.getrandbits(31))
        slot.state.tests += 1
        if isinstance(result, Died):
            return
        if isinstance(result, wire.Reply):
            slot.state.refused[result.refused] += 1
            return
        start = time.monotonic()
        judgement = judge(drawn.oracle, result)
        self.record.judging_s += time.monotonic() - start
        self.record.unknown_graphs += judgement.verdicts.get(Verdict.UNKNOWN, 0) > 0
        self.record.verdicts.update({str(v): n for v, n in judgement.verdicts.items()})
        if not judgement.forbidden:
            return
        self.record.forbidden_graphs += 1
        raw = _Raw(drawn, slot, judgement, noise)
        known = self._explained(raw, exact=True)
        self._store_raw(raw)
        if known is not None:
            known.more += 1
        else:
            self.raw.append(raw)

    def _minimize(self, slot: _Slot, raw: _Raw) -> Task:
        """Reduce a finding, see it again in a fresh process, and store it."""
        slot.state.state = "minimizing"
        self.record.minimizing = f"graph {raw.drawn.index}"
        start = time.monotonic()
        rng = random.Random(f"{self.settings.seed}/minimize/{raw.drawn.index}")
        best = _Best(raw.drawn.test, raw.judgement)
        try:
            complete = yield from self._reduce(raw, best, rng)
            confirmed = yield from self._confirm(raw, best, rng)
        except GeneratorExit:
            # The time is up: the best so far is worth keeping.
            self._store(raw, best, minimized=False, confirmed=False)
            raise
        finally:
            self.minimizing_s += time.monotonic() - start
            self.record.minimizing = ""
        if confirmed is None:
            self._store_unconfirmed(raw, best)
        else:
            best.judgement = confirmed
            self._store(raw, best, minimized=complete, confirmed=True)

    def _reduce(self, raw: _Raw, best: _Best, rng: random.Random) -> Generator[Job, Result, bool]:
        """Make `best` as small as it gets; False if that took too long."""
        start = time.monotonic()
        if best.rate < 0.05:
            for wider in widened(best.test):
                shown = yield from self._probe(wider, best, raw.noise, rng)
                if shown is not None and shown.rate > 2 * best.rate:
                    best.improve(wider, shown)
                    break
        reduction = reduce(best.test)
        answer: bool | None = None
        while time.monotonic() - start < MAX_REDUCTION_S:
            try:
                candidate = next(reduction) if answer is None else reduction.send(answer)
            except StopIteration:
                return True
            shown = yield from self._probe(candidate, best, raw.noise, rng)
            answer = shown is not None
            if shown is not None:
                best.improve(candidate, shown)
        return False

    def _confirm(
        self, raw: _Raw, best: _Best, rng: random.Random
    ) -> Generator[Job, Result, Judgement | None]:
        """What `best` shows in a process that ran nothing else; None if nothing forbidden."""
        total: Counter[Outcome] = Counter()
        count = max(CONFIRM_COUNT, best.count)
        result = yield Job(best.test, count, raw.noise, rng.getrandbits(31), fresh=True)
        deadline = time.monotonic() + CONFIRM_S  # the process's start is not counted
        while isinstance(result, dict):
            total.update(result)
            judgement = judge(best.judgement.oracle, total)
            if judgement.forbidden:
                return judgement
            if time.monotonic() > deadline:
                break
            result = yield Job(best.test, 4 * count, raw.noise, rng.getrandbits(31))
        return None

    def _probe(
        self, test: LitmusTest, best: _Best, noise: Noise, rng: random.Random
    ) -> Generator[Job, Result, Judgement | None]:
        """Whether enough of a few runs show it often enough: judged, or None."""
        oracle = explorer_or_none(test, self.settings.model, self.settings.budget)
        if oracle is None:
            return None
        total: Counter[Outcome] = Counter()
        failed = 0
        for done in range(PROBE_RUNS):
            if failed + PROBE_RUNS - done < PROBE_NEEDED:
                return None
            result = yield Job(test, best.count, noise, rng.getrandbits(31))
            if not isinstance(result, dict):
                return None
            total.update(result)
            failed += judge(oracle, result).forbidden_count >= best.needed
            if failed == PROBE_NEEDED:
                return judge(oracle, total)
        return None

    # --- findings ----------------------------------------------------------------------

    def _explained(self, raw: _Raw, *, exact: bool) -> ReportedFinding | None:
        """A minimized finding of the same executor whose shape this graph contains."""
        for known in self.record.findings:
            finding = known.entry.finding
            assert finding is not None
            if (finding.executor, finding.config) != (raw.slot.state.name, raw.slot.config.name):
                continue
            if finding.minimized and explains(known.entry.test, raw.drawn.test, exact=exact):
                return known
        return None

    def _next_to_minimize(self) -> _Raw | None:
        """The raw finding most likely to show something new, if there is time."""
        waiting = []
        for raw in self.raw:
            known = self._explained(raw, exact=True)
            if known is None:
                waiting.append(raw)
            else:
                known.more += 1
        self.raw = waiting
        if not waiting:
            return None
        new = [raw for raw in waiting if self._explained(raw, exact=False) is None]
        chosen = min(new or waiting, key=_expected_cost_s)
        if self._all_drawn():
            pass  # nothing else is left to do
        elif self.settings.tests is not None and self.time_left_s > self.settings.time_s / 2:
            return None  # a run of so many tests draws them all first: it is repeatable
        else:
            # A share of the time, so that a rare finding early on does not eat
            # all of it; what looks new may run ahead of its share.
            elapsed = self.settings.time_s - self.time_left_s
            share = REDUCTION_SHARE * elapsed * self.settings.workers
            cost = _expected_cost_s(chosen) * (0.25 if new else 0.5)
            if self.minimizing_s + cost > share:
                return None
        self.raw.remove(chosen)
        return chosen

    def _entry(
        self,
        raw: _Raw,
        test: LitmusTest,
        judgement: Judgement,
        *,
        minimized: bool,
        confirmed: bool,
    ) -> Entry:
        finding = Finding(
            executor=raw.slot.state.name,
            config=raw.slot.config.name,
            model=self.settings.model.name,
            forbidden=judgement.forbidden[:8],
            executions=judgement.executions,
            noise=asdict(raw.noise),
            settings=dict(raw.slot.config.settings),
            versions=self.versions[raw.slot.state.name],
            seed=self.settings.seed,
            index=raw.drawn.index,
            family=self.settings.family,
            minimized=minimized,
            confirmed=confirmed,
        )
        return Entry(test, listed(test, self.settings.model, self.settings.budget), finding)

    def _store_raw(self, raw: _Raw) -> None:
        """Keep every graph that showed something, as it was drawn."""
        test = replace(raw.drawn.test, name=f"raw-{self.settings.seed}-{raw.drawn.index}")
        entry = self._entry(raw, test, raw.judgement, minimized=False, confirmed=False)
        save(entry, self.settings.out / "raw" / f"{test.name}.yaml")

    def _store_unconfirmed(self, raw: _Raw, best: _Best) -> None:
        """Keep, apart, what a fresh process does not show: it is not reported."""
        self.record.unconfirmed += 1
        test = replace(best.test, name=f"unconfirmed-{self.settings.seed}-{raw.drawn.index}")
        entry = self._entry(raw, test, best.judgement, minimized=False, confirmed=False)
        save(entry, self.settings.out / "unconfirmed" / f"{test.name}.yaml")

    def _store(self, raw: _Raw, best: _Best, *, minimized: bool, confirmed: bool) -> None:
        """Write a finding and report it; once, if it was found before."""
        small = normalized(best.test, "finding")
        judgement = self._renamed(best, small)
        seen = judgement.forbidden[0][0]
        small = replace(small, name=finding_name(small, seen))
        for known in self.record.findings:
            if known.entry.test == small:
                known.more += 1
                return
        entry = self._entry(raw, small, judgement, minimized=minimized, confirmed=confirmed)
        path = self.settings.out / f"{small.name}.yaml"
        save(entry, path)
        cause = likely_cause(small, seen)
        reason = explain(small, self.settings.model, seen)
        self.record.findings.append(
            ReportedFinding(entry, str(path), cause, reason=str(reason or ""))
        )

    def _renamed(self, best: _Best, test: LitmusTest) -> Judgement:
        """The best's judgement, of the same test under other names."""
        names = dict(zip(best.test.names, test.names, strict=True))

        def of(outcome: Outcome) -> Outcome:
            values = tuple((names[name], value) for name, value in outcome.values)
            return replace(outcome, values=values)

        return replace(
            best.judgement,
            oracle=Explorer(test, self.settings.model, self.settings.budget),
            histogram={of(o): n for o, n in best.judgement.histogram.items()},
            forbidden=tuple((of(o), n) for o, n in best.judgement.forbidden),
        )

    def _store_rest(self) -> None:
        """At the end: what was not minimized is told, and lies in ``raw/``."""
        self.record.raw_findings = len(self.raw)
        self.record.elapsed_s = time.monotonic() - self.record.started

    def _check_canary(self) -> None:
        record = self.record
        if record.problem or record.interrupted:
            return
        if record.canary_runs == 0 or record.canary_reported < record.canary_runs:
            record.problem = (
                f"the canary was reported in {record.canary_reported} of {record.canary_runs} "
                "runs: this campaign proves nothing"
            )


def _probe_count(rate: float) -> int:
    return min(MAX_PROBE_COUNT, max(256, int(24 / max(rate, 1e-6))))


def _expected_cost_s(raw: _Raw) -> float:
    """How long a minimization takes, roughly.

    About three candidates a node, two runs for most, at 0.05 s each and 40,000
    executions a second.
    """
    candidates = 3 * len(raw.drawn.test.graph.nodes)
    return candidates * 2 * (0.05 + _probe_count(raw.judgement.rate) / 40_000)
