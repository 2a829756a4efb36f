"""Samples ops on diagonals and bands of matrices.

A diagonal has a number: 0 is the main diagonal, a positive one lies above it, a negative one below.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from litmusfuzz.fuzz.generators.sampling.draw import Draw, Unfit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from litmusfuzz.fuzz.generators.sampling.draw import Sampler, Shape


def _diag(draw: Draw) -> None:
    draw.data("diagonal", draw.first_shape(1, 2, 3))


def _diag_part(draw: Draw) -> None:
    """Sample DiagPart, whose operand has some dimensions, and then the same once more."""
    shape = draw.first_shape(2, 4)
    if draw.wanted_shape is None:
        half = shape[: draw.number(1, 2)]
        shape = (*half, *half)
    middle = len(shape) // 2
    if len(shape) % 2 or shape[:middle] != shape[middle:]:
        raise Unfit
    draw.data("input", shape)


def _matrix_band_part(draw: Draw) -> None:
    shape = draw.data("input", draw.first_shape(2))
    draw.control("num_lower", draw.number(-1, shape[-2]), limit=shape[-2] + 1)
    draw.control("num_upper", draw.number(-1, shape[-1]), limit=shape[-1] + 1)


# --- several diagonals of a matrix -------------------------------------------------------


def _choose_align(draw: Draw) -> None:
    """Choose where the shorter diagonals are padded; only the third version of an op says."""
    if draw.op.name.endswith("V3"):
        sides = ("LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT")
        draw.attrs["align"] = draw.rng.choice(sides)


def _band(draw: Draw, rows: int, columns: int) -> tuple[int, int]:
    """Choose the lowest and the highest diagonal of a matrix."""
    low = draw.number(-rows + 1, columns - 1)
    return low, draw.number(low, columns - 1)


def _longest(rows: int, columns: int, low: int, high: int) -> int:
    """Length of the longest of these diagonals."""
    return min(rows + min(high, 0), columns - max(low, 0))


def _packed(length: int, low: int, high: int) -> Shape:
    """Shape of the diagonals of a matrix: one is a vector, several are rows."""
    return (length,) if low == high else (high - low + 1, length)


def _add_band(draw: Draw, low: int, high: int) -> None:
    if low == high and draw.flip():
        draw.control("k", low)
    else:
        draw.control("k", [low] if low == high else [low, high])


def _matrix_diag(draw: Draw) -> None:
    draw.data("diagonal", draw.first_shape(1, 3))


def _matrix_diag_with_size(draw: Draw) -> None:
    """Sample MatrixDiagV2 or V3; -1 for a number of rows or columns is the least that will do.

    The matrix may be larger than its diagonals need in one dimension only.
    """
    _choose_align(draw)
    batch = draw.any_shape(0, 1, 2)
    rows, columns = draw.number(1, 4), draw.number(1, 4)
    low, high = _band(draw, rows, columns)
    length = _longest(rows, columns, low, high)
    draw.require_any_shape()
    draw.data("diagonal", (*batch, *_packed(length, low, high)))
    _add_band(draw, low, high)
    least_rows, least_columns = length - min(high, 0), length + max(low, 0)
    if rows != least_rows and columns != least_columns:
        rows = least_rows
    infers_rows = rows == least_rows and draw.flip(0.3)
    draw.control("num_rows", -1 if infers_rows else rows)
    infers_columns = not infers_rows and columns == least_columns and draw.flip(0.3)
    draw.control("num_cols", -1 if infers_columns else columns)
    draw.data("padding_value", ())


def _matrix_diag_part(draw: Draw) -> None:
    """Sample MatrixDiagPart, of which the first version takes the main diagonal."""
    shape = draw.data("input", draw.first_shape(2, 3))
    if draw.op.name == "MatrixDiagPart":
        return
    _choose_align(draw)
    low, high = _band(draw, *shape[-2:])
    _add_band(draw, low, high)
    draw.data("padding_value", ())


def _matrix_set_diag(draw: Draw) -> None:
    """Sample MatrixSetDiag, of which the first version sets the main diagonal."""
    shape = draw.data("input", draw.first_shape(2, 3))
    *batch, rows, columns = shape
    if draw.op.name == "MatrixSetDiag":
        draw.data("diagonal", (*batch, min(rows, columns)))
        return
    _choose_align(draw)
    low, high = _band(draw, rows, columns)
    length = _longest(rows, columns, low, high)
    draw.data("diagonal", (*batch, *_packed(length, low, high)))
    _add_band(draw, low, high)


SAMPLERS: Final[Mapping[str, Sampler]] = {
    "Diag": _diag,
    "DiagPart": _diag_part,
    "MatrixBandPart": _matrix_band_part,
    "MatrixDiag": _matrix_diag,
    **dict.fromkeys(("MatrixDiagV2", "MatrixDiagV3"), _matrix_diag_with_size),
    **{f"MatrixDiagPart{version}": _matrix_diag_part for version in ("", "V2", "V3")},
    **{f"MatrixSetDiag{version}": _matrix_set_diag for version in ("", "V2", "V3")},
}
