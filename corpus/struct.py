"""Structs: frozen values that are made some hundred times for each generated test.

A `Struct` is made, compared and replaced ten to forty times as fast as a frozen dataclass, which
sets one attribute after another in Python. To `dataclasses` it is one: its functions `fields`,
`replace` and `asdict` take it. Whatever is made less often is a dataclass.
"""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


@cache
def _fields(of: type[Struct]) -> dict[str, dataclasses.Field[Any]]:
    """The fields of a struct as those of a dataclass."""
    made = dataclasses.make_dataclass(of.__name__, of.__struct_fields__)
    return {each.name: each for each in dataclasses.fields(made)}


class _Fields:
    """A class attribute: the fields of the class that is asked."""

    def __get__(self, _: object, of: type[Struct]) -> dict[str, dataclasses.Field[Any]]:
        return _fields(of)


class Struct(msgspec.Struct, frozen=True, gc=False):
    """A frozen value with fields, hashed and compared by them.

    The collector of garbage does not follow it: a struct holds values that hold no cycle.
    """

    __dataclass_fields__ = _Fields()


Value = TypeVar("Value", bound="Struct | DataclassInstance")


def replace(value: Value, /, **changes: Any) -> Value:
    """The value with other fields: `copy.replace` of Python 3.13, for structs and dataclasses."""
    if isinstance(value, Struct):
        return msgspec.structs.replace(value, **changes)
    return dataclasses.replace(value, **changes)
