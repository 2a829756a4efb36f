"""Passes that take parts of graphs out: runs, nodes, bodies, iterations, sections."""

from __future__ import annotations

from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING

from litmusfuzz.corpus.model import (
    Body,
    BranchAttrs,
    CallAttrs,
    Graph,
    LitmusTest,
    LoopAttrs,
    NestAttrs,
    Node,
    Run,
    redirected,
)
from litmusfuzz.corpus.ops import SectionAttrs
from litmusfuzz.corpus.rewriter import Rewriter
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.finding.reduction_parts import (
    Counters,
    groups,
    int_of,
    nodes_of,
    spliced,
    valued,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


def drop_runs(test: LitmusTest) -> Iterator[Rewriter]:
    """Remove runs."""
    for group in groups([run.name for run in test.runs]):
        if len(group) < len(test.runs):
            yield Rewriter.of(test).without_runs(group)


def drop_effects(test: LitmusTest) -> Iterator[Rewriter]:
    """Remove nodes with an effect; a loop or branch is removed with its bodies."""
    effects = [node.name for node in test.effects]
    for group in groups(effects):
        if len(group) < len(effects):
            yield Rewriter.of(test).without(group, test.types)


def drop_interfaces(test: LitmusTest) -> Iterator[Rewriter]:
    """Remove the captures and results of loops, branches and calls that nothing uses.

    First all of them; then the results alone, and each capture, for which a call waits.
    """
    whole = Rewriter.of(test)
    yield whole.tidy(nodes=False)
    yield whole.tidy(nodes=False, captures=False)
    for node in nodes_of(test):
        if isinstance(node.attrs, NestAttrs):
            for place in range(len(node.attrs.captures)):
                fewer = replace(node.attrs, captures=spliced(node.attrs.captures, place))
                yield whole.with_node(replace(node, attrs=fewer))


def join_runs(test: LitmusTest) -> Iterator[Rewriter]:
    """Join two concurrent runs of different graphs into one run of a joint graph."""
    rewriter = Rewriter.of(test)
    graphs = {graph.name: graph for graph in rewriter.graphs}
    for kept, gone in combinations(rewriter.client, 2):
        once = all(sum(r.graph == run.graph for r in rewriter.client) == 1 for run in (kept, gone))
        whole = bool(kept.wanted) is bool(gone.wanted)
        if not once or kept.after != gone.after or not whole:
            continue
        nodes = graphs[kept.graph].nodes + graphs[gone.graph].nodes
        client = (
            replace(
                r if r is not kept else _both(kept, gone),
                after=tuple(dict.fromkeys(kept.name if a == gone.name else a for a in r.after)),
            )
            for r in rewriter.client
            if r is not gone
        )
        yield replace(
            rewriter,
            graphs=tuple(
                Graph(g.name, nodes if g.name == kept.graph else g.nodes)
                for g in rewriter.graphs
                if g.name != gone.graph
            ),
            client=tuple(client),
            observe=tuple(
                (kept.name if run == gone.name else run, key) for run, key in rewriter.observe
            ),
        )


def _both(one: Run, other: Run) -> Run:
    """The first run, which asks for what the other one asks for as well."""
    return replace(
        one,
        fetches=one.fetches + other.fetches,
        targets=one.targets + other.targets,
        feeds=one.feeds + other.feeds,
    )


def inline(test: LitmusTest) -> Iterator[Rewriter]:
    """Replace a loop, branch or call by the nodes of one of its bodies.

    Nodes with a control edge from it get control edges from all these nodes. A second variant
    drops those edges, because a node that uses a loop's results may run concurrently with other
    ops of the loop.
    """
    for node in nodes_of(test):
        attrs = node.attrs
        whole = Rewriter.of(test)
        free = whole.each_node(partial(_not_after, node.name))
        for rewriter in (whole,) if free == whole else (whole, free):
            if isinstance(attrs, BranchAttrs):
                inner = dict(attrs.captures)
                for body in (attrs.then, attrs.orelse):
                    # Control edges keep the nodes after the predicate, whatever its value.
                    yield _inlined(rewriter, node, body, inner, attrs.results, node.inputs)
            elif isinstance(attrs, LoopAttrs):
                inner = dict(attrs.captures) | dict(zip(attrs.carried, node.inputs, strict=True))
                both = Body(attrs.condition.nodes + attrs.body.nodes, attrs.body.results)
                for body in (attrs.body, both):
                    yield _inlined(rewriter, node, body, inner, attrs.carried, ())
            elif isinstance(attrs, CallAttrs):
                inner = dict(attrs.captures)
                yield _inlined(rewriter, node, attrs.body, inner, attrs.results, ())


def _not_after(name: str, node: Node) -> Node:
    return replace(node, after=tuple(each for each in node.after if each != name))


def _inlined(
    rewriter: Rewriter,
    node: Node,
    body: Body,
    inner: dict[str, str],
    results: tuple[str, ...],
    gates: tuple[str, ...],
) -> Rewriter:
    def swap(ref: str) -> str:
        return inner.get(ref, ref)

    before = (*node.after, *gates)
    nodes = (
        redirected(replace(n, after=tuple(dict.fromkeys((*n.after, *before)))), swap)
        for n in body.nodes
    )
    refs = {
        f"{node.name}.{result}": swap(value)
        for result, value in zip(results, body.results, strict=True)
    }
    return rewriter.instead(node.name, refs, tuple(nodes))


def fewer_iterations(test: LitmusTest) -> Iterator[Rewriter]:
    """Lower the limit of a loop: to one iteration, to half of them, by one."""
    counters = Counters(test)
    for node in nodes_of(test):
        if not isinstance(node.attrs, LoopAttrs):
            continue
        if node.attrs.parallel_iterations != 10:
            attrs = replace(node.attrs, parallel_iterations=10)
            yield Rewriter.of(test).with_node(replace(node, attrs=attrs))
        bound = test.bounds[node.name]
        start, limit, step = counters.of(node)
        for fewer in dict.fromkeys((1, bound // 2, bound - 1)):
            if 0 < fewer < bound:
                most = int_of(start) + (fewer - 1) * int_of(step) + 1
                yield Rewriter.of(test).with_node(valued(limit, most))


def drop_carried(test: LitmusTest) -> Iterator[Rewriter]:
    """Replace a carried value, other than the counter, by its initial value."""
    for node in nodes_of(test):
        if not isinstance(node.attrs, LoopAttrs):
            continue
        attrs = node.attrs
        for place in range(1, len(attrs.carried)):
            name, first = attrs.carried[place], node.inputs[place]
            smaller = replace(
                attrs,
                carried=spliced(attrs.carried, place),
                captures=(*attrs.captures, (name, first)),
                body=replace(attrs.body, results=spliced(attrs.body.results, place)),
            )
            inputs = spliced(node.inputs, place)
            refs = {f"{node.name}.{name}": first}
            rewriter = Rewriter.of(test).each_level(partial(_swapped, refs))
            observe = tuple(each for each in rewriter.observe if each[1] not in refs)
            client = (
                replace(run, fetches=tuple(name for name in run.fetches if name not in refs))
                for run in rewriter.client
            )
            rewriter = replace(rewriter, observe=observe, client=tuple(client))
            yield rewriter.with_node(replace(node, attrs=smaller, inputs=inputs))


def _swapped(refs: dict[str, str], body: Body) -> Body:
    def swap(ref: str) -> str:
        return refs.get(ref, ref)

    nodes = tuple(redirected(node, swap) for node in body.nodes)
    return Body(nodes, tuple(map(swap, body.results)))


def drop_members(test: LitmusTest) -> Iterator[Rewriter]:
    """Remove a node from a critical section, or from a cluster."""
    for node in nodes_of(test):
        if isinstance(node.attrs, SectionAttrs):
            for member in range(len(node.attrs.members)):
                fewer = SectionAttrs(spliced(node.attrs.members, member))
                yield Rewriter.of(test).with_node(replace(node, attrs=fewer))
    rewriter = Rewriter.of(test)
    for place, cluster in enumerate(rewriter.clusters):
        for member in range(len(cluster.members)):
            smaller = replace(cluster, members=spliced(cluster.members, member))
            kept = spliced(rewriter.clusters, place, smaller)
            yield replace(rewriter, clusters=tuple(c for c in kept if c.members))
