"""Under jit, rows that move by a slice to later rows of a reference overwrite each other."""

import jax
import jax.numpy as jnp


def f(x):
    ref = jax.new_ref(x)
    ref[1:] = ref[:-1]
    return ref[...].reshape(1, 4)


x = jnp.arange(4)
print("expected", f(x).tolist())
print("observed", jax.jit(f)(x).tolist())


def indexed(x):
    ref = jax.new_ref(x)
    ref[jnp.arange(1, 4)] = ref[:-1]
    return ref[...].reshape(1, 4)


print("workaround", jax.jit(indexed)(x).tolist())
