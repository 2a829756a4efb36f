"""Differential comparison: one test on several executors, and totals over many tests."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from litmusfuzz.reports.tables import counted, outcome_table, table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
    index, family
        Number and family of the test in its campaign.
    unseen : tuple of Outcome
        Outcomes that one of the models allows and no executor showed.
    """

    test: LitmusTest
    results: tuple[ExecutorResult, ...]
    verdicts: Mapping[str, Mapping[Outcome, str]]
    index: int = 0
    family: str = ""
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

    def table(self, most: int | None = None) -> str:
        """A line for each outcome: its count on each executor, its verdict under each model."""
        rows = []
        for outcome in self.listed[:most]:
            words = [verdicts[outcome] for verdicts in self.verdicts.values()]
            counts = [str(result.histogram.get(outcome, 0)) for result in self.results]
            rows.append((outcome, [*counts, *(v if v == "allowed" else v.upper() for v in words)]))
        titles = [*(result.title for result in self.results), *self.verdicts]
        text = outcome_table(self.test.names, titles, rows)
        more = len(self.listed) - len(rows)
        return f"{text}\nand {counted(more, 'more outcome')}" if more else text

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


@dataclass(slots=True)
class DifferentialTotals:
    """Totals of one executor over the graphs that several executors ran.

    Each outcome counts once for each graph. `alone` counts outcomes that no other executor
    showed; `missed` those that another executor showed and this one's model allows.
    """

    model: str
    graphs: int = 0
    executions: int = 0
    outcomes: int = 0
    alone: int = 0
    missed: int = 0
    forbidden: int = 0

    def add(self, result: ExecutorResult, comparison: DifferentialComparison) -> None:
        """Count one more graph."""
        verdicts = comparison.verdicts[self.model]
        others: set[Outcome] = set()
        others = others.union(*(r.histogram for r in comparison.results if r is not result))
        mine = set(result.histogram)
        self.graphs += 1
        self.executions += sum(result.histogram.values())
        self.outcomes += len(mine)
        self.alone += len(mine - others)
        self.missed += sum(verdicts[outcome] == "allowed" for outcome in others - mine)
        self.forbidden += sum(verdicts[outcome] == "forbidden" for outcome in mine)

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


_ROWS = (
    ("judged by", "model"),
    ("graphs", "graphs"),
    ("executions", "executions"),
    ("outcomes seen", "outcomes"),
    ("by no other", "alone"),
    ("missed, seen by another", "missed"),
    ("forbidden", "forbidden"),
)


def totals_table(totals: Mapping[str, DifferentialTotals]) -> str:
    """A column for each executor."""
    columns: Sequence[str] = ["", *totals]
    rows = [
        [label, *(str(getattr(each, name)) for each in totals.values())] for label, name in _ROWS
    ]
    return table(columns, rows)
