"""The kill table: which strategy kills which mutant, and after how many runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reports.text import counted, table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NEVER: Final = "-"


@dataclass(frozen=True, slots=True)
class Row:
    """An executor under each strategy.

    Parameters
    ----------
    name : str
    runs : mapping of str to (int or None)
        By strategy: the median over seeds of runs to the first kill; None if
        that is never.
    killed : bool
        Whether any strategy killed it with any seed.
    """

    name: str
    runs: Mapping[str, int | None]
    killed: bool

    @property
    def mutant(self) -> bool:
        """Whether it ought to be killed."""
        return self.name.startswith("mutant/")


def kill_table(rows: Sequence[Row], strategies: Sequence[str]) -> str:
    """An executor on each line, a column for each strategy."""
    lines = []
    for row in rows:
        runs = [NEVER if row.runs.get(s) is None else str(row.runs[s]) for s in strategies]
        verdict = "killed" if row.killed else "SURVIVED"
        if not row.mutant:
            verdict = "REPORTED" if row.killed else "sound"
        lines.append([row.name.removeprefix("mutant/"), *runs, verdict])
    return table(["runs to the first kill", *strategies, ""], lines)


def score(rows: Sequence[Row]) -> str:
    """The last line."""
    mutants = [row for row in rows if row.mutant]
    line = f"{sum(row.killed for row in mutants)} of {counted(len(mutants), 'mutant')} killed"
    reported = [row.name for row in rows if row.killed and not row.mutant]
    return line + (f"; reported though sound: {', '.join(reported)}" if reported else "")
