"""The operations: their TensorFlow names, operands, attributes and result types.

One table, `OPS`, for the whole program. What an op computes is the oracle's
business, how it is run an executor's; here stands only what makes a node
well-formed.

References
----------
semantics.md, section 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final

DTYPES: Final = ("int32", "int64", "float32", "float64")
FLOATS: Final = ("float32", "float64")
BOOL: Final = "bool"

Nested = int | tuple["Nested", ...]
"""A literal: an int, or rows of literals."""


class MalformedTest(ValueError):
    """A litmus test that breaks a rule of its format.

    Parameters
    ----------
    message : str
        What is wrong, with the value and the limit.
    path : tuple of str or int
        Where: the keys from the top of the file, ``("graphs", "main", "r0",
        "inputs", 0)``.
    """

    def __init__(self, message: str, path: tuple[str | int, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.path = path

    def __str__(self) -> str:
        where = ".".join(map(str, self.path))
        return f"{where}: {self.message}" if where else self.message


class Kind(Enum):
    """What an op does to its resources (semantics.md, section 2)."""

    PURE = "pure"
    READ = "read"
    WRITE = "write"
    UPDATE = "update"
    SECTION = "critical section"
    QUEUE = "queue"
    BRANCH = "conditional"
    LOOP = "loop"
    TRANSFER = "transfer"
    """Passes a value on from one device to another."""

    @property
    def writes(self) -> bool:
        """Whether it changes a resource; such an op has no result."""
        return self in (Kind.WRITE, Kind.UPDATE)


@dataclass(frozen=True, slots=True)
class TensorType:
    """dtype (one of `DTYPES`, or bool) and shape, lanes included."""

    dtype: str
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.dtype}{list(self.shape)}"

    @property
    def size(self) -> int:
        """Elements, lanes included."""
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True)
class ConstAttrs:
    """A constant: its type, and one int for all elements or one for each row.

    In a test with MatMul `value` may be a matrix, rows of ints.
    """

    dtype: str
    shape: tuple[int, ...]
    value: Nested


@dataclass(frozen=True, slots=True)
class RowsAttrs:
    """The rows that a gather or scatter touches, in order; may repeat."""

    indices: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SliceAttrs:
    """The rows ``begin:end:strides``; ``0 <= begin < end <= rows``, strides >= 1."""

    begin: int
    end: int
    strides: int

    @property
    def rows(self) -> range:
        """The rows named, in order."""
        return range(self.begin, self.end, self.strides)


@dataclass(frozen=True, slots=True)
class MomentumAttrs:
    """Whether the step looks ahead (TensorFlow's attribute of the same name)."""

    use_nesterov: bool


@dataclass(frozen=True, slots=True)
class SectionAttrs:
    """The nodes of one body that the section holds together."""

    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CountAttrs:
    """How many elements a DequeueMany takes; at least 1."""

    count: int


Attrs = ConstAttrs | RowsAttrs | SliceAttrs | MomentumAttrs | SectionAttrs | CountAttrs


@dataclass(frozen=True, slots=True)
class OpDef:
    """One row of the table.

    `roles` names the resources, `operands` the data inputs; `dense` updates
    are those that the model `executor` makes indivisible (semantics.md,
    section 3).
    """

    name: str
    kind: Kind
    operands: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    attrs: type[Attrs] | None = None
    dtypes: tuple[str, ...] = DTYPES
    dense: bool = False

    @property
    def on(self) -> str:
        """The kind of its resources: variable, mutex, queue, or nothing."""
        if self.kind in (Kind.BRANCH, Kind.LOOP, Kind.TRANSFER):
            return "nothing"
        return {Kind.SECTION: "mutex", Kind.QUEUE: "queue"}.get(self.kind, "variable")

    @property
    def has_effect(self) -> bool:
        """Whether it touches a resource, or holds nodes that may."""
        return self.kind not in (Kind.PURE, Kind.TRANSFER)

    @property
    def sparse(self) -> bool:
        """Whether it touches some rows only, and so needs a variable with rows."""
        return self.attrs in (RowsAttrs, SliceAttrs)


def _table() -> dict[str, OpDef]:
    pure, read, write, update = Kind.PURE, Kind.READ, Kind.WRITE, Kind.UPDATE
    var = ("var",)
    rows = [
        OpDef("Const", pure, attrs=ConstAttrs),
        OpDef("NoOp", pure),
        *(OpDef(n, pure, ("x",)) for n in ("Identity", "Neg", "Relu")),
        *(
            OpDef(n, pure, ("x", "y"))
            for n in ("AddV2", "Sub", "Mul", "Maximum", "Minimum", "Less", "Equal")
        ),
        OpDef("Select", pure, ("condition", "t", "e")),
        OpDef("ReluGrad", pure, ("gradients", "features")),
        OpDef("MatMul", pure, ("a", "b")),
        OpDef("Send", Kind.TRANSFER, ("tensor",)),
        OpDef("Recv", Kind.TRANSFER, ("sent",)),
        OpDef("ReadVariableOp", read, (), var),
        OpDef("ResourceGather", read, (), var, RowsAttrs),
        OpDef("ResourceGatherNd", read, (), var, RowsAttrs),
        OpDef("AssignVariableOp", write, ("value",), var),
        OpDef("AssignAddVariableOp", update, ("value",), var, dense=True),
        OpDef("AssignSubVariableOp", update, ("value",), var, dense=True),
        OpDef(
            "ResourceApplyGradientDescent",
            update,
            ("alpha", "delta"),
            var,
            dtypes=FLOATS,
            dense=True,
        ),
        *(
            OpDef(f"ResourceScatter{n}", update, ("updates",), var, RowsAttrs)
            for n in ("Update", "Add", "Sub", "Mul", "Min", "Max")
        ),
        *(
            OpDef(f"ResourceScatterNd{n}", update, ("updates",), var, RowsAttrs)
            for n in ("Update", "Add", "Sub")
        ),
        OpDef("ResourceStridedSliceAssign", update, ("value",), var, SliceAttrs),
        *(
            OpDef(
                f"ResourceApply{n}",
                update,
                ("lr", "grad", "momentum"),
                ("var", "accum"),
                MomentumAttrs,
                FLOATS,
                dense=True,
            )
            for n in ("Momentum", "KerasMomentum")
        ),
        OpDef("CriticalSection", Kind.SECTION, (), ("mutex",), SectionAttrs),
        OpDef("QueueEnqueueV2", Kind.QUEUE, ("element",), ("queue",)),
        OpDef("QueueDequeueV2", Kind.QUEUE, (), ("queue",)),
        OpDef("QueueEnqueueManyV2", Kind.QUEUE, ("elements",), ("queue",)),
        OpDef("QueueDequeueManyV2", Kind.QUEUE, (), ("queue",), CountAttrs),
        OpDef("QueueSizeV2", Kind.QUEUE, (), ("queue",)),
        OpDef("QueueCloseV2", Kind.QUEUE, (), ("queue",)),
        OpDef("If", Kind.BRANCH, ("predicate",)),
        OpDef("While", Kind.LOOP),
    ]
    return {row.name: row for row in rows}


OPS: Final = MappingProxyType(_table())
EFFECT_OPS: Final = tuple(
    name for name, op in OPS.items() if op.kind in (Kind.READ, Kind.WRITE, Kind.UPDATE)
)
"""The ops on variables."""


def result_type(
    op: OpDef,
    attrs: Attrs | None,
    inputs: tuple[TensorType, ...],
    variables: tuple[TensorType, ...],
    *,
    whole: bool,
) -> TensorType | None:
    """Type of a node's result, or None if it has none.

    Parameters
    ----------
    op, attrs
        The node's row of the table and its attributes.
    inputs, variables
        Types of its data inputs and of its resources, as many as `op` wants.
    whole : bool
        Whether the test has a MatMul: then there are no lanes, and values are
        whole matrices (semantics.md, section 1).

    Raises
    ------
    MalformedTest
        With the field at fault, relative to the node.
    """
    if op.kind is Kind.SECTION:
        return None
    if op.kind is Kind.QUEUE:
        return _queue_type(op, attrs, inputs, variables[0], whole=whole)
    if op.has_effect:
        return _effect_type(op, attrs, inputs, variables)
    if isinstance(attrs, ConstAttrs):
        check_shape(attrs.shape, attrs.dtype, (BOOL, *DTYPES))
        check_literal(attrs.value, attrs.shape, "value", whole=whole)
        if attrs.dtype == BOOL and not all(v in (0, 1) for v in _flat(attrs.value)):
            raise MalformedTest("a bool is 0 or 1", ("value",))
        return TensorType(attrs.dtype, attrs.shape)
    if op.name == "NoOp":
        return None
    if op.name == "Identity" or op.kind is Kind.TRANSFER:
        return inputs[0]
    if op.name == "MatMul":
        return _matmul_type(*inputs)
    if op.name == "Select":
        condition, then, other = inputs
        if condition.dtype != BOOL:
            raise MalformedTest(f"the condition is bool, got {condition}", ("inputs", 0))
        if then != other:
            raise MalformedTest(f"both choices have one type, got {then}, {other}", ("inputs", 2))
        if condition.shape not in ((), then.shape):
            raise MalformedTest(
                f"the condition is a scalar or has the choices' shape, got {condition}",
                ("inputs", 0),
            )
        return then
    for position, each in enumerate(inputs):
        if each.dtype == BOOL:
            raise MalformedTest(f"{op.name} takes numbers, got {each}", ("inputs", position))
    if op.name == "ReluGrad" and inputs[0] != inputs[1]:
        raise MalformedTest(f"both have one type, got {inputs[0]}, {inputs[1]}", ("inputs", 1))
    joined = inputs[0]
    for position, each in enumerate(inputs[1:], start=1):
        if each.dtype != joined.dtype:
            raise MalformedTest(
                f"operands have one dtype, got {joined}, {each}", ("inputs", position)
            )
        if joined.shape == ():
            joined = each
        elif each.shape not in ((), joined.shape):
            raise MalformedTest(
                f"operands have one shape or are scalars, got {joined}, {each}",
                ("inputs", position),
            )
    return TensorType(BOOL, joined.shape) if op.name in ("Less", "Equal") else joined


def _queue_type(
    op: OpDef,
    attrs: Attrs | None,
    inputs: tuple[TensorType, ...],
    queue: TensorType,
    *,
    whole: bool,
) -> TensorType | None:
    """Type of what a queue op returns; `queue` is the type of an element."""
    many = "Many" in op.name
    if many and (queue.shape or whole):
        raise MalformedTest(f"{op.name} takes a queue of scalars, got {queue}", ("resources", 0))
    if inputs:
        fits = (
            len(inputs[0].shape) == 1 and inputs[0].dtype == queue.dtype
            if many
            else inputs[0] == queue
        )
        if not fits:
            want = f"{queue.dtype}[n]" if many else str(queue)
            raise MalformedTest(f"must be {want}, got {inputs[0]}", ("inputs", 0))
        return None
    if op.name == "QueueSizeV2":
        return TensorType("int32", ())
    if op.name == "QueueDequeueV2":
        return queue
    if isinstance(attrs, CountAttrs):
        if not 1 <= attrs.count <= MAX_ROWS:
            raise MalformedTest(f"must be 1 to {MAX_ROWS}, got {attrs.count}", ("count",))
        return TensorType(queue.dtype, (attrs.count,))
    return None


def _matmul_type(a: TensorType, b: TensorType) -> TensorType:
    for position, each in enumerate((a, b)):
        if len(each.shape) != 2 or each.dtype == BOOL:
            raise MalformedTest(f"MatMul takes matrices, got {each}", ("inputs", position))
    if a.dtype != b.dtype or a.shape[1] != b.shape[0]:
        raise MalformedTest(f"cannot multiply {a} by {b}", ("inputs", 1))
    shape = (a.shape[0], b.shape[1])
    _check_elements(shape, ("inputs",))
    return TensorType(a.dtype, shape)


def _effect_type(
    op: OpDef,
    attrs: Attrs | None,
    inputs: tuple[TensorType, ...],
    variables: tuple[TensorType, ...],
) -> TensorType | None:
    target = variables[0]
    for position, variable in enumerate(variables):
        if variable.dtype not in op.dtypes:
            raise MalformedTest(
                f"{op.name} takes {' or '.join(op.dtypes)}, got {variable}",
                ("resources", position),
            )
        if variable != target:
            raise MalformedTest(
                f"its variables have one type, got {target}, {variable}", ("resources", position)
            )
    touched: tuple[int, ...] | None = None  # shape of the rows that a sparse op touches
    if op.sparse:
        if not target.shape:
            raise MalformedTest(f"{op.name} needs rows, got {target}", ("resources", 0))
        touched = (_count_rows(op, attrs, target.shape[0]), *target.shape[1:])
        _check_elements(touched, ("indices",))  # rows may repeat
    if op.kind is Kind.READ:
        return TensorType(target.dtype, touched) if touched else target
    for position, (role, each) in enumerate(zip(op.operands, inputs, strict=True)):
        wanted: tuple[tuple[int, ...], ...] = (touched or target.shape,)
        if role in ("alpha", "lr", "momentum"):
            wanted = ((),)
        elif op.name.startswith("ResourceScatter") and "Nd" not in op.name:
            wanted += ((),)
        if each.dtype != target.dtype or each.shape not in wanted:
            want = " or ".join(str(TensorType(target.dtype, w)) for w in wanted)
            raise MalformedTest(f"{role} must be {want}, got {each}", ("inputs", position))
    return None


def _count_rows(op: OpDef, attrs: Attrs | None, rows: int) -> int:
    if isinstance(attrs, SliceAttrs):
        if attrs.strides < 1:
            raise MalformedTest(f"strides must be >= 1, got {attrs.strides}", ("strides",))
        if not 0 <= attrs.begin < attrs.end <= rows:
            raise MalformedTest(
                f"need 0 <= begin < end <= {rows}, got {attrs.begin}:{attrs.end}", ("begin",)
            )
        return len(attrs.rows)
    assert isinstance(attrs, RowsAttrs)
    if not attrs.indices:
        raise MalformedTest("names no row", ("indices",))
    if len(attrs.indices) > MAX_ROWS:
        raise MalformedTest(f"more than {MAX_ROWS} rows: {len(attrs.indices)}", ("indices",))
    for position, index in enumerate(attrs.indices):
        if not 0 <= index < rows:
            raise MalformedTest(f"row {index} of {rows}", ("indices", position))
    if op.name in ("ResourceScatterUpdate", "ResourceScatterNdUpdate"):
        seen: set[int] = set()
        for position, index in enumerate(attrs.indices):
            if index in seen:
                # Which of two would win is not specified (semantics.md, 2).
                raise MalformedTest(f"row {index} twice in an update", ("indices", position))
            seen.add(index)
    return len(attrs.indices)


MAX_ROWS: Final = 1024
MAX_ELEMENTS: Final = 1 << 20
MAX_MAGNITUDE: Final = 1 << 24
"""Every value stays below, so that each dtype holds it exactly (semantics.md, 1)."""


def check_shape(shape: tuple[int, ...], dtype: str, dtypes: tuple[str, ...] = DTYPES) -> None:
    """Refuse an unknown dtype, an empty dimension, and an absurd size."""
    if dtype not in dtypes:
        raise MalformedTest(f"dtype must be {', '.join(dtypes)}; got {dtype!r}", ("dtype",))
    size = 1
    for position, extent in enumerate(shape):
        if extent < 1:
            raise MalformedTest(f"a dimension must be >= 1, got {extent}", ("shape", position))
        size *= extent
        if size > MAX_ELEMENTS:
            raise MalformedTest(f"more than {MAX_ELEMENTS} elements", ("shape", position))
    if len(shape) > 8:
        raise MalformedTest(f"more than 8 dimensions: {len(shape)}", ("shape",))
    if shape and shape[0] > MAX_ROWS:
        raise MalformedTest(f"more than {MAX_ROWS} rows: {shape[0]}", ("shape", 0))


def _check_elements(shape: tuple[int, ...], path: tuple[str, ...]) -> None:
    """Refuse a result that is absurdly larger than what it is made of."""
    size = math.prod(shape)
    if size > MAX_ELEMENTS:
        raise MalformedTest(f"more than {MAX_ELEMENTS} elements: {size}", path)


def model_size(shape: tuple[int, ...], *, whole: bool) -> int:
    """Ints in a value of that shape: one lane's rows, or all of it if `whole`."""
    if not whole:
        return shape[0] if shape else 1
    return math.prod(shape)


def check_literal(value: Nested, shape: tuple[int, ...], field: str, *, whole: bool) -> None:
    """Refuse a literal that does not fit its shape, or is too large.

    An int stands for every element; else there is one entry a row, an int or
    (`whole`) a row of ints.
    """
    if isinstance(value, int):
        if not -MAX_MAGNITUDE < value < MAX_MAGNITUDE:
            raise MalformedTest(f"magnitude must be below 2**24, got {value}", (field,))
        return
    if not shape or len(value) != shape[0]:
        want = f"{shape[0]} rows or one int" if shape else "one int"
        raise MalformedTest(f"must be {want}, got {len(value)} rows", (field,))
    for row, part in enumerate(value):
        if isinstance(part, tuple) and (not whole or len(shape) < 2):
            raise MalformedTest("a row is one int (lanes are alike)", (field, row))
        try:
            check_literal(part, shape[1:] if whole else (), field, whole=whole)
        except MalformedTest as error:
            raise MalformedTest(error.message, (field, row, *error.path[1:])) from None


def expand(value: Nested, shape: tuple[int, ...], *, whole: bool) -> tuple[int, ...]:
    """The literal as the model's flat tuple of ints, row-major.

    Returns
    -------
    tuple of int
        Length ``model_size(shape)``.
    """
    if isinstance(value, int):
        return (value,) * model_size(shape, whole=whole)
    if not whole:
        return _flat(value)
    return tuple(v for part in value for v in expand(part, shape[1:], whole=True))


def _flat(value: Nested) -> tuple[int, ...]:
    return (value,) if isinstance(value, int) else tuple(v for part in value for v in _flat(part))
