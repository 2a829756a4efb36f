"""Report of the self-test: killed mutants, the family of the killing test, and the time."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from litmusfuzz.reports.tables import counted, table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from litmusfuzz.reports.events import Kill


@dataclass(slots=True)
class Effort:
    """Costs of a setup or of a family, and the number of mutants that it killed."""

    runs: int = 0
    seconds: float = 0.0
    kills: int = 0


@dataclass(frozen=True, slots=True)
class Selftest:
    """Result for each mutant, or for each control.

    Parameters
    ----------
    kills : tuple of Kill
        A killed mutant has a time: seconds of a worker without the start of a framework.
    setups, families : mapping of str to Effort
    seconds : float
        Time that the self-test took.
    asked_s : float
        Limit on that time.
    seed : int
    died : mapping of str to int
        By mutant, the number of crashes and hangs of its worker.
    unavailable : mapping of str to str
        Mutants that cannot run here, with the reason.
    left_out : mapping of str to str
        Mutants of a device that this machine does not have, with the reason. They are not in
        `kills`.
    interrupted : bool
    """

    kills: tuple[Kill, ...]
    setups: Mapping[str, Effort]
    families: Mapping[str, Effort]
    seconds: float
    asked_s: float
    seed: int
    died: Mapping[str, int] = field(default_factory=dict)
    unavailable: Mapping[str, str] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    interrupted: bool = False

    @property
    def killed(self) -> int:
        """Number of killed mutants."""
        return sum(kill.seconds is not None for kill in self.kills)

    @property
    def score(self) -> float:
        """Share of killed mutants."""
        return self.killed / len(self.kills) if self.kills else 0.0

    def as_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        return asdict(self) | {"killed": self.killed, "score": round(self.score, 4)}


def kill_table(found: Selftest) -> str:
    """A mutant on each line, whoever was killed last first; then run setups and families."""
    lines = []
    never = float("inf")
    for kill in sorted(found.kills, key=lambda k: -(never if k.seconds is None else k.seconds)):
        alive = found.unavailable.get(kill.mutant, "-")
        took = alive if kill.seconds is None else f"{kill.seconds:.2f} s"
        by = [kill.test, kill.family, kill.setup]
        lines.append([kill.mutant, kill.executor, took, str(kill.graphs), *by])
    by = ["killed by", "family", "run setup"]
    parts = [table(["mutant", "executor", "killed in", "tests", *by], lines)]
    for title, efforts in (("run setup", found.setups), ("family", found.families)):
        rows = [
            [name, str(each.kills), str(each.runs), f"{each.seconds:.1f} s"]
            for name, each in sorted(efforts.items(), key=lambda item: -item[1].kills)
        ]
        parts.append(table([title, "kills", "runs", "time"], rows))
    return "\n\n".join(parts)


def score_line(found: Selftest, *, control: bool) -> str:
    """The last line of the report."""
    took = f"in {found.seconds:.0f} of {found.asked_s:.0f} s"
    took += ", when it was interrupted" if found.interrupted else ""
    for why, count in Counter(found.left_out.values()).items():
        took += f"; {count} left out: {why}"
    if control:
        wrong = [kill.mutant for kill in found.kills if kill.seconds is not None]
        total = counted(len(found.kills), "control")
        return f"{found.killed} of {total} reported {took}" + (
            f": {', '.join(wrong)}" if wrong else ""
        )
    left = [kill.mutant for kill in found.kills if kill.seconds is None]
    line = f"{found.killed} of {counted(len(found.kills), 'mutant')} killed {took}"
    so_far = " so far" if found.interrupted else ""
    return line + (f"; not killed{so_far}: {', '.join(left)}" if left else "")
