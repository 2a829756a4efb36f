"""Family `constants`: operands that XLA wants as constants, computed from what is read.

An axis, a shape, a number of copies, a place: XLA compiles an op anew for each value of such an
operand, and auto-clustering has to keep the ops that compute it from a variable out of the cluster,
or to resolve them. The tests are those of the family `pure` (`litmusfuzz.fuzz.generators.pure`),
with ops of which one such operand depends on a read. It is a remainder, so that the op fails in no
order, and nothing keeps it from XLA.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.ops import OPS
from litmusfuzz.fuzz.generators.dag import bounded
from litmusfuzz.fuzz.generators.family import NotGenerated
from litmusfuzz.fuzz.generators.pure import (
    MODULUS,
    PureBody,
    in_chains,
    small_context,
)
from litmusfuzz.fuzz.generators.pure import NEEDED as PURE_NEEDED
from litmusfuzz.fuzz.generators.sampling import PURE_OPS, sample

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.pure.definition import PureOp
    from litmusfuzz.fuzz.generators.context import Context
    from litmusfuzz.fuzz.generators.sampling import Operand
    from litmusfuzz.fuzz.support import Support

NEEDED: Final = PURE_NEEDED | {"Where"}
"""Ops of the family `pure`, and one whose result has any shape: an executor that lacks such ops, as
one of traced programs, has few of these tests."""
_OPS: Final = tuple(op for op in PURE_OPS if op.compiles and op.fails_by and op.tried)
"""Ops that XLA compiles, of which some operand has to be in range."""
_VALUES: Final = 64
"""Values of an operand, at most: so many are tried to see that no op fails."""
_TRIES: Final = 16
"""Ops that are tried for one value; the operands of many are not in range alone."""


def generate(rng: random.Random, support: Support) -> LitmusTest:
    """Generate a test of the family within a support; all choices come from `rng`."""
    if "int32" not in support.dtypes or not support.takes_shape((4,)):
        raise NotGenerated("family constants: the support lacks int32, or vectors of four elements")
    test_of = partial(in_chains, name="constants", make_body=_Body)
    return bounded(rng, support, test_of, small_context)


class _Body(PureBody):
    """Generator of the graph, in which an operand of each op comes from the source.

    In half of the tests no operand decides on a shape.
    """

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.shapes_vary = self.rng.random() < 0.5

    def applied(self, source: str, ops: Sequence[PureOp] = _OPS) -> str:
        """The result of one of the ops, an operand of which in range is made from the source.

        The source where none of a few of them has such an operand.
        """
        rng = self.rng
        for op in rng.sample(ops, min(_TRIES, len(ops))):
            if op.name not in self.context.support.ops or op.name in self.used:
                continue
            sampled = sample(rng, op, self.context.dtype) or sample(rng, op)
            assert sampled is not None
            operands = sampled.operands
            ranged = [place for place, each in enumerate(operands) if _is_ranged(each)]
            if not ranged or not all(self.takes(each.type) for each in operands):
                continue
            chosen, before = rng.choice(ranged), len(self.nodes)
            inputs = tuple(
                self.made_from(source, each, MODULUS)
                if place == chosen or (each.replaceable and rng.random() < 0.3)
                else self.given(each)
                for place, each in enumerate(operands)
            )
            result = self.call(OPS[op.name], inputs, sampled.attrs)
            if result is None or (self.types[result].dynamic and not self.shapes_vary):
                del self.nodes[before:]
                continue
            self.used.add(op.name)
            result = self.tensor(result)
            if not self.types[result].dynamic:
                self.computed.append(result)
            return self.static(result)
        return source


def _is_ranged(operand: Operand) -> bool:
    """True if the operand has to be in a range, of which few values are possible."""
    return operand.limit > 1 and operand.limit**operand.type.size <= _VALUES
