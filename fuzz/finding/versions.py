"""Ranges of versions, in which a known finding holds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_RANGE: Final = re.compile(
    r"(\d{1,9}(?:\.\d{1,9}){0,5})(?: to (\d{1,9}(?:\.\d{1,9}){0,5}))?", re.ASCII
)
_ZEROS: Final = (0,) * 6


@dataclass(frozen=True, slots=True)
class Versions:
    """The versions of packages that an entry holds for.

    Parameters
    ----------
    ranges : tuple of (str, str, str)
        Name of a package as executors report it (`Executor.versions`), first and last version. A
        version that begins with the numbers of the last one is in the range: 2.21.1 is in that of
        2.21. Empty for an entry that holds everywhere.
    """

    ranges: tuple[tuple[str, str, str], ...] = ()

    def include(self, tested: Mapping[str, str]) -> bool:
        """True if all packages are there, each in a version of its range."""
        return all(
            name in tested
            and _numbers(first) <= (found := (*_numbers(tested[name]), *_ZEROS))
            and found[: len(_numbers(last))] <= _numbers(last)
            for name, first, last in self.ranges
        )

    def __str__(self) -> str:
        return ", ".join(
            f"{name} {first}" if first == last else f"{name} {first} to {last}"
            for name, first, last in self.ranges
        )


def versions_between(name: str, text: str) -> tuple[str, str, str]:
    """A range of versions from text: ``2.21`` for one, ``0.9.0 to 0.10.2`` for several.

    Raises
    ------
    ValueError
        In one line.
    """
    if not re.fullmatch(r"[\w.-]{1,60}", name, re.ASCII):
        raise ValueError(f"{name[:80]!r} is no name of a package")
    found = _RANGE.fullmatch(text)
    if found is None:
        expected = "a version is as in 2.21, a range as in 0.9.0 to 0.10.2"
        raise ValueError(f"{expected}, got {text[:80]!r}")
    first, last = found[1], found[2] or found[1]
    if _numbers(first)[: len(_numbers(last))] > _numbers(last):
        raise ValueError(f"{last} is before {first}")
    return name, first, last


def _numbers(version: str) -> tuple[int, ...]:
    """The numbers at the start of a version; a release candidate counts as its release."""
    found = re.match(r"\d{1,9}(\.\d{1,9})*", version, re.ASCII)
    return tuple(map(int, found[0].split("."))) if found else ()


EVERYWHERE: Final = Versions()
