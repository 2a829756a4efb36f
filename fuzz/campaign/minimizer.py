"""Minimizes a finding: runs each smaller test often enough, in new sessions.

`fuzz.finding.reducer` yields the smaller tests. Here each is run and judged. An executor is not
deterministic, so one run of a test says little.
"""

from __future__ import annotations

from collections import Counter
from copy import copy
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.outcome import Status
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import Schedule
from litmusfuzz.fuzz.campaign import clock
from litmusfuzz.fuzz.campaign.best import MIN_STEP, Best
from litmusfuzz.fuzz.campaign.crash_reducer import smaller_crashes
from litmusfuzz.fuzz.campaign.job import Job, SearchStep, is_slow
from litmusfuzz.fuzz.campaign.preemption_bounds import (
    PORTION,
    bounds,
    coarser,
    switches_inside,
)
from litmusfuzz.fuzz.campaign.tuning import CONFIRM_S
from litmusfuzz.fuzz.executors import messages
from litmusfuzz.fuzz.executors.protocol import Explored
from litmusfuzz.fuzz.executors.worker import Died
from litmusfuzz.fuzz.finding.configuration_reducer import (
    PutBack,
    has_space,
    simpler_configurations,
)
from litmusfuzz.fuzz.finding.driver import drive
from litmusfuzz.fuzz.finding.judge import Judgement, explorer_or_none, judge
from litmusfuzz.fuzz.finding.normalization import in_whole, normalize
from litmusfuzz.fuzz.finding.reducer import reduce, widened
from litmusfuzz.fuzz.finding.worker_deaths import raised
from litmusfuzz.oracles.model import Axiom

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Outcome
    from litmusfuzz.fuzz.campaign.candidate import Candidate
    from litmusfuzz.fuzz.campaign.crash_reducer import Crash, SmallestCrash, UnreducedCrash
    from litmusfuzz.fuzz.campaign.job import Result
    from litmusfuzz.fuzz.campaign.settings import Settings
    from litmusfuzz.fuzz.campaign.slots import Slot
    from litmusfuzz.fuzz.campaign.target import Target
    from litmusfuzz.fuzz.executors.protocol import Config

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
MAX_REDUCTION_EXECUTIONS: Final = 1 << 24
MAX_RECORDED: Final = 1 << 14
MAX_SEARCHED: Final = 1 << 14
"""Executions of all searches for the simplest schedule of a finding at one level."""

CRASH_SHARE: Final = 3
"""Times `max_reduction_s`, at most, that the reduction of a crash takes, all steps together."""


class Minimizer:
    """Minimizes, records and confirms findings on a worker slot.

    Parameters
    ----------
    settings : Settings
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.put_back = PutBack()
        self.unschedulable: set[str] = set()
        """Titles of targets whose executor has said that it follows no schedules."""

    async def reduce_configuration(
        self,
        slot: Slot,
        best: Best,
        rng: random.Random,
        *,
        lenient: bool = False,
    ) -> bool:
        """Find the simplest configuration in which `best` shows; False if there was no time.

        Before its test is reduced, a finding must show about as often there as in its own
        configuration: the reduction runs each smaller test there. In plain TensorFlow that takes
        seconds, and minutes where each test is compiled. Afterwards it is enough that it shows at
        all (`lenient`): a setting that only makes it more frequent is none that it needs.
        """
        end = clock.now() + self.settings.max_reduction_s / 2
        if not (lenient or has_space(slot.executor.name, slot.config)):
            await self.record(slot, best, rng)
        if best.schedule is not None:
            # A recorded execution, of this configuration alone, is worth more than a simpler one.
            return True

        async def shows(config: Config) -> bool:
            target = slot.executor.sample(config)
            shown = await self._probe_in(slot, target, best, rng, end, lenient=lenient)
            if shown is not None:
                best.move(target, shown)
            return shown is not None

        simpler = simpler_configurations(slot.executor.name, best.target.config, self.put_back)
        driven = await drive(simpler, shows, lambda: clock.now() < end)
        slot.switch_to(best.target)
        return driven.complete

    async def _probe_in(
        self,
        slot: Slot,
        target: Target,
        best: Best,
        rng: random.Random,
        end: float,
        *,
        lenient: bool,
    ) -> Judgement | None:
        """As `probe`, in another configuration, judged by what that guarantees."""
        slot.switch_to(target)
        if await slot.why_unavailable():
            return None
        there = copy(best)
        there.lenient = lenient
        return await self.probe(slot, best.test, there, rng, end)

    async def reduce(self, slot: Slot, best: Best, rng: random.Random) -> bool:
        """Make `best` as small as possible; False if the time did not suffice."""
        end = clock.now() + self.settings.max_reduction_s
        if best.rate < 0.05:
            for wider in widened(best.test):
                shown = await self.probe(slot, wider, best, rng, end)
                if shown is not None and shown.rate > 2 * best.rate:
                    best.improve(wider, shown)
                    break
        last = slot.executions + MAX_REDUCTION_EXECUTIONS

        async def shows(candidate: LitmusTest) -> bool:
            if _has_other_kernels(candidate, best):
                return False
            shown = await self.probe(slot, candidate, best, rng, end)
            if shown is not None:
                best.improve(candidate, shown)
                await self.use_all_noise(slot, best, rng, end)
            return shown is not None

        driven = await drive(
            reduce(best.test), shows, lambda: clock.now() < end and slot.executions < last
        )
        if driven.complete:
            await self.use_all_noise(slot, best, rng, end, reduced=True)
        return driven.complete

    async def normalize(self, slot: Slot, best: Best, rng: random.Random) -> bool:
        """Give `best` canonical names and order, as far as it still shows as often.

        What makes it only more frequent stays in the test, and is none that it needs. False if the
        time did not suffice: what it needs is not known then.
        """
        end = clock.now() + self.settings.max_reduction_s / 2

        async def shows(candidate: LitmusTest) -> bool:
            shown = await self.probe(slot, candidate, best, rng, end)
            if shown is not None:
                best.improve(candidate, shown)
            return shown is not None

        _, needs = await drive(
            normalize(best.test, best.target.model), shows, lambda: clock.now() < end
        )
        if needs is None:
            return False
        if needs.names or needs.order:
            whole = in_whole(best.test, best.target.model)
            rarely = copy(best)
            rarely.lenient = True
            if await self.probe(slot, whole, rarely, rng, end) is not None:
                return True
            if clock.now() >= end:
                return False
        best.needs_names, best.needs_order = needs.names, needs.order
        return True

    async def confirm_as_run(
        self, slot: Slot, candidate: Candidate, rng: random.Random
    ) -> Best | None:
        """The finding as it was run, if a fresh process shows it again: same test, same names."""
        best = Best.of(candidate)
        # The same run at first: an executor may be deterministic for a seed.
        job = Job(
            best.test,
            candidate.judgement.executions,
            best.noise,
            candidate.seed,
            fresh=True,
        )
        start = clock.now()
        first = await _run(slot, job)
        if not (isinstance(first, dict) or _crashed(first)):
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

    async def use_all_noise(
        self,
        slot: Slot,
        best: Best,
        rng: random.Random,
        end: float | None = None,
        *,
        reduced: bool = False,
    ) -> None:
        """Let many copies race, if the finding shows there too: they execute faster than one.

        Where it does not, that is tried again each time the test has half as many nodes, and once
        it is `reduced`: many copies of a large test leave no core free for ops that have to meet.
        """
        noise, nodes = self.settings.noise, len(best.test.nodes)
        if best.noise != noise and best.raced >= (nodes + 1 if reduced else 2 * nodes):
            best.raced = nodes
            there = replace(best, noise=noise)
            shown = await self.probe(slot, best.test, there, rng, end)
            if shown is not None:
                best.noise, best.rate = noise, 0.0
                best.improve(best.test, shown)

    async def record(self, slot: Slot, best: Best, rng: random.Random) -> None:
        """Record an execution that shows the finding, if the executor can record schedules.

        Where all schedules can be executed, it is one with the fewest preemptions, at the coarsest
        level at which the finding shows. It moves there.
        """
        explorable = switches_inside(slot.executor.name, best.target.config) is not None
        if explorable and await self._search(slot, best):
            return
        if best.target.title not in self.unschedulable:
            wanted = tuple(outcome for outcome, _ in best.judgement.forbidden)
            job = Job(best.test, MAX_RECORDED, best.noise, rng.getrandbits(31), wanted=wanted)
            found = await _run(slot, job)
            refused = isinstance(found, messages.Reply) and found.refused
            if refused and not is_slow(found):
                self.unschedulable.add(best.target.title)
            if isinstance(found, Schedule):
                best.schedule = found

    async def _search(self, slot: Slot, best: Best) -> bool:
        """Search the schedules at each level, the coarsest first; true if one shows the finding."""
        finest = best.target
        for config in (*coarser(slot.executor.name, finest.config), finest.config):
            target = finest if config is finest.config else slot.executor.sample(config)
            slot.switch_to(target)
            if await slot.why_unavailable():
                continue
            shown = await self._first(slot, best)
            if shown is not None:
                best.target, best.schedule = target, shown
                return True
        slot.switch_to(finest)
        return False

    async def _first(self, slot: Slot, best: Best) -> Schedule | None:
        """The first schedule that shows the finding, by number of preemptions; None if none does.

        The search is counted, not timed: the same schedule is found on a busy machine.
        """
        wanted = {outcome for outcome, _ in best.judgement.forbidden}
        left = MAX_SEARCHED
        for bound in bounds(slot.executor.name, slot.config):
            done = 0
            while left > 0:
                step = SearchStep(bound, done)
                found = await _run(slot, Job(best.test, min(PORTION, left), search=step))
                if not isinstance(found, Explored):
                    return None  # refused at this level, perhaps
                hits = [each for each in found.schedules if each in wanted]
                if hits:
                    return Schedule(hits[0], events=found.schedules[hits[0]])
                left -= found.executions - done
                if found.whole:
                    return None
                if found.complete or found.executions == done:
                    break
                done = found.executions
        return None

    async def reduce_crash(
        self, slot: Slot, unreduced: UnreducedCrash, smallest: SmallestCrash
    ) -> Died | None:
        """Reduce a test on which an exception ends a worker; how it ends a fresh process.

        None if a fresh process does not end in that way: on the test as it was run, or on the
        smallest one, which then says nothing.
        """
        others = set[str]()

        async def run(crash: Crash, job: Job) -> Result | None:
            slot.switch_to(slot.executor.sample(crash.config))
            if await slot.why_unavailable():
                return None
            return await slot.run(replace(job, test=crash.test))

        async def ends(crash: Crash, job: Job) -> Died | None:
            result = await run(crash, replace(job, fresh=True))
            shown = isinstance(result, Died) and raised(result.message) == unreduced.raised
            return result if isinstance(result, Died) and shown else None

        async def fails(crash: Crash) -> bool:
            """A candidate does not end its process, which takes far longer than to go on."""
            result = await run(crash, replace(unreduced.job, survives=True))
            failed = result.failed if isinstance(result, messages.Reply) else ""
            if failed not in ("", unreduced.raised, *others):
                others.add(failed)
                await run(crash, unreduced.job)  # another crash, which is to be stored
            return failed == unreduced.raised

        if await ends(smallest.crash, unreduced.job) is None:
            return None
        end = clock.now() + CRASH_SHARE * self.settings.max_reduction_s
        candidates = smaller_crashes(slot.executor.name, smallest, self.put_back)
        await drive(candidates, fails, lambda: clock.now() < end)
        first = replace(unreduced.job, count=1, seed=0)
        if (died := await ends(smallest.crash, first)) is not None:
            smallest.place = first.seed
            return died
        return await ends(smallest.crash, unreduced.job)

    async def confirm(self, slot: Slot, best: Best, rng: random.Random) -> Judgement | None:
        """Judgement of `best` in a fresh process; None if it shows nothing forbidden.

        Its recorded schedule is replayed first, and kept only if it gives the same outcome there.
        """
        total: Counter[Outcome] = Counter()
        fresh = True
        if best.schedule is not None:
            job = Job(best.test, 1, best.noise, 0, fresh=True, recorded=best.schedule)
            result = await _run(slot, job)
            if result != {best.schedule.outcome: 1}:
                best.schedule = None
            elif best.schedule.events:
                total[best.schedule.outcome] += 1
            fresh = False
        # A schedule that is followed by names confirms it, though luck may show it never.
        followed = best.with_same_cause(judge(best.judgement.oracle, total))
        wanted = best.count if best.is_large else max(CONFIRM_COUNT, best.count)
        step, deaths = best.step(wanted), 0
        first_run_ended: float | None = None
        while True:
            seed, start = rng.getrandbits(31), clock.now()
            result = await _run(slot, Job(best.test, step, best.noise, seed, fresh=fresh))
            if _crashed(result) and deaths < CONFIRM_DEATHS:
                step, deaths = max(MIN_STEP, step // 4), deaths + 1
                continue
            if not isinstance(result, dict):
                return followed if followed.forbidden else None
            total.update(result)
            if best.with_same_cause(judge(best.judgement.oracle, result)).forbidden:
                best.run_seed = seed
                return best.with_same_cause(judge(best.judgement.oracle, total))
            now = clock.now()
            if first_run_ended is None:
                first_run_ended = now  # the start of the process does not count
            elif now - first_run_ended > self.settings.max_reduction_s / 4 or (
                now - first_run_ended > CONFIRM_S and total.total() >= wanted
            ):
                shown = best.with_same_cause(judge(best.judgement.oracle, total))
                return shown if followed.forbidden else None
            best.ran(step, now - start)
            step = best.step(step if deaths else 4 * step)
            fresh = False

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

        A finding that has not shown by `end`, or in a quarter of a reduction's time, counts as not
        shown.
        """
        end = end or clock.now() + self.settings.max_reduction_s / 4
        oracle = explorer_or_none(test, slot.target.model, self.settings.budget)
        if oracle is None:
            return None
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
                if _crashed(result) and deaths < PROBE_DEATHS:
                    deaths += 1
                    continue
                if not isinstance(result, dict):
                    return None
                if _blocks(result) and not _blocks(dict(best.judgement.forbidden)):
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


def _has_other_kernels(candidate: LitmusTest, best: Best) -> bool:
    """True if a torn finding's candidate writes with a kernel that the finding does not have.

    What tears is a kernel: a simpler op in the place of another one would show its own tear.
    """
    if best.symptom != "torn":
        return False
    now, before = (
        Counter(n.definition.kernel_class for n in test.effects if n.definition.kind.writes)
        for test in (candidate, best.test)
    )
    return bool(now - before)


async def _run(slot: Slot, job: Job) -> Result:
    """Run a job; if its process crashes, once more: the job need not be the reason."""
    result = await slot.run(job)
    if _crashed(result):
        result = await slot.run(job)
    return result


def _crashed(result: Result) -> bool:
    """True if a process has ended by itself."""
    return isinstance(result, Died) and not result.timed_out


def _blocks(shown: Iterable[Outcome]) -> bool:
    """True if every outcome is a blocked execution."""
    return all(outcome.status is Status.BLOCKED for outcome in shown)
