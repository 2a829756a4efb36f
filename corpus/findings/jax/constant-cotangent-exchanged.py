"""Under jit, reverse mode fails where rows of a cotangent that is a constant are exchanged."""

import jax
import jax.numpy as jnp
import numpy as np


def f(x, rows):
    ref = jax.new_ref(x)
    ref[rows] = ref[rows] * 2
    return ref[...]


def gradient(x, rows, module=np):
    one = jnp.asarray(module.ones(1, np.float32))
    return jax.vjp(lambda x: f(x, rows), x)[1](one)[0]


given = jnp.zeros(1, np.float32), jnp.array([0])
print("expected", gradient(*given).tolist())
try:
    print("observed", jax.jit(gradient)(*given).tolist())
except jax.errors.TracerArrayConversionError as error:
    print("observed", type(error).__name__)
print("workaround", jax.jit(lambda *x: gradient(*x, jnp))(*given).tolist())
