"""Family `conditionals`: branches with ops, chosen by the values of racing reads.

The predicate comes from a racing read or from the result of another conditional. A few
predicates are constants, so that one branch never runs.
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

_WEIGHTS = StatementWeights(branch=1, plain=8)


def generate(rng: random.Random, support: Support) -> LitmusTest:
    """Generate a test of the family within a support; all choices come from `rng`."""
    return small(rng, support, _attempt, rng.randint(10, 15))


def _attempt(rng: random.Random, support: Support, events: int, *, arithmetic: bool) -> UnbuiltTest:
    generator = StructuredGenerator(
        StructuredContext(resources(rng, support, arithmetic=arithmetic), _WEIGHTS, events)
    )
    others = rng.choices(("plain", "branch"), (4, 1), k=rng.randint(3, 7))
    plan = ["branch", "plain", *others] if rng.random() < 0.6 else ["plain", "branch", *others]
    generator.generate(plan, rng.choice((2, 2, 3)))
    return one_graph("conditionals", generator)
