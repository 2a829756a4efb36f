"""Corpus minimization: smallest covers, compared with all subsets of small examples."""

from __future__ import annotations

import random
from itertools import combinations

import pytest

from litmusfuzz.fuzz.campaign.corpus_minimization import minimum


def fewest(sets: dict[str, frozenset[str]]) -> int:
    """By looking at all subsets."""
    everything = frozenset().union(*sets.values())
    for number in range(len(sets) + 1):
        for some in combinations(sets.values(), number):
            if frozenset().union(*some) == everything:
                return number
    raise AssertionError


@pytest.mark.parametrize("seed", range(40))
def test_it_is_a_cover_and_none_is_smaller(seed: int) -> None:
    rng = random.Random(seed)
    things = [f"t{number}" for number in range(rng.randint(1, 12))]
    sets = {
        f"s{number}": frozenset(rng.sample(things, rng.randint(1, min(4, len(things)))))
        for number in range(rng.randint(1, 10))
    }
    cover = minimum(sets)
    kept = [sets[name] for name in cover.kept]
    assert frozenset().union(*kept) == frozenset().union(*sets.values())
    assert cover.proved
    assert len(cover.kept) == fewest(sets)
    assert all(cover.kept.values())  # each is there for something
    assert cover == minimum(dict(reversed(sets.items())))


def test_a_greedy_cover_is_improved() -> None:
    """Most first is `big`, after which both others are still needed."""
    sets = {
        "big": frozenset("abcd"),
        "left": frozenset("abe"),
        "right": frozenset("cdf"),
    }
    cover = minimum(sets)
    assert list(cover.kept) == ["left", "right"]
    assert cover.proved
