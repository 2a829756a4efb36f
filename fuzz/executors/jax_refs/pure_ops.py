"""Pure ops as JAX has them: one function for each, over JAX's arrays, or over text for a script.

`corpus/pure` defines what an op computes, and the tests compare each function here with that. A
function gets JAX's modules, the node with what is known of it (`PureUse`), and its operands; of an
operand that may be given several times, a list. It chooses by types, attributes and constants
alone: shapes of operands are those of the node.

An op is here if JAX has it, or its result is an expression of few of JAX's ops. What it has not:
values whose shape depends on data, lists, sparse and ragged tensors, and gradients of windows that
choose among equals in TensorFlow's way.
"""

from __future__ import annotations

from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from litmusfuzz.corpus.ops import FLOATS
from litmusfuzz.fuzz.executors.jax_refs.written_values import MODULES, Text
from litmusfuzz.fuzz.executors.traced.pure_uses import Lacking, PureUses

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.executors.traced.pure_uses import PureUse

Array = Any
Jax = Any
"""JAX's modules: `jnp`, `lax` and `ops`."""

_EXACT: Final = "highest"
"""Precision of products: by default a GPU multiplies float32 with fewer bits."""


def lowered(jax: Jax, use: PureUse, operands: Sequence[Array]) -> Array:
    """The result of a pure node.

    Raises
    ------
    Lacking
        If JAX does not have the op with these types, attributes or operands.
    """
    return TABLE[use.node.op](jax, use, *use.grouped(operands))


def check_pure_ops(test: LitmusTest) -> None:
    """Check that JAX has the pure ops of a test as its nodes have them.

    Raises
    ------
    Lacking
        Naming the op, and what of it JAX lacks.
    """
    uses = PureUses(test)
    for node in test.nodes:
        if node.definition.meaning is not None and node.definition.pure:
            use = uses.of(node)
            if use.result.dynamic:
                raise _lacks(use, "with a result whose shape depends on values")
            lowered(MODULES, use, [Text("x")] * len(use.inputs))


def _lacks(use: PureUse, what: str) -> Lacking:
    return Lacking(f"{use.node.op} {what}")


# --- elements ---------------------------------------------------------------------------


def _jnp(name: str) -> Callable[..., Array]:
    """A function of `jax.numpy` that takes the op's operands."""
    return lambda jax, _, *operands: getattr(jax.jnp, name)(*operands)


def _wide(jax: Jax, use: PureUse, x: Array) -> Array:
    """An operand in the shape of the result."""
    return jax.jnp.broadcast_to(x, use.result.shape)


def _leaky(jax: Jax, use: PureUse, x: Array) -> Array:
    return jax.jnp.where(x > 0, x, use["alpha"] * x)


def _leaky_grad(jax: Jax, use: PureUse, gradients: Array, features: Array) -> Array:
    return jax.jnp.where(features > 0, gradients, use["alpha"] * gradients)


def _bucketize(jax: Jax, use: PureUse, x: Array) -> Array:
    limits = jax.jnp.array(use["boundaries"], use.inputs[0].dtype)
    return jax.jnp.searchsorted(limits, x, side="right").astype(use.result.dtype)


def _sum_of(_: Jax, __: PureUse, values: list[Array]) -> Array:
    first, *others = values
    for each in others:
        first = first + each
    return first


# --- reductions -------------------------------------------------------------------------


def _axes(use: PureUse, role: str = "reduction_indices") -> tuple[int, ...]:
    return use.numbers(role)


def _sized(name: str) -> Callable[..., Array]:
    """A reduction whose dtype JAX would make wider."""

    def reduced(jax: Jax, use: PureUse, x: Array, _: Array) -> Array:
        f, keep = getattr(jax.jnp, name), use["keep_dims"]
        return f(x, axis=_axes(use), keepdims=keep, dtype=use.result.dtype)

    return reduced


def _reduced(name: str) -> Callable[..., Array]:
    def reduced(jax: Jax, use: PureUse, x: Array, _: Array) -> Array:
        return getattr(jax.jnp, name)(x, axis=_axes(use), keepdims=use["keep_dims"])

    return reduced


def _argument(name: str) -> Callable[..., Array]:
    def found(jax: Jax, use: PureUse, x: Array, _: Array) -> Array:
        place = getattr(jax.jnp, name)(x, axis=use.number("dimension"))
        return place.astype(use.result.dtype)

    return found


def _scanned(name: str, fill: int) -> Callable[..., Array]:
    def scanned(jax: Jax, use: PureUse, x: Array, _: Array) -> Array:
        shape = list(use.inputs[0].shape)
        axis = use.number("axis") % len(shape)
        if use["exclusive"]:
            size, shape[axis] = shape[axis], 1
            first = jax.jnp.full(tuple(shape), fill, use.result.dtype)
            start, stop = (1, size) if use["reverse"] else (0, size - 1)
            rest = jax.lax.slice_in_dim(x, start, stop, axis=axis)
            parts = [rest, first] if use["reverse"] else [first, rest]
            x = jax.jnp.concatenate(parts, axis=axis)
        return getattr(jax.lax, name)(x, axis=axis, reverse=use["reverse"])

    return scanned


def _bins(jax: Jax, use: PureUse, values: Array, _: Array, weights: Array) -> Array:
    shape = use.type_of("input" if "input" in use.roles else "arr").shape
    bins = jax.jnp.zeros(use.result.shape, use.result.dtype)
    if use.node.op == "Bincount":
        values, weights = values.reshape(-1), weights.reshape(-1)
        shape = (prod(shape),)
    index: tuple[Array, ...] = (values,)
    if len(shape) == 2:
        index = (jax.jnp.arange(shape[0])[:, None], values)
    binary = use.node.op == "DenseBincount" and use["binary_output"]
    at = bins.at[index]
    return at.set(1, mode="drop") if binary else at.add(weights, mode="drop")


def _nth(jax: Jax, use: PureUse, x: Array, n: Array) -> Array:
    last = use.inputs[0].shape[-1] - 1
    ordered = jax.jnp.sort(x, axis=-1)
    return jax.jnp.take(ordered, last - n if use["reverse"] else n, axis=-1)


def _in_top(jax: Jax, use: PureUse, rows: Array, targets: Array, *k: Array) -> Array:
    columns = use.inputs[0].shape[1]
    there = (targets >= 0) & (targets < columns)
    own = jax.jnp.take_along_axis(rows, jax.jnp.where(there, targets, 0)[:, None], axis=1)
    before = jax.jnp.sum(rows > own, axis=1, dtype=use.inputs[1].dtype)
    return there & (before < (k[0] if k else use["k"]))


def _bias_grad(jax: Jax, use: PureUse, x: Array) -> Array:
    rank = len(use.inputs[0].shape)
    channel = 1 if use["data_format"] == "NCHW" else rank - 1
    axes = tuple(axis for axis in range(rank) if axis != channel)
    return jax.jnp.sum(x, axis=axes, dtype=use.result.dtype)


def _segments(kind: str) -> Callable[..., Array]:
    """Reductions of consecutive rows. For a maximum of no row JAX has the least number."""

    def reduced(jax: Jax, use: PureUse, data: Array, ids: Array) -> Array:
        named, count = set(use.numbers("segment_ids")), use.result.shape[0]
        made = getattr(jax.ops, f"segment_{kind}")(data, ids, num_segments=count)
        if kind in ("sum", "prod") or len(named) == count:
            return made
        rows = [each in named for each in range(count)]
        there = jax.jnp.array(rows).reshape((count, *[1] * (len(use.result.shape) - 1)))
        return jax.jnp.where(there, made, 0)

    return reduced


def _unsorted(kind: str) -> Callable[..., Array]:
    def reduced(jax: Jax, use: PureUse, data: Array, ids: Array, _: Array) -> Array:
        count, shape = use.number("num_segments"), use.type_of("segment_ids").shape
        rest = use.inputs[0].shape[len(shape) :]
        # A negative number stands for no segment, and to JAX for one counted from the end.
        ids = jax.jnp.where(ids < 0, count, ids).reshape(-1)
        data = data.reshape((prod(shape), *rest))
        return getattr(jax.ops, f"segment_{kind}")(data, ids, num_segments=count)

    return reduced


def _sparse_segments(jax: Jax, use: PureUse, data: Array, indices: Array, *ids: Array) -> Array:
    return jax.ops.segment_sum(data[indices], ids[0], num_segments=use.result.shape[0])


def _sparse_segments_grad(
    jax: Jax, use: PureUse, grad: Array, indices: Array, ids: Array, _: Array
) -> Array:
    zeros = jax.jnp.zeros(use.result.shape, use.result.dtype)
    return zeros.at[indices].add(grad[ids])


# --- shapes -----------------------------------------------------------------------------


def _shape(jax: Jax, use: PureUse, _: Array) -> Array:
    shape = use.inputs[0].shape
    value = {"Shape": shape, "Size": prod(shape), "Rank": len(shape)}[use.node.op]
    return jax.jnp.array(value, use.result.dtype)


def _to_bool(jax: Jax, use: PureUse, x: Array) -> Array:
    """A number other than 0, or a tensor with elements."""
    return jax.jnp.array(prod(use.inputs[0].shape) > 0) if use.inputs[0].shape else x != 0


def _shape_n(jax: Jax, use: PureUse, _: list[Array]) -> Array:
    return jax.jnp.array(use.inputs[use["result"]].shape, use.result.dtype)


def _one_hot(jax: Jax, use: PureUse, indices: Array, _: Array, on: Array, off: Array) -> Array:
    rank, count = len(use.result.shape), use.number("depth")
    axis = use["axis"] % rank
    shape = tuple(count if each == axis else 1 for each in range(rank))
    numbers = jax.jnp.arange(count, dtype=use.inputs[0].dtype).reshape(shape)
    return jax.jnp.where(jax.jnp.expand_dims(indices, axis) == numbers, on, off)


def _transpose(jax: Jax, use: PureUse, x: Array, _: Array) -> Array:
    rank = len(use.inputs[0].shape)
    return jax.jnp.transpose(x, tuple(each % rank for each in use.numbers("perm")))


def _squeeze(jax: Jax, use: PureUse, x: Array) -> Array:
    dims = tuple(dict.fromkeys(each % len(use.inputs[0].shape) for each in use["squeeze_dims"]))
    return jax.jnp.squeeze(x, axis=dims) if dims else jax.jnp.squeeze(x)


def _mirror_pad(jax: Jax, use: PureUse, x: Array, _: Array) -> Array:
    return jax.jnp.pad(x, use.rows("paddings"), mode=use["mode"].lower())


def _pad(jax: Jax, use: PureUse, x: Array, _: Array, value: Array = 0) -> Array:
    if not use.result.shape:
        return x
    return jax.jnp.pad(x, use.rows("paddings"), constant_values=value)


def _slice(jax: Jax, use: PureUse, x: Array, begin: Array, _: Array) -> Array:
    sizes = use.result.shape
    if (starts := use.known[1]) is not None:
        stops = tuple(start + size for start, size in zip(starts, sizes, strict=True))
        return jax.lax.slice(x, starts, stops)
    return jax.lax.dynamic_slice(x, [begin[axis] for axis in range(len(sizes))], sizes)


def _index(use: PureUse) -> tuple[Any, ...]:
    """The index of a strided slice, as Python has it."""
    begin, end, strides = map(use.numbers, ("begin", "end", "strides"))
    index: list[Any] = []
    for place, (start, stop, step) in enumerate(zip(begin, end, strides, strict=True)):

        def has(mask: str, place: int = place) -> bool:
            return bool(use[f"{mask}_mask"] >> place & 1)

        if has("ellipsis"):
            index.append(...)
        elif has("new_axis"):
            index.append(None)
        elif has("shrink_axis"):
            index.append(start)
        else:
            ends = (None if has("begin") else start), (None if has("end") else stop)
            index.append(slice(*ends, None if step == 1 else step))
    return tuple(index)


def _strided(_: Jax, use: PureUse, x: Array, *__: Array) -> Array:
    return x[_index(use)]


def _strided_grad(jax: Jax, use: PureUse, *operands: Array) -> Array:
    return jax.jnp.zeros(use.result.shape, use.result.dtype).at[_index(use)].set(operands[-1])


def _strided_update(_: Jax, use: PureUse, x: Array, *operands: Array) -> Array:
    return x.at[_index(use)].set(operands[-1])


def _reverse(jax: Jax, use: PureUse, x: Array, _: Array) -> Array:
    axes = tuple(axis for axis, flag in enumerate(use.numbers("dims")) if flag)
    return jax.jnp.flip(x, axis=axes)


def _roll(jax: Jax, use: PureUse, x: Array, shift: Array, _: Array) -> Array:
    axes = use.numbers("axis")
    for number, axis in enumerate(axes):
        by = shift[number] if use.type_of("shift").shape else shift
        x = jax.jnp.roll(x, by, axis=axis)
    return x


def _reverse_sequence(jax: Jax, use: PureUse, x: Array, lengths: Array) -> Array:
    """Each row has the element from its other end, as far as it is reversed."""
    shape, along, batch = use.inputs[0].shape, use["seq_dim"], use["batch_dim"]

    def wide(vector: Array, axis: int) -> Array:
        return vector.reshape(tuple(-1 if each == axis else 1 for each in range(len(shape))))

    places = wide(jax.jnp.arange(shape[along], dtype=use.inputs[1].dtype), along)
    lengths = wide(lengths, batch)
    places = jax.jnp.where(places < lengths, lengths - 1 - places, places)
    return jax.jnp.take_along_axis(x, jax.jnp.broadcast_to(places, shape), axis=along)


def _broadcast_args(jax: Jax, use: PureUse, *shapes: Array) -> Array:
    longest = use.result.shape[0]
    one, other = (
        jax.jnp.pad(each, ((longest - kind.shape[0], 0),), constant_values=1)
        for each, kind in zip(shapes, use.inputs, strict=True)
    )
    return jax.jnp.where(one == 1, other, one)


def _concat_offset(jax: Jax, use: PureUse, _: Array, shapes: list[Array]) -> Array:
    before, zeros = shapes[: use["result"]], jax.jnp.zeros(use.result.shape, use.result.dtype)
    axis = use.number("concat_dim")
    for each in before:
        zeros = zeros.at[axis].add(each[axis])
    return zeros


def _unravel(jax: Jax, use: PureUse, indices: Array, _: Array) -> Array:
    places = jax.jnp.unravel_index(indices, use.numbers("dims"))
    return jax.jnp.stack(places).astype(use.result.dtype)


def _bound(sign: str) -> Callable[..., Array]:
    """Places in sorted rows: `jax.numpy.searchsorted` takes one row."""

    def found(jax: Jax, use: PureUse, rows: Array, values: Array) -> Array:
        rows, values = rows[:, None, :], values[:, :, None]
        before = rows < values if sign == "<" else rows <= values
        return jax.jnp.sum(before, axis=-1, dtype=use.result.dtype)

    return found


def _format_map(jax: Jax, use: PureUse, x: Array) -> Array:
    source, target = use["src_format"], use["dst_format"]
    return jax.jnp.array([target.index(each) for each in source], use.result.dtype)[x]


def _format_permute(jax: Jax, use: PureUse, x: Array) -> Array:
    source, target = use["src_format"], use["dst_format"]
    return x[jax.jnp.array([source.index(each) for each in target])]


# --- blocks -----------------------------------------------------------------------------


def _space_to_depth(jax: Jax, use: PureUse, x: Array) -> Array:
    block, (n, h, w, c) = use["block_size"], use.inputs[0].shape
    x = x.reshape((n, h // block, block, w // block, block, c))
    return jax.jnp.transpose(x, (0, 1, 3, 2, 4, 5)).reshape(use.result.shape)


def _depth_to_space(jax: Jax, use: PureUse, x: Array) -> Array:
    block, (n, h, w, c) = use["block_size"], use.inputs[0].shape
    x = x.reshape((n, h, w, block, block, c // (block * block)))
    return jax.jnp.transpose(x, (0, 1, 3, 2, 4, 5)).reshape(use.result.shape)


def _blocks(use: PureUse) -> tuple[int, ...]:
    """The extents of a block, for each dimension that has some."""
    if "block_shape" in use.roles:
        return use.numbers("block_shape")
    return (use["block_size"],) * 2


def _space_to_batch(jax: Jax, use: PureUse, x: Array, *_: Array) -> Array:
    block, (batch, *extents) = _blocks(use), use.inputs[0].shape
    count, pads = len(block), use.rows("paddings")
    x = jax.jnp.pad(x, ((0, 0), *pads, *[(0, 0)] * (len(extents) - count)))
    shape = [batch]
    for extent, (before, after), each in zip(extents, pads, block, strict=False):
        shape += [(extent + before + after) // each, each]
    x = x.reshape((*shape, *extents[count:]))
    order = (*range(2, 2 * count + 1, 2), 0, *range(1, 2 * count, 2))
    rest = range(2 * count + 1, len(extents) + count + 1)
    return jax.jnp.transpose(x, (*order, *rest)).reshape(use.result.shape)


def _batch_to_space(jax: Jax, use: PureUse, x: Array, *_: Array) -> Array:
    block, (batch, *extents) = _blocks(use), use.inputs[0].shape
    count, crops = len(block), use.rows("crops")
    batch //= prod(block)
    x = x.reshape((*block, batch, *extents))
    pairs = [axis for each in range(count) for axis in (count + 1 + each, each)]
    x = jax.jnp.transpose(x, (count, *pairs, *range(2 * count + 1, count + 1 + len(extents))))
    wide = [extent * each for extent, each in zip(extents, block, strict=False)]
    x = x.reshape((batch, *wide, *extents[count:]))
    taken = (slice(a, extent - b) for extent, (a, b) in zip(wide, crops, strict=True))
    return x[(slice(None), *taken)]


# --- diagonals --------------------------------------------------------------------------


def _diagonals(use: PureUse) -> range:
    """The diagonals that are meant: 0, one, or those from the lowest to the highest."""
    ends = use.numbers("k") if "k" in use.roles else (0,)
    return range(ends[0], ends[-1] + 1)


def _packed(
    jax: Jax, use: PureUse, shape: Sequence[int]
) -> Iterator[tuple[tuple[Any, ...], tuple[Any, ...]]]:
    """For each diagonal its index in matrices of a shape, and that in their packed diagonals."""
    found, (rows, columns) = _diagonals(use), shape[-2:]
    lengths = {d: min(rows + min(d, 0), columns - max(d, 0)) for d in found}
    align = use["align"] if use.node.op.endswith("V3") else "LEFT_LEFT"
    above, below = align.split("_")
    for d, length in lengths.items():
        numbers = jax.jnp.arange(length)
        place = (..., numbers - d if d < 0 else numbers, numbers + d if d > 0 else numbers)
        right = (above if d >= 0 else below) == "RIGHT"
        start = max(lengths.values()) - length if right else 0
        packed = (..., found[-1] - d, slice(start, start + length))
        yield place, packed if len(found) > 1 else (...,)


def _matrix_diag(jax: Jax, use: PureUse, diagonal: Array, *others: Array) -> Array:
    kind = use.result
    filled = jax.jnp.full(kind.shape, others[-1] if others else 0, kind.dtype)
    for place, packed in _packed(jax, use, kind.shape):
        filled = filled.at[place].set(diagonal[packed])
    return filled


def _matrix_diag_part(jax: Jax, use: PureUse, x: Array, *others: Array) -> Array:
    k, *more = _diagonals(use)
    if not more:
        return jax.jnp.diagonal(x, offset=k, axis1=-2, axis2=-1)
    filled = jax.jnp.full(use.result.shape, others[-1], use.result.dtype)
    for place, packed in _packed(jax, use, use.inputs[0].shape):
        filled = filled.at[packed].set(x[place])
    return filled


def _matrix_set_diag(jax: Jax, use: PureUse, x: Array, diagonal: Array, *_: Array) -> Array:
    for place, packed in _packed(jax, use, use.result.shape):
        x = x.at[place].set(diagonal[packed])
    return x


def _band(jax: Jax, use: PureUse, x: Array, *_: Array) -> Array:
    low, high = use.number("num_lower"), use.number("num_upper")
    if low >= 0:
        x = jax.jnp.triu(x, -low)
    return jax.jnp.tril(x, high) if high >= 0 else x


def _diag(jax: Jax, use: PureUse, x: Array) -> Array:
    return jax.jnp.diag(x.reshape(-1)).reshape(use.result.shape)


def _diag_part(jax: Jax, use: PureUse, x: Array) -> Array:
    side = prod(use.result.shape)
    return jax.jnp.diagonal(x.reshape((side, side))).reshape(use.result.shape)


# --- gathers and scatters ---------------------------------------------------------------


def _gather_v2(jax: Jax, use: PureUse, params: Array, indices: Array, _: Array) -> Array:
    if use["batch_dims"] not in (0, -len(use.type_of("indices").shape)):
        raise _lacks(use, "with batch dimensions")
    return jax.jnp.take(params, indices, axis=use.number("axis"))


def _coordinates(use: PureUse, role: str, indices: Array) -> tuple[Array, ...]:
    return tuple(indices[..., axis] for axis in range(use.type_of(role).shape[-1]))


def _gather_nd(_: Jax, use: PureUse, params: Array, indices: Array) -> Array:
    return params[_coordinates(use, "indices", indices)]


def _scatter_nd(jax: Jax, use: PureUse, indices: Array, updates: Array, _: Array) -> Array:
    zeros = jax.jnp.zeros(use.result.shape, use.result.dtype)
    return zeros.at[_coordinates(use, "indices", indices)].add(updates)


def _tensor_scatter(kind: str) -> Callable[..., Array]:
    def scattered(_: Jax, use: PureUse, x: Array, indices: Array, updates: Array) -> Array:
        at = x.at[_coordinates(use, "indices", indices)]
        if kind == "sub":
            return at.add(-updates)
        return getattr(at, kind)(updates)

    return scattered


def _sparse_to_dense(
    jax: Jax, use: PureUse, indices: Array, _: Array, values: Array, fill: Array
) -> Array:
    filled = jax.jnp.full(use.result.shape, fill, use.result.dtype)
    return filled.at[_coordinates(use, "sparse_indices", indices)].set(values)


# --- products ---------------------------------------------------------------------------


def _flipped(jax: Jax, x: Array, *, flipped: bool) -> Array:
    return jax.jnp.swapaxes(x, -1, -2) if flipped else x


def _matmul(one: str, other: str) -> Callable[..., Array]:
    def multiplied(jax: Jax, use: PureUse, x: Array, y: Array) -> Array:
        x, y = _flipped(jax, x, flipped=use[one]), _flipped(jax, y, flipped=use[other])
        return jax.jnp.matmul(x, y, precision=_EXACT)

    return multiplied


def _bias(_: Jax, use: PureUse, value: Array, bias: Array) -> Array:
    rank = len(use.inputs[0].shape)
    if use.node.op == "BiasAdd" and use["data_format"] == "NCHW":
        return value + bias.reshape((-1, *[1] * (rank - 2)))
    return value + bias


_LAYOUTS: Final = {
    4: ("NHWC", "HWIO", "NHWC"),
    5: ("NDHWC", "DHWIO", "NDHWC"),
}


def _convolution(jax: Jax, use: PureUse, x: Array, filters: Array) -> Array:
    shape, window = use.type_of("input").shape, use.type_of("filter").shape
    groups = 1
    if use.node.op == "DepthwiseConv2dNative":
        groups = shape[-1]
        filters = filters.reshape((*window[:2], 1, window[2] * window[3]))
    dilated = use.node.op == "Conv2D" and use["dilations"] != (1, 1, 1, 1)
    more = {"rhs_dilation": use["dilations"][1:-1]} if dilated else {}
    more |= {} if groups == 1 else {"feature_group_count": groups}
    return jax.lax.conv_general_dilated(
        x,
        filters,
        use["strides"][1:-1],
        use["padding"],
        dimension_numbers=_LAYOUTS[len(shape)],
        precision=_EXACT,
        **more,
    )


def _padded_convolution(jax: Jax, use: PureUse, x: Array, paddings: Array, filters: Array) -> Array:
    return _convolution(jax, use, _mirror_pad(jax, use, x, paddings), filters)


def _edges(use: PureUse, image: Sequence[int], window: Sequence[int]) -> list[tuple[int, ...]]:
    """For each dimension of an image: its extent, the window's, the stride, outputs, padding."""
    found: list[tuple[int, ...]] = []
    for extent, size, stride in zip(image[1:-1], window, use["strides"][1:-1], strict=True):
        if use["padding"] == "VALID":
            found.append((extent, size, stride, (extent - size) // stride + 1, 0))
        else:
            out = -(-extent // stride)
            padding = max(0, (out - 1) * stride + size - extent)
            found.append((extent, size, stride, out, padding // 2))
    return found


def _convolution_to_input(jax: Jax, use: PureUse, _: Array, filters: Array, grad: Array) -> Array:
    shape = use.type_of("filter").shape
    rank = len(shape)
    edges = _edges(use, use.result.shape, shape[:-2])
    before = [size - 1 - pad for _, size, _, _, pad in edges]
    pads = [
        (begin, extent + size - 2 - (out - 1) * stride - begin)
        for begin, (extent, size, stride, out, _) in zip(before, edges, strict=True)
    ]
    return jax.lax.conv_general_dilated(
        grad,
        jax.jnp.flip(filters, axis=tuple(range(rank - 2))),
        (1,) * (rank - 2),
        pads,
        lhs_dilation=use["strides"][1:-1],
        dimension_numbers=("NHWC", "HWOI", "NHWC") if rank == 4 else ("NDHWC", "DHWOI", "NDHWC"),
        precision=_EXACT,
    )


def _convolution_to_filter(jax: Jax, use: PureUse, x: Array, _: Array, grad: Array) -> Array:
    """Batches are summed over as channels are, and channels stay apart as batches do."""
    rank = len(use.result.shape)
    edges = _edges(use, use.inputs[0].shape, use.result.shape[:-2])
    pads = [(p, size + (out - 1) * stride - n - p) for n, size, stride, out, p in edges]
    return jax.lax.conv_general_dilated(
        x,
        grad,
        (1,) * (rank - 2),
        pads,
        rhs_dilation=use["strides"][1:-1],
        dimension_numbers=("CHWN", "IHWO", "HWNC") if rank == 4 else ("CDHWN", "IDHWO", "DHWNC"),
        precision=_EXACT,
    )


def _patches(jax: Jax, use: PureUse, x: Array) -> Array:
    """JAX has the elements of a window by channel, and TensorFlow channels by element."""
    shape, window = use.result.shape, use["ksizes"][1:-1]
    rates = use["rates"][1:-1] if use.node.op == "ExtractImagePatches" else (1,) * len(window)
    found = jax.lax.conv_general_dilated_patches(
        x,
        window,
        use["strides"][1:-1],
        use["padding"],
        rhs_dilation=rates,
        dimension_numbers=_LAYOUTS[len(shape)],
        precision=jax.lax.Precision.HIGHEST,
    )
    apart = found.reshape((*shape[:-1], use.inputs[0].shape[-1], prod(window)))
    return jax.jnp.swapaxes(apart, -1, -2).reshape(shape)


def _max_pool(jax: Jax, use: PureUse, x: Array, *sizes: Array) -> Array:
    dtype = use.result.dtype
    if sizes:
        window, strides = use.numbers("ksize"), use.numbers("strides")
    else:
        window, strides = use["ksize"], use["strides"]
    # JAX differentiates a maximum that begins with Python's number.
    least = -jax.jnp.inf
    if dtype not in FLOATS:
        least = jax.jnp.array(jax.jnp.iinfo(dtype).min, dtype)
    return jax.lax.reduce_window(x, least, jax.lax.max, window, strides, use["padding"])


def _nearest(jax: Jax, use: PureUse, x: Array, _: Array) -> Array:
    _, height, width, _ = use.inputs[0].shape
    rows, columns = use.result.shape[1] // height, use.result.shape[2] // width
    return jax.jnp.repeat(jax.jnp.repeat(x, rows, axis=1), columns, axis=2)


def _nearest_grad(jax: Jax, use: PureUse, x: Array, _: Array) -> Array:
    n, h, w, c = use.result.shape
    _, height, width, _ = use.inputs[0].shape
    parts = x.reshape((n, h, height // h, w, width // w, c))
    return jax.jnp.sum(parts, axis=(2, 4), dtype=use.result.dtype)


# --- parts ------------------------------------------------------------------------------


def _split(jax: Jax, use: PureUse, _: Array, value: Array) -> Array:
    return jax.jnp.split(value, use["num_split"], axis=use.number("split_dim"))[use["result"]]


def _split_v(jax: Jax, use: PureUse, value: Array, _: Array, __: Array) -> Array:
    axis, number = use.number("split_dim"), use["result"]
    extent, sizes = use.inputs[0].shape[axis], list(use.numbers("size_splits"))
    if -1 in sizes:
        sizes[sizes.index(-1)] = extent - sum(each for each in sizes if each != -1)
    start = sum(sizes[:number])
    return jax.lax.slice_in_dim(value, start, start + sizes[number], axis=axis)


def _unpack(jax: Jax, use: PureUse, value: Array) -> Array:
    return jax.lax.index_in_dim(value, use["result"], axis=use["axis"], keepdims=False)


def _top(jax: Jax, use: PureUse, x: Array, _: Array) -> Array:
    values = use["result"] == "values"
    found = jax.lax.top_k(x, use.number("k"))[0 if values else 1]
    return found if values else found.astype(use.result.dtype)


TABLE: Final[Mapping[str, Callable[..., Array]]] = MappingProxyType(
    {
        "Identity": lambda _, __, x: x,
        "Neg": lambda _, __, x: -x,
        "Relu": lambda jax, _, x: jax.jnp.maximum(x, jax.jnp.zeros((), x.dtype)),
        "AddV2": lambda _, __, x, y: x + y,
        "Sub": lambda _, __, x, y: x - y,
        "Mul": lambda _, __, x, y: x * y,
        "Maximum": _jnp("maximum"),
        "Minimum": _jnp("minimum"),
        "Less": lambda _, __, x, y: x < y,
        "Equal": lambda _, __, x, y: x == y,
        "Select": _jnp("where"),
        "ReluGrad": lambda jax, _, g, f: jax.jnp.where(f > 0, g, jax.jnp.zeros_like(g)),
        "MatMul": lambda jax, _, a, b: jax.jnp.matmul(a, b, precision=_EXACT),
        # Elements.
        "Abs": _jnp("abs"),
        "Sign": _jnp("sign"),
        "Square": _jnp("square"),
        "Floor": _jnp("floor"),
        "Ceil": _jnp("ceil"),
        "Rint": _jnp("rint"),
        "Round": _jnp("round"),
        "Relu6": lambda jax, _, x: jax.jnp.clip(x, 0, 6),
        "OnesLike": _jnp("ones_like"),
        "ZerosLike": _jnp("zeros_like"),
        "Invert": lambda _, __, x: ~x,
        "LogicalNot": _jnp("logical_not"),
        "IsNan": _jnp("isnan"),
        "IsInf": _jnp("isinf"),
        "IsFinite": _jnp("isfinite"),
        "StopGradient": lambda jax, _, x: jax.lax.stop_gradient(x),
        "Snapshot": _jnp("copy"),
        "LeakyRelu": _leaky,
        "LeakyReluGrad": _leaky_grad,
        "Cast": lambda _, use, x: x.astype(use.result.dtype),
        "Bucketize": _bucketize,
        "Add": lambda _, __, x, y: x + y,
        "MulNoNan": lambda jax, _, x, y: jax.jnp.where(y == 0, 0, x * y),
        "FloorDiv": _jnp("floor_divide"),
        "FloorMod": _jnp("mod"),
        "TruncateDiv": lambda jax, u, x, y: jax.lax.div(_wide(jax, u, x), _wide(jax, u, y)),
        "Div": lambda jax, u, x, y: jax.lax.div(_wide(jax, u, x), _wide(jax, u, y)),
        "TruncateMod": _jnp("fmod"),
        "Mod": _jnp("fmod"),
        "SquaredDifference": lambda jax, _, x, y: jax.jnp.square(x - y),
        "Pow": _jnp("power"),
        "ApproximateEqual": lambda jax, _, x, y: jax.jnp.abs(x - y) < 1e-5,
        "BitwiseAnd": lambda _, __, x, y: x & y,
        "BitwiseOr": lambda _, __, x, y: x | y,
        "BitwiseXor": lambda _, __, x, y: x ^ y,
        "LeftShift": lambda _, __, x, y: x << y,
        "RightShift": lambda _, __, x, y: x >> y,
        "LogicalAnd": _jnp("logical_and"),
        "LogicalOr": _jnp("logical_or"),
        "LessEqual": lambda _, __, x, y: x <= y,
        "Greater": lambda _, __, x, y: x > y,
        "GreaterEqual": lambda _, __, x, y: x >= y,
        "NotEqual": lambda _, __, x, y: x != y,
        "ClipByValue": _jnp("clip"),
        "AddN": _sum_of,
        "SelectV2": _jnp("where"),
        "Relu6Grad": lambda jax, _, g, f: jax.jnp.where((f > 0) & (f < 6), g, 0),
        "TanhGrad": lambda _, __, y, dy: dy * (1 - y * y),
        "SigmoidGrad": lambda _, __, y, dy: dy * y * (1 - y),
        "ReciprocalGrad": lambda _, __, y, dy: -dy * y * y,
        "InvGrad": lambda _, __, y, dy: -dy * y * y,
        "EluGrad": lambda jax, _, g, out: jax.jnp.where(out < 0, (out + 1) * g, g),
        # Reductions.
        "Sum": _sized("sum"),
        "Prod": _sized("prod"),
        "Max": _reduced("max"),
        "Min": _reduced("min"),
        "All": _reduced("all"),
        "Any": _reduced("any"),
        "ArgMax": _argument("argmax"),
        "ArgMin": _argument("argmin"),
        "Cumsum": _scanned("cumsum", 0),
        "Cumprod": _scanned("cumprod", 1),
        "Bincount": _bins,
        "DenseBincount": _bins,
        "NthElement": _nth,
        "InTopK": _in_top,
        "InTopKV2": _in_top,
        "BiasAddGrad": _bias_grad,
        "Cross": _jnp("cross"),
        "SegmentSum": _segments("sum"),
        "SegmentProd": _segments("prod"),
        "SegmentMax": _segments("max"),
        "SegmentMin": _segments("min"),
        "UnsortedSegmentSum": _unsorted("sum"),
        "UnsortedSegmentProd": _unsorted("prod"),
        "UnsortedSegmentMax": _unsorted("max"),
        "UnsortedSegmentMin": _unsorted("min"),
        "SparseSegmentSum": _sparse_segments,
        "SparseSegmentSumWithNumSegments": _sparse_segments,
        "SparseSegmentSumGrad": _sparse_segments_grad,
        # Shapes.
        "Shape": _shape,
        "Size": _shape,
        "Rank": _shape,
        "ShapeN": _shape_n,
        "ToBool": _to_bool,
        "Reshape": lambda _, use, x, __: x.reshape(use.result.shape),
        "Bitcast": lambda jax, use, x: jax.lax.bitcast_convert_type(x, use.result.dtype),
        "Tile": lambda jax, use, x, _: jax.jnp.tile(x, use.numbers("multiples")),
        "Fill": lambda jax, u, _, x: jax.jnp.full(u.result.shape, x, u.result.dtype),
        "BroadcastTo": lambda jax, use, x, _: _wide(jax, use, x),
        "Range": lambda jax, use, *_: jax.jnp.arange(
            *map(use.number, ("start", "limit", "delta")), dtype=use.result.dtype
        ),
        "OneHot": _one_hot,
        "Transpose": _transpose,
        "ConjugateTranspose": _transpose,
        "ExpandDims": lambda jax, use, x, _: jax.jnp.expand_dims(x, use.number("dim")),
        "Squeeze": _squeeze,
        "ConcatV2": lambda jax, u, x, _: jax.jnp.concatenate(x, axis=u.number("axis")),
        "Concat": lambda jax, u, _, x: jax.jnp.concatenate(x, axis=u.number("concat_dim")),
        "Pack": lambda jax, use, x: jax.jnp.stack(x, axis=use["axis"]),
        "Pad": _pad,
        "PadV2": _pad,
        "MirrorPad": _mirror_pad,
        "Slice": _slice,
        "StridedSlice": _strided,
        "StridedSliceGrad": _strided_grad,
        "TensorStridedSliceUpdate": _strided_update,
        "Reverse": _reverse,
        "ReverseV2": lambda jax, use, x, _: jax.jnp.flip(x, axis=use.numbers("axis")),
        "ReverseSequence": _reverse_sequence,
        "Roll": _roll,
        "BroadcastArgs": _broadcast_args,
        "ConcatOffset": _concat_offset,
        "InvertPermutation": lambda jax, u, x: jax.jnp.argsort(x).astype(u.result.dtype),
        "UnravelIndex": _unravel,
        "LowerBound": _bound("<"),
        "UpperBound": _bound("<="),
        "DataFormatDimMap": _format_map,
        "DataFormatVecPermute": _format_permute,
        "SpaceToBatch": _space_to_batch,
        "SpaceToBatchND": _space_to_batch,
        "BatchToSpace": _batch_to_space,
        "BatchToSpaceND": _batch_to_space,
        "SpaceToDepth": _space_to_depth,
        "DepthToSpace": _depth_to_space,
        # Diagonals.
        "Diag": _diag,
        "DiagPart": _diag_part,
        "MatrixBandPart": _band,
        **{f"MatrixDiag{version}": _matrix_diag for version in ("", "V2", "V3")},
        **{f"MatrixDiagPart{version}": _matrix_diag_part for version in ("", "V2", "V3")},
        **{f"MatrixSetDiag{version}": _matrix_set_diag for version in ("", "V2", "V3")},
        # Gathers and scatters.
        "Gather": lambda _, __, params, indices: params[indices],
        "GatherV2": _gather_v2,
        "GatherNd": _gather_nd,
        "ScatterNd": _scatter_nd,
        "TensorScatterUpdate": _tensor_scatter("set"),
        "TensorScatterAdd": _tensor_scatter("add"),
        "TensorScatterSub": _tensor_scatter("sub"),
        "TensorScatterMax": _tensor_scatter("max"),
        "TensorScatterMin": _tensor_scatter("min"),
        "ScatterNdNonAliasingAdd": _tensor_scatter("add"),
        "SparseToDense": _sparse_to_dense,
        # Products.
        "BatchMatMul": _matmul("adj_x", "adj_y"),
        "BatchMatMulV2": _matmul("adj_x", "adj_y"),
        "BatchMatMulV3": _matmul("adj_x", "adj_y"),
        "SparseMatMul": _matmul("transpose_a", "transpose_b"),
        "Einsum": lambda jax, use, x: jax.jnp.einsum(
            use["equation"].replace(" ", ""), *x, precision=_EXACT
        ),
        "BiasAdd": _bias,
        "BiasAddV1": _bias,
        "Conv": _convolution,
        "Conv2D": _convolution,
        "Conv3D": _convolution,
        "DepthwiseConv2dNative": _convolution,
        "FusedPadConv2D": _padded_convolution,
        "Conv2DBackpropInput": _convolution_to_input,
        "Conv3DBackpropInputV2": _convolution_to_input,
        "Conv2DBackpropFilter": _convolution_to_filter,
        "Conv3DBackpropFilterV2": _convolution_to_filter,
        "ExtractImagePatches": _patches,
        "ExtractVolumePatches": _patches,
        "MaxPool": _max_pool,
        "MaxPool3D": _max_pool,
        "MaxPoolV2": _max_pool,
        "ResizeNearestNeighbor": _nearest,
        "ResizeNearestNeighborGrad": _nearest_grad,
        # Parts.
        "Split": _split,
        "SplitV": _split_v,
        "Unpack": _unpack,
        "TopKV2": _top,
    }
)
"""By the name of the op."""
