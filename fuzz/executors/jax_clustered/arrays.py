"""Model values as JAX arrays, on a device.

An array has the type's shape, then one axis for the lanes that are added to
what has none. Every array is *committed* to its device: a function then runs
where its operands are, and is compiled for one kind of operand only.

Importing this sets JAX's switches, which must come before the first array.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from litmusfuzz.fuzz.executors.native.lowering import lanes_added

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.ops import TensorType

# int64 and float64 are dtypes of the model.
jax.config.update("jax_enable_x64", val=True)  # type: ignore[no-untyped-call]
# Virtual ones, for tests on several.
jax.config.update("jax_num_cpu_devices", val=4)  # type: ignore[no-untyped-call]
# A function is done when it returns: who runs when is the engine's business.
jax.config.update("jax_cpu_enable_async_dispatch", val=False)  # type: ignore[no-untyped-call]


def default_device() -> jax.Device:
    """Where everything is that is not told to be elsewhere."""
    return jax.devices("cpu")[0]


def shape_of(test: LitmusTest, given: TensorType, lanes: int) -> tuple[int, ...]:
    """Shape of the array for a value of that type.

    Parameters
    ----------
    lanes : int
        Of what has none (`lanes_added`).
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
    """A model value of that type, each int in all its lanes."""
    shape = shape_of(test, given, lanes)
    lane = np.array(tuple(ints), given.dtype)
    value = np.repeat(lane, int(np.prod(shape)) // lane.size).reshape(shape)
    array: jax.Array = jax.device_put(value, device or default_device())
    return array


@jax.jit
def element(value: jax.Array, number: int | np.integer[Any]) -> jax.Array:
    """One of the elements of an enqueue-many's operand."""
    found: jax.Array = lax.dynamic_index_in_dim(value, number, keepdims=False)
    return found


@jax.jit
def stacked(*elements: jax.Array) -> jax.Array:
    """What a dequeue-many returns."""
    stack: jax.Array = jnp.stack(elements)
    return stack


def truth(value: jax.Array) -> bool:
    """Of a predicate: lane 0."""
    return bool(np.asarray(value).flat[0])


def to_numpy(value: jax.Array) -> npt.NDArray[Any]:
    """Its elements; may share memory with it, and must not be written."""
    return np.asarray(value)
