"""The explorer's interchangeable threads: against the plain search, and sets derived by hand."""

from __future__ import annotations

import random
from itertools import permutations

import pytest
from helpers import share_of
from test_explorer import LIVE
from test_live_values import PLAIN

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.outcome import Outcome, Status, Verdict
from litmusfuzz.corpus.struct import replace
from litmusfuzz.oracles.explorer import Budget, Explorer, allowed_outcomes
from litmusfuzz.oracles.model import RFC

THREADS = (
    *(
        "r0=X; X={0}",
        "X={0}; r0=X",
        "X+={0}; r0=X",
        "r0=X; Y=r0; r1=Y",
        "r0=X; Y=r0+{0}",
        "Y={0}",
        "X={0}",
    ),
    *("Q!{0}", "r0=Q?", "r0=Q?; X=r0", "r0=Q?; Q!r0", "r0=size Q", "X={0}; Q!{0}", "Q!{0}; r0=X"),
    *("lock M; r0=X; X=r0+{0}; unlock M", "lock M; X={0}; unlock M; r0=X", "r0=Y; Q!r0; r1=Q?"),
)


def random_threads(rng: random.Random) -> str:
    """Two or three sorts of threads, some of them several times, with equal or other constants."""
    parts = []
    for text in rng.sample(THREADS, rng.randint(2, 3)):
        values = rng.choice(((1, 1, 1), (1, 2, 3), (1, 1, 2)))
        parts += [text.format(value) for value in values[: rng.randint(1, 3)]]
    parts = parts[:5]
    rng.shuffle(parts)
    named = (part.replace("r0", f"r{i}0").replace("r1", f"r{i}1") for i, part in enumerate(parts))
    return " || ".join(named)


@pytest.mark.parametrize("seed", share_of(range(0, 2_000, 50), every=8))
def test_the_search_with_threads_in_one_order_agrees(seed: int) -> None:
    for number in range(seed, seed + 50):
        rng = random.Random(number)
        test = litmus(random_threads(rng), queues={"Q": rng.randint(1, 3)})
        test = replace(test, observe=tuple(n for n in test.observe if rng.random() < 0.7))
        plain, ordered = (Explorer(test, RFC, each).allowed_outcomes() for each in (PLAIN, LIVE))
        assert ordered.complete or not plain.complete
        if plain.complete and len(plain.witnesses) <= 5_000:
            assert set(ordered.witnesses) == set(plain.witnesses), number


def test_eight_producers_and_eight_consumers() -> None:
    """Any consumer takes any element: all bijections, and the queue is empty."""
    ends = [f"Q!{i}" for i in range(1, 9)] + [f"r{i}=Q?" for i in range(8)]
    test = litmus(" || ".join(ends), queues={"Q": 8})
    found = allowed_outcomes(test, RFC)
    assert found.complete
    # As many as there are bijections, and each of them one.
    assert len(found.witnesses) == 40_320
    seen = [outcome.plain for outcome in found.witnesses]
    assert all(sorted(each[f"r{i}"] for i in range(8)) == list(range(1, 9)) for each in seen)
    assert all(each["Q"] == [] for each in seen)
    judge = Explorer(test, RFC)
    values = {f"r{i}": (i + 1,) for i in range(8)} | {"Q": ()}
    assert judge.judge(Outcome.of(test, values)) is Verdict.ALLOWED
    assert judge.judge(Outcome.of(test, values | {"r0": (2,)})) is Verdict.FORBIDDEN


def test_what_consumers_pass_on() -> None:
    """X is what the consumer took whose write is the last: any of the three."""
    test = litmus("Q!5 || Q!5 || Q!7 || r0=Q?; X=r0 || r1=Q?; X=r1 || r2=Q?; X=r2", queues={"Q": 3})
    found = Explorer(test, RFC, LIVE).allowed_outcomes()
    seen = {tuple(o.plain[name] for name in ("r0", "r1", "r2", "X")) for o in found.witnesses}
    assert seen == {(*each, x) for each in permutations((5, 5, 7)) for x in (5, 7)}


def test_more_consumers_than_elements_block() -> None:
    """The run does not end; X is whatever a consumer wrote last, and each of two wrote."""
    test = litmus("Q!1 || Q!2 || r0=Q?; X=r0 || r1=Q?; X=r1 || r2=Q?; X=r2", queues={"Q": 1})
    found = Explorer(test, RFC, LIVE).allowed_outcomes()
    wanted = {Outcome.of(test, {"X": (x,), "Q": ()}, Status.BLOCKED) for x in (1, 2)}
    assert set(found.witnesses) == wanted


def test_threads_that_compute_with_their_constants_are_not_interchangeable() -> None:
    """X=2*X and X=3*X in any order give 6; each alone may be lost."""
    test = litmus("r0=X; X=r0*2 || r1=X; X=r1*3 || X=1")
    sets = [set(Explorer(test, RFC, each).allowed_outcomes().witnesses) for each in (PLAIN, LIVE)]
    assert sets[0] == sets[1]
    assert {o.plain["X"] for o in sets[1]} == {0, 1, 2, 3, 6}


def test_over_budget_the_outcomes_are_some_of_the_set() -> None:
    ends = [f"Q!{i}" for i in range(1, 6)] + [f"r{i}=Q?" for i in range(5)]
    test = litmus(" || ".join(ends), queues={"Q": 5})
    whole = set(allowed_outcomes(test, RFC).witnesses)
    for states in (1, 10, 50):
        part = Explorer(test, RFC, Budget(states, plain=0)).allowed_outcomes()
        assert not part.complete
        assert set(part.witnesses) <= whole


def test_threads_on_other_resources_are_not_interchangeable() -> None:
    test = litmus("X=1 || Y=2 || Q!3 || Q!4 || r0=Q? || r1=Q?", queues={"Q": 1})
    found = Explorer(test, RFC, LIVE).allowed_outcomes()
    seen = {tuple(o.plain[name] for name in ("X", "Y", "r0", "r1")) for o in found.witnesses}
    assert seen == {(1, 2, 3, 4), (1, 2, 4, 3)}
