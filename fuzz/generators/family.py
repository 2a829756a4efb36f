"""A family: a named generator of random litmus tests."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from litmusfuzz.corpus.ops import EFFECT_OPS
from litmusfuzz.fuzz.support import EVERYTHING, Support

if TYPE_CHECKING:
    from collections.abc import Callable

    from _typeshed import SupportsLenAndGetItem

    from litmusfuzz.corpus.model import LitmusTest

_Item = TypeVar("_Item")

ATTEMPTS: Final = 50
"""Tests generated for a support until one lies within it. Families choose among what is
supported, so that the first nearly always does."""


class Choices(random.Random):
    """`random.Random` that makes the same choices in half the time."""

    def choice(self, seq: SupportsLenAndGetItem[_Item]) -> _Item:
        """As that of `random.Random`, in one function instead of two."""
        number = len(seq)
        if not number:
            raise IndexError("nothing to choose from")
        bits, getrandbits = number.bit_length(), self.getrandbits
        place = getrandbits(bits)
        while place >= number:
            place = getrandbits(bits)
        return seq[place]


class NotGenerated(ValueError):
    """A family makes no test within a support; the message names both."""


@dataclass(frozen=True, slots=True)
class Family:
    """A named generator.

    Parameters
    ----------
    name : str
        Also of each test.
    generate : callable
        A random test from a source of choices, as far as possible within a support. The
        same choices and support give the same test.
    about : str
        One line for `litmusfuzz list families`.
    weight : float
        How often a campaign generates it, beside the others, until it finds something
        (`litmusfuzz.fuzz.campaign.family_weights`): twice for ops or shapes of all kinds, never
        unless it is named for 0, as another family has all of its tests.
    features : frozenset of str
        Of `litmusfuzz.corpus.model.FEATURES`, those that the family is about. Some of its
        tests have more.
    ops : frozenset of str
        Ops that it cannot do without.
    rank : int
        Smallest `Support.rank_max` that it can do with.
    """

    name: str
    generate: Callable[[random.Random, Support], LitmusTest]
    about: str
    weight: float = 1.0
    features: frozenset[str] = frozenset()
    ops: frozenset[str] = frozenset()
    rank: int = 0

    def beyond(self, support: Support) -> tuple[str, ...]:
        """Names of what the family is about and the support lacks; none if it fits."""
        rank = (f"rank {self.rank}",) if self.rank > support.rank_max else ()
        some = () if support.ops & {*EFFECT_OPS} else ("ops on variables",)
        return (
            tuple(sorted(self.features - support.features))
            or tuple(sorted(self.ops - support.ops))
            or rank
            or some
        )

    def test(self, stream: str | int, support: Support = EVERYTHING) -> LitmusTest:
        """A test within a support, by the random stream of that name.

        The test for any two supports is the same if both take the one for `EVERYTHING`.

        Raises
        ------
        NotGenerated
            If the family does not fit the support, or `ATTEMPTS` tests all lie beyond it.
        """
        beyond = ", ".join(self.beyond(support))
        if beyond:
            raise NotGenerated(f"family {self.name}: the support lacks {beyond}")
        # A str seeds through SHA-512: the same on every machine and version.
        test = self.generate(Choices(stream), EVERYTHING)
        for attempt in range(ATTEMPTS):
            if test.effects and not support.lacking(test):
                return test
            test = self.generate(Choices(f"{stream}/{attempt}"), support)
        lacking = ", ".join(support.lacking(test)) or "being empty"
        raise NotGenerated(f"family {self.name}: none of {ATTEMPTS} tests is without {lacking}")
