"""Report of `litmusfuzz doctor`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from litmusfuzz.reports.tables import counted, table

if TYPE_CHECKING:
    from collections.abc import Sequence


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


def works(checks: Sequence[Check]) -> bool:
    """True if all basic checks passed."""
    return all(check.good for check in checks if check.basic)


def doctor_text(checks: Sequence[Check]) -> str:
    """A line for each check, then instructions, then the verdict."""
    lines = [table(["", "", ""], [[each.what, each.word, each.says] for each in checks]).lstrip()]
    missing = [each for each in checks if not each.good]
    lines += [f"{each.what}: {each.get}" for each in missing if each.get]
    verdict = "the basics work" if works(checks) else "the basics do not work"
    lines.append(f"{verdict}; {counted(len(missing), 'thing')} missing")
    return "\n".join(lines)


def doctor_json(checks: Sequence[Check]) -> dict[str, Any]:
    """Plain data for ``--json``."""
    return {"works": works(checks), "checks": [asdict(each) for each in checks]}
