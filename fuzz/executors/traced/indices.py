"""Indices that are operands: which of them a program over references can have.

A test's op fails where an index leaves its range; a traced system clamps the index, or drops the
write. A test whose ops may fail is therefore no program over references. One is whose indices stay
in range in every order of its ops: constants, variables that only such values are written to,
counters of loops, and what is chosen among them or clamped.
"""

from __future__ import annotations

from math import inf
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from litmusfuzz.corpus.model import LoopAttrs, all_nodes, captures_of, handles_of
from litmusfuzz.corpus.ops import BOOL, ConstAttrs, Kind, PureAttrs
from litmusfuzz.corpus.pure.definition import Call, Undefined, computed
from litmusfuzz.fuzz.executors.protocol import Refused
from litmusfuzz.fuzz.executors.traced.pure_uses import PureUses

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from litmusfuzz.corpus.model import LitmusTest, Node

_Range = tuple[float, float]
"""The smallest and the largest element that a value can have."""
_Columns = tuple[_Range, ...]
"""The ranges of a value's elements, by their place in its last axis; or one for all of them."""
_ANY: Final = ((-inf, inf),)
_CHOSEN: Final = MappingProxyType(
    {
        **dict.fromkeys(("Identity", "Minimum", "Maximum", "Pack"), slice(None)),
        **dict.fromkeys(("Select", "SelectV2"), slice(1, None)),
        **dict.fromkeys(("Reshape", "BroadcastTo", "ExpandDims", "Transpose", "Tile"), slice(1)),
        **dict.fromkeys(("Slice", "StridedSlice", "Squeeze", "Max", "Min", "Cast"), slice(1)),
        "ConcatV2": slice(-1),
    }
)
"""Pure ops whose result has elements of some operands, and which operands."""
_SAME_COLUMNS: Final = frozenset({"Identity", "Select", "SelectV2", "Minimum", "Maximum"})
"""Those of them that leave each element at its place."""
_MOST_TRIED: Final = 64
"""A range with more numbers is not tried out."""
_STORES: Final = frozenset(
    {
        *("AssignVariableOp", "ResourceStridedSliceAssign"),
        *("ResourceScatterUpdate", "ResourceScatterNdUpdate"),
        *("ResourceScatterMin", "ResourceScatterMax"),
    }
)
"""Ops after which a variable has elements of before, and of their last operand."""


def check_indices(test: LitmusTest) -> None:
    """Check that all indices name rows or cells, and stay in range.

    Raises
    ------
    Refused
        Naming the op.
    """
    places = [node for node in test.nodes if node.definition.computed]
    failing = [n for n in test.nodes if n.name in test.failing and n.definition.pure]
    ranges = _Ranges(test) if places or failing else None
    for node in failing:
        assert ranges is not None
        ranges.check(node)
    for node in places:
        shape = test.type_of(node.inputs[0]).shape
        if node.op == "ResourceStridedSliceAssign":
            raise Refused(f"{node.name}, a slice whose bounds are operands")
        depth = shape[-1] if node.definition.nd else 1
        if not depth:
            raise Refused(f"{node.name}, whose indices have the shape {list(shape)}")
        assert ranges is not None
        found = ranges.of(node.inputs[0])
        if not node.definition.nd:
            found = (_hull(found),)
        for sizes in ranges.shapes(node):
            for axis in range(depth):
                least, most = found[axis % len(found)]
                if least < 0 or most >= sizes[axis]:
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
        self._known: dict[str, _Columns] = {}
        self._uses = PureUses(test)
        self._variables = {
            v.name: _ANY if v.init is None else self._elements(test.initial(v), v.shape)
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
                    same = node.op == "AssignVariableOp" or self._has_whole_rows(node, name)
                    new = stored if same else (_hull(stored),)
                    self._variables[name] = _joined([self._variables[name], new])
        return before != self._variables

    def _has_whole_rows(self, node: Node, variable: str) -> bool:
        """True if an op reads or writes rows of a variable, which each have its last axis."""
        rows = node.definition.sparse and not node.definition.nd
        return rows and len(self._test.type_of(variable).shape) > 1

    def _written(self, node: Node) -> Iterable[str]:
        """The variables that an op may work on."""
        return self._handles[node.handle] if node.handle else node.resources

    def shapes(self, node: Node) -> list[tuple[int, ...]]:
        """The shapes of the variables that an op may work on."""
        return [self._test.type_of(name).shape for name in self._written(node)]

    def of(self, name: str) -> _Columns:
        """The ranges of a value."""
        while name in self._outside:
            name = self._outside[name]
        if name not in self._known:
            node = self._nodes.get(name)
            if name in self._loops:
                self._known[name] = (self._counter(*self._loops[name]),)
            else:
                self._known[name] = _ANY if node is None else self._made_by(node)
        return self._known[name]

    def _counter(self, loop: Node, attrs: LoopAttrs) -> _Range:
        """The range of a loop's counter in its body; also in its condition, if it matters there."""
        inside = all_nodes(attrs.condition.nodes)
        matters = any(node.definition.computed or node.definition.kind.writes for node in inside)
        times = self._test.bounds[loop.name] - (not matters)
        ((start, _),) = self.of(loop.inputs[0])
        ((step, _),) = self.of(self._nodes[attrs.body.results[0]].inputs[1])
        return start, start + max(0, times) * step

    def _made_by(self, node: Node) -> _Columns:
        if isinstance(node.attrs, ConstAttrs):
            return self._elements(self._test.constant(node), node.attrs.shape)
        if node.definition.kind is Kind.READ:
            found = [
                self._variables[name]
                if not node.definition.sparse or self._has_whole_rows(node, name)
                else (_hull(self._variables[name]),)
                for name in self._written(node)
            ]
            return _joined(found)
        kind = self._test.types[node.name]
        if kind is not None and kind.dtype == BOOL:
            return ((0, 1),)
        if node.op == "FloorMod":
            divisors = self.of(node.inputs[1])
            least, most = _hull(divisors)
            return ((0, most - 1),) if least > 0 and most < inf else _ANY
        if node.op not in _CHOSEN:
            return _ANY
        found = [self.of(each) for each in node.inputs[_CHOSEN[node.op]]]
        if node.op not in _SAME_COLUMNS:
            return (_hull(map(_hull, found)),)
        return _joined(found, _JOINS.get(node.op, _hull))

    def check(self, node: Node) -> None:
        """Check that a pure op fails for no values that its operands can have.

        Each number of the range of an operand is tried, in all of its elements.

        Raises
        ------
        Refused
            Naming the op, and the operand.
        """
        use, meaning = self._uses.of(node), node.definition.meaning
        assert meaning is not None
        if any(kind.dynamic for kind in (*use.inputs, use.result)):
            return  # what makes such a value is refused
        call = Call(meaning, node.attrs if type(node.attrs) is PureAttrs else None, use.inputs)
        arrays: list[Any] = [
            np.ones(kind.shape, np.int64)
            if value is None
            else np.array(value, np.int64).reshape(kind.shape)
            for kind, value in zip(use.inputs, use.known, strict=True)
        ]
        for place, (role, value) in enumerate(zip(use.roles, use.known, strict=True)):
            if role not in meaning.fails_by or value is not None:
                continue
            least, most = _hull(self.of(node.inputs[place]))
            why = f"{node.name}: {node.op} fails for some values of {role}, and JAX never does"
            if not most - least < _MOST_TRIED:
                raise Refused(why)
            for number in range(int(least), int(most) + 1):
                tried = [*arrays]
                tried[place] = np.full_like(arrays[place], number)
                try:
                    computed(call, tried)
                except Undefined:
                    raise Refused(why) from None
            arrays[place] = np.full_like(arrays[place], least)

    def _elements(self, values: Sequence[int], shape: tuple[int, ...]) -> _Columns:
        """The ranges of given numbers, which are a value of that shape."""
        columns = shape[-1] if self._test.whole and shape else 1
        if not values:
            return _ANY
        return tuple((min(each), max(each)) for n in range(columns) if (each := values[n::columns]))


def _hull(ranges: Iterable[_Range]) -> _Range:
    """The range that has all of these."""
    least, most = zip(*ranges, strict=True)
    return min(least), max(most)


def _least(ranges: Iterable[_Range]) -> _Range:
    least, most = zip(*ranges, strict=True)
    return min(least), min(most)


def _largest(ranges: Iterable[_Range]) -> _Range:
    least, most = zip(*ranges, strict=True)
    return max(least), max(most)


_JOINS: Final = MappingProxyType({"Minimum": _least, "Maximum": _largest})
"""The range of one of several elements, by the op that chooses it."""


def _joined(
    values: Sequence[_Columns], join: Callable[[Iterable[_Range]], _Range] = _hull
) -> _Columns:
    """The ranges of elements that come from the same place of one of several values each."""
    columns = max(map(len, values))
    if any(len(each) not in (1, columns) for each in values):
        values, columns = [(_hull(each),) for each in values], 1
    return tuple(join([each[n % len(each)] for each in values]) for n in range(columns))
