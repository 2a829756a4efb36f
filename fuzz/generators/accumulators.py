"""Family `accumulators`: gradients, takes and steps that race on accumulators.

A test is one of two kinds:

- Chains of ops on one or two accumulators and on variables, in a random order. Local steps are
  small, so that some gradients are stale in some orders only.
- Synchronous training: replicas take tokens from a queue, each a local step, and apply a gradient
  with it; a chief takes the sum of so many gradients, updates the variable, and puts tokens of the
  next step into the queue.

References
----------
DEVICES, "Synchronous training"; TensorFlow's ``SyncReplicasOptimizer``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model import Accumulator, Graph, LitmusTest, Node, Queue, Variable
from litmusfuzz.corpus.ops import FLOATS, ConstAttrs
from litmusfuzz.fuzz.generators.family import NotGenerated

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from litmusfuzz.fuzz.support import Support

_APPLY = "ResourceAccumulatorApplyGradient"
_TAKE = "ResourceAccumulatorTakeGradient"
_COUNT = "ResourceAccumulatorNumAccumulated"
_STEP = "ResourceAccumulatorSetGlobalStep"
_TRIES: Final = 8
"""Tests generated until one races; the last one is taken in any case."""
NEEDED: Final = frozenset(
    {
        *(_APPLY, _TAKE, _COUNT, _STEP, "Const"),
        *("ReadVariableOp", "AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp"),
    }
)
"""Ops that each test may have."""
_WEIGHTS: Final = {"apply": 8, "take": 4, "count": 4, "step": 2, "read": 1, "write": 1}
"""How often an op of a chain is of each kind."""


def generate(rng: random.Random, support: Support) -> LitmusTest:
    """Generate a test of the family within a support; all choices come from `rng`."""
    floats = [each for each in FLOATS if each in support.dtypes]
    if not floats:
        raise NotGenerated("family accumulators: the support lacks floats")
    dtype = rng.choice(floats)
    shape = support.nearest(rng.choice(((), (), (2,), (2, 3))))
    tokens = {"queues"} <= support.features and "int64" in support.dtypes
    if tokens and rng.random() < 0.2:
        return _synchronous(rng, dtype, shape)
    test = _chains(rng, dtype, shape)
    for _ in range(_TRIES):
        if _races(test):
            break
        test = _chains(rng, dtype, shape)
    return test


def _races(test: LitmusTest) -> bool:
    """True if a gradient and an observed op on the same accumulator are in different chains."""
    first: dict[str, str] = {}  # by op: the first one of its chain
    for node in test.nodes:
        if node.resources:
            first[node.name] = first[node.after[0]] if node.after else node.name
    return any(
        a.op == _APPLY
        and b.op in (_TAKE, _COUNT)
        and a.resources == b.resources
        and first[a.name] != first[b.name]
        for a in test.nodes
        for b in test.nodes
    )


@dataclass
class _Writer:
    """The nodes of a test, chain by chain; each node of a chain follows the one before."""

    dtype: str
    shape: tuple[int, ...]
    nodes: list[Node] = field(default_factory=list)
    observed: list[str] = field(default_factory=list)
    last: tuple[str, ...] = ()
    """The last op of the chain; () begins another chain."""

    def number(self, value: int, dtype: str = "", shape: tuple[int, ...] = ()) -> str:
        """Add a constant: of a gradient's type, or a scalar of another dtype."""
        attrs = ConstAttrs(dtype or self.dtype, shape if dtype else self.shape, value)
        name = f"c{len(self.nodes)}"
        self.nodes.append(Node(name, "Const", attrs=attrs))
        return name

    def op(self, op: str, resource: str, *inputs: str, observe: bool = False) -> str:
        """Add an op to the chain, after the one before."""
        name = f"{'r' if observe else 'n'}{len(self.nodes)}"
        self.nodes.append(Node(name, op, inputs, (resource,), self.last))
        self.last = (name,)
        if observe:
            self.observed.append(name)
        return name


def _chains(rng: random.Random, dtype: str, shape: tuple[int, ...]) -> LitmusTest:
    """A test of two or three chains of ops on accumulators and on a variable."""
    writer = _Writer(dtype, shape)
    names = ("A", "B")[: rng.choice((1, 1, 1, 2))]
    value = 1
    for _ in range(rng.choice((2, 2, 2, 3))):
        writer.last = ()
        for _ in range(rng.choice((1, 1, 2, 2))):
            name = rng.choice(names)
            kind = rng.choices(tuple(_WEIGHTS), tuple(_WEIGHTS.values()))[0]
            if kind == "apply":
                local = writer.number(rng.choice((0, 0, 1, 2)), "int64")
                writer.op(_APPLY, name, local, writer.number(value))
                value *= 2
            elif kind == "take":
                required = writer.number(rng.choice((1, 1, 2, 3)), "int32")
                writer.op(_TAKE, name, required, observe=True)
            elif kind == "count":
                writer.op(_COUNT, name, observe=True)
            elif kind == "step":
                writer.op(_STEP, name, writer.number(rng.choice((0, 1, 1, 2)), "int64"))
            elif kind == "read":
                writer.op("ReadVariableOp", "X", observe=True)
            else:
                writer.op("AssignVariableOp", "X", writer.number(value))
                value *= 2
    return LitmusTest(
        "accumulators",
        (Variable("X", dtype, shape),),
        (Graph("main", tuple(writer.nodes)),),
        tuple(writer.observed),
        accumulators=tuple(Accumulator(each, dtype, shape) for each in names),
    )


def _synchronous(rng: random.Random, dtype: str, shape: tuple[int, ...]) -> LitmusTest:
    """One round, in which the chief needs all gradients but one."""
    gradients = [[value] for value in rng.sample(range(1, 64), 3)]
    return synchronous(gradients, 2, dtype, shape, observe=True)


def synchronous(
    gradients: Sequence[Sequence[int]],
    required: int,
    dtype: str,
    shape: tuple[int, ...],
    *,
    observe: bool,
) -> LitmusTest:
    """Synchronous training of the variable W, at the learning rate 1.

    Parameters
    ----------
    gradients : sequence of sequence of int
        Of each replica, one after another. All have as many: each round of the chief takes
        `required` of them.
    required : int
        Gradients that the chief takes together; as many tokens go into the queue.
    dtype, shape
        Of W and of the gradients.
    observe : bool
        Observe the sums that the chief takes.
    """
    writer = _Writer(dtype, shape)
    for replica in gradients:
        writer.last = ()
        for gradient in replica:
            token = writer.op("QueueDequeueV2", "Q")
            writer.op(_APPLY, "A", token, writer.number(gradient))
    writer.last = ()
    one, enough = writer.number(1, "int64"), writer.number(required, "int32")
    for _ in gradients[0]:
        total = writer.op(_TAKE, "A", enough, observe=observe)
        writer.op("AssignSubVariableOp", "W", total)
        writer.op("AssignAddVariableOp", "S", one)
        step = writer.op("ReadVariableOp", "S")
        for _ in range(required):
            writer.op("QueueEnqueueV2", "Q", step)
    tokens = len(gradients)
    capacity = tokens + required * len(gradients[0])
    return LitmusTest(
        "accumulators",
        (Variable("W", dtype, shape), Variable("S", "int64", ())),
        (Graph("main", tuple(writer.nodes)),),
        tuple(writer.observed),
        queues=(Queue("Q", "int64", (), capacity, (0,) * tokens),),
        accumulators=(Accumulator("A", dtype, shape),),
    )
