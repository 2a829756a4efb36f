"""Types of tensors, limits on them, and the error of a test that breaks a rule.

The lowest module of the package: the op table and the meanings of pure ops stand on it.
"""

from __future__ import annotations

import math
from typing import Final

from litmusfuzz.corpus.struct import Struct

MAX_ROWS: Final = 1024
MAX_ELEMENTS: Final = 1 << 20
MAX_MAGNITUDE: Final = 1 << 24
"""Every value stays below, so that each dtype holds it exactly (semantics.md, 1)."""
UNKNOWN: Final = -1
"""A dimension that depends on values; if one dimension of a type does, all are unknown."""
DTYPES: Final = ("int32", "int64", "float32", "float64")
FLOATS: Final = ("float32", "float64")
BOOL: Final = "bool"
TENSORS: Final = frozenset((*DTYPES, BOOL))
"""dtypes of the types of tensors; those of handles and lists are others."""
_HANDLE: Final = "handle of "
_LIST: Final = "list of "

Nested = int | tuple["Nested", ...]
"""A literal: an int, or rows of literals."""


MAX_MESSAGE: Final = 2_000
"""Characters of a message about a test or a file, at most."""


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
        where = ".".join(str(each)[:80] for each in self.path)
        long = len(self.message) > MAX_MESSAGE  # it names something long
        message = self.message[:MAX_MESSAGE] + " [...]" if long else self.message
        return f"{where}: {message}" if where else message


class TensorType(Struct, frozen=True):
    """dtype (one of `DTYPES`, or bool) and shape, lanes included.

    The shape of a dynamic type is as many times `UNKNOWN` as its rank. Only results of pure ops
    have one: such a value begins with its dimensions.
    """

    dtype: str
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.dtype}{list(self.shape)}".replace(str(UNKNOWN), "?")

    @property
    def dynamic(self) -> bool:
        """True if the dimensions depend on values."""
        return UNKNOWN in self.shape

    @property
    def is_handle(self) -> bool:
        """True for the type of a handle, which no op computes with."""
        return self.dtype.startswith(_HANDLE)

    @property
    def handle(self) -> TensorType:
        """Type of the handles of variables of this type."""
        return TensorType(_HANDLE + self.dtype, self.shape)

    @property
    def is_list(self) -> bool:
        """True for the type of a list of tensors; its first dimension is that of the list."""
        return self.dtype.startswith(_LIST)

    @property
    def is_tensor(self) -> bool:
        """True for the type of a tensor: neither a handle nor a list."""
        return self.dtype in TENSORS

    @property
    def listed(self) -> TensorType:
        """Type of the lists whose elements are the rows of a tensor of this type."""
        return TensorType(_LIST + self.dtype, self.shape)

    @property
    def stacked(self) -> TensorType:
        """Type of the tensor whose rows are the elements of a list of this type."""
        return TensorType(self.dtype.removeprefix(_LIST), self.shape)

    @property
    def size(self) -> int:
        """Elements, lanes included; the limit for a dynamic type."""
        if self.dynamic:
            return MAX_ELEMENTS
        return math.prod(self.shape)
