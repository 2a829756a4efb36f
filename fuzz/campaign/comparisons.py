"""Tests that several executors run: who has yet to run each, and how their outcomes compare."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from litmusfuzz.reports.differential import DifferentialComparison, ExecutorResult
from litmusfuzz.reports.events import Compared, NotRun

if TYPE_CHECKING:
    from collections.abc import Callable

    from litmusfuzz.fuzz.campaign.campaign_executor import CampaignExecutor, GeneratedTest
    from litmusfuzz.fuzz.campaign.target import Target
    from litmusfuzz.fuzz.finding.judge import Judgement
    from litmusfuzz.reports.events import Event

MAX_COMPARED_BYTES: Final = 1 << 25
"""Bytes of outcomes that a campaign keeps of its comparisons: some ten thousand tests."""


class Comparisons:
    """The generated tests that an executor has yet to run.

    Parameters
    ----------
    log : callable
        Receives an event for each comparison, and for each test that is not run.

    Attributes
    ----------
    unfinished : set of GeneratedTest
    """

    def __init__(self, log: Callable[[Event], None]) -> None:
        self.log = log
        self.unfinished: set[GeneratedTest] = set()
        self._kept_bytes = 0

    def done(
        self, generated: GeneratedTest, executor: CampaignExecutor, judgement: Judgement | None
    ) -> None:
        """Note that an executor has run a test or failed to; after the last one, compare."""
        generated.pending.remove(executor)
        if judgement is not None:
            generated.judgements[executor] = judgement
        if not generated.pending:
            self._finish(generated)

    def finish(self) -> None:
        """Note what was not run, and compare the outcomes of tests that some executors ran."""
        for generated in sorted(self.unfinished, key=lambda each: each.index):
            for executor, sampled in generated.sampled.items():
                if executor in generated.pending:
                    self.not_run(generated, sampled.target)
            self._finish(generated)

    def not_run(self, generated: GeneratedTest, target: Target) -> None:
        """Note that a configuration did not run a test."""
        name = target.config.name
        self.log(NotRun(index=generated.index, executor=target.executor, configuration=name))

    def _finish(self, generated: GeneratedTest) -> None:
        self.unfinished.remove(generated)
        if len(generated.judgements) < 2:
            return
        shown = tuple(
            ExecutorResult(
                s.name, sampled.config.name, sampled.model.name, generated.judgements[s].histogram
            )
            for s, sampled in generated.sampled.items()
            if s in generated.judgements
        )
        outcomes = {outcome for result in shown for outcome in result.histogram}
        verdicts = {
            result.model: {o: str(generated.oracles[result.model].judge(o)) for o in outcomes}
            for result in shown
        }
        comparison = DifferentialComparison(generated.test, shown, verdicts)
        kept = comparison.as_json()["outcomes"]
        self._kept_bytes += len(str(kept))
        self.log(
            Compared(
                index=generated.index,
                family=generated.family,
                totals=comparison.totals(),
                outcomes=tuple(kept) if self._kept_bytes <= MAX_COMPARED_BYTES else (),
            )
        )
