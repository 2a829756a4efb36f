"""Ops with several results: a node of a test has the one that its attribute `result` names.

A test that uses two results of an op has the op twice. As the op is a function of its inputs, that
is the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from litmusfuzz.corpus.pure.arrays import np
from litmusfuzz.corpus.pure.definition import (
    Call,
    Field,
    PureOp,
    axis_of,
    elements,
    expect,
    largest_of,
    ranks,
    scalar,
    vector,
)

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
    # The executor `tf` writes such an op as two nodes, of which XLA would see one.
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
