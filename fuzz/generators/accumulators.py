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
from typing import TYPE_CHECKING

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
NEEDED = frozenset(
    {
        *(_APPLY, _TAKE, _COUNT, _STEP, "Const"),
        *("ReadVariableOp", "AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp"),
    }
)
"""Ops that each test may have."""


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


_TRIES = 8


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

    def number(self, value: int, dtype: str = "", shape: tuple[int, ...] = ()) -> str:
        """A constant: of a gradient's type, or a scalar of another."""
        attrs = ConstAttrs(dtype or self.dtype, shape if dtype else self.shape, value)
        name = f"c{len(self.nodes)}"
        self.nodes.append(Node(name, "Const", attrs=attrs))
        return name

    def op(self, op: str, resource: str, *inputs: str, observe: bool = False) -> str:
        """An op of the chain, after the one before."""
        name = f"{'r' if observe else 'n'}{len(self.nodes)}"
        self.nodes.append(Node(name, op, inputs, (resource,), self.last))
        self.last = (name,)
        if observe:
            self.observed.append(name)
        return name


def _chains(rng: random.Random, dtype: str, shape: tuple[int, ...]) -> LitmusTest:
    made = _Writer(dtype, shape)
    names = ("A", "B")[: rng.choice((1, 1, 1, 2))]
    value = 1
    for _ in range(rng.choice((2, 2, 2, 3))):
        made.last = ()
        for _ in range(rng.choice((1, 1, 2, 2))):
            name = rng.choice(names)
            kind = rng.choices(("apply", "take", "count", "step", "read", "write"), _WEIGHTS)[0]
            if kind == "apply":
                local = made.number(rng.choice((0, 0, 1, 2)), "int64")
                made.op(_APPLY, name, local, made.number(value))
                value *= 2
            elif kind == "take":
                required = made.number(rng.choice((1, 1, 2, 3)), "int32")
                made.op(_TAKE, name, required, observe=True)
            elif kind == "count":
                made.op(_COUNT, name, observe=True)
            elif kind == "step":
                made.op(_STEP, name, made.number(rng.choice((0, 1, 1, 2)), "int64"))
            elif kind == "read":
                made.op("ReadVariableOp", "X", observe=True)
            else:
                made.op("AssignVariableOp", "X", made.number(value))
                value *= 2
    return LitmusTest(
        "accumulators",
        (Variable("X", dtype, shape),),
        (Graph("main", tuple(made.nodes)),),
        tuple(made.observed),
        accumulators=tuple(Accumulator(each, dtype, shape) for each in names),
    )


_WEIGHTS = (8, 4, 4, 2, 1, 1)
"""Of an apply, a take, a count, a step, a read and a write."""


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
        Of each replica, one after another; as many rounds of the chief as of a replica.
    required : int
        Gradients that the chief takes together; as many tokens go into the queue.
    dtype, shape
        Of W and of the gradients.
    observe : bool
        Observe the sums that the chief takes.
    """
    made = _Writer(dtype, shape)
    for replica in gradients:
        made.last = ()
        for gradient in replica:
            token = made.op("QueueDequeueV2", "Q")
            made.op(_APPLY, "A", token, made.number(gradient))
    made.last = ()
    one, enough = made.number(1, "int64"), made.number(required, "int32")
    for _ in gradients[0]:
        total = made.op(_TAKE, "A", enough, observe=observe)
        made.op("AssignSubVariableOp", "W", total)
        made.op("AssignAddVariableOp", "S", one)
        step = made.op("ReadVariableOp", "S")
        for _ in range(required):
            made.op("QueueEnqueueV2", "Q", step)
    tokens = len(gradients)
    capacity = tokens + required * len(gradients[0])
    return LitmusTest(
        "accumulators",
        (Variable("W", dtype, shape), Variable("S", "int64", ())),
        (Graph("main", tuple(made.nodes)),),
        tuple(made.observed),
        queues=(Queue("Q", "int64", (), capacity, (0,) * tokens),),
        accumulators=(Accumulator("A", dtype, shape),),
    )
