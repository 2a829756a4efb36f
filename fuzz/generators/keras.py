"""Family `keras`: steps of Keras's optimizers that race with each other and with evaluation.

One or two workers apply an optimizer to gradients that are constants, or the difference of the
variable and a target; others read what is trained and what the optimizer keeps, or change the
learning rate, as a callback does. A run of the client may come after another. The steps are calls
whose bodies `corpus.optimizers` writes: `tf/keras` executes them by Keras itself, all else as ops.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model import Graph, Node, Run, Variable
from litmusfuzz.corpus.ops import FLOATS, ConstAttrs
from litmusfuzz.corpus.optimizers import ITERATIONS, Step, call
from litmusfuzz.fuzz.generators.context import Context
from litmusfuzz.fuzz.generators.family import NotGenerated
from litmusfuzz.fuzz.generators.structured import MAX_ORDERS, TRIES
from litmusfuzz.fuzz.generators.unbuilt import UnbuiltTest
from litmusfuzz.oracles.bounds import count_all

if TYPE_CHECKING:
    import random

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.support import Support

NEEDED: Final = frozenset(
    {
        *("Call", "Const", "Mul", "Sub", "AddV2", "ReadVariableOp"),
        *("AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp"),
    }
)
"""Ops that each test may have."""
_LION: Final = frozenset({"Sign"})
_AVERAGE: Final = frozenset({"NotEqual", "Cast"})
_CLIP: Final = frozenset({"Maximum", "Minimum"})


def generate(rng: random.Random, support: Support) -> LitmusTest:
    """Generate a test of the family within a support; all choices come from `rng`."""
    for number in range(TRIES):
        # The last attempts have one worker, and few orders.
        made = _attempt(rng, support, most=2 if number < TRIES // 2 else 1)
        if count_all(made, MAX_ORDERS) < MAX_ORDERS:
            return made.build()
    raise NotGenerated("family keras: all attempts have too many orders")


def _attempt(rng: random.Random, support: Support, most: int) -> UnbuiltTest:
    """A test with so many workers at most, however many orders it has."""
    floats = [each for each in FLOATS if each in support.dtypes]
    if not floats:
        raise NotGenerated("family keras: the support lacks floats")
    dtype = rng.choice(floats)
    shape = support.nearest(rng.choice(((), (), (2,), (2, 3))))
    step = _step(rng, support)
    variables = [Variable("X", dtype, shape, rng.choice((0, 1, 5)))]
    variables += [
        Variable(name, dtype, shape, rng.choice((0, 3)))
        for name in (step.slot, step.average)
        if name
    ]
    if step.rate:
        variables.append(Variable(step.rate, dtype, (), step.learning_rate))
    if step.iterations:
        variables.append(Variable(step.iterations, ITERATIONS, (), rng.choice((0, 0, 1))))
    workers = min(most, rng.choice((1, 2, 2)))
    graphs = [_worker(rng, f"w{place}", step, dtype, shape) for place in range(workers)]
    seen: list[str] = []
    for place in range(rng.choice((0, 1, 1)) if workers == 2 else 1):
        nodes = _evaluation(rng, f"e{place}", variables, step, dtype)
        graphs.append(Graph(f"e{place}", nodes))
        seen += [node.name for node in nodes if node.op == "ReadVariableOp"]
    client = [Run(graph.name, graph.name) for graph in graphs]
    if len(client) == 3 and rng.random() < 0.3:
        client[2] = Run(client[2].name, client[2].graph, (client[rng.randrange(2)].name,))
    several = len(graphs) > 1
    observe = [f"{name.partition('_')[0]}.{name}" if several else name for name in seen]
    # One run of each graph, in no order, is what a test has without a client.
    runs = tuple(client) if any(run.after for run in client) else ()
    context = Context(rng, support, dtype, tuple(variables))
    return UnbuiltTest("keras", context, tuple(graphs), tuple(observe), client=runs)


def _step(rng: random.Random, support: Support) -> Step:
    """An optimizer."""
    kinds = ["plain", "momentum", "momentum", "nesterov"]
    kinds += ["Lion"] * (support.ops >= _LION)
    kind = rng.choice(kinds)
    ints = ITERATIONS in support.dtypes
    average = ints and support.ops >= _AVERAGE and rng.random() < 0.2
    return Step(
        "Lion" if kind == "Lion" else "SGD",
        "X",
        learning_rate=rng.choice((1, 2, 3)),
        momentum=rng.choice((0, 1)) if kind == "Lion" else int(kind != "plain"),
        nesterov=kind == "nesterov",
        clip=rng.choice((0, 0, 1, 2)) if support.ops >= _CLIP else 0,
        average_momentum=rng.choice((0, 1)) if average else 0,
        slot="" if kind == "plain" else "M",
        rate="L" if rng.random() < 0.3 else "",
        iterations="I" if average or (ints and rng.random() < 0.3) else "",
        average="A" if average else "",
    )


def _worker(rng: random.Random, name: str, step: Step, dtype: str, shape: tuple[int, ...]) -> Graph:
    """A graph with one step, or two, one after the other."""
    nodes: list[Node] = []
    before: tuple[str, ...] = ()
    for place in range(rng.choice((1, 1, 1, 2))):
        gradient = f"{name}_g{place}"
        value = ConstAttrs(dtype, shape, rng.choice((-2, -1, 1, 2, 4)))
        if rng.random() < 0.5:
            nodes.append(Node(gradient, "Const", attrs=value))
        else:  # of the loss (X - target)**2 / 2
            read, target = f"{name}_x{place}", f"{name}_t{place}"
            nodes.append(Node(read, "ReadVariableOp", (), (step.variable,), before))
            nodes.append(Node(target, "Const", attrs=value))
            nodes.append(Node(gradient, "Sub", (read, target)))
        made = call(step, f"{name}_s{place}", gradient, dtype, shape)
        nodes.append(Node(made.name, made.op, after=before, attrs=made.attrs))
        before = (made.name,)
    return Graph(name, tuple(nodes))


def _evaluation(
    rng: random.Random, name: str, variables: list[Variable], step: Step, dtype: str
) -> tuple[Node, ...]:
    """Two or three reads, one after the other or not; or a new learning rate."""
    nodes: list[Node] = []
    if step.rate and rng.random() < 0.5:
        rate = ConstAttrs(dtype, (), rng.choice((0, 1, 4)))
        nodes.append(Node(f"{name}_rate", "Const", attrs=rate))
        nodes.append(Node(f"{name}_set", "AssignVariableOp", (f"{name}_rate",), (step.rate,)))
    before: tuple[str, ...] = ()
    for place in range(rng.choice((1, 2, 2, 3))):
        read = f"{name}_r{place}"
        nodes.append(Node(read, "ReadVariableOp", (), (rng.choice(variables).name,), before))
        before = (read,) if rng.random() < 0.8 else ()
    return tuple(nodes)
