"""jax.linearize fails on a while_loop in a cond which writes a reference."""

import jax
from jax import lax


def counted(ref):
    def body(i):
        ref[...] = ref[...] * 2
        return i + 1

    return lax.while_loop(lambda i: i < 1, body, 0)


def f(x):
    ref = jax.new_ref(x)
    lax.cond(1, lambda: counted(ref), lambda: 0)
    return ref[...]


print("expected", float(jax.jvp(f, (1.0,), (1.0,))[1]))
try:
    print("observed", float(jax.linearize(f, 1.0)[1](1.0)))
except KeyError as error:
    print("observed", type(error).__name__)
print("workaround", float(jax.jvp(f, (1.0,), (1.0,))[1]))
