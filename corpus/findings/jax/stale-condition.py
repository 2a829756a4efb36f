"""The condition of a while_loop under jit does not see what the body wrote."""

import jax
import jax.numpy as jnp
from jax import lax


def f(done):
    def body(i):
        done[...] = jnp.int32(1)
        return i + 1

    return lax.while_loop(lambda i: (i < 3) & (done[...] == 0), body, jnp.int32(0))


print("expected 1")
print("observed", int(jax.jit(f)(jax.new_ref(jnp.int32(0)))))


def carried(done):
    def body(state):
        done[...] = jnp.int32(1)
        return state[0] + 1, done[...]

    start = jnp.int32(0), done[...]
    return lax.while_loop(lambda state: (state[0] < 3) & (state[1] == 0), body, start)[0]


print("workaround", int(jax.jit(carried)(jax.new_ref(jnp.int32(0)))))
