"""Products of matrices and tensors.

A kernel may add in any order, so that each sum of magnitudes stays below 2**24.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from litmusfuzz.corpus.pure.arrays import np
from litmusfuzz.corpus.pure.definition import (
    Call,
    Fails,
    Field,
    PureOp,
    bounded,
    expect,
    ranks,
    size,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from litmusfuzz.corpus.pure.arrays import Array


def _multiplied(a: Array, b: Array) -> Any:
    bounded(np.abs(a) @ np.abs(b))
    return a @ b


def _adjoint(x: Array, *, flipped: bool) -> Array:
    return np.swapaxes(x, -1, -2) if flipped else x


def _batch(*, broadcasts: bool) -> Any:
    def compute(call: Call, x: Array, y: Array) -> Any:
        expect(x.ndim >= 2, "has two dimensions at least", "x")
        expect(y.ndim >= 2, "has two dimensions at least", "y")
        if _TOUT in call.op.fields:
            expect(call["Tout"] == call.inputs[0].dtype, "of another dtype", "Tout")
        if not broadcasts:
            expect(x.shape[:-2] == y.shape[:-2], "have different batches", "y")
        x, y = _adjoint(x, flipped=call["adj_x"]), _adjoint(y, flipped=call["adj_y"])
        shapes = f"{list(x.shape)} by {list(y.shape)}"
        expect(x.shape[-1] == y.shape[-2], f"cannot multiply {shapes}", "y")
        try:
            np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
        except ValueError:
            raise Fails(f"cannot multiply {shapes}", "y") from None
        return _multiplied(x, y)

    return compute


def _einsum(call: Call, inputs: list[Array]) -> Any:
    equation = call["equation"].replace(" ", "")
    match = re.fullmatch(r"([a-z]+(?:,[a-z]+)?)->([a-z]*)", equation)
    expect(match is not None, f"no equation of one or two terms: {equation[:80]!r}", "inputs")
    assert match is not None
    terms, out = match[1].split(","), match[2]
    expect(len(terms) == len(inputs), f"{len(terms)} terms for {len(inputs)} operands", "inputs")
    expect(len(set(out)) == len(out), f"a label twice in the result: {out!r}", "inputs")
    extents: dict[str, int] = {}
    for term, each in zip(terms, inputs, strict=True):
        expect(len(term) == each.ndim, f"{term!r} for rank {each.ndim}", "inputs")
        for label, extent in zip(term, each.shape, strict=True):
            known = extents.setdefault(label, extent)
            expect(known == extent, f"label {label!r} is {known} and {extent}", "inputs")
    expect(set(out) <= set(extents), f"a new label in the result: {out!r}", "inputs")
    bounded(np.einsum(equation, *(np.abs(each) for each in inputs)))
    return np.einsum(equation, *inputs)


def _einsum_bound(call: Call, bounds: Sequence[int]) -> int:
    total = 1
    for bound, kind in zip(bounds, call.inputs, strict=True):
        total *= max(1, bound) * size(kind)
    return total


def _bias(call: Call, value: Array, bias: Array) -> Any:
    expect(value.ndim >= 2, "has two dimensions at least", "value")
    expect(bias.ndim == 1, "must be a vector", "bias")
    first = call.op.name == "BiasAdd" and call["data_format"] == "NCHW"
    channel = 1 if first else value.ndim - 1
    expect(bias.shape[0] == value.shape[channel], f"has {value.shape[channel]} elements", "bias")
    return value + bias.reshape([-1 if axis == channel else 1 for axis in range(value.ndim)])


def _sparse(call: Call, a: Array, b: Array) -> Any:
    expect(a.ndim == 2, "must be a matrix", "a")
    expect(b.ndim == 2, "must be a matrix", "b")
    a, b = _adjoint(a, flipped=call["transpose_a"]), _adjoint(b, flipped=call["transpose_b"])
    shapes = f"{list(a.shape)} by {list(b.shape)}"
    expect(a.shape[1] == b.shape[0], f"cannot multiply {shapes}", "b")
    return _multiplied(a, b)


def _tridiagonal(_: Call, above: Array, main: Array, below: Array, rhs: Array) -> Any:
    expect(rhs.ndim >= 2, "has two dimensions at least", "rhs")
    count = rhs.shape[-2]
    wanted = (*rhs.shape[:-2], 1, count)
    for name, each in (("superdiag", above), ("maindiag", main), ("subdiag", below)):
        expect(each.shape == wanted, f"has shape {list(wanted)}", name)
    column = np.swapaxes(np.concatenate([below, main, above], axis=-2), -1, -2)
    zero = np.zeros_like(rhs[..., :1, :])
    parts = [
        np.concatenate([zero, rhs[..., :-1, :]], axis=-2),
        rhs,
        np.concatenate([rhs[..., 1:, :], zero], axis=-2),
    ]
    products = [column[..., i : i + 1] * part for i, part in enumerate(parts)]
    bounded(sum(np.abs(each) for each in products))
    return sum(products)


def _inner(call: Call, bounds: Sequence[int]) -> int:
    return max(1, bounds[0]) * max(1, bounds[1]) * min(size(each) for each in call.inputs)


_ADJOINTS: Final = (
    Field("adj_x", "bool", default=False),
    Field("adj_y", "bool", default=False),
)
_TOUT: Final = Field("Tout", "dtype")
ROWS: Final = (
    PureOp(
        "BatchMatMul",
        "x:T y:T -> T",
        _batch(broadcasts=False),
        _inner,
        _ADJOINTS,
        rank=ranks("x"),
    ),
    PureOp(
        "BatchMatMulV2",
        "x:T y:T -> T",
        _batch(broadcasts=True),
        _inner,
        _ADJOINTS,
        rank=ranks("x", "y"),
    ),
    PureOp(
        "BatchMatMulV3",
        "x:T y:T -> @Tout=T2",
        _batch(broadcasts=True),
        _inner,
        (_TOUT, *_ADJOINTS),
        rank=ranks("x", "y"),
    ),
    PureOp(
        "Einsum",
        "inputs*:T -> T",
        _einsum,
        _einsum_bound,
        (Field("equation", "equation"),),
    ),
    PureOp(
        "BiasAdd",
        "value:T bias:T -> T",
        _bias,
        lambda _, b: b[0] + b[1],
        (Field("data_format", ("NHWC", "NCHW"), "NHWC"),),
        rank=ranks("value"),
    ),
    PureOp(
        "BiasAddV1", "value:T bias:T -> T", _bias, lambda _, b: b[0] + b[1], rank=ranks("value")
    ),
    PureOp(
        "SparseMatMul",
        "a:float32 b:float32 -> float32",
        _sparse,
        _inner,
        (
            Field("transpose_a", "bool", default=False),
            Field("transpose_b", "bool", default=False),
            Field("a_is_sparse", "bool", default=False),
            Field("b_is_sparse", "bool", default=False),
        ),
        rank=lambda _: 2,
    ),
    PureOp(
        "TridiagonalMatMul",
        "superdiag:F maindiag:F subdiag:F rhs:F -> F",
        _tridiagonal,
        lambda _, b: b[3] * (b[0] + b[1] + b[2]),
        rank=ranks("rhs"),
    ),
)
"""Rows of this family."""
