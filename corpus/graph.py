"""The litmus test: one frozen value that goes through the whole program.

Every rule of the format is checked when a value is made, so that code which
holds one need not check again. Nothing here is mutable.

References
----------
semantics.md, sections 1 and 2.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.ops import (
    BOOL,
    OPS,
    Attrs,
    ConstAttrs,
    Kind,
    MalformedTest,
    Nested,
    OpDef,
    SectionAttrs,
    TensorType,
    check_literal,
    check_shape,
    expand,
    model_size,
    result_type,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

MAX_NODES: Final = 2048
MAX_VARIABLES: Final = 64
MAX_RUNS: Final = 64
MAX_CAPACITY: Final = 1024
MAX_ITERATIONS: Final = 64
FEATURES: Final = frozenset(
    {
        "several runs",
        "critical sections",
        "queues",
        "conditionals",
        "loops",
        "clusters",
        "transfers",
    }
)
"""All that `LitmusTest.features` may name."""
CONTROL: Final = re.compile("[^\t\n -~\xa0-\u2027\u202a-\ud7ff\ue000-\U0010ffff]")
"""What no text may hold: it moves a terminal's cursor, or is no character at all."""
# `fullmatch`, and ASCII only: these become TensorFlow node names.
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")


def check_name(name: str, path: tuple[str | int, ...]) -> None:
    """Refuse what TensorFlow, a shell or a reader could take for another thing."""
    if not _NAME.fullmatch(name):
        raise MalformedTest(
            f"a name is a letter, then letters, digits or _, at most 64; got {name[:80]!r}", path
        )


@dataclass(frozen=True, slots=True)
class Variable:
    """A resource variable: a named cell that holds one tensor.

    `shape` is ``(rows, *lanes)`` or ``()``; `init` one int for all elements
    or one for each row. `device` is where it lives, "" for the default.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    init: Nested = 0
    device: str = ""

    @property
    def type(self) -> TensorType:
        """dtype and shape."""
        return TensorType(self.dtype, self.shape)


@dataclass(frozen=True, slots=True)
class Mutex:
    """A lock that critical sections take; free at first, not re-entrant."""

    name: str
    device: str = ""


@dataclass(frozen=True, slots=True)
class Queue:
    """A blocking first-in first-out queue.

    `dtype` and `shape` are of one element, `capacity` the most it holds, and
    `init` its elements at first, in the order in which they leave.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    capacity: int
    init: tuple[Nested, ...] = ()
    device: str = ""

    @property
    def type(self) -> TensorType:
        """dtype and shape of an element."""
        return TensorType(self.dtype, self.shape)


Resource = Variable | Mutex | Queue


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a graph by the client, after other runs have ended."""

    name: str
    graph: str
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Cluster:
    """Nodes of one graph or body that run as one: a snapshot, then a write-back.

    `members` stand in the order in which they are made a pure function (SSA
    order). The nodes stay where they are: without its clusters, a test is the
    one that was clustered.

    References
    ----------
    semantics.md, section 5; BLOG, "Auto-clustering".
    """

    name: str
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Node:
    """One op of a graph.

    `inputs` are data edges and `after` control edges, both by the name of a
    node that stands earlier; `resources` are what it works on, in the roles'
    order (`OpDef.roles`). A critical section is a node as well: edges to and
    from it are edges of the section as a whole. `device` is where it runs, ""
    for wherever what it works on lives.
    """

    name: str
    op: str
    inputs: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    attrs: Attrs | BranchAttrs | LoopAttrs | None = None
    device: str = ""

    @property
    def definition(self) -> OpDef:
        """Its row of the op table."""
        return OPS[self.op]


@dataclass(frozen=True, slots=True)
class Body:
    """A graph inside a node: its nodes, and which of its values leave it.

    Only inputs and results cross its wall.
    """

    nodes: tuple[Node, ...]
    results: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BranchAttrs:
    """A conditional: one of two bodies, by a predicate, its only input.

    `takes` are values from outside, as (name inside, name outside); `results`
    name what both bodies return, as ``node.result`` outside.
    """

    takes: tuple[tuple[str, str], ...]
    then: Body
    orelse: Body
    results: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LoopAttrs:
    """A loop: carried values, a condition on them, a body that makes the next.

    The node's inputs are the first carried values; the results are the
    carried values, under their names, as they are when the condition is false.
    The first one is a counter that bounds the loop (`loop_bound`).
    """

    carried: tuple[str, ...]
    takes: tuple[tuple[str, str], ...]
    condition: Body
    body: Body
    parallel_iterations: int = 10


def bodies(node: Node) -> tuple[tuple[str, Body], ...]:
    """The graphs inside a node, each with the field that it stands in."""
    if isinstance(node.attrs, BranchAttrs):
        return ("then", node.attrs.then), ("else", node.attrs.orelse)
    if isinstance(node.attrs, LoopAttrs):
        return ("condition", node.attrs.condition), ("body", node.attrs.body)
    return ()


def all_nodes(nodes: Iterable[Node]) -> Iterator[Node]:
    """The nodes, and those inside them."""
    for node in nodes:
        yield node
        for _, body in bodies(node):
            yield from all_nodes(body.nodes)


@dataclass(frozen=True, slots=True)
class Graph:
    """A directed acyclic graph of nodes.

    Invariant, checked by `LitmusTest`: an edge leads from a node to one that
    stands later. The order of `nodes` is thus a linear extension, and no cycle
    can be written down.
    """

    name: str
    nodes: tuple[Node, ...]

    @property
    def effects(self) -> tuple[Node, ...]:
        """The nodes that touch a resource, in their order."""
        return tuple(n for n in self.nodes if n.definition.has_effect)


@dataclass(frozen=True, slots=True)
class LitmusTest:
    """Resources, graphs over them, a client that runs these, and what is observed.

    Parameters
    ----------
    name : str
        Also its file's name.
    variables : tuple of Variable
    graphs : tuple of Graph
        Names of nodes are unique over all graphs.
    observe : tuple of str
        Names of nodes whose value is part of an outcome; ``run.node`` if there
        are several runs.
    about : str
        For people.
    mutexes : tuple of Mutex
    queues : tuple of Queue
    client : tuple of Run
        A run stands after those that it comes after. If empty, each graph runs
        once, concurrently with the others, under its own name.
    clusters : tuple of Cluster

    Raises
    ------
    MalformedTest
        Naming the field.
    """

    name: str
    variables: tuple[Variable, ...]
    graphs: tuple[Graph, ...]
    observe: tuple[str, ...] = ()
    about: str = ""
    mutexes: tuple[Mutex, ...] = ()
    queues: tuple[Queue, ...] = ()
    client: tuple[Run, ...] = ()
    clusters: tuple[Cluster, ...] = ()
    types: Mapping[str, TensorType | None] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )
    """Result type of each node and of each value inside a body; None without one."""
    bounds: Mapping[str, int] = field(init=False, repr=False, compare=False, default_factory=dict)
    """How many iterations each loop has at most."""
    whole: bool = field(init=False, repr=False, compare=False, default=False)
    """Whether values are whole matrices: the test has a MatMul, hence no lanes."""

    def __post_init__(self) -> None:
        matrices = any(n.op == "MatMul" for g in self.graphs for n in all_nodes(g.nodes))
        object.__setattr__(self, "whole", matrices)
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,99}", self.name):
            raise MalformedTest(f"not a test's name: {self.name[:80]!r}", ("name",))
        if CONTROL.search(self.about):
            raise MalformedTest("control characters are not part of the format", ("about",))
        if not (self.variables or self.mutexes or self.queues):
            raise MalformedTest("a test has at least one resource", ("variables",))
        resources = self._check_resources()
        if not self.graphs:
            raise MalformedTest("a test has at least one graph", ("graphs",))
        types: dict[str, TensorType | None] = {}
        bounds: dict[str, int] = {}
        for graph in self.graphs:
            self._check_graph(graph, types, bounds, resources)
        self._check_client(types)
        self._check_clusters({*types, *resources})
        object.__setattr__(self, "types", MappingProxyType(types))
        object.__setattr__(self, "bounds", MappingProxyType(bounds))
        self._check_closes()
        self._check_observe()

    def _check_resources(self) -> dict[str, Resource]:
        resources: dict[str, Resource] = {}
        for kind, listed in (
            ("variables", self.variables),
            ("mutexes", self.mutexes),
            ("queues", self.queues),
        ):
            if len(listed) > MAX_VARIABLES:
                raise MalformedTest(f"more than {MAX_VARIABLES}: {len(listed)}", (kind,))
            for each in listed:
                path = (kind, each.name)
                check_name(each.name, path)
                if each.name in resources:
                    raise MalformedTest("stands twice", path)
                try:
                    _check_device(each.device)
                    if isinstance(each, Variable):
                        self._check_variable(each)
                    elif isinstance(each, Queue):
                        self._check_queue(each)
                except MalformedTest as error:
                    raise MalformedTest(error.message, (*path, *error.path)) from None
                resources[each.name] = each
        return resources

    def _check_graph(
        self,
        graph: Graph,
        types: dict[str, TensorType | None],
        bounds: dict[str, int],
        resources: Mapping[str, Resource],
    ) -> None:
        path = ("graphs", graph.name)
        check_name(graph.name, path)
        if sum(other.name == graph.name for other in self.graphs) > 1:
            raise MalformedTest("stands twice", path)
        count = sum(1 for _ in all_nodes(graph.nodes))
        if count > MAX_NODES:
            raise MalformedTest(f"more than {MAX_NODES} nodes: {count}", path)
        elsewhere = frozenset(types)
        for node in all_nodes(graph.nodes):
            if node.name in elsewhere:
                raise MalformedTest("is a node of another graph as well", (*path, node.name))
        checker = _Checker(self.whole, types, bounds, resources)
        checker.nodes(graph, path, {}, {})

    def _check_client(self, types: Mapping[str, TensorType | None]) -> None:
        graphs = {graph.name for graph in self.graphs}
        earlier: set[str] = set()
        if len(self.client) > MAX_RUNS:
            raise MalformedTest(f"more than {MAX_RUNS} runs: {len(self.client)}", ("client",))
        for run in self.client:
            path = ("client", run.name)
            check_name(run.name, path)
            if run.name in earlier:
                raise MalformedTest("stands twice", path)
            if run.graph not in graphs:
                raise MalformedTest(f"no graph {run.graph!r}", (*path, "graph"))
            for position, name in enumerate(run.after):
                if name not in earlier:
                    message = f"no run {name!r} above; runs stand in topological order"
                    raise MalformedTest(message, (*path, "after", position))
                if name in run.after[:position]:
                    raise MalformedTest(f"{name!r} stands twice", (*path, "after", position))
            earlier.add(run.name)

    def _check_clusters(self, taken: set[str]) -> None:
        """Refuse what cannot be one node with two events (semantics.md, 5)."""
        levels = [
            level for graph in self.graphs for level in _levels(graph.nodes, ("graphs", graph.name))
        ]
        home = {node.name: nodes for nodes, _ in levels for node in nodes}
        clustered: set[str] = set()
        for cluster in self.clusters:
            path = ("clusters", cluster.name)
            check_name(cluster.name, path)
            if cluster.name in taken:
                raise MalformedTest("is also the name of something else", path)
            taken.add(cluster.name)
            if not cluster.members:
                raise MalformedTest("a cluster has at least one member", path)
            if cluster.members[0] not in home:
                raise MalformedTest(f"no node {cluster.members[0]!r}", (*path, 0))
            siblings = {node.name: node for node in home[cluster.members[0]]}
            _check_members(cluster, siblings, clustered, path)
            clustered.update(cluster.members)
        for nodes, where in levels:
            here = clusters_of(nodes, self.clusters)
            if here and clustered.intersection(where):
                message = "lies inside a member of another cluster"
                raise MalformedTest(message, ("clusters", here[0].name))
            if here:
                steps(Graph("", nodes), here, where)

    def _check_observe(self) -> None:
        nodes = self.nodes_by_key()
        for position, name in enumerate(self.observe):
            node = nodes.get(name)
            if node is None:
                runs = "" if len(self.runs) == 1 else " (run.node, with several runs)"
                raise MalformedTest(f"{name!r} is no node of a graph{runs}", ("observe", position))
            if self.types[node] is None:
                raise MalformedTest(f"{name!r} has no result", ("observe", position))
            if name in self.observe[:position]:
                raise MalformedTest(f"{name!r} stands twice", ("observe", position))

    def _check_closes(self) -> None:
        """Every enqueue comes before the Close of its queue (semantics.md, 3)."""
        closed: set[str] = set()
        for graph in self.graphs:
            for node in all_nodes(graph.nodes):
                if node.op == "QueueCloseV2" and node not in graph.nodes:
                    path = ("graphs", graph.name, node.name)
                    raise MalformedTest("a queue is closed outside bodies", path)
        for graph in self.graphs:
            for node, above in predecessors(graph):
                if node.op != "QueueCloseV2":
                    continue
                path = ("graphs", graph.name, node.name)
                runs = [run for run in self.runs if run.graph == graph.name]
                if node.resources[0] in closed or len(runs) != 1:
                    raise MalformedTest("a queue is closed once, by a graph that runs once", path)
                closed.add(node.resources[0])
                earlier = self._runs_before(runs[0])
                for other in self.graphs:
                    for put in other.nodes:
                        if not any(
                            "Enqueue" in n.op and n.resources == node.resources
                            for n in all_nodes([put])
                        ):
                            continue
                        if other is graph and put.name in above:
                            continue
                        if any(r.graph == other.name and r not in earlier for r in self.runs):
                            message = f"{put.name!r} is not ordered before it"
                            raise MalformedTest(message, path)

    def _runs_before(self, run: Run) -> list[Run]:
        names: set[str] = set()
        stack = list(run.after)
        while stack:
            name = stack.pop()
            if name not in names:
                names.add(name)
                stack += next(r.after for r in self.runs if r.name == name)
        return [r for r in self.runs if r.name in names]

    def _check_queue(self, queue: Queue) -> None:
        check_shape(queue.shape, queue.dtype)
        if not 1 <= queue.capacity <= MAX_CAPACITY:
            message = f"must be 1 to {MAX_CAPACITY}, got {queue.capacity}"
            raise MalformedTest(message, ("capacity",))
        if len(queue.init) > queue.capacity:
            message = f"{len(queue.init)} elements, capacity {queue.capacity}"
            raise MalformedTest(message, ("init",))
        for element in queue.init:
            check_literal(element, queue.shape, "init", whole=self.whole)

    def _check_variable(self, variable: Variable) -> None:
        check_shape(variable.shape, variable.dtype)
        check_literal(variable.init, variable.shape, "init", whole=self.whole)

    @property
    def graph(self) -> Graph:
        """The only graph; for code that handles no tests with several."""
        assert len(self.graphs) == 1, self.name
        return self.graphs[0]

    @property
    def resources(self) -> tuple[Resource, ...]:
        """Variables, mutexes and queues."""
        return (*self.variables, *self.mutexes, *self.queues)

    @property
    def effects(self) -> tuple[Node, ...]:
        """Of all graphs and bodies, the nodes that touch a resource or hold others."""
        nodes = (node for graph in self.graphs for node in all_nodes(graph.nodes))
        return tuple(node for node in nodes if node.definition.has_effect)

    @property
    def runs(self) -> tuple[Run, ...]:
        """The client's runs, or one of each graph."""
        return self.client or tuple(Run(graph.name, graph.name) for graph in self.graphs)

    def spans_devices(self, node: Node) -> bool:
        """Whether the node, with all inside, is told to be on several devices.

        A resource without a device lives on one that is nobody else's, as far
        as is known here.
        """
        lives = {resource.name: resource.device for resource in self.resources}
        inside = list(all_nodes([node]))
        found = {lives[name] for each in inside for name in each.resources}
        return len(found.union(each.device for each in inside if each.device)) > 1

    @property
    def features(self) -> frozenset[str]:
        """What a test has beyond one graph over variables, by name.

        An executor, a pass or a reducer that does not handle one refuses the
        test by that name.
        """
        found = set()
        if len(self.graphs) > 1 or len(self.runs) > 1:
            found.add("several runs")
        if self.mutexes:
            found.add("critical sections")
        if self.queues:
            found.add("queues")
        kinds = {n.definition.kind for graph in self.graphs for n in all_nodes(graph.nodes)}
        if Kind.BRANCH in kinds:
            found.add("conditionals")
        if Kind.LOOP in kinds:
            found.add("loops")
        if self.clusters:
            found.add("clusters")
        if Kind.TRANSFER in kinds:
            found.add("transfers")
        return frozenset(found)

    def nodes_by_key(self) -> dict[str, str]:
        """Keys that a node may have in an outcome, and the node's name."""
        nodes: dict[str, list[str]] = {}
        for graph in self.graphs:
            names = nodes[graph.name] = []
            for node in graph.nodes:
                names.append(node.name)
                if isinstance(node.attrs, BranchAttrs):
                    names += [f"{node.name}.{result}" for result in node.attrs.results]
                elif isinstance(node.attrs, LoopAttrs):
                    names += [f"{node.name}.{result}" for result in node.attrs.carried]
        if len(self.runs) == 1:
            return {name: name for name in nodes[self.runs[0].graph]}
        return {f"{run.name}.{name}": name for run in self.runs for name in nodes[run.graph]}

    @property
    def names(self) -> tuple[str, ...]:
        """The keys of an outcome, in order: what is observed, variables, queues."""
        finals = (*(v.name for v in self.variables), *(q.name for q in self.queues))
        return (*self.observe, *finals)

    def type_of(self, name: str) -> TensorType:
        """Type of what `name` (of `names`, or a node) stands for; of a queue, an element's."""
        typed: tuple[Variable | Queue, ...] = (*self.variables, *self.queues)
        for resource in typed:
            if resource.name == name:
                return resource.type
        kind = self.types[self.nodes_by_key().get(name, name)]
        assert kind is not None, name
        return kind

    def size_of(self, shape: tuple[int, ...]) -> int:
        """Ints in a model value of that shape (`model_size`)."""
        return model_size(shape, whole=self.whole)

    def initial(self, variable: Variable) -> tuple[int, ...]:
        """The variable's initial contents as a model value."""
        return expand(variable.init, variable.shape, whole=self.whole)

    def initial_elements(self, queue: Queue) -> tuple[tuple[int, ...], ...]:
        """The queue's initial elements as model values."""
        return tuple(expand(each, queue.shape, whole=self.whole) for each in queue.init)

    def constant(self, node: Node) -> tuple[int, ...]:
        """A Const node's model value."""
        assert isinstance(node.attrs, ConstAttrs)
        return expand(node.attrs.value, node.attrs.shape, whole=self.whole)


@dataclass(frozen=True, slots=True)
class _Checker:
    """Checks the nodes of one graph, bodies included, and notes their types.

    `constants`, where it is passed along, has the names that stand for one
    known int: what bounds loops.
    """

    whole: bool
    types: dict[str, TensorType | None]
    bounds: dict[str, int]
    resources: Mapping[str, Resource]

    def nodes(
        self,
        graph: Graph,
        path: tuple[str | int, ...],
        scope: Mapping[str, TensorType | None],
        constants: dict[str, int],
    ) -> dict[str, TensorType | None]:
        """Check all nodes of a graph or body; the types of what it defines."""
        here = dict(scope)
        for node in graph.nodes:
            where = (*path, node.name)
            try:
                self.types[node.name] = here[node.name] = self.node(graph, node, here)
            except MalformedTest as error:
                raise MalformedTest(error.message, (*where, *error.path)) from None
            if isinstance(node.attrs, ConstAttrs) and isinstance(node.attrs.value, int):
                constants[node.name] = node.attrs.value
            elif node.definition.kind is Kind.TRANSFER and node.inputs[0] in constants:
                constants[node.name] = constants[node.inputs[0]]
            results: dict[str, TensorType] = {}
            if node.definition.kind is Kind.BRANCH:
                results = self.branch(node, where, here, constants)
            elif node.definition.kind is Kind.LOOP:
                results = self.loop(node, where, here, constants)
            for name, kind in results.items():
                self.types[f"{node.name}.{name}"] = here[f"{node.name}.{name}"] = kind
        check_sections(graph, path)
        check_transfers(graph, path)
        return here

    def new_name(self, name: str) -> None:
        """Refuse a name that is taken, or cannot be one."""
        check_name(name, ())
        if name in self.types:
            raise MalformedTest("stands twice")
        if name in self.resources:
            raise MalformedTest("is also the name of a resource; an outcome needs both")

    def taken(
        self,
        takes: tuple[tuple[str, str], ...],
        where: tuple[str | int, ...],
        here: Mapping[str, TensorType | None],
        constants: Mapping[str, int],
    ) -> tuple[dict[str, TensorType | None], dict[str, int]]:
        """What the values from outside are inside: types, and known ints."""
        scope: dict[str, TensorType | None] = {}
        known: dict[str, int] = {}
        for inner, outer in takes:
            path = (*where, "takes", inner)
            try:
                self.new_name(inner)
            except MalformedTest as error:
                raise MalformedTest(error.message, path) from None
            kind = here.get(outer)
            if kind is None:
                raise MalformedTest(f"no value {outer!r} above", path)
            self.types[inner] = scope[inner] = kind
            if outer in constants:
                known[inner] = constants[outer]
        return scope, known

    def body(
        self,
        body: Body,
        where: tuple[str | int, ...],
        scope: Mapping[str, TensorType | None],
        known: dict[str, int],
    ) -> tuple[TensorType, ...]:
        """Check a body; the types of its results."""
        graph = Graph("body", body.nodes)
        inside = self.nodes(graph, (*where, "nodes"), scope, known)
        types = []
        for position, name in enumerate(body.results):
            kind = inside.get(name)
            if kind is None:
                raise MalformedTest(f"no value {name!r} in the body", (*where, "results", position))
            types.append(kind)
        return tuple(types)

    def predicate(self, kind: TensorType | None, path: tuple[str | int, ...]) -> None:
        """Refuse what is not one bool (semantics.md, 1: a predicate is lane 0)."""
        if kind is None or kind.dtype != BOOL or model_size(kind.shape, whole=self.whole) != 1:
            raise MalformedTest(f"a predicate is one bool, got {kind}", path)

    def branch(
        self,
        node: Node,
        where: tuple[str | int, ...],
        here: Mapping[str, TensorType | None],
        constants: Mapping[str, int],
    ) -> dict[str, TensorType]:
        """Check a conditional; its results' types."""
        attrs = node.attrs
        if not isinstance(attrs, BranchAttrs):
            raise MalformedTest(f"{node.op} has other attributes", where)
        self.predicate(here[node.inputs[0]], (*where, "inputs", 0))
        if not attrs.results:
            raise MalformedTest("a conditional has at least one result", (*where, "results"))
        scope, known = self.taken(attrs.takes, where, here, constants)
        for position, name in enumerate(attrs.results):
            check_name(name, (*where, "results", position))
            if name in attrs.results[:position]:
                raise MalformedTest(f"{name!r} stands twice", (*where, "results", position))
        then = self.body(attrs.then, (*where, "then"), scope, dict(known))
        orelse = self.body(attrs.orelse, (*where, "else"), scope, dict(known))
        for field_name, types in (("then", then), ("else", orelse)):
            if len(types) != len(attrs.results):
                message = f"returns {len(types)} values, not {len(attrs.results)}"
                raise MalformedTest(message, (*where, field_name, "results"))
        for position, (left, right) in enumerate(zip(then, orelse, strict=True)):
            if left != right:
                message = f"both branches return one type, got {left}, {right}"
                raise MalformedTest(message, (*where, "else", "results", position))
        return dict(zip(attrs.results, then, strict=True))

    def loop(
        self,
        node: Node,
        where: tuple[str | int, ...],
        here: Mapping[str, TensorType | None],
        constants: Mapping[str, int],
    ) -> dict[str, TensorType]:
        """Check a loop; its results' types."""
        attrs = node.attrs
        if not isinstance(attrs, LoopAttrs):
            raise MalformedTest(f"{node.op} has other attributes", where)
        if node.resources:
            raise MalformedTest("a loop works on no resource itself", (*where, "resources"))
        if not attrs.carried or len(attrs.carried) != len(node.inputs):
            message = f"{len(node.inputs)} inputs for {len(attrs.carried)} carried values"
            raise MalformedTest(message, (*where, "inputs"))
        if not 1 <= attrs.parallel_iterations <= MAX_ITERATIONS:
            message = f"must be 1 to {MAX_ITERATIONS}, got {attrs.parallel_iterations}"
            raise MalformedTest(message, (*where, "parallel_iterations"))
        scope, known = self.taken(attrs.takes, where, here, constants)
        first: list[TensorType] = []
        for position, (name, source) in enumerate(zip(attrs.carried, node.inputs, strict=True)):
            kind = here[source]
            if kind is None:
                raise MalformedTest(f"{source!r} has no result", (*where, "inputs", position))
            try:
                self.new_name(name)
            except MalformedTest as error:
                raise MalformedTest(error.message, (*where, "carried", position)) from None
            self.types[name] = scope[name] = kind
            first.append(kind)
        inside = dict(known)
        (*conditions,) = self.body(attrs.condition, (*where, "condition"), scope, inside)
        if len(conditions) != 1:
            message = f"returns one value, not {len(conditions)}"
            raise MalformedTest(message, (*where, "condition", "results"))
        self.predicate(conditions[0], (*where, "condition", "results", 0))
        following = self.body(attrs.body, (*where, "body"), scope, inside)
        if tuple(first) != following:
            wanted, got = (", ".join(map(str, each)) for each in (first, following))
            message = f"must be the carried values' types {wanted}; got {got}"
            raise MalformedTest(message, (*where, "body", "results"))
        start = constants.get(node.inputs[0])
        self.bounds[node.name] = loop_bound(attrs, start, inside, where)
        return dict(zip(attrs.carried, first, strict=True))

    def node(
        self, graph: Graph, node: Node, earlier: Mapping[str, TensorType | None]
    ) -> TensorType | None:
        """Check one node; its result's type.

        `earlier` has what it may refer to.
        """
        self.new_name(node.name)
        resources = self.resources
        op = OPS.get(node.op)
        if op is None:
            raise MalformedTest(f"unknown op {node.op!r}", ("op",))
        for field_name, edges in (("inputs", node.inputs), ("after", node.after)):
            for position, source in enumerate(edges):
                if source not in earlier:
                    raise MalformedTest(
                        _why_not_earlier(graph, node.name, source), (field_name, position)
                    )
        if len(set(node.after)) != len(node.after):
            raise MalformedTest("names a node twice", ("after",))
        _check_device(node.device)
        self.colocated(node)
        if op.kind is Kind.LOOP:
            return None
        for wanted, got, field_name in (
            (op.operands, node.inputs, "inputs"),
            (op.roles, node.resources, "resources"),
        ):
            if len(wanted) != len(got):
                roles = f" ({', '.join(wanted)})" if wanted else ""
                raise MalformedTest(
                    f"{node.op} takes {len(wanted)}{roles}, got {len(got)}", (field_name,)
                )
        inputs: list[TensorType] = []
        for position, source in enumerate(node.inputs):
            kind = earlier[source]
            if kind is None:
                raise MalformedTest(f"{source!r} has no result", ("inputs", position))
            inputs.append(kind)
        types: list[TensorType] = []
        for position, name in enumerate(node.resources):
            resource = resources.get(name)
            if type(resource).__name__.lower() != op.on:
                raise MalformedTest(f"no {op.on} {name!r}", ("resources", position))
            if name in node.resources[:position]:
                raise MalformedTest(f"{name!r} stands twice", ("resources", position))
            if isinstance(resource, (Variable, Queue)):
                types.append(resource.type)
        if op.kind is Kind.BRANCH:
            return None
        if not isinstance(node.attrs, op.attrs or type(None)):
            raise MalformedTest(f"{node.op} has other attributes", ())
        assert not isinstance(node.attrs, (BranchAttrs, LoopAttrs))
        return result_type(op, node.attrs, tuple(inputs), tuple(types), whole=self.whole)

    def colocated(self, node: Node) -> None:
        """Refuse an op whose resources, or itself, are told to be on two devices.

        References
        ----------
        DEVICES, "Heterogenous execution": variable edges never cross devices.
        """
        device = node.device
        for position, name in enumerate(node.resources):
            where = self.resources[name].device if name in self.resources else ""
            if where and device and where != device:
                message = f"{name!r} lives on {where}, and is worked on from {device}"
                raise MalformedTest(message, ("resources", position))
            device = device or where


def loop_bound(
    attrs: LoopAttrs,
    start: int | None,
    known: Mapping[str, int],
    where: tuple[str | int, ...] = (),
) -> int:
    """How many iterations a loop has at most.

    The first carried value is a counter: it starts at a constant, the body
    adds a positive constant, and the condition is ``Less(counter, limit)``, or
    ``Select(Less(counter, limit), anything, false)`` where data decides too.

    Raises
    ------
    MalformedTest
        If that is not so, or the bound is above `MAX_ITERATIONS`.

    References
    ----------
    semantics.md, section 3, "Loops".
    """
    counter = attrs.carried[0]
    nodes = {n.name: n for body in (attrs.condition, attrs.body) for n in body.nodes}

    def origin(name: str) -> str:
        """Where a value comes from, on whichever device."""
        while name in nodes and nodes[name].definition.kind is Kind.TRANSFER:
            (name,) = nodes[name].inputs
        return name

    step_node = nodes.get(origin(attrs.body.results[0]))
    test_node = nodes.get(origin(attrs.condition.results[0]))
    if test_node is not None and test_node.op == "Select":
        never = known.get(test_node.inputs[2])
        test_node = nodes.get(origin(test_node.inputs[0])) if never == 0 else None
    limit = step = None
    if test_node is not None and test_node.op == "Less" and origin(test_node.inputs[0]) == counter:
        limit = known.get(test_node.inputs[1])
    if step_node is not None and step_node.op == "AddV2" and origin(step_node.inputs[0]) == counter:
        step = known.get(step_node.inputs[1])
    if start is None or limit is None or step is None or step < 1:
        raise MalformedTest(
            "the first carried value must be a counter: a constant start, AddV2 of a positive "
            "constant in the body, Less than a constant in the condition",
            where,
        )
    bound = max(0, -((start - limit) // step))
    if bound > MAX_ITERATIONS:
        raise MalformedTest(f"more than {MAX_ITERATIONS} iterations: {bound}", where)
    return bound


def _why_not_earlier(graph: Graph, node: str, source: str) -> str:
    if source not in {each.name for each in graph.nodes}:
        return f"no node {source!r}"
    cycle = _path(graph, source, node)
    if cycle:
        return "cycle: " + " -> ".join([*cycle, node])
    return f"{source!r} stands below; nodes stand in topological order"


def check_transfers(graph: Graph, where: tuple[str | int, ...]) -> None:
    """Refuse a Send without one Recv of its own beside it, and the other way round.

    References
    ----------
    DEVICES, "Heterogenous execution".
    """
    takers = {node.name: 0 for node in graph.nodes if node.op == "Send"}
    for node in graph.nodes:
        for position, name in enumerate(node.inputs):
            path = (*where, node.name, "inputs", position)
            if (name in takers) != (node.op == "Recv"):
                sent = f"{name!r} sends to another device: a Recv takes it"
                raise MalformedTest(sent if name in takers else f"{name!r} is no Send beside", path)
            if name in takers:
                takers[name] += 1
    for name, count in takers.items():
        if count != 1:
            message = f"one Recv takes what a Send sends, not {count}"
            raise MalformedTest(message, (*where, name))


def check_sections(graph: Graph, where: tuple[str | int, ...]) -> None:
    """Refuse sections that overlap, and a cycle that goes through one.

    References
    ----------
    semantics.md, section 3, rule 2.
    """
    names = {n.name: n for n in graph.nodes}
    members: dict[str, frozenset[str]] = {}
    for node in graph.nodes:
        if not isinstance(node.attrs, SectionAttrs):
            continue
        path = (*where, node.name, "members")
        if not node.attrs.members:
            raise MalformedTest("a section has at least one member", path)
        for position, name in enumerate(node.attrs.members):
            if name not in names or names[name].op == node.op:
                raise MalformedTest(f"no node {name!r} that can be a member", (*path, position))
            if name in node.attrs.members[:position]:
                raise MalformedTest(f"{name!r} stands twice", (*path, position))
        mine = frozenset(node.attrs.members)
        for other, theirs in members.items():
            if mine & theirs and not (mine < theirs or theirs < mine):
                message = f"overlaps {other!r}, and neither lies inside the other"
                raise MalformedTest(message, path)
        members[node.name] = mine
    steps(graph, (), where)


def clusters_of(nodes: Iterable[Node], clusters: Iterable[Cluster]) -> tuple[Cluster, ...]:
    """Those whose members are among these nodes, which are all of one graph or body."""
    names = {node.name for node in nodes}
    return tuple(cluster for cluster in clusters if cluster.members[0] in names)


def _levels(
    nodes: tuple[Node, ...], path: tuple[str | int, ...]
) -> Iterator[tuple[tuple[Node, ...], tuple[str | int, ...]]]:
    """The nodes of a graph, and those of each body in it, with the path to them."""
    yield nodes, path
    for node in nodes:
        for field_name, body in bodies(node):
            yield from _levels(body.nodes, (*path, node.name, field_name, "nodes"))


_NOT_CLUSTERED: Final = (Kind.QUEUE, Kind.SECTION, Kind.TRANSFER)


def _check_members(
    cluster: Cluster,
    nodes: Mapping[str, Node],
    elsewhere: set[str],
    path: tuple[str | int, ...],
) -> None:
    """Refuse members that are no nodes of one body, blocking ops, and another order.

    References
    ----------
    semantics.md, section 5, "SSA order".
    """
    earlier: set[str] = set()
    mine = set(cluster.members)
    for position, name in enumerate(cluster.members):
        where = (*path, position)
        node = nodes.get(name)
        if node is None:
            message = f"{name!r} is no node beside {cluster.members[0]!r} in one graph or body"
            raise MalformedTest(message, where)
        if name in earlier:
            raise MalformedTest(f"{name!r} stands twice", where)
        if name in elsewhere:
            raise MalformedTest(f"{name!r} is in another cluster as well", where)
        for inner in all_nodes([node]):
            if inner.definition.kind in _NOT_CLUSTERED:
                raise MalformedTest(f"{inner.op} ({inner.name}) cannot be compiled", where)
        for source in (each.partition(".")[0] for each in (*node.inputs, *node.after)):
            if source in mine - earlier:
                message = f"{name!r} stands before {source!r}, which it waits for"
                raise MalformedTest(message, where)
        for _, outer in taken_from_outside(node):
            if outer.partition(".")[0] in mine - earlier:
                message = f"{name!r} stands before {outer!r}, which it takes"
                raise MalformedTest(message, where)
        earlier.add(name)
    for node in nodes.values():
        if isinstance(node.attrs, SectionAttrs):
            inside = mine & set(node.attrs.members)
            if inside and inside != mine:
                raise MalformedTest(f"lies across the boundary of {node.name!r}", path)


def taken_from_outside(node: Node) -> tuple[tuple[str, str], ...]:
    """What a node's bodies take from around it, as (name inside, name outside)."""
    return node.attrs.takes if isinstance(node.attrs, (BranchAttrs, LoopAttrs)) else ()


Step = tuple[str, str]
"""What happens to which: ("node", n), ("acquire", s), ("release", s) or ("cluster", c)."""


def steps_before(graph: Graph, clusters: Iterable[Cluster] = ()) -> dict[Step, set[Step]]:
    """What each step of a graph directly comes after, by edges; see `steps`."""
    sections = [n for n in graph.nodes if isinstance(n.attrs, SectionAttrs)]
    within = {name: cluster for cluster in clusters for name in cluster.members}
    is_section = {n.name for n in sections}
    nodes = {n.name: n for n in graph.nodes}

    def done(name: str) -> Step:
        """The step after which a node is done."""
        if name in within:
            return ("cluster", within[name].name)
        return ("release" if name in is_section else "node", name)

    before: dict[Step, set[Step]] = {}
    for node in graph.nodes:
        given = (*node.inputs, *node.after, *(outer for _, outer in taken_from_outside(node)))
        sources = (name.partition(".")[0] for name in given)
        # What is not among the nodes is a value from outside the body.
        waits = {done(name) for name in sources if name in nodes}
        if node.name in is_section:
            before[("acquire", node.name)] = waits
            before.setdefault(("release", node.name), set()).add(("acquire", node.name))
        else:
            before.setdefault(done(node.name), set()).update(waits - {done(node.name)})
    for section in sections:
        assert isinstance(section.attrs, SectionAttrs)
        for name in section.attrs.members:
            before[done(name)].add(("acquire", section.name))
            before[("release", section.name)].add(done(name))
        for outer in enclosing(section, sections):
            before[("acquire", section.name)].add(("acquire", outer.name))
            before[("release", outer.name)].add(("release", section.name))
    return before


def steps(
    graph: Graph, clusters: Iterable[Cluster] = (), where: tuple[str | int, ...] = ()
) -> list[tuple[str, Node | Cluster]]:
    """A graph's nodes in an order in which each can be taken apart.

    Parameters
    ----------
    clusters : iterable of Cluster
        Those of this graph.

    Returns
    -------
    list of (str, Node or Cluster)
        ("node", n) for each node that is no section and in no cluster,
        ("acquire", s) and ("release", s) for each section, ("cluster", c);
        all that must come before stands before.

    Raises
    ------
    MalformedTest
        If a cycle goes through a section or a cluster.
    """
    within = {name: cluster for cluster in clusters for name in cluster.members}
    is_section = {n.name for n in graph.nodes if isinstance(n.attrs, SectionAttrs)}
    if not is_section and not within:
        return [("node", n) for n in graph.nodes]
    nodes = {n.name: n for n in graph.nodes}
    before = steps_before(graph, within.values())
    named = {cluster.name: cluster for cluster in within.values()}
    ordered: list[tuple[str, Node | Cluster]] = []
    placed: set[Step] = set()
    while len(placed) < len(before):
        ready = [key for key, waits in before.items() if key not in placed and waits <= placed]
        if not ready:
            stuck = sorted({name for key, name in before.keys() - placed})
            for name in stuck:
                if name in named:
                    message = f"cycle through a cluster: {', '.join(stuck)}"
                    raise MalformedTest(message, ("clusters", name))
            path = (*where, next(n for n in stuck if n in is_section))
            raise MalformedTest(f"cycle through a section: {', '.join(stuck)}", path)
        placed.update(ready)
        ordered += [
            (kind, named[name] if kind == "cluster" else nodes[name]) for kind, name in ready
        ]
    return ordered


def enclosing(section: Node, sections: Iterable[Node]) -> list[Node]:
    """Sections whose members are all of this one's, and more."""
    assert isinstance(section.attrs, SectionAttrs)
    mine = frozenset(section.attrs.members)
    return [
        other
        for other in sections
        if isinstance(other.attrs, SectionAttrs) and mine < frozenset(other.attrs.members)
    ]


def _check_device(device: str) -> None:
    if device and not re.fullmatch(r"(cpu|gpu):(0|[1-9][0-9]{0,2})", device):
        raise MalformedTest(f"a device is cpu:N or gpu:N, got {device[:80]!r}", ("device",))


def _path(graph: Graph, source: str, target: str) -> list[str]:
    """Nodes on one path that follows edges from `source`'s operands to `target`."""
    inputs = {n.name: (*n.inputs, *n.after) for n in graph.nodes}
    came: dict[str, str] = {source: ""}
    stack = [source]
    while stack:
        name = stack.pop()
        if name == target:
            path = []
            while name:
                path.append(name)
                name = came[name]
            return path
        for each in inputs.get(name, ()):
            if each not in came:
                came[each] = name
                stack.append(each)
    return []


def predecessors(graph: Graph) -> Iterator[tuple[Node, frozenset[str]]]:
    """Each node with all nodes that have a path to it, in the graph's order."""
    known: dict[str, frozenset[str]] = {}
    for node in graph.nodes:
        sources = (name.partition(".")[0] for name in (*node.inputs, *node.after))
        direct = [name for name in sources if name in known]
        above = frozenset(direct).union(*(known[d] for d in direct))
        known[node.name] = above
        yield node, above


__all__ = [
    "CONTROL",
    "FEATURES",
    "MAX_ITERATIONS",
    "MAX_NODES",
    "Body",
    "BranchAttrs",
    "Cluster",
    "Graph",
    "Kind",
    "LitmusTest",
    "LoopAttrs",
    "MalformedTest",
    "Mutex",
    "Node",
    "Queue",
    "Resource",
    "Run",
    "Step",
    "TensorType",
    "Variable",
    "all_nodes",
    "bodies",
    "check_name",
    "clusters_of",
    "enclosing",
    "loop_bound",
    "predecessors",
    "steps",
    "steps_before",
    "taken_from_outside",
]
