"""The family `training`: steps of a small model, by workers that race.

A model is one neuron for each element of its weights, of one layer or two, or a layer
of matrices; its gradients are those of `litmusfuzz.fuzz.passes.autodiff`. Weights are small
integers and all else is linear in pieces, so that every value is exact. Who applies the
gradients is one of five plans:

- `loop`: a worker in a loop, one iteration after the other or all at once;
- `asynchronous`: workers that read, compute and change the weights as they come, or one
  at a time, in a critical section;
- `synchronous`: workers that put gradients into a queue, and a chief that takes as many
  as it wants, fewer than there are where it has backup workers, and applies their sum;
- `tokens`: two steps of that; the second begins with a token from the chief, but a
  straggler waits for none, or takes no second step;
- `stale`: a chief that applies each gradient that it takes by itself, whatever the
  weights were from which it was computed.

Now and then a worker dies between two effects of its step, and what waits for it waits
for ever. Beside them runs who reads the weights, to evaluate, or writes them, to restore.

References
----------
DEVICES, "Automatic differentiation", "Concurrent execution, FT, stragglers".
"""

from __future__ import annotations

from dataclasses import replace
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
from litmusfuzz.fuzz.generators.context import BodyGenerator, Context
from litmusfuzz.fuzz.generators.structured import observed, small
from litmusfuzz.fuzz.passes.autodiff import (
    RULES,
    Step,
    gradients,
    training_step,
    with_training_step,
)

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from litmusfuzz.fuzz.support import Support

PLANS: Final = ("loop", "asynchronous", "asynchronous", "synchronous", "tokens", "stale")
_DESCENT: Final = "ResourceApplyGradientDescent"


def generate(rng: random.Random, support: Support) -> LitmusTest:
    """One random test; all choices come from `rng`."""
    # Chosen once, for all tries: some plans are more often too large than others.
    return small(rng, support, partial(_attempt, plan=rng.choice(PLANS)), rng.randint(9, 18))


def _attempt(
    rng: random.Random, support: Support, events: int, *, arithmetic: bool, plan: str
) -> LitmusTest:
    training = _Training(rng, support, events, gentle=not arithmetic)
    if plan == "loop":
        return training.loop()
    return training.asynchronous() if plan == "asynchronous" else training.synchronous(plan)


class _Training:
    """One test while it is drawn.

    Parameters
    ----------
    rng : random.Random
    support : Support
    most : int
        Events that the workers may have, about.
    gentle : bool
        Whether values must hardly grow: gradients are then signs.
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
        self.rows: tuple[int, ...] = ()  # what is looked up, if not all
        if shape and layers == 1 and not self.matrices and rng.random() < 0.3:
            self.rows = tuple(rng.sample(range(shape[0]), rng.randint(1, shape[0])))
        rules = RULES if dtype in FLOATS else [op for op in RULES if op != _DESCENT]
        rules = [op for op in rules if op in support.ops] or rules
        self.step = Step(rng.choice(rules), 1 if gentle else rng.choice((1, 1, 2)))
        self.in_turn = rng.random() < 0.75  # a step's reads, and its changes
        self.activation = rng.choice(("Relu", "Relu", "Maximum", "Minimum", "Identity"))
        self.blocks: dict[str, BodyGenerator] = {}
        self.client: list[Run] = []
        self.fresh = FreshNames("WVQPTM").like

    # --- the model -----------------------------------------------------------------------

    def literal(self, shape: tuple[int, ...], values: Sequence[int]) -> Any:
        """One int, or for a matrix each element's."""
        if not (self.matrices and shape):
            return self.rng.choice(values)
        return tuple(
            tuple(self.rng.choice(values) for _ in range(shape[1])) for _ in range(shape[0])
        )

    def constant(self, block: BodyGenerator, shape: tuple[int, ...], values: Sequence[int]) -> str:
        """A constant of the model's dtype."""
        return block.constant(TensorType(self.context.dtype, shape), self.literal(shape, values))

    def forward(
        self, block: BodyGenerator, after: tuple[str, ...], counter: str = ""
    ) -> tuple[list[str], str]:
        """Read the weights and compute a loss, on data of its own; the reads, and the loss.

        Parameters
        ----------
        counter : str
            A scalar to make the data from, so that each iteration has others.
        """
        rng = self.rng
        reads: list[str] = []
        for variable in self.context.variables:
            waits = (*after, *reads[-1:]) if self.in_turn else after
            kind = variable.type
            if self.rows:
                kind = replace(kind, shape=(len(self.rows), *kind.shape[1:]))
            name = block.add(
                self.context.fresh("r"),
                "ResourceGather" if self.rows else "ReadVariableOp",
                resources=(variable.name,),
                after=waits,
                attrs=RowsAttrs(self.rows) if self.rows else None,
                kind=kind,
            )
            reads.append(name)
        data = (-1, 1) if self.gentle else (-1, 1, 1, 2)
        kind = block.types[reads[0]]
        if self.matrices:
            x = self.constant(block, (1, kind.shape[0]), data)
            kind = replace(kind, shape=(1, kind.shape[1]))
            z = block.pure("MatMul", (x, reads[0]), kind)
        else:
            x = self.constant(block, (), data)
            if counter and rng.random() < 0.7:
                x = block.pure("AddV2", (counter, x), self.context.scalar)
            z = block.pure("Mul", (reads[0], x), kind)
        if len(reads) == 2 and self.matrices:
            kind = replace(kind, shape=(1, 1))
            z = block.pure("MatMul", (self.activated(block, z), reads[1]), kind)
        elif len(reads) == 2 and self.second == "layer":
            z = block.pure("Mul", (self.activated(block, z), reads[1]), kind)
        elif len(reads) == 2:
            z = self.activated(block, block.pure("AddV2", (z, reads[1]), kind))
        elif rng.random() < 0.7:
            z = self.activated(block, z)
        error = block.pure("Sub", (z, self.constant(block, (), (-2, -1, 3, 4, 5))), kind)
        if self.gentle or rng.random() < 0.2:
            negative = block.pure("Neg", (error,), kind)
            return reads, block.pure("Maximum", (error, negative), kind)
        return reads, block.pure("Mul", (error, error), kind)

    def activated(self, block: BodyGenerator, value: str) -> str:
        """A function of a value that is linear in pieces."""
        operands: tuple[str, ...] = (value,)
        if self.activation in ("Maximum", "Minimum"):
            level = self.constant(block, (), (0, 1, 3))
            operands = (value, level) if self.rng.random() < 0.7 else (level, value)
        return block.pure(self.activation, operands, block.types[value])

    # --- who trains ----------------------------------------------------------------------

    def block(self, graph: str) -> BodyGenerator:
        """The graph of that name, so far."""
        return self.blocks.setdefault(graph, BodyGenerator(self.context))

    def learn(self, block: BodyGenerator, after: tuple[str, ...]) -> tuple[str, ...]:
        """One step that changes the weights itself; its changes."""
        _, loss = self.forward(block, after)
        added, updates = training_step(block.nodes, block.types, loss, self.step, self.fresh)
        previous: tuple[str, ...] = ()
        for node in added:
            if node.name in updates:
                block.nodes.append(replace(node, after=previous))
                previous = (node.name,) if self.in_turn else ()
            else:
                block.nodes.append(node)
        return tuple(updates)

    def contribute(self, block: BodyGenerator, after: tuple[str, ...]) -> tuple[str, ...]:
        """One step that puts its gradients into queues; the puts."""
        reads, loss = self.forward(block, after)
        added, found = gradients(block.nodes, block.types, loss, reads, self.fresh)
        block.nodes += added
        puts: list[str] = []
        for read, queue in zip(reads, self.context.queues, strict=False):
            waits = tuple(puts[-1:]) if self.in_turn else ()
            put = self.context.fresh("e")
            block.add(put, "QueueEnqueueV2", (found[read],), resources=(queue.name,), after=waits)
            puts.append(put)
        return tuple(puts)

    def dies(self, block: BodyGenerator, begin: int) -> None:
        """Leave off the last effects of what was drawn from node `begin` on, one at least."""
        effects = [n for n, node in enumerate(block.nodes) if n >= begin and node.resources]
        if len(effects) >= 2:
            del block.nodes[self.rng.choice(effects[1:]) :]

    def company(self) -> None:
        """Somebody who reads the weights, or writes them, beside those who train."""
        rng = self.rng
        block = self.block("main" if "main" in self.blocks else "other")
        if "main" not in self.blocks:
            self.client.append(Run("other", "other"))
        previous: tuple[str, ...] = ()
        restores = rng.random() < 0.45
        for variable in self.context.variables:
            if restores:
                value = self.constant(block, variable.shape, (3, 4, 5))
                name = block.add(
                    self.context.fresh("w"),
                    "AssignVariableOp",
                    (value,),
                    resources=(variable.name,),
                    after=previous,
                )
            else:
                name = self.look(block, variable, previous)
            previous = (name,) if self.in_turn else ()

    def look(self, block: BodyGenerator, variable: Variable, after: tuple[str, ...]) -> str:
        """Read all of a variable."""
        return block.add(
            self.context.fresh("r"),
            "ReadVariableOp",
            resources=(variable.name,),
            after=after,
            kind=variable.type,
        )

    # --- plans ---------------------------------------------------------------------------

    def asynchronous(self) -> LitmusTest:
        """Workers that change the weights as they come."""
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
                if together or graph not in self.blocks:
                    self.worker(
                        self.block(graph), previous if together else (), locked=locked, dying=last
                    )
                if together:
                    previous = (self.blocks["main"].nodes[-1].name,)
                else:
                    run = Run(f"{'abc'[worker]}{step}", graph, previous)
                    self.client.append(run)
                    previous = (run.name,)
        if rng.random() < 0.5:
            self.company()
        return self.test()

    def worker(
        self, block: BodyGenerator, after: tuple[str, ...], *, locked: bool, dying: bool
    ) -> None:
        """One step of an asynchronous worker; what ends it is the block's last node."""
        begin = len(block.nodes)
        self.learn(block, after)
        if dying:
            self.dies(block, begin)
        if locked:
            members = tuple(node.name for node in block.nodes[begin:] if node.resources)
            attrs = SectionAttrs(members)
            block.add(self.context.fresh("s"), "CriticalSection", resources=("M",), attrs=attrs)

    def synchronous(self, plan: str) -> LitmusTest:
        """Workers that put gradients into queues, and a chief that applies them."""
        rng = self.rng
        self.rows = ()
        variables = self.context.variables
        workers = 3 if plan != "tokens" and self.most >= 12 and rng.random() < 0.4 else 2
        steps = rounds = 1  # of each worker, and of the chief
        wanted = rng.choice((workers, workers - 1))
        straggler = -1  # who waits for no token
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
            block = self.block(graph)
            previous: tuple[str, ...] = ()
            for step in range(1 if slow and worker == straggler else steps):
                begin = len(block.nodes)
                if step and worker != straggler:
                    take = self.context.fresh("t")
                    block.add(take, "QueueDequeueV2", resources=("T",), after=previous)
                    previous = (take,)
                previous = self.contribute(block, previous)
                if death and worker == workers - 1 and step == steps - 1:
                    self.dies(block, begin)
            if not together:
                self.client.append(Run("abc"[worker], graph))
        if not together:
            self.client.append(Run("chief", "chief"))
        tokens = workers - (straggler >= 0) if plan == "tokens" else 0
        self.chief(self.block("main" if together else "chief"), wanted, rounds, tokens)
        if rounds == 1 and rng.random() < 0.4:
            self.company()
        return self.test()

    def chief(self, block: BodyGenerator, wanted: int, rounds: int, tokens: int) -> None:
        """In each round take gradients and apply their sum; then give tokens, if there are any."""
        before: tuple[str, ...] = ()
        for number in range(rounds):
            changes: list[str] = []
            for variable, queue in zip(self.context.variables, self.context.queues, strict=False):
                waits = (*before, *changes[-1:])
                total = ""
                for _ in range(wanted):
                    take = self.context.fresh("q")
                    block.add(
                        take,
                        "QueueDequeueV2",
                        resources=(queue.name,),
                        after=waits,
                        kind=variable.type,
                    )
                    waits = (take,)
                    total = block.pure("AddV2", (total, take), variable.type) if total else take
                changes.append(self.apply(block, variable, total))
            before = tuple(changes)
            for _ in range(tokens if number < rounds - 1 else 0):
                token = block.constant(TensorType("int32", ()), 1)
                name = self.context.fresh("e")
                block.add(name, "QueueEnqueueV2", (token,), resources=("T",), after=before)
                before = (name,)

    def apply(self, block: BodyGenerator, variable: Variable, gradient: str) -> str:
        """Change a variable by a gradient that came out of a queue."""
        operands: tuple[str, ...] = (gradient,)
        if self.step.op == _DESCENT:
            operands = (self.constant(block, (), (1,)), gradient)
        elif self.step.op == "AssignAddVariableOp":
            operands = (block.pure("Neg", operands, variable.type),)
        elif self.step.op == "AssignVariableOp":
            read = self.look(block, variable, operands)
            operands = (block.pure("Sub", (read, gradient), variable.type),)
        name = self.context.fresh("w")
        return block.add(name, self.step.op, operands, resources=(variable.name,))

    def loop(self) -> LitmusTest:
        """One worker or two that train in loops."""
        rng = self.rng
        cost = 3 * len(self.context.variables)
        sizes = [(w, s) for w, s in ((1, 2), (1, 3), (2, 2)) if w * s * cost <= self.most]
        workers, steps = rng.choice(sizes or [(1, 2)])
        block = self.block("main")
        losses: list[str] = []
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
            inputs = (block.constant(scalar, 0), block.constant(kind, 0))
            attrs = LoopAttrs(
                (counter, last),
                (),
                Body(tuple(condition.nodes), (more,)),
                Body(tuple(body.nodes), (following, reads[0])),
                rng.choice((1, 2, 10)),
            )
            name = block.add(self.context.fresh("loop"), "While", inputs, attrs=attrs)
            block.types[f"{name}.{last}"] = kind
            losses.append(loss)
        if workers == 1 or rng.random() < 0.3:
            self.company()
        test = self.test()
        for loss in losses:
            test = with_training_step(test, loss, self.step, ordered=rng.random() < 0.6)
        return test

    # --- the test ------------------------------------------------------------------------

    def test(self) -> LitmusTest:
        """What was drawn; every read is observed, mostly."""
        graphs = tuple(Graph(name, tuple(block.nodes)) for name, block in self.blocks.items())
        shown = {graph.name: [*_shown(graph.nodes)] for graph in graphs}
        runs = self.client
        keys = [f"{run.name}.{name}" for run in runs for name in shown[run.graph]]
        if len(runs) <= 1:
            keys = shown[graphs[0].name]
        return LitmusTest(
            "training",
            self.context.variables,
            graphs,
            observed(self.rng, keys),
            mutexes=self.context.mutexes,
            queues=self.context.queues,
            client=tuple(runs),
        )


def _shown(nodes: Sequence[Node]) -> list[str]:
    """What an outcome may have of a graph."""
    shown = []
    for node in nodes:
        if node.definition.kind is Kind.READ:
            shown.append(node.name)
        elif isinstance(node.attrs, LoopAttrs):
            shown.append(f"{node.name}.{node.attrs.carried[1]}")
    return shown
