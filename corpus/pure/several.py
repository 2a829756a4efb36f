"""Ops with several results: a node of a test has the one that its attribute `result` names.

A test that uses two results of an op has the op twice (`litmusfuzz.corpus.model.first_results`). As
the op is a function of its inputs, that is the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from litmusfuzz.corpus.pure.arrays import np
from litmusfuzz.corpus.pure.definition import (
    Call,
    Field,
    Inexact,
    PureOp,
    axis_of,
    bounded,
    elements,
    expect,
    largest_of,
    ranks,
    scalar,
    size,
    vector,
)
from litmusfuzz.corpus.pure.images import LOW, PADDING, STRIDES, grid_of, middle_of
from litmusfuzz.corpus.tensors import MAX_ELEMENTS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from litmusfuzz.corpus.pure.arrays import Array

Shape = tuple[int, ...]


# --- parts of one value ------------------------------------------------------------------


def _chosen(call: Call, attribute: str) -> tuple[int, int]:
    """The number of the result, and how many there are."""
    number, count = call["result"], call[attribute]
    expect(1 <= count <= 64, f"{attribute} {count}")
    expect(0 <= number < count, f"result {number} of {count}")
    return number, count


def _rank_of_value(call: Call) -> int:
    rank = len(call.type_of("value").shape)
    expect(rank > 0, "takes no scalar", "value")
    return rank


def _split(call: Call, axis_: Array, value: Array) -> Any:
    number, count = _chosen(call, "num_split")
    expect(value.ndim > 0, "takes no scalar", "value")
    axis = axis_of(scalar(axis_, "split_dim"), value.ndim, "split_dim")
    extent = value.shape[axis]
    expect(extent % count == 0, f"{extent} elements in {count} parts", "split_dim")
    return np.split(value, count, axis)[number]


def _split_v(call: Call, value: Array, sizes_: Array, axis_: Array) -> Any:
    number, count = _chosen(call, "num_split")
    sizes = vector(sizes_, "size_splits", count)
    expect(value.ndim > 0, "takes no scalar", "value")
    axis = axis_of(scalar(axis_, "split_dim"), value.ndim, "split_dim")
    extent = value.shape[axis]
    if -1 in sizes:
        expect(count > 1, "leaves the size of the only part open", "size_splits")
        expect(sizes.count(-1) == 1, "holds -1 twice", "size_splits")
        rest = extent - sum(each for each in sizes if each != -1)
        sizes = [rest if each == -1 else each for each in sizes]
    expect(min(sizes) >= 0, "holds a negative number", "size_splits")
    expect(sum(sizes) == extent, f"adds up to {sum(sizes)} of {extent}", "size_splits")
    start = sum(sizes[:number])
    return np.take(value, range(start, start + sizes[number]), axis)


def _unpack(call: Call, value: Array) -> Any:
    number, count = _chosen(call, "num")
    expect(value.ndim > 0, "takes no scalar", "value")
    axis = axis_of(call["axis"], value.ndim, "value")
    expect(value.shape[axis] == count, f"has {value.shape[axis]} parts, not {count}", "value")
    return np.take(value, number, axis)


def _partition(call: Call, data: Array, partitions: Array) -> Any:
    number, count = _chosen(call, "num_partitions")
    fits = data.shape[: partitions.ndim] == partitions.shape
    expect(fits, f"is no start of {list(data.shape)}", "partitions")
    inside = ((partitions >= 0) & (partitions < count)).all()
    expect(bool(inside), f"names a part outside {count}", "partitions")
    rows = data.reshape(partitions.size, *data.shape[partitions.ndim :])
    return rows[partitions.ravel() == number]


# --- positions --------------------------------------------------------------------------


def _first_places(rows: list[Any]) -> tuple[list[int], list[int]]:
    """Where each distinct value comes first; and for each value, its number among those."""
    number: dict[Any, int] = {}
    first: list[int] = []
    for place, row in enumerate(rows):
        if row not in number:
            number[row] = len(first)
            first.append(place)
    return first, [number[row] for row in rows]


def _unique(call: Call, x: Array) -> Any:
    return _distinct(call, x, vector(x, "x"), 0)


def _unique_along(call: Call, x: Array, axis_: Array) -> Any:
    axes = vector(axis_, "axis")
    expect(len(axes) <= 1, "has several numbers", "axis")
    if not axes:
        return _distinct(call, x, vector(x, "x"), 0)
    axis = axis_of(axes[0], x.ndim, "axis")
    rows = [tuple(each.ravel().tolist()) for each in np.moveaxis(x, axis, 0)]
    return _distinct(call, x, rows, axis)


def _distinct(call: Call, x: Array, rows: list[Any], axis: int) -> Any:
    first, numbers = _first_places(rows)
    if call["result"] == "y":
        return np.take(x, first, axis)
    if call["result"] == "idx":
        return np.array(numbers, np.int64)
    return np.bincount(np.array(numbers, np.int64), minlength=len(first))


def _of_vector(call: Call) -> Shape | None:
    """Shape of the positions: that of the vector."""
    x = call.type_of("x")
    expect(len(x.shape) == 1, "must be a vector", "x")
    return x.shape if call["result"] == "idx" and not x.dynamic else None


def _rank_along(call: Call) -> int:
    return len(call.type_of("x").shape) if call["result"] == "y" else 1


def _list_diff(call: Call, x: Array, y: Array) -> Any:
    without = set(vector(y, "y"))
    places = [place for place, each in enumerate(vector(x, "x")) if each not in without]
    kept = np.array(places, np.int64)
    return x[kept] if call["result"] == "out" else kept


def _top(call: Call, x: Array, k_: Array) -> Any:
    k = scalar(k_, "k")
    expect(x.ndim > 0, "takes no scalar", "input")
    expect(0 <= k <= x.shape[-1], f"k {k} of {x.shape[-1]}", "k")
    places = np.argsort(-x, axis=-1, kind="stable")[..., :k]  # of equals the first
    return np.take_along_axis(x, places, -1) if call["result"] == "values" else places


def _pooled(call: Call, x: Array) -> Any:
    """The largest element of each window, or its position in the image, the channel included."""
    expect(x.ndim == 4, "has four dimensions", "input")
    window, strides = middle_of(call, "ksize", 4, "input"), middle_of(call, "strides", 4, "input")
    grid = grid_of(call, x.shape, window, strides, (1, 1), "input")
    own = np.arange(x.size, dtype=np.int64).reshape(x.shape)
    if not call["include_batch_in_index"]:
        own %= int(np.prod(x.shape[1:]))
    flat, places = (
        grid.seen(each, LOW).reshape(len(x), *grid.out, -1, x.shape[-1]) for each in (x, own)
    )
    first = flat.argmax(axis=-2)[..., None, :]
    if (np.take_along_axis(flat, first, -2) <= LOW // 2).any():
        raise Inexact("the maximum of padding alone")
    return np.take_along_axis(places if call["result"] == "argmax" else flat, first, -2)[..., 0, :]


# --- ragged and sparse tensors ------------------------------------------------------------


def _ranges(call: Call, *operands: Array) -> Any:
    """One range after another, and where each begins."""
    roles = call.op.operands
    lengths = {each.size for each in operands if each.ndim}
    for role, each in zip(roles, operands, strict=True):
        expect(each.ndim <= 1, "must be a scalar or a vector", role)
    expect(len(lengths) <= 1, "have different lengths", "starts")
    count = lengths.pop() if lengths else 1
    rows = []
    triples = zip(*(np.broadcast_to(each, count).tolist() for each in operands), strict=True)
    for start, limit, delta in triples:
        expect(delta != 0, "is 0", "deltas")
        rows.append(np.arange(start, limit, delta, dtype=np.int64))
    expect(sum(map(len, rows)) <= MAX_ELEMENTS, "more than a test may have", "limits")
    if call["result"] == "rt_dense_values":
        return np.concatenate([np.zeros(0, np.int64), *rows])
    return np.cumsum([0, *map(len, rows)])


def _range_shape(call: Call) -> Shape | None:
    for role in call.op.operands:
        expect(len(call.type_of(role).shape) <= 1, "must be a scalar or a vector", role)
    lengths = {k.shape[0] for k in call.inputs if k.shape and not k.dynamic}
    expect(len(lengths) <= 1, "have different lengths", "starts")
    if call["result"] == "rt_dense_values":
        if all(known is not None for known in call.known):
            found = [np.array(known, np.int64) for known in call.known]
            shaped = (each.reshape(k.shape) for each, k in zip(found, call.inputs, strict=True))
            return tuple(_ranges(call, *shaped).shape)
        return None
    if any(k.dynamic for k in call.inputs):
        return None
    return ((lengths.pop() if lengths else 1) + 1,)


def _sparse_parts(indices: Array, shape: Array, names: tuple[str, str]) -> list[Shape]:
    """Coordinates that are all inside."""
    expect(indices.ndim == 2, "must be a matrix", names[0])
    extents = vector(shape, names[1], indices.shape[1])
    inside = ((indices >= 0) & (indices < np.array(extents, np.int64))).all()
    if not inside or min(extents, default=0) < 1:
        raise Inexact("not inside, which the kernel does not always refuse", names[0])
    return [tuple(map(int, each)) for each in indices]


def _reordered(call: Call, indices: Array, values: Array, shape: Array) -> Any:
    places = _sparse_parts(indices, shape, ("input_indices", "input_shape"))
    expect(values.shape == (len(places),), f"has {len(places)} elements", "input_values")
    if len(set(places)) != len(places):
        raise Inexact("names an element twice: their order is not specified", "input_indices")
    order = sorted(range(len(places)), key=places.__getitem__)
    return (indices if call["result"] == "output_indices" else values)[order]


def _reordered_rank(call: Call) -> int:
    return 2 if call["result"] == "output_indices" else 1


def _reordered_shape(call: Call) -> Shape | None:
    indices, values = call.type_of("input_indices"), call.type_of("input_values")
    expect(len(indices.shape) == 2, "must be a matrix", "input_indices")
    expect(len(values.shape) == 1, "must be a vector", "input_values")
    if any(k.dynamic for k in call.inputs):
        return None
    expect(values.shape == indices.shape[:1], "has one for each", "input_values")
    wanted = indices.shape[1:]
    expect(call.type_of("input_shape").shape == wanted, f"has {wanted[0]} numbers", "input_shape")
    return indices.shape if call["result"] == "output_indices" else values.shape


def _reshaped(call: Call, indices: Array, shape: Array, wanted: Array) -> Any:
    _sparse_parts(indices, shape, ("input_indices", "input_shape"))
    total = int(np.prod(shape))
    if total > MAX_ELEMENTS:
        raise Inexact("is too large", "input_shape")
    extents = vector(wanted, "new_shape")
    expect(extents.count(-1) <= 1, "holds -1 twice", "new_shape")
    expect(min(extents, default=0) >= -1, "holds a negative number", "new_shape")
    if -1 in extents:
        rest = int(np.prod([each for each in extents if each != -1], dtype=object))
        expect(rest > 0 and total % rest == 0, f"does not divide {total}", "new_shape")
        extents[extents.index(-1)] = total // rest
    expect(int(np.prod(extents, dtype=object)) == total, f"is not {total}", "new_shape")
    if call["result"] == "output_shape":
        return np.array(extents, np.int64)
    flat = np.ravel_multi_index(tuple(indices.T), tuple(map(int, shape)))
    return np.stack(np.unravel_index(flat, tuple(extents)), axis=-1)


def _reshaped_rank(call: Call) -> int:
    return 2 if call["result"] == "output_indices" else 1


def _reshaped_shape(call: Call) -> Shape | None:
    indices, wanted = call.type_of("input_indices"), call.type_of("new_shape")
    expect(len(indices.shape) == 2, "must be a matrix", "input_indices")
    expect(len(wanted.shape) == 1, "must be a vector", "new_shape")
    if any(k.dynamic for k in call.inputs):
        return None
    rank = indices.shape[1]
    expect(call.type_of("input_shape").shape == (rank,), f"has {rank} numbers", "input_shape")
    out = wanted.shape
    return (indices.shape[0], *out) if call["result"] == "output_indices" else out


def _filled_grad(call: Call, places: Array, grad: Array) -> Any:
    """The gradients of the values that were there, and the sum of those that were filled in."""
    rows = vector(places, "reverse_index_map")
    values = np.array(vector(grad, "grad_values"), np.int64)
    for row in rows:
        expect(0 <= row < len(values), f"row {row} of {len(values)}", "reverse_index_map")
    bounded(np.abs(values).sum())
    if call["result"] == "d_values":
        return values[rows] if rows else np.zeros(0, np.int64)
    return np.delete(values, rows).sum()


# --- shapes -----------------------------------------------------------------------------


def _gradient_axes(call: Call, s0: Array, s1: Array) -> Any:
    one, other = vector(s0, "s0"), vector(s1, "s1")
    if one == other:
        return np.zeros(0, np.int64)
    length = max(len(one), len(other))
    one, other = ([1] * (length - len(each)) + each for each in (one, other))
    mine, theirs = (one, other) if call["result"] == "r0" else (other, one)
    axes = []
    for axis, (a, b) in enumerate(zip(mine, theirs, strict=True)):
        expect(a == b or 1 in (a, b), f"{a} and {b} do not broadcast", "s1")
        # Where both are 1, both are summed over.
        if a == 1:
            axes.append(axis)
    return np.array(axes, np.int64)


def _offset(call: Call, dim: Array, shapes: list[Array]) -> Any:
    number, count = call["result"], len(shapes)
    expect(0 <= number < count, f"result {number} of {count}")
    listed = [vector(each, "shape") for each in shapes]
    rank = len(listed[0])
    axis = axis_of(scalar(dim, "concat_dim"), rank, "concat_dim")
    for each in listed:
        expect(len(each) == rank, "have different lengths", "shape")
        same = each[:axis] + each[axis + 1 :] == listed[0][:axis] + listed[0][axis + 1 :]
        expect(same, "differ beside the dimension", "shape")
    out = [0] * rank
    out[axis] = sum(each[axis] for each in listed[:number])
    return np.array(out, np.int64)


def _offset_shape(call: Call) -> Shape | None:
    return call.type_of("shape").shape


def _shape_n(call: Call, values: list[Array]) -> Any:
    number = call["result"]
    expect(0 <= number < len(values), f"result {number} of {len(values)}")
    return np.array(values[number].shape, np.int64)


def _values_or_places(call: Call, bounds: Sequence[int]) -> int:
    """The bound of an op that returns values of an operand, or positions in it."""
    return max(*bounds, elements(call, bounds))


def _named(*names: str) -> Field:
    return Field("result", names, names[0])


_NUMBER: Final = Field("result", "int", 0)
_INDEX: Final = Field("out_idx", "dtype", "int32")
_PLACES: Final = (("y", "A"), ("idx", "@out_idx=I"), ("count", "@out_idx=I"))


def _row(
    name: str,
    signature: str,
    compute: Callable[..., Any],
    largest: Any,
    fields: tuple[Field, ...],
    **more: Any,
) -> PureOp:
    # The executor `tf` writes an Identity beside the op, of which XLA might take one alone.
    return PureOp(name, signature, compute, largest, fields, compiles=False, **more)


ROWS: Final = (
    _row(
        "Split",
        "split_dim:int32 value:A -> A",
        _split,
        largest_of("value"),
        (_NUMBER, Field("num_split", "int")),
        shape_from=("split_dim",),
        rank=_rank_of_value,
        count="num_split",
    ),
    _row(
        "SplitV",
        "value:A size_splits:I split_dim:int32 -> A",
        _split_v,
        largest_of("value"),
        (_NUMBER, Field("num_split", "int")),
        shape_from=("size_splits", "split_dim"),
        rank=_rank_of_value,
        count="num_split",
    ),
    _row(
        "Unpack",
        "value:A -> A",
        _unpack,
        largest_of("value"),
        (_NUMBER, Field("num", "int"), Field("axis", "int", 0)),
        rank=lambda call: len(call.type_of("value").shape) - 1,
        count="num",
    ),
    _row(
        "DynamicPartition",
        "data:A partitions:int32 -> A",
        _partition,
        largest_of("data"),
        (_NUMBER, Field("num_partitions", "int")),
        shape_from=("partitions",),
        rank=lambda c: 1 + len(c.type_of("data").shape) - len(c.type_of("partitions").shape),
        count="num_partitions",
    ),
    _row(
        "Unique",
        "x:A -> A",
        _unique,
        _values_or_places,
        (_named("y", "idx"), _INDEX),
        shape_from=("x",),
        rank=lambda _: 1,
        shape=_of_vector,
        results=_PLACES[:2],
    ),
    _row(
        "UniqueWithCounts",
        "x:A -> A",
        _unique,
        _values_or_places,
        (_named("y", "idx", "count"), _INDEX),
        shape_from=("x",),
        rank=lambda _: 1,
        shape=_of_vector,
        results=_PLACES,
    ),
    *(
        _row(
            f"Unique{n}V2",
            "x:A axis:I -> A",
            _unique_along,
            _values_or_places,
            (_named(*(name for name, _ in _PLACES[:results])), _INDEX),
            shape_from=("x", "axis"),
            rank=_rank_along,
            results=_PLACES[:results],
        )
        for n, results in (("", 2), ("WithCounts", 3))
    ),
    _row(
        "ListDiff",
        "x:T y:T -> T",
        _list_diff,
        _values_or_places,
        (_named("out", "idx"), _INDEX),
        shape_from=("x", "y"),
        rank=lambda _: 1,
        results=(("out", "T"), ("idx", "@out_idx=I")),
    ),
    _row(
        "TopKV2",
        "input:T k:int32 -> T",
        _top,
        _values_or_places,
        (_named("values", "indices"), Field("index_type", "dtype", "int32")),
        shape_from=("k",),
        rank=ranks("input"),
        results=(("values", "T"), ("indices", "@index_type=I")),
    ),
    _row(
        "MaxPoolWithArgmax",
        "input:T -> T",
        _pooled,
        _values_or_places,
        (
            _named("output", "argmax"),
            Field("ksize", "ints"),
            STRIDES,
            PADDING,
            Field("Targmax", "dtype", "int64"),
            Field("include_batch_in_index", "bool", default=False),
        ),
        rank=lambda _: 4,
        results=(("output", "T"), ("argmax", "@Targmax=I")),
    ),
    _row(
        "RaggedRange",
        "starts:T limits:T deltas:T -> T",
        _ranges,
        _values_or_places,
        (_named("rt_nested_splits", "rt_dense_values"), Field("Tsplits", "dtype", "int64")),
        rank=lambda _: 1,
        shape=_range_shape,
        tried=False,
        shape_from=("starts", "limits", "deltas"),
        results=(("rt_nested_splits", "@Tsplits=I"), ("rt_dense_values", "T")),
    ),
    _row(
        "SparseReorder",
        "input_indices:int64 input_values:A input_shape:int64 -> A",
        _reordered,
        _values_or_places,
        (_named("output_indices", "output_values"),),
        rank=_reordered_rank,
        shape=_reordered_shape,
        tried=False,
        results=(("output_indices", "int64"), ("output_values", "A")),
    ),
    _row(
        "SparseReshape",
        "input_indices:int64 input_shape:int64 new_shape:int64 -> int64",
        _reshaped,
        lambda _, bounds: MAX_ELEMENTS,
        (_named("output_indices", "output_shape"),),
        rank=_reshaped_rank,
        shape=_reshaped_shape,
        tried=False,
        divisors=("input_shape", "new_shape"),
        results=(("output_indices", "int64"), ("output_shape", "int64")),
    ),
    _row(
        "SparseFillEmptyRowsGrad",
        "reverse_index_map:int64 grad_values:T -> T",
        _filled_grad,
        lambda call, b: max(1, b[1]) * size(call.inputs[1]),
        (_named("d_values", "d_default_value"),),
        index=("reverse_index_map",),
        rank=lambda call: int(call["result"] == "d_values"),
        results=(("d_values", "T"), ("d_default_value", "T")),
    ),
    _row(
        "BroadcastGradientArgs",
        "s0:I s1:I -> I",
        _gradient_axes,
        elements,
        (_named("r0", "r1"),),
        shape_from=("s0", "s1"),
        rank=lambda _: 1,
        results=(("r0", "I"), ("r1", "I")),
    ),
    _row(
        "ConcatOffset",
        "concat_dim:int32 shape*:I -> I",
        _offset,
        lambda _, bounds: sum(bounds),
        (_NUMBER,),
        shape=_offset_shape,
        tried=False,
        divisors=("concat_dim", "shape"),
        count="*",
    ),
    _row(
        "ShapeN",
        "input*:A -> @out_type=I",
        _shape_n,
        elements,
        (_NUMBER, Field("out_type", "dtype", "int32")),
        count="*",
    ),
)
"""Rows of this family."""
