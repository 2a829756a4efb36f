"""Partial order of a run's accesses: which come before which, and whose results reach whom.

`anomalies.analyzed` computes it once for each run (`order_of`), from the edges of the expanded run
(`expansion.Expanded`); `checking` and `skeleton` ask it. Terms of the expansion:

- An *access* is what one node does to one resource; accesses are numbered.
- A *guard* is a predicate and a branch of it: a node runs only if all its guards hold.
- A *choice* is a node that comes after one of several nodes: after the one that runs.
- A *sink* is a node at which somebody sees a value: the client, a predicate, an op with effects
  outside of the run.

A set of accesses is an int, whose bit n is one if access n is in the set. A graph may have 100,000
nodes. `order_of` keeps the sets of nodes with accesses, of sinks, and of the last uses of locks; it
drops those of any other node once all nodes after it have theirs. Thus the other nodes cost no more
memory than the graph is wide.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from litmusfuzz.fuzz.programs.expansion import Expanded, Guard, Guards, Instance


@dataclass(frozen=True, slots=True)
class Order:
    """Relations between the accesses of one run; each set of accesses is the bits of an int.

    Parameters
    ----------
    before : tuple of int
        For each access: the accesses that come before it, whenever both run.
    values : tuple of int
        For each access: the accesses whose result it is given, directly or through pure ops.
    seen : tuple of (str, int)
        For each sink: its name, and the accesses that its value comes from.
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


def exclusive(first: Guards, second: Guards) -> bool:
    """True if no execution runs both: they are in different branches of one predicate."""
    if not first or not second:
        return False
    branches = dict(first)
    return any(branches.get(predicate, branch) != branch for predicate, branch in second)


def order_of(run: Expanded) -> Order:
    """Relations between the accesses of a run."""
    sets = _NodeSets(run)
    releases = {node for nodes in run.locks.values() for node in nodes}
    kept = {*sets.accesses_of, *(node for node, _ in run.sinks), *releases}
    # For each node: the edges from it to nodes whose sets are still to be computed.
    edges_left = [0] * len(run.labels)
    for node in range(len(run.labels)):
        for source in _sources(run, node):
            edges_left[source] += 1
    for node in range(len(run.labels)):
        sets.add(node)
        sources = _sources(run, node)
        for source in sources:
            edges_left[source] -= 1
        for done in {node, *sources}:
            if not edges_left[done] and done not in kept:
                sets.drop(done)
    distinct_sinks = dict.fromkeys(run.sinks)  # one node may be the predicate of several ops
    return Order(
        tuple(sets.before[access.node] for access in run.accesses),
        tuple(sets.values[access.node] for access in run.accesses),
        tuple((name, sets.result_from(node)) for node, name in distinct_sinks),
        {
            lock: reduce(or_, (sets.before[node] for node in nodes), 0)
            for lock, nodes in run.locks.items()
        },
    )


class _NodeSets:
    """The accesses before each node, and those that each node's inputs come from.

    Nodes are added by number: the sources of a node have lower numbers than the node.
    """

    def __init__(self, run: Expanded) -> None:
        self.run = run
        self.accesses_of = _by_node(enumerate(run.accesses))
        self.results_of = _by_node(
            (number, access)
            for number, access in enumerate(run.accesses)
            # An op of which nothing is known may show anything.
            if access.effect.shows or not access.effect.known
        )
        self.before: dict[int, int] = {}
        self.values: dict[int, int] = {}
        self.guarded: dict[Guard, int] = {}
        """For each guard: the accesses under it, of the nodes added so far."""

    def add(self, node: int) -> None:
        """Compute the sets of a node from those of its sources."""
        run = self.run
        before = values = 0
        for source in run.data[node]:
            before |= self.until(source)
            values |= self.result_from(source)
        for source in run.control[node]:
            before |= self.until(source)
        if choices := run.choices.get(node):
            before |= self.before_any(choices)
            for source, _ in choices:
                values |= self.result_from(source)
        self.before[node], self.values[node] = before, values
        if node in self.accesses_of:
            for guard in run.guards[node]:
                self.guarded[guard] = self.guarded.get(guard, 0) | self.accesses_of[node]

    def drop(self, node: int) -> None:
        """Drop the sets of a node."""
        del self.before[node], self.values[node]

    def until(self, node: int) -> int:
        """The accesses before a node, and its own."""
        return self.before[node] | self.accesses_of.get(node, 0)

    def result_from(self, node: int) -> int:
        """The accesses that the value of a node comes from."""
        return self.values[node] | self.results_of.get(node, 0)

    def before_any(self, choices: Sequence[tuple[int, Guards]]) -> int:
        """The accesses that come before a choice, whichever of its sources runs.

        An access does if, for each source, it comes before that source or does not run with it.
        """
        return reduce(
            and_, (self.until(source) | self.excluded_by(guards) for source, guards in choices)
        )

    def excluded_by(self, guards: Guards) -> int:
        """The accesses so far that are in another branch than nodes with these guards."""
        return reduce(
            or_,
            (
                mask
                for predicate, branch in guards
                for (other, other_branch), mask in self.guarded.items()
                if other == predicate and other_branch != branch
            ),
            0,
        )


def _by_node(numbered: Iterable[tuple[int, Instance]]) -> dict[int, int]:
    """For each node that has some of these accesses: the set of them."""
    masks: dict[int, int] = {}
    for number, access in numbered:
        masks[access.node] = masks.get(access.node, 0) | 1 << number
    return masks


def _sources(run: Expanded, node: int) -> tuple[int, ...]:
    """The nodes with an edge to a node, once for each edge."""
    choices = run.choices.get(node, ())
    return (*run.data[node], *run.control[node], *(source for source, _ in choices))


def shortest_path(run: Expanded, first: int, second: int) -> list[tuple[int, str]]:
    """A shortest path of edges between two nodes, sources first; empty if there is none.

    Returns
    -------
    list of (int, str)
        Nodes, each with the kind of the edge into it: "data" or "control"; "" for the first.
    """
    next_of: dict[int, tuple[int, str]] = {second: (-1, "")}  # with the kind of the edge to it
    todo = deque([second])
    while todo and first not in next_of:
        node = todo.popleft()
        chosen = [source for source, _ in run.choices.get(node, ())]
        for sources, kind in (
            (run.data[node], "data"),
            (run.control[node], "control"),
            (chosen, "data"),
        ):
            for source in sources:
                # Sources have lower numbers: no path from `first` goes through a number below it.
                if source >= first and source not in next_of:
                    next_of[source] = (node, kind)
                    todo.append(source)
    if first not in next_of:
        return []
    steps = [(first, "")]
    while steps[-1][0] != second:
        steps.append(next_of[steps[-1][0]])
    return steps
