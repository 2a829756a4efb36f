"""The row of a pure op, its static types, and its evaluation.

Values are integers, held in arrays of int64 whatever the dtype: a test keeps every value
below 2**24, which all dtypes hold exactly (semantics.md, section 1).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Protocol

from litmusfuzz.corpus.pure.arrays import np
from litmusfuzz.corpus.struct import Struct
from litmusfuzz.corpus.tensors import (
    BOOL,
    DTYPES,
    FLOATS,
    MAX_ELEMENTS,
    MAX_MAGNITUDE,
    UNKNOWN,
    MalformedTest,
    TensorType,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from litmusfuzz.corpus.pure.arrays import Array
    from litmusfuzz.corpus.pure.ranges import Range

Ints = tuple[int, ...]
Shape = tuple[int, ...]
AttrValue = int | bool | str | tuple[int, ...]
INTS: Final = ("int32", "int64")
ANY: Final = (*DTYPES, BOOL)
MAX_RANK: Final = 8
_CLASSES: Final = {"T": DTYPES, "F": FLOATS, "I": INTS, "A": ANY}
"""By the first letter of a type variable of a signature: the dtypes that it stands for."""


class Undefined(ValueError):
    """An op has no value for its operands.

    Parameters
    ----------
    message : str
    operand : str
        The operand at fault, or "".
    """

    def __init__(self, message: str, operand: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.operand = operand


class Fails(Undefined):
    """The op ends in an error: a division by zero, an index out of range, a wrong shape."""


class OutOfRange(Fails):
    """An index is none of what is indexed: that is no matter of types, even of a constant."""


class Inexact(Undefined):
    """The op's result is no integer below 2**24, or depends on the system it runs on."""


@dataclass(frozen=True, slots=True)
class Field:
    """An attribute of an op.

    Parameters
    ----------
    name : str
        As in TensorFlow.
    kind : str or tuple of str
        ``int``, ``bool``, ``ints`` (a list), ``dtype``, ``equation``, or the permitted names.
    default : AttrValue, optional
        None if it must be given.
    """

    name: str
    kind: str | tuple[str, ...]
    default: AttrValue | None = None

    def check(self, value: Any) -> None:
        """Refuse a value of another kind."""
        fits = {
            "int": isinstance(value, int) and not isinstance(value, bool),
            "bool": isinstance(value, bool),
            "ints": isinstance(value, tuple)
            and all(isinstance(v, int) and not isinstance(v, bool) for v in value),
            "dtype": value in ANY,
            "equation": isinstance(value, str) and len(value) <= 100,
        }
        if isinstance(self.kind, tuple):
            if value not in self.kind:
                text = f"must be {' or '.join(map(repr, self.kind))}, got {value!r:.80}"
                raise MalformedTest(text, (self.name,))
        elif not fits[self.kind]:
            raise MalformedTest(f"must be of kind {self.kind}, got {value!r:.80}", (self.name,))


class PureAttrs(Struct, frozen=True):
    """Attributes of a pure op: the name and value of each of its fields, in their order."""

    values: tuple[tuple[str, AttrValue], ...]

    def __getitem__(self, name: str) -> Any:
        """The value of an attribute."""
        return next(value for field_name, value in self.values if field_name == name)


class Compute(Protocol):
    """The exact function of an op.

    It gets the call and an array for each operand; for a repeated operand, a list of arrays.
    """

    def __call__(self, call: Call, /, *operands: Any) -> Array:
        """Return the result.

        Raises
        ------
        Undefined
            If there is none.
        """


@dataclass(frozen=True, slots=True, eq=False)  # each row is one object; caches hash it often
class PureOp:
    """One row: all that is known about a pure op.

    Parameters
    ----------
    name : str
        As in TensorFlow.
    signature : str
        Operands with their dtypes, and the result's: ``"x:T y:T -> T"``. A type variable begins
        with T (any number), F (float), I (integer) or A (any dtype); ``x*:T`` is given once or
        several times; ``-> @field`` is the dtype that an attribute names; ``x:[A]`` is a list.
    compute : Compute
    largest : callable
        Bound on the magnitude of the result, and of each intermediate result, from the call
        and bounds on the operands' magnitudes.
    fields : tuple of Field
    lanes : bool
        True if it acts on each lane alike, so that a test with it may have lanes.
    shape_from : tuple of str
        Operands on whose values the shape of the result depends.
    index : tuple of str
        Operands that are indices: 0 is one, 1 may be none.
    rank : callable, optional
        Rank of the result by those of the operands, where a dimension is not known. None if
        the op takes static types only.
    shape : callable, optional
        Shape of the result where some value or dimension is not known, and it follows from
        others; None where it does not.
    tried : bool
        True if the shape is that of the result for operands of ones, or zeros for indices.
        Else `shape` gives it, and refuses operands that do not fit.
    dtypes : tuple of str
        Those of the variables T; fewer where a kernel is missing.
    compiles : bool
        False if XLA has no kernel for it, or has one that fails or errs (TensorFlow 2.21).
    divisors : tuple of str
        Further operands, beside those above, whose values may make the op fail.
    results : tuple of (str, str)
        Of an op with several results: their names in TensorFlow, each with its dtype as in the
        signature. The attribute `result` names one.
    count : str
        Of an op with a list of results: the attribute with their number; ``*`` for as many as
        the repeated operand. The attribute `result` is a number.
    kernel : str
        Class of ops that share a kernel in TensorFlow; the name if "".
    """

    name: str
    signature: str
    compute: Compute
    largest: Callable[[Call, Sequence[int]], int]
    fields: tuple[Field, ...] = ()
    lanes: bool = False
    shape_from: tuple[str, ...] = ()
    index: tuple[str, ...] = ()
    rank: Callable[[Call], int] | None = None
    shape: Callable[[Call], Shape | None] | None = None
    tried: bool = True
    dtypes: tuple[str, ...] = ()
    divisors: tuple[str, ...] = ()
    compiles: bool = True
    results: tuple[tuple[str, str], ...] = ()
    count: str = ""
    kernel: str = ""
    operands: tuple[str, ...] = field(init=False)
    types: tuple[str, ...] = field(init=False)
    repeated: tuple[str, ...] = field(init=False)
    result: str = field(init=False)

    def __post_init__(self) -> None:
        given, _, result = self.signature.partition("->")
        pairs = [each.split(":") for each in given.split()]
        put = object.__setattr__
        put(self, "operands", tuple(name.rstrip("*") for name, _ in pairs))
        put(self, "types", tuple(kind for _, kind in pairs))
        put(self, "repeated", tuple(name[:-1] for name, _ in pairs if name.endswith("*")))
        put(self, "result", result.strip())

    @property
    def fails_by(self) -> frozenset[str]:
        """Operands whose values may make the op fail, where their types do not."""
        return frozenset((*self.shape_from, *self.index, *self.divisors))

    def roles(self, count: int) -> tuple[str, ...] | None:
        """Return the operand that each of `count` inputs is; None if that many do not fit."""
        if not self.repeated:
            return self.operands if count == len(self.operands) else None
        times, rest = divmod(count - len(self.operands) + len(self.repeated), len(self.repeated))
        if rest or times < 1:
            return None
        return tuple(
            name
            for each in self.operands
            for name in [each] * (times if each in self.repeated else 1)
        )

    def permitted(self, variable: str) -> tuple[str, ...]:
        """Return the dtypes that a type variable, or a dtype, stands for."""
        if variable in ANY:
            return (variable,)
        if variable[0] == "T" and self.dtypes:
            return self.dtypes
        return _CLASSES[variable[0]]

    def attributes(self, given: Mapping[str, AttrValue]) -> PureAttrs:
        """Return the attributes with defaults for those that are not given."""
        for name in given:
            if all(each.name != name for each in self.fields):
                raise MalformedTest(f"{self.name} has no attribute {name[:80]!r}", (name,))
        values: list[tuple[str, AttrValue]] = []
        for each in self.fields:
            value = given.get(each.name, each.default)
            if value is None:
                raise MalformedTest(f"{self.name} needs its attribute", (each.name,))
            each.check(value)
            values.append((each.name, value))
        return PureAttrs(tuple(values))

    def outputs(self, attrs: PureAttrs | None, inputs: int) -> tuple[int, int]:
        """The number of the result that a node has, and how many TensorFlow's op has.

        `inputs` is the number of the node's inputs.
        """
        if not (self.results or self.count):
            return 0, 1
        assert attrs is not None
        if self.results:
            names = [name for name, _ in self.results]
            return names.index(attrs["result"]), len(names)
        fixed = len(self.operands) - len(self.repeated)
        return attrs["result"], inputs - fixed if self.count == "*" else attrs[self.count]

    def grouped(self, values: Sequence[Any]) -> list[Any]:
        """Return one entry for each operand: a list for a repeated one."""
        roles = self.roles(len(values))
        assert roles is not None, self.name
        if not self.repeated:
            return list(values)
        groups: dict[str, list[Any]] = {name: [] for name in self.operands}
        for role, value in zip(roles, values, strict=True):
            groups[role].append(value)
        return [each if name in self.repeated else each[0] for name, each in groups.items()]


@dataclass(frozen=True, eq=False)
class Call:
    """An op with its attributes and the types of its operands.

    Calls are interned (`call_of`): each has a memo of its own.

    Parameters
    ----------
    op : PureOp
    attrs : PureAttrs or None
    inputs : tuple of TensorType
        Types of the model's values: those of one lane, in a test with lanes.
    result : TensorType
    known : tuple of (tuple of int or None)
        Of each input its value, where a constant gives it; while the type is inferred only.
    """

    op: PureOp
    attrs: PureAttrs | None
    inputs: tuple[TensorType, ...]
    result: TensorType | None = None
    known: tuple[Ints | None, ...] = ()
    _memo: dict[tuple[Ints, ...], Any] = field(default_factory=dict, repr=False)

    def __getitem__(self, name: str) -> Any:
        """The value of an attribute."""
        assert self.attrs is not None
        return self.attrs[name]

    def type_of(self, operand: str) -> TensorType:
        """Type of the first input for an operand."""
        return self.inputs[self.place(operand)]

    def known_value(self, operand: str) -> Ints | None:
        """Value of the first input for an operand, where it is known."""
        return self.known[self.place(operand)] if self.known else None

    def place(self, operand: str) -> int:
        """Position of the first input for an operand."""
        roles = self.op.roles(len(self.inputs))
        assert roles is not None
        return roles.index(operand)

    def evaluate(self, operands: tuple[Ints, ...]) -> Ints:
        """Return the result as a model value.

        Parameters
        ----------
        operands : tuple of tuple of int
            Model values. One of a dynamic type begins with its dimensions.

        Raises
        ------
        Undefined
            If the op has no value; with the same arguments, always.
        """
        found: Any = self._memo.get(operands)
        if found is None:
            if len(self._memo) >= _MEMO:
                self._memo.clear()
            try:
                found = self._evaluate(operands)
            except Undefined as error:
                # Not the exception: its traceback would keep all its frames.
                found = (type(error), error.message, error.operand)
            self._memo[operands] = found
        if found and isinstance(found[0], type):
            kind, message, operand = found
            raise kind(message, operand)
        value: Ints = found
        return value

    def _evaluate(self, operands: tuple[Ints, ...]) -> Ints:
        assert self.result is not None
        arrays = [unpacked(*each) for each in zip(operands, self.inputs, strict=True)]
        result = computed(self, arrays)
        shape = tuple(map(int, result.shape))
        flat = tuple(map(int, result.ravel().tolist()))
        if self.result.dynamic:
            return shape + flat
        assert shape == self.result.shape, (self.op.name, shape, self.result)
        return flat


_MEMO: Final = 1 << 14
"""Entries in the memo of one call, at most."""


def computed(call: Call, arrays: Sequence[Array]) -> Array:
    """Return the exact result for arrays of operands.

    Raises
    ------
    Undefined
        If there is none, or a value in it is not below 2**24.
    """
    result = np.asarray(call.op.compute(call, *call.op.grouped(arrays)))
    if result.size > MAX_ELEMENTS or result.ndim > MAX_RANK:
        raise Inexact(f"a result of shape {list(result.shape)} is too large")
    if result.dtype == object or (result.size and np.abs(result).max() >= MAX_MAGNITUDE):
        worst = max(result.ravel().tolist(), key=abs)
        raise Inexact(f"computes {worst}; every magnitude must stay below 2**24")
    return result.astype(np.int64)


def unpacked(value: Ints, kind: TensorType) -> Array:
    """A model value as an array."""
    if kind.dynamic:
        rank = len(kind.shape)
        return np.array(value[rank:], np.int64).reshape(value[:rank])
    return np.array(value, np.int64).reshape(kind.shape)


@lru_cache(1 << 12)
def call_of(
    op: PureOp, attrs: PureAttrs | None, inputs: tuple[TensorType, ...], result: TensorType
) -> Call:
    """The one call of an op with these attributes and types."""
    return Call(op, attrs, inputs, result)


def shape_value(op: str, kind: TensorType) -> Ints | None:
    """The value of Rank, Shape or Size of an operand of that type, where its shape is static.

    As TensorFlow's shape inference has it; None for other ops.
    """
    if op == "Rank":
        return (len(kind.shape),)
    if op in ("Shape", "Size") and not kind.dynamic:
        return kind.shape if op == "Shape" else (kind.size,)
    return None


_MAX_TRIED: Final = 64
"""Values of operands that are tried, to see whether one makes an op fail."""


def may_fail(
    op: PureOp,
    attrs: PureAttrs | None,
    inputs: tuple[TensorType, ...],
    known: tuple[Ints | None, ...],
    ranges: Sequence[Range | None],
) -> bool:
    """True if operands of these types may make the op fail, or leave it without a value.

    Only values of the right size count: any op may make a value too large. Where few values lie in
    the `ranges` of the operands that are not known, each is tried.
    """
    roles = op.roles(len(inputs))
    assert roles is not None
    asked = [place for place, role in enumerate(roles) if role in op.fails_by]
    if any(kind.dynamic for kind in inputs) or (asked and not op.tried):
        return True
    free = tuple((place, ranges[place]) for place in asked if known[place] is None)
    return bool(free) and _fails_within(op, attrs, inputs, known, free)


@lru_cache(maxsize=1024)
def _fails_within(
    op: PureOp,
    attrs: PureAttrs | None,
    inputs: tuple[TensorType, ...],
    known: tuple[Ints | None, ...],
    free: tuple[tuple[int, Range | None], ...],
) -> bool:
    """True if the op fails for some value of the free operands, or if that is not tried."""
    values, number = [], 1
    for place, limits in free:
        if limits is None:
            return True
        number *= (limits[1] - limits[0] + 1) ** inputs[place].size
        if number > _MAX_TRIED:
            return True
        each = range(limits[0], limits[1] + 1)
        values.append(itertools.product(each, repeat=inputs[place].size))
    roles = op.roles(len(inputs))
    assert roles is not None
    for chosen in itertools.product(*values):
        tried = list(known)
        for (place, _), value in zip(free, chosen, strict=True):
            tried[place] = value
        try:
            _tried(Call(op, attrs, inputs, known=tuple(tried)), roles)
        except Undefined:
            return True
    return False


@lru_cache(maxsize=1024)
def names_no_element(
    op: PureOp,
    attrs: PureAttrs | None,
    inputs: tuple[TensorType, ...],
    known: tuple[Ints | None, ...],
) -> bool:
    """True if a constant index is out of range: the op fails, as where the index is computed."""
    roles = op.roles(len(inputs))
    indices = {
        role
        for role, value in zip(roles or (), known, strict=False)
        if role in op.index and value is not None
    }
    if not indices or any(kind.dynamic for kind in inputs):
        return False
    assert roles is not None
    try:
        _tried(Call(op, attrs, inputs, known=known), roles)
    except OutOfRange:
        return True
    except Undefined:  # refused where the type is inferred
        return False
    return False


# --- static types ----------------------------------------------------------------------


def inferred(
    op: PureOp,
    attrs: PureAttrs | None,
    inputs: tuple[TensorType, ...],
    known: Sequence[Ints | None],
) -> TensorType:
    """Type of a pure op's result.

    Parameters
    ----------
    inputs : tuple of TensorType
    known : sequence of (tuple of int or None)
        Values of those inputs that are constants, flat.

    Raises
    ------
    MalformedTest
        If types or constants refute the call.
    """
    roles = op.roles(len(inputs))
    if roles is None:
        raise MalformedTest(
            f"{op.name} takes {', '.join(op.operands)}; got {len(inputs)}", ("inputs",)
        )
    _check_attrs(op, attrs)
    return _inferred(op, attrs, inputs, tuple(known))


# A test is typed when it is generated, when it is built, and whenever its nodes have other names.
@lru_cache(maxsize=4096)
def _inferred(
    op: PureOp,
    attrs: PureAttrs | None,
    inputs: tuple[TensorType, ...],
    known: tuple[Ints | None, ...],
) -> TensorType:
    """As `inferred`, for attributes that were checked: 1 and True are one key here."""
    roles = op.roles(len(inputs))
    assert roles is not None
    number, count = op.outputs(attrs, len(inputs))
    if not 0 <= number < count:
        raise MalformedTest(f"{op.name} has {max(count, 0)} results, from 0 on", ("result",))
    dtype = _dtype(op, attrs, inputs, roles)
    call = Call(op, attrs, inputs, known=known)
    try:
        return TensorType(dtype, _shape(call, roles))
    except Undefined as error:
        path: tuple[str | int, ...] = ("inputs",)
        if error.operand in roles:
            path += (roles.index(error.operand),)
        raise MalformedTest(f"{op.name}: {error.message}", path) from None


def _check_attrs(op: PureOp, attrs: PureAttrs | None) -> None:
    values = attrs.values if attrs else ()
    if [name for name, _ in values] != [each.name for each in op.fields]:
        raise MalformedTest(f"{op.name} has other attributes")
    for each, (_, value) in zip(op.fields, values, strict=True):
        each.check(value)


def _dtype(
    op: PureOp, attrs: PureAttrs | None, inputs: tuple[TensorType, ...], roles: tuple[str, ...]
) -> str:
    """Dtype of the result; refuses operands of dtypes that the op does not take."""
    found: dict[str, str] = {}
    kinds = dict(zip(op.operands, op.types, strict=True))
    for position, (role, each) in enumerate(zip(roles, inputs, strict=True)):
        variable = kinds[role]
        if variable.startswith("["):
            variable = variable[1:-1]
            if not each.is_list:
                raise MalformedTest(f"{role} must be a list, got {each}", ("inputs", position))
            each = each.stacked
        permitted = op.permitted(variable)
        if each.dtype not in permitted:
            text = f"{role} must be {' or '.join(permitted)}, got {each}"
            raise MalformedTest(text, ("inputs", position))
        first = found.setdefault(variable, each.dtype)
        if first != each.dtype:
            text = f"{role} must be {first}, as another operand is, got {each}"
            raise MalformedTest(text, ("inputs", position))
    kind = op.result
    if op.results:
        assert attrs is not None
        kind = dict(op.results)[attrs["result"]]
    if kind.startswith("["):
        return TensorType(_named(op, attrs, found, kind[1:-1]), ()).listed.dtype
    return _named(op, attrs, found, kind)


def _named(op: PureOp, attrs: PureAttrs | None, found: Mapping[str, str], kind: str) -> str:
    """The dtype that a type variable, or an attribute, stands for."""
    if kind.startswith("@"):
        assert attrs is not None
        name, _, permitted_names = kind[1:].partition("=")
        dtype: str = attrs[name]
        permitted = op.permitted(permitted_names)
        if dtype not in permitted:
            raise MalformedTest(f"must be {' or '.join(permitted)}, got {dtype}", (name,))
        return dtype
    return found.get(kind, kind)


def _shape(call: Call, roles: tuple[str, ...]) -> Shape:
    """Shape of the result: the op is computed on operands of the right shapes."""
    op = call.op
    open_ = [
        role
        for role, kind, known in zip(roles, call.inputs, call.known, strict=True)
        if kind.dynamic or (role in op.shape_from and known is None)
    ]
    if op.shape is not None and (open_ or not op.tried):
        shape = op.shape(call)
        if shape is not None:
            return _checked(shape)
    if open_:
        if op.rank is None:
            kind = call.type_of(open_[0])
            what = f"of unknown shape {kind}" if kind.dynamic else "that is no constant"
            raise Fails(f"takes no {open_[0]} {what}", open_[0])
        rank = op.rank(call)
        if rank > MAX_RANK:
            raise Fails(f"a result of rank {rank}; at most {MAX_RANK}")
        return (UNKNOWN,) * rank
    assert op.tried, op.name
    try:
        return _checked(_tried(call, roles).shape)
    except Inexact:
        # Of other operands than ones the result may be exact.
        shape = op.shape(call) if op.shape is not None else None
        if shape is None:
            raise
        return _checked(shape)


def _tried(call: Call, roles: tuple[str, ...]) -> Array:
    """The result for operands of which only shapes, and constants that matter, are right."""
    arrays = []
    for role, kind, known in zip(roles, call.inputs, call.known, strict=True):
        if known is not None and role in call.op.fails_by:
            arrays.append(np.array(known, np.int64).reshape(kind.shape))
        else:
            fill = 0 if role in call.op.index else 1
            arrays.append(np.full(kind.shape, fill, np.int64))
    return np.asarray(call.op.compute(call, *call.op.grouped(arrays)))


def _checked(shape: Shape) -> Shape:
    if math.prod(shape) > MAX_ELEMENTS:
        raise Fails(f"a result of more than {MAX_ELEMENTS} elements: {list(shape)}")
    if len(shape) > MAX_RANK:
        raise Fails(f"a result of rank {len(shape)}; at most {MAX_RANK}")
    if 0 in shape:
        raise Fails(f"a result without elements: {list(shape)}")
    return tuple(map(int, shape))


# --- parts of rows ---------------------------------------------------------------------


def size(kind: TensorType) -> int:
    """Elements of a value of that type, at most."""
    return MAX_ELEMENTS if kind.dynamic else kind.size


def largest_of(*operands: str) -> Callable[[Call, Sequence[int]], int]:
    """The bound of an op that passes on values of these operands, or 1."""

    def bound(call: Call, bounds: Sequence[int]) -> int:
        roles = call.op.roles(len(bounds))
        assert roles is not None
        found = [each for role, each in zip(roles, bounds, strict=True) if role in operands]
        return max(1, *found)

    return bound


def passes(_: Call, bounds: Sequence[int]) -> int:
    """The bound of an op whose result is at most the largest operand, or 1."""
    return max(1, *bounds)


def one(_: Call, __: Sequence[int]) -> int:
    """The bound of a comparison."""
    return 1


def elements(call: Call, _: Sequence[int]) -> int:
    """The bound of an op that returns a dimension, a position, or a number of elements."""
    return max(1, *(size(each) for each in call.inputs))


def bounded(magnitudes: Any, what: str = "a sum of magnitudes") -> None:
    """Refuse partial results that float32 could not hold, in whatever order they are added."""
    worst = np.max(magnitudes, initial=0)
    if worst >= MAX_MAGNITUDE:
        raise Inexact(f"{what} reaches {int(worst)}; each must stay below 2**24")


def product(values: Array, axis: Any = None) -> None:
    """Refuse factors of which some have a product of 2**24 or more, zeros taken for ones."""
    factors = np.maximum(np.abs(values), 1).astype(np.float64)
    with np.errstate(over="ignore"):
        bounded(np.prod(factors, axis=axis), "a product of magnitudes")


def axis_of(axis: int, rank: int, operand: str) -> int:
    """An axis, counted from 0."""
    if not -rank <= axis < rank:
        raise Fails(f"axis {axis} of rank {rank}", operand)
    return axis % rank


def axes_of(axes: Array, rank: int, operand: str) -> tuple[int, ...]:
    """Axes, counted from 0, in the order given; none twice."""
    if axes.ndim > 1:
        raise Fails(f"must be a scalar or a vector, got shape {list(axes.shape)}", operand)
    found = tuple(axis_of(int(axis), rank, operand) for axis in axes.ravel())
    if len(set(found)) != len(found):
        raise Fails(f"names an axis twice: {list(map(int, axes.ravel()))}", operand)
    return found


def scalar(value: Array, operand: str) -> int:
    """The int of a scalar operand."""
    if value.ndim:
        raise Fails(f"must be a scalar, got shape {list(value.shape)}", operand)
    return int(value)


def vector(value: Array, operand: str, length: int | None = None) -> list[int]:
    """The ints of a vector operand."""
    if value.ndim != 1 or (length is not None and len(value) != length):
        want = "a vector" if length is None else f"a vector of {length}"
        raise Fails(f"must be {want}, got shape {list(value.shape)}", operand)
    return [int(each) for each in value]


def expect(condition: bool, message: str, operand: str = "") -> None:  # noqa: FBT001
    """Raise `Fails` unless the condition holds."""
    if not condition:
        raise Fails(message, operand)


def rows_of(*rows: PureOp) -> tuple[PureOp, ...]:
    """Rows of one module."""
    return rows


def ranks(*operands: str) -> Callable[[Call], int]:
    """The rank of a result that is the largest among these operands."""
    return lambda call: max(len(call.type_of(each).shape) for each in operands)


def known_length(operand: str) -> Callable[[Call], int]:
    """The rank of a result whose shape an operand gives: the operand's length."""

    def rank(call: Call) -> int:
        kind = call.type_of(operand)
        if kind.dynamic or len(kind.shape) != 1:
            raise Fails(f"{operand} must be a vector of known length, got {kind}", operand)
        return kind.shape[0]

    return rank
