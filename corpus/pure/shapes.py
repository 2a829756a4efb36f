"""Ops that make shapes, or move values to other places."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from litmusfuzz.corpus.pure.arrays import np
from litmusfuzz.corpus.pure.definition import (
    Call,
    Fails,
    Field,
    Inexact,
    PureOp,
    axes_of,
    axis_of,
    bounded,
    elements,
    expect,
    known_length,
    largest_of,
    one,
    passes,
    ranks,
    scalar,
    size,
    vector,
)
from litmusfuzz.corpus.tensors import MAX_ELEMENTS, MAX_MAGNITUDE, UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from litmusfuzz.corpus.pure.arrays import Array

Shape = tuple[int, ...]
_OUT: Final = (Field("out_type", "dtype", "int32"),)


def _elements_of(shape: Sequence[int], operand: str) -> None:
    """Refuse a shape with a negative or an absurdly large dimension."""
    total = 1
    for each in shape:
        expect(each >= 0, f"a negative dimension {each}", operand)
        total *= each
    if total > MAX_ELEMENTS or any(each > MAX_ELEMENTS for each in shape):
        raise Inexact(f"more than {MAX_ELEMENTS} elements: {list(shape)}", operand)


# --- shapes of values, and values of shapes --------------------------------------------


def _shape_op(
    name: str, f: Callable[[Array], Any], result: str, shape: Callable[[int], Shape]
) -> PureOp:
    """The row of an op on a shape alone."""

    def static(call: Call) -> Shape:
        return shape(len(call.type_of("input").shape))

    fields = _OUT if result.startswith("@") else ()
    return PureOp(name, f"input:A -> {result}", lambda _, x: f(x), elements, fields, shape=static)


def _reshape(_: Call, x: Array, shape: Array) -> Any:
    wanted = vector(shape, "shape")
    expect(wanted.count(-1) <= 1, "holds -1 twice", "shape")
    rest = 1
    for each in wanted:
        expect(each >= -1, f"a negative dimension {each}", "shape")
        rest *= each if each != -1 else 1
    if -1 in wanted:
        fits = rest > 0 and x.size % rest == 0
        expect(fits, f"cannot infer a dimension of {wanted} for {x.size} elements", "shape")
        wanted = [x.size // rest if each == -1 else each for each in wanted]
    else:
        expect(rest == x.size, f"{x.size} elements into shape {wanted}", "shape")
    return x.reshape(wanted)


def _known_shape(operand: str) -> Callable[[Call], Shape | None]:
    """The shape that an operand gives, where it is known and holds no -1."""

    def shape(call: Call) -> Shape | None:
        known = call.known_value(operand)
        if known is None or len(call.type_of(operand).shape) != 1 or min(known, default=0) < 0:
            return None
        return known

    return shape


def _ensure(call: Call, x: Array) -> Any:
    wanted = call["shape"]
    fits = len(wanted) == x.ndim and all(
        want in (UNKNOWN, got) for want, got in zip(wanted, x.shape, strict=True)
    )
    expect(fits, f"shape {list(x.shape)} is not {list(wanted)}", "input")
    return x


def _default(call: Call, x: Array) -> Any:
    # No test feeds it. Where the shape fits is known at load: at run time, nothing is checked.
    return _ensure(call, x)


def _to_bool(_: Call, x: Array) -> Any:
    """A number other than 0, or a tensor with elements."""
    return x != 0 if not x.ndim else np.array(x.size > 0)


_HALF: Final = 1 << 32


def _bitcast(call: Call, x: Array) -> Any:
    """The same bits as integers of another size, the low half of one first."""
    wide, wanted = call.inputs[0].dtype == "int64", call["type"] == "int64"
    if wide == wanted:
        return x
    if wide:
        low = (x + _HALF // 2) % _HALF - _HALF // 2
        return np.stack([low, (x - x % _HALF) // _HALF], axis=-1)
    expect(x.ndim > 0 and x.shape[-1] == 2, "ends in a dimension of 2", "input")
    return x[..., 0] % _HALF + x[..., 1] * _HALF


def _bitcast_rank(call: Call) -> int:
    wide, wanted = call.inputs[0].dtype == "int64", call["type"] == "int64"
    return len(call.inputs[0].shape) + int(wide) - int(wanted)


def _bitcast_shape(call: Call) -> Shape | None:
    kind = call.inputs[0]
    if kind.dynamic:
        return None
    wide, wanted = kind.dtype == "int64", call["type"] == "int64"
    if wide == wanted:
        return kind.shape
    if wide:
        return (*kind.shape, 2)
    expect(kind.shape[-1:] == (2,), "ends in a dimension of 2", "input")
    return kind.shape[:-1]


def _ensured(call: Call) -> Shape | None:
    return None if UNKNOWN in call["shape"] else tuple(call["shape"])


def _tile(_: Call, x: Array, multiples: Array) -> Any:
    times = vector(multiples, "multiples", x.ndim)
    _elements_of([d * t for d, t in zip(x.shape, times, strict=True)], "multiples")
    expect(min(times, default=1) >= 0, "holds a negative number", "multiples")
    return np.tile(x, times)


def _fill(_: Call, dims: Array, value: Array) -> Any:
    shape = vector(dims, "dims")
    _elements_of(shape, "dims")
    return np.full(shape, scalar(value, "value"), np.int64)


def _broadcast_to(_: Call, x: Array, shape: Array) -> Any:
    wanted = vector(shape, "shape")
    _elements_of(wanted, "shape")
    try:
        return np.broadcast_to(x, wanted)
    except ValueError:
        raise Fails(f"shape {list(x.shape)} to {wanted}", "shape") from None


def _broadcast_args(_: Call, one: Array, other: Array) -> Any:
    shapes = vector(one, "s0"), vector(other, "s1")
    longest = max(map(len, shapes))
    out = []
    for a, b in zip(*([1] * (longest - len(each)) + each for each in shapes), strict=True):
        expect(a == b or 1 in (a, b), f"{shapes[0]} and {shapes[1]} do not broadcast")
        out.append(b if a == 1 else a)
    return np.array(out, np.int64)


def _broadcast_length(call: Call) -> Shape | None:
    kinds = call.inputs
    for position, each in enumerate(kinds):
        expect(len(each.shape) == 1, "must be a vector", ("s0", "s1")[position])
    return None if any(each.dynamic for each in kinds) else (max(k.shape[0] for k in kinds),)


def _range(call: Call, start: Array, limit: Array, delta: Array) -> Any:
    first, last, step = (
        scalar(each, name)
        for name, each in zip(call.op.operands, (start, limit, delta), strict=True)
    )
    expect(step != 0, "is zero", "delta")
    expect(first <= last if step > 0 else first >= last, "lies on the other side", "limit")
    _elements_of([len(range(first, last, step))], "limit")
    return np.array(range(first, last, step), np.int64)


def _one_hot(call: Call, indices: Array, depth: Array, on: Array, off: Array) -> Any:
    count = scalar(depth, "depth")
    expect(count >= 0, "is negative", "depth")
    _elements_of([count, indices.size], "depth")
    on_value, off_value = scalar(on, "on_value"), scalar(off, "off_value")
    axis = call["axis"]
    expect(-1 <= axis <= indices.ndim, f"axis {axis} of rank {indices.ndim}")
    hot = np.expand_dims(indices, -1) == np.arange(count)
    return np.moveaxis(np.where(hot, on_value, off_value), -1, axis)


# --- other shapes for the same values --------------------------------------------------


def _transpose(_: Call, x: Array, perm: Array) -> Any:
    order = vector(perm, "perm", x.ndim)
    axes = [axis_of(each, x.ndim, "perm") for each in order]
    expect(sorted(axes) == list(range(x.ndim)), f"is no permutation: {order}", "perm")
    return x.transpose(axes)


def _conjugate(call: Call, x: Array, perm: Array) -> Any:
    # Of a scalar, TensorFlow 2.21 with oneDNN ends the process: "dims_tf_order.size() > 0".
    expect(x.ndim > 0, "takes no scalar", "x")
    return _transpose(call, x, perm)


def _expand(_: Call, x: Array, dim: Array) -> Any:
    expect(dim.size == 1, "must be one axis", "dim")
    return np.expand_dims(x, axis_of(int(dim.ravel()[0]), x.ndim + 1, "dim"))


def _squeeze(call: Call, x: Array) -> Any:
    dims = call["squeeze_dims"]
    axes = {axis_of(each, x.ndim, "input") for each in dims}
    for axis in axes:
        expect(x.shape[axis] == 1, f"dimension {axis} is {x.shape[axis]}, not 1", "input")
    if not dims:
        axes = {axis for axis, each in enumerate(x.shape) if each == 1}
    return x.reshape([each for axis, each in enumerate(x.shape) if axis not in axes])


def _concat(values: list[Array], axis: int, operand: str) -> Any:
    rank = values[0].ndim
    expect(rank > 0, "takes no scalars", "values")
    along = axis_of(axis, rank, operand)
    for each in values:
        fits = each.ndim == rank and all(
            each.shape[d] == values[0].shape[d] for d in range(rank) if d != along
        )
        shapes = f"{list(values[0].shape)} and {list(each.shape)}"
        expect(fits, f"shapes {shapes} differ beside axis {along}", "values")
    return np.concatenate(values, along)


def _pack(call: Call, values: list[Array]) -> Any:
    for each in values:
        expect(each.shape == values[0].shape, "have different shapes", "values")
    return np.stack(values, axis_of(call["axis"], values[0].ndim + 1, "values"))


def _paddings(paddings: Array, x: Array, operand: str = "paddings") -> list[list[int]]:
    expect(paddings.shape == (x.ndim, 2), f"has shape [{x.ndim}, 2]", operand)
    pairs = [[int(v) for v in row] for row in paddings]
    for row in pairs:
        expect(min(row) >= 0, "holds a negative number", operand)
    return pairs


def _pad(_: Call, x: Array, paddings: Array, value: Array | None = None) -> Any:
    pairs = _paddings(paddings, x)
    _elements_of([d + a + b for d, (a, b) in zip(x.shape, pairs, strict=True)], "paddings")
    fill = 0 if value is None else scalar(value, "constant_values")
    return np.pad(x, pairs, constant_values=fill) if x.ndim else x


def _mirror_pairs(call: Call, paddings: Array, shape: Sequence[int], rank: int) -> list[list[int]]:
    expect(paddings.shape == (rank, 2), f"has shape [{rank}, 2]", "paddings")
    less = 1 if call["mode"] == "REFLECT" else 0
    pairs = [[int(v) for v in row] for row in paddings]
    for row, extent in zip(pairs, shape, strict=True):
        expect(min(row) >= 0, "holds a negative number", "paddings")
        expect(max(row) <= extent - less, f"is more than {extent - less}", "paddings")
    return pairs


def _mirrored(call: Call, extent: int, before: int, after: int) -> Any:
    """The position of each padded element in the dimension before padding."""
    places = np.arange(extent)
    if not extent:
        return places
    if call["mode"] == "REFLECT":
        return np.pad(places, (before, after), mode="reflect")
    return np.pad(places, (before, after), mode="symmetric")


def mirror_pad(call: Call, x: Array, paddings: Array) -> Any:
    """`x`, continued by its own mirror image."""
    for axis, (before, after) in enumerate(_mirror_pairs(call, paddings, x.shape, x.ndim)):
        x = np.take(x, _mirrored(call, x.shape[axis], before, after), axis)
    return x


def _mirror_pad_grad(call: Call, x: Array, paddings: Array) -> Any:
    expect(paddings.shape == (x.ndim, 2), f"has shape [{x.ndim}, 2]", "paddings")
    inner = [d - int(a) - int(b) for d, (a, b) in zip(x.shape, paddings, strict=True)]
    expect(min(inner, default=0) >= 0, "are more than the dimension", "paddings")
    pairs = _mirror_pairs(call, paddings, inner, x.ndim)
    magnitudes = np.abs(x)
    for axis, (before, after) in enumerate(pairs):
        places = _mirrored(call, inner[axis], before, after)
        x, magnitudes = (_folded(each, places, inner[axis], axis) for each in (x, magnitudes))
    bounded(magnitudes)
    return x


def _folded(x: Array, places: Array, extent: int, axis: int) -> Array:
    out = np.zeros((extent, *np.moveaxis(x, axis, 0).shape[1:]), np.int64)
    np.add.at(out, places, np.moveaxis(x, axis, 0))
    return np.moveaxis(out, 0, axis)


# --- slices ----------------------------------------------------------------------------

_MASKS: Final = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
MASK_FIELDS: Final = tuple(Field(each, "int", 0) for each in _MASKS)


def _slice(_: Call, x: Array, begin: Array, count: Array) -> Any:
    starts, sizes = vector(begin, "begin", x.ndim), vector(count, "size", x.ndim)
    picked = []
    for start, number, extent in zip(starts, sizes, x.shape, strict=True):
        expect(0 <= start <= extent, f"{start} in a dimension of {extent}", "begin")
        number = extent - start if number == -1 else number
        fits = number >= 0 and start + number <= extent
        expect(fits, f"{number} elements from {start} on in a dimension of {extent}", "size")
        picked.append(slice(start, start + number))
    return x[tuple(picked)]


def strided(
    masks: Any, shape: Shape, begin: Array, end: Array, strides: Array
) -> tuple[list[list[int]], list[bool], list[int]]:
    """Places that a strided slice takes of each dimension.

    Returns
    -------
    places : list of list of int
        For each dimension of the value.
    shrinks : list of bool
        Whether the result lacks that dimension.
    new : list of int
        Positions of new dimensions of size 1, in the result.

    References
    ----------
    TensorFlow, ``util/strided_slice_op.cc``, ``ValidateStridedSliceOp``.
    """
    length = len(vector(begin, "begin"))
    starts, ends, steps = (
        vector(each, name, length)
        for name, each in (("begin", begin), ("end", end), ("strides", strides))
    )

    def has(mask: str, i: int) -> bool:
        return bool(masks[mask] >> i & 1)

    ellipses = [i for i in range(length) if has("ellipsis_mask", i)]
    expect(len(ellipses) <= 1, "has several ellipses")
    taken = sum(
        1 for i in range(length) if not (has("ellipsis_mask", i) or has("new_axis_mask", i))
    )
    expect(taken <= len(shape), f"indexes {taken} dimensions of {len(shape)}", "begin")
    places: list[list[int]] = []
    shrinks: list[bool] = []
    new: list[int] = []
    shown = 0
    for i in range(length):
        if has("ellipsis_mask", i):
            for _ in range(len(shape) - taken):
                places.append(list(range(shape[len(places)])))
                shrinks.append(False)
                shown += 1
            continue
        if has("new_axis_mask", i):
            new.append(shown)
            shown += 1
            continue
        extent, step = shape[len(places)], steps[i]
        expect(step != 0, "is zero", "strides")
        shrink = has("shrink_axis_mask", i)
        if shrink:
            expect(step > 0, "takes one element with a negative stride", "strides")
            at = starts[i] + extent if starts[i] < 0 else starts[i]
            expect(0 <= at < extent, f"{starts[i]} in a dimension of {extent}", "begin")
            places.append([at])
        else:
            low = None if has("begin_mask", i) else starts[i]
            high = None if has("end_mask", i) else ends[i]
            places.append(list(range(extent))[slice(low, high, step)])
            shown += 1
        shrinks.append(shrink)
    while len(places) < len(shape):
        places.append(list(range(shape[len(places)])))
        shrinks.append(False)
    return places, shrinks, new


def _shown(x: Array, shrinks: list[bool], new: list[int]) -> Array:
    """A slice without the dimensions that it lacks, and with its new ones."""
    shape = [d for d, shrink in zip(x.shape, shrinks, strict=True) if not shrink]
    for position in new:
        shape.insert(position, 1)
    return x.reshape(shape)


def _grid(places: list[list[int]]) -> Any:
    return np.ix_(*(np.array(each, np.int64) for each in places)) if places else ()


def _strided_slice(call: Call, x: Array, begin: Array, end: Array, strides: Array) -> Any:
    places, shrinks, new = strided(call, x.shape, begin, end, strides)
    return _shown(x[_grid(places)] if places else x, shrinks, new)


def _slice_rank(call: Call) -> int:
    begin = call.type_of("begin")
    expect(len(begin.shape) == 1 and not begin.dynamic, "must be a vector", "begin")
    length = begin.shape[0]
    rank = len(call.type_of(call.op.operands[0]).shape)
    ellipsis = call["ellipsis_mask"] & ~(-1 << length)
    shrinks = bin(call["shrink_axis_mask"] & ~call["new_axis_mask"] & ~ellipsis & ~(-1 << length))
    new = bin(call["new_axis_mask"] & ~ellipsis & ~(-1 << length))
    return rank - shrinks.count("1") + new.count("1")


def _strided_grad(
    call: Call, shape: Array, begin: Array, end: Array, strides: Array, dy: Array
) -> Any:
    wanted = vector(shape, "shape")
    _elements_of(wanted, "shape")
    out = np.zeros(wanted, np.int64)
    return _assigned(call, out, begin, end, strides, dy, "dy", exact=True)


def _assigned(
    call: Call,
    x: Array,
    begin: Array,
    end: Array,
    strides: Array,
    value: Array,
    operand: str,
    *,
    exact: bool,
) -> Any:
    places, shrinks, new = strided(call, x.shape, begin, end, strides)
    whole = [len(each) for each in places]
    if not exact and 0 in whole:
        return x  # nothing is written, whatever the shape of the value
    shown = _shown(np.zeros(whole, np.int64), shrinks, new).shape
    if not exact and value.shape != shown and _broadcasts(value.shape, shown):
        raise Inexact("broadcasts the value, in some shapes only", operand)
    expect(value.shape == shown, f"has shape {list(shown)}, got {list(value.shape)}", operand)
    out = x.copy()
    if places:
        out[_grid(places)] = value.reshape(whole)
    return out if places else value.reshape(whole)


def _broadcasts(shape: Shape, wanted: Shape) -> bool:
    """True if a value of one shape broadcasts to another."""
    pairs = zip(reversed(shape), reversed(wanted), strict=False)
    return len(shape) <= len(wanted) and all(a in (1, b) for a, b in pairs)


def strided_update(
    call: Call, x: Array, begin: Array, end: Array, strides: Array, value: Array
) -> Any:
    """`x`, in which a value replaces a slice."""
    return _assigned(call, x, begin, end, strides, value, "value", exact=False)


# --- other orders of the same values ---------------------------------------------------


def _reverse(_: Call, x: Array, dims: Array) -> Any:
    flags = vector(dims, "dims", x.ndim)
    return np.flip(x, tuple(axis for axis, flag in enumerate(flags) if flag))


def _reverse_v2(_: Call, x: Array, axis: Array) -> Any:
    vector(axis, "axis")
    return np.flip(x, axes_of(axis, x.ndim, "axis"))


def _reverse_sequence(call: Call, x: Array, lengths: Array) -> Any:
    along, batch = call["seq_dim"], call["batch_dim"]
    fits = 0 <= along < x.ndim and 0 <= batch < x.ndim and along != batch
    expect(fits, f"seq_dim {along} and batch_dim {batch} of rank {x.ndim}", "input")
    numbers = vector(lengths, "seq_lengths", x.shape[batch])
    out = np.moveaxis(x, (batch, along), (0, 1)).copy()
    for row, number in enumerate(numbers):
        expect(0 <= number <= x.shape[along], f"{number} of {x.shape[along]}", "seq_lengths")
        out[row, :number] = out[row, :number][::-1].copy()
    return np.moveaxis(out, (0, 1), (batch, along))


def _roll(_: Call, x: Array, shift: Array, axis: Array) -> Any:
    expect(x.ndim > 0, "takes no scalar", "input")
    expect(shift.ndim <= 1, "must be a scalar or a vector", "shift")
    expect(shift.shape == axis.shape, "has the shape of shift", "axis")
    for by, each in zip(shift.ravel(), axis.ravel(), strict=True):
        x = np.roll(x, int(by), axis_of(int(each), x.ndim, "axis"))
    return x


def _invert(_: Call, x: Array) -> Any:
    order = vector(x, "x")
    expect(sorted(order) == list(range(len(order))), f"is no permutation: {order[:20]}", "x")
    return np.argsort(x)


def _vector_shape(call: Call) -> Shape:
    (kind,) = call.inputs
    expect(len(kind.shape) == 1, "must be a vector", "x")
    return kind.shape


def _unravel(_: Call, indices: Array, dims: Array) -> Any:
    shape = vector(dims, "dims")
    expect(indices.ndim <= 1, "must be a scalar or a vector", "indices")
    total = 1
    for each in shape:
        expect(each > 0, f"a dimension of {each}", "dims")
        total *= each
    if total >= MAX_MAGNITUDE:
        raise Inexact("a shape of 2**24 elements or more", "dims")
    expect(not (indices >= total).any(), f"lies outside {shape}", "indices")
    if (indices < 0).any():
        raise Inexact("holds a negative number, which the kernel does not refuse", "indices")
    return np.array(np.unravel_index(indices, shape), np.int64)


def _unravel_shape(call: Call) -> Shape | None:
    indices, dims = call.type_of("indices"), call.type_of("dims")
    expect(len(indices.shape) <= 1, "must be a scalar or a vector", "indices")
    expect(len(dims.shape) == 1, "must be a vector", "dims")
    return None if indices.dynamic or dims.dynamic else (*dims.shape, *indices.shape)


def _where(_: Call, x: Array) -> Any:
    expect(x.ndim > 0, "takes no scalar", "input")
    return np.argwhere(x)


def _stitch(_: Call, indices: list[Array], data: list[Array]) -> Any:
    rest = data[0].shape[indices[0].ndim :]
    count = 0
    for places, values in zip(indices, data, strict=True):
        fits = values.shape[: places.ndim] == places.shape
        expect(fits and values.shape[places.ndim :] == rest, "have shapes that differ", "data")
        expect(not (places < 0).any(), "holds a negative number", "indices")
        count = max(count, int(places.max(initial=-1)) + 1)
    _elements_of([count, *rest], "indices")
    out = np.zeros((count, *rest), np.int64)
    named = np.zeros(count, np.int64)
    for places, values in zip(indices, data, strict=True):
        flat = values.reshape(places.size, *rest)
        for row, place in enumerate(places.ravel()):
            out[place] = flat[row]
            named[place] += 1
    if (named == 0).any():
        raise Inexact("leaves a row undefined", "indices")
    return out, named


def _dynamic_stitch(call: Call, indices: list[Array], data: list[Array]) -> Any:
    return _stitch(call, indices, data)[0]


def _parallel_stitch(call: Call, indices: list[Array], data: list[Array]) -> Any:
    out, named = _stitch(call, indices, data)
    if (named > 1).any():
        raise Inexact("names a row twice: which value stays is not specified", "indices")
    return out


def _stitch_shape(call: Call) -> Shape | None:
    """The shape, where all indices are known; refuses shapes that do not fit."""
    roles = call.op.roles(len(call.inputs))
    assert roles is not None
    half = roles.count("indices")
    if any(kind.dynamic for kind in call.inputs):
        return None
    rest = call.inputs[half].shape[len(call.inputs[0].shape) :]
    count = 0
    for places, values in zip(call.inputs[:half], call.inputs[half:], strict=True):
        taken = len(places.shape)
        fits = values.shape[:taken] == places.shape and values.shape[taken:] == rest
        expect(fits, "have shapes that differ", "data")
    for known in call.known[:half]:
        if known is None:
            return None
        expect(min(known, default=0) >= 0, "holds a negative number", "indices")
        count = max(count, max(known, default=-1) + 1)
    return (count, *rest)


def _stitch_rank(call: Call) -> int:
    roles = call.op.roles(len(call.inputs))
    assert roles is not None
    half = roles.count("indices")
    return 1 + len(call.inputs[half].shape) - len(call.inputs[0].shape)


# --- blocks ----------------------------------------------------------------------------


def _space_to_batch(x: Array, block: Sequence[int], paddings: Array) -> Any:
    count = len(block)
    expect(x.ndim > count, f"has more than {count} dimensions", "input")
    expect(paddings.shape == (count, 2), f"has shape [{count}, 2]", "paddings")
    expect(min(block, default=1) >= 1, "holds a number below 1", "block_shape")
    expect(not (paddings < 0).any(), "holds a negative number", "paddings")
    pairs = [(0, 0), *((int(a), int(b)) for a, b in paddings)]
    pairs += [(0, 0)] * (x.ndim - len(pairs))
    _elements_of([d + a + b for d, (a, b) in zip(x.shape, pairs, strict=True)], "paddings")
    x = np.pad(x, pairs)
    shape: list[int] = [x.shape[0]]
    for extent, each in zip(x.shape[1:], block, strict=False):
        expect(extent % each == 0, f"{extent} is no multiple of {each}", "paddings")
        shape += [extent // each, each]
    rest = x.shape[1 + count :]
    x = x.reshape(*shape, *rest)
    order = [2 * i + 2 for i in range(count)] + [0] + [2 * i + 1 for i in range(count)]
    x = x.transpose([*order, *range(2 * count + 1, x.ndim)])
    batch = int(np.prod(x.shape[: count + 1]))
    return x.reshape(batch, *x.shape[count + 1 :])


def _batch_to_space(x: Array, block: Sequence[int], crops: Array) -> Any:
    count = len(block)
    expect(x.ndim > count, f"has more than {count} dimensions", "input")
    expect(crops.shape == (count, 2), f"has shape [{count}, 2]", "crops")
    expect(min(block, default=1) >= 1, "holds a number below 1", "block_shape")
    expect(not (crops < 0).any(), "holds a negative number", "crops")
    product = 1
    for each in block:
        product *= each
    expect(x.shape[0] % product == 0, f"a batch of {x.shape[0]} in blocks of {product}", "input")
    batch, rest = x.shape[0] // product, x.shape[1 + count :]
    spread = x.reshape(*block, batch, *x.shape[1:])
    order = [count]
    for i in range(count):
        order += [count + 1 + i, i]
    spread = spread.transpose([*order, *range(2 * count + 1, spread.ndim)])
    extents = [d * b for d, b in zip(x.shape[1:], block, strict=False)]
    out = spread.reshape(batch, *extents, *rest)
    picked = [slice(None)]
    for extent, (a, b) in zip(extents, crops, strict=True):
        expect(int(a) + int(b) <= extent, f"takes more than {extent}", "crops")
        picked.append(slice(int(a), extent - int(b)))
    return out[tuple(picked)]


def _block(call: Call, rank: Array) -> list[int]:
    block = call["block_size"]
    expect(block >= 2, f"a block of {block}; at least 2")
    expect(rank.ndim == 4, "has four dimensions", "input")
    return [block, block]


def _space_to_depth(call: Call, x: Array) -> Any:
    block, _ = _block(call, x)
    n, h, w, c = x.shape
    expect(h % block == 0 and w % block == 0, f"{h} by {w} in blocks of {block}", "input")
    x = x.reshape(n, h // block, block, w // block, block, c).transpose(0, 1, 3, 2, 4, 5)
    return x.reshape(n, h // block, w // block, block * block * c)


def _depth_to_space(call: Call, x: Array) -> Any:
    block, _ = _block(call, x)
    n, h, w, c = x.shape
    expect(c % (block * block) == 0, f"depth {c} in blocks of {block}", "input")
    x = x.reshape(n, h, w, block, block, c // (block * block)).transpose(0, 1, 3, 2, 4, 5)
    return x.reshape(n, h * block, w * block, c // (block * block))


# --- sorted values, formats ------------------------------------------------------------


def _search(side: str) -> Callable[..., Any]:
    def compute(_: Call, ordered: Array, values: Array) -> Any:
        expect(ordered.ndim == 2, "must be a matrix", "sorted_inputs")
        expect(values.ndim == 2, "must be a matrix", "values")
        expect(len(ordered) == len(values), "has as many rows as sorted_inputs", "values")
        if (np.diff(ordered, axis=1) < 0).any():
            raise Inexact("is not sorted", "sorted_inputs")
        rows = [
            np.searchsorted(row, each, side=side)  # type: ignore[call-overload]
            for row, each in zip(ordered, values, strict=True)
        ]
        return np.array(rows, np.int64).reshape(values.shape)

    return compute


_FORMATS: Final = ("NHWC", "NCHW", "HWNC", "HWCN")


def _format_map(call: Call, x: Array) -> Any:
    source, target = call["src_format"], call["dst_format"]
    rank = len(source)
    if ((x < -rank) | (x >= rank)).any():
        raise Inexact(f"an axis outside {rank}, which the kernel does not refuse", "x")
    return np.array([target.index(each) for each in source], np.int64)[x % rank]


def _format_permute(call: Call, x: Array) -> Any:
    source, target = call["src_format"], call["dst_format"]
    full = x.shape in ((4,), (4, 2))
    expect(full, "has shape [4] or [4, 2]", "x")
    return x[[source.index(each) for each in target]]


def _same(call: Call) -> int:
    return len(call.inputs[0].shape)


def _row_count(call: Call, _: Sequence[int]) -> int:
    return max(1, *(size(each) for each in call.inputs))


_FORMAT_FIELDS: Final = (
    Field("src_format", _FORMATS, "NHWC"),
    Field("dst_format", _FORMATS, "NCHW"),
)
_MODE: Final = (Field("mode", ("REFLECT", "SYMMETRIC")),)
ROWS: Final = (
    _shape_op("Shape", lambda x: np.array(x.shape, np.int64), "@out_type=I", lambda rank: (rank,)),
    _shape_op("Size", lambda x: np.array(x.size), "@out_type=I", lambda _: ()),
    _shape_op("Rank", lambda x: np.array(x.ndim), "int32", lambda _: ()),
    PureOp(
        "Reshape",
        "tensor:A shape:I -> A",
        _reshape,
        largest_of("tensor"),
        shape_from=("shape",),
        rank=known_length("shape"),
        shape=_known_shape("shape"),
    ),
    PureOp(
        "EnsureShape",
        "input:A -> A",
        _ensure,
        passes,
        (Field("shape", "ints"),),
        rank=lambda call: len(call["shape"]),
        shape=_ensured,
    ),
    PureOp(
        "PlaceholderWithDefault",
        "input:A -> A",
        _default,
        passes,
        (Field("shape", "ints"),),
    ),
    PureOp("ToBool", "input:T -> bool", _to_bool, one, rank=lambda _: 0),
    PureOp(
        "Bitcast",
        "input:I -> @type=I",
        _bitcast,
        passes,
        (Field("type", "dtype"),),
        rank=_bitcast_rank,
        shape=_bitcast_shape,
        tried=False,
    ),
    PureOp(
        "Tile",
        "input:A multiples:I -> A",
        _tile,
        largest_of("input"),
        shape_from=("multiples",),
        rank=ranks("input"),
    ),
    PureOp(
        "Fill",
        "dims:I value:A -> A",
        _fill,
        largest_of("value"),
        shape_from=("dims",),
        rank=known_length("dims"),
        shape=_known_shape("dims"),
    ),
    PureOp(
        "BroadcastTo",
        "input:A shape:I -> A",
        _broadcast_to,
        largest_of("input"),
        shape_from=("shape",),
        rank=known_length("shape"),
        shape=_known_shape("shape"),
    ),
    PureOp(
        "BroadcastArgs",
        "s0:I s1:I -> I",
        _broadcast_args,
        passes,
        rank=lambda _: 1,
        shape=_broadcast_length,
        tried=False,
        divisors=("s0", "s1"),
    ),
    PureOp(
        "Range",
        "start:T limit:T delta:T -> T",
        _range,
        passes,
        shape_from=("start", "limit", "delta"),
        rank=lambda _: 1,
    ),
    PureOp(
        "OneHot",
        "indices:I depth:int32 on_value:A off_value:A -> A",
        _one_hot,
        largest_of("on_value", "off_value"),
        (Field("axis", "int", -1),),
        shape_from=("depth",),
        rank=lambda call: len(call.type_of("indices").shape) + 1,
    ),
    *(
        PureOp(
            name,
            "x:A perm:I -> A",
            f,
            largest_of("x"),
            shape_from=("perm",),
            rank=ranks("x"),
        )
        for name, f in (("Transpose", _transpose), ("ConjugateTranspose", _conjugate))
    ),
    PureOp(
        "ExpandDims",
        "input:A dim:I -> A",
        _expand,
        largest_of("input"),
        shape_from=("dim",),
        rank=lambda call: len(call.type_of("input").shape) + 1,
    ),
    PureOp(
        "Squeeze",
        "input:A -> A",
        _squeeze,
        passes,
        (Field("squeeze_dims", "ints", ()),),
    ),
    PureOp(
        "ConcatV2",
        "values*:A axis:I -> A",
        lambda _, values, axis: _concat(values, scalar(axis, "axis"), "axis"),
        largest_of("values"),
        shape_from=("axis",),
        rank=ranks("values"),
    ),
    PureOp(
        "Concat",
        "concat_dim:int32 values*:A -> A",
        lambda _, axis, values: _concat(values, scalar(axis, "concat_dim"), "concat_dim"),
        largest_of("values"),
        shape_from=("concat_dim",),
        rank=ranks("values"),
    ),
    PureOp(
        "Pack",
        "values*:A -> A",
        _pack,
        passes,
        (Field("axis", "int", 0),),
        rank=lambda call: len(call.inputs[0].shape) + 1,
    ),
    PureOp(
        "Pad",
        "input:A paddings:I -> A",
        _pad,
        largest_of("input"),
        shape_from=("paddings",),
        rank=ranks("input"),
    ),
    PureOp(
        "PadV2",
        "input:A paddings:I constant_values:A -> A",
        _pad,
        largest_of("input", "constant_values"),
        shape_from=("paddings",),
        rank=ranks("input"),
    ),
    PureOp(
        "MirrorPad",
        "input:A paddings:I -> A",
        mirror_pad,
        largest_of("input"),
        _MODE,
        shape_from=("paddings",),
        rank=ranks("input"),
    ),
    PureOp(
        "MirrorPadGrad",
        "input:T paddings:I -> T",
        _mirror_pad_grad,
        lambda call, b: max(1, b[0]) * size(call.inputs[0]),
        _MODE,
        shape_from=("paddings",),
        rank=ranks("input"),
    ),
    PureOp(
        "Slice",
        "input:A begin:I size:I -> A",
        _slice,
        largest_of("input"),
        shape_from=("begin", "size"),
        rank=ranks("input"),
        shape=_known_shape("size"),
    ),
    PureOp(
        "StridedSlice",
        "input:A begin:I end:I strides:I -> A",
        _strided_slice,
        largest_of("input"),
        MASK_FIELDS,
        shape_from=("begin", "end", "strides"),
        rank=_slice_rank,
    ),
    PureOp(
        "StridedSliceGrad",
        "shape:I begin:I end:I strides:I dy:A -> A",
        _strided_grad,
        largest_of("dy"),
        MASK_FIELDS,
        shape_from=("shape", "begin", "end", "strides"),
        rank=known_length("shape"),
        shape=_known_shape("shape"),
    ),
    PureOp(
        "TensorStridedSliceUpdate",
        "input:A begin:I end:I strides:I value:A -> A",
        strided_update,
        largest_of("input", "value"),
        MASK_FIELDS,
        shape_from=("begin", "end", "strides"),
        rank=ranks("input"),
        shape=lambda call: None if (k := call.type_of("input")).dynamic else k.shape,
    ),
    PureOp(
        "Reverse",
        "tensor:A dims:bool -> A",
        _reverse,
        largest_of("tensor"),
        rank=ranks("tensor"),
    ),
    PureOp(
        "ReverseV2",
        "tensor:A axis:I -> A",
        _reverse_v2,
        largest_of("tensor"),
        shape_from=("axis",),
        rank=ranks("tensor"),
        shape=lambda call: None if (k := call.type_of("tensor")).dynamic else k.shape,
    ),
    PureOp(
        "ReverseSequence",
        "input:A seq_lengths:I -> A",
        _reverse_sequence,
        largest_of("input"),
        (Field("seq_dim", "int"), Field("batch_dim", "int", 0)),
        rank=ranks("input"),
        divisors=("seq_lengths",),
    ),
    PureOp(
        "Roll",
        "input:A shift:I axis:I2 -> A",
        _roll,
        largest_of("input"),
        index=("axis",),
        rank=ranks("input"),
    ),
    PureOp(
        "InvertPermutation",
        "x:I -> I",
        _invert,
        elements,
        shape=_vector_shape,
        tried=False,
        divisors=("x",),
    ),
    PureOp(
        "UnravelIndex",
        "indices:I dims:I -> I",
        _unravel,
        largest_of("indices", "dims"),
        rank=lambda call: 1 + len(call.type_of("indices").shape),
        shape=_unravel_shape,
        tried=False,
        divisors=("indices", "dims"),
    ),
    PureOp(
        "Where",
        "input:A -> int64",
        _where,
        elements,
        shape_from=("input",),
        rank=lambda _: 2,
    ),
    PureOp(
        "DynamicStitch",
        "indices*:int32 data*:A -> A",
        _dynamic_stitch,
        largest_of("data"),
        shape_from=("indices",),
        rank=_stitch_rank,
        shape=_stitch_shape,
        tried=False,
    ),
    PureOp(
        "ParallelDynamicStitch",
        "indices*:int32 data*:A -> A",
        _parallel_stitch,
        largest_of("data"),
        shape_from=("indices",),
        rank=_stitch_rank,
        shape=_stitch_shape,
        tried=False,
    ),
    PureOp(
        "SpaceToBatchND",
        "input:T block_shape:I paddings:I2 -> T",
        lambda _, x, block, paddings: _space_to_batch(x, vector(block, "block_shape"), paddings),
        largest_of("input"),
        shape_from=("block_shape", "paddings"),
        rank=ranks("input"),
    ),
    PureOp(
        "BatchToSpaceND",
        "input:T block_shape:I crops:I2 -> T",
        lambda _, x, block, crops: _batch_to_space(x, vector(block, "block_shape"), crops),
        largest_of("input"),
        shape_from=("block_shape", "crops"),
        rank=ranks("input"),
    ),
    PureOp(
        "SpaceToBatch",
        "input:T paddings:I -> T",
        lambda call, x, paddings: _space_to_batch(x, _block(call, x), paddings),
        largest_of("input"),
        (Field("block_size", "int"),),
        shape_from=("paddings",),
        rank=ranks("input"),
    ),
    PureOp(
        "BatchToSpace",
        "input:T crops:I -> T",
        lambda call, x, crops: _batch_to_space(x, _block(call, x), crops),
        largest_of("input"),
        (Field("block_size", "int"),),
        shape_from=("crops",),
        rank=ranks("input"),
    ),
    PureOp(
        "SpaceToDepth",
        "input:A -> A",
        _space_to_depth,
        passes,
        (Field("block_size", "int"),),
        rank=_same,
    ),
    PureOp(
        "DepthToSpace",
        "input:A -> A",
        _depth_to_space,
        passes,
        (Field("block_size", "int"),),
        rank=_same,
    ),
    *(
        PureOp(
            name,
            "sorted_inputs:T values:T -> @out_type=I",
            _search(side),
            _row_count,
            _OUT,
            rank=ranks("values"),
        )
        for name, side in (("LowerBound", "left"), ("UpperBound", "right"))
    ),
    PureOp(
        "DataFormatDimMap",
        "x:I -> I",
        _format_map,
        lambda *_: 4,
        _FORMAT_FIELDS,
        lanes=True,
        index=("x",),
        rank=_same,
    ),
    PureOp("DataFormatVecPermute", "x:I -> I", _format_permute, passes, _FORMAT_FIELDS),
)
"""Rows of this family."""
