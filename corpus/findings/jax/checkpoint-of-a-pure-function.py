"""jax.checkpoint fails on a pure function that has a reference which is not differentiated."""

import jax


def f(y):
    ref = jax.new_ref(0.0)
    ref[...] = ref[...] + y
    return ref[...]


print("expected", float(jax.grad(f)(1.0)))
try:
    print("observed", float(jax.grad(jax.checkpoint(f))(1.0)))
except KeyError as error:
    print("observed", type(error).__name__)
print("workaround", float(jax.grad(f)(1.0)))  # without jax.checkpoint
