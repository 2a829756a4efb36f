"""Family `dense`: as `dag`, with at most six ops, each on a whole variable.

TensorFlow guarantees that each such op is indivisible (model `executor`), and has no known
defect in them. So a campaign on this family alone measures how many of the allowed outcomes
it reaches, and that the judge forbids none of them. Tests have one variable or two, so that
most have several outcomes.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.generators import dag

if TYPE_CHECKING:
    import random

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.generators.context import Context
    from litmusfuzz.fuzz.support import Support

OPS: Final = (
    *("ReadVariableOp", "ReadVariableOp", "AssignVariableOp"),
    *("AssignAddVariableOp", "AssignSubVariableOp"),
    *("ResourceApplyGradientDescent", "ResourceApplyMomentum", "ResourceApplyKerasMomentum"),
)
SIZES: Final = (3, 4, 4, 5, 5, 6, 6)


def generate(rng: random.Random, support: Support) -> LitmusTest:
    """Generate a test of the family within a support; all choices come from `rng`."""
    return dag.bounded(
        rng, support, partial(dag.racing, name="dense", ops=OPS, sizes=SIZES), context
    )


def context(rng: random.Random, support: Support, *, arithmetic: bool) -> Context:
    """A context as of `dag`, with at most two variables."""
    made = dag.context(rng, support, arithmetic=arithmetic)
    return replace(made, variables=made.variables[:2])
