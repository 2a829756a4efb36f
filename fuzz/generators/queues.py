"""The family `queues`: puts and takes that race, of one element or of several.

Some tests can block, since they take more than is put or put more than there is
room for; in others every take is fed. A queue is closed now and then, after all
that is put into it: then a take of what is not there fails, and nothing more is
specified.
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
    from litmusfuzz.fuzz.support import Support

_WEIGHTS = StatementWeights()


def generate(rng: random.Random, support: Support) -> LitmusTest:
    """One random test; all choices come from `rng`."""
    return small(rng, support, _attempt, rng.randint(10, 14))


def _attempt(rng: random.Random, support: Support, events: int, *, arithmetic: bool) -> LitmusTest:
    context = resources(rng, support, queues=rng.choice((1, 1, 1, 2)), arithmetic=arithmetic)
    generator = StructuredGenerator(
        StructuredContext(context, _WEIGHTS, events, balanced=rng.random() < 0.8)
    )
    plan = rng.choices(("queue", "plain"), (3, 2), k=rng.randint(4, 9))
    generator.play(["queue", "queue", *plan], rng.choice((2, 2, 3)))
    if generator.shared.balanced:
        generator.balance()
    if rng.random() < 0.25:
        generator.close(more=rng.random() < 0.3)
    return one_graph("queues", generator)
