"""Samples ops on images: convolutions, pooling, dilation, resizing, and overlapping boxes.

An image has a batch dimension, two or three dimensions of space, and channels. An op slides a
*window* over its space: the filter of a convolution, or what a pooling takes together.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Final

from litmusfuzz.fuzz.generators.sampling.draw import FACTORS, TIES, Draw, Unfit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from litmusfuzz.fuzz.generators.sampling.draw import Sampler, Shape


# --- windows -----------------------------------------------------------------------------


def _window(
    draw: Draw, rank: int, *, rates_attr: str = "", stride_or_rate: bool = False
) -> list[int]:
    """Choose a window for images of `rank` dimensions, and its strides and padding.

    Parameters
    ----------
    draw : Draw
    rank : int
    rates_attr : str
        Attribute for the distance between elements of the window; "" if they are adjacent.
    stride_or_rate : bool
        True if strides are 1 where the distance is more than 1 in some dimension.

    Returns
    -------
    list of int
        Extents of the window in the dimensions of space.

    Raises
    ------
    Unfit
        If the wanted shape has another rank, or is too small for the window.
    """
    space = rank - 2
    window = draw.numbers(space, 1, 2)
    rates = [draw.number(1, 2) if rates_attr else 1 for _ in range(space)]
    strides = [draw.number(1, 2)] * space
    if stride_or_rate and max(rates) > 1:
        strides = [1] * space
    draw.attrs["strides"] = (1, *strides, 1)
    if rates_attr:
        draw.attrs[rates_attr] = (1, *rates, 1)
    draw.attrs["padding"] = draw.rng.choice(("VALID", "SAME"))
    if draw.wanted_shape is not None:
        if len(draw.wanted_shape) != rank:
            raise Unfit
        reach = _reach(window, rates)
        if any(e < r for e, r in zip(draw.wanted_shape[1:-1], reach, strict=True)):
            raise Unfit
    return window


def _reach(window: Sequence[int], rates: Sequence[int]) -> list[int]:
    """Extents of a window with the gaps between its elements."""
    return [(extent - 1) * rate + 1 for extent, rate in zip(window, rates, strict=True)]


def _ints(draw: Draw, attr: str) -> tuple[int, ...]:
    """An attribute that is a list, for all dimensions of an image."""
    values = draw.attrs[attr]
    assert isinstance(values, tuple)
    return values


def _window_counts(draw: Draw, shape: Shape, reach: Sequence[int]) -> list[int]:
    """Number of windows of that reach in each dimension of an image's space."""
    strides = _ints(draw, "strides")[1:-1]
    if draw.attrs["padding"] == "SAME":
        return [-(-extent // stride) for extent, stride in zip(shape[1:-1], strides, strict=True)]
    return [
        (extent - inner) // stride + 1
        for extent, stride, inner in zip(shape[1:-1], strides, reach, strict=True)
    ]


def _image(draw: Draw, rank: int) -> Shape:
    """Shape of an image: the wanted one, which `_window` has checked, or one for any window."""
    if draw.wanted_shape is not None:
        return draw.wanted_shape
    batch = draw.number(1, 2)
    return (batch, *draw.numbers(rank - 2, 3, 4), draw.number(1, 2))


def _set_ksize(draw: Draw, window: Sequence[int]) -> None:
    draw.attrs["ksize"] = (1, *window, 1)


def _add_ksize_and_strides(draw: Draw, window: Sequence[int]) -> None:
    """Add the window and its strides as operands: the V2 of an op has them so."""
    strides = _ints(draw, "strides")
    del draw.attrs["strides"]
    draw.control("ksize", [1, *window, 1])
    draw.control("strides", strides)


# --- convolutions ------------------------------------------------------------------------


def _convolution(draw: Draw, rank: int) -> None:
    """Sample Conv2D, Conv3D or DepthwiseConv2dNative; only the first with dilations."""
    rates_attr = "dilations" if draw.op.name == "Conv2D" else ""
    window = _window(draw, rank, rates_attr=rates_attr, stride_or_rate=True)
    shape = draw.data("input", _image(draw, rank), FACTORS)
    draw.data("filter", (*window, shape[-1], draw.number(1, 2)), FACTORS)


def _convolution_of_any_rank(draw: Draw) -> None:
    """Sample Conv, on images with two or three dimensions of space."""
    rank = len(draw.wanted_shape) if draw.wanted_shape is not None else draw.number(4, 5)
    if rank not in (4, 5):
        raise Unfit
    window = _window(draw, rank)
    shape = draw.data("input", _image(draw, rank), FACTORS)
    draw.data("filter", (*window, shape[-1], draw.number(1, 2)), FACTORS)


def _convolution_grad(draw: Draw) -> None:
    """Sample the gradient of a convolution, with respect to its images or its filters."""
    draw.require_any_shape()
    rank = 5 if "3D" in draw.op.name else 4
    window = _window(draw, rank)
    shape = _image(draw, rank)
    channels, multiplier = shape[-1], draw.number(1, 2)
    filters = (*window, channels, multiplier)
    depthwise = draw.op.name.startswith("Depthwise")
    channels_out = channels * multiplier if depthwise else multiplier
    gradient = (shape[0], *_window_counts(draw, shape, window), channels_out)
    if "Input" in draw.op.name:
        draw.control("input_sizes", shape)
        draw.data("filter", filters, FACTORS)
    else:
        draw.data("input", shape, FACTORS)
        draw.control("filter_sizes", filters)
    draw.data("out_backprop", gradient, FACTORS)


def _fused_pad_conv2d(draw: Draw) -> None:
    """Sample FusedPadConv2D, on one image, whose padding mirrors one row or column at most."""
    draw.attrs["mode"] = draw.rng.choice(("REFLECT", "SYMMETRIC"))
    window = _window(draw, 4)
    shape = (1, *_image(draw, 4)[1:])
    if min(shape[1:3]) < 2:
        raise Unfit
    draw.require(shape)
    draw.data("input", shape, FACTORS)
    draw.control("paddings", [0, 0, *draw.numbers(4, 0, 1), 0, 0], (4, 2))
    draw.data("filter", (*window, shape[-1], draw.number(1, 2)), FACTORS)


# --- pooling -----------------------------------------------------------------------------


def _max_pool(draw: Draw) -> None:
    """Sample MaxPool or MaxPool3D."""
    rank = 5 if draw.op.name == "MaxPool3D" else 4
    _set_ksize(draw, _window(draw, rank))
    draw.data("input", _image(draw, rank))


def _max_pool_v2(draw: Draw) -> None:
    window = _window(draw, 4)
    draw.data("input", _image(draw, 4))
    _add_ksize_and_strides(draw, window)


def _max_pool_with_argmax(draw: Draw) -> None:
    draw.choose_result()
    draw.choose_index_dtype("Targmax")
    draw.attrs["include_batch_in_index"] = draw.flip()
    _set_ksize(draw, _window(draw, 4))
    draw.data("input", _image(draw, 4))


def _max_pool_grad(draw: Draw) -> None:
    """Sample MaxPoolGrad, its second version, or the gradient of one of them."""
    draw.require_any_shape()
    window = _window(draw, 4)
    shape = _image(draw, 4)
    pooled = (shape[0], *_window_counts(draw, shape, window), shape[-1])
    draw.data("orig_input", shape, TIES)
    draw.data("orig_output", pooled, TIES)
    draw.data("grad", shape if "GradGrad" in draw.op.name else pooled, FACTORS)
    if draw.op.name.endswith("V2"):
        _add_ksize_and_strides(draw, window)
    else:
        _set_ksize(draw, window)


def _max_pool_grad_with_argmax(draw: Draw) -> None:
    draw.require_any_shape()
    window = _window(draw, 4)
    shape = _image(draw, 4)
    pooled = (shape[0], *_window_counts(draw, shape, window), shape[-1])
    _set_ksize(draw, window)
    draw.data("input", shape)
    draw.data("grad", pooled, FACTORS)
    draw.positions("argmax", pooled, math.prod(shape[1:]))


# --- dilation, patches, sizes ------------------------------------------------------------


def _dilation2d(draw: Draw) -> None:
    window = _window(draw, 4, rates_attr="rates")
    shape = draw.data("input", _image(draw, 4))
    draw.data("filter", (*window, shape[-1]))


def _dilation2d_grad(draw: Draw) -> None:
    """Sample Dilation2DBackpropInput or Dilation2DBackpropFilter."""
    draw.require_any_shape()
    window = _window(draw, 4, rates_attr="rates")
    shape = _image(draw, 4)
    reach = _reach(window, _ints(draw, "rates")[1:-1])
    draw.data("input", shape, FACTORS)
    draw.data("filter", (*window, shape[-1]), FACTORS)
    gradient = (shape[0], *_window_counts(draw, shape, reach), shape[-1])
    draw.data("out_backprop", gradient, FACTORS)


def _extract_image_patches(draw: Draw) -> None:
    window = _window(draw, 4, rates_attr="rates")
    draw.attrs["ksizes"] = (1, *window, 1)
    draw.data("images", _image(draw, 4))


def _extract_volume_patches(draw: Draw) -> None:
    draw.attrs["ksizes"] = (1, *_window(draw, 5), 1)
    draw.data("input", _image(draw, 5))


def _resize_nearest_neighbor(draw: Draw) -> None:
    """Sample ResizeNearestNeighbor by whole numbers, so that no pixel lies between two."""
    shape = draw.data("images", draw.first_shape(4, 4, 3))
    draw.control("size", [extent * draw.number(1, 3) for extent in shape[1:3]])


def _resize_nearest_neighbor_grad(draw: Draw) -> None:
    size = height, width = draw.number(1, 2), draw.number(1, 2)
    shape = draw.wanted_shape
    if shape is None:
        batch = draw.number(1, 2)
        space = [extent * draw.number(1, 3) for extent in size]
        shape = (batch, *space, draw.number(1, 2))
    elif len(shape) != 4 or shape[1] % height or shape[2] % width:
        raise Unfit
    draw.data("grads", shape, FACTORS)
    draw.control("size", size)


# --- boxes -------------------------------------------------------------------------------


def _non_max_suppression(draw: Draw) -> None:
    """Sample a version of NonMaxSuppression: all boxes, or the overlap of any two, and scores.

    Thresholds of overlap are integers, as all numbers are: boxes overlap by 0 to 1 of their area.
    """
    name = draw.op.name
    has_overlaps = name == "NonMaxSuppressionWithOverlaps"
    count = draw.number(1, 4)
    if draw.wanted_shape is not None:
        if len(draw.wanted_shape) != 2:
            raise Unfit
        count = draw.wanted_shape[0]
    if has_overlaps:
        draw.require((count, count))
        draw.data("overlaps", (count, count), TIES)
    else:
        draw.require((count, 4))
        draw.data("boxes", (count, 4), (-4, 4))
    draw.data("scores", (count,), TIES)
    draw.control("max_output_size", draw.number(0, count), limit=count + 1)
    if has_overlaps:
        draw.control("overlap_threshold", draw.number(-2, 2))
    elif name == "NonMaxSuppression":
        draw.attrs["iou_threshold"] = draw.number(0, 1)
    else:
        draw.control("iou_threshold", draw.number(0, 1), limit=2)
    if "score_threshold" in draw.op.operands:
        draw.control("score_threshold", draw.number(-3, 2))


SAMPLERS: Final[Mapping[str, Sampler]] = {
    "Conv2D": partial(_convolution, rank=4),
    "Conv3D": partial(_convolution, rank=5),
    "DepthwiseConv2dNative": partial(_convolution, rank=4),
    "Conv": _convolution_of_any_rank,
    **{
        f"{name}Backprop{to}{version}": _convolution_grad
        for name, version in (("Conv2D", ""), ("Conv3D", "V2"), ("DepthwiseConv2dNative", ""))
        for to in ("Input", "Filter")
    },
    "FusedPadConv2D": _fused_pad_conv2d,
    **dict.fromkeys(("MaxPool", "MaxPool3D"), _max_pool),
    "MaxPoolV2": _max_pool_v2,
    "MaxPoolWithArgmax": _max_pool_with_argmax,
    **{f"MaxPoolGrad{v}": _max_pool_grad for v in ("", "V2", "Grad", "GradV2")},
    "MaxPoolGradWithArgmax": _max_pool_grad_with_argmax,
    "Dilation2D": _dilation2d,
    **{f"Dilation2DBackprop{to}": _dilation2d_grad for to in ("Input", "Filter")},
    "ExtractImagePatches": _extract_image_patches,
    "ExtractVolumePatches": _extract_volume_patches,
    "ResizeNearestNeighbor": _resize_nearest_neighbor,
    "ResizeNearestNeighborGrad": _resize_nearest_neighbor_grad,
    **{f"NonMaxSuppression{v}": _non_max_suppression for v in ("", "V2", "V3", "WithOverlaps")},
}
