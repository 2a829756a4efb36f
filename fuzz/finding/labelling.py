"""The canonical order of the vertices of a coloured graph (`fuzz.finding.canonical`)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from litmusfuzz.fuzz.finding.coloured_graph import ColouredGraph


MAX_STEPS: Final = 200_000
"""Vertices that the search looks at, at most: about a second. The largest test of the corpus
and of the families takes a thousand."""


class _OverBudget(Exception):
    """The search for the canonical order takes more than `MAX_STEPS`."""


class Labelling:
    """Finds the canonical order of the vertices: `ranks` has each vertex's place in it.

    If the search takes too long, `ranks` has the order of the file instead. Two tests that are
    equal then have the same form only if their files agree in that order: a finding may have two
    keys, but two findings never share one.

    `leaves` has the labellings found so far, by their sorted edges, each with the path of
    individualized vertices that led to it.
    """

    def __init__(self, graph_of_test: ColouredGraph) -> None:
        self.edges = graph_of_test.edges
        self.near: list[list[tuple[str, int]]] = [[] for _ in graph_of_test.colours]
        for label, one, other in graph_of_test.edges:
            self.near[one].append((f"{label} >", other))
            self.near[other].append((f"{label} <", one))
        self.leaves: dict[tuple[tuple[str, int, int], ...], tuple[list[int], tuple[int, ...]]] = {}
        self.automorphisms: list[list[int]] = []
        self.steps = 0
        order = {colour: rank for rank, colour in enumerate(sorted(set(graph_of_test.colours)))}
        colours = [order[colour] for colour in graph_of_test.colours]
        try:
            self._search(self._refined(colours), ())
            self.ranks = self.leaves[min(self.leaves)][0]
        except _OverBudget:
            by_file = sorted(range(len(colours)), key=lambda vertex: (colours[vertex], vertex))
            self.ranks = [0] * len(colours)
            for rank, vertex in enumerate(by_file):
                self.ranks[vertex] = rank

    def _step(self, vertices: int) -> None:
        self.steps += vertices
        if self.steps > MAX_STEPS:
            raise _OverBudget

    def _refined(self, colours: list[int]) -> list[int]:
        """Refine the colours until vertices of one colour have neighbours of the same colours."""
        count = len(set(colours))
        while True:
            self._step(len(colours))
            seen = [
                (colour, tuple(sorted((label, colours[other]) for label, other in near)))
                for colour, near in zip(colours, self.near, strict=True)
            ]
            order = {each: rank for rank, each in enumerate(sorted(set(seen)))}
            colours = [order[each] for each in seen]
            if len(order) == count:
                return colours
            count = len(order)

    def _search(self, colours: list[int], path: tuple[int, ...]) -> int:
        """Individualize each vertex of the smallest cell in turn, and search further.

        A cell is a set of vertices of one colour; `path` has the vertices that are individualized
        so far.

        Returns
        -------
        int
            Length of the part of `path` below which the search continues. It is less than
            ``len(path)`` after an automorphism: the rest of this branch mirrors an earlier one.
        """
        sizes = Counter(colours)
        cells = [(size, colour) for colour, size in sizes.items() if size > 1]
        if not cells:
            return self._leaf(colours, path)
        _, cell = min(cells)
        tried: list[int] = []
        for vertex, colour in enumerate(colours):
            if colour != cell or vertex in self._images(tried, path):
                continue
            split = [2 * each for each in colours]
            split[vertex] -= 1
            kept = self._search(self._refined(split), (*path, vertex))
            if kept < len(path):
                return kept
            tried.append(vertex)
        return len(path)

    def _leaf(self, ranks: list[int], path: tuple[int, ...]) -> int:
        """Add a complete labelling, or an automorphism if its edges equal those of an earlier one.

        Returns the part of `path` below which the search continues, as `_search` does.
        """
        edges = tuple(sorted((label, ranks[one], ranks[other]) for label, one, other in self.edges))
        if edges not in self.leaves:
            self.leaves[edges] = ranks, path
            return len(path)
        earlier, way = self.leaves[edges]
        at = {rank: vertex for vertex, rank in enumerate(ranks)}
        self.automorphisms.append([at[rank] for rank in earlier])
        return next(
            i for i, (one, other) in enumerate(zip(way, path, strict=False)) if one != other
        )

    def _images(self, vertices: Sequence[int], path: tuple[int, ...]) -> set[int]:
        """The vertices, and their images under the automorphisms that fix each vertex of `path`."""
        found = set(vertices)
        waiting = list(vertices)
        self._step(len(self.automorphisms) * (1 + len(path)))
        fixing = [each for each in self.automorphisms if all(each[v] == v for v in path)]
        while waiting:
            vertex = waiting.pop()
            new = {each[vertex] for each in fixing} - found
            found |= new
            waiting += new
        return found
