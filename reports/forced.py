"""Report of `litmusfuzz force` on one outcome."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from litmusfuzz.reports.allowed import ended_as, numbered

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Outcome
    from litmusfuzz.reports.allowed import Witnessed


@dataclass(frozen=True, slots=True)
class ForcedReport:
    """One order and its outcome: `witness` has the expected outcome, `seen` the observed one.

    `seen` is None if the executor did not follow the order to its end, because of `problem`.
    """

    test: LitmusTest
    executor: str
    config: str
    judged_by: str
    """The memory model that allows the order, and why it is that one."""
    witness: Witnessed
    seen: Outcome | None
    problem: str = ""

    @property
    def exit_code(self) -> int:
        """Exit code of the command: 0 as expected, 1 another outcome, 3 undecided."""
        if self.seen is None:
            return 3
        return 0 if self.seen == self.witness.outcome else 1

    def text(self) -> str:
        """The order, one event a line, then its outcome."""
        where = f"{self.executor}/{self.config}"
        lines = [self.judged_by]
        lines.append(f"forced on {where}, a total order under {self.witness.model}:")
        lines += numbered(self.witness.events)
        if self.seen is None:
            lines.append(f"which should yield  {ended_as(self.witness.outcome)}")
            lines.append(f"{where} does not follow it: {self.problem}")
        else:
            lines.append(f"which yields  {ended_as(self.seen)}")
            if self.exit_code:
                should = ended_as(self.witness.outcome)
                lines.append(f"FORBIDDEN: this order yields  {should}")
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        """Plain data with everything that `text` has."""
        return {
            "test": self.test.name,
            "executor": self.executor,
            "configuration": self.config,
            "model": self.witness.model,
            "judged_by": self.judged_by,
            "events": list(self.witness.events),
            "expected": self.witness.outcome.plain,
            "outcome": None if self.seen is None else self.seen.plain,
            "problem": self.problem,
            "exit_code": self.exit_code,
        }
