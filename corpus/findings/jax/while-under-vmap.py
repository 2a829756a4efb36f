"""A while_loop that ends at different times under vmap keeps the wrong part of a reference."""

import jax
import jax.numpy as jnp
from jax import lax


def f(x, n):
    ref = jax.new_ref(x)

    def body(i):
        ref[:1] = ref[:1] + 1
        return i + 1

    lax.while_loop(lambda i: i < n, body, 0)
    return ref[...]


x, n = jnp.zeros((2, 2)), jnp.arange(2)  # with zeros((3, 2)): AssertionError
print("expected", jnp.stack([f(x[:, i], n[i]) for i in range(2)]).tolist())
print("observed", jax.vmap(f, in_axes=(1, 0))(x, n).tolist())
print("workaround", jax.vmap(f)(x.T, n).tolist())
