"""Indices that are operands: which of them a program over references can have.

A test's op fails where an index leaves its range; a traced system clamps the index, or drops the
write. Such a test is no program over references. One is whose indices stay in range whatever is
read: constants, chosen from constants by what was read, or clamped.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from litmusfuzz.corpus.model import captures_of
from litmusfuzz.corpus.ops import ConstAttrs
from litmusfuzz.fuzz.executors.protocol import Refused

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest, Node

_Range = tuple[float, float]
"""The smallest and the largest element that a value can have."""


def check_indices(test: LitmusTest) -> None:
    """Check that all indices are vectors of rows that stay in range.

    Raises
    ------
    Refused
        Naming the op.
    """
    ranges = _Ranges(test)
    for node in test.nodes:
        if not node.definition.computed:
            continue
        shape = test.type_of(node.inputs[0]).shape
        if node.op == "ResourceStridedSliceAssign":
            raise Refused(f"{node.name}, a slice whose bounds are operands")
        if len(shape) != (2 if node.definition.nd else 1) or (node.definition.nd and shape[1] > 1):
            raise Refused(f"{node.name}, whose indices have the shape {list(shape)}")
        least, most = ranges.of(node.inputs[0])
        if least < 0 or most >= test.type_of(node.resources[0]).shape[0]:
            raise Refused(f"{node.name}, which fails if an index leaves its range")


class _Ranges:
    """The ranges of values of a test."""

    def __init__(self, test: LitmusTest) -> None:
        self._test = test
        self._nodes = {node.name: node for node in test.nodes}
        self._outside = {inner: outer for node in test.nodes for inner, outer in captures_of(node)}

    def of(self, name: str) -> _Range:
        """The range of a value."""
        while name in self._outside:
            name = self._outside[name]
        node = self._nodes.get(name)
        return (-inf, inf) if node is None else self._made_by(node)

    def _made_by(self, node: Node) -> _Range:
        if isinstance(node.attrs, ConstAttrs):
            values = self._test.constant(node)
            return min(values), max(values)
        inputs = node.inputs[1:] if node.op == "Select" else node.inputs
        if node.op not in ("Identity", "Select", "Minimum", "Maximum"):
            return -inf, inf
        least, most = zip(*map(self.of, inputs), strict=True)
        if node.op == "Minimum":
            return min(least), min(most)
        if node.op == "Maximum":
            return max(least), max(most)
        return min(least), max(most)
