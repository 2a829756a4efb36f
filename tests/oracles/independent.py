"""An enumerator of allowed outcomes, written from semantics.md alone.

It shares the test format and nothing else with `litmusfuzz.oracles`: it unfolds nothing, has no
event graph and no notion of a dependency relation. A state is the set of steps that are done,
with what each saw; whether a value is there, whether a body has started, and which step may come
next are functions of the state, each written down from one sentence of the page. It walks all
states, and is slow.

It handles what `SUPPORTED` names, with computed indices of vectors only, in all models: ``rfc``,
``executor``, ``acd``, ``program``, ``sequential``, and ``one_cluster`` for what a compiler takes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product, takewhile
from math import prod
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from litmusfuzz.corpus.model import Body, BranchAttrs, CallAttrs, LoopAttrs, NestAttrs, all_nodes
from litmusfuzz.corpus.outcome import Outcome, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from litmusfuzz.corpus.model import LitmusTest, Node, Run

Ints = tuple[int, ...]
Path = tuple[tuple[str, str, int], ...]
"""The bodies around a node, outermost first: (node, field, iteration)."""
Step = tuple["Scope", str, str]
"""One event: (where, node, which of its events)."""

DENSE: Final = ("AssignAddVariableOp", "AssignSubVariableOp", "ResourceApplyGradientDescent")
SPARSE: Final = ("ResourceScatterAdd", "ResourceScatterUpdate")
PURE: Final = (
    *("Const", "Placeholder", "Identity", "AddV2", "Sub", "Mul", "Neg", "Maximum", "Minimum"),
    *("Less", "Equal", "Select", "NoOp", "VarHandleOp"),
)
QUEUE: Final = tuple(
    f"Queue{name}V2"
    for name in ("Enqueue", "Dequeue", "EnqueueMany", "DequeueMany", "Size", "Close")
)
ADD, TAKE, COUNT, STEP = (
    f"ResourceAccumulator{name}"
    for name in ("ApplyGradient", "TakeGradient", "NumAccumulated", "SetGlobalStep")
)
ONE_VALUE: Final = (
    *("ReadVariableOp", "ResourceGather", "VarIsInitializedOp", "QueueDequeueV2", "QueueSizeV2"),
    COUNT,
)
SUPPORTED: Final = frozenset(
    {
        *(*PURE, *ONE_VALUE, "AssignVariableOp", *DENSE, *SPARSE),
        *(*QUEUE, ADD, TAKE, COUNT, STEP, "CriticalSection", "If", "While", "Call"),
    }
)


class TooManyStates(Exception):
    """The test has more states than the caller wants to see."""


class NoProgram(Exception):
    """An edge into or out of a critical section asks for another order than the model's."""


class Failed(Exception):
    """An op fails: the order ends there."""


class Scope(NamedTuple):
    """One frame: a run, and the bodies around."""

    run: str
    path: Path = ()


class Strictness(NamedTuple):
    """How much stricter an executor is with one loop, conditional or call."""

    at_once: int | None = None  # iterations; None without a limit
    gathers: bool = False  # starts only when everything from outside is there
    late: bool = False  # results only when every instance is done


class Sum(NamedTuple):
    """What an accumulator holds."""

    sum: Ints
    count: int = 0
    step: int = 0
    line: tuple[tuple[Scope, str], ...] = ()
    """The takes that have joined, and not taken yet."""


@dataclass(frozen=True)
class State:
    """What is done, and what the resources hold."""

    done: Mapping[Step, Any]
    contents: Mapping[str, Any]

    @property
    def key(self) -> tuple[frozenset[Any], frozenset[Any]]:
        """Equal for states with one future."""
        return frozenset(self.done.items()), frozenset(self.contents.items())


def allowed_outcomes(test: LitmusTest, model: str, states: int = 100_000) -> frozenset[Outcome]:
    """All allowed outcomes of a test in the model of that name.

    Raises
    ------
    TooManyStates
        If there are more than `states` in all.
    NoProgram
        If the model has program order, and the test another.
    """
    if model == "one_cluster":
        return of_clusters(test)
    if model in ("program", "sequential"):
        check_edges(World(test, model, {}))
    outcomes: set[Outcome] = set()
    left = states
    for strictness in strictnesses(test, model):
        world = World(test, model, strictness)
        first = State({}, initial(test))
        seen, stack = {first.key}, [first]
        while stack:
            view = View(world, stack.pop())
            steps = list(view.enabled())
            if not steps:
                outcomes.add(view.outcome())
            for step in steps:
                try:
                    after = view.after(step)
                except Failed:
                    outcomes.add(Outcome((), Status.FAILED))
                    continue
                if after.key not in seen:
                    left -= 1
                    if left < 0:
                        raise TooManyStates
                    seen.add(after.key)
                    stack.append(after)
    return frozenset(outcomes)


def initial(test: LitmusTest) -> dict[str, Any]:
    """Contents of all resources at first: a value, elements and open, or nobody holds it."""
    contents: dict[str, Any] = {
        v.name: None if v.init is None else test.initial(v) for v in test.variables
    }
    contents |= {q.name: (test.initial_elements(q), True) for q in test.queues}
    contents |= {m.name: None for m in test.mutexes}
    contents |= {a.name: Sum((0,) * test.size_of(a.shape)) for a in test.accumulators}
    return contents


def strictnesses(
    test: LitmusTest, model: str, most_choices: int = 128
) -> Iterator[dict[str, Strictness]]:
    """All choices of strictness, one for each loop, conditional and call of the test.

    Section 3: "fewer iterations at once (down to one)", and the two others; calls "as with a
    conditional". In `executor` a loop on one device has `parallel_iterations` at most.
    """
    happening: list[Node] = []
    for run in test.runs:
        nodes = {
            node.name: node
            for graph in test.graphs
            if graph.name == run.graph
            for node in graph.nodes
        }
        needed = needed_by(nodes, (*run.fetches, *run.targets))
        happening += all_nodes(node for node in nodes.values() if node.name in needed)
    nests = {node.name: node for node in happening if isinstance(node.attrs, NestAttrs)}
    if model == "sequential":  # "each wholly done before the next", inside too
        yield dict.fromkeys(nests, Strictness(1, gathers=True, late=True))
        return
    choices = []
    for node in nests.values():
        windows: list[int | None] = [None]
        if isinstance(node.attrs, LoopAttrs):
            trips = test.bounds[node.name] + 1
            most = node.attrs.parallel_iterations
            if model != "rfc" and not test.spans_devices(node):
                windows = [most]
            windows += [k for k in range(1, trips) if windows[0] is None or k < most]
        gathers = (False, True) if captures(node) or isinstance(node.attrs, LoopAttrs) else (False,)
        late = (False, True) if node.results else (False,)
        choices.append([Strictness(*c) for c in product(windows, gathers, late)])
    if not any(node.op in (*QUEUE, TAKE, "CriticalSection") for node in happening):
        # More order cannot block where nothing blocks.
        choices = [each[:1] for each in choices]
    if prod(map(len, choices)) > most_choices:
        raise TooManyStates
    for picked in product(*choices):
        yield dict(zip(nests, picked, strict=True))


@dataclass
class World:
    """A test under one model and one choice of strictness."""

    test: LitmusTest
    model: str
    strictness: Mapping[str, Strictness]
    runs: dict[str, Run] = field(init=False)
    levels: dict[Any, dict[str, Node]] = field(init=False, default_factory=dict)
    bodies: dict[str, dict[str, Body]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.runs = {run.name: run for run in self.test.runs}
        graphs = {graph.name: graph for graph in self.test.graphs}
        for run in self.runs.values():
            nodes = {node.name: node for node in graphs[run.graph].nodes}
            needed = needed_by(nodes, (*run.fetches, *run.targets))
            self.levels[run.name] = {k: v for k, v in nodes.items() if k in needed}
        for node in self.test.nodes:
            attrs = node.attrs
            if isinstance(attrs, BranchAttrs):
                self.bodies[node.name] = {"then": attrs.then, "else": attrs.orelse}
            elif isinstance(attrs, LoopAttrs):
                self.bodies[node.name] = {"condition": attrs.condition, "body": attrs.body}
            elif isinstance(attrs, CallAttrs):
                self.bodies[node.name] = {"body": attrs.body}
        for name, fields in self.bodies.items():
            for where, body in fields.items():
                self.levels[name, where] = {node.name: node for node in body.nodes}

    def level(self, scope: Scope) -> dict[str, Node]:
        """The nodes of a frame."""
        return self.levels[scope.path[-1][:2] if scope.path else scope.run]

    def node(self, scope: Scope) -> Node:
        """The node whose body a frame is of."""
        return self.level(outside(scope))[scope.path[-1][0]]

    def sections(self, scope: Scope, name: str) -> list[Node]:
        """The sections of a frame that hold a node, or lie around a section."""
        level = self.level(scope)
        inner = set(level[name].members)
        sections = [node for node in level.values() if node.op == "CriticalSection"]
        if inner:
            return [each for each in sections if inner < set(each.members)]
        return [each for each in sections if name in each.members]


def needed_by(nodes: Mapping[str, Node], wanted: Iterable[str]) -> set[str]:
    """The nodes of a graph that a run needs for what it fetches or targets; all for nothing.

    Section 1, "Run". A section that is needed itself needs its members; one around a needed
    member is there too, with the edges into it.
    """
    needed = {head(name) for name in wanted} or set(nodes)
    while True:
        around = {name for name, node in nodes.items() if needed & set(node.members)}
        grown = set(needed)
        for name in needed | around:
            grown |= {head(each) for each in nodes[name].references}
        for name in needed:
            grown |= set(nodes[name].members)
        if grown == needed:
            return needed | around
        needed = grown


def head(reference: str) -> str:
    """The node of a reference such as ``loop.last``."""
    return reference.partition(".")[0]


def outside(scope: Scope) -> Scope:
    """The frame around a frame."""
    return Scope(scope.run, scope.path[:-1])


def inside(scope: Scope, name: str, body: str, iteration: int = 0) -> Scope:
    """A frame of a body in a frame."""
    return Scope(scope.run, (*scope.path, (name, body, iteration)))


class View:
    """All that follows from a state. A value that is not there yet is None."""

    def __init__(self, world: World, state: State) -> None:
        self.world, self.state = world, state
        self.known: dict[Any, Any] = {}

    def _once(self, *key: Any, compute: Callable[[], Any]) -> Any:
        if key not in self.known:
            self.known[key] = compute()
        return self.known[key]

    # --- values ---

    def value(self, scope: Scope, reference: str) -> Ints | None:
        """The value of a node, of one of its results, or of what comes into the body."""
        return self._once("value", scope, reference, compute=lambda: self._value(scope, reference))

    def _value(self, scope: Scope, reference: str) -> Ints | None:
        name, _, result = reference.partition(".")
        node = self.world.level(scope).get(name)
        if node is None:
            return self.argument(scope, name)
        if result:
            return self.result(scope, node, node.results.index(result))
        if node.op not in PURE:
            return self.seen(scope, node)
        if not self.ready(scope, node):
            return None
        return pure(self.world, scope, node, [self.value(scope, each) for each in node.inputs])

    def argument(self, scope: Scope, name: str) -> Ints | None:
        """A captured or carried value, by its name inside."""
        node, around = self.world.node(scope), outside(scope)
        if isinstance(node.attrs, LoopAttrs) and name in node.attrs.carried:
            iteration = scope.path[-1][2]
            return self.carried(around, node, node.attrs.carried.index(name), iteration)
        return self.value(around, dict(captures(node))[name])

    def carried(self, scope: Scope, node: Node, place: int, iteration: int) -> Ints | None:
        """A carried value as an iteration finds it."""
        if not iteration:
            return self.value(scope, node.inputs[place])
        before = [inside(scope, node.name, body, iteration - 1) for body in ("condition", "body")]
        if self.world.model == "acd" and not all(map(self.effects_of, before)):
            # "everything stateful of iteration i, its condition's instances included, precedes"
            return None
        return self.returned(before[1], place)

    def returned(self, body: Scope, place: int) -> Ints | None:
        """A value that a body returns."""
        if not self.started(body):
            return None
        name, where, _ = body.path[-1]
        return self.value(body, self.world.bodies[name][where].results[place])

    def result(self, scope: Scope, node: Node, place: int) -> Ints | None:
        """A result of a loop, conditional or call, outside."""
        if isinstance(node.attrs, LoopAttrs):
            last = self.last(scope, node)
            # "Each carried value leaves by itself, when the condition is false and it has arrived."
            value = None if last is None else self.carried(scope, node, place, last)
        else:
            body = self.body(scope, node)
            value = None if body is None else self.returned(body, place)
        if self.world.strictness[node.name].late and not self.instances_done(scope, node):
            return None
        if self.world.model == "acd" and not self.effects_done(scope, node):
            return None  # "results and control edges leave after all effects"
        return value

    def seen(self, scope: Scope, node: Node) -> Ints | None:
        """What a read, or an op on a queue, returns."""
        steps = self.steps(scope, node)
        if node.op in ONE_VALUE:
            found: Ints | None = self.state.done.get((scope, node.name, steps[0]))
            return found
        if node.op == "QueueDequeueManyV2" and self.done(scope, node):
            return tuple(v for step in steps for v in self.state.done[scope, node.name, step])
        if node.op == TAKE:
            return self.state.done.get((scope, node.name, "take"))
        return None

    # --- what is done ---

    def body(self, scope: Scope, node: Node) -> Scope | None:
        """The branch taken, or the body of a call; None if it is not known."""
        if isinstance(node.attrs, CallAttrs):
            return inside(scope, node.name, "body")
        predicate = self.value(scope, node.inputs[0])
        return predicate and inside(scope, node.name, "then" if predicate[0] else "else")

    def last(self, scope: Scope, node: Node) -> int | None:
        """The iteration of which the condition is false; None if it is not known."""
        for iteration in range(self.world.test.bounds[node.name] + 1):
            again = self.returned(inside(scope, node.name, "condition", iteration), 0)
            if again is None:
                return None
            if not again[0]:
                return iteration
        raise AssertionError(node.name)

    def frames(self, scope: Scope, node: Node) -> list[Scope] | None:
        """All frames of a node's bodies; None if they are not known."""
        if not isinstance(node.attrs, LoopAttrs):
            body = self.body(scope, node)
            return body and [body]
        last = self.last(scope, node)
        if last is None:
            return None
        bodies = [inside(scope, node.name, "body", i) for i in range(last)]
        return bodies + [inside(scope, node.name, "condition", i) for i in range(last + 1)]

    def instances_done(self, scope: Scope, node: Node) -> bool:
        """True if all instances inside a node are done."""
        frames = self.frames(scope, node)
        return frames is not None and all(self.all_done(frame) for frame in frames)

    def effects_of(self, scope: Scope) -> bool:
        """True if every event of a frame has happened, with all inside."""
        level = self.world.level(scope).values()
        return self.started(scope) and all(self.effects_done(scope, node) for node in level)

    def effects_done(self, scope: Scope, node: Node) -> bool:
        """True if every event of a node has happened, with all inside; pure ops have none."""
        if all(each.op in PURE or each.name in self.world.bodies for each in all_nodes([node])):
            return True
        if node.name not in self.world.bodies:
            return self.done(scope, node)
        frames = self.frames(scope, node)
        return frames is not None and all(map(self.effects_of, frames))

    def all_done(self, scope: Scope) -> bool:
        """True if every instance of a frame is done, with all inside."""
        return self._once("all", scope, compute=lambda: self._all_done(scope))

    def _all_done(self, scope: Scope) -> bool:
        level = self.world.level(scope).values()
        return self.started(scope) and all(self.wholly(scope, node) for node in level)

    def wholly(self, scope: Scope, node: Node) -> bool:
        """True if a node is done, with all inside."""
        if node.name in self.world.bodies and not self.instances_done(scope, node):
            return False
        return self.done(scope, node)

    def done(self, scope: Scope, node: Node) -> bool:
        """True if a control edge out of a node holds nobody up any more."""
        if node.op == "NoOp":
            return self.ready(scope, node)
        if node.op in PURE:
            return self.value(scope, node.name) is not None
        if node.name not in self.world.bodies:
            return all(
                (scope, node.name, step) in self.state.done for step in self.steps(scope, node)
            )
        if isinstance(node.attrs, CallAttrs) and not self.instances_done(scope, node):
            return False  # "control edges out of it follow all instances"
        results = range(len(node.results))
        return all(self.result(scope, node, place) is not None for place in results)

    # --- what may come ---

    def started(self, scope: Scope) -> bool:
        """True if instances of a frame may have events."""
        return self._once("started", scope, compute=lambda: self._started(scope))

    def _started(self, scope: Scope) -> bool:
        if not scope.path:
            return all(self.all_done(Scope(run)) for run in self.world.runs[scope.run].after)
        node, around = self.world.node(scope), outside(scope)
        _, where, iteration = scope.path[-1]
        if not self.ready(around, node):
            return False
        strictness = self.world.strictness[node.name]
        taken = [self.value(around, outer) for _, outer in captures(node)]
        if not isinstance(node.attrs, LoopAttrs):
            chosen = self.body(around, node) == scope
            return chosen and not (strictness.gathers and None in taken)
        before = inside(around, node.name, "condition", iteration - 1)
        if where == "body":
            condition = inside(around, node.name, "condition", iteration)
            value = self.returned(condition, 0)
            wholly = not strictness.gathers or self.all_done(condition)
            return value is not None and bool(value[0]) and wholly
        if iteration and not (self.returned(before, 0) or (0,))[0]:
            return False
        carried = [self.carried(around, node, k, iteration) for k in range(len(node.results))]
        if carried[0] is None or (strictness.gathers and None in carried + taken):
            return False
        window = strictness.at_once
        if window is None or iteration < window:
            return True
        # "nothing of iteration i+k (its condition and exits included) comes before anything of i"
        earlier = (inside(around, node.name, b, iteration - window) for b in ("condition", "body"))
        return all(self.all_done(frame) for frame in earlier)

    def ready(self, scope: Scope, node: Node) -> bool:
        """True if all is done that comes before every event of a node in its frame."""
        return self._once("ready", scope, node.name, compute=lambda: self._ready(scope, node))

    def _ready(self, scope: Scope, node: Node) -> bool:
        level = self.world.level(scope)
        if not self.started(scope):
            return False
        sequential = self.world.model == "sequential"
        if (sequential or (self.world.model == "program" and not scope.path)) and not all(
            self.stepped(scope, *step) for step in before_it(level, node)
        ):
            return False
        if self.world.model == "acd" and not all(
            self.done(scope, each)
            for each in takewhile(lambda each: each is not node, level.values())
            if in_conflict(each, node, level)
        ):
            return False
        for each in node.after:
            source = level.get(each)
            there = (
                self.value(scope, each) is not None if source is None else self.done(scope, source)
            )
            if not there:
                return False
        inputs = () if node.op == "While" else (*node.inputs, *handle(node))
        if any(self.value(scope, each) is None for each in inputs):
            return False
        return all(
            (scope, section.name, "acquire") in self.state.done
            for section in self.world.sections(scope, node.name)
        )

    def stepped(self, scope: Scope, name: str, what: str) -> bool:
        """True if a step of a thread is done (`in_turn`)."""
        if what:
            return (scope, name, what) in self.state.done
        return self.wholly(scope, self.world.level(scope)[name])

    def steps(self, scope: Scope, node: Node) -> tuple[str, ...]:
        """The events of a node that touches a resource, in order."""
        if node.op == "CriticalSection":
            return ("acquire", "release")
        if node.op == TAKE:
            # "first joins a line, in any order"; "at the head of the line" it takes.
            return ("join", "take")
        if node.op == "AssignVariableOp":
            return ("W",)
        if node.op in SPARSE or (node.op in DENSE and self.world.model == "rfc"):
            return ("R", "W")
        if node.op in DENSE:
            return ("RW",)
        if node.op in ("QueueEnqueueManyV2", "QueueDequeueManyV2"):
            return tuple(str(i) for i in range(self.world.test.elements(node)))
        return ("R",)

    def scopes(self) -> Iterator[Scope]:
        """All frames that have started."""
        stack = [Scope(run) for run in self.world.runs]
        for scope in stack:
            if not self.started(scope):
                continue
            yield scope
            for name in self.world.level(scope):
                for body in self.world.bodies.get(name, ()):
                    loop = self.world.test.bounds.get(name)
                    stack += [inside(scope, name, body, i) for i in range(1 + (loop or 0))]

    def enabled(self) -> Iterator[Step]:
        """All events that may come next."""
        for scope in self.scopes():
            for name, node in self.world.level(scope).items():
                if node.op in PURE or name in self.world.bodies or not self.ready(scope, node):
                    continue
                steps = [
                    s for s in self.steps(scope, node) if (scope, name, s) not in self.state.done
                ]
                if steps and self.possible(scope, node, steps[0]):
                    yield (scope, name, steps[0])

    def possible(self, scope: Scope, node: Node, step: str) -> bool:
        """True if the resource lets an event happen."""
        level = self.world.level(scope)
        if step == "acquire":
            return self.state.contents[node.resources[0]] is None
        if step == "release":
            return all(
                self.wholly(scope, level[each]) for each in node.members if each in level
            ) and all(
                self.done(scope, inner)
                for inner in level.values()
                if inner.members and set(inner.members) < set(node.members)
            )
        if node.op.startswith("Queue"):
            elements, is_open = self.state.contents[node.resources[0]]
            if "Enqueue" in node.op:
                full = len(elements) >= capacity(self.world.test, node.resources[0])
                return not (full and is_open)
            if "Dequeue" in node.op:
                return bool(elements) or not is_open
        if step == "take":
            held = self.state.contents[node.resources[0]]
            wanted = self.value(scope, node.inputs[0])
            assert wanted is not None
            return held.line[0] == (scope, node.name) and bool(held.count >= wanted[0])
        return True

    def resource(self, scope: Scope, node: Node) -> Any:
        """The resource that an instance touches: the one that its handle stands for."""
        chosen = [self.value(scope, each) for each in handle(node)]
        return chosen[0] if chosen else node.resources[0]

    # --- steps ---

    def after(self, step: Step) -> State:
        """The state after one more event.

        Raises
        ------
        Failed
            If the op fails.
        """
        scope, name, what = step
        node = self.world.level(scope)[name]
        operands = [self.value(scope, each) for each in node.inputs]
        assert None not in operands
        resource = self.resource(scope, node)
        held = self.state.contents[resource]
        seen: Any = ()
        if what == "acquire":
            held = (scope, name)
        elif what == "release":
            held = None
        elif node.op.startswith("Queue"):
            held, seen = self.queue(node, held, what, operands)
        elif isinstance(held, Sum):
            held, seen = self.accumulator((scope, name), node, held, what, operands)
        elif what == "R":
            seen = read(node, held, operands)
        else:
            saw = held if what == "RW" else self.state.done.get((scope, name, "R"))
            held = written(node, saw, operands)
        return State({**self.state.done, step: seen}, {**self.state.contents, resource: held})

    def queue(self, node: Node, held: Any, what: str, operands: list[Any]) -> tuple[Any, Ints]:
        """The queue after an event of an op on it, and what the op sees."""
        elements, is_open = held
        if "Enqueue" in node.op:
            if not is_open:
                raise Failed
            element = (operands[0][int(what)],) if "Many" in node.op else operands[0]
            return ((*elements, element), is_open), ()
        if "Dequeue" in node.op:
            if not elements:
                raise Failed
            return (elements[1:], is_open), elements[0]
        if "Size" in node.op:
            return held, (len(elements),)
        return (elements, False), ()

    def accumulator(
        self, who: tuple[Scope, str], node: Node, held: Sum, what: str, operands: list[Any]
    ) -> tuple[Sum, Ints]:
        """The accumulator after an event of an op on it, and what the op sees."""
        if node.op == ADD:
            (local,), gradient = operands
            if local < held.step:
                return held, ()
            total = tuple(a + b for a, b in zip(held.sum, gradient, strict=True))
            return held._replace(sum=total, count=held.count + 1), ()
        if node.op == COUNT:
            return held, (held.count,)
        if node.op == STEP:
            return held._replace(step=operands[0][0]), ()
        if what == "join":
            if operands[0][0] <= 0:
                raise Failed
            return held._replace(line=(*held.line, who)), ()
        empty = (0,) * len(held.sum)
        return Sum(empty, 0, held.step + 1, held.line[1:]), held.sum

    # --- the end ---

    def outcome(self) -> Outcome:
        """The outcome of a state in which nothing may come any more."""
        test = self.world.test
        ended = {run for run in self.world.runs if self.all_done(Scope(run))}
        values: dict[str, Any] = {}
        for key in test.observe:
            run, name = (
                (test.runs[0].name, key) if len(test.runs) == 1 else tuple(key.split(".", 1))
            )
            if run in ended:
                values[key] = self.value(Scope(run), name)
        values |= finals(test, self.state.contents)
        status = Status.COMPLETED if len(ended) == len(test.runs) else Status.BLOCKED
        return Outcome.of(test, values, status)


def finals(test: LitmusTest, contents: Mapping[str, Any]) -> dict[str, Any]:
    """What an outcome shows of the resources."""
    values: dict[str, Any] = {v.name: contents[v.name] or () for v in test.variables}
    for each in test.accumulators:
        held = contents[each.name]
        values |= {f"{each.name}.sum": held.sum, f"{each.name}.count": (held.count,)}
    return values | {queue.name: contents[queue.name][0] for queue in test.queues}


# --- program order ---


def in_turn(level: Mapping[str, Node]) -> list[tuple[str, str]]:
    """What a thread does in a graph or body: nodes, and a section's acquire and release.

    "A section's acquire stands just before its first member in program order, its release just
    after its last; other nodes between them stay where they are."
    """
    listed = [(name, "") for name, node in level.items() if node.op != "CriticalSection"]
    # Inner sections first, so that the outer one's acquire and release go around theirs.
    sections = [node for node in level.values() if node.op == "CriticalSection"]
    for section in sorted(sections, key=lambda each: len(each.members)):
        inner = {each.name for each in sections if set(each.members) < set(section.members)}
        places = [i for i, (name, _) in enumerate(listed) if name in {*section.members, *inner}]
        listed.insert(places[-1] + 1, (section.name, "release"))
        listed.insert(places[0], (section.name, "acquire"))
    return listed


def before_it(level: Mapping[str, Node], node: Node) -> list[tuple[str, str]]:
    """The steps of a thread before a node, or before a section's acquire."""
    first = (node.name, "acquire" if node.op == "CriticalSection" else "")
    return list(takewhile(lambda step: step != first, in_turn(level)))


def check_edges(world: World) -> None:
    """Refuse edges that lead from a later step of a thread to an earlier one."""
    graphs = [run for run in world.runs if world.levels[run]]
    # A loop without iterations has a body that no thread enters.
    never = {name for name, bound in world.test.bounds.items() if not bound}
    reached = [name for name in world.levels if isinstance(name, str) and name in graphs]
    keys: list[Any] = list(reached)
    for key in keys:
        for name in world.levels[key]:
            for body in world.bodies.get(name, ()):
                if world.model == "sequential" and not (body == "body" and name in never):
                    keys.append((name, body))
    for key in keys:
        level = world.levels[key]
        steps = in_turn(level)
        for name, node in level.items():
            for source in map(head, node.references):
                if source not in level:
                    continue
                left = "release" if level[source].op == "CriticalSection" else ""
                first = (name, "acquire" if node.op == "CriticalSection" else "")
                if steps.index((source, left)) > steps.index(first):
                    raise NoProgram(f"{source} before {name}")


def in_conflict(one: Node, other: Node, level: Mapping[str, Node]) -> bool:
    """True if both use one handle, and not both only read: "reads among themselves free"."""
    mine, others = uses(one, level), uses(other, level)
    return any(mine[key] or others[key] for key in mine.keys() & others.keys())


def uses(node: Node, level: Mapping[str, Node]) -> dict[str, bool]:
    """By handle tensor, whether a node changes something through it.

    "Ops of one function body through one handle tensor (Identity looked through)". An op that
    names its resource itself shares a handle with all that do: its name begins with a star.
    """
    found: dict[str, bool] = {}

    def use(name: str, *, changes: bool) -> None:
        while name in level and level[name].op == "Identity":
            (name,) = level[name].inputs
        found[name] = found.get(name, False) or changes

    if node.op not in (*PURE, "CriticalSection"):
        reads = node.op in ("ReadVariableOp", "ResourceGather", "VarIsInitializedOp")
        named = (node.handle,) if node.handle else tuple(f"*{name}" for name in node.resources)
        for name in named:
            use(name, changes=not reads)
    attrs = node.attrs
    if isinstance(attrs, (BranchAttrs, LoopAttrs, CallAttrs)):
        outer = dict(captures(node))
        inside_of = {BranchAttrs: ("then", "orelse"), LoopAttrs: ("condition", "body")}
        if isinstance(attrs, LoopAttrs):
            outer |= dict(zip(attrs.carried, node.inputs, strict=True))
        for name in inside_of.get(type(attrs), ("body",)):
            body = {each.name: each for each in getattr(attrs, name).nodes}
            for each in body.values():
                for key, changes in uses(each, body).items():
                    if key.startswith("*") or key in outer:
                        use(outer.get(key, key), changes=changes)
    return found


# --- one cluster ---


def of_clusters(test: LitmusTest) -> frozenset[Outcome]:
    """All outcomes where each run is one cluster: one snapshot, one write-back.

    "SSA order the program's; runs among themselves as in rfc."
    """
    world = World(test, "one_cluster", {})
    outcomes: set[Outcome] = set()
    first = (frozenset[str](), (), tuple(initial(test).items()))
    stack: list[Any] = [first]
    seen = {first}
    while stack:
        written_back, snapshots, contents = stack.pop()
        runs = dict(snapshots)
        nexts: list[Any] = []
        for name, run in world.runs.items():
            if name in runs or not written_back.issuperset(run.after):
                continue
            nexts.append((written_back, (*snapshots, (name, contents)), contents))
        for name, snapshot in snapshots:
            if name in written_back:
                continue
            store = dict(snapshot)
            changed: set[str] = set()
            thread(world, Scope(name), store, changed, {})
            held = tuple((key, store[key] if key in changed else old) for key, old in contents)
            nexts.append((written_back | {name}, snapshots, held))
        if not nexts:
            values = finals(test, dict(contents))
            for name, snapshot in snapshots:
                there = thread(world, Scope(name), dict(snapshot), set(), {})
                values |= {
                    key: there[key if len(runs) == 1 else key.partition(".")[2]]
                    for key in test.observe
                    if len(runs) == 1 or head(key) == name
                }
            outcomes.add(Outcome.of(test, values))
        for each in nexts:
            if each not in seen:
                seen.add(each)
                stack.append(each)
    return frozenset(outcomes)


def thread(
    world: World, scope: Scope, store: dict[str, Any], changed: set[str], values: dict[str, Any]
) -> dict[str, Any]:
    """Execute a graph or body in the order of the file, on a copy of the variables."""
    values = dict(values)
    for name, node in world.level(scope).items():
        given = [values[each] for each in node.inputs]
        attrs = node.attrs
        if node.op in PURE:
            values[name] = pure(world, scope, node, given)
        elif node.op in ONE_VALUE:
            values[name] = read(node, store[node.resources[0]], given)
        elif not isinstance(attrs, NestAttrs):
            (variable,) = node.resources
            store[variable] = written(node, store[variable], given)
            changed.add(variable)
        else:
            taken = {inner: values[outer] for inner, outer in captures(node)}
            bodies = world.bodies[name]
            if isinstance(attrs, LoopAttrs):
                results = given
                while True:
                    scoped = taken | dict(zip(attrs.carried, results, strict=True))
                    condition = inside(scope, name, "condition")
                    there = thread(world, condition, store, changed, scoped)
                    if not there[bodies["condition"].results[0]][0]:
                        break
                    there = thread(world, inside(scope, name, "body"), store, changed, scoped)
                    results = [there[each] for each in bodies["body"].results]
            else:
                which = "body"
                if isinstance(attrs, BranchAttrs):
                    which = "then" if given[0][0] else "else"
                there = thread(world, inside(scope, name, which), store, changed, taken)
                results = [there[each] for each in bodies[which].results]
            values |= {f"{name}.{r}": v for r, v in zip(node.results, results, strict=True)}
    return values


# --- ops ---


def handle(node: Node) -> tuple[str, ...]:
    """The value that says which resource an op touches, if it has one."""
    return (node.handle,) if node.handle else ()


def captures(node: Node) -> tuple[tuple[str, str], ...]:
    """(name inside, name outside) of what bodies take from around them."""
    found: tuple[tuple[str, str], ...] = node.attrs.captures  # type: ignore[union-attr]
    return found


def capacity(test: LitmusTest, name: str) -> int:
    """The most elements that a queue holds."""
    return next(queue.capacity for queue in test.queues if queue.name == name)


def places(node: Node, operands: list[Any], held: Ints) -> Ints:
    """The rows that a gather or scatter names, in an attribute or as its first operand.

    "out-of-range indices" fail: section 3, "Not specified".
    """
    if node.attrs is not None:
        return node.attrs.indices  # type: ignore[union-attr, no-any-return]
    indices: Ints = operands[0]
    if not all(0 <= i < len(held) for i in indices):
        raise Failed
    return indices


def read(node: Node, held: Ints | None, operands: list[Any]) -> Ints:
    """What a read of a variable sees."""
    if node.op == "VarIsInitializedOp":
        return (int(held is not None),)
    if held is None:
        raise Failed
    if node.op == "ResourceGather":
        return tuple(held[i] for i in places(node, operands, held))
    return held


def written(node: Node, saw: Ints | None, operands: list[Any]) -> Ints:
    """The contents that a write or an update leaves, given what its R saw."""
    if node.op == "AssignVariableOp":
        value: Ints = operands[0]
        return value
    if saw is None:
        raise Failed
    if node.op in SPARSE:
        rows = list(saw)
        indices, updates = places(node, operands, saw), operands[-1]
        change = updates if len(updates) == len(indices) else updates * len(indices)
        for i, v in zip(indices, change, strict=True):
            rows[i] = v if node.op == "ResourceScatterUpdate" else rows[i] + v
        return tuple(rows)
    change = operands[0]
    if node.op == "ResourceApplyGradientDescent":
        change = tuple(operands[0][0] * v for v in operands[1])
    sign = 1 if node.op == "AssignAddVariableOp" else -1
    return tuple(v + sign * c for v, c in zip(saw, change, strict=True))


def pure(world: World, scope: Scope, node: Node, operands: list[Any]) -> Ints:
    """The value of a pure op."""
    if node.op == "Const":
        return world.test.constant(node)
    if node.op == "Placeholder":
        fed = dict(world.runs[scope.run].feeds)[node.name]
        return fed if isinstance(fed, tuple) else (fed,) * world.test.size_of(node.attrs.shape)  # type: ignore
    if node.op == "VarHandleOp":
        return node.attrs.variable  # type: ignore
    if node.op == "Identity":
        return operands[0]
    if node.op == "NoOp":
        return ()
    rows = max(map(len, operands))
    spread = [each if len(each) == rows else each * rows for each in operands]
    meanings: dict[str, Callable[..., int]] = {
        "AddV2": lambda a, b: a + b,
        "Sub": lambda a, b: a - b,
        "Mul": lambda a, b: a * b,
        "Neg": lambda a: -a,
        "Maximum": max,
        "Minimum": min,
        "Less": lambda a, b: int(a < b),
        "Equal": lambda a, b: int(a == b),
        "Select": lambda c, a, b: a if c else b,
    }
    return tuple(map(meanings[node.op], *spread))
