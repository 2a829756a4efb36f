"""Family `loops`: loops with ops in condition and body that race with other ops.

This module chooses how many loops a test has, where they stand, and how large the test may be.
`StructuredGenerator.loop` generates the loop itself: its counter, its carried values, and the
racing reads that may end it early.
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

_WEIGHTS: Final = StatementWeights(branch=1, loop=1, plain=9)
"""Of the statements in a loop: mostly ops on variables."""
_NESTED_WEIGHTS: Final = StatementWeights(plain=1, first="loop")
"""The same for a test of nested loops: the first statement in a loop is a loop, all others are
ops on variables."""
_NESTED_SHARE: Final = 0.25
"""Share of tests with nested loops."""
_MAX_EVENTS: Final = 13
"""Once an attempt has generated so many events, it is given up before an oracle counts its orders.
Of 292 attempts that were small enough, 19 had so many; of 602 that were too large, 351."""


def generate(rng: random.Random, support: Support) -> LitmusTest:
    """Generate a test of the family within a support; all choices come from `rng`."""
    # Chosen once for all attempts. Nested loops are often too large: if each attempt chose anew,
    # few tests would have them.
    nested = rng.random() < _NESTED_SHARE
    return small(rng, support, partial(_attempt, nested=nested), most=rng.randint(8, 12))


def _attempt(
    rng: random.Random, support: Support, events: int, *, arithmetic: bool, nested: bool
) -> UnbuiltTest:
    """Generate a test of about so many events, which may be too large (see `Attempt`)."""
    weights = _NESTED_WEIGHTS if nested else _WEIGHTS
    context = resources(rng, support, arithmetic=arithmetic)
    generator = StructuredGenerator(StructuredContext(context, weights, events, most=_MAX_EVENTS))
    # Nested loops have several iterations of several iterations: a further loop is too much.
    further_loops = 0 if nested else 1
    others = rng.choices(("plain", "loop"), (6, further_loops), k=rng.randint(2, 5))
    # More often the loop is generated first, while there are events left for its body.
    plan = ["loop", "plain", *others] if rng.random() < 0.7 else ["plain", "loop", *others]
    generator.generate(plan, chains=rng.choice((2, 2, 3)))
    return one_graph("loops", generator)
