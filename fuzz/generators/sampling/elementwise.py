"""Samples ops that compute each element of the result from the same element of their operands.

Attributes of a *data format* are here as well: they say which dimension is which.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from litmusfuzz.fuzz.generators.sampling.draw import DIVIDENDS, FACTORS, VALUES, Draw, Unfit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from litmusfuzz.fuzz.generators.sampling.draw import Sampler, Shape


def broadcasting(draw: Draw) -> None:
    """Sample any op whose operands are all data that broadcast to the shape of the first one."""
    first, *others = draw.op.operands
    shape = draw.first_shape()
    draw.data(first, shape)
    for role in others:
        draw.data(role, draw.broadcastable_to(shape))


def _of_one_shape(draw: Draw) -> None:
    """Sample an op whose operands are all data of one shape."""
    shape = draw.first_shape()
    for role in draw.op.operands:
        draw.data(role, shape)


def _gradient_product(draw: Draw) -> None:
    """Sample TanhGrad or another gradient that is a product of three factors."""
    shape = draw.first_shape()
    for role in draw.op.operands:
        draw.fixed(role, shape, FACTORS)


def _division(draw: Draw) -> None:
    """Sample FloorDiv, FloorMod, ...: no divisor is 0."""
    shape = draw.data("x", draw.first_shape(), DIVIDENDS)
    other = draw.broadcastable_to(shape)
    divisors = [draw.rng.choice((-4, -3, -2, -1, 1, 2, 3, 5)) for _ in range(math.prod(other))]
    draw.control("y", divisors, other)


def _pow(draw: Draw) -> None:
    shape = draw.fixed("x", draw.first_shape(), VALUES)
    draw.fixed("y", draw.broadcastable_to(shape), (0, 5))


def _shift(draw: Draw) -> None:
    shape = draw.data("x", draw.first_shape(), DIVIDENDS)
    draw.fixed("y", draw.broadcastable_to(shape), (0, 5))


def _clip_by_value(draw: Draw) -> None:
    shape = draw.data("t", draw.first_shape(), DIVIDENDS)
    _bound(draw, "clip_value_min", shape, -4, -1)
    _bound(draw, "clip_value_max", shape, 0, 4)


def _bound(draw: Draw, role: str, shape: Shape, low: int, high: int) -> None:
    """Add a bound for each element, or one for all."""
    shape = shape if draw.flip() else ()
    draw.control(role, draw.numbers(math.prod(shape), low, high), shape)


def _add_n(draw: Draw) -> None:
    shape = draw.first_shape()
    for _ in range(draw.number(1, 3)):
        draw.data("inputs", shape)


def _select_v2(draw: Draw) -> None:
    shape = draw.first_shape()
    condition = draw.broadcastable_to(shape)
    draw.positions("condition", condition, 2)
    draw.data("t", shape)
    draw.data("e", draw.broadcastable_to(shape))


def _leaky_relu(draw: Draw) -> None:
    """Sample LeakyRelu or its gradient."""
    draw.attrs["alpha"] = draw.rng.choice((-2, -1, 0, 1, 2, 3))
    _of_one_shape(draw)


def _cast(draw: Draw) -> None:
    draw.attrs["DstT"] = draw.rng.choice(draw.op.permitted("A"))
    draw.data("x", draw.first_shape())


def _bitcast(draw: Draw) -> None:
    """Sample Bitcast, which takes two int32, low half first, as an int64, and the other way."""
    target = draw.attrs["type"] = draw.rng.choice(("int32", "int64"))
    source = draw.want_dtype_of("input")
    if source == "int64" or target == "int32":
        draw.data("input", draw.first_shape())
        return
    shape = (*draw.first_shape(0, 2), 2)
    draw.require_any_shape()
    numbers = draw.numbers(math.prod(shape) // 2, *VALUES)
    # The high half repeats the sign of the low one: with any other, the number is beyond 2**24.
    draw.control("input", [half for low in numbers for half in (low, -(low < 0))], shape)


def _bucketize(draw: Draw) -> None:
    draw.attrs["boundaries"] = tuple(sorted(draw.numbers(draw.number(0, 4), *VALUES)))
    draw.data("input", draw.first_shape())


def _bias_add(draw: Draw) -> None:
    """Sample BiasAdd or BiasAddV1: a bias for each channel; V1 has the channels last."""
    has_format = draw.op.name == "BiasAdd"
    channels_first = has_format and draw.flip(0.4)
    if has_format:
        draw.attrs["data_format"] = "NCHW" if channels_first else "NHWC"
    shape = draw.data("value", draw.first_shape(3 if channels_first else 2, 4))
    draw.data("bias", (shape[1 if channels_first else -1],))


def _cross(draw: Draw) -> None:
    """Sample Cross, of vectors of three elements."""
    shape = draw.first_shape(1)
    if draw.wanted_shape is not None and shape[-1] != 3:
        raise Unfit
    shape = (*shape[:-1], 3)
    draw.data("a", shape)
    draw.data("b", shape)


def _shape_in_attribute(draw: Draw) -> None:
    """Sample EnsureShape or PlaceholderWithDefault."""
    shape = draw.data("input", draw.first_shape())
    draw.attrs["shape"] = tuple(draw.with_unknown(shape))


_FORMATS: Final = ("NHWC", "NCHW", "HWNC", "HWCN")


def _choose_formats(draw: Draw) -> None:
    draw.attrs["src_format"] = draw.rng.choice(_FORMATS)
    draw.attrs["dst_format"] = draw.rng.choice(_FORMATS)


def _data_format_dim_map(draw: Draw) -> None:
    """Sample DataFormatDimMap, whose elements are dimensions, counted from either end."""
    _choose_formats(draw)
    shape = draw.first_shape()
    dimensions = draw.numbers(math.prod(shape), -4, 3)
    draw.want_dtype_of("x")
    draw.control("x", dimensions, shape, limit=4)


def _data_format_vec_permute(draw: Draw) -> None:
    """Sample DataFormatVecPermute: a number, or a pair, for each dimension of an image."""
    _choose_formats(draw)
    shape = draw.rng.choice(((4,), (4, 2)))
    draw.require(shape)
    draw.data("x", shape)


SAMPLERS: Final[Mapping[str, Sampler]] = {
    **dict.fromkeys(("ApproximateEqual", "Relu6Grad", "EluGrad"), _of_one_shape),
    **dict.fromkeys(("TanhGrad", "SigmoidGrad", "ReciprocalGrad", "InvGrad"), _gradient_product),
    **dict.fromkeys(("FloorDiv", "FloorMod", "TruncateDiv", "TruncateMod"), _division),
    **dict.fromkeys(("Div", "Mod"), _division),
    "Pow": _pow,
    **dict.fromkeys(("LeftShift", "RightShift"), _shift),
    "ClipByValue": _clip_by_value,
    "AddN": _add_n,
    "SelectV2": _select_v2,
    **dict.fromkeys(("LeakyRelu", "LeakyReluGrad"), _leaky_relu),
    "Cast": _cast,
    "Bitcast": _bitcast,
    "Bucketize": _bucketize,
    **dict.fromkeys(("BiasAdd", "BiasAddV1"), _bias_add),
    "Cross": _cross,
    **dict.fromkeys(("EnsureShape", "PlaceholderWithDefault"), _shape_in_attribute),
    "DataFormatDimMap": _data_format_dim_map,
    "DataFormatVecPermute": _data_format_vec_permute,
}
