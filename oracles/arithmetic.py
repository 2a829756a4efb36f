"""Arithmetic of each op: exact results for the reference oracle, bounds on magnitudes.

A model value is a flat tuple of ints: the rows of one lane, or a whole matrix
row-major (semantics.md, section 1). A tuple of one is a scalar and combines
with any other.

Every result, and every intermediate result that a float kernel could round,
must stay below 2**24 in magnitude. A test that violates this in some total order
is ill-formed: `ValueTooLarge`.

References
----------
The kernels' documentation (TensorFlow 2.21, raw ops); semantics.md, section 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING

from litmusfuzz.corpus.ops import (
    MAX_MAGNITUDE,
    AccumulatorUse,
    Kind,
    MomentumAttrs,
    RowsAttrs,
    SliceAttrs,
)
from litmusfuzz.corpus.pure.definition import Fails, Undefined
from litmusfuzz.oracles.errors import NoAllowedSet, OpFails
from litmusfuzz.oracles.errors import ValueTooLarge as ValueTooLarge

if TYPE_CHECKING:
    from collections.abc import Mapping

    from litmusfuzz.corpus.model import LitmusTest, Node
    from litmusfuzz.corpus.pure.definition import Call

Ints = tuple[int, ...]
Bound = Callable[[Sequence[int]], int]
"""Bound on the magnitude of a value by those of what it is computed from."""


def exact(value: Ints, node: Node) -> Ints:
    """Return `value`; raise `ValueTooLarge` if float32 could not hold it exactly."""
    for each in value:
        if not -MAX_MAGNITUDE < each < MAX_MAGNITUDE:
            raise ValueTooLarge(
                f"{node.name} ({node.op}) computes {each} in some total order; "
                "every magnitude must stay below 2**24"
            )
    return value


def _zip(f: Callable[[int, int], int], x: Ints, y: Ints) -> Ints:
    if len(x) != len(y):
        if len(x) == 1:
            x = x * len(y)
        else:
            y = y * len(x)
    return tuple(f(a, b) for a, b in zip(x, y, strict=True))


_BINARY: dict[str, Callable[[int, int], int]] = {
    "AddV2": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Mul": lambda a, b: a * b,
    "Maximum": max,
    "Minimum": min,
    "Less": lambda a, b: int(a < b),
    "Equal": lambda a, b: int(a == b),
    "ReluGrad": lambda gradient, feature: gradient if feature > 0 else 0,
}

_SCATTER: dict[str, Callable[[int, int], int]] = {
    "Update": lambda _, new: new,
    "Add": lambda old, new: old + new,
    "Sub": lambda old, new: old - new,
    "Mul": lambda old, new: old * new,
    "Min": min,
    "Max": max,
}


def pure(node: Node, inputs: Sequence[Ints], shapes: Sequence[tuple[int, ...]]) -> Ints:
    """Result of a pure node that has operands, and arithmetic of its own in each oracle.

    Parameters
    ----------
    inputs
        Values of its data inputs.
    shapes
        Their shapes; only MatMul needs them.
    """
    if node.op == "Identity":
        return inputs[0]
    if node.op == "Neg":
        return tuple(-x for x in inputs[0])
    if node.op == "Relu":
        return tuple(max(x, 0) for x in inputs[0])
    if node.op == "Select":
        condition, then, other = inputs
        if len(condition) == 1:
            condition = condition * len(then)
        return tuple(t if c else e for c, t, e in zip(condition, then, other, strict=True))
    if node.op == "MatMul":
        return _matmul(node, inputs, shapes)
    return exact(_zip(_BINARY[node.op], *inputs), node)


def called(node: Node, call: Call, inputs: Sequence[Ints]) -> Ints:
    """Result of a pure node that the op table defines.

    Raises
    ------
    OpFails, ValueTooLarge
        If it has none.
    """
    try:
        return call.evaluate(tuple(inputs))
    except Undefined as error:
        raise no_value(node, error) from None


def no_value(node: Node, error: Undefined) -> NoAllowedSet:
    """The error of a node that has no value in some total order."""
    kind = OpFails if isinstance(error, Fails) else ValueTooLarge
    where = f"{error.operand}: " if error.operand else ""
    return kind(f"{node.name} ({node.op}): {where}{error.message}, in some total order")


def evaluated(test: LitmusTest, node: Node, inputs: Sequence[Ints]) -> Ints:
    """Result of any pure node with operands."""
    if node.definition.meaning is not None:
        return called(node, test.call(node), inputs)
    return pure(node, inputs, [test.type_of(name).shape for name in node.inputs])


def _matmul(node: Node, inputs: Sequence[Ints], shapes: Sequence[tuple[int, ...]]) -> Ints:
    (a, b), ((n, k), (_, m)) = inputs, shapes
    out = []
    for i in range(n):
        for j in range(m):
            products = [a[i * k + x] * b[x * m + j] for x in range(k)]
            # A kernel may add them in any order: bound every partial sum.
            exact((sum(map(abs, products)),), node)
            out.append(sum(products))
    return tuple(out)


def gathered(node: Node, value: Ints, size: int) -> Ints:
    """Return the result of a read of a variable with that `value`.

    Parameters
    ----------
    size : int
        Ints in one row: 1, except in whole-matrix tests.
    """
    if isinstance(node.attrs, RowsAttrs):
        return tuple(v for row in node.attrs.indices for v in value[row * size : (row + 1) * size])
    return value


def written(node: Node, seen: Sequence[Ints], operands: Sequence[Ints], size: int) -> list[Ints]:
    """Return the values that a write or update stores in its variables.

    Parameters
    ----------
    seen
        Values that the update's reads saw, one for each variable; unused by a write.
    operands
        Values of its data inputs.
    size : int
        Ints in one row (see `gathered`).
    """
    op = node.op
    if op == "AssignVariableOp":
        return [operands[0]]
    if node.definition.accumulator is AccumulatorUse.STEP:
        return [operands[0]]
    if node.definition.accumulator is AccumulatorUse.APPLY:
        return _accumulated(node, seen, operands)
    if op == "AssignAddVariableOp":
        return [exact(_zip(_BINARY["AddV2"], seen[0], operands[0]), node)]
    if op == "AssignSubVariableOp":
        return [exact(_zip(_BINARY["Sub"], seen[0], operands[0]), node)]
    if op == "ResourceApplyGradientDescent":
        alpha, delta = operands
        step = exact(_zip(_BINARY["Mul"], alpha, delta), node)
        return [exact(_zip(_BINARY["Sub"], seen[0], step), node)]
    if isinstance(node.attrs, MomentumAttrs):
        return _momentum(node, seen, operands, nesterov=node.attrs.use_nesterov)
    return [_scattered(node, seen[0], operands[0], size)]


def _accumulated(node: Node, seen: Sequence[Ints], operands: Sequence[Ints]) -> list[Ints]:
    """Sum, count and step of an accumulator after a gradient, which may be stale.

    `operands` lacks the local step where no gradient is stale.
    """
    total, count, step = seen
    *local, gradient = operands
    if local and local[0] < step:
        return [*seen]
    return [exact(_zip(_BINARY["AddV2"], total, gradient), node), (count[0] + 1,), step]


def _momentum(
    node: Node, seen: Sequence[Ints], operands: Sequence[Ints], *, nesterov: bool
) -> list[Ints]:
    (var, accum), (lr, grad, momentum) = seen, operands

    def mul(x: Ints, y: Ints) -> Ints:
        return exact(_zip(_BINARY["Mul"], x, y), node)

    def add(x: Ints, y: Ints) -> Ints:
        return exact(_zip(_BINARY["AddV2"], x, y), node)

    def sub(x: Ints, y: Ints) -> Ints:
        return exact(_zip(_BINARY["Sub"], x, y), node)

    step = mul(lr, grad)
    if node.op == "ResourceApplyKerasMomentum":
        accum = sub(mul(accum, momentum), step)
        var = add(var, sub(mul(accum, momentum), step) if nesterov else accum)
    else:
        accum = add(mul(accum, momentum), grad)
        if nesterov:
            var = sub(var, add(step, mul(mul(accum, momentum), lr)))
        else:
            var = sub(var, mul(accum, lr))
    return [var, accum]


def _scattered(node: Node, seen: Ints, updates: Ints, size: int) -> Ints:
    value = list(seen)
    if isinstance(node.attrs, SliceAttrs):
        rows: Sequence[int] = node.attrs.rows
        combine = _SCATTER["Update"]
    else:
        assert isinstance(node.attrs, RowsAttrs)
        rows = node.attrs.indices
        combine = _SCATTER[node.op.removeprefix("ResourceScatter").removeprefix("Nd")]
    if len(updates) == 1:
        updates = updates * (len(rows) * size)
    for position, row in enumerate(rows):
        for lane in range(size):
            old, new = value[row * size + lane], updates[position * size + lane]
            value[row * size + lane] = exact((combine(old, new),), node)[0]
    return tuple(value)


def bound_of_result(node: Node, shapes: Sequence[tuple[int, ...]]) -> Bound:
    """Bound on a pure op's result and on each partial sum, by those on its inputs.

    Parameters
    ----------
    node : Node
        Its op has no `OpDef.meaning`.
    shapes
        Shapes of its inputs; only MatMul needs them.
    """
    if node.definition.compares:
        return lambda inputs: 1
    if node.op in ("AddV2", "Sub"):
        return sum
    if node.op == "Mul":
        return math.prod
    if node.op == "MatMul":
        terms = shapes[0][1]
        return lambda inputs: terms * math.prod(inputs)
    return max


def bound_of_stored(node: Node, seen: int) -> Bound:
    """Bound on what a write, update or enqueue stores, in any resource.

    Parameters
    ----------
    node : Node
    seen : int
        Number of resources. The bounds on their contents come first, also for a write, which does
        not use them; then those on the data inputs.
    """
    op = node.definition
    if op.accumulator is AccumulatorUse.APPLY:
        return lambda parts: max(parts[0] + parts[-1], parts[1] + 1, parts[2])
    if op.accumulator is AccumulatorUse.TAKE:
        return lambda parts: parts[2] + 1
    if op.accumulator is AccumulatorUse.STEP or op.kind in (Kind.WRITE, Kind.QUEUE):
        return itemgetter(seen)
    if node.op == "ResourceApplyGradientDescent":
        return lambda parts: parts[0] + parts[1] * parts[2]
    if isinstance(node.attrs, MomentumAttrs):
        return _momentum_bound
    repeats = 1
    if isinstance(node.attrs, RowsAttrs):
        repeats = max(node.attrs.indices.count(i) for i in node.attrs.indices)
    if node.op == "ResourceScatterMul":
        return lambda parts: int(parts[0] * max(1, parts[1]) ** repeats)
    # The rest have one resource and one data input; they add, subtract, or store one of the two.
    return sum if repeats == 1 else lambda parts: parts[0] + repeats * parts[1]


def _momentum_bound(parts: Sequence[int]) -> int:
    var, accum, lr, grad, momentum = parts
    accum = accum * momentum + max(1, lr) * grad
    return var + lr * grad + max(1, lr) * accum * max(1, momentum)


def growth(node: Node, constants: Mapping[str, int]) -> int | None:
    """How many times the largest magnitude before it an instance of a node makes, at most.

    `constants` has the magnitudes of constants by name. None where only `bound_of_result` and
    `bound_of_stored` say it.
    """
    op = node.definition
    if op.meaning is not None or op.matrices or op.computed or op.accumulator is not None:
        return None
    if op.kind is Kind.PURE:
        if node.op in ("AddV2", "Sub"):
            return 2
        if node.op != "Mul":
            return 1
        known = [constants[name] for name in node.inputs if name in constants]
        return max(1, min(known)) if known else None
    if op.kind is not Kind.UPDATE:
        return 1
    operands = []
    for role, name in zip(op.operands, node.inputs, strict=True):
        multiplies = role in op.scalars or node.op == "ResourceScatterMul"
        if multiplies and name not in constants:
            return None
        operands.append(constants[name] if multiplies else 1)
    # Of all others it is a multiple.
    return bound_of_stored(node, len(op.roles))([1] * len(op.roles) + operands)
