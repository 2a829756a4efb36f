"""Differential comparison: one test on several executors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from litmusfuzz.reports.events import ExecutorTotals
from litmusfuzz.reports.tables import outcome_table, the_model, verdict_cell

if TYPE_CHECKING:
    from collections.abc import Mapping

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Outcome


@dataclass(frozen=True, slots=True)
class ExecutorResult:
    """The histogram of one executor on a test, and the model that judges it."""

    executor: str
    config: str
    model: str
    histogram: Mapping[Outcome, int]

    @property
    def title(self) -> str:
        """Title of its column."""
        return f"{self.executor}/{self.config}"


def _column(model: str) -> str:
    return the_model(model).removeprefix("the ")


@dataclass(frozen=True, slots=True)
class DifferentialComparison:
    """One test on several executors.

    Parameters
    ----------
    test : LitmusTest
    results : tuple of ExecutorResult
    verdicts : mapping
        By model, then outcome: every outcome that any executor showed, and those of
        `unseen`, under the model of every executor.
    unseen : tuple of Outcome
        Outcomes that one of the models allows and no executor showed.
    """

    test: LitmusTest
    results: tuple[ExecutorResult, ...]
    verdicts: Mapping[str, Mapping[Outcome, str]]
    unseen: tuple[Outcome, ...] = ()

    @property
    def listed(self) -> list[Outcome]:
        """Outcomes forbidden for an executor that shows them, then the frequent, then unseen."""
        total: dict[Outcome, int] = {}
        bad = set()
        for result in self.results:
            for outcome, count in result.histogram.items():
                total[outcome] = total.get(outcome, 0) + count
                if self.verdicts[result.model][outcome] == "forbidden":
                    bad.add(outcome)
        shown = sorted(total, key=lambda o: (o not in bad, -total[o], str(o)))
        return [*shown, *sorted(self.unseen, key=str)]

    def table(self) -> str:
        """A line for each outcome: its count on each executor, its verdict under each model.

        Of one executor the titles are plain words.
        """
        rows = []
        for outcome in self.listed:
            words = [verdict_cell(verdicts[outcome]) for verdicts in self.verdicts.values()]
            counts = [str(result.histogram.get(outcome, 0)) for result in self.results]
            rows.append((outcome, [*counts, *words]))
        titles = [*(result.title for result in self.results), *map(_column, self.verdicts)]
        if len(self.results) == 1:
            titles = ["count", "verdict"]
        return outcome_table(self.test.names, titles, rows)

    def totals(self) -> Mapping[str, ExecutorTotals]:
        """Totals of each executor, by its title."""
        made = {}
        for result in self.results:
            verdicts, mine = self.verdicts[result.model], set(result.histogram)
            others = {o for each in self.results if each is not result for o in each.histogram}
            made[result.title] = ExecutorTotals(
                model=result.model,
                executions=sum(result.histogram.values()),
                outcomes=len(mine),
                alone=len(mine - others),
                missed=sum(verdicts[outcome] == "allowed" for outcome in others - mine),
                forbidden=sum(verdicts[outcome] == "forbidden" for outcome in mine),
            )
        return made

    def as_json(self) -> dict[str, Any]:
        """Plain data: the executors, and each outcome with all counts and verdicts."""
        return {
            "executors": {result.title: result.model for result in self.results},
            "outcomes": [
                {
                    "outcome": outcome.plain,
                    "counts": {each.title: each.histogram.get(outcome, 0) for each in self.results},
                    "verdicts": {m: verdicts[outcome] for m, verdicts in self.verdicts.items()},
                }
                for outcome in self.listed
            ],
        }
