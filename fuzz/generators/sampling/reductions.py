"""Samples ops that combine elements of one operand: along axes, by bins, by segments."""

from __future__ import annotations

import math
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from litmusfuzz.fuzz.generators.sampling.draw import FACTORS, SIZE_LIMIT, Draw

if TYPE_CHECKING:
    from collections.abc import Mapping

    from litmusfuzz.fuzz.generators.sampling.draw import Sampler


# --- along axes --------------------------------------------------------------------------


def _reduce(draw: Draw) -> None:
    """Sample Sum or another reduction along some axes."""
    draw.attrs["keep_dims"] = draw.flip()
    shape = draw.data("input", draw.first_shape(), FACTORS)
    if not shape:
        draw.control("reduction_indices", [])
        return
    draw.axes("reduction_indices", len(shape))


def _arg_extremum(draw: Draw) -> None:
    """Sample ArgMax or ArgMin."""
    draw.choose_index_dtype("output_type")
    shape = draw.data("input", draw.first_shape(1))
    draw.control("dimension", draw.axis(len(shape)), limit=len(shape))


def _cumulative(draw: Draw) -> None:
    """Sample Cumsum or Cumprod."""
    draw.attrs["exclusive"] = draw.flip()
    draw.attrs["reverse"] = draw.flip()
    shape = draw.data("x", draw.first_shape(1), FACTORS)
    draw.control("axis", draw.axis(len(shape)), limit=len(shape))


def _in_top_k(draw: Draw) -> None:
    """Sample InTopK, which has `k` as an attribute, or InTopKV2, which has it as an operand."""
    rows, classes = draw.first_shape(2, 2)
    draw.data("predictions", (rows, classes))
    draw.positions("targets", (rows,), classes)
    k = draw.number(0, classes + 1)
    if draw.op.name == "InTopK":
        draw.attrs["k"] = k
    else:
        draw.control("k", k)


def _nth_element(draw: Draw) -> None:
    draw.attrs["reverse"] = draw.flip()
    shape = draw.data("input", draw.first_shape(1))
    draw.positions("n", (), shape[-1])


def _bias_add_grad(draw: Draw) -> None:
    channels_first = draw.flip(0.4)
    draw.attrs["data_format"] = "NCHW" if channels_first else "NHWC"
    draw.data("out_backprop", draw.first_shape(3 if channels_first else 2, 4), FACTORS)


# --- by bins and segments ----------------------------------------------------------------


def _bincount(draw: Draw) -> None:
    """Sample Bincount or DenseBincount; a value that is no bin's is not counted."""
    dense = draw.op.name == "DenseBincount"
    if dense:
        draw.attrs["binary_output"] = draw.flip()
    shape = draw.first_shape(1, 2 if dense else 3)
    bins = draw.number(1, 5)
    draw.positions(draw.op.operands[0], shape, bins + 1)
    draw.control("size", bins, limit=SIZE_LIMIT)
    draw.data("weights", shape)


def _ascending_ids(draw: Draw, count: int) -> list[int]:
    """So many ids of segments in ascending order, some left out."""
    first = draw.number(0, 1)
    steps = [draw.rng.choice((0, 0, 1, 1, 2)) for _ in range(count - 1)]
    return list(accumulate([first, *steps]))


def _segment(draw: Draw) -> None:
    """Sample SegmentSum or its like."""
    shape = draw.data("data", draw.first_shape(1), FACTORS)
    draw.control("segment_ids", _ascending_ids(draw, shape[0]))


def _unsorted_segment(draw: Draw) -> None:
    """Sample UnsortedSegmentSum or its like; an id of -1 drops the element."""
    shape = draw.data("data", draw.first_shape(1), FACTORS)
    with_ids = shape[: draw.number(1, len(shape))]
    count = math.prod(with_ids)
    ids = draw.numbers(count, -1, count - 1)
    if draw.op.name.endswith(("Max", "Min")):
        ids = draw.rng.sample(range(count), count)  # an empty segment has an extreme float
    draw.control("segment_ids", ids, with_ids)
    draw.control("num_segments", count)


def _sparse_segment_sum(draw: Draw) -> None:
    """Sample SparseSegmentSum, with or without the number of segments."""
    shape = draw.data("data", draw.first_shape(1), FACTORS)
    ids = _ascending_ids(draw, draw.number(1, 4))
    draw.positions("indices", (len(ids),), shape[0])
    draw.control("segment_ids", ids)
    if "num_segments" in draw.op.operands:
        draw.control("num_segments", ids[-1] + draw.number(1, 3))


def _sparse_segment_sum_grad(draw: Draw) -> None:
    shape = draw.data("grad", draw.first_shape(1), FACTORS)
    count, rows = draw.number(1, 4), draw.number(1, 4)
    draw.positions("indices", (count,), rows)
    draw.control("segment_ids", sorted(draw.numbers(count, 0, shape[0] - 1)))
    draw.control("output_dim0", rows)


SAMPLERS: Final[Mapping[str, Sampler]] = {
    **dict.fromkeys(("Sum", "Prod", "Max", "Min", "All", "Any"), _reduce),
    **dict.fromkeys(("ArgMax", "ArgMin"), _arg_extremum),
    **dict.fromkeys(("Cumsum", "Cumprod"), _cumulative),
    **dict.fromkeys(("InTopK", "InTopKV2"), _in_top_k),
    "NthElement": _nth_element,
    "BiasAddGrad": _bias_add_grad,
    **dict.fromkeys(("Bincount", "DenseBincount"), _bincount),
    **{f"Segment{kind}": _segment for kind in ("Sum", "Prod", "Max", "Min")},
    **{f"UnsortedSegment{kind}": _unsorted_segment for kind in ("Sum", "Prod", "Max", "Min")},
    **{f"SparseSegmentSum{v}": _sparse_segment_sum for v in ("", "WithNumSegments")},
    "SparseSegmentSumGrad": _sparse_segment_sum_grad,
}
