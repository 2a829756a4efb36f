"""Suppression of boxes that overlap: the best boxes, in the order of their scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from litmusfuzz.corpus.pure.arrays import np
from litmusfuzz.corpus.pure.definition import Call, Field, PureOp, elements, expect, scalar

if TYPE_CHECKING:
    from collections.abc import Callable

    from litmusfuzz.corpus.pure.arrays import Array


def _overlaps(boxes: Array) -> Callable[[int, int], bool]:
    """Whether two boxes share some area; corners may be given in any order."""
    low = np.minimum(boxes[:, :2], boxes[:, 2:])
    high = np.maximum(boxes[:, :2], boxes[:, 2:])

    def share(one: int, other: int) -> bool:
        extent = np.minimum(high[one], high[other]) - np.maximum(low[one], low[other])
        return bool((extent > 0).all())

    return share


def _best(
    scores: Array, most: Array, least: int | None, suppresses: Callable[[int, int], bool]
) -> Array:
    """The boxes that no better box suppresses; of equal scores the first box is the best."""
    count = scalar(most, "max_output_size")
    expect(count >= 0, "is negative", "max_output_size")
    chosen: list[int] = []
    for box in sorted(range(len(scores)), key=lambda each: (-int(scores[each]), each)):
        if len(chosen) == count or (least is not None and scores[box] <= least):
            break
        if not any(suppresses(box, other) for other in chosen):
            chosen.append(box)
    return np.array(chosen, np.int64)


def _suppressed(call: Call, boxes: Array, scores: Array, most: Array, *limits: Array) -> Any:
    expect(boxes.ndim == 2 and boxes.shape[1] == 4, "has four numbers for each", "boxes")
    expect(scores.shape == boxes.shape[:1], f"has {len(boxes)} elements", "scores")
    ratio = scalar(limits[0], "iou_threshold") if limits else call["iou_threshold"]
    # Other shares are no integers. No share is more than 1, which is that of a box and itself.
    expect(0 <= ratio <= 1, "must be 0 or 1", "iou_threshold" if limits else "")
    least = scalar(limits[1], "score_threshold") if len(limits) > 1 else None
    share = _overlaps(boxes)
    return _best(scores, most, least, lambda one, other: ratio == 0 and share(one, other))


def _suppressed_by_table(
    _: Call, overlaps: Array, scores: Array, most: Array, limit_: Array, least: Array
) -> Any:
    expect(overlaps.ndim == 2, "must be a matrix", "overlaps")
    expect(overlaps.shape[0] == overlaps.shape[1], "must be square", "overlaps")
    expect(scores.shape == overlaps.shape[:1], f"has {len(overlaps)} elements", "scores")
    limit = scalar(limit_, "overlap_threshold")
    return _best(
        scores,
        most,
        scalar(least, "score_threshold"),
        lambda one, other: bool(overlaps[one, other] > limit),
    )


_BOXES: Final = "boxes:float32 scores:float32 max_output_size:int32"


def _row(name: str, signature: str, compute: Callable[..., Any], *fields: Field) -> PureOp:
    operands = tuple(each.partition(":")[0] for each in signature.split())
    return PureOp(
        name,
        f"{signature} -> int32",
        compute,
        elements,
        fields,
        shape_from=operands,
        rank=lambda _: 1,
    )


ROWS: Final = (
    _row("NonMaxSuppression", _BOXES, _suppressed, Field("iou_threshold", "int", 0)),
    _row("NonMaxSuppressionV2", f"{_BOXES} iou_threshold:float32", _suppressed),
    _row(
        "NonMaxSuppressionV3",
        f"{_BOXES} iou_threshold:float32 score_threshold:float32",
        _suppressed,
    ),
    _row(
        "NonMaxSuppressionWithOverlaps",
        "overlaps:float32 scores:float32 max_output_size:int32 overlap_threshold:float32 "
        "score_threshold:float32",
        _suppressed_by_table,
    ),
)
"""Rows of this family."""
