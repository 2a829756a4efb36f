"""One test on several executors: their histograms side by side, and totals over many tests."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from litmusfuzz.reports.text import counted, outcome_table, table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Outcome


@dataclass(frozen=True, slots=True)
class ExecutorResult:
    """What one executor showed on a test, and the model that it is judged by."""

    executor: str
    config: str
    model: str
    histogram: Mapping[Outcome, int]

    @property
    def title(self) -> str:
        """Its column's."""
        return f"{self.executor}/{self.config}"


@dataclass(frozen=True, slots=True)
class DifferentialComparison:
    """One test on several executors.

    Parameters
    ----------
    test : LitmusTest
    sides : tuple of ExecutorResult
    verdicts : mapping
        By model, then outcome: every outcome that any side showed, and those of
        `unseen`, under every side's model.
    index, family
        Where a campaign drew it.
    unseen : tuple of Outcome
        Allowed under one of the models, shown by none.
    """

    test: LitmusTest
    sides: tuple[ExecutorResult, ...]
    verdicts: Mapping[str, Mapping[Outcome, str]]
    index: int = 0
    family: str = ""
    unseen: tuple[Outcome, ...] = ()

    @property
    def listed(self) -> list[Outcome]:
        """What is forbidden on the side that shows it, then the most frequent, then unseen."""
        total: dict[Outcome, int] = {}
        bad = set()
        for side in self.sides:
            for outcome, count in side.histogram.items():
                total[outcome] = total.get(outcome, 0) + count
                if self.verdicts[side.model][outcome] == "forbidden":
                    bad.add(outcome)
        shown = sorted(total, key=lambda o: (o not in bad, -total[o], str(o)))
        return [*shown, *sorted(self.unseen, key=str)]

    def table(self, most: int | None = None) -> str:
        """A line for each outcome: how often each executor showed it, what each model says."""
        rows = []
        for outcome in self.listed[:most]:
            said = [verdicts[outcome] for verdicts in self.verdicts.values()]
            counts = [str(side.histogram.get(outcome, 0)) for side in self.sides]
            rows.append((outcome, [*counts, *(v if v == "allowed" else v.upper() for v in said)]))
        titles = [*(side.title for side in self.sides), *self.verdicts]
        text = outcome_table(self.test.names, titles, rows)
        more = len(self.listed) - len(rows)
        return f"{text}\nand {counted(more, 'more outcome')}" if more else text

    def as_json(self) -> dict[str, Any]:
        """Plain data: the executors, and each outcome with all counts and verdicts."""
        return {
            "executors": {side.title: side.model for side in self.sides},
            "outcomes": [
                {
                    "outcome": outcome.plain,
                    "counts": {side.title: side.histogram.get(outcome, 0) for side in self.sides},
                    "verdicts": {m: verdicts[outcome] for m, verdicts in self.verdicts.items()},
                }
                for outcome in self.listed
            ],
        }


@dataclass(slots=True)
class DifferentialTotals:
    """One executor over all graphs that others ran as well.

    Outcomes are counted once for each graph. `alone` are those that no other
    showed; `missed` those that another showed and its own model allows, too.
    """

    model: str
    graphs: int = 0
    executions: int = 0
    outcomes: int = 0
    alone: int = 0
    missed: int = 0
    forbidden: int = 0

    def add(self, side: ExecutorResult, of: DifferentialComparison) -> None:
        """One more graph."""
        verdicts = of.verdicts[self.model]
        others: set[Outcome] = set()
        others = others.union(*(each.histogram for each in of.sides if each is not side))
        mine = set(side.histogram)
        self.graphs += 1
        self.executions += sum(side.histogram.values())
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
