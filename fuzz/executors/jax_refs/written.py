"""What is the same in every script: Python text, put together by `jax_refs.script`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

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

_WEIGHTED: Final = "sum(jnp.sum({0}[k] * w) for k, w in weights.items())"
FORWARD: Final = ("jvp", "linearize")
"""Ways that give a derivative along a direction."""
_ALL_UNITS: Final = (
    "zeros = jax.tree.map(jnp.zeros_like, {by})",
    "def along_unit(k, unit):",
    "    tangents = along(zeros | {{k: unit.reshape({by}[k].shape)}})",
    f"    return {_WEIGHTED.format('tangents')}",
    "gradients = {{}}",
    "for k, x in {by}.items():",
    "    rows = [along_unit(k, unit) for unit in jnp.eye(x.size, dtype=x.dtype)]",
    "    gradients[k] = jnp.stack(rows).reshape(x.shape).astype(x.dtype)",
)
_ONE_UNIT: Final = (
    "tangents = along({{{only!r}: jnp.ones((), {by}[{only!r}].dtype)}})",
    f"total = {_WEIGHTED.format('tangents')}",
)
_ONE_OF_ONE: Final = (
    "tangents = along({{{only!r}: jnp.ones((), {by}[{only!r}].dtype)}})",
    "total = jnp.sum(tangents[{key!r}] * {weight})",
)
_WAYS: Final = {
    "vjp": (
        "_, pull, values = jax.vjp(floats, {by}, has_aux=True)",
        "gradients = pull({given})[0]",
    ),
    "accumulated": (
        "_, pull, values = jax.vjp(floats, {by}, has_aux=True)",
        "sums = jax.tree.map(lambda x: jax.new_ref(jnp.ones_like(x)), {by})",
        "pull.with_refs(sums)({given})",
        "gradients = {{k: x[...] - 1 for k, x in sums.items()}}",
    ),
    "grad": (
        "def weighted(by):",
        "    found, values = floats(by)",
        f"    return {_WEIGHTED.format('found')}, values",
        "gradients, values = jax.grad(weighted, has_aux=True)({by})",
    ),
    "jvp": (
        "_, values = floats({by})",
        "along = lambda unit: jax.jvp(floats, ({by},), (unit,), has_aux=True)[1]",
    ),
    "linearize": ("_, along, values = jax.linearize(floats, {by}, has_aux=True)",),
    **{
        way: (
            f"rows, values = jax.{way}(floats, has_aux=True)({{by}})",
            "def total(k):",
            "    return sum(jnp.tensordot(w, rows[m][k], w.ndim) for m, w in weights.items())",
            "gradients = {{k: total(k).astype(x.dtype) for k, x in {by}.items()}}",
        )
        for way in ("jacfwd", "jacrev")
    },
}


def derivative(
    way: str, by: str, names: Sequence[str], weights: Mapping[str, str], *, one: bool, numpy: bool
) -> Iterator[str]:
    """Lines that compute the gradients and `values`, of a function `floats`, and return them.

    Parameters
    ----------
    way : str
        One of JAX's ways to differentiate.
    by : str
        The dictionary of the arrays to differentiate by.
    names : sequence of str
        Its keys.
    weights : mapping of str to str
        Expressions for the weights of the floats.
    one : bool
        There is one number to differentiate by.
    numpy : bool
        The weights are arrays of NumPy's.
    """
    units: tuple[str, ...] = ()
    only = names[0] if len(names) == 1 else ""
    shown = "{{f'grad({{k}})': x for k, x in gradients.items()}}"
    if only:
        shown = "{{'grad({only})': gradients[{only!r}]}}"
    if way in FORWARD:
        units = _ALL_UNITS
        if one:
            units = _ONE_UNIT if len(weights) > 1 else _ONE_OF_ONE
            shown = "{{'grad({only})': total.astype({by}[{only!r}].dtype)}}"
    key, weight = next(iter(weights.items()))
    given = "jax.tree.map(jnp.asarray, weights)" if numpy else "weights"
    for line in (*_WAYS[way], *units, f"return values | {shown}"):
        yield line.format(by=by, only=only, key=key, weight=weight, given=given)
