"""Whether a total order exists, from orders that hold and choices of two.

`before` and pairs of alternatives are all there is: where each read is known
to have seen one write, "no other write falls between them" is such a pair for
each other write, and "one critical section at a time" is one for each two of
them. Whatever rules out one alternative forces the other; what then is still
open is decided by trying both.

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
    """A total order of ``range(count)`` that keeps all of it; None if there is none.

    Parameters
    ----------
    known : iterable of (int, int)
        Earlier, later.
    choices : sequence of Choice
    tries : int
        Alternatives to try at most.

    Raises
    ------
    OverBudget
        If those were not enough.
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
    """A transitive relation; for each element a bit set of what is before and after it."""

    def __init__(self, count: int) -> None:
        self.before = [0] * count
        self.after = [0] * count
        self.contradicted = False

    def copy(self) -> _Orders:
        made = _Orders(0)
        made.before, made.after = self.before[:], self.after[:]
        return made

    def add(self, earlier: int, later: int) -> bool:
        """Add a pair, and all that follows; whether there is no cycle."""
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
        # (0, 0), which nothing keeps, is asked of a test without events, too.
        return pair[0] != pair[1] and bool(self.before[pair[1]] >> pair[0] & 1)

    def excludes(self, pair: tuple[int, int]) -> bool:
        return pair[0] == pair[1] or bool(self.before[pair[0]] >> pair[1] & 1)

    def saturate(self, choices: Sequence[Choice]) -> Choice | None:
        """Force what is forced, until nothing is; a choice that is left open."""
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
        """A linear extension: what has fewer before it stands earlier."""
        return sorted(range(len(self.before)), key=lambda i: (self.before[i].bit_count(), i))
