"""Gradients of ops on windows of images (`images`), as TensorFlow's own kernels define them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from litmusfuzz.corpus.pure.arrays import np
from litmusfuzz.corpus.pure.definition import (
    Call,
    Fails,
    Field,
    Inexact,
    PureOp,
    bounded,
    expect,
    largest_of,
    size,
    vector,
)
from litmusfuzz.corpus.pure.images import (
    FOUR,
    LOW,
    PADDING,
    STRIDES,
    Grid,
    grid_of,
    middle_of,
)
from litmusfuzz.corpus.tensors import MAX_ELEMENTS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from litmusfuzz.corpus.pure.arrays import Array

_Layout = tuple[int, bool]
"""Rank of the images, and whether each channel has filters of its own."""


def _sizes(value: Array, operand: str, rank: int) -> tuple[int, ...]:
    """The shape that an operand holds."""
    if value.ndim != 1 or len(value) != rank:
        raise Inexact(f"must hold {rank} numbers, got shape {list(value.shape)}", operand)
    found = vector(value, operand)
    if min(found) < 1 or int(np.prod(found, dtype=object)) > MAX_ELEMENTS:
        raise Inexact(f"holds no sizes: {found}, which no kernel always refuses", operand)
    return tuple(found)


def _fits(
    call: Call,
    image: Sequence[int],
    filters: Sequence[int],
    grad: Sequence[int],
    operand: str,
    layout: _Layout,
) -> Grid:
    """The windows of the convolution whose gradient is taken; the shapes must be its own.

    Where they are not, Conv2D's gradients fail. Others end the process in TensorFlow 2.21.
    """
    rank, depthwise = layout
    strides = middle_of(call, "strides", rank, operand)
    if depthwise:
        expect(strides[0] == strides[1], "has different strides", operand)
    if not depthwise and image[-1] != filters[-2] and image[-1] % filters[-2] == 0:
        raise Inexact("has groups of channels", operand)
    try:
        expect(image[-1] == filters[-2], f"{filters[-2]} channels of {image[-1]}", operand)
        grid = grid_of(call, image, filters[:-2], strides, [1] * (rank - 2), operand)
        channels = filters[-1] * (filters[-2] if depthwise else 1)
        wanted = (image[0], *grid.out, channels)
        expect(tuple(grad) == wanted, f"has shape {list(wanted)}, got {list(grad)}", operand)
    except Fails as error:
        if rank == 4 and not depthwise:
            raise
        raise Inexact(error.message, operand) from None
    return grid


def _to_input(layout: _Layout) -> Callable[..., Any]:
    """The gradient of a convolution with respect to its images."""
    rank = layout[0]

    def compute(call: Call, wanted: Array, filters: Array, grad: Array) -> Any:
        expect(filters.ndim == rank, f"has {rank} dimensions", "filter")
        expect(grad.ndim == rank, f"has {rank} dimensions", "out_backprop")
        shape = _sizes(wanted, "input_sizes", rank)
        grid = _fits(call, shape, filters.shape, grad.shape, "input_sizes", layout)
        bounded(grid.spread(_back(np.abs(grad), np.abs(filters), layout), shape))
        return grid.spread(_back(grad, filters, layout), shape)

    return compute


def _back(grad: Array, filters: Array, layout: _Layout) -> Array:
    """What each window of the images gets: a (batch, *out, *window, channels) int array."""
    if layout[1]:
        grad = grad.reshape(*grad.shape[:3], *filters.shape[2:])
        found: Array = np.einsum("bhwcm,ijcm->bhwijc", grad, filters)
        return found
    product: Array = np.tensordot(grad, filters, ([-1], [-1]))
    return product


def _to_filter(layout: _Layout) -> Callable[..., Any]:
    """The gradient of a convolution with respect to its filters."""
    rank, depthwise = layout

    def compute(call: Call, x: Array, wanted: Array, grad: Array) -> Any:
        expect(x.ndim == rank, f"has {rank} dimensions", "input")
        expect(grad.ndim == rank, f"has {rank} dimensions", "out_backprop")
        shape = _sizes(wanted, "filter_sizes", rank)
        grid = _fits(call, x.shape, shape, grad.shape, "filter_sizes", layout)

        def summed(seen: Array, back: Array) -> Any:
            if depthwise:
                back = back.reshape(*back.shape[:3], *shape[2:])
                return np.einsum("bhwijc,bhwcm->ijcm", seen, back)
            axes = list(range(rank - 1))
            return np.tensordot(seen, back, (axes, axes))

        seen = grid.seen(x)
        bounded(summed(np.abs(seen), np.abs(grad)))
        return summed(seen, grad)

    return compute


def _times(one: int, two: int) -> Callable[[Call, Sequence[int]], int]:
    """The bound of sums of products of two operands, each as long as the smaller of them at most.

    Each element of one operand is in a sum once.
    """

    def bound(call: Call, bounds: Sequence[int]) -> int:
        count = min(size(call.inputs[one]), size(call.inputs[two]))
        return max(1, bounds[one]) * max(1, bounds[two]) * count

    return bound


# --- maxima ------------------------------------------------------------------------------


def _pooled(call: Call, x: Array, sizes: Sequence[Array], rank: int) -> tuple[Grid, Sequence[int]]:
    """The windows of a pool, and their extents."""
    expect(x.ndim == rank, f"has {rank} dimensions", "orig_input")
    if sizes:
        window, strides = (
            vector(each, name, 4) for each, name in zip(sizes, ("ksize", "strides"), strict=True)
        )
        for name, each in (("ksize", window), ("strides", strides)):
            if not (each[0] == each[-1] == 1 and min(each) >= 1):
                raise Inexact(f"must be [1, n, m, 1], got {each}", name)
        window, strides = window[1:-1], strides[1:-1]
    else:
        window = middle_of(call, "ksize", rank, "orig_input")
        strides = middle_of(call, "strides", rank, "orig_input")
    operand = "ksize" if sizes else "orig_input"
    return grid_of(call, x.shape, window, strides, [1] * (rank - 2), operand), window


def _flat(seen: Array, space: int) -> Array:
    """Windows with their elements in one dimension, before the channels."""
    out = seen.shape[: 1 + space]
    return seen.reshape(*out, -1, seen.shape[-1])


def _first_of(seen: Array, space: int) -> Array:
    """1 at the first largest element of each window and channel, else 0; of the windows' shape."""
    flat = _flat(seen, space)
    first = flat.argmax(axis=-2)[..., None, :]
    if (np.take_along_axis(flat, first, -2) <= LOW // 2).any():
        raise Inexact("the maximum of padding alone")
    chosen: Array = np.arange(flat.shape[-2])[:, None] == first
    found: Array = chosen.astype(np.int64).reshape(seen.shape)
    return found


def _wide(grad: Array, space: int) -> Array:
    """An element for each window and channel, for each element of the window."""
    return grad.reshape(*grad.shape[:-1], *[1] * space, grad.shape[-1])


def _same_out(grid: Grid, x: Array, **others: Array) -> None:
    wanted = (x.shape[0], *grid.out, x.shape[-1])
    for name, each in others.items():
        fits = each.shape == wanted
        expect(fits, f"has shape {list(wanted)}, got {list(each.shape)}", name)


def _max_pool_grad(call: Call, x: Array, out: Array, grad: Array, *sizes: Array) -> Any:
    """Each window gives its gradient to its first largest element."""
    grid, _ = _pooled(call, x, sizes, 4)
    _same_out(grid, x, orig_output=out, grad=grad)
    chosen = _first_of(grid.seen(x, LOW), 2)
    bounded(grid.spread(chosen * np.abs(_wide(grad, 2)), x.shape))
    return grid.spread(chosen * _wide(grad, 2), x.shape)


def _max_pool_grad_grad(call: Call, x: Array, out: Array, grad: Array, *sizes: Array) -> Any:
    """Each window takes the gradient of its first element that is the output; 0 if none is."""
    grid, _ = _pooled(call, x, sizes, 4)
    _same_out(grid, x, orig_output=out)
    expect(grad.shape == x.shape, f"has shape {list(x.shape)}", "grad")
    same = _flat(grid.seen(x, LOW), 2) == out[..., None, :]
    first = same.argmax(axis=-2)[..., None, :]
    taken = np.take_along_axis(_flat(grid.seen(grad), 2), first, -2)
    return np.where(np.take_along_axis(same, first, -2), taken, 0)[..., 0, :]


def _dilated(call: Call, x: Array, filters: Array, grad: Array) -> tuple[Grid, Array, Array]:
    """The windows, those elements that are the first largest sums, and what each one gets."""
    expect(x.ndim == 4, "has four dimensions", "input")
    expect(filters.ndim == 3, "has three dimensions", "filter")
    expect(filters.shape[-1] == x.shape[-1], f"has {x.shape[-1]} channels", "filter")
    strides, rates = middle_of(call, "strides", 4, "input"), middle_of(call, "rates", 4, "input")
    grid = grid_of(call, x.shape, filters.shape[:2], strides, rates, "filter")
    _same_out(grid, x, out_backprop=grad)
    chosen = _first_of(grid.seen(x, LOW) + filters, 2)
    return grid, chosen, chosen * _wide(grad, 2)


def _dilation_to_input(call: Call, x: Array, filters: Array, grad: Array) -> Any:
    grid, _, back = _dilated(call, x, filters, grad)
    bounded(grid.spread(np.abs(back), x.shape))
    return grid.spread(back, x.shape)


def _dilation_to_filter(call: Call, x: Array, filters: Array, grad: Array) -> Any:
    _, _, back = _dilated(call, x, filters, grad)
    bounded(np.abs(back).sum(axis=(0, 1, 2)))
    return back.sum(axis=(0, 1, 2))


def _nearest_grad(_: Call, grad: Array, wanted: Array) -> Any:
    expect(grad.ndim == 4, "has four dimensions", "grads")
    height, width = vector(wanted, "size", 2)
    expect(height > 0 and width > 0, "holds a number below 1", "size")
    # By whole factors only: elsewhere a float decides which pixel is nearest.
    if grad.shape[1] % height or grad.shape[2] % width:
        raise Inexact("does not divide the gradient's size", "size")
    batch, _, _, depth = grad.shape
    parts = grad.reshape(
        batch, height, grad.shape[1] // height, width, grad.shape[2] // width, depth
    )
    bounded(np.abs(parts).sum(axis=(2, 4)))
    return parts.sum(axis=(2, 4))


def _summed(position: int) -> Callable[[Call, Sequence[int]], int]:
    """The bound of sums of elements of one operand."""
    return lambda call, bounds: max(1, bounds[position]) * size(call.inputs[position])


def _by_argmax(call: Call, x: Array, grad: Array, argmax: Array) -> Any:
    """Each gradient goes to the element of its image that a position names."""
    grid, _ = _pooled(call, x, (), 4)
    _same_out(grid, x, grad=grad, argmax=argmax)
    image = int(np.prod(x.shape[1:]))
    if ((argmax < 0) | (argmax >= image)).any():  # TensorFlow 2.21 ends the process
        raise Inexact("names an element outside the image", "argmax")
    out, magnitudes = np.zeros((len(x), image), np.int64), np.zeros((len(x), image), np.int64)
    for row, (places, each) in enumerate(zip(argmax, grad, strict=True)):
        np.add.at(out[row], places.ravel(), each.ravel())
        np.add.at(magnitudes[row], places.ravel(), np.abs(each.ravel()))
    bounded(magnitudes)
    return out.reshape(x.shape)


_FIVE: Final = Field("strides", "ints", (1, *FOUR))
_KSIZE: Final = Field("ksize", "ints")
_RATES: Final = Field("rates", "ints", FOUR)
_POOL: Final = "orig_input:T orig_output:T grad:T"
_POOL_SIZES: Final = ("ksize", "strides")


def _pool_row(name: str, compute: Callable[..., Any], largest: Any, *, operands: bool) -> PureOp:
    """A gradient of MaxPool, whose window is an attribute or an operand."""
    given = f"{_POOL} ksize:int32 strides:int32" if operands else _POOL
    return PureOp(
        name,
        f"{given} -> T",
        compute,
        largest,
        (PADDING,) if operands else (_KSIZE, STRIDES, PADDING),
        divisors=_POOL_SIZES if operands else (),
        rank=lambda _: 4,
        kernel=name.removesuffix("V2"),
    )


ROWS: Final = (
    *(
        PureOp(
            name,
            f"input_sizes:{kind} filter:T out_backprop:T -> T",
            _to_input(layout),
            _times(1, 2),
            (strides, PADDING),
            shape_from=("input_sizes",),
            rank=lambda call: len(call.type_of("filter").shape),
            dtypes=dtypes,
        )
        for name, kind, layout, strides, dtypes in (
            ("Conv2DBackpropInput", "int32", (4, False), STRIDES, ("int32", "float32", "float64")),
            ("Conv3DBackpropInputV2", "I", (5, False), _FIVE, ("float32", "float64")),
            (
                "DepthwiseConv2dNativeBackpropInput",
                "int32",
                (4, True),
                STRIDES,
                ("float32", "float64"),
            ),
        )
    ),
    *(
        PureOp(
            name,
            "input:F filter_sizes:int32 out_backprop:F -> F",
            _to_filter(layout),
            _times(0, 2),
            (strides, PADDING),
            shape_from=("filter_sizes",),
            rank=lambda call: len(call.type_of("input").shape),
        )
        for name, layout, strides in (
            ("Conv2DBackpropFilter", (4, False), STRIDES),
            ("Conv3DBackpropFilterV2", (5, False), _FIVE),
            ("DepthwiseConv2dNativeBackpropFilter", (4, True), STRIDES),
        )
    ),
    _pool_row("MaxPoolGrad", _max_pool_grad, _summed(2), operands=False),
    _pool_row("MaxPoolGradV2", _max_pool_grad, _summed(2), operands=True),
    _pool_row("MaxPoolGradGrad", _max_pool_grad_grad, largest_of("grad"), operands=False),
    _pool_row("MaxPoolGradGradV2", _max_pool_grad_grad, largest_of("grad"), operands=True),
    *(
        PureOp(
            f"Dilation2DBackprop{to}",
            "input:T filter:T out_backprop:T -> T",
            compute,
            _summed(2),
            (STRIDES, _RATES, PADDING),
            rank=rank,
        )
        for to, compute, rank in (
            ("Input", _dilation_to_input, lambda _: 4),
            ("Filter", _dilation_to_filter, lambda _: 3),
        )
    ),
    PureOp(
        "MaxPoolGradWithArgmax",
        "input:T grad:T argmax:int64 -> T",
        _by_argmax,
        _summed(1),
        (_KSIZE, STRIDES, PADDING),
        index=("argmax",),
        rank=lambda _: 4,
    ),
    PureOp(
        "ResizeNearestNeighborGrad",
        "grads:T size:int32 -> T",
        _nearest_grad,
        _summed(0),
        shape_from=("size",),
        rank=lambda _: 4,
        dtypes=("int32", "float32", "float64"),
    ),
)
"""Rows of this family."""
