"""Other shapes and dtypes for a test: groups of values that must change together.

A variable, the values read from it and the constants written to it have one shape, and so on
through pure nodes, loops and conditionals. `Shapes` finds these groups in a test; whoever
gives one value of a group another shape gives it to the whole group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model import (
    BranchAttrs,
    CallAttrs,
    LitmusTest,
    LoopAttrs,
    Node,
    captures_of,
)
from litmusfuzz.corpus.ops import (
    BOOL,
    AccumulatorUse,
    Attrs,
    ConstAttrs,
    CountAttrs,
    Kind,
    PlaceholderAttrs,
    RowsAttrs,
    SliceAttrs,
    TensorType,
)
from litmusfuzz.corpus.rewriter import Rewriter
from litmusfuzz.corpus.struct import replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from litmusfuzz.corpus.ops import Nested

Shape = tuple[int, ...]
MAX_ELEMENTS: Final = 1 << 24
"""Elements of all concurrent copies of a test: 64 to 128 MiB."""


_DYNAMIC: Final = 256
"""Elements of a value whose shape is not known, as far as memory is planned."""


class Shapes:
    """Groups of values of a test that have one shape, whatever it is.

    Values have the names of their nodes; the contents of a resource have its name.
    """

    def __init__(self, test: LitmusTest) -> None:
        self.test = test
        self._parents: dict[str, str] = {}
        self._types = contents(test)
        for node in test.nodes:
            self._join_all(node)

    def shape(self, name: str) -> Shape:
        """Shape of a value, or of a resource's contents; () if it has none."""
        kind = self._types.get(name) or self.test.types.get(name)
        return kind.shape if kind else ()

    def resized(self, wanted: Mapping[str, Shape]) -> Rewriter:
        """The test in which the named values, and their groups, have those shapes.

        Ops no longer touch rows that a smaller resource lacks.
        """
        wanted = dict(wanted)
        changed: dict[str, Node] = {}
        for node in self.test.nodes:
            if node.resources and node.definition.sparse and node.resources[0] in wanted:
                changed[node.name] = clipped = _clipped(node, wanted[node.resources[0]])
                wanted |= self.touched(clipped, wanted[node.resources[0]])
        roots = {self._root(name): shape for name, shape in wanted.items()}

        def fitted(node: Node) -> Node:
            node = changed.get(node.name, node)
            shape = roots.get(self._root(node.name))
            if isinstance(node.attrs, ConstAttrs) and shape is not None and node.attrs.shape:
                value = _cut(node.attrs.value, shape)
                return replace(node, attrs=replace(node.attrs, shape=shape, value=value))
            if isinstance(node.attrs, PlaceholderAttrs) and shape is not None and node.attrs.shape:
                return replace(node, attrs=replace(node.attrs, shape=shape))
            return node

        def of(name: str) -> Shape:
            return roots.get(self._root(name), self.shape(name))

        rewriter = Rewriter.of(self.test).each_node(fitted)
        variables = (
            replace(v, shape=of(v.name), init=v.init and _cut(v.init, of(v.name)))
            for v in rewriter.variables
        )
        queues = (
            replace(q, shape=of(q.name), init=tuple(_cut(each, of(q.name)) for each in q.init))
            for q in rewriter.queues
        )
        client = (
            replace(run, feeds=tuple((name, _cut(value, of(name))) for name, value in run.feeds))
            for run in rewriter.client
        )
        return replace(
            rewriter,
            variables=tuple(variables),
            queues=tuple(queues),
            client=tuple(client),
            accumulators=tuple(replace(a, shape=of(a.name)) for a in rewriter.accumulators),
        )

    def touched(self, node: Node, contents: Shape) -> dict[str, Shape]:
        """Shapes of the values that a sparse op reads or uses, of a resource of that shape."""
        count = len(node.attrs.rows) if isinstance(node.attrs, SliceAttrs) else 0
        if isinstance(node.attrs, RowsAttrs):
            count = len(node.attrs.indices)
        names = (node.name,) if node.definition.kind is Kind.READ else node.inputs
        return {name: (count, *contents[1:]) for name in names if self.shape(name)}

    def together(self, one: str, other: str) -> bool:
        """True if two values are of one group."""
        return self._root(one) == self._root(other)

    def _root(self, name: str) -> str:
        while name in self._parents:
            name = self._parents[name]
        return name

    def _join(self, one: str, other: str) -> None:
        left, right = self._root(one), self._root(other)
        if left != right:
            self._parents[left] = right

    def _join_all(self, node: Node) -> None:
        attrs = node.attrs
        for inner, outer in captures_of(node):
            self._join(inner, outer)
        if isinstance(attrs, BranchAttrs):
            for name, *values in zip(
                attrs.results, attrs.then.results, attrs.orelse.results, strict=True
            ):
                for value in values:
                    self._join(f"{node.name}.{name}", value)
        elif isinstance(attrs, CallAttrs):
            for name, value in zip(attrs.results, attrs.body.results, strict=True):
                self._join(f"{node.name}.{name}", value)
        elif isinstance(attrs, LoopAttrs):
            for name, *values in zip(attrs.carried, node.inputs, attrs.body.results, strict=True):
                for value in (*values, f"{node.name}.{name}"):
                    self._join(name, value)
        elif node.definition.kind is Kind.PURE:
            self._join_equal(node.name, node.inputs)
        elif node.definition.kind is Kind.STATE:
            return
        elif node.definition.accumulator is AccumulatorUse.APPLY:
            self._join(node.resources[0], node.inputs[1])
        elif node.definition.kind is Kind.ACCUMULATOR:
            if node.definition.takes_sum:
                self._join(node.resources[0], node.name)
        elif node.resources and not node.definition.sparse and not node.definition.several:
            first, *others = node.resources
            for other in others:
                self._join(first, other)
            self._join_equal(first, (*node.inputs, node.name))

    def _join_equal(self, name: str, others: Iterable[str]) -> None:
        """Join values of one shape; a scalar that is broadcast stays a scalar."""
        for other in others:
            if self.shape(other) and self.shape(other) == self.shape(name):
                self._join(name, other)


def _cut(value: Nested, shape: Shape) -> Nested:
    """The first rows of a literal; for a scalar its first value."""
    if isinstance(value, int):
        return value
    return value[: shape[0]] if shape else value[0]


def _clipped(node: Node, contents: Shape) -> Node:
    rows = contents[0] if contents else 1
    attrs = node.attrs
    if isinstance(attrs, RowsAttrs):
        return replace(node, attrs=RowsAttrs(tuple(i for i in attrs.indices if i < rows) or (0,)))
    if isinstance(attrs, SliceAttrs):
        begin = min(attrs.begin, rows - 1)
        end = max(begin + 1, min(attrs.end, rows))
        return replace(node, attrs=SliceAttrs(begin, end, attrs.strides))
    return node


def with_dtype(test: LitmusTest, old: str, new: str) -> Rewriter:
    """The test with another dtype for every resource and constant of one dtype."""

    def of(dtype: str) -> str:
        return new if dtype == old else dtype

    def node(each: Node) -> Node:
        if isinstance(each.attrs, (ConstAttrs, PlaceholderAttrs)) and each.attrs.dtype != BOOL:
            return replace(each, attrs=replace(each.attrs, dtype=of(each.attrs.dtype)))
        return each

    rewriter = Rewriter.of(test).each_node(node)
    return replace(
        rewriter,
        variables=tuple(replace(v, dtype=of(v.dtype)) for v in rewriter.variables),
        queues=tuple(replace(q, dtype=of(q.dtype)) for q in rewriter.queues),
        accumulators=tuple(replace(a, dtype=of(a.dtype)) for a in rewriter.accumulators),
    )


def fewer_rows_touched(test: LitmusTest, node: Node, attrs: Attrs) -> Rewriter:
    """The test in which a node touches fewer rows, or takes fewer elements from a queue."""
    shapes = Shapes(test)
    smaller = replace(node, attrs=attrs)
    if isinstance(attrs, CountAttrs):
        wanted: dict[str, Shape] = {node.name: (attrs.count,)}
    else:
        wanted = shapes.touched(smaller, shapes.shape(node.resources[0]))
    return shapes.resized(wanted).with_node(smaller)


def refitted(test: LitmusTest, of: Callable[[TensorType], Shape]) -> Rewriter:
    """The test in which each variable and each queue's element has the shape `of` its type."""
    return Shapes(test).resized(
        {name: of(kind) for name, kind in contents(test).items() if of(kind) != kind.shape}
    )


def elements(test: LitmusTest) -> int:
    """Elements of all values and resources of a test together."""
    sizes = (_DYNAMIC if kind.dynamic else kind.size for kind in test.types.values() if kind)
    values = sum(sizes)
    return values + sum(kind.size for kind in contents(test).values())


def copies_of(test: LitmusTest, copies: int) -> int:
    """Number of concurrent copies, at most `copies`, that a test as large as this may have."""
    return max(1, min(copies, MAX_ELEMENTS // max(1, elements(test))))


def contents(test: LitmusTest) -> dict[str, TensorType]:
    """Types of the contents of each variable and queue."""
    found = {v.name: v.type for v in test.variables} | {q.name: q.type for q in test.queues}
    return found | {a.name: a.type for a in test.accumulators}


__all__ = [
    "Shapes",
    "contents",
    "copies_of",
    "elements",
    "fewer_rows_touched",
    "refitted",
    "with_dtype",
]
