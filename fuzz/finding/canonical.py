"""Computes the canonical form of a test, and from it the key of a finding.

Two tests have the same canonical form if and only if they differ at most in

- names;
- the order of unordered parts: nodes, resources, graphs, runs, clusters, control edges, members of
  a section, carried values after the counter, results, captures of a body, observed values;
- values of which only the equality matters.

The algorithm is graph canonization. A test is converted to a graph with coloured vertices and
labelled edges, so that two tests differ as above if and only if their graphs are isomorphic.
Colours are refined until vertices of one colour have the same neighbours. While several vertices
share a colour, each of them is individualized in turn, and the least of the resulting labellings is
the canonical one. Two labellings with the same edges give an automorphism, which prunes equivalent
branches of the search.

The form keeps redundant control edges, equal constants and the order of a sum's operands, because
executors may treat them differently even where the model does not.

References
----------
McKay and Piperno, "Practical graph isomorphism, II", J. Symb. Comput. 2014, section 2: refine,
individualize, prune by automorphisms.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

import msgspec

from litmusfuzz.corpus.model import (
    BranchAttrs,
    CallAttrs,
    Graph,
    LoopAttrs,
    NestAttrs,
    Reordering,
    bodies,
    captures_of,
    map_nodes,
    topological_order,
)
from litmusfuzz.corpus.ops import BOOL, ConstAttrs, HandleAttrs, SectionAttrs
from litmusfuzz.corpus.rewriter import Rewriter
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import Entry, dumps, plain_of
from litmusfuzz.fuzz.finding.configuration_reducer import needed_settings
from litmusfuzz.fuzz.finding.renaming import normalized
from litmusfuzz.oracles.events import in_program_order
from litmusfuzz.oracles.model import GUARANTEES, RFC, Axiom
from litmusfuzz.oracles.reason import explain

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from litmusfuzz.corpus.model import LitmusTest, Node, Queue, Variable
    from litmusfuzz.corpus.ops import Nested
    from litmusfuzz.corpus.outcome import Outcome
    from litmusfuzz.oracles.model import Model


MAX_STEPS: Final = 200_000
"""Vertices that the search looks at, at most: about a second. The largest test of the corpus
and of the families takes a thousand."""


class _Thing(Protocol):
    @property
    def name(self) -> str: ...


_Named = TypeVar("_Named", bound=_Thing)
VERSION: Final = "v3"
"""Version of keys. It changes whenever any finding gets another key: keys stand in files."""


def form(
    test: LitmusTest, model: Model = RFC, names: Collection[str] = (), *, order: bool = False
) -> LitmusTest:
    """The canonical form: one test for all tests that are equal in the sense of this module.

    Parameters
    ----------
    test : LitmusTest
    model : Model
        Judges it. Under *program order per resource*, the order of the nodes in the file is kept
        as far as that rule requires.
    names : collection of str
        Names of nodes and resources without which the test does not show its finding. They are
        kept: such a test has another form than one that shows under any names.
    order : bool
        True if the test does not show its finding with its nodes in another order, which is kept.
    """
    graph_of_test = _ColouredGraph(test, model, names, order=order)
    made = _RewrittenTest(graph_of_test, _Labelling(graph_of_test).ranks).test(names)
    if not (names or order):
        return made
    needs = ", ".join([*sorted(names), *(["this order"] if order else [])])
    return made.titled(description=f"only with {needs}")


def ordered(test: LitmusTest, model: Model = RFC) -> LitmusTest:
    """The test with its nodes in the order of the canonical form; names and values stay."""
    graph_of_test = _ColouredGraph(test, model)
    return _RewrittenTest(graph_of_test, _Labelling(graph_of_test).ranks).in_order().build()


def reordered(test: LitmusTest, model: Model, seed: int) -> LitmusTest:
    """The test with the unordered parts of its graphs in a random order.

    Names and values stay. Nodes still come after those that they need. Each linear extension has a
    chance, though not the same one.
    """
    rng = random.Random(f"order/{seed}")
    rank = {name: rng.random() for name in test.types}
    return test.reordered(Reordering(rank, _below(test, model)))


def key(
    test: LitmusTest,
    *,
    kind: str,
    rules: Iterable[str],
    executor_class: str,
    model: Model = RFC,
    names: Collection[str] = (),
    order: bool = False,
    settings: Mapping[str, int | str | bool] = MappingProxyType({}),
) -> str:
    """The key of a finding: a short digest, equal in every nightly run.

    Parameters
    ----------
    test : LitmusTest
        The minimized test, under any names apart from those that it needs.
    kind : str
        The kind of finding, `reports.events.FindingKind`.
    rules : iterable of str
        The broken rules, `oracles.reason.Reason.broken`; none for a finding that breaks no rule.
    executor_class : str
        See `executor_class`.
    model : Model
        Judges the outcomes.
    names, order
        What the test needs; see `form`.
    settings : mapping
        Those that it needs (`configuration_reducer.needed_settings`).
    """
    needed = sorted(settings.items())
    canonical = dumps(Entry(form(test, model, names, order=order)))
    parts = (kind, "; ".join(sorted(rules)), executor_class, needed, canonical)
    return f"{VERSION}-{hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]}"


def key_of(entry: Entry) -> str:
    """The key of a minimized finding, from its file alone.

    Its rules are those that the most frequent outcome breaks.
    """
    finding = entry.finding
    assert finding is not None
    model = GUARANTEES[finding.model]
    return key(
        entry.test,
        kind="forbidden",
        rules=_broken_rules(entry.test, model, finding.forbidden[0][0]),
        executor_class=executor_class(finding.executor, finding.settings, finding.model),
        model=model,
        names=finding.needs_names,
        order=finding.needs_order,
        settings=needed_settings(finding.executor, finding.settings),
    )


@lru_cache(1 << 8)  # known findings are read again and again
def _broken_rules(test: LitmusTest, model: Model, outcome: Outcome) -> tuple[str, ...]:
    reason = explain(test, model, outcome)
    return reason.broken if reason else ()


def digest(test: LitmusTest) -> str:
    """SHA-256 of a test as JSON: equal if the test is generated again."""
    return hashlib.sha256(msgspec.json.encode(plain_of(test))).hexdigest()


def executor_class(executor: str, settings: Mapping[str, int | str | bool], model: str) -> str:
    """Configurations that likely share their defects: ``tf/xla``, ``tf/function``, ``native/rfc``.

    The class depends on the settings, not on the name: a compiler, else another front end, else
    the guaranteed model. Pools, threads, rewrites and engines do not matter: a race in a kernel
    shows in all of them.
    """
    if settings.get("compiled"):
        part = "xla"
    elif settings.get("front_end", "graph") != "graph":
        part = str(settings["front_end"])
    else:
        part = model
    return f"{executor}/{part}"


# --- values ----------------------------------------------------------------------------

_Place = tuple[str, str]
"""A part of a test that holds a value: its kind, "value" or "resource", and its name."""


class _Values:
    """Value classes: places between which values are copied, and whether the values may be renamed.

    The values of a class may be renamed, one to one, if no op computes with them: every execution
    then shows the same outcome, renamed.
    """

    def __init__(self, test: LitmusTest) -> None:
        self.parent: dict[_Place, _Place] = {}
        self.computed: list[_Place] = []
        for node in test.nodes:
            self._node(node)
        # Predicates decide which ops run.
        self.computed += [
            ("value", name) for name, kind in test.types.items() if kind and kind.dtype == BOOL
        ]
        self.fixed = {self.value_class(place) for place in self.computed}

    def value_class(self, place: _Place) -> _Place:
        """The place that represents the class."""
        while (above := self.parent.get(place, place)) != place:
            place = above
        return place

    def _join(self, places: Sequence[_Place]) -> None:
        for other in places[1:]:
            first, second = self.value_class(places[0]), self.value_class(other)
            if first != second:
                self.parent[second] = first

    def _node(self, node: Node) -> None:
        attrs, name = node.attrs, node.name
        if isinstance(attrs, NestAttrs):
            flows = list(attrs.captures)
            if isinstance(attrs, LoopAttrs):
                flows += zip(attrs.carried, node.inputs, strict=True)
                flows += zip(attrs.carried, attrs.body.results, strict=True)
                flows += ((each, f"{name}.{each}") for each in attrs.carried)
            else:
                for _, body in bodies(node):
                    outer = (f"{name}.{result}" for result in attrs.results)
                    flows += zip(outer, body.results, strict=True)
            for pair in flows:
                self._join([("value", each) for each in pair])
            return
        inputs = [("value", each) for each in node.inputs]
        places = [*inputs, *(("resource", each) for each in node.resources), ("value", name)]
        if node.op == "Equal":
            self._join(inputs)
        elif node.op == "Select":
            self._join(places[1:])
        elif node.definition.computed:  # what selects rows keeps its values
            self.computed += places
        elif node.definition.copies:
            self._join(places)
        elif node.definition.sizes or node.definition.fed:
            self.computed.append(("value", name))
        elif node.definition.operands:
            self.computed += places


# --- the order of the file -------------------------------------------------------------


def _below(test: LitmusTest, model: Model, *, order: bool = False) -> dict[str, tuple[str, ...]]:
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


# --- the graph of a test ---------------------------------------------------------------


class _ColouredGraph:
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
        self.values = _Values(test)
        self.number: dict[tuple[str, object], int] = {}
        self.colours: list[str] = []
        self.edges: list[tuple[str, int, int]] = []
        self.class_members: set[tuple[_Place, int]] = set()
        """Values that may be renamed, each with its value class."""
        self.below = _below(test, model, order=order)
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

    def _holder(self, place: _Place, held: Sequence[tuple[int, ...]], *colour: object) -> int:
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


# --- the labelling ---------------------------------------------------------------------


class _OverBudget(Exception):
    """The search for the canonical order takes more than `MAX_STEPS`."""


class _Labelling:
    """Finds the canonical order of the vertices: `ranks` has each vertex's place in it.

    If the search takes too long, `ranks` has the order of the file instead. Two tests that are
    equal then have the same form only if their files agree in that order: a finding may have two
    keys, but two findings never share one.

    `leaves` has the labellings found so far, by their sorted edges, each with the path of
    individualized vertices that led to it.
    """

    def __init__(self, graph_of_test: _ColouredGraph) -> None:
        self.edges = graph_of_test.edges
        self.near: list[list[tuple[str, int]]] = [[] for _ in graph_of_test.colours]
        for label, one, other in graph_of_test.edges:
            self.near[one].append((f"{label} >", other))
            self.near[other].append((f"{label} <", one))
        self.leaves: dict[tuple[tuple[str, int, int], ...], tuple[list[int], tuple[int, ...]]] = {}
        self.automorphisms: list[list[int]] = []
        self.steps = 0
        order = {colour: rank for rank, colour in enumerate(sorted(set(graph_of_test.colours)))}
        colours = [order[colour] for colour in graph_of_test.colours]
        try:
            self._search(self._refined(colours), ())
            self.ranks = self.leaves[min(self.leaves)][0]
        except _OverBudget:
            by_file = sorted(range(len(colours)), key=lambda vertex: (colours[vertex], vertex))
            self.ranks = [0] * len(colours)
            for rank, vertex in enumerate(by_file):
                self.ranks[vertex] = rank

    def _step(self, vertices: int) -> None:
        self.steps += vertices
        if self.steps > MAX_STEPS:
            raise _OverBudget

    def _refined(self, colours: list[int]) -> list[int]:
        """Refine the colours until vertices of one colour have neighbours of the same colours."""
        count = len(set(colours))
        while True:
            self._step(len(colours))
            seen = [
                (colour, tuple(sorted((label, colours[other]) for label, other in near)))
                for colour, near in zip(colours, self.near, strict=True)
            ]
            order = {each: rank for rank, each in enumerate(sorted(set(seen)))}
            colours = [order[each] for each in seen]
            if len(order) == count:
                return colours
            count = len(order)

    def _search(self, colours: list[int], path: tuple[int, ...]) -> int:
        """Individualize each vertex of the smallest cell in turn, and search further.

        A cell is a set of vertices of one colour; `path` has the vertices that are individualized
        so far.

        Returns
        -------
        int
            Length of the part of `path` below which the search continues. It is less than
            ``len(path)`` after an automorphism: the rest of this branch mirrors an earlier one.
        """
        sizes = Counter(colours)
        cells = [(size, colour) for colour, size in sizes.items() if size > 1]
        if not cells:
            return self._leaf(colours, path)
        _, cell = min(cells)
        tried: list[int] = []
        for vertex, colour in enumerate(colours):
            if colour != cell or vertex in self._images(tried, path):
                continue
            split = [2 * each for each in colours]
            split[vertex] -= 1
            kept = self._search(self._refined(split), (*path, vertex))
            if kept < len(path):
                return kept
            tried.append(vertex)
        return len(path)

    def _leaf(self, ranks: list[int], path: tuple[int, ...]) -> int:
        """Add a complete labelling, or an automorphism if its edges equal those of an earlier one.

        Returns the part of `path` below which the search continues, as `_search` does.
        """
        edges = tuple(sorted((label, ranks[one], ranks[other]) for label, one, other in self.edges))
        if edges not in self.leaves:
            self.leaves[edges] = ranks, path
            return len(path)
        earlier, way = self.leaves[edges]
        at = {rank: vertex for vertex, rank in enumerate(ranks)}
        self.automorphisms.append([at[rank] for rank in earlier])
        return next(
            i for i, (one, other) in enumerate(zip(way, path, strict=False)) if one != other
        )

    def _images(self, vertices: Sequence[int], path: tuple[int, ...]) -> set[int]:
        """The vertices, and their images under the automorphisms that fix each vertex of `path`."""
        found = set(vertices)
        waiting = list(vertices)
        self._step(len(self.automorphisms) * (1 + len(path)))
        fixing = [each for each in self.automorphisms if all(each[v] == v for v in path)]
        while waiting:
            vertex = waiting.pop()
            new = {each[vertex] for each in fixing} - found
            found |= new
            waiting += new
        return found


# --- writing it down -------------------------------------------------------------------


class _RewrittenTest:
    """Writes the test with its parts in the order of the ranks, and values renamed from 0 on."""

    def __init__(self, graph_of_test: _ColouredGraph, ranks: list[int]) -> None:
        self.graph_of_test = graph_of_test
        self.rank = {name: ranks[vertex] for name, vertex in graph_of_test.number.items()}
        value_ranks = {
            str(name): rank for (kind, name), rank in self.rank.items() if kind == "value"
        }
        self.order = Reordering(value_ranks, graph_of_test.below)
        self.value: dict[tuple[_Place, int], int] = {}
        in_class: Counter[_Place] = Counter()
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

    def _literal(self, place: _Place, values: Sequence[int], shape: tuple[int, ...]) -> Nested:
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
