"""Convolutions, pools and patches: ops on windows of images, in the format NHWC."""

from __future__ import annotations

from dataclasses import dataclass
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
from litmusfuzz.corpus.pure.shapes import mirror_pad

if TYPE_CHECKING:
    from collections.abc import Sequence

    from litmusfuzz.corpus.pure.arrays import Array

PADDING: Final = Field("padding", ("VALID", "SAME"))


@dataclass(frozen=True, slots=True)
class Grid:
    """Where the windows of a call lie.

    Parameters
    ----------
    pads : tuple of (int, int)
        Elements of padding before and behind each spatial dimension.
    reach : tuple of (out, window) int arrays
        Of each spatial dimension the padded positions of each window's elements.
    """

    pads: tuple[tuple[int, int], ...]
    reach: tuple[Array, ...]

    @property
    def out(self) -> tuple[int, ...]:
        """How many windows there are in each dimension."""
        return tuple(len(each) for each in self.reach)

    @property
    def places(self) -> tuple[Array, ...]:
        """The padded positions, each as a (*out, *window) int array that broadcasts."""
        rank = len(self.reach)
        found = []
        for axis, each in enumerate(self.reach):
            shape = [1] * (2 * rank)
            shape[axis], shape[rank + axis] = each.shape
            found.append(each.reshape(shape))
        return tuple(found)

    def padded(self, x: Array, fill: int = 0) -> Array:
        """`x` with its padding."""
        return np.pad(x, [(0, 0), *self.pads, (0, 0)], constant_values=fill)

    def seen(self, x: Array, fill: int = 0) -> Array:
        """The windows of `x`: a (batch, *out, *window, channels) int array."""
        found: Array = self.padded(x, fill)[self._taken]
        return found

    @property
    def _taken(self) -> Any:
        """The index of all windows of an image with its padding."""
        return (slice(None), *self.places, slice(None))

    def spread(self, windows: Array, shape: Sequence[int]) -> Array:
        """What `seen` took, added up where it came from; `shape` is that of ``x``."""
        out = self.padded(np.zeros(shape, np.int64))
        np.add.at(out, self._taken, windows)
        inner = tuple(
            slice(before, before + extent)
            for (before, _), extent in zip(self.pads, shape[1:-1], strict=True)
        )
        return out[(slice(None), *inner)]


def grid_of(
    call: Call,
    shape: Sequence[int],
    window: Sequence[int],
    strides: Sequence[int],
    rates: Sequence[int],
    operand: str,
) -> Grid:
    """The windows on an image of that shape.

    References
    ----------
    TensorFlow, ``framework/kernel_shape_util.cc``, ``GetWindowedOutputSizeVerbose``.
    """
    pads, reach = [], []
    for extent, count, stride, rate in zip(shape[1:-1], window, strides, rates, strict=True):
        effective = (count - 1) * rate + 1
        if call["padding"] == "VALID":
            out, before, after = (extent - effective + stride) // stride, 0, 0
            expect(extent >= effective, f"a window of {effective} in {extent}", operand)
        else:
            out = -(-extent // stride)
            total = max(0, (out - 1) * stride + effective - extent)
            before, after = total // 2, total - total // 2
        pads.append((before, after))
        reach.append(np.arange(out)[:, None] * stride + np.arange(count)[None, :] * rate)
    return Grid(tuple(pads), tuple(reach))


def middle_of(call: Call, name: str, length: int, operand: str) -> list[int]:
    """A list of numbers for batch, spatial dimensions and channels, of which ends are 1."""
    found = [int(v) for v in call[name]]
    fits = len(found) == length and found[0] == found[-1] == 1 and min(found) >= 1
    expect(fits, f"{name} must be [1, ..., 1] of {length} numbers, got {found}", operand)
    return found[1:-1]


def of_windows(seen: Array, filters: Array, *, depthwise: bool) -> Any:
    """The filters on windows: a (batch, *out, channels) int array."""
    if depthwise:
        bounded(np.einsum("bhwijc,ijcm->bhwcm", np.abs(seen), np.abs(filters)))
        out = np.einsum("bhwijc,ijcm->bhwcm", seen, filters)
        return out.reshape(*out.shape[:3], out.shape[3] * out.shape[4])
    rank = filters.ndim - 1
    axes = list(range(-rank, 0)), list(range(rank))
    bounded(np.tensordot(np.abs(seen), np.abs(filters), axes))
    return np.tensordot(seen, filters, axes)


def _convolution(rank: int, *, depthwise: bool = False) -> Any:
    def compute(call: Call, x: Array, filters: Array) -> Any:
        expect(x.ndim == rank, f"has {rank} dimensions", "input")
        expect(filters.ndim == rank, f"has {rank} dimensions", "filter")
        fits = filters.shape[-2] == x.shape[-1]
        expect(fits, f"takes {filters.shape[-2]} channels of {x.shape[-1]}", "filter")
        strides = middle_of(call, "strides", rank, "input")
        ones = [1] * (rank - 2)
        rates = middle_of(call, "dilations", rank, "input") if DILATIONS in call.op.fields else ones
        if depthwise:
            expect(strides[0] == strides[1], "has different strides", "input")
        grid = grid_of(call, x.shape, filters.shape[:-2], strides, rates, "filter")
        return of_windows(grid.seen(x), filters, depthwise=depthwise)

    return compute


def _of_any_rank(call: Call, x: Array, filters: Array) -> Any:
    expect(x.ndim in (4, 5), "has four or five dimensions", "input")
    return _convolution(x.ndim)(call, x, filters)


def _padded_first(call: Call, x: Array, paddings: Array, filters: Array) -> Any:
    expect(x.ndim == 4, "has four dimensions", "input")
    expect(paddings.shape == (4, 2), "has shape [4, 2]", "paddings")
    if len(x) > 1:  # of each other one TensorFlow 2.21 returns the first one's
        raise Inexact("more than one image", "input")
    padded = mirror_pad(call, x, paddings)
    if paddings[0].any() or paddings[3].any():
        raise Inexact("pads batches or channels", "paddings")
    return _convolution(4)(call, padded, filters)


def _convolved(call: Call, bounds: Sequence[int]) -> int:
    return max(1, bounds[0]) * max(1, bounds[1]) * size(call.inputs[1])


LOW: Final = -(1 << 40)
"""Stands for what padding never is the maximum of."""


def _largest(seen: Array, axes: tuple[int, ...]) -> Any:
    out = seen.max(axis=axes)
    if (out <= LOW // 2).any():
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
        window = middle_of(call, "ksize", 4, "input")
        strides = middle_of(call, "strides", 4, "input")
    grid = grid_of(call, x.shape, window, strides, (1, 1), "input")
    return _largest(grid.seen(x, LOW), (3, 4))


def _max_pool_3d(call: Call, x: Array) -> Any:
    expect(x.ndim == 5, "has five dimensions", "input")
    window, strides = middle_of(call, "ksize", 5, "input"), middle_of(call, "strides", 5, "input")
    grid = grid_of(call, x.shape, window, strides, (1, 1, 1), "input")
    return _largest(grid.seen(x, LOW), (4, 5, 6))


def _dilation(call: Call, x: Array, filters: Array) -> Any:
    expect(x.ndim == 4, "has four dimensions", "input")
    expect(filters.ndim == 3, "has three dimensions", "filter")
    expect(filters.shape[-1] == x.shape[-1], f"has {x.shape[-1]} channels", "filter")
    strides, rates = middle_of(call, "strides", 4, "input"), middle_of(call, "rates", 4, "input")
    grid = grid_of(call, x.shape, filters.shape[:2], strides, rates, "filter")
    return _largest(grid.seen(x, LOW) + filters, (3, 4))


def _patches(call: Call, x: Array) -> Any:
    expect(x.ndim == 4, "has four dimensions", "images")
    window = middle_of(call, "ksizes", 4, "images")
    strides, rates = middle_of(call, "strides", 4, "images"), middle_of(call, "rates", 4, "images")
    seen = grid_of(call, x.shape, window, strides, rates, "images").seen(x)
    return seen.reshape(*seen.shape[:3], -1)


def _volumes(call: Call, x: Array) -> Any:
    expect(x.ndim == 5, "has five dimensions", "input")
    window, strides = middle_of(call, "ksizes", 5, "input"), middle_of(call, "strides", 5, "input")
    seen = grid_of(call, x.shape, window, strides, (1, 1, 1), "input").seen(x)
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


FOUR: Final = (1, 1, 1, 1)
STRIDES: Final = Field("strides", "ints", FOUR)
DILATIONS: Final = Field("dilations", "ints", FOUR)
ROWS: Final = (
    PureOp(
        "Conv2D",
        "input:T filter:T -> T",
        _convolution(4),
        _convolved,
        (STRIDES, PADDING, DILATIONS),
        rank=lambda _: 4,
        dtypes=("int32", "float32", "float64"),
    ),
    PureOp(
        "Conv",
        "input:T filter:T -> T",
        _of_any_rank,
        _convolved,
        (Field("strides", "ints"), PADDING),
        rank=lambda call: len(call.type_of("input").shape),
        dtypes=("int32", "float32", "float64"),
    ),
    PureOp(
        "FusedPadConv2D",
        "input:F paddings:int32 filter:F -> F",
        _padded_first,
        lambda call, b: max(1, b[0]) * max(1, b[2]) * size(call.inputs[2]),
        (Field("mode", ("REFLECT", "SYMMETRIC")), STRIDES, PADDING),
        shape_from=("paddings",),
        rank=lambda _: 4,
    ),
    PureOp(
        "Conv3D",
        "input:F filter:F -> F",
        _convolution(5),
        _convolved,
        (Field("strides", "ints", (1, *FOUR)), PADDING),
        rank=lambda _: 5,
    ),
    PureOp(
        "DepthwiseConv2dNative",
        "input:F filter:F -> F",
        _convolution(4, depthwise=True),
        _convolved,
        (STRIDES, PADDING),
        rank=lambda _: 4,
    ),
    PureOp(
        "MaxPool",
        "input:T -> T",
        _max_pool,
        passes,
        (Field("ksize", "ints"), STRIDES, PADDING),
        rank=lambda _: 4,
    ),
    PureOp(
        "MaxPool3D",
        "input:float32 -> float32",
        _max_pool_3d,
        passes,
        (Field("ksize", "ints"), Field("strides", "ints", (1, *FOUR)), PADDING),
        rank=lambda _: 5,
    ),
    PureOp(
        "MaxPoolV2",
        "input:T ksize:int32 strides:int32 -> T",
        _max_pool,
        largest_of("input"),
        (PADDING,),
        shape_from=("ksize", "strides"),
        rank=lambda _: 4,
    ),
    PureOp(
        "Dilation2D",
        "input:T filter:T -> T",
        _dilation,
        lambda _, b: b[0] + b[1],
        (STRIDES, Field("rates", "ints", FOUR), PADDING),
        rank=lambda _: 4,
    ),
    PureOp(
        "ExtractImagePatches",
        "images:T -> T",
        _patches,
        passes,
        (Field("ksizes", "ints"), STRIDES, Field("rates", "ints", FOUR), PADDING),
        rank=lambda _: 4,
    ),
    PureOp(
        "ExtractVolumePatches",
        "input:T -> T",
        _volumes,
        passes,
        (Field("ksizes", "ints"), Field("strides", "ints", (1, *FOUR)), PADDING),
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
