"""The litmus test: one frozen value that every part of the program works on.

Every rule of the format is checked when a test is made (`validation`), so that code
which holds one need not check again. Nothing here is mutable.

References
----------
semantics.md, sections 1 and 2.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model import validation
from litmusfuzz.corpus.model.client import Run
from litmusfuzz.corpus.model.traversal import all_nodes
from litmusfuzz.corpus.ops import (
    COMPUTED,
    FLOATS,
    WHOLE_OPS,
    ConstAttrs,
    CountAttrs,
    Kind,
    MalformedTest,
    PureAttrs,
    TensorType,
    expand,
    model_shape,
    model_size,
)
from litmusfuzz.corpus.pure.definition import call_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from litmusfuzz.corpus.model.graph import Cluster, Graph, Node
    from litmusfuzz.corpus.model.resources import Accumulator, Mutex, Queue, Resource, Variable
    from litmusfuzz.corpus.ops import OpDef
    from litmusfuzz.corpus.pure.definition import Call

FEATURES: Final = frozenset(
    {
        "several runs",
        "critical sections",
        "queues",
        "accumulators",
        "conditionals",
        "loops",
        "calls",
        "handles",
        "clusters",
        "transfers",
        "fetches",
        "placeholders",
        "uninitialized variables",
        "computed indices",
        "gradients",
    }
)
"""Names of all features that a test may have (`LitmusTest.features`)."""


@dataclass(frozen=True, slots=True)
class LitmusTest:
    """Resources, graphs over them, the client's runs of these, and the observed nodes.

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
    description : str
        For people.
    mutexes : tuple of Mutex
    queues : tuple of Queue
    client : tuple of Run
        A run stands after those that it comes after. If empty, each graph runs
        once, concurrently with the others, under its own name.
    clusters : tuple of Cluster
    accumulators : tuple of Accumulator

    Raises
    ------
    MalformedTest
        Naming the field.
    """

    name: str
    variables: tuple[Variable, ...]
    graphs: tuple[Graph, ...]
    observe: tuple[str, ...] = ()
    description: str = ""
    mutexes: tuple[Mutex, ...] = ()
    queues: tuple[Queue, ...] = ()
    client: tuple[Run, ...] = ()
    clusters: tuple[Cluster, ...] = ()
    accumulators: tuple[Accumulator, ...] = ()
    types: Mapping[str, TensorType | None] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )
    """Result type of each node and of each value inside a body; None without one."""
    bounds: Mapping[str, int] = field(init=False, repr=False, compare=False, default_factory=dict)
    """Upper bound on the iterations of each loop."""
    failing: frozenset[str] = field(init=False, repr=False, compare=False, default=frozenset())
    """Names of the nodes that may fail by their operands: a division by what is no constant, an
    index that is none, and the like."""
    whole: bool = field(init=False, repr=False, compare=False, default=False)
    """True if values are whole tensors: an op does not act on each lane alike (`OpDef.whole`)."""
    shown: Mapping[str, TensorType] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )
    """Type of each value of an outcome by key (`names`); for a queue, of one element."""
    places: Mapping[str, int] = field(init=False, repr=False, compare=False, default_factory=dict)
    """Place of each key in `names`."""
    parts: Mapping[str, Graph] = field(init=False, repr=False, compare=False, default_factory=dict)
    """By run: the part of its graph that it executes (`graph_of`)."""
    nodes: tuple[Node, ...] = field(init=False, repr=False, compare=False, default=())
    """Of all graphs and bodies, each node followed by those inside it."""
    effects: tuple[Node, ...] = field(init=False, repr=False, compare=False, default=())
    """Of these, the nodes that touch a resource or hold others."""
    features: frozenset[str] = field(init=False, repr=False, compare=False, default=frozenset())
    """Names of what a test has beyond one graph over variables (`FEATURES`).

    An executor, a pass or a reducer that does not handle one refuses the test by that name.
    """

    def __post_init__(self) -> None:
        nodes = tuple(all_nodes(node for graph in self.graphs for node in graph.nodes))
        object.__setattr__(self, "nodes", nodes)
        whole = any(
            node.op in WHOLE_OPS or (node.op in COMPUTED and node.definition.computed)
            for node in nodes
        )
        object.__setattr__(self, "whole", whole)
        validation.check_texts(self.name, self.description)
        resources = validation.check_resources(
            self.variables, self.mutexes, self.queues, self.accumulators, whole=whole
        )
        types, bounds, failing = validation.check_graphs(self.graphs, resources, whole=whole)
        validation.check_client(self.client, self.graphs)
        runs = self.runs
        parts = validation.check_wanted(runs, self.graphs, types)
        validation.check_feeds(runs, parts, types, whole=whole)
        validation.check_gradients(self.variables, types, whole=whole)
        object.__setattr__(self, "parts", MappingProxyType(parts))
        validation.check_clusters(self.clusters, self.graphs, {*types, *resources})
        if self.clusters:
            validation.check_clusterable(runs, self.variables)
        object.__setattr__(self, "types", MappingProxyType(types))
        object.__setattr__(self, "bounds", MappingProxyType(bounds))
        object.__setattr__(self, "failing", failing)
        if self.queues:
            validation.check_closes(self.graphs, runs)
        observed = validation.check_observe(self.observe, self.graphs, types, runs, parts)
        contents: tuple[Variable | Queue, ...] = (*self.variables, *self.cells, *self.queues)
        for each in contents:
            if each.name in observed:  # a run named as an accumulator
                raise MalformedTest(f"{each.name!r} is a node and an accumulator's", ("observe",))
        shown = observed | {each.name: each.type for each in contents}
        shown |= {each.gradient_key: each.type for each in self.variables if each.gradient}
        object.__setattr__(self, "shown", MappingProxyType(shown))
        places = {name: place for place, name in enumerate(shown)}
        object.__setattr__(self, "places", MappingProxyType(places))
        definitions = [node.definition for node in nodes]
        effects = tuple(n for n, op in zip(nodes, definitions, strict=True) if op.has_effect)
        object.__setattr__(self, "effects", effects)
        object.__setattr__(self, "features", self._features(definitions))

    @property
    def graph(self) -> Graph:
        """The only graph, for code that supports one graph only."""
        assert len(self.graphs) == 1, self.name
        return self.graphs[0]

    @property
    def resources(self) -> tuple[Resource, ...]:
        """Variables, mutexes, queues and accumulators."""
        return (*self.variables, *self.mutexes, *self.queues, *self.accumulators)

    @property
    def cells(self) -> tuple[Variable, ...]:
        """Sum and count of each accumulator: what an outcome shows of it."""
        return tuple(cell for each in self.accumulators for cell in (each.sum, each.count))

    @property
    def runs(self) -> tuple[Run, ...]:
        """The client's runs, or one of each graph."""
        return self.client or tuple(Run(graph.name, graph.name) for graph in self.graphs)

    def graph_of(self, run: Run) -> Graph:
        """The part of its graph that a run executes; the same object as the graph if it is all.

        A section in it may name members that are not in it (`pruned`).
        """
        return self.parts[run.name]

    @property
    def blocks(self) -> bool:
        """True if an op may have to wait for a mutex, a queue or an accumulator."""
        return bool(self.mutexes or self.queues or self.accumulators)

    def elements(self, node: Node) -> int:
        """Elements that an op on a queue puts or takes one after another; 1 for another op."""
        if isinstance(node.attrs, CountAttrs):
            return node.attrs.count
        return self.type_of(node.inputs[0]).shape[0] if node.definition.several else 1

    def spans_devices(self, node: Node) -> bool:
        """True if the node and the nodes inside it name more than one device.

        The default device, "", counts as a device of its own.
        """
        lives = {resource.name: resource.device for resource in self.resources}
        inside = list(all_nodes([node]))
        found = {lives[name] for each in inside for name in each.resources}
        return len(found.union(each.device for each in inside if each.device)) > 1

    def _features(self, definitions: Sequence[OpDef]) -> frozenset[str]:
        found = set()
        if len(self.graphs) > 1 or len(self.runs) > 1:
            found.add("several runs")
        if self.mutexes:
            found.add("critical sections")
        if self.queues:
            found.add("queues")
        if self.accumulators:
            found.add("accumulators")
        kinds = {op.kind for op in definitions}
        if Kind.BRANCH in kinds:
            found.add("conditionals")
        if Kind.LOOP in kinds:
            found.add("loops")
        if Kind.CALL in kinds:
            found.add("calls")
        if Kind.HANDLE in kinds:
            found.add("handles")
        if self.clusters:
            found.add("clusters")
        if Kind.TRANSFER in kinds:
            found.add("transfers")
        if any(run.wanted for run in self.client):
            found.add("fetches")
        if Kind.STATE in kinds or any(each.init is None for each in self.variables):
            found.add("uninitialized variables")
        if any(op.fed for op in definitions):
            found.add("placeholders")
        if any(op.computed for op in definitions):
            found.add("computed indices")
        if any(each.gradient for each in self.variables):
            found.add("gradients")
        return frozenset(found)

    @property
    def weights(self) -> Mapping[str, tuple[int, ...]]:
        """What is differentiated: the sum of all floats of an outcome, each times a weight.

        The weight of each element of a lane, by key. They differ, so that a gradient in the wrong
        place shows.
        """
        keys = [name for name, kind in self.shown.items() if kind.dtype in FLOATS]
        gradients = {each.gradient_key for each in self.variables}
        found: dict[str, tuple[int, ...]] = {}
        count = 0
        for name in keys:
            if name not in gradients:
                size = self.size_of(self.shown[name].shape)
                found[name] = tuple(1 + place % 3 for place in range(count, count + size))
                count += size
        return found

    def nodes_by_key(self) -> dict[str, str]:
        """Name of the node for each key that an outcome may have."""
        names: dict[str, tuple[str, ...]] = {}
        runs = self.runs
        for run in runs:
            keys = (key for node in self.graph_of(run).nodes for key in node.keys)
            names[run.name] = run.fetches if run.wanted else tuple(keys)
        if len(runs) == 1:
            return {name: name for name in names[runs[0].name]}
        return {f"{run.name}.{name}": name for run in runs for name in names[run.name]}

    @property
    def names(self) -> tuple[str, ...]:
        """Keys of an outcome: observed nodes, variables, accumulators, queues, gradients."""
        return tuple(self.shown)

    def type_of(self, name: str) -> TensorType:
        """Type of the value of a key of `names` or of a node; for a queue, of one element."""
        kind = self.shown.get(name) or self.types[name]
        assert kind is not None, name
        return kind

    def accumulator(self, node: Node) -> Accumulator:
        """The accumulator of an op on one."""
        return next(each for each in self.accumulators if each.name == node.resources[0])

    def call(self, node: Node) -> Call:
        """The call of an op that one function defines, on model values.

        The first operand of an op on a variable is the variable's value; the result of an
        update is what it stores.
        """
        op = node.definition
        row = op.meaning
        assert row is not None, node.name
        assert node.attrs is None or isinstance(node.attrs, PureAttrs)
        names = [*node.inputs, node.name]
        if op.computed:
            variable = node.resources[0]
            result = node.name if op.has_value else variable
            names = [variable, *node.inputs, result]
        kinds = [self.type_of(name) for name in names]
        if not self.whole:
            kinds = [TensorType(k.dtype, model_shape(k.shape, whole=False)) for k in kinds]
        return call_of(row, node.attrs, tuple(kinds[:-1]), kinds[-1])

    def size_of(self, shape: tuple[int, ...]) -> int:
        """Number of ints in a model value of that shape (`model_size`)."""
        return model_size(shape, whole=self.whole)

    def initial(self, variable: Variable) -> tuple[int, ...]:
        """The variable's initial contents as a model value; () if it has none."""
        if variable.init is None:
            return ()
        return expand(variable.init, variable.shape, whole=self.whole)

    def initial_elements(self, queue: Queue) -> tuple[tuple[int, ...], ...]:
        """The queue's initial elements as model values."""
        return tuple(expand(each, queue.shape, whole=self.whole) for each in queue.init)

    def fed(self, run: Run, node: Node) -> tuple[int, ...]:
        """The model value that a run feeds to a placeholder; 0 if it does not execute it."""
        value = dict(run.feeds).get(node.name, 0)
        return expand(value, self.type_of(node.name).shape, whole=self.whole)

    def constant(self, node: Node) -> tuple[int, ...]:
        """A Const node's model value."""
        assert isinstance(node.attrs, ConstAttrs)
        return expand(node.attrs.value, node.attrs.shape, whole=self.whole)
