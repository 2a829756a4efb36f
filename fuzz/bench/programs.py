"""Random tests for the benchmark of the oracle, and outcomes of random total orders."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.model import Body, Graph, LitmusTest, LoopAttrs, Node, Variable
from litmusfuzz.corpus.ops import OPS, ConstAttrs, Kind
from litmusfuzz.corpus.outcome import Outcome
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.generators.context import Context
from litmusfuzz.fuzz.generators.pure import DENSE, PureBody
from litmusfuzz.fuzz.support import EVERYTHING
from litmusfuzz.oracles import sequential

if TYPE_CHECKING:
    import random

STEP: Final = 1000
"""Difference between a loop's values in successive iterations."""
_FIRST: Final = 100_000  # a loop's smallest value: no chain writes as much


def chains(rng: random.Random, shape: tuple[int, int], names: str, values: int) -> LitmusTest:
    """Random reads and writes in `shape[0]` chains of `shape[1]` ops.

    The written values are 1..`values`; 0 for unique values.
    """
    number = 0
    parts = []
    for _ in range(shape[0]):
        part = []
        for _ in range(shape[1]):
            number += 1
            name = rng.choice(names)
            value = rng.randint(1, values) if values else number
            part.append(f"{name}={value}" if rng.random() < 0.5 else f"r{number}={name}")
        parts.append("; ".join(part))
    return litmus(" || ".join(parts))


def looped(
    rng: random.Random, shape: tuple[int, int], ops: int, iterations: int, names: str
) -> LitmusTest:
    """Chains, and a concurrent loop with a chain of `ops` reads and writes in its body.

    All values are unique. A read in the body is observed in the last iteration.
    Iterations do not overlap, since the counter waits for the chain.
    """
    test = chains(rng, shape, names, 0)
    outside = [_constant("zero", 0), _constant("limit", iterations), _constant("unit", 1)]
    outside.append(_constant("step", STEP))
    captures = [("most", "limit"), ("one", "unit"), ("stride", "step")]
    inside = [Node("base", "Mul", ("i", "stride"))]
    carried, following = ["i"], ["next"]
    last: tuple[str, ...] = ()
    for number in range(ops):
        name, variable = f"b{number}", rng.choice(names)
        if rng.random() < 0.5:
            outside.append(_constant(f"c{number}", _FIRST + number))
            captures.append((f"t{number}", f"c{number}"))
            inside.append(Node(f"v{number}", "AddV2", ("base", f"t{number}")))
            inside.append(Node(name, "AssignVariableOp", (f"v{number}",), (variable,), last))
        else:
            inside.append(Node(name, "ReadVariableOp", (), (variable,), last))
            carried.append(f"last{number}")
            following.append(name)
        last = (name,)
    inside.append(Node("next", "AddV2", ("i", "one"), (), last))
    condition = Body((Node("more", "Less", ("i", "most")),), ("more",))
    body = Body(tuple(inside), tuple(following))
    attrs = LoopAttrs(tuple(carried), tuple(captures), condition, body)
    loop = Node("loop", "While", ("zero",) * len(carried), (), (), attrs)
    nodes = (*test.graph.nodes, *(n for n in outside if n.name not in test.types), loop)
    observe = (*test.observe, *(f"loop.{name}" for name in carried))
    variables = tuple(Variable(name, "int32", ()) for name in names)
    graph = Graph(test.graph.name, nodes)
    return replace(test, variables=variables, graphs=(graph,), observe=observe)


def _constant(name: str, value: int) -> Node:
    return Node(name, "Const", attrs=ConstAttrs("int32", (), value))


def computed(rng: random.Random, ops: int, effects: int) -> LitmusTest:
    """A race of `effects` reads and writes in three chains, and pure ops of all kinds around it.

    Operands of writes, indices and axes are computed from what was read; `ops` counts all nodes
    but constants. The reads and five computed values are observed.
    """
    variables = tuple(Variable(name, "int32", (2,), 1) for name in "XY")
    body = PureBody(Context(rng, EVERYTHING, "int32", variables, matrices=True))
    reads = [name for name in DENSE if OPS[name].kind is Kind.READ]
    changes = [n for n in body.context.possible(DENSE) if OPS[n].kind is not Kind.READ]
    chains = [""] * 3
    for number in range(effects):
        chain = number % len(chains)
        first = number < len(chains)
        op = rng.choice(reads if first or rng.random() < 0.4 else changes)
        chains[chain] = body.effect(OPS[op], (chains[chain],) if chains[chain] else ())
        body.used.clear()
    while sum(not node.definition.constant for node in body.nodes) < ops:
        body.applied(rng.choice((*body.sources, *body.computed)))
        body.used.clear()
    nodes = tuple(body.nodes)
    shown = [node.name for node in nodes if node.definition.kind is Kind.READ]
    shown += rng.sample(body.computed, 5)
    return LitmusTest("computed", variables, (Graph("main", nodes),), tuple(shown))


def executed(test: LitmusTest, rng: random.Random) -> Outcome:
    """The outcome of a random order of the nodes of a test of one graph, one thing at a time."""
    left = {node.name: node for node in test.graph.nodes}
    nodes: list[Node] = []
    while left:
        ready = [n for n in left.values() if left.keys().isdisjoint((*n.inputs, *n.after))]
        nodes.append(left.pop(rng.choice(ready).name))
    return sequential.outcome(replace(test, graphs=(Graph(test.graph.name, tuple(nodes)),)))


def hidden(test: LitmusTest, rng: random.Random, share: float) -> LitmusTest:
    """The test without a random `share` of its observed values."""
    kept = rng.sample(range(len(test.observe)), round(len(test.observe) * (1 - share)))
    return replace(test, observe=tuple(test.observe[i] for i in sorted(kept)))


def simulated(test: LitmusTest, rng: random.Random) -> Outcome:
    """The outcome of a random total order of a test from `chains` or `looped`.

    The code handles only such tests. It shares nothing with the measured oracle, and is
    fast on hundreds of ops. At each step a random ready op instance executes.

    References
    ----------
    semantics.md, section 3.
    """
    memory = {v.name: test.initial(v) for v in test.variables}
    values: dict[str, tuple[int, ...]] = {}
    left, results = _instances(test)
    done: set[str] = set()
    while left:
        ready = [n for n in left if done.issuperset((*n.inputs, *n.after))]
        # A ready op without effect executes at once: its position does not matter.
        node = next((n for n in ready if not n.resources), None) or rng.choice(ready)
        left.remove(node)
        done.add(node.name)
        given = [values[name][0] for name in node.inputs]
        if node.definition.constant:
            values[node.name] = test.constant(node)
        elif node.op == "ReadVariableOp":
            values[node.name] = memory[node.resources[0]]
        elif node.op == "AssignVariableOp":
            memory[node.resources[0]] = values[node.inputs[0]]
        else:
            a, b = given
            values[node.name] = (a * b if node.op == "Mul" else a + b,)
    observed = {name: values[results.get(name, name)] for name in test.observe}
    return Outcome.of(test, observed | memory)


def _instances(test: LitmusTest) -> tuple[list[Node], dict[str, str]]:
    """Op instances as nodes of one graph, and the instance of each result of a loop."""
    found: list[Node] = []
    results: dict[str, str] = {}
    for node in test.graph.nodes:
        attrs = node.attrs
        if not isinstance(attrs, LoopAttrs):
            found.append(node)
            continue
        carried = dict(zip(attrs.carried, node.inputs, strict=True))
        for number in range(test.bounds[node.name]):
            names = dict(attrs.captures) | carried
            names |= {n.name: f"{node.name}[{number}]/{n.name}" for n in attrs.body.nodes}
            counter = carried[attrs.carried[0]]  # the iteration waits for its counter
            found += [
                replace(
                    n,
                    name=names[n.name],
                    inputs=tuple(names[i] for i in n.inputs),
                    after=(*(names[a] for a in n.after), counter),
                )
                for n in attrs.body.nodes
            ]
            carried = {
                name: names[value]
                for name, value in zip(attrs.carried, attrs.body.results, strict=True)
            }
        results |= {f"{node.name}.{name}": value for name, value in carried.items()}
    return found, results


def changed(test: LitmusTest, outcome: Outcome, rng: random.Random) -> Outcome:
    """The outcome with one to three values replaced by others of their size in the outcome."""
    values: dict[str, Any] = dict(outcome.values)
    pool = list(values.values())
    for name in rng.sample(list(values), rng.randint(1, 3)):
        values[name] = rng.choice([each for each in pool if len(each) == len(values[name])])
    return Outcome.of(test, values)
