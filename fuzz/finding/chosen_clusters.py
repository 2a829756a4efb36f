"""Clusters that an executor chose for a test, as clusters of the test itself.

Translation validation compares a test with clusters to the same test without. An executor's
clusters come as names of nodes. Two things that a compiler does on the way are done to the test as
well; neither changes its allowed set:

- A constant that nodes in several clusters use is cloned, one for each cluster.
- A transfer that was compiled with a cluster is an Identity.

Where `tf.function`s build the graph, the test has the edges of automatic control dependencies, too.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model import (
    Body,
    Cluster,
    FreshNames,
    LitmusTest,
    MalformedTest,
    Node,
    levels,
    map_levels,
    map_nodes,
    redirected,
)
from litmusfuzz.corpus.ops import ConstAttrs, Kind
from litmusfuzz.corpus.struct import replace
from litmusfuzz.oracles.events import in_program_order

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from litmusfuzz.fuzz.executors.protocol import ChosenClusters

SEVERAL_BODIES: Final = "a cluster with nodes of several graphs or bodies"
SEVERAL_PARTS: Final = "runs that execute different parts of one graph"
PART_OF_A_SECTION: Final = "a run that executes a part of a critical section"
NO_CLUSTER: Final = "a cluster that the semantics does not describe"

Members = tuple[str, ...]


class NotDescribed(Exception):
    """The semantics says nothing about these clusters.

    Parameters
    ----------
    reason : str
        A sentence without names.
    details : str
        The same with names, if there are any.
    """

    def __init__(self, reason: str, details: str = "") -> None:
        super().__init__(f"{reason}: {details}" if details else reason)
        self.reason = reason


def with_chosen(test: LitmusTest, chosen: ChosenClusters) -> LitmusTest:
    """The test with clusters that an executor chose for it.

    Parameters
    ----------
    test : LitmusTest
        Its own clusters are dropped.
    chosen : ChosenClusters

    Raises
    ------
    NotDescribed
        If the clusters are not known, or break a rule of semantics.md, section 5.
    """
    if chosen.problem:
        raise NotDescribed(chosen.problem)
    plain = executed(test)
    levels_of = {
        node.name: number
        for number, level in enumerate(each for g in plain.graphs for each in levels(g))
        for node in level.nodes
    }
    for members in chosen.clusters:
        if len({levels_of[name] for name in members}) > 1:
            raise NotDescribed(SEVERAL_BODIES, ", ".join(members))
    kinds = {node.name: node.definition.kind for node in plain.nodes}
    try:
        if chosen.in_functions:
            plain = replace(plain, graphs=tuple(map(in_program_order, plain.graphs)))
        if any(kinds[name] is Kind.TRANSFER for each in chosen.clusters for name in each):
            plain = replace(plain, graphs=map_nodes(plain.graphs, _without_transfer))
        try:
            return _clustered(plain, chosen.clusters)
        except MalformedTest:
            return _clustered(*_with_clones(plain, chosen.clusters))
    except MalformedTest as error:
        raise NotDescribed(NO_CLUSTER, str(error)) from None


def executed(test: LitmusTest) -> LitmusTest:
    """The test without clusters, whose graphs are what their runs execute.

    A test with clusters has no run that fetches.

    Raises
    ------
    NotDescribed
        If there is no such test.
    """
    test = replace(test, clusters=())
    if "fetches" not in test.features:
        return test
    graphs = []
    for graph in test.graphs:
        parts = {run.wanted: test.graph_of(run) for run in test.runs if run.graph == graph.name}
        if len(parts) > 1:
            raise NotDescribed(SEVERAL_PARTS, graph.name)
        (part,) = parts.values() or (graph,)
        names = {node.name for node in part.nodes}
        if any(not names.issuperset(node.members) for node in part.nodes):
            raise NotDescribed(PART_OF_A_SECTION, graph.name)
        graphs.append(part)
    client = tuple(replace(run, fetches=(), targets=()) for run in test.client)
    return replace(test, graphs=tuple(graphs), client=client)


def _clustered(test: LitmusTest, clusters: Sequence[Members]) -> LitmusTest:
    names = FreshNames((*test.types, *(each.name for each in test.resources)))
    made = tuple(Cluster(names.numbered("c"), tuple(members)) for members in clusters)
    return replace(test, clusters=made)


def _swapped(swap: Mapping[str, str], name: str) -> str:
    return swap.get(name, name)


def _without_transfer(node: Node) -> Node:
    return replace(node, op="Identity") if node.definition.kind is Kind.TRANSFER else node


def _with_clones(
    test: LitmusTest, clusters: Sequence[Members]
) -> tuple[LitmusTest, tuple[Members, ...]]:
    """The test and its clusters, with a clone of each constant in each cluster that uses it."""
    names = FreshNames((*test.types, *(each.name for each in test.resources)))
    home = {name: number for number, members in enumerate(clusters) for name in members}
    clones: dict[tuple[int, str], str] = {}
    first: dict[str, str] = {}  # of each clone, the first of the members that use it

    def change(body: Body) -> Body:
        constants = {n.name: n for n in body.nodes if isinstance(n.attrs, ConstAttrs)}
        swaps: dict[str, dict[str, str]] = {}
        for number, members in enumerate(clusters):
            here = {node.name: node for node in body.nodes if node.name in members}
            for member in (name for name in members if name in here):
                for source in here[member].inputs:
                    if source in constants and home.get(source) != number:
                        if (number, source) not in clones:
                            clones[number, source] = names.like(source)
                            first[clones[number, source]] = member
                        swaps.setdefault(member, {})[source] = clones[number, source]
        nodes: list[Node] = []
        for node in body.nodes:
            swap = swaps.get(node.name, {})
            nodes.append(redirected(node, partial(_swapped, swap)))
            if node.name in constants:
                mine = (new for (_, source), new in clones.items() if source == node.name)
                nodes += (replace(node, name=new) for new in mine)
        return replace(body, nodes=tuple(nodes))

    graphs = map_levels(test.graphs, change)
    larger = tuple(
        tuple(
            each
            for name in members
            for each in (
                *(new for (of, _), new in clones.items() if of == number and first[new] == name),
                name,
            )
        )
        for number, members in enumerate(clusters)
    )
    return replace(test, graphs=graphs), larger
