"""Contraction of an acyclic graph: which of its nodes may be joined without making a cycle.

References
----------
TensorFlow's clusterer asks the same of ``GraphCycles`` (Pearce and Kelly, "A Dynamic Topological
Sort Algorithm for Directed Acyclic Graphs", JEA 2006), which searches the graph for each edge. A
graph here has some thousand nodes at most, so that we keep what each group reaches as a bit mask.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from litmusfuzz.fuzz.passes.safety import ones

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Contraction:
    """Groups of the nodes of an acyclic graph; at first, each node is a group.

    Nodes are numbers, and sets of nodes bit masks. A group is named by one of its nodes, its
    *root*.

    Parameters
    ----------
    following : sequence of int
        Direct successors of each node, (n,), all of which have higher numbers.

    Notes
    -----
    `_reached` has, by root, the roots of all groups that a path leads to. Joining leaves the names
    of former roots there, which nobody asks for. All that is stored of a group is so for every
    group before it, as well: a search for what lacks something ends at the first that has it.
    """

    def __init__(self, following: Sequence[int]) -> None:
        count = len(following)
        self._parent = list(range(count))
        self._roots = (1 << count) - 1
        self._successors: list[set[int]] = [set(ones(mask)) for mask in following]
        self._predecessors: list[set[int]] = [set() for _ in range(count)]
        self._reached = list(following)
        for i in reversed(range(count)):
            for j in self._successors[i]:
                self._predecessors[j].add(i)
                self._reached[i] |= self._reached[j]

    def root(self, node: int) -> int:
        """Root of a node's group."""
        parent = self._parent
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    def has_other_path(self, first: int, second: int) -> bool:
        """True if a path leads from the first group to the second through others.

        An edge leads there, and no cycle through groups is there yet. So such a path, and no other
        one, becomes a cycle if the two are joined.
        """
        if len(self._predecessors[second]) <= len(self._successors[first]):
            reached = self._reached[first]
            between = self._beside(self._predecessors, second) - {first}
            return any(reached >> each & 1 for each in between)
        between = self._beside(self._successors, first) - {second}
        return any(self._reached[each] >> second & 1 for each in between)

    def is_cyclic(self, roots: Sequence[int]) -> bool:
        """True if a path leaves these groups and returns; other groups count as one node each."""
        inside, reached = set(roots), 0
        for each in roots:
            reached |= self._reached[each]
        before = (each for root in roots for each in self._beside(self._predecessors, root))
        return any(reached >> each & 1 for each in before if each not in inside)

    def _beside(self, edges: list[set[int]], root: int) -> set[int]:
        """Roots of the other groups that edges join to a group."""
        edges[root] = {self.root(each) for each in edges[root]} - {root}
        return edges[root]

    def join(self, roots: Sequence[int]) -> int:
        """Join groups; return the root of the new one, which is the last of these roots."""
        root, here, reached = roots[-1], 0, 0
        for each in roots:
            here |= 1 << each
            reached |= self._reached[each]
        self._roots &= ~here | 1 << root
        reached &= self._roots & ~here
        # Groups before one of these are now before all that any of these reaches.
        wanted = reached | 1 << root
        front: set[int] = set()
        for each in roots:
            if wanted & ~(self._reached[each] | 1 << each):
                front |= self._predecessors[each]
        for each in roots[:-1]:
            self._parent[each] = root
            for edges in (self._successors, self._predecessors):
                small, large = sorted((edges[each], edges[root]), key=len)
                large |= small
                edges[root] = large
                edges[each] = set()
        self._reached[root] = reached
        self._add_before(front, root, wanted)
        return root

    def _add_before(self, front: Iterable[int], joined: int, wanted: int) -> None:
        """Add to what some groups reach, and to what those before them reach."""
        waiting = list(front)
        while waiting:
            root = self.root(waiting.pop())
            if root != joined and wanted & ~self._reached[root]:
                self._reached[root] |= wanted
                waiting += self._predecessors[root]
