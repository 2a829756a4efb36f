"""Measured figures of a benchmark, each with its limits."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from litmusfuzz.reports.tables import counted, table


@dataclass(frozen=True, slots=True)
class Target:
    """A measured figure with its limits.

    `least` and `most` are the limits; without them the figure is only reported. A figure
    in the unit "%" is a share of 1.
    """

    name: str
    value: float
    unit: str = ""
    least: float | None = None
    most: float | None = None
    note: str = ""

    @property
    def limited(self) -> bool:
        """True if there is a limit."""
        return self.least is not None or self.most is not None

    @property
    def met(self) -> bool:
        """True if the value is within its limits."""
        low = self.least is None or self.value >= self.least
        return low and (self.most is None or self.value <= self.most)

    def cells(self) -> list[str]:
        """One line of the table."""
        limit = "-"
        if self.least is not None:
            limit = f">= {self._shown(self.least)}"
        if self.most is not None:
            limit = f"<= {self._shown(self.most)}"
        state = ("met" if self.met else "MISSED") if self.limited else ""
        return [self.name, self._shown(self.value), limit, state, self.note]

    def _shown(self, value: float) -> str:
        if self.unit == "%":
            return f"{value:.1%}"
        return f"{value:,.{0 if abs(value) >= 100 else 1}f} {self.unit}".rstrip()


@dataclass(frozen=True, slots=True)
class TargetsReport:
    """All figures of a benchmark; `about` describes the measurement and the machine."""

    figures: tuple[Target, ...]
    about: tuple[str, ...]

    def text(self) -> str:
        """A table."""
        lines = table(["", "measured", "limit", "", ""], [each.cells() for each in self.figures])
        limited = [each for each in self.figures if each.limited]
        met = sum(each.met for each in limited)
        score = f"{met} of {counted(len(limited), 'limit')} met"
        return "\n\n".join([lines, "\n".join(self.about), score])

    def as_json(self) -> dict[str, Any]:
        """Plain data with everything that `text` has."""
        return {
            "about": list(self.about),
            "figures": [asdict(each) | {"met": each.met} for each in self.figures],
        }
