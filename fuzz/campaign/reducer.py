"""Test-case reducer: yields smaller and smaller litmus tests while the caller accepts them.

The reducer runs no test. It generates candidates with the passes of
`fuzz.campaign.reduction_passes`, and repeats the passes until none of them succeeds. The caller
runs each candidate and answers whether it still shows the finding. Executors are nondeterministic,
so the caller decides how many executions that takes; Hypothesis's shrinker would call such a test
flaky.

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
"""Yields candidates, receives True for each that still shows the finding, and returns the smallest
of these."""


def reduce(test: LitmusTest) -> Reduction:
    """Reduce `test` as long as a candidate is accepted.

    A reduction ends: every candidate is a valid test, smaller than the last accepted one in some
    respect, and no candidate is yielded twice.
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
    """The valid candidates of one pass."""
    return _valid(pass_(test))


def _valid(rewriters: Iterator[Rewriter]) -> Iterator[LitmusTest]:
    """Build the rewritten tests, without unused parts; skip those that are not valid."""
    for rewriter in rewriters:
        try:
            made = rewriter.tidy().build()
        except MalformedTest:
            continue
        yield made


def widened(test: LitmusTest) -> Iterator[LitmusTest]:
    """The test with more lanes, if possible, because wider values tear more often.

    Widening is no reduction pass. It precedes the reduction, so that its effect can be measured.
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
    """The same test with names that show the kind of a node, numbered from 0.

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
    """The new name of a result; a loop's results have the names of its carried values."""
    return names[node.results[place]] if isinstance(node.attrs, LoopAttrs) else f"y{place}"
