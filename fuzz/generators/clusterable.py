"""Family `clusterable`: chains that a clustering compiler takes whole, and that race.

In a chain no read comes after a write, so that BLOG's analysis finds no unsafe pair in it. No
value of a chain is used in another chain, so that chains stay apart. A compiler turns such a
test into clusters of several resource ops that run concurrently, which shows what it does
wrong.

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
    """Generate a test of the family within a support; all choices come from `rng`."""
    return bounded(rng, support, _test)


def _test(context: Context) -> LitmusTest:
    rng = context.rng
    possible = [OPS[name] for name in context.possible(RESOURCE_OPS)]
    nodes: list[Node] = []
    for _ in range(rng.choice((2, 2, 3))):
        body = BodyGenerator(context)
        last, written = "", False
        for _ in range(rng.choice((2, 2, 3, 4))):
            before = len(body.nodes)
            # Half of the time a read: else nearly all ops would be writes.
            wanted = None if rng.random() < 0.5 else Kind.READ
            wanted = Kind.WRITE if written else wanted
            fitting = [each for each in possible if wanted in (None, each.kind)]
            if not fitting:
                break
            op = rng.choice(fitting)
            effect = body.effect(op, (last,) if last else ())
            if has_too_many_orders(context, [*nodes, *body.nodes]):
                del body.nodes[before:]
                break
            last, written = effect, written or op.kind is not Kind.READ
        nodes += body.nodes
    return built("clusterable", context, nodes)
