"""Shapes of causes: which ops race, whether a test contains a shape, how to take it out.

A race is two ops on one resource that nothing orders and of which one changes it. A test contains a
shape if it has the same ops, by kernel class, in the same relations. Where nothing races, an op
itself is wrong, perhaps a pure one: then the pure ops are part of the shape.

`without_causes` takes causes out of a test and leaves everything else as it is. It orders the pairs
that race in a cause; of a cause without races it replaces the pure ops whose values show it.
"""

from __future__ import annotations

from collections import Counter
from functools import cached_property, lru_cache
from itertools import count
from typing import TYPE_CHECKING

from litmusfuzz.corpus.model import (
    Body,
    LoopAttrs,
    MalformedTest,
    Node,
    bodies,
    captures_of,
    head,
)
from litmusfuzz.corpus.ops import BOOL, ConstAttrs, SectionAttrs
from litmusfuzz.corpus.rewriter import Rewriter
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.finding.matching import matches
from litmusfuzz.fuzz.finding.relations import NodeRelations

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from litmusfuzz.corpus.model import LitmusTest, Run


def contains(small: LitmusTest, large: LitmusTest, *, strict: bool) -> bool:
    """True if `large` contains the ops of `small` in the same relations.

    Ops are matched by kernel class; two on one resource match two that share a resource. An op
    that races with itself, in iterations of a loop or in runs of its graph, counts for two. If
    nothing races in `small`, `large` needs its last pure ops as well, in any relation. A single
    effect that has nothing to do with these is there only because each test has one.

    Parameters
    ----------
    small, large : LitmusTest
    strict : bool
        Ordered ops match ordered ones only; else they may match any, because a test that is not
        minimized has more edges and other copies of its ops.
    """
    parts = small.effects
    if not parts or not small.features <= large.features:
        return False
    inside, around = races_of(small), races_of(large)
    if not inside.any:
        if not computes_as(small, large):
            return False
        if _computes_apart(small):
            return True
    whole = [(node, copy) for node in large.effects for copy in range(1 + around.with_itself(node))]

    def alike(part: Node, member: tuple[Node, int]) -> bool:
        return part.definition.kernel_class == member[0].definition.kernel_class

    def related(a: Node, b: Node, one: tuple[Node, int], other: tuple[Node, int]) -> bool:
        (like_a, _), (like_b, _) = one, other
        if set(a.resources) & set(b.resources) and not (
            set(like_a.resources) & set(like_b.resources)
        ):
            return False
        wanted = inside.relation(a, b)
        return around.relation(like_a, like_b) == wanted or (not strict and wanted == "ordered")

    return matches(parts, whole, alike, related)


@lru_cache(maxsize=1024)
def races_of(test: LitmusTest) -> Races:
    """The races of a test; a campaign compares one test with many."""
    return Races(test)


class Races:
    """Which ops of a test race, with themselves too."""

    def __init__(self, test: LitmusTest) -> None:
        self.test = test
        self.relations = NodeRelations(test)
        self.places: dict[str, tuple[tuple[Node, str], ...]] = {}
        """By name of a node, the nodes around it, each with the body of these that it is in."""
        for graph in test.graphs:
            self._place(graph.nodes, ())
        self._repeated = {run.graph for run in test.runs if self._overlaps(run.graph)}

    def _place(self, nodes: Iterable[Node], around: tuple[tuple[Node, str], ...]) -> None:
        for node in nodes:
            self.places[node.name] = around
            for name, body in bodies(node):
                self._place(body.nodes, (*around, (node, name)))

    def _overlaps(self, graph: str) -> bool:
        """True if two runs of a graph may be at work at the same time."""
        number = sum(run.graph == graph for run in self.test.runs)
        ordered = sum(before for a, b, before in self.relations.runs if a == b == graph)
        return ordered < number * (number - 1) // 2

    def loops_around(self, node: Node) -> tuple[str, ...]:
        """Loops around a node whose iterations may overlap."""
        return tuple(
            around.name for around, _ in self.places[node.name] if _has_wide_window(around)
        )

    def in_repeated_graph(self, node: Node) -> bool:
        """True if two runs of its graph may overlap."""
        return self.relations.paths[node.name][0] in self._repeated

    def with_itself(self, node: Node) -> bool:
        """True if executions of one node may race: in iterations, or in runs of its graph."""
        return bool(self.loops_around(node)) or self.in_repeated_graph(node)

    def relation(self, a: Node, b: Node) -> str:
        """As of `NodeRelations`; a node is unordered with its own other executions."""
        if a is b:
            return "unordered"
        for (one, here), (other, there) in zip(
            self.places[a.name], self.places[b.name], strict=False
        ):
            if one is not other:
                break
            if here != there:  # branches exclude each other; a condition comes before its body
                return "unordered" if _has_wide_window(one) else "ordered"
        if self._may_outlive(a, b) or self._may_outlive(b, a):
            return "unordered"
        return self.relations.relation(a, b)

    def _may_outlive(self, first: Node, second: Node) -> bool:
        """True if `first` is in a loop or conditional before `second`, and may come after it."""
        left, right = self.relations.paths[first.name], self.relations.paths[second.name]
        if left[0] != right[0] or left == right[: len(left)] or right == left[: len(right)]:
            return False
        one, other = next((x, y) for x, y in zip(left, right, strict=False) if x != y)
        return one in self.relations.above[other] and self.may_outlive_results(first, one)

    def may_outlive_results(self, node: Node, around: str) -> bool:
        """True if no result of the loop or conditional `around` needs a node inside of it.

        What follows a loop or conditional follows its results. Other ops of its bodies may still
        run then. False if `around` is the node itself.
        """
        path, above = self.relations.paths[node.name], self.relations.above
        inner = path[path.index(around) + 1 :]
        places = self.places[node.name][len(self.places[node.name]) - len(inner) :]
        for name, (outer, field) in zip(inner, places, strict=True):
            results = set(map(head, dict(bodies(outer))[field].results))
            if name not in results and not any(name in above.get(each, ()) for each in results):
                return True
        return False

    @cached_property
    def any(self) -> bool:
        """True if some ops race."""
        return next(self.pairs(), None) is not None

    def pairs(self) -> Iterator[tuple[Node, Node]]:
        """Ops that race on a resource that one of them changes; a node may race with itself."""
        effects = self.test.effects
        for number, a in enumerate(effects):
            for b in effects[number:]:
                both_read = a.definition.kind.only_reads and b.definition.kind.only_reads
                if both_read or not set(a.resources) & set(b.resources):
                    continue
                same_graph = self.relations.paths[a.name][0] == self.relations.paths[b.name][0]
                repeated = same_graph and (
                    self.in_repeated_graph(a)
                    or bool({*self.loops_around(a)} & {*self.loops_around(b)})
                )
                if repeated or (a is not b and self.relation(a, b) == "unordered"):
                    yield a, b


def _has_wide_window(node: Node) -> bool:
    return isinstance(node.attrs, LoopAttrs) and node.attrs.parallel_iterations > 1


def _kinds(a: Node, b: Node) -> frozenset[str]:
    return frozenset((a.definition.kernel_class, b.definition.kernel_class))


def computes_as(small: LitmusTest, large: LitmusTest) -> bool:
    """True if `large` has the last pure ops of `small`, by kernel class and as often."""
    return _classes(_last_computed(small)) <= _classes(_computing(large))


def computes_the_same(one: LitmusTest, other: LitmusTest) -> bool:
    """True if two tests have the same pure ops, by kernel class and as often."""
    return _classes(_computing(one)) == _classes(_computing(other))


def _classes(nodes: Iterable[Node]) -> Counter[str]:
    return Counter(node.definition.kernel_class for node in nodes)


def _computing(test: LitmusTest) -> list[Node]:
    """Pure ops that compute something."""
    return [node for node in test.nodes if node.definition.computes]


def _last_computed(test: LitmusTest) -> list[Node]:
    """Those whose values no other one takes: what shows a wrong value in a minimized test."""
    computing = _computing(test)
    taken = {head(ref) for node in computing for ref in node.inputs}
    return [node for node in computing if node.name not in taken]


def _computes_apart(test: LitmusTest) -> bool:
    """True if it has a single effect, and pure ops that neither follow nor precede it."""
    above = races_of(test).relations.above
    names = [node.name for node in _computing(test)]
    effects = [node.name for node in test.effects]
    return (
        bool(names)
        and len(effects) == 1
        and above[effects[0]].isdisjoint(names)
        and not any(effects[0] in above[name] for name in names)
    )


def without_causes(test: LitmusTest, *causes: LitmusTest) -> LitmusTest | None:
    """The test without what the causes need.

    Pairs that race as in a cause are ordered (`without_races`). A cause without races is in what
    its ops compute: its last pure ops, and all others of their kernel classes, are replaced by
    constants.

    Returns
    -------
    LitmusTest or None
        The same test if there is nothing to take out; None if it cannot be taken out.
    """
    ordered = without_races(test, *causes)
    apart = [cause for cause in causes if not races_of(cause).any]
    kernels = set().union(*(_classes(_last_computed(cause)) for cause in apart))
    if ordered is None or not kernels:
        return ordered
    for first in (2, None):
        try:
            return _with_constants(ordered, kernels, first)
        except MalformedTest:
            continue
    return None


def _with_constants(
    test: LitmusTest, kernels: Collection[str], first: int | None
) -> LitmusTest | None:
    """The test with constants in place of its pure ops of some kernel classes.

    Each has another value, from `first` on, by which an old value shows, or all have 1 if it is
    None. None if the shape of a value depends on other values, or if it is no tensor.
    """
    paths, rewriter = races_of(test).relations.paths, Rewriter.of(test)
    taken = {node.name for node in test.nodes}
    for node in reversed(test.nodes):  # its operands are still there
        if not (node.definition.computes and node.definition.kernel_class in kernels):
            continue
        kinds = {ref: kind for ref, kind in test.types.items() if kind and head(ref) == node.name}
        if any(kind.dynamic or not kind.is_tensor for kind in kinds.values()):
            return None
        # The constants wait for what the op waited for, so that the order of the others stays.
        level = paths[node.name][:-1]
        before = dict.fromkeys(map(head, (*node.inputs, *node.after)))
        after = tuple(name for name in before if paths.get(name, ())[:-1] == level)
        made = {}
        for ref, kind in kinds.items():
            name = next(each for n in count() if (each := f"{node.name}k{n}") not in taken)
            taken.add(name)
            value = 1
            if first is not None and kind.dtype != BOOL:
                value, first = first, first + 1
            attrs = ConstAttrs(kind.dtype, kind.shape, value)
            made[ref] = Node(name, "Const", attrs=attrs, after=after)
        names = {ref: new.name for ref, new in made.items()}
        rewriter = rewriter.instead(node.name, names, tuple(made.values()))
    return rewriter.build()


def without_races(test: LitmusTest, *causes: LitmusTest) -> LitmusTest | None:
    """The test with an order between the ops that race in the causes.

    Every pair of `test` that races, and whose kernel classes race in a cause, is ordered: by a
    control edge, by an order of their runs, or by one iteration at a time. The first in the file
    comes first, so that there is no cycle. Only what may outlive the results of its loop or
    conditional comes last: no edge makes another op wait for it.

    Returns
    -------
    LitmusTest or None
        The same test if there is nothing to order; None if it cannot be ordered.
    """
    kinds = {_kinds(a, b) for cause in causes for a, b in races_of(cause).pairs()}
    found = races_of(test)
    racing = [pair for pair in found.pairs() if _kinds(*pair) in kinds]
    if not racing:
        return test
    paths = found.relations.paths
    after: dict[str, set[str]] = {}
    graphs: set[frozenset[str]] = set()
    loops: set[str] = set()
    for a, b in racing:
        left, right = paths[a.name], paths[b.name]
        loops |= {*found.loops_around(a), *found.loops_around(b)}
        graphs.add(frozenset((left[0], right[0])))
        if left[0] == right[0] and a is not b and found.relation(a, b) == "unordered":
            one, other = next((x, y) for x, y in zip(left, right, strict=False) if x != y)
            if _level(found, one) == _level(found, other):
                if found.may_outlive_results(a, one):
                    one, other = other, one
                after.setdefault(other, set()).add(one)
    try:
        made = _ordered(test, after, graphs, loops)
    except MalformedTest:
        return None
    left_over = [pair for pair in Races(made).pairs() if _kinds(*pair) in kinds]
    return None if left_over else made


def _level(races: Races, name: str) -> tuple[tuple[str, str], ...]:
    """The body that a node is in."""
    return tuple((node.name, field) for node, field in races.places[name])


def _ordered(
    test: LitmusTest,
    after: dict[str, set[str]],
    graphs: set[frozenset[str]],
    loops: set[str],
) -> LitmusTest:
    """The test with more control edges, ordered runs, and loops of one iteration at a time."""

    def edited(node: Node) -> Node:
        more = tuple(sorted(after.get(node.name, set()) - set(node.after)))
        node = replace(node, after=(*node.after, *more))
        if node.name in loops and isinstance(node.attrs, LoopAttrs):
            node = replace(node, attrs=replace(node.attrs, parallel_iterations=1))
        return node

    rewriter = Rewriter.of(test).each_node(edited).each_level(_in_topological_order)
    client: list[Run] = []
    for run in rewriter.client:
        earlier = [
            one.name
            for one in client
            if frozenset((one.graph, run.graph)) in graphs and one.name not in run.after
        ]
        client.append(replace(run, after=(*run.after, *earlier)))
    return replace(rewriter, client=tuple(client)).build()


def _in_topological_order(body: Body) -> Body:
    """The body with nodes moved below those that they follow; the same on a cycle."""
    names = {node.name for node in body.nodes}
    left, nodes = list(body.nodes), list[Node]()
    while left:
        above = {node.name for node in nodes}
        ready = next((node for node in left if names & _follows(node) <= above), None)
        if ready is None:
            return body
        left.remove(ready)
        nodes.append(ready)
    return replace(body, nodes=tuple(nodes))


def _follows(node: Node) -> set[str]:
    """Names of nodes that stand above a node of the same level."""
    members = node.attrs.members if isinstance(node.attrs, SectionAttrs) else ()
    captured = (outside for _, outside in captures_of(node))
    return {*map(head, (*node.edges, *captured)), *members}
