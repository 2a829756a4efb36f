"""Family `calls`: function calls that race, nested and among statements of all other kinds.

A call has arguments and results, or none of them; later statements wait for the call, whose
instances are all done then, or use a result, which may leave early.
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

# Kind of statement at the top, and of a statement inside it: one of them is a call.
_PAIRS = (
    *(("call", "plain"),) * 4,
    *(("call", "call"), ("call", "branch"), ("call", "loop"), ("call", "section")),
    *(("call", "queue"), ("loop", "call"), ("branch", "call"), ("section", "call")),
)


def generate(rng: random.Random, support: Support) -> LitmusTest:
    """Generate a test of the family within a support; all choices come from `rng`."""
    # Chosen once, for all attempts: some pairs are more often too large than others.
    pair = rng.choice(_PAIRS)
    runs = rng.random() < 0.15 and "several runs" in support.features
    return small(rng, support, partial(_attempt, pair=pair, runs=runs), rng.randint(8, 13))


def _attempt(
    rng: random.Random,
    support: Support,
    events: int,
    *,
    arithmetic: bool,
    pair: tuple[str, str],
    runs: bool,
) -> UnbuiltTest:
    outer, inner = pair
    context = resources(
        rng,
        support,
        mutexes=rng.choice((1, 1, 2)) if "section" in pair else 0,
        queues=rng.choice((1, 1, 2)) if "queue" in pair else 0,
        arithmetic=arithmetic,
    )
    weights = StatementWeights(
        section=inner == "section",
        queue=2 * (inner == "queue"),
        call=inner == "call",
        plain=3,
        first=inner if inner != "plain" else "",
    )
    shared = StructuredContext(context, weights, events, balanced=rng.random() < 0.8)
    waiting = [kind for kind in ("section", "queue") if kind in pair]
    others = rng.choices(("plain", "plain", "call", *waiting), k=rng.randint(2, 4))
    if runs:
        client = random_client(rng, 2)
        generators = {}
        for graph, plan in (("g0", [outer, *others[:1]]), ("g1", others[1:] or ["plain"])):
            times = sum(run.graph == graph for run in client)
            generators[graph] = generator = StructuredGenerator(shared, times=times)
            generator.generate(plan, rng.choice((1, 2)))
        if shared.balanced:
            generator.balance()
        return several("calls", rng, client, generators)
    generator = StructuredGenerator(shared)
    plan = [outer, *others] if rng.random() < 0.7 else ["plain", outer, *others]
    generator.generate(plan, rng.choice((2, 2, 3)))
    if shared.balanced:
        generator.balance()
    return one_graph("calls", generator)
