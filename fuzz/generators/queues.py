"""Family `queues`: concurrent puts and takes, of one or several elements.

In some tests ops can block, as more elements are taken than put, or more are put than fit; in
the others every op can finish. Some tests close the queue after all puts: a later take from
the empty queue fails, and nothing is specified after that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

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

_WEIGHTS = StatementWeights()


def generate(rng: random.Random, support: Support) -> LitmusTest:
    """Generate a test of the family within a support; all choices come from `rng`."""
    return small(rng, support, _attempt, rng.randint(10, 14))


def _attempt(rng: random.Random, support: Support, events: int, *, arithmetic: bool) -> UnbuiltTest:
    context = resources(rng, support, queues=rng.choice((1, 1, 1, 2)), arithmetic=arithmetic)
    generator = StructuredGenerator(
        StructuredContext(context, _WEIGHTS, events, balanced=rng.random() < 0.8)
    )
    plan = rng.choices(("queue", "plain"), (3, 2), k=rng.randint(4, 9))
    generator.generate(["queue", "queue", *plan], rng.choice((2, 2, 3)))
    if generator.shared.balanced:
        generator.balance()
    if rng.random() < 0.25:
        generator.close(more=rng.random() < 0.3)
    return one_graph("queues", generator)
