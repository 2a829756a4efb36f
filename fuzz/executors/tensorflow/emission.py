"""Writes one copy of a test's graph as TensorFlow nodes, with v1 control flow for bodies.

A call is a StatefulPartitionedCall, or a PartitionedCall if its body is pure, of a function of its
own. TensorFlow inlines it, or executes it by its kernel (`Copy.lowered`). The function's control
output is a NoOp that waits for the whole body, so that control edges out of the call follow all of
its instances.

An op with several results is one node, whatever nodes of the test are its results. Each of these is
an Identity of one output; other nodes of its level take the output itself, as a user's graph does:
Grappler's patterns look for it.

The rules that keep the helper nodes from adding order are in `lowering`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from tensorflow.core.framework import graph_pb2
from tensorflow.python.framework import op_def_registry

from litmusfuzz.corpus.model import (
    BranchAttrs,
    CallAttrs,
    LoopAttrs,
    all_nodes,
    bodies,
    enclosing,
)
from litmusfuzz.corpus.ops import BOOL, HandleAttrs, SectionAttrs
from litmusfuzz.fuzz.executors.tensorflow.node_defs import (
    DATA_TYPES,
    Emitter,
    const,
    output_of,
    proto,
    typed,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tensorflow.core.framework import function_pb2, node_def_pb2

    from litmusfuzz.corpus.model import Graph, LitmusTest, Node
    from litmusfuzz.corpus.ops import TensorType
    from litmusfuzz.fuzz.executors.tensorflow.node_defs import Line


@dataclass(frozen=True, slots=True)
class Frame:
    """Parts that all copies of a test share: NodeDefs without names, inputs and noise.

    `lines` holds the ops by node name, `handles` the handles by resource name.
    """

    test: LitmusTest
    lines: Mapping[str, Line]
    handles: Mapping[str, node_def_pb2.NodeDef]
    devices: Mapping[str, str]
    """Device of each resource; "" where the test names none."""
    firsts: Mapping[str, str]
    """Of each node of an op with several results, the node with which the op is lowered."""


@dataclass(slots=True)
class Level:
    """State of one graph or body while it is emitted.

    `pivot` is a control input that precedes every node of the level. `names` maps values
    from the enclosing level to the nodes that provide them; the `invariant` ones do not
    wait for the pivot. `locks` holds the mutex acquires that precede each node, `shared`
    the shared handle of each variable.
    """

    nodes: Mapping[str, Node]
    pivot: str
    names: Mapping[str, str] = field(default_factory=dict)
    invariant: frozenset[str] = frozenset()
    is_body: bool = True
    locks: dict[str, list[str]] = field(default_factory=dict)
    shared: dict[str, str] = field(default_factory=dict)


class Copy:
    """Emits one copy of a graph.

    Parameters
    ----------
    emit : Emitter
    frame : Frame
    prefix : str
        Prefix of the names of all nodes in this copy.
    resources : str
        Prefix of the shared names of this copy's resources.
    rng : numpy.random.Generator
        Source of all random choices.
    padding : int
        As in `Noise`, for this copy.
    shuffle : bool
        As in `Noise`.
    share_handles : bool
        True if all ops of a graph or body that use a variable share one handle.
    library : FunctionDefLibrary
        The function library of the target graph.
    lowered : bool
        True if TensorFlow inlines calls; false if their kernels run.
    part : Graph, optional
        The part of the graph that its run executes, if that is not all; the other nodes are
        emitted as well, but nothing of this part, nor its sections, waits for them.
    late : frozenset of str
        Loops and conditionals of the graph whose results wait for all of their instances. If a run
        fetches a result, TensorFlow executes nothing that the result does not wait for.
    """

    def __init__(
        self,
        emit: Emitter,
        frame: Frame,
        prefix: str,
        resources: str,
        rng: np.random.Generator,
        *,
        padding: int,
        shuffle: bool,
        share_handles: bool,
        library: function_pb2.FunctionDefLibrary,
        lowered: bool,
        part: Graph | None = None,
        late: frozenset[str] = frozenset(),
    ) -> None:
        self.emit = emit
        self.frame = frame
        self.prefix = prefix
        self.resources = resources
        self.rng = rng
        self.padding = padding
        self.shuffle = shuffle
        self.share_handles = share_handles
        self.library = library
        self.lowered = lowered
        self.executed = frozenset(node.name for node in part.nodes) if part else None
        self.late = late

    def graph(self, nodes: Sequence[Node], start: str) -> list[str]:
        """Emit a graph after the control input `start`; control inputs that wait for its end."""
        return self._level(Level({n.name: n for n in nodes}, start, is_body=False))

    # --- nodes of one graph or body -------------------------------------------------------

    def _level(self, level: Level) -> list[str]:
        """Emit the nodes of a level; control inputs that wait for all their instances."""
        nodes = list(level.nodes.values())
        sections = [node for node in nodes if isinstance(node.attrs, SectionAttrs)]
        for section in sections:
            assert isinstance(section.attrs, SectionAttrs)
            inner = [other.name for other in sections if section in enclosing(other, sections)]
            for name in (*section.attrs.members, *inner):
                level.locks.setdefault(name, []).append(f"^{self._name(section)}/lock")
        if self.share_handles and not level.shared:
            for variable in self.frame.test.variables:
                name = f"{level.pivot[1:]}/{variable.name}/shared"
                level.shared[variable.name] = self._handle(name, variable.name, [level.pivot])
        for index in self.rng.permutation(len(nodes)) if self.shuffle else range(len(nodes)):
            node = nodes[index]
            if isinstance(node.attrs, LoopAttrs):
                self._loop(level, node, node.attrs)
            elif isinstance(node.attrs, BranchAttrs):
                self._branch(level, node, node.attrs)
            elif isinstance(node.attrs, CallAttrs):
                self._function_call(level, node, node.attrs)
            elif isinstance(node.attrs, SectionAttrs):
                self._section(level, node, node.attrs, sections)
            elif isinstance(node.attrs, HandleAttrs):
                waits = [level.pivot, *self._waits(level, node)]
                self._further_handle(level, node, node.attrs.variable, waits)
            else:
                self._op(level, node)
        return self._ends(level)

    def _further_handle(
        self, level: Level, node: Node, variable: str, waits: Sequence[str]
    ) -> None:
        """Emit another handle of a variable; where ops share one, an Identity of that."""
        name = self._name(node)
        if not level.shared:
            self._handle(name, variable, list(waits))
            return
        copied = proto("Identity")
        copied.attr["T"].type = DATA_TYPES[self._type(node.name).dtype]
        self.emit.node(name, copied, [level.shared[variable], *waits])

    def _op(self, level: Level, node: Node) -> None:
        """Emit one op of the test, with its helpers."""
        line = self.frame.lines[node.name]
        name = self._name(node)
        first = self.frame.firsts.get(node.name, node.name)
        if first != node.name:
            self.emit.alias(name, line, f"{self.prefix}{first}", node.device)
            return
        inputs = [self._output(level, node, source) for source in node.inputs]
        waits = self._waits(level, node)
        device = node.device
        if node.resources:
            device = device or self.frame.devices[node.resources[0]]
            gate = [level.pivot]
            if self.rng.random() < 0.5:  # a late handle, see `lowering`
                gate += [*(f"^{self._value(level, source)}" for source in node.inputs), *waits]
            if self.padding and self.rng.random() < 0.5:
                gate = [f"^{self._pad(level, name, gate)}"]
                waits += gate if level.shared or node.handle else []
            if node.handle:
                handles = [self._value(level, node.handle)]
                if level.is_body and self._may_run_early(level, node.edges):
                    waits.append(level.pivot)
            elif level.shared and node.resources[0] in level.shared:
                handles = [level.shared[resource] for resource in node.resources]
            else:
                handles = self._handles(node, gate)
            # Outside bodies, constants wait for nothing: they are ready when the copy starts.
            here = [level.pivot] if level.is_body else []
            constants = [
                self.emit.node(f"{name}/constant{position}", constant, here)
                for position, constant in enumerate(line.constants)
            ]
            # Order of inputs: handles, constants (for DequeueMany the count), operands.
            inputs = handles + constants + inputs
        elif level.is_body and self._may_run_early(level, node.edges):
            waits.append(level.pivot)
        self.emit.line(name, line, inputs + waits, device)

    def _section(
        self, level: Level, node: Node, attrs: SectionAttrs, sections: Iterable[Node]
    ) -> None:
        """Emit a critical section: the acquire before all members, the release after them."""
        name = self._name(node)
        gate = [level.pivot]
        waits = self._waits(level, node)
        (handle,) = self._handles(node, gate + waits if self.rng.random() < 0.5 else gate)
        lock = self.emit.helper(f"{name}/lock", proto("MutexLock"), [handle, *waits])
        within = [*attrs.members, *(s.name for s in sections if node in enclosing(s, sections))]
        if self.executed is not None and node.name in self.executed and not level.is_body:
            within = [each for each in within if each in self.executed]
        ended = [each for other in within for each in self._ended(level, other)]
        self.emit.helper(name, proto("ConsumeMutexLock"), [lock, *ended])

    def _loop(self, level: Level, node: Node, attrs: LoopAttrs) -> None:
        """Emit a loop as ``tf.compat.v1.while_loop`` does, with a frame of its own."""
        name = self._name(node)
        waits = [*self._waits(level, node), level.pivot]
        kinds = [self._type(source).dtype for source in attrs.carried]
        enters: list[str] = []
        for position, source in enumerate(node.inputs):
            first = self._copied(
                f"{name}/{position}/first",
                kinds[position],
                self._value(level, source),
                waits if position == 0 else [level.pivot],
            )
            enters.append(self._enter(f"{name}/{position}", name, attrs, kinds[position], first))
        captures = {}
        for inside, outside in attrs.captures:
            dtype, value = self._type(outside).dtype, self._value(level, outside)
            captures[inside] = self._enter(
                f"{name}/take.{inside}", name, attrs, dtype, value, constant=True
            )
        merges = [
            self._merge(f"{name}/{position}", dtype, (enter, f"{name}/{position}/next"))
            for position, (dtype, enter) in enumerate(zip(kinds, enters, strict=True))
        ]
        condition = Level(
            {n.name: n for n in attrs.condition.nodes},
            f"^{merges[0]}",
            {**captures, **dict(zip(attrs.carried, merges, strict=True))},
            frozenset(captures),
        )
        ends = self._level(condition)
        (result,) = attrs.condition.results
        goes_on = self._predicate(f"{name}/condition", condition, result, [])
        goes_on = self.emit.helper(f"{name}/goes_on", proto("LoopCond"), [goes_on])
        carried: dict[str, str] = {}
        for position, (inside, dtype) in enumerate(zip(attrs.carried, kinds, strict=True)):
            switch = self._switch(f"{name}/{position}", dtype, merges[position], goes_on)
            self._result(node, inside, dtype, partial(self._structure, op="Exit"), [switch])
            carried[inside] = self._copied(f"{name}/{position}/again", dtype, f"{switch}:1", [])
        pivot = f"^{carried[attrs.carried[0]]}"
        body = Level(
            {n.name: n for n in attrs.body.nodes},
            pivot,
            {**captures, **carried},
            frozenset(captures),
        )
        body_ends = self._level(body)
        for position, (result, dtype) in enumerate(zip(attrs.body.results, kinds, strict=True)):
            value = self._value(body, result)
            if result in captures:
                value = self._copied(f"{name}/{position}/taken", dtype, value, [pivot])
            self._structure(f"{name}/{position}/next", "NextIteration", dtype, [value])
        first = self.emit.helper(f"{name}/token", const(np.array(0, bool)), [level.pivot])
        enter = self._enter(f"{name}/token", name, attrs, BOOL, first)
        merge = self._merge(f"{name}/token", BOOL, (enter, f"{name}/token/next"))
        merge = self._copied(f"{name}/token/waits", BOOL, merge, ends)
        switch = self._switch(f"{name}/token", BOOL, merge, goes_on)
        self._structure(f"{name}/ended", "Exit", BOOL, [switch])
        again = self._copied(f"{name}/token/again", BOOL, f"{switch}:1", body_ends)
        self._structure(f"{name}/token/next", "NextIteration", BOOL, [again])

    def _branch(self, level: Level, node: Node, attrs: BranchAttrs) -> None:
        """Emit a conditional: a Switch for each captured value, a Merge for each result."""
        name = self._name(node)
        waits = [*self._waits(level, node), level.pivot]
        predicate = self._predicate(f"{name}/predicate", level, node.inputs[0], waits)
        chosen = self._structure(f"{name}/chosen", "Switch", BOOL, [predicate, predicate])
        switches = {}
        for inside, outside in attrs.captures:
            dtype, value = self._type(outside).dtype, self._value(level, outside)
            switch = self._switch(f"{name}/take.{inside}", dtype, value, predicate)
            switches[inside] = dtype, switch
        levels, pivots, ends = [], [], []
        for port, (branch, inner) in ((1, ("then", attrs.then)), (0, ("else", attrs.orelse))):
            pivots.append(self._copied(f"{name}/{branch}", BOOL, f"{chosen}:{port}", []))
            names = {
                inside: self._copied(f"{name}/{branch}.{inside}", dtype, f"{switch}:{port}", [])
                for inside, (dtype, switch) in switches.items()
            }
            levels.append(Level({n.name: n for n in inner.nodes}, f"^{pivots[-1]}", names))
            ends.append(self._level(levels[-1]))
        for position, result in enumerate(attrs.results):
            values = [
                self._value(each, inner.results[position])
                for each, inner in zip(levels, (attrs.then, attrs.orelse), strict=True)
            ]
            kind = self._type(f"{node.name}.{result}")
            self._result(node, result, kind.dtype, self._join, values)
        done = [
            self._copied(f"{pivot}/ended", BOOL, pivot, waiting)
            for pivot, waiting in zip(pivots, ends, strict=True)
        ]
        self._join(f"{name}/ended", BOOL, done)

    def _function_call(self, level: Level, node: Node, attrs: CallAttrs) -> None:
        """Emit a function and its call; what the body needs of the arguments comes one by one."""
        name = self._name(node)
        waits = [*self._waits(level, node), level.pivot]
        start = self.emit.helper(f"{name}/start", const(np.array(0, bool)), waits)
        types = [BOOL, *(self._type(outside).dtype for _, outside in attrs.captures)]
        values = [start, *(self._value(level, outside) for _, outside in attrs.captures)]
        names = {inside: f"arg{i}" for i, (inside, _) in enumerate(attrs.captures, 1)}
        # A cluster of ops inside and outside may have one handle of each variable only.
        used = {each for n in all_nodes(attrs.body.nodes) for each in variables_of(n)}
        taken = [variable for variable in level.shared if variable in used]
        shared = {variable: f"arg{i}" for i, variable in enumerate(taken, len(types))}
        values += [level.shared[variable] for variable in taken]
        types += [self.frame.test.type_of(variable).handle.dtype for variable in taken]
        nodes = {n.name: n for n in attrs.body.nodes}
        body = Level(nodes, "^arg0", names, frozenset(names), shared=shared)
        results = [self._type(f"{node.name}.{result}").dtype for result in attrs.results]
        end = f"{name}/end"

        def run() -> list[str]:
            self.emit.helper(end, proto("NoOp"), ["^arg0", *self._level(body)])
            return [
                self._copied(f"{name}/{position}/out", dtype, self._value(body, each), ["^arg0"])
                for position, (each, dtype) in enumerate(
                    zip(attrs.body.results, results, strict=True)
                )
            ]

        stateful = any(each.resources for each in all_nodes(attrs.body.nodes))
        function = self._function(f"{name}/function", types, results, run, stateful=stateful)
        made = self.library.function[-1]
        made.signature.control_output.append(end)
        made.control_ret[end] = end
        made.attr["_noinline"].b = not self.lowered
        call = proto("StatefulPartitionedCall" if stateful else "PartitionedCall")
        call.attr["f"].func.name = function
        call.attr["_lower_as_multi_device_function"].b = self.lowered  # inlined in any session
        call.attr["Tin"].list.type.extend(DATA_TYPES[dtype] for dtype in types)
        call.attr["Tout"].list.type.extend(DATA_TYPES[dtype] for dtype in results)
        self.emit.helper(name, call, [*values, *waits])
        self._leave(node, attrs.results, results)

    def _result(
        self,
        node: Node,
        result: str,
        dtype: str,
        make: Callable[..., str],
        values: Sequence[str],
    ) -> None:
        """Emit a result of a loop or conditional, which `make` makes."""
        name = f"{self._name(node)}.{result}"
        if node.name not in self.late:
            make(name, dtype=dtype, values=values)
            return
        made = make(f"{name}/made", dtype=dtype, values=values)
        self._copied(name, dtype, made, [f"^{self._name(node)}/ended"])

    # --- helpers ---------------------------------------------------------------------------

    def _handles(self, node: Node, gate: list[str]) -> list[str]:
        """Emit an op's own handles, one after the other, the first after `gate`."""
        handles: list[str] = []
        for role, resource in zip(node.definition.roles, node.resources, strict=True):
            handles.append(self._handle(f"{self._name(node)}/{role}", resource, gate))
            gate = [f"^{handles[-1]}"]
        return handles

    def _handle(self, name: str, resource: str, gate: list[str]) -> str:
        template = self.frame.handles[resource]
        device = self.frame.devices[resource]
        return self.emit.handle(name, template, f"{self.resources}{resource}", gate, device)

    def _pad(self, level: Level, name: str, gate: list[str]) -> str:
        """Emit pure work of random (log-uniform) length.

        Digamma takes about 10 ns an element, so that a small constant is enough.
        """
        constant = typed("Const", "float32")
        tensor = constant.attr["value"].tensor
        tensor.dtype = DATA_TYPES["float32"]
        tensor.tensor_shape.dim.add().size = int(self.padding ** self.rng.random())
        tensor.float_val.append(1.5)
        here = [level.pivot] if level.is_body else []
        work = self.emit.helper(f"{name}/work", constant, here)
        return self.emit.helper(f"{name}/padding", typed("Digamma", "float32"), [work, *gate])

    def _predicate(self, name: str, level: Level, source: str, waits: list[str]) -> str:
        """Emit a scalar predicate: lane 0 of the value (semantics.md, section 1)."""
        value = self._value(level, source)
        kind = self._type(source)
        early = [level.pivot] if level.is_body and self._may_run_early(level, (source,)) else []
        if kind.shape:
            # Not after `waits`: what Grappler makes of `lane0` would wait for the same ops.
            here = [f"^{value}", *early]
            rank = len(kind.shape)
            begin = self.emit.helper(f"{name}/begin", const(np.zeros(rank, np.int32)), here)
            size = self.emit.helper(f"{name}/size", const(np.ones(rank, np.int32)), here)
            scalar = self.emit.helper(f"{name}/scalar", const(np.zeros(0, np.int32)), here)
            first = typed("Slice", BOOL)
            first.attr["Index"].type = DATA_TYPES["int32"]
            lane = self.emit.helper(f"{name}/lane", first, [value, begin, size])
            value = self.emit.helper(f"{name}/lane0", typed("Reshape", BOOL), [lane, scalar])
        return self._copied(name, BOOL, value, [*waits, *early])

    def _structure(self, name: str, op: str, dtype: str, values: Iterable[str]) -> str:
        return self.emit.helper(name, typed(op, dtype), values)

    def _copied(self, name: str, dtype: str, value: str, waits: Sequence[str]) -> str:
        """Emit a copy of a value that waits for other ops; if for several, it stays as it is.

        Grappler would replace that of a constant by a constant, and XLA put this into a cluster
        with one of these ops, which would then wait for all others.
        """
        self._structure(name, "Identity", dtype, [value, *waits])
        if len(waits) > 1:
            self.emit.keep_last()
        return name

    def _enter(
        self,
        name: str,
        frame: str,
        attrs: LoopAttrs,
        dtype: str,
        value: str,
        *,
        constant: bool = False,
    ) -> str:
        enter = typed("Enter", dtype)
        enter.attr["frame_name"].s = frame.encode()
        enter.attr["is_constant"].b = constant
        enter.attr["parallel_iterations"].i = attrs.parallel_iterations
        return self.emit.helper(f"{name}/enter", enter, [value])

    def _merge(self, name: str, dtype: str, values: Sequence[str]) -> str:
        return self._join(f"{name}/merge", dtype, values)

    def _join(self, name: str, dtype: str, values: Sequence[str]) -> str:
        merge = typed("Merge", dtype)
        merge.attr["N"].i = len(values)
        return self.emit.helper(name, merge, values)

    def _switch(self, name: str, dtype: str, value: str, predicate: str) -> str:
        return self._structure(f"{name}/switch", "Switch", dtype, [value, predicate])

    def _leave(self, node: Node, results: Sequence[str], types: Sequence[str]) -> None:
        name = self._name(node)
        end = name if isinstance(node.attrs, CallAttrs) else f"{name}/ended"
        for position, (result, dtype) in enumerate(zip(results, types, strict=False)):
            waits = [f"^{end}"] if node.name in self.late else []
            self._copied(f"{name}.{result}", dtype, f"{name}:{position}", waits)

    def _function(
        self,
        name: str,
        given: Sequence[str],
        returned: Sequence[str],
        inside: Callable[[], list[str]],
        *,
        stateful: bool = True,
    ) -> str:
        """Add a function with the nodes that `inside` emits; `inside` returns the results.

        The arguments are named ``arg0``, ``arg1`` and so on.
        """
        scratch = graph_pb2.GraphDef()
        around, self.emit = self.emit, Emitter(scratch)
        results = inside()
        self.emit = around
        function = self.library.function.add()
        signature = function.signature
        signature.name = name
        signature.is_stateful = stateful
        for position, dtype in enumerate(given):
            signature.input_arg.add(name=f"arg{position}", type=DATA_TYPES[dtype])
        ops = {node.name: node.op for node in scratch.node}
        for node in scratch.node:
            node.input[:] = [_inside(source, ops) for source in node.input]
            function.node_def.add().CopyFrom(node)
        for position, (result, dtype) in enumerate(zip(results, returned, strict=True)):
            signature.output_arg.add(name=f"out{position}", type=DATA_TYPES[dtype])
            function.ret[f"out{position}"] = _inside(result, ops)
        return name

    # --- names and waiting -------------------------------------------------------------------

    def _name(self, node: Node) -> str:
        return f"{self.prefix}{node.name}"

    def _type(self, name: str) -> TensorType:
        kind = self.frame.test.types[name]
        assert kind is not None, name
        return kind

    def _value(self, level: Level, name: str) -> str:
        """Name of the node that provides a value."""
        return level.names.get(name) or f"{self.prefix}{name}"

    def _output(self, level: Level, node: Node, source: str) -> str:
        """What provides an input of a node: of an op with several results, the output itself.

        Out of a critical section a value goes by its name, since what stands in the section may be
        replaced (`sections`).
        """
        first = self.frame.firsts.get(source)
        if first is None or level.locks.get(source) != level.locks.get(node.name):
            return self._value(level, source)
        return output_of(f"{self.prefix}{first}", self.frame.lines[source])

    def _waits(self, level: Level, node: Node) -> list[str]:
        """Control inputs of a node: its control edges and the locks of its sections."""
        edges = [each for source in node.after for each in self._done(level, source)]
        return edges + level.locks.get(node.name, [])

    def _done(self, level: Level, name: str) -> list[str]:
        """Control inputs for an edge from a node; for a loop or conditional, all its results.

        A call is done when all of its instances are.
        """
        node = level.nodes.get(name)
        if node is None or not bodies(node) or isinstance(node.attrs, CallAttrs):
            return [f"^{self._value(level, name)}"]
        return [f"^{self._name(node)}.{result}" for result in _results(node)]

    def _ended(self, level: Level, name: str) -> list[str]:
        """Control inputs that wait for all instances of a node and of its bodies."""
        node = level.nodes[name]
        late = bodies(node) and not isinstance(node.attrs, CallAttrs)
        return self._done(level, name) + ([f"^{self._name(node)}/ended"] if late else [])

    def _ends(self, level: Level) -> list[str]:
        """Control inputs that wait for all instances of a level.

        What a loop or conditional captures is not waited for by a body that does not run.
        """
        followed = {
            source.partition(".")[0]
            for node in level.nodes.values()
            for source in (*node.edges, *node.members)
        }
        return [
            each
            for name, node in level.nodes.items()
            if name not in followed or bodies(node)
            for each in self._ended(level, name)
        ]

    @staticmethod
    def _may_run_early(level: Level, sources: Iterable[str]) -> bool:
        """True if all sources are invariant, so that the node needs the pivot as an input."""
        return all(source in level.invariant for source in sources)


def variables_of(node: Node) -> tuple[str, ...]:
    """The variables that a node names, those of its bodies left out."""
    named = (node.attrs.variable,) if isinstance(node.attrs, HandleAttrs) else ()
    return (*node.resources, *named)


def _results(node: Node) -> tuple[str, ...]:
    assert isinstance(node.attrs, (LoopAttrs, BranchAttrs))
    return node.attrs.carried if isinstance(node.attrs, LoopAttrs) else node.attrs.results


def _inside(source: str, ops: Mapping[str, str]) -> str:
    """The name of an input as FunctionDefs spell it: ``node:output:number``."""
    name, _, number = source.partition(":")
    if name not in ops:  # a control input, or an argument
        return source
    outputs = op_def_registry.get(ops[name]).output_arg
    if len(outputs) == 1:  # perhaps a list of tensors
        return f"{name}:{outputs[0].name}:{number or 0}"
    return f"{name}:{outputs[int(number or 0)].name}:0"
