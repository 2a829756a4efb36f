"""Whether this program finds what it says it finds: every mutant, by what it tries on any.

Each mutant runs the tests of one portfolio (`litmusfuzz.fuzz.campaign.portfolio`), in its order and
in each of its ways, until one of its outcomes is forbidden, and again so in another run,
while its control shows nothing that is. No test is chosen for a mutant. Those that
are still alive take turns: whoever has had least time is next.

Worker processes are shared by the mutants of one environment: to start a framework
takes as long as dozens of tests.
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
from litmusfuzz.fuzz.campaign.judge import Oracle, Remembering, explorer_or_none
from litmusfuzz.fuzz.campaign.portfolio import WAYS, Portfolio, Way
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
AGAIN: Final = 8
"""Further runs of a mutant in which what it showed must show once more."""
CONTROLS: Final = 16
"""Runs of the control, none of which may show anything forbidden."""
STAY_S: Final = 20.0
"""How long a worker stays in one environment while nobody works in another that waits."""

Environment = tuple[tuple[str, str], ...]
Seen = Mapping[Outcome, int] | None
Explanation = Callable[[Selftest], None]


@dataclass(frozen=True, slots=True)
class _Job:
    """One run of a test by an executor."""

    executor: str
    test: LitmusTest
    config: Config
    way: Way
    seed: int

    def request(self) -> messages.Request:
        """As a worker takes it."""
        return messages.Request(
            test=dumps(Entry(self.test)),
            executor=self.executor,
            config=self.config.name,
            count=self.way.count,
            noise=asdict(self.way.noise),
            seed=self.seed,
        )


@dataclass(slots=True, eq=False)
class _Subject:
    """A mutant, or its control, and how far it is."""

    name: str
    origin: str
    """The executor that it was made from."""
    environment: Environment
    hunt: Generator[_Job, Seen, None] | None = None
    job: _Job | None = None
    """What it is to run next."""
    seconds: float = 0.0
    graphs: int = 0
    family: str = ""
    strategy: str = ""
    killed: bool = False
    unavailable: str = ""


@dataclass(slots=True)
class _Lane:
    """One job at a time, in a process for each environment; those not in use just wait."""

    workers: dict[Environment, Worker] = field(default_factory=dict)
    environment: Environment | None = None
    entered: float = 0.0
    subject: _Subject | None = None
    starting: bool = False
    """Whether it was asked for versions: it then imports its framework, in nobody's time."""
    since: float = 0.0

    @property
    def worker(self) -> Worker:
        """Of the environment that it works in."""
        assert self.environment is not None
        return self.workers[self.environment]

    def fileno(self) -> int:
        """Readable when it has answered."""
        return self.worker.fileno()

    def begin(self, subject: _Subject) -> None:
        """Send its next job, or start a worker for it."""
        now = time.monotonic()
        if subject.environment != self.environment:
            self.environment, self.entered = subject.environment, now
        self.starting = self.environment not in self.workers
        if self.starting:
            self.workers[self.environment] = Worker(subject.name)
        self.subject, self.since = subject, now
        assert subject.job is not None
        request = messages.Request() if self.starting else subject.job.request()
        self.worker.send(request, JOB_TIMEOUT_S)


def mutants() -> tuple[str, ...]:
    """Names of all of them."""
    return tuple(name for name in EXECUTORS if name.startswith(MUTANT))


def controls() -> tuple[str, ...]:
    """Names of all mutants' controls. The canary has none: it runs nothing."""
    return tuple(CONTROL + name.removeprefix(MUTANT) for name in mutants() if name != CANARY)


class _Hunt:
    """One self-test: subjects, lanes, and what they share."""

    def __init__(self, names: tuple[str, ...], time_s: float, workers: int, seed: int) -> None:
        self.time_s = time_s
        self.seed = seed
        self.portfolios: dict[tuple[str, Support], Portfolio] = {}
        self.oracles: dict[tuple[LitmusTest, str], Oracle | None] = {}
        self.strategies: defaultdict[str, Effort] = defaultdict(Effort)
        self.families: defaultdict[str, Effort] = defaultdict(Effort)
        self.died: Counter[str] = Counter()
        self.interrupted = False
        self.subjects = [self._subject(name) for name in names]
        self.lanes = [_Lane() for _ in range(min(workers, len(names)))]
        self.started = time.monotonic()

    def _subject(self, name: str) -> _Subject:
        made = executor_class(name)
        origins = (o for o in ("tf", "jax") if issubclass(made, executor_class(o)))
        origin = next(origins, "native")  # what is in Python needs no framework either
        (config, *_) = made.configurations()
        subject = _Subject(name, origin, config.environment)
        subject.hunt = self._hunt(subject)
        subject.job = next(subject.hunt)
        return subject

    # --- one subject -------------------------------------------------------------------

    def _hunt(self, subject: _Subject) -> Generator[_Job, Seen, None]:
        """Run test after test, until a kill."""
        made = executor_class(subject.name)
        configs = {config.name: config for config in made.configurations()}
        configs[""] = made.configurations()[0]
        ways = [way for way in WAYS[subject.origin] if way.config in configs]
        if subject.origin == "native" and "controlled" not in configs:  # it has no engines
            ways = [replace(ways[0], config="")]
        key = (subject.origin, made.support)
        if key not in self.portfolios:
            sparse = subject.origin != "tf"
            self.portfolios[key] = Portfolio(made.support, self.seed, sparse=sparse)
        for index in count():
            family, test = self.portfolios[key][index]
            subject.graphs += 1
            for way in ways:
                form = way.form(test)
                if form is None:
                    continue
                subject.family, subject.strategy = family, way.strategy
                job = _Job(subject.name, form, configs[way.config], way, self.seed + index)
                if self._forbidden(job, (yield job)) and (yield from self._confirmed(job)):
                    subject.killed = True
                    return

    def _confirmed(self, job: _Job) -> Generator[_Job, Seen, bool]:
        """Whether it shows again, and its control shows nothing."""
        for number in range(1, AGAIN + 1):
            again = _with(job, job.executor, number)
            if self._forbidden(again, (yield again)):
                break
        else:
            return False
        if not isinstance(executor_class(job.executor), Mutant):
            return True
        sound = CONTROL + job.executor.partition("/")[2]
        for number in range(1, CONTROLS + 1):
            control = _with(job, sound, number)
            if self._forbidden(control, (yield control)):
                return False
        return True

    def _forbidden(self, job: _Job, seen: Seen) -> bool:
        """Whether it showed anything forbidden. What is unknown is not."""
        if not seen:
            return False
        model = GUARANTEES[job.config.guarantees]
        key = (job.test, model.name)
        if key not in self.oracles:
            oracle = explorer_or_none(job.test, model, CAMPAIGN_BUDGET)
            self.oracles[key] = None if oracle is None else Remembering(oracle)
        judge = self.oracles[key]
        return judge is not None and any(judge.judge(o) is Verdict.FORBIDDEN for o in seen)

    # --- all of them -------------------------------------------------------------------

    def run(self, told: Explanation) -> Selftest:
        """Until all are killed, or the time is up."""
        try:
            while self.left_s > 0 and self.alive:
                for lane in self.lanes:
                    if lane.subject is None:
                        self._assign(lane)
                busy = [lane for lane in self.lanes if lane.subject is not None]
                ready, _, _ = select.select(busy, [], [], min(0.25, max(0.0, self.left_s)))
                for lane in busy:
                    if lane in ready or lane.worker.overdue:
                        self._answered(lane)
                told(self.result())
        except KeyboardInterrupt:
            self.interrupted = True
        finally:
            for lane in self.lanes:
                for worker in lane.workers.values():
                    worker.close()
        return self.result()

    @property
    def left_s(self) -> float:
        """Seconds until the end."""
        return self.time_s - (time.monotonic() - self.started)

    @property
    def alive(self) -> list[_Subject]:
        """Not killed, and able to run."""
        return [each for each in self.subjects if not (each.killed or each.unavailable)]

    def _assign(self, lane: _Lane) -> None:
        """Give a lane the next job of whoever has had least time."""
        busy = {id(each.subject) for each in self.lanes}
        idle = [each for each in self.alive if id(each) not in busy]
        here = [each for each in idle if each.environment == lane.environment]
        taken = {each.environment for each in self.lanes}
        waiting = [each for each in idle if each.environment not in taken]
        now = time.monotonic()
        if waiting and (not here or now - lane.entered > STAY_S):
            here = waiting
        subject = min(here or idle, key=lambda each: each.seconds, default=None)
        if subject is not None:
            lane.begin(subject)

    def _answered(self, lane: _Lane) -> None:
        """Take what it showed, and ask the hunt what comes next."""
        subject = lane.subject
        assert subject is not None
        assert subject.job is not None
        assert subject.hunt is not None
        lane.subject = None
        reply = lane.worker.receive()
        if lane.starting and isinstance(reply, messages.Reply) and not reply.unavailable:
            return
        seconds = time.monotonic() - lane.since
        seen: Seen = None
        if isinstance(reply, Died):
            self.died[subject.name] += 1
        elif reply.unavailable:
            subject.unavailable = reply.unavailable
        elif not reply.refused:
            seen = messages.histogram(subject.job.test, reply)
            seconds = reply.seconds  # a framework's start is nobody's time
        subject.seconds += seconds
        family, strategy = subject.family, subject.strategy
        with suppress(StopIteration):
            subject.job = subject.hunt.send(seen)
        for effort in (self.families[family], self.strategies[strategy]):
            effort.runs += 1
            effort.seconds += seconds
            effort.kills += subject.killed

    def result(self) -> Selftest:
        """How it stands."""
        return Selftest(
            kills=tuple(map(_kill, self.subjects)),
            strategies=dict(self.strategies),
            families=dict(self.families),
            seconds=time.monotonic() - self.started,
            asked_s=self.time_s,
            seed=self.seed,
            died=dict(self.died),
            unavailable={s.name: s.unavailable for s in self.subjects if s.unavailable},
            interrupted=self.interrupted,
        )


def _kill(subject: _Subject) -> Kill:
    return Kill(
        mutant=subject.name,
        executor=subject.origin,
        seconds=round(subject.seconds, 3) if subject.killed else None,
        graphs=subject.graphs,
        by=subject.family if subject.killed else "",
        strategy=subject.strategy if subject.killed else "",
    )


def _with(job: _Job, executor: str, number: int) -> _Job:
    """The same test once more, by that executor and with another seed."""
    return _Job(executor, job.test, job.config, job.way, job.seed + number)


def selftest(
    names: tuple[str, ...] = (),
    *,
    time_s: float = DEFAULT_S,
    workers: int = 2,
    seed: int = 0,
    told: Explanation = lambda _: None,
) -> Selftest:
    """Kill mutants until none is left, or the time is up.

    Parameters
    ----------
    names : tuple of str
        Of mutants, or of controls, none of which should be reported; all mutants if empty.
    time_s : float
    workers : int
        Processes that run tests.
    seed : int
        Of what is generated, and of the noise.
    told : callable
        Hears how it stands, now and then.
    """
    return _Hunt(names or mutants(), time_s, workers, seed).run(told)
