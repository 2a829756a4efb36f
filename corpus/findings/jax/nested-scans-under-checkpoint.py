"""`jax.vjp` of a checkpointed function loses what an inner loop writes to the function's reference."""

import jax
import jax.numpy as jnp


def f(x):
    ref = jax.new_ref(x)

    def inner(carried, _):
        ref[...] += 1.0
        return carried, None

    def outer(carried, _):
        return jax.lax.scan(inner, carried, jnp.arange(1))[0], None

    jax.lax.scan(outer, 0.0, jnp.arange(1))
    return ref[...]


def value_in_vjp(policy):
    return jax.vjp(jax.checkpoint(f, policy=policy), jnp.float32(0))[0]


policies = jax.checkpoint_policies
print("expected", f(jnp.float32(0)).tolist())
print("observed", value_in_vjp(policies.nothing_saveable).tolist())
print("workaround", value_in_vjp(policies.everything_saveable).tolist())
