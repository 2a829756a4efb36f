"""Report of `litmusfuzz cmin`: the kept tests and their coverage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from litmusfuzz.reports.tables import counted

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
    """

    kept: Mapping[str, tuple[str, ...]]
    least: int
    things: int

    @property
    def proved(self) -> bool:
        """True if no smaller set exists."""
        return len(self.kept) == self.least


def cover_text(cover: Cover, tests: int) -> str:
    """A line for each kept test, then their number."""
    lines = []
    for name, alone in cover.kept.items():
        more = f", and {len(alone) - _NAMED} more" if len(alone) > _NAMED else ""
        lines.append(f"{name}: {'; '.join(alone[:_NAMED])}{more}")
    fewest = "none smaller does" if cover.proved else f"at least {cover.least} are needed"
    kept = f"{len(cover.kept)} of {counted(tests, 'test')} kept"
    return "\n".join([*lines, f"{kept}, which show all {cover.things} things; {fewest}"])


def cover_json(cover: Cover, tests: int) -> dict[str, Any]:
    """Plain data for ``--json``."""
    return {
        "tests": tests,
        "things": cover.things,
        "kept": {name: list(alone) for name, alone in cover.kept.items()},
        "least": cover.least,
        "proved": cover.proved,
    }
