"""Shallow first, then deep: decides which graph runs go on for more executions.

Every graph run begins with few executions of one copy of the test (`settings.shallow`). That costs
some milliseconds, so that a campaign runs many graphs in many configurations. A run earns *rounds*
with more copies and all noise, each of twice as many executions as the one before (`Round`), if

- the test has several allowed outcomes of which some are unseen,
- or it showed an outcome only once,
- or the test has a pair of ops on one resource, with their relation, that none before it had.

It goes on until all allowed outcomes are seen, after `IDLE_ROUNDS` rounds in which no new one was,
or after `MAX_ROUNDS`. Runs that wait are ranked by the new outcomes that a second of theirs may
show: the unseen ones, times the share of its unseen outcomes that a round of this number has found
so far in this campaign, divided by the seconds of a round. Rounds get a share of the time,
at most (`Settings.rounds_share`); a campaign of so many tests executes all rounds that are earned.

References
----------
Boehme, "STADS: Software Testing as Species Discovery", ACM TOSEM 2018: what is seen once tells how
much is unseen. Chao, "Nonparametric estimation of the number of classes in a population",
Scand. J. Statist. 1984: the estimate of unseen outcomes where the allowed ones are not counted.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from litmusfuzz.corpus.outcome import Status
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.campaign.tuning import ENVIRONMENT_SWITCH_S
from litmusfuzz.fuzz.finding.judge import judge

if TYPE_CHECKING:
    from collections.abc import Mapping

    from litmusfuzz.corpus.outcome import Outcome
    from litmusfuzz.fuzz.campaign.campaign_executor import GeneratedTest
    from litmusfuzz.fuzz.campaign.sampler import SampledConfiguration
    from litmusfuzz.fuzz.campaign.variation import VariedTest
    from litmusfuzz.fuzz.executors.protocol import Noise
    from litmusfuzz.fuzz.finding.judge import Judgement, Oracle

FIRST_COPIES: Final = 2
MAX_COPIES: Final = 16
"""Copies in the first round, and at most. A graph of many copies is expensive to build: with 0.1 s
for each of 39 graphs, rounds of 2, 4, 8 and 16 copies reached 145 outcomes, rounds of 32 copies 21;
after 0.5 s there was no difference between any of them up to 16."""
ROUND_STEPS: Final = 64
BLOCKED_ROUND_COUNT: Final = 32
"""Executions of a round of a test that has blocked: each blocked one may cost a session."""
IDLE_ROUNDS: Final = 2
MAX_ROUNDS: Final = 12
MAX_WAITING_RUNS: Final = 128
"""Runs that wait for rounds; of more, the quarter with the least expected is given up."""
PRIOR_ROUNDS: Final = 4.0
"""Unseen outcomes, of which rounds have found a half, a quarter and so on, that the ranking begins
with."""
NEW_PAIR_WORTH: Final = 1.0
"""Outcomes that a new pair of ops counts for: it may show what no oracle expects."""


class Round(NamedTuple):
    """Further executions of a test: how many, and with what noise."""

    executions: int
    noise: Noise

    @classmethod
    def of(cls, number: int, noise: Noise, *, blocks: bool) -> Round:
        """Round `number`, from 1, of a test that may have blocked; `noise` is the campaign's."""
        if blocks:  # each step costs a session, so all copies are in one
            return cls(BLOCKED_ROUND_COUNT, noise)
        copies = min(noise.copies, MAX_COPIES, FIRST_COPIES << (number - 1))
        return cls(copies * ROUND_STEPS, replace(noise, copies=copies, steps=ROUND_STEPS))


@dataclass(slots=True, eq=False)
class GraphRun:
    """What one configuration has shown of one test so far.

    Parameters
    ----------
    oracle : Oracle
    allowed : int or None
        Number of allowed outcomes, if it is known and more than one.
    has_new_pair : bool
        True if the test has a pair of ops that no test before it had.
    """

    oracle: Oracle
    allowed: int | None
    has_new_pair: bool
    histogram: Counter[Outcome] = field(default_factory=Counter)
    rounds: int = 0
    idle_rounds: int = 0
    seconds: float = 0.0
    """Of its last executions."""
    reached: int = 0
    """Number of allowed outcomes seen."""
    unseen: float = 0.0
    """Number of allowed outcomes not seen yet, or its estimate."""

    def add(self, histogram: Mapping[Outcome, int], seconds: float) -> Judgement:
        """Add executions; the judgement on these alone."""
        judgement = judge(self.oracle, histogram)
        new = judgement.allowed.keys() - self.histogram.keys()
        if self.histogram:
            self.rounds += 1
            self.idle_rounds = 0 if new else self.idle_rounds + 1
        self.histogram.update(histogram)
        self.seconds = seconds
        self.reached += len(new)
        self.unseen = self._estimated()
        return judgement

    @property
    def judgement(self) -> Judgement:
        """The judgement on all executions."""
        return judge(self.oracle, self.histogram)

    def _estimated(self) -> float:
        """The number of allowed outcomes not seen yet, or its estimate."""
        if self.allowed is not None:
            return max(0, self.allowed - self.reached)
        times = Counter(self.histogram.values())
        return max(0.5 * times[1], times[1] * (times[1] - 1) / (2 * (times[2] + 1)))

    def next_round(self, noise: Noise) -> Round:
        """Its next round, where the noise of the campaign is `noise`."""
        blocks = any(outcome.status is Status.BLOCKED for outcome in self.histogram)
        return Round.of(self.rounds + 1, noise, blocks=blocks)

    @property
    def earns_round(self) -> bool:
        """True if it is worth another round, as far as it alone can tell."""
        if self.rounds >= MAX_ROUNDS or self.idle_rounds >= IDLE_ROUNDS:
            return False
        if self.has_new_pair and not self.rounds:
            return True
        if self.allowed is not None:
            return self.unseen > 0
        return 1 in self.histogram.values()


@dataclass(slots=True, eq=False)
class UnfinishedRun:
    """A graph run of an executor that has earned another round."""

    generated: GeneratedTest
    sampled: SampledConfiguration
    variant: VariedTest
    """The test as it is run."""
    run: GraphRun


class WaitingRuns:
    """The unfinished runs of one executor, ranked by what is expected of their next rounds."""

    def __init__(self) -> None:
        self._waiting: list[UnfinishedRun] = []
        self._found: Counter[int] = Counter()
        """New outcomes, by number of the round."""
        self._unseen: dict[int, float] = {}
        """Unseen outcomes before a round, summed up, by its number."""
        self._seconds: dict[str, tuple[float, int]] = {}
        """Of rounds, and their number, by configuration."""

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, unfinished: UnfinishedRun) -> list[UnfinishedRun]:
        """Let a run wait; return those that are given up for it, if too many wait.

        To find the worst takes as long as to find the worst quarter, which is needed less often.
        """
        self._waiting.append(unfinished)
        if len(self._waiting) <= MAX_WAITING_RUNS:
            return []
        ranked = sorted(self._waiting, key=self._worth, reverse=True)
        kept = 1 + MAX_WAITING_RUNS * 3 // 4
        self._waiting = ranked[:kept]
        return ranked[kept:]

    def next(self, environment: object, budget_s: float) -> UnfinishedRun | None:
        """The run of which most is expected in a second; None if none fits.

        Parameters
        ----------
        environment : object
            Of the worker: another one costs a process.
        budget_s : float
            Seconds that the round may take, as far as known.
        """

        def cost_s(each: UnfinishedRun) -> float:
            switches = each.sampled.config.environment != environment
            return self.seconds(each) + (ENVIRONMENT_SWITCH_S if switches else 0.0)

        fitting = [each for each in self._waiting if cost_s(each) <= budget_s]
        if not fitting:
            return None
        return max(fitting, key=lambda each: self._gain(each) / cost_s(each))

    def remove(self, unfinished: UnfinishedRun) -> None:
        """Remove a run that waits: its next round begins."""
        self._waiting.remove(unfinished)

    def clear(self) -> list[UnfinishedRun]:
        """Remove and return all runs that wait."""
        waiting, self._waiting = self._waiting, []
        return waiting

    def add_round(self, number: int, found: int, unseen: float) -> None:
        """Note what round `number` has found, of what was unseen before."""
        self._found[number] += found
        self._unseen[number] = self._unseen.get(number, 0.0) + max(unseen, found)

    def add_time(self, title: str, seconds: float) -> None:
        """Note how long a round took in a configuration."""
        total, rounds = self._seconds.get(title, (0.0, 0))
        self._seconds[title] = total + seconds, rounds + 1

    def seconds(self, unfinished: UnfinishedRun) -> float:
        """Seconds that the next round of a run is expected to take."""
        run = unfinished.run
        if run.rounds:
            return run.seconds
        total, rounds = self._seconds.get(unfinished.sampled.title, (0.0, 0))
        return (total + run.seconds) / (rounds + 1)

    def share(self, number: int) -> float:
        """Share of the unseen outcomes that a round of this number, from 1, is expected to find."""
        prior = PRIOR_ROUNDS * 0.5**number
        return (self._found[number] + prior) / (self._unseen.get(number, 0.0) + PRIOR_ROUNDS)

    def _gain(self, unfinished: UnfinishedRun) -> float:
        """New outcomes that are expected of the next round of a run."""
        run = unfinished.run
        new = NEW_PAIR_WORTH if run.has_new_pair and not run.rounds else 0.0
        return run.unseen * self.share(run.rounds + 1) + new

    def _worth(self, unfinished: UnfinishedRun) -> float:
        return self._gain(unfinished) / self.seconds(unfinished)
