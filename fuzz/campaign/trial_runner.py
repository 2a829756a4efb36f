"""Carries out the trials of experiments (`fuzz.finding.experiments`), on a worker and a clock."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final, cast

from litmusfuzz.corpus.outcome import Status
from litmusfuzz.fuzz.campaign import clock
from litmusfuzz.fuzz.campaign.job import Job
from litmusfuzz.fuzz.campaign.settings import CAMPAIGN_BUDGET
from litmusfuzz.fuzz.campaign.trial_searches import SearchResult, is_searched, judged, searched
from litmusfuzz.fuzz.campaign.tuning import JOB_TIMEOUT_S, TRIAL_SHARE
from litmusfuzz.fuzz.executors import messages
from litmusfuzz.fuzz.executors.table import executor_class
from litmusfuzz.fuzz.executors.worker import Died
from litmusfuzz.fuzz.finding.judge import NO_JUDGE, explorer_or_none, judge
from litmusfuzz.fuzz.finding.trials import Case, Tally, is_large

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Outcome
    from litmusfuzz.fuzz.campaign.job import Result
    from litmusfuzz.fuzz.campaign.slots import Slot
    from litmusfuzz.fuzz.executors.worker import Worker
    from litmusfuzz.fuzz.finding.experiments import Comparing, Comparison
    from litmusfuzz.fuzz.finding.judge import Judgement, Oracle
    from litmusfuzz.fuzz.finding.trials import Trial
    from litmusfuzz.oracles.explorer import Budget

RunTest = Callable[
    ["Trial", int, Callable[[SearchResult], bool]],
    Awaitable["Mapping[Outcome, int] | SearchResult | str"],
]
"""Runs the test of a trial so many times as its case says, with another seed each time; a
histogram, or why there is none. `DIED` if the process ended by itself. In a configuration under
control it is searched, until that has shown enough."""
DIED: Final = "the process ended"
TIME_IS_UP: Final = "the time was up"
NOT_ALL: Final = "not all schedules were executed"
MAX_DEATHS: Final = 2
"""Deaths of a process in one trial that say nothing about it."""
MIN_RUNS: Final = 4
"""Runs, each built anew, over which the executions of a trial are spread: those of one build share
its order and padding."""
MIN_STEP: Final = 64
FIRST_STEP: Final = 256
"""Executions of a first run, which tells how slow they are: 3,072 have taken two minutes where each
graph is compiled."""
MAX_STEP: Final = 3072
BLOCKED_STEP: Final = 32
"""Executions of a step where each one that blocks costs a session."""


@dataclass(frozen=True, slots=True)
class TrialBudget:
    """Limits of one trial; past them it is undecided."""

    seconds: float
    executions: int = 1 << 18
    oracle: Budget = CAMPAIGN_BUDGET

    @classmethod
    def within(cls, reduction_s: float, oracle: Budget = CAMPAIGN_BUDGET) -> TrialBudget:
        """Limits of a trial that is a part of a reduction which takes so long."""
        return cls(TRIAL_SHARE * reduction_s, oracle=oracle)


async def carry_out(
    comparing: Comparing, run: RunTest, budget: TrialBudget, end: float = math.inf
) -> Comparison:
    """Run the trials of a comparison one after another.

    Parameters
    ----------
    comparing : Comparing
        From `compare`.
    run : callable
    budget : TrialBudget
        Of each trial.
    end : float
        On the clock of campaigns: after it, trials are not begun and count as undecided.
    """
    tally: Tally | None = None
    while True:
        try:
            trial = next(comparing) if tally is None else comparing.send(tally)
        except StopIteration as stop:
            return cast("Comparison", stop.value)
        tally = await tally_of(trial, run, budget, end)


async def tally_of(trial: Trial, run: RunTest, budget: TrialBudget, end: float = math.inf) -> Tally:
    """Run a test until a trial has its answer, or its budget is spent."""
    oracle = explorer_or_none(trial.test, trial.case.model, budget.oracle)
    if oracle is None:
        return Tally(0, 0, NO_JUDGE)
    end = min(end, clock.now() + budget.seconds)
    wanted = min(trial.needed, budget.executions)
    blocks = str(Status.BLOCKED) in trial.symptoms
    most = BLOCKED_STEP if blocks else MAX_STEP
    measures = math.isinf(trial.needed)  # how often the symptom shows, in runs of one length
    slow = is_large(trial.test)
    first = MIN_STEP if measures or slow else min(FIRST_STEP, math.ceil(wanted / MIN_RUNS))
    step = trial.length or first
    step = min(most, max(1 if blocks else MIN_STEP, step))
    runs = executions = seen = showing = length = deaths = 0

    def tally(problem: str = "") -> Tally:
        return Tally(executions, seen, problem, showing, length)

    while showing < trial.enough and (runs < MIN_RUNS or executions < wanted):
        if (start := clock.now()) >= end:
            return tally("" if seen else TIME_IS_UP)
        shown = await run(trial, step, lambda found: trial.hits(judge(oracle, found.histogram)) > 0)
        if shown == DIED and deaths < MAX_DEATHS:
            deaths += 1
            continue
        if isinstance(shown, str):
            return tally(shown)
        if isinstance(shown, SearchResult):
            return _tally_of_search(trial, oracle, shown)
        runs += 1
        shown_here = judge(oracle, shown)
        hits = trial.hits(shown_here)
        seen += hits
        showing += hits > 0
        length = max(length, step)
        ended = sum(n for outcome, n in shown.items() if outcome.status is Status.COMPLETED)
        executions += shown_here.executions if blocks else ended
        if not (executions or runs < MIN_RUNS):
            return Tally(0, 0, "no execution ends")
        pace = shown_here.executions / max(clock.now() - start, 1e-3)
        if not (trial.length or (measures and showing)):
            each = math.ceil((wanted - executions) / max(1, MIN_RUNS - runs))
            step = min(most, 2 * step if measures or slow else most, each)
        # The runs that are missing share the time that is left.
        left_s = (end - clock.now()) / max(1, MIN_RUNS - runs)
        step = max(1 if blocks else MIN_STEP, min(step, int(pace * left_s)))
    return tally()


def _tally_of_search(trial: Trial, oracle: Oracle, found: SearchResult) -> Tally:
    """What the schedules of a test have shown of a trial's symptoms."""
    all_shown = judge(oracle, found.histogram)
    seen = trial.hits(all_shown)
    searched = found.extent if found.covers(trial.case.preemptions) else ""
    problem = "" if seen or searched else NOT_ALL
    executions = all_shown.executions
    return Tally(executions, seen, problem, int(seen > 0), executions, searched)


def on_worker(worker: Worker, rng: random.Random) -> RunTest:
    """Run the tests of a comparison on a worker outside of a campaign."""
    damaging: frozenset[str] = getattr(executor_class(worker.executor), "damaging_ops", frozenset())

    async def run(
        trial: Trial, count: int, enough: Callable[[SearchResult], bool]
    ) -> Mapping[Outcome, int] | SearchResult | str:
        case, test = trial.case, trial.test
        if is_searched(case):
            found = await searched(partial(_asked, worker, case), case, test, enough)
            return found if isinstance(found, SearchResult) else _why_nothing(found)
        if any(node.op in damaging for node in test.effects):
            worker.close()  # memory that it has damaged says nothing about the next test
        job = Job(test, count, case.noise, rng.getrandbits(31))
        reply = await worker.run(job.request(case.config), JOB_TIMEOUT_S, test)
        if isinstance(reply, Died) or not reply.rows:
            return _why_nothing(reply)
        return messages.histogram(test, reply)

    return run


async def _asked(worker: Worker, case: Case, job: Job) -> Result:
    """The result of a step of a search."""
    assert job.test is not None
    reply = await worker.run(job.request(case.config), JOB_TIMEOUT_S, job.test)
    if isinstance(reply, messages.Reply) and reply.explored is not None:
        return messages.explored(job.test, reply)
    return reply


@dataclass(slots=True)
class OnSlot:
    """Runs trials on a slot, and keeps what each test showed in each configuration."""

    slot: Slot
    rng: random.Random
    shown: dict[tuple[LitmusTest, str], SearchResult] = field(default_factory=dict)

    async def __call__(
        self, trial: Trial, count: int, enough: Callable[[SearchResult], bool]
    ) -> Mapping[Outcome, int] | SearchResult | str:
        """Run a test; see `RunTest`."""
        slot, case, test = self.slot, trial.case, trial.test
        slot.switch_to(slot.executor.sample(case.config))
        if why := await slot.why_unavailable():
            return why
        if is_searched(case):
            found = await searched(slot.run, case, test, enough)
            if isinstance(found, SearchResult):
                self.shown[test, case.config.name] = found
                return found
            return _why_nothing(found)
        result = await slot.run(Job(test, count, case.noise, self.rng.getrandbits(31)))
        if isinstance(result, Died | messages.Reply):
            return _why_nothing(result)
        assert isinstance(result, dict)  # nothing is recorded here
        shown = self.shown.setdefault((test, case.config.name), SearchResult())
        shown.histogram.update(result)
        return result

    def judged(self, case: Case, test: LitmusTest, budget: Budget) -> Judgement:
        """What the trials of a test have shown together."""
        oracle = explorer_or_none(test, case.model, budget)
        assert oracle is not None  # the trial had one
        return judged(oracle, self.shown[test, case.config.name])


def _why_nothing(reply: Died | messages.Reply) -> str:
    """Why a run has shown nothing."""
    if isinstance(reply, Died):
        return reply.message if reply.timed_out else DIED
    return reply.refused or reply.unavailable
