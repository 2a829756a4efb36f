"""The explorer's search over live values: against the plain search, and sets derived by hand.

`test_explorer.py` compares it with the reference on smaller tests.
"""

from __future__ import annotations

import random
from itertools import chain, combinations

import pytest
from helpers import share_of
from test_explorer import LIVE, nearby, replays

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.outcome import Outcome, Verdict
from litmusfuzz.corpus.struct import replace
from litmusfuzz.oracles.errors import ValueTooLarge
from litmusfuzz.oracles.explorer import NEVER, Budget, Explorer, allowed_outcomes
from litmusfuzz.oracles.model import EXECUTOR, RFC

PLAIN = Budget(plain=NEVER)


def random_chains(rng: random.Random) -> str:
    """Short chains of reads, writes, updates, arithmetic and clusters, in the short notation."""
    parts = []
    number = 0
    for each in range(rng.randint(2, 4)):
        registers: list[str] = []
        part = []
        for _ in range(rng.randint(1, 4)):
            number += 1
            name = rng.choice("XXYZ")
            value = rng.choice((*registers, str(number)))
            match rng.randrange(5):
                case 0 | 1:
                    registers.append(f"r{each}{number}")
                    part.append(f"{registers[-1]}={name}")
                case 2:
                    part.append(f"{name}={value}")
                case 3:
                    part.append(f"{name}={value}{rng.choice('+-')}{number}")
                case _:
                    part.append(f"{name}{rng.choice('+-')}={value}")
        if len(part) > 1 and rng.random() < 0.3:
            if registers:
                part.append(f"if {registers[-1]}<5 {{{rng.choice('XYZ')}={number}}}")
            part = [f"cluster {{{'; '.join(part)}}}"]
        parts.append("; ".join(part))
    return " || ".join(parts)


@pytest.mark.parametrize("seed", share_of(range(0, 4_000, 50), every=10))
def test_the_two_searches_agree(seed: int) -> None:
    """On sets, on verdicts, and on witnesses, with some reads unobserved."""
    for number in range(seed, seed + 50):
        rng = random.Random(number)
        test = litmus(random_chains(rng))
        kept = [name for name in test.observe if rng.random() < 0.4]
        test = replace(test, observe=tuple(kept))
        for model in (RFC, EXECUTOR):
            plain, live = Explorer(test, model, PLAIN), Explorer(test, model, LIVE)
            wanted, found = plain.allowed_outcomes(), live.allowed_outcomes()
            if not wanted.complete or len(wanted.witnesses) > 5_000:
                continue
            assert found.complete
            assert set(found.witnesses) == set(wanted.witnesses), number
            outcomes = sorted(wanted.witnesses, key=str)
            asked = rng.sample(outcomes, min(len(outcomes), 3))
            for outcome in chain(asked, *(nearby(each, outcomes, rng) for each in asked)):
                assert live.judge(outcome) is wanted.judge(outcome), (number, str(outcome))
            witness = live.witness(asked[0])
            assert witness is not None
            assert replays(test, model, witness, asked[0])


@pytest.mark.parametrize("added", [[1, 2, 3, 4, 5, 6, 7, 8], [1 << i for i in range(8)]])
def test_eight_unordered_increments(added: list[int]) -> None:
    """X is the sum of any of them but none.

    Those whose reads all come before any write, and whose writes come before that of the first
    of the others, are lost; the others come one after another. Nothing else is possible: the
    last write is that of a chain, each of whose reads saw the write before it.
    """
    test = litmus(" || ".join(f"X+={each}" for each in added))
    found = allowed_outcomes(test, RFC)
    assert found.complete
    sums = {sum(some) for n in range(1, 9) for some in combinations(added, n)}
    assert {outcome.plain["X"] for outcome in found.witnesses} == sums
    judge = Explorer(test, RFC)
    for value in (*random.Random(1).sample(sorted(sums), 3), sum(added)):
        outcome = Outcome.of(test, {"X": (value,)})
        assert judge.judge(outcome) is Verdict.ALLOWED
        witness = judge.witness(outcome)
        assert witness is not None
        assert replays(test, RFC, witness, outcome)
    for value in (0, sum(added) + 1):
        assert judge.judge(Outcome.of(test, {"X": (value,)})) is Verdict.FORBIDDEN


def test_a_read_sees_what_increments_left() -> None:
    """A fourth chain reads X twice; the second sees no fewer of a chain of increments."""
    test = litmus("X+=1 || X+=2 || X+=4 || r0=X; r1=X")
    sets = [set(Explorer(test, RFC, each).allowed_outcomes().witnesses) for each in (PLAIN, LIVE)]
    assert sets[0] == sets[1]
    seen = {(o.plain["r0"], o.plain["r1"], o.plain["X"]) for o in sets[1]}
    assert (7, 7, 7) in seen
    assert (4, 1, 3) in seen  # X+=2 saw 1, which was written over 4
    assert {each for each in seen if each[0] == 7} == {(7, 7, 7)}


def test_over_budget_nothing_is_wrongly_allowed_or_forbidden() -> None:
    test = litmus(" || ".join(f"X+={1 << i}" for i in range(4)))
    outcomes = [Outcome.of(test, {"X": (value,)}) for value in range(17)]
    verdicts = set()
    for states in (1, 2, 5, 20, 50, 100, 200, 400):
        judge = Explorer(test, RFC, Budget(states, plain=0))
        part = judge.allowed_outcomes()
        for value, outcome in enumerate(outcomes):
            right = Verdict.ALLOWED if 1 <= value <= 15 else Verdict.FORBIDDEN
            found = judge.judge(outcome)
            verdicts.add(found)
            assert found in (right, Verdict.UNKNOWN)
            assert part.judge(outcome) in (right, Verdict.UNKNOWN)
    assert verdicts == {Verdict.ALLOWED, Verdict.FORBIDDEN, Verdict.UNKNOWN}


def test_a_value_that_is_too_large_is_refused_though_no_outcome_depends_on_it() -> None:
    test = replace(litmus("X=16777215; r0=X; X=r0+1; X=0"), observe=())
    for budget in (PLAIN, LIVE):
        with pytest.raises(ValueTooLarge, match="computes 16777216"):
            Explorer(test, RFC, budget).allowed_outcomes()
