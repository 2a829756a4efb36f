"""Histories of writes: they rule out final values where z3 gives up, and no allowed one."""

from __future__ import annotations

import random

from test_live_values import random_chains

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.outcome import Outcome, Verdict
from litmusfuzz.corpus.struct import replace
from litmusfuzz.oracles.axiomatic import Axiomatic, Question
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.histories import unreachable
from litmusfuzz.oracles.model import RFC


def test_unread_increments() -> None:
    """Any sum but 0 (`test_eight_unordered_increments`), however many there are."""
    for count in (7, 8):
        test = litmus(" || ".join(f"X+={1 << number}" for number in range(count)))
        judge = Axiomatic(test, RFC)
        for value in (1, 5, (1 << count) - 1):
            assert judge.judge(Outcome.of(test, {"X": (value,)})) is Verdict.ALLOWED
        for value in (0, 1 << count):
            assert judge.judge(Outcome.of(test, {"X": (value,)})) is Verdict.FORBIDDEN


def ruled_out(test, outcome: Outcome) -> bool:
    (case,) = Axiomatic(test, RFC).cases(Question.of(test, outcome))
    return unreachable(case, 1_000)


def test_no_allowed_outcome_is_ruled_out() -> None:
    """On random tests, observed or not; of the changed final values, many are."""
    allowed = forbidden = found = 0
    for seed in range(120):
        rng = random.Random(seed)
        test = litmus(random_chains(rng))
        test = replace(test, observe=tuple(n for n in test.observe if rng.random() < 0.3))
        judge = Explorer(test, RFC)
        outcomes = sorted(judge.allowed_outcomes().witnesses, key=str)
        for outcome in rng.sample(outcomes, min(5, len(outcomes))):
            assert not ruled_out(test, outcome), seed
            allowed += 1
            values = dict(outcome.values)
            values["X"] = (rng.randint(-5, 40),)
            changed = Outcome.of(test, values)
            if "X" in test.names and judge.judge(changed) is Verdict.FORBIDDEN:
                forbidden += 1
                found += ruled_out(test, changed)
    assert allowed > 200
    assert found > 50
    assert found < forbidden  # they look at little of the order


def test_an_order_that_always_holds_is_looked_at() -> None:
    """The write of r0+1 is never the last, and the product sees it or a later write of 0."""
    test = replace(litmus("r0=X; X=r0+1; r1=X; X=r1*2 || X=0"), observe=())
    values = {o.plain["X"] for o in Explorer(test, RFC).allowed_outcomes().witnesses}
    assert values == {0, 2}
    assert ruled_out(test, Outcome.of(test, {"X": (1,)}))
    assert ruled_out(test, Outcome.of(test, {"X": (3,)}))
