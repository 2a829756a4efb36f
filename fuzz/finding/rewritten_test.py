"""Writes a test in its canonical order, with canonical names and values."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Protocol, TypeVar

from litmusfuzz.corpus.model import Graph, Reordering, map_nodes, topological_order
from litmusfuzz.corpus.ops import ConstAttrs
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.finding.renaming import normalized

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from litmusfuzz.corpus.model import LitmusTest, Node, Queue, Variable
    from litmusfuzz.corpus.ops import Nested
    from litmusfuzz.corpus.rewriter import Rewriter
    from litmusfuzz.fuzz.finding.coloured_graph import ColouredGraph
    from litmusfuzz.fuzz.finding.value_classes import Place


class _Thing(Protocol):
    @property
    def name(self) -> str: ...


_Named = TypeVar("_Named", bound=_Thing)


class RewrittenTest:
    """Writes the test with its parts in the order of the ranks, and values renamed from 0 on."""

    def __init__(self, graph_of_test: ColouredGraph, ranks: list[int]) -> None:
        self.graph_of_test = graph_of_test
        self.rank = {name: ranks[vertex] for name, vertex in graph_of_test.number.items()}
        value_ranks = {
            str(name): rank for (kind, name), rank in self.rank.items() if kind == "value"
        }
        self.order = Reordering(value_ranks, graph_of_test.below)
        self.value: dict[tuple[Place, int], int] = {}
        in_class: Counter[Place] = Counter()
        for each in sorted(graph_of_test.class_members, key=lambda each: self.rank["symbol", each]):
            value_class, _ = each
            self.value[each] = in_class[value_class]
            in_class[value_class] += 1

    def test(self, kept: Collection[str]) -> LitmusTest:
        """The test with sorted parts, and then with numbered names, apart from those kept."""
        graph_of_test, old = self.graph_of_test, self.graph_of_test.rewriter
        graphs = self._sorted("graph", old.graphs)
        waits = {run.name: set(run.after) for run in old.client}
        runs = {run.name: run for run in old.client}
        run_ranks = {name: self.rank["run", name] for name in runs}
        client = [
            replace(
                runs[name],
                after=self._names("run", runs[name].after),
                fetches=self._names("value", runs[name].fetches),
                targets=self._names("value", runs[name].targets),
                feeds=tuple(sorted(runs[name].feeds, key=lambda each: self.rank["value", each[0]])),
            )
            for name in topological_order(waits, run_ranks)
        ]
        called = {run.name: run.name for run in client}
        if not any(waits.values()) and len({run.graph for run in client}) == len(client):
            # One run of each graph is the default: the runs get the names of the graphs.
            called = {run.name: run.graph for run in client}
            client.sort(key=lambda run: self.rank["graph", run.graph])
        observe = sorted(old.observe, key=lambda each: self._place(*each))
        rewriter = replace(
            old,
            variables=tuple(map(self._variable, self._sorted("resource", old.variables))),
            mutexes=self._sorted("resource", old.mutexes),
            accumulators=self._sorted("resource", old.accumulators),
            queues=tuple(map(self._queue, self._sorted("resource", old.queues))),
            graphs=self._graphs(graphs),
            client=tuple(replace(run, name=called[run.name]) for run in client),
            clusters=self._sorted("cluster", old.clusters),
            observe=tuple((called[run], name) for run, name in observe),
        )
        assert len(rewriter.client) == len(old.client), graph_of_test.test.name
        return normalized(rewriter.build(), "canonical", kept)

    def in_order(self) -> Rewriter:
        """The parts of the test with the nodes of each level sorted; names and values stay."""
        self.value = {}
        old = self.graph_of_test.rewriter
        return replace(old, graphs=self._graphs(old.graphs))

    def _graphs(self, graphs: Iterable[Graph]) -> tuple[Graph, ...]:
        ordered_graphs = (Graph(graph.name, self.order.nodes(graph.nodes)) for graph in graphs)
        return map_nodes(ordered_graphs, self._constant)

    def _place(self, run: str, name: str) -> tuple[int, int]:
        return self.rank["run", run], self.rank["value", name]

    def _names(self, kind: str, names: Iterable[str]) -> tuple[str, ...]:
        return tuple(sorted(names, key=lambda name: self.rank[kind, name]))

    def _sorted(self, kind: str, things: Iterable[_Named]) -> tuple[_Named, ...]:
        return tuple(sorted(things, key=lambda each: self.rank[kind, each.name]))

    def _variable(self, variable: Variable) -> Variable:
        if variable.init is None:
            return variable
        values = self.graph_of_test.test.initial(variable)
        init = self._literal(("resource", variable.name), values, variable.shape)
        return replace(variable, init=init)

    def _queue(self, queue: Queue) -> Queue:
        elements = self.graph_of_test.test.initial_elements(queue)
        place = ("resource", queue.name)
        return replace(
            queue, init=tuple(self._literal(place, each, queue.shape) for each in elements)
        )

    def _literal(self, place: Place, values: Sequence[int], shape: tuple[int, ...]) -> Nested:
        value_class = self.graph_of_test.values.value_class(place)
        renamed = (self.value.get((value_class, value), value) for value in values)
        return _literal(tuple(renamed), shape, whole=self.graph_of_test.test.whole)

    def _constant(self, node: Node) -> Node:
        attrs = node.attrs
        if not isinstance(attrs, ConstAttrs):
            return node
        values = self.graph_of_test.test.constant(node)
        value = self._literal(("value", node.name), values, attrs.shape)
        return replace(node, attrs=replace(attrs, value=value))


def _literal(values: tuple[int, ...], shape: tuple[int, ...], *, whole: bool) -> Nested:
    """Model values in the form of test files: one int if all are equal, else nested by row."""
    if len(set(values)) == 1:
        return values[0]
    if not whole or len(shape) == 1:
        return values
    size = len(values) // shape[0]
    rows = (values[start : start + size] for start in range(0, len(values), size))
    return tuple(_literal(row, shape[1:], whole=True) for row in rows)
