"""Yields smaller and smaller litmus tests, as long as the caller confirms them.

An executor is not deterministic, so that the caller has to run a smaller test often enough to know
whether it still shows the finding; Hypothesis's shrinker would call such a test flaky. This module
only says which smaller tests there are and in which order they are tried: the passes of
`fuzz.campaign.reduction_passes`, repeated until none of them succeeds.

References
----------
MacIver, Hypothesis, ``shrinker.py`` (class docstring): passes to a fixed point.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import replace

from litmusfuzz.corpus.model import (
    Graph,
    LitmusTest,
    LoopAttrs,
    MalformedTest,
    Node,
    renamed,
)
from litmusfuzz.corpus.ops import Kind
from litmusfuzz.corpus.rewriter import Rewriter
from litmusfuzz.fuzz.campaign.reduction_passes import PASSES, Pass, wider_lanes

Reduction = Generator[LitmusTest, bool, LitmusTest]
"""Yields candidates; is sent True if a candidate still shows the finding; returns the smallest
such test."""


def reduce(test: LitmusTest) -> Reduction:
    """Make `test` smaller while the answers are True.

    Every candidate is a valid test, in some way smaller than the last one accepted, and is yielded
    once. So a reduction ends.
    """
    asked = {test}
    current = test
    progress = True
    while progress:
        progress = False
        for pass_ in PASSES:
            improved = True
            while improved:
                improved = False
                for candidate in _valid(pass_(current)):
                    if candidate in asked:
                        continue
                    asked.add(candidate)
                    if (yield candidate):
                        current = candidate
                        progress = improved = True
                        break
    return current


def candidates(pass_: Pass, test: LitmusTest) -> Iterator[LitmusTest]:
    """The valid tests that one pass makes of a test."""
    return _valid(pass_(test))


def _valid(rewriters: Iterator[Rewriter]) -> Iterator[LitmusTest]:
    """The rewritten tests that are valid, tidied."""
    for rewriter in rewriters:
        try:
            made = rewriter.tidy().build()
        except MalformedTest:
            continue
        yield made


def widened(test: LitmusTest) -> Iterator[LitmusTest]:
    """The test with wider lanes, if possible, because values tear more often there.

    This is no reduction step; it precedes one, so that its effect can be measured alone.
    """
    yield from _valid(wider_lanes(test))


_PREFIXES = {
    Kind.READ: "r",
    Kind.WRITE: "w",
    Kind.UPDATE: "w",
    Kind.SECTION: "s",
    Kind.QUEUE: "q",
    Kind.BRANCH: "branch",
    Kind.LOOP: "loop",
}


def normalized(test: LitmusTest, name: str) -> LitmusTest:
    """The same test with names that tell a node's kind, numbered from 0.

    Reads become r0, r1, ...; writes and updates w0, ...; queue ops q0, ...; sections s0, ...;
    constants c0, ...; other nodes t0, ...; variables X, Y, Z, V3, ...; mutexes M, N, ...; queues
    Q, P, .... Captures of a body become a0, .... The description is dropped: it described a larger
    test.
    """
    rewriter = Rewriter.of(test)
    counts: dict[str, int] = {}
    names: dict[str, str] = {}

    def new(old: str, prefix: str) -> None:
        names[old] = f"{prefix}{counts.get(prefix, 0)}"
        counts[prefix] = counts.get(prefix, 0) + 1

    for node in rewriter.nodes:
        new(
            node.name, "c" if node.definition.constant else _PREFIXES.get(node.definition.kind, "t")
        )
        for each in node.arguments:
            new(each, "a")
        for place, result in enumerate(node.results):
            names[f"{node.name}.{result}"] = f"{names[node.name]}.{_result(names, node, place)}"
    for letters, prefix, resources in (
        ("XYZ", "V", [v.name for v in rewriter.variables]),
        ("MN", "M", [m.name for m in rewriter.mutexes]),
        ("QP", "Q", [q.name for q in rewriter.queues]),
    ):
        for i, old in enumerate(resources):
            names[old] = letters[i] if i < len(letters) else f"{prefix}{i}"
    graphs = {
        g.name: f"g{i}" if len(rewriter.graphs) > 1 else "main"
        for i, g in enumerate(rewriter.graphs)
    }
    runs = {run.name: f"run{i}" for i, run in enumerate(rewriter.client)}
    if not test.client:
        runs = {run.name: graphs[run.graph] for run in rewriter.client}
    clusters = {c.name: f"k{i}" for i, c in enumerate(rewriter.clusters)}
    return replace(
        rewriter,
        name=name,
        description="",
        variables=tuple(replace(v, name=names[v.name]) for v in rewriter.variables),
        mutexes=tuple(replace(m, name=names[m.name]) for m in rewriter.mutexes),
        queues=tuple(replace(q, name=names[q.name]) for q in rewriter.queues),
        graphs=tuple(
            Graph(graphs[g.name], tuple(renamed(n, names) for n in g.nodes))
            for g in rewriter.graphs
        ),
        client=tuple(
            replace(
                run,
                name=runs[run.name],
                graph=graphs[run.graph],
                after=tuple(runs[a] for a in run.after),
            )
            for run in rewriter.client
        ),
        clusters=tuple(
            replace(c, name=clusters[c.name], members=tuple(names[m] for m in c.members))
            for c in rewriter.clusters
        ),
        observe=tuple((runs[run], names[key]) for run, key in rewriter.observe),
    ).build()


def _result(names: dict[str, str], node: Node, place: int) -> str:
    """A loop's results have its carried values' names."""
    return names[node.results[place]] if isinstance(node.attrs, LoopAttrs) else f"y{place}"
