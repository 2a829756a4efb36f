"""Reductions, scans, counts and segments."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Final

from litmusfuzz.corpus.pure.arrays import np
from litmusfuzz.corpus.pure.definition import (
    Call,
    Field,
    Inexact,
    PureOp,
    axes_of,
    axis_of,
    bounded,
    elements,
    expect,
    largest_of,
    one,
    product,
    ranks,
    scalar,
    size,
    vector,
)
from litmusfuzz.corpus.tensors import MAX_ELEMENTS, MAX_MAGNITUDE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from litmusfuzz.corpus.pure.arrays import Array

_INFINITE: Final = MAX_MAGNITUDE << 1
"""A bound that no test keeps."""


def _nonempty(x: Array, axis: Any) -> None:
    """Refuse the extremum of no element: each dtype has its own."""
    axes = range(x.ndim) if axis is None else axis
    if x.size and all(x.shape[each] for each in axes):
        return
    if any(x.shape[each] == 0 for each in axes):
        raise Inexact("the extremum of no element")


def _reduce(
    name: str,
    f: Callable[[Array, tuple[int, ...], bool], Any],
    largest: Callable[[Call, Sequence[int]], int],
    kind: str = "T",
) -> PureOp:
    def compute(call: Call, x: Array, axes: Array) -> Any:
        return f(x, axes_of(axes, x.ndim, "reduction_indices"), call["keep_dims"])

    def rank(call: Call) -> int:
        axes, kind = call.type_of("reduction_indices"), len(call.type_of("input").shape)
        expect(not axes.dynamic, "takes a known number of axes", "reduction_indices")
        return kind if call["keep_dims"] else max(0, kind - axes.size)

    return PureOp(
        name,
        f"input:{kind} reduction_indices:I -> {kind}",
        compute,
        largest,
        (Field("keep_dims", "bool", default=False),),
        shape_from=("reduction_indices",),
        index=("reduction_indices",),
        rank=rank,
    )


def _sum(x: Array, axes: tuple[int, ...], keep: bool) -> Any:  # noqa: FBT001
    bounded(np.abs(x).sum(axis=axes))
    return x.sum(axis=axes, keepdims=keep)


def _prod(x: Array, axes: tuple[int, ...], keep: bool) -> Any:  # noqa: FBT001
    product(x, axes)
    return x.prod(axis=axes, keepdims=keep)


def _extreme(f: Any) -> Callable[[Array, tuple[int, ...], bool], Any]:
    def reduced(x: Array, axes: tuple[int, ...], keep: bool) -> Any:  # noqa: FBT001
        _nonempty(x, axes)
        return f(x, axes, keep)

    return reduced


def _largest_sum(call: Call, bounds: Sequence[int]) -> int:
    return max(1, bounds[0]) * size(call.inputs[0])


def _largest_product(call: Call, bounds: Sequence[int]) -> int:
    base, count = max(1, bounds[0]), size(call.inputs[0])
    return 1 if base == 1 else _INFINITE if count > 24 else int(base**count)


def _arg(f: Any) -> Callable[..., Any]:
    def compute(_: Call, x: Array, dimension: Array) -> Any:
        expect(x.ndim > 0, "takes no scalar", "input")
        axis = axis_of(scalar(dimension, "dimension"), x.ndim, "dimension")
        expect(x.shape[axis] > 0, f"axis {axis} has no element", "dimension")
        return f(x, axis)

    return compute


def _argument(name: str, f: Any) -> PureOp:
    return PureOp(
        name,
        "input:A dimension:I -> @output_type=I",
        _arg(f),
        elements,
        (Field("output_type", "dtype", "int64"),),
        shape_from=("dimension",),
        index=("dimension",),
        rank=lambda call: len(call.type_of("input").shape) - 1,
    )


def _scan(f: Any, check: Callable[[Array, int], None], fill: int) -> Callable[..., Any]:
    def compute(call: Call, x: Array, axis: Array) -> Any:
        along = axis_of(scalar(axis, "axis"), x.ndim, "axis") if x.ndim else scalar(axis, "axis")
        expect(x.ndim > 0, "takes no scalar", "x")
        check(x, along)
        x = np.flip(x, along) if call["reverse"] else x
        if call["exclusive"]:
            first = np.full_like(np.take(x, [0] if x.shape[along] else [], along), fill)
            x = np.concatenate([first, np.delete(x, -1, along)], along) if x.shape[along] else x
        x = f(x, along)
        return np.flip(x, along) if call["reverse"] else x

    return compute


def _scanned(name: str, f: Any, check: Any, fill: int, largest: Any) -> PureOp:
    return PureOp(
        name,
        "x:T axis:I -> T",
        _scan(f, check, fill),
        largest,
        (Field("exclusive", "bool", default=False), Field("reverse", "bool", default=False)),
        index=("axis",),
        rank=ranks("x"),
    )


def _bincount(_: Call, arr: Array, count: Array, weights: Array) -> Any:
    number = scalar(count, "size")
    expect(number >= 0, f"a negative size {number}", "size")
    expect(number <= MAX_ELEMENTS, f"more than {MAX_ELEMENTS} bins", "size")
    expect(arr.shape == weights.shape, "has the shape of arr", "weights")
    expect(not (arr < 0).any(), "holds a negative number", "arr")
    return _binned(arr.ravel(), number, weights.ravel())


def _binned(values: Array, number: int, weights: Array) -> Array:
    inside = values < number
    out, magnitudes = np.zeros(number, np.int64), np.zeros(number, np.int64)
    np.add.at(out, values[inside], weights[inside])
    np.add.at(magnitudes, values[inside], np.abs(weights[inside]))
    bounded(magnitudes)
    return out


def _dense_bincount(call: Call, values: Array, count: Array, weights: Array) -> Any:
    number = scalar(count, "size")
    expect(number >= 0, f"a negative size {number}", "size")
    expect(values.ndim in (1, 2), "must be a vector or a matrix", "input")
    expect(values.shape == weights.shape, "has the shape of input", "weights")
    expect(number * max(1, len(values)) <= MAX_ELEMENTS, f"more than {MAX_ELEMENTS} bins", "size")
    expect(not (values < 0).any(), "holds a negative number", "input")
    rows = [
        _binned(row, number, np.abs(weight) if call["binary_output"] else weight)
        for row, weight in zip(np.atleast_2d(values), np.atleast_2d(weights), strict=True)
    ]
    out = np.stack(rows) if values.ndim == 2 else rows[0]
    if call["binary_output"]:
        there = [np.isin(np.arange(number), row).astype(np.int64) for row in np.atleast_2d(values)]
        out = np.stack(there) if values.ndim == 2 else there[0]
    return out


_BINARY: Final = (Field("binary_output", "bool", default=False),)


def _rows_of_bins(
    call: Call, row_of: Sequence[int], rows: int, values: Array, count: Array, weights: Array
) -> Array:
    """Bins for each row; `row_of` has the row of each value."""
    number = scalar(count, "size")
    expect(number >= 0, f"a negative size {number}", "size")
    expect(number * max(1, rows) <= MAX_ELEMENTS, f"more than {MAX_ELEMENTS} bins", "size")
    expect(not (values < 0).any(), "holds a negative number", "values")
    where = np.array(row_of, np.int64)
    out = []
    for row in range(rows):
        mine = values[where == row]
        if call["binary_output"]:
            out.append(np.isin(np.arange(number), mine).astype(np.int64))
        else:
            out.append(_binned(mine, number, weights[where == row]))
    return np.array(out, np.int64).reshape(rows, number)


def _sparse_bincount(
    call: Call, indices: Array, values: Array, shape: Array, count: Array, weights: Array
) -> Any:
    extents = vector(shape, "dense_shape")
    fits = indices.shape == (len(values), len(extents)) and values.shape == weights.shape
    expect(fits, "has a row of coordinates for each value", "indices")
    expect(len(extents) in (1, 2), "has one number or two", "dense_shape")
    inside = ((indices >= 0) & (indices < np.array(extents, np.int64))).all()
    if not inside or min(extents) < 1:
        raise Inexact("not inside, which the kernel does not always refuse", "indices")
    if len(extents) == 1:
        return _rows_of_bins(call, [0] * len(values), 1, values, count, weights)[0]
    if (values < 0).any():
        raise Inexact("holds a negative number, which the kernel ignores in a matrix", "values")
    rows = [int(each[0]) for each in indices]
    return _rows_of_bins(call, rows, extents[0], values, count, weights)


def _per_row(call: Call) -> int:
    kind = call.type_of("dense_shape")
    expect(kind.shape in ((1,), (2,)), "has one number or two", "dense_shape")
    return kind.shape[0]


def _weights_fit(call: Call) -> None:
    values, weights = call.type_of("values"), call.type_of("weights")
    expect(len(values.shape) == 1, "must be a vector", "values")
    expect(not call.type_of("size").shape, "must be a scalar", "size")
    if not (values.dynamic or weights.dynamic):
        expect(values.shape == weights.shape, f"has shape {list(values.shape)}", "weights")


def _sparse_bins(call: Call) -> tuple[int, ...] | None:
    _weights_fit(call)
    rank, indices, values = _per_row(call), call.type_of("indices"), call.type_of("values")
    expect(len(indices.shape) == 2, "must be a matrix", "indices")
    if not (indices.dynamic or values.dynamic):
        wanted = (values.shape[0], rank)
        expect(indices.shape == wanted, f"has shape {list(wanted)}", "indices")
    extents, number = call.known_value("dense_shape"), call.known_value("size")
    if extents is None or number is None:
        return None
    expect(min(extents) >= 1, "holds a number below 1", "dense_shape")
    expect(number[0] >= 0, "is negative", "size")
    return (*extents[: rank - 1], number[0])


def _ragged_bincount(call: Call, splits: Array, values: Array, count: Array, weights: Array) -> Any:
    ends = vector(splits, "splits")
    expect(bool(ends) and ends[0] == 0, "begins with 0", "splits")
    expect(ends[-1] == len(values), f"ends with {len(values)}", "splits")
    if ends != sorted(ends):
        raise Inexact("is not in ascending order", "splits")
    rows = [row for row, (a, b) in enumerate(itertools.pairwise(ends)) for _ in range(b - a)]
    return _rows_of_bins(call, rows, len(ends) - 1, values, count, weights)


def _ragged_bins(call: Call) -> tuple[int, ...] | None:
    _weights_fit(call)
    splits, number = call.type_of("splits"), call.known_value("size")
    expect(len(splits.shape) == 1, "must be a vector", "splits")
    if splits.dynamic or number is None:
        return None
    expect(number[0] >= 0, "is negative", "size")
    return (splits.shape[0] - 1, number[0])


def _in_top_k(predictions: Array, targets: Array, k: int) -> Any:
    expect(predictions.ndim == 2, "must be a matrix", "predictions")
    expect(targets.shape == predictions.shape[:1], "has one target for each row", "targets")
    there = (targets >= 0) & (targets < predictions.shape[1])
    own = np.take_along_axis(predictions, np.where(there, targets, 0)[:, None], 1)
    return there & ((predictions > own).sum(axis=1) < k)


def _nth(call: Call, x: Array, n: Array) -> Any:
    number = scalar(n, "n")
    expect(x.ndim > 0, "takes no scalar", "input")
    expect(0 <= number < x.shape[-1], f"{number} of {x.shape[-1]}", "n")
    ordered = np.sort(x, axis=-1)
    return ordered[..., -1 - number if call["reverse"] else number]


def _bias_grad(call: Call, x: Array) -> Any:
    first = call["data_format"] == "NCHW"
    expect(x.ndim >= (3 if first else 2), "has a dimension beside the channels", "out_backprop")
    channel = 1 if first else x.ndim - 1
    axes = tuple(axis for axis in range(x.ndim) if axis != channel)
    return _sum(x, axes, keep=False)


def _cross(_: Call, a: Array, b: Array) -> Any:
    expect(a.shape == b.shape and a.ndim > 0, "operands have one shape, and are no scalars")
    expect(a.shape[-1] == 3, "the last dimension is 3", "a")
    x, y = np.moveaxis(a, -1, 0), np.moveaxis(b, -1, 0)
    parts = []
    for i in range(3):
        left, right = x[(i + 1) % 3] * y[(i + 2) % 3], x[(i + 2) % 3] * y[(i + 1) % 3]
        bounded(np.abs(left) + np.abs(right))
        parts.append(left - right)
    return np.stack(parts, axis=-1)


# --- segments --------------------------------------------------------------------------


def _grouped(kind: str, data: Array, ids: Array, count: int, *, empty: int | None) -> Array:
    """The reduction of the rows of each segment; `empty` is that of no row."""
    out = np.empty((count, *data.shape[1:]), np.int64)
    for segment in range(count):
        rows = data[ids == segment]
        if not len(rows):
            if empty is None and out[segment].size:
                raise Inexact("the extremum of no element")
            out[segment] = 0 if empty is None else empty
        elif kind == "Sum":
            out[segment] = _sum(rows, (0,), keep=False)
        elif kind == "Prod":
            out[segment] = _prod(rows, (0,), keep=False)
        else:
            out[segment] = rows.max(axis=0) if kind == "Max" else rows.min(axis=0)
    return out


def _sorted_ids(ids: Array, data_rows: int, operand: str = "segment_ids") -> int:
    """The number of segments; refuses ids out of order."""
    found = vector(ids, operand, data_rows)
    expect(found == sorted(found), "are not in ascending order", operand)
    expect(not found or found[0] >= 0, "holds a negative number", operand)
    count = found[-1] + 1 if found else 0
    expect(count <= MAX_ELEMENTS, f"more than {MAX_ELEMENTS} segments", operand)
    return count


def _segments(kind: str) -> Callable[..., Any]:
    def compute(_: Call, data: Array, ids: Array) -> Any:
        expect(data.ndim > 0, "takes no scalar", "data")
        count = _sorted_ids(ids, len(data))
        return _grouped(kind, data, ids, count, empty=1 if kind == "Prod" else 0)

    return compute


def _unsorted(kind: str) -> Callable[..., Any]:
    def compute(_: Call, data: Array, ids: Array, number: Array) -> Any:
        count = scalar(number, "num_segments")
        expect(count >= 0, "is negative", "num_segments")
        expect(data.shape[: ids.ndim] == ids.shape, "begins with the shape of the ids", "data")
        expect(not (ids >= count).any(), f"names a segment beyond {count}", "segment_ids")
        rest = data.shape[ids.ndim :]
        expect(count * int(np.prod(rest)) <= MAX_ELEMENTS, "is too large", "num_segments")
        flat = data.reshape(ids.size, *rest)
        return _grouped(kind, flat, ids.ravel(), count, empty={"Sum": 0, "Prod": 1}.get(kind))

    return compute


def _sparse_segments(
    _: Call, data: Array, indices: Array, ids: Array, number: Array | None = None
) -> Any:
    expect(data.ndim > 0, "takes no scalar", "data")
    rows = vector(indices, "indices")
    count = _sorted_ids(ids, len(rows))
    if number is not None:
        wanted = scalar(number, "num_segments")
        expect(wanted >= count, "is less than the segments named", "num_segments")
        count = wanted
        expect(count * int(np.prod(data.shape[1:])) <= MAX_ELEMENTS, "is too large", "num_segments")
    for row in rows:
        expect(0 <= row < len(data), f"row {row} of {len(data)}", "indices")
    return _grouped("Sum", data[rows], ids, count, empty=0)


def _largest_sparse_sum(call: Call, bounds: Sequence[int]) -> int:
    """As many rows are added as there are indices, and as many segments as indices."""
    return max(1, bounds[0]) * min(map(size, call.inputs[1:3]))


def _sparse_segments_grad(_: Call, grad: Array, indices: Array, ids: Array, rows: Array) -> Any:
    """The gradient of each segment, for each of the rows that were added."""
    expect(grad.ndim > 0, "takes no scalar", "grad")
    count = scalar(rows, "output_dim0")
    expect(count >= 0, "is negative", "output_dim0")
    expect(count * int(np.prod(grad.shape[1:])) <= MAX_ELEMENTS, "is too large", "output_dim0")
    places, segments = vector(indices, "indices"), vector(ids, "segment_ids")
    expect(len(places) == len(segments), f"has {len(places)} elements", "segment_ids")
    out = np.zeros((count, *grad.shape[1:]), np.int64)
    if not count:
        return out  # nothing is checked
    magnitudes = out.copy()
    for place, segment in zip(places, segments, strict=True):
        expect(0 <= place < count, f"row {place} of {count}", "indices")
        expect(0 <= segment < len(grad), f"segment {segment} of {len(grad)}", "segment_ids")
        out[place] += grad[segment]
        magnitudes[place] += np.abs(grad[segment])
    bounded(magnitudes)
    return out


def _sparse_segments_grad_shape(call: Call) -> tuple[int, ...] | None:
    grad, known = call.type_of("grad"), call.known_value("output_dim0")
    expect(len(grad.shape) > 0, "takes no scalar", "grad")
    indices, ids = call.type_of("indices"), call.type_of("segment_ids")
    expect(len(indices.shape) == 1, "must be a vector", "indices")
    if not (ids.dynamic or indices.dynamic):
        expect(ids.shape == indices.shape, f"has {indices.shape[0]} elements", "segment_ids")
    expect(not call.type_of("output_dim0").shape, "must be a scalar", "output_dim0")
    if known is None or grad.dynamic:
        return None
    expect(known[0] >= 0, "is negative", "output_dim0")
    return (known[0], *grad.shape[1:])


def _largest_of_kind(kind: str) -> Callable[[Call, Sequence[int]], int]:
    return {"Sum": _largest_sum, "Prod": _largest_product}.get(kind, largest_of("data"))


def _number_known(call: Call) -> tuple[int, ...] | None:
    """The shape by a number of segments that is known."""
    data, ids = call.type_of("data"), call.type_of("segment_ids")
    number = call.known_value("num_segments")
    if data.dynamic or ids.dynamic:
        return None
    sparse = "indices" in call.op.operands
    wanted = call.type_of("indices").shape if sparse else data.shape[: len(ids.shape)]
    expect(ids.shape == wanted, f"has shape {list(wanted)}, got {ids}", "segment_ids")
    expect(not call.type_of("num_segments").shape, "must be a scalar", "num_segments")
    if number is None:
        return None
    expect(number[0] >= 0, "is negative", "num_segments")
    return (number[0], *data.shape[1 if sparse else len(ids.shape) :])


def _unsorted_rank(call: Call) -> int:
    return len(call.type_of("data").shape) - len(call.type_of("segment_ids").shape) + 1


ROWS: Final = (
    _reduce("Sum", _sum, _largest_sum),
    _reduce("Prod", _prod, _largest_product),
    _reduce(
        "Max", _extreme(lambda x, axes, keep: x.max(axis=axes, keepdims=keep)), largest_of("input")
    ),
    _reduce(
        "Min", _extreme(lambda x, axes, keep: x.min(axis=axes, keepdims=keep)), largest_of("input")
    ),
    _reduce("All", lambda x, axes, keep: x.all(axis=axes, keepdims=keep), one, "bool"),
    _reduce("Any", lambda x, axes, keep: x.any(axis=axes, keepdims=keep), one, "bool"),
    _argument("ArgMax", lambda x, axis: x.argmax(axis=axis)),
    _argument("ArgMin", lambda x, axis: x.argmin(axis=axis)),
    _scanned(
        "Cumsum",
        lambda x, axis: x.cumsum(axis=axis),
        lambda x, axis: bounded(np.abs(x).sum(axis=axis)),
        0,
        _largest_sum,
    ),
    _scanned("Cumprod", lambda x, axis: x.cumprod(axis=axis), product, 1, _largest_product),
    PureOp(
        "Bincount",
        "arr:int32 size:int32 weights:T -> T",
        _bincount,
        lambda call, b: max(1, b[2]) * size(call.inputs[0]),
        shape_from=("size",),
        index=("arr",),
        rank=lambda _: 1,
    ),
    PureOp(
        "DenseBincount",
        "input:I size:I weights:T -> T",
        _dense_bincount,
        lambda call, b: max(1, b[2]) * size(call.inputs[0]),
        (Field("binary_output", "bool", default=False),),
        shape_from=("size",),
        index=("input",),
        rank=ranks("input"),
    ),
    PureOp(
        "SparseBincount",
        "indices:int64 values:I dense_shape:int64 size:I weights:T -> T",
        _sparse_bincount,
        lambda call, b: max(1, b[4]) * size(call.inputs[1]),
        _BINARY,
        shape_from=("dense_shape", "size"),
        rank=_per_row,
        shape=_sparse_bins,
        tried=False,
        divisors=("values", "indices"),
    ),
    PureOp(
        "RaggedBincount",
        "splits:int64 values:I size:I weights:T -> T",
        _ragged_bincount,
        lambda call, b: max(1, b[3]) * size(call.inputs[1]),
        _BINARY,
        shape_from=("size",),
        rank=lambda _: 2,
        shape=_ragged_bins,
        tried=False,
        divisors=("values", "splits"),
    ),
    PureOp(
        "InTopK",
        "predictions:float32 targets:I -> bool",
        lambda call, predictions, targets: _in_top_k(predictions, targets, call["k"]),
        one,
        (Field("k", "int"),),
        index=("targets",),
        rank=lambda _: 1,
    ),
    PureOp(
        "InTopKV2",
        "predictions:float32 targets:I k:I -> bool",
        lambda _, predictions, targets, k: _in_top_k(predictions, targets, scalar(k, "k")),
        one,
        index=("targets",),
        rank=lambda _: 1,
    ),
    PureOp(
        "NthElement",
        "input:T n:int32 -> T",
        _nth,
        largest_of("input"),
        (Field("reverse", "bool", default=False),),
        index=("n",),
        rank=lambda call: len(call.type_of("input").shape) - 1,
    ),
    PureOp(
        "BiasAddGrad",
        "out_backprop:T -> T",
        _bias_grad,
        _largest_sum,
        (Field("data_format", ("NHWC", "NCHW"), "NHWC"),),
        rank=lambda _: 1,
    ),
    PureOp(
        "Cross",
        "a:T b:T -> T",
        _cross,
        lambda _, b: 2 * b[0] * b[1],
        rank=ranks("a"),
    ),
    *(
        PureOp(
            f"Segment{kind}",
            "data:T segment_ids:I -> T",
            _segments(kind),
            _largest_of_kind(kind),
            shape_from=("segment_ids",),
            index=("segment_ids",),
            rank=ranks("data"),
        )
        for kind in ("Sum", "Prod", "Max", "Min")
    ),
    *(
        PureOp(
            f"UnsortedSegment{kind}",
            "data:T segment_ids:I num_segments:I2 -> T",
            _unsorted(kind),
            _largest_of_kind(kind),
            shape_from=("num_segments",),
            rank=_unsorted_rank,
            shape=_number_known,
            tried=False,
            divisors=("segment_ids",),
        )
        for kind in ("Sum", "Prod", "Max", "Min")
    ),
    PureOp(
        "SparseSegmentSum",
        "data:T indices:I segment_ids:I2 -> T",
        _sparse_segments,
        _largest_sparse_sum,
        (Field("sparse_gradient", "bool", default=False),),
        shape_from=("segment_ids",),
        index=("indices", "segment_ids"),
        rank=ranks("data"),
    ),
    PureOp(
        "SparseSegmentSumGrad",
        "grad:F indices:I segment_ids:I2 output_dim0:int32 -> F",
        _sparse_segments_grad,
        lambda call, b: max(1, b[0]) * size(call.inputs[1]),
        shape_from=("output_dim0",),
        rank=ranks("grad"),
        shape=_sparse_segments_grad_shape,
        tried=False,
        divisors=("indices", "segment_ids"),
    ),
    PureOp(
        "SparseSegmentSumWithNumSegments",
        "data:T indices:I segment_ids:I2 num_segments:I3 -> T",
        _sparse_segments,
        _largest_sparse_sum,
        (Field("sparse_gradient", "bool", default=False),),
        shape_from=("num_segments",),
        rank=ranks("data"),
        shape=_number_known,
        tried=False,
        divisors=("indices", "segment_ids"),
    ),
)
"""Rows of this family."""
