"""Random calls of pure ops: attributes, types, and values for which the op does not fail.

A *sample* has the operands of one call, in the order of the op's signature. Some operands are
*data*: other values of the same type do as well, as far as the sizes of numbers allow. Others are
*control*: shapes, axes, indices and the like, of which only some values fit.

The families `pure` and `computed` build nodes from samples (`litmusfuzz.fuzz.generators.pure`,
`litmusfuzz.fuzz.generators.computed`). Each module of this package samples the ops of one kind, and
its `SAMPLERS` has a function for each of them. An op that none of them has takes operands that
broadcast: `litmusfuzz.fuzz.generators.sampling.elementwise.broadcasting`.

All choices come from one `random.Random`, and a seed stands for a test. So whatever changes which
numbers a function takes from it, or their order, gives every seed another test.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.ops import ABSTRACT_OPS, OPS
from litmusfuzz.fuzz.generators.sampling import (
    arrangements,
    diagonals,
    elementwise,
    images,
    indices,
    lists,
    products,
    reductions,
    shapes,
    slices,
    sparse,
    splits,
)
from litmusfuzz.fuzz.generators.sampling.draw import Draw, Operand, Sample, Unfit

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping

    from litmusfuzz.corpus.pure.definition import PureOp
    from litmusfuzz.fuzz.generators.sampling.draw import Sampler, Shape

_MODULES: Final = (
    elementwise,
    reductions,
    shapes,
    slices,
    arrangements,
    diagonals,
    indices,
    sparse,
    products,
    images,
    lists,
    splits,
)
_SAMPLERS: Final[Mapping[str, Sampler]] = {
    name: sampler for module in _MODULES for name, sampler in module.SAMPLERS.items()
}
assert len(_SAMPLERS) == sum(len(module.SAMPLERS) for module in _MODULES), "an op in two modules"
_IGNORE_SHAPE: Final = ("DynamicStitch", "ParallelDynamicStitch", "StridedSliceGrad")
"""Ops with data operands that have the shape that other operands give them, not a wanted one."""
PURE_OPS: Final = tuple(
    op.meaning
    for op in OPS.values()
    if op.meaning is not None and op.pure and op.name not in ABSTRACT_OPS
)
"""Definitions of the pure ops that generators sample: those that some framework has."""

__all__ = ["PURE_OPS", "Operand", "Sample", "sample"]


def sample(
    rng: random.Random, op: PureOp, dtype: str | None = None, shape: Shape | None = None
) -> Sample | None:
    """Sample one call of an op.

    Parameters
    ----------
    rng : random.Random
    op : PureOp
        Of `PURE_OPS`, or an op on a variable that takes its rows as an operand, such as
        ResourceGather.
    dtype : str, optional
        Dtype of the first data operand; any by default. An op without data operands may have any
        dtype and shape.
    shape : tuple of int, optional
        Shape of that operand; any by default. The ops of `_IGNORE_SHAPE` may have another one.

    Returns
    -------
    Sample or None
        None if the choices for this call did not fit `dtype` and `shape`. Another attempt may fit,
        unless no operand of the op can have them. Without either there is always a sample.
    """
    draw = Draw(rng, op, dtype, shape)
    try:
        _SAMPLERS.get(op.name, elementwise.broadcasting)(draw)
    except Unfit:
        return None
    # Several operands in a row may have one role: the op takes a list of them.
    assert tuple(role for role, _ in groupby(o.role for o in draw.operands)) == op.operands, op.name
    first_data = next((o.type.stacked for o in draw.operands if o.replaceable), None)
    if first_data is not None:
        assert dtype in (None, first_data.dtype), (op.name, first_data)
        assert shape in (None, first_data.shape) or op.name in _IGNORE_SHAPE, (op.name, first_data)
    return Sample(op, op.attributes(draw.attrs) if op.fields else None, tuple(draw.operands))
