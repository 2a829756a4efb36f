"""Outcomes: the observed values and final contents of one execution, and verdicts on them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, Final, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class Keyed(Protocol):
    """A test, as far as its outcomes depend on it: the model of tests stands above this module."""

    @property
    def shown(self) -> Mapping[str, object]:
        """The keys of an outcome, in order."""

    @property
    def places(self) -> Mapping[str, int]:
        """Place of each key."""


class Torn(Enum):
    """A value whose lanes differ; no total order produces one."""

    TORN = "torn"

    def __repr__(self) -> str:
        return "torn"


TORN: Final = Torn.TORN
Value = tuple[int, ...] | tuple[tuple[int, ...], ...] | Literal[Torn.TORN]
"""The rows of one lane (or a whole matrix, row-major); for a queue, one such tuple for each
element; () for a variable that has no value; or `TORN`."""


class Status(StrEnum):
    """End of an execution (semantics.md, sections 3 and 4)."""

    COMPLETED = "completed"
    BLOCKED = "blocked"
    FAILED = "failed"


class Verdict(StrEnum):
    """Verdict on an outcome, or failure of the machinery (semantics.md, section 4)."""

    ALLOWED = "allowed"
    FORBIDDEN = "forbidden"
    UNKNOWN = "unknown"
    UNSPECIFIED = "unspecified"
    CRASHED = "crashed"
    TIMED_OUT = "timed out"


@dataclass(frozen=True, slots=True)
class Outcome:
    """Observed values and final contents, keyed in the order of `LitmusTest.names`.

    Compared bitwise; -0.0 was taken for 0.0 when it was made. Two outcomes of
    one test are equal exactly when status and values are. A blocked one has no
    values of runs that did not end, a failed one none at all.
    """

    values: tuple[tuple[str, Value], ...]
    status: Status = Status.COMPLETED

    @classmethod
    def of(
        cls, test: Keyed, values: Mapping[str, Value], status: Status = Status.COMPLETED
    ) -> Outcome:
        """The outcome of `test` with those values, one for each of its names.

        A blocked or failed one may lack some.

        Raises
        ------
        ValueError
            Naming the first value that is missing.
        """
        if status is not Status.COMPLETED:
            listed = sorted(values.keys() & test.shown.keys(), key=test.places.__getitem__)
            return cls(tuple((name, values[name]) for name in listed), status)
        try:
            return cls(tuple([(name, values[name]) for name in test.shown]))
        except KeyError:
            name = next(name for name in test.shown if name not in values)
            message = (
                f"an outcome without a value of {name!r}: it has {', '.join(values) or 'none'}"
            )
            raise ValueError(message) from None

    @property
    def torn(self) -> bool:
        """True if the lanes of some value differ."""
        return any(value is TORN for _, value in self.values)

    @property
    def plain(self) -> dict[str, Plain]:
        """The outcome as plain data, for files and JSON (see `plain_value`)."""
        plain: dict[str, Plain] = {}
        if self.status is not Status.COMPLETED:
            plain[STATUS_KEY] = str(self.status)
        plain.update({name: plain_value(value) for name, value in self.values})
        return plain

    def __str__(self) -> str:
        return " ".join(
            f"{name}={str(value).replace(' ', '')}" for name, value in self.plain.items()
        )


STATUS_KEY: Final = "_status"
"""Key of the status of an outcome that did not complete; no name begins like that."""

Plain = int | str | list[int] | list[int | list[int]]


def plain_value(value: Value) -> Plain:
    """A value as plain data, for files and JSON.

    "torn", an int, or a list of rows; one of a single element is a bare int. A
    queue's contents are a list of such values.
    """
    if value is TORN:
        return "torn"
    out: list[int | list[int]] = []
    for part in value:
        if isinstance(part, tuple):
            out.append(part[0] if len(part) == 1 else list(part))
        elif len(value) == 1:
            return part
        else:
            out.append(part)
    return out


def digest(outcomes: Iterable[Outcome]) -> str:
    """SHA-256 of a set of outcomes, whatever their order.

    For sets too large for a file: the file keeps their number and this.
    """
    lines = sorted(map(str, outcomes))
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def distance(a: Outcome, b: Outcome) -> int:
    """Number of names in which two outcomes of one test differ, plus one for the status."""
    left, right = dict(a.values), dict(b.values)
    names = left.keys() | right.keys()
    return sum(left.get(n) != right.get(n) for n in names) + (a.status is not b.status)


def nearest(outcome: Outcome, allowed: Iterable[Outcome]) -> Outcome | None:
    """The allowed outcome that differs in the fewest names; the least if several do."""
    return min(allowed, key=lambda each: (distance(outcome, each), str(each)), default=None)
