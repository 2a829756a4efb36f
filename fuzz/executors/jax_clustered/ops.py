"""Computes with JAX the value of an op, or the contents that it leaves in its variables.

`litmusfuzz.fuzz.executors.jax_clustered.functions` traces these functions and compiles the trace,
of one op or of a whole cluster. The tables here have the ops that `JaxClusteredExecutor.support`
names; that executor refuses all others.

Every value of a test is an integer below 2**24 in magnitude, in every total order (semantics.md,
section 1). So float32 is exact, and the order in which XLA adds does not matter. An order that the
model forbids may give larger values: integers then wrap around.

References
----------
The kernels' documentation (TensorFlow 2.21, raw ops); semantics.md, section 2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import jax.numpy as jnp
from jax import lax

from litmusfuzz.corpus.ops import Kind, MomentumAttrs, RowsAttrs, SliceAttrs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import jax

    from litmusfuzz.corpus.model import Node

_PURE: Final[dict[str, Callable[..., jax.Array]]] = {
    "Identity": lambda x: x,
    "Neg": jnp.negative,
    "Relu": lambda x: jnp.maximum(x, 0),
    "AddV2": jnp.add,
    "Sub": jnp.subtract,
    "Mul": jnp.multiply,
    "Maximum": jnp.maximum,
    "Minimum": jnp.minimum,
    "Less": jnp.less,
    "Equal": jnp.equal,
    "Select": jnp.where,
    "ReluGrad": lambda gradients, features: jnp.where(features > 0, gradients, 0),
    # By default a GPU multiplies float32 with fewer bits.
    "MatMul": lambda a, b: jnp.matmul(a, b, precision=lax.Precision.HIGHEST),
}

_IN_BOUNDS: Final = "promise_in_bounds"
"""JAX need not check rows: a `LitmusTest` is valid only if its variables have them."""
_SCATTERS: Final = {
    "Update": "set",
    "Add": "add",
    "Mul": "multiply",
    "Min": "min",
    "Max": "max",
}
"""Methods of `jax.Array.at`, by the end of the op's name: ResourceScatterAdd, ResourceScatterNdAdd.
For Sub, `_scatter` adds the negated updates."""


def rows_of(node: Node) -> tuple[int, ...] | None:
    """The rows that a node reads or updates; None if it takes whole variables or none."""
    if isinstance(node.attrs, RowsAttrs):
        return node.attrs.indices
    return tuple(node.attrs.rows) if isinstance(node.attrs, SliceAttrs) else None


def value_or_contents(
    node: Node, operands: Sequence[jax.Array], rows: jax.Array | None = None
) -> tuple[jax.Array, ...]:
    """The value of a node, or the new contents of each variable that it writes.

    Parameters
    ----------
    node : Node
        A read, write, update, or pure op; no constant, which has a value already.
    operands : sequence of jax.Array
        For a read or an update, first the contents of its variables.
    rows : jax.Array, optional
        `rows_of` the node, shape ``(n,)``, int32; None exactly if `rows_of` is None. It is an
        argument of the compiled function, so that tests that differ only in their rows share the
        function.
    """
    assert (rows is None) == (rows_of(node) is None), node.op
    kind = node.definition.kind
    if kind is Kind.WRITE:
        return (operands[0],)
    if kind is Kind.READ:
        contents = operands[0]
        if rows is None:
            return (contents,)
        return (contents.at[rows].get(mode=_IN_BOUNDS),)
    if kind is Kind.UPDATE:
        return _update(node, operands, rows)
    return (_PURE[node.op](*operands),)


def _update(
    node: Node, operands: Sequence[jax.Array], rows: jax.Array | None
) -> tuple[jax.Array, ...]:
    """The new contents of each variable of an update."""
    if isinstance(node.attrs, MomentumAttrs):
        return _momentum(node, *operands, nesterov=node.attrs.use_nesterov)
    contents, *values = operands
    if rows is not None:
        return (_scatter(node, contents, rows, values[0]),)
    if node.op == "AssignAddVariableOp":
        return (contents + values[0],)
    if node.op == "AssignSubVariableOp":
        return (contents - values[0],)
    assert node.op == "ResourceApplyGradientDescent", node.op
    alpha, delta = values
    return (contents - alpha * delta,)


def _momentum(
    node: Node,
    var: jax.Array,
    accum: jax.Array,
    lr: jax.Array,
    grad: jax.Array,
    momentum: jax.Array,
    *,
    nesterov: bool,
) -> tuple[jax.Array, ...]:
    """The new contents of the variable and of its accumulator.

    With Nesterov's momentum, the variable takes a step further, along the new accumulator.
    """
    if node.op == "ResourceApplyKerasMomentum":
        accum = accum * momentum - lr * grad
        if nesterov:
            return var + (accum * momentum - lr * grad), accum
        return var + accum, accum
    accum = accum * momentum + grad
    if nesterov:
        return var - (grad * lr + accum * momentum * lr), accum
    return var - accum * lr, accum


def _scatter(node: Node, contents: jax.Array, rows: jax.Array, updates: jax.Array) -> jax.Array:
    """The contents with updates scattered to rows; a slice is assigned as its rows are."""
    if isinstance(node.attrs, SliceAttrs):
        ending = "Update"
    else:
        ending = node.op.removeprefix("ResourceScatter").removeprefix("Nd")
    if ending == "Sub":
        ending, updates = "Add", -updates
    scatter = getattr(contents.at[rows], _SCATTERS[ending])
    scattered: jax.Array = scatter(updates, mode=_IN_BOUNDS)
    return scattered
