"""Total orders of accesses: a topological sort, and a search that also respects critical sections.

`anomalies` and `skeleton` ask `total_order` whether critical sections permit the order of an
anomaly's example; `tensorflow.showing` asks `ranked` for an order to force on TensorFlow. An *item*
is an access or a lock; a lock takes a mutex.
"""

from __future__ import annotations

import heapq
import math
from itertools import pairwise
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence, Set

_Item = TypeVar("_Item")
MAX_STEPS: Final = 5_000
"""Items that the search for one total order places, those that it takes back included."""


class TooManySteps(Exception):
    """`MAX_STEPS` steps neither found a total order nor ruled one out."""


def ranked(waits: Mapping[_Item, Set[_Item]], ranks: Mapping[_Item, int]) -> list[_Item] | None:
    """An order in which each item comes after those that it waits for; None if there is none.

    Of several items that may be next, the one with the lowest rank is next, and of equal ranks the
    first in `waits`. Items without a rank come last.
    """
    items = list(waits)
    keys = {item: (ranks.get(item, math.inf), place) for place, item in enumerate(items)}
    users: dict[_Item, list[_Item]] = {item: [] for item in items}
    for item, earlier in waits.items():
        for source in earlier:
            users[source].append(item)
    waits_left = {item: len(earlier) for item, earlier in waits.items()}
    ready = [keys[item] for item in items if not waits_left[item]]
    heapq.heapify(ready)
    order = []
    while ready:
        _, place = heapq.heappop(ready)
        order.append(items[place])
        for user in users[items[place]]:
            waits_left[user] -= 1
            if not waits_left[user]:
                heapq.heappush(ready, keys[user])
    return order if len(order) == len(items) else None


def total_order(
    waits: Mapping[_Item, Set[_Item]],
    locks: Mapping[_Item, tuple[str, Set[_Item]]],
    wanted: Sequence[_Item],
    *,
    others_first: bool = False,
) -> list[_Item] | None:
    """A total order of all items that has some in the order wanted; None if there is none.

    Parameters
    ----------
    waits : mapping
        For each item: the items that edges put before it.
    locks : mapping
        For each lock: the name of its mutex, and the items that come before its release. No other
        lock takes the mutex until all of these are placed.
    wanted : sequence
        Items, in the order that they shall have.
    others_first : bool
        Place items that no wanted one waits for as early as possible; else as late.

    Raises
    ------
    TooManySteps
        If `MAX_STEPS` steps neither find an order nor rule one out.
    """
    needs = {item: set(earlier) for item, earlier in waits.items()}
    for early, late in pairwise(wanted):
        needs[late].add(early)
    ranks = _ranks(needs, wanted)
    others = -1 if others_first else len(wanted)
    by_rank = sorted(needs, key=lambda item: ranks.get(item, others))
    return _search(by_rank, needs, locks)


def _ranks(needs: Mapping[_Item, Set[_Item]], wanted: Sequence[_Item]) -> dict[_Item, int]:
    """For each item: the place of the first wanted item that it is, or that waits for it."""
    ranks: dict[_Item, int] = {}
    for rank, target in enumerate(wanted):
        todo = [target]
        while todo:
            item = todo.pop()
            if item not in ranks:
                ranks[item] = rank
                todo += needs[item]
    return ranks


def _search(
    by_rank: Sequence[_Item],
    needs: Mapping[_Item, Set[_Item]],
    locks: Mapping[_Item, tuple[str, Set[_Item]]],
) -> list[_Item] | None:
    """The first total order of a depth-first search that tries items of low rank first.

    A loop with a stack of its own: a program may have more locks than Python permits calls inside
    each other.
    """
    order: list[_Item] = []
    placed: set[_Item] = set()  # the items of `order`
    # Which items are placed decides what can follow, whatever their order: no set is tried twice.
    hopeless: set[frozenset[_Item]] = set()
    steps = 0

    def is_free(mutex: str) -> bool:
        return not any(
            lock in placed and name == mutex and not ends <= placed
            for lock, (name, ends) in locks.items()
        )

    def next_items() -> Iterator[_Item]:
        """Items that may be next, as long as `placed` is as now whenever the iterator goes on."""
        for item in by_rank:
            if item in placed or not needs[item] <= placed:
                continue
            if item not in locks:
                # Placing an access blocks no other item, so no later choice can do better.
                yield item
                return
            if is_free(locks[item][0]):
                yield item

    choices = [next_items()]  # one iterator for each item of `order`, and one for the next item
    while len(order) < len(by_rank):
        item = next(choices[-1], None)
        if item is None:
            hopeless.add(frozenset(placed))
            choices.pop()
            if not order:
                return None
            placed.remove(order.pop())
        elif placed | {item} not in hopeless:
            if steps == MAX_STEPS:
                raise TooManySteps
            steps += 1
            order.append(item)
            placed.add(item)
            choices.append(next_items())
    return order
