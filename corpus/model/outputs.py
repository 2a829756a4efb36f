"""Nodes of a test that are results of one op.

A node has one value, so that a test that uses two results of an op has the op twice. A system with
ops of several results executes such nodes as one op (`first_results`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model.traversal import levels
from litmusfuzz.corpus.ops import PureAttrs

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from litmusfuzz.corpus.model.graph import Graph, Node
    from litmusfuzz.corpus.pure.definition import AttrValue

_RESULT: Final = "result"
"""The attribute that says which result of its op a node is."""


def first_results(graphs: Iterable[Graph]) -> dict[str, str]:
    """For each node of an op with several results: the first node that is a result of that op.

    Two nodes of one graph or body are results of one op if they differ in the result only. They
    wait for the same nodes and are members of the same sections, so that one op in their place adds
    no order. Two nodes that are the same result are two ops.
    """
    firsts: dict[str, str] = {}
    for graph in graphs:
        for level in levels(graph):
            some = [node for node in level.nodes if _has_several(node)]
            if some:
                firsts |= _firsts(some, [node for node in level.nodes if node.members])
    return firsts


def _has_several(node: Node) -> bool:
    """True if the node's op has several results."""
    row = node.definition.meaning
    return row is not None and bool(row.results or row.count)


def _firsts(nodes: Sequence[Node], sections: Sequence[Node]) -> dict[str, str]:
    """The first result of each node of one graph or body that has several."""
    firsts: dict[str, str] = {}
    taken: dict[Hashable, list[tuple[str, set[AttrValue]]]] = {}
    for node in nodes:
        attrs = node.attrs
        assert isinstance(attrs, PureAttrs)
        same = taken.setdefault(
            (
                node.op,
                tuple(each for each in attrs.values if each[0] != _RESULT),
                node.inputs,
                frozenset(node.after),
                node.device,
                frozenset(each.name for each in sections if node.name in each.members),
            ),
            [],
        )
        result: AttrValue = attrs[_RESULT]
        first, results = next((each for each in same if result not in each[1]), (node.name, set()))
        if first == node.name:
            same.append((first, results))
        results.add(result)
        firsts[node.name] = first
    return firsts
