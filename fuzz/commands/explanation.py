"""Explains a forbidden outcome in words, for the pytest plugin and `litmusfuzz.fuzz.testing`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from litmusfuzz.corpus.outcome import Verdict, nearest
from litmusfuzz.oracles.errors import NoAllowedSet
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import RFC
from litmusfuzz.oracles.reason import explain
from litmusfuzz.reports.text import violation

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Outcome
    from litmusfuzz.fuzz.finding.judge import Judgement
    from litmusfuzz.fuzz.finding.judging_model import JudgingModel
    from litmusfuzz.oracles.model import Model
    from litmusfuzz.oracles.reason import Reason


@dataclass(frozen=True, slots=True)
class Explanation:
    """The most frequent forbidden outcome, and why it is forbidden.

    `nearest` is an allowed outcome, None if the allowed outcomes could not be listed; `reason` is
    None if it was not found in time.
    """

    outcome: Outcome
    nearest: Outcome | None
    reason: Reason | None
    lines: tuple[str, ...]


def explain_violation(
    test: LitmusTest, judgement: Judgement, judging: JudgingModel, on: str
) -> Explanation:
    """Explain the forbidden outcomes that the executor `on` showed; first, by which model."""
    outcome, _ = judgement.forbidden[0]
    model = judging.model
    near = nearest(outcome, Explorer(test, model).allowed_outcomes().witnesses)
    reason = explain(test, model, outcome)
    lines = [f"  {judging}"]
    rules = None if reason is None else reason.rules
    lines += violation(judgement.forbidden, judgement.executions, on, near, model.name, rules)
    if reason is not None and not outcome.torn:  # the lines say so already
        lines.append(f"  because   {reason}")
    return Explanation(outcome, near, reason, tuple(lines))


def broken_rules(
    test: LitmusTest, model: Model, outcome: Outcome
) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """Rules that forbid an outcome, and the weaker models that allow it.

    The rules are empty where the RFC's own forbid it, and None if they are not known.
    """
    if model == RFC:
        return (), ()
    try:
        by_rfc = Explorer(test, RFC).judge(outcome)
    except NoAllowedSet:  # of the RFC; about gradients only one model says something
        return None, ()
    if by_rfc is Verdict.FORBIDDEN:
        return (), ()
    reason = explain(test, model, outcome)
    weaker = (RFC.name,) if by_rfc is Verdict.ALLOWED else ()
    return None if reason is None else reason.rules, weaker
