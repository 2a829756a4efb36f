"""Report of `litmusfuzz bench oracle`: figures, and curves of growing costs."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Final

from litmusfuzz.reports.tables import counted, table

_EIGHTHS: Final = " ▏▎▍▌▋▊▉█"
_WIDTH: Final = 40


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the report; times are CPU times in seconds.

    `seconds` is the median over `answered` of `asked` questions, each the best
    of several calls, and `worst` the largest; None if none was answered. Questions
    that the budget cut off are left out of both: their number is the difference,
    their time `cut_off_s`. `limit_s` is the limit on `seconds`, if there is one;
    `load_s` the time to load the test, `made_s` the time to make all outcomes as
    Python objects, `ratio` the reference oracle's time over ours; `outcomes` the
    size of a whole set.
    """

    name: str
    asked: int
    answered: int
    seconds: float | None
    worst_s: float | None = None
    limit_s: float | None = None
    load_s: float | None = None
    cut_off_s: float | None = None
    outcomes: int | None = None
    ratio: float | None = None
    made_s: float | None = None

    @property
    def unknown(self) -> float:
        """The share of questions that the budget cut off."""
        return 1 - self.answered / self.asked if self.asked else 0.0

    @property
    def met(self) -> bool:
        """True if `seconds` is within its limit."""
        return self.limit_s is None or (self.seconds is not None and self.seconds <= self.limit_s)

    def cells(self) -> list[str]:
        """One line of `figures_table`."""
        notes = []
        if self.outcomes is not None:
            notes.append(counted(self.outcomes, "outcome"))
        if self.answered < self.asked:
            cost = f" after {milliseconds(self.cut_off_s)}" if self.cut_off_s is not None else ""
            notes.append(
                f"{self.asked - self.answered} of {self.asked} unknown{cost}, not in the times"
            )
        if self.made_s is not None:
            notes.append(f"as objects {milliseconds(self.made_s)}")
        if self.ratio is not None:
            notes.append(f"{self.ratio:,.0f} times faster than the reference")
        if not self.met:
            notes.append("MISSED")
        return [
            self.name,
            milliseconds(self.seconds),
            milliseconds(self.worst_s),
            milliseconds(self.limit_s),
            milliseconds(self.load_s),
            f"{self.unknown:.0%}",
            "; ".join(notes),
        ]


@dataclass(frozen=True, slots=True)
class Curve:
    """Growth of a cost `along` one measure of a test, with a figure for each value."""

    name: str
    along: str
    points: tuple[tuple[int, Figure], ...]

    def text(self) -> str:
        """A bar for each point; a time ten times as long has a bar longer by a fixed part."""
        times = [f.seconds for _, f in self.points if f.seconds]
        least, most = (min(times), max(times)) if times else (1.0, 1.0)
        decades = max(1.0, math.log10(most / least))
        lines = [f"{self.name}, by {self.along}"]
        rows = []
        for size, figure in self.points:
            if figure.seconds:
                # The shortest keeps an eighth of the width: a bar, not a blank.
                share = 0.125 + 0.875 * math.log10(figure.seconds / least) / decades
                line = bar(share * _WIDTH)
            else:
                line = ""
            note = ""
            if figure.answered < figure.asked:
                note = f"  {figure.asked - figure.answered} of {figure.asked} unknown"
                if figure.cut_off_s is not None:
                    note += f" after {milliseconds(figure.cut_off_s)}"
            count = (
                f"  {counted(figure.outcomes, 'outcome')}" if figure.outcomes is not None else ""
            )
            rows.append([f"{size:,}", milliseconds(figure.seconds), line + count + note])
        widths = [max(len(row[i]) for row in rows) for i in range(2)]
        lines += [
            f"  {size.rjust(widths[0])}  {cost.rjust(widths[1])}  {rest}".rstrip()
            for size, cost, rest in rows
        ]
        if len(times) > 1:
            lines.append(f"  bars are logarithmic: tenfold is {0.875 * _WIDTH / decades:.0f} wide")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Peak:
    """Memory that the largest membership question took, above what its process had before."""

    bytes: int | None
    limit_bytes: int

    @property
    def met(self) -> bool:
        """True unless the measured memory is above the budget's cap."""
        return self.bytes is None or self.bytes <= self.limit_bytes

    def text(self) -> str:
        """One line."""
        limit = f"{self.limit_bytes >> 20} MiB"
        if self.bytes is None:
            return f"peak memory of 256 ops with a loop: not measured on this system, cap {limit}"
        used = f"{self.bytes / (1 << 20):.0f} MiB of {limit}"
        return f"peak memory of 256 ops with a loop: {used}{'' if self.met else '  MISSED'}"


@dataclass(frozen=True, slots=True)
class BenchReport:
    """All figures and curves; `budgets` describes the budget of each question."""

    figures: tuple[Figure, ...]
    curves: tuple[Curve, ...]
    peak: Peak
    budgets: tuple[str, ...]
    repeats: int

    def text(self) -> str:
        """Figures as a table, curves as bars."""
        header = ["", "median", "worst", "limit", "load", "unknown", ""]
        parts = [table(header, [f.cells() for f in self.figures]), self.peak.text()]
        parts += [curve.text() for curve in self.curves]
        how = f"CPU times, best of {self.repeats}; long calls count once."
        parts.append("\n".join([how, *self.budgets]))
        return "\n\n".join(parts)

    def as_json(self) -> dict[str, Any]:
        """Plain data with everything that `text` has."""
        return {
            "repeats": self.repeats,
            "budgets": list(self.budgets),
            "figures": [_plain(figure) for figure in self.figures],
            "peak": asdict(self.peak) | {"met": self.peak.met},
            "curves": [
                {
                    "name": curve.name,
                    "along": curve.along,
                    "points": [{"at": size} | _plain(figure) for size, figure in curve.points],
                }
                for curve in self.curves
            ],
        }


def _plain(figure: Figure) -> dict[str, Any]:
    return asdict(figure) | {"unknown": round(figure.unknown, 4), "met": figure.met}


def milliseconds(seconds: float | None) -> str:
    """Milliseconds with three significant digits; "-" for none."""
    if seconds is None:
        return "-"
    value = seconds * 1e3
    digits = max(0, 2 - math.floor(math.log10(value))) if value > 0 else 0
    return f"{value:,.{min(digits, 4)}f} ms"


def bar(length: float) -> str:
    """A bar of that width in characters, to an eighth."""
    whole, part = divmod(round(length * 8), 8)
    return _EIGHTHS[8] * whole + _EIGHTHS[part].strip()
