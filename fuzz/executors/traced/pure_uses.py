"""Pure nodes with what is known of them before a program runs: types, and operands' constants."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

from litmusfuzz.corpus.model import captures_of
from litmusfuzz.corpus.ops import MAX_ROWS, ConstAttrs, PureAttrs
from litmusfuzz.corpus.pure.definition import shape_value
from litmusfuzz.fuzz.executors.protocol import Refused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from litmusfuzz.corpus.model import LitmusTest, Node
    from litmusfuzz.corpus.ops import TensorType

    Ints = tuple[int, ...]


class Lacking(Refused):
    """The system has no equivalent of a pure op, or not with such operands; says of which."""


@dataclass(frozen=True)
class PureUse:
    """A pure node, and what is known of it.

    Parameters
    ----------
    node : Node
    inputs : tuple of TensorType
        Types of its operands.
    result : TensorType
    known : tuple of (tuple of int or None)
        The values, flat and row-major, of those operands that are constants.
    """

    node: Node
    inputs: tuple[TensorType, ...]
    result: TensorType
    known: tuple[Ints | None, ...]

    def __getitem__(self, attribute: str) -> Any:
        """The value of an attribute."""
        assert isinstance(self.node.attrs, PureAttrs)
        return self.node.attrs[attribute]

    @property
    def roles(self) -> Sequence[str]:
        """The operand that each input is."""
        meaning = self.node.definition.meaning
        if meaning is None:
            return self.node.definition.operands
        return meaning.roles(len(self.inputs)) or ()

    def type_of(self, role: str) -> TensorType:
        """The type of the first input for an operand."""
        return self.inputs[self.roles.index(role)]

    def numbers(self, role: str) -> Ints:
        """The flat value of an operand that has to be a constant.

        Raises
        ------
        Lacking
            If it is none.
        """
        known = self.known[self.roles.index(role)]
        if known is None:
            raise Lacking(f"{self.node.op} whose {role} is no constant")
        return known

    def number(self, role: str) -> int:
        """The value of such an operand with one element."""
        (value,) = self.numbers(role)
        return value

    def rows(self, role: str) -> tuple[Ints, ...]:
        """The rows of such an operand, which is a matrix."""
        numbers, width = self.numbers(role), self.type_of(role).shape[-1]
        return tuple(numbers[at : at + width] for at in range(0, len(numbers), width))

    def grouped(self, inputs: Sequence[Any]) -> list[Any]:
        """The inputs by operand; for one that may be given several times, a list."""
        meaning = self.node.definition.meaning
        return list(inputs) if meaning is None else list(meaning.grouped(list(inputs)))


class PureUses:
    """The pure nodes of a test.

    Parameters
    ----------
    test : LitmusTest
    """

    def __init__(self, test: LitmusTest) -> None:
        self._test = test
        self._found: dict[str, PureUse] = {}

    def of(self, node: Node) -> PureUse:
        """The node with what is known of it."""
        if node.name not in self._found:
            test = self._test
            result = test.types[node.name]
            assert result is not None
            self._found[node.name] = PureUse(
                node,
                tuple(map(test.type_of, node.inputs)),
                result,
                tuple(map(self.known, node.inputs)),
            )
        return self._found[node.name]

    def known(self, name: str) -> Ints | None:
        """The flat value of a constant, or of the shape of a value of static shape; else None."""
        name = self._outermost(name)
        node = self._nodes.get(name)
        if node is None:
            return None
        if isinstance(node.attrs, ConstAttrs):
            few = prod(node.attrs.shape) <= MAX_ROWS
            return tuple(self._test.constant(node)) if few else None
        if not node.definition.pure or not node.inputs:
            return None
        if node.definition.copies:
            return self.known(node.inputs[0])
        return shape_value(node.op, self._test.type_of(node.inputs[0]))

    def _outermost(self, name: str) -> str:
        while name in self._outside:
            name = self._outside[name]
        return name

    @cached_property
    def _nodes(self) -> dict[str, Node]:
        return {node.name: node for node in self._test.nodes}

    @cached_property
    def _outside(self) -> dict[str, str]:
        """The name outside, by that of a value in a body that is captured."""
        return {inner: outer for node in self._test.nodes for inner, outer in captures_of(node)}
