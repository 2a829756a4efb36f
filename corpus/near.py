"""Hints for misspelt names."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST: Final = 3
"""Names that a hint has, at most."""


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
    names = {name.lower(): name for name in known}
    near = [names[name] for name in get_close_matches(word[:200].lower(), names, MOST)]
    # What begins like it, as a family of configurations does.
    near += [
        name
        for lower, name in names.items()
        if len(word) > 1 and lower.startswith(word.lower()) and name not in near
    ][: MOST - len(near)]
    listed = f"`litmusfuzz list {kind}` prints all"
    return f"is it {' or '.join(map(repr, near))}? {listed}" if near else listed
