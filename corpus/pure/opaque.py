"""Opaque: stands for a pure part of a program of which nothing is known but its inputs.

Its value is a number that stands for the term `label(inputs)`: equal labels and equal inputs give
equal numbers, so that every dependency stays, and values say who read what. Different terms give
different numbers but for a collision, once in a million pairs: `salt` chooses other numbers.

No framework has this op. `litmusfuzz.fuzz.passes.opaque` replaces it by ops that executors have.

References
----------
Fowler, Noll, Vo: FNV-1a, RFC 9923. Numbers stay below 2**20, so that some of them can be added.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.pure.arrays import np
from litmusfuzz.corpus.pure.definition import Call, Field, PureOp

if TYPE_CHECKING:
    from collections.abc import Sequence

    from litmusfuzz.corpus.pure.arrays import Array

TERMS: Final = (1 << 20) - 3
"""Numbers that terms have: a prime."""
_WORD: Final = (1 << 64) - 1


def term(label: int, salt: int, inputs: Sequence[int]) -> int:
    """The number of the term `label(inputs)`, from 1 to `TERMS` - 1."""
    mixed = 0xCBF29CE484222325
    for value in (salt, label, *inputs):
        for shift in (0, 16, 32, 48):
            mixed = (mixed ^ (value >> shift & 0xFFFF)) * 0x100000001B3 & _WORD
    mixed ^= mixed >> 32
    return 1 + mixed % (TERMS - 1)


def _compute(call: Call, operands: Sequence[Array]) -> Array:
    together = np.broadcast_arrays(*operands)
    flat = [array.ravel().tolist() for array in together]
    numbers = [term(call["label"], call["salt"], each) for each in zip(*flat, strict=True)]
    return np.array(numbers, np.int64).reshape(together[0].shape)


ROW: Final = PureOp(
    "Opaque",
    "x*:T -> T",
    _compute,
    lambda _call, _bounds: TERMS,
    fields=(Field("label", "int"), Field("salt", "int", 0)),
    lanes=True,
)
"""The one row of this module."""
