"""A sample, and the state of one call while it is sampled.

Each function of this package that samples an op gets a `Draw`, chooses with its methods, and adds
attributes and operands to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.ops import BOOL, TensorType
from litmusfuzz.corpus.struct import replace

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from litmusfuzz.corpus.ops import PureAttrs
    from litmusfuzz.corpus.pure.definition import AttrValue, PureOp

Shape = tuple[int, ...]
Range = tuple[int, int]
"""The least and the largest value of an operand."""

VALUES: Final = (-5, 5)
"""For all other operands."""
FACTORS: Final = (-3, 3)
"""For operands that an op multiplies, or of which it adds up many: the result should be small."""
DIVIDENDS: Final = (-9, 9)
"""For operands that are divided, shifted or clipped: most exceed the divisor or the bound."""
TIES: Final = (-2, 2)
"""Few values, for ops that compare elements with each other: some should be equal."""
SIZE_LIMIT: Final = 5
"""A computed size is below it: the result has few elements."""


@dataclass(frozen=True, slots=True)
class Operand:
    """One input of a sampled call.

    Parameters
    ----------
    role : str
        Name of the operand in the op's signature.
    type : TensorType
    values : tuple of int
        Flat, row-major.
    limit : int
        Of a control operand: all values from 0 up to less than `limit` do as well, although its own
        values may lie outside. If it is 0, only its own values do.
    replaceable : bool
        True if it is data, and other values do as well.
    """

    role: str
    type: TensorType
    values: tuple[int, ...]
    limit: int = 0
    replaceable: bool = False


@dataclass(frozen=True, slots=True)
class Sample:
    """A call of an op that does not fail; one product in some hundred is 2**24 or more."""

    op: PureOp
    attrs: PureAttrs | None
    operands: tuple[Operand, ...]


class Unfit(Exception):
    """The choices for a call do not fit the wanted dtype and shape."""


@dataclass(slots=True)
class Draw:
    """State of one call while it is sampled.

    Parameters
    ----------
    rng : random.Random
    op : PureOp
    wanted_dtype : str or None
        Dtype of the first data operand; None for any.
    wanted_shape : tuple of int or None
        Shape of the first data operand; None for any.
    operands : list of Operand
        Added in the order of the op's signature.
    attrs : dict of str to AttrValue
        Without those that have their default.
    dtypes : dict of str to str
        The dtype that stands for each type variable of the op's signature so far.
    """

    rng: random.Random
    op: PureOp
    wanted_dtype: str | None
    wanted_shape: Shape | None
    operands: list[Operand] = field(default_factory=list)
    attrs: dict[str, AttrValue] = field(default_factory=dict)
    dtypes: dict[str, str] = field(default_factory=dict)

    # --- choices ---------------------------------------------------------------------

    def flip(self, chance: float = 0.5) -> bool:
        """True with that probability."""
        return self.rng.random() < chance

    def number(self, low: int, high: int) -> int:
        """A number from `low` to `high`, both included."""
        return self.rng.randint(low, high)

    def numbers(self, count: int, low: int, high: int) -> list[int]:
        """So many numbers from `low` to `high`, both included."""
        return [self.number(low, high) for _ in range(count)]

    def any_shape(self, low: int, high: int, most: int) -> Shape:
        """A shape of a rank from `low` to `high`, its extents at most `most`."""
        return tuple(self.numbers(self.number(low, high), 1, most))

    def first_shape(self, least_rank: int = 0, most_rank: int = 3, most_extent: int = 4) -> Shape:
        """Shape of the first data operand: the wanted one, or else any within these bounds.

        Raises
        ------
        Unfit
            If the wanted shape has another rank.
        """
        if self.wanted_shape is not None:
            if not least_rank <= len(self.wanted_shape) <= most_rank:
                raise Unfit
            return self.wanted_shape
        return self.any_shape(least_rank, most_rank, most_extent)

    def broadcastable_to(self, shape: Shape) -> Shape:
        """A shape that broadcasts to `shape`."""
        kind = self.rng.random()
        if kind < 0.6:
            return shape
        if kind < 0.8:
            return ()
        start = self.number(0, len(shape))
        return tuple(1 if self.flip(0.3) else extent for extent in shape[start:])

    def axis(self, rank: int) -> int:
        """An axis, which may count from the end; `Unfit` if a scalar is wanted, which has none."""
        if rank == 0:
            raise Unfit
        return self.rng.randrange(-rank, rank)

    def factors(self, number: int) -> list[int]:
        """Numbers whose product is `number`."""
        factors: list[int] = []
        while number > 1:
            divisor = self.rng.choice([k for k in range(2, number + 1) if number % k == 0])
            factors.append(divisor)
            number //= divisor
        factors += [1] * self.number(0, 1)
        self.rng.shuffle(factors)
        return factors

    def with_unknown(self, shape: Sequence[int]) -> list[int]:
        """The shape, with -1 for some extents."""
        return [-1 if self.flip(0.2) else extent for extent in shape]

    # --- the wanted type -------------------------------------------------------------

    def require(self, shape: Shape) -> None:
        """Raise `Unfit` if another shape is wanted for the first data operand."""
        if self.wanted_shape not in (None, shape):
            raise Unfit

    def require_any_shape(self) -> None:
        """Raise `Unfit` if a shape is wanted: the first data operand has one by chance."""
        if self.wanted_shape is not None:
            raise Unfit

    def dtype_of(self, role: str, wanted: str | None = None) -> str:
        """Dtype of an operand, which is `wanted` unless its type variable has a dtype already.

        Raises
        ------
        Unfit
            If the operand cannot have the dtype `wanted`.
        """
        variable = self.op.types[self.op.operands.index(role)].strip("[]")
        if variable not in self.dtypes:
            permitted = self.op.permitted(variable)
            if wanted is not None and wanted not in permitted:
                raise Unfit
            self.dtypes[variable] = wanted or self.rng.choice(permitted)
        return self.dtypes[variable]

    def want_dtype_of(self, role: str) -> str:
        """Give a control operand the wanted dtype, before its values are chosen."""
        return self.dtype_of(role, self.wanted_dtype)

    # --- attributes ------------------------------------------------------------------

    def choose_index_dtype(self, attr: str) -> None:
        """Set the attribute to a dtype of indices."""
        self.attrs[attr] = self.rng.choice(("int32", "int64"))

    def choose_result(self, count: int | None = None) -> None:
        """Choose the result that the call yields: one of `count`, or of those that the op names."""
        if count is not None:
            self.attrs["result"] = self.rng.randrange(count)
        else:
            self.attrs["result"] = self.rng.choice(self.op.results)[0]

    # --- operands --------------------------------------------------------------------

    def data(self, role: str, shape: Shape, values: Range = VALUES) -> Shape:
        """Add a data operand with values of that range, and return its shape."""
        return self._add(role, shape, values, replaceable=True)

    def fixed(self, role: str, shape: Shape, values: Range = VALUES) -> Shape:
        """Add an operand like data whose values are not replaceable; return its shape."""
        return self._add(role, shape, values, replaceable=False)

    def _add(self, role: str, shape: Shape, values: Range, *, replaceable: bool) -> Shape:
        low, high = values
        is_first = not any(operand.replaceable for operand in self.operands)
        dtype = self.dtype_of(role, self.wanted_dtype if is_first else None)
        if dtype == BOOL:
            low, high = 0, 1
        chosen = tuple(self.numbers(math.prod(shape), low, high))
        kind = TensorType(dtype, shape)
        self.operands.append(Operand(role, kind, chosen, replaceable=replaceable))
        return shape

    def list_data(self, role: str, shape: Shape) -> None:
        """Add a data operand that is a list of tensors: the rows of a tensor of that shape."""
        self.data(role, shape)
        tensor = self.operands[-1]
        self.operands[-1] = replace(tensor, type=tensor.type.listed)

    def control(
        self, role: str, values: Sequence[int] | int, shape: Shape | None = None, limit: int = 0
    ) -> None:
        """Add a control operand: a scalar for a number, else of that shape, by default a vector."""
        if isinstance(values, int):
            values, shape = [values], ()
        shape = (len(values),) if shape is None else shape
        kind = TensorType(self.dtype_of(role), shape)
        self.operands.append(Operand(role, kind, tuple(values), limit))

    def positions(self, role: str, shape: Shape, limit: int) -> None:
        """Add a control operand of positions below `limit`, which may be computed."""
        self.control(role, self.numbers(math.prod(shape), 0, limit - 1), shape, limit)

    def axes(self, role: str, rank: int, *, least: int = 0) -> None:
        """Add a control operand of at least so many axes, none twice; one may be a scalar."""
        chosen = self.rng.sample(range(rank), self.number(min(least, rank), rank))
        axes = [axis - rank if self.flip(0.3) else axis for axis in chosen]
        if len(axes) == 1 and self.flip():
            self.control(role, axes[0], limit=rank)
        else:
            self.control(role, axes)


Sampler = Callable[[Draw], None]
"""A function that samples a call of an op: it adds attributes and operands."""
