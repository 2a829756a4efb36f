"""Report of `litmusfuzz cmin`: the kept tests and their coverage."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from litmusfuzz.reports.tables import counted, one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

_NAMED = 3


@dataclass(frozen=True, slots=True)
class Cover:
    """Tests that together have the coverage of all.

    Parameters
    ----------
    kept : mapping of str to tuple of str
        By test, the coverage that no other kept test has.
    least : int
        Lower bound on the number of tests.
    things : int
        Number of covered things.
    tests : int
        Number of all tests.
    """

    kept: Mapping[str, tuple[str, ...]]
    least: int
    things: int
    tests: int

    @property
    def proved(self) -> bool:
        """True if no smaller set exists."""
        return len(self.kept) == self.least

    def text(self) -> str:
        """A line for each kept test, then their number."""
        lines = []
        for name, alone in self.kept.items():
            more = f", and {len(alone) - _NAMED} more" if len(alone) > _NAMED else ""
            lines.append(f"{one_line(name)}: {'; '.join(alone[:_NAMED])}{more}")
        fewest = "none smaller does" if self.proved else f"at least {self.least} are needed"
        kept = f"{len(self.kept)} of {counted(self.tests, 'test')} kept"
        return "\n".join([*lines, f"{kept}, which show all {self.things} things; {fewest}"])

    def as_json(self) -> dict[str, Any]:
        """Plain data with everything that `text` has."""
        return asdict(self) | {"proved": self.proved}
