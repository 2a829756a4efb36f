"""The self-test, which runs every mutant until LitmusFuzz reports its defect.

Mutants with the same support share one prioritized list of tests, the portfolio
(`litmusfuzz.fuzz.campaign.portfolio`); no test is there for a particular mutant. A mutant runs
each test in every run setup (configuration, noise and number of executions) of the executor that
it was made from, until an outcome is forbidden. The mutant counts as killed if a later run shows a
forbidden outcome again and no run of its control does. The mutant that has run for the shortest
time goes next.

Mutants of one environment share worker processes, because starting a framework takes as long as
dozens of tests.
"""

from __future__ import annotations

import select
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.outcome import Outcome, Verdict
from litmusfuzz.corpus.textfile import Entry, dumps
from litmusfuzz.fuzz.campaign.judge import CachingOracle, Oracle, explorer_or_none
from litmusfuzz.fuzz.campaign.portfolio import RUN_SETUPS, Portfolio, RunSetup
from litmusfuzz.fuzz.campaign.settings import CAMPAIGN_BUDGET
from litmusfuzz.fuzz.executors import messages
from litmusfuzz.fuzz.executors.protocol import Mutant
from litmusfuzz.fuzz.executors.table import CANARY, CONTROL, EXECUTORS, MUTANT, executor_class
from litmusfuzz.fuzz.executors.worker import Died, Worker
from litmusfuzz.oracles.model import GUARANTEES
from litmusfuzz.reports.kills import Effort, Selftest
from litmusfuzz.reports.nightly_report import Kill

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.executors.protocol import Config
    from litmusfuzz.fuzz.support import Support

DEFAULT_S: Final = 300.0
JOB_TIMEOUT_S: Final = 60.0
CONFIRMATION_RUNS: Final = 8
"""Further runs of a mutant, one of which must show a forbidden outcome again."""
CONTROL_RUNS: Final = 16
"""Runs of the control, none of which may show a forbidden outcome."""
KEEP_ENVIRONMENT_S: Final = 20.0
"""Seconds for which workers keep an environment while mutants of another environment wait."""

Environment = tuple[tuple[str, str], ...]
Seen = Mapping[Outcome, int] | None
ShowProgress = Callable[[Selftest], None]


@dataclass(frozen=True, slots=True)
class _Job:
    """One run of a test by an executor."""

    executor: str
    test: LitmusTest
    config: Config
    setup: RunSetup
    seed: int

    def request(self) -> messages.Request:
        """The message to the worker."""
        return messages.Request(
            test=dumps(Entry(self.test)),
            executor=self.executor,
            config=self.config.name,
            count=self.setup.count,
            noise=asdict(self.setup.noise),
            seed=self.seed,
        )


@dataclass(slots=True, eq=False)
class _Candidate:
    """A mutant, or its control, and its results so far."""

    name: str
    origin: str
    """The executor that the mutant was made from."""
    environment: Environment
    task: Generator[_Job, Seen, None] | None = None
    job: _Job | None = None
    """Its next job."""
    seconds: float = 0.0
    graphs: int = 0
    family: str = ""
    setup: str = ""
    killed: bool = False
    unavailable: str = ""


@dataclass(slots=True)
class _WorkerSet:
    """One worker process for each environment; one of them works at a time."""

    workers: dict[Environment, Worker] = field(default_factory=dict)
    environment: Environment | None = None
    environment_since: float = 0.0
    candidate: _Candidate | None = None
    starting: bool = False
    """True while the worker is asked for versions and so imports its framework; not counted as
    time."""
    since: float = 0.0

    @property
    def worker(self) -> Worker:
        """The worker of its present environment."""
        assert self.environment is not None
        return self.workers[self.environment]

    def fileno(self) -> int:
        """Readable when the worker has answered."""
        return self.worker.fileno()

    def begin(self, candidate: _Candidate) -> None:
        """Send the candidate's next job, or start a worker for it."""
        now = time.monotonic()
        if candidate.environment != self.environment:
            self.environment, self.environment_since = candidate.environment, now
        self.starting = self.environment not in self.workers
        if self.starting:
            self.workers[self.environment] = Worker(candidate.name)
        self.candidate, self.since = candidate, now
        assert candidate.job is not None
        request = messages.Request() if self.starting else candidate.job.request()
        self.worker.send(request, JOB_TIMEOUT_S)


def mutants() -> tuple[str, ...]:
    """Names of all mutants."""
    return tuple(name for name in EXECUTORS if name.startswith(MUTANT))


def controls() -> tuple[str, ...]:
    """Names of all mutants' controls. The canary has none: it runs nothing."""
    return tuple(CONTROL + name.removeprefix(MUTANT) for name in mutants() if name != CANARY)


class _SelftestRun:
    """One self-test: candidates, workers, and what they share."""

    def __init__(self, names: tuple[str, ...], time_s: float, workers: int, seed: int) -> None:
        self.time_s = time_s
        self.seed = seed
        self.portfolios: dict[tuple[str, Support], Portfolio] = {}
        self.oracles: dict[tuple[LitmusTest, str], Oracle | None] = {}
        self.setups: defaultdict[str, Effort] = defaultdict(Effort)
        self.families: defaultdict[str, Effort] = defaultdict(Effort)
        self.died: Counter[str] = Counter()
        self.interrupted = False
        self.candidates = [self._candidate(name) for name in names]
        self.worker_sets = [_WorkerSet() for _ in range(min(workers, len(names)))]
        self.started = time.monotonic()

    def _candidate(self, name: str) -> _Candidate:
        made = executor_class(name)
        origins = (o for o in ("tf", "jax") if issubclass(made, executor_class(o)))
        origin = next(origins, "native")  # mutants in Python need no framework either
        (config, *_) = made.configurations()
        candidate = _Candidate(name, origin, config.environment)
        candidate.task = self._test_until_killed(candidate)
        candidate.job = next(candidate.task)
        return candidate

    # --- one candidate -------------------------------------------------------------------

    def _test_until_killed(self, candidate: _Candidate) -> Generator[_Job, Seen, None]:
        """Run test after test until one kills the mutant."""
        made = executor_class(candidate.name)
        configs = {config.name: config for config in made.configurations()}
        configs[""] = made.configurations()[0]
        setups = [setup for setup in RUN_SETUPS[candidate.origin] if setup.config in configs]
        if candidate.origin == "native" and "controlled" not in configs:  # a mutant without engines
            setups = [replace(setups[0], config="")]
        key = (candidate.origin, made.support)
        if key not in self.portfolios:
            sparse = candidate.origin != "tf"
            self.portfolios[key] = Portfolio(made.support, self.seed, sparse=sparse)
        for index in count():
            family, test = self.portfolios[key][index]
            candidate.graphs += 1
            for setup in setups:
                form = setup.form(test)
                if form is None:
                    continue
                candidate.family, candidate.setup = family, setup.name
                job = _Job(candidate.name, form, configs[setup.config], setup, self.seed + index)
                if self._forbidden(job, (yield job)) and (yield from self._confirmed(job)):
                    candidate.killed = True
                    return

    def _confirmed(self, job: _Job) -> Generator[_Job, Seen, bool]:
        """Return True if a further run shows a forbidden outcome, but no run of the control."""
        for number in range(1, CONFIRMATION_RUNS + 1):
            again = _with(job, job.executor, number)
            if self._forbidden(again, (yield again)):
                break
        else:
            return False
        if not isinstance(executor_class(job.executor), Mutant):
            return True
        control_name = CONTROL + job.executor.partition("/")[2]
        for number in range(1, CONTROL_RUNS + 1):
            control = _with(job, control_name, number)
            if self._forbidden(control, (yield control)):
                return False
        return True

    def _forbidden(self, job: _Job, seen: Seen) -> bool:
        """Return True if an outcome is forbidden. Undecided outcomes do not count."""
        if not seen:
            return False
        model = GUARANTEES[job.config.guarantees]
        key = (job.test, model.name)
        if key not in self.oracles:
            oracle = explorer_or_none(job.test, model, CAMPAIGN_BUDGET)
            self.oracles[key] = None if oracle is None else CachingOracle(oracle)
        judge = self.oracles[key]
        return judge is not None and any(judge.judge(o) is Verdict.FORBIDDEN for o in seen)

    # --- all of them -------------------------------------------------------------------

    def run(self, show: ShowProgress) -> Selftest:
        """Run until all mutants are killed, or the time is over."""
        try:
            while self.left_s > 0 and self.alive:
                for worker_set in self.worker_sets:
                    if worker_set.candidate is None:
                        self._assign(worker_set)
                busy = [
                    worker_set
                    for worker_set in self.worker_sets
                    if worker_set.candidate is not None
                ]
                ready, _, _ = select.select(busy, [], [], min(0.25, max(0.0, self.left_s)))
                for worker_set in busy:
                    if worker_set in ready or worker_set.worker.overdue:
                        self._answered(worker_set)
                show(self.result())
        except KeyboardInterrupt:
            self.interrupted = True
        finally:
            for worker_set in self.worker_sets:
                for worker in worker_set.workers.values():
                    worker.close()
        return self.result()

    @property
    def left_s(self) -> float:
        """Seconds until the end."""
        return self.time_s - (time.monotonic() - self.started)

    @property
    def alive(self) -> list[_Candidate]:
        """Candidates that are not killed and can run."""
        return [each for each in self.candidates if not (each.killed or each.unavailable)]

    def _assign(self, worker_set: _WorkerSet) -> None:
        """Give idle workers the next job of the candidate that has had the least time."""
        busy = {id(each.candidate) for each in self.worker_sets}
        idle = [each for each in self.alive if id(each) not in busy]
        here = [each for each in idle if each.environment == worker_set.environment]
        taken = {each.environment for each in self.worker_sets}
        waiting = [each for each in idle if each.environment not in taken]
        now = time.monotonic()
        if waiting and (not here or now - worker_set.environment_since > KEEP_ENVIRONMENT_S):
            here = waiting
        candidate = min(here or idle, key=lambda each: each.seconds, default=None)
        if candidate is not None:
            worker_set.begin(candidate)

    def _answered(self, worker_set: _WorkerSet) -> None:
        """Pass a worker's answer to the candidate's task, which says what is next."""
        candidate = worker_set.candidate
        assert candidate is not None
        assert candidate.job is not None
        assert candidate.task is not None
        worker_set.candidate = None
        reply = worker_set.worker.receive()
        if worker_set.starting and isinstance(reply, messages.Reply) and not reply.unavailable:
            return
        seconds = time.monotonic() - worker_set.since
        seen: Seen = None
        if isinstance(reply, Died):
            self.died[candidate.name] += 1
        elif reply.unavailable:
            candidate.unavailable = reply.unavailable
        elif not reply.refused:
            seen = messages.histogram(candidate.job.test, reply)
            seconds = reply.seconds  # without a framework's start
        candidate.seconds += seconds
        family, setup = candidate.family, candidate.setup
        with suppress(StopIteration):
            candidate.job = candidate.task.send(seen)
        for effort in (self.families[family], self.setups[setup]):
            effort.runs += 1
            effort.seconds += seconds
            effort.kills += candidate.killed

    def result(self) -> Selftest:
        """The results so far."""
        return Selftest(
            kills=tuple(map(_kill, self.candidates)),
            setups=dict(self.setups),
            families=dict(self.families),
            seconds=time.monotonic() - self.started,
            asked_s=self.time_s,
            seed=self.seed,
            died=dict(self.died),
            unavailable={s.name: s.unavailable for s in self.candidates if s.unavailable},
            interrupted=self.interrupted,
        )


def _kill(candidate: _Candidate) -> Kill:
    return Kill(
        mutant=candidate.name,
        executor=candidate.origin,
        seconds=round(candidate.seconds, 3) if candidate.killed else None,
        graphs=candidate.graphs,
        family=candidate.family if candidate.killed else "",
        setup=candidate.setup if candidate.killed else "",
    )


def _with(job: _Job, executor: str, number: int) -> _Job:
    """The same job for an executor, with another seed."""
    return _Job(executor, job.test, job.config, job.setup, job.seed + number)


def selftest(
    names: tuple[str, ...] = (),
    *,
    time_s: float = DEFAULT_S,
    workers: int = 2,
    seed: int = 0,
    show: ShowProgress = lambda _: None,
) -> Selftest:
    """Run tests on mutants until all are killed, or the time is over.

    Parameters
    ----------
    names : tuple of str
        Mutants, or controls, none of which should be reported; all mutants if empty.
    time_s : float
    workers : int
        How many tests run at the same time. There may be more processes, one for each
        environment, but the others are idle.
    seed : int
        Of the generated tests and the noise.
    show : callable
        Called repeatedly with the results so far.
    """
    return _SelftestRun(names or mutants(), time_s, workers, seed).run(show)
