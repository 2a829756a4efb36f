"""Orders of the events of an unfolding without control flow: an independent count."""

from __future__ import annotations

from typing import TYPE_CHECKING

from litmusfuzz.oracles.events import Finished, Pick, Result, Seen, Stack, parts_of

if TYPE_CHECKING:
    from litmusfuzz.oracles.events import Unfolding


def events_before(unfolding: Unfolding) -> tuple[frozenset[int], ...]:
    """Return for each event all events that come before it in every total order.

    Only for unfoldings without conditionals and loops, where the dependencies of each
    event are static.
    """
    before: list[frozenset[int]] = []
    behind: list[frozenset[int]] = []  # by token: the events that are done when it is ready
    position = 0

    def resolve(limit: int) -> None:
        nonlocal position
        while position < limit:
            token = unfolding.tokens[position]
            if isinstance(token, (Result, Seen, Stack, Finished)):
                events = (token.event,) if isinstance(token, (Result, Seen)) else token.events
                behind.append(frozenset(events).union(*(before[event] for event in events)))
            else:
                assert not isinstance(token, Pick)
                behind.append(frozenset[int]().union(*(behind[part] for part in parts_of(token))))
            position += 1

    for event in unfolding.events:
        assert not event.guards
        resolve(max(event.needs, default=-1) + 1)
        above = frozenset[int]().union(*(behind[token] for token in event.needs))
        before.append(above.union(event.after, *(before[other] for other in event.after)))
    return tuple(before)


def count_orders(unfolding: Unfolding, limit: int) -> int:
    """Count the total orders, up to `limit`.

    The count goes by downsets, so that it stays cheap where enumeration is not. Only
    for unfoldings without conditionals, loops and blocking ops.
    """
    before = [sum(1 << i for i in above) for above in events_before(unfolding)]
    ways = {0: 1}  # number of orders of each downset of size k
    for _ in before:
        larger: dict[int, int] = {}
        for done, count in ways.items():
            for i, above in enumerate(before):
                if not done >> i & 1 and not above & ~done:
                    grown = done | 1 << i
                    larger[grown] = larger.get(grown, 0) + count
        ways = larger
        # Every order of a prefix extends to at least one of the whole.
        if sum(ways.values()) >= limit:
            return limit
    return sum(ways.values())
