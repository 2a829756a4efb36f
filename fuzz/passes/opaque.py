"""Replaces Opaque by ops that executors have: a hash of a few bits, out of Mul, AddV2 and FloorMod.

The result is an ordinary test, with an allowed set of its own. Terms may collide in it: it may then
tell fewer outcomes apart, and shows nothing that is wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model import FreshNames, Graph, Node
from litmusfuzz.corpus.ops import ABSTRACT_OPS, ConstAttrs, PureAttrs
from litmusfuzz.corpus.struct import replace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from litmusfuzz.corpus.model import LitmusTest

MODULUS: Final = 2039
"""A prime: a number below it, times a factor below `FACTORS`, stays below 2**24."""
FACTORS: Final = 2039


def without_opaque(test: LitmusTest) -> LitmusTest:
    """The test with each Opaque computed by other ops; bodies must have none.

    A value of a test is below 2**24 in magnitude, and so is each value in between.
    """
    names = FreshNames(frozenset(test.types))
    graphs = tuple(
        Graph(
            graph.name, tuple(each for node in graph.nodes for each in _replaced(node, names, test))
        )
        for graph in test.graphs
    )
    return replace(test, graphs=graphs)


def _replaced(node: Node, names: FreshNames, test: LitmusTest) -> Iterator[Node]:
    if node.op not in ABSTRACT_OPS:
        yield node
        return
    assert isinstance(node.attrs, PureAttrs)
    dtype = test.type_of(node.name).dtype

    def constant(value: int) -> Node:
        return Node(names.numbered("c"), "Const", attrs=ConstAttrs(dtype, (), value))

    modulus = constant(MODULUS)
    start = constant(1 + node.attrs["label"] * 977 % (MODULUS - 1))
    yield modulus
    yield start
    sum_ = start.name
    for place, source in enumerate(node.inputs):
        factor = constant(2 + (node.attrs["label"] * 131 + place * 619) % (FACTORS - 2))
        small = Node(names.numbered("t"), "FloorMod", (source, modulus.name), after=node.after)
        product = Node(names.numbered("t"), "Mul", (small.name, factor.name))
        added = Node(names.numbered("t"), "AddV2", (product.name, sum_))
        last = place + 1 == len(node.inputs)
        name = node.name if last else names.numbered("t")
        rest = Node(name, "FloorMod", (added.name, modulus.name))
        yield from (factor, small, product, added, rest)
        sum_ = rest.name
