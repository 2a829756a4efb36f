"""Expansion of a run: its accesses, and all that orders them, in one graph without calls.

Functions are expanded where they are called; both branches of a conditional are, under *guards*;
a loop becomes some iterations. The result is an acyclic graph of numbered nodes, sources first.

References
----------
semantics.md, sections 1 and 3: calls, loops, conditionals. The lowering of a functional loop ties
each iteration's effects to the next iteration: tensorflow/core/common_runtime/lower_while_op.cc.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.near import close, is_it
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.programs.effects import (
    CALLS,
    CONDITIONALS,
    HANDLES,
    LOOPS,
    NONE,
    OUTSIDE,
    PASSING,
    REFERENCES,
    UNKNOWN,
    Access,
    Effect,
    effect_of,
)
from litmusfuzz.fuzz.programs.frames import iterations, plain, unrolled
from litmusfuzz.fuzz.programs.program import (
    Entry,
    Function,
    Location,
    Operation,
    Output,
    Program,
    ProgramError,
    Resource,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MAX_NODES: Final = 2_000_000
"""Nodes of an expanded run, at most."""
MAX_DEPTH: Final = 60
"""Functions inside each other, at most; TensorFlow refuses recursion."""
BODIES: Final = 2
"""Expanded iterations of a functional loop: each precedes the next one wholly."""
ANYTHING: Final = Resource("*", "anything")
"""Stands for every resource, in an access of an op of which nothing is known."""
ANONYMOUS: Final = "cd2c89b7-88b7-44c8-ad83-06c2a9158347"
"""Shared name of resources that each run makes for itself (TensorFlow's resource_handle.h)."""

Guard = tuple[int, int]
"""A predicate's node, and the branch that it chooses."""
Guards = frozenset[Guard]
NO_GUARDS: Final[Guards] = frozenset()


@dataclass(frozen=True, slots=True)
class Instance:
    """An access of a run.

    Parameters
    ----------
    node : int
        Node of the expanded run.
    resource : Resource
    effect : Effect
    op : str
        TensorFlow's name of the op.
    name : str
        Operation's name with the calls and iterations around it.
    location : Location, optional
    handle : int
        Node that provides the handle.
    guards : Guards
    constant : bytes
        Of a write of a constant: digest of the value.
    compiled : int
        Node of the call that XLA compiles around it, or -1.
    automatic : bool
        True if the function around it has automatic control dependencies.
    """

    node: int
    resource: Resource
    effect: Effect
    op: str
    name: str
    location: Location | None
    handle: int = -1
    guards: Guards = NO_GUARDS
    constant: bytes = b""
    compiled: int = -1
    automatic: bool = False

    @property
    def reads(self) -> bool:
        """True if what it does or shows depends on the contents."""
        return self.effect.access in (Access.READ, Access.UPDATE)

    @property
    def writes(self) -> bool:
        """True if it changes the contents."""
        return self.effect.writes


@dataclass(slots=True)
class Expanded:
    """A run, expanded.

    Attributes
    ----------
    labels : list of str
        Names of the nodes.
    data, control : list of tuple of int
        Nodes with an edge to each node, all with lower numbers.
    choices : dict
        For a node that comes after one of several: the node and the guards of each.
    accesses : list of Instance
        By number of node.
    locks : dict
        For each access that locks a mutex: the nodes that keep the lock.
    sinks : list of (int, str)
        Nodes at which somebody sees a value: "results" are the client's.
    unknown : tuple of str
        Ops of which nothing is known, by name.
    noted : tuple of str
        Ops that are known to touch no variable, but deserve mention.
    """

    name: str
    labels: list[str] = field(default_factory=list)
    data: list[tuple[int, ...]] = field(default_factory=list)
    control: list[tuple[int, ...]] = field(default_factory=list)
    choices: dict[int, list[tuple[int, Guards]]] = field(default_factory=dict)
    guards: list[Guards] = field(default_factory=list)
    accesses: list[Instance] = field(default_factory=list)
    locks: dict[int, list[int]] = field(default_factory=dict)
    sinks: list[tuple[int, str]] = field(default_factory=list)
    unknown: tuple[str, ...] = ()
    noted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Value:
    """A value of the expanded graph: its node and, of a handle, what it may stand for.

    Parameters
    ----------
    node : int
    handles : tuple of (Resource, int)
        Each with the node that provides the handle.
    reference : bool
        True for TensorFlow 1's references: whoever uses one reads the variable.
    lock : int
        Access that locked the mutex, or -1.
    """

    node: int
    handles: tuple[tuple[Resource, int], ...] = ()
    reference: bool = False
    lock: int = -1


_ABSENT: Final = Value(-1)


@dataclass(frozen=True, slots=True)
class _Context:
    """Surroundings of a function's operations.

    Parameters
    ----------
    function : Function
    path : str
        Calls and iterations around, each with a slash behind it.
    entry : int
        Node that all nodes come after, or -1.
    guards : Guards
    compiled : int
    depth : int
    """

    function: Function
    path: str = ""
    entry: int = -1
    guards: Guards = NO_GUARDS
    compiled: int = -1
    depth: int = 0


def expanded(program: Program, entry: Entry) -> Expanded:
    """A run of the program, expanded.

    Raises
    ------
    ProgramError
        If a fetch is not there, a function is missing, or the run is too large.
    """
    return _Expander(program, entry).run()


def output_of(name: str) -> Output:
    """The output that a fetch names: `read:0`, or `read` for the same."""
    operation, _, number = name.partition(":")
    return operation, int(number) if number.isdigit() else 0


def _needed(program: Program, entry: Entry) -> Function:
    """The part of the main graph that a run executes."""
    by_name = {each.name: each for each in program.graph.operations}
    todo = [output_of(name)[0] for name in entry.fetches]
    for name in todo:
        if name not in by_name:
            near = close(name, by_name)
            hint = f"; {is_it(near)}" if near else ""
            raise ProgramError(f"--run {entry.name}: the graph has no operation {name!r}{hint}")
    needed: set[str] = set()
    while todo:
        name = todo.pop()
        if name not in needed:
            needed.add(name)
            each = by_name.get(name)
            if each is None:
                raise ProgramError(f"{program.name}: the graph has no operation {name!r:.80}")
            todo += (*(source for source, _ in each.inputs), *each.after)
    kept = tuple(each for each in program.graph.operations if each.name in needed)
    return replace(program.graph, operations=kept)


class _Facts:
    """Facts about functions that hold wherever they are called."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._pure: dict[str, bool] = {}
        self._needs: dict[str, tuple[tuple[int, ...], ...]] = {}
        self._by_name: dict[str, dict[str, Operation]] = {}
        self._sorted: dict[str, tuple[tuple[Operation, ...], frozenset[str]]] = {}

    def function(self, name: str) -> Function:
        found = self.program.functions.get(name)
        if found is None:
            raise ProgramError(f"{self.program.name}: no function {name!r:.80} in its library")
        return found

    def touches(self, each: Operation) -> bool:
        """True if an operation touches a resource, or may."""
        if each.bodies:
            return any(not self.is_pure(name) for name in each.bodies)
        if each.op in HANDLES:
            return False
        given = effect_of(each.op, stateful=each.stateful, given=True)
        bare = effect_of(each.op, stateful=each.stateful, given=False)
        return given.access is not None or bare is UNKNOWN or each.op in ("ConsumeMutexLock",)

    def is_pure(self, name: str) -> bool:
        """True if a function touches no resource."""
        if name not in self._pure:
            self._pure[name] = False  # in case of recursion
            function = self.function(name)
            self._pure[name] = not any(
                self.touches(each) or each.op in HANDLES or OUTSIDE.fullmatch(each.op)
                for each in function.operations
            )
        return self._pure[name]

    def needs(self, name: str) -> tuple[tuple[int, ...], ...]:
        """For each result of a pure function: the arguments that it depends on."""
        if name not in self._needs:
            function = self.function(name)
            places = {each: 1 << i for i, each in enumerate(function.arguments)}
            masks: dict[tuple[str, int], int] = {}
            whole: dict[str, int] = dict(places)
            for each in self.sorted(function)[0]:
                given = [masks.get(i, whole.get(i[0], 0)) for i in each.inputs]
                after = 0
                for source in each.after:
                    after |= whole.get(source, 0)
                everything = after
                for mask in given:
                    everything |= mask
                whole[each.name] = everything
                if each.bodies:
                    for number, needed in enumerate(self.needs_of(each)):
                        mask = after
                        for argument in needed:
                            mask |= given[argument]
                        masks[each.name, number] = mask
            results = [masks.get(i, whole.get(i[0], 0)) for i in function.results]
            count = len(function.arguments)
            self._needs[name] = tuple(
                tuple(i for i in range(count) if mask >> i & 1) for mask in results
            )
        return self._needs[name]

    def needs_of(self, each: Operation) -> tuple[tuple[int, ...], ...]:
        """For each result of a call of pure functions: the inputs that it depends on."""
        if each.op in CALLS:
            return self.needs(each.bodies[0])
        if each.op in CONDITIONALS:
            both = zip(*map(self.needs, each.bodies), strict=True)
            return tuple(
                (0, *sorted({1 + i for needed in branches for i in needed})) for branches in both
            )
        (condition,), body = self.needs(each.bodies[0]), self.needs(each.bodies[1])
        direct = [{i, *needed, *condition} for i, needed in enumerate(body)]
        changed = True
        while changed:
            changed = False
            for mine in direct:
                more = set().union(*(direct[i] for i in mine)) - mine
                mine |= more
                changed = changed or bool(more)
        return tuple(tuple(sorted(each)) for each in direct)

    def by_name(self, function: Function) -> dict[str, Operation]:
        """Operations of a function by name."""
        if function.name not in self._by_name:
            self._by_name[function.name] = {each.name: each for each in function.operations}
        return self._by_name[function.name]

    def sorted(self, function: Function) -> tuple[tuple[Operation, ...], frozenset[str]]:
        """Operations of a function, sources first, frames unrolled; Switches of its loops."""
        if function.name not in self._sorted:
            flat = unrolled(function.operations, self.touches)
            self._sorted[function.name] = _sorted(flat.operations), flat.loop_switches
        return self._sorted[function.name]


def _sorted(operations: Sequence[Operation]) -> tuple[Operation, ...]:
    """Operations with sources first, else in the order of the program."""
    places = {each.name: place for place, each in enumerate(operations)}
    waiting = [0] * len(operations)
    users: dict[int, list[int]] = defaultdict(list)
    for place, each in enumerate(operations):
        sources = {*(name for name, _ in each.inputs), *each.after}
        for name in sources:
            if name in places:
                users[places[name]].append(place)
                waiting[place] += 1
    ready = [place for place, count in enumerate(waiting) if not count]
    heapq.heapify(ready)
    order = []
    while ready:
        place = heapq.heappop(ready)
        order.append(operations[place])
        for user in users[place]:
            waiting[user] -= 1
            if not waiting[user]:
                heapq.heappush(ready, user)
    if len(order) < len(operations):
        stuck = next(each for place, each in enumerate(operations) if waiting[place])
        raise ProgramError(f"{stuck.name}: is in a cycle")
    return tuple(order)


class _Expander:
    def __init__(self, program: Program, entry: Entry) -> None:
        self.program = program
        self.entry = entry
        self.facts = _Facts(program)
        self.out = Expanded(entry.name)
        self.alias: dict[int, tuple[int, bool]] = {}
        """For a node that passes on or negates a value: its origin, and if it is negated."""
        self.unknown: dict[str, None] = {}
        self.noted: dict[str, None] = {}

    def run(self) -> Expanded:
        entry = self.entry
        if entry.function:
            function = self.facts.function(entry.function)
            arguments = [self.argument(name) for name in function.arguments]
            compiled = -1
            if function.compiled:
                compiled = self.node("compiled", (each.node for each in arguments))
            results, _ = self.body(_Context(function, "", compiled, compiled=compiled), arguments)
        else:
            function = _needed(self.program, entry)
            values = self.operations(_Context(function), {})
            results = [values[output_of(name)] for name in entry.fetches]
        self.out.sinks += ((value.node, "results") for value in results)
        self.out.unknown = tuple(self.unknown)
        self.out.noted = tuple(self.noted)
        return self.out

    # --- nodes -------------------------------------------------------------------------

    def node(
        self,
        label: str,
        data: Iterable[int] = (),
        control: Iterable[int] = (),
        guards: Guards = NO_GUARDS,
    ) -> int:
        """Add a node."""
        out = self.out
        number = len(out.labels)
        if number >= MAX_NODES:
            raise ProgramError(f"{self.entry.name}: more than {MAX_NODES:,} nodes once expanded")
        before, after = tuple(data), tuple(each for each in control if each >= 0)
        for each in (*before, *after):
            if out.guards[each]:
                guards |= out.guards[each]
        out.labels.append(label)
        out.data.append(before)
        out.control.append(after)
        out.guards.append(guards)
        return number

    def choice(self, label: str, nodes: Sequence[int], control: Iterable[int]) -> int:
        """Add a node that comes after that one of several which runs."""
        out = self.out
        number = self.node(label, (), control)
        given = [out.guards[each] for each in nodes]
        out.guards[number] |= frozenset.intersection(*given) if given else NO_GUARDS
        out.choices[number] = list(zip(nodes, given, strict=True))
        return number

    def origin(self, node: int) -> tuple[int, bool]:
        """The node that a value is from, and if it is negated."""
        return self.alias.get(node, (node, False))

    def argument(self, name: str) -> Value:
        """An argument of the run's function."""
        node = self.node(name)
        resource = self.entry.resources.get(name)
        return Value(node, ((resource, node),) if resource else ())

    # --- functions ---------------------------------------------------------------------

    def body(self, context: _Context, arguments: Sequence[Value]) -> tuple[list[Value], int]:
        """Add a function's operations; its results, and the node after all of them."""
        function = context.function
        if context.depth > MAX_DEPTH:
            raise ProgramError(f"{function.name}: more than {MAX_DEPTH} calls inside each other")
        if len(arguments) != len(function.arguments):
            message = f"takes {len(function.arguments)} arguments, given {len(arguments)}"
            raise ProgramError(f"{function.name}: {message}")
        first = len(self.out.accesses)
        given = dict(zip(function.arguments, arguments, strict=True))
        found = self.operations(context, given)
        results = [found[each] for each in function.results]
        effects = [each.node for each in self.out.accesses[first:]]
        ends = (*effects, *(each.node for each in results), context.entry)
        exits = self.node(f"{context.path}end", (), dict.fromkeys(ends), context.guards)
        return results, exits

    def operations(self, context: _Context, given: dict[str, Value]) -> _Values:
        """Add the operations of a graph or function; the value of each output that is used."""
        operations, switches = self.facts.sorted(context.function)
        values = _Values(given)
        for each in operations:
            _Adder(self, context, each, values, each.name in switches).add()
        return values


class _Values(dict[tuple[str, int], Value]):
    """Values by output; the node of each operation that is done, by its name.

    An output that has no value of its own has that of output 0.
    """

    def __init__(self, given: dict[str, Value]) -> None:
        super().__init__({(name, 0): value for name, value in given.items()})
        self.done: dict[str, int] = {name: value.node for name, value in given.items()}

    def __missing__(self, output: tuple[str, int]) -> Value:
        return self[output[0], 0] if output[1] else _ABSENT


@dataclass(slots=True)
class _Adder:
    """Adds one operation.

    Parameters
    ----------
    expander : _Expander
    context : _Context
    each : Operation
    values : _Values
    is_loop_switch : bool
    """

    expander: _Expander
    context: _Context
    each: Operation
    values: _Values
    is_loop_switch: bool

    @property
    def out(self) -> Expanded:
        return self.expander.out

    @property
    def label(self) -> str:
        name = plain(self.each.name)
        numbers = iterations(self.each.name)
        return self.context.path + name + "".join(f"[{number}]" for number in numbers)

    def add(self) -> None:
        """Add the operation, with the functions that it calls."""
        each = self.each
        inputs = [self.values[output] for output in each.inputs]
        missing = [o[0] for o, v in zip(each.inputs, inputs, strict=True) if v.node < 0]
        if missing:
            raise ProgramError(f"{plain(each.name)}: its input {plain(missing[0])!r} is missing")
        after = [self.values.done[name] for name in each.after if name in self.values.done]
        after.append(self.context.entry)
        if each.bodies and each.op in CALLS | CONDITIONALS | LOOPS:
            if all(map(self.expander.facts.is_pure, each.bodies)):
                self.pure_call(inputs, after)
            elif each.op in CALLS:
                self.call(inputs, after)
            elif each.op in CONDITIONALS:
                self.conditional(inputs, after)
            else:
                self.loop(inputs, after)
        elif each.op in ("Switch", "RefSwitch") and not self.is_loop_switch:
            self.switch(inputs, after)
        elif each.op in ("Merge", "RefMerge"):
            nodes = [value.node for value in inputs]
            node = self.expander.choice(self.label, nodes, after)
            self.done(node, self.passed(node, inputs))
        else:
            self.ordinary(inputs, after)

    def done(self, node: int, *outputs: Value) -> None:
        """Note the operation's values."""
        self.values.done[self.each.name] = node
        for number, value in enumerate(outputs or (Value(node),)):
            self.values[self.each.name, number] = value

    def new(self, data: Iterable[Value], control: Iterable[int], label: str = "") -> int:
        """Add a node of this operation."""
        nodes = (value.node for value in data)
        return self.expander.node(label or self.label, nodes, control, self.context.guards)

    def passed(self, node: int, inputs: Sequence[Value]) -> Value:
        """A value that is one of the inputs, at a node."""
        handles = dict.fromkeys(handle for value in inputs for handle in value.handles)
        lock = max((value.lock for value in inputs), default=-1)
        return Value(node, tuple(handles), any(value.reference for value in inputs), lock)

    # --- ordinary operations -------------------------------------------------------------

    def ordinary(self, inputs: Sequence[Value], after: Sequence[int]) -> None:
        """Add an operation without bodies."""
        each = self.each
        node = self.new(inputs, after)
        if each.op in HANDLES and not any(value.handles for value in inputs):
            provided = (self.resource(), node)
            self.done(node, Value(node, (provided,), each.op in REFERENCES))
            return
        if each.op in ("Identity", "LogicalNot") and inputs:
            origin, negated = self.expander.origin(inputs[0].node)
            self.expander.alias[node] = origin, negated ^ (each.op == "LogicalNot")
        if each.op == "LoopCond" and inputs:
            self.out.sinks.append((node, "a predicate"))
        if each.op in PASSING:
            if each.op in ("Identity", "IdentityN", "StopGradient"):
                self.dereference(node, inputs)
                inputs = [value for value in inputs if not value.reference]
            one_each = each.op == "IdentityN"
            passed = [self.passed(node, [value]) for value in inputs]
            self.done(node, *(passed if one_each else (self.passed(node, inputs[:1]),)))
            return
        given = any(value.handles for value in inputs)
        effect = effect_of(each.op, stateful=each.stateful, given=given)
        if OUTSIDE.fullmatch(each.op):
            self.out.sinks.append((node, f"{each.op} {self.label}"))
        if not effect.known:
            self.expander.unknown[each.op] = None
            self.out.sinks.append((node, f"{each.op} {self.label}"))
            if not given:
                self.access(node, ANYTHING, effect, -1)
        elif each.op.startswith("Collective"):
            self.expander.noted[each.op] = None
        if each.op == "ConsumeMutexLock":
            for value in inputs:
                if value.lock >= 0:
                    self.out.locks[value.lock].append(node)
        rest = inputs
        if inputs and inputs[0].reference:
            self.dereference(node, inputs[1:])
            own = effect if effect.access else Effect(Access.READ, shows=True)
            for resource, handle in inputs[0].handles:
                self.access(node, resource, own, handle)
            if own.writes:
                self.done(node, self.passed(node, inputs[:1]))
                return
            rest = ()
        self.dereference(node, rest)
        lock = -1
        for value in rest:
            for resource, handle in value.handles if not value.reference else ():
                if effect is not NONE and (effect.access or not effect.known):
                    lock = self.access(node, resource, effect, handle)
        self.done(node, Value(node, lock=lock if each.op == "MutexLock" else -1))

    def dereference(self, node: int, inputs: Iterable[Value]) -> None:
        """Add the reads of references that are given."""
        for value in inputs:
            for resource, handle in value.handles if value.reference else ():
                self.access(node, resource, Effect(Access.READ, shows=True), handle)

    def resource(self) -> Resource:
        """The resource whose handle the operation provides."""
        each = self.each
        local = each.op.startswith("Anonymous") or each.shared_name == ANONYMOUS
        local = local or each.op in ("StackV2", "TensorArrayV3")
        name = self.label if local else (each.shared_name or plain(each.name))
        return Resource(name, HANDLES[each.op], local, each.dtype, each.shape)

    def access(self, node: int, resource: Resource, effect: Effect, handle: int) -> int:
        """Add an access; its number."""
        out, context = self.out, self.context
        if resource.kind in ("queue", "other") and effect.known:
            return -1
        constant = b""
        if effect.access is Access.WRITE and len(self.each.inputs) > 1:
            constant = self.constant(self.each.inputs[1])
        source = self.expander.program.sources.get((context.function.name, plain(self.each.name)))
        instance = Instance(
            node,
            resource,
            replace(effect, split=True) if context.compiled >= 0 and effect.writes else effect,
            self.each.op,
            self.label,
            source,
            handle,
            out.guards[node],
            constant,
            context.compiled,
            context.function.automatic,
        )
        out.accesses.append(instance)
        number = len(out.accesses) - 1
        if effect.access is Access.LOCK:
            out.locks[number] = []
        return number

    def constant(self, output: tuple[str, int]) -> bytes:
        """Digest of a constant, or of what fills a tensor with one."""
        facts = self.expander.facts
        operation = facts.by_name(self.context.function).get(plain(output[0]))
        while operation is not None and operation.op == "Identity":
            operation = facts.by_name(self.context.function).get(operation.inputs[0][0])
        if operation is None:
            return b""
        if operation.op in ("ZerosLike", "OnesLike"):
            return operation.op.encode()
        return operation.value_digest

    # --- conditionals, loops and calls ------------------------------------------------------

    def switch(self, inputs: Sequence[Value], after: Sequence[int]) -> None:
        """Add a Switch of TensorFlow 1: one of its two outputs has the value."""
        predicate, negated = self.predicate(inputs[1])
        outputs = []
        for side in (0, 1):
            node = self.new(inputs, after, f"{self.label}:{side}")
            self.out.guards[node] |= {(predicate, side ^ negated)}
            outputs.append(self.passed(node, inputs[:1]))
        node = self.new(inputs, after)
        self.done(node, *outputs)

    def predicate(self, value: Value) -> tuple[int, bool]:
        """The node that stands for a predicate, and if it is negated; what runs tells it."""
        self.out.sinks.append((value.node, "a predicate"))
        return self.expander.origin(value.node)

    def pure_call(self, inputs: Sequence[Value], after: Sequence[int]) -> None:
        """Add a call of functions that touch nothing: one node for each result."""
        outputs = []
        for number, needed in enumerate(self.expander.facts.needs_of(self.each)):
            values = [inputs[i] for i in needed]
            node = self.new(values, after, f"{self.label}:{number}")
            outputs.append(self.passed(node, values))
        node = self.new(inputs, after)
        self.done(node, *outputs)

    def inside(self, function: str, what: str, entry: int, guards: Guards) -> _Context:
        """The context of a body."""
        context = self.context
        return _Context(
            self.expander.facts.function(function),
            f"{self.label}{what}/",
            entry,
            context.guards | guards,
            context.compiled,
            context.depth + 1,
        )

    def call(self, inputs: Sequence[Value], after: Sequence[int]) -> None:
        """Add a function where it is called."""
        function = self.expander.facts.function(self.each.bodies[0])
        compiled = (self.each.compiled or function.compiled) and self.context.compiled < 0
        entry = self.new(inputs if compiled else (), after, f"{self.label}/begin")
        context = self.inside(self.each.bodies[0], "", entry, NO_GUARDS)
        if compiled:
            context = replace(context, compiled=entry)
        results, exits = self.expander.body(context, inputs)
        if compiled:
            results = [
                replace(value, node=self.new([value], [exits], f"{self.label}:{number}"))
                for number, value in enumerate(results)
            ]
        self.done(exits, *results)

    def conditional(self, inputs: Sequence[Value], after: Sequence[int]) -> None:
        """Add both branches, under guards."""
        predicate, negated = self.predicate(inputs[0])
        entry = self.new(inputs[:1], after, f"{self.label}/begin")
        ways = []
        names = ("/then", "/else") if self.each.op.endswith("If") else ()
        for number, name in enumerate(self.each.bodies):
            # Side 1 of a Switch is the branch that is taken if the predicate is true.
            side = (1 - number) ^ negated if names else number
            guards = frozenset({(predicate, side)})
            start = self.expander.node(f"{self.label}/branch", (), [entry], guards)
            what = names[number] if names else f"/branch{number}"
            context = self.inside(name, what, start, guards)
            ways.append((start, *self.expander.body(context, inputs[1:])))
        outputs = []
        for number, values in enumerate(zip(*(results for _, results, _ in ways), strict=True)):
            label = f"{self.label}:{number}"
            nodes = [
                self.expander.node(label, [value.node], [start])
                for value, (start, _, _) in zip(values, ways, strict=True)
            ]
            node = self.expander.choice(label, nodes, [entry])
            outputs.append(self.passed(node, values))
        exits = self.expander.choice(self.label, [exits for _, _, exits in ways], [entry])
        self.done(exits, *outputs)

    def loop(self, inputs: Sequence[Value], after: Sequence[int]) -> None:
        """Add some iterations of a functional loop."""
        entry = self.new((), after, f"{self.label}/begin")
        values = list(inputs)
        condition, body = self.each.bodies[:2]
        ends: list[int] = []
        for number in range(BODIES + 1):
            context = self.inside(condition, f"/cond[{number}]", entry, NO_GUARDS)
            (result, *_), tested = self.expander.body(context, values)
            self.predicate(result)
            ends.append(tested)
            if number == BODIES:
                break
            start = self.new([result], [entry], f"{self.label}/body[{number}]")
            context = self.inside(body, f"/body[{number}]", start, NO_GUARDS)
            values, exits = self.expander.body(context, values)
            entry = self.new((), [exits], f"{self.label}/next[{number}]")
        outputs = []
        for number, value in enumerate(values):
            node = self.new([value, result], [entry], f"{self.label}:{number}")
            handles = dict.fromkeys((*inputs[number].handles, *value.handles))
            outputs.append(Value(node, tuple(handles), value.reference))
        self.done(self.new((), [*ends, entry]), *outputs)
