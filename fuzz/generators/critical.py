"""Critical cycles: minimal shapes of outcomes that the memory model forbids.

A cycle visits chains. Inside a chain it follows program order; from one chain to the next it
follows communication: a read returns the value of a write (reads-from), a write overwrites
what a read returned (from-read), or a write overwrites another (write order). No total order
allows such a cycle. It is critical if, without any one of its program-order edges, some total
order does.

References
----------
Alglave, Maranget, Sarkar, Sewell, "Fences in Weak Memory Models", CAV 2010, and diy,
which makes tests of them. Shasha and Snir, "Efficient and Correct Execution of Parallel
Programs that Share Memory", TOPLAS 1988: why those cycles, with one access or two in a
chain, and up to three on a variable, are enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable

TRIES: Final = 400
"""Attempts at a cycle; one in ten succeeds."""


class Point(NamedTuple):
    """An access of a cycle: "R" or "W", and the number of its variable."""

    kind: str
    variable: int

    def __str__(self) -> str:
        return f"{self.kind}{'xyzw'[self.variable]}"


@dataclass(frozen=True, slots=True)
class Cycle:
    """Chains of accesses, and the write that each access follows.

    Parameters
    ----------
    chains : tuple of tuple of Point
        In the order in which the cycle visits them, one access or two in each.
    sees : tuple of int or None
        For each point, numbered along the chains: the write that a read reads from, or the
        write just before a write in write order; None for the initial contents.
    """

    chains: tuple[tuple[Point, ...], ...]
    sees: tuple[int | None, ...]

    @property
    def points(self) -> tuple[Point, ...]:
        """All accesses, chain by chain."""
        return tuple(point for chain in self.chains for point in chain)

    @property
    def numbers(self) -> tuple[tuple[int, ...], ...]:
        """Numbers of the points of each chain."""
        ends = [0]
        for chain in self.chains:
            ends.append(ends[-1] + len(chain))
        return tuple(tuple(range(a, b)) for a, b in pairwise(ends))

    @property
    def program_order(self) -> list[tuple[int, int]]:
        """Edges of program order, inside chains."""
        return [(chain[0], chain[1]) for chain in self.numbers if len(chain) == 2]

    @property
    def variables(self) -> int:
        """Number of variables."""
        return 1 + max(point.variable for point in self.points)

    def last(self, variable: int) -> int:
        """The last write to a variable in write order."""
        writes = [i for i, p in enumerate(self.points) if p == ("W", variable)]
        return next(i for i in writes if not any(self.sees[j] == i for j in writes))

    @property
    def communication(self) -> list[tuple[int, int]]:
        """Edges of reads-from, write order and from-read, the last two to the next write only."""
        points = self.points
        after = {
            (p.variable, seen): i
            for i, (p, seen) in enumerate(zip(points, self.sees, strict=True))
            if p.kind == "W"
        }
        found = [(seen, i) for i, seen in enumerate(self.sees) if seen is not None]
        for i, (point, seen) in enumerate(zip(points, self.sees, strict=True)):
            if point.kind == "R" and (point.variable, seen) in after:
                found.append((i, after[point.variable, seen]))
        return found

    @property
    def critical(self) -> bool:
        """True if there is a cycle, and none without any one edge of program order."""
        others, order = self.communication, self.program_order
        return _cyclic([*others, *order]) and not any(
            _cyclic([*others, *(each for each in order if each != gone)]) for gone in order
        )

    def __str__(self) -> str:
        """Its edges by their names in diy: ``PodWR Fre PodWR Fre``."""
        names = []
        place = "e" if len(self.chains) > 1 else "i"
        for chain, following in zip(self.chains, (*self.chains[1:], self.chains[0]), strict=True):
            if len(chain) == 2:
                same = "s" if chain[0].variable == chain[1].variable else "d"
                names.append(f"Po{same}{chain[0].kind}{chain[1].kind}")
            how = {"WR": "Rf", "RW": "Fr", "WW": "Co"}[chain[-1].kind + following[0].kind]
            names.append(how + place)
        return " ".join(names)


STORE_BUFFERING: Final = Cycle(
    ((Point("W", 0), Point("R", 1)), (Point("W", 1), Point("R", 0))), (None,) * 4
)


def random_cycle(rng: random.Random) -> Cycle:
    """A random critical cycle of one to four chains."""
    for _ in range(TRIES):
        cycle = _attempt(rng)
        if cycle is not None and cycle.critical:
            return cycle
    return STORE_BUFFERING


def _attempt(rng: random.Random) -> Cycle | None:
    """Random chains with the writes that their accesses follow; mostly None, for no cycle."""
    count = rng.choice((1, *(2,) * 5, *(3,) * 8, *(4,) * 8))
    # A chain of one access adds nothing where its neighbours communicate without it.
    kinds = [rng.choice(("W", "W", "RR", "RW", "WR", "WW")) for _ in range(count)]
    steps = [len(kind) == 2 and rng.random() < 0.8 for kind in kinds]  # to another variable
    for kind, following in zip(kinds, (*kinds[1:], kinds[0]), strict=True):
        if kind[-1] + following[0] == "RR" or (kind == "W" and following[0] == "W"):
            return None
    if sum(steps) == 1:
        return None  # a single change of variable cannot lead back
    chains = []
    variable = 0
    for kind, step in zip(kinds, steps, strict=True):
        other = (variable + step) % max(1, sum(steps))
        chains.append(tuple(map(Point, kind, (variable, other))))
        variable = other
    cycle = Cycle(tuple(chains), ())
    seen = _seen(rng, cycle)
    return None if seen is None else Cycle(cycle.chains, seen)


def _seen(rng: random.Random, cycle: Cycle) -> tuple[int | None, ...] | None:
    """The write that each access follows, so that neighbouring chains communicate, if possible."""
    points, numbers = cycle.points, cycle.numbers
    # Write order by variable: at most two writes, so that the final contents show the order.
    orders = [
        rng.sample(writes, len(writes))
        for variable in range(cycle.variables)
        if (writes := [i for i, p in enumerate(points) if p == ("W", variable)])
    ]
    if len(orders) < cycle.variables or max(map(len, orders)) > 2:
        return None
    sees: dict[int, int | None] = {
        w: before for order in orders for before, w in pairwise((None, *order)) if w is not None
    }
    ends = [(a[-1], b[0]) for a, b in zip(numbers, (*numbers[1:], numbers[0]), strict=True)]
    for source, target in ends:
        order = orders[points[source].variable]
        if points[target].kind == "R":
            sees[target] = source
        elif points[source].kind == "R":
            sees[source] = rng.choice((None, *order[: order.index(target)]))
        elif order.index(source) > order.index(target):
            return None
    return tuple(sees[i] for i in range(len(points)))


def _cyclic(edges: Iterable[tuple[int, int]]) -> bool:
    """True if some of these edges form a cycle."""
    left = set(edges)
    while left:
        # Edges from points that no edge leads to are on no cycle.
        targets = {target for _, target in left}
        kept = {edge for edge in left if edge[0] in targets}
        if kept == left:
            return True
        left = kept
    return False
