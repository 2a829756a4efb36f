"""The family `dense`: as `dag`, of ops that read or write whole variables, six at most.

TensorFlow promises that these are indivisible, one by one (model `executor`), and
has no known defect in them: a campaign on them alone shows how much of what is allowed
it reaches, and that the judge forbids none of it. One variable or two, so that most
graphs have several outcomes.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

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
    """One random test; all choices come from `rng`."""
    return dag.bounded(
        rng, support, partial(dag.racing, name="dense", ops=OPS, sizes=SIZES), context
    )


def context(rng: random.Random, support: Support, *, arithmetic: bool) -> Context:
    """As `dag` has it, with fewer variables."""
    made = dag.context(rng, support, arithmetic=arithmetic)
    return replace(made, variables=made.variables[:2])
