"""Report of `litmusfuzz doctor`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from litmusfuzz.reports.tables import counted, table


@dataclass(frozen=True, slots=True)
class Check:
    """One check of the environment.

    Parameters
    ----------
    what : str
    says : str
        A version or path; or the problem.
    get : str
        Instruction for a check that failed.
    good : bool
    basic : bool
        True if nothing works without it.
    """

    what: str
    says: str
    get: str = ""
    good: bool = True
    basic: bool = False

    @property
    def word(self) -> str:
        """``ok``, ``missing``, or ``BROKEN`` if it is basic."""
        return "ok" if self.good else "BROKEN" if self.basic else "missing"


@dataclass(frozen=True, slots=True)
class DoctorReport:
    """All checks of the environment."""

    checks: tuple[Check, ...]

    @property
    def works(self) -> bool:
        """True if all basic checks passed."""
        return all(check.good for check in self.checks if check.basic)

    def text(self) -> str:
        """A line for each check, then instructions, then the verdict."""
        rows = [[each.what, each.word, each.says] for each in self.checks]
        missing = [each for each in self.checks if not each.good]
        lines = [table(["", "", ""], rows).lstrip()]
        lines += [f"{each.what}: {each.get}" for each in missing if each.get]
        verdict = "the basics work" if self.works else "the basics do not work"
        return "\n".join([*lines, f"{verdict}; {counted(len(missing), 'thing')} missing"])

    def as_json(self) -> dict[str, Any]:
        """Plain data with everything that `text` has."""
        return {"works": self.works} | asdict(self)
