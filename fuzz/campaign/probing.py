"""Runs a test on a worker until it shows a finding, or should have.

An executor is not deterministic, so one run of a test says little: a smaller test is run several
times, and what is reported is shown by a fresh process as well.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.outcome import Status
from litmusfuzz.corpus.schedule import switches
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import Schedule
from litmusfuzz.fuzz.campaign import clock
from litmusfuzz.fuzz.campaign.best import MIN_STEP, Best
from litmusfuzz.fuzz.campaign.job import Job
from litmusfuzz.fuzz.campaign.preemption_bounds import bounds
from litmusfuzz.fuzz.campaign.schedule_search import (
    MAX_SEARCHED,
    SEARCH_BUDGET,
    STILL,
    SearchResult,
    carried_over,
    search,
    with_schedule,
)
from litmusfuzz.fuzz.campaign.tuning import ATTEMPT_S, TRIAL_SHARE
from litmusfuzz.fuzz.executors.worker import Died
from litmusfuzz.fuzz.finding.judge import Judgement, explorer_or_none, judge
from litmusfuzz.oracles.model import Axiom

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Outcome
    from litmusfuzz.fuzz.campaign.candidate import Candidate
    from litmusfuzz.fuzz.campaign.job import Result
    from litmusfuzz.fuzz.campaign.settings import Settings
    from litmusfuzz.fuzz.campaign.slots import Slot
    from litmusfuzz.fuzz.finding.judge import Oracle

PROBE_RUNS: Final = 3
PROBE_NEEDED: Final = 2
"""A smaller test is accepted if so many of `PROBE_RUNS` runs, each in new sessions, show a
forbidden outcome often enough."""
CERTAIN: Final = 0.9
"""Share of forbidden executions from which a finding shows in every run: a smaller test without it
in a first run is not run again. In a configuration that compiles, runs are what takes the time."""
PROBE_DEATHS: Final = 1
"""Crashes allowed while a smaller test is probed: memory that an op has corrupted says nothing
about the race."""
CONFIRM_DEATHS: Final = 4
"""Crashes allowed while a finding is confirmed, each followed by fewer executions: where an op
corrupts memory, most long runs end before they say what they saw."""
CONFIRM_COUNT: Final = 1024
PROBE_STEP: Final = 3072
"""Executions after which a run may stop because it has seen enough; as many as one build has
(`Noise`)."""


class Prober:
    """Probes smaller tests, and confirms findings in fresh processes.

    Parameters
    ----------
    settings : Settings
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    async def confirm_as_run(
        self, slot: Slot, candidate: Candidate, rng: random.Random
    ) -> Best | None:
        """The finding as it was run, if a fresh process shows it again: same test, same names."""
        best = Best.of(candidate)
        if best.target.explorable:
            return best if await self._confirm_schedule(slot, best) else None
        # The same run at first: an executor may be deterministic for a seed.
        job = Job(
            best.test,
            candidate.judgement.executions,
            best.noise,
            candidate.seed,
            fresh=True,
        )
        start = clock.now()
        first = await run_again(slot, job)
        if not (isinstance(first, dict) or crashed(first)):
            return None
        if best.is_large:  # with nothing to go by, the next step would take minutes
            best.ran(job.count, clock.now() - start)
        ended = first if isinstance(first, dict) else {}
        shown = best.with_same_cause(judge(best.judgement.oracle, ended))
        if shown.forbidden:
            best.run_seed = candidate.seed
            best.measured(shown, shown.executions)
            return best
        again = await self.confirm(slot, best, rng)
        if again is None:
            return None
        best.measured(again, shown.executions + again.executions)
        return best

    async def confirm(self, slot: Slot, best: Best, rng: random.Random) -> Judgement | None:
        """Judgement of `best` in a fresh process; None if it shows nothing forbidden.

        Its recorded schedule is replayed first, and kept only if it gives the same outcome there.
        One that is followed by the names of its decisions is replayed once: it decides.
        """
        if best.target.explorable:
            return best.judgement if await self._confirm_schedule(slot, best) else None
        total: Counter[Outcome] = Counter()
        fresh = True
        if best.schedule is not None:
            job = Job(best.test, 1, best.noise, 0, fresh=True, recorded=best.schedule)
            result = await run_again(slot, job)
            if result != {best.schedule.outcome: 1}:
                best.schedule = None
            fresh = False
        wanted = best.count if best.is_large else max(CONFIRM_COUNT, best.count)
        step, deaths = best.step(wanted), 0
        first_run_ended: float | None = None
        while True:
            seed, start = rng.getrandbits(31), clock.now()
            result = await run_again(slot, Job(best.test, step, best.noise, seed, fresh=fresh))
            if crashed(result) and deaths < CONFIRM_DEATHS:
                step, deaths = max(MIN_STEP, step // 4), deaths + 1
                continue
            if not isinstance(result, dict):
                return None
            total.update(result)
            if best.with_same_cause(judge(best.judgement.oracle, result)).forbidden:
                best.run_seed = seed
                return best.with_same_cause(judge(best.judgement.oracle, total))
            now = clock.now()
            if first_run_ended is None:
                first_run_ended = now  # the start of the process does not count
            elif now - first_run_ended > TRIAL_SHARE * self.settings.max_reduction_s or (
                now - first_run_ended > ATTEMPT_S and total.total() >= wanted
            ):
                return None
            best.ran(step, now - start)
            step = best.step(step if deaths else 4 * step)
            fresh = False

    async def _confirm_schedule(self, slot: Slot, best: Best) -> bool:
        """True if a fresh process follows the schedule of a finding to its outcome.

        A test that was run outside of a campaign is searched for one.
        """
        if best.schedule is None:
            oracle = best.judgement.oracle
            shown = await self._searched(slot, best.test, best, oracle, MAX_SEARCHED)
            if shown is None:
                return False
            best.improve(best.test, shown)
        assert best.schedule is not None
        job = Job(best.test, 1, STILL, fresh=True, recorded=best.schedule)
        return await run_again(slot, job) == {best.schedule.outcome: 1}

    async def probe(
        self,
        slot: Slot,
        test: LitmusTest,
        best: Best,
        rng: random.Random,
        end: float | None = None,
    ) -> Judgement | None:
        """Judgement of a smaller test that shows the finding often enough; else None.

        The slot's configuration runs it, and what that guarantees judges it.

        A finding that has not shown by `end`, or in the time of a trial, counts as not
        shown. Under control nothing is left to time or chance: see `_searched`.
        """
        end = end or clock.now() + TRIAL_SHARE * self.settings.max_reduction_s
        oracle = explorer_or_none(test, slot.target.model, self.settings.budget)
        if oracle is None:
            return None
        if slot.target.explorable:
            return await self._searched(slot, test, best, oracle)
        total: Counter[Outcome] = Counter()
        passed = deaths = 0
        runs, needed = (1, 1) if best.lenient else (PROBE_RUNS, PROBE_NEEDED)
        single = Axiom.SEQUENCE in slot.target.model.axioms
        for done in range(runs):
            if passed + runs - done < needed:
                return None
            ran = hits = 0
            while ran < best.count and hits < best.needed:
                start, count = clock.now(), best.step(min(best.count - ran, PROBE_STEP))
                if start > end:
                    return None
                result = await slot.run(Job(test, count, best.probe_noise, rng.getrandbits(31)))
                best.ran(count, clock.now() - start)
                if crashed(result) and deaths < PROBE_DEATHS:
                    deaths += 1
                    continue
                if not isinstance(result, dict):
                    return None
                if blocks(result) and not blocks(dict(best.judgement.forbidden)):
                    return None  # slow, and less useful
                total.update(result)
                executed = sum(result.values())
                # A test with a single outcome is executed once or twice, however often one asks.
                stands_for = count / executed if executed and single else 1
                ran += round(executed * stands_for)
                forbidden = best.with_same_cause(judge(oracle, result)).forbidden_count
                hits += round(forbidden * stands_for)
            if not (done or hits) and best.rate >= CERTAIN:
                return None
            passed += hits >= best.needed
            if passed == needed:
                return best.with_same_cause(judge(oracle, total))
        return None

    async def _searched(
        self,
        slot: Slot,
        test: LitmusTest,
        best: Best,
        oracle: Oracle,
        budget: int = SEARCH_BUDGET,
    ) -> Judgement | None:
        """Judgement of a smaller test of which a schedule shows the finding; else None.

        It is that of the larger test, carried over by the names of its decisions, or one that a
        search finds, with no more switches inside ops.
        """
        ask = partial(run_again, slot)
        most = None if best.schedule is None else len(switches(best.schedule.events))
        carried = best.schedule and carried_over(best.schedule, test)
        if carried is not None:
            result = await ask(Job(test, 1, STILL, recorded=carried))
            if isinstance(result, dict):
                (outcome,) = result
                shown = best.with_same_cause(judge(oracle, result))
                if shown.forbidden:
                    followed = Schedule(outcome, events=carried.events)
                    return replace(shown, schedule=followed)
        found = await search(
            ask,
            test,
            bounds(slot.executor.name, slot.config, most),
            budget,
            enough=lambda found: bool(
                best.with_same_cause(judge(oracle, found.histogram)).forbidden
            ),
        )
        if not isinstance(found, SearchResult):
            return None
        shown = with_schedule(best.with_same_cause(judge(oracle, found.histogram)), found)
        return shown if shown.forbidden else None


async def run_again(slot: Slot, job: Job) -> Result:
    """Run a job; if its process crashes, once more: the job need not be the reason."""
    result = await slot.run(job)
    if crashed(result):
        result = await slot.run(job)
    return result


def crashed(result: Result) -> bool:
    """True if a process has ended by itself."""
    return isinstance(result, Died) and not result.timed_out


def blocks(shown: Iterable[Outcome]) -> bool:
    """True if every outcome is a blocked execution."""
    return all(outcome.status is Status.BLOCKED for outcome in shown)
