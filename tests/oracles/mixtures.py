"""Random small tests that mix features as no family of `litmusfuzz.fuzz.generators` does.

Anything may stand in anything: calls in loops in calls, sections around them, runs that fetch
any node, captures that nothing uses, results that pass a capture through.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from litmusfuzz.corpus.model import (
    Accumulator,
    Body,
    BranchAttrs,
    CallAttrs,
    Graph,
    LitmusTest,
    LoopAttrs,
    MalformedTest,
    Mutex,
    Node,
    Queue,
    Run,
    Variable,
    handles_of,
    map_nodes,
)
from litmusfuzz.corpus.ops import ConstAttrs, HandleAttrs, PlaceholderAttrs, SectionAttrs
from litmusfuzz.corpus.struct import replace

if TYPE_CHECKING:
    import random

INT, BOOL, HANDLE = "int32", "bool", "handle"
STEP, GRADIENT = "int64", "float32"
"""Dtypes of a global step, and of what an accumulator adds."""


def mixture(
    rng: random.Random, name: str = "mixture", accumulators: tuple[str, ...] = ()
) -> LitmusTest:
    """A random test, of few events; with accumulators, most of its ops are on these."""
    while True:
        try:
            test = Mixer(rng, accumulators).test(name)
        except (MalformedTest, TooLarge):
            continue
        if not accumulators or any(node.definition.accumulator for node in test.nodes):
            return test


class TooLarge(Exception):
    """The test would have too many events."""


@dataclass
class Level:
    """Nodes of a graph or body as they grow, and the values there."""

    times: int
    depth: int
    nodes: list[Node] = field(default_factory=list)
    values: list[tuple[str, str]] = field(default_factory=list)
    """(reference, dtype)."""
    members: set[str] = field(default_factory=set)
    """Nodes that a section holds."""

    def of(self, dtype: str) -> list[str]:
        """References to values of a dtype."""
        return [name for name, kind in self.values if kind == dtype]


class Mixer:
    """Makes one test, or fails."""

    def __init__(self, rng: random.Random, accumulators: tuple[str, ...] = ()) -> None:
        self.rng = rng
        self.accumulators = accumulators
        self.count = 0
        self.cost = rng.choice((6, 7, 8, 9, 10))
        self.variables = [f"V{i}" for i in range(rng.choice((1, 1, 2, 2)))]
        self.mutexes = [f"M{i}" for i in range(rng.choice((0, 0, 0, 1, 1, 2)))]
        self.queues = [f"Q{i}" for i in range(rng.choice((0, 0, 0, 1, 1, 2)))]
        self.nests = rng.choice((0.15, 0.3, 0.45))
        self.table = rng.random() < 0.3
        """True if there is a vector, of which ops touch the row that a value names."""
        self.missing = rng.random() < 0.2
        """True if a variable may have no initial value."""
        self.handles = rng.random() < 0.4
        self.edges = rng.choice((0.1, 0.3, 0.6))

    def rows(self) -> list[Variable]:
        """The vector whose rows are named, if there is one."""
        return [Variable("T", INT, (8,), (1, 0, 3, 4, 2, 9, 0, 5))] if self.table else []

    def sums(self) -> tuple[Accumulator, ...]:
        """The accumulators."""
        return tuple(Accumulator(name, GRADIENT, ()) for name in self.accumulators)

    def fresh(self, prefix: str) -> str:
        """A new name."""
        self.count += 1
        return f"{prefix}{self.count}"

    def spend(self, level: Level, amount: int = 1) -> None:
        """Count events against what the test may cost."""
        self.cost -= level.times * amount
        if self.cost < 0:
            raise TooLarge

    def affordable(self, level: Level) -> bool:
        """True if one more event is within it."""
        return self.cost >= level.times

    # --- whole tests ---

    def test(self, name: str) -> LitmusTest:
        """The test."""
        rng = self.rng
        graphs, levels = [], []
        for i in range(rng.choice((1, 1, 1, 2, 2, 3))):
            level = Level(1, 0)
            self.grow(level, rng.randint(2, 6))
            graphs.append(Graph(f"g{i}", tuple(level.nodes)))
            levels.append(level)
        graphs = self.listed(graphs)
        client = self.client(graphs, levels)
        inits = (0, 0, 5, None) if self.missing else (0, 0, 5)
        variables = [Variable(v, INT, (), rng.choice(inits)) for v in self.variables]
        variables += self.rows()
        queues = []
        for q in self.queues:
            size = rng.choice((1, 2, 2))
            queues.append(
                Queue(q, INT, (), size, tuple([rng.choice((0, 7))] * rng.choice((0, 1, 1))))
            )
        test = LitmusTest(
            name,
            variables=tuple(variables),
            graphs=tuple(graphs),
            mutexes=tuple(map(Mutex, self.mutexes)),
            queues=tuple(queues),
            accumulators=self.sums(),
            client=client,
        )
        keys = []
        for key in test.nodes_by_key():
            try:
                replace(test, observe=(key,))
            except MalformedTest:
                continue
            keys.append(key)
        return replace(test, observe=tuple(rng.sample(keys, min(len(keys), rng.randint(1, 6)))))

    def listed(self, graphs: list[Graph]) -> list[Graph]:
        """The graphs; a node with a handle lists the variables that it may stand for."""
        handles = handles_of(graphs)

        def change(node: Node) -> Node:
            if not node.handle:
                return node
            chosen = tuple(v for v in self.variables if v in handles[node.handle])
            return replace(node, resources=chosen)

        return list(map_nodes(graphs, change))

    def client(self, graphs: list[Graph], levels: list[Level]) -> tuple[Run, ...]:
        """Runs of the graphs, with what they fetch, target and feed."""
        rng = self.rng
        runs: list[Run] = []
        for i in range(rng.choice((len(graphs), len(graphs), len(graphs) + 1, 3))):
            at = i % len(graphs)
            graph, level = graphs[at], levels[at]
            fed = {
                n.name: n.attrs.dtype for n in graph.nodes if isinstance(n.attrs, PlaceholderAttrs)
            }
            fetches = [v for v, kind in level.values if v not in fed and kind != HANDLE]
            names = [n.name for n in graph.nodes if n.name not in fed]
            wanted: dict[str, Any] = {}
            if rng.random() < 0.7:
                wanted["fetches"] = tuple(rng.sample(fetches, min(len(fetches), rng.randint(0, 2))))
                wanted["targets"] = tuple(
                    rng.sample(names, min(len(names), rng.choice((0, 0, 1, 1, 2))))
                )
            after = tuple(r.name for r in runs if rng.random() < 0.3)
            feeds = {
                p: rng.randint(0, 1) if kind == BOOL else rng.randint(1, 3)
                for p, kind in fed.items()
            }
            run = Run(f"r{i}", graph.name, after, **wanted)
            while True:  # which placeholders it executes, the test says
                try:
                    LitmusTest(
                        "t",
                        (*(Variable(v, INT, ()) for v in self.variables), *self.rows()),
                        (graph,),
                        mutexes=tuple(map(Mutex, self.mutexes)),
                        queues=tuple(Queue(q, INT, (), 1) for q in self.queues),
                        accumulators=self.sums(),
                        client=(replace(run, after=(), feeds=tuple(feeds.items())),),
                    )
                    break
                except MalformedTest as error:
                    gone = error.path[-1]
                    if gone not in feeds or "executes no" not in error.message:
                        raise
                    del feeds[gone]  # type: ignore[arg-type]
            runs.append(replace(run, feeds=tuple(feeds.items())))
        return tuple(runs)

    # --- levels ---

    def grow(self, level: Level, count: int) -> None:
        """Add that many nodes, or so."""
        rng = self.rng
        if not level.depth:
            for _ in range(rng.choice((0, 0, 1, 2))):
                kind = rng.choice((INT, BOOL))
                self.add(
                    level,
                    Node(self.fresh("p"), "Placeholder", attrs=PlaceholderAttrs(kind, ())),
                    kind,
                )
        for _ in range(count):
            if not self.affordable(level):
                return
            chance = rng.random()
            if chance < self.nests and level.depth < 3:
                rng.choice((self.call, self.call, self.branch, self.loop))(level)
            elif chance < self.nests + 0.12 and self.mutexes and len(level.nodes) > 1:
                self.section(level)
            elif chance < self.nests + 0.27:
                self.pure(level)
            else:
                self.effect(level)

    def add(self, level: Level, node: Node, *kinds: str) -> Node:
        """Append a node, and say of which dtype it is."""
        level.nodes.append(node)
        if node.results:
            level.values += [
                (f"{node.name}.{r}", k) for r, k in zip(node.results, kinds, strict=True)
            ]
        elif kinds:
            level.values.append((node.name, kinds[0]))
        return node

    def after(self, level: Level, but: set[str] = frozenset()) -> tuple[str, ...]:  # type: ignore[assignment]
        """Some control edges, from nodes and from what comes into the body."""
        names = [n.name for n in level.nodes if n.name not in but]
        names += [v for v, _ in level.values if "." not in v and v not in names and v not in but]
        return tuple(
            n for n in self.rng.sample(names, min(2, len(names))) if self.rng.random() < self.edges
        )

    def without(self, after: tuple[str, ...], inputs: tuple[str, ...]) -> tuple[str, ...]:
        """The control edges that are no data edges already."""
        return tuple(a for a in after if a not in {i.partition(".")[0] for i in inputs})

    def value(self, level: Level, dtype: str) -> str:
        """A value there, or a new constant."""
        found = level.of(dtype)
        if found and self.rng.random() < 0.75:
            return self.rng.choice(found)
        if dtype == HANDLE:
            attrs = HandleAttrs(self.rng.choice(self.variables))
            return self.add(level, Node(self.fresh("h"), "VarHandleOp", attrs=attrs), HANDLE).name
        literal = self.rng.randint(0, 1) if dtype == BOOL else self.rng.randint(1, 9)
        return self.constant(level, literal, dtype)

    def kinds(self, count: int) -> list[str]:
        """The dtypes of so many results or carried values."""
        kinds = (INT, INT, HANDLE) if self.handles else (INT,)
        return [self.rng.choice(kinds) for _ in range(count)]

    def constant(self, level: Level, literal: int, dtype: str = INT) -> str:
        """A new constant."""
        return self.add(
            level, Node(self.fresh("c"), "Const", attrs=ConstAttrs(dtype, (), literal)), dtype
        ).name

    def effect(self, level: Level) -> None:
        """Add an op on a variable, queue or accumulator."""
        rng = self.rng
        if self.accumulators and rng.random() < 0.7:
            self.on_accumulator(level)
            return
        ops = ["ReadVariableOp"] * 4 + ["AssignVariableOp"] * 4 + ["AssignAddVariableOp"] * 2
        if self.missing:
            ops += ["VarIsInitializedOp"] * 3
        if self.queues:
            ops += ["QueueEnqueueV2"] * 4 + ["QueueDequeueV2"] * 4 + ["QueueSizeV2"]
        if self.table and rng.random() < 0.4:
            self.on_a_row(level)
            return
        op = rng.choice(ops)
        resource = rng.choice(self.queues if op.startswith("Queue") else self.variables)
        takes = op in ("AssignVariableOp", "AssignAddVariableOp", "QueueEnqueueV2")
        inputs = (self.value(level, INT),) if takes else ()
        handle = ""
        if self.handles and not op.startswith("Queue") and rng.random() < 0.6:
            handle = self.value(level, HANDLE)
        after = self.without(self.after(level), (*inputs, handle))
        self.spend(level, 2 if op == "AssignAddVariableOp" else 1)
        has = op in ("ReadVariableOp", "VarIsInitializedOp", "QueueDequeueV2", "QueueSizeV2")
        node = Node(self.fresh("e"), op, inputs, (resource,), after, handle=handle)
        kind = BOOL if op == "VarIsInitializedOp" else INT
        self.add(level, node, *([kind] if has else []))

    def on_accumulator(self, level: Level) -> None:
        """Add an op on an accumulator; a take asks for one gradient, or two."""
        rng = self.rng
        name = rng.choice(("ApplyGradient", "ApplyGradient", "TakeGradient", "TakeGradient"))
        name = rng.choice((name, name, name, "NumAccumulated", "SetGlobalStep"))
        kinds: tuple[str, ...] = ()
        inputs: tuple[str, ...] = ()
        if name == "ApplyGradient":
            step = self.constant(level, rng.choice((0, 0, 1, 2)), STEP)
            inputs = (step, self.value(level, GRADIENT))
        elif name == "TakeGradient":
            count, kinds = rng.choice((1, 1, 1, 2)), (GRADIENT,)
            ready = level.of(INT)
            computed = ready and rng.random() < 0.2  # a number that may be 0, and then fails
            inputs = (rng.choice(ready) if computed else self.constant(level, count),)
        elif name == "NumAccumulated":
            kinds = (INT,)
        else:
            inputs = (self.constant(level, rng.choice((0, 1, 2)), STEP),)
        after = self.without(self.after(level), inputs)
        self.spend(level, 2 if name == "TakeGradient" else 1)
        op, resource = f"ResourceAccumulator{name}", rng.choice(self.accumulators)
        self.add(level, Node(self.fresh("e"), op, inputs, (resource,), after), *kinds)

    def on_a_row(self, level: Level) -> None:
        """Add an op on the row of the vector that a value names; with 9, it fails."""
        op = self.rng.choice(("ResourceGather", "ResourceScatterAdd", "ResourceScatterUpdate"))
        inputs = (self.value(level, INT),)
        if op != "ResourceGather":
            inputs = (*inputs, self.value(level, INT))
        after = self.without(self.after(level), inputs)
        self.spend(level, len(inputs))
        kinds = () if op != "ResourceGather" else (INT,)
        self.add(level, Node(self.fresh("e"), op, inputs, ("T",), after), *kinds)

    def pure(self, level: Level) -> None:
        """Add a pure op."""
        op = self.rng.choice(("Identity", "AddV2", "Equal", "Less", "Select", "NoOp"))
        if op == "NoOp":
            self.add(level, Node(self.fresh("n"), op, after=self.after(level)))
            return
        if op == "Identity" and self.handles and self.rng.random() < 0.5:
            same = self.value(level, HANDLE)
            self.add(level, Node(self.fresh("h"), op, (same,)), HANDLE)
            return
        kinds = {"Identity": (INT,), "Select": (BOOL, INT, INT)}.get(op, (INT, INT))
        inputs = tuple(self.value(level, kind) for kind in kinds)
        after = self.without(self.after(level), inputs)
        self.add(
            level,
            Node(self.fresh("x"), op, inputs, after=after),
            BOOL if op in ("Equal", "Less") else INT,
        )

    def section(self, level: Level) -> None:
        """Add a critical section over nodes that are there."""
        rng = self.rng
        names = [n.name for n in level.nodes if n.op not in ("CriticalSection", "Placeholder")]
        if not names:
            return
        inner = [set(n.members) for n in level.nodes if n.members]
        members = set(rng.sample(names, min(len(names), rng.randint(1, 4))))
        for each in inner:
            if members & each and rng.random() < 0.8:
                members |= each
        after = self.after(level, members)
        self.spend(level)
        listed = tuple(n for n in names if n in members)
        self.add(
            level,
            Node(
                self.fresh("s"),
                "CriticalSection",
                (),
                (rng.choice(self.mutexes),),
                after,
                SectionAttrs(listed),
            ),
        )

    # --- nodes with bodies ---

    def captures(self, level: Level) -> list[tuple[str, str, str]]:
        """(inside, outside, dtype) of some values."""
        rng = self.rng
        values = list(level.values)
        if not values and rng.random() < 0.5:
            self.value(level, INT)
            values = list(level.values)
        picked = rng.sample(values, min(len(values), rng.choice((0, 1, 1, 2, 3))))
        return [(self.fresh("a"), outer, kind) for outer, kind in picked]

    def body(
        self, level: Level, arguments: list[tuple[str, str]], times: int, results: list[str]
    ) -> tuple[Body, Level]:
        """Grow a body, of that many results, which runs so many times."""
        rng = self.rng
        inner = Level(level.times * times, level.depth + 1, values=list(arguments))
        self.grow(inner, rng.choice((0, 1, 1, 2, 2, 3)))
        returned = tuple(self.value(inner, kind) for kind in results)
        return Body(tuple(inner.nodes), returned), inner

    def call(self, level: Level) -> None:
        """Add a call."""
        captured = self.captures(level)
        kinds = self.kinds(self.rng.choice((0, 1, 1, 2)))
        names = tuple(self.fresh("y") for _ in kinds)
        body, _ = self.body(level, [(a, k) for a, _, k in captured], 1, kinds)
        after = self.without(self.after(level), tuple(o for _, o, _ in captured))
        attrs = CallAttrs(tuple((a, o) for a, o, _ in captured), body, names)
        self.add(level, Node(self.fresh("f"), "Call", after=after, attrs=attrs), *kinds)

    def branch(self, level: Level) -> None:
        """Add a conditional."""
        predicate = self.value(level, BOOL)
        captured = self.captures(level)
        kinds = self.kinds(self.rng.choice((1, 1, 2)))
        names = tuple(self.fresh("y") for _ in kinds)
        arguments = [(a, k) for a, _, k in captured]
        cost = self.cost
        then, _ = self.body(level, arguments, 1, kinds)
        spent, self.cost = cost - self.cost, cost
        orelse, _ = self.body(level, arguments, 1, kinds)
        self.cost = min(self.cost, cost - spent)
        inputs = (predicate,)
        after = self.without(self.after(level), (*inputs, *(o for _, o, _ in captured)))
        attrs = BranchAttrs(tuple((a, o) for a, o, _ in captured), then, orelse, names)
        self.add(
            level,
            Node(self.fresh("b"), "If", inputs, after=after, attrs=attrs),
            *kinds,
        )

    def loop(self, level: Level) -> None:
        """Add a loop."""
        rng = self.rng
        trips = rng.choice((0, 1, 1, 2, 2, 2))
        zero = self.constant(level, 0)
        captured = self.captures(level)
        kinds = [INT, *self.kinds(rng.choice((0, 1, 1, 2)))]
        carried = [self.fresh("i"), *(self.fresh("k") for _ in kinds[1:])]
        inputs = (zero, *(self.value(level, kind) for kind in kinds[1:]))
        arguments = [*zip(carried, kinds, strict=True), *((a, k) for a, _, k in captured)]

        inner = Level(level.times * (trips + 1), level.depth + 1, values=list(arguments))
        if rng.random() < 0.35:
            self.grow(inner, 1)
        limit = self.constant(inner, trips)
        test = self.add(inner, Node(self.fresh("x"), "Less", (carried[0], limit)), BOOL).name
        if inner.of(BOOL)[:-1] and rng.random() < 0.5:
            never = self.constant(inner, 0, BOOL)
            chosen = (test, rng.choice(inner.of(BOOL)[:-1]), never)
            if chosen[1] != never:
                test = self.add(inner, Node(self.fresh("x"), "Select", chosen), BOOL).name
        condition = Body(tuple(inner.nodes), (test,))

        inner = Level(level.times * max(1, trips), level.depth + 1, values=list(arguments))
        self.grow(inner, rng.choice((0, 1, 1, 2, 3)))
        one = self.constant(inner, 1)
        after = self.without(self.after(inner), (carried[0], one))
        onward = self.add(
            inner, Node(self.fresh("x"), "AddV2", (carried[0], one), after=after), INT
        ).name
        results = (onward, *(self.value(inner, kind) for kind in kinds[1:]))
        body = Body(tuple(inner.nodes), results)

        after = self.without(self.after(level), (*inputs, *(o for _, o, _ in captured)))
        attrs = LoopAttrs(
            tuple(carried),
            tuple((a, o) for a, o, _ in captured),
            condition,
            body,
            rng.choice((1, 2, 10)),
        )
        self.add(
            level,
            Node(self.fresh("l"), "While", inputs, after=after, attrs=attrs),
            *kinds,
        )
