"""What is the same in every script: Python text, put together by `jax_refs.script`."""

from __future__ import annotations

from typing import Final

PURE: Final = {
    "Neg": "-{0}",
    "Relu": "jnp.maximum({0}, jnp.zeros((), {0}.dtype))",
    "AddV2": "{0} + {1}",
    "Sub": "{0} - {1}",
    "Mul": "{0} * {1}",
    "Maximum": "jnp.maximum({0}, {1})",
    "Minimum": "jnp.minimum({0}, {1})",
    "Less": "jnp.less({0}, {1})",
    "Equal": "jnp.equal({0}, {1})",
    "Select": "jnp.where({0}, {1}, {2})",
    "ReluGrad": "jnp.where({1} > 0, {0}, jnp.zeros_like({0}))",
    "MatMul": 'jnp.matmul({0}, {1}, precision="highest")',
}
"""Pure ops but Identity, by their operands."""
COMBINE: Final = {
    "Mul": "{0} * {1}",
    "Min": "jnp.minimum({0}, {1})",
    "Max": "jnp.maximum({0}, {1})",
}
"""Updates of rows that are read and written, by what was there and the operand."""
AROUND: Final = {
    "jit": ("{1} = jax.jit({0})",),
    "checkpoint": ("{1} = jax.checkpoint({0})",),
    "custom_jvp": ("{1} = jax.custom_jvp({0})", "{1}.defjvp(lambda p, t: jax.jvp({0}, p, t))"),
    "custom_vjp": (
        "{1} = jax.custom_vjp({0})",
        "{1}.defvjp(lambda *x: ({0}(*x), x), lambda x, s: jax.vjp({0}, *x)[1](s))",
    ),
}
"""Ways to call a function, by its name and that of the function with something around it."""

UNITS: Final = """
def directions(by):
    for k, x in by.items():
        for i in range(x.size):
            unit = jnp.zeros(x.size, x.dtype).at[i].set(1).reshape(x.shape)
            yield k, {**{m: jnp.zeros_like(each) for m, each in by.items()}, k: unit}


def total(tangents):
    return sum(jnp.sum(tangents[k] * w) for k, w in weights.items())


def from_directions(along, by):
    rows = {k: [] for k in by}
    for k, unit in directions(by):
        rows[k].append(jnp.asarray(total(along(unit)), by[k].dtype))
    return {k: jnp.stack(rows[k]).reshape(x.shape) for k, x in by.items()}
"""
_HEAD: Final = """
def differentiated(a, c, function=f):
    def floats(by):
        values = function(a | by, c)
        return {k: values[k] for k in weights}, values

    by = {k: a[k] for k in keys}
"""
_END: Final = """
    return values | {keys[k]: g for k, g in gradients.items()}


f = differentiated
"""
_WAYS: Final = {
    "vjp": """
    _, pull, values = jax.vjp(floats, by, has_aux=True)
    (gradients,) = pull(jax.tree.map(jnp.asarray, weights))
""",
    "grad": """
    def weighted(by):
        found, values = floats(by)
        return sum(jnp.sum(found[k] * w) for k, w in weights.items()), values

    gradients, values = jax.grad(weighted, has_aux=True)(by)
""",
    "jvp": """
    _, values = floats(by)
    gradients = from_directions(
        lambda unit: jax.jvp(floats, (by,), (unit,), has_aux=True)[1], by
    )
""",
    "linearize": """
    _, along, values = jax.linearize(floats, by, has_aux=True)
    gradients = from_directions(along, by)
""",
    **{
        way: f"""
    rows, values = jax.{way}(floats, has_aux=True)(by)
    gradients = {{k: jnp.zeros_like(x) for k, x in by.items()}}
    for m, w in weights.items():
        for k in by:
            gradients[k] += jnp.tensordot(jnp.asarray(w), rows[m][k], w.ndim)
"""
        for way in ("jacfwd", "jacrev")
    },
}
DERIVATIVES: Final = {
    way: "".join(part.strip("\n") + "\n" for part in ("", _HEAD, text)) + _END.strip("\n")
    for way, text in _WAYS.items()
}
"""The program with gradients, by the way to differentiate."""
