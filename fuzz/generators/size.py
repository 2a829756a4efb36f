"""How many total orders a test has, and how many races, without looking at each order.

What generators go by: the reference oracle looks at every order, and must come
to an end. Orders are counted by downsets, of which there are far fewer. What
may happen is taken as known beforehand: every loop goes on to its bound, and of
every conditional the larger branch is taken. So where data decides, the count is
that of one of its paths, a long one; else it is exact.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Final

from litmusfuzz.oracles.events import (
    Access,
    Finished,
    Pick,
    Result,
    Seen,
    Stack,
    parts_of,
    strictnesses,
    unfold,
)
from litmusfuzz.oracles.model import RFC

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.oracles.events import Event, Unfolding

_ALIKE: Final = (Access.ENQUEUE, Access.DEQUEUE, Access.ACQUIRE)
"""What races with its like."""


@dataclass(frozen=True, slots=True)
class Path:
    """The events of one path through a test, and their order.

    Parameters
    ----------
    events : tuple of Event
    before : tuple of int
        For each, the events that come before it, as bits by position.
    """

    events: tuple[Event, ...]
    before: tuple[int, ...]


def count_all(test: LitmusTest, limit: int) -> int:
    """Orders that the reference oracle looks at under `rfc`, or `limit` if not fewer.

    Over all choices of strictness, where something may block.
    """
    blocks = {"queues", "critical sections"} & test.features
    total = 0
    for strictness in strictnesses(test, RFC):
        total += count(test, long_path(unfold(test, RFC, strictness)), limit - total)
        if total >= limit or not blocks:
            break
    return min(total, limit)


def count(test: LitmusTest, path: Path, limit: int) -> int:
    """Total orders of one path, or `limit` if there are at least as many."""
    room = {queue.name: (len(queue.init), queue.capacity) for queue in test.queues}
    gates = [_Gate(event, path.events, room) for event in path.events]
    total = 0
    ways = {0: 1}  # downsets of one size, with the number of orders of each
    while ways:
        larger: dict[int, int] = {}
        for done, number in ways.items():
            stuck = True
            for i, (above, gate) in enumerate(zip(path.before, gates, strict=True)):
                if not done >> i & 1 and not above & ~done and gate.open(done):
                    stuck = False
                    larger[done | 1 << i] = larger.get(done | 1 << i, 0) + number
            if stuck:
                total += number
        ways = larger
        # Every order of a prefix extends to at least one of the whole.
        if total + sum(ways.values()) >= limit:
            return limit
    return total


def count_races(test: LitmusTest) -> int:
    """Pairs of events, on one resource and in no order, whose order may be seen.

    Of different nodes: instances of one are often too much alike.
    """
    path = long_path(unfold(test, RFC))
    found = 0
    for i, j in combinations(range(len(path.events)), 2):
        one, other = path.events[i], path.events[j]
        ordered = path.before[i] >> j & 1 or path.before[j] >> i & 1
        if one.node is not other.node and not ordered and set(one.variables) & set(other.variables):
            found += _races(one.access, other.access)
    return found


def _races(one: Access, other: Access) -> bool:
    """Whether it may be seen which of two came first on one resource."""
    both = {one, other}
    if both & {Access.WRITE, Access.UPDATE, Access.WRITE_BACK}:
        return True
    moves = both & {Access.ENQUEUE, Access.DEQUEUE}
    # An acquire and a release come in the order in which they can.
    return (Access.SIZE in both and bool(moves)) or (len(both) == 1 and one in _ALIKE)


def long_path(unfolding: Unfolding) -> Path:
    """The path on which loops go on to their bounds, and the larger branches are taken."""
    weight = Counter(guard for event in unfolding.events for guard in event.guards)
    picks = {token.predicate for token in unfolding.tokens if isinstance(token, Pick)}
    taken = {
        predicate: weight[(predicate, True)] >= weight[(predicate, False)]
        for predicate in picks | {each for each, _ in weight}
    }
    bits: list[int] = []  # of each event; none if it is dead
    live: list[Event] = []
    for event in unfolding.events:
        alive = all(taken[predicate] is wanted for predicate, wanted in event.guards)
        bits.append(1 << len(live) if alive else 0)
        live += [event] if alive else []
    before: list[int] = []
    behind: list[int] = []  # a token: the events that are done when it is ready
    for event in unfolding.events:
        while len(behind) <= max(event.needs, default=-1):
            token = unfolding.tokens[len(behind)]
            if isinstance(token, (Result, Seen, Stack, Finished)):
                events = (token.event,) if isinstance(token, (Result, Seen)) else token.events
                masks = [before[e] | bits[e] for e in events if bits[e]]
            elif isinstance(token, Pick):
                chosen = token.then if taken[token.predicate] else token.other
                masks = [behind[token.predicate], behind[chosen]]
            else:
                masks = [behind[part] for part in parts_of(token)]
            behind.append(_union(masks))
        masks = [behind[token] for token in event.needs]
        before.append(_union(masks + [before[e] | bits[e] for e in event.after]))
    kept = tuple(mask for mask, bit in zip(before, bits, strict=True) if bit)
    return Path(tuple(live), kept)


def _union(masks: list[int]) -> int:
    union = 0
    for mask in masks:
        union |= mask
    return union


class _Gate:
    """What a resource says of an event: how full it is depends on what is done."""

    def __init__(
        self, event: Event, events: tuple[Event, ...], room: dict[str, tuple[int, int]]
    ) -> None:
        self.access = event.access
        self.closed = self.more = self.fewer = 0
        name = event.variables[0]
        self.first, self.capacity = room.get(name, (0, 1))
        more = Access.ACQUIRE if event.access is Access.ACQUIRE else Access.ENQUEUE
        fewer = Access.RELEASE if event.access is Access.ACQUIRE else Access.DEQUEUE
        for i, other in enumerate(events):
            if other.variables[0] == name:
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
