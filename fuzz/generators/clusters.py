"""Family `clusters`: tests in which parts of a graph form clusters, which run as one node each.

The members of a cluster are neighbours in a random topological order, which is the cluster's
SSA order, so that no path leaves the cluster and comes back. They may lie in the body of a
loop or conditional, and contain whole loops and conditionals. Other nodes race with them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model import Cluster, all_nodes, levels
from litmusfuzz.corpus.ops import Kind, SectionAttrs
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.generators.structured import (
    StatementWeights,
    StructuredContext,
    StructuredGenerator,
    one_graph,
    resources,
    small,
)

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from litmusfuzz.corpus.model import LitmusTest, Node
    from litmusfuzz.fuzz.generators.unbuilt import UnbuiltTest
    from litmusfuzz.fuzz.support import Support

_WEIGHTS = StatementWeights(branch=1, loop=1, plain=8)
_NEVER: Final = (Kind.QUEUE, Kind.SECTION, Kind.STATE)


def generate(rng: random.Random, support: Support) -> LitmusTest:
    """Generate a test of the family within a support; all choices come from `rng`."""
    return small(rng, support, _attempt, rng.randint(9, 14))


def _attempt(rng: random.Random, support: Support, events: int, *, arithmetic: bool) -> UnbuiltTest:
    context = resources(rng, support, mutexes=int(rng.random() < 0.1), arithmetic=arithmetic)
    generator = StructuredGenerator(StructuredContext(context, _WEIGHTS, events))
    kinds, weights = ("plain", "branch", "loop", "section"), (12, 1, 1, 2 if context.mutexes else 0)
    first = rng.choice(("plain", "plain", "plain", "branch", "loop"))
    plan = [first, *rng.choices(kinds, weights, k=rng.randint(3, 7))]
    generator.generate(plan, rng.choice((2, 2, 3)))
    test = one_graph("clusters", generator)
    return replace(test, clusters=tuple(random_clusters(rng, test)), ends=())


def random_clusters(rng: random.Random, test: UnbuiltTest) -> list[Cluster]:
    """One or two random clusters of one graph or body; none if no nodes can form one."""
    everywhere = [level.nodes for graph in test.graphs for level in levels(graph)]
    rng.shuffle(everywhere)
    # Most often a graph: bodies are small.
    everywhere.sort(key=lambda nodes: nodes not in [g.nodes for g in test.graphs])
    if len(everywhere) > 1 and rng.random() < 0.4:
        everywhere.append(everywhere.pop(0))
    for nodes in everywhere:
        order = _topological(rng, nodes)
        runs = [run for run in _runs(nodes, order) if _weight(run) >= 2]
        if runs:
            run = rng.choice(runs)
            cuts = [run]
            if len(run) >= 4 and rng.random() < 0.5:
                cut = rng.randint(2, len(run) - 2)
                cuts = [run[:cut], run[cut:]]
            clusters = [_part(rng, part) for part in cuts]
            return [
                Cluster(f"k{number}", tuple(node.name for node in members))
                for number, members in enumerate(clusters)
                if members
            ]
    return []


def _topological(rng: random.Random, nodes: Sequence[Node]) -> list[Node]:
    """The nodes in a random topological order."""
    waits = {node.name: set(node.sources) for node in nodes}
    for node in nodes:
        if isinstance(node.attrs, SectionAttrs):
            # The members wait for what the section waits for; the section waits for its members.
            for name in node.attrs.members:
                waits[name] |= node.sources
            waits[node.name] |= set(node.attrs.members)
    ordered: list[Node] = []
    left = {node.name: node for node in nodes}
    while left:
        ready = [node for name, node in left.items() if not waits[name] & left.keys()]
        ordered.append(left.pop(rng.choice(ready).name))
    return ordered


def _runs(nodes: Sequence[Node], order: Sequence[Node]) -> list[list[Node]]:
    """Longest intervals of an order that may form one cluster."""
    sections = [frozenset(n.attrs.members) for n in nodes if isinstance(n.attrs, SectionAttrs)]
    runs: list[list[Node]] = [[]]
    around: list[frozenset[str]] = []
    for node in order:
        if any(n.definition.kind in _NEVER for n in all_nodes([node])):
            runs.append([])
            continue
        here = [each for each in sections if node.name in each]
        if runs[-1] and here != around:
            runs.append([])
        around = here
        runs[-1].append(node)
    return [run for run in runs if run]


def _weight(nodes: Sequence[Node]) -> int:
    """Number of nodes that access a resource, bodies included."""
    return sum(any(n.resources for n in all_nodes([node])) for node in nodes)


def _part(rng: random.Random, run: Sequence[Node]) -> list[Node]:
    """A random part of an interval, with at least two nodes that access a resource if possible."""
    for _ in range(8):
        first = rng.randrange(len(run))
        last = rng.randint(first, min(len(run), first + 8))
        # Constants wait for nothing: leaving one out breaks no path.
        part = [n for n in run[first:last] if not n.definition.constant or rng.random() < 0.3]
        if _weight(part) >= 2:
            return part
    return list(run)
