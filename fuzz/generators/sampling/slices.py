"""Samples ops that pad a value, and that read or write a slice of it.

The module `draw` explains the terms: a *data* or *control* operand, and the `limit` of a control
operand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from litmusfuzz.fuzz.generators.sampling.draw import FACTORS, Draw

if TYPE_CHECKING:
    from collections.abc import Mapping

    from litmusfuzz.fuzz.generators.sampling.draw import Sampler, Shape


# --- padding -----------------------------------------------------------------------------


def _pad(draw: Draw) -> None:
    """Sample Pad or PadV2, which has the constant as an operand."""
    shape = draw.data("input", draw.first_shape(least_rank=1))
    paddings = draw.numbers(2 * len(shape), 0, 2)
    draw.control("paddings", paddings, (len(shape), 2), limit=3)
    if draw.op.name == "PadV2":
        draw.data("constant_values", ())


def _mirror_mode(draw: Draw) -> int:
    """Choose the mode of MirrorPad, and return how many elements cannot be repeated.

    REFLECT does not repeat the outermost element: padding is at most the extent less 1. SYMMETRIC
    repeats it: padding is at most the extent.
    """
    draw.attrs["mode"] = mode = draw.rng.choice(("REFLECT", "SYMMETRIC"))
    return 1 if mode == "REFLECT" else 0


def _mirror_pad(draw: Draw) -> None:
    not_repeated = _mirror_mode(draw)
    shape = draw.data("input", draw.first_shape(least_rank=1))
    paddings = [
        draw.number(0, min(2, extent - not_repeated)) for extent in shape for _side in range(2)
    ]
    draw.control("paddings", paddings, (len(shape), 2))


def _mirror_pad_grad(draw: Draw) -> None:
    """Sample MirrorPadGrad: its input has the extents of what was padded, padding included.

    In each dimension, an extent is an inner one and the padding of two sides. The inner extent is
    chosen such that two sides can have the padding, and then the padding of one side such that
    neither side has more than the inner extent permits.
    """
    not_repeated = _mirror_mode(draw)
    shape = draw.data("input", draw.first_shape(least_rank=1), FACTORS)
    paddings: list[int] = []
    for extent in shape:
        inner = draw.rng.choice(
            [k for k in range(1, extent + 1) if extent - k <= 2 * (k - not_repeated)]
        )
        padding, most = extent - inner, inner - not_repeated
        before = draw.rng.choice([k for k in range(padding + 1) if max(k, padding - k) <= most])
        paddings += [before, padding - before]
    draw.control("paddings", paddings, (len(shape), 2))


# --- slices ------------------------------------------------------------------------------


def _slice(draw: Draw) -> None:
    """Sample Slice; where no size is -1, the begin of each dimension may be computed."""
    shape = draw.data("input", draw.first_shape())
    begins = [draw.number(0, extent - 1) for extent in shape]
    sizes = [
        -1 if draw.flip(0.2) else draw.number(1, extent - begin)
        for extent, begin in zip(shape, begins, strict=True)
    ]
    limit = 0
    if -1 not in sizes:  # a size of -1 is the rest after begin, so that only this begin fits
        spare = min((extent - size for extent, size in zip(shape, sizes, strict=True)), default=0)
        limit = spare + 1
    draw.control("begin", begins, limit=limit)
    draw.control("size", sizes)


class _Entry(NamedTuple):
    """One entry of a strided slice.

    Parameters
    ----------
    begin, end, stride : int
    masks : tuple of str
        The masks whose bit is set for this entry.
    sizes : tuple of int
        The extents that the entry gives the slice: one, or none.
    """

    begin: int
    end: int
    stride: int
    masks: tuple[str, ...]
    sizes: tuple[int, ...]


_MASKS: Final = ("begin_mask", "end_mask", "shrink_axis_mask", "new_axis_mask", "ellipsis_mask")
_NEW_AXIS: Final = _Entry(0, 0, 1, ("new_axis_mask",), (1,))
_ELLIPSIS: Final = _Entry(0, 0, 1, ("ellipsis_mask",), ())


def _strided(draw: Draw, shape: Shape) -> tuple[list[_Entry], Shape]:
    """Choose a strided slice of a value, and set its masks.

    Bit i of a mask is about entry i of the slice. Most entries are for one dimension of the value,
    in order; a new axis is an entry for none, and an ellipsis for all that no other entry has.

    Returns
    -------
    entries : list of _Entry
    sizes : tuple of int
        Shape of the slice.
    """
    count = draw.number(0, len(shape))
    entries: list[_Entry] = []
    for extent in shape[:count]:
        if draw.flip(0.1):
            entries.append(_NEW_AXIS)
        entries.append(_entry(draw, extent))
    if count == len(shape) and _NEW_AXIS not in entries and draw.flip(0.2):
        entries.append(_ELLIPSIS)  # stands for no dimension, at the end
    for mask in _MASKS:
        draw.attrs[mask] = sum(1 << i for i, entry in enumerate(entries) if mask in entry.masks)
    return entries, (*(size for entry in entries for size in entry.sizes), *shape[count:])


def _entry(draw: Draw, extent: int) -> _Entry:
    """Choose the entry for a dimension of that extent."""
    if draw.flip(0.2):
        # Takes one position, at `begin`; its end is ignored.
        return _Entry(draw.rng.randrange(-extent, extent), 0, 1, ("shrink_axis_mask",), ())
    begin, end = draw.rng.randrange(-extent, extent), draw.rng.randrange(-extent, extent + 1)
    stride = draw.rng.choice((-2, -1, 1, 1, 2))
    masks = tuple(mask for mask in ("begin_mask", "end_mask") if draw.flip(0.3))
    first = None if "begin_mask" in masks else begin
    stop = None if "end_mask" in masks else end
    size = len(range(extent)[slice(first, stop, stride)])
    if not size:  # take the whole dimension: a result without elements is of no use
        masks = ("begin_mask", "end_mask")
        size = len(range(extent)[::stride])
    return _Entry(begin, end, stride, masks, (size,))


def _add_entries(draw: Draw, entries: list[_Entry]) -> None:
    draw.control("begin", [entry.begin for entry in entries])
    draw.control("end", [entry.end for entry in entries])
    draw.control("strides", [entry.stride for entry in entries])


def _strided_slice(draw: Draw) -> None:
    """Sample StridedSlice."""
    shape = draw.data("input", draw.first_shape(least_rank=1))
    entries, _ = _strided(draw, shape)
    _add_entries(draw, entries)


def _strided_slice_grad(draw: Draw) -> None:
    shape = draw.first_shape(least_rank=1)
    entries, sizes = _strided(draw, shape)
    draw.control("shape", shape)
    _add_entries(draw, entries)
    draw.data("dy", sizes)


def _strided_slice_update(draw: Draw) -> None:
    """Sample TensorStridedSliceUpdate."""
    _update(draw, draw.first_shape(least_rank=1))


def _strided_slice_assign(draw: Draw) -> None:
    """Sample ResourceStridedSliceAssign, often of one row, whose position may be computed."""
    shape = draw.first_shape(least_rank=1)
    if not draw.flip(0.4):
        _update(draw, shape)
        return
    draw.data("resource", shape)
    draw.attrs["shrink_axis_mask"] = 1  # the other masks have their default
    draw.positions("begin", (1,), shape[0])
    draw.control("end", [0])  # ignored for a shrunk axis
    draw.control("strides", [1])
    draw.data("value", shape[1:])


def _update(draw: Draw, shape: Shape) -> None:
    """Add a value of that shape, a slice of it, and what the slice becomes."""
    draw.data(draw.op.operands[0], shape)
    entries, sizes = _strided(draw, shape)
    _add_entries(draw, entries)
    draw.data("value", sizes)


SAMPLERS: Final[Mapping[str, Sampler]] = {
    **dict.fromkeys(("Pad", "PadV2"), _pad),
    "MirrorPad": _mirror_pad,
    "MirrorPadGrad": _mirror_pad_grad,
    "Slice": _slice,
    "StridedSlice": _strided_slice,
    "StridedSliceGrad": _strided_slice_grad,
    "TensorStridedSliceUpdate": _strided_slice_update,
    "ResourceStridedSliceAssign": _strided_slice_assign,
}
