"""Indices that are operands: which of them a program over references can have.

A test's op fails where an index leaves its range; a traced system clamps the index, or drops the
write. A test whose ops may fail is therefore no program over references. One is whose indices stay
in range in every order of its ops: constants, variables that only such values are written to,
counters of loops, and what is chosen among them or clamped.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model import LoopAttrs, all_nodes, captures_of, handles_of
from litmusfuzz.corpus.ops import ConstAttrs, Kind
from litmusfuzz.fuzz.executors.protocol import Refused

if TYPE_CHECKING:
    from collections.abc import Iterable

    from litmusfuzz.corpus.model import LitmusTest, Node

_Range = tuple[float, float]
"""The smallest and the largest element that a value can have."""
_ANY: Final = (-inf, inf)
_STORES: Final = frozenset(
    {
        *("AssignVariableOp", "ResourceStridedSliceAssign"),
        *("ResourceScatterUpdate", "ResourceScatterNdUpdate"),
        *("ResourceScatterMin", "ResourceScatterMax"),
    }
)
"""Ops after which a variable has elements of before, and of their last operand."""


def check_indices(test: LitmusTest) -> None:
    """Check that all indices name rows, and stay in range.

    Raises
    ------
    Refused
        Naming the op.
    """
    computed = [node for node in test.nodes if node.definition.computed]
    ranges = _Ranges(test) if computed else None
    for node in computed:
        shape = test.type_of(node.inputs[0]).shape
        if node.op == "ResourceStridedSliceAssign":
            raise Refused(f"{node.name}, a slice whose bounds are operands")
        if node.definition.nd and shape[-1:] != (1,):
            raise Refused(f"{node.name}, whose indices have the shape {list(shape)}")
        assert ranges is not None
        least, most = ranges.of(node.inputs[0])
        if any(least < 0 or most >= rows for rows in ranges.rows(node)):
            raise Refused(f"{node.name}, which fails if an index leaves its range")


class _Ranges:
    """The ranges of values of a test, in any order of its ops."""

    def __init__(self, test: LitmusTest) -> None:
        self._test = test
        self._nodes = {node.name: node for node in test.nodes}
        self._outside = {inner: outer for node in test.nodes for inner, outer in captures_of(node)}
        self._handles = handles_of(test.graphs)
        self._loops = {
            node.attrs.carried[0]: (node, node.attrs)
            for node in test.nodes
            if isinstance(node.attrs, LoopAttrs)
        }
        self._known: dict[str, _Range] = {}
        empty = [v.name for v in test.variables if v.init is None]
        self._variables = {
            v.name: _ANY if v.name in empty else _hull([_elements(test.initial(v))])
            for v in test.variables
        }
        # The ends of all ranges are those of constants and contents: this ends.
        while self._write():
            pass

    def _write(self) -> bool:
        """Let each op write what it can; True if a range has grown."""
        before = dict(self._variables)
        self._known.clear()
        for node in self._test.nodes:
            if node.definition.kind.writes:
                stored = self.of(node.inputs[-1]) if node.op in _STORES else _ANY
                for name in self._written(node):
                    self._variables[name] = _hull([self._variables[name], stored])
        return before != self._variables

    def _written(self, node: Node) -> Iterable[str]:
        """The variables that an op may work on."""
        return self._handles[node.handle] if node.handle else node.resources

    def rows(self, node: Node) -> list[int]:
        """The numbers of rows of the variables that an op may work on."""
        return [self._test.type_of(name).shape[0] for name in self._written(node)]

    def of(self, name: str) -> _Range:
        """The range of a value."""
        while name in self._outside:
            name = self._outside[name]
        if name not in self._known:
            node = self._nodes.get(name)
            if name in self._loops:
                self._known[name] = self._counter(*self._loops[name])
            else:
                self._known[name] = _ANY if node is None else self._made_by(node)
        return self._known[name]

    def _counter(self, loop: Node, attrs: LoopAttrs) -> _Range:
        """The range of a loop's counter in its body; also in its condition, if it matters there."""
        inside = all_nodes(attrs.condition.nodes)
        matters = any(node.definition.computed or node.definition.kind.writes for node in inside)
        times = self._test.bounds[loop.name] - (not matters)
        start, _ = self.of(loop.inputs[0])
        step, _ = self.of(self._nodes[attrs.body.results[0]].inputs[1])
        return start, start + max(0, times) * step

    def _made_by(self, node: Node) -> _Range:
        if isinstance(node.attrs, ConstAttrs):
            return _elements(self._test.constant(node))
        if node.definition.kind is Kind.READ:
            return _hull([self._variables[name] for name in self._written(node)])
        inputs = node.inputs[1:] if node.op == "Select" else node.inputs
        if node.op not in ("Identity", "Select", "Minimum", "Maximum"):
            return _ANY
        least, most = zip(*map(self.of, inputs), strict=True)
        if node.op == "Minimum":
            return min(least), min(most)
        if node.op == "Maximum":
            return max(least), max(most)
        return min(least), max(most)


def _elements(values: Iterable[int]) -> _Range:
    """The range of given numbers."""
    found = tuple(values)
    return min(found), max(found)


def _hull(ranges: Iterable[_Range]) -> _Range:
    """The range that has all of these."""
    least, most = zip(*ranges, strict=True)
    return min(least), max(most)
