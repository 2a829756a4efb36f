"""Lists of tensors, with which the loops that AutoGraph writes collect and take tensors.

A list is a value, of the type ``list of int32[n, *element]``: its n elements have one shape, and
are kept as one array. TensorFlow's list may have elements that were never set. Each op that takes
one out gives zeros of the list's shape for them, so that they are zeros here. The shape of the
elements is a constant; it has one dimension at least, as no constant of a test is empty.

References
----------
TensorFlow, ``list_kernels.h``, ``list_kernels.cc``: an index outside a list is an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from litmusfuzz.corpus.pure.arrays import np
from litmusfuzz.corpus.pure.definition import (
    Call,
    Field,
    Inexact,
    PureOp,
    elements,
    expect,
    largest_of,
    passes,
    scalar,
    vector,
)
from litmusfuzz.corpus.tensors import MAX_ELEMENTS, UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Callable

    from litmusfuzz.corpus.pure.arrays import Array

Shape = tuple[int, ...]
_LIST: Final = "input_handle"


def _element_shape(call: Call) -> Shape:
    """The shape of each element, which must be a constant without open dimensions."""
    known = call.known_value("element_shape")
    if call.known and known is None:
        raise Inexact("must be a constant", "element_shape")
    return tuple(known or ())


def _count(number: Array, operand: str, shape: Shape) -> int:
    count = scalar(number, operand)
    expect(count >= 0, "is negative", operand)
    total = count * int(np.prod(shape, dtype=object))
    if max(count, total) > MAX_ELEMENTS:
        raise Inexact(f"more than {MAX_ELEMENTS} elements", operand)
    return count


def _given_shape(value: Array, *, open_: bool = False) -> Shape:
    """The shape that an operand holds; some dimensions may be open where a list knows them."""
    shape = tuple(vector(value, "element_shape"))
    if min(shape, default=1) < (UNKNOWN if open_ else 1):
        raise Inexact(f"has a dimension below 1: {list(shape)}", "element_shape")
    return shape


def _inside(place: int, held: Array, operand: str) -> None:
    expect(0 <= place < len(held), f"element {place} of {len(held)}", operand)


def _fits(shape: Shape, wanted: Shape) -> bool:
    return len(wanted) == len(shape) and all(
        want in (UNKNOWN, got) for want, got in zip(wanted, shape, strict=True)
    )


def _asked_for(held: Array, wanted: Array) -> None:
    """Refuse a shape that a list's elements do not have; kernels do not always do so."""
    shape = _given_shape(wanted, open_=True)
    if not _fits(held.shape[1:], shape):
        text = f"{list(shape)} for elements of shape {list(held.shape[1:])}"
        raise Inexact(text, "element_shape")


def _reserve(_: Call, shape_: Array, number: Array) -> Any:
    shape = _given_shape(shape_)
    return np.zeros((_count(number, "num_elements", shape), *shape), np.int64)


def _reserved(call: Call) -> Shape | None:
    shape = _given_shape(np.array(_element_shape(call), np.int64))
    known = call.known_value("num_elements")
    if known is None:
        return None
    return (_count(np.array(known[0]), "num_elements", shape), *shape)


def _from_tensor(_: Call, tensor: Array, shape: Array) -> Any:
    expect(tensor.ndim > 0, "takes no scalar", "tensor")
    wanted = _given_shape(shape, open_=True)
    expect(_fits(tensor.shape[1:], wanted), "is not that of the rows", "element_shape")
    return tensor


def _scatter(_: Call, tensor: Array, indices: Array, shape_: Array, number: Array) -> Any:
    shape = _given_shape(shape_)
    places = vector(indices, "indices")
    expect(tensor.ndim > 0 and len(tensor) == len(places), "has one for each", "tensor")
    expect(tensor.shape[1:] == shape, "is not that of the rows", "element_shape")
    out = np.zeros((_count(number, "num_elements", shape), *shape), np.int64)
    for place, row in zip(places, tensor, strict=True):
        _inside(place, out, "indices")
        out[place] = row
    return out


def _set(_: Call, held: Array, index: Array, item: Array) -> Any:
    expect(item.shape == held.shape[1:], f"has shape {list(held.shape[1:])}", "item")
    place = scalar(index, "index")
    _inside(place, held, "index")
    out = held.copy()
    out[place] = item
    return out


def _get(_: Call, held: Array, index: Array, shape: Array) -> Any:
    _asked_for(held, shape)
    place = scalar(index, "index")
    _inside(place, held, "index")
    return held[place]


def _gather(_: Call, held: Array, indices: Array, shape: Array) -> Any:
    _asked_for(held, shape)
    places = vector(indices, "indices")
    for place in places:
        _inside(place, held, "indices")
    return held[places] if places else held[:0]


def _stack(call: Call, held: Array, shape: Array) -> Any:
    _asked_for(held, shape)
    wanted = call["num_elements"]
    expect(wanted in (-1, len(held)), f"{len(held)} elements, not {wanted}", _LIST)
    return held


def _push(_: Call, held: Array, item: Array) -> Any:
    expect(item.shape == held.shape[1:], f"has shape {list(held.shape[1:])}", "tensor")
    return np.concatenate([held, item[None]])


def _pop(call: Call, held: Array, shape: Array) -> Any:
    _asked_for(held, shape)
    expect(len(held) > 0, "an empty list", _LIST)
    return held[-1] if call["result"] == "tensor" else held[:-1]


def _resize(_: Call, held: Array, wanted: Array) -> Any:
    count = _count(wanted, "size", held.shape[1:])
    rest = np.zeros((max(0, count - len(held)), *held.shape[1:]), np.int64)
    return np.concatenate([held[:count], rest])


def _joined(_: Call, one: Array, other: Array) -> Any:
    fits = one.shape[1:] == other.shape[1:]
    expect(fits, f"has elements of shape {list(one.shape[1:])}", "input_b")
    return np.concatenate([one, other])


def _rank(call: Call) -> int:
    return len(call.type_of(_LIST).shape)


def _row(
    name: str,
    signature: str,
    compute: Callable[..., Any],
    largest: Any,
    rank: Any,
    **more: Any,
) -> PureOp:
    return PureOp(name, signature, compute, largest, rank=rank, compiles=False, **more)


_DTYPE: Final = Field("element_dtype", "dtype")
ROWS: Final = (
    _row(
        "TensorListReserve",
        "element_shape:I num_elements:int32 -> [@element_dtype=A]",
        _reserve,
        lambda _, __: 1,
        lambda call: 1 + len(_element_shape(call)),
        fields=(_DTYPE,),
        shape_from=("element_shape", "num_elements"),
        shape=_reserved,
        tried=False,
    ),
    _row(
        "TensorListFromTensor",
        "tensor:A element_shape:I -> [A]",
        _from_tensor,
        largest_of("tensor"),
        lambda call: len(call.type_of("tensor").shape),
        divisors=("element_shape",),
    ),
    _row(
        "TensorListScatterV2",
        "tensor:A indices:int32 element_shape:I num_elements:int32 -> [A]",
        _scatter,
        largest_of("tensor"),
        lambda call: len(call.type_of("tensor").shape),
        shape_from=("element_shape", "num_elements"),
        index=("indices",),
    ),
    _row(
        "TensorListSetItem",
        f"{_LIST}:[A] index:int32 item:A -> [A]",
        _set,
        largest_of(_LIST, "item"),
        _rank,
        index=("index",),
    ),
    _row(
        "TensorListGetItem",
        f"{_LIST}:[A] index:int32 element_shape:int32 -> A",
        _get,
        largest_of(_LIST),
        lambda call: _rank(call) - 1,
        index=("index",),
        divisors=("element_shape",),
    ),
    _row(
        "TensorListGather",
        f"{_LIST}:[A] indices:int32 element_shape:int32 -> A",
        _gather,
        largest_of(_LIST),
        _rank,
        index=("indices",),
        divisors=("element_shape",),
    ),
    _row(
        "TensorListStack",
        f"{_LIST}:[A] element_shape:int32 -> A",
        _stack,
        largest_of(_LIST),
        _rank,
        fields=(Field("num_elements", "int", -1),),
        divisors=("element_shape",),
    ),
    _row("TensorListPushBack", f"{_LIST}:[A] tensor:A -> [A]", _push, passes, _rank),
    _row(
        "TensorListPopBack",
        f"{_LIST}:[A] element_shape:int32 -> A",
        _pop,
        largest_of(_LIST),
        lambda call: _rank(call) - int(call["result"] == "tensor"),
        fields=(Field("result", ("output_handle", "tensor"), "tensor"),),
        results=(("output_handle", "[A]"), ("tensor", "A")),
        divisors=("element_shape",),
    ),
    _row(
        "TensorListResize",
        f"{_LIST}:[A] size:int32 -> [A]",
        _resize,
        largest_of(_LIST),
        _rank,
        shape_from=("size",),
    ),
    _row(
        "TensorListConcatLists",
        "input_a:[A] input_b:[A] -> [A]",
        _joined,
        passes,
        lambda call: len(call.inputs[0].shape),
    ),
    _row(
        "TensorListLength",
        f"{_LIST}:[A] -> int32",
        lambda _, held: np.array(len(held)),
        elements,
        lambda _: 0,
    ),
    _row(
        "TensorListElementShape",
        f"{_LIST}:[A] -> @shape_type=I",
        lambda _, held: np.array(held.shape[1:], np.int64),
        elements,
        lambda _: 1,
        fields=(Field("shape_type", "dtype", "int32"),),
        shape=lambda call: (_rank(call) - 1,),
    ),
)
"""Rows of this family."""
