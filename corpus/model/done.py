"""What is done whenever a node is done, or a value is there: the order that edges give.

A path of edges is not enough. An edge that names a result of a call, conditional or loop waits for
that result alone, and no node waits for an argument that its body does not use.

References
----------
semantics.md, section 3, rule 1 and "Loops".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from litmusfuzz.corpus.model.graph import BranchAttrs, CallAttrs, Graph, LoopAttrs, Node, bodies
from litmusfuzz.corpus.model.order import nested_pairs, steps
from litmusfuzz.corpus.model.traversal import all_nodes
from litmusfuzz.corpus.ops import SectionAttrs

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from litmusfuzz.corpus.model.graph import Body

_Sets = dict[str, int]
"""By node or value of a level: the set, in bits, of what is done before."""


def done_before(graph: Graph, wanted: Collection[str]) -> dict[str, frozenset[str]]:
    """By node and result outside bodies: the nodes that are done whenever it is.

    Parameters
    ----------
    graph : Graph
    wanted : collection of str
        Nodes of the graph, in bodies too, without bodies of their own.

    Returns
    -------
    dict of str to frozenset of str
        Those of `wanted` of which each instance is done, or is in a branch that is not taken. It
        is what every order of the model `rfc` has in common, wherever nothing of these fails.
    """
    names = tuple(wanted)
    found = _Analysis(names).level(graph.nodes, {}, 0, 0)
    return {
        key: frozenset(name for place, name in enumerate(names) if done >> place & 1)
        for key, done in found.items()
    }


class _Analysis:
    """The sets of all levels. Bit n stands for name n, in this frame and in all frames inside.

    In a loop, bit n of the next `len(names)` bits stands for its instances of all iterations
    before.
    """

    def __init__(self, names: tuple[str, ...]) -> None:
        self.number = {name: place for place, name in enumerate(names)}

    def inside(self, nodes: Iterable[Node]) -> int:
        """The set of all that is among these nodes."""
        here = 0
        for node in all_nodes(nodes):
            if node.name in self.number:
                here |= 1 << self.number[node.name]
        return here

    def level(
        self, nodes: tuple[Node, ...], scope: Mapping[str, int], first: int, depth: int
    ) -> _Sets:
        """The sets of one graph or body; `first` is what precedes all of its instances."""
        graph = Graph("", nodes)
        sections = [node for node in nodes if isinstance(node.attrs, SectionAttrs)]
        around, within = nested_pairs(sections)
        values = {name: done | first for name, done in scope.items()}
        acquired: _Sets = {}
        held: dict[str, int] = {}  # by member: what precedes the acquires of its sections
        whole = {node.name: self.inside([node]) for node in nodes}
        for kind, node in steps(graph):
            assert isinstance(node, Node)
            waits = first
            for name in node.after:
                waits |= values[name]
            if kind == "acquire":
                for name in around.get(node.name, ()):
                    waits |= acquired[name]
                acquired[node.name] = waits
                for name in node.members:
                    held[name] = held.get(name, 0) | waits
            elif kind == "release":
                done = waits | acquired[node.name]
                for name in node.members:
                    if name in values:
                        done |= values[name] | whole[name]
                for name in within.get(node.name, ()):
                    done |= values[name]
                values[node.name] = done
            else:
                values |= self.node(node, values, waits | held.get(node.name, 0), depth)
        return values

    def node(self, node: Node, values: _Sets, waits: int, depth: int) -> _Sets:
        """The sets of one node and of its results."""
        attrs = node.attrs
        if isinstance(attrs, BranchAttrs):
            return self.branch(node, attrs, values, waits, depth)
        if isinstance(attrs, CallAttrs):
            scope = {inner: values[outer] for inner, outer in attrs.captures}
            made = self.level(attrs.body.nodes, scope, waits, depth)
            done = waits | self.inside(attrs.body.nodes)
            for each in attrs.body.nodes:
                done |= made[each.name]
            returned = zip(attrs.results, attrs.body.results, strict=True)
            return {node.name: done} | {f"{node.name}.{a}": made[b] | waits for a, b in returned}
        if isinstance(attrs, LoopAttrs):
            return self.loop(node, attrs, values, waits, depth)
        done = waits
        for name in node.edges:
            done |= values[name]
        return {node.name: done | self.inside([node])}

    def branch(
        self, node: Node, attrs: BranchAttrs, values: _Sets, waits: int, depth: int
    ) -> _Sets:
        """A result comes after the predicate, and after what it needs in the branch taken."""
        scope = {inner: values[outer] for inner, outer in attrs.captures}
        waits |= values[node.inputs[0]]
        then, orelse = (self.returned(body, scope, waits, depth) for _, body in bodies(node))
        dead = self.inside(attrs.orelse.nodes), self.inside(attrs.then.nodes)
        found = {
            f"{node.name}.{name}": (one | dead[0]) & (other | dead[1])
            for name, one, other in zip(attrs.results, then, orelse, strict=True)
        }
        return {node.name: _union(found.values())} | found

    def returned(self, body: Body, scope: Mapping[str, int], waits: int, depth: int) -> list[int]:
        """The sets of a body's results."""
        made = self.level(body.nodes, scope, waits, depth)
        return [made[name] | waits for name in body.results]

    def loop(self, node: Node, attrs: LoopAttrs, values: _Sets, waits: int, depth: int) -> _Sets:
        """A result comes after the last condition, and after its value in the last iteration.

        What holds of a carried value at the beginning of each iteration is the largest solution:
        it holds at first, and an iteration keeps it.
        """
        count = len(self.number)
        shift = count * (depth + 1)
        testing, working = self.inside(attrs.condition.nodes), self.inside(attrs.body.nodes)
        mine = testing | working
        below = (1 << shift) - 1
        captures = {inner: values[outer] for inner, outer in attrs.captures}
        # Before the first iteration there is none, so that all of it is done.
        carried = [values[name] | waits | mine << shift for name in node.inputs]
        while True:
            scope = captures | dict(zip(attrs.carried, carried, strict=True))
            begins = waits | carried[0]
            (predicate,) = self.returned(attrs.condition, scope, begins, depth + 1)
            kept = self.returned(attrs.body, scope, waits | predicate, depth + 1)
            after = [
                old & (new & below & ~mine | (new & new >> shift & mine) << shift)
                for old, new in zip(carried, kept, strict=True)
            ]
            if after == carried:
                break
            carried = after
        found = {}
        for name, value in zip(attrs.carried, carried, strict=True):
            done = value | predicate | waits
            before = done >> shift
            found[f"{node.name}.{name}"] = (
                done & below & ~mine | before & working | before & done & testing
            )
        return {node.name: _union(found.values())} | found


def _union(sets: Iterable[int]) -> int:
    found = 0
    for each in sets:
        found |= each
    return found
