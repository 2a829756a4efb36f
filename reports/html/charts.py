"""Charts of one number over time, as points of SVG lines."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from litmusfuzz.reports.report import Moment

WIDTH: Final = 300
HEIGHT: Final = 60
MOST_POINTS: Final = 240
"""A chart of more points keeps every second, third, ... of them."""


@dataclass(frozen=True, slots=True)
class Chart:
    """One line: title, values, and their places on the time axis."""

    title: str
    values: tuple[float, ...]
    places: tuple[float, ...]
    """Position of each value on the axis, in any unit that grows."""

    @property
    def last(self) -> float:
        """The newest value."""
        return self.values[-1]

    @property
    def most(self) -> float:
        """The largest value, which touches the upper edge."""
        return max(self.values)

    @property
    def points(self) -> str:
        """The `points` of an SVG polyline, from zero up."""
        first, span = self.places[0], (self.places[-1] - self.places[0]) or 1
        top = self.most or 1
        return " ".join(
            f"{(place - first) / span * WIDTH:.0f},{HEIGHT - value / top * (HEIGHT - 4):.1f}"
            for place, value in zip(self.places, self.values, strict=True)
        )


def over_time(moments: Sequence[Moment]) -> list[Chart]:
    """Throughput, findings and disk space over a campaign; none for a single moment."""
    every = 1 + len(moments) // MOST_POINTS
    # The last moment is kept, whatever the step.
    kept = [*moments[:-1:every], *moments[-1:]]
    if len(kept) < 2:
        return []
    pairs = list(pairwise(kept))
    at = tuple(float(each.spent_s) for each in kept)

    def rate(number: str, seconds: int) -> tuple[float, ...]:
        rates = [
            (getattr(b, number) - getattr(a, number)) * seconds / max(1, b.spent_s - a.spent_s)
            for a, b in pairs
        ]
        return (rates[0], *rates)

    return [
        Chart("graphs a minute", rate("graphs", 60), at),
        Chart("outcomes a second", rate("outcomes", 1), at),
        Chart("findings", tuple(float(each.findings) for each in kept), at),
        Chart("bytes on disk", tuple(float(each.disk_bytes) for each in kept), at),
    ]
