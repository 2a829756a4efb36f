"""Hints for misspelt names."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST: Final = 3
"""Names that a hint has, at most."""
MAX_WORD: Final = 200
"""Characters of a word that are compared."""


def did_you_mean(word: str, known: Iterable[str], kind: str) -> str:
    """A hint for a name that does not exist: names like it, and the command that lists all.

    Parameters
    ----------
    word : str
    known : iterable of str
        Names that exist.
    kind : str
        What `litmusfuzz list` calls them, with its options.
    """
    known = list(known)
    near = close(word, known)
    # What begins like it, as a family of configurations does.
    near += [
        name
        for name in dict.fromkeys(known)
        if len(word) > 1 and name.lower().startswith(word.lower()) and name not in near
    ][: MOST - len(near)]
    listed = f"`litmusfuzz list {kind}` prints all"
    return f"{is_it(near)} {listed}" if near else listed


def is_it(near: Iterable[str]) -> str:
    """The question whether one of these names was meant."""
    return f"is it {' or '.join(map(repr, near))}?"


def close(word: str, known: Iterable[str]) -> list[str]:
    """The names that a word may be a misspelling of, the likeliest first; `MOST` at most.

    These are the names that the fewest slips of the finger lead to; of two with as many, one with
    the same letters comes first. Where that takes more than a slip for every three characters,
    they are names with long common parts.
    """
    word = word[:MAX_WORD].lower()
    names = {name.lower(): name for name in known}
    limit = max(1, len(word) // 3)
    slips = {
        lower: found for lower in names if (found := _slips(word, lower[:MAX_WORD], limit)) <= limit
    }
    fewest = min(slips.values(), default=0)
    near = [lower for lower, number in slips.items() if number == fewest]
    near.sort(key=lambda lower: sorted(lower) != sorted(word))
    return [names[lower] for lower in near or get_close_matches(word, names, MOST)][:MOST]


def _slips(word: str, name: str, limit: int) -> int:
    """How many letters were left out, added, replaced or exchanged with the next one.

    The optimal string alignment distance; more than `limit` if it is that.
    """
    if abs(len(word) - len(name)) > limit:
        return limit + 1
    before: list[int] = []
    last = list(range(len(name) + 1))
    for i, letter in enumerate(word, 1):
        row = [i]
        for j, other in enumerate(name, 1):
            row.append(min(last[j] + 1, row[-1] + 1, last[j - 1] + (letter != other)))
            if i > 1 and j > 1 and letter == name[j - 2] and word[i - 2] == other:
                row[-1] = min(row[-1], before[j - 2] + 1)
        if min(row) > limit:
            return limit + 1
        before, last = last, row
    return last[-1]
