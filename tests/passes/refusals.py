"""Counts how often the rules refuse a sound pair of nodes, over random graphs.

``python -m tests.passes.refusals --tests 2000`` draws graphs, makes of each
refused pair the smallest cluster that holds both, and validates that. What is
sound there was refused needlessly, as far as this graph's company can see.
Pairs whose smallest cluster holds another refused pair are left out: they say
nothing of their own. docs/clusters.md has the figures.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from typing import TYPE_CHECKING

from litmusfuzz.corpus.model import Cluster, MalformedTest, captures_of, levels
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.bench.clusters import BUDGET, racing
from litmusfuzz.fuzz.generators import FAMILIES, generate
from litmusfuzz.fuzz.passes.clustering import Refusal, Rule, refusals, ssa_order, violations
from litmusfuzz.fuzz.passes.safety import access
from litmusfuzz.oracles.translation import validate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from litmusfuzz.corpus.model import LitmusTest, Node

Tally = Counter[tuple[str, str, str]]
"""Rule, what the pair is, verdict."""


def between(nodes: Sequence[Node], first: str, last: str) -> list[str]:
    """Two nodes and what lies on paths from the one to the other."""
    sources = {
        node.name: {
            name.partition(".")[0] for name in (*node.edges, *(n for _, n in captures_of(node)))
        }
        for node in nodes
    }
    below, above = {first}, {last}
    for node in nodes:
        if sources[node.name] & below:
            below.add(node.name)
    for node in reversed(nodes):
        if node.name in above:
            above |= sources[node.name]
    return [node.name for node in nodes if node.name in below & above | {first, last}]


def count(test: LitmusTest, tally: Tally) -> None:
    """Judge each pair of a test without clusters that a rule on soundness refuses."""
    here = {
        node.name: level.nodes for g in test.graphs for level in levels(g) for node in level.nodes
    }
    for refusal in refusals(test):
        if refusal.rule not in (Rule.UNSAFE_PAIR, Rule.DIFFERENT_WAITS):
            continue
        nodes = here[refusal.first]
        named = {node.name: node for node in nodes}
        members = between(nodes, refusal.first, refusal.second)
        cluster = Cluster("pair", ssa_order(nodes, members))
        try:
            clustered = replace(test, clusters=(cluster,))
        except MalformedTest:
            continue
        if [Refusal(r.first, r.second, r.rule) for r in violations(clustered)] != [refusal]:
            continue
        first, second = named[refusal.first], named[refusal.second]
        what = ""
        if refusal.rule is Rule.UNSAFE_PAIR:
            kinds = [str(kind.value) for kind in (access(first), access(second)) if kind]
            what = f"{' -> '.join(kinds)}, {on(first, second)}"
        tally[refusal.rule, what, validate(clustered, BUDGET).verdict] += 1


def on(first: Node, second: Node) -> str:
    """What variables two ops share: an op on two of them shares one, maybe."""
    common = set(first.resources) & set(second.resources)
    if not common:
        return "different variables"
    alone = len(first.resources) == len(second.resources) == 1
    return "one variable" if alone else "one variable, and another"


def report(tally: Tally) -> str:
    """A line for each kind of pair, in the form of a table of the documentation."""
    lines = ["| rule | pair | refused | sound |", "|---|---|---|---|"]
    for rule, what in sorted({key[:2] for key in tally}):
        judged = {verdict: tally[rule, what, verdict] for verdict in ("sound", "unsound")}
        total = sum(judged.values())
        lines.append(f"| {rule} | {what} | {total} | {judged['sound'] / max(1, total):.0%} |")
    unknown = sum(n for key, n in tally.items() if key[2] == "unknown")
    return "\n".join([*lines, f"unknown: {unknown}"])


def main(arguments: Sequence[str] | None = None) -> int:
    """Count refusals and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tests", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--family", choices=[*FAMILIES, "racing"], default="racing")
    options = parser.parse_args(arguments)
    tally: Tally = Counter()
    for number in range(options.tests):
        if options.family == "racing":
            test = racing(random.Random(f"{options.seed}/{number}"))
        else:
            test = replace(generate(options.family, options.seed, number), clusters=())
        count(test, tally)
    sys.stdout.write(report(tally) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
