"""jacfwd, and so hessian, of a function with a reference of its own fails."""

import jax
import jax.numpy as jnp


def f(x):
    ref = jax.new_ref(x)
    return ref[...] * 2


print("expected [[2.0, 0.0], [0.0, 2.0]]")
try:
    print("observed", jax.jacfwd(f)(jnp.ones(2)).tolist())
except ValueError as error:
    print("observed ValueError:", error)
columns = [jax.jvp(f, (jnp.ones(2),), (unit,))[1] for unit in jnp.eye(2)]
print("workaround", jnp.stack(columns, axis=1).tolist())
