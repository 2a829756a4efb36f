"""What a campaign tells while it goes on, to whoever keeps it: test by test.

A `EventLog` as it is keeps nothing. That of a night writes each call as a line of a file
(`fuzz.campaign.nightly.shard_log`), so that whatever is killed, the test in flight is all
that is lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Outcome
    from litmusfuzz.corpus.textfile import Entry
    from litmusfuzz.fuzz.campaign.judge import Judgement
    from litmusfuzz.fuzz.executors.protocol import Noise
    from litmusfuzz.oracles.reason import Reason
    from litmusfuzz.reports.records import ReportedFinding


@dataclass(frozen=True, slots=True)
class ExecutedTest:
    """One graph on one executor in one configuration, and how that ended.

    `noise` and `run_seed` are those of its run of `count` executions. `judged` is None
    where it was not run to its end, and `end` then says why. `allowed` is the number of
    its allowed outcomes, None if they are many or not counted. Where it showed something
    forbidden, `unreduced` is its file, and `known` the finding that explains it at once.
    """

    index: int
    family: str
    test: LitmusTest
    config: str
    model: str
    noise: Noise
    run_seed: int
    count: int
    seconds: float
    end: str = "judged"
    judged: Judgement | None = None
    allowed: int | None = None
    unreduced: Path | None = None
    known: ReportedFinding | None = None


class EventLog:
    """Hears what a campaign does. Each call is one thing that happened, whole."""

    def started(self, versions: Mapping[str, Mapping[str, str]]) -> None:
        """The workers run; these are the versions of what is tested."""

    def unavailable(self, config: str, why: str) -> None:
        """A configuration cannot run here."""

    def tested(self, tested: ExecutedTest) -> None:
        """A graph was run, or could not be."""

    def again(self, index: int, config: str, known: ReportedFinding) -> None:
        """What graph number `index` showed is a finding that was there before."""

    def found(
        self,
        index: int,
        found: ReportedFinding,
        histogram: Mapping[Outcome, tuple[int, str]],
        reason: Reason | None,
    ) -> None:
        """What graph number `index` showed is a new finding, minimized and confirmed."""

    def scripted(self, found: ReportedFinding) -> None:
        """The script of a finding was tried; its file says how."""

    def unconfirmed(self, index: int, path: Path) -> None:
        """What graph number `index` showed did not show again in a fresh process."""

    def died(self, entry: Entry, path: Path, message: str, *, config: str, timed_out: bool) -> None:
        """A worker ended on a test."""

    def unsound(self, test: LitmusTest, path: Path, config: str, added: Outcome) -> None:
        """An executor chose clusters that add an outcome; the file may not be a new one."""

    def canary(self, *, reported: bool) -> None:
        """The canary ran."""
