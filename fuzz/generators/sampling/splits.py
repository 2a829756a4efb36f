"""Samples ops that split a value, and others with several results, of which a call yields one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from litmusfuzz.fuzz.generators.sampling.draw import FACTORS, TIES, Draw

if TYPE_CHECKING:
    from collections.abc import Mapping

    from litmusfuzz.fuzz.generators.sampling.draw import Sampler


def _split(draw: Draw) -> None:
    """Sample Split, into parts of one size."""
    shape = draw.first_shape(1)
    axis = draw.axis(len(shape))
    count = draw.rng.choice([n for n in range(1, shape[axis] + 1) if shape[axis] % n == 0])
    draw.attrs["num_split"] = count
    draw.choose_result(count)
    draw.control("split_dim", axis)
    draw.data("value", shape)


def _split_v(draw: Draw) -> None:
    """Sample SplitV, into parts of given sizes, which may be empty; -1 is what is left."""
    shape = draw.data("value", draw.first_shape(1))
    axis = draw.axis(len(shape))
    cuts = sorted(draw.numbers(draw.number(0, 2), 0, shape[axis]))
    sizes = [b - a for a, b in zip([0, *cuts], [*cuts, shape[axis]], strict=True)]
    draw.attrs["num_split"] = len(sizes)
    draw.choose_result(len(sizes))
    if len(sizes) > 1 and draw.flip(0.3):
        sizes[draw.rng.randrange(len(sizes))] = -1
    draw.control("size_splits", sizes)
    draw.control("split_dim", axis)


def _unpack(draw: Draw) -> None:
    shape = draw.data("value", draw.first_shape(1))
    axis = draw.axis(len(shape))
    draw.attrs |= {"axis": axis, "num": shape[axis]}
    draw.choose_result(shape[axis])


def _dynamic_partition(draw: Draw) -> None:
    shape = draw.data("data", draw.first_shape(1))
    count = draw.number(1, 3)
    draw.attrs["num_partitions"] = count
    draw.choose_result(count)
    draw.positions("partitions", shape[: draw.number(1, len(shape))], count)


def _unique(draw: Draw) -> None:
    """Sample Unique, with counts or without, of the elements of a vector."""
    draw.choose_index_dtype("out_idx")
    draw.choose_result()
    draw.data("x", draw.first_shape(1, 1), TIES)


def _unique_v2(draw: Draw) -> None:
    """Sample UniqueV2, with counts or without, along an axis; a vector needs to name none."""
    draw.choose_index_dtype("out_idx")
    draw.choose_result()
    shape = draw.data("x", draw.first_shape(1), TIES)
    names_none = len(shape) == 1 and draw.flip()
    draw.control("axis", [] if names_none else [draw.axis(len(shape))])


def _list_diff(draw: Draw) -> None:
    draw.choose_index_dtype("out_idx")
    draw.choose_result()
    draw.data("x", draw.first_shape(1, 1), TIES)
    draw.data("y", (draw.number(0, 3),), TIES)


def _top_k_v2(draw: Draw) -> None:
    draw.choose_result()
    shape = draw.data("input", draw.first_shape(1), FACTORS)
    k = draw.number(0, shape[-1])
    draw.choose_index_dtype("index_type")
    draw.control("k", k, limit=shape[-1] + 1)


SAMPLERS: Final[Mapping[str, Sampler]] = {
    "Split": _split,
    "SplitV": _split_v,
    "Unpack": _unpack,
    "DynamicPartition": _dynamic_partition,
    **dict.fromkeys(("Unique", "UniqueWithCounts"), _unique),
    **dict.fromkeys(("UniqueV2", "UniqueWithCountsV2"), _unique_v2),
    "ListDiff": _list_diff,
    "TopKV2": _top_k_v2,
}
