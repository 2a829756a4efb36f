"""Samples ops on sparse tensors and on the results of such ops.

A sparse tensor has three operands: the indices of its entries, their values, and its shape.
"""

from __future__ import annotations

import math
from itertools import product
from typing import TYPE_CHECKING, Final

from litmusfuzz.fuzz.generators.sampling.draw import FACTORS, SIZE_LIMIT, TIES, Draw, Unfit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from litmusfuzz.fuzz.generators.sampling.draw import Sampler, Shape

Place = tuple[int, ...]
"""Index of an entry: a number for each dimension."""
_MOST_PLACES: Final = 1000
"""Places are chosen from a list of all: so a wanted shape has at most so many elements."""


def _entries(draw: Draw, shape: Shape) -> list[Place]:
    """Choose one to four places of that shape, in order and none twice, as TensorFlow has them."""
    places = list(product(*map(range, shape)))
    return sorted(draw.rng.sample(places, draw.number(1, min(4, len(places)))))


def _add_places(draw: Draw, role: str, places: Sequence[Place], limit: int = 0) -> None:
    """Add a matrix with a place in each row."""
    flat = [index for place in places for index in place]
    draw.control(role, flat, (len(places), len(places[0])), limit)


# --- with a dense tensor -----------------------------------------------------------------


def _sparse_to_dense(draw: Draw) -> None:
    shape = draw.any_shape(1, 3, 4)
    places = _entries(draw, shape)
    draw.attrs["validate_indices"] = draw.flip(0.7)
    draw.require_any_shape()
    _add_places(draw, "sparse_indices", places)
    draw.control("output_shape", shape)
    draw.data("sparse_values", (len(places),))
    draw.data("default_value", ())


def _sparse_dense_cwise(draw: Draw) -> None:
    """Sample SparseDenseCwiseAdd or SparseDenseCwiseMul."""
    shape = draw.any_shape(1, 3, 4)
    places = _entries(draw, shape)
    draw.require_any_shape()
    _add_places(draw, "sp_indices", places)
    draw.data("sp_values", (len(places),))
    draw.control("sp_shape", shape)
    draw.data("dense", shape if draw.flip() else ())


def _sparse_tensor_dense_matmul(draw: Draw) -> None:
    rows, columns = draw.number(1, 3), draw.number(1, 3)
    places = _entries(draw, (rows, columns))
    adjoint_a, adjoint_b = draw.flip(), draw.flip()
    draw.attrs |= {"adjoint_a": adjoint_a, "adjoint_b": adjoint_b}
    dense = (rows if adjoint_a else columns, draw.number(1, 3))
    draw.require_any_shape()
    _add_places(draw, "a_indices", places)
    draw.data("a_values", (len(places),), FACTORS)
    draw.control("a_shape", [rows, columns])
    draw.data("b", dense[::-1] if adjoint_b else dense, FACTORS)


def _sparse_tensor_dense_add(draw: Draw) -> None:
    shape = draw.first_shape(1)
    if math.prod(shape) > _MOST_PLACES:
        raise Unfit
    places = _entries(draw, shape)
    draw.want_dtype_of("b")
    _add_places(draw, "a_indices", places)
    draw.control("a_values", draw.numbers(len(places), -5, 5))
    draw.control("a_shape", shape)
    draw.data("b", shape)


# --- one sparse tensor -------------------------------------------------------------------


def _sparse_reduce(draw: Draw) -> None:
    """Sample SparseReduceSum or SparseReduceMax."""
    shape = draw.any_shape(1, 3, 4)
    places = _entries(draw, shape)
    draw.require_any_shape()
    draw.attrs["keep_dims"] = draw.flip()
    _add_places(draw, "input_indices", places)
    draw.data("input_values", (len(places),), FACTORS)
    draw.control("input_shape", shape)
    draw.axes("reduction_axes", len(shape), least=1)


def _sparse_reorder(draw: Draw) -> None:
    """Sample SparseReorder, whose places come in any order."""
    shape = draw.any_shape(1, 3, 4)
    places = _entries(draw, shape)
    draw.require((len(places),))
    draw.choose_result()
    draw.rng.shuffle(places)
    _add_places(draw, "input_indices", places)
    draw.data("input_values", (len(places),))
    draw.control("input_shape", shape)


def _sparse_reshape(draw: Draw) -> None:
    shape = draw.any_shape(1, 3, 4)
    places = _entries(draw, shape)
    draw.choose_result()
    _add_places(draw, "input_indices", places, min(shape))
    draw.control("input_shape", shape)
    new_shape = draw.factors(math.prod(shape)) or [1]
    if draw.flip(0.3):
        new_shape[draw.rng.randrange(len(new_shape))] = -1
    draw.control("new_shape", new_shape)


def _sparse_slice_grad(draw: Draw) -> None:
    """Sample SparseSliceGrad: places, and those of them that a slice has, counted from its begin.

    The slice begins at or before an entry in each dimension, and has all entries behind its begin.
    """
    shape = draw.any_shape(1, 3, 4)
    draw.require_any_shape()
    places = _entries(draw, shape)
    begin = [draw.number(0, index) for index in draw.rng.choice(places)]
    relative = [tuple(i - b for i, b in zip(place, begin, strict=True)) for place in places]
    sliced = [place for place in relative if min(place) >= 0]
    draw.data("backprop_val_grad", (len(sliced),))
    _add_places(draw, "input_indices", places)
    draw.control("input_start", begin)
    _add_places(draw, "output_indices", sliced)


def _set_size(draw: Draw) -> None:
    """Sample SetSize: the last dimension of a sparse tensor lists the elements of sets."""
    shape = draw.any_shape(2, 3, 3)
    places = _entries(draw, shape)
    draw.require((len(places),))
    draw.attrs["validate_indices"] = draw.flip(0.7)
    _add_places(draw, "set_indices", places)
    draw.data("set_values", (len(places),), TIES)
    draw.control("set_shape", shape)


def _sparse_fill_empty_rows_grad(draw: Draw) -> None:
    draw.choose_result()
    if draw.wanted_shape is not None and len(draw.wanted_shape) == 1:
        (count,) = draw.wanted_shape
    else:
        count = draw.number(1, 5)
    draw.require((count,))
    draw.positions("reverse_index_map", (draw.number(1, 4),), count)
    draw.data("grad_values", (count,))


# --- counts ------------------------------------------------------------------------------


def _bins(draw: Draw) -> int:
    """Choose what RaggedBincount and SparseBincount have in common; return the number of bins."""
    if draw.wanted_shape is not None and len(draw.wanted_shape) != 1:
        raise Unfit
    draw.attrs["binary_output"] = draw.flip()
    return draw.number(1, 5)


def _ragged_bincount(draw: Draw) -> None:
    bins = _bins(draw)
    count = draw.wanted_shape[0] if draw.wanted_shape is not None else draw.number(1, 5)
    splits = sorted(draw.numbers(draw.number(0, 2), 0, count))
    draw.control("splits", [0, *splits, count])
    draw.positions("values", (count,), bins + 1)
    draw.control("size", bins, limit=SIZE_LIMIT)
    draw.data("weights", (count,))


def _sparse_bincount(draw: Draw) -> None:
    bins = _bins(draw)
    draw.require_any_shape()
    shape = draw.any_shape(1, 2, 4)
    places = _entries(draw, shape)
    _add_places(draw, "indices", places)
    draw.positions("values", (len(places),), bins + 1)
    draw.control("dense_shape", shape)
    draw.control("size", bins, limit=SIZE_LIMIT)
    draw.data("weights", (len(places),))


SAMPLERS: Final[Mapping[str, Sampler]] = {
    "SparseToDense": _sparse_to_dense,
    **dict.fromkeys(("SparseDenseCwiseAdd", "SparseDenseCwiseMul"), _sparse_dense_cwise),
    "SparseTensorDenseMatMul": _sparse_tensor_dense_matmul,
    "SparseTensorDenseAdd": _sparse_tensor_dense_add,
    **dict.fromkeys(("SparseReduceSum", "SparseReduceMax"), _sparse_reduce),
    "SparseReorder": _sparse_reorder,
    "SparseReshape": _sparse_reshape,
    "SparseSliceGrad": _sparse_slice_grad,
    "SetSize": _set_size,
    "SparseFillEmptyRowsGrad": _sparse_fill_empty_rows_grad,
    "RaggedBincount": _ragged_bincount,
    "SparseBincount": _sparse_bincount,
}
