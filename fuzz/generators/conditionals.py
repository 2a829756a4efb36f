"""The family `conditionals`: branches with ops in them, chosen by what raced.

The predicate comes from a racing read, or from what an earlier conditional
gave; now and then it is a constant, and one branch dead whatever happens.
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

_WEIGHTS = StatementWeights(branch=1, plain=8)


def generate(rng: random.Random, support: Support) -> LitmusTest:
    """One random test; all choices come from `rng`."""
    return small(rng, support, _attempt, rng.randint(10, 15))


def _attempt(rng: random.Random, support: Support, events: int, *, arithmetic: bool) -> LitmusTest:
    generator = StructuredGenerator(
        StructuredContext(resources(rng, support, arithmetic=arithmetic), _WEIGHTS, events)
    )
    others = rng.choices(("plain", "branch"), (4, 1), k=rng.randint(3, 7))
    plan = ["branch", "plain", *others] if rng.random() < 0.6 else ["plain", "branch", *others]
    generator.play(plan, rng.choice((2, 2, 3)))
    return one_graph("conditionals", generator)
