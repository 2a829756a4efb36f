"""Accumulators: the oracles agree on random tests, and bad input is refused.

The exact sets are in `corpus/litmus/accumulator-*.yaml` and `sync-training*.yaml`, by hand.
"""

from __future__ import annotations

import os
import random

import pytest

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.ops import MalformedTest
from litmusfuzz.corpus.outcome import Outcome, Status, Verdict
from litmusfuzz.fuzz.generators import accumulators
from litmusfuzz.fuzz.support import EVERYTHING
from litmusfuzz.oracles import axiomatic, explorer, reference
from litmusfuzz.oracles.bounds import count_all
from litmusfuzz.oracles.model import RFC

COUNT = 600 if os.environ.get("LITMUSFUZZ_WHOLE") else 12
ORDERS = 20_000 if os.environ.get("LITMUSFUZZ_WHOLE") else 500
"""Total orders that the reference oracle visits, at most."""


def _perturbed(outcome: Outcome, rng: random.Random) -> list[Outcome]:
    """The outcome with another value in place of one of its ints."""
    found = []
    for name, value in outcome.values:
        if isinstance(value, tuple) and value and isinstance(value[0], int):
            other = tuple(each + rng.choice((-1, 1, 2)) for each in value)
            pairs = tuple((n, other if n == name else v) for n, v in outcome.values)
            found.append(Outcome(pairs, outcome.status))
    return rng.sample(found, min(2, len(found)))


def test_oracles_agree() -> None:
    compared = 0
    for seed in range(COUNT):
        rng = random.Random(seed)
        test = accumulators.generate(rng, EVERYTHING)
        whole = explorer.Explorer(test, RFC)
        found = whole.allowed_outcomes()
        assert found.complete
        allowed = set(found.witnesses)
        if count_all(test, ORDERS) < ORDERS:
            assert set(reference.allowed_outcomes(test, RFC).witnesses) == allowed, seed
            compared += 1
        for outcome in rng.sample(sorted(allowed, key=str), min(2, len(allowed))):
            assert axiomatic.judge(test, RFC, outcome) is not Verdict.FORBIDDEN, (seed, outcome)
            for other in _perturbed(outcome, rng):
                verdict = Verdict.ALLOWED if other in allowed else Verdict.FORBIDDEN
                assert whole.judge(other) is verdict, (seed, other)
                assert axiomatic.judge(test, RFC, other) in (verdict, Verdict.UNKNOWN), (
                    seed,
                    other,
                )
    assert compared >= COUNT // 3


def test_what_is_not_seen_of_a_blocked_state_matches_anything() -> None:
    """The take behind the first one waits, whether or not the gradient is still there."""
    test = litmus("A<<1 || r0=A>>2 || r1=A>>1", dtype="float32", accumulators="A")
    for count, verdict in ((0, Verdict.ALLOWED), (1, Verdict.ALLOWED), (2, Verdict.FORBIDDEN)):
        outcome = Outcome((("A.sum", None), ("A.count", (count,))), Status.BLOCKED)
        assert explorer.Explorer(test, RFC).judge(outcome) is verdict
        assert axiomatic.judge(test, RFC, outcome) is verdict
    unseen = Outcome((("A.sum", (1,)), ("A.count", None)), Status.BLOCKED)
    assert axiomatic.judge(test, RFC, unseen) is Verdict.ALLOWED


@pytest.mark.parametrize(
    ("text", "dtype", "message"),
    [
        ("A<<1", "int32", "dtype must be float32, float64"),
        ("r0=A>>1; X=1; A<<1 at r0", "float32", "local_step must be int64"),
        ("B<<1", "float32", "no accumulator B"),
    ],
)
def test_bad_input_is_refused(text: str, dtype: str, message: str) -> None:
    with pytest.raises(MalformedTest, match=message):
        litmus(text, dtype=dtype, accumulators="A")


def test_a_run_may_not_show_a_node_under_the_name_of_a_sum() -> None:
    with pytest.raises(MalformedTest, match="a node and an accumulator's"):
        litmus(
            "A<<1; sum=X ||| Y=1",
            dtype="float32",
            accumulators="A",
            client="A:g0; b:g1",
        )
