"""Pure ops: functions of their inputs, exact on integers, each defined once.

A *row* (`PureOp`) names an op's operands, their dtypes, its attributes, and one exact function
on arrays of integers, which all oracles share. TensorFlow's own kernels are the only guard of
these functions: the tests compare each with its kernel on random operands. There is one module
for each family of ops; `litmusfuzz.corpus.ops` takes all rows into the one table of ops.

Terms
-----
call
    An op with its attributes and the types of its operands: `Call`.
whole
    Of an op that does not act on each lane alike: a test with one has no lanes.
dynamic
    Of a type whose dimensions depend on values; only its rank is known.

NumPy is imported when an op is first evaluated, not before (`arrays`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.pure import (
    contractions,
    elementwise,
    gathers,
    images,
    matrices,
    reductions,
    shapes,
)

if TYPE_CHECKING:
    from litmusfuzz.corpus.pure.definition import PureOp

ROWS: Final[tuple[PureOp, ...]] = (
    *elementwise.ROWS,
    *reductions.ROWS,
    *shapes.ROWS,
    *matrices.ROWS,
    *gathers.ROWS,
    *contractions.ROWS,
    *images.ROWS,
)
"""All pure ops that are defined by a function."""
