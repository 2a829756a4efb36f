"""A whole write under vmap ignores which axis of its value is the batch: values are transposed."""

import jax
import jax.numpy as jnp


def f(x):
    ref = jax.new_ref(jnp.zeros(2))
    ref[...] = x
    return ref[...]


x = jnp.arange(4.0).reshape(2, 2)
print("expected", jnp.stack([f(x[:, i]) for i in range(2)]).tolist())
print("observed", jax.vmap(f, in_axes=1)(x).tolist())


def rows(x):
    ref = jax.new_ref(jnp.zeros(2))
    ref[:] = x
    return ref[...]


print("workaround", jax.vmap(rows, in_axes=1)(x).tolist())
