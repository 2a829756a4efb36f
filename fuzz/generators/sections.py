"""Family `sections`: critical sections, concurrent and nested, on one or two mutexes.

Edges lead to a section or to one of its members, and from either. Ops outside of all sections
race with those inside. Two sections that take two mutexes in opposite orders may block.
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

_WEIGHTS = StatementWeights(section=2)


def generate(rng: random.Random, support: Support) -> LitmusTest:
    """Generate a test of the family within a support; all choices come from `rng`."""
    return small(rng, support, _attempt, rng.randint(14, 20))


def _attempt(rng: random.Random, support: Support, events: int, *, arithmetic: bool) -> UnbuiltTest:
    context = resources(rng, support, mutexes=rng.choice((1, 1, 2, 2)), arithmetic=arithmetic)
    generator = StructuredGenerator(StructuredContext(context, _WEIGHTS, events))
    plan = ["section", "section", *rng.choices(("section", "plain"), (1, 3), k=rng.randint(1, 5))]
    generator.generate(plan, rng.choice((2, 2, 3)))
    return one_graph("sections", generator)
