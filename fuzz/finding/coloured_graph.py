"""A test as a graph with coloured vertices, of which the canonical form is computed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from litmusfuzz.corpus.model import BranchAttrs, CallAttrs, Graph, LoopAttrs, bodies, captures_of
from litmusfuzz.corpus.ops import ConstAttrs, HandleAttrs, SectionAttrs
from litmusfuzz.corpus.rewriter import Rewriter
from litmusfuzz.fuzz.finding.value_classes import Place, ValueClasses
from litmusfuzz.oracles.events import in_program_order
from litmusfuzz.oracles.model import Axiom

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from litmusfuzz.corpus.model import LitmusTest, Node
    from litmusfuzz.oracles.model import Model


def kept_below(
    test: LitmusTest, model: Model, *, order: bool = False
) -> dict[str, tuple[str, ...]]:
    """For a node, others that the file must have above it though no edge leads from them.

    In a body of a cluster's member, nodes are taken in the order of the file (`oracles.events`),
    which then matters as under *program order per resource*.

    Parameters
    ----------
    test : LitmusTest
    model : Model
    order : bool
        True if the order of all nodes in the file matters.
    """
    found: dict[str, tuple[str, ...]] = {}
    # In one thread, and in one cluster, nodes are taken in the order of the file.
    every = order or not model.axioms.isdisjoint((Axiom.SEQUENCE, Axiom.ONE_CLUSTER))
    in_turn = Axiom.IN_TURN in model.axioms
    in_order = Axiom.PROGRAM_ORDER in model.axioms
    if not (every or in_turn or in_order or test.clusters):
        return found
    clustered = {name for cluster in test.clusters for name in cluster.members}

    def level(graph: Graph, *, chained: bool, in_order: bool) -> None:
        above: tuple[str, ...] = ()
        ordered_nodes = (in_program_order(graph) if in_order else graph).nodes
        for node, more in zip(graph.nodes, ordered_nodes, strict=True):
            found[node.name] = above if chained else more.after[len(node.after) :]
            above = (node.name,)
            for _, body in bodies(node):
                inside = Graph("", body.nodes)
                level(inside, chained=every, in_order=in_order or node.name in clustered)

    for graph in test.graphs:
        level(graph, chained=every or in_turn, in_order=in_order)
    return found


class ColouredGraph:
    """A test as a graph with coloured vertices, and edges as (label, from, to).

    Vertices of `names` have their name as part of their colour. With `order`, the order of all
    nodes in the file matters.
    """

    def __init__(
        self, test: LitmusTest, model: Model, names: Collection[str] = (), *, order: bool = False
    ) -> None:
        self.test = test
        self.kept = frozenset(names)
        self.one_thread = Axiom.SEQUENCE in model.axioms
        self.rewriter = Rewriter.of(test)
        self.values = ValueClasses(test)
        self.number: dict[tuple[str, object], int] = {}
        self.colours: list[str] = []
        self.edges: list[tuple[str, int, int]] = []
        self.class_members: set[tuple[Place, int]] = set()
        """Values that may be renamed, each with its value class."""
        self.below = kept_below(test, model, order=order)
        self._resources()
        for place, graph in enumerate(test.graphs):
            here = self._vertex("graph", graph.name, *self._turn(place))
            self._level(graph.nodes, here, "in")
        self._client()

    def _turn(self, place: int) -> tuple[str, ...]:
        """The colour of a graph or run by its place in the file, which matters in one thread."""
        return (f"{place:04}",) if self.one_thread else ()

    def _resources(self) -> None:
        test = self.test
        for each in test.mutexes:
            self._vertex("resource", each.name, "mutex", each.device)
        for variable in test.variables:
            # One without a value holds nothing.
            held: tuple[tuple[int, ...], ...] = (test.initial(variable),)
            colour: tuple[object, ...] = ("variable", variable.dtype, variable.shape)
            colour += ("gradient",) if variable.gradient else ()
            self._holder(("resource", variable.name), held, *colour, variable.device)
        for summed in test.accumulators:
            colour = ("accumulator", summed.dtype, summed.shape, summed.device)
            self._vertex("resource", summed.name, *colour)
        for queue in test.queues:
            held = test.initial_elements(queue)
            colour = ("queue", queue.dtype, queue.shape, queue.capacity)
            self._holder(("resource", queue.name), held, *colour, queue.device)

    def _level(self, nodes: Sequence[Node], around: int, label: str) -> None:
        """The nodes of a graph or body, in the vertex `around`."""
        for node in nodes:
            here = self._node(node)
            self._edge(label, around, here)
            for name in self.below.get(node.name, ()):
                self._edge("below", here, self.number["value", name])
            for field_name, body in bodies(node):
                self._level(body.nodes, here, field_name)
            self._results(node, here)

    def _node(self, node: Node) -> int:
        """Add a node, and the names of values in its bodies."""
        attrs = node.attrs
        colour: tuple[object, ...] = (node.op, node.device)
        place = ("value", node.name)
        if isinstance(attrs, ConstAttrs):
            here = self._holder(
                place, (self.test.constant(node),), *colour, attrs.dtype, attrs.shape
            )
        elif isinstance(attrs, LoopAttrs):
            here = self._vertex(*place, *colour, attrs.parallel_iterations)
        elif isinstance(attrs, (BranchAttrs, CallAttrs, SectionAttrs)):
            here = self._vertex(*place, *colour)
        elif isinstance(attrs, HandleAttrs):
            here = self._vertex(*place, *colour)
            self._edge("stands for", here, self.number["resource", attrs.variable])
        else:
            here = self._vertex(*place, *colour, attrs)
        if node.handle:
            self._edge("handle", here, self.number["value", node.handle])
        if isinstance(attrs, LoopAttrs):
            for position, (name, first) in enumerate(zip(attrs.carried, node.inputs, strict=True)):
                inner = self._vertex("value", name, "carried", position == 0)
                self._edge("carries", here, inner)
                self._edge("at first", inner, self.number["value", first])
        else:
            for position, name in enumerate(node.inputs):
                self._edge(f"input {position}", here, self.number["value", name])
        for position, name in enumerate(node.resources):
            role = 0 if node.handle else position
            self._edge(f"on {role}", here, self.number["resource", name])
        for name in node.after:
            self._edge("after", here, self.number["value", name])
        for name, outer in captures_of(node):
            inner = self._vertex("value", name, "taken")
            self._edge("captures", here, inner)
            self._edge("from", inner, self.number["value", outer])
        return here

    def _results(self, node: Node, here: int) -> None:
        """Add the results of a node's bodies as vertices of their own, and a section's members."""
        attrs = node.attrs
        if isinstance(attrs, LoopAttrs):
            for name, value in zip(attrs.carried, attrs.body.results, strict=True):
                inner = self.number["value", name]
                self._edge("next", inner, self.number["value", value])
                result = self._vertex("value", f"{node.name}.{name}", "result")
                self._edge("last", inner, result)
            self._edge("if", here, self.number["value", attrs.condition.results[0]])
        elif isinstance(attrs, (BranchAttrs, CallAttrs)):
            for position, name in enumerate(attrs.results):
                result = self._vertex("value", f"{node.name}.{name}", "result")
                self._edge("returns", here, result)
                for field_name, body in bodies(node):
                    inner = self.number["value", body.results[position]]
                    self._edge(f"by {field_name}", result, inner)

    def _client(self) -> None:
        for node in self.test.nodes:
            if isinstance(node.attrs, SectionAttrs):
                for name in node.attrs.members:
                    one, other = self.number["value", node.name], self.number["value", name]
                    self._edge("holds", one, other)
        for cluster in self.rewriter.clusters:
            here = self._vertex("cluster", cluster.name)
            for position, name in enumerate(cluster.members):
                self._edge(f"member {position}", here, self.number["value", name])
        for place, run in enumerate(self.rewriter.client):
            here = self._vertex("run", run.name, *self._turn(place))
            self._edge("of", here, self.number["graph", run.graph])
            for name in run.after:
                self._edge("after", here, self.number["run", name])
            for name in run.fetches:
                self._edge("fetches", here, self.number["value", name])
            for name in run.targets:
                self._edge("targets", here, self.number["value", name])
            for name, value in run.feeds:
                fed = self._vertex("fed", (run.name, name), value)
                self._edge("feeds", here, fed)
                self._edge("to", fed, self.number["value", name])
        for run_name, name in self.rewriter.observe:
            self._edge("sees", self.number["run", run_name], self.number["value", name])

    def _vertex(self, kind: str, name: object, *colour: object) -> int:
        if name in self.kept and kind in ("value", "resource"):
            colour = (*colour, "named", name)
        self.number[kind, name] = len(self.colours)
        self.colours.append(repr((kind, *colour)))
        return len(self.colours) - 1

    def _edge(self, label: str, one: int, other: int) -> None:
        self.edges.append((label, one, other))

    def _holder(self, place: Place, held: Sequence[tuple[int, ...]], *colour: object) -> int:
        """Add a holder of values: the values are its colour, or vertices if they may be renamed."""
        value_class = self.values.value_class(place)
        if value_class in self.values.fixed:
            return self._vertex(*place, *colour, held)
        here = self._vertex(*place, *colour, len(held))
        for element, values in enumerate(held):
            for row, value in enumerate(values):
                if (value_class, value) not in self.class_members:
                    self.class_members.add((value_class, value))
                    self._vertex("symbol", (value_class, value))
                self._edge(
                    f"row {element}.{row}",
                    here,
                    self.number["symbol", (value_class, value)],
                )
        return here
