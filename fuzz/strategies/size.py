"""How many total orders a test has, counted without looking at each.

What generators go by: the reference oracle looks at every order, and must come
to an end. Orders are counted by downsets, of which there are far fewer. What
may happen is taken as known beforehand: every loop goes on to its bound, and of
every conditional the larger branch is taken. So where data decides, the count is
that of one of its paths, a long one; else it is exact.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from oracles.events import (
    Access,
    Pick,
    Result,
    Seen,
    Settled,
    Stack,
    parts_of,
    strictnesses,
    unfold,
)
from oracles.model import RFC

if TYPE_CHECKING:
    from corpus.graph import LitmusTest
    from oracles.events import Event, Unfolding


def count_all(test: LitmusTest, limit: int) -> int:
    """Orders that the reference oracle looks at under `rfc`, or `limit` if not fewer.

    Over all choices of strictness, where something may block.
    """
    blocks = {"queues", "critical sections"} & test.features
    total = 0
    for strictness in strictnesses(test, RFC):
        total += count(test, unfold(test, RFC, strictness), limit - total)
        if total >= limit or not blocks:
            break
    return min(total, limit)


def count(test: LitmusTest, unfolding: Unfolding, limit: int) -> int:
    """Total orders of one unfolding, or `limit` if there are at least as many."""
    taken = _larger_branches(unfolding)
    live = [all(taken[p] is wanted for p, wanted in e.guards) for e in unfolding.events]
    before = _before(unfolding, taken, live)
    room = {queue.name: (len(queue.init), queue.capacity) for queue in test.queues}
    gates = [
        _Gate(event, unfolding.events, live, room)
        for event, alive in zip(unfolding.events, live, strict=True)
        if alive
    ]
    above = [mask for mask, alive in zip(before, live, strict=True) if alive]
    bits = [1 << i for i, alive in enumerate(live) if alive]
    total = 0
    ways = {0: 1}  # downsets of one size, with the number of orders of each
    while ways:
        larger: dict[int, int] = {}
        for done, number in ways.items():
            stuck = True
            for bit, mask, gate in zip(bits, above, gates, strict=True):
                if not done & bit and not mask & ~done and gate.open(done):
                    stuck = False
                    larger[done | bit] = larger.get(done | bit, 0) + number
            if stuck:
                total += number
        ways = larger
        # Every order of a prefix extends to at least one of the whole.
        if total + sum(ways.values()) >= limit:
            return limit
    return total


def _larger_branches(unfolding: Unfolding) -> dict[int, bool]:
    """For each predicate, what it is taken to be."""
    weight = Counter(guard for event in unfolding.events for guard in event.guards)
    picks = {token.predicate for token in unfolding.tokens if isinstance(token, Pick)}
    predicates = picks | {predicate for predicate, _ in weight}
    return {p: weight[(p, True)] >= weight[(p, False)] for p in predicates}


def _before(
    unfolding: Unfolding, taken: dict[int, bool], live: list[bool]
) -> list[int]:
    """For each event those before it, as bits."""
    before: list[int] = []
    behind: list[int] = []  # a token: the events that are done when it is ready
    for event in unfolding.events:
        while len(behind) <= max(event.needs, default=-1):
            token = unfolding.tokens[len(behind)]
            if isinstance(token, (Result, Seen, Stack, Settled)):
                events = (token.event,) if isinstance(token, (Result, Seen)) else token.events
                masks = [before[e] | 1 << e for e in events if live[e]]
            elif isinstance(token, Pick):
                chosen = token.then if taken[token.predicate] else token.other
                masks = [behind[token.predicate], behind[chosen]]
            else:
                masks = [behind[part] for part in parts_of(token)]
            behind.append(_union(masks))
        masks = [behind[token] for token in event.needs]
        before.append(_union(masks + [before[e] | 1 << e for e in event.after]))
    return before


def _union(masks: list[int]) -> int:
    union = 0
    for mask in masks:
        union |= mask
    return union


class _Gate:
    """What a resource says of an event: how full it is depends on what is done."""

    def __init__(
        self,
        event: Event,
        events: tuple[Event, ...],
        live: list[bool],
        room: dict[str, tuple[int, int]],
    ) -> None:
        self.access = event.access
        self.closed = self.more = self.fewer = 0
        name = event.variables[0]
        self.first, self.capacity = room.get(name, (0, 1))
        more = Access.ACQUIRE if event.access is Access.ACQUIRE else Access.ENQUEUE
        fewer = Access.RELEASE if event.access is Access.ACQUIRE else Access.DEQUEUE
        for i, other in enumerate(events):
            if live[i] and other.variables[0] == name:
                self.more |= (other.access is more) << i
                self.fewer |= (other.access is fewer) << i
                self.closed |= (other.access is Access.CLOSE) << i

    def open(self, done: int) -> bool:
        """Whether the event may happen after these."""
        if self.access not in (Access.ACQUIRE, Access.ENQUEUE, Access.DEQUEUE):
            return True
        held = self.first + (done & self.more).bit_count() - (done & self.fewer).bit_count()
        if self.access is Access.DEQUEUE:
            return held > 0 or bool(done & self.closed)
        return held < self.capacity
