"""jax.checkpoint of an impure function is accepted, and its effect happens twice.

The page on references forbids it.
"""

import jax
import jax.numpy as jnp

ref = jax.new_ref(jnp.float32(2))


def f(x):
    ref[...] = ref[...] + 1
    return x * ref[...]


print("expected 3.0, or a refusal")
print("observed", float(jax.grad(jax.checkpoint(f))(1.0)))
ref[...] = jnp.float32(2)
print("workaround", float(jax.grad(f)(1.0)))  # without jax.checkpoint
