"""A litmus test as a TensorFlow ``GraphDef``: renamed copies, each with its own noise.

The nodes and edges of the test become nodes and edges of TensorFlow, one for
one. Around them stand *helpers*: handles and index constants, which TensorFlow
needs, and padding. None may order two nodes that the test leaves unordered.
One rule sees to that:

    A helper leads to its own node and to nothing else, and what leads to it
    is its copy's start, other helpers of that node, or predecessors of that
    node in the test.

Every path between two nodes of one copy that goes through a helper is thus a
path of the test already. A copy's *start* precedes its helpers, as the source
of a run precedes all its instances, and comes after the copy before it: copies
run one after the other, and no edge leads back.

Bodies
------
Loops and conditionals are written as TensorFlow's own control flow has them
(Enter, Merge, Switch, NextIteration, Exit), a section as a MutexLock and a
ConsumeMutexLock. In a body the *pivot* stands for the copy's start: the first
carried value of the iteration, as the condition has it; the same once the
condition holds; the branch taken. Everything in a body comes after its pivot
(semantics.md, 3, "Loops"), which is what puts it into that iteration.

What no value of a body depends on TensorFlow would drop. A loop or conditional
thus passes on a *token*: it waits for such nodes, and what waits for it is the
end of the run, or of a section around. No node of the test follows a token,
which so orders none of them.

What makes outcomes differ
--------------------------
All of this was measured, and the order of magnitude is in the choice:

- *Copies in a row, not side by side.* A thread of TensorFlow's pool takes the
  newest of its own closures and steals the oldest of others, so that with many
  copies at once each thread works on a copy of its own, and ops of one copy
  seldom meet. With one copy at a time all threads fight over its ops: two
  scatters then tear 50 times as often, and IRIW shows its fifteen outcomes in
  the first thousands of copies.
- *A handle for each op, early or late.* TensorFlow counts handles as expensive:
  each goes to the pool as a closure of its own, and its op runs on the thread
  that finishes last. A handle that waits for nothing but the start (early) may
  come long after its op's predecessors, which leaves room for others in
  between; one that waits for them (late) runs the op at once. A handle shared
  by several ops would run them one after the other. Where XLA makes clusters
  they share one all the same: it takes no variable twice.
- *Padding in some copies only.* Padding spreads ops out, which gives rare
  orders; without it they collide, which gives torn values.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import graph_pb2, types_pb2

from litmusfuzz.corpus.ops import BOOL, Kind, TensorType
from litmusfuzz.fuzz.executors.protocol import Refused
from litmusfuzz.fuzz.executors.tensorflow import node_defs
from litmusfuzz.fuzz.executors.tensorflow.emission import Copy, Frame
from litmusfuzz.fuzz.executors.tensorflow.functional import FunctionalCopy
from litmusfuzz.fuzz.executors.tensorflow.node_defs import Emitter, const, literal, typed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import numpy.typing as npt
    from tensorflow.core.framework import node_def_pb2

    from litmusfuzz.corpus.model import Graph, LitmusTest, Queue
    from litmusfuzz.fuzz.executors.protocol import Noise

INIT: Final = "init"
RACE: Final = "race"
HOLD: Final = "hold"
FLAG: Final = TensorType(BOOL, ())


@dataclass(frozen=True, slots=True)
class Shown:
    """One tensor that a run fetches: values of one type, stacked along axis 0.

    `names` are in stacking order, each with all copies: row ``i * copies + c``
    is ``names[i]`` of copy c.
    """

    tensor: str
    type: TensorType
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unit:
    """A graph that one `Session.run` executes in all its copies.

    `runs` are those runs of the test that are runs of it.
    """

    target: str
    graph: Graph
    runs: tuple[str, ...]
    observed: tuple[Shown, ...]


@dataclass(frozen=True, slots=True)
class Contents:
    """What a queue holds at the end: how many elements in each copy, then all of them."""

    queue: Queue
    sizes: str
    elements: str


@dataclass(frozen=True, slots=True)
class Built:
    """A GraphDef, and what to fetch from it.

    A step is a run of target `INIT`; for each run of the test one of its unit's
    target, with `Unit.observed`; then runs that fetch `final`, and `contents`. Where
    something waits, one of target `HOLD` comes before `contents`.
    Of a test that may block nothing is fetched from a unit, since it may not
    end: what is observed is then part of `final`, as are flags that say whether
    a run has begun, and whether it is done, in each copy (`begun_key`, `done_key`).
    """

    graph_def: graph_pb2.GraphDef
    units: tuple[Unit, ...]
    final: tuple[Shown, ...]
    contents: tuple[Contents, ...]


@dataclass(frozen=True, slots=True)
class Template:
    """A test, lowered except for names, order and noise.

    `may_block` says whether it has ops that block; `devices` how many CPUs.
    """

    test: LitmusTest
    frame: Frame
    may_block: bool
    devices: int


def begun_key(run: str) -> str:
    """Whether that run has begun, among the final values; no name has a slash."""
    return f"{run}/begun"


def done_key(run: str) -> str:
    """Whether that run is done, among the final values."""
    return f"{run}/done"


def lower(test: LitmusTest) -> Template:
    """Lower what all copies of a test have in common.

    Raises
    ------
    Refused
        Naming the op, device or feature that is not supported.
    """
    if test.clusters:
        raise Refused("clusters")
    nodes = list(test.nodes)
    devices = 1
    for what, each in (
        *(("resource", resource) for resource in test.resources),
        *(("node", node) for node in nodes),
    ):
        kind, _, number = each.device.partition(":")
        if kind not in ("", "cpu"):
            raise Refused(f"device {each.device} ({what} {each.name}); only CPUs")
        devices = max(devices, 1 + int(number or 0))
    whole = (Kind.SECTION, Kind.BRANCH, Kind.LOOP)
    frame = Frame(
        test,
        {n.name: node_defs.line(test, n) for n in nodes if n.definition.kind not in whole},
        {resource.name: node_defs.handle(resource) for resource in test.resources},
        {resource.name: resource.device for resource in test.resources},
    )
    return Template(test, frame, bool(test.queues or test.mutexes), devices)


def build(
    template: Template,
    noise: Noise,
    rng: np.random.Generator,
    *,
    share_handles: bool = False,
    sequential: bool = True,
    front_end: str = "graph",
) -> Built:
    """One graph of `noise.copies` copies, with order and padding drawn from `rng`.

    Parameters
    ----------
    share_handles : bool
        Whether the ops of one copy on one variable have one handle: XLA refuses
        a cluster that gets two ("Duplicate variable passed to XLA cluster").
    sequential : bool
        Whether each copy waits for the one before; not if most block.
    front_end : str
        As in `Settings`: what bodies are made of.
    """
    graph_def = graph_pb2.GraphDef()
    graph_def.versions.producer = tf.version.GRAPH_DEF_VERSION
    emit = Emitter(graph_def)
    test = template.test
    copies = [f"c{copy}" for copy in range(noise.copies)]
    make: Callable[..., Copy] = Copy
    if front_end.startswith("functional"):
        lowered = front_end == "functional"
        make = partial(FunctionalCopy, library=graph_def.library, lowered=lowered)
    state = _State(emit, template, copies, rng)
    units = []
    for name, graph, runs in _units(template):
        prefix = f"run.{name}/" if template.may_block and len(test.runs) > 1 else ""
        shown = _observed(test, runs)
        before: list[str] = []
        ends: list[str] = []
        for copy in copies:
            # A dot first, as in no name of a test.
            start = f"{copy}/{prefix}.{name}.start"
            emit.helper(start, node_defs.proto("NoOp"), before)
            last = make(
                emit,
                template.frame,
                f"{copy}/{prefix}",
                f"{copy}/",
                rng,
                padding=noise.padding if rng.random() < 0.5 else 0,
                shuffle=noise.shuffle,
                share_handles=share_handles,
            ).graph(graph.nodes, f"^{start}")
            if template.may_block:
                last = state.keep(copy, prefix, runs[0], shown, f"^{start}", last)
            before = last if sequential else []
            ends += last
        # All nodes run: what has no successor is asked for, the rest it needs.
        target = RACE if len(test.runs) == 1 else f"{RACE}/{name}"
        emit.helper(target, node_defs.proto("NoOp"), ends)
        stacks = () if template.may_block else state.show(f"observed/{name}/", shown, prefix)
        units.append(Unit(target, graph, runs, stacks))
    state.end()
    return Built(graph_def, tuple(units), state.final(), state.contents())


def on_workers(built: Built) -> Built:
    """The same, each device a worker's only one."""
    for node in built.graph_def.node:
        number = node.device.rpartition(":")[2] or "0"
        node.device = f"/job:worker/task:{number}/device:CPU:0"
    return built


def unobserved_copies(template: Template, copies: int) -> graph_pb2.GraphDef:
    """Copies of a test and nothing else, to measure TensorFlow by; `build` is for testing.

    Copies do not wait for each other, each variable has one handle, and nothing is
    fetched. Target `INIT` sets the variables, `RACE` executes all copies. For tests of
    one graph without bodies.
    """
    graph_def = graph_pb2.GraphDef()
    graph_def.versions.producer = tf.version.GRAPH_DEF_VERSION
    emit = Emitter(graph_def)
    test, frame = template.test, template.frame
    nodes = test.graph.nodes
    followed = {source for node in nodes for source in (*node.inputs, *node.after)}
    names = [f"c{copy}" for copy in range(copies)]
    for copy in names:
        for variable in test.variables:
            name = f"{copy}/{variable.name}"
            handle = emit.handle(f"{name}/handle", frame.handles[variable.name], name)
            content = literal(variable.init, variable.shape, variable.dtype, whole=test.whole)
            value = emit.node(f"{name}/init", const(content))
            emit.node(f"{name}/set", typed("AssignVariableOp", variable.dtype), (handle, value))
        for node in nodes:
            line = frame.lines[node.name]
            name = f"{copy}/{node.name}"
            inputs = [f"{copy}/{resource}/handle" for resource in node.resources]
            for position, constant in enumerate(line.constants):
                inputs.append(emit.node(f"{name}/constant{position}", constant))
            inputs += (f"{copy}/{source}" for source in node.inputs)
            inputs += (f"^{copy}/{source}" for source in node.after)
            emit.node(name, line.proto, inputs)
    sinks = [f"^{c}/{n.name}" for c in names for n in nodes if n.name not in followed]
    emit.node(RACE, node_defs.proto("NoOp"), sinks)
    sets = [f"^{c}/{v.name}/set" for c in names for v in test.variables]
    emit.node(INIT, node_defs.proto("NoOp"), sets)
    return graph_def


def _units(template: Template) -> Iterator[tuple[str, Graph, tuple[str, ...]]]:
    """Each graph with its runs; if runs may block, each run with a graph of its own.

    Only then can be told, after a step, which of two runs of one graph is done.
    """
    test = template.test
    graphs = {graph.name: graph for graph in test.graphs}
    if template.may_block:
        for run in test.runs:
            yield run.name, graphs[run.graph], (run.name,)
        return
    for graph in test.graphs:
        runs = tuple(run.name for run in test.runs if run.graph == graph.name)
        if runs:
            yield graph.name, graph, runs


def observed_key(test: LitmusTest, run: str, node: str) -> str:
    """What a node is called in an outcome."""
    return node if len(test.runs) == 1 else f"{run}.{node}"


def _observed(test: LitmusTest, runs: Iterable[str]) -> tuple[tuple[TensorType, list[str]], ...]:
    """Nodes of a unit that some run of it shows, by type."""
    nodes = test.nodes_by_key()
    keys = {observed_key(test, run, node): node for run in runs for node in nodes.values()}
    groups: dict[TensorType, list[str]] = {}
    for node in dict.fromkeys(keys[key] for key in test.observe if key in keys):
        kind = test.types[node]
        assert kind is not None
        groups.setdefault(kind, []).append(node)
    return tuple(groups.items())


class _State:
    """What sets the resources of all copies before a race, and gets them after it."""

    def __init__(
        self, emit: Emitter, template: Template, copies: Sequence[str], rng: np.random.Generator
    ) -> None:
        self.emit = emit
        self.test = template.test
        self.frame = template.frame
        self.copies = copies
        self.rng = rng
        self.kept: dict[TensorType, list[str]] = {}
        self.sets: list[str] = []
        self.holds: list[str] = []
        self.rest: list[str] = []
        self.may_block = template.may_block
        self._constants: set[str] = set()
        for variable in self.test.variables:
            self.kept.setdefault(variable.type, []).append(variable.name)
        for copy in copies:
            for variable in self.test.variables:
                value = literal(
                    variable.init, variable.shape, variable.dtype, whole=self.test.whole
                )
                self._variable(
                    f"{copy}/{variable.name}",
                    self.frame.handles[variable.name],
                    variable.type,
                    self._constant(f"init/{variable.name}", value),
                    variable.device,
                )
            for queue in self.test.queues:
                self._queue(copy, queue)

    def keep(
        self,
        copy: str,
        prefix: str,
        run: str,
        shown: Iterable[tuple[TensorType, Sequence[str]]],
        start: str,
        ends: Iterable[str],
    ) -> list[str]:
        """Let a run write down that it has begun, what it shows, and that it is done.

        Other variables hold it: each is assigned once, and shares its memory with
        the value at most, as a fetched value does.
        """
        begun = self._flag(copy, begun_key(run), [start])
        waits = [begun, *ends]
        for kind, nodes in shown:
            for node in nodes:
                empty = np.broadcast_to(np.zeros((), kind.dtype), kind.shape)
                key = observed_key(self.test, run, node)
                waits.append(
                    self._assigned(f"{copy}/{key}", key, kind, empty, f"{copy}/{prefix}{node}", [])
                )
        return [self._flag(copy, done_key(run), waits)]

    def _flag(self, copy: str, key: str, waits: Sequence[str]) -> str:
        yes = self._constant("init/0/yes", np.array(1, bool))
        return self._assigned(f"{copy}/{key}", key, FLAG, np.array(0, bool), yes, waits)

    def _assigned(
        self,
        name: str,
        key: str,
        kind: TensorType,
        first: npt.NDArray[Any],
        value: str,
        waits: Sequence[str],
    ) -> str:
        """Emit a variable of ours that `value` is assigned to; waits for that."""
        names = self.kept.setdefault(kind, [])
        if key not in names:
            names.append(key)
        template = typed("VarHandleOp", kind.dtype)
        shape = template.attr["shape"].shape
        shape.SetInParent()
        for extent in kind.shape:
            shape.dim.add().size = extent
        empty = self._constant(f"init/0/{kind.dtype}{'x'.join(map(str, kind.shape))}", first)
        self._variable(name, template, kind, empty, "")
        handle = self.emit.handle(f"{name}/at", template, name)
        put = typed("AssignVariableOp", kind.dtype)
        return f"^{self.emit.helper(f'{name}/put', put, [handle, value, *waits])}"

    def _variable(
        self, name: str, template: node_def_pb2.NodeDef, kind: TensorType, value: str, device: str
    ) -> None:
        emit = self.emit
        handle = emit.handle(f"{name}/handle", template, name, (), device)
        if kind.dtype != BOOL and self.rng.random() < 0.5:
            # An assignment takes over its value's buffer. A constant keeps its
            # own reference, so that the first update must copy; a computed
            # value is given away whole, so that it may work in place.
            value = emit.helper(f"{name}/owned", typed("Maximum", kind.dtype), (value, value))
        put = emit.helper(f"{name}/set", typed("AssignVariableOp", kind.dtype), (handle, value))
        emit.helper(f"{name}/get", typed("ReadVariableOp", kind.dtype), (handle,))
        self.sets.append(f"^{put}")

    def _queue(self, copy: str, queue: Queue) -> None:
        """Empty a queue and fill it anew; count it, then take what it holds."""
        emit, name = self.emit, f"{copy}/{queue.name}"
        handle = emit.handle(
            f"{name}/handle", self.frame.handles[queue.name], name, (), queue.device
        )
        old = emit.helper(f"{name}/old", typed("QueueSizeV2", queue.dtype), [handle])
        take = typed("QueueDequeueManyV2", queue.dtype)
        last = emit.helper(f"{name}/emptied", take, [handle, old])
        if queue.init:
            elements = [
                literal(each, queue.shape, queue.dtype, whole=self.test.whole)
                for each in queue.init
            ]
            value = self._constant(f"init/{queue.name}", np.stack(elements))
            put = typed("QueueEnqueueManyV2", queue.dtype)
            last = emit.helper(f"{name}/set", put, [handle, value, f"^{last}"])
        self.sets.append(f"^{last}")
        size = emit.helper(f"{name}/size", typed("QueueSizeV2", queue.dtype), [handle])
        if not self.may_block:
            emit.helper(f"{name}/elements", take, [handle, size])
            return
        # Of two counts one is 0: what is full is taken after all that is not.
        room = self._constant(f"room/{queue.capacity}", np.array(queue.capacity, np.int32))
        none = self._constant("none", np.array(0, np.int32))
        full = emit.helper(f"{name}/full", typed("Equal", "int32"), [size, room])
        parts = []
        for part, counts, after in (
            ("rest", (none, size), "counted"),
            ("whole", (size, none), "rest"),
        ):
            count = emit.helper(f"{name}/{part}/count", typed("Select", "int32"), [full, *counts])
            inputs = [handle, count, f"^contents/{after}"]
            parts.append(emit.helper(f"{name}/{part}", take, inputs))
        self.rest.append(f"^{name}/rest")
        self._joined(f"{name}/elements", queue, parts)
        self._held(name, queue, handle, full)

    def _joined(self, name: str, queue: Queue, parts: Sequence[str]) -> str:
        """Elements of a queue, one after the other."""
        joined = typed("ConcatV2", queue.dtype)
        joined.attr["N"].i = len(parts)
        joined.attr["Tidx"].type = node_defs.DATA_TYPES["int32"]
        axis = self._constant("contents/axis", np.array(0, np.int32))
        return self.emit.helper(name, joined, [*parts, axis])

    def _held(self, name: str, queue: Queue, handle: str, full: str) -> None:
        """Close a queue if it is full: only then may an op wait to put something."""
        switch = node_defs.proto("Switch")
        switch.attr["T"].type = types_pb2.DT_RESOURCE
        chosen = self.emit.helper(f"{name}/if_full", switch, [handle, full], queue.device)
        close = node_defs.proto("QueueCloseV2")
        close.attr["cancel_pending_enqueues"].b = True
        self.holds.append(f"^{self.emit.helper(f'{name}/held', close, [f'{chosen}:1'])}")

    def _constant(self, name: str, value: npt.NDArray[Any]) -> str:
        if name not in self._constants:
            self._constants.add(name)
            self.emit.helper(name, const(value))
        return name

    def end(self) -> None:
        """Emit the target that sets all, and that after which nothing is put any more."""
        self.emit.helper(INIT, node_defs.proto("NoOp"), self.sets)
        if self.holds:
            self.emit.helper(HOLD, node_defs.proto("NoOp"), self.holds)

    def final(self) -> tuple[Shown, ...]:
        """Emit the stacks of all variables, ours included."""
        stacks = []
        for position, (kind, names) in enumerate(self.kept.items()):
            tensor = self._stack(f"final{position}", kind, [f"{n}/get" for n in names])
            stacks.append(Shown(f"{tensor}:0", kind, tuple(names)))
        return tuple(stacks)

    def show(
        self, name: str, groups: Iterable[tuple[TensorType, list[str]]], prefix: str
    ) -> tuple[Shown, ...]:
        """Emit the stacks of what is observed."""
        stacks = []
        for position, (kind, names) in enumerate(groups):
            tensor = self._stack(f"{name}{position}", kind, [f"{prefix}{n}" for n in names])
            stacks.append(Shown(f"{tensor}:0", kind, tuple(names)))
        return tuple(stacks)

    def _stack(self, name: str, kind: TensorType, values: Sequence[str]) -> str:
        template = typed("Pack", kind.dtype)
        template.attr["N"].i = len(values) * len(self.copies)
        inputs = (f"{copy}/{value}" for value in values for copy in self.copies)
        return self.emit.helper(name, template, inputs)

    def contents(self) -> tuple[Contents, ...]:
        """Emit the contents of all queues: those of one queue, copy by copy, in a row."""
        if not self.test.queues:
            return ()
        found = []
        count = TensorType("int32", ())
        # Where something may wait: all are counted before one is touched.
        sizes = (f"^{copy}/{queue.name}/size" for copy in self.copies for queue in self.test.queues)
        self.emit.helper("contents/counted", node_defs.proto("NoOp"), sizes)
        if self.may_block:
            self.emit.helper("contents/rest", node_defs.proto("NoOp"), self.rest)
        for queue in self.test.queues:
            counts = self._stack(f"contents/{queue.name}/sizes", count, [f"{queue.name}/size"])
            elements = f"{self.copies[0]}/{queue.name}/elements"
            if len(self.copies) > 1:
                parts = [f"{copy}/{queue.name}/elements" for copy in self.copies]
                elements = self._joined(f"contents/{queue.name}/elements", queue, parts)
            found.append(Contents(queue, f"{counts}:0", f"{elements}:0"))
        return tuple(found)
