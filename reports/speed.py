"""Report of `litmusfuzz bench native`: a line for each figure."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Final

from litmusfuzz.reports.tables import counted, table

COUNTS_FROM: Final = 0.25
"""Least share of ops off the calling thread in a run that counts as one on two threads."""


class Unit(StrEnum):
    """Unit of a figure; of the first three less is better."""

    NS_PER_OP = "ns/op"
    SECONDS = "s"
    TIMES = "times"
    PER_SECOND = "copies/s"
    RATIO = "times faster"


_LESS_IS_BETTER: Final = (Unit.NS_PER_OP, Unit.SECONDS, Unit.TIMES)


@dataclass(frozen=True, slots=True)
class Speed:
    """One line of the report: the best of several measurements.

    `value` is None if it could not be measured, with the reason in `note`. `share` is the
    share of ops that the same measurement ran off the calling thread; None if unknown.
    `limit` is the limit on the value; without one the figure is only reported.
    """

    name: str
    unit: Unit
    value: float | None
    threads: int = 1
    copies: int = 1
    share: float | None = None
    limit: float | None = None
    note: str = ""

    @property
    def counts(self) -> bool:
        """True unless the measurement is known to have used fewer threads than it names."""
        return self.threads < 2 or self.share is None or self.share >= COUNTS_FROM

    @property
    def met(self) -> bool:
        """True if the value is within its limit."""
        if self.limit is None:
            return True
        if self.value is None or not self.counts:
            return False
        if self.unit in _LESS_IS_BETTER:
            return self.value <= self.limit
        return self.value >= self.limit

    def cells(self) -> list[str]:
        """One line of the table."""
        notes = [self.note] if self.note else []
        if not self.counts:
            notes.append("not on two threads: does not count")
        if not self.met:
            notes.append("MISSED")
        return [
            self.name,
            str(self.threads),
            str(self.copies),
            _shown(self.value, self.unit),
            self.unit,
            _limit(self.limit, self.unit),
            "-" if self.share is None else f"{self.share:.0%}",
            "; ".join(notes),
        ]


@dataclass(frozen=True, slots=True)
class SpeedReport:
    """All figures of a benchmark; `about` describes the measurement and the machine."""

    figures: tuple[Speed, ...]
    about: tuple[str, ...]
    repeats: int

    def text(self) -> str:
        """A table."""
        header = ["", "threads", "copies", "best", "", "limit", "elsewhere", ""]
        how = (
            f"Wall-clock times, best of {self.repeats}, interleaved. Elsewhere: the share of ops "
            "run off the calling thread."
        )
        missed = sum(not figure.met for figure in self.figures)
        limited = sum(figure.limit is not None for figure in self.figures)
        score = f"{limited - missed} of {counted(limited, 'limit')} met"
        lines = table(header, [figure.cells() for figure in self.figures])
        return "\n\n".join([lines, "\n".join([how, *self.about]), score])

    def as_json(self) -> dict[str, Any]:
        """Plain data with everything that `text` has."""
        return {
            "repeats": self.repeats,
            "about": list(self.about),
            "figures": [
                asdict(figure) | {"counts": figure.counts, "met": figure.met}
                for figure in self.figures
            ],
        }


def _shown(value: float | None, unit: Unit) -> str:
    if value is None:
        return "-"
    if unit is Unit.PER_SECOND:
        return f"{value:,.0f}"
    if unit is Unit.SECONDS:
        return f"{value:.4f}" if value >= 1e-3 else f"{value:.6f}"
    return f"{value:.1f}"


def _limit(limit: float | None, unit: Unit) -> str:
    if limit is None:
        return "-"
    sign = "<=" if unit in _LESS_IS_BETTER else ">="
    return f"{sign} {limit:,.0f}"
