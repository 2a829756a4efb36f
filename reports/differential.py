"""Differential comparison of one test on several executors: a table, totals, and plain data.

A campaign compares the executors of each generated test (`fuzz/campaign/comparisons.py`), and
``litmusfuzz replay`` those that it was asked for (`fuzz/cli/replay.py`).
"""

from __future__ import annotations

from collections import Counter
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
        """Title of the executor's column, which no other result of the comparison has."""
        return f"{self.executor}/{self.config}"


def _model_title(model: str) -> str:
    """Title of the column that has the model's verdicts."""
    return the_model(model).removeprefix("the ")


@dataclass(frozen=True, slots=True)
class DifferentialComparison:
    """Outcomes of one test on several executors, and the verdicts on them.

    Parameters
    ----------
    test : LitmusTest
    results : tuple of ExecutorResult
        One for each executor; their titles differ.
    verdicts : mapping of str to (mapping of Outcome to str)
        By model: the verdict on each outcome (`corpus.outcome.Verdict`). It has the model of each
        result, and for each model all outcomes that any executor showed, and those of `unseen`.
    unseen : tuple of Outcome
        Outcomes that at least one of the models allows and no executor showed.
    """

    test: LitmusTest
    results: tuple[ExecutorResult, ...]
    verdicts: Mapping[str, Mapping[Outcome, str]]
    unseen: tuple[Outcome, ...] = ()

    @property
    def listed(self) -> list[Outcome]:
        """All outcomes, in the order of the table.

        First come those that an executor showed although its own model forbids them, then the
        others that were shown, in both groups the most frequent ones first, and last the unseen.
        """
        total: Counter[Outcome] = Counter()
        forbidden = set()
        for result in self.results:
            for outcome, count in result.histogram.items():
                total[outcome] += count
                if self.verdicts[result.model][outcome] == "forbidden":
                    forbidden.add(outcome)
        shown = sorted(total, key=lambda o: (o not in forbidden, -total[o], str(o)))
        return [*shown, *sorted(self.unseen, key=str)]

    def table(self) -> str:
        """A line for each outcome: its count on each executor, its verdict under each model.

        With one executor only, its columns are called "count" and "verdict".
        """
        rows = []
        for outcome in self.listed:
            counts = [str(result.histogram.get(outcome, 0)) for result in self.results]
            judged = [verdict_cell(verdicts[outcome]) for verdicts in self.verdicts.values()]
            rows.append((outcome, [*counts, *judged]))
        titles = [*(result.title for result in self.results), *map(_model_title, self.verdicts)]
        if len(self.results) == 1:
            titles = ["count", "verdict"]
        return outcome_table(self.test.names, titles, rows)

    def totals(self) -> Mapping[str, ExecutorTotals]:
        """Totals of each executor, by its title.

        An outcome is the executor's *alone* if no other executor showed it. The executor *missed*
        an outcome that another executor showed, if its own model allows the outcome.
        """
        totals = {}
        for result in self.results:
            verdicts, shown = self.verdicts[result.model], set(result.histogram)
            others = [other for other in self.results if other is not result]
            shown_by_others = {outcome for other in others for outcome in other.histogram}
            missed = [o for o in shown_by_others - shown if verdicts[o] == "allowed"]
            totals[result.title] = ExecutorTotals(
                model=result.model,
                executions=sum(result.histogram.values()),
                outcomes=len(shown),
                alone=len(shown - shown_by_others),
                missed=len(missed),
                forbidden=sum(verdicts[outcome] == "forbidden" for outcome in shown),
            )
        return totals

    def as_json(self) -> dict[str, Any]:
        """Plain data: executors and their models, and each outcome with all counts and verdicts."""
        return {
            "executors": {result.title: result.model for result in self.results},
            "outcomes": [
                {
                    "outcome": outcome.plain,
                    "counts": {r.title: r.histogram.get(outcome, 0) for r in self.results},
                    "verdicts": {model: judged[outcome] for model, judged in self.verdicts.items()},
                }
                for outcome in self.listed
            ],
        }
