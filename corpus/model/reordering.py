"""Another order for the unordered parts of graphs and of the bodies inside nodes.

These are the nodes, and in a node its control edges, the members of a section, the captures and
results of bodies, and the carried values of a loop after its counter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from litmusfuzz.corpus.model.graph import Body, BranchAttrs, CallAttrs, LoopAttrs, NestAttrs
from litmusfuzz.corpus.model.order import topological_order
from litmusfuzz.corpus.ops import SectionAttrs
from litmusfuzz.corpus.struct import replace

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from litmusfuzz.corpus.model.graph import Node


class Reordering:
    """An order of nodes and of their parts.

    Parameters
    ----------
    rank : mapping of str to float
        Of each value by its name, results as ``node.result``: parts stand in the order of their
        ranks, and of several nodes that could be next, the one of least rank is.
    below : mapping of str to collection of str
        For a node, others of its graph or body that must stand above it though it does not wait
        for them.
    """

    def __init__(
        self, rank: Mapping[str, float], below: Mapping[str, Collection[str]] | None = None
    ) -> None:
        self._rank = rank
        self._below = below or {}

    def nodes(self, nodes: Sequence[Node]) -> tuple[Node, ...]:
        """The nodes of a graph or body in a topological order, and their parts in order.

        Raises
        ------
        ValueError
            If there is none: a node must stand above another one that it waits for.
        """
        named = {node.name: node for node in nodes}
        waits: Mapping[str, Collection[str]] = {node.name: node.sources for node in nodes}
        if self._below:
            waits = {name: {*all_of, *self._below.get(name, ())} for name, all_of in waits.items()}
        return tuple([self._node(named[name]) for name in topological_order(waits, self._rank)])

    def _node(self, node: Node) -> Node:
        attrs = node.attrs
        if len(node.after) > 1:
            node = replace(node, after=self._sorted(node.after))
        if isinstance(attrs, SectionAttrs):
            return replace(node, attrs=SectionAttrs(self._sorted(attrs.members)))
        if not isinstance(attrs, NestAttrs):
            return node
        rank = self._rank
        captures = tuple(sorted(attrs.captures, key=lambda pair: rank[pair[0]]))
        if isinstance(attrs, LoopAttrs):
            carried = attrs.carried
            # The counter is the first.
            places = [0, *sorted(range(1, len(carried)), key=lambda i: rank[carried[i]])]
            changed = LoopAttrs(
                _picked(carried, places),
                captures,
                self._body(attrs.condition, [0]),
                self._body(attrs.body, places),
                attrs.parallel_iterations,
            )
            return replace(node, attrs=changed, inputs=_picked(node.inputs, places))
        names = [f"{node.name}.{result}" for result in attrs.results]
        places = sorted(range(len(names)), key=lambda i: rank[names[i]])
        results = _picked(attrs.results, places)
        if isinstance(attrs, BranchAttrs):
            then, orelse = self._body(attrs.then, places), self._body(attrs.orelse, places)
            return replace(node, attrs=BranchAttrs(captures, then, orelse, results))
        return replace(node, attrs=CallAttrs(captures, self._body(attrs.body, places), results))

    def _body(self, body: Body, places: Sequence[int]) -> Body:
        return Body(self.nodes(body.nodes), _picked(body.results, places))

    def _sorted(self, names: Iterable[str]) -> tuple[str, ...]:
        return tuple(sorted(names, key=self._rank.__getitem__))


def _picked(names: Sequence[str], places: Sequence[int]) -> tuple[str, ...]:
    return tuple([names[place] for place in places])
