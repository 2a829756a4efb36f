"""The litmus test: one frozen value that every part of the program works on.

Every rule of the format is checked when a test is made (`validation`), so that code
which holds one need not check again. Nothing here is mutable.

References
----------
semantics.md, sections 1 and 2.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model import validation
from litmusfuzz.corpus.model.client import Run, listed, runs_of
from litmusfuzz.corpus.model.graph import Cluster, Graph, LoopAttrs, bodies, captures_of
from litmusfuzz.corpus.model.names import after_dot, head
from litmusfuzz.corpus.model.traversal import all_nodes, renamed
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
from litmusfuzz.corpus.struct import replace

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from litmusfuzz.corpus.condition import Condition
    from litmusfuzz.corpus.model.graph import Node
    from litmusfuzz.corpus.model.names import Naming
    from litmusfuzz.corpus.model.reordering import Reordering
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
    condition : Condition, optional
        A question about the outcomes, over their keys: does one with these values exist, or do all
        have them? It changes no allowed set. A test that is edited (`Rewriter`) drops it.

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
    condition: Condition | None = None
    types: Mapping[str, TensorType | None] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )
    """Result type of each node and of each value inside a body; None without one."""
    bounds: Mapping[str, int] = field(init=False, repr=False, compare=False, default_factory=dict)
    """Upper bound on the iterations of each loop."""
    failing: frozenset[str] = field(init=False, repr=False, compare=False, default=frozenset())
    """Names of the nodes that may fail by their operands: a division by what is no constant, an
    index that is none, and the like."""
    beyond: frozenset[str] = field(init=False, repr=False, compare=False, default=frozenset())
    """Names of those that always fail: a constant index is out of range."""
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
        by_graph = [tuple(all_nodes(graph.nodes)) for graph in self.graphs]
        nodes = tuple(chain.from_iterable(by_graph))
        object.__setattr__(self, "nodes", nodes)
        ops = {node.op for node in nodes}
        whole = not ops.isdisjoint(WHOLE_OPS)
        if not (whole or ops.isdisjoint(COMPUTED)):
            whole = any(node.op in COMPUTED and node.definition.computed for node in nodes)
        object.__setattr__(self, "whole", whole)
        validation.check_texts(self.name, self.description)
        resources = validation.check_resources(
            self.variables, self.mutexes, self.queues, self.accumulators, whole=whole
        )
        types, bounds, failing, beyond = validation.check_graphs(
            self.graphs, by_graph, resources, whole=whole
        )
        definitions = [node.definition for node in nodes]
        distinct = {id(op): op for op in definitions}.values()
        validation.check_client(self.client, self.graphs)
        runs = self.runs
        parts = validation.check_wanted(runs, self.graphs, types)
        if any(op.fed for op in distinct) or any(run.feeds for run in runs):
            validation.check_feeds(runs, parts, types, whole=whole)
        validation.check_gradients(self.variables, types, whole=whole)
        object.__setattr__(self, "parts", MappingProxyType(parts))
        if self.clusters:
            validation.check_clusters(self.clusters, self.graphs, {*types, *resources})
            validation.check_clusterable(runs, self.variables)
        object.__setattr__(self, "types", MappingProxyType(types))
        object.__setattr__(self, "bounds", MappingProxyType(bounds))
        object.__setattr__(self, "failing", failing)
        object.__setattr__(self, "beyond", beyond)
        if any(op.closes for op in distinct):
            validation.check_closes(self.graphs, runs)
        observed = validation.check_observe(self.observe, self.graphs, types, runs, parts)
        gradients = [each.type for each in self.variables if each.gradient]
        self._set_shown([*observed.values(), *(each.type for each in self._contents), *gradients])
        effects = tuple([n for n, op in zip(nodes, definitions, strict=True) if op.has_effect])
        object.__setattr__(self, "effects", effects)
        object.__setattr__(self, "features", self._features(distinct))
        self._check_condition(self.condition)

    def _set_shown(self, kinds: Iterable[TensorType]) -> None:
        """Set `shown` and `places`, from the type of each key."""
        keys = [*self.observe, *(each.name for each in self._contents)]
        observed = frozenset(self.observe)
        for key in keys[len(self.observe) :]:
            if key in observed:  # a run named as an accumulator
                raise MalformedTest(f"{key!r} is a node and an accumulator's", ("observe",))
        keys += [each.gradient_key for each in self.variables if each.gradient]
        shown = dict(zip(keys, kinds, strict=True))
        object.__setattr__(self, "shown", MappingProxyType(shown))
        places = {name: place for place, name in enumerate(shown)}
        object.__setattr__(self, "places", MappingProxyType(places))

    # --- the same test, otherwise written --------------------------------------------------

    def titled(self, name: str | None = None, description: str | None = None) -> LitmusTest:
        """The test with another name or description of itself; one that is not given stays.

        Raises
        ------
        MalformedTest
            If it may not have that name or description.
        """
        name = self.name if name is None else name
        description = self.description if description is None else description
        validation.check_texts(name, description)
        return self._with(name=name, description=description)

    def asked(self, condition: Condition | None) -> LitmusTest:
        """The test with another condition, or with none.

        Raises
        ------
        MalformedTest
            If the condition is not one on the test's outcomes.
        """
        self._check_condition(condition)
        return self._with(condition=condition)

    def _check_condition(self, condition: Condition | None) -> None:
        if condition is not None:
            validation.check_condition(
                condition,
                {name: self.size_of(kind.shape) for name, kind in self.shown.items()},
                {each.name for each in self.queues},
                {each.name for each in self.variables if each.init is None},
            )

    def renamed(self, naming: Naming) -> LitmusTest:
        """The test under other names, in the same order.

        It equals the test that is made of the renamed parts, in every field. No rule of the format
        asks more of a name than that it is legal and belongs to one part, so nothing else is
        checked again, which takes a third of the time.

        Raises
        ------
        MalformedTest
            If a name is not legal, or two parts have one name.
        """
        names = naming.of_values(self.types, self.bounds, [each.name for each in self.resources])
        graph_names = naming.of_graphs([graph.name for graph in self.graphs])
        run_names = naming.of_runs([run.name for run in self.runs])
        cluster_names = naming.of_clusters([each.name for each in self.clusters], names)

        def every(old: tuple[str, ...]) -> tuple[str, ...]:
            return tuple([names[name] for name in old])

        graphs = tuple(
            [
                Graph(graph_names[graph.name], tuple([renamed(n, names) for n in graph.nodes]))
                for graph in self.graphs
            ]
        )
        runs = tuple(
            [
                Run(
                    run_names[run.name],
                    graph_names[run.graph],
                    tuple([run_names[name] for name in run.after]),
                    every(run.fetches),
                    every(run.targets),
                    tuple([(names[name], value) for name, value in run.feeds]),
                )
                for run in self.runs
            ]
        )
        if len(runs) > 1:
            keys = [(run_names[head(key)], names[after_dot(key)]) for key in self.observe]
            observe = tuple([f"{run}.{name}" for run, name in keys])
        else:
            observe = every(self.observe)
        return self._image(
            names,
            graphs,
            runs,
            variables=tuple([replace(v, name=names[v.name]) for v in self.variables]),
            observe=observe,
            mutexes=tuple([replace(m, name=names[m.name]) for m in self.mutexes]),
            queues=tuple([replace(q, name=names[q.name]) for q in self.queues]),
            clusters=tuple(
                [Cluster(cluster_names[c.name], every(c.members)) for c in self.clusters]
            ),
            accumulators=tuple([replace(a, name=names[a.name]) for a in self.accumulators]),
            condition=self.condition
            and self.condition.renamed(self._renamed_keys(names, run_names)),
            types=MappingProxyType({names[old]: kind for old, kind in self.types.items()}),
            bounds=MappingProxyType({names[old]: bound for old, bound in self.bounds.items()}),
            failing=frozenset([names[old] for old in self.failing]),
            beyond=frozenset([names[old] for old in self.beyond]),
        )

    def _renamed_keys(
        self, names: Mapping[str, str], run_names: Mapping[str, str]
    ) -> dict[str, str]:
        """The new key of an outcome for each key here."""
        keys: dict[str, str] = {}
        for key in self.observe:
            if len(self.runs) > 1:
                keys[key] = f"{run_names[head(key)]}.{names[after_dot(key)]}"
            else:
                keys[key] = names[key]
        for each in self.variables:
            keys[each.name] = names[each.name]
            keys[each.gradient_key] = replace(each, name=names[each.name]).gradient_key
        for queue in self.queues:
            keys[queue.name] = names[queue.name]
        for one in self.accumulators:
            other = replace(one, name=names[one.name])
            keys[one.sum.name], keys[one.count.name] = other.sum.name, other.count.name
        return keys

    def reordered(self, order: Reordering) -> LitmusTest:
        """The test with its unordered parts in another order, under the same names.

        It equals the test that is made of the reordered parts, in every field. All that the format
        asks of an order is that it is a topological one, which that of a `Reordering` is.

        Raises
        ------
        ValueError
            If there is no topological order that keeps what must stand above.
        """
        graphs = tuple([Graph(graph.name, order.nodes(graph.nodes)) for graph in self.graphs])
        names = {name: name for graph in graphs for name in _values(graph.nodes)}
        types = MappingProxyType({name: self.types[name] for name in names})
        return self._image(names, graphs, self.runs, types=types)

    def _image(
        self,
        names: Mapping[str, str],
        graphs: tuple[Graph, ...],
        runs: tuple[Run, ...],
        **fields: object,
    ) -> LitmusTest:
        """The test with other fields, the image of this one.

        Nothing is checked, apart from keys of outcomes: only a method that knows the image of a
        well-formed test to be one may call it.

        Parameters
        ----------
        names : mapping of str to str
            Name in the image of each value here.
        graphs : tuple of Graph
        runs : tuple of Run
            One for each run here.
        """
        client = listed(runs, graphs)
        nodes = tuple(all_nodes(node for graph in graphs for node in graph.nodes))
        effects = tuple([node for node in nodes if node.definition.has_effect])
        by_name = {graph.name: graph for graph in graphs}
        parts: dict[str, Graph] = {}
        for old, run in zip(self.runs, runs_of(client, graphs), strict=True):
            graph = parts[run.name] = by_name[run.graph]
            if run.wanted:
                kept = {names[node.name] for node in self.parts[old.name].nodes}
                executed = tuple([node for node in graph.nodes if node.name in kept])
                parts[run.name] = Graph(graph.name, executed)
        fields |= {"graphs": graphs, "client": client, "parts": MappingProxyType(parts)}
        made = self._with(**fields, nodes=nodes, effects=effects)
        made._set_shown(self.shown.values())
        return made

    def _with(self, **fields: object) -> LitmusTest:
        """The test with other fields, unchecked."""
        made = object.__new__(LitmusTest)
        for name in LitmusTest.__slots__:
            object.__setattr__(made, name, fields[name] if name in fields else getattr(self, name))
        return made

    # --- what there is in it ---------------------------------------------------------------

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
    def named_nodes(self) -> tuple[Node, ...]:
        """The nodes by whose ops reports name the test: its effects.

        Beside a single effect also the pure ops, as one of them may be what is wrong.
        """
        if len(self.effects) > 1:
            return self.effects
        return tuple(n for n in self.nodes if n.definition.has_effect or n.definition.computes)

    @property
    def _contents(self) -> tuple[Variable | Queue, ...]:
        """What an outcome shows of each resource, in the order of its keys."""
        return (*self.variables, *self.cells, *self.queues)

    @property
    def runs(self) -> tuple[Run, ...]:
        """The client's runs, or one of each graph."""
        return runs_of(self.client, self.graphs)

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

    def _features(self, ops: Collection[OpDef]) -> frozenset[str]:
        """The features, from the rows of the op table that the nodes have, each once."""
        found = set()
        if len(self.graphs) > 1 or len(self.runs) > 1:
            found.add("several runs")
        if self.mutexes:
            found.add("critical sections")
        if self.queues:
            found.add("queues")
        if self.accumulators:
            found.add("accumulators")
        kinds = [op.kind for op in ops]
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
        if Kind.STATE in kinds:
            found.add("uninitialized variables")
        for op in ops:
            if op.fed:
                found.add("placeholders")
            if op.computed:
                found.add("computed indices")
        for run in self.client:
            if run.wanted:
                found.add("fetches")
        for each in self.variables:
            if each.init is None:
                found.add("uninitialized variables")
            if each.gradient:
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


def _values(nodes: Iterable[Node]) -> Iterator[str]:
    """Names of all values of these nodes, those inside bodies included, in the order of `types`."""
    for node in nodes:
        yield node.name
        if inside := bodies(node):
            yield from (inner for inner, _ in captures_of(node))
            if type(node.attrs) is LoopAttrs:
                yield from node.attrs.carried
            for _, body in inside:
                yield from _values(body.nodes)
            yield from node.keys[1:]
