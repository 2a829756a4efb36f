"""Diagonals and bands of matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from litmusfuzz.corpus.pure.arrays import np
from litmusfuzz.corpus.pure.definition import (
    Call,
    Field,
    Inexact,
    PureOp,
    expect,
    largest_of,
    passes,
    ranks,
    scalar,
)
from litmusfuzz.corpus.tensors import MAX_ELEMENTS

if TYPE_CHECKING:
    from litmusfuzz.corpus.pure.arrays import Array

_ALIGN: Final = ("LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT")


def _diag(_: Call, diagonal: Array) -> Any:
    expect(1 <= diagonal.ndim <= 4, f"has rank {diagonal.ndim}, not 1 to 4", "diagonal")
    if diagonal.size**2 > MAX_ELEMENTS:
        raise Inexact(f"more than {MAX_ELEMENTS} elements")
    return np.diag(diagonal.ravel()).reshape(diagonal.shape * 2)


def _diag_part(_: Call, x: Array) -> Any:
    half = x.ndim // 2
    expect(x.ndim in (2, 4, 6, 8), f"has rank {x.ndim}, not an even one", "input")
    expect(x.shape[:half] == x.shape[half:], "has two equal halves of dimensions", "input")
    side = int(np.prod(x.shape[:half]))
    return np.diag(x.reshape(side, side)).reshape(x.shape[:half])


def _band(_: Call, x: Array, lower: Array, upper: Array) -> Any:
    expect(x.ndim >= 2, "has two dimensions at least", "input")
    rows, columns = x.shape[-2:]
    low, high = scalar(lower, "num_lower"), scalar(upper, "num_upper")
    expect(low <= rows, f"{low} of {rows} rows", "num_lower")
    expect(high <= columns, f"{high} of {columns} columns", "num_upper")
    i, j = np.ogrid[:rows, :columns]
    inside = ((low < 0) | (i - j <= low)) & ((high < 0) | (j - i <= high))
    return np.where(inside, x, 0)


def _diagonals(k: Array) -> tuple[int, int]:
    """The lowest and the highest diagonal."""
    expect(k.ndim <= 1 and 1 <= k.size <= 2, "must be one or two ints", "k")
    ends = [int(each) for each in k.ravel()]
    expect(ends[0] <= ends[-1], f"{ends} is no range", "k")
    return ends[0], ends[-1]


def _length(d: int, rows: int, columns: int) -> int:
    """Elements of a diagonal of a matrix."""
    return min(rows + min(d, 0), columns - max(d, 0))


def _shift(align: str, d: int, length: int, longest: int) -> int:
    """Where a diagonal begins in a row of the packed form."""
    right = {
        "LEFT_RIGHT": d < 0,  # superdiagonals to the left
        "RIGHT_LEFT": d >= 0,
        "LEFT_LEFT": False,
        "RIGHT_RIGHT": True,
    }[align]
    return longest - length if right else 0


def _in_range(low: int, high: int, rows: int, columns: int) -> None:
    for d in (low, high):
        fits = -rows < d < columns or d == 0
        expect(fits, f"diagonal {d} of a matrix of {rows} by {columns}", "k")


def _align(call: Call) -> str:
    return str(call["align"]) if call.op.name.endswith("V3") else "LEFT_LEFT"


def _matrix_diag(call: Call, diagonal: Array, *rest: Array) -> Any:
    expect(diagonal.ndim >= 1, "takes no scalar", "diagonal")
    if not rest:
        rest = np.array(0), np.array(-1), np.array(-1), np.array(0)
    k, rows_, columns_, padding = rest
    low, high = _diagonals(k)
    several = low != high
    expect(diagonal.ndim >= (2 if several else 1), "has a dimension for the diagonals", "diagonal")
    if several:
        fits = diagonal.shape[-2] == high - low + 1
        expect(fits, f"has {high - low + 1} diagonals", "diagonal")
    longest = diagonal.shape[-1]
    least_rows, least_columns = longest - min(high, 0), longest + max(low, 0)
    rows, columns = scalar(rows_, "num_rows"), scalar(columns_, "num_cols")
    if rows == -1 and columns == -1:
        rows = columns = max(least_rows, least_columns)
    elif rows == -1:
        rows = least_rows
    elif columns == -1:
        columns = least_columns
    expect(rows >= least_rows, f"{rows} is below {least_rows}", "num_rows")
    expect(columns >= least_columns, f"{columns} is below {least_columns}", "num_cols")
    fits = rows == least_rows or columns == least_columns
    expect(fits, f"{rows} by {columns} is too large for the diagonals", "num_rows")
    if not all(-rows < d < columns or d == 0 for d in (low, high)):
        raise Inexact("a diagonal outside the matrix, which the kernel does not refuse", "k")
    batch = diagonal.shape[: -2 if several else -1]
    if rows * columns * int(np.prod(batch)) > MAX_ELEMENTS:
        raise Inexact(f"more than {MAX_ELEMENTS} elements")
    out = np.full((*batch, rows, columns), scalar(padding, "padding_value"), np.int64)
    packed = diagonal if several else diagonal[..., None, :]
    for d in range(low, high + 1):
        length = _length(d, rows, columns)
        start = _shift(_align(call), d, length, longest)
        i = np.arange(max(length, 0))
        out[..., i - min(d, 0), i + max(d, 0)] = packed[..., high - d, start : start + length]
    return out


def _diag_packed(call: Call, x: Array, *rest: Array) -> Any:
    expect(x.ndim >= 2, "has two dimensions at least", "input")
    k, padding = rest or (np.array(0), np.array(0))
    low, high = _diagonals(k)
    rows, columns = x.shape[-2:]
    _in_range(low, high, rows, columns)
    longest = min(rows + min(high, 0), columns - max(low, 0))
    out = np.full((*x.shape[:-2], high - low + 1, longest), scalar(padding, "padding_value"))
    for d in range(low, high + 1):
        length = _length(d, rows, columns)
        start = _shift(_align(call), d, length, longest)
        i = np.arange(length)
        out[..., high - d, start : start + length] = x[..., i - min(d, 0), i + max(d, 0)]
    return out if low != high else out[..., 0, :]


def _set_diag(call: Call, x: Array, diagonal: Array, k: Array | None = None) -> Any:
    expect(x.ndim >= 2, "has two dimensions at least", "input")
    low, high = _diagonals(np.array(0) if k is None else k)
    rows, columns = x.shape[-2:]
    _in_range(low, high, rows, columns)
    several = low != high
    longest = min(rows + min(high, 0), columns - max(low, 0))
    wanted = (*x.shape[:-2], *((high - low + 1,) if several else ()), longest)
    expect(diagonal.shape == wanted, f"has shape {list(wanted)}", "diagonal")
    packed = diagonal if several else diagonal[..., None, :]
    out = x.copy()
    for d in range(low, high + 1):
        length = _length(d, rows, columns)
        start = _shift(_align(call), d, length, longest)
        i = np.arange(length)
        out[..., i - min(d, 0), i + max(d, 0)] = packed[..., high - d, start : start + length]
    return out


_ALIGN_FIELD: Final = (Field("align", _ALIGN, "RIGHT_LEFT"),)
ROWS: Final = (
    PureOp("Diag", "diagonal:T -> T", _diag, passes, rank=lambda c: 2 * len(c.inputs[0].shape)),
    PureOp(
        "DiagPart", "input:T -> T", _diag_part, passes, rank=lambda c: len(c.inputs[0].shape) // 2
    ),
    PureOp(
        "MatrixBandPart",
        "input:A num_lower:I num_upper:I -> A",
        _band,
        largest_of("input"),
        index=("num_lower", "num_upper"),
        rank=ranks("input"),
    ),
    PureOp(
        "MatrixDiag",
        "diagonal:A -> A",
        _matrix_diag,
        passes,
        rank=lambda call: len(call.inputs[0].shape) + 1,
    ),
    PureOp(
        "MatrixDiagPart",
        "input:A -> A",
        _diag_packed,
        passes,
        rank=lambda c: len(c.inputs[0].shape) - 1,
    ),
    PureOp("MatrixSetDiag", "input:A diagonal:A -> A", _set_diag, passes, rank=ranks("input")),
    *(
        row
        for version, fields in (("V2", ()), ("V3", _ALIGN_FIELD))
        for row in (
            PureOp(
                f"MatrixDiag{version}",
                "diagonal:A k:int32 num_rows:int32 num_cols:int32 padding_value:A -> A",
                _matrix_diag,
                largest_of("diagonal", "padding_value"),
                fields,
                shape_from=("k", "num_rows", "num_cols"),
            ),
            PureOp(
                f"MatrixDiagPart{version}",
                "input:A k:int32 padding_value:A -> A",
                _diag_packed,
                largest_of("input", "padding_value"),
                fields,
                shape_from=("k",),
            ),
            PureOp(
                f"MatrixSetDiag{version}",
                "input:A diagonal:A k:int32 -> A",
                _set_diag,
                largest_of("input", "diagonal"),
                fields,
                shape_from=("k",),
                rank=ranks("input"),
            ),
        )
    ),
)
"""Rows of this family."""
