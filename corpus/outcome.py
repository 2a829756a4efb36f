"""What one execution showed, and what is said of it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from corpus.graph import LitmusTest


class Torn(Enum):
    """The one value that no total order gives: lanes that differ."""

    TORN = "torn"

    def __repr__(self) -> str:
        return "torn"


TORN: Final = Torn.TORN
Value = tuple[int, ...] | Literal[Torn.TORN]
"""One lane's rows (or a whole matrix, row-major), or `TORN`."""


class Verdict(StrEnum):
    """What the judge, or the machinery, says of an outcome (semantics.md, 4)."""

    ALLOWED = "allowed"
    FORBIDDEN = "forbidden"
    UNKNOWN = "unknown"
    CRASHED = "crashed"
    TIMED_OUT = "timed out"


@dataclass(frozen=True, slots=True)
class Outcome:
    """Observed values and final variables, keyed in the order of `LitmusTest.names`.

    Compared bitwise; -0.0 was taken for 0.0 when it was made. Two outcomes of
    one test are equal exactly when the values are.
    """

    values: tuple[tuple[str, Value], ...]

    @classmethod
    def of(cls, test: LitmusTest, values: Mapping[str, Value]) -> Outcome:
        """The outcome of `test` with those values, one for each of its names."""
        return cls(tuple((name, values[name]) for name in test.names))

    @property
    def torn(self) -> bool:
        """Whether some value's lanes differ."""
        return any(value is TORN for _, value in self.values)

    @property
    def plain(self) -> dict[str, int | list[int] | str]:
        """As files and JSON have it: an int, a list of rows, or "torn"."""
        return {name: plain_value(value) for name, value in self.values}

    def __str__(self) -> str:
        return " ".join(
            f"{name}={str(value).replace(' ', '')}" for name, value in self.plain.items()
        )


def plain_value(value: Value) -> int | list[int] | str:
    """A value as files have it; one of a single element is a bare int."""
    if value is TORN:
        return "torn"
    return value[0] if len(value) == 1 else list(value)


def digest(outcomes: Iterable[Outcome]) -> str:
    """SHA-256 of a set of outcomes, whatever their order.

    For sets too large for a file: the file keeps their number and this.
    """
    lines = sorted(map(str, outcomes))
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def distance(a: Outcome, b: Outcome) -> int:
    """In how many names two outcomes of one test differ."""
    return sum(left != right for left, right in zip(a.values, b.values, strict=True))


def nearest(outcome: Outcome, allowed: Iterable[Outcome]) -> Outcome | None:
    """An allowed outcome that differs in the fewest names; the least of several."""
    return min(allowed, key=lambda each: (distance(outcome, each), str(each)), default=None)
