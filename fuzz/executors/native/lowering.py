"""Lowering of a litmus test for the native core: numbers in place of names.

A critical section becomes two nodes, which acquire and release the mutex, with
control edges to and from its members.

A test for two processes is lowered twice, once for each partition: the nodes on one
process's devices. Values from the other process become arguments.

References
----------
semantics.md, sections 2, 3 and 6. ``fuzz/native/core/program.h`` has the fields.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from litmusfuzz.corpus.model import (
    BranchAttrs,
    CallAttrs,
    Cluster,
    Graph,
    LoopAttrs,
    all_nodes,
    bodies,
    clusters_of,
    enclosing,
    steps,
)
from litmusfuzz.corpus.ops import (
    DEFINED_OPS,
    AccumulatorUse,
    ConstAttrs,
    CountAttrs,
    HandleAttrs,
    Kind,
    MalformedTest,
    MomentumAttrs,
    RowsAttrs,
    SectionAttrs,
    SliceAttrs,
    TensorType,
)
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.executors.protocol import Refused
from litmusfuzz.fuzz.passes.placement import DEFAULT, CannotPlace, devices_of, place
from litmusfuzz.fuzz.passes.ssa import convert

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from litmusfuzz.corpus.model import Accumulator, LitmusTest
    from litmusfuzz.corpus.model import Body as GraphBody
    from litmusfuzz.corpus.model import Node as GraphNode
    from litmusfuzz.corpus.model import Resource as AnyResource
    from litmusfuzz.corpus.model import Run as GraphRun
    from litmusfuzz.fuzz.executors.protocol import EventKey

NOT_ON_DEVICES: Final = frozenset({"accumulators"})
"""Features that only the host has."""
_UNBOUNDED: Final = 1 << 20
"""Larger than the number of iterations of any loop."""
_ACCUMULATOR_KINDS: Final = {
    AccumulatorUse.APPLY: "apply",
    AccumulatorUse.TAKE: "take sum",
    AccumulatorUse.COUNT: "count",
    AccumulatorUse.STEP: "set step",
}
_QUEUE_KINDS: Final = {
    "QueueEnqueueV2": "enqueue",
    "QueueEnqueueManyV2": "enqueue",
    "QueueDequeueV2": "dequeue",
    "QueueDequeueManyV2": "dequeue",
    "QueueSizeV2": "size",
    "QueueCloseV2": "close",
}


@dataclass(frozen=True, slots=True)
class Strictness:
    """Extra order that the executor adds to a loop, conditional or call.

    Parameters
    ----------
    parallel : int or None
        Largest number of iterations at once; None for the guaranteed model's limit.
    gathers : bool
        An iteration, branch or call begins only when all its arguments are ready; a body
        begins only when its condition is done.
    late : bool
        Results are ready only when every instance is done.

    References
    ----------
    semantics.md, section 3, "Loops".
    """

    parallel: int | None = None
    gathers: bool = False
    late: bool = False


LOOSE: Final = Strictness()


@dataclass(frozen=True, slots=True)
class Type:
    """Data type, number of elements, and number of ints in the model."""

    dtype: str
    elements: int
    ints: int


_NOTHING: Final = Type("int32", 1, 1)


@dataclass(slots=True)
class Node:
    """One op, or the lock or unlock of a section; the fields of the core's struct of that name."""

    kind: str
    slot: int
    op: str = "NoOp"
    device: int = 0
    slot_there: int = 0
    type: Type = _NOTHING
    operand_dtype: str = "int32"
    waits: Sequence[int] = ()
    inputs: Sequence[int] = ()
    arguments: Sequence[int] = ()
    input_sizes: Sequence[int] = ()
    resources: Sequence[int] = ()
    handle: int = -1
    written: Sequence[int] = ()
    rows: Sequence[int] = ()
    row_elements: int = 1
    inner: int = 0
    columns: int = 0
    nesterov: bool = False
    parts: int = 1
    many: bool = False
    constant: object = b""
    bodies: Sequence[int] = ()
    results: int = 0
    carried: int = 0
    parallel: int = 0
    bound: int = 0
    gathers: bool = False
    late: bool = False
    call: int = 0
    name: str = ""
    """Name of the node or cluster."""


@dataclass(slots=True)
class Body:
    """Nodes, and the slots that connect them: arguments first, then results of nodes."""

    arguments: int
    nodes: list[Node] = field(default_factory=list)
    results: Sequence[int] = ()
    slots: int = 0

    def new_slots(self, count: int) -> int:
        """Add `count` slots; return the number of the first."""
        self.slots += count
        return self.slots - count


@dataclass(frozen=True, slots=True)
class Resource:
    """A variable, queue or mutex; `initial` holds its initial tensors."""

    sort: str
    type: Type
    initial: Sequence[object]
    capacity: int = 0
    device: int = 0
    name: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """A run of a graph, after other runs."""

    body: int
    after: Sequence[int]


@dataclass(frozen=True, slots=True)
class Observed:
    """A value that is part of an outcome."""

    run: int
    slot: int
    type: Type
    device: int


NodeLocation = tuple[tuple[tuple[int, int, bool], ...], int]
"""Location of a node: the enclosing nodes, outermost first (number, body number, True for a
loop), then the node's own number."""


@dataclass(frozen=True, slots=True)
class Program:
    """A lowered test, or part of one; the core reads the first six fields."""

    bodies: Sequence[Body]
    resources: Sequence[Resource]
    runs: Sequence[Run]
    observed: Sequence[Observed]
    devices: int
    processes: int
    device_names: Sequence[str]
    observed_here: Sequence[str]
    names_here: Collection[str]
    """Names in an outcome that this process knows."""
    run_names: Mapping[str, int]
    places: Mapping[str, Mapping[tuple[str, str], NodeLocation]]
    """By run, "" if there is only one: locations by node name and, for a section, "lock" or
    "unlock"."""
    split: Mapping[str, Sequence[str]]
    """Split updates, with their resources; () of one through a handle."""
    test: LitmusTest
    """The test after placement."""
    lanes: int
    """Lanes added to the test."""

    def locate(self, key: EventKey) -> tuple[int, list[tuple[int, int, int]], int, int]:
        """Return an event's run, its frames (node, body, iteration), its node and step."""
        places = self.places[key.run]
        lock_or_unlock = key.access if (key.node, key.access) in places else ""
        around, number = places[key.node, lock_or_unlock]
        iterations = iter(map(int, re.findall(r"\[(\d+)\]", key.frame)))
        frames = [(node, which, next(iterations) if loop else 0) for node, which, loop in around]
        step = key.part
        if key.access == "take sum":  # after it has joined the line
            step = 1
        if key.access in ("snapshot", "write-back"):
            step = int(key.access == "write-back")
        if key.node in self.split:
            resources = self.split[key.node]
            step = int(key.access == "W")  # through a handle
            if resources:
                step = resources.index(key.resource) + step * len(resources)
        return self.run_names[key.run], frames, number, step


def _cells(accumulator: Accumulator) -> tuple[str, str]:
    """What an outcome shows of an accumulator."""
    return accumulator.sum.name, accumulator.count.name


def _lacking(device: str) -> str:
    return "" if device.startswith("cpu:") else "not in two processes"


def lower(
    test: LitmusTest,
    *,
    split_updates: bool = False,
    strictness: Mapping[str, Strictness] | None = None,
    lanes: int = 1,
    devices: Sequence[str] = (DEFAULT,),
    part: int | None = None,
    compiles: bool = False,
    lacks: Callable[[str], str] = _lacking,
) -> Program:
    """Place a test on devices and lower it.

    Parameters
    ----------
    test : LitmusTest
    split_updates : bool
        Target the model `rfc`: split dense updates as well, and ignore
        `parallel_iterations`.
    strictness : mapping, optional
        Strictness by name of a loop, conditional or call.
    devices : sequence of str
        Devices for resources and nodes without one (`fuzz.passes.placement.place`).
    part : int, optional
        Number of the process, for two processes: the devices alternate between them.
    lanes : int
        Lanes to add to values without lanes. Ignored for a test with queues, VarIsInitializedOp,
        MatMul, or lanes of its own.
    compiles : bool
        Accept clusters, since a backend computes on every device.
    lacks : callable
        Says in a few words why a device is missing; "" if it is there.

    Raises
    ------
    Refused
        If the test has an op without a kernel here, clusters or a missing device; with
        `part`, if a loop, conditional or section needs both processes.
    """
    if test.clusters and not compiles:
        raise Refused("clusters")
    if "gradients" in test.features:
        raise Refused("gradients")
    for node in test.nodes:
        if node.definition.computed:
            raise Refused("computed indices")
        if node.op in DEFINED_OPS:
            raise Refused(f"op {node.op} (node {node.name})")
    # Before placement, since the guarantee applies to the test as given.
    everything = test.nodes
    loops = (node for node in everything if isinstance(node.attrs, LoopAttrs))
    spans = {node.name: test.spans_devices(node) for node in loops}
    try:
        test = place(test, devices)
    except (CannotPlace, MalformedTest) as error:
        raise Refused(str(error)) from None
    here = devices_of(test)
    for device in here:
        if not device.startswith("cpu:"):
            for feature in sorted(NOT_ON_DEVICES & test.features):
                raise Refused(feature)
        if not compiles and (lacking := lacks(device)):
            raise Refused(f"device {device} ({lacking})")
    if part is not None:
        here = here[part::2]
    lowering = _Lowering(
        test,
        here,
        spans,
        split_updates=split_updates,
        strictness=strictness or {},
        lanes=lanes,
    )
    bodies_of: dict[GraphRun, tuple[int, dict[str, int]]] = {}
    numbers = {run.name: number for number, run in enumerate(test.runs)}
    runs = []
    slots = {}
    places: dict[str, Mapping[tuple[str, str], NodeLocation]] = {}
    for number, run in enumerate(test.runs):
        # Runs that execute the same nodes on the same fed values share a body.
        nameless = replace(run, name="", after=())
        if nameless not in bodies_of:
            bodies_of[nameless] = lowering.graph(run)
        body, slots_of_body = bodies_of[nameless]
        places[run.name if len(test.runs) > 1 else ""] = lowering.places[body]
        runs.append(Run(body, [numbers[name] for name in run.after]))
        for name, slot in slots_of_body.items():
            slots[name if len(test.runs) == 1 else f"{run.name}.{name}"] = (number, slot)
    observed = observed_on(test, here)
    shown = [(name, each.device) for each in test.accumulators for name in _cells(each)]
    shown += [(each.name, each.device) for each in test.variables]
    shown += [(each.name, each.device) for each in test.queues]
    return Program(
        bodies=lowering.bodies,
        resources=lowering.resources(),
        runs=runs,
        observed=[
            Observed(*slots[name], lowering.type(test.type_of(name)), lowering.device_of(name))
            for name in observed
        ],
        devices=max(1, len(here)),
        processes=1 if part is None else 2,
        device_names=here,
        observed_here=observed,
        names_here=frozenset((*observed, *(name for name, device in shown if device in here))),
        run_names=numbers if len(runs) > 1 else {"": 0},
        places=places,
        split=lowering.split,
        test=test,
        lanes=lowering.lanes,
    )


def lanes_added(test: LitmusTest, given: TensorType, lanes: int) -> int:
    """Return the number of lanes of a value of that type; 1 for none.

    Parameters
    ----------
    lanes : int
        The requested number.
    """
    # A queue's size, a count and a variable's state are scalars, which the core makes.
    states = any(node.definition.kind is Kind.STATE for node in test.effects)
    made = test.queues or test.accumulators or states
    if made or test.whole or any(len(v.shape) > 1 for v in test.variables):
        return 1
    # Among values with rows, a scalar is broadcast to each row and gets no lanes.
    rows = any(v.shape for v in test.variables) or any(t.shape for t in test.types.values() if t)
    return lanes if given.shape or not rows else 1


def names_of(node: GraphNode) -> list[str]:
    """Return the names of the node and of its results."""
    return list(node.keys)


def observed_on(test: LitmusTest, devices: Collection[str]) -> list[str]:
    """Return the observed names of nodes on those devices."""
    nodes = {node.name: node for graph in test.graphs for node in graph.nodes}
    keys = test.nodes_by_key()
    return [name for name in test.observe if nodes[keys[name].partition(".")[0]].device in devices]


class _Lowering:
    def __init__(
        self,
        test: LitmusTest,
        devices: Sequence[str],
        spans: Mapping[str, bool],
        *,
        split_updates: bool,
        strictness: Mapping[str, Strictness],
        lanes: int,
    ) -> None:
        self.test = test
        self.devices = {name: number for number, name in enumerate(devices)}
        self.spans = spans  # by loop: the test places it on several devices
        self.leaving: list[str] = []  # Sends to the other process
        self.split_updates = split_updates
        self.strictness = strictness
        self.bodies: list[Body] = []
        self.places: dict[int, dict[tuple[str, str], NodeLocation]] = {}
        """By body of a graph; see `Program.places`."""
        self.place: dict[tuple[str, str], NodeLocation] = {}
        """Of the body that is being lowered."""
        self.run = test.runs[0]
        """The run whose body is being lowered."""
        self.split: dict[str, Sequence[str]] = {}
        names: list[AnyResource] = [
            *test.variables,
            *test.accumulators,
            *test.queues,
            *test.mutexes,
        ]
        self.numbers = {resource.name: number for number, resource in enumerate(names)}
        self.shapes = {v.name: v.shape for v in test.variables}
        self.lanes = lanes
        self.keys = test.nodes_by_key()
        self.nodes = {node.name: node for graph in test.graphs for node in graph.nodes}

    def device_of(self, observed: str) -> int:
        """Return the device of an observed name."""
        return self.devices[self.nodes[self.keys[observed].partition(".")[0]].device]

    def type(self, given: TensorType | None) -> Type:
        if given is None or given.is_handle:  # a handle is the number of its variable
            return _NOTHING
        return Type(given.dtype, self.size(given), self.test.size_of(given.shape))

    def size(self, given: TensorType) -> int:
        """Return the number of elements, added lanes included."""
        return given.size * lanes_added(self.test, given, self.lanes)

    def bytes(self, ints: Iterable[int], given: TensorType) -> bytes:
        """Return the bytes of a tensor with those ints, repeated over the lanes."""
        lane = np.array(tuple(ints), np.dtype(given.dtype))
        return np.repeat(lane, self.size(given) // lane.size).tobytes()

    def resources(self) -> list[Resource]:
        test = self.test
        # Resources of the other process get device 0; no node here uses them.
        variables = [
            Resource(
                "variable",
                self.type(v.type),
                [] if v.init is None else [self.bytes(test.initial(v), v.type)],
                device=self.devices.get(v.device, 0),
                name=v.name,
            )
            for v in test.variables
        ]
        queues = [
            Resource(
                "queue",
                self.type(queue.type),
                [self.bytes(each, queue.type) for each in test.initial_elements(queue)],
                queue.capacity,
                self.devices.get(queue.device, 0),
                queue.name,
            )
            for queue in test.queues
        ]
        accumulators = [
            Resource("accumulator", self.type(each.type), [], name=each.name)
            for each in test.accumulators
        ]
        mutexes = [Resource("mutex", _NOTHING, ()) for _ in test.mutexes]
        return [*variables, *accumulators, *queues, *mutexes]

    def graph(self, run: GraphRun) -> tuple[int, dict[str, int]]:
        """Lower what a run executes; return its body's number, and its slots by name."""
        graph = self.test.graph_of(run)
        self.run = run
        self.place = {}
        here = {node.name for node in graph.nodes if node.device in self.devices}
        self.check_parts(graph)
        # The same order in both processes, so that their numbers agree.
        pairs = [(node.inputs[0], node.name) for node in graph.nodes if node.op == "Recv"]
        self.leaving = [send for send, recv in pairs if send in here and recv not in here]
        arriving = [send for send, recv in pairs if send not in here and recv in here]
        mine = Graph(graph.name, tuple(node for node in graph.nodes if node.name in here))
        body, slots = self.body(mine, arriving, (), ())
        self.bodies.append(body)
        self.places[len(self.bodies) - 1] = self.place
        return len(self.bodies) - 1, slots

    def check_parts(self, graph: Graph) -> None:
        """Refuse a node or section whose state two processes would share."""
        nodes = {node.name: node for node in graph.nodes}
        for node in graph.nodes:
            inside = list(all_nodes([node]))
            if isinstance(node.attrs, SectionAttrs):
                inside += all_nodes(nodes[n] for n in node.attrs.members if n in nodes)
            if len({each.device in self.devices for each in inside}) > 1:
                raise Refused(f"a {node.definition.kind.value} in two processes ({node.name})")

    def inner(
        self,
        body: GraphBody,
        arguments: Sequence[str],
        around: tuple[tuple[int, int, bool], ...],
    ) -> int:
        """Lower a body of a node; return its number."""
        made, _ = self.body(Graph("body", body.nodes), arguments, body.results, around)
        self.bodies.append(made)
        return len(self.bodies) - 1

    def body(
        self,
        graph: Graph,
        arguments: Sequence[str],
        results: Sequence[str],
        around: tuple[tuple[int, int, bool], ...],
    ) -> tuple[Body, dict[str, int]]:
        """Lower a body; return it with its slots by name."""
        body = Body(len(arguments))
        slots = {name: body.new_slots(1) for name in arguments}
        over: dict[str, int] = {}  # by node: ready when every instance inside is done
        held: dict[str, list[int]] = {}  # by node: acquires of the sections around it
        sections = [n for n in graph.nodes if isinstance(n.attrs, SectionAttrs)]
        for step, node in steps(graph, clusters_of(graph.nodes, self.test.clusters)):
            place = (around, len(body.nodes))
            if isinstance(node, Cluster):
                self.place[node.name, ""] = place
                body.nodes.append(self.cluster(node, graph, body, slots, held))
                over |= dict.fromkeys(node.members, body.nodes[-1].slot)
                continue
            waits = [slots[name] for name in (*node.inputs, *node.after)]
            if step == "node":
                self.place[node.name, ""] = place
                lowered = self.node(node, body, slots, [*waits, *held.get(node.name, ())], place)
                slots[node.name] = lowered.slot
                over[node.name] = lowered.slot
                if bodies(node):
                    over[node.name] += 1 + lowered.results
                body.nodes.append(lowered)
                continue
            assert isinstance(node.attrs, SectionAttrs)
            slot = body.new_slots(1)
            resources = [self.numbers[name] for name in node.resources]
            if step == "acquire":
                waits += [held[outer.name][0] for outer in enclosing(node, sections)]
                held[node.name] = [slot]
                for name in node.attrs.members:
                    held.setdefault(name, []).append(slot)
                self.place[node.name, "lock"] = place
            else:
                inner = [s.name for s in sections if node in enclosing(s, sections)]
                waits = [held[node.name][0]]
                waits += [over[name] for name in (*node.attrs.members, *inner) if name in over]
                slots[node.name] = over[node.name] = slot
                self.place[node.name, "unlock"] = place
            device = self.devices[node.device]
            body.nodes.append(Node(step, slot, device=device, waits=waits, resources=resources))
        body.results = [slots[name] for name in results]
        return body, slots

    def node(
        self,
        node: GraphNode,
        body: Body,
        slots: dict[str, int],
        waits: list[int],
        place: NodeLocation,
    ) -> Node:
        """One op; a node with bodies adds its results to `slots`."""
        if isinstance(node.attrs, BranchAttrs):
            return self.branch(node, node.attrs, body, slots, waits, place)
        if isinstance(node.attrs, LoopAttrs):
            return self.loop(node, node.attrs, body, slots, waits, place)
        if isinstance(node.attrs, CallAttrs):
            return self.call(node, node.attrs, body, slots, waits, place)
        types = [self.test.types[name] for name in node.inputs]
        lowered = Node(
            self.kind(node),
            body.new_slots(1),
            node.op,
            self.devices[node.device],
            type=self.type(self.test.types[node.name]),
            waits=waits,
            inputs=[slots[name] for name in node.inputs],
            input_sizes=[self.type(each).elements for each in types if each],
            resources=[self.numbers[name] for name in node.resources],
            name=node.name,
        )
        if node.handle:
            lowered.handle = slots[node.handle]
            lowered.waits = [*waits, lowered.handle]
        if isinstance(node.attrs, HandleAttrs):
            number = self.numbers[node.attrs.variable]
            lowered.constant = np.array(number, np.int32).tobytes()
            return lowered
        if types and types[-1]:
            # Select's first operand is the condition, so its last one counts.
            lowered.operand_dtype = self.type(types[-1]).dtype
        if lowered.kind == "split update":
            self.split[node.name] = () if node.handle else node.resources
        if node.op == "Send":
            lowered.op = "Identity"  # a transfer inside this process
        if lowered.kind == "send":
            lowered.slot_there = self.leaving.index(node.name)
        if node.definition.kind in (Kind.READ, Kind.UPDATE):
            self.effect(node, lowered)
        elif node.definition.accumulator is AccumulatorUse.APPLY:
            local_step, gradient = lowered.inputs
            lowered.op, lowered.inputs = "AssignAddVariableOp", [gradient, local_step]
            lowered.input_sizes = lowered.input_sizes[::-1]
            lowered.type = self.type(self.test.accumulator(node).type)
        elif node.definition.kind is Kind.QUEUE:
            lowered.many = node.definition.several
            if isinstance(node.attrs, CountAttrs):
                lowered.parts = node.attrs.count
            elif lowered.many:
                (lowered.parts,) = lowered.input_sizes
        elif isinstance(node.attrs, ConstAttrs):
            given = TensorType(node.attrs.dtype, node.attrs.shape)
            lowered.constant = self.bytes(self.test.constant(node), given)
        elif node.definition.fed:
            lowered.op = "Const"
            given = self.test.type_of(node.name)
            lowered.constant = self.bytes(self.test.fed(self.run, node), given)
        elif node.op == "MatMul":
            left, right = types
            assert left
            assert right
            lowered.inner, lowered.columns = left.shape[1], right.shape[1]
        return lowered

    def cluster(
        self,
        cluster: Cluster,
        graph: Graph,
        body: Body,
        slots: dict[str, int],
        held: Mapping[str, list[int]],
    ) -> Node:
        """A cluster as one node; adds its members' values to `slots`."""
        function = convert(self.test, cluster)
        members = [node for node in graph.nodes if node.name in cluster.members]
        devices = {each.device for node in members for each in all_nodes([node])}
        if len(devices) > 1:
            raise Refused(f"a cluster on several devices ({cluster.name})")
        waits = [slots[name] for name in function.arguments]
        waits += [
            slots[name]
            for node in members
            for name in node.after
            if name.partition(".")[0] not in cluster.members
        ]
        slot = body.new_slots(1 + len(function.outputs))
        # All members finish together; unused results have no value.
        slots |= dict.fromkeys((name for node in members for name in names_of(node)), slot)
        slots |= {name: slot + 1 + i for i, name in enumerate(function.outputs)}
        return Node(
            "cluster",
            slot,
            device=self.devices[devices.pop()],
            waits=list(
                dict.fromkeys((*waits, *(s for n in cluster.members for s in held.get(n, ()))))
            ),
            inputs=[slots[name] for name in function.arguments],
            resources=[self.numbers[name] for name in function.initial],
            written=[self.numbers[final.variable] for final in function.finals],
            results=len(function.outputs),
            name=cluster.name,
        )

    def kind(self, node: GraphNode) -> str:
        kind = node.definition.kind
        if kind is Kind.QUEUE:
            return _QUEUE_KINDS[node.op]
        if node.definition.accumulator is not None:
            return _ACCUMULATOR_KINDS[node.definition.accumulator]
        if kind is Kind.TRANSFER:
            if node.op == "Recv":
                return "recv"
            return "send" if node.name in self.leaving else "pure"
        if kind is Kind.HANDLE:
            return "pure"
        if kind is Kind.UPDATE and (self.split_updates or not node.definition.dense):
            return "split update"
        return str(kind.value)

    def effect(self, node: GraphNode, lowered: Node) -> None:
        """Set the rows that a read or update touches."""
        shape = self.shapes[node.resources[0]]
        given = self.test.type_of(node.resources[0])
        if node.definition.kind is Kind.UPDATE:
            lowered.type = self.type(given)
        lowered.row_elements = self.size(given) // shape[0] if shape else 1
        if isinstance(node.attrs, RowsAttrs):
            lowered.rows = node.attrs.indices
        elif isinstance(node.attrs, SliceAttrs):
            lowered.rows = list(node.attrs.rows)
        elif isinstance(node.attrs, MomentumAttrs):
            lowered.nesterov = node.attrs.use_nesterov

    def branch(
        self,
        node: GraphNode,
        attrs: BranchAttrs,
        body: Body,
        slots: dict[str, int],
        waits: list[int],
        place: NodeLocation,
    ) -> Node:
        strict = self.strictness.get(node.name, LOOSE)
        taken = [slots[outer] for _, outer in attrs.captures]
        inside = [name for name, _ in attrs.captures]
        around, number = place
        slot = body.new_slots(2 + len(attrs.results))
        slots |= {f"{node.name}.{name}": slot + 1 + i for i, name in enumerate(attrs.results)}
        return Node(
            "if",
            slot,
            device=self.devices[node.device],
            waits=[*waits, *taken] if strict.gathers else waits,
            inputs=[slots[name] for name in node.inputs],
            arguments=taken,
            bodies=[
                self.inner(each, inside, (*around, (number, which, False)))
                for which, each in enumerate((attrs.then, attrs.orelse))
            ],
            results=len(attrs.results),
            late=strict.late,
        )

    def call(
        self,
        node: GraphNode,
        attrs: CallAttrs,
        body: Body,
        slots: dict[str, int],
        waits: list[int],
        place: NodeLocation,
    ) -> Node:
        strict = self.strictness.get(node.name, LOOSE)
        taken = [slots[outer] for _, outer in attrs.captures]
        inside = [name for name, _ in attrs.captures]
        around, number = place
        slot = body.new_slots(2 + len(attrs.results))
        slots |= {f"{node.name}.{name}": slot + 1 + i for i, name in enumerate(attrs.results)}
        return Node(
            "call",
            slot,
            device=self.devices[node.device],
            waits=[*waits, *taken] if strict.gathers else waits,
            arguments=taken,
            bodies=[self.inner(attrs.body, inside, (*around, (number, 0, False)))],
            results=len(attrs.results),
            late=strict.late,
        )

    def loop(
        self,
        node: GraphNode,
        attrs: LoopAttrs,
        body: Body,
        slots: dict[str, int],
        waits: list[int],
        place: NodeLocation,
    ) -> Node:
        strict = self.strictness.get(node.name, LOOSE)
        parallel = strict.parallel
        if parallel is None:
            window = not self.split_updates and not self.spans[node.name]
            parallel = attrs.parallel_iterations if window else _UNBOUNDED
        first = [slots[name] for name in node.inputs]
        inside = [*attrs.carried, *(name for name, _ in attrs.captures)]
        around, number = place
        slot = body.new_slots(2 + len(attrs.carried))
        arguments = [*first, *(slots[outer] for _, outer in attrs.captures)]
        slots |= {f"{node.name}.{name}": slot + 1 + i for i, name in enumerate(attrs.carried)}
        return Node(
            "while",
            slot,
            device=self.devices[node.device],
            waits=waits[len(first) :],  # the carried values deliver one by one
            arguments=arguments,
            bodies=[
                self.inner(each, inside, (*around, (number, which, True)))
                for which, each in enumerate((attrs.condition, attrs.body))
            ],
            results=len(attrs.carried),
            carried=len(attrs.carried),
            parallel=parallel,
            bound=self.test.bounds[node.name],
            gathers=strict.gathers,
            late=strict.late,
        )
