"""Under jit, reverse mode fails where rows are added to a cotangent that is a constant."""

import jax
import jax.numpy as jnp
import numpy as np


def f(x):
    ref = jax.new_ref(x)
    return ref[jnp.array([0])], ref[...]


def gradient(x, module=np):
    one = jnp.asarray(module.ones(1, np.float32))
    return jax.vjp(f, x)[1]((one, one))[0]


x = jnp.zeros(1, np.float32)
print("expected", gradient(x).tolist())
try:
    print("observed", jax.jit(gradient)(x).tolist())
except AttributeError as error:
    print("observed AttributeError:", error)
print("workaround", jax.jit(lambda x: gradient(x, jnp))(x).tolist())
