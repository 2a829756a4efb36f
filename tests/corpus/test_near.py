"""Hints for misspelt names."""

from __future__ import annotations

import time

import pytest

from litmusfuzz.corpus.near import close


@pytest.mark.parametrize(
    ("word", "names", "near"),
    [
        ("IRWI", ["IRWIW", "IRRWIW", "IRIW"], ["IRIW", "IRWIW"]),  # exchanged letters first
        ("oracel", ["force", "oracle"], ["oracle"]),
        ("mutant/stor-buffers", ["mutant/two-holders", "mutant/store-buffers"], [1]),
        ("RFC", ["rfc", "acd"], ["rfc"]),
        ("xy", ["ab", "x"], ["x"]),
        ("xyz", ["abc"], []),
        ("", ["abc"], []),
        ("scatter-read", ["scatter-beside-read", "acd"], ["scatter-beside-read"]),  # parts of it
        ("a1", [f"a{n}" for n in range(2, 9)], ["a2", "a3", "a4"]),
    ],
)
def test_the_nearest_names_come_alone_and_the_likeliest_first(
    word: str, names: list[str], near: list[str | int]
) -> None:
    assert close(word, names) == [names[each] if isinstance(each, int) else each for each in near]


def test_a_long_word_costs_little() -> None:
    names = [f"{'ab' * 90}{n}" for n in range(20)]
    began = time.process_time()
    close("ba" * 100_000, names)
    assert time.process_time() - began < 10
