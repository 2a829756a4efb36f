"""Implements each op of the model with JAX.

Values are integers below 2**24 (semantics.md, section 1), so that the order of additions
does not matter. Integers wrap around.

References
----------
The kernels' documentation (TensorFlow 2.21, raw ops); semantics.md, section 2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import jax.numpy as jnp
from jax import lax

from litmusfuzz.corpus.ops import ConstAttrs, Kind, MomentumAttrs, RowsAttrs, SliceAttrs

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

_SCATTERS: Final = {"Add": "add", "Mul": "multiply", "Min": "min", "Max": "max"}


def indices_of(node: Node) -> tuple[int, ...] | None:
    """The rows that a sparse op reads or updates."""
    if isinstance(node.attrs, RowsAttrs):
        return node.attrs.indices
    return tuple(node.attrs.rows) if isinstance(node.attrs, SliceAttrs) else None


def apply(
    node: Node, operands: Sequence[jax.Array], bound: jax.Array | None = None
) -> tuple[jax.Array, ...]:
    """The value of a node without bodies, or the new contents of each of its variables.

    Parameters
    ----------
    node : Node
    operands : sequence of jax.Array
        For a read or an update, first the contents of its variables.
    bound : jax.Array, optional
        A constant's value, or the rows of a sparse op, shape ``(n,)``, int32.
    """
    kind = node.definition.kind
    if isinstance(node.attrs, ConstAttrs):
        assert bound is not None
        return (bound,)
    if kind is Kind.WRITE:
        return (operands[0],)
    if kind is Kind.READ:
        contents = operands[0]
        if bound is not None:
            contents = contents.at[bound].get(mode="promise_in_bounds")
        return (contents,)
    if kind is Kind.UPDATE:
        return _update(node, operands, bound)
    return (_PURE[node.op](*operands),)


def _update(
    node: Node, operands: Sequence[jax.Array], rows: jax.Array | None
) -> tuple[jax.Array, ...]:
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
    if node.op == "ResourceApplyKerasMomentum":
        accum = accum * momentum - lr * grad
        return var + (accum * momentum - lr * grad if nesterov else accum), accum
    accum = accum * momentum + grad
    return var - (grad * lr + accum * momentum * lr if nesterov else accum * lr), accum


def _scatter(node: Node, contents: jax.Array, rows: jax.Array, updates: jax.Array) -> jax.Array:
    how = node.op.removeprefix("ResourceScatter").removeprefix("Nd")
    if how == "Sub":
        how, updates = "Add", -updates
    scatter = getattr(contents.at[rows], _SCATTERS.get(how, "set"))
    scattered: jax.Array = scatter(updates, mode="promise_in_bounds")
    return scattered
