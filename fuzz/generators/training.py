"""Family `training`: training steps of a small model, by workers that race.

The model has one neuron for each element of its weights, in one layer or two, or is a layer of
matrices. Its gradients are those of `litmusfuzz.fuzz.passes.autodiff`. Weights are small
integers and all functions are piecewise linear, so that every value is exact. Each test
follows one of five plans:

- `loop`: workers train in loops, whose iterations are sequential or concurrent;
- `asynchronous`: workers read, compute and change the weights independently, or one at a
  time, in a critical section;
- `synchronous`: workers put gradients into a queue. A chief takes as many as it needs, fewer
  than there are if it has backup workers, and applies their sum;
- `tokens`: two steps of `synchronous`. A worker begins its second step with a token from the
  chief, except for a straggler, which waits for no token or has no second step;
- `stale`: a chief applies each gradient alone, however old the weights were from which it was
  computed.

In some tests a worker dies between two effects of its step, so that whoever waits for it waits
forever. In some tests another run reads the weights (evaluation) or writes them (restoring).

References
----------
DEVICES, "Automatic differentiation", "Concurrent execution, FT, stragglers".
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from litmusfuzz.corpus.model import (
    Body,
    FreshNames,
    Graph,
    LitmusTest,
    LoopAttrs,
    Mutex,
    Node,
    Queue,
    Run,
    Variable,
)
from litmusfuzz.corpus.ops import BOOL, DTYPES, FLOATS, Kind, RowsAttrs, SectionAttrs, TensorType
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.generators.context import BodyGenerator, Context
from litmusfuzz.fuzz.generators.structured import observed, small
from litmusfuzz.fuzz.generators.unbuilt import UnbuiltTest
from litmusfuzz.fuzz.passes.autodiff import (
    RULES,
    Step,
    gradients,
    training_graphs,
    training_step,
)

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from litmusfuzz.fuzz.support import Support

PLANS: Final = ("loop", "asynchronous", "asynchronous", "synchronous", "tokens", "stale")
_DESCENT: Final = "ResourceApplyGradientDescent"


def generate(rng: random.Random, support: Support) -> LitmusTest:
    """Generate a test of the family within a support; all choices come from `rng`."""
    # Chosen once, for all attempts: some plans are more often too large than others.
    return small(rng, support, partial(_attempt, plan=rng.choice(PLANS)), rng.randint(9, 18))


def _attempt(
    rng: random.Random, support: Support, events: int, *, arithmetic: bool, plan: str
) -> UnbuiltTest:
    training = _Training(rng, support, events, gentle=not arithmetic)
    if plan == "loop":
        return training.loop()
    return training.asynchronous() if plan == "asynchronous" else training.synchronous(plan)


class _Training:
    """Generator of one test.

    Parameters
    ----------
    rng : random.Random
    support : Support
    most : int
        Approximate limit on the events of the workers.
    gentle : bool
        Keep values small: gradients are then signs.
    """

    def __init__(self, rng: random.Random, support: Support, most: int, *, gentle: bool) -> None:
        self.rng = rng
        self.most = most
        self.gentle = gentle
        dtype = rng.choice([each for each in (*DTYPES, *FLOATS) if each in support.dtypes])
        self.matrices = rng.random() < 0.15 and support.takes_shape((2, 2))
        shape: tuple[int, ...] = rng.choice(((), (), (rng.randint(1, 3),), (2, 16), (1, 256)))
        shape = support.nearest(shape)
        layers = 2 if most >= 12 and rng.random() < 0.35 else 1
        shapes = ((2, 2), (2, 1))[-layers:] if self.matrices else (shape,) * layers
        self.second = rng.choice(("bias", "layer"))
        variables = tuple(
            Variable(name, dtype, each, self.literal(each, (0, 1, 1, 2)))
            for name, each in zip("WV", shapes, strict=False)
        )
        self.context = Context(rng, support, dtype, variables, matrices=self.matrices)
        self.rows: tuple[int, ...] = ()  # rows to read; none for all
        if shape and layers == 1 and not self.matrices and rng.random() < 0.3:
            self.rows = tuple(rng.sample(range(shape[0]), rng.randint(1, shape[0])))
        rules = RULES if dtype in FLOATS else [op for op in RULES if op != _DESCENT]
        rules = [op for op in rules if op in support.ops] or rules
        self.step = Step(rng.choice(rules), 1 if gentle else rng.choice((1, 1, 2)))
        self.ordered = rng.random() < 0.75  # the reads of a step, and its updates
        self.activation = rng.choice(("Relu", "Relu", "Maximum", "Minimum", "Identity"))
        self.generators: dict[str, BodyGenerator] = {}
        self.client: list[Run] = []
        self.fresh = FreshNames("WVQPTM").like

    # --- the model -----------------------------------------------------------------------

    def literal(self, shape: tuple[int, ...], values: Sequence[int]) -> Any:
        """A random literal: one int, or for a matrix an int for each element."""
        if not (self.matrices and shape):
            return self.rng.choice(values)
        return tuple(
            tuple(self.rng.choice(values) for _ in range(shape[1])) for _ in range(shape[0])
        )

    def constant(self, body: BodyGenerator, shape: tuple[int, ...], values: Sequence[int]) -> str:
        """Append a constant of the model's dtype."""
        return body.constant(TensorType(self.context.dtype, shape), self.literal(shape, values))

    def forward(
        self, body: BodyGenerator, after: tuple[str, ...], counter: str = ""
    ) -> tuple[list[str], str]:
        """Read the weights and compute a loss on new data; the reads, and the loss.

        Parameters
        ----------
        counter : str
            Scalar to compute the data from, so that iterations differ.
        """
        rng = self.rng
        reads: list[str] = []
        for variable in self.context.variables:
            waits = (*after, *reads[-1:]) if self.ordered else after
            kind = variable.type
            if self.rows:
                kind = replace(kind, shape=(len(self.rows), *kind.shape[1:]))
            name = body.add(
                self.context.fresh("r"),
                "ResourceGather" if self.rows else "ReadVariableOp",
                resources=(variable.name,),
                after=waits,
                attrs=RowsAttrs(self.rows) if self.rows else None,
                kind=kind,
            )
            reads.append(name)
        data = (-1, 1) if self.gentle else (-1, 1, 1, 2)
        kind = body.types[reads[0]]
        if self.matrices:
            x = self.constant(body, (1, kind.shape[0]), data)
            kind = replace(kind, shape=(1, kind.shape[1]))
            z = body.pure("MatMul", (x, reads[0]), kind)
        else:
            x = self.constant(body, (), data)
            if counter and rng.random() < 0.7:
                x = body.pure("AddV2", (counter, x), self.context.scalar)
            z = body.pure("Mul", (reads[0], x), kind)
        if len(reads) == 2 and self.matrices:
            kind = replace(kind, shape=(1, 1))
            z = body.pure("MatMul", (self.activated(body, z), reads[1]), kind)
        elif len(reads) == 2 and self.second == "layer":
            z = body.pure("Mul", (self.activated(body, z), reads[1]), kind)
        elif len(reads) == 2:
            z = self.activated(body, body.pure("AddV2", (z, reads[1]), kind))
        elif rng.random() < 0.7:
            z = self.activated(body, z)
        error = body.pure("Sub", (z, self.constant(body, (), (-2, -1, 3, 4, 5))), kind)
        if self.gentle or rng.random() < 0.2:
            negative = body.pure("Neg", (error,), kind)
            return reads, body.pure("Maximum", (error, negative), kind)
        return reads, body.pure("Mul", (error, error), kind)

    def activated(self, body: BodyGenerator, value: str) -> str:
        """Append a piecewise linear function of a value."""
        operands: tuple[str, ...] = (value,)
        if self.activation in ("Maximum", "Minimum"):
            level = self.constant(body, (), (0, 1, 3))
            operands = (value, level) if self.rng.random() < 0.7 else (level, value)
        return body.pure(self.activation, operands, body.types[value])

    # --- workers ----------------------------------------------------------------------

    def graph(self, graph: str) -> BodyGenerator:
        """Generator of the graph of that name."""
        return self.generators.setdefault(graph, BodyGenerator(self.context))

    def learn(self, body: BodyGenerator, after: tuple[str, ...]) -> tuple[str, ...]:
        """Append a step that updates the weights; names of the updates."""
        _, loss = self.forward(body, after)
        added, updates = training_step(body.nodes, body.types, loss, self.step, self.fresh)
        previous: tuple[str, ...] = ()
        for node in added:
            if node.name in updates:
                body.nodes.append(replace(node, after=previous))
                previous = (node.name,) if self.ordered else ()
            else:
                body.nodes.append(node)
        return tuple(updates)

    def contribute(self, body: BodyGenerator, after: tuple[str, ...]) -> tuple[str, ...]:
        """Append a step that puts its gradients into queues; names of the puts."""
        reads, loss = self.forward(body, after)
        added, found = gradients(body.nodes, body.types, loss, reads, self.fresh)
        body.nodes += added
        puts: list[str] = []
        for read, queue in zip(reads, self.context.queues, strict=False):
            waits = tuple(puts[-1:]) if self.ordered else ()
            put = self.context.fresh("e")
            body.add(put, "QueueEnqueueV2", (found[read],), resources=(queue.name,), after=waits)
            puts.append(put)
        return tuple(puts)

    def dies(self, body: BodyGenerator, begin: int) -> None:
        """Remove at least the last effect after node `begin`: the worker dies before it."""
        effects = [n for n, node in enumerate(body.nodes) if n >= begin and node.resources]
        if len(effects) >= 2:
            del body.nodes[self.rng.choice(effects[1:]) :]

    def evaluate_or_restore(self) -> None:
        """Append ops that read the weights (evaluation) or write them (restoring)."""
        rng = self.rng
        body = self.graph("main" if "main" in self.generators else "other")
        if "main" not in self.generators:
            self.client.append(Run("other", "other"))
        previous: tuple[str, ...] = ()
        restores = rng.random() < 0.45
        for variable in self.context.variables:
            if restores:
                value = self.constant(body, variable.shape, (3, 4, 5))
                name = body.add(
                    self.context.fresh("w"),
                    "AssignVariableOp",
                    (value,),
                    resources=(variable.name,),
                    after=previous,
                )
            else:
                name = self.look(body, variable, previous)
            previous = (name,) if self.ordered else ()

    def look(self, body: BodyGenerator, variable: Variable, after: tuple[str, ...]) -> str:
        """Append a read of a variable."""
        return body.add(
            self.context.fresh("r"),
            "ReadVariableOp",
            resources=(variable.name,),
            after=after,
            kind=variable.type,
        )

    # --- plans ---------------------------------------------------------------------------

    def asynchronous(self) -> UnbuiltTest:
        """Test of workers that update the weights independently."""
        rng = self.rng
        cost = 3 * len(self.context.variables)
        sizes = [(w, s) for w, s in ((2, 1), (2, 2), (3, 1)) if w * s * cost <= self.most]
        workers, steps = rng.choice(sizes or [(2, 1)])
        together, alike = rng.random() < 0.35, rng.random() < 0.3
        locked, death = rng.random() < 0.2, rng.random() < 0.25
        if locked:
            self.context.mutexes = (Mutex("M"),)
        for worker in range(workers):
            dying = death and worker == workers - 1
            previous: tuple[str, ...] = ()
            for step in range(steps):
                last = dying and step == steps - 1
                graph = "g0" if alike else f"g{worker}"
                graph = "main" if together else f"{graph}dies" if last else graph
                if together or graph not in self.generators:
                    self.worker(
                        self.graph(graph), previous if together else (), locked=locked, dying=last
                    )
                if together:
                    previous = (self.generators["main"].nodes[-1].name,)
                else:
                    run = Run(f"{'abc'[worker]}{step}", graph, previous)
                    self.client.append(run)
                    previous = (run.name,)
        if rng.random() < 0.5:
            self.evaluate_or_restore()
        return self.test()

    def worker(
        self, body: BodyGenerator, after: tuple[str, ...], *, locked: bool, dying: bool
    ) -> None:
        """Append a step of an asynchronous worker, which ends with the last node."""
        begin = len(body.nodes)
        self.learn(body, after)
        if dying:
            self.dies(body, begin)
        if locked:
            members = tuple(node.name for node in body.nodes[begin:] if node.resources)
            attrs = SectionAttrs(members)
            body.add(self.context.fresh("s"), "CriticalSection", resources=("M",), attrs=attrs)

    def synchronous(self, plan: str) -> UnbuiltTest:
        """Test of workers that put gradients into queues, and a chief that applies them."""
        rng = self.rng
        self.rows = ()
        variables = self.context.variables
        workers = 3 if plan != "tokens" and self.most >= 12 and rng.random() < 0.4 else 2
        steps = rounds = 1  # steps of each worker, and rounds of the chief
        wanted = rng.choice((workers, workers - 1))
        straggler = -1  # the worker that waits for no token
        if plan == "tokens":
            steps, rounds, wanted = 2, 2, workers
            straggler = rng.choice((0, 1, 1, -1))
        elif plan == "stale":
            rounds, wanted = 2, 1
        capacity = rng.choice((1, workers, workers * steps))
        self.context.queues = tuple(
            Queue(name, v.dtype, v.shape, capacity)
            for name, v in zip("QP", variables, strict=False)
        )
        if steps > 1:
            self.context.queues += (Queue("T", "int32", (), workers),)
        together = rng.random() < 0.4
        death = rng.random() < 0.35
        slow = straggler >= 0 and rng.random() < 0.5  # no second step: one gradient less
        wanted = 1 if slow else wanted
        for worker in range(workers):
            graph = "main" if together else f"g{worker}"
            body = self.graph(graph)
            previous: tuple[str, ...] = ()
            for step in range(1 if slow and worker == straggler else steps):
                begin = len(body.nodes)
                if step and worker != straggler:
                    take = self.context.fresh("t")
                    body.add(take, "QueueDequeueV2", resources=("T",), after=previous)
                    previous = (take,)
                previous = self.contribute(body, previous)
                if death and worker == workers - 1 and step == steps - 1:
                    self.dies(body, begin)
            if not together:
                self.client.append(Run("abc"[worker], graph))
        if not together:
            self.client.append(Run("chief", "chief"))
        tokens = workers - (straggler >= 0) if plan == "tokens" else 0
        self.chief(self.graph("main" if together else "chief"), wanted, rounds, tokens)
        if rounds == 1 and rng.random() < 0.4:
            self.evaluate_or_restore()
        return self.test()

    def chief(self, body: BodyGenerator, wanted: int, rounds: int, tokens: int) -> None:
        """Append the rounds of the chief: take gradients, apply their sum, put tokens."""
        before: tuple[str, ...] = ()
        for number in range(rounds):
            changes: list[str] = []
            for variable, queue in zip(self.context.variables, self.context.queues, strict=False):
                waits = (*before, *changes[-1:])
                total = ""
                for _ in range(wanted):
                    take = self.context.fresh("q")
                    body.add(
                        take,
                        "QueueDequeueV2",
                        resources=(queue.name,),
                        after=waits,
                        kind=variable.type,
                    )
                    waits = (take,)
                    total = body.pure("AddV2", (total, take), variable.type) if total else take
                changes.append(self.apply(body, variable, total))
            before = tuple(changes)
            for _ in range(tokens if number < rounds - 1 else 0):
                token = body.constant(TensorType("int32", ()), 1)
                name = self.context.fresh("e")
                body.add(name, "QueueEnqueueV2", (token,), resources=("T",), after=before)
                before = (name,)

    def apply(self, body: BodyGenerator, variable: Variable, gradient: str) -> str:
        """Append the update of a variable by a gradient from a queue; name of the update."""
        operands: tuple[str, ...] = (gradient,)
        if self.step.op == _DESCENT:
            operands = (self.constant(body, (), (1,)), gradient)
        elif self.step.op == "AssignAddVariableOp":
            operands = (body.pure("Neg", operands, variable.type),)
        elif self.step.op == "AssignVariableOp":
            read = self.look(body, variable, operands)
            operands = (body.pure("Sub", (read, gradient), variable.type),)
        name = self.context.fresh("w")
        return body.add(name, self.step.op, operands, resources=(variable.name,))

    def loop(self) -> UnbuiltTest:
        """Test of one or two workers that train in loops."""
        rng = self.rng
        cost = 3 * len(self.context.variables)
        sizes = [(w, s) for w, s in ((1, 2), (1, 3), (2, 2)) if w * s * cost <= self.most]
        workers, steps = rng.choice(sizes or [(1, 2)])
        graph = self.graph("main")
        losses: dict[str, BodyGenerator] = {}  # each with the body that computes it
        for _ in range(workers):
            scalar = self.context.scalar
            counter, last = self.context.fresh("i"), self.context.fresh("v")
            body, condition = BodyGenerator(self.context), BodyGenerator(self.context)
            body.types[counter] = condition.types[counter] = scalar
            reads, loss = self.forward(body, (), counter)
            following = body.pure("AddV2", (counter, body.constant(scalar, 1)), scalar)
            limit = condition.constant(scalar, steps)
            more = condition.pure("Less", (counter, limit), TensorType(BOOL, ()))
            kind = body.types[reads[0]]
            inputs = (graph.constant(scalar, 0), graph.constant(kind, 0))
            attrs = LoopAttrs(
                (counter, last),
                (),
                Body(tuple(condition.nodes), (more,)),
                Body(tuple(body.nodes), (following, reads[0])),
                rng.choice((1, 2, 10)),
            )
            name = graph.add(self.context.fresh("loop"), "While", inputs, attrs=attrs)
            graph.types[f"{name}.{last}"] = kind
            self.context.bounds[name] = steps
            losses[loss] = body
        if workers == 1 or rng.random() < 0.3:
            self.evaluate_or_restore()
        test = self.test()
        for loss, body in losses.items():
            values = (name for node in test.nodes for name in (*node.keys, *node.arguments))
            taken = (*values, *(variable.name for variable in self.context.variables))
            ordered = rng.random() < 0.6
            graphs = training_graphs(
                test.graphs, body.types, taken, loss, self.step, ordered=ordered
            )
            test = replace(test, graphs=graphs)
        return test

    # --- the test ------------------------------------------------------------------------

    def test(self) -> UnbuiltTest:
        """The test of all graphs; most reads are observed."""
        graphs = tuple(Graph(name, tuple(body.nodes)) for name, body in self.generators.items())
        shown = {graph.name: [*_observable(graph.nodes)] for graph in graphs}
        runs = self.client
        keys = [f"{run.name}.{name}" for run in runs for name in shown[run.graph]]
        if len(runs) <= 1:
            keys = shown[graphs[0].name]
        return UnbuiltTest("training", self.context, graphs, observed(self.rng, keys), tuple(runs))


def _observable(nodes: Sequence[Node]) -> list[str]:
    """Values of a graph that outcomes may contain."""
    shown = []
    for node in nodes:
        if node.definition.kind is Kind.READ:
            shown.append(node.name)
        elif isinstance(node.attrs, LoopAttrs):
            shown.append(f"{node.name}.{node.attrs.carried[1]}")
    return shown
