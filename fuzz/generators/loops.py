"""Family `loops`: loops with ops in condition and body that race with other ops.

A counter bounds each loop; often the value of a racing read ends it earlier. The number of
concurrent iterations is limited or not. Carried values come from reads, and order what waits
for them. Some bodies contain a loop or a conditional.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

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

_WEIGHTS = StatementWeights(branch=1, loop=1, plain=9)
_MOST: Final = 13
"""Of 292 attempts that were small enough, 19 had as many; of 602 that were too large, 351."""
_NESTED = StatementWeights(plain=1, first="loop")


def generate(rng: random.Random, support: Support) -> LitmusTest:
    """Generate a test of the family within a support; all choices come from `rng`."""
    # Chosen once, for all attempts: nested loops are often too large.
    nested = rng.random() < 0.25
    return small(rng, support, partial(_attempt, nested=nested), rng.randint(8, 12))


def _attempt(
    rng: random.Random, support: Support, events: int, *, arithmetic: bool, nested: bool
) -> UnbuiltTest:
    weights = _NESTED if nested else _WEIGHTS
    generator = StructuredGenerator(
        StructuredContext(
            resources(rng, support, arithmetic=arithmetic), weights, events, most=_MOST
        )
    )
    others = rng.choices(("plain", "loop"), (6, 0 if nested else 1), k=rng.randint(2, 5))
    plan = ["loop", "plain", *others] if rng.random() < 0.7 else ["plain", "loop", *others]
    generator.generate(plan, rng.choice((2, 2, 3)))
    return one_graph("loops", generator)
