"""Constant indices that are out of range, as operands.

An op whose rows are an attribute names rows that are there: executors build it from them, and no
order makes it fail. If a constant index is out of range the op fails, as where the index is
computed (semantics.md, section 3, "Not specified"), so that it is the op with operands, which may
fail. Both ways of writing a test, the file and the notation, make it one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from litmusfuzz.corpus.model import (
    Body,
    FreshNames,
    Graph,
    LoopAttrs,
    Node,
    all_nodes,
    map_levels,
)
from litmusfuzz.corpus.model.graph import captures_of
from litmusfuzz.corpus.ops import COMPUTED, MAX_MAGNITUDE, MAX_ROWS, OPS, ConstAttrs, RowsAttrs
from litmusfuzz.corpus.struct import replace

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def names_a_missing_row(indices: Iterable[int], shape: tuple[int, ...]) -> bool:
    """True if a row of a variable of that shape is named that is not there."""
    return bool(shape) and any(not 0 <= index < shape[0] for index in indices)


def index_operand(name: str, op: str, indices: tuple[int, ...]) -> Node:
    """The constant that is an op's operand in place of its attribute."""
    shape = (len(indices), 1) if OPS[op].nd else (len(indices),)
    return Node(name, "Const", attrs=ConstAttrs("int32", shape, indices))


def with_index_operands(
    graphs: tuple[Graph, ...], shapes: Mapping[str, tuple[int, ...]]
) -> tuple[Graph, ...]:
    """Graphs in which each op that names a row that is not there has its indices as operands.

    Parameters
    ----------
    graphs : tuple of Graph
    shapes : mapping of str to tuple of int
        Of the variables.
    """

    def beyond(node: Node) -> bool:
        attrs = node.attrs
        if not isinstance(attrs, RowsAttrs) or node.op not in COMPUTED or not node.resources:
            return False
        given = attrs.indices
        if len(given) > MAX_ROWS or any(abs(each) >= MAX_MAGNITUDE for each in given):
            return False  # refused where the test is checked
        return names_a_missing_row(given, shapes.get(node.resources[0], ()))

    nodes = [node for graph in graphs for node in all_nodes(graph.nodes)]
    if not any(map(beyond, nodes)):
        return graphs
    names = FreshNames(node.name for node in nodes)
    for node in nodes:
        names.take(*(inner for inner, _ in captures_of(node)))
        if isinstance(node.attrs, LoopAttrs):
            names.take(*node.attrs.carried)

    def changed(body: Body) -> Body:
        made: list[Node] = []
        for node in body.nodes:
            if beyond(node):
                assert isinstance(node.attrs, RowsAttrs)
                operand = index_operand(names.numbered("i"), node.op, node.attrs.indices)
                made += (operand, replace(node, inputs=(operand.name, *node.inputs), attrs=None))
            else:
                made.append(node)
        return replace(body, nodes=tuple(made))

    return map_levels(graphs, changed)
