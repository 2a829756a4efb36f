"""Pure ops: functions of their inputs, exact on integers, each defined once.

A *row* (`PureOp`) names an op's operands, their dtypes, its attributes, and one exact function
on arrays of integers, which all oracles share. An op on a variable whose indices are computed
has such a row as well (`resources`), a function of the variable's value. TensorFlow's own
kernels are the only guard of these functions: the tests compare each with its kernel on random
operands. There is one module for each family of ops; `litmusfuzz.corpus.ops` takes all rows
into the one table of ops.

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
    boxes,
    contractions,
    elementwise,
    gathers,
    gradients,
    images,
    lists,
    matrices,
    reductions,
    resources,
    several,
    shapes,
)
from litmusfuzz.corpus.struct import replace

if TYPE_CHECKING:
    from litmusfuzz.corpus.pure.definition import PureOp

_NOT_COMPILED: Final = {
    # XLA has no kernel.
    *("DebugGradientIdentity", "InTopK", "NthElement", "ScatterNdNonAliasingAdd", "Dilation2D"),
    *("SegmentSum", "SegmentProd", "SegmentMax", "SegmentMin", "SparseSegmentSum"),
    *("SparseSegmentSumWithNumSegments", "SparseTensorDenseMatMul", "SparseTensorDenseAdd"),
    *("SparseReduceSum", "SparseReduceMax", "ExtractVolumePatches"),
    *("SparseDenseCwiseAdd", "SparseDenseCwiseMul"),
    *("SparseBincount", "RaggedBincount", "SparseSegmentSumGrad", "SparseSliceGrad", "SetSize"),
    *("FusedPadConv2D", "ResizeNearestNeighborGrad", "NonMaxSuppression", "NonMaxSuppressionV2"),
    *("NonMaxSuppressionWithOverlaps", "Dilation2DBackpropInput", "Dilation2DBackpropFilter"),
    *("MaxPoolGradGrad", "MaxPoolGradGradV2", "MaxPoolGradWithArgmax"),
    # Of equal elements of a window another one gets the gradient.
    *("MaxPoolGrad", "MaxPoolGradV2"),
    # It fails on integers, and returns zeros for some float64.
    "ConjugateTranspose",
    # "Strides != 1 or -1 are not yet implemented".
    "TensorStridedSliceUpdate",
    # It counts the rows of a matrix apart.
    "Bincount",
}
_ROWS: Final = (
    *elementwise.ROWS,
    *reductions.ROWS,
    *shapes.ROWS,
    *matrices.ROWS,
    *gathers.ROWS,
    *contractions.ROWS,
    *images.ROWS,
    *gradients.ROWS,
    *boxes.ROWS,
    *lists.ROWS,
    *several.ROWS,
)
ROWS: Final[tuple[PureOp, ...]] = tuple(
    replace(row, compiles=False) if row.name in _NOT_COMPILED else row for row in _ROWS
)
"""All pure ops that are defined by a function."""
RESOURCE_ROWS: Final = resources.ROWS
"""The ops on variables whose indices, or slices, may be computed: each of the variable's value."""
