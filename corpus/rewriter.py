"""Edits of a litmus test, for reduction and mutation.

A `Rewriter` holds the parts of a test, unchecked until `Rewriter.build`. An edit need not
know the rules of the format: it keeps the order around nodes that it removes, puts a constant
in place of a value that is gone, and leaves it to `LitmusTest` to refuse the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from litmusfuzz.corpus.model import (
    Accumulator,
    Body,
    BranchAttrs,
    CallAttrs,
    Cluster,
    Graph,
    LitmusTest,
    Mutex,
    NestAttrs,
    Node,
    Queue,
    Run,
    Variable,
    after_dot,
    all_nodes,
    bodies,
    captures_of,
    head,
    listed,
    map_bodies,
    map_levels,
    map_nodes,
    redirected,
)
from litmusfuzz.corpus.ops import ConstAttrs, HandleAttrs, Kind, SectionAttrs
from litmusfuzz.corpus.struct import replace

if TYPE_CHECKING:
    from litmusfuzz.corpus.ops import TensorType

Types = Mapping[str, "TensorType | None"]


@dataclass(frozen=True, slots=True)
class Rewriter:
    """The parts of a test, to be edited.

    `client` has every run, and `observe` the run and the node of each key, so
    that an edit need not know whether there are several runs.
    """

    name: str
    description: str
    variables: tuple[Variable, ...]
    mutexes: tuple[Mutex, ...]
    queues: tuple[Queue, ...]
    accumulators: tuple[Accumulator, ...]
    graphs: tuple[Graph, ...]
    client: tuple[Run, ...]
    clusters: tuple[Cluster, ...]
    observe: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, test: LitmusTest) -> Rewriter:
        """Return the parts of `test`."""
        runs = test.runs
        keys = [
            (runs[0].name, key) if len(runs) == 1 else (head(key), after_dot(key))
            for key in test.observe
        ]
        return cls(
            test.name,
            test.description,
            test.variables,
            test.mutexes,
            test.queues,
            test.accumulators,
            test.graphs,
            runs,
            test.clusters,
            tuple(keys),
        )

    def build(self) -> LitmusTest:
        """Return the test with these parts.

        Raises
        ------
        MalformedTest
            If the parts break a rule of the format.
        """
        several = len(self.client) > 1
        return LitmusTest(
            self.name,
            self.variables,
            self.graphs,
            tuple(f"{run}.{key}" if several else key for run, key in self.observe),
            self.description,
            self.mutexes,
            self.queues,
            listed(self.client, self.graphs),
            self.clusters,
            self.accumulators,
        )

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Of all graphs and bodies, each node followed by those inside it."""
        return tuple(all_nodes(node for graph in self.graphs for node in graph.nodes))

    # --- edits -------------------------------------------------------------------------

    def each_level(self, edit: Callable[[Body], Body]) -> Rewriter:
        """Apply `edit` to each graph and each body, innermost first.

        A graph counts as a body without results.
        """
        return replace(self, graphs=map_levels(self.graphs, edit))

    def each_node(self, edit: Callable[[Node], Node]) -> Rewriter:
        """Apply `edit` to each node, innermost first."""
        return replace(self, graphs=map_nodes(self.graphs, edit))

    def with_node(self, node: Node) -> Rewriter:
        """Put a node in place of the node with its name."""
        return self.each_node(lambda old: node if old.name == node.name else old)

    def without_runs(self, gone: frozenset[str]) -> Rewriter:
        """Remove runs; a run that waited for one waits for its predecessors instead."""
        waits: dict[str, tuple[str, ...]] = {}
        client = []
        for run in self.client:
            after = _rewired(run.after, waits)
            if run.name in gone:
                waits[run.name] = after
            else:
                client.append(replace(run, after=after))
        observe = tuple((run, key) for run, key in self.observe if run not in gone)
        return replace(self, client=tuple(client), observe=observe)

    def without(self, gone: Iterable[str], types: Types) -> Rewriter:
        """Remove nodes, in graphs and bodies.

        A node that waited for a removed node waits for its predecessors instead; a node that
        used its value uses a constant. A section without members goes too.
        """
        lost = set(gone)
        sections = {n.name: set(n.members) for n in self.nodes if n.members}
        lost |= {name for name, members in sections.items() if members <= lost}
        cut = self.each_level(lambda body: _Cut(lost, types).body(body))
        clusters = (
            replace(c, members=tuple(m for m in c.members if m not in lost)) for c in self.clusters
        )
        return replace(
            cut,
            clusters=tuple(c for c in clusters if c.members),
            client=tuple(
                _asking(run, lambda name: () if head(name) in lost else (name,))
                for run in self.client
            ),
            observe=tuple((run, key) for run, key in self.observe if head(key) not in lost),
        )

    def instead(self, name: str, refs: Mapping[str, str], nodes: tuple[Node, ...] = ()) -> Rewriter:
        """Put other nodes in place of the node with that name.

        Parameters
        ----------
        name : str
        refs : mapping
            New reference for each of its values.
        nodes : tuple of Node
            Nodes that waited for the old node wait for all of these.
        """
        names = tuple(n.name for n in nodes)
        members = tuple(n.name for n in nodes if n.definition.kind is not Kind.SECTION)

        def swap(ref: str) -> str:
            return refs.get(ref, ref)

        def edit(body: Body) -> Body:
            kept: list[Node] = []
            for node in body.nodes:
                if node.name == name:
                    kept += nodes
                    continue
                after = [n for a in node.after for n in (names if a == name else (swap(a),))]
                node = redirected(replace(node, after=_once(after)), swap)
                if name in node.members:
                    listed = (n for m in node.members for n in (members if m == name else (m,)))
                    node = replace(node, attrs=SectionAttrs(tuple(listed)))
                kept.append(node)
            return Body(tuple(kept), tuple(map(swap, body.results)))

        clusters = (
            replace(c, members=tuple(n for m in c.members for n in (names if m == name else (m,))))
            for c in self.clusters
        )
        observe = ((run, swap(key)) for run, key in self.observe)

        def instead_of(wanted: str) -> tuple[str, ...]:
            if head(wanted) != name:
                return (wanted,)
            return (swap(wanted),) if wanted in refs else names

        return replace(
            self.each_level(edit),
            client=tuple(_asking(run, instead_of) for run in self.client),
            clusters=tuple(c for c in clusters if c.members),
            observe=tuple(dict.fromkeys(each for each in observe if head(each[1]) != name)),
        )

    def tidy(self, *, nodes: bool = True, captures: bool = True, results: bool = True) -> Rewriter:
        """Remove what nothing uses: graphs, resources, feeds, and what the flags name.

        Keeps the order between effects, except where a capture gives it, and at least one resource.

        Parameters
        ----------
        nodes : bool
            Pure nodes, and control edges from constants.
        captures : bool
            Captures of loops, branches and calls. These wait for each value that they capture.
        results : bool
            Results of branches and calls.
        """
        observed = {key for _, key in self.observe}
        observed.update(name for run in self.client for name in run.wanted)
        live = _Live(nodes=nodes, captures=captures, results=results)
        graphs = tuple(
            Graph(graph.name, live.body(Body(graph.nodes, ()), observed).nodes)
            for graph in self.graphs
            if any(run.graph == graph.name for run in self.client)
        )
        left = [node for graph in graphs for node in all_nodes(graph.nodes)]
        touched = {name for node in left for name in node.resources}
        touched |= {n.attrs.variable for n in left if isinstance(n.attrs, HandleAttrs)}
        names = {node.name for node in left}
        clusters = (
            replace(c, members=tuple(m for m in c.members if m in names)) for c in self.clusters
        )
        variables = tuple(v for v in self.variables if v.name in touched)
        mutexes = tuple(m for m in self.mutexes if m.name in touched)
        queues = tuple(q for q in self.queues if q.name in touched)
        accumulators = tuple(a for a in self.accumulators if a.name in touched)
        if not (variables or mutexes or queues or accumulators):
            variables = self.variables[:1]
        fed = (
            replace(run, feeds=tuple(each for each in run.feeds if each[0] in names))
            for run in self.client
        )
        return replace(
            self,
            client=tuple(fed),
            variables=variables,
            mutexes=mutexes,
            queues=queues,
            accumulators=accumulators,
            graphs=graphs,
            clusters=tuple(c for c in clusters if c.members),
        )


def constant(name: str, kind: TensorType) -> Node:
    """Constant in place of a value that is gone."""
    return Node(name, "Const", attrs=ConstAttrs(kind.dtype, kind.shape, 1))


def _asking(run: Run, change: Callable[[str], tuple[str, ...]]) -> Run:
    """The run with other names in place of those that it fetches, targets and feeds."""
    fetches = _once(n for name in run.fetches for n in change(name))
    targets = _once(n for name in run.targets for n in change(name) if n not in fetches)
    feeds = tuple(each for each in run.feeds if change(each[0]) == (each[0],))
    return replace(run, fetches=fetches, targets=targets, feeds=feeds)


def _once(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def _rewired(names: Iterable[str], waits: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    return _once(n for name in names for n in waits.get(head(name), (name,)))


class _Cut:
    """Removes nodes from one graph or body."""

    def __init__(self, gone: set[str], types: Types) -> None:
        self.gone = gone
        self.types = types
        self.nodes: list[Node] = []
        self.waits: dict[str, tuple[str, ...]] = {}  # of removed nodes

    def body(self, body: Body) -> Body:
        for node in body.nodes:
            if node.name in self.gone:
                outside = (outer for _, outer in captures_of(node))
                sources = (*node.after, *node.members, *node.inputs, *outside)
                self.waits[node.name] = _rewired(sources, self.waits)
                continue
            node = replace(node, after=_rewired(node.after, self.waits))
            node = redirected(node, self.value)
            if node.members:
                kept = tuple(name for name in node.members if name not in self.gone)
                node = replace(node, attrs=SectionAttrs(kept))
            self.nodes.append(node)
        results = tuple(map(self.value, body.results))
        return Body(tuple(self.nodes), results)

    def value(self, ref: str) -> str:
        """The reference, or a constant in place of a value that is gone."""
        kind = self.types.get(ref)
        if head(ref) not in self.waits or kind is None:
            return ref
        name = ref.replace(".", "_") + "k"
        if all(node.name != name for node in self.nodes):
            self.nodes.append(constant(name, kind))
        return name


@dataclass(frozen=True, slots=True)
class _Live:
    """Which unused parts of a graph, and of the bodies inside it, are removed."""

    nodes: bool
    captures: bool
    results: bool

    def body(self, body: Body, observed: set[str]) -> Body:
        """A graph or body without these."""
        constants = {n.name for n in body.nodes if n.definition.constant and not n.after}
        sources = constants if self.nodes else set[str]()
        used = {*body.results, *observed}
        kept: list[Node] = []
        for node in reversed(body.nodes):
            needed = node.name in map(head, used)
            works = any(n.resources for n in all_nodes([node]))
            if self.nodes and not (needed or works):
                continue
            node = replace(node, after=tuple(name for name in node.after if name not in sources))
            if self.results:
                node = _returning_used(node, used)
            node = map_bodies(node, lambda body: self.body(body, set()))
            if self.captures:
                node = _capturing_used(node)
            used.update(node.references)
            kept.append(node)
        names = {node.name for node in kept}
        nodes = []
        for node in reversed(kept):
            if node.members:
                members = tuple(name for name in node.members if name in names)
                node = replace(node, attrs=SectionAttrs(members))
            nodes.append(node)
        return Body(tuple(nodes), body.results)


def _returning_used(node: Node, used: set[str]) -> Node:
    """A branch or call without the results that nothing uses; a branch returns at least one."""
    attrs = node.attrs
    if isinstance(attrs, BranchAttrs):
        needed = [i for i, r in enumerate(attrs.results) if f"{node.name}.{r}" in used] or [0]

        def fewer(body: Body) -> Body:
            return replace(body, results=tuple(body.results[i] for i in needed))

        attrs = replace(
            attrs,
            then=fewer(attrs.then),
            orelse=fewer(attrs.orelse),
            results=tuple(attrs.results[i] for i in needed),
        )
    elif isinstance(attrs, CallAttrs):
        kept = [i for i, r in enumerate(attrs.results) if f"{node.name}.{r}" in used]
        returned = tuple(attrs.body.results[i] for i in kept)
        names = tuple(attrs.results[i] for i in kept)
        attrs = replace(attrs, body=replace(attrs.body, results=returned), results=names)
    return replace(node, attrs=attrs)


def _capturing_used(node: Node) -> Node:
    """A node that captures only what its bodies use."""
    inside = {
        name
        for _, body in bodies(node)
        for name in (*body.results, *(ref for each in body.nodes for ref in each.references))
    }
    attrs = node.attrs
    if isinstance(attrs, NestAttrs):
        attrs = replace(attrs, captures=tuple(each for each in attrs.captures if each[0] in inside))
    return replace(node, attrs=attrs)
