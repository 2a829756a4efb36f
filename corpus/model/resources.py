"""Resources of a test: variables, mutexes, queues and accumulators."""

from __future__ import annotations

from litmusfuzz.corpus.ops import Nested, TensorType
from litmusfuzz.corpus.struct import Struct


class Variable(Struct, frozen=True):
    """A resource variable: a named cell that holds one tensor.

    `shape` is ``(rows, *lanes)`` or ``()``; `init` is one int for all elements, or one int for
    each row, or None if the variable has no value until the first write. `device` holds the
    variable; "" is the default device. With `gradient`, an outcome has the gradient of the test's
    floats with respect to `init` (`LitmusTest.weights`).
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    init: Nested | None = 0
    device: str = ""
    gradient: bool = False

    @property
    def gradient_key(self) -> str:
        """The key of its gradient in an outcome; no name has parentheses."""
        return f"grad({self.name})"

    @property
    def type(self) -> TensorType:
        """dtype and shape."""
        return TensorType(self.dtype, self.shape)


class Mutex(Struct, frozen=True):
    """A lock of critical sections: free at first, not re-entrant."""

    name: str
    device: str = ""


class Queue(Struct, frozen=True):
    """A blocking first-in first-out queue.

    `dtype` and `shape` describe one element. The queue holds at most `capacity` elements;
    `init` are its first ones, the next to leave first.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    capacity: int
    init: tuple[Nested, ...] = ()
    device: str = ""

    @property
    def type(self) -> TensorType:
        """dtype and shape of an element."""
        return TensorType(self.dtype, self.shape)


class Accumulator(Struct, frozen=True):
    """An accumulator of gradients, empty at first, at global step 0.

    `dtype` and `shape` describe one gradient, and the sum of gradients, which a take returns.

    References
    ----------
    semantics.md, section 2, "Accumulators"; TensorFlow's ``ResourceConditionalAccumulator`` with
    the reduction ``SUM``.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    device: str = ""

    @property
    def type(self) -> TensorType:
        """dtype and shape of a gradient."""
        return TensorType(self.dtype, self.shape)

    @property
    def sum(self) -> Variable:
        """The cell of the sum of the gradients; an outcome shows it by its name."""
        return Variable(f"{self.name}.sum", self.dtype, self.shape)

    @property
    def count(self) -> Variable:
        """The cell of the number of gradients; an outcome shows it by its name."""
        return Variable(f"{self.name}.count", "int32", ())

    @property
    def step(self) -> Variable:
        """The cell of the global step."""
        return Variable(f"{self.name}.step", "int64", ())

    @property
    def line(self) -> str:
        """Name of the line of takes that have joined and not yet taken."""
        return f"{self.name}.line"


Resource = Variable | Mutex | Queue | Accumulator
