"""vmap of the gradient of a checkpointed function fails on a loop over a reference in a jit."""

import jax
import jax.numpy as jnp
from jax import lax


@jax.jit
def twice(ref):
    lax.fori_loop(0, 1, lambda *_: ref.__setitem__(..., ref[...] * 2), None)


def f(x):
    ref = jax.new_ref(x)
    twice(ref)
    return ref[...]


print("expected", jax.vmap(jax.grad(f))(jnp.ones(2)).tolist())
try:
    print("observed", jax.vmap(jax.grad(jax.checkpoint(f)))(jnp.ones(2)).tolist())
except TypeError as error:
    print("observed TypeError:", error)


def g(x):
    ref = jax.new_ref(x)
    twice.__wrapped__(ref)  # without jax.jit
    return ref[...]


print("workaround", jax.vmap(jax.grad(jax.checkpoint(g)))(jnp.ones(2)).tolist())
