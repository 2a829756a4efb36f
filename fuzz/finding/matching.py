"""Finds the parts of one thing in another, in the same relations: the matcher of tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Part = TypeVar("Part")
Of = TypeVar("Of")


def matches(
    parts: Sequence[Part],
    whole: Sequence[Of],
    alike: Callable[[Part, Of], bool],
    related: Callable[[Part, Part, Of, Of], bool],
) -> bool:
    """True if each part is matched with another member of `whole`, and all pairs of them fit.

    By backtracking: parts are few.

    Parameters
    ----------
    parts, whole : sequence
    alike : callable
        Whether a part may be matched with a member.
    related : callable
        Whether two parts are as the two members that they are matched with.
    """

    def place(chosen: list[Of]) -> bool:
        if len(chosen) == len(parts):
            return True
        part = parts[len(chosen)]
        return any(
            alike(part, member)
            and member not in chosen
            and all(related(a, part, like, member) for a, like in zip(parts, chosen, strict=False))
            and place([*chosen, member])
            for member in whole
        )

    return place([])
