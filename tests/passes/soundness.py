"""Checks on random graphs that the safety analysis is exact and permitted clusters are sound.

``python -m tests.passes.soundness --tests 10000 --workers 2 --seed 1`` draws the
graphs, compares `unsafe_pairs` with an independent definition, clusters each in
several ways, and validates every clustering. It prints how many there were, and
exits with 1 on any disagreement or conviction, whose test it writes as a corpus
file. ``make nightly`` runs many, ``make test`` runs a few hundred graphs.

A clustering that is too large for the oracle's budget is `unknown`: counted.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model import MAX_NODES, all_nodes, bodies, captures_of, levels
from litmusfuzz.corpus.ops import Kind, SectionAttrs
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import Entry, dumps
from litmusfuzz.fuzz.generators import FAMILIES, generate
from litmusfuzz.fuzz.passes.clustering import (
    Clustering,
    RegionRefused,
    Rule,
    cluster,
    may_have_clusters,
)
from litmusfuzz.fuzz.passes.safety import access, unsafe_pairs
from litmusfuzz.oracles.explorer import Budget
from litmusfuzz.oracles.translation import Soundness, validate

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from litmusfuzz.corpus.model import LitmusTest, Node

BUDGET: Final = Budget(states=50_000, memory_bytes=256 << 20)
UNKNOWN_MAX: Final = 0.02
"""Share of clusterings that may be too large for the budget."""


# --- the analysis, defined anew --------------------------------------------------------


def sources(node: Node) -> set[str]:
    """Sources of the edges into a node."""
    outer = [name for _, name in captures_of(node)]
    return {name.split(".")[0] for name in [*node.edges, *outer]}


def pairs_by_path_search(nodes: Sequence[Node]) -> set[tuple[str, str]]:
    """Unsafe pairs by their definition: for each pair of nodes a search for a path.

    Each node begins and ends. A section begins before its members, and ends
    after them.
    """
    follows: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for node in nodes:
        follows.setdefault(("begin", node.name), []).append(("end", node.name))
        for source in sources(node):
            follows.setdefault(("end", source), []).append(("begin", node.name))
        if isinstance(node.attrs, SectionAttrs):
            for name in node.attrs.members:
                follows.setdefault(("begin", node.name), []).append(("begin", name))
                follows.setdefault(("end", name), []).append(("end", node.name))

    def path(first: str, second: str) -> bool:
        stack, seen = [("end", first)], set()
        while stack:
            here = stack.pop()
            if here == ("begin", second):
                return True
            if here not in seen:
                seen.add(here)
                stack += follows.get(here, [])
        return False

    def touches(node: Node, kinds: set[Kind]) -> bool:
        inside = [each for _, body in bodies(node) for each in all_nodes(body.nodes)]
        return node.definition.kind in kinds or any(each.resources for each in inside)

    return {
        (a.name, b.name)
        for a in nodes
        for b in nodes
        if touches(a, {Kind.WRITE, Kind.UPDATE})
        and touches(b, {Kind.READ, Kind.UPDATE})
        and path(a.name, b.name)
    }


# --- what is asked of each test --------------------------------------------------------


@dataclass
class Tally:
    """Counts of checks and of their results."""

    tests: int = 0
    without: int = 0
    """Tests that can have no clusters."""
    pairs: int = 0
    clusterings: Counter[str] = field(default_factory=Counter)
    """By verdict; "none" where nothing could be clustered."""
    members: Counter[int] = field(default_factory=Counter)
    """Clusterings by the most ops on variables that one cluster has."""
    problems: list[tuple[str, str]] = field(default_factory=list)
    """Failed checks, each with the test as a file."""

    @property
    def judged(self) -> int:
        """Number of clusterings with a verdict, `unknown` included."""
        return sum(self.clusterings[verdict] for verdict in Soundness)

    def add(self, other: Tally) -> None:
        """Add what another process counted."""
        self.tests += other.tests
        self.without += other.without
        self.pairs += other.pairs
        self.clusterings += other.clusterings
        self.members += other.members
        self.problems += other.problems


def clusterings(test: LitmusTest, rng: random.Random) -> Iterator[LitmusTest]:
    """Clusterings that the default rules permit: in order, in random order, small, and regions."""
    yield cluster(test)
    yield cluster(test, Clustering(), rng)
    yield cluster(test, Clustering(least=1, most=rng.choice((1, 2, 3, 4))), rng)
    yield cluster(test, Clustering(most=rng.choice((3, 5, 8))), rng)
    for _ in range(3):
        with suppress(RegionRefused):
            yield cluster(test, Clustering(regions=region(test, rng), least=MAX_NODES), rng)


def region(test: LitmusTest, rng: random.Random) -> tuple[tuple[str, ...], ...]:
    """Some ops on variables of one level, and what lies on paths between them; they may have none.

    None at all if there are too few.
    """
    known = [level.nodes for graph in test.graphs for level in levels(graph)]
    working = [[n for n in nodes if access(n) is not None] for nodes in known]
    places = [i for i, nodes in enumerate(working) if len(nodes) >= 2]
    if not places:
        return ()
    place = rng.choice(places)
    sizes = range(2, min(3, len(working[place])) + 1)
    below = {n.name for n in rng.sample(working[place], rng.choice(sizes))}
    above = set(below)
    for node in known[place]:
        if sources(node) & below:
            below.add(node.name)
    for node in reversed(known[place]):
        if node.name in above:
            above |= sources(node)
    return (tuple(node.name for node in known[place] if node.name in below & above),)


def ask(family: str, seed: int, index: int, tally: Tally) -> None:
    """Generate one test and check it."""
    test = replace(generate(family, seed, index), clusters=())
    tally.tests += 1
    tally.without += not may_have_clusters(test)
    for graph in test.graphs:
        for nodes, _, _ in levels(graph):
            wanted, got = pairs_by_path_search(nodes), unsafe_pairs(nodes)
            tally.pairs += len(wanted)
            if wanted != got:
                tally.problems.append((f"unsafe pairs: {sorted(wanted ^ got)}", dumps(Entry(test))))
    nodes = {node.name: node for node in test.nodes}
    for clustered in dict.fromkeys(clusterings(test, random.Random(index))):
        if not clustered.clusters:
            tally.clusterings["none"] += 1
            continue
        tally.members[
            max(
                sum(access(nodes[name]) is not None for name in each.members)
                for each in clustered.clusters
            )
        ] += 1
        found = validate(clustered, BUDGET)
        tally.clusterings[found.verdict] += 1
        if found.verdict is Soundness.UNSOUND:
            tally.problems.append((f"adds {found.added}", dumps(Entry(clustered))))


def part(families: Sequence[str], seed: int, numbers: range) -> Tally:
    """Check some of the tests, alternating between families."""
    tally = Tally()
    for number in numbers:
        ask(families[number % len(families)], seed, number // len(families), tally)
    return tally


def without(rule: Rule, families: Sequence[str], seed: int, tests: int) -> Tally:
    """Counts of unsound clusterings if a rule is left out; the rule is needed if there are any."""
    tally = Tally()
    for number in range(tests):
        test = generate(families[number % len(families)], seed, number // len(families))
        plain = replace(test, clusters=())
        clustered = cluster(plain, Clustering(without=frozenset({rule})), random.Random(number))
        found = validate(clustered, BUDGET)
        tally.clusterings[found.verdict] += 1
    return tally


# --- the command line ------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 1 if a check failed, 2 if too many verdicts are unknown."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tests", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--family", action="append", choices=sorted(FAMILIES))
    parser.add_argument("--out", type=Path, default=Path("disagreements"))
    options = parser.parse_args(arguments)
    families = options.family or tuple(FAMILIES)
    chunks = [range(n, min(n + 40, options.tests)) for n in range(0, options.tests, 40)]
    began = time.monotonic()
    tally = Tally()
    context = get_context("spawn")
    with ProcessPoolExecutor(options.workers, mp_context=context) as pool:
        for done in pool.map(partial(part, families, options.seed), chunks):
            for number, (problem, file) in enumerate(done.problems, len(tally.problems)):
                options.out.mkdir(parents=True, exist_ok=True)
                path = options.out / f"soundness-{options.seed}-{number}.yaml"
                path.write_text(file, encoding="utf-8")
                sys.stderr.write(f"\n{path}: {problem}\n")
            tally.add(done)
            seconds = time.monotonic() - began
            sys.stderr.write(f"\r{tally.tests}/{options.tests} tests, {seconds:.0f} s ")
    share = tally.clusterings[Soundness.UNKNOWN] / max(1, tally.judged)
    sys.stderr.write("\n")
    sys.stdout.write(
        f"{tally.tests} tests, {tally.pairs} unsafe pairs, {len(tally.problems)} problems\n"
        f"clusterings: { ({str(k): n for k, n in sorted(tally.clusterings.items())}) }\n"
        f"by ops on variables in the largest cluster: {dict(sorted(tally.members.items()))}\n"
    )
    if tally.problems:
        return 1
    return 2 if share > UNKNOWN_MAX else 0


if __name__ == "__main__":
    # Or its workers would go on without it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
