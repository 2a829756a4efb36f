"""The family `clusterable`: chains that a clusterer takes whole, and that race.

In a chain nothing reads after something has written, so that BLOG's analysis finds
no unsafe pair in it, and no value of one chain is used in another, so that they stay
apart. What becomes of a test are clusters of several resource ops, each with the
others for company: what a compiler, or its clusterer, does wrong then shows.

References
----------
BLOG, "The Solution"; semantics.md, section 5: "a forbidden outcome needs concurrent
company".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from litmusfuzz.corpus.ops import OPS, Kind
from litmusfuzz.fuzz.generators.context import RESOURCE_OPS, BodyGenerator
from litmusfuzz.fuzz.generators.dag import bounded, built, has_too_many_orders

if TYPE_CHECKING:
    import random

    from litmusfuzz.corpus.model import LitmusTest, Node
    from litmusfuzz.fuzz.generators.context import Context
    from litmusfuzz.fuzz.support import Support


def generate(rng: random.Random, support: Support) -> LitmusTest:
    """One random test; all choices come from `rng`."""
    return bounded(rng, support, _test)


def _test(context: Context) -> LitmusTest:
    rng = context.rng
    possible = [OPS[name] for name in RESOURCE_OPS if context.possible(OPS[name])]
    nodes: list[Node] = []
    for _ in range(rng.choice((2, 2, 3))):
        block = BodyGenerator(context)
        last, written = "", False
        for _ in range(rng.choice((2, 2, 3, 4))):
            before = len(block.nodes)
            # Reads first, every other time: else nearly all would be writes.
            wanted = tuple(Kind) if rng.random() < 0.5 else (Kind.READ,)
            wanted = (Kind.WRITE,) if written else wanted
            fitting = [each for each in possible if each.kind in wanted]
            if not fitting:
                break
            op = rng.choice(fitting)
            effect = block.effect(op, (last,) if last else ())
            if has_too_many_orders(built("clusterable", context, [*nodes, *block.nodes])):
                del block.nodes[before:]
                break
            last, written = effect, written or op.kind is not Kind.READ
        nodes += block.nodes
    return built("clusterable", context, nodes)
