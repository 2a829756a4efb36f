"""The smallest test so far that shows a finding, and how often it has to show."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.outcome import Status
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.campaign.tuning import MAX_REDUCTION_S, RUN_S
from litmusfuzz.fuzz.executors.protocol import Noise
from litmusfuzz.fuzz.finding.causes import may_keep_cause, symptom
from litmusfuzz.fuzz.finding.trials import is_large

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.textfile import Schedule
    from litmusfuzz.fuzz.campaign.candidate import Candidate
    from litmusfuzz.fuzz.campaign.target import Target
    from litmusfuzz.fuzz.finding.judge import Judgement

PROBE_HITS: Final = 3
"""Forbidden executions that a run needs at least. A replay of as many executions then misses with
probability about exp(-3), and continues until it sees one."""
MIN_STEP: Final = 32
MAX_STEP: Final = 1 << 24
"""An executor may take no time: a step has a bound of its own."""
PROBE_COPIES: Final = 8
PROBE_STEPS: Final = 32
"""A probe has so many copies at least, and no more than give so many steps. Of 256 executions, 32
copies take 1.9 times as long as 8, since they take longer to build. In 21 tests that show something
forbidden in plain TensorFlow, 8 copies showed it 1.3 times as often, and 2.3 times as often in a
second (medians)."""
MIN_PROBE_COUNT: Final = 256
MIN_COSTLY_COUNT: Final = 32
MAX_PROBE_COUNT: Final = 1 << 15
LENIENT_COUNT: Final = 1 << 14
"""Executions, at least, for which a simpler configuration is probed in the end: a race that one
setting shows in every second execution may need thousands without it."""


@dataclass(slots=True)
class Best:
    """The smallest test so far that shows a finding, and its outcomes."""

    test: LitmusTest
    judgement: Judgement
    target: Target
    """Where it shows."""
    noise: Noise = field(default=Noise())
    rate: float = 0.0
    """The highest share of forbidden executions there, of the first form in a fresh
    process and of smaller ones."""
    symptom: str = ""
    run_seed: int | None = None
    schedule: Schedule | None = None
    pace: float = inf
    """Executions a second, in the last run."""
    needs_names: tuple[str, ...] = ()
    """Names of nodes and resources without which it did not show."""
    needs_order: bool = False
    """True if it did not show with its nodes in another order."""
    raced: int = sys.maxsize
    """Number of nodes of the form that was last run with all noise."""
    lenient: bool = False
    """True if what shows much more rarely is still accepted."""

    @classmethod
    def of(cls, candidate: Candidate) -> Best:
        """A candidate as it was run."""
        return cls(candidate.test, candidate.judgement, candidate.target, candidate.noise)

    def __post_init__(self) -> None:
        self.symptom = symptom(self.judgement.forbidden[0][0])
        self.judgement = self.with_same_cause(self.judgement)
        self.improve(self.test, self.judgement)

    def with_same_cause(self, judgement: Judgement) -> Judgement:
        """The judgement, with only those forbidden outcomes that may have the finding's cause."""
        kept = (each for each in judgement.forbidden if may_keep_cause(self.symptom, each[0]))
        return replace(judgement, forbidden=tuple(kept))

    def improve(self, test: LitmusTest, judgement: Judgement) -> None:
        """Replace the test by a smaller one."""
        self.test, self.judgement = test, judgement
        if judgement.schedule is not None:
            self.schedule = judgement.schedule
        # One less, because runs stop as soon as they have seen enough: the share is too large.
        hits = max(judgement.forbidden_count - 1, 0.5)
        self.rate = max(self.rate, hits / judgement.executions)

    def move(self, target: Target, judgement: Judgement) -> None:
        """Move to a simpler configuration."""
        self.target, self.rate = target, 0.0
        self.improve(self.test, judgement)

    def take_over(self, shown: Candidate) -> None:
        """Go on with the candidate as it shows under control."""
        self.move(shown.target, shown.judgement)
        self.noise = shown.noise

    def measured(self, judgement: Judgement, executions: int) -> None:
        """Replace the share of forbidden executions by that of a fresh process.

        Races show more rarely while the machine is busy, and it may be busier than when the finding
        was seen. Of a share that is too high, each experiment would be too short.
        """
        self.judgement = judgement
        self.rate = judgement.forbidden_count / executions

    @property
    def count(self) -> int:
        """Executions in which the finding shows about 24 times, if that is possible."""
        # A blocked execution costs a session that others would share; one of a large test is slow.
        costly = self.symptom == Status.BLOCKED or self.is_large
        least = MIN_COSTLY_COUNT if costly else MIN_PROBE_COUNT
        if self.lenient and not costly:
            least = LENIENT_COUNT
        return probe_count(self.rate, least)

    @property
    def is_large(self) -> bool:
        """True if it has more lanes than generated tests have."""
        return is_large(self.test)

    def ran(self, count: int, seconds: float) -> None:
        """Note how long some executions took; the start of a process may be included."""
        self.pace = count / max(seconds, 1e-3)

    def step(self, wanted: int) -> int:
        """Executions of the next step: slow executions can be stopped only between steps."""
        return int(min(wanted, MAX_STEP, max(MIN_STEP, self.pace * MAX_REDUCTION_S)))

    @property
    def probe_noise(self) -> Noise:
        """The noise for `count` executions of a smaller test."""
        copies = max(PROBE_COPIES, self.count // PROBE_STEPS)
        # All copies of a step share the session that a blocked one costs.
        if self.symptom == Status.BLOCKED or copies >= self.noise.copies:
            return self.noise
        return replace(self.noise, copies=copies)

    @property
    def needed(self) -> int:
        """Forbidden executions, of `count`, that a smaller test must show.

        An eighth of what the best form shows: a test that shows the finding more rarely is
        smaller, but of less use to whoever replays it.
        """
        if self.lenient:
            return PROBE_HITS
        return max(PROBE_HITS, round(self.count * self.rate / 8))


def probe_count(rate: float, least: int = MIN_PROBE_COUNT) -> int:
    """Executions in which what shows at this rate shows about 24 times, if that is possible."""
    return min(MAX_PROBE_COUNT, max(least, int(24 / max(rate, 1e-6))))


def expected_cost_s(candidate: Candidate, run_s: float = RUN_S) -> float:
    """Rough estimate of the seconds that the reduction of a candidate takes.

    About three smaller tests a node, two runs for most, at `run_s` seconds each and 40,000
    executions a second.
    """
    smaller = 3 * len(candidate.test.nodes)
    return smaller * 2 * (run_s + probe_count(candidate.judgement.rate) / 40_000)
