"""Relations between the nodes of a test: inside one another, ordered, or unordered."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from litmusfuzz.corpus.model import Graph, all_nodes, bodies, predecessors
from litmusfuzz.corpus.ops import SectionAttrs

if TYPE_CHECKING:
    from collections.abc import Collection

    from litmusfuzz.corpus.model import LitmusTest, Node

Pair = tuple[str, str, str]
"""Two ops on one resource, and their relation."""


class NodeRelations:
    """The relation of any two nodes of a test."""

    def __init__(self, test: LitmusTest) -> None:
        self.paths: dict[str, tuple[str, ...]] = {}  # the graph, the nodes around it, itself
        self.above: dict[str, frozenset[str]] = {}
        self.members: dict[str, tuple[str, ...]] = {}
        for graph in test.graphs:
            self._level(graph.nodes, (graph.name,))
        earlier: dict[str, frozenset[str]] = {}
        for run in test.runs:
            earlier[run.name] = frozenset(run.after).union(*(earlier[a] for a in run.after))
        self.runs = [
            (one.graph, other.graph, one.name in earlier[other.name])
            for one in test.runs
            for other in test.runs
        ]

    def _level(self, nodes: tuple[Node, ...], path: tuple[str, ...]) -> None:
        for node, above in predecessors(Graph("body", nodes)):
            self.paths[node.name] = (*path, node.name)
            self.above[node.name] = above
            if isinstance(node.attrs, SectionAttrs):
                self.members[node.name] = node.attrs.members
            for _, inner in bodies(node):
                self._level(inner.nodes, (*path, node.name))

    def relation(self, a: Node, b: Node) -> str:
        """One of "a inside b", "b inside a", "ordered", "unordered"."""
        left, right = self.paths[a.name], self.paths[b.name]
        if not self.members and left[:-1] == right[:-1] and left != right:  # most pairs
            return self._order(a.name, b.name)
        if right[: len(left)] == left or set(right) & set(self.members.get(a.name, ())):
            return "b inside a"
        if left[: len(right)] == right or set(left) & set(self.members.get(b.name, ())):
            return "a inside b"
        if left[0] != right[0]:
            between = [
                before
                for one, other, before in self.runs
                if (one, other) in ((left[0], right[0]), (right[0], left[0]))
            ]
            # Each pair of runs stands there twice, of which one may be in order.
            return "ordered" if 2 * sum(between) == len(between) else "unordered"
        one, other = next((x, y) for x, y in zip(left, right, strict=False) if x != y)
        return self._order(one, other)

    def _order(self, one: str, other: str) -> str:
        """The relation of two nodes of one graph or body, neither of them inside the other."""
        ordered = one in self.above[other] or other in self.above[one]
        return "ordered" if ordered else "unordered"


def races(test: LitmusTest) -> bool:
    """True if a cluster of two or more resource ops races with an op outside it.

    That is an op that no path leads to or from, on a resource that one of the two changes. Races
    between two runs of one graph are not considered.
    """
    relations = NodeRelations(test)
    nodes = {n.name: n for n in test.nodes}
    for cluster in test.clusters:
        members = [nodes[name] for name in cluster.members]
        inside = [each for each in all_nodes(members) if each.resources]
        outside = [each for each in test.effects if each not in inside]
        if len(inside) > 1 and any(
            any(_conflict(mine, other) for mine in inside)
            and all(relations.relation(each, other) == "unordered" for each in members)
            for other in outside
        ):
            return True
    return False


def _conflict(a: Node, b: Node) -> bool:
    """True if both work on one resource, and one of them changes it."""
    changes = not (a.definition.kind.only_reads and b.definition.kind.only_reads)
    return changes and bool(set(a.resources) & set(b.resources))


def pairs(test: LitmusTest, known: Collection[Pair] = ()) -> set[Pair]:
    """The pairs of ops on one resource, with their relation, apart from those that are known."""
    relations: NodeRelations | None = None
    found = set()
    touching = [(node, frozenset(node.resources)) for node in test.effects if node.resources]
    for (a, mine), (b, others) in combinations(touching, 2):
        if mine.isdisjoint(others):
            continue
        one, other = (a, b) if a.op <= b.op else (b, a)
        # Neither is inside the other: nodes with bodies work on no resource, and a section on a
        # mutex alone, as none of its members does. So most pairs of ops are soon known in both
        # relations, and then there is none to look up.
        if (one.op, other.op, "ordered") in known and (one.op, other.op, "unordered") in known:
            continue
        relations = relations or NodeRelations(test)
        pair = (one.op, other.op, relations.relation(one, other))
        if pair not in known:
            found.add(pair)
    return found
