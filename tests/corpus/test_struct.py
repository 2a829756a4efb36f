"""Structs: frozen values that `dataclasses` takes for dataclasses."""

from __future__ import annotations

import copy
import dataclasses

import pytest

from litmusfuzz.corpus.model import Node, Variable
from litmusfuzz.corpus.struct import Struct, replace

NODE = Node("a", "ReadVariableOp", resources=("X",))
CHANGED = Node("a", "ReadVariableOp", resources=("Y",), after=("b",))


def every_struct(of: type[Struct] = Struct) -> list[type[Struct]]:
    return [each for sub in of.__subclasses__() for each in (sub, *every_struct(sub))]


def test_fields_are_replaced_whoever_does_it() -> None:
    changes = {"resources": ("Y",), "after": ("b",)}
    assert replace(NODE, **changes) == dataclasses.replace(NODE, **changes) == CHANGED  # type: ignore[arg-type]
    assert NODE.resources == ("X",)
    with pytest.raises(TypeError, match="wrong"):
        replace(NODE, wrong=1)


def test_a_dataclass_is_replaced_as_well() -> None:
    @dataclasses.dataclass(frozen=True)
    class Point:
        x: int
        y: int = 2

    assert replace(Point(1), y=3) == Point(1, 3)


def test_it_is_frozen_hashed_and_compared_by_its_fields() -> None:
    again = Node("a", "ReadVariableOp", resources=("X",))
    assert again == NODE
    assert hash(again) == hash(NODE)
    assert again != CHANGED
    assert copy.deepcopy(NODE) == NODE
    with pytest.raises(AttributeError, match="immutable"):
        NODE.name = "b"  # type: ignore[misc]


def test_dataclasses_knows_the_fields_of_each_struct() -> None:
    assert Node in every_struct()
    for each in every_struct():
        assert dataclasses.is_dataclass(each)
        assert [field.name for field in dataclasses.fields(each)] == [*each.__struct_fields__]
    assert dataclasses.asdict(Variable("X", "int32", ())) == {
        "name": "X",
        "dtype": "int32",
        "shape": (),
        "init": 0,
        "device": "",
        "gradient": False,
    }


def test_none_has_a_subclass_of_its_own() -> None:
    """What is asked often is asked by `type(...) is`, where `isinstance` would be slow."""
    assert all(not each.__subclasses__() for each in every_struct())
