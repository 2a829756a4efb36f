"""What several passes of the test-case reducer need: parts of a test, and groups of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from litmusfuzz.corpus.model import LitmusTest, LoopAttrs, Node, all_nodes, bodies, captures_of
from litmusfuzz.corpus.ops import ConstAttrs
from litmusfuzz.corpus.rewriter import Rewriter
from litmusfuzz.corpus.struct import replace

Pass = Callable[[LitmusTest], Iterator[Rewriter]]
T = TypeVar("T")


def groups(names: Sequence[str]) -> Iterator[frozenset[str]]:
    """The halves of a list of names, then its quarters, down to single names."""
    size = max(1, len(names) // 2)
    while names:
        for start in range(0, len(names), size):
            yield frozenset(names[start : start + size])
        if size == 1:
            return
        size //= 2


def spliced(parts: tuple[T, ...], place: int, *new: T) -> tuple[T, ...]:
    """The parts with `new`, which may be nothing, instead of the part at `place`."""
    return (*parts[:place], *new, *parts[place + 1 :])


def nodes_of(test: LitmusTest) -> Iterator[Node]:
    """All nodes of a test, those of bodies as well."""
    for graph in test.graphs:
        yield from all_nodes(graph.nodes)


def only_computes(node: Node) -> bool:
    """True if a node has no resources and no bodies."""
    return not node.resources and not bodies(node)


class Counters:
    """The constants that bound loops (`corpus.model.loop_bound`)."""

    def __init__(self, test: LitmusTest) -> None:
        self._nodes = {node.name: node for node in nodes_of(test)}
        self._taken = {inner: outer for n in nodes_of(test) for inner, outer in captures_of(n)}
        loops = [node for node in nodes_of(test) if isinstance(node.attrs, LoopAttrs)]
        self.names = {each.name for loop in loops for each in self.of(loop)}

    def of(self, loop: Node) -> tuple[Node, Node, Node]:
        """A loop's start, limit and step."""
        attrs = loop.attrs
        assert isinstance(attrs, LoopAttrs)
        less = self._nodes[attrs.condition.results[0]]
        if less.op == "Select":
            less = self._nodes[less.inputs[0]]
        step = self._nodes[attrs.body.results[0]]
        return (
            self._constant(loop.inputs[0]),
            self._constant(less.inputs[1]),
            self._constant(step.inputs[1]),
        )

    def _constant(self, name: str) -> Node:
        while name in self._taken:
            name = self._taken[name]
        return self._nodes[name]


def int_of(node: Node) -> int:
    """The value of a constant."""
    assert isinstance(node.attrs, ConstAttrs)
    assert isinstance(node.attrs.value, int)
    return node.attrs.value


def valued(node: Node, value: int) -> Node:
    """A constant with another value."""
    assert isinstance(node.attrs, ConstAttrs)
    return replace(node, attrs=replace(node.attrs, value=value))
