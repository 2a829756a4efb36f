"""Defects in what a run executes and is fed, as changes of a test.

The mutants of `native` and of TensorFlow execute the changed test, and report its outcomes under
the names of the original one.

References
----------
semantics.md, section 1, "Run".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from litmusfuzz.corpus.model import (
    Body,
    Graph,
    head,
    map_bodies,
    pruned,
)
from litmusfuzz.corpus.struct import replace

if TYPE_CHECKING:
    from collections.abc import Callable

    from litmusfuzz.corpus.model import LitmusTest, Run


def unpruned(test: LitmusTest) -> LitmusTest:
    """A run executes its whole graph, whatever it fetches."""
    client = []
    for run in test.client:
        (graph,) = (graph for graph in test.graphs if graph.name == run.graph)
        fed = dict(run.feeds)
        feeds = tuple((n.name, fed.get(n.name, 0)) for n in graph.nodes if n.definition.fed)
        client.append(replace(run, fetches=(), targets=(), feeds=feeds))
    return replace(test, client=tuple(client))


def data_only(test: LitmusTest) -> LitmusTest:
    """Of what a run fetches, only what data edges lead to is executed."""

    def fewer(graph: Graph, run: Run) -> Graph:
        free = Graph(graph.name, tuple(replace(node, after=()) for node in graph.nodes))
        there = {node.name for node in pruned(free, run.wanted).nodes}
        return Graph(
            graph.name,
            tuple(
                replace(node, after=tuple(name for name in node.after if head(name) in there))
                for node in graph.nodes
            ),
        )

    return _each_part(test, fewer)


def without_sections(test: LitmusTest) -> LitmusTest:
    """A run that does not execute a whole section does not enter it."""

    def fewer(graph: Graph, run: Run) -> Graph:
        there = {node.name for node in pruned(graph, run.wanted).nodes}
        return Graph(
            graph.name,
            tuple(n for n in graph.nodes if not n.members or there.issuperset(n.members)),
        )

    return _each_part(test, fewer)


def without_effects(test: LitmusTest) -> LitmusTest:
    """Of a loop or conditional that a run fetches, only what its results need is executed."""

    def fewer(graph: Graph, run: Run) -> Graph:
        return Graph(
            graph.name, tuple(map_bodies(node, _needed_by_results) for node in graph.nodes)
        )

    return _each_part(test, fewer)


def swapped_feeds(test: LitmusTest) -> LitmusTest:
    """Runs of one graph are fed what the next of them should be fed."""
    client = list(test.client)
    for graph in test.graphs:
        places = [i for i, run in enumerate(client) if run.graph == graph.name and run.feeds]
        feeds = [client[place].feeds for place in places]
        for place, other in zip(places, feeds[1:] + feeds[:1], strict=True):
            given = dict(other)
            swapped = tuple((name, given.get(name, value)) for name, value in client[place].feeds)
            client[place] = replace(client[place], feeds=swapped)
    return replace(test, client=tuple(client))


def _each_part(test: LitmusTest, change: Callable[[Graph, Run], Graph]) -> LitmusTest:
    """The test with each graph changed that one run executes, and in part."""
    runs = {graph.name: [r for r in test.client if r.graph == graph.name] for graph in test.graphs}
    graphs = (
        change(graph, runs[graph.name][0])
        if len(runs[graph.name]) == 1 and runs[graph.name][0].wanted
        else graph
        for graph in test.graphs
    )
    return replace(test, graphs=tuple(graphs))


def _needed_by_results(body: Body) -> Body:
    part = pruned(Graph("", body.nodes), body.results)
    nodes = tuple(map_bodies(node, _needed_by_results) for node in part.nodes)
    return replace(body, nodes=nodes)
