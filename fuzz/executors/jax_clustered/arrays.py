"""Converts values of the model to JAX arrays on a device, and back.

An array has the shape of its type; a type without lanes may get one more axis for added
lanes. Every array is *committed* to its device: a function then runs on the device of
its operands, and is compiled for that kind of device only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import litmusfuzz.fuzz.executors.jax_refs.configured  # noqa: F401
from litmusfuzz.fuzz.executors.native.lowering import lanes_added

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.ops import TensorType


def default_device() -> jax.Device:
    """Device of values without a device of their own: the first CPU."""
    return jax.devices("cpu")[0]


def shape_of(test: LitmusTest, given: TensorType, lanes: int) -> tuple[int, ...]:
    """Shape of the array for a value of that type.

    Parameters
    ----------
    lanes : int
        Lanes of values that have none (`lanes_added`).
    """
    added = lanes_added(test, given, lanes)
    return (*given.shape, added) if added > 1 else given.shape


def constant(
    test: LitmusTest,
    ints: Iterable[int],
    given: TensorType,
    lanes: int,
    device: jax.Device | None = None,
) -> jax.Array:
    """An array of the given type, with each int repeated in all lanes."""
    shape = shape_of(test, given, lanes)
    lane = np.array(tuple(ints), given.dtype)
    value = np.repeat(lane, int(np.prod(shape)) // lane.size).reshape(shape)
    array: jax.Array = jax.device_put(value, device or default_device())
    return array


@jax.jit
def element(value: jax.Array, number: int | np.integer[Any]) -> jax.Array:
    """One element of the operand of a QueueEnqueueMany."""
    found: jax.Array = lax.dynamic_index_in_dim(value, number, keepdims=False)
    return found


@jax.jit
def stacked(*elements: jax.Array) -> jax.Array:
    """Result of a QueueDequeueMany."""
    stack: jax.Array = jnp.stack(elements)
    return stack


def truth(value: jax.Array) -> bool:
    """Truth of a predicate: lane 0."""
    return bool(np.asarray(value).flat[0])


def to_numpy(value: jax.Array) -> npt.NDArray[Any]:
    """Elements of an array; may share its memory, and must not be written."""
    return np.asarray(value)
