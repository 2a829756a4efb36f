"""Samples ops that ask for a shape, give another one, or build a value of some shape."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from litmusfuzz.fuzz.generators.sampling.draw import SIZE_LIMIT, Draw, Unfit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from litmusfuzz.fuzz.generators.sampling.draw import Sampler


# --- the shape of a value ----------------------------------------------------------------


def _shape(draw: Draw) -> None:
    """Sample Shape, Size or Rank."""
    if draw.op.fields:
        draw.choose_index_dtype("out_type")
    draw.data("input", draw.first_shape())


def _where(draw: Draw) -> None:
    draw.data("input", draw.first_shape(1))


def _reshape(draw: Draw) -> None:
    shape = draw.data("tensor", draw.first_shape())
    new_shape = draw.factors(math.prod(shape))
    if new_shape and draw.flip(0.3):
        new_shape[draw.rng.randrange(len(new_shape))] = -1
    draw.control("shape", new_shape)


def _transpose(draw: Draw) -> None:
    """Sample Transpose or ConjugateTranspose."""
    shape = draw.data("x", draw.first_shape(1 if draw.op.name.startswith("Conjugate") else 0))
    draw.control("perm", draw.rng.sample(range(len(shape)), len(shape)))


def _expand_dims(draw: Draw) -> None:
    shape = draw.data("input", draw.first_shape())
    draw.control("dim", draw.axis(len(shape) + 1), limit=len(shape) + 1)


def _squeeze(draw: Draw) -> None:
    shape = draw.first_shape()
    if draw.wanted_shape is None:
        shape = tuple(1 if draw.flip() else extent for extent in shape)
    draw.data("input", shape)
    ones = [axis for axis, extent in enumerate(shape) if extent == 1]
    draw.attrs["squeeze_dims"] = tuple(draw.rng.sample(ones, draw.number(0, len(ones))))


# --- larger values -----------------------------------------------------------------------


def _tile(draw: Draw) -> None:
    shape = draw.data("input", draw.first_shape())
    draw.control("multiples", [draw.rng.choice((1, 1, 2, 3)) for _ in shape], limit=3)


def _fill(draw: Draw) -> None:
    draw.control("dims", draw.any_shape(0, 3, 4), limit=4)
    draw.data("value", draw.first_shape(0, 0))


def _broadcast_to(draw: Draw) -> None:
    shape = draw.data("input", draw.first_shape())
    if draw.wanted_shape is None and shape and draw.flip():
        # Choices keep their order, and seeds their tests: so the values are chosen once more.
        draw.operands.pop()
        shape = draw.data("input", (1, *shape[1:]))
    larger = [draw.number(2, 3) if extent == 1 else extent for extent in shape]
    draw.control("shape", [*draw.any_shape(0, 1, 3), *larger])


def _concat(draw: Draw) -> None:
    """Sample Concat, which has the axis first, or ConcatV2, which has it last."""
    shape = draw.first_shape(1)
    axis = draw.axis(len(shape))
    axis_first = draw.op.name == "Concat"
    if axis_first:
        draw.control("concat_dim", axis)
    for number in range(draw.number(2, 3)):
        extents = list(shape)
        if number > 0:
            extents[axis] = draw.number(1, 3)
        draw.data("values", tuple(extents))
    if not axis_first:
        draw.control("axis", axis)


def _pack(draw: Draw) -> None:
    shape = draw.first_shape()
    draw.attrs["axis"] = draw.axis(len(shape) + 1)
    for _ in range(draw.number(1, 3)):
        draw.data("values", shape)


# --- values from shapes and numbers ------------------------------------------------------


def _two_shapes(draw: Draw) -> tuple[list[int], list[int]]:
    """Two shapes, one of which broadcasts to the other."""
    shape = draw.any_shape(1, 3, 4)
    pair = [list(shape), list(draw.broadcastable_to(shape)) or [1]]
    draw.rng.shuffle(pair)
    return pair[0], pair[1]


def _broadcast_args(draw: Draw) -> None:
    one, other = _two_shapes(draw)
    draw.control("s0", one)
    draw.control("s1", other)


def _broadcast_gradient_args(draw: Draw) -> None:
    draw.choose_result()
    shape = draw.any_shape(0, 3, 3)
    other = draw.broadcastable_to(shape)
    if draw.flip(0.4):  # a dimension of 1 goes with any, so that the other shape may be computed
        rank = max(1, len(shape))
        draw.control("s0", [1] * rank)
        draw.positions("s1", (rank,), 2)
        return
    one, two = (shape, other) if draw.flip() else (other, shape)
    draw.control("s0", one)
    draw.control("s1", two)


def _concat_offset(draw: Draw) -> None:
    """Sample ConcatOffset: shapes that differ along one axis only."""
    shape = draw.any_shape(1, 3, 4)
    axis = draw.axis(len(shape))
    draw.control("concat_dim", axis)
    count = draw.number(2, 3)
    draw.choose_result(count)
    for _ in range(count):
        extents = list(shape)
        extents[axis] = draw.number(1, 4)
        draw.control("shape", extents)


def _shape_n(draw: Draw) -> None:
    draw.choose_index_dtype("out_type")
    count = draw.number(1, 3)
    draw.choose_result(count)
    draw.data("input", draw.first_shape())
    for _ in range(count - 1):
        draw.data("input", draw.any_shape(0, 2, 3))


def _range(draw: Draw) -> None:
    """Sample Range, of one number or more; its operands are scalars of the wanted dtype."""
    if draw.wanted_dtype is not None:
        draw.require(())
    step = draw.rng.choice((-3, -2, -1, 1, 2, 3))
    start = draw.number(-5, 5)
    draw.want_dtype_of("start")
    draw.control("start", start)
    distance = 1 + draw.number(0, 9)
    draw.control("limit", start + distance if step > 0 else start - distance)
    draw.control("delta", step)


def _one_hot(draw: Draw) -> None:
    """Sample OneHot; an index that is -1, or the depth, has no hot element."""
    shape = draw.any_shape(0, 2, 3)
    depth = draw.number(1, 4)
    draw.attrs["axis"] = draw.number(-1, len(shape))
    draw.control("indices", draw.numbers(math.prod(shape), -1, depth), shape)
    draw.control("depth", depth, limit=SIZE_LIMIT)
    draw.data("on_value", draw.first_shape(0, 0))
    draw.data("off_value", ())


def _ragged_range(draw: Draw) -> None:
    """Sample RaggedRange: starts, limits and steps, each for all or one for each row."""
    if draw.wanted_shape is not None and len(draw.wanted_shape) > 1:
        raise Unfit
    draw.choose_result()
    draw.choose_index_dtype("Tsplits")
    shape = draw.wanted_shape if draw.wanted_shape is not None else (draw.number(1, 3),)
    draw.data("starts", shape, (-3, 3))
    draw.data("limits", shape if draw.flip(0.7) else (), (-3, 6))
    step_shape = () if draw.flip(0.3) else shape
    steps = [draw.rng.choice((-3, -2, -1, 1, 1, 2, 3)) for _ in range(math.prod(step_shape))]
    draw.control("deltas", steps, step_shape)


SAMPLERS: Final[Mapping[str, Sampler]] = {
    **dict.fromkeys(("Shape", "Size", "Rank"), _shape),
    "Where": _where,
    "Reshape": _reshape,
    **dict.fromkeys(("Transpose", "ConjugateTranspose"), _transpose),
    "ExpandDims": _expand_dims,
    "Squeeze": _squeeze,
    "Tile": _tile,
    "Fill": _fill,
    "BroadcastTo": _broadcast_to,
    **dict.fromkeys(("Concat", "ConcatV2"), _concat),
    "Pack": _pack,
    "BroadcastArgs": _broadcast_args,
    "BroadcastGradientArgs": _broadcast_gradient_args,
    "ConcatOffset": _concat_offset,
    "ShapeN": _shape_n,
    "Range": _range,
    "OneHot": _one_hot,
    "RaggedRange": _ragged_range,
}
