"""The family `dense`: as `dag`, of ops that read or write whole variables, six at most.

TensorFlow promises that these are indivisible, one by one (model `executor`), and
has no known defect in them: a campaign on them alone shows how much of what is allowed
it reaches, and that the judge forbids none of it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from fuzz.strategies.dag import drawn, racing

if TYPE_CHECKING:
    import random

    from corpus.graph import LitmusTest

OPS: Final = (
    *("ReadVariableOp", "ReadVariableOp", "AssignVariableOp"),
    *("AssignAddVariableOp", "AssignSubVariableOp"),
    *("ResourceApplyGradientDescent", "ResourceApplyMomentum", "ResourceApplyKerasMomentum"),
)
SIZES: Final = (2, 3, 3, 4, 4, 5, 6)


def draw(rng: random.Random) -> LitmusTest:
    """One random test; all choices come from `rng`."""
    return drawn(rng, partial(racing, name="dense", ops=OPS, sizes=SIZES))
