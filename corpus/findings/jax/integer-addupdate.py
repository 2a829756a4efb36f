"""Forward mode fails where addupdate adds to a reference of integers."""

import jax
import jax.numpy as jnp


def f(x):
    steps = jax.new_ref(jnp.int32(0))
    jax.ref.addupdate(steps, ..., jnp.int32(1))
    return x * x


print("expected 6.0")
try:
    print("observed", float(jax.jvp(f, (3.0,), (1.0,))[1]))
except TypeError as error:
    print("observed TypeError:", str(error).split(".")[0])


def g(x):
    steps = jax.new_ref(jnp.int32(0))
    steps[...] += 1
    return x * x


print("workaround", float(jax.jvp(g, (3.0,), (1.0,))[1]))
