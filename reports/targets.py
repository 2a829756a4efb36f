"""What a bench has measured, beside what we promise: a line for each figure."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from litmusfuzz.reports.text import counted, table


@dataclass(frozen=True, slots=True)
class Target:
    """One figure.

    `least` and `most` are what we promise, if anything. A `share` is shown in percent;
    others have a `unit`.
    """

    name: str
    value: float
    unit: str = ""
    least: float | None = None
    most: float | None = None
    note: str = ""

    @property
    def promised(self) -> bool:
        """Whether anything is."""
        return self.least is not None or self.most is not None

    @property
    def met(self) -> bool:
        """Whether it is kept, where there is one."""
        low = self.least is None or self.value >= self.least
        return low and (self.most is None or self.value <= self.most)

    def cells(self) -> list[str]:
        """One line of the table."""
        limit = "-"
        if self.least is not None:
            limit = f">= {self._shown(self.least)}"
        if self.most is not None:
            limit = f"<= {self._shown(self.most)}"
        said = ("met" if self.met else "MISSED") if self.promised else ""
        return [self.name, self._shown(self.value), limit, said, self.note]

    def _shown(self, value: float) -> str:
        if self.unit == "%":
            return f"{value:.1%}"
        return f"{value:,.{0 if abs(value) >= 100 else 1}f} {self.unit}".rstrip()


@dataclass(frozen=True, slots=True)
class TargetsReport:
    """A whole bench; `about` says in words what was measured, and on what."""

    figures: tuple[Target, ...]
    about: tuple[str, ...]

    def text(self) -> str:
        """A table."""
        lines = table(["", "measured", "limit", "", ""], [each.cells() for each in self.figures])
        promised = [each for each in self.figures if each.promised]
        kept = sum(each.met for each in promised)
        score = f"{kept} of {counted(len(promised), 'limit')} met"
        return "\n\n".join([lines, "\n".join(self.about), score])

    def as_json(self) -> dict[str, Any]:
        """Plain data, with everything that the screen shows."""
        return {
            "about": list(self.about),
            "figures": [asdict(each) | {"met": each.met} for each in self.figures],
        }
