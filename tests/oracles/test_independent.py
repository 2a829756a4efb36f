"""The oracles against an enumerator that was written from semantics.md alone.

``LITMUSFUZZ_WHOLE=1`` compares every test of the corpus, and two thousand mixtures.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from agreement import says_something
from helpers import LITMUS, corpus_entry, for_each, share_of
from independent import SUPPORTED, TooManyStates, allowed_outcomes
from mixtures import mixture

from litmusfuzz.corpus.outcome import Outcome, Status, Verdict
from litmusfuzz.corpus.textfile import Digest, Entry, dumps
from litmusfuzz.oracles import explorer, reference
from litmusfuzz.oracles.axiomatic import Axiomatic
from litmusfuzz.oracles.model import GUARANTEES, MODELS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from pathlib import Path

    from litmusfuzz.corpus.model import LitmusTest


def supported(path: Path) -> bool:
    """True if the enumerator handles a test of the corpus."""
    test = corpus_entry(path).test
    return not test.clusters and {node.op for node in test.nodes} <= SUPPORTED


STATES = 1_500
"""Of a test in one model, over all choices of strictness."""
ORDERS = 2_000


@for_each("path", [path for path in share_of(LITMUS, 12) if supported(path)], groups=4)
def test_the_enumerator_gives_the_sets_of_the_corpus(path) -> None:
    entry = corpus_entry(path)
    for name in MODELS:
        expected = entry.allowed.get(name, entry.allowed["rfc"])
        try:
            found = allowed_outcomes(entry.test, name, STATES)
        except TooManyStates:
            continue
        if isinstance(expected, Digest):
            assert expected.matches(found)
        else:
            assert found == expected


@pytest.mark.parametrize("seed", share_of(range(0, 1_000, 10), every=20))
def test_every_oracle_gives_the_sets_of_the_enumerator(seed: int) -> None:
    assert compared(range(seed, seed + 10)) >= 3  # the other tests have too many states


@pytest.mark.parametrize("seed", share_of(range(0, 1_000, 10), every=50))
def test_every_oracle_gives_the_sets_of_the_enumerator_with_accumulators(seed: int) -> None:
    assert compared(range(seed, seed + 10), ("A", "B")[: 1 + seed % 20 // 10]) >= 3


def compared(numbers: Iterable[int], accumulators: tuple[str, ...] = ()) -> int:
    """The number of complete sets that are equal, of mixtures by their numbers."""
    found = 0
    for number in numbers:
        rng = random.Random(number)
        test = mixture(rng, accumulators=accumulators)
        for name, model in GUARANTEES.items():
            if not says_something(model, test):
                continue
            try:
                expected = allowed_outcomes(test, name, STATES)
            except TooManyStates:
                continue
            text = f"{number} {name}\n{dumps(Entry(test))}"
            searched = explorer.allowed_outcomes(test, model)
            if searched.complete:
                found += 1
                assert set(searched.witnesses) == expected, text
            ordered = reference.allowed_outcomes(test, model, ORDERS)
            if ordered.complete:
                assert set(ordered.witnesses) == expected, text
            judge = Axiomatic(test, model).judge
            for outcome in questions(test, expected, rng):
                verdict = Verdict.ALLOWED if outcome in expected else Verdict.FORBIDDEN
                if outcome in expected and outcome.status is Status.FAILED:
                    verdict = Verdict.UNSPECIFIED
                assert judge(outcome) in (verdict, Verdict.UNKNOWN), f"{outcome} {text}"
    return found


def questions(test: LitmusTest, expected: Collection[Outcome], rng: random.Random) -> list[Outcome]:
    """Some allowed outcomes, and some that mix or change them."""
    listed = sorted(expected, key=str)
    asked = rng.sample(listed, min(len(listed), 3))
    for _ in range(3):
        one, other = dict(rng.choice(listed).values), dict(rng.choice(listed).values)
        mixed = {key: other.get(key, one[key]) if rng.random() < 0.5 else one[key] for key in one}
        numbers = [key for key, value in mixed.items() if value and isinstance(value[0], int)]
        if numbers and rng.random() < 0.5:
            key = rng.choice(numbers)
            mixed[key] = (
                (1 - mixed[key][0],) if test.shown[key].dtype == "bool" else (mixed[key][0] + 1,)
            )
        if len(mixed) == len(test.shown):
            asked.append(Outcome.of(test, mixed))
    return asked
