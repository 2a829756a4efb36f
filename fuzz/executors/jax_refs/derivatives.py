"""Gradients of a program, by each of JAX's ways to differentiate.

Each way gets a function from arrays to its floats, and to all values beside them; the arrays to
differentiate by; and the weights of the floats. It returns the gradients of the weighted sum, and
the values. All ways give the same integers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from litmusfuzz.fuzz.executors.protocol import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Arrays = dict[str, Any]
    Function = Callable[[Arrays], tuple[Arrays, Arrays]]


def _vjp(function: Function, by: Arrays, weights: Arrays) -> tuple[Arrays, Arrays]:
    _, pulled, values = jax.vjp(function, by, has_aux=True)
    (gradients,) = pulled(jax.tree.map(jnp.asarray, weights))
    return gradients, values


def _accumulated(function: Function, by: Arrays, weights: Arrays) -> tuple[Arrays, Arrays]:
    """Reverse mode that adds the gradients to what references hold."""
    _, pulled, values = jax.vjp(function, by, has_aux=True)
    if not hasattr(pulled, "with_refs"):
        raise Refused("gradients added to references, which this JAX does not have")
    sums = {name: jax.new_ref(jnp.ones_like(each)) for name, each in by.items()}
    pulled.with_refs(sums)(jax.tree.map(jnp.asarray, weights))
    return {name: each[...] - 1 for name, each in sums.items()}, values


def _grad(function: Function, by: Arrays, weights: Arrays) -> tuple[Arrays, Arrays]:
    def total(by: Arrays) -> tuple[Any, Arrays]:
        floats, values = function(by)
        return sum(jnp.sum(floats[key] * weights[key]) for key in weights), values

    found: tuple[Arrays, Arrays] = jax.grad(total, has_aux=True)(by)
    return found


def _jvp(function: Function, by: Arrays, weights: Arrays) -> tuple[Arrays, Arrays]:
    _, values = function(by)

    def along(direction: Arrays) -> Arrays:
        tangents: Arrays
        _, tangents, _ = jax.jvp(function, (by,), (direction,), has_aux=True)
        return tangents

    return _by_directions(along, by, weights), values


def _linearize(function: Function, by: Arrays, weights: Arrays) -> tuple[Arrays, Arrays]:
    _, along, values = jax.linearize(function, by, has_aux=True)
    return _by_directions(along, by, weights), values


def _by_directions(along: Callable[[Arrays], Arrays], by: Arrays, weights: Arrays) -> Arrays:
    """The gradients, from the derivative along each unit vector."""
    found: dict[str, list[Any]] = {name: [] for name in by}
    for name, direction in _units(by):
        tangents = along(direction)
        total = sum(jnp.sum(tangents[key] * weights[key]) for key in weights)
        found[name].append(jnp.asarray(total, by[name].dtype))
    return {name: jnp.stack(each).reshape(by[name].shape) for name, each in found.items()}


def _units(by: Arrays) -> Iterator[tuple[str, Arrays]]:
    zeros = {name: jnp.zeros_like(each) for name, each in by.items()}
    for name, each in by.items():
        for place in range(each.size):
            unit = jnp.zeros(each.size, each.dtype).at[place].set(1).reshape(each.shape)
            yield name, zeros | {name: unit}


def _jacobian(
    jacobian: Callable[..., Any],
) -> Callable[[Function, Arrays, Arrays], tuple[Arrays, Arrays]]:
    def found(function: Function, by: Arrays, weights: Arrays) -> tuple[Arrays, Arrays]:
        rows, values = jacobian(function, has_aux=True)(by)
        gradients = {}
        for name, each in by.items():
            total = jnp.zeros_like(each)
            for key, weight in weights.items():
                total = total + jnp.tensordot(jnp.asarray(weight), rows[key][name], weight.ndim)
            gradients[name] = total.astype(each.dtype)
        return gradients, values

    return found


DERIVATIVES: Mapping[str, Callable[[Function, Arrays, Arrays], tuple[Arrays, Arrays]]] = {
    "vjp": _vjp,
    "accumulated": _accumulated,
    "grad": _grad,
    "jvp": _jvp,
    "linearize": _linearize,
    "jacfwd": _jacobian(jax.jacfwd),
    "jacrev": _jacobian(jax.jacrev),
}
