"""Relaxation: a test with fewer control edges, a model with fewer rules.

`litmusfuzz.oracles.reason` uses it to find a minimal explanation. Control edges of
graphs and bodies, and orders of runs, can be removed one by one. Data edges stay,
since no op can use a value before the value exists.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model import (
    LitmusTest,
    Node,
    Run,
    all_nodes,
    bodies,
    head,
    map_nodes,
)
from litmusfuzz.corpus.ops import Kind
from litmusfuzz.corpus.struct import replace
from litmusfuzz.oracles.model import Axiom, Model

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator


@dataclass(frozen=True, slots=True)
class Edge:
    """`target` waits for `source`: two nodes of one graph or body, or (`runs`) two runs.

    The source may also be a value captured by a body, or one result of a loop or
    conditional, ``loop.i``.
    """

    source: str
    target: str
    runs: bool = False

    def __str__(self) -> str:
        return f"{self.target} waits for {self.source}"


BY_EDGE: Final = frozenset({Axiom.DEPENDENCIES, Axiom.RUNS, Axiom.ONE_CLUSTER})
"""Rules that are removed edge by edge, never as a whole."""


def edges_of(test: LitmusTest) -> list[Edge]:
    """Return every order of two nodes, and of two runs, that the test requires.

    The list holds the transitive closure of the edges: an explanation then need not
    name the nodes between two ends. The least interesting edges stand first, since
    the search removes those first: edges of nodes without events, then edges between
    nodes that are close in the file.
    """
    found: list[tuple[int, Edge]] = []
    for graph in test.graphs:
        found += _edges_in(graph.nodes)
    above: dict[str, dict[str, None]] = {}
    for run in test.client:
        above[run.name] = {}
        for name in run.after:
            above[run.name] |= above[name] | {name: None}
        found += [(len(above[name]), Edge(name, run.name, runs=True)) for name in above[run.name]]
    kept = set(_needed(test))
    found.sort(key=lambda each: (each[0], str(each[1])))
    return [edge for _, edge in found if edge not in kept]


def _needed(test: LitmusTest) -> Iterator[Edge]:
    """Edges without which the test would not be well-formed."""
    yield from _before_closes(test)
    # A run feeds what it executes, and may execute a placeholder only for such an edge. To keep
    # it explains nothing away: a placeholder has its value before the run.
    for graph in test.graphs:
        fed = {node.name for node in graph.nodes if node.definition.fed}
        yield from (
            Edge(name, node.name) for node in graph.nodes for name in node.after if name in fed
        )


def _before_closes(test: LitmusTest) -> Iterator[Edge]:
    """Orders that a well-formed test needs: every enqueue before its queue's Close."""
    for graph in test.graphs:
        for close in graph.nodes:
            if not close.definition.closes:
                continue
            (closing,) = [run.name for run in test.runs if run.graph == graph.name]
            for other in test.graphs:
                puts = [n.name for n in other.nodes if _enqueues(n, close.resources)]
                if other is graph:
                    yield from (Edge(name, close.name) for name in puts)
                elif puts:
                    runs = [run.name for run in test.runs if run.graph == other.name]
                    yield from (Edge(name, closing, runs=True) for name in runs)


def _enqueues(node: Node, queue: tuple[str, ...]) -> bool:
    return any(n.definition.puts and n.resources == queue for n in all_nodes([node]))


def _edges_in(nodes: Collection[Node]) -> Iterator[tuple[int, Edge]]:
    """Yield the edges of a graph and of the bodies inside, with the distance of their ends."""
    place = {node.name: i for i, node in enumerate(nodes)}
    effects = {node.name for node in nodes if node.definition.has_effect}
    above: dict[str, dict[str, None]] = {}  # sources of events that always come before
    by_data: dict[str, dict[str, None]] = {}  # the same, by data edges alone

    def reached(known: dict[str, dict[str, None]], sources: Iterable[str]) -> dict[str, None]:
        found: dict[str, None] = {}
        for source in sources:
            name = head(source)
            found |= known.get(name, {}) | ({source: None} if name in effects else {})
        return found

    for node in nodes:
        # A loop's results need not wait for all of its initial carried values.
        data = () if node.definition.kind is Kind.LOOP else node.inputs
        above[node.name] = reached(above, (*data, *node.after))
        by_data[node.name] = reached(by_data, data)
        if node.name in effects:
            for source in above[node.name].keys() - by_data[node.name].keys():
                apart = place[node.name] - place[head(source)]
                yield apart, Edge(source, node.name)
        for source in node.after:
            if node.name not in effects or source not in above[node.name]:
                yield 0, Edge(source, node.name)
        for _, body in bodies(node):
            yield from _edges_in(body.nodes)


def relaxed(test: LitmusTest, edges: Iterable[Edge]) -> LitmusTest:
    """Return the test with only those edges, and the edges that a well-formed test needs."""
    waits: dict[tuple[str, bool], dict[str, None]] = {}
    for edge in (*_needed(test), *edges):
        waits.setdefault((edge.target, edge.runs), {})[edge.source] = None

    def loose(node: Node) -> Node:
        return replace(node, after=tuple(waits.get((node.name, False), ())))

    graphs = map_nodes(test.graphs, loose)
    client = tuple(
        replace(
            run, after=tuple(waits.get((run.name, True), ())), targets=_executed_targets(test, run)
        )
        for run in test.client
    )
    return replace(test, graphs=graphs, client=client)


def _executed_targets(test: LitmusTest, run: Run) -> tuple[str, ...]:
    """Targets with which a run executes what it does now, whichever edges are left."""
    if not run.wanted:
        return ()
    nodes = test.graph_of(run).nodes
    there = {node.name for node in nodes}
    implied = {*map(head, run.fetches), *(n.name for n in nodes if not there.issuperset(n.members))}
    return tuple(
        node.name
        for node in nodes
        if node.name not in implied and node.op != "Send" and not node.definition.fed
    )


def with_rules(model: Model, rules: Iterable[Axiom]) -> Model:
    """Return the model with only those rules, and the rules that edges stand for."""
    return replace(model, axioms=frozenset(rules) | (model.axioms & BY_EDGE))
