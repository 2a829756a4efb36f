"""A forbidden outcome in words, for whoever runs tests of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from litmusfuzz.corpus.outcome import nearest
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.reason import explain
from litmusfuzz.reports.text import violation

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Outcome
    from litmusfuzz.fuzz.campaign.judge import Judgement
    from litmusfuzz.oracles.model import Model
    from litmusfuzz.oracles.reason import Reason


@dataclass(frozen=True, slots=True)
class Explanation:
    """What was seen most often of what is forbidden, and what can be said of it.

    `nearest` is an allowed outcome, None if they could not be listed; `reason` None if
    it was not found in time.
    """

    outcome: Outcome
    nearest: Outcome | None
    reason: Reason | None
    lines: tuple[str, ...]


def told(test: LitmusTest, judgement: Judgement, model: Model, on: str) -> Explanation:
    """Tell what `on`, an executor, showed that is forbidden."""
    outcome, _ = judgement.forbidden[0]
    near = nearest(outcome, Explorer(test, model).allowed_outcomes().witnesses)
    reason = explain(test, model, outcome)
    lines = violation(judgement.forbidden, judgement.executions, on, near, model.name)
    if reason is not None and not outcome.torn:  # that is said already
        lines.append(f"  because   {reason}")
    return Explanation(outcome, near, reason, tuple(lines))
