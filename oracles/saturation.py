"""Saturation: find a total order that satisfies known orders and binary choices.

The problem is a partial order and a list of choices between two ordered pairs. Where
each read saw a known write, "no other write falls between them" is one choice for
each other write; "one critical section at a time" is one choice for each two
sections. An order that excludes one alternative forces the other. Backtracking
decides the choices that stay open.

References
----------
Gibbons and Korach, "Testing Shared Memories", SIAM J. Comput. 1997, section 4
(the pass that forces). Roy et al., "Fast and Generalized Polynomial Time
Memory Consistency Verification", CAV 2006. The two alternatives of a pair are
decided as in Davis, Logemann and Loveland, CACM 1962.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Choice(NamedTuple):
    """One of two orders holds: `first` as (earlier, later), or `second`."""

    first: tuple[int, int]
    second: tuple[int, int]


class OverBudget(Exception):
    """Too many alternatives had to be tried."""


def find_order(
    count: int, known: Iterable[tuple[int, int]], choices: Sequence[Choice], tries: int
) -> list[int] | None:
    """Return a total order of ``range(count)`` with all constraints; None if none exists.

    Parameters
    ----------
    known : iterable of (int, int)
        Pairs of an earlier and a later element.
    choices : sequence of Choice
    tries : int
        Largest number of alternatives to try.

    Raises
    ------
    OverBudget
        If the search needs more tries.
    """
    start = _Orders(count)
    if not all(start.add(*pair) for pair in known):
        return None
    untried = [start]
    while untried:
        orders = untried.pop()
        open_choice = orders.saturate(choices)
        if orders.contradicted:
            continue
        if open_choice is None:
            return orders.linear()
        tries -= 1
        if tries < 0:
            raise OverBudget
        for pair in reversed(open_choice):
            tried = orders.copy()
            tried.add(*pair)
            untried.append(tried)
    return None


class _Orders:
    """A transitive relation: for each element, bit sets of its predecessors and successors."""

    def __init__(self, count: int) -> None:
        self.before = [0] * count
        self.after = [0] * count
        self.contradicted = False

    def copy(self) -> _Orders:
        made = _Orders(0)
        made.before, made.after = self.before[:], self.after[:]
        return made

    def add(self, earlier: int, later: int) -> bool:
        """Add a pair and its transitive consequences; return False if that makes a cycle."""
        if earlier == later or self.before[earlier] >> later & 1:
            self.contradicted = True
        elif not self.before[later] >> earlier & 1:
            up = self.before[earlier] | 1 << earlier
            down = self.after[later] | 1 << later
            for each in range(len(self.before)):
                if down >> each & 1:
                    self.before[each] |= up
                elif up >> each & 1:
                    self.after[each] |= down
        return not self.contradicted

    def holds(self, pair: tuple[int, int]) -> bool:
        # A test without events can ask for (0, 0), which no order satisfies.
        return pair[0] != pair[1] and bool(self.before[pair[1]] >> pair[0] & 1)

    def excludes(self, pair: tuple[int, int]) -> bool:
        return pair[0] == pair[1] or bool(self.before[pair[0]] >> pair[1] & 1)

    def saturate(self, choices: Sequence[Choice]) -> Choice | None:
        """Apply forced alternatives until a fixed point; return a choice that stays open."""
        changed = True
        while changed:
            changed = False
            open_choice = None
            for choice in choices:
                if self.holds(choice.first) or self.holds(choice.second):
                    continue
                if self.excludes(choice.first):
                    changed = True
                    if not self.add(*choice.second):
                        return None
                elif self.excludes(choice.second):
                    changed = True
                    self.add(*choice.first)
                else:
                    open_choice = choice
        return open_choice

    def linear(self) -> list[int]:
        """Return a linear extension: elements sorted by their number of predecessors."""
        return sorted(range(len(self.before)), key=lambda i: (self.before[i].bit_count(), i))
