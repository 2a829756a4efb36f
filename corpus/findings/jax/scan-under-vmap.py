"""vmap over a reference whose batch is not the first axis fails where a scan uses it."""

import jax
import jax.numpy as jnp
from jax import lax


def f(x):
    ref = jax.new_ref(x)

    def body(carry, _):
        ref[0] = ref[0] + 1
        return carry, None

    lax.scan(body, 0, length=2)
    return ref[...]


x = jnp.arange(4.0).reshape(2, 2)
print("expected", jnp.stack([f(x[:, i]) for i in range(2)]).tolist())
try:
    print("observed", jax.vmap(f, in_axes=1)(x).tolist())
except (AttributeError, ValueError) as error:
    print("observed", type(error).__name__, str(error)[:55])
print("workaround", jax.vmap(f)(x.T).tolist())
