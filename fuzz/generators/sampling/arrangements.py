"""Samples ops that move elements: reverse, roll, and blocks of space into batch or depth and back.

Each sampler adds an op's operands and attributes to a `Draw`. The *space* of a tensor is what lies
between its batch and what comes after; for images that is height and width, before channels.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

from litmusfuzz.fuzz.generators.sampling.draw import VALUES, Draw

if TYPE_CHECKING:
    from collections.abc import Mapping

    from litmusfuzz.fuzz.generators.sampling.draw import Sampler, Shape


def _reverse(draw: Draw) -> None:
    """Sample Reverse, which has a bool for each dimension."""
    shape = draw.data("tensor", draw.first_shape())
    draw.positions("dims", (len(shape),), 2)


def _reverse_v2(draw: Draw) -> None:
    """Sample ReverseV2, which has a list of axes."""
    shape = draw.data("tensor", draw.first_shape(1))
    rank = len(shape)
    chosen = draw.rng.sample(range(rank), draw.number(0, rank))
    draw.control("axis", [axis - rank if draw.flip(0.3) else axis for axis in chosen])


def _reverse_sequence(draw: Draw) -> None:
    """Sample ReverseSequence, which reverses as many leading elements as a length says.

    Each element of the batch has a length, from 0 to the extent of the sequence.
    """
    shape = draw.data("input", draw.first_shape(2))
    sequence, batch = draw.rng.sample(range(len(shape)), 2)
    draw.attrs |= {"seq_dim": sequence, "batch_dim": batch}
    draw.positions("seq_lengths", (shape[batch],), shape[sequence] + 1)


def _roll(draw: Draw) -> None:
    """Sample Roll along one axis, or along several, which may be the same."""
    shape = draw.data("input", draw.first_shape(1))
    if draw.flip():
        draw.data("shift", (), VALUES)
        draw.control("axis", draw.axis(len(shape)))
    else:
        count = draw.number(1, 3)
        draw.data("shift", (count,), VALUES)
        draw.control("axis", [draw.axis(len(shape)) for _ in range(count)])


# --- blocks ------------------------------------------------------------------------------


class _Blocks(NamedTuple):
    """Extents of a block, of the batch of blocks, and of the dimensions after space."""

    block: list[int]
    batch: int
    rest: Shape


def _blocks(draw: Draw) -> _Blocks:
    """Choose the extents.

    SpaceToBatchND and BatchToSpaceND take the block's extents as an operand, one for each of one or
    two dimensions of space; any dimensions may follow. The other ops take images: a block is
    square, with its extent as an attribute, and only channels follow.
    """
    if not draw.op.name.endswith("ND"):
        size = draw.number(2, 3)
        draw.attrs["block_size"] = size
        return _Blocks([size, size], draw.number(1, 2), (draw.number(1, 2),))
    block = draw.numbers(draw.number(1, 2), 1, 3)
    return _Blocks(block, draw.number(1, 2), draw.any_shape(0, 1, 2))


def _margins(draw: Draw, extent: int, most: int) -> list[int]:
    """Choose the margins before and after the inner part of an extent, at most `most` each.

    The inner part is not empty.
    """
    before = draw.number(0, min(most, extent - 1))
    after = draw.number(0, min(most, extent - 1 - before))
    return [before, after]


def _space_to_batch(draw: Draw) -> None:
    """Sample SpaceToBatch or SpaceToBatchND, whose padded space consists of whole blocks."""
    block, batch, rest = _blocks(draw)
    space: list[int] = []
    paddings: list[int] = []
    for extent in block:
        padded = draw.number(1, 2) * extent
        margins = _margins(draw, padded, 2)
        space.append(padded - sum(margins))
        paddings += margins
    _add_blocks(draw, (batch, *space, *rest), block, "paddings", paddings)


def _batch_to_space(draw: Draw) -> None:
    """Sample BatchToSpace or BatchToSpaceND, whose batch is a multiple of a block's size.

    The crops are margins of the result's space.
    """
    block, batch, rest = _blocks(draw)
    space: list[int] = []
    crops: list[int] = []
    for extent in block:
        space.append(draw.number(1, 3))
        crops += _margins(draw, space[-1] * extent, 1)
    _add_blocks(draw, (batch * math.prod(block), *space, *rest), block, "crops", crops)


def _add_blocks(draw: Draw, shape: Shape, block: list[int], role: str, margins: list[int]) -> None:
    """Add the input, the block's extents if they are an operand, and the margins as `role`."""
    draw.require(shape)
    draw.data("input", shape)
    if draw.op.name.endswith("ND"):
        draw.control("block_shape", block)
    draw.control(role, margins, (len(block), 2))


def _depth(draw: Draw) -> None:
    """Sample SpaceToDepth or DepthToSpace, on images with channels last."""
    block = draw.number(2, 3)
    draw.attrs["block_size"] = block
    batch, height, width, channels = draw.numbers(4, 1, 2)
    if draw.op.name == "DepthToSpace":
        shape = (batch, height, width, channels * block * block)
    else:
        shape = (batch, height * block, width * block, channels)
    draw.require(shape)
    draw.data("input", shape)


SAMPLERS: Final[Mapping[str, Sampler]] = {
    "Reverse": _reverse,
    "ReverseV2": _reverse_v2,
    "ReverseSequence": _reverse_sequence,
    "Roll": _roll,
    **dict.fromkeys(("SpaceToBatch", "SpaceToBatchND"), _space_to_batch),
    **dict.fromkeys(("BatchToSpace", "BatchToSpaceND"), _batch_to_space),
    **dict.fromkeys(("SpaceToDepth", "DepthToSpace"), _depth),
}
