"""Other names for the parts of a test: canonical ones, and permuted ones.

Names are part of what an executor runs: XLA orders the nodes of a cluster by name, and other
compilers sort by name as well. So a campaign permutes names as noise (`permuted`), and gives a
reduced test its canonical names (`normalized`) only where the finding still shows
(`fuzz.finding.normalization`).
"""

from __future__ import annotations

import random
from itertools import count
from typing import TYPE_CHECKING

from litmusfuzz.corpus.model import LoopAttrs, Naming
from litmusfuzz.corpus.ops import Kind
from litmusfuzz.corpus.rewriter import Rewriter

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from litmusfuzz.corpus.model import LitmusTest, Resource

_PREFIXES = {
    Kind.READ: "r",
    Kind.STATE: "r",
    Kind.WRITE: "w",
    Kind.UPDATE: "w",
    Kind.SECTION: "s",
    Kind.QUEUE: "q",
    Kind.ACCUMULATOR: "a",
    Kind.BRANCH: "branch",
    Kind.LOOP: "loop",
    Kind.CALL: "call",
    Kind.HANDLE: "h",
}


def canonical_names(test: LitmusTest, kept: Collection[str] = ()) -> Naming:
    """Names that show the kind of a node, numbered from 0 in the order of the file.

    Nodes and resources in `kept` keep their names; the others have the names that they would have
    without `kept`, or longer ones where a name is taken.

    Reads become r0, r1, ...; writes and updates w0, ...; queue ops q0, ...; sections s0, ...;
    constants c0, ...; other nodes t0, ...; variables X, Y, Z, V3, ...; mutexes M, N, ...; queues
    Q, P, .... Captures of a body become a0, ..., its results y0, ....
    """
    rewriter = Rewriter.of(test)
    counts: dict[str, int] = {}
    nodes: dict[str, str] = {}
    results: dict[str, str] = {}

    def new(old: str, prefix: str) -> None:
        nodes[old] = free(old, f"{prefix}{counts.get(prefix, 0)}")
        counts[prefix] = counts.get(prefix, 0) + 1

    def free(old: str, name: str) -> str:
        if old in kept:
            return old
        while name in kept:
            name += "x"
        return name

    for node in rewriter.nodes:
        new(
            node.name, "c" if node.definition.constant else _PREFIXES.get(node.definition.kind, "t")
        )
        for each in node.arguments:
            new(each, "a")
        if not isinstance(node.attrs, LoopAttrs):
            results |= {f"{node.name}.{y}": f"y{place}" for place, y in enumerate(node.results)}
    resources = {}
    for letters, prefix, there in (
        ("XYZ", "V", [v.name for v in rewriter.variables]),
        ("MN", "M", [m.name for m in rewriter.mutexes]),
        ("QP", "Q", [q.name for q in rewriter.queues]),
        ("AB", "A", [a.name for a in rewriter.accumulators]),
    ):
        for i, old in enumerate(there):
            resources[old] = free(old, letters[i] if i < len(letters) else f"{prefix}{i}")
    several = len(rewriter.graphs) > 1
    graphs = {g.name: f"g{i}" if several else "main" for i, g in enumerate(rewriter.graphs)}
    runs = {run.name: f"run{i}" for i, run in enumerate(rewriter.client)}
    if not test.client:
        runs = {run.name: graphs[run.graph] for run in rewriter.client}
    clusters = {c.name: f"k{i}" for i, c in enumerate(rewriter.clusters)}
    return Naming(nodes, results, resources, graphs, runs, clusters)


def normalized(test: LitmusTest, name: str, kept: Collection[str] = ()) -> LitmusTest:
    """The same test under canonical names, apart from those kept.

    Without its description and condition, which were about a larger test.
    """
    return test.asked(None).renamed(canonical_names(test, kept)).titled(name, "")


def ranked_names(test: LitmusTest) -> Naming:
    """Names n0, n1, ... for the nodes, in the order that their own names have among each other."""
    names = [name for node in test.nodes for name in (node.name, *node.arguments)]
    digits = len(str(len(names) - 1))
    taken = {each.name for each in test.resources}
    prefix = next("n" + "x" * more for more in count() if not _prefixed("n" + "x" * more, taken))
    return Naming({old: f"{prefix}{rank:0{digits}}" for rank, old in enumerate(sorted(names))})


def _prefixed(prefix: str, names: Iterable[str]) -> bool:
    return any(name.startswith(prefix) for name in names)


def permuted(test: LitmusTest, seed: int) -> LitmusTest:
    """The same test, whose nodes have each other's names; resources of one kind too.

    The names stay those of the test, so that a defect that needs a certain name keeps its chance.
    Every relative order of the names is equally likely. The order of the file stays.
    """
    rng = random.Random(f"names/{seed}")

    def shuffled(old: list[str]) -> dict[str, str]:
        return dict(zip(old, rng.sample(old, len(old)), strict=True)) if old else {}

    nodes = shuffled([node.name for node in test.nodes])
    resources: dict[str, str] = {}
    kinds: tuple[Sequence[Resource], ...]
    kinds = (test.variables, test.mutexes, test.queues, test.accumulators)
    for kind in kinds:
        resources |= shuffled([each.name for each in kind])
    return test.renamed(Naming(nodes=nodes, resources=resources))
