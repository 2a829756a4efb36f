"""What mutations of seeds reach that the families without seeds do not, by generation alone.

``python -m tests.programs.seed_coverage FOLDER --tests 600`` generates tests of every family for
TensorFlow, which are the base. Then it generates as many mutations of the corpus alone as of the
corpus and the seeds in FOLDER, and prints what each adds to the base. Nothing is executed.

A *pair* is two ops on one resource, and whether they are ordered (`fuzz.campaign.family_weights`).
A *triple* is three ops of which two pairs share a resource, with the order of each two.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from itertools import combinations, permutations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from litmusfuzz.fuzz.cli.campaigns import seeds_from
from litmusfuzz.fuzz.executors.table import executor_class
from litmusfuzz.fuzz.finding.relations import NodeRelations, pairs
from litmusfuzz.fuzz.generators import FAMILIES, NotGenerated, families_for, generate
from litmusfuzz.fuzz.generators.seeds import Seeds

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from litmusfuzz.corpus.model import LitmusTest, Node

MAX_ACCESSES = 14
"""Triples are counted of tests with no more accesses; others would take most of the time."""


def triples(test: LitmusTest) -> Iterator[Hashable]:
    """The triples of a test, each in one form."""
    relations = NodeRelations(test)
    accesses = [node for node in test.effects if node.resources][:MAX_ACCESSES]

    def between(one: Node, other: Node) -> tuple[str, bool]:
        shared = bool(set(one.resources) & set(other.resources))
        return relations.relation(one, other), shared

    for three in combinations(accesses, 3):
        found = {(a, b): between(three[a], three[b]) for a, b in permutations(range(3), 2)}
        if sum(found[a, b][1] for a, b in combinations(range(3), 2)) >= 2:
            yield min(
                (
                    tuple(three[n].op for n in order),
                    tuple(found[order[a], order[b]] for a, b in combinations(range(3), 2)),
                )
                for order in permutations(range(3))
            )


def fan_in(test: LitmusTest) -> int:
    """The most reads whose values go into one access, through pure ops."""
    nodes = {node.name: node for node in test.nodes}
    most = 0
    for node in test.effects:
        reads, todo, seen = 0, [*node.inputs], set[str]()
        while todo:
            name = todo.pop().partition(".")[0]
            if name in seen or name not in nodes:
                continue
            seen.add(name)
            if nodes[name].definition.has_effect:
                reads += 1
            else:
                todo += nodes[name].inputs
        most = max(most, reads)
    return most


class Reached:
    """Pairs, triples and sizes of tests."""

    def __init__(self) -> None:
        self.pairs: set[Any] = set()
        self.triples: set[Hashable] = set()
        self.sizes: dict[str, Counter[int]] = {
            name: Counter() for name in ("accesses", "variables", "values into one access")
        }
        self.tests = 0

    def add(self, test: LitmusTest) -> None:
        """Count a test."""
        self.tests += 1
        self.pairs |= pairs(test)
        self.triples |= {*triples(test)}
        self.sizes["accesses"][sum(bool(node.resources) for node in test.effects)] += 1
        self.sizes["variables"][len(test.variables)] += 1
        self.sizes["values into one access"][fan_in(test)] += 1


def say(line: str) -> None:
    """Print a line."""
    sys.stdout.write(f"{line}\n")


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tests", type=int, default=600)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    support = executor_class("tf").support
    seeds = Seeds.of(seeds_from([str(options.folder)], ["tf"], {}))
    assert seeds is not None

    def reached(family: str, first: int, count: int, given: Seeds | None, into: Reached) -> None:
        for index in range(first, first + count):
            try:
                into.add(generate(family, options.seed, index, support, given))
            except NotGenerated:
                continue

    base = Reached()
    families = [name for name in families_for(support) if FAMILIES[name].weight]
    for name in families:
        reached(name, 0, options.tests, None, base)
        sys.stderr.write(f"{name}\n")
    say(f"seeds: {len(seeds.tests)}, {len(seeds.supported(support))} within the support of tf")
    say(f"base: {base.tests} tests, {len(base.pairs)} pairs, {len(base.triples)} triples")
    for title, given in (("the corpus alone", None), ("the corpus and seeds", seeds)):
        found = Reached()
        reached("mutations", options.tests, options.tests, given, found)
        say(f"{found.tests} mutations of {title}:")
        say(f"  pairs {len(found.pairs)}, new {len(found.pairs - base.pairs)}")
        say(f"  triples {len(found.triples)}, new {len(found.triples - base.triples)}")
        for name, sizes in found.sizes.items():
            larger = sum(count for size, count in sizes.items() if size > max(base.sizes[name]))
            mean = sum(size * count for size, count in sizes.items()) / found.tests
            say(f"  {name}: {mean:.1f}, at most {max(sizes)}, {larger} tests beyond the base")


if __name__ == "__main__":
    main()
