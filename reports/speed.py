"""What `litmusfuzz bench native` has measured: a line for each figure."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Final

from litmusfuzz.reports.text import counted, table

COUNTS_FROM: Final = 0.25
"""The share of ops off the calling thread from which a run was on two threads."""


class Unit(StrEnum):
    """What a figure counts; of the first three less is better."""

    NS_PER_OP = "ns/op"
    SECONDS = "s"
    TIMES = "times"
    PER_SECOND = "copies/s"
    RATIO = "times faster"


_LESS_IS_BETTER: Final = (Unit.NS_PER_OP, Unit.SECONDS, Unit.TIMES)


@dataclass(frozen=True, slots=True)
class Speed:
    """One line of the report: the best of several measurements.

    `value` is None where it could not be measured, and `note` says why. `share` is
    that of the ops which the same measurement ran off the calling thread; None where
    that cannot be seen. `limit` is what we promise, if anything.
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
        """Whether it was on as many threads as it says, as far as can be seen."""
        return self.threads < 2 or self.share is None or self.share >= COUNTS_FROM

    @property
    def met(self) -> bool:
        """Whether the promise is kept, where there is one."""
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
    """A whole bench; `about` says in words what was measured on."""

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
        promised = sum(figure.limit is not None for figure in self.figures)
        score = f"{promised - missed} of {counted(promised, 'limit')} met"
        lines = table(header, [figure.cells() for figure in self.figures])
        return "\n\n".join([lines, "\n".join([how, *self.about]), score])

    def as_json(self) -> dict[str, Any]:
        """Plain data, with everything that the screen shows."""
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
