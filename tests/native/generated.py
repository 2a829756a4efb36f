"""Generator of small random tests that combine all features: nested bodies, queues, runs.

Most handwritten shapes have one feature; these tests cover interactions of features.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from litmusfuzz.corpus.model import (
    Body,
    BranchAttrs,
    Graph,
    LitmusTest,
    LoopAttrs,
    MalformedTest,
    Mutex,
    Node,
    Queue,
    Run,
    Variable,
)
from litmusfuzz.corpus.ops import ConstAttrs, CountAttrs, RowsAttrs, SectionAttrs

if TYPE_CHECKING:
    from collections.abc import Sequence


def generate_test(seed: int, effects: int = 6) -> LitmusTest | None:
    """Generate a test with about `effects` ops on resources; None if it is malformed."""
    return _TestBuilder(random.Random(seed), effects).test()


class _TestBuilder:
    def __init__(self, rng: random.Random, effects: int) -> None:
        self.rng = rng
        self.left = effects
        self.count = 0

    def name(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def test(self) -> LitmusTest | None:
        rng = self.rng
        graphs = [self.graph(f"g{i}") for i in range(rng.choice((1, 1, 1, 2)))]
        client = [Run(f"run{i}", graph.name) for i, graph in enumerate(graphs)]
        if rng.random() < 0.2:
            earlier = (client[-1].name,) if rng.random() < 0.5 else ()
            client.append(Run("again", rng.choice(graphs).name, earlier))
        variables = (Variable("X", "int32", ()), Variable("Y", "int32", ()))
        variables += (Variable("R", "int32", (2,)),)
        try:
            test = LitmusTest(
                "generated",
                variables,
                tuple(graphs),
                mutexes=(Mutex("M"), Mutex("N")),
                queues=(Queue("Q", "int32", (), rng.randint(1, 2), (4,)),),
                client=tuple(client) if len(client) > 1 else (),
            )
            keys = [k for k, node in test.nodes_by_key().items() if test.types[node]]
            reads = [k for k in keys if k.rpartition(".")[2][0] in "rdzo"]
            return LitmusTest(
                **{f: getattr(test, f) for f in ("name", "variables", "graphs")},
                **{f: getattr(test, f) for f in ("mutexes", "queues", "client")},
                observe=tuple(reads[:5]),
            )
        except MalformedTest:
            return None

    def graph(self, name: str) -> Graph:
        constants = [self.constant(n) for n in (0, 1, 2)]
        return Graph(name, (*constants, *self.nodes([n.name for n in constants], 0)))

    def constant(self, value: int) -> Node:
        return Node(self.name("c"), "Const", attrs=ConstAttrs("int32", (), value))

    def nodes(self, scope: Sequence[str], depth: int) -> list[Node]:
        """Nodes of one body. `scope` are scalars that it may use; grows."""
        rng = self.rng
        scope = list(scope)
        nodes: list[Node] = []
        for _ in range(rng.randint(1, 4 if depth == 0 else 2)):
            if self.left <= 0:
                break
            after = tuple(n.name for n in nodes if n.op != "Const" and rng.random() < 0.25)
            kind = rng.random()
            if kind < 0.16 and depth < 2:
                made = self.branch(scope, depth, after)
            elif kind < 0.32 and depth < 2:
                made = self.loop(scope, depth, after)
            else:
                self.left -= 1
                made = self.effect(scope, after)
            nodes += made
            last = made[-1]
            if isinstance(last.attrs, BranchAttrs):
                scope += [f"{last.name}.{r}" for r in last.attrs.results]
            elif isinstance(last.attrs, LoopAttrs):
                scope += [f"{last.name}.{r}" for r in last.attrs.carried]
            elif last.op in ("ReadVariableOp", "QueueDequeueV2", "QueueSizeV2"):
                scope.append(last.name)
        for _ in range(2):
            if nodes and rng.random() < 0.25:
                nodes += self.section(nodes)
        self.scope = scope
        return nodes

    def section(self, nodes: list[Node]) -> list[Node]:
        able = [n.name for n in nodes if n.op not in ("CriticalSection", "Const")]
        members = tuple(n for n in able if self.rng.random() < 0.6) or tuple(able[:1])
        if not members:
            return []
        mutex = self.rng.choice("MN")
        return [Node(self.name("s"), "CriticalSection", (), (mutex,), (), SectionAttrs(members))]

    def effect(self, scope: Sequence[str], after: tuple[str, ...]) -> list[Node]:
        rng = self.rng
        value, variable = rng.choice(list(scope)), rng.choice("XY")
        r, w = self.name("r"), self.name("w")
        pick = rng.choice(("read", "read", "write", "write", "add", "add", "rows", "queue"))
        if pick == "read":
            return [Node(r, "ReadVariableOp", (), (variable,), after)]
        if pick == "write":
            return [Node(w, "AssignVariableOp", (value,), (variable,), after)]
        if pick == "add":
            op = rng.choice(("AssignAddVariableOp", "AssignSubVariableOp"))
            return [Node(w, op, (value,), (variable,), after)]
        if pick == "rows":
            rows = RowsAttrs((rng.randint(0, 1),))
            op = rng.choice(("ResourceScatterAdd", "ResourceScatterUpdate"))
            return [Node(w, op, (value,), ("R",), after, rows)]
        pick = rng.choice(("in", "in", "out", "out", "out", "size", "many in", "many out"))
        if pick == "in":
            return [Node(w, "QueueEnqueueV2", (value,), ("Q",), after)]
        if pick == "out":
            return [Node(self.name("d"), "QueueDequeueV2", (), ("Q",), after)]
        if pick == "size":
            return [Node(self.name("z"), "QueueSizeV2", (), ("Q",), after)]
        if pick == "many in":
            pair = Node(self.name("p"), "Const", attrs=ConstAttrs("int32", (2,), (5, 6)))
            return [pair, Node(w, "QueueEnqueueManyV2", (pair.name,), ("Q",), after)]
        return [Node(self.name("d"), "QueueDequeueManyV2", (), ("Q",), after, CountAttrs(2))]

    def captures(self, scope: Sequence[str]) -> dict[str, str]:
        some = [value for value in scope if self.rng.random() < 0.5]
        return {self.name("t"): value for value in some or scope[:1]}

    def body(self, scope: Sequence[str], depth: int, results: int) -> Body:
        nodes = self.nodes(scope, depth)
        if self.rng.random() < 0.3:
            pure = Node(self.name("i"), "Identity", (self.rng.choice(self.scope),))
            nodes.append(pure)
            self.scope.append(pure.name)
        # The newest is what something inside made.
        newest = self.scope[-3:]
        return Body(tuple(nodes), tuple(self.rng.choice(newest) for _ in range(results)))

    def branch(self, scope: Sequence[str], depth: int, after: tuple[str, ...]) -> list[Node]:
        rng = self.rng
        flag, name = self.name("f"), self.name("if")
        less = Node(flag, "Less", (rng.choice(list(scope)), rng.choice(list(scope))))
        captures = self.captures(scope)
        results = tuple(self.name("o") for _ in range(rng.randint(1, 2)))
        then, other = (self.body(list(captures), depth + 1, len(results)) for _ in range(2))
        attrs = BranchAttrs(tuple(captures.items()), then, other, results)
        return [less, Node(name, "If", (flag,), (), after, attrs)]

    def loop(self, scope: Sequence[str], depth: int, after: tuple[str, ...]) -> list[Node]:
        rng = self.rng
        constants = [self.constant(n) for n in (0, 1, rng.randint(1, 2))]
        zero, step, limit = (each.name for each in constants)
        name, more, following = self.name("while"), self.name("m"), self.name("n")
        counter, carried = self.name("i"), self.name("v")
        captures = {self.name("t"): limit, self.name("t"): step} | self.captures(scope)
        names = list(captures)
        inside = [*captures, carried]
        testing = [Node(more, "Less", (counter, names[0]))]
        if rng.random() < 0.4:
            testing += self.nodes(inside, 2)
        body = self.body(inside, depth + 1, 1)
        nodes = (*body.nodes, Node(following, "AddV2", (counter, names[1])))
        attrs = LoopAttrs(
            (counter, carried),
            tuple(captures.items()),
            Body(tuple(testing), (more,)),
            Body(nodes, (following, *body.results)),
            rng.choice((1, 1, 2, 10)),
        )
        return [*constants, Node(name, "While", (zero, rng.choice(list(scope))), (), after, attrs)]
