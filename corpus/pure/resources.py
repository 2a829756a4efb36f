"""Ops that take rows or slices of a variable at computed places, or change them.

The first operand of each row is the variable's value, as the op reads it; a read returns the
result, an update stores it. Where the places are constants in the test, the oracles have
arithmetic of their own instead (`litmusfuzz.corpus.ops.RowsAttrs`), but for ResourceScatterDiv,
whose places are operands always.

References
----------
TensorFlow, ``resource_variable_ops.cc``, ``scatter_functor.h``, ``scatter_nd_op.cc``,
``strided_slice_op.cc``: an index below 0, or beyond the last row, is an error on CPUs; a slice is
clipped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from litmusfuzz.corpus.pure.arrays import np
from litmusfuzz.corpus.pure.definition import (
    Call,
    Fails,
    Inexact,
    PureOp,
    expect,
    largest_of,
    product,
    ranks,
    size,
)
from litmusfuzz.corpus.pure.gathers import (
    check_inside,
    depth_of,
    gather,
    gather_nd,
    scattered,
    sum_bound,
)
from litmusfuzz.corpus.pure.shapes import MASK_FIELDS, strided_update
from litmusfuzz.corpus.tensors import FLOATS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from litmusfuzz.corpus.pure.arrays import Array

VARIABLE: Final = "resource"
"""The operand that is a variable's value."""


def _gather(call: Call, value: Array, indices: Array) -> Any:
    expect(value.ndim > 0, "takes no scalar", VARIABLE)
    return gather(call, value, indices)


def _gather_nd(call: Call, value: Array, indices: Array) -> Any:
    expect(value.ndim > 0, "takes no scalar", VARIABLE)
    return gather_nd(call, value, indices)


def _scatter(kind: str) -> Callable[..., Any]:
    """A scatter of whole rows, or of a scalar, one index after another."""

    def compute(_: Call, value: Array, indices: Array, updates: Array) -> Any:
        expect(value.ndim > 0, "takes no scalar", VARIABLE)
        wanted = (*indices.shape, *value.shape[1:])
        fits = updates.shape in ((), wanted)
        expect(fits, f"has shape {list(wanted)} or [], got {list(updates.shape)}", "updates")
        check_inside(indices, value.shape[0])
        rows = np.broadcast_to(updates, wanted)
        if kind != "Mul":
            return scattered(value, indices[..., None], rows, kind)
        out, factors = value.copy(), np.maximum(np.abs(value), 1)
        for place, row in zip(
            indices.ravel().tolist(), rows.reshape(indices.size, *value.shape[1:]), strict=True
        ):
            product(np.stack([factors[place], np.maximum(np.abs(row), 1)]), axis=0)
            factors[place] *= np.maximum(np.abs(row), 1)
            out[place] *= row
        return out

    return compute


def _divide(call: Call, value: Array, indices: Array, updates: Array) -> Any:
    """Rows divided, one index after another; integers are cut off towards 0."""
    expect(value.ndim > 0, "takes no scalar", VARIABLE)
    wanted = (*indices.shape, *value.shape[1:])
    fits = updates.shape in ((), wanted)
    expect(fits, f"has shape {list(wanted)} or [], got {list(updates.shape)}", "updates")
    check_inside(indices, value.shape[0])
    floats = call.inputs[0].dtype in FLOATS
    if (updates == 0).any():
        if floats:
            raise Inexact("divides a float by zero", "updates")
        raise Fails("divides by zero", "updates")
    out = value.copy()
    rows = np.broadcast_to(updates, wanted).reshape(indices.size, *value.shape[1:])
    for place, row in zip(indices.ravel().tolist(), rows, strict=True):
        if floats and (out[place] % row).any():
            raise Inexact("leaves a quotient that is no integer", "updates")
        out[place] = np.sign(out[place]) * np.sign(row) * (np.abs(out[place]) // np.abs(row))
    return out


def _scatter_nd(kind: str) -> Callable[..., Any]:
    def compute(_: Call, value: Array, indices: Array, updates: Array) -> Any:
        expect(value.ndim > 0, "takes no scalar", VARIABLE)
        return scattered(value, indices, updates, kind)

    return compute


def _assign(call: Call, *operands: Array) -> Any:
    value, begin = operands[:2]
    expect(value.ndim > 0, "takes no scalar", VARIABLE)
    expect(begin.ndim == 1, "must be a vector", "begin")
    return strided_update(call, *operands)


def _same_shape(call: Call) -> tuple[int, ...]:
    return call.type_of(VARIABLE).shape


def _product_bound(call: Call, bounds: Sequence[int]) -> int:
    """The bound of a row that every index names."""
    factor = max(1, bounds[2])
    times = size(call.type_of("indices"))
    return int(max(1, bounds[0]) * factor ** min(times, 24)) if factor > 1 else max(1, bounds[0])


ROWS: Final = (
    PureOp(
        "ResourceGather",
        f"{VARIABLE}:T indices:I -> T",
        _gather,
        largest_of(VARIABLE),
        index=("indices",),
        rank=lambda c: len(c.inputs[0].shape) - 1 + len(c.inputs[1].shape),
    ),
    PureOp(
        "ResourceGatherNd",
        f"{VARIABLE}:T indices:I -> T",
        _gather_nd,
        largest_of(VARIABLE),
        index=("indices",),
        rank=lambda c: len(c.inputs[1].shape) - 1 + len(c.inputs[0].shape) - depth_of(c),
        compiles=False,
    ),
    *(
        PureOp(
            f"ResourceScatter{kind}",
            f"{VARIABLE}:T indices:I updates:T -> T",
            _scatter(kind),
            {"Add": sum_bound, "Sub": sum_bound, "Mul": _product_bound}.get(
                kind, largest_of(VARIABLE, "updates")
            ),
            index=("indices",),
            rank=ranks(VARIABLE),
            shape=_same_shape,
        )
        for kind in ("Update", "Add", "Sub", "Mul", "Min", "Max")
    ),
    PureOp(
        "ResourceScatterDiv",
        f"{VARIABLE}:T indices:I updates:T -> T",
        _divide,
        largest_of(VARIABLE),
        index=("indices",),
        rank=ranks(VARIABLE),
        shape=_same_shape,
        divisors=("updates",),
    ),
    *(
        PureOp(
            f"ResourceScatterNd{kind}",
            f"{VARIABLE}:T indices:I updates:T -> T",
            _scatter_nd(kind),
            largest_of(VARIABLE, "updates") if kind == "Update" else sum_bound,
            index=("indices",),
            rank=ranks(VARIABLE),
            shape=_same_shape,
        )
        for kind in ("Update", "Add", "Sub")
    ),
    PureOp(
        "ResourceStridedSliceAssign",
        f"{VARIABLE}:T begin:I end:I strides:I value:T -> T",
        _assign,
        largest_of(VARIABLE, "value"),
        MASK_FIELDS,
        shape_from=("begin", "end", "strides"),
        rank=ranks(VARIABLE),
        shape=_same_shape,
        compiles=False,
    ),
)
"""Rows of this family; each has the name of an op on variables."""
