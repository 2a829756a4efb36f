"""Bounds on the values of nodes, as far as they follow from the nodes themselves.

An index, axis, size or divisor may be computed from what was read, and still be one that fits: a
remainder is less than its modulus. `litmusfuzz.corpus.pure.definition.may_fail` asks for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Range = tuple[int, int]
"""The least and the greatest value that an element of a node may have."""

_FIRST: Final = frozenset(
    {"BroadcastTo", "Cast", "EnsureShape", "ExpandDims", "Identity", "Max", "Min", "Reshape"}
    | {"Slice", "Squeeze", "StridedSlice", "Tile", "Transpose"}
)
"""Ops whose elements are all elements of their first operand; Cast changes no integer."""
_ALL: Final = frozenset({"Pack"})
"""Ops whose elements are all elements of their operands."""


def _sum(a: Range, b: Range) -> Range:
    return a[0] + b[0], a[1] + b[1]


def _difference(a: Range, b: Range) -> Range:
    return a[0] - b[1], a[1] - b[0]


def _least(a: Range, b: Range) -> Range:
    return min(a[0], b[0]), min(a[1], b[1])


def _greatest(a: Range, b: Range) -> Range:
    return max(a[0], b[0]), max(a[1], b[1])


_ELEMENTWISE: Final[dict[str, Callable[[Range, Range], Range]]] = {
    "AddV2": _sum,
    "Sub": _difference,
    "Minimum": _least,
    "Maximum": _greatest,
}


def range_of(op: str, operands: Sequence[Range | None]) -> Range | None:
    """Bounds on the value of a pure op by those on its operands; None if there are none.

    The result of FloorMod has the sign of its second operand, and a smaller magnitude.
    """
    if op == "FloorMod":
        return _remainder(operands[1])
    if op in _FIRST:
        return operands[0]
    known = [each for each in operands if each is not None]
    if op in _ALL:
        return _union(known) if len(known) == len(operands) else None
    if op in _ELEMENTWISE and len(known) == 2:
        return _ELEMENTWISE[op](known[0], known[1])
    return None


def _remainder(divisor: Range | None) -> Range | None:
    if divisor is None or divisor[0] <= 0 <= divisor[1]:
        return None
    return (0, divisor[1] - 1) if divisor[0] > 0 else (divisor[0] + 1, 0)


def _union(ranges: Sequence[Range]) -> Range:
    return min(least for least, _ in ranges), max(greatest for _, greatest in ranges)
