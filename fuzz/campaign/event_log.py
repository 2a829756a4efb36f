"""Events of a campaign, as calls to an `EventLog`.

The base class discards every event. The shard log of a nightly run writes each event as a line of
a file (`fuzz.campaign.nightly.shard_log`), so that a killed process loses only the test in
progress.
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
    """One test on one executor in one configuration, and its verdicts.

    Attributes
    ----------
    noise, run_seed
        Of its run of `count` executions.
    end : str
        "judged", or why the test was not run to its end.
    judged : Judgement, optional
        None if the test was not run to its end.
    allowed : int, optional
        Number of allowed outcomes; None if they are many or not counted.
    unreduced : Path, optional
        File of the test, if an outcome is forbidden.
    known : ReportedFinding, optional
        The earlier finding that explains the forbidden outcomes.
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
    """Receives the events of a campaign, one call each. Discards them."""

    def started(self, versions: Mapping[str, Mapping[str, str]]) -> None:
        """The workers have started; `versions` has the versions of each executor."""

    def unavailable(self, config: str, why: str) -> None:
        """A configuration cannot run here."""

    def test_executed(self, executed: ExecutedTest) -> None:
        """An executor has run a test, refused it, or died on it."""

    def seen_again(self, index: int, config: str, known: ReportedFinding) -> None:
        """Test number `index` shows a finding that is already known."""

    def finding_added(
        self,
        index: int,
        reported: ReportedFinding,
        histogram: Mapping[Outcome, tuple[int, str]],
        reason: Reason | None,
    ) -> None:
        """Test number `index` shows a new finding, minimized and confirmed."""

    def script_run(self, reported: ReportedFinding) -> None:
        """The standalone script of a finding was run; the finding's file has the result."""

    def unconfirmed(self, index: int, path: Path) -> None:
        """A fresh process does not show the minimized finding of test number `index`."""

    def worker_died(
        self, entry: Entry, path: Path, message: str, *, config: str, timed_out: bool
    ) -> None:
        """A worker died on a test."""

    def unsound_clusters(self, test: LitmusTest, path: Path, config: str, added: Outcome) -> None:
        """An executor chose clusters that add an outcome; `path` may be an earlier file."""

    def canary_run(self, *, reported: bool) -> None:
        """The canary ran."""
