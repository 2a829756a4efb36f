"""Reverse mode fails where a constant is written to a differentiated reference."""

import jax
import jax.numpy as jnp


def f(x, linked=None):
    ref = jax.new_ref(x)
    ref[0] = 5.0 if linked is None else 5.0 + linked * ref[0]
    return jnp.sum(ref[...])


print("expected [0.0, 1.0]")
try:
    print("observed", jax.grad(f)(jnp.ones(2)).tolist())
except AttributeError as error:
    print("observed AttributeError:", error)
print("workaround", jax.grad(lambda x: f(x, 0))(jnp.ones(2)).tolist())
