"""JAX: in reverse mode, a write past the end of a reference gets the last row's gradient.

The write is dropped, so that y[1] has no part in the result; forward mode says so too.
"""

import jax
import jax.numpy as jnp


def f(y: jax.Array) -> jax.Array:
    ref = jax.new_ref(jnp.zeros_like(y))
    ref[jnp.array([0, 2])] = y
    return jnp.sum(ref[...] * jnp.array([10.0, 20.0]))


y = jnp.array([1.0, 2.0])
forward = [jax.jvp(f, (y,), (unit,))[1].item() for unit in jnp.eye(2)]
assert forward == [10.0, 0.0]
print("expected", forward)
print("observed", jax.grad(f)(y).tolist())


def g(y: jax.Array) -> jax.Array:
    return jnp.sum(jnp.zeros_like(y).at[jnp.array([0, 2])].set(y) * jnp.array([10.0, 20.0]))


print("workaround", jax.grad(g)(y).tolist())
