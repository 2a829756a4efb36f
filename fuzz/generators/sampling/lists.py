"""Samples ops on lists of tensors, TensorListSetItem for example.

A sampled list is described by the shape of its elements stacked. It has one element or more, and
its elements are no scalars.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.ops import BOOL, DTYPES
from litmusfuzz.fuzz.generators.sampling.draw import SIZE_LIMIT, Draw

if TYPE_CHECKING:
    from collections.abc import Mapping

    from litmusfuzz.fuzz.generators.sampling.draw import Sampler, Shape


# --- ops that make a list ----------------------------------------------------------------


def _reserve(draw: Draw) -> None:
    draw.require_any_shape()
    draw.attrs["element_dtype"] = draw.rng.choice((*DTYPES, BOOL))
    draw.control("element_shape", draw.any_shape(1, 2, 3))
    draw.control("num_elements", draw.number(1, 4), limit=SIZE_LIMIT)


def _from_tensor(draw: Draw) -> None:
    shape = draw.data("tensor", draw.first_shape(2))
    draw.control("element_shape", draw.with_unknown(shape[1:]))


def _scatter(draw: Draw) -> None:
    """Sample TensorListScatterV2, whose list may have elements that nothing is scattered to."""
    shape = draw.first_shape(2)
    length = shape[0] + draw.number(0, 2)
    draw.data("tensor", shape)
    draw.control("indices", draw.rng.sample(range(length), shape[0]))
    draw.control("element_shape", shape[1:])
    draw.control("num_elements", length)


# --- ops on a list -----------------------------------------------------------------------


def _list(draw: Draw) -> Shape:
    """Add the list that is the op's first operand; return its shape."""
    shape = draw.first_shape(2)
    draw.list_data(draw.op.operands[0], shape)
    return shape


def _add_element_shape(draw: Draw, shape: Shape) -> None:
    draw.control("element_shape", draw.with_unknown(shape[1:]))


def _length(draw: Draw) -> None:
    _list(draw)


def _element_shape(draw: Draw) -> None:
    _list(draw)
    draw.choose_index_dtype("shape_type")


def _get_item(draw: Draw) -> None:
    shape = _list(draw)
    draw.positions("index", (), shape[0])
    _add_element_shape(draw, shape)


def _set_item(draw: Draw) -> None:
    shape = _list(draw)
    draw.positions("index", (), shape[0])
    draw.data("item", shape[1:])


def _gather(draw: Draw) -> None:
    shape = _list(draw)
    draw.positions("indices", (draw.number(1, 3),), shape[0])
    _add_element_shape(draw, shape)


def _stack(draw: Draw) -> None:
    shape = _list(draw)
    draw.attrs["num_elements"] = -1 if draw.flip() else shape[0]
    _add_element_shape(draw, shape)


def _push_back(draw: Draw) -> None:
    shape = _list(draw)
    draw.data("tensor", shape[1:])


def _pop_back(draw: Draw) -> None:
    shape = _list(draw)
    draw.choose_result()
    _add_element_shape(draw, shape)


def _resize(draw: Draw) -> None:
    _list(draw)
    draw.control("size", draw.number(1, 4), limit=SIZE_LIMIT)


def _concat_lists(draw: Draw) -> None:
    shape = _list(draw)
    draw.list_data("input_b", (draw.number(1, 3), *shape[1:]))


SAMPLERS: Final[Mapping[str, Sampler]] = {
    "TensorListReserve": _reserve,
    "TensorListFromTensor": _from_tensor,
    "TensorListScatterV2": _scatter,
    "TensorListLength": _length,
    "TensorListElementShape": _element_shape,
    "TensorListGetItem": _get_item,
    "TensorListSetItem": _set_item,
    "TensorListGather": _gather,
    "TensorListStack": _stack,
    "TensorListPushBack": _push_back,
    "TensorListPopBack": _pop_back,
    "TensorListResize": _resize,
    "TensorListConcatLists": _concat_lists,
}
