"""Making what was found smaller: a test that still shows it, often enough, in fresh runs.

`fuzz.campaign.reducer` says which smaller tests there are. Here each is run, and judged: an
executor is not deterministic, so that one answer is worth little.
"""

from __future__ import annotations

import time
from collections import Counter
from copy import copy
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.outcome import Status
from litmusfuzz.corpus.textfile import Schedule
from litmusfuzz.fuzz.campaign.causes import same_cause, symptom
from litmusfuzz.fuzz.campaign.jobs import Job, Result
from litmusfuzz.fuzz.campaign.judge import Judgement, explorer_or_none, judge
from litmusfuzz.fuzz.campaign.reducer import normalized, reduce, widened
from litmusfuzz.fuzz.executors import messages
from litmusfuzz.fuzz.executors.worker import Died
from litmusfuzz.oracles.explorer import Explorer

if TYPE_CHECKING:
    import random
    from collections.abc import Generator, Iterable

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Outcome
    from litmusfuzz.fuzz.campaign.dispatcher import CampaignExecutor, GeneratedTest
    from litmusfuzz.fuzz.campaign.jobs import Slot
    from litmusfuzz.fuzz.campaign.sampler import SampledConfiguration
    from litmusfuzz.fuzz.campaign.settings import Settings
    from litmusfuzz.fuzz.executors.protocol import Noise
    from litmusfuzz.oracles.explorer import Budget
    from litmusfuzz.oracles.model import Model

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
STEP_S: Final = 20.0
"""What is slow is run in steps that take so long: it may be time to stop then."""
MIN_STEP: Final = 32
MIN_PROBE_COUNT: Final = 256
MIN_BLOCKED_COUNT: Final = 64
MAX_PROBE_COUNT: Final = 1 << 15
MAX_REDUCTION_EXECUTIONS: Final = 1 << 24
MAX_RECORDED: Final = 1 << 14
QUICKER: Final = 3.0
"""By so much another sampled must be faster at graphs, to be worth a start of its own."""


@dataclass(slots=True)
class UnreducedFinding:
    """A forbidden outcome on a test as generated, not minimized."""

    generated: GeneratedTest
    executor: CampaignExecutor
    judgement: Judgement
    noise: Noise
    seed: int

    @property
    def sampled(self) -> SampledConfiguration:
        """Who showed it."""
        return self.generated.sampled[self.executor]


@dataclass(slots=True)
class Best:
    """The smallest test so far that shows a finding, and what it showed."""

    test: LitmusTest
    judgement: Judgement
    rate: float = 0.0
    """The highest share of forbidden executions that any of its forms showed."""
    symptom: str = ""
    run_seed: int | None = None
    schedule: Schedule | None = None
    pace: float = inf
    """Executions a second, of those that were run last."""

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

    def normalize(self, model: Model, budget: Budget) -> None:
        """Give it names that tell: what is said of the test goes."""
        test = normalized(self.test, "finding")
        names = dict(zip(self.test.names, test.names, strict=True))

        def of(outcome: Outcome) -> Outcome:
            values = tuple((names[name], value) for name, value in outcome.values)
            return replace(outcome, values=values)

        self.judgement = replace(
            self.judgement,
            oracle=Explorer(test, model, budget),
            histogram={of(o): n for o, n in self.judgement.histogram.items()},
            forbidden=tuple((of(o), n) for o, n in self.judgement.forbidden),
        )
        self.test = test

    @property
    def count(self) -> int:
        """Executions in which it shows about 24 times, if that is possible."""
        # What blocks costs a session, which others would share.
        blocked = self.symptom == Status.BLOCKED
        return _probe_count(self.rate, MIN_BLOCKED_COUNT if blocked else MIN_PROBE_COUNT)

    def ran(self, count: int, seconds: float) -> None:
        """So many executions took so long; the start of a process may be in it."""
        self.pace = count / max(seconds, 1e-3)

    def step(self, wanted: int) -> int:
        """How many executions come next: what is slow can be stopped between steps only."""
        return int(min(wanted, max(MIN_STEP, self.pace * STEP_S)))

    @property
    def needed(self) -> int:
        """Forbidden executions, of `count`, that a smaller test must show.

        An eighth of what the best form shows: one that shows more seldom is
        smaller, but of less use to whoever replays it.
        """
        return max(PROBE_HITS, round(self.count * self.rate / 8))


class Minimizer:
    """How a finding is made small and seen again: parts of a task.

    Parameters
    ----------
    settings : Settings
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def reduce_in_faster_configuration(
        self, slot: Slot, unreduced: UnreducedFinding, best: Best, rng: random.Random
    ) -> Generator[Job, Result, bool]:
        """Make `best` small in a sampled that is much quicker, if it shows there.

        Then it is run at home, where it counts; False if it has to be done there. Where each
        test is compiled, that takes minutes; and most races are not the compiler's.
        """
        fast = self._faster_configuration(unreduced)
        if fast is None:
            return False
        there = copy(best)
        slot.switch_to(fast)
        fast.state.state = "minimizing"
        try:
            shown = yield from self.probe(best.test, there, unreduced, rng)
            if shown is None:
                return False
            complete = yield from self.reduce(slot, unreduced, there, rng)
        finally:
            fast.state.state = "idle"
            slot.switch_to(unreduced.sampled)
        shown = yield from self.probe(there.test, best, unreduced, rng)
        if shown is None:
            return False
        best.improve(there.test, shown)
        return complete

    @staticmethod
    def _faster_configuration(unreduced: UnreducedFinding) -> SampledConfiguration | None:
        """The executor's fast or first sampled, if it is so much faster than a finding's own."""
        fast, own = (
            unreduced.executor.fast or unreduced.executor.sampler.running[0],
            unreduced.sampled,
        )
        return fast if 0 < fast.seconds_each * QUICKER < own.seconds_each else None

    def reduce(
        self, slot: Slot, unreduced: UnreducedFinding, best: Best, rng: random.Random
    ) -> Generator[Job, Result, bool]:
        """Make `best` as small as it gets; False if that took too long."""
        end = time.monotonic() + self.settings.max_reduction_s
        if best.rate < 0.05:
            for wider in widened(best.test):
                shown = yield from self.probe(wider, best, unreduced, rng, end)
                if shown is not None and shown.rate > 2 * best.rate:
                    best.improve(wider, shown)
                    break
        reduction = reduce(best.test)
        answer: bool | None = None
        outcomes, state = slot.state.outcomes, slot.state
        while time.monotonic() < end and state.outcomes - outcomes < MAX_REDUCTION_EXECUTIONS:
            try:
                candidate = next(reduction) if answer is None else reduction.send(answer)
            except StopIteration:
                return True
            shown = yield from self.probe(candidate, best, unreduced, rng, end)
            answer = shown is not None
            if shown is not None:
                best.improve(candidate, shown)
        return False

    def record(
        self, unreduced: UnreducedFinding, best: Best, rng: random.Random
    ) -> Generator[Job, Result, None]:
        """Look for an execution that shows it, choice by choice, if the executor can tell."""
        if unreduced.sampled.schedulable:
            wanted = tuple(outcome for outcome, _ in best.judgement.forbidden)
            job = Job(best.test, MAX_RECORDED, unreduced.noise, rng.getrandbits(31), wanted=wanted)
            found = yield job
            unreduced.sampled.schedulable = not (
                isinstance(found, messages.Reply) and found.refused
            )
            if isinstance(found, Schedule):
                best.schedule = found

    def confirm(
        self, unreduced: UnreducedFinding, best: Best, rng: random.Random
    ) -> Generator[Job, Result, Judgement | None]:
        """What `best` shows in a process that ran nothing else; None if nothing forbidden.

        Its schedule comes first, and is kept only if it gives the same outcome there.
        """
        total: Counter[Outcome] = Counter()
        fresh = True
        if best.schedule is not None:
            choices = best.schedule.choices
            result = yield Job(best.test, 1, unreduced.noise, 0, fresh=True, choices=choices)
            if result != {best.schedule.outcome: 1}:
                best.schedule = None
            fresh = False
        wanted = max(CONFIRM_COUNT, best.count)
        step = best.step(wanted)
        began: float | None = None
        while True:
            seed, start = rng.getrandbits(31), time.monotonic()
            result = yield Job(best.test, step, unreduced.noise, seed, fresh=fresh)
            if not isinstance(result, dict):
                return None
            total.update(result)
            if best.of_its_cause(judge(best.judgement.oracle, result)).forbidden:
                best.run_seed = seed
                return best.of_its_cause(judge(best.judgement.oracle, total))
            now = time.monotonic()
            if began is None:
                began = now  # the process's start is not counted
            elif now - began > self.settings.max_reduction_s / 4 or (
                now - began > CONFIRM_S and total.total() >= wanted
            ):
                return None
            best.ran(step, now - start)
            step = best.step(4 * step)
            fresh = False

    def probe(
        self,
        test: LitmusTest,
        best: Best,
        unreduced: UnreducedFinding,
        rng: random.Random,
        end: float | None = None,
    ) -> Generator[Job, Result, Judgement | None]:
        """Whether enough of a few runs show it often enough: judged, or None.

        What is not shown by the `end`, or in a quarter of a reduction's time, is not shown.
        """
        end = end or time.monotonic() + self.settings.max_reduction_s / 4
        oracle = explorer_or_none(test, unreduced.sampled.model, self.settings.budget)
        if oracle is None:
            return None
        total: Counter[Outcome] = Counter()
        failed = deaths = 0
        for done in range(PROBE_RUNS):
            if failed + PROBE_RUNS - done < PROBE_NEEDED:
                return None
            ran = hits = 0
            while ran < best.count and hits < best.needed:
                start, count = time.monotonic(), best.step(min(best.count - ran, PROBE_STEP))
                if start > end:
                    return None
                result = yield Job(test, count, unreduced.noise, rng.getrandbits(31))
                best.ran(count, time.monotonic() - start)
                if isinstance(result, Died) and not result.timed_out and deaths < PROBE_DEATHS:
                    deaths += 1
                    continue
                if not isinstance(result, dict):
                    return None
                if _blocks(result) and not _blocks(dict(best.judgement.forbidden)):
                    return None  # slow, and of less use
                total.update(result)
                ran += sum(result.values())
                hits += best.of_its_cause(judge(oracle, result)).forbidden_count
            failed += hits >= best.needed
            if failed == PROBE_NEEDED:
                return best.of_its_cause(judge(oracle, total))
        return None


def _probe_count(rate: float, least: int = MIN_PROBE_COUNT) -> int:
    return min(MAX_PROBE_COUNT, max(least, int(24 / max(rate, 1e-6))))


def _blocks(shown: Iterable[Outcome]) -> bool:
    """Whether nothing else is shown."""
    return all(outcome.status is Status.BLOCKED for outcome in shown)


def expected_cost_s(unreduced: UnreducedFinding) -> float:
    """How long a minimization takes, roughly.

    About three candidates a node, two runs for most, at 0.05 s each and 40,000
    executions a second.
    """
    candidates = 3 * len(unreduced.generated.test.nodes)
    return candidates * 2 * (0.05 + _probe_count(unreduced.judgement.rate) / 40_000)
