"""jax.linearize fails on nested while_loops over a reference; one loop works, and so does jvp."""

import jax
from jax import lax


def once(body):
    def counted(i):
        body()
        return i + 1

    lax.while_loop(lambda i: i < 1, counted, 0)


def f(x):
    ref = jax.new_ref(x)
    once(lambda: once(lambda: ref.__setitem__(..., ref[...] * 2)))
    return ref[...]


print("expected", float(jax.jvp(f, (1.0,), (1.0,))[1]))
try:
    print("observed", float(jax.linearize(f, 1.0)[1](1.0)))
except ValueError as error:
    print("observed ValueError:", str(error).rpartition(", ")[2].partition(".")[0])
print("workaround", float(jax.jvp(f, (1.0,), (1.0,))[1]))
