"""Convolutions, pools and patches: ops on windows of images, in the format NHWC."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from litmusfuzz.corpus.pure.arrays import np
from litmusfuzz.corpus.pure.definition import (
    Call,
    Field,
    Inexact,
    PureOp,
    bounded,
    expect,
    largest_of,
    passes,
    size,
    vector,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from litmusfuzz.corpus.pure.arrays import Array

_PADDING: Final = Field("padding", ("VALID", "SAME"))


def _windows(
    call: Call,
    x: Array,
    window: Sequence[int],
    strides: Sequence[int],
    rates: Sequence[int],
    fill: int,
    operand: str,
) -> Any:
    """Each window of the spatial dimensions.

    Returns
    -------
    (batch, *out, *window, channels) int array

    References
    ----------
    TensorFlow, ``framework/kernel_shape_util.cc``, ``GetWindowedOutputSizeVerbose``.
    """
    spatial = x.shape[1:-1]
    pads, outs, reach = [(0, 0)], [], []
    for extent, count, stride, rate in zip(spatial, window, strides, rates, strict=True):
        effective = (count - 1) * rate + 1
        if call["padding"] == "VALID":
            out, before, after = (extent - effective + stride) // stride, 0, 0
            expect(extent >= effective, f"a window of {effective} in {extent}", operand)
        else:
            out = -(-extent // stride)
            total = max(0, (out - 1) * stride + effective - extent)
            before, after = total // 2, total - total // 2
        pads.append((before, after))
        outs.append(out)
        reach.append(np.arange(out)[:, None] * stride + np.arange(count)[None, :] * rate)
    x = np.pad(x, [*pads, (0, 0)], constant_values=fill)
    for position, places in enumerate(reach):
        # The window's own axes go to the end, before the channels.
        axis = 1 + position
        x = np.moveaxis(np.take(x, places, axis), axis + 1, -2)
    return x


def _list(call: Call, name: str, length: int, operand: str) -> list[int]:
    """A list of numbers for batch, spatial dimensions and channels, of which ends are 1."""
    found = [int(v) for v in call[name]]
    fits = len(found) == length and found[0] == found[-1] == 1 and min(found) >= 1
    expect(fits, f"{name} must be [1, ..., 1] of {length} numbers, got {found}", operand)
    return found[1:-1]


def _convolution(rank: int, *, depthwise: bool = False) -> Any:
    def compute(call: Call, x: Array, filters: Array) -> Any:
        expect(x.ndim == rank, f"has {rank} dimensions", "input")
        expect(filters.ndim == rank, f"has {rank} dimensions", "filter")
        fits = filters.shape[-2] == x.shape[-1]
        expect(fits, f"takes {filters.shape[-2]} channels of {x.shape[-1]}", "filter")
        strides = _list(call, "strides", rank, "input")
        ones = [1] * (rank - 2)
        rates = _list(call, "dilations", rank, "input") if _DILATIONS in call.op.fields else ones
        if depthwise:
            expect(strides[0] == strides[1], "has different strides", "input")
        window = filters.shape[:-2]
        seen = _windows(call, x, window, strides, rates, 0, "filter")
        if depthwise:
            bounded(np.einsum("bhwijc,ijcm->bhwcm", np.abs(seen), np.abs(filters)))
            out = np.einsum("bhwijc,ijcm->bhwcm", seen, filters)
            return out.reshape(*out.shape[:3], out.shape[3] * out.shape[4])
        axes = list(range(-1 - len(window), 0)), list(range(len(window) + 1))
        bounded(np.tensordot(np.abs(seen), np.abs(filters), axes))
        return np.tensordot(seen, filters, axes)

    return compute


def _convolved(call: Call, bounds: Sequence[int]) -> int:
    return max(1, bounds[0]) * max(1, bounds[1]) * size(call.inputs[1])


_LOW: Final = -(1 << 40)
"""Stands for what padding never is the maximum of."""


def _largest(seen: Array, axes: tuple[int, ...]) -> Any:
    out = seen.max(axis=axes)
    if (out <= _LOW // 2).any():
        raise Inexact("the maximum of padding alone")
    return out


def _max_pool(call: Call, x: Array, *sizes: Array) -> Any:
    expect(x.ndim == 4, "has four dimensions", "input")
    if sizes:
        window, strides = (
            vector(each, name, 4) for each, name in zip(sizes, ("ksize", "strides"), strict=True)
        )
        for name, each in (("ksize", window), ("strides", strides)):
            if not (each[0] == each[-1] == 1 and min(each) >= 1):
                raise Inexact(f"must be [1, n, m, 1], got {each}", name)
        window, strides = window[1:-1], strides[1:-1]
    else:
        window = _list(call, "ksize", 4, "input")
        strides = _list(call, "strides", 4, "input")
    seen = _windows(call, x, window, strides, (1, 1), _LOW, "input")
    return _largest(seen, (3, 4))


def _max_pool_3d(call: Call, x: Array) -> Any:
    expect(x.ndim == 5, "has five dimensions", "input")
    window, strides = _list(call, "ksize", 5, "input"), _list(call, "strides", 5, "input")
    return _largest(_windows(call, x, window, strides, (1, 1, 1), _LOW, "input"), (4, 5, 6))


def _dilation(call: Call, x: Array, filters: Array) -> Any:
    expect(x.ndim == 4, "has four dimensions", "input")
    expect(filters.ndim == 3, "has three dimensions", "filter")
    expect(filters.shape[-1] == x.shape[-1], f"has {x.shape[-1]} channels", "filter")
    strides, rates = _list(call, "strides", 4, "input"), _list(call, "rates", 4, "input")
    seen = _windows(call, x, filters.shape[:2], strides, rates, _LOW, "filter")
    return _largest(seen + filters, (3, 4))


def _patches(call: Call, x: Array) -> Any:
    expect(x.ndim == 4, "has four dimensions", "images")
    window = _list(call, "ksizes", 4, "images")
    strides, rates = _list(call, "strides", 4, "images"), _list(call, "rates", 4, "images")
    seen = _windows(call, x, window, strides, rates, 0, "images")
    return seen.reshape(*seen.shape[:3], -1)


def _volumes(call: Call, x: Array) -> Any:
    expect(x.ndim == 5, "has five dimensions", "input")
    window, strides = _list(call, "ksizes", 5, "input"), _list(call, "strides", 5, "input")
    seen = _windows(call, x, window, strides, (1, 1, 1), 0, "input")
    return seen.reshape(*seen.shape[:4], -1)


def _nearest(call: Call, x: Array, wanted: Array) -> Any:
    expect(x.ndim == 4, "has four dimensions", "images")
    height, width = vector(wanted, "size", 2)
    expect(height > 0 and width > 0, "holds a number below 1", "size")
    # By whole factors only: elsewhere a float decides which pixel is nearest.
    fits = height % x.shape[1] == 0 and width % x.shape[2] == 0
    if not fits:
        raise Inexact("is no multiple of the image's size", "size")
    return x.repeat(height // x.shape[1], axis=1).repeat(width // x.shape[2], axis=2)


_FOUR: Final = (1, 1, 1, 1)
_STRIDES: Final = Field("strides", "ints", _FOUR)
_DILATIONS: Final = Field("dilations", "ints", _FOUR)
ROWS: Final = (
    PureOp(
        "Conv2D",
        "input:T filter:T -> T",
        _convolution(4),
        _convolved,
        (_STRIDES, _PADDING, _DILATIONS),
        rank=lambda _: 4,
        dtypes=("int32", "float32", "float64"),
    ),
    PureOp(
        "Conv3D",
        "input:F filter:F -> F",
        _convolution(5),
        _convolved,
        (Field("strides", "ints", (1, *_FOUR)), _PADDING),
        rank=lambda _: 5,
    ),
    PureOp(
        "DepthwiseConv2dNative",
        "input:F filter:F -> F",
        _convolution(4, depthwise=True),
        _convolved,
        (_STRIDES, _PADDING),
        rank=lambda _: 4,
    ),
    PureOp(
        "MaxPool",
        "input:T -> T",
        _max_pool,
        passes,
        (Field("ksize", "ints"), _STRIDES, _PADDING),
        rank=lambda _: 4,
    ),
    PureOp(
        "MaxPool3D",
        "input:float32 -> float32",
        _max_pool_3d,
        passes,
        (Field("ksize", "ints"), Field("strides", "ints", (1, *_FOUR)), _PADDING),
        rank=lambda _: 5,
    ),
    PureOp(
        "MaxPoolV2",
        "input:T ksize:int32 strides:int32 -> T",
        _max_pool,
        largest_of("input"),
        (_PADDING,),
        shape_from=("ksize", "strides"),
        rank=lambda _: 4,
    ),
    PureOp(
        "Dilation2D",
        "input:T filter:T -> T",
        _dilation,
        lambda _, b: b[0] + b[1],
        (_STRIDES, Field("rates", "ints", _FOUR), _PADDING),
        rank=lambda _: 4,
    ),
    PureOp(
        "ExtractImagePatches",
        "images:T -> T",
        _patches,
        passes,
        (Field("ksizes", "ints"), _STRIDES, Field("rates", "ints", _FOUR), _PADDING),
        rank=lambda _: 4,
    ),
    PureOp(
        "ExtractVolumePatches",
        "input:T -> T",
        _volumes,
        passes,
        (Field("ksizes", "ints"), Field("strides", "ints", (1, *_FOUR)), _PADDING),
        rank=lambda _: 5,
    ),
    PureOp(
        "ResizeNearestNeighbor",
        "images:T size:int32 -> T",
        _nearest,
        largest_of("images"),
        shape_from=("size",),
        rank=lambda _: 4,
    ),
)
"""Rows of this family."""
