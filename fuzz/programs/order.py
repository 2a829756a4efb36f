"""Order of a run's accesses: what edges force, by sets of bits.

Each node of the expanded run has the set of accesses that come before it, as the bits of an int.
A node's set is dropped once all nodes after it have theirs, so that a graph of 100,000 nodes takes
memory for its widest part only.
"""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence, Set

    from litmusfuzz.fuzz.programs.expansion import Expanded, Guards

_Thing = TypeVar("_Thing")
MAX_STEPS: Final = 5_000
"""Steps of the search for a total order that sections permit."""


@dataclass(frozen=True, slots=True)
class Order:
    """Relations between the accesses of one run; each set is the bits of an int.

    Parameters
    ----------
    before : tuple of int
        For each access: those that come before it, whenever both run.
    values : tuple of int
        For each access: those whose result it is given, directly or through pure ops.
    seen : tuple of (str, int)
        For each place at which somebody sees a value: the accesses that it comes from.
    lock_ends : mapping
        For each access that locks a mutex: the accesses before the lock's last use.
    """

    before: tuple[int, ...]
    values: tuple[int, ...]
    seen: tuple[tuple[str, int], ...]
    lock_ends: dict[int, int]

    def ordered(self, first: int, second: int) -> bool:
        """True if edges force the first access to come before the second."""
        return bool(self.before[second] >> first & 1)


def bits(mask: int) -> Iterator[int]:
    """Positions of the ones, in order."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def ranked(waits: Mapping[_Thing, Set[_Thing]], ranks: Mapping[_Thing, int]) -> list[_Thing] | None:
    """An order in which each comes after those that it waits for; None if there is none.

    Of several that may be next, the one with the lowest rank is, and of those the first in `waits`.
    Those without a rank come last.
    """
    users: dict[_Thing, list[_Thing]] = {each: [] for each in waits}
    for each, others in waits.items():
        for other in others:
            users[other].append(each)
    places = {each: (ranks.get(each, len(waits)), place) for place, each in enumerate(waits)}
    things = list(waits)
    left = {each: len(others) for each, others in waits.items()}
    ready = [places[each] for each, many in left.items() if not many]
    heapq.heapify(ready)
    order = []
    while ready:
        _, place = heapq.heappop(ready)
        order.append(things[place])
        for user in users[things[place]]:
            left[user] -= 1
            if not left[user]:
                heapq.heappush(ready, places[user])
    return order if len(order) == len(waits) else None


class TooManySteps(Exception):
    """No total order was found in `MAX_STEPS` steps, and there may be one."""


def total_order(
    waits: Mapping[_Thing, Set[_Thing]],
    locks: Mapping[_Thing, tuple[str, Set[_Thing]]],
    wanted: Sequence[_Thing],
    *,
    others_first: bool = False,
) -> list[_Thing] | None:
    """A total order of accesses and locks that has some in a given order; None if there is none.

    Parameters
    ----------
    waits : mapping
        For each access and lock: those that edges put before it.
    locks : mapping
        For each lock: its mutex, and what comes before its release. Nobody else locks the mutex
        until all of that is done.
    wanted : sequence
        Accesses, in the order that they shall have.
    others_first : bool
        Other accesses that may come first do; else those come last that can.

    Raises
    ------
    TooManySteps
        If it is not known.
    """
    needs = {each: set(others) for each, others in waits.items()}
    for one, two in pairwise(wanted):
        needs[two].add(one)
    # What a wanted access waits for comes with it.
    ranks: dict[_Thing, int] = {}
    for place, each in enumerate(wanted):
        todo = [each]
        while todo:
            one = todo.pop()
            if one not in ranks:
                ranks[one] = place
                todo += needs[one]
    rest = -1 if others_first else len(wanted)
    by_rank = sorted(needs, key=lambda each: ranks.get(each, rest))
    order: list[_Thing] = []
    done: set[_Thing] = set()
    dead: set[frozenset[_Thing]] = set()
    steps = 0

    def free(mutex: str) -> bool:
        return not any(
            lock in done and name == mutex and not ends <= done
            for lock, (name, ends) in locks.items()
        )

    def complete() -> bool:
        nonlocal steps
        if len(order) == len(by_rank):
            return True
        if frozenset(done) in dead:
            return False
        steps += 1
        if steps > MAX_STEPS:
            raise TooManySteps
        for each in by_rank:
            if each in done or not needs[each] <= done:
                continue
            if each in locks and not free(locks[each][0]):
                continue
            order.append(each)
            done.add(each)
            if complete():
                return True
            order.pop()
            done.discard(each)
            if each not in locks:  # an access keeps nothing else from its place
                break
        dead.add(frozenset(done))
        return False

    return order if complete() else None


def exclusive(first: Guards, second: Guards) -> bool:
    """True if no execution runs both: they are in different branches of one predicate."""
    if not first or not second:
        return False
    taken = dict(first)
    return any(taken.get(predicate, side) != side for predicate, side in second)


def order_of(run: Expanded) -> Order:
    """Relations between the accesses of a run."""
    count = len(run.labels)
    own: dict[int, int] = {}
    shows: dict[int, int] = {}
    for number, access in enumerate(run.accesses):
        own[access.node] = own.get(access.node, 0) | 1 << number
        if access.effect.shows or not access.effect.known:
            shows[access.node] = shows.get(access.node, 0) | 1 << number
    users = [0] * count
    for node in range(count):
        for source in _sources(run, node):
            users[source] += 1
    ends = {node for nodes in run.locks.values() for node in nodes}
    kept = {*own, *(node for node, _ in run.sinks), *ends}
    before: dict[int, int] = {}
    values: dict[int, int] = {}
    guarded: dict[tuple[int, int], int] = {}
    by_node = sorted(own)
    at = 0
    for node in range(count):
        past = flow = 0
        for source in run.data[node]:
            past |= before[source] | own.get(source, 0)
            flow |= values[source] | shows.get(source, 0)
        for source in run.control[node]:
            past |= before[source] | own.get(source, 0)
        if node in run.choices:
            common = -1
            for source, guards in run.choices[node]:
                flow |= values[source] | shows.get(source, 0)
                never = 0  # accesses that do not run if this way is taken
                for predicate, side in guards:
                    for (other, way), mask in guarded.items():
                        if other == predicate and way != side:
                            never |= mask
                common &= before[source] | own.get(source, 0) | never
            if common >= 0:
                past |= common
        before[node], values[node] = past, flow
        if at < len(by_node) and by_node[at] == node:
            for guard in run.guards[node]:
                guarded[guard] = guarded.get(guard, 0) | own[node]
            at += 1
        for source in _sources(run, node):
            users[source] -= 1
            if not users[source] and source not in kept:
                del before[source], values[source]
        if not users[node] and node not in kept:
            del before[node], values[node]
    seen = [(what, values[node] | shows.get(node, 0)) for node, what in dict.fromkeys(run.sinks)]
    return Order(
        tuple(before[access.node] for access in run.accesses),
        tuple(values[access.node] for access in run.accesses),
        tuple(seen),
        {
            lock: _common([before[node] for node in nodes]) if nodes else 0
            for lock, nodes in run.locks.items()
        },
    )


def _common(masks: list[int]) -> int:
    joined = 0
    for mask in masks:
        joined |= mask
    return joined


def _sources(run: Expanded, node: int) -> tuple[int, ...]:
    choices = run.choices.get(node)
    chosen = tuple(source for source, _ in choices) if choices else ()
    return (*run.data[node], *run.control[node], *chosen)


def path(run: Expanded, first: int, second: int) -> list[tuple[int, str]]:
    """A shortest path of edges between two nodes, sources first.

    Returns
    -------
    list of (int, str)
        Nodes, each with the kind of the edge into it: "data" or "control"; "" for the first.
    """
    found: dict[int, tuple[int, str]] = {second: (-1, "")}
    todo = deque([second])
    while todo and first not in found:
        node = todo.popleft()
        chosen = [source for source, _ in run.choices.get(node, ())]
        for sources, kind in (
            (run.data[node], "data"),
            (run.control[node], "control"),
            (chosen, "data"),
        ):
            for source in sources:
                if source >= first and source not in found:
                    found[source] = (node, kind)
                    todo.append(source)
    if first not in found:
        return []
    steps = [(first, "")]
    node = first
    while node != second:
        node, kind = found[node]
        steps.append((node, kind))
    return steps
