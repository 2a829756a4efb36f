"""Gathers and scatters on values, and sparse tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from litmusfuzz.corpus.pure.arrays import np
from litmusfuzz.corpus.pure.definition import (
    Call,
    Field,
    Inexact,
    OutOfRange,
    PureOp,
    axis_of,
    bounded,
    elements,
    expect,
    known_length,
    largest_of,
    ranks,
    scalar,
    size,
    vector,
)
from litmusfuzz.corpus.tensors import MAX_ELEMENTS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from litmusfuzz.corpus.pure.arrays import Array

Shape = tuple[int, ...]


def check_inside(indices: Array, extent: int, operand: str = "indices") -> None:
    """Refuse an index below 0, or of `extent` and more."""
    outside = ((indices < 0) | (indices >= extent)).any()
    if outside:
        raise OutOfRange(f"names an element outside {extent}", operand)


def gather(_: Call, params: Array, indices: Array) -> Any:
    """Rows of `params`: one for each index."""
    expect(params.ndim > 0, "takes no scalar", "params")
    check_inside(indices, params.shape[0])
    return params[indices]


def _gather_v2(call: Call, params: Array, indices: Array, axis_: Array) -> Any:
    expect(params.ndim > 0, "takes no scalar", "params")
    axis = axis_of(scalar(axis_, "axis"), params.ndim, "axis")
    batch = call["batch_dims"]
    expect(-indices.ndim <= batch <= indices.ndim, f"batch_dims {batch}", "indices")
    batch = batch + indices.ndim if batch < 0 else batch
    expect(batch < params.ndim, f"batch_dims {batch} of rank {params.ndim}", "params")
    expect(batch <= axis, f"axis {axis} lies before batch_dims {batch}", "axis")
    same = params.shape[:batch] == indices.shape[:batch]
    expect(same, "have different batches", "indices")
    check_inside(indices, params.shape[axis])
    count = int(np.prod(params.shape[:batch]))
    rows = params.reshape(count, *params.shape[batch:])
    places = indices.reshape(count, *indices.shape[batch:])
    taken = [np.take(row, place, axis - batch) for row, place in zip(rows, places, strict=True)]
    shape = (*params.shape[:axis], *indices.shape[batch:], *params.shape[axis + 1 :])
    return np.array(taken, np.int64).reshape(shape)


def _gather_v2_rank(call: Call) -> int:
    batch: int = call["batch_dims"]
    indices = len(call.type_of("indices").shape)
    return len(call.type_of("params").shape) - 1 + indices - (batch + indices * (batch < 0))


def _coordinates(indices: Array, shape: Shape, operand: str = "indices") -> list[Shape]:
    """Each vector of indices, in order; within the first dimensions of the shape."""
    expect(indices.ndim > 0, "takes no scalar", operand)
    depth = indices.shape[-1]
    expect(depth <= len(shape), f"{depth} coordinates in rank {len(shape)}", operand)
    flat = indices.reshape(int(np.prod(indices.shape[:-1])), depth)
    for axis in range(depth):
        check_inside(flat[:, axis], shape[axis], operand)
    return [tuple(map(int, each)) for each in flat]


def gather_nd(_: Call, params: Array, indices: Array) -> Any:
    """Elements or slices of `params`: one for each vector of coordinates."""
    expect(params.ndim > 0, "takes no scalar", "params")
    places = _coordinates(indices, params.shape)
    depth = indices.shape[-1]
    shape = (*indices.shape[:-1], *params.shape[depth:])
    taken = [params[place] for place in places]
    return np.array(taken, np.int64).reshape(shape)


def depth_of(call: Call, operand: str = "indices") -> int:
    """Coordinates in each vector of indices."""
    kind = call.type_of(operand)
    expect(not kind.dynamic and len(kind.shape) > 0, "has a known last dimension", operand)
    return kind.shape[-1]


def scattered(out: Array, indices: Array, updates: Array, kind: str) -> Array:
    """`out`, changed at vectors of coordinates: ``Update``, ``Add``, ``Sub``, ``Max``, ``Min``."""
    places = _coordinates(indices, out.shape)
    depth = indices.shape[-1]
    wanted = (*indices.shape[:-1], *out.shape[depth:])
    expect(updates.shape == wanted, f"has shape {list(wanted)}", "updates")
    rows = updates.reshape(len(places), *out.shape[depth:])
    out, magnitudes, named = out.copy(), np.abs(out), set()
    for place, row in zip(places, rows, strict=True):
        if kind == "Update":
            if place in named and not np.array_equal(out[place], row):
                raise Inexact("writes an element twice: which value stays is not specified")
            out[place] = row
        elif kind in ("Add", "Sub"):
            magnitudes[place] += np.abs(row)
            out[place] += row if kind == "Add" else -row
        else:
            out[place] = (np.maximum if kind == "Max" else np.minimum)(out[place], row)
        named.add(place)
    if kind in ("Add", "Sub"):
        bounded(magnitudes)
    return out


def _tensor_scatter(kind: str) -> Callable[..., Any]:
    def compute(_: Call, tensor: Array, indices: Array, updates: Array) -> Any:
        expect(tensor.ndim > 0, "takes no scalar", "tensor")
        return scattered(tensor, indices, updates, kind)

    return compute


def _scatter_nd(_: Call, indices: Array, updates: Array, shape: Array) -> Any:
    wanted = vector(shape, "shape")
    expect(min(wanted, default=1) >= 0, "holds a negative number", "shape")
    expect(len(wanted) > 0, "is no scalar's", "shape")
    _limit(wanted, "shape")
    return scattered(np.zeros(wanted, np.int64), indices, updates, "Add")


def _limit(shape: Sequence[int], operand: str) -> None:
    total = 1
    for each in shape:
        total *= max(each, 1)
    if total > MAX_ELEMENTS:
        raise Inexact(f"more than {MAX_ELEMENTS} elements: {list(shape)}", operand)


def _scatter_shape(call: Call) -> Shape | None:
    """The shape that is known; refuses indices and updates that do not fit its rank."""
    known = call.known_value("shape")
    indices, updates = call.type_of("indices"), call.type_of("updates")
    expect(len(call.type_of("shape").shape) == 1, "must be a vector", "shape")
    expect(len(indices.shape) > 0, "takes no scalar", "indices")
    if known is None or indices.dynamic or updates.dynamic:
        return None
    expect(min(known) >= 1, "holds a number below 1", "shape")
    _limit(known, "shape")
    depth = indices.shape[-1]
    expect(depth <= len(known), f"{depth} coordinates in rank {len(known)}", "indices")
    wanted = (*indices.shape[:-1], *known[depth:])
    expect(updates.shape == wanted, f"has shape {list(wanted)}", "updates")
    return known


# --- sparse tensors: coordinates, values, shape -----------------------------------------


def _entries(
    indices: Array, values: Array, shape: Sequence[int], operand: str, *, ordered: bool
) -> list[Shape]:
    """The coordinates of a sparse tensor, one vector for each value; none twice."""
    matrix = indices.ndim == 2 and indices.shape == (values.size, len(shape))
    expect(matrix, f"has shape [{values.size}, {len(shape)}]", operand)
    places = _coordinates(indices, tuple(shape), operand)
    if ordered:
        expect(places == sorted(set(places)), "are not in order, or one is there twice", operand)
    elif len(set(places)) != len(places):
        raise Inexact("name an element twice", operand)
    return places


def _dense_shape(shape: Array, operand: str) -> list[int]:
    wanted = vector(shape, operand)
    expect(min(wanted, default=0) >= 0, "holds a negative number", operand)
    _limit(wanted, operand)
    return wanted


def _sparse_to_dense(call: Call, indices: Array, shape: Array, values: Array, fill: Array) -> Any:
    wanted = _dense_shape(shape, "output_shape")
    expect(indices.ndim == 2, "must be a matrix", "sparse_indices")
    expect(values.shape == indices.shape[:1], "has one value for each", "sparse_values")
    ordered = bool(call["validate_indices"])
    places = _entries(indices, values, wanted, "sparse_indices", ordered=ordered)
    out = np.full(wanted, scalar(fill, "default_value"), np.int64)
    for place, value in zip(places, values, strict=True):
        out[place] = value
    return out


def _sparse_shape(
    shape_operand: str, indices_operand: str, values: str
) -> Callable[[Call], Shape | None]:
    """Check the parts of a sparse tensor; the dense shape, where it is known."""

    def shape(call: Call) -> Shape | None:
        indices, held = call.type_of(indices_operand), call.type_of(values)
        wanted = call.type_of(shape_operand)
        expect(len(wanted.shape) == 1, "must be a vector", shape_operand)
        expect(len(indices.shape) == 2, "must be a matrix", indices_operand)
        if not (indices.dynamic or held.dynamic or wanted.dynamic):
            fits = indices.shape == (*held.shape, *wanted.shape)
            expect(fits, f"has shape {[*held.shape, *wanted.shape]}", indices_operand)
        known = call.known_value(shape_operand)
        if known is not None:
            expect(min(known, default=0) >= 0, "holds a negative number", shape_operand)
            _limit(known, shape_operand)
        return known

    return shape


_DENSE_SHAPE: Final = _sparse_shape("output_shape", "sparse_indices", "sparse_values")


def _sparse_dense_shape(call: Call) -> Shape | None:
    expect(not call.type_of("default_value").shape, "must be a scalar", "default_value")
    return _DENSE_SHAPE(call)


def _sparse_matrix(indices: Array, values: Array, shape: Array, *, adjoint: bool) -> Array:
    if (shape < 1).any():  # TensorFlow 2.21 ends the process: "dimensions to be non-negative"
        raise Inexact("holds a number below 1", "a_shape")
    extents = _dense_shape(shape, "a_shape")
    expect(len(extents) == 2, "has two dimensions", "a_shape")
    expect(values.ndim == 1, "must be a vector", "a_values")
    out = np.zeros(extents, np.int64)
    for place, value in zip(
        _entries(indices, values, extents, "a_indices", ordered=False), values, strict=True
    ):
        out[place] = value
    return out.T if adjoint else out


def _sparse_matmul(call: Call, indices: Array, values: Array, shape: Array, b: Array) -> Any:
    a = _sparse_matrix(indices, values, shape, adjoint=call["adjoint_a"])
    expect(b.ndim == 2, "must be a matrix", "b")
    b = b.T if call["adjoint_b"] else b
    expect(a.shape[1] == b.shape[0], f"cannot multiply {list(a.shape)} by {list(b.shape)}", "b")
    bounded(np.abs(a) @ np.abs(b))
    return a @ b


_A_SHAPE: Final = _sparse_shape("a_shape", "a_indices", "a_values")


def _sparse_matmul_shape(call: Call) -> Shape | None:
    known, b = _A_SHAPE(call), call.type_of("b")
    expect(call.type_of("a_shape").shape == (2,), "has two numbers", "a_shape")
    expect(len(b.shape) == 2, "must be a matrix", "b")
    if known is None or b.dynamic:
        return None
    rows, inner = reversed(known) if call["adjoint_a"] else known
    left, columns = reversed(b.shape) if call["adjoint_b"] else b.shape
    expect(inner == left, f"cannot multiply {[rows, inner]} by {[left, columns]}", "b")
    return rows, columns


def _by_dense(call: Call, indices: Array, values: Array, shape: Array, dense: Array) -> Any:
    extents = _dense_shape(shape, "sp_shape")
    expect(values.ndim == 1, "must be a vector", "sp_values")
    if not (len(extents) and _fits(indices, values, extents)):
        raise Inexact("not inside, which the kernel does not always refuse", "sp_indices")
    places = [tuple(map(int, each)) for each in indices]
    if dense.shape not in ((), tuple(extents)):
        raise Inexact("broadcasts in some shapes only", "dense")
    by = np.broadcast_to(dense, extents)
    others = np.array([by[place] for place in places], np.int64)
    return values + others if call.op.name.endswith("Add") else values * others


def _fits(indices: Array, values: Array, extents: Sequence[int]) -> bool:
    fits = indices.shape == (len(values), len(extents))
    return fits and _all_inside(indices, extents)


def _by_dense_shape(call: Call) -> Shape | None:
    _SP_SHAPE(call)
    kind = call.type_of("sp_values")
    expect(len(kind.shape) == 1, "must be a vector", "sp_values")
    return None if kind.dynamic else kind.shape


def _sparse_add(_: Call, indices: Array, values: Array, shape: Array, b: Array) -> Any:
    expect(_dense_shape(shape, "a_shape") == list(b.shape), "is the shape of b", "a_shape")
    expect(values.ndim == 1, "must be a vector", "a_values")
    out = b.copy()
    for place, value in zip(
        _entries(indices, values, b.shape, "a_indices", ordered=False), values, strict=True
    ):
        out[place] += value
    return out


def _sparse_add_shape(call: Call) -> Shape | None:
    known, b = _A_SHAPE(call), call.type_of("b")
    if b.dynamic:
        return None
    expect(call.type_of("a_shape").shape == (len(b.shape),), "has the rank of b", "a_shape")
    expect(known in (None, b.shape), f"is the shape of b, {list(b.shape)}", "a_shape")
    return b.shape


def _all_inside(indices: Array, extents: Sequence[int]) -> bool:
    return bool(((indices >= 0) & (indices < np.array(extents, np.int64))).all())


def _reduced_axes(axes: Array, rank: int) -> set[int]:
    return {axis_of(int(axis), rank, "reduction_axes") for axis in axes.ravel()}


def _sparse_reduce(kind: str) -> Callable[..., Any]:
    def compute(call: Call, indices: Array, values: Array, shape: Array, axes_: Array) -> Any:
        extents = _dense_shape(shape, "input_shape")
        expect(values.ndim == 1, "must be a vector", "input_values")
        expect(axes_.ndim <= 1, "must be a scalar or a vector", "reduction_axes")
        fits = indices.shape == (len(values), len(extents))
        expect(fits, f"has shape {[len(values), len(extents)]}", "input_indices")
        places = [tuple(map(int, each)) for each in indices]
        if places != sorted(set(places)) or not _all_inside(indices, extents):
            raise Inexact("not in order or outside, which the kernel does not refuse")
        axes = _reduced_axes(axes_, len(extents))
        expect(bool(axes), "is empty", "reduction_axes")
        kept = [axis for axis in range(len(extents)) if axis not in axes]
        out = np.zeros([extents[axis] for axis in kept], np.int64)
        magnitudes = out.copy()
        named = set()
        for place, value in zip(places, values, strict=True):
            group = tuple(place[axis] for axis in kept)
            magnitudes[group] += abs(value)
            if kind == "Sum":
                out[group] += value
            else:
                out[group] = max(out[group], value) if group in named else value
            named.add(group)
        bounded(magnitudes)
        if call["keep_dims"]:
            out = out.reshape([1 if a in axes else d for a, d in enumerate(extents)])
        return out

    return compute


_SP_SHAPE: Final = _sparse_shape("sp_shape", "sp_indices", "sp_values")
_INPUT_SHAPE: Final = _sparse_shape("input_shape", "input_indices", "input_values")


def _sparse_reduce_shape(call: Call) -> Shape | None:
    extents = _INPUT_SHAPE(call)
    axes = call.known_value("reduction_axes")
    expect(len(call.type_of("reduction_axes").shape) <= 1, "must be a vector", "reduction_axes")
    if extents is None or axes is None:
        return None
    found = _reduced_axes(np.array(axes, np.int64), len(extents))
    if call["keep_dims"]:
        return tuple(1 if a in found else d for a, d in enumerate(extents))
    return tuple(d for a, d in enumerate(extents) if a not in found)


def sum_bound(call: Call, bounds: Sequence[int]) -> int:
    """Bound of an op that adds each element of an operand once, at most."""
    return max(1, *bounds) * (1 + max(size(each) for each in call.inputs))


def _slice_grad(_: Call, grad: Array, indices: Array, start: Array, taken: Array) -> Any:
    """The gradient of each element: that of the element that a slice has at its place, or 0."""
    for name, each in (("input_indices", indices), ("output_indices", taken)):
        expect(each.ndim == 2, "must be a matrix", name)
    begin = vector(start, "input_start", indices.shape[1])
    expect(taken.shape == (grad.size, indices.shape[1]), "one for each", "output_indices")
    places = [tuple(int(v) for v in each) for each in indices]
    wanted = [tuple(int(v) + b for v, b in zip(each, begin, strict=True)) for each in taken]
    kept = [place for place in places if place in set(wanted)]
    if kept != wanted or len(set(places)) != len(places):
        raise Inexact("no slice in order, which the kernel does not always refuse")
    back = dict(zip(wanted, grad.tolist(), strict=True))
    return np.array([back.get(place, 0) for place in places], np.int64)


def _slice_grad_shape(call: Call) -> Shape | None:
    grad, indices = call.type_of("backprop_val_grad"), call.type_of("input_indices")
    taken = call.type_of("output_indices")
    expect(len(grad.shape) == 1, "must be a vector", "backprop_val_grad")
    for name, each in (("input_indices", indices), ("output_indices", taken)):
        expect(len(each.shape) == 2, "must be a matrix", name)
    if any(each.dynamic for each in call.inputs):
        return None
    rank = indices.shape[1]
    expect(taken.shape == (grad.shape[0], rank), "has one for each", "output_indices")
    expect(call.type_of("input_start").shape == (rank,), f"has {rank} numbers", "input_start")
    return indices.shape[:1]


def _set_size(call: Call, indices: Array, values: Array, shape: Array) -> Any:
    """How many values there are in each set, which the last dimension holds."""
    extents = _dense_shape(shape, "set_shape")
    expect(values.ndim == 1, "must be a vector", "set_values")
    expect(len(extents) >= 2, "has two numbers at least", "set_shape")
    places = [tuple(map(int, each)) for each in indices]
    fits = _fits(indices, values, extents)
    if not fits or places != sorted(set(places)) or min(extents) < 1:
        raise Inexact("not in order or outside, which the kernel does not always refuse")
    sets: dict[Shape, set[int]] = {}
    for place, value in zip(places, values.tolist(), strict=True):
        sets.setdefault(place[:-1], set()).add(value)
    out = np.zeros(extents[:-1], np.int64)
    for place, each in sets.items():
        out[place] = len(each)
    return out


_SET_SHAPE: Final = _sparse_shape("set_shape", "set_indices", "set_values")


def _set_size_shape(call: Call) -> Shape | None:
    known = _SET_SHAPE(call)
    expect(len(call.type_of("set_values").shape) == 1, "must be a vector", "set_values")
    if not call.type_of("set_shape").dynamic:
        expect(call.type_of("set_shape").shape[0] >= 2, "has two numbers at least", "set_shape")
    return None if known is None else known[:-1]


_VALIDATE: Final = (Field("validate_indices", "bool", default=True),)
_KEEP: Final = (Field("keep_dims", "bool", default=False),)
ROWS: Final = (
    PureOp(
        "Gather",
        "params:A indices:I -> A",
        gather,
        largest_of("params"),
        index=("indices",),
        rank=lambda c: len(c.inputs[0].shape) - 1 + len(c.inputs[1].shape),
    ),
    PureOp(
        "GatherV2",
        "params:A indices:I axis:I2 -> A",
        _gather_v2,
        largest_of("params"),
        (Field("batch_dims", "int", 0),),
        shape_from=("axis",),
        index=("indices",),
        rank=_gather_v2_rank,
    ),
    PureOp(
        "GatherNd",
        "params:A indices:I -> A",
        gather_nd,
        largest_of("params"),
        index=("indices",),
        rank=lambda c: len(c.inputs[1].shape) - 1 + len(c.inputs[0].shape) - depth_of(c),
    ),
    PureOp(
        "ScatterNd",
        "indices:I updates:T shape:I -> T",
        _scatter_nd,
        sum_bound,
        shape_from=("shape",),
        rank=known_length("shape"),
        shape=_scatter_shape,
        tried=False,
        divisors=("indices",),
    ),
    *(
        PureOp(
            f"TensorScatter{kind}",
            f"tensor:{'A' if kind == 'Update' else 'T'} indices:I "
            f"updates:{'A -> A' if kind == 'Update' else 'T -> T'}",
            _tensor_scatter(kind),
            sum_bound if kind in ("Add", "Sub") else largest_of("tensor", "updates"),
            index=("indices",),
            rank=ranks("tensor"),
        )
        for kind in ("Update", "Add", "Sub", "Max", "Min")
    ),
    PureOp(
        "ScatterNdNonAliasingAdd",
        "input:T indices:I updates:T -> T",
        lambda _, x, indices, updates: scattered(x, indices, updates, "Add"),
        sum_bound,
        index=("indices",),
        rank=ranks("input"),
    ),
    PureOp(
        "SparseToDense",
        "sparse_indices:I output_shape:I sparse_values:A default_value:A -> A",
        _sparse_to_dense,
        largest_of("sparse_values", "default_value"),
        _VALIDATE,
        shape_from=("output_shape",),
        rank=known_length("output_shape"),
        shape=_sparse_dense_shape,
        tried=False,
        divisors=("sparse_indices",),
    ),
    PureOp(
        "SparseTensorDenseMatMul",
        "a_indices:I a_values:T a_shape:int64 b:T -> T",
        _sparse_matmul,
        lambda call, b: max(1, b[1]) * max(1, b[3]) * size(call.inputs[1]),
        (Field("adjoint_a", "bool", default=False), Field("adjoint_b", "bool", default=False)),
        shape_from=("a_shape",),
        rank=lambda _: 2,
        shape=_sparse_matmul_shape,
        tried=False,
        divisors=("a_indices",),
        dtypes=("int32", "float32", "float64"),
    ),
    PureOp(
        "SparseTensorDenseAdd",
        "a_indices:I a_values:T a_shape:I b:T -> T",
        _sparse_add,
        lambda _, b: b[1] + b[3],
        rank=ranks("b"),
        shape=_sparse_add_shape,
        tried=False,
        divisors=("a_indices", "a_shape"),
    ),
    *(
        PureOp(
            f"SparseDenseCwise{kind}",
            "sp_indices:int64 sp_values:T sp_shape:int64 dense:T -> T",
            _by_dense,
            (lambda _, b: b[1] + b[3]) if kind == "Add" else (lambda _, b: b[1] * b[3]),
            rank=lambda _: 1,
            shape=_by_dense_shape,
            tried=False,
            divisors=("sp_indices", "sp_shape"),
        )
        for kind in ("Add", "Mul")
    ),
    PureOp(
        "SparseSliceGrad",
        "backprop_val_grad:T input_indices:int64 input_start:int64 output_indices:int64 -> T",
        _slice_grad,
        largest_of("backprop_val_grad"),
        rank=lambda _: 1,
        shape=_slice_grad_shape,
        tried=False,
    ),
    PureOp(
        "SetSize",
        "set_indices:int64 set_values:I set_shape:int64 -> int32",
        _set_size,
        elements,
        _VALIDATE,
        shape_from=("set_shape",),
        rank=lambda call: known_length("set_shape")(call) - 1,
        shape=_set_size_shape,
        tried=False,
    ),
    *(
        PureOp(
            f"SparseReduce{kind}",
            "input_indices:int64 input_values:T input_shape:int64 reduction_axes:int32 -> T",
            _sparse_reduce(kind),
            lambda call, b: max(1, b[1]) * size(call.inputs[1]),
            _KEEP,
            shape_from=("input_shape", "reduction_axes"),
            shape=_sparse_reduce_shape,
            tried=False,
        )
        for kind in ("Sum", "Max")
    ),
)
"""Rows of this family."""
