"""What an executor shows when it is made to follow one total order."""

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
    """One order: `witness` says which and what it yields, `seen` what it did yield.

    `seen` is None where the executor did not come to its end, for `problem`.
    """

    test: LitmusTest
    executor: str
    config: str
    witness: Witnessed
    seen: Outcome | None
    problem: str = ""

    @property
    def exit_code(self) -> int:
        """As of the command line: 0 as it should be, 1 another outcome, 3 not decided."""
        if self.seen is None:
            return 3
        return 0 if self.seen == self.witness.outcome else 1

    def text(self) -> str:
        """The order, one event a line, then what it yielded."""
        where = f"{self.executor}/{self.config}"
        lines = [f"forced on {where}, a total order under {self.witness.model}:"]
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
        """Plain data, with everything that the screen shows."""
        return {
            "test": self.test.name,
            "executor": self.executor,
            "configuration": self.config,
            "model": self.witness.model,
            "events": list(self.witness.events),
            "expected": self.witness.outcome.plain,
            "outcome": None if self.seen is None else self.seen.plain,
            "problem": self.problem,
            "exit_code": self.exit_code,
        }
