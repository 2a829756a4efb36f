"""Report of `litmusfuzz bench clusters`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from litmusfuzz.reports.tables import table

if TYPE_CHECKING:
    from litmusfuzz.reports.bench import Figure
    from litmusfuzz.reports.speed import Speed


@dataclass(frozen=True, slots=True)
class ClustersReport:
    """All figures of the benchmark; `about` describes the measurement and the machine."""

    figures: tuple[Figure, ...]
    about: tuple[str, ...]
    repeats: int
    speeds: tuple[Speed, ...] = ()
    """Times of the executor over JAX, on the clock."""

    def text(self) -> str:
        """A table."""
        header = ["", "median", "worst", "limit", "load", "unknown", ""]
        how = f"CPU times, best of {self.repeats}; of outcomes the median."
        lines = table(header, [figure.cells() for figure in self.figures])
        speed_header = ["", "threads", "copies", "best", "", "limit", "elsewhere", ""]
        speeds = table(speed_header, [speed.cells() for speed in self.speeds])
        return "\n\n".join([lines, speeds, "\n".join([how, *self.about])])

    def as_json(self) -> dict[str, Any]:
        """Plain data with everything that `text` has."""
        return {
            "repeats": self.repeats,
            "about": list(self.about),
            "figures": [asdict(figure) | {"met": figure.met} for figure in self.figures],
            "speeds": [asdict(speed) | {"met": speed.met} for speed in self.speeds],
        }
