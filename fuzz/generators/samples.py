"""Random calls of pure ops: attributes, types, and values for which the op does not fail.

A *sample* has the operands of one call. Some are *data*: other values of the same type do as
well, as far as the sizes of numbers allow. Others are *control*: shapes, axes, positions and
the like, of which only some values fit.

Each op needs a row in the table at the end, unless its operands are all data that broadcast.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.ops import ABSTRACT_OPS, BOOL, DTYPES, FLOATS, OPS, PureAttrs, TensorType
from litmusfuzz.corpus.struct import replace

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping, Sequence

    from litmusfuzz.corpus.pure.definition import AttrValue, PureOp

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Operand:
    """One input of a sampled call.

    Parameters
    ----------
    role : str
        The operand that it is.
    type : TensorType
    values : tuple of int
        Flat, row-major.
    limit : int
        Of a control operand: any values from 0 up to less than this do; 0 if only its own do.
    data : bool
        True if other values do as well.
    """

    role: str
    type: TensorType
    values: tuple[int, ...]
    limit: int = 0
    data: bool = False


@dataclass(frozen=True, slots=True)
class Sample:
    """A call of an op that has a value."""

    op: PureOp
    attrs: PureAttrs | None
    operands: tuple[Operand, ...]


def sample(
    rng: random.Random, op: PureOp, dtype: str | None = None, shape: Shape | None = None
) -> Sample | None:
    """Draw a call of an op.

    Parameters
    ----------
    dtype : str, optional
        Of the first operand that is data, if the op takes it; any by default.
    shape : tuple of int, optional
        Shape of that operand; any by default.

    Returns
    -------
    Sample or None
        None if no operand of the op can have that dtype and shape.
    """
    draw = _Draw(rng, op, dtype, shape)
    try:
        (_TABLE.get(op.name) or _broadcasting)(draw)
    except _Unfit:
        return None
    return Sample(op, op.attributes(draw.attrs) if op.fields else None, tuple(draw.operands))


class _Unfit(Exception):
    """No call of the op has an operand of the wanted type."""


@dataclass(slots=True)
class _Draw:
    """State of one call while it is sampled."""

    rng: random.Random
    op: PureOp
    dtype: str | None
    wanted: Shape | None
    operands: list[Operand] = field(default_factory=list)
    attrs: dict[str, AttrValue] = field(default_factory=dict)
    dtypes: dict[str, str] = field(default_factory=dict)

    # --- choices ---------------------------------------------------------------------

    def flip(self, chance: float = 0.5) -> bool:
        return self.rng.random() < chance

    def number(self, low: int, high: int) -> int:
        return self.rng.randint(low, high)

    def shape(self, low: int = 0, high: int = 3, most: int = 4) -> Shape:
        """Shape of the first data operand: the wanted one, or any of a rank in that range."""
        if self.wanted is not None:
            if not low <= len(self.wanted) <= high:
                raise _Unfit
            return self.wanted
        return tuple(self.number(1, most) for _ in range(self.number(low, high)))

    def of(self, role: str, first: str | None = None) -> str:
        """Dtype of an operand; the first one may be asked for."""
        variable = self.op.types[self.op.operands.index(role)].strip("[]")
        if variable not in self.dtypes:
            permitted = self.op.permitted(variable)
            if first is not None and first not in permitted:
                raise _Unfit
            self.dtypes[variable] = first or self.rng.choice(permitted)
        return self.dtypes[variable]

    # --- operands --------------------------------------------------------------------

    def data(
        self, role: str, shape: Shape, low: int = -5, high: int = 5, *, free: bool = True
    ) -> Shape:
        """Add a data operand; not `free` if values outside the range do not do."""
        first = None if any(each.data for each in self.operands) else self.dtype
        dtype = self.of(role, first)
        if dtype == BOOL:
            low, high = 0, 1
        values = tuple(self.number(low, high) for _ in range(math.prod(shape)))
        self.operands.append(Operand(role, TensorType(dtype, shape), values, data=free))
        return shape

    def control(
        self, role: str, values: Sequence[int] | int, shape: Shape | None = None, limit: int = 0
    ) -> None:
        """Add a control operand: a scalar, a vector, or of that shape."""
        if isinstance(values, int):
            values, shape = [values], ()
        shape = (len(values),) if shape is None else shape
        kind = TensorType(self.of(role), shape)
        self.operands.append(Operand(role, kind, tuple(values), limit))

    def positions(self, role: str, shape: Shape, limit: int) -> None:
        """Add an operand of positions below `limit`."""
        values = [self.number(0, limit - 1) for _ in range(math.prod(shape))]
        self.control(role, values, shape, limit)

    def axis(self, rank: int) -> int:
        """An axis, sometimes counted from the end."""
        if rank == 0:
            raise _Unfit
        return self.rng.randrange(-rank, rank)

    def partner(self, shape: Shape) -> Shape:
        """A shape that broadcasts with another, to the other."""
        kind = self.rng.random()
        if kind < 0.6:
            return shape
        if kind < 0.8:
            return ()
        start = self.number(0, len(shape))
        return tuple(1 if self.flip(0.3) else extent for extent in shape[start:])


# --- one function for each way to draw operands ------------------------------------------


def _broadcasting(d: _Draw) -> None:
    """All operands are data that broadcast."""
    shape = d.shape()
    for position, role in enumerate(d.op.operands):
        d.data(role, shape if position == 0 else d.partner(shape))


def _alike(d: _Draw) -> None:
    """All operands are data of one shape."""
    shape = d.shape()
    for role in d.op.operands:
        d.data(role, shape)


def _small(d: _Draw) -> None:
    shape = d.shape()
    for role in d.op.operands:
        d.data(role, shape, -3, 3, free=False)


def _divided(d: _Draw) -> None:
    shape = d.data("x", d.shape(), -9, 9)
    other = d.partner(shape)
    values = [d.rng.choice((-4, -3, -2, -1, 1, 2, 3, 5)) for _ in range(math.prod(other))]
    d.control("y", values, other)


def _power(d: _Draw) -> None:
    shape = d.data("x", d.shape(), -5, 5, free=False)
    d.data("y", d.partner(shape), 0, 5, free=False)


def _shifted(d: _Draw) -> None:
    shape = d.data("x", d.shape(), -9, 9)
    d.data("y", d.partner(shape), 0, 5, free=False)


def _clipped(d: _Draw) -> None:
    shape = d.data("t", d.shape(), -9, 9)
    d.control("clip_value_min", *_filled(d, shape, -4, -1))
    d.control("clip_value_max", *_filled(d, shape, 0, 4))


def _filled(d: _Draw, shape: Shape, low: int, high: int) -> tuple[list[int], Shape]:
    other = shape if d.flip() else ()
    return [d.number(low, high) for _ in range(math.prod(other))], other


def _several(d: _Draw) -> None:
    """One operand given several times, with one shape."""
    shape = d.shape()
    for _ in range(d.number(1, 3)):
        d.data(d.op.operands[0], shape)


def _selected(d: _Draw) -> None:
    shape = d.shape()
    d.control("condition", *_bits(d, d.partner(shape)), limit=2)
    d.data("t", shape)
    d.data("e", d.partner(shape))


def _bits(d: _Draw, shape: Shape) -> tuple[list[int], Shape]:
    return [d.number(0, 1) for _ in range(math.prod(shape))], shape


def _leaky(d: _Draw) -> None:
    d.attrs["alpha"] = d.rng.choice((-2, -1, 0, 1, 2, 3))
    _alike(d)


def _cast(d: _Draw) -> None:
    d.attrs["DstT"] = d.rng.choice(d.op.permitted("A"))
    d.data("x", d.shape())


def _bucketize(d: _Draw) -> None:
    d.attrs["boundaries"] = tuple(sorted(d.number(-5, 5) for _ in range(d.number(0, 4))))
    d.data("input", d.shape())


def _axes(d: _Draw, role: str, rank: int, *, least: int = 0) -> list[int]:
    picked = d.rng.sample(range(rank), d.number(min(least, rank), rank))
    found = [each - rank if d.flip(0.3) else each for each in picked]
    if len(found) == 1 and d.flip():
        d.control(role, found[0], limit=rank)
    else:
        d.control(role, found)
    return picked


def _reduced(d: _Draw) -> None:
    d.attrs["keep_dims"] = d.flip()
    shape = d.data("input", d.shape(), -3, 3)
    if not shape:
        d.control("reduction_indices", [])
        return
    _axes(d, "reduction_indices", len(shape))


def _argument(d: _Draw) -> None:
    d.attrs["output_type"] = d.rng.choice(("int32", "int64"))
    shape = d.data("input", d.shape(1))
    d.control("dimension", d.axis(len(shape)), limit=len(shape))


def _scanned(d: _Draw) -> None:
    d.attrs |= {"exclusive": d.flip(), "reverse": d.flip()}
    shape = d.data("x", d.shape(1), -3, 3)
    d.control("axis", d.axis(len(shape)), limit=len(shape))


def _bincount(d: _Draw) -> None:
    dense = d.op.name == "DenseBincount"
    if dense:
        d.attrs["binary_output"] = d.flip()
    shape = d.shape(1, 2 if dense else 3)
    number = d.number(1, 5)
    d.positions(d.op.operands[0], shape, number + 1)
    d.control("size", number, limit=5)
    d.data("weights", shape)


def _in_top(d: _Draw) -> None:
    rows, classes = d.shape(2, 2)
    d.data("predictions", (rows, classes))
    d.positions("targets", (rows,), classes)
    if d.op.name == "InTopK":
        d.attrs["k"] = d.number(0, classes + 1)
    else:
        d.control("k", d.number(0, classes + 1))


def _nth(d: _Draw) -> None:
    d.attrs["reverse"] = d.flip()
    shape = d.data("input", d.shape(1))
    d.positions("n", (), shape[-1])


def _bias_grad(d: _Draw) -> None:
    first = d.flip(0.4)
    d.attrs["data_format"] = "NCHW" if first else "NHWC"
    d.data("out_backprop", d.shape(3 if first else 2, 4), -3, 3)


def _bias(d: _Draw) -> None:
    first = d.op.name == "BiasAdd" and d.flip(0.4)
    if d.op.name == "BiasAdd":
        d.attrs["data_format"] = "NCHW" if first else "NHWC"
    shape = d.data("value", d.shape(3 if first else 2, 4))
    d.data("bias", (shape[1 if first else -1],))


def _cross(d: _Draw) -> None:
    shape = d.shape(1)
    if d.wanted is not None and shape[-1] != 3:
        raise _Unfit
    shape = (*shape[:-1], 3)
    d.data("a", shape)
    d.data("b", shape)


def _steps(d: _Draw, count: int) -> list[int]:
    """Ids of segments in ascending order, some left out."""
    return list(
        accumulate([d.number(0, 1)] + [d.rng.choice((0, 0, 1, 1, 2)) for _ in range(count - 1)])
    )


def _segments(d: _Draw) -> None:
    shape = d.data("data", d.shape(1), -3, 3)
    d.control("segment_ids", _steps(d, shape[0]))


def _unsorted(d: _Draw) -> None:
    shape = d.data("data", d.shape(1), -3, 3)
    taken = shape[: d.number(1, len(shape))]
    number = math.prod(taken)
    values = [d.number(-1, number - 1) for _ in range(number)]
    if d.op.name.endswith(("Max", "Min")):
        values = d.rng.sample(range(number), number)  # no segment is empty
    d.control("segment_ids", values, taken)
    d.control("num_segments", number)


def _sparse_segments(d: _Draw) -> None:
    shape = d.data("data", d.shape(1), -3, 3)
    ids = _steps(d, d.number(1, 4))
    d.positions("indices", (len(ids),), shape[0])
    d.control("segment_ids", ids)
    if "num_segments" in d.op.operands:
        d.control("num_segments", ids[-1] + d.number(1, 3))


def _shape_of(d: _Draw) -> None:
    if d.op.fields:
        d.attrs["out_type"] = d.rng.choice(("int32", "int64"))
    d.data("input", d.shape())


def _where(d: _Draw) -> None:
    d.data("input", d.shape(1))


def _factors(d: _Draw, number: int) -> list[int]:
    """Numbers with that product."""
    out: list[int] = []
    while number > 1:
        divisor = d.rng.choice([k for k in range(2, number + 1) if number % k == 0])
        out.append(divisor)
        number //= divisor
    out += [1] * d.number(0, 1)
    d.rng.shuffle(out)
    return out


def _reshaped(d: _Draw) -> None:
    shape = d.data("tensor", d.shape())
    wanted = _factors(d, math.prod(shape))
    if wanted and d.flip(0.3):
        wanted[d.rng.randrange(len(wanted))] = -1
    d.control("shape", wanted)


def _ensured(d: _Draw) -> None:
    shape = d.data("input", d.shape())
    d.attrs["shape"] = tuple(-1 if d.flip(0.2) else each for each in shape)


def _tiled(d: _Draw) -> None:
    shape = d.data("input", d.shape())
    d.control("multiples", [d.rng.choice((1, 1, 2, 3)) for _ in shape], limit=3)


def _fill(d: _Draw) -> None:
    d.control("dims", [d.number(1, 4) for _ in range(d.number(0, 3))], limit=4)
    d.data("value", d.shape(0, 0))


def _broadcast_to(d: _Draw) -> None:
    shape = d.data("input", d.shape())
    if d.wanted is None and shape and d.flip():
        shape = (1, *shape[1:])
        d.operands.pop()
        d.data("input", shape)
    grown = [d.number(2, 3) if each == 1 else each for each in shape]
    d.control("shape", [*(d.number(1, 3) for _ in range(d.number(0, 1))), *grown])


def _broadcast_args(d: _Draw) -> None:
    shape = [d.number(1, 4) for _ in range(d.number(1, 3))]
    pair = [shape, list(d.partner(tuple(shape))) or [1]]
    d.rng.shuffle(pair)
    d.control("s0", pair[0])
    d.control("s1", pair[1])


def _range(d: _Draw) -> None:
    if d.dtype is not None and d.wanted not in (None, ()):
        raise _Unfit
    step = d.rng.choice((-3, -2, -1, 1, 2, 3))
    first = d.number(-5, 5)
    d.of("start", d.dtype)
    d.control("start", first)
    d.control(
        "limit", first + (d.number(0, 9) if step > 0 else -d.number(0, 9)) + (1 if step > 0 else -1)
    )
    d.control("delta", step)


def _one_hot(d: _Draw) -> None:
    indices = tuple(d.number(1, 3) for _ in range(d.number(0, 2)))
    depth = d.number(1, 4)
    d.attrs["axis"] = d.number(-1, len(indices))
    values = [d.number(-1, depth) for _ in range(math.prod(indices))]
    d.control("indices", values, indices)
    d.control("depth", depth, limit=5)
    d.data("on_value", d.shape(0, 0))
    d.data("off_value", ())


def _transposed(d: _Draw) -> None:
    shape = d.data("x", d.shape(1 if d.op.name.startswith("Conjugate") else 0))
    d.control("perm", d.rng.sample(range(len(shape)), len(shape)))


def _expanded(d: _Draw) -> None:
    shape = d.data("input", d.shape())
    d.control("dim", d.axis(len(shape) + 1), limit=len(shape) + 1)


def _squeezed(d: _Draw) -> None:
    shape = d.shape()
    if d.wanted is None:
        shape = tuple(1 if d.flip() else each for each in shape)
    d.data("input", shape)
    ones = [axis for axis, each in enumerate(shape) if each == 1]
    d.attrs["squeeze_dims"] = tuple(d.rng.sample(ones, d.number(0, len(ones))))


def _concatenated(d: _Draw) -> None:
    shape = d.shape(1)
    axis = d.axis(len(shape))
    first = d.op.name == "Concat"
    if first:
        d.control("concat_dim", axis)
    for number in range(d.number(2, 3)):
        other = list(shape)
        if number:
            other[axis] = d.number(1, 3)
        d.data("values", tuple(other))
    if not first:
        d.control("axis", axis)


def _packed(d: _Draw) -> None:
    shape = d.shape()
    d.attrs["axis"] = d.axis(len(shape) + 1)
    for _ in range(d.number(1, 3)):
        d.data("values", shape)


def _padded(d: _Draw) -> None:
    shape = d.data("input", d.shape(1))
    values = [d.number(0, 2) for _ in range(2 * len(shape))]
    d.control("paddings", values, (len(shape), 2), 3)
    if d.op.name == "PadV2":
        d.data("constant_values", ())


def _mirrored(d: _Draw) -> None:
    d.attrs["mode"] = mode = d.rng.choice(("REFLECT", "SYMMETRIC"))
    less = 1 if mode == "REFLECT" else 0
    shape = d.data("input", d.shape(1))
    values = [d.number(0, min(2, each - less)) for each in shape for _ in range(2)]
    d.control("paddings", values, (len(shape), 2))


def _mirror_grad(d: _Draw) -> None:
    d.attrs["mode"] = mode = d.rng.choice(("REFLECT", "SYMMETRIC"))
    less = 1 if mode == "REFLECT" else 0
    shape = d.data("input", d.shape(1), -3, 3)
    values: list[int] = []
    for each in shape:
        inner = d.rng.choice([k for k in range(1, each + 1) if each - k <= 2 * (k - less)])
        before = d.rng.choice(
            [a for a in range(each - inner + 1) if max(a, each - inner - a) <= inner - less]
        )
        values += [before, each - inner - before]
    d.control("paddings", values, (len(shape), 2))


def _sliced(d: _Draw) -> None:
    shape = d.data("input", d.shape())
    begins = [d.number(0, each - 1) for each in shape]
    sizes = [
        -1 if d.flip(0.2) else d.number(1, each - begin)
        for each, begin in zip(shape, begins, strict=True)
    ]
    spare = min((e - s for e, s in zip(shape, sizes, strict=True)), default=0)
    d.control("begin", begins, limit=0 if -1 in sizes else spare + 1)
    d.control("size", sizes)


def _strided_parts(d: _Draw, shape: Shape) -> tuple[list[list[int]], list[int]]:
    """Begin, end and stride for some dimensions, with masks; and the sizes of the result."""
    count = d.number(0, len(shape))
    parts: list[list[int]] = []
    masks = dict.fromkeys(("begin_mask", "end_mask", "shrink_axis_mask", "new_axis_mask"), 0)
    sizes: list[int] = []
    for axis in range(count):
        extent = shape[axis]
        bit = 1 << len(parts)
        if d.flip(0.1):
            masks["new_axis_mask"] |= bit
            parts.append([0, 0, 1])
            sizes.append(1)
            bit <<= 1
        if d.flip(0.2):
            masks["shrink_axis_mask"] |= bit
            parts.append([d.rng.randrange(-extent, extent), 0, 1])
            continue
        begin, end = d.rng.randrange(-extent, extent), d.rng.randrange(-extent, extent + 1)
        stride = d.rng.choice((-2, -1, 1, 1, 2))
        masks["begin_mask"] |= bit * d.flip(0.3)
        masks["end_mask"] |= bit * d.flip(0.3)
        low = None if masks["begin_mask"] & bit else begin
        high = None if masks["end_mask"] & bit else end
        size = len(range(extent)[slice(low, high, stride)])
        if not size:  # else a result without elements
            masks["begin_mask"] |= bit
            masks["end_mask"] |= bit
            size = len(range(extent)[::stride])
        parts.append([begin, end, stride])
        sizes.append(size)
    d.attrs |= masks
    d.attrs["ellipsis_mask"] = 0
    if count == len(shape) and not masks["new_axis_mask"] and d.flip(0.2):
        d.attrs["ellipsis_mask"] = 1 << len(parts)  # stands for no dimension, at the end
        parts.append([0, 0, 1])
    return parts, [*sizes, *shape[count:]]


def _strided(d: _Draw) -> None:
    name = d.op.name
    shape = d.shape(1)
    if name == "ResourceStridedSliceAssign" and d.flip(0.4):
        # One row, which may be computed.
        d.data(d.op.operands[0], shape)
        d.attrs["shrink_axis_mask"] = 1
        d.positions("begin", (1,), shape[0])
        d.control("end", [0])
        d.control("strides", [1])
        d.data("value", shape[1:])
        return
    if name == "StridedSliceGrad":
        parts, sizes = _strided_parts(d, shape)
        d.control("shape", list(shape))
    else:
        d.data(d.op.operands[0], shape)
        parts, sizes = _strided_parts(d, shape)
    for place, role in enumerate(("begin", "end", "strides")):
        d.control(role, [each[place] for each in parts])
    if name == "StridedSliceGrad":
        d.data("dy", tuple(sizes))
    elif name != "StridedSlice":
        d.data("value", tuple(sizes))


def _reversed(d: _Draw) -> None:
    shape = d.data("tensor", d.shape())
    d.control("dims", [d.number(0, 1) for _ in shape], limit=2)


def _reversed_v2(d: _Draw) -> None:
    shape = d.data("tensor", d.shape(1))
    picked = d.rng.sample(range(len(shape)), d.number(0, len(shape)))
    d.control("axis", [each - len(shape) if d.flip(0.3) else each for each in picked])


def _sequence(d: _Draw) -> None:
    shape = d.data("input", d.shape(2))
    along, batch = d.rng.sample(range(len(shape)), 2)
    d.attrs |= {"seq_dim": along, "batch_dim": batch}
    d.positions("seq_lengths", (shape[batch],), shape[along] + 1)


def _rolled(d: _Draw) -> None:
    shape = d.data("input", d.shape(1))
    if d.flip():
        d.data("shift", (), -5, 5)
        d.control("axis", d.axis(len(shape)))
    else:
        count = d.number(1, 3)
        d.data("shift", (count,), -5, 5)
        d.control("axis", [d.axis(len(shape)) for _ in range(count)])


def _inverted(d: _Draw) -> None:
    count = d.number(1, 6)
    d.control("x", d.rng.sample(range(count), count))


def _unraveled(d: _Draw) -> None:
    shape = [d.number(1, 4) for _ in range(d.number(1, 3))]
    d.positions("indices", (d.number(1, 4),) if d.flip() else (), math.prod(shape))
    d.control("dims", shape)


def _stitched(d: _Draw) -> None:
    rest = tuple(d.number(1, 3) for _ in range(d.number(0, 2)))
    shapes = [tuple(d.number(1, 3) for _ in range(d.number(0, 1))) for _ in range(d.number(1, 3))]
    total = sum(math.prod(each) for each in shapes)
    places = d.rng.sample(range(total), total)
    if d.op.name == "DynamicStitch" and total > 1 and d.flip(0.3):
        places = [min(each, total - 2) for each in places]
    start = 0
    for each in shapes:
        number = math.prod(each)
        d.control("indices", places[start : start + number], each)
        start += number
    for each in shapes:
        d.data("data", (*each, *rest))


def _blocks(d: _Draw) -> None:
    """SpaceToBatch, BatchToSpace, with one block or a block for each dimension."""
    to_batch = d.op.name.startswith("Space")
    several = d.op.name.endswith("ND")
    count = d.number(1, 2) if several else 2
    block = [d.number(1, 3) for _ in range(count)] if several else [d.number(2, 3)] * 2
    if not several:
        d.attrs["block_size"] = block[0]
    batch = d.number(1, 2)
    rest = tuple(d.number(1, 2) for _ in range(d.number(0, 1) if several else 1))
    pads: list[int] = []
    extents: list[int] = []
    for each in block:
        inner = d.number(1, 2) if to_batch else d.number(1, 3)
        if to_batch:
            total = inner * each
            before = d.number(0, min(2, total - 1))
            after = d.number(0, min(2, total - 1 - before))
            extents.append(total - before - after)
            pads += [before, after]
        else:
            before = d.number(0, min(1, inner * each - 1))
            after = d.number(0, min(1, inner * each - 1 - before))
            extents.append(inner)
            pads += [before, after]
    if not to_batch:
        batch *= math.prod(block)
    shape = (batch, *extents, *rest)
    if d.wanted not in (None, shape):
        raise _Unfit
    d.data("input", shape)
    if several:
        d.control("block_shape", block)
    d.control("paddings" if to_batch else "crops", pads, (count, 2))


def _depths(d: _Draw) -> None:
    block = d.number(2, 3)
    d.attrs["block_size"] = block
    n, h, w, c = (d.number(1, 2) for _ in range(4))
    deep = d.op.name.startswith("Depth")
    shape = (n, h, w, c * block * block) if deep else (n, h * block, w * block, c)
    if d.wanted not in (None, shape):
        raise _Unfit
    d.data("input", shape)


def _searched(d: _Draw) -> None:
    d.attrs["out_type"] = d.rng.choice(("int32", "int64"))
    rows, count = d.number(1, 3), d.number(1, 4)
    shape = d.shape(2, 2) if d.wanted is not None else (rows, d.number(1, 3))
    ordered = [v for _ in range(shape[0]) for v in sorted(d.number(-5, 5) for _ in range(count))]
    d.of("sorted_inputs", d.dtype)
    d.control("sorted_inputs", ordered, (shape[0], count))
    d.data("values", shape)


_FORMATS: Final = ("NHWC", "NCHW", "HWNC", "HWCN")


def _format_map(d: _Draw) -> None:
    d.attrs |= {"src_format": d.rng.choice(_FORMATS), "dst_format": d.rng.choice(_FORMATS)}
    shape = d.shape()
    values = [d.rng.randrange(-4, 4) for _ in range(math.prod(shape))]
    d.of("x", d.dtype)
    d.control("x", values, shape, 4)


def _format_permute(d: _Draw) -> None:
    d.attrs |= {"src_format": d.rng.choice(_FORMATS), "dst_format": d.rng.choice(_FORMATS)}
    shape = d.rng.choice(((4,), (4, 2)))
    if d.wanted not in (None, shape):
        raise _Unfit
    d.data("x", shape)


def _diag(d: _Draw) -> None:
    d.data("diagonal", d.shape(1, 2, 3))


def _diag_part(d: _Draw) -> None:
    shape = d.shape(2, 4)
    if d.wanted is None:
        half = shape[: d.number(1, 2)]
        shape = (*half, *half)
    if len(shape) % 2 or shape[: len(shape) // 2] != shape[len(shape) // 2 :]:
        raise _Unfit
    d.data("input", shape)


def _banded(d: _Draw) -> None:
    shape = d.data("input", d.shape(2))
    d.control("num_lower", d.number(-1, shape[-2]), limit=shape[-2] + 1)
    d.control("num_upper", d.number(-1, shape[-1]), limit=shape[-1] + 1)


def _matrix_diag(d: _Draw) -> None:
    name = d.op.name
    if name == "MatrixDiag":
        d.data("diagonal", d.shape(1, 3))
        return
    if name.endswith("V3"):
        d.attrs["align"] = d.rng.choice(("LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT"))
    batch = tuple(d.number(1, 2) for _ in range(d.number(0, 1)))
    rows, columns = d.number(1, 4), d.number(1, 4)
    low = d.number(-rows + 1, columns - 1)
    high = d.number(low, columns - 1)
    longest = min(rows + min(high, 0), columns - max(low, 0))
    if d.wanted is not None:
        raise _Unfit
    d.data("diagonal", (*batch, *((high - low + 1,) if low != high else ()), longest))
    _diagonals(d, low, high)
    least = longest - min(high, 0), longest + max(low, 0)
    # The matrix may be as large as the diagonals need in one dimension only.
    if rows != least[0] and columns != least[1]:
        rows = least[0]
    d.control("num_rows", -1 if rows == least[0] and d.flip(0.3) else rows)
    inferred = d.operands[-1].values != (-1,) and columns == least[1] and d.flip(0.3)
    d.control("num_cols", -1 if inferred else columns)
    d.data("padding_value", ())


def _diagonals(d: _Draw, low: int, high: int) -> None:
    if low == high and d.flip():
        d.control("k", low)
    else:
        d.control("k", [low] if low == high else [low, high])


def _diag_packed(d: _Draw) -> None:
    shape = d.data("input", d.shape(2, 3))
    if d.op.name == "MatrixDiagPart":
        return
    if d.op.name.endswith("V3"):
        d.attrs["align"] = d.rng.choice(("LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT"))
    rows, columns = shape[-2:]
    low = d.number(-rows + 1, columns - 1)
    _diagonals(d, low, d.number(low, columns - 1))
    d.data("padding_value", ())


def _set_diag(d: _Draw) -> None:
    shape = d.data("input", d.shape(2, 3))
    rows, columns = shape[-2:]
    if d.op.name == "MatrixSetDiag":
        d.data("diagonal", (*shape[:-2], min(rows, columns)))
        return
    if d.op.name.endswith("V3"):
        d.attrs["align"] = d.rng.choice(("LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT"))
    low = d.number(-rows + 1, columns - 1)
    high = d.number(low, columns - 1)
    longest = min(rows + min(high, 0), columns - max(low, 0))
    d.data("diagonal", (*shape[:-2], *((high - low + 1,) if low != high else ()), longest))
    _diagonals(d, low, high)


def _gathered(d: _Draw) -> None:
    shape = d.data("params", d.shape(1))
    if d.op.name == "Gather":
        d.positions("indices", tuple(d.number(1, 3) for _ in range(d.number(0, 2))), shape[0])
        return
    batch = d.number(0, len(shape) - 1) if d.flip(0.3) else 0
    axis = d.number(batch, len(shape) - 1)
    indices = (*shape[:batch], *(d.number(1, 3) for _ in range(d.number(0, 2))))
    d.attrs["batch_dims"] = batch
    if batch and batch < len(indices) and d.flip(0.3):
        d.attrs["batch_dims"] = batch - len(indices)
    d.positions("indices", indices, shape[axis])
    d.control("axis", axis - len(shape) if d.flip(0.3) else axis)


def _coordinates(d: _Draw, role: str, shape: Shape, *, distinct: bool) -> Shape:
    """Add indices of elements, or of parts; their shape."""
    depth = d.number(1, len(shape))
    count = d.number(1, 3)
    every = [()]  # type: list[tuple[int, ...]]
    for extent in shape[:depth]:
        every = [(*each, place) for each in every for place in range(extent)]
    if distinct:
        count = min(count, len(every))
    picked = d.rng.sample(every, count) if distinct else [d.rng.choice(every) for _ in range(count)]
    same = len(set(shape[:depth])) == 1 and not distinct
    flat = [place for each in picked for place in each]
    d.control(role, flat, (count, depth), shape[0] if same else 0)
    return (count, *shape[depth:])


def _rows(d: _Draw) -> None:
    """Rows of a variable that are gathered, or scattered to."""
    if d.op.name.endswith("Div"):
        _divided_rows(d)
        return
    product, distinct = d.op.name.endswith("Mul"), d.op.name.endswith("Update")
    shape = d.data(d.op.operands[0], d.shape(1), *((-3, 3) if product else ()), free=not product)
    indices = tuple(d.number(1, 3) for _ in range(d.number(0, 2)))
    if distinct and math.prod(indices) > 1:
        indices = (d.number(1, shape[0]),)
        d.control("indices", d.rng.sample(range(shape[0]), indices[0]))
    else:
        d.positions("indices", indices, shape[0])
    if "updates" in d.op.operands:
        wanted = () if d.flip(0.3) else (*indices, *shape[1:])
        d.data("updates", wanted, *((-3, 3) if product else ()), free=not product)


def _divided_rows(d: _Draw) -> None:
    """Rows divided by what divides all numbers: in floats by 1 and -1."""
    shape = d.data("resource", d.shape(1), -9, 9)
    floats = d.operands[-1].type.dtype in FLOATS
    indices = tuple(d.number(1, 3) for _ in range(d.number(0, 2)))
    d.positions("indices", indices, shape[0])
    wanted = () if d.flip(0.3) else (*indices, *shape[1:])
    by = (-1, 1) if floats else (-4, -3, -2, -1, 1, 2, 3)
    d.control("updates", [d.rng.choice(by) for _ in range(math.prod(wanted))], wanted)


def _gathered_nd(d: _Draw) -> None:
    shape = d.data(d.op.operands[0], d.shape(1))
    _coordinates(d, "indices", shape, distinct=False)


def _scattered(d: _Draw) -> None:
    distinct = d.op.name.endswith("Update")
    if d.op.name == "ScatterNd":
        shape = tuple(d.number(1, 4) for _ in range(d.number(1, 3)))
        if d.wanted is not None:
            raise _Unfit
        updates = _coordinates(d, "indices", shape, distinct=False)
        d.data("updates", updates)
        d.control("shape", list(shape))
        return
    shape = d.data(d.op.operands[0], d.shape(1))
    d.data("updates", _coordinates(d, "indices", shape, distinct=distinct))


def _sparse_entries(d: _Draw, shape: Shape) -> tuple[list[int], int]:
    """Coordinates in order, none twice; and their number."""
    every: list[tuple[int, ...]] = [()]
    for extent in shape:
        every = [(*each, place) for each in every for place in range(extent)]
    picked = sorted(d.rng.sample(every, d.number(1, min(4, len(every)))))
    return [place for each in picked for place in each], len(picked)


def _sparse_to_dense(d: _Draw) -> None:
    shape = tuple(d.number(1, 4) for _ in range(d.number(1, 3)))
    flat, count = _sparse_entries(d, shape)
    d.attrs["validate_indices"] = d.flip(0.7)
    if d.wanted is not None:
        raise _Unfit
    d.control("sparse_indices", flat, (count, len(shape)))
    d.control("output_shape", list(shape))
    d.data("sparse_values", (count,))
    d.data("default_value", ())


def _sparse_by_dense(d: _Draw) -> None:
    shape = tuple(d.number(1, 4) for _ in range(d.number(1, 3)))
    flat, count = _sparse_entries(d, shape)
    if d.wanted is not None:
        raise _Unfit
    d.control("sp_indices", flat, (count, len(shape)))
    d.data("sp_values", (count,))
    d.control("sp_shape", list(shape))
    d.data("dense", shape if d.flip() else ())


def _sparse_product(d: _Draw) -> None:
    rows, inner = d.number(1, 3), d.number(1, 3)
    flat, count = _sparse_entries(d, (rows, inner))
    d.attrs |= {"adjoint_a": d.flip(), "adjoint_b": d.flip()}
    left = rows if d.attrs["adjoint_a"] else inner
    other = (left, d.number(1, 3))
    if d.wanted is not None:
        raise _Unfit
    d.control("a_indices", flat, (count, 2))
    d.data("a_values", (count,), -3, 3)
    d.control("a_shape", [rows, inner])
    d.data("b", other[::-1] if d.attrs["adjoint_b"] else other, -3, 3)


def _sparse_sum(d: _Draw) -> None:
    shape = d.shape(1)
    if math.prod(shape) > 1000:
        raise _Unfit
    flat, count = _sparse_entries(d, shape)
    d.of("b", d.dtype)
    d.control("a_indices", flat, (count, len(shape)))
    values = [d.number(-5, 5) for _ in range(count)]
    d.control("a_values", values)
    d.control("a_shape", list(shape))
    d.data("b", shape)


def _sparse_reduced(d: _Draw) -> None:
    shape = tuple(d.number(1, 4) for _ in range(d.number(1, 3)))
    flat, count = _sparse_entries(d, shape)
    if d.wanted is not None:
        raise _Unfit
    d.attrs["keep_dims"] = d.flip()
    d.control("input_indices", flat, (count, len(shape)))
    d.data("input_values", (count,), -3, 3)
    d.control("input_shape", list(shape))
    _axes(d, "reduction_axes", len(shape), least=1)


def _multiplied(d: _Draw) -> None:
    d.attrs |= {"adj_x": d.flip(0.3), "adj_y": d.flip(0.3)}
    shape = d.shape(2, 4, 3)
    other = (shape[-2] if d.attrs["adj_x"] else shape[-1], d.number(1, 3))
    batch = shape[:-2]
    if d.op.name != "BatchMatMul":
        batch = tuple(1 if d.flip(0.2) else each for each in batch)[d.number(0, len(batch)) :]
    d.data("x", shape, -3, 3)
    d.data("y", (*batch, *(other[::-1] if d.attrs["adj_y"] else other)), -3, 3)


def _einsum(d: _Draw) -> None:
    equation = d.rng.choice(
        ("ij->ji", "ij->i", "ij->", "ij,jk->ik", "ij,ij->", "i,j->ij", "ij,j->i", "bij,bjk->bik")
    )
    terms = equation.split("->")[0].split(",")
    extents = {label: d.number(1, 3) for label in "bijk"}
    if d.wanted is not None:
        if len(terms[0]) != len(d.wanted):
            raise _Unfit
        extents |= dict(zip(terms[0], d.wanted, strict=True))
    d.attrs["equation"] = equation
    for term in terms:
        d.data("inputs", tuple(extents[label] for label in term), -3, 3)


def _sparse_matmul(d: _Draw) -> None:
    d.attrs |= {name: d.flip() for name in ("a_is_sparse", "b_is_sparse")}
    d.attrs |= {"transpose_a": d.flip(), "transpose_b": d.flip()}
    shape = d.shape(2, 2)
    inner = shape[0] if d.attrs["transpose_a"] else shape[1]
    other = (inner, d.number(1, 3))
    d.data("a", shape, -3, 3)
    d.data("b", other[::-1] if d.attrs["transpose_b"] else other, -3, 3)


def _tridiagonal(d: _Draw) -> None:
    shape = d.shape(2, 3)
    for role in ("superdiag", "maindiag", "subdiag"):
        d.operands.append(_sampled(d, role, (*shape[:-2], 1, shape[-2])))
    d.data("rhs", shape, -3, 3)


def _sampled(d: _Draw, role: str, shape: Shape) -> Operand:
    dtype = d.of(role, d.dtype)
    values = tuple(d.number(-3, 3) for _ in range(math.prod(shape)))
    return Operand(role, TensorType(dtype, shape), values)


def _windows(d: _Draw, rank: int, *, rates: str = "", stride_one: bool = False) -> list[int]:
    """Attributes of windows on images of `rank` dimensions; the window's extents."""
    space = rank - 2
    window = [d.number(1, 2) for _ in range(space)]
    dilated = [d.number(1, 2) if rates else 1 for _ in range(space)]
    strides = [d.number(1, 2)] * space
    if max(dilated) > 1 and stride_one:
        strides = [1] * space
    d.attrs["strides"] = (1, *strides, 1)
    if rates:
        d.attrs[rates] = (1, *dilated, 1)
    d.attrs["padding"] = d.rng.choice(("VALID", "SAME"))
    if d.wanted is not None and len(d.wanted) != rank:
        raise _Unfit
    for extent, count, rate in zip((d.wanted or ())[1:-1], window, dilated, strict=False):
        if extent < (count - 1) * rate + 1:
            raise _Unfit
    return window


def _image(d: _Draw, rank: int) -> Shape:
    return d.wanted or (d.number(1, 2), *(d.number(3, 4) for _ in range(rank - 2)), d.number(1, 2))


def _convolved(rank: int) -> Callable[[_Draw], None]:
    def draw(d: _Draw) -> None:
        dilates = d.op.name == "Conv2D"
        window = _windows(d, rank, rates="dilations" if dilates else "", stride_one=True)
        shape = d.data("input", _image(d, rank), -3, 3)
        d.data("filter", (*window, shape[-1], d.number(1, 2)), -3, 3)

    return draw


def _pooled(d: _Draw) -> None:
    rank = 5 if d.op.name == "MaxPool3D" else 4
    window = _windows(d, rank)
    if d.op.name != "MaxPoolV2":
        d.attrs["ksize"] = (1, *window, 1)
        d.data("input", _image(d, rank))
        return
    strides = d.attrs.pop("strides")
    assert isinstance(strides, tuple)
    d.data("input", _image(d, 4))
    d.control("ksize", [1, *window, 1])
    d.control("strides", list(strides))


def _dilated(d: _Draw) -> None:
    window = _windows(d, 4, rates="rates")
    shape = d.data("input", _image(d, 4))
    d.data("filter", (*window, shape[-1]))


def _patched(d: _Draw) -> None:
    rank = 4 if d.op.name == "ExtractImagePatches" else 5
    window = _windows(d, rank, rates="rates" if rank == 4 else "")
    d.attrs["ksizes"] = (1, *window, 1)
    d.data("images" if rank == 4 else "input", _image(d, rank))


def _resized(d: _Draw) -> None:
    shape = d.data("images", d.shape(4, 4, 3))
    d.control("size", [shape[1] * d.number(1, 3), shape[2] * d.number(1, 3)])


def _resized_grad(d: _Draw) -> None:
    height, width = d.number(1, 2), d.number(1, 2)
    if d.wanted is not None:
        if len(d.wanted) != 4 or d.wanted[1] % height or d.wanted[2] % width:
            raise _Unfit
        shape = d.wanted
    else:
        shape = (
            d.number(1, 2),
            height * d.number(1, 3),
            width * d.number(1, 3),
            d.number(1, 2),
        )
    d.data("grads", shape, -3, 3)
    d.control("size", [height, width])


def _windows_in(d: _Draw, shape: Shape, window: Sequence[int]) -> tuple[int, ...]:
    """How many windows with the attributes so far there are in each dimension."""
    strides = d.attrs["strides"]
    assert isinstance(strides, tuple)
    same = d.attrs["padding"] == "SAME"
    return tuple(
        -(-extent // stride) if same else (extent - reach) // stride + 1
        for extent, stride, reach in zip(shape[1:-1], strides[1:-1], window, strict=True)
    )


def _convolution_grad(d: _Draw) -> None:
    """The gradient of a convolution, with respect to its images or its filters."""
    if d.wanted is not None:
        raise _Unfit
    rank = 5 if "3D" in d.op.name else 4
    window = _windows(d, rank)
    shape = _image(d, rank)
    filters = (*window, shape[-1], d.number(1, 2))
    channels = filters[-1] * (filters[-2] if d.op.name.startswith("Depthwise") else 1)
    grad = (shape[0], *_windows_in(d, shape, window), channels)
    if "Input" in d.op.name:
        d.control("input_sizes", list(shape))
        d.data("filter", filters, -3, 3)
    else:
        d.data("input", shape, -3, 3)
        d.control("filter_sizes", list(filters))
    d.data("out_backprop", grad, -3, 3)


def _pool_grad(d: _Draw) -> None:
    if d.wanted is not None:
        raise _Unfit
    window = _windows(d, 4)
    shape = _image(d, 4)
    out = (shape[0], *_windows_in(d, shape, window), shape[-1])
    if d.op.name == "MaxPoolGradWithArgmax":
        d.attrs["ksize"] = (1, *window, 1)
        d.data("input", shape)
        d.data("grad", out, -3, 3)
        d.positions("argmax", out, math.prod(shape[1:]))
        return
    d.data("orig_input", shape, -2, 2)
    d.data("orig_output", out, -2, 2)
    d.data("grad", shape if "GradGrad" in d.op.name else out, -3, 3)
    if d.op.name.endswith("V2"):
        strides = d.attrs.pop("strides")
        assert isinstance(strides, tuple)
        d.control("ksize", [1, *window, 1])
        d.control("strides", list(strides))
    else:
        d.attrs["ksize"] = (1, *window, 1)


def _dilation_grad(d: _Draw) -> None:
    if d.wanted is not None:
        raise _Unfit
    window = _windows(d, 4, rates="rates")
    rates = d.attrs["rates"]
    assert isinstance(rates, tuple)
    shape = _image(d, 4)
    reach = [(count - 1) * rate + 1 for count, rate in zip(window, rates[1:-1], strict=True)]
    d.data("input", shape, -3, 3)
    d.data("filter", (*window, shape[-1]), -3, 3)
    d.data("out_backprop", (shape[0], *_windows_in(d, shape, reach), shape[-1]), -3, 3)


def _padded_image(d: _Draw) -> None:
    d.attrs["mode"] = d.rng.choice(("REFLECT", "SYMMETRIC"))
    window = _windows(d, 4)
    shape = (1, *_image(d, 4)[1:])
    if min(shape[1:3]) < 2 or d.wanted not in (None, shape):
        raise _Unfit
    d.data("input", shape, -3, 3)
    d.control("paddings", [0, 0, *(d.number(0, 1) for _ in range(4)), 0, 0], (4, 2))
    d.data("filter", (*window, shape[-1], d.number(1, 2)), -3, 3)


def _convolved_in_any_rank(d: _Draw) -> None:
    rank = len(d.wanted) if d.wanted is not None else d.number(4, 5)
    if rank not in (4, 5):
        raise _Unfit
    window = _windows(d, rank)
    shape = d.data("input", _image(d, rank), -3, 3)
    d.data("filter", (*window, shape[-1], d.number(1, 2)), -3, 3)


def _default(d: _Draw) -> None:
    shape = d.data("input", d.shape())
    d.attrs["shape"] = tuple(-1 if d.flip(0.2) else each for each in shape)


def _bitcast(d: _Draw) -> None:
    wide = d.attrs["type"] = d.rng.choice(("int32", "int64"))
    mine = d.of("input", d.dtype)
    if mine == "int64" or wide == "int32":
        d.data("input", d.shape())
        return
    shape = (*d.shape(0, 2), 2)
    if d.wanted is not None:
        raise _Unfit
    numbers = [d.number(-5, 5) for _ in range(math.prod(shape) // 2)]
    d.control("input", [half for each in numbers for half in (each, -(each < 0))], shape)


def _multiplied_to(d: _Draw) -> None:
    _multiplied(d)
    d.attrs["Tout"] = d.operands[0].type.dtype


def _sparse_segments_grad(d: _Draw) -> None:
    shape = d.data("grad", d.shape(1), -3, 3)
    count, rows = d.number(1, 4), d.number(1, 4)
    d.positions("indices", (count,), rows)
    d.control("segment_ids", sorted(d.number(0, shape[0] - 1) for _ in range(count)))
    d.control("output_dim0", rows)


def _sparse_bins(d: _Draw) -> None:
    if d.wanted is not None and len(d.wanted) != 1:
        raise _Unfit
    d.attrs["binary_output"] = d.flip()
    number = d.number(1, 5)
    if d.op.name == "RaggedBincount":
        count = d.wanted[0] if d.wanted is not None else d.number(1, 5)
        ends = sorted(d.number(0, count) for _ in range(d.number(0, 2)))
        d.control("splits", [0, *ends, count])
    else:
        if d.wanted is not None:
            raise _Unfit
        shape = tuple(d.number(1, 4) for _ in range(d.number(1, 2)))
        flat, count = _sparse_entries(d, shape)
        d.control("indices", flat, (count, len(shape)))
    d.positions("values", (count,), number + 1)
    if d.op.name == "SparseBincount":
        d.control("dense_shape", list(shape))
    d.control("size", number, limit=5)
    d.data("weights", (count,))


def _slice_grad(d: _Draw) -> None:
    shape = tuple(d.number(1, 4) for _ in range(d.number(1, 3)))
    if d.wanted is not None:
        raise _Unfit
    flat, count = _sparse_entries(d, shape)
    rank = len(shape)
    places = [tuple(flat[i * rank : (i + 1) * rank]) for i in range(count)]
    begin = [d.number(0, each) for each in d.rng.choice(places)]
    taken = [
        tuple(a - b for a, b in zip(each, begin, strict=True))
        for each in places
        if all(a >= b for a, b in zip(each, begin, strict=True))
    ]
    if not taken:
        begin, taken = [0] * rank, places
    d.data("backprop_val_grad", (len(taken),))
    d.control("input_indices", flat, (count, rank))
    d.control("input_start", begin)
    d.control("output_indices", [v for each in taken for v in each], (len(taken), rank))


def _set_size(d: _Draw) -> None:
    shape = tuple(d.number(1, 3) for _ in range(d.number(2, 3)))
    flat, count = _sparse_entries(d, shape)
    if d.wanted not in (None, (count,)):
        raise _Unfit
    d.attrs["validate_indices"] = d.flip(0.7)
    d.control("set_indices", flat, (count, len(shape)))
    d.data("set_values", (count,), -2, 2)
    d.control("set_shape", list(shape))


def _suppressed(d: _Draw) -> None:
    count = d.number(1, 4)
    if d.op.name == "NonMaxSuppressionWithOverlaps":
        if d.wanted is not None:
            count = d.wanted[0] if len(d.wanted) == 2 else 0
        if d.wanted not in (None, (count, count)):
            raise _Unfit
        d.data("overlaps", (count, count), -2, 2)
    else:
        if d.wanted is not None:
            count = d.wanted[0] if len(d.wanted) == 2 else 0
        if d.wanted not in (None, (count, 4)):
            raise _Unfit
        d.data("boxes", (count, 4), -4, 4)
    d.data("scores", (count,), -2, 2)
    d.control("max_output_size", d.number(0, count), limit=count + 1)
    if d.op.name == "NonMaxSuppression":
        d.attrs["iou_threshold"] = d.number(0, 1)
    elif d.op.name == "NonMaxSuppressionWithOverlaps":
        d.control("overlap_threshold", d.number(-2, 2))
    else:
        d.control("iou_threshold", d.number(0, 1), limit=2)
    if "score_threshold" in d.op.operands:
        d.control("score_threshold", d.number(-3, 2))


def _listed(d: _Draw, role: str, shape: Shape) -> Shape:
    """Add an operand that is a list, of which other values do as well."""
    d.data(role, shape)
    last = d.operands[-1]
    d.operands[-1] = replace(last, type=last.type.listed)
    return shape


def _open(d: _Draw, shape: Shape) -> list[int]:
    return [-1 if d.flip(0.2) else each for each in shape]


def _list_op(d: _Draw) -> None:
    """An op on a list of tensors."""
    name = d.op.name.removeprefix("TensorList")
    if name == "Reserve":
        if d.wanted is not None:
            raise _Unfit
        d.attrs["element_dtype"] = d.rng.choice((*DTYPES, BOOL))
        d.control("element_shape", [d.number(1, 3) for _ in range(d.number(1, 2))])
        d.control("num_elements", d.number(1, 4), limit=5)
        return
    shape = d.shape(2)  # a constant has elements, and so each element has a dimension
    if name == "FromTensor":
        d.data("tensor", shape)
        d.control("element_shape", _open(d, shape[1:]))
        return
    if name == "ScatterV2":
        count = shape[0] + d.number(0, 2)
        d.data("tensor", shape)
        d.control("indices", d.rng.sample(range(count), shape[0]))
        d.control("element_shape", list(shape[1:]))
        d.control("num_elements", count)
        return
    _listed(d, d.op.operands[0], shape)
    if name in ("SetItem", "GetItem"):
        d.positions("index", (), shape[0])
    if name == "Gather":
        d.positions("indices", (d.number(1, 3),), shape[0])
    if name == "PopBack":
        _named_result(d)
    if name == "Stack":
        d.attrs["num_elements"] = -1 if d.flip() else shape[0]
    if name in ("SetItem", "PushBack"):
        d.data("item" if name == "SetItem" else "tensor", shape[1:])
    if name == "Resize":
        d.control("size", d.number(1, 4), limit=5)
    if name == "ConcatLists":
        _listed(d, "input_b", (d.number(1, 3), *shape[1:]))
    if name == "ElementShape":
        d.attrs["shape_type"] = d.rng.choice(("int32", "int64"))
    if "element_shape" in d.op.operands:
        d.control("element_shape", _open(d, shape[1:]))


# --- ops with several results ------------------------------------------------------------


def _result_of(d: _Draw, count: int) -> None:
    """Choose one of so many results."""
    d.attrs["result"] = d.rng.randrange(count)


def _named_result(d: _Draw) -> None:
    d.attrs["result"] = d.rng.choice(d.op.results)[0]


def _split(d: _Draw) -> None:
    shape = d.shape(1)
    axis = d.axis(len(shape))
    count = d.rng.choice([n for n in range(1, shape[axis] + 1) if shape[axis] % n == 0])
    d.attrs["num_split"] = count
    _result_of(d, count)
    d.control("split_dim", axis)
    d.data("value", shape)


def _split_v(d: _Draw) -> None:
    shape = d.data("value", d.shape(1))
    axis = d.axis(len(shape))
    cuts = sorted(d.number(0, shape[axis]) for _ in range(d.number(0, 2)))
    sizes = [b - a for a, b in zip([0, *cuts], [*cuts, shape[axis]], strict=True)]
    d.attrs["num_split"] = len(sizes)
    _result_of(d, len(sizes))
    if len(sizes) > 1 and d.flip(0.3):
        sizes[d.rng.randrange(len(sizes))] = -1
    d.control("size_splits", sizes)
    d.control("split_dim", axis)


def _unpacked(d: _Draw) -> None:
    shape = d.data("value", d.shape(1))
    axis = d.axis(len(shape))
    d.attrs |= {"axis": axis, "num": shape[axis]}
    _result_of(d, shape[axis])


def _partitioned(d: _Draw) -> None:
    shape = d.data("data", d.shape(1))
    count = d.number(1, 3)
    d.attrs["num_partitions"] = count
    _result_of(d, count)
    d.positions("partitions", shape[: d.number(1, len(shape))], count)


def _unique(d: _Draw) -> None:
    d.attrs["out_idx"] = d.rng.choice(("int32", "int64"))
    _named_result(d)
    shape = d.data("x", d.shape(1, 3 if d.op.name.endswith("V2") else 1), -2, 2)
    if d.op.name.endswith("V2"):
        one = len(shape) == 1 and d.flip()
        d.control("axis", [] if one else [d.axis(len(shape))])


def _list_diff(d: _Draw) -> None:
    d.attrs["out_idx"] = d.rng.choice(("int32", "int64"))
    _named_result(d)
    d.data("x", d.shape(1, 1), -2, 2)
    d.data("y", (d.number(0, 3),), -2, 2)


def _top(d: _Draw) -> None:
    _named_result(d)
    shape = d.data("input", d.shape(1), -3, 3)
    k = d.number(0, shape[-1])
    d.attrs["index_type"] = d.rng.choice(("int32", "int64"))
    d.control("k", k, limit=shape[-1] + 1)


def _gradient_axes(d: _Draw) -> None:
    _named_result(d)
    shape = [d.number(1, 3) for _ in range(d.number(0, 3))]
    other = list(d.partner(tuple(shape)))
    if d.flip(0.4):  # a dimension of 1 goes with any
        d.control("s0", [1] * max(1, len(shape)))
        d.positions("s1", (max(1, len(shape)),), 2)
        return
    one, two = (shape, other) if d.flip() else (other, shape)
    d.control("s0", one)
    d.control("s1", two)


def _offset(d: _Draw) -> None:
    shape = [d.number(1, 4) for _ in range(d.number(1, 3))]
    axis = d.axis(len(shape))
    d.control("concat_dim", axis)
    count = d.number(2, 3)
    _result_of(d, count)
    for _ in range(count):
        other = list(shape)
        other[axis] = d.number(1, 4)
        d.control("shape", other)


def _shape_n(d: _Draw) -> None:
    d.attrs["out_type"] = d.rng.choice(("int32", "int64"))
    count = d.number(1, 3)
    _result_of(d, count)
    d.data("input", d.shape())
    for _ in range(count - 1):
        d.data("input", tuple(d.number(1, 3) for _ in range(d.number(0, 2))))


def _pooled_with_places(d: _Draw) -> None:
    _named_result(d)
    d.attrs["Targmax"] = d.rng.choice(("int32", "int64"))
    d.attrs["include_batch_in_index"] = d.flip()
    window = _windows(d, 4)
    d.attrs["ksize"] = (1, *window, 1)
    d.data("input", _image(d, 4))


def _ranges(d: _Draw) -> None:
    if d.wanted is not None and len(d.wanted) > 1:
        raise _Unfit
    _named_result(d)
    d.attrs["Tsplits"] = d.rng.choice(("int32", "int64"))
    shape = d.wanted if d.wanted is not None else (d.number(1, 3),)
    d.data("starts", shape, -3, 3)
    d.data("limits", shape if d.flip(0.7) else (), -3, 6)
    alone = d.flip(0.3)
    steps = [
        d.rng.choice((-3, -2, -1, 1, 1, 2, 3)) for _ in range(1 if alone else math.prod(shape))
    ]
    d.control("deltas", steps, () if alone else shape)


def _reordered(d: _Draw) -> None:
    shape = tuple(d.number(1, 4) for _ in range(d.number(1, 3)))
    flat, count = _sparse_entries(d, shape)
    if d.wanted not in (None, (count,)):
        raise _Unfit
    _named_result(d)
    rank = len(shape)
    places = [flat[i * rank : (i + 1) * rank] for i in range(count)]
    d.rng.shuffle(places)
    d.control("input_indices", [v for each in places for v in each], (count, rank))
    d.data("input_values", (count,))
    d.control("input_shape", list(shape))


def _sparse_reshaped(d: _Draw) -> None:
    shape = tuple(d.number(1, 4) for _ in range(d.number(1, 3)))
    flat, count = _sparse_entries(d, shape)
    _named_result(d)
    d.control("input_indices", flat, (count, len(shape)), min(shape))
    d.control("input_shape", list(shape))
    wanted = _factors(d, math.prod(shape)) or [1]
    if d.flip(0.3):
        wanted[d.rng.randrange(len(wanted))] = -1
    d.control("new_shape", wanted)


def _filled_grad(d: _Draw) -> None:
    _named_result(d)
    count = d.wanted[0] if d.wanted is not None and len(d.wanted) == 1 else d.number(1, 5)
    if d.wanted not in (None, (count,)):
        raise _Unfit
    d.positions("reverse_index_map", (d.number(1, 4),), count)
    d.data("grad_values", (count,))


_TABLE: Final[Mapping[str, Callable[[_Draw], None]]] = {
    **dict.fromkeys(("FloorDiv", "FloorMod", "TruncateDiv", "Div", "TruncateMod", "Mod"), _divided),
    **dict.fromkeys(("ApproximateEqual", "Relu6Grad", "EluGrad"), _alike),
    **dict.fromkeys(("TanhGrad", "SigmoidGrad", "ReciprocalGrad", "InvGrad"), _small),
    "Pow": _power,
    **dict.fromkeys(("LeftShift", "RightShift"), _shifted),
    "ClipByValue": _clipped,
    "AddN": _several,
    "SelectV2": _selected,
    **dict.fromkeys(("LeakyRelu", "LeakyReluGrad"), _leaky),
    "Cast": _cast,
    "Bucketize": _bucketize,
    **dict.fromkeys(("Sum", "Prod", "Max", "Min", "All", "Any"), _reduced),
    **dict.fromkeys(("ArgMax", "ArgMin"), _argument),
    **dict.fromkeys(("Cumsum", "Cumprod"), _scanned),
    **dict.fromkeys(("Bincount", "DenseBincount"), _bincount),
    **dict.fromkeys(("InTopK", "InTopKV2"), _in_top),
    "NthElement": _nth,
    "BiasAddGrad": _bias_grad,
    **dict.fromkeys(("BiasAdd", "BiasAddV1"), _bias),
    "Cross": _cross,
    **{f"Segment{kind}": _segments for kind in ("Sum", "Prod", "Max", "Min")},
    **{f"UnsortedSegment{kind}": _unsorted for kind in ("Sum", "Prod", "Max", "Min")},
    **dict.fromkeys(("SparseSegmentSum", "SparseSegmentSumWithNumSegments"), _sparse_segments),
    **dict.fromkeys(("Shape", "Size", "Rank"), _shape_of),
    "Where": _where,
    "Reshape": _reshaped,
    "EnsureShape": _ensured,
    "Tile": _tiled,
    "Fill": _fill,
    "BroadcastTo": _broadcast_to,
    "BroadcastArgs": _broadcast_args,
    "Range": _range,
    "OneHot": _one_hot,
    **dict.fromkeys(("Transpose", "ConjugateTranspose"), _transposed),
    "ExpandDims": _expanded,
    "Squeeze": _squeezed,
    **dict.fromkeys(("Concat", "ConcatV2"), _concatenated),
    "Pack": _packed,
    **dict.fromkeys(("Pad", "PadV2"), _padded),
    "MirrorPad": _mirrored,
    "MirrorPadGrad": _mirror_grad,
    "Slice": _sliced,
    **dict.fromkeys(("StridedSlice", "StridedSliceGrad", "TensorStridedSliceUpdate"), _strided),
    "ResourceStridedSliceAssign": _strided,
    "Reverse": _reversed,
    "ReverseV2": _reversed_v2,
    "ReverseSequence": _sequence,
    "Roll": _rolled,
    "InvertPermutation": _inverted,
    "UnravelIndex": _unraveled,
    **dict.fromkeys(("DynamicStitch", "ParallelDynamicStitch"), _stitched),
    **dict.fromkeys(("SpaceToBatch", "SpaceToBatchND", "BatchToSpace", "BatchToSpaceND"), _blocks),
    **dict.fromkeys(("SpaceToDepth", "DepthToSpace"), _depths),
    **dict.fromkeys(("LowerBound", "UpperBound"), _searched),
    "DataFormatDimMap": _format_map,
    "DataFormatVecPermute": _format_permute,
    "Diag": _diag,
    "DiagPart": _diag_part,
    "MatrixBandPart": _banded,
    **{f"MatrixDiag{v}": _matrix_diag for v in ("", "V2", "V3")},
    **{f"MatrixDiagPart{v}": _diag_packed for v in ("", "V2", "V3")},
    **{f"MatrixSetDiag{v}": _set_diag for v in ("", "V2", "V3")},
    **dict.fromkeys(("Gather", "GatherV2"), _gathered),
    **dict.fromkeys(("GatherNd", "ResourceGatherNd"), _gathered_nd),
    "ResourceGather": _rows,
    **{f"ResourceScatter{n}": _rows for n in ("Update", "Add", "Sub", "Mul", "Div", "Min", "Max")},
    **{f"ResourceScatterNd{n}": _scattered for n in ("Update", "Add", "Sub")},
    **dict.fromkeys(
        (
            "ScatterNd",
            "ScatterNdNonAliasingAdd",
            *(f"TensorScatter{kind}" for kind in ("Update", "Add", "Sub", "Max", "Min")),
        ),
        _scattered,
    ),
    "SparseToDense": _sparse_to_dense,
    "SparseTensorDenseMatMul": _sparse_product,
    "SparseTensorDenseAdd": _sparse_sum,
    **dict.fromkeys(("SparseReduceSum", "SparseReduceMax"), _sparse_reduced),
    **{f"BatchMatMul{v}": _multiplied for v in ("", "V2")},
    "Einsum": _einsum,
    "SparseMatMul": _sparse_matmul,
    "TridiagonalMatMul": _tridiagonal,
    "Conv2D": _convolved(4),
    "Conv3D": _convolved(5),
    "DepthwiseConv2dNative": _convolved(4),
    **dict.fromkeys(("MaxPool", "MaxPoolV2", "MaxPool3D"), _pooled),
    **dict.fromkeys(("SparseDenseCwiseAdd", "SparseDenseCwiseMul"), _sparse_by_dense),
    "Dilation2D": _dilated,
    **dict.fromkeys(("ExtractImagePatches", "ExtractVolumePatches"), _patched),
    "ResizeNearestNeighbor": _resized,
    "ResizeNearestNeighborGrad": _resized_grad,
    **{
        f"{name}Backprop{to}": _convolution_grad
        for name, version in (("Conv2D", ""), ("Conv3D", "V2"), ("DepthwiseConv2dNative", ""))
        for to in (f"Input{version}", f"Filter{version}")
    },
    **{f"MaxPoolGrad{v}": _pool_grad for v in ("", "V2", "Grad", "GradV2", "WithArgmax")},
    **{f"Dilation2DBackprop{to}": _dilation_grad for to in ("Input", "Filter")},
    "FusedPadConv2D": _padded_image,
    "Conv": _convolved_in_any_rank,
    "PlaceholderWithDefault": _default,
    "Bitcast": _bitcast,
    "BatchMatMulV3": _multiplied_to,
    "SparseSegmentSumGrad": _sparse_segments_grad,
    **dict.fromkeys(("SparseBincount", "RaggedBincount"), _sparse_bins),
    "SparseSliceGrad": _slice_grad,
    "SetSize": _set_size,
    **{f"NonMaxSuppression{v}": _suppressed for v in ("", "V2", "V3", "WithOverlaps")},
    "MaxPoolWithArgmax": _pooled_with_places,
    "RaggedRange": _ranges,
    "SparseReorder": _reordered,
    "SparseReshape": _sparse_reshaped,
    "SparseFillEmptyRowsGrad": _filled_grad,
    **{name: _list_op for name in OPS if name.startswith("TensorList")},
    "Split": _split,
    "SplitV": _split_v,
    "Unpack": _unpacked,
    "DynamicPartition": _partitioned,
    **{f"Unique{n}": _unique for n in ("", "V2", "WithCounts", "WithCountsV2")},
    "ListDiff": _list_diff,
    "TopKV2": _top,
    "BroadcastGradientArgs": _gradient_axes,
    "ConcatOffset": _offset,
    "ShapeN": _shape_n,
}
PURE_OPS: Final = tuple(
    op.meaning
    for op in OPS.values()
    if op.meaning is not None and op.pure and op.name not in ABSTRACT_OPS
)
"""Rows of all pure ops that one function defines."""
