"""Report of `litmusfuzz bench`: measured figures, their limits, and curves of growing costs."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from litmusfuzz.reports.tables import counted, table

if TYPE_CHECKING:
    from collections.abc import Sequence

COUNTS_FROM: Final = 0.25
"""Least share of ops off the calling thread in a measurement that counts as one on two threads."""
_WORDS: Final = ("figure", "bar", "state", "note")
"""Columns that are no numbers."""
_EIGHTHS: Final = " ▏▎▍▌▋▊▉█"
_WIDTH: Final = 40


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured value with its limits.

    Parameters
    ----------
    name : str
    value : float or None
        None if it could not be measured, with the reason in `note`.
    unit : str
        "s" for seconds, which are shown as milliseconds; "%" for a share of 1.
    least, most : float, optional
        Limits; without one the figure is only reported.
    note : str
    worst : float, optional
        The largest of the values of which `value` is the median.
    asked, unknown : int
        Number of questions to the oracle, and of those that the budget cut off: they are in
        neither `value` nor `worst`, but stated.
    cut_off_s : float, optional
        Median time of the questions that were cut off.
    load_s : float, optional
        Time to load a test.
    outcomes : int, optional
        Size of a whole set.
    threads, copies : int, optional
    elsewhere : float, optional
        Share of ops that the measurement ran off the calling thread; None if unknown.
    """

    name: str
    value: float | None
    unit: str = ""
    least: float | None = None
    most: float | None = None
    note: str = ""
    worst: float | None = None
    asked: int = 0
    unknown: int = 0
    cut_off_s: float | None = None
    load_s: float | None = None
    outcomes: int | None = None
    threads: int | None = None
    copies: int | None = None
    elsewhere: float | None = None

    @property
    def limited(self) -> bool:
        """True if there is a limit."""
        return self.least is not None or self.most is not None

    @property
    def counts(self) -> bool:
        """True unless the measurement is known to have used fewer threads than it names."""
        alone = self.threads is None or self.threads < 2
        return alone or self.elsewhere is None or self.elsewhere >= COUNTS_FROM

    @property
    def met(self) -> bool:
        """True if the value is within its limits."""
        if not self.limited:
            return True
        if self.value is None or not self.counts:
            return False
        low = self.least is None or self.value >= self.least
        return low and (self.most is None or self.value <= self.most)

    def cells(self) -> dict[str, str]:
        """Cells of one line of the table, by column; "-" or "" where the figure has nothing."""
        limits = [
            f"{sign} {shown(limit, self.unit)}"
            for sign, limit in ((">=", self.least), ("<=", self.most))
            if limit is not None
        ]
        notes = [self.note]
        if self.unknown:
            after = f" after {shown(self.cut_off_s, 's')}" if self.cut_off_s is not None else ""
            notes.append(f"{self.unknown} of {self.asked} unknown{after}, not in the times")
        if not self.counts:
            notes.append("not on two threads: does not count")
        return {
            "figure": self.name,
            "threads": shown(self.threads),
            "copies": shown(self.copies),
            "measured": shown(self.value, self.unit),
            "limit": ", ".join(limits) or "-",
            "state": ("met" if self.met else "MISSED") if self.limited else "",
            "worst": shown(self.worst, self.unit),
            "load": shown(self.load_s, "s"),
            "elsewhere": shown(self.elsewhere, "%"),
            "outcomes": shown(self.outcomes),
            "unknown": shown(self.unknown / self.asked if self.asked else None, "%"),
            "note": "; ".join(filter(None, notes)),
        }


@dataclass(frozen=True, slots=True)
class Curve:
    """Growth of a cost `along` one measure of a test, with a figure for each value."""

    name: str
    along: str
    points: tuple[tuple[int, Figure], ...]

    def text(self) -> str:
        """A bar for each point; a time ten times as long has a bar longer by a fixed part."""
        times = [figure.value for _, figure in self.points if figure.value]
        least, most = min(times, default=1.0), max(times, default=1.0)
        decades = max(1.0, math.log10(most / least))
        rows = []
        for size, figure in self.points:
            length = 0.0
            if figure.value:
                # The shortest keeps an eighth of the width: a bar, not a blank.
                length = 0.125 + 0.875 * math.log10(figure.value / least) / decades
            point = {self.along: f"{size:,}", "bar": bar(length * _WIDTH)}
            rows.append(point | figure.cells() | {"figure": ""})  # the curve has a name
        tenfold = f"bars are logarithmic: tenfold is {0.875 * _WIDTH / decades:.0f} wide"
        return "\n".join([self.name, _table(rows), *([tenfold] if len(times) > 1 else [])])


@dataclass(frozen=True, slots=True)
class BenchReport:
    """The figures of a benchmark; `about` describes the measurement and the machine."""

    figures: tuple[Figure, ...]
    about: tuple[str, ...]
    curves: tuple[Curve, ...] = ()

    def text(self) -> str:
        """The figures as a table, the curves as bars, and the number of limits that are met."""
        limited = [figure for figure in self.figures if figure.limited]
        met = sum(figure.met for figure in limited)
        parts = [_table([figure.cells() for figure in self.figures])]
        parts += [curve.text() for curve in self.curves]
        return "\n\n".join(
            [*parts, "\n".join(self.about), f"{met} of {counted(len(limited), 'limit')} met"]
        )

    def as_json(self) -> dict[str, Any]:
        """Plain data with everything that `text` has."""
        figures = [asdict(each) | {"counts": each.counts, "met": each.met} for each in self.figures]
        return asdict(self) | {"figures": figures}


def _table(rows: Sequence[dict[str, str]]) -> str:
    """A table of the columns in which some row has something."""
    titles = [title for title in rows[0] if any(row[title] not in ("", "-") for row in rows)]
    lines = [[row[title] for title in titles] for row in rows]
    return table(titles, lines, [title not in _WORDS for title in titles])


def shown(value: float | None, unit: str = "") -> str:
    """A number to three significant digits or the nearest integer, and its unit; "-" for none."""
    if value is None:
        return "-"
    if unit == "%":
        return f"{value:.1%}"
    if unit == "s":
        value, unit = value * 1000, "ms"
    number = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{number} {unit}".rstrip()


def bar(length: float) -> str:
    """A bar of that width in characters, to an eighth."""
    whole, part = divmod(round(length * 8), 8)
    return _EIGHTHS[8] * whole + _EIGHTHS[part].strip()
