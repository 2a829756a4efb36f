"""Samples products of matrices. Their operands are `FACTORS`: a product adds up many of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from litmusfuzz.fuzz.generators.sampling.draw import FACTORS, Draw, Unfit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from litmusfuzz.fuzz.generators.sampling.draw import Sampler


def _batch_matmul(draw: Draw) -> None:
    """Sample BatchMatMul; the batch dimensions of its later versions broadcast."""
    adj_x, adj_y = draw.flip(0.3), draw.flip(0.3)
    draw.attrs |= {"adj_x": adj_x, "adj_y": adj_y}
    shape = draw.first_shape(2, 4, 3)
    *batch, rows, columns = shape
    other = (rows if adj_x else columns, draw.number(1, 3))
    if draw.op.name != "BatchMatMul":
        batch = [1 if draw.flip(0.2) else extent for extent in batch][draw.number(0, len(batch)) :]
    draw.data("x", shape, FACTORS)
    draw.data("y", (*batch, *(other[::-1] if adj_y else other)), FACTORS)


def _batch_matmul_v3(draw: Draw) -> None:
    """Sample BatchMatMulV3, whose result has the dtype of its first operand here."""
    _batch_matmul(draw)
    draw.attrs["Tout"] = draw.operands[0].type.dtype


_EQUATIONS: Final = (
    *("ij->ji", "ij->i", "ij->", "ij,jk->ik", "ij,ij->", "i,j->ij", "ij,j->i"),
    "bij,bjk->bik",
)


def _einsum(draw: Draw) -> None:
    equation = draw.rng.choice(_EQUATIONS)
    terms = equation.split("->")[0].split(",")
    extents = {label: draw.number(1, 3) for label in "bijk"}
    if draw.wanted_shape is not None:
        if len(terms[0]) != len(draw.wanted_shape):
            raise Unfit
        extents |= dict(zip(terms[0], draw.wanted_shape, strict=True))
    draw.attrs["equation"] = equation
    for term in terms:
        draw.data("inputs", tuple(extents[label] for label in term), FACTORS)


def _sparse_matmul(draw: Draw) -> None:
    """Sample SparseMatMul, whose operands are dense; attributes say which have many zeros."""
    for attr in ("a_is_sparse", "b_is_sparse", "transpose_a", "transpose_b"):
        draw.attrs[attr] = draw.flip()
    rows, columns = draw.first_shape(2, 2)
    other = (rows if draw.attrs["transpose_a"] else columns, draw.number(1, 3))
    draw.data("a", (rows, columns), FACTORS)
    draw.data("b", other[::-1] if draw.attrs["transpose_b"] else other, FACTORS)


def _tridiagonal_matmul(draw: Draw) -> None:
    shape = draw.first_shape(2, 3)
    for role in ("superdiag", "maindiag", "subdiag"):
        draw.fixed(role, (*shape[:-2], 1, shape[-2]), FACTORS)
    draw.data("rhs", shape, FACTORS)


SAMPLERS: Final[Mapping[str, Sampler]] = {
    **dict.fromkeys(("BatchMatMul", "BatchMatMulV2"), _batch_matmul),
    "BatchMatMulV3": _batch_matmul_v3,
    "Einsum": _einsum,
    "SparseMatMul": _sparse_matmul,
    "TridiagonalMatMul": _tridiagonal_matmul,
}
