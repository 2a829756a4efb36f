"""Family `runs`: several graphs, and a client that runs them.

The client orders some runs, and others are concurrent; it may run a graph twice. Some graphs
contain a queue op, so that a run waits for another, or never ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from litmusfuzz.corpus.model import Graph, LitmusTest, Run
from litmusfuzz.fuzz.generators.structured import (
    StatementWeights,
    StructuredContext,
    StructuredGenerator,
    observed,
    resources,
    small,
)
from litmusfuzz.fuzz.generators.unbuilt import UnbuiltTest

if TYPE_CHECKING:
    import random

    from litmusfuzz.fuzz.support import Support

_WEIGHTS = StatementWeights()


def generate(rng: random.Random, support: Support) -> LitmusTest:
    """Generate a test of the family within a support; all choices come from `rng`."""
    return small(rng, support, attempt, rng.randint(10, 15))


def attempt(rng: random.Random, support: Support, events: int, *, arithmetic: bool) -> UnbuiltTest:
    """Generate an attempt; see `structured.Attempt`."""
    blocks = rng.random()
    context = resources(
        rng, support, queues=int(blocks < 0.15), mutexes=int(blocks > 0.88), arithmetic=arithmetic
    )
    kinds, weights = ("plain", "queue", "section"), (4, 2 if context.queues else 0, 0)
    if context.mutexes:
        weights = (2, 0, 2)
    shared = StructuredContext(context, _WEIGHTS, events, balanced=rng.random() < 0.8)
    client = random_client(rng, rng.choice((1, 2, 2, 2, 3)))
    generators = {}
    for graph in sorted({run.graph for run in client}):
        times = sum(run.graph == graph for run in client)
        generators[graph] = generator = StructuredGenerator(shared, times=times)
        generator.generate(
            rng.choices(kinds, weights, k=rng.choice((1, 2, 2, 3, 4))), rng.choice((1, 1, 2))
        )
    if shared.balanced:
        generator.balance()
    return several("runs", rng, client, generators)


def random_client(rng: random.Random, graphs: int) -> tuple[Run, ...]:
    """A random client of two to five runs, each graph at least once; some wait for others."""
    which = [f"g{number}" for number in range(graphs)]
    which += rng.choices(which, k=rng.choice((0, 0, 1, 1, 2)) if graphs > 1 else rng.choice((1, 2)))
    rng.shuffle(which)
    runs: list[Run] = []
    for name, graph in zip("abcdef", which, strict=False):
        after = tuple(run.name for run in runs if rng.random() < 0.3)
        runs.append(Run(name, graph, after))
    return tuple(runs)


def several(
    name: str,
    rng: random.Random,
    client: tuple[Run, ...],
    generators: dict[str, StructuredGenerator],
) -> UnbuiltTest:
    """The test of the graphs that several generators have generated, run by a client."""
    context = next(iter(generators.values())).context
    shown = [f"{run.name}.{key}" for run in client for key in generators[run.graph].shown]
    graphs = tuple(Graph(graph, tuple(each.nodes)) for graph, each in generators.items())
    (*_, last) = generators.values()
    ends = tuple(last.ends)
    return UnbuiltTest(name, context, graphs, observed(rng, shown), client, ends=ends)
