"""Critical cycles: the shapes that a memory model forbids, and no smaller part of which it does.

A cycle goes through chains. Inside a chain it follows program order, from one chain to
the next a communication: a read sees a write (reads-from), a write comes after what a
read saw (from-read), or after another write (coherence). No total order has such a
cycle; without any one of its program-order edges some order does.

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
"""Of which one in ten succeeds."""


class Point(NamedTuple):
    """One access of a cycle: "R" or "W", and the number of its variable."""

    kind: str
    variable: int

    def __str__(self) -> str:
        return f"{self.kind}{'xyzw'[self.variable]}"


@dataclass(frozen=True, slots=True)
class Cycle:
    """Chains of accesses, and what each access sees.

    Parameters
    ----------
    chains : tuple of tuple of Point
        In the order in which the cycle visits them, one access or two in each.
    sees : tuple of int or None
        For each point, numbered along the chains: of a read the write that it reads
        from, of a write the one just before it in coherence order; None for the
        initial contents.
    """

    chains: tuple[tuple[Point, ...], ...]
    sees: tuple[int | None, ...]

    @property
    def points(self) -> tuple[Point, ...]:
        """All accesses."""
        return tuple(point for chain in self.chains for point in chain)

    @property
    def numbers(self) -> tuple[tuple[int, ...], ...]:
        """Of each chain, the numbers of its points."""
        ends = [0]
        for chain in self.chains:
            ends.append(ends[-1] + len(chain))
        return tuple(tuple(range(a, b)) for a, b in pairwise(ends))

    @property
    def program_order(self) -> list[tuple[int, int]]:
        """Its edges inside chains."""
        return [(chain[0], chain[1]) for chain in self.numbers if len(chain) == 2]

    @property
    def variables(self) -> int:
        """How many there are."""
        return 1 + max(point.variable for point in self.points)

    def last(self, variable: int) -> int:
        """The write that comes last in a variable's coherence order."""
        writes = [i for i, p in enumerate(self.points) if p == ("W", variable)]
        return next(i for i in writes if not any(self.sees[j] == i for j in writes))

    @property
    def communication(self) -> list[tuple[int, int]]:
        """Reads-from, coherence and from-read, the last two to the next write only."""
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
        """Whether there is a cycle, and none without any one edge of program order."""
        others, order = self.communication, self.program_order
        return _cyclic([*others, *order]) and not any(
            _cyclic([*others, *(each for each in order if each != gone)]) for gone in order
        )

    def __str__(self) -> str:
        """Its edges as diy calls them: ``PodWR Fre PodWR Fre``."""
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
    """A critical cycle of one to four chains."""
    for _ in range(TRIES):
        cycle = _attempt(rng)
        if cycle is not None and cycle.critical:
            return cycle
    return STORE_BUFFERING


def _attempt(rng: random.Random) -> Cycle | None:
    """Chains at random, and what their accesses see if they are on a cycle; often None."""
    count = rng.choice((1, *(2,) * 5, *(3,) * 8, *(4,) * 8))
    # With neighbours that communicate alike, one access in a chain adds nothing.
    kinds = [rng.choice(("W", "W", "RR", "RW", "WR", "WW")) for _ in range(count)]
    steps = [len(kind) == 2 and rng.random() < 0.8 for kind in kinds]  # to another variable
    for kind, following in zip(kinds, (*kinds[1:], kinds[0]), strict=True):
        if kind[-1] + following[0] == "RR" or (kind == "W" and following[0] == "W"):
            return None
    if sum(steps) == 1:
        return None  # one change of variable leads back nowhere
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
    """What each access sees, such that neighbouring chains communicate; None if they cannot."""
    points, numbers = cycle.points, cycle.numbers
    # Coherence, by variable: two writes at most, which the final contents tell apart.
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
    """Whether some of these edges form a cycle."""
    left = set(edges)
    while left:
        # Edges out of what nothing leads to are on none.
        targets = {target for _, target in left}
        kept = {edge for edge in left if edge[0] in targets}
        if kept == left:
            return True
        left = kept
    return False
