"""The self-test, which runs every mutant until LitmusFuzz reports its defect.

Mutants with the same support share one prioritized list of tests, the suite
(`litmusfuzz.fuzz.campaign.suite`); no test is there for a particular mutant. A mutant runs
each test in every run setup (configuration, noise and number of executions) of the executor that
it was made from, until an outcome is forbidden. The mutant counts as killed if a later run shows a
forbidden outcome again and no run of its control does. The mutant that has run for the shortest
time goes next, for at least `TURN_S` in a process of its own.

A test that does not reach the defect, so that the mutant executes it just as its control does, is
not run: it cannot kill.

References
----------
Voas, "PIE: a dynamic failure-based technique", IEEE TSE 1992: a defect is executed, infects, and
propagates. Coles, Laurent, Henard, Papadakis, Ventresque, "PIT: a practical mutation testing tool
for Java", ISSTA 2016, section 3: tests that do not execute a mutant are not run.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.textfile import Entry, Finding
from litmusfuzz.fuzz.campaign import clock
from litmusfuzz.fuzz.campaign.mutant_candidates import MutantCandidates, MutantTrial, mutants
from litmusfuzz.fuzz.campaign.settings import CAMPAIGN_BUDGET
from litmusfuzz.fuzz.campaign.tuning import ENVIRONMENT_SWITCH_S, JOB_TIMEOUT_S, POLL_S
from litmusfuzz.fuzz.executors import messages
from litmusfuzz.fuzz.executors.protocol import Checkable, KnowsReach, Mutant
from litmusfuzz.fuzz.executors.worker import Died, Worker
from litmusfuzz.fuzz.finding.judge import CachingOracle, Oracle, explorer_or_none, judge
from litmusfuzz.fuzz.finding.judging_model import guaranteed
from litmusfuzz.reports.kills import Effort, Selftest

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.campaign.mutant_candidates import MutantCandidate
    from litmusfuzz.fuzz.executors.protocol import Config
    from litmusfuzz.fuzz.finding.judge import Judgement

TURN_S: Final = 2 * ENVIRONMENT_SWITCH_S
"""Seconds for which a mutant runs before another one may be next; a process costs 0.1 s."""
CONFIRMATION_RUNS: Final = 8
"""Further runs of a mutant, one of which must show a forbidden outcome again."""
CONTROL_RUNS: Final = 16
"""Runs of the control, none of which may show a forbidden outcome."""
CHECK: Final = "check"
"""Name under which kills are counted that an executor's own check of a configuration makes."""

ShowProgress = Callable[[Selftest], None]
Keep = Callable[[str, Entry], None]


class _SelftestRun:
    """One self-test: its candidates, and what they share."""

    def __init__(self, names: tuple[str, ...], time_s: float, seed: int, keep: Keep) -> None:
        self.time_s = time_s
        self.keep = keep
        self.seed = seed
        self.oracles: dict[tuple[LitmusTest, str], Oracle | None] = {}
        self.setups: defaultdict[str, Effort] = defaultdict(Effort)
        self.families: defaultdict[str, Effort] = defaultdict(Effort)
        self.died: Counter[str] = Counter()
        self.interrupted = False
        self.made = MutantCandidates(seed)
        self.candidates = [self.made.candidate(name) for name in names]
        self.started = clock.now()

    async def run(self, workers: int, show: ShowProgress) -> None:
        """Run until all mutants are killed, or the time is over."""
        async with asyncio.TaskGroup() as group:
            pending = {group.create_task(self._turns()) for _ in range(workers)}
            while pending and (left_s := self.started + self.time_s - clock.now()) > 0:
                _, pending = await asyncio.wait(pending, timeout=min(POLL_S, left_s))
                show(self.result())
            for task in pending:
                task.cancel()

    async def _turns(self) -> None:
        """Run one candidate after another, while there is one that no other task runs."""
        while idle := [each for each in self.candidates if each.alive and not each.running]:
            candidate = min(idle, key=lambda each: each.seconds)
            candidate.running, end_s = True, candidate.seconds + TURN_S
            with closing(Worker(candidate.name)) as worker:
                # The framework's import.
                reply = await worker.run(messages.Request(), JOB_TIMEOUT_S)
                if not isinstance(reply, Died) and not reply.unavailable and not candidate.tests:
                    await self._check(candidate, worker)
                while candidate.alive and candidate.seconds < end_s:
                    await self._next_test(candidate, worker)
            candidate.running = False

    async def _check(self, candidate: MutantCandidate, worker: Worker) -> None:
        """Let a mutant check its first setup, as before a campaign.

        A defect that makes the mutant's check fail, and not that of its control, is found.
        """
        made = candidate.made
        if not (isinstance(made, Mutant) and issubclass(made, Checkable) and candidate.setups):
            return
        setup, config = candidate.setups[0]
        start = clock.now()
        found = []
        for executor in (candidate.name, candidate.control):
            request = messages.Request(executor=executor, config=config.name)
            reply = await worker.run(request, JOB_TIMEOUT_S)
            found.append("" if isinstance(reply, Died) else reply.unavailable)
        candidate.seconds += clock.now() - start
        if all(found):
            candidate.left_out = found[0]
        elif found[0]:
            self._killed(candidate, CHECK, setup.name)

    def _killed(self, candidate: MutantCandidate, family: str, setup: str, test: str = "") -> None:
        """Note what has killed a candidate."""
        candidate.killed_by = family, setup, test
        self.families[family].kills += 1
        self.setups[setup].kills += 1

    async def _next_test(self, candidate: MutantCandidate, worker: Worker) -> None:
        """Run the candidate's next test in each setup, until it is killed."""
        number = candidate.tests
        candidate.tests += 1
        family, test = candidate.suite[number]
        for setup, config in candidate.setups:
            form = setup.form(test, number)
            if form is None:
                continue
            chosen = self.made.config(candidate, setup, config)
            if not await self._reaches(candidate, form, chosen):
                continue
            trial = MutantTrial(family, form, setup, chosen, self.seed + number)
            if await self._kills(candidate, worker, trial):
                self._killed(candidate, family, setup.name, test.name)
                assert candidate.shown is not None
                self.keep(candidate.name, candidate.shown)
            if not candidate.alive:
                return

    async def _reaches(self, candidate: MutantCandidate, test: LitmusTest, config: Config) -> bool:
        """Return False if the mutant executes the test just as its control does."""
        made = candidate.made
        if not isinstance(made, KnowsReach):
            return True
        start = clock.now()
        reached = made.reaches(test, config)
        candidate.seconds += clock.now() - start
        await asyncio.sleep(0)  # where nothing is reached, the other task and the display go on
        return reached

    async def _kills(self, candidate: MutantCandidate, worker: Worker, trial: MutantTrial) -> bool:
        """Return True if the first run and a later one are forbidden, but none of the control."""

        async def forbidden(executor: str, numbers: range) -> bool:
            for number in numbers:
                request = trial.request(executor, number)
                if await self._forbidden(candidate, worker, trial, request):
                    return True
            return False

        confirmations, control_runs = range(1, CONFIRMATION_RUNS + 1), range(1, CONTROL_RUNS + 1)
        return (
            await forbidden(candidate.name, range(1))
            and await forbidden(candidate.name, confirmations)
            and not (
                isinstance(candidate.made, Mutant)
                and await forbidden(candidate.control, control_runs)
            )
        )

    async def _forbidden(
        self,
        candidate: MutantCandidate,
        worker: Worker,
        trial: MutantTrial,
        request: messages.Request,
    ) -> bool:
        """Run a test and return True if an outcome is forbidden. Undecided ones do not count."""
        start = clock.now()
        reply = await worker.run(request, JOB_TIMEOUT_S, trial.test)
        seconds = clock.now() - start
        if isinstance(reply, Died):
            self.died[candidate.name] += 1
        else:
            candidate.unavailable = reply.unavailable
            seconds = reply.seconds or seconds  # without the start of the process
        candidate.seconds += seconds
        for effort in (self.families[trial.family], self.setups[trial.setup.name]):
            effort.runs += 1
            effort.seconds += seconds
        if isinstance(reply, Died) or not reply.rows:
            return False
        oracle = self._oracle(candidate.name, trial)
        seen = messages.histogram(trial.test, reply)
        if oracle is None or not (judgement := judge(oracle, seen)).forbidden:
            return False
        if request.executor == candidate.name:
            candidate.shown = self._entry(candidate, trial, judgement, reply)
        return True

    def _entry(
        self,
        candidate: MutantCandidate,
        trial: MutantTrial,
        judgement: Judgement,
        reply: messages.Reply,
    ) -> Entry:
        """What a mutant has shown, as the file of a finding."""
        finding = Finding(
            executor=candidate.name,
            configuration=trial.config.name,
            model=guaranteed(candidate.name, trial.config).name,
            forbidden=judgement.forbidden,
            executions=judgement.executions,
            noise=asdict(trial.setup.noise),
            settings=dict(trial.config.settings),
            versions=reply.versions,
            seed=self.seed,
            index=candidate.tests - 1,
            family=trial.family,
            minimized=False,
            confirmed=True,
            run_seed=trial.seed,
        )
        return Entry(trial.test, finding=finding)

    def _oracle(self, executor: str, trial: MutantTrial) -> Oracle | None:
        model = guaranteed(executor, trial.config)
        key = (trial.test, model.name)
        if key not in self.oracles:
            oracle = explorer_or_none(trial.test, model, CAMPAIGN_BUDGET)
            self.oracles[key] = None if oracle is None else CachingOracle(oracle)
        return self.oracles[key]

    def result(self) -> Selftest:
        """The results so far."""
        return Selftest(
            kills=tuple(each.kill() for each in self.candidates if not each.left_out),
            setups=dict(self.setups),
            families=dict(self.families),
            seconds=clock.now() - self.started,
            asked_s=self.time_s,
            seed=self.seed,
            died=dict(self.died),
            unavailable={s.name: s.unavailable for s in self.candidates if s.unavailable},
            left_out={s.name: s.left_out for s in self.candidates if s.left_out},
            interrupted=self.interrupted,
        )


def selftest(
    names: tuple[str, ...] = (),
    *,
    time_s: float,
    workers: int = 2,
    seed: int = 0,
    show: ShowProgress = lambda _: None,
    keep: Keep = lambda _name, _entry: None,
) -> Selftest:
    """Run tests on mutants until all are killed, or the time is over.

    Parameters
    ----------
    names : tuple of str
        Mutants, or controls, none of which should be reported; all mutants if empty.
    time_s : float
    workers : int
        How many tests run at the same time.
    seed : int
        Of the generated tests and the noise.
    show : callable
        Called several times a second with the results so far. If it raises `KeyboardInterrupt`,
        the self-test ends as it does after Ctrl-C.
    keep : callable
        Receives the name of each mutant that is killed, and its finding. A mutant that is killed
        since its check of a configuration fails has none.
    """
    run = _SelftestRun(names or mutants(), time_s, seed, keep)
    try:
        asyncio.run(run.run(workers, show))
    except KeyboardInterrupt:
        run.interrupted = True
    return run.result()
