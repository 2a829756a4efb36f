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

from corpus.ops import (
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
class Node:
    """One op of a graph.

    `inputs` are data edges and `after` control edges, both by the name of a
    node that stands earlier; `resources` are what it works on, in the roles'
    order (`OpDef.roles`). A critical section is a node as well: edges to and
    from it are edges of the section as a whole.
    """

    name: str
    op: str
    inputs: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    attrs: Attrs | None = None

    @property
    def definition(self) -> OpDef:
        """Its row of the op table."""
        return OPS[self.op]


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
    types: Mapping[str, TensorType | None] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )
    """Result type of each node, by name; None where there is none."""

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,99}", self.name):
            raise MalformedTest(f"not a test's name: {self.name[:80]!r}", ("name",))
        if CONTROL.search(self.about):
            raise MalformedTest("control characters are not part of the format", ("about",))
        if not self.variables:
            raise MalformedTest("a test has at least one variable", ("variables",))
        resources = self._check_resources()
        if not self.graphs:
            raise MalformedTest("a test has at least one graph", ("graphs",))
        types: dict[str, TensorType | None] = {}
        for graph in self.graphs:
            self._check_graph(graph, types, resources)
        self._check_client(types)
        object.__setattr__(self, "types", MappingProxyType(types))
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
        resources: Mapping[str, Resource],
    ) -> None:
        path = ("graphs", graph.name)
        check_name(graph.name, path)
        if sum(other.name == graph.name for other in self.graphs) > 1:
            raise MalformedTest("stands twice", path)
        if len(graph.nodes) > MAX_NODES:
            raise MalformedTest(f"more than {MAX_NODES} nodes: {len(graph.nodes)}", path)
        elsewhere = frozenset(types)
        here: dict[str, TensorType | None] = {}
        for node in graph.nodes:
            try:
                if node.name in elsewhere:
                    raise MalformedTest("is a node of another graph as well")
                here[node.name] = self._check_node(graph, node, here, resources)
            except MalformedTest as error:
                where = (*path, node.name, *error.path)
                raise MalformedTest(error.message, where) from None
        types.update(here)
        check_sections(graph)

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
                        if "Enqueue" not in put.op or put.resources != node.resources:
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
        if variable.device:
            _check_device(variable.device, ("device",))
        check_shape(variable.shape, variable.dtype)
        check_literal(variable.init, variable.shape, "init", whole=self.whole)

    def _check_node(
        self,
        graph: Graph,
        node: Node,
        earlier: Mapping[str, TensorType | None],
        resources: Mapping[str, Resource],
    ) -> TensorType | None:
        check_name(node.name, ())
        if node.name in earlier:
            raise MalformedTest("stands twice")
        if node.name in resources:
            raise MalformedTest("is also the name of a resource; an outcome needs both")
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
        if not isinstance(node.attrs, op.attrs or type(None)):
            raise MalformedTest(f"{node.op} has other attributes", ())
        return result_type(op, node.attrs, tuple(inputs), tuple(types), whole=self.whole)

    @property
    def graph(self) -> Graph:
        """The only graph; for code that handles no tests with several."""
        assert len(self.graphs) == 1, self.name
        return self.graphs[0]

    @property
    def runs(self) -> tuple[Run, ...]:
        """The client's runs, or one of each graph."""
        return self.client or tuple(Run(graph.name, graph.name) for graph in self.graphs)

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
        return frozenset(found)

    def nodes_by_key(self) -> dict[str, str]:
        """Keys that a node may have in an outcome, and the node's name."""
        nodes = {graph.name: [n.name for n in graph.nodes] for graph in self.graphs}
        if len(self.runs) == 1:
            return {name: name for name in nodes[self.runs[0].graph]}
        return {f"{run.name}.{name}": name for run in self.runs for name in nodes[run.graph]}

    @property
    def whole(self) -> bool:
        """Whether values are whole matrices: the test has a MatMul, hence no lanes."""
        return any(n.op == "MatMul" for g in self.graphs for n in g.nodes)

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
        kind = self.types[name.rpartition(".")[2]]
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


def _why_not_earlier(graph: Graph, node: str, source: str) -> str:
    if source not in {each.name for each in graph.nodes}:
        return f"no node {source!r}"
    cycle = _path(graph, source, node)
    if cycle:
        return "cycle: " + " -> ".join([*cycle, node])
    return f"{source!r} stands below; nodes stand in topological order"


def check_sections(graph: Graph) -> None:
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
        path = ("graphs", graph.name, node.name, "members")
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
    section_order(graph)


def section_order(graph: Graph) -> list[tuple[str, Node]]:
    """A graph's nodes in an order in which each can be taken apart.

    Returns
    -------
    list of (str, Node)
        ("node", n) for each node that is no section, ("acquire", s) and
        ("release", s) for each that is; all that must come before stands
        before.

    Raises
    ------
    MalformedTest
        If a cycle goes through a section.
    """
    sections = [n for n in graph.nodes if isinstance(n.attrs, SectionAttrs)]
    if not sections:
        return [("node", n) for n in graph.nodes]
    is_section = {n.name for n in sections}
    before: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for node in graph.nodes:
        waits = {
            ("release" if name in is_section else "node", name)
            for name in (*node.inputs, *node.after)
        }
        if node.name in is_section:
            before[("acquire", node.name)] = waits
            before.setdefault(("release", node.name), set()).add(("acquire", node.name))
        else:
            before[("node", node.name)] = waits
    for section in sections:
        assert isinstance(section.attrs, SectionAttrs)
        for name in section.attrs.members:
            before[("node", name)].add(("acquire", section.name))
            before[("release", section.name)].add(("node", name))
        for outer in enclosing(section, sections):
            before[("acquire", section.name)].add(("acquire", outer.name))
            before[("release", outer.name)].add(("release", section.name))
    nodes = {n.name: n for n in graph.nodes}
    ordered: list[tuple[str, Node]] = []
    placed: set[tuple[str, str]] = set()
    while len(placed) < len(before):
        ready = [key for key, waits in before.items() if key not in placed and waits <= placed]
        if not ready:
            stuck = sorted({name for key, name in before.keys() - placed})
            path = ("graphs", graph.name, next(n for n in stuck if n in is_section))
            raise MalformedTest(f"cycle through a section: {', '.join(stuck)}", path)
        placed.update(ready)
        ordered += [(kind, nodes[name]) for kind, name in ready]
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


def _check_device(device: str, path: tuple[str | int, ...]) -> None:
    if not re.fullmatch(r"(cpu|gpu):[0-9]{1,3}", device):
        raise MalformedTest(f"a device is cpu:N or gpu:N, got {device[:80]!r}", path)


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
        direct = (*node.inputs, *node.after)
        above = frozenset(direct).union(*(known[d] for d in direct))
        known[node.name] = above
        yield node, above


__all__ = [
    "CONTROL",
    "MAX_NODES",
    "Graph",
    "Kind",
    "LitmusTest",
    "MalformedTest",
    "Mutex",
    "Node",
    "Queue",
    "Resource",
    "Run",
    "TensorType",
    "Variable",
    "check_name",
    "enclosing",
    "predecessors",
    "section_order",
]
