"""The op table: operands, attributes, types and properties of every op.

`OPS` is the one table for the whole program: code asks the row of an op (`OpDef`), not its
name. Oracles define what an op computes, executors how they run it.

The module has three parts: the table; the type of a node's result (`result_type`); and checks of
shapes and of literals. It passes on the names of `corpus.tensors` that users of the table need.

References
----------
semantics.md, section 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, cast

from litmusfuzz.corpus.pure import RESOURCE_ROWS, ROWS, opaque
from litmusfuzz.corpus.pure.definition import PureAttrs, PureOp, inferred
from litmusfuzz.corpus.struct import Struct, replace
from litmusfuzz.corpus.tensors import (
    BOOL,
    DTYPES,
    FLOATS,
    MAX_ELEMENTS,
    MAX_MAGNITUDE,
    MAX_MESSAGE,
    MAX_ROWS,
    MalformedTest,
    Nested,
    TensorType,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


_MAX_DIMENSIONS: Final = 8


class Kind(Enum):
    """Effect of an op on its resources (semantics.md, section 2)."""

    # `Enum.__hash__` is written in Python, which is too slow for what is asked so often.
    __hash__ = object.__hash__

    PURE = "pure"
    READ = "read"
    WRITE = "write"
    UPDATE = "update"
    STATE = "state"
    """Tells whether a variable has a value."""
    SECTION = "critical section"
    QUEUE = "queue"
    ACCUMULATOR = "accumulator"
    BRANCH = "conditional"
    LOOP = "loop"
    CALL = "call"
    HANDLE = "handle"
    """Provides a handle of a variable: a value that says which variable an op works on."""
    TRANSFER = "transfer"
    """Passes a value on from one device to another."""
    CLUSTER = "cluster"
    """All of a cluster's members as one; in no test, only among an oracle's events."""

    @property
    def only_reads(self) -> bool:
        """True if it touches a variable, and changes none."""
        return self in (Kind.READ, Kind.STATE)

    @property
    def writes(self) -> bool:
        """True if it changes a variable; such an op has no result."""
        return self in (Kind.WRITE, Kind.UPDATE)


class QueueUse(Enum):
    """Effect of an op on the elements of a queue."""

    PUT = "put"
    TAKE = "take"
    SIZE = "size"
    CLOSE = "close"


class AccumulatorUse(Enum):
    """Effect of an op on an accumulator of gradients."""

    APPLY = "apply"
    TAKE = "take"
    COUNT = "count"
    STEP = "step"


class ConstAttrs(Struct, frozen=True):
    """A constant: its type, and one int for all elements or one for each row.

    In a test with MatMul `value` may be a matrix, rows of ints.
    """

    dtype: str
    shape: tuple[int, ...]
    value: Nested


class PlaceholderAttrs(Struct, frozen=True):
    """The type of a value that the client feeds (`Run.feeds`)."""

    dtype: str
    shape: tuple[int, ...]


class HandleAttrs(Struct, frozen=True):
    """A handle: the variable that it stands for.

    A variable may have several; an op without a handle of its own has one as well.
    """

    variable: str


class RowsAttrs(Struct, frozen=True):
    """Rows that a gather or scatter touches, in order; a row may repeat."""

    indices: tuple[int, ...]


class SliceAttrs(Struct, frozen=True):
    """The rows ``begin:end:strides``; ``0 <= begin < end <= rows``, strides >= 1."""

    begin: int
    end: int
    strides: int

    @property
    def rows(self) -> range:
        """The rows named, in order."""
        return range(self.begin, self.end, self.strides)


class MomentumAttrs(Struct, frozen=True):
    """Attributes of a momentum step; `use_nesterov` is TensorFlow's."""

    use_nesterov: bool


class SectionAttrs(Struct, frozen=True):
    """The nodes of one body that the section holds together."""

    members: tuple[str, ...]


class CountAttrs(Struct, frozen=True):
    """Number of elements that a DequeueMany takes, at least 1."""

    count: int


Attrs = (
    ConstAttrs
    | PlaceholderAttrs
    | RowsAttrs
    | SliceAttrs
    | MomentumAttrs
    | SectionAttrs
    | CountAttrs
    | PureAttrs
    | HandleAttrs
)


_ON: Final = MappingProxyType(
    {
        Kind.SECTION: "mutex",
        Kind.QUEUE: "queue",
        Kind.ACCUMULATOR: "accumulator",
    }
)
"""What the resources of an op are (`OpDef.on`) if they are no variables."""


@dataclass(frozen=True, slots=True)
class OpDef:
    """One row of the table: all that is asked about an op, but for what it computes.

    Parameters
    ----------
    name : str
        As in TensorFlow.
    kind : Kind
    operands : tuple of str
        The data inputs, in order.
    roles : tuple of str
        The resources, in order.
    attrs : type, optional
        Of its attributes; none if None.
    dtypes : tuple of str
        Of the variables that it works on.
    dense : bool
        True for updates that the model `executor` makes indivisible (semantics.md, section 3).
    scalars : tuple of str
        Operands that are scalars, whatever the variable's shape: learning rates and the like.
    kernel : str
        Class of ops that share a kernel in TensorFlow, hence likely a cause of a defect;
        the name if "".
    scatter : bool
        True if it changes the rows that its indices name.
    nd : bool
        True if its indices are vectors of coordinates, here each of one coordinate.
    distinct : bool
        True if no index may repeat: which of two values stays is not specified.
    copies : bool
        True if its result, or the contents that it leaves, are values that it was given.
    queue : QueueUse, optional
        For ops on queues.
    accumulator : AccumulatorUse, optional
        For ops on accumulators.
    several : bool
        True if it moves several elements of a queue, each in a step of its own.
    compares : bool
        True if its result is bool.
    matrices : bool
        True if it multiplies matrices.
    selects : bool
        True if its first operand, a bool, selects one of the others, which have one type.
    same_types : bool
        True if its operands have one type: none may be a scalar beside the others.
    meaning : PureOp, optional
        Of an op that one function defines for all oracles: of its operands, or (`computed`)
        of a variable's value and its operands. The others have arithmetic of their own.
    """

    name: str
    kind: Kind
    operands: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    attrs: type[Attrs] | None = None
    dtypes: tuple[str, ...] = DTYPES
    dense: bool = False
    scalars: tuple[str, ...] = ()
    kernel: str = ""
    scatter: bool = False
    nd: bool = False
    distinct: bool = False
    copies: bool = False
    queue: QueueUse | None = None
    accumulator: AccumulatorUse | None = None
    several: bool = False
    compares: bool = False
    matrices: bool = False
    selects: bool = False
    same_types: bool = False
    meaning: PureOp | None = None
    constant: bool = field(init=False)
    """True if its attributes hold its value."""
    fed: bool = field(init=False)
    """True if the client gives its value."""
    has_value: bool = field(init=False)
    """True if a node of it stands for a value."""
    computed: bool = field(init=False)
    """True if its operands say which rows of a variable it touches."""
    sparse: bool = field(init=False)
    """True if it touches some rows only, and so needs a variable with rows."""
    on: str = field(init=False)
    """The kind of its resources: variable, mutex, queue, accumulator; nothing if it has none."""
    has_effect: bool = field(init=False)
    """True if it touches a resource, or holds nodes that may."""
    on_variables: bool = field(init=False)
    """True if it reads or changes the value of variables."""
    pure: bool = field(init=False)
    """True if it touches no resource, and holds no nodes."""

    def __post_init__(self) -> None:
        # Fields, and no properties: they are asked for each node of a test, several times.
        kind = self.kind
        constant = self.attrs is ConstAttrs
        fed = self.attrs is PlaceholderAttrs
        pure = kind in (Kind.PURE, Kind.TRANSFER)
        computed = self.meaning is not None and not pure
        on = _ON.get(kind, "variable") if self.roles else "nothing"
        object.__setattr__(self, "constant", constant)
        object.__setattr__(self, "fed", fed)
        object.__setattr__(self, "has_value", self._stands_for_a_value())
        object.__setattr__(self, "computed", computed)
        sparse = computed or self.attrs in (RowsAttrs, SliceAttrs)
        object.__setattr__(self, "sparse", sparse)
        object.__setattr__(self, "on", on)
        object.__setattr__(self, "has_effect", not (pure or kind is Kind.HANDLE))
        object.__setattr__(self, "on_variables", kind is Kind.READ or kind.writes)
        object.__setattr__(self, "pure", pure)

    def _stands_for_a_value(self) -> bool:
        """True if a node has a value of its own: what it returns, reads, takes or is given.

        Results of a loop, conditional or call are values of other names (`Node.results`).
        """
        if self.kind is Kind.QUEUE:
            return self.takes or self.sizes
        if self.kind is Kind.ACCUMULATOR:
            return self.accumulator in (AccumulatorUse.TAKE, AccumulatorUse.COUNT)
        if self.kind in (Kind.PURE, Kind.TRANSFER):  # NoOp has no value
            return bool(self.operands) or self.attrs in (ConstAttrs, PlaceholderAttrs)
        return self.kind is Kind.HANDLE or self.kind.only_reads

    @property
    def computes(self) -> bool:
        """True if it is pure, and its result is another value than that of an operand."""
        return self.kind is Kind.PURE and bool(self.operands) and not self.copies

    @property
    def whole_read(self) -> bool:
        """True if its result is all contents of a variable."""
        return self.kind is Kind.READ and not self.sparse

    @property
    def whole(self) -> bool:
        """True if it does not act on each lane alike: a test with such an op has no lanes."""
        return self.matrices or (self.meaning is not None and not self.meaning.lanes)

    @property
    def puts(self) -> bool:
        """True if it puts elements into a queue."""
        return self.queue is QueueUse.PUT

    @property
    def takes(self) -> bool:
        """True if it takes elements out of a queue."""
        return self.queue is QueueUse.TAKE

    @property
    def sizes(self) -> bool:
        """True if its result is the number of elements in a queue."""
        return self.queue is QueueUse.SIZE

    @property
    def closes(self) -> bool:
        """True if it closes a queue."""
        return self.queue is QueueUse.CLOSE

    @property
    def takes_sum(self) -> bool:
        """True if it takes the sum of an accumulator's gradients, once there are enough."""
        return self.accumulator is AccumulatorUse.TAKE

    @property
    def blocks(self) -> bool:
        """True if it may wait: for an element, for space, for a lock, for gradients."""
        return self.kind is Kind.SECTION or self.puts or self.takes or self.takes_sum

    @property
    def kernel_class(self) -> str:
        """Ops that share a kernel in TensorFlow have one class."""
        return "read" if self.kind is Kind.READ else self.kernel or self.name

    @property
    def short_name(self) -> str:
        """The name as reports show it where many stand in a row."""
        return self.name.removeprefix("Resource")


def _table() -> dict[str, OpDef]:
    pure, read, write, update = Kind.PURE, Kind.READ, Kind.WRITE, Kind.UPDATE
    var = ("var",)
    rows = [
        OpDef("Const", pure, attrs=ConstAttrs),
        OpDef("Placeholder", pure, attrs=PlaceholderAttrs),
        OpDef("NoOp", pure),
        OpDef("Identity", pure, ("x",), copies=True),
        *(OpDef(n, pure, ("x",)) for n in ("Neg", "Relu")),
        *(OpDef(n, pure, ("x", "y")) for n in ("AddV2", "Sub", "Mul", "Maximum", "Minimum")),
        *(OpDef(n, pure, ("x", "y"), compares=True) for n in ("Less", "Equal")),
        OpDef("Select", pure, ("condition", "t", "e"), selects=True),
        OpDef("ReluGrad", pure, ("gradients", "features"), same_types=True),
        OpDef("MatMul", pure, ("a", "b"), matrices=True),
        *(
            OpDef(
                row.name,
                pure,
                row.operands,
                attrs=PureAttrs if row.fields else None,
                kernel=row.kernel,
                meaning=row,
            )
            for row in (*ROWS, opaque.ROW)
        ),
        OpDef("Send", Kind.TRANSFER, ("tensor",), copies=True),
        OpDef("Recv", Kind.TRANSFER, ("sent",), copies=True),
        OpDef("VarIsInitializedOp", Kind.STATE, (), var),
        OpDef("ReadVariableOp", read, (), var, copies=True),
        OpDef("ResourceGather", read, (), var, RowsAttrs, copies=True),
        OpDef("ResourceGatherNd", read, (), var, RowsAttrs, nd=True, copies=True),
        OpDef("AssignVariableOp", write, ("value",), var, copies=True),
        OpDef("AssignAddVariableOp", update, ("value",), var, dense=True),
        OpDef("AssignSubVariableOp", update, ("value",), var, dense=True),
        OpDef(
            "ResourceApplyGradientDescent",
            update,
            ("alpha", "delta"),
            var,
            dtypes=FLOATS,
            dense=True,
            scalars=("alpha",),
            kernel="ResourceApply",
        ),
        # ResourceScatterAdd, ResourceScatterNdSub and the others
        *(
            OpDef(
                f"{kernel}{n}",
                update,
                ("updates",),
                var,
                RowsAttrs,
                kernel=kernel,
                scatter=True,
                nd=nd,
                distinct=n == "Update",
                copies=n == "Update",
            )
            for kernel, nd, names in (
                ("ResourceScatter", False, ("Update", "Add", "Sub", "Mul", "Min", "Max")),
                ("ResourceScatterNd", True, ("Update", "Add", "Sub")),
            )
            for n in names
        ),
        *(
            OpDef(
                row.name,
                update,
                row.operands[1:],
                var,
                kernel="ResourceScatter",
                scatter=True,
                meaning=row,
            )
            for row in RESOURCE_ROWS
            # The only one that has no row above: its places are operands always.
            if row.name == "ResourceScatterDiv"
        ),
        OpDef("ResourceStridedSliceAssign", update, ("value",), var, SliceAttrs, copies=True),
        # ResourceApplyMomentum and ResourceApplyKerasMomentum
        *(
            OpDef(
                f"ResourceApply{n}",
                update,
                ("lr", "grad", "momentum"),
                ("var", "accum"),
                MomentumAttrs,
                FLOATS,
                dense=True,
                scalars=("lr", "momentum"),
                kernel="ResourceApply",
            )
            for n in ("Momentum", "KerasMomentum")
        ),
        OpDef("CriticalSection", Kind.SECTION, (), ("mutex",), SectionAttrs),
        # QueueEnqueueV2 and the others
        *(
            OpDef(
                f"Queue{n}V2",
                Kind.QUEUE,
                operands,
                ("queue",),
                attrs,
                copies=use in (QueueUse.PUT, QueueUse.TAKE),
                queue=use,
                several=n.endswith("Many"),
            )
            for n, operands, attrs, use in (
                ("Enqueue", ("element",), None, QueueUse.PUT),
                ("Dequeue", (), None, QueueUse.TAKE),
                ("EnqueueMany", ("elements",), None, QueueUse.PUT),
                ("DequeueMany", (), CountAttrs, QueueUse.TAKE),
                ("Size", (), None, QueueUse.SIZE),
                ("Close", (), None, QueueUse.CLOSE),
            )
        ),
        # ResourceAccumulatorApplyGradient and the others
        *(
            OpDef(
                f"ResourceAccumulator{n}",
                Kind.ACCUMULATOR,
                operands,
                ("accumulator",),
                dtypes=FLOATS,
                accumulator=use,
            )
            for n, operands, use in (
                ("ApplyGradient", ("local_step", "gradient"), AccumulatorUse.APPLY),
                ("TakeGradient", ("num_required",), AccumulatorUse.TAKE),
                ("NumAccumulated", (), AccumulatorUse.COUNT),
                ("SetGlobalStep", ("new_global_step",), AccumulatorUse.STEP),
            )
        ),
        OpDef("If", Kind.BRANCH, ("predicate",)),
        OpDef("While", Kind.LOOP),
        OpDef("Call", Kind.CALL),
        OpDef("VarHandleOp", Kind.HANDLE, attrs=HandleAttrs),
    ]
    return {row.name: row for row in rows}


OPS: Final = MappingProxyType(_table())
WHOLE_OPS: Final = frozenset(name for name, op in OPS.items() if op.whole)
"""Ops that do not act on each lane alike."""
COMPUTED: Final = MappingProxyType(
    {
        row.name: replace(
            OPS[row.name],
            operands=row.operands[1:],
            attrs=PureAttrs if row.fields else None,
            meaning=row,
        )
        for row in RESOURCE_ROWS
    }
)
"""Rows of ops on variables whose indices, or slices, are operands, not attributes.

Such an op has a row of its name in `OPS` as well. A node has the row of `OPS` if its attributes are
`RowsAttrs` or `SliceAttrs`, else the one here (`Node.definition`).
"""
DEFINED_OPS: Final = frozenset(name for name, op in OPS.items() if op.meaning is not None)
"""Ops whose row in `OPS` has a `OpDef.meaning`: one function defines them, whatever their form."""
ABSTRACT_OPS: Final = frozenset((opaque.ROW.name,))
"""Ops that no framework has, and hence no executor: they stand for parts of a program."""
CLUSTER: Final = OpDef("Cluster", Kind.CLUSTER)
"""Stands for a cluster among an oracle's events; a test's nodes have ops of `OPS` only."""
EFFECT_OPS: Final = tuple(
    name for name, op in OPS.items() if op.on_variables and name not in DEFINED_OPS
)
"""Ops on variables that have a form whose places are attributes, or all of the variable."""


def result_type(
    op: OpDef,
    attrs: Attrs | None,
    inputs: tuple[TensorType, ...],
    variables: tuple[TensorType, ...],
    *,
    whole: bool,
    known: Sequence[tuple[int, ...] | None] = (),
) -> TensorType | None:
    """Type of a node's result, or None if it has none.

    Not for conditionals, loops, calls and handles: `corpus.model.validation` computes their types.

    Parameters
    ----------
    op, attrs
        The node's row of the table and its attributes.
    inputs, variables
        Types of its data inputs and of its resources, as many as `op` wants.
    whole : bool
        True if the test has an op that does not act on each lane alike: then there are no
        lanes, and values are whole tensors (semantics.md, section 1).
    known : sequence of (tuple of int or None)
        Values of those inputs that are constants.

    Raises
    ------
    MalformedTest
        With the field at fault, relative to the node.
    """
    if op.kind is Kind.SECTION:
        return None
    if op.meaning is not None:
        assert attrs is None or isinstance(attrs, PureAttrs)
        # Before an op on a variable as well: in a test with lanes, its operands have one shape.
        lanes = () if whole else _joined_shape(inputs)
        if op.computed:
            return _computed_type(op, op.meaning, attrs, inputs, variables, known)
        modelled = tuple(TensorType(k.dtype, model_shape(k.shape, whole=whole)) for k in inputs)
        result = inferred(op.meaning, attrs, modelled, known or (None,) * len(inputs))
        return result if whole else TensorType(result.dtype, lanes)
    if attrs is None and op.kind is not Kind.QUEUE:
        return _type_without_attributes(op.name, inputs, variables)
    _check_static(op, inputs)
    if op.kind is Kind.QUEUE:
        return _queue_type(op, attrs, inputs, variables[0])
    if op.has_effect:
        return _effect_type(op, attrs, inputs, variables)
    assert isinstance(attrs, (ConstAttrs, PlaceholderAttrs))
    check_shape(attrs.shape, attrs.dtype, (BOOL, *DTYPES))
    kind = TensorType(attrs.dtype, attrs.shape)
    if type(attrs) is ConstAttrs:
        check_value(attrs.value, kind, "value", whole=whole)
    return kind


def _check_static(op: OpDef, inputs: tuple[TensorType, ...]) -> None:
    """Refuse an operand of an unknown shape, but by an op that copies it."""
    for position, each in enumerate(inputs):
        if each.dynamic and not (op.pure and op.copies):
            text = f"{op.name} takes a value of known shape, got {each}"
            raise MalformedTest(text, ("inputs", position))


@lru_cache(maxsize=4096)
def _type_without_attributes(
    name: str, inputs: tuple[TensorType, ...], variables: tuple[TensorType, ...]
) -> TensorType | None:
    """As `result_type`, of an op without attributes and without `OpDef.meaning`, on no queue.

    A generator asks for each node of each test, and the answers are few. They are kept by the op's
    name, since a row has no cheap hash.
    """
    op = OPS[name]
    _check_static(op, inputs)
    if op.kind is Kind.ACCUMULATOR:
        return _accumulator_type(op, inputs, variables[0])
    if op.has_effect:
        return _effect_type(op, None, inputs, variables)
    if not op.has_value:
        return None
    if op.copies:
        return inputs[0]
    if op.matrices:
        return _matmul_type(*inputs)
    if op.selects:
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
    if op.same_types and inputs[0] != inputs[1]:
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
    return TensorType(BOOL, joined.shape) if op.compares else joined


def _computed_type(
    op: OpDef,
    row: PureOp,
    attrs: PureAttrs | None,
    inputs: tuple[TensorType, ...],
    variables: tuple[TensorType, ...],
    known: Sequence[tuple[int, ...] | None],
) -> TensorType | None:
    """Type of what an op on a variable returns if its indices are operands.

    For `OpDef.meaning` the variable is the first operand. A node has it among its resources: an
    error about operand 0 is about that, one about operand n about input n - 1.
    """
    values = (None, *(known or (None,) * len(inputs)))
    try:
        result = inferred(row, attrs, (*variables, *inputs), values)
    except MalformedTest as error:
        if error.path[:1] != ("inputs",) or len(error.path) == 1:
            raise
        place = int(error.path[1])
        path = ("inputs", place - 1) if place else ("resources", 0)
        raise MalformedTest(error.message, path) from None
    return result if op.kind is Kind.READ else None


def _joined_shape(inputs: tuple[TensorType, ...]) -> tuple[int, ...]:
    """The shape of the operands, in a test with lanes; refuses others than that and scalars."""
    joined: tuple[int, ...] = ()
    for position, each in enumerate(inputs):
        joined = joined or each.shape
        if each.shape not in ((), joined):
            text = f"operands have one shape or are scalars, got {list(joined)}, {each}"
            raise MalformedTest(text, ("inputs", position))
    return joined


def _queue_type(
    op: OpDef,
    attrs: Attrs | None,
    inputs: tuple[TensorType, ...],
    queue: TensorType,
) -> TensorType | None:
    """Type of what a queue op returns; `queue` is the type of an element."""
    several = op.several
    if several and queue.shape:
        raise MalformedTest(f"{op.name} takes a queue of scalars, got {queue}", ("resources", 0))
    if inputs:
        fits = (
            len(inputs[0].shape) == 1 and inputs[0].dtype == queue.dtype
            if several
            else inputs[0] == queue
        )
        if not fits:
            want = f"{queue.dtype}[n]" if several else str(queue)
            raise MalformedTest(f"must be {want}, got {inputs[0]}", ("inputs", 0))
        return None
    if op.sizes:
        return TensorType("int32", ())
    if isinstance(attrs, CountAttrs):
        if not 1 <= attrs.count <= MAX_ROWS:
            raise MalformedTest(f"must be 1 to {MAX_ROWS}, got {attrs.count}", ("count",))
        return TensorType(queue.dtype, (attrs.count,))
    return queue if op.takes else None


def _accumulator_type(
    op: OpDef, inputs: tuple[TensorType, ...], accumulator: TensorType
) -> TensorType | None:
    """Type of what an accumulator's op returns; `accumulator` is the type of a gradient."""
    wanted = {
        "local_step": TensorType("int64", ()),
        "new_global_step": TensorType("int64", ()),
        "num_required": TensorType("int32", ()),
        "gradient": accumulator,
    }
    for position, (role, each) in enumerate(zip(op.operands, inputs, strict=True)):
        if each != wanted[role]:
            raise MalformedTest(f"{role} must be {wanted[role]}, got {each}", ("inputs", position))
    if op.takes_sum:
        return accumulator
    return TensorType("int32", ()) if op.has_value else None


def _matmul_type(a: TensorType, b: TensorType) -> TensorType:
    """Type of a product of matrices; refuses what cannot be multiplied."""
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
    """Type of what an op on variables returns; refuses operands that do not fit the variables."""
    target = variables[0]
    if op.kind is Kind.STATE:
        return TensorType(BOOL, ())
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
        if role in op.scalars:
            wanted = ((),)
        elif op.scatter and not op.nd:
            wanted += ((),)
        if each.dtype != target.dtype or each.shape not in wanted:
            want = " or ".join(str(TensorType(target.dtype, w)) for w in wanted)
            raise MalformedTest(f"{role} must be {want}, got {each}", ("inputs", position))
    return None


def _count_rows(op: OpDef, attrs: Attrs | None, rows: int) -> int:
    """Number of rows that a sparse op touches; refuses any that a variable of `rows` lacks."""
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
    if op.distinct:
        seen: set[int] = set()
        for position, index in enumerate(attrs.indices):
            if index in seen:
                # Which of two would win is not specified (semantics.md, 2).
                raise MalformedTest(f"row {index} twice in an update", ("indices", position))
            seen.add(index)
    return len(attrs.indices)


def check_shape(shape: tuple[int, ...], dtype: str, dtypes: tuple[str, ...] = DTYPES) -> None:
    """Refuse an unknown dtype, an empty dimension, and an absurd size."""
    if dtype not in dtypes:
        raise MalformedTest(f"dtype must be {', '.join(dtypes)}; got {dtype!r}", ("dtype",))
    if type(shape) is not tuple:
        raise MalformedTest(f"a shape is a tuple, got {shape!r}", ("shape",))
    size = 1
    for position, extent in enumerate(shape):
        if type(extent) is not int:  # 2.0 and True are dimensions to nobody else
            raise MalformedTest(f"a dimension is an int, got {extent!r}", ("shape", position))
        if extent < 1:
            raise MalformedTest(f"a dimension must be >= 1, got {extent}", ("shape", position))
        size *= extent
        if size > MAX_ELEMENTS:
            raise MalformedTest(f"more than {MAX_ELEMENTS} elements", ("shape", position))
    if len(shape) > _MAX_DIMENSIONS:
        raise MalformedTest(f"more than {_MAX_DIMENSIONS} dimensions: {len(shape)}", ("shape",))
    if shape and shape[0] > MAX_ROWS:
        raise MalformedTest(f"more than {MAX_ROWS} rows: {shape[0]}", ("shape", 0))


def _check_elements(shape: tuple[int, ...], path: tuple[str, ...]) -> None:
    """Refuse a result that is absurdly larger than what it is made of."""
    size = math.prod(shape)
    if size > MAX_ELEMENTS:
        raise MalformedTest(f"more than {MAX_ELEMENTS} elements: {size}", path)


def model_shape(shape: tuple[int, ...], *, whole: bool) -> tuple[int, ...]:
    """Shape of a model value: one lane's rows, or all of it if `whole`."""
    return shape if whole else shape[:1]


def model_size(shape: tuple[int, ...], *, whole: bool) -> int:
    """Ints in a value of that static shape: one lane's rows, or all of it if `whole`."""
    return math.prod(model_shape(shape, whole=whole))


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


def check_value(value: Nested, kind: TensorType, field: str, *, whole: bool) -> None:
    """Refuse a literal that is no value of that type."""
    check_literal(value, kind.shape, field, whole=whole)
    if kind.dtype == BOOL and not all(each in (0, 1) for each in _flat(value)):
        raise MalformedTest("a bool is 0 or 1", (field,))


def expand(value: Nested, shape: tuple[int, ...], *, whole: bool) -> tuple[int, ...]:
    """The literal as the model's flat tuple of ints, row-major.

    Returns
    -------
    tuple of int
        Length ``model_size(shape, whole=whole)``.
    """
    if isinstance(value, int):
        return (value,) * model_size(shape, whole=whole)
    if not whole:
        return _flat(value)
    if len(shape) == 1:
        # Only the entries of a vector are ints: those of a matrix are rows.
        return tuple(cast("tuple[int, ...]", value))
    return tuple(v for part in value for v in expand(part, shape[1:], whole=True))


def _flat(value: Nested) -> tuple[int, ...]:
    """All ints of a literal, row-major."""
    return (value,) if isinstance(value, int) else tuple(v for part in value for v in _flat(part))


__all__ = [
    "ABSTRACT_OPS",
    "BOOL",
    "CLUSTER",
    "COMPUTED",
    "DEFINED_OPS",
    "DTYPES",
    "EFFECT_OPS",
    "FLOATS",
    "MAX_ELEMENTS",
    "MAX_MAGNITUDE",
    "MAX_MESSAGE",
    "MAX_ROWS",
    "OPS",
    "WHOLE_OPS",
    "AccumulatorUse",
    "Attrs",
    "ConstAttrs",
    "CountAttrs",
    "Kind",
    "MalformedTest",
    "MomentumAttrs",
    "Nested",
    "OpDef",
    "PureAttrs",
    "QueueUse",
    "RowsAttrs",
    "SectionAttrs",
    "SliceAttrs",
    "TensorType",
    "check_literal",
    "check_shape",
    "check_value",
    "expand",
    "model_shape",
    "model_size",
    "result_type",
]
