"""Family `mixed`: sections, queues, conditionals, loops and runs combined in one test.

Examples are a section in the body of a loop, a queue op in a branch, and a loop in a section.
Nearly every test has at least two features.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from litmusfuzz.fuzz.generators.runs import random_client, several
from litmusfuzz.fuzz.generators.structured import (
    StatementWeights,
    StructuredContext,
    StructuredGenerator,
    one_graph,
    resources,
    small,
)

if TYPE_CHECKING:
    import random

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.generators.unbuilt import UnbuiltTest
    from litmusfuzz.fuzz.support import Support

# Kind of statement at the top, and of a statement inside it: all possible pairs.
PAIRS = (
    *(("loop", "section"), ("loop", "section"), ("loop", "queue"), ("loop", "branch")),
    *(("branch", "section"), ("branch", "queue"), ("branch", "loop"), ("branch", "branch")),
    *(("section", "queue"), ("section", "queue"), ("section", "loop"), ("section", "branch")),
)


def generate(rng: random.Random, support: Support) -> LitmusTest:
    """Generate a test of the family within a support; all choices come from `rng`."""
    # Chosen once, for all attempts: some pairs are more often too large than others.
    pair = rng.choice(PAIRS)
    runs = rng.random() < 0.25 and "several runs" in support.features
    return small(rng, support, partial(attempt, pair=pair, runs=runs), rng.randint(8, 12))


def attempt(
    rng: random.Random,
    support: Support,
    events: int,
    *,
    arithmetic: bool,
    pair: tuple[str, str],
    runs: bool,
) -> UnbuiltTest:
    """Generate an attempt with a pair of `PAIRS`; see `structured.Attempt`."""
    outer, inner = pair
    context = resources(
        rng,
        support,
        mutexes=rng.choice((1, 1, 2)) if "section" in pair else 0,
        queues=rng.choice((1, 1, 2)) if "queue" in pair else 0,
        arithmetic=arithmetic,
    )
    weights = StatementWeights(
        section=inner == "section", queue=inner == "queue", plain=1, first=inner
    )
    shared = StructuredContext(context, weights, events, balanced=rng.random() < 0.8)
    # Other statements that make it wait: sections, or the other end of a queue.
    waiting = [kind for kind in ("section", "queue") if kind in pair]
    others = rng.choices(("plain", *waiting), k=rng.randint(2, 4))
    if runs:
        client = random_client(rng, 2)
        generators = {}
        for graph, plan in (("g0", [outer, *others[:1]]), ("g1", others[1:] or ["plain"])):
            times = sum(run.graph == graph for run in client)
            generators[graph] = generator = StructuredGenerator(shared, times=times)
            generator.generate(plan, rng.choice((1, 2)))
        if shared.balanced:
            generator.balance()
        return several("mixed", rng, client, generators)
    generator = StructuredGenerator(shared)
    generator.generate([outer, *others] if rng.random() < 0.7 else ["plain", outer, *others], 2)
    if shared.balanced:
        generator.balance()
    if context.queues and rng.random() < 0.15:
        generator.close(more=False)
    return one_graph("mixed", generator)
