"""Types of an executor's settings, and the check of settings that a file names.

A finding's file holds the settings of the configuration that showed it. They are checked when the
file is loaded: against the table of the executor, if it is one of ours, and otherwise against a
closed set of scalars. The check imports no executor of an entry point: a file names it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from litmusfuzz.corpus.textfile import Setting

MAX_TEXT: Final = 4096
"""Characters of a setting that is a text: those of a path."""
_WORDS: Final = re.compile(r"[\w ./:;,=+-]*", re.ASCII)


class SettingType(Protocol):
    """The values that a setting may have."""

    def problem(self, value: Setting) -> str:
        """Why it may not have that value; "" if it may."""


@dataclass(frozen=True, slots=True)
class Number:
    """An int from `least` to `most`."""

    least: int
    most: int

    def problem(self, value: Setting) -> str:
        """See `SettingType`."""
        is_int = isinstance(value, int) and not isinstance(value, bool)
        if is_int and self.least <= int(value) <= self.most:
            return ""
        return f"must be an int, {self.least} to {self.most}, got {_shown(value)}"


@dataclass(frozen=True, slots=True)
class Flag:
    """True or false."""

    def problem(self, value: Setting) -> str:
        """See `SettingType`."""
        return "" if isinstance(value, bool) else f"must be true or false, got {_shown(value)}"


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of some strings."""

    choices: tuple[str, ...]

    def problem(self, value: Setting) -> str:
        """See `SettingType`."""
        if isinstance(value, str) and value in self.choices:
            return ""
        known = ", ".join(each or "''" for each in self.choices)
        return f"must be one of {known}, got {_shown(value)}"


@dataclass(frozen=True, slots=True)
class ListOf:
    """Strings from a table, each at most once, with `separator` between; or one of `whole`."""

    choices: tuple[str, ...]
    separator: str
    whole: tuple[str, ...] = ()

    def problem(self, value: Setting) -> str:
        """See `SettingType`."""
        if not isinstance(value, str):
            return f"must be a string, got {_shown(value)}"
        if value in self.whole:
            return ""
        parts = value.split(self.separator)
        unknown = next((part for part in parts if part not in self.choices), None)
        if unknown is not None:
            return f"has no {_shown(unknown)}; there are {', '.join(self.choices)}"
        return "" if len(set(parts)) == len(parts) else f"names a part twice: {_shown(value)}"


@dataclass(frozen=True, slots=True)
class Text:
    """A string of one line that matches a pattern."""

    pattern: str
    what: str
    """The texts that match, in words."""

    def problem(self, value: Setting) -> str:
        """See `SettingType`."""
        is_line = isinstance(value, str) and len(value) <= MAX_TEXT and value.isprintable()
        if is_line and re.fullmatch(self.pattern, str(value)):
            return ""
        return f"must be {self.what}, got {_shown(value)}"


@runtime_checkable
class HasSettings(Protocol):
    """Optional: an executor with a table of its settings.

    A setting that is not in the table is refused; a file may lack some, which then have the value
    of the executor's first configuration.
    """

    setting_types: ClassVar[Mapping[str, SettingType]]


def check_scalars(settings: Mapping[str, Setting]) -> tuple[str, str] | None:
    """The first setting that is not of the closed set of scalars, and why; None if all are.

    The set: bools, ints of 64 bits, and short texts of letters, digits and ``_ ./:;,=+-``.
    """
    for name, value in settings.items():
        if not re.fullmatch(r"[A-Za-z]\w{0,63}", name, re.ASCII):
            return name, "is no name of a setting"
        if isinstance(value, str) and not (len(value) <= 256 and _WORDS.fullmatch(value)):
            what = "a short text of letters, digits, and _./:;,=+-"
            return name, f"must be {what}, got {_shown(value)}"
    return None


def check_table(
    settings: Mapping[str, Setting], table: Mapping[str, SettingType]
) -> tuple[str, str] | None:
    """The first setting that is not as the table says, and why; None if all are."""
    for name, value in settings.items():
        if name not in table:
            return name, f"no such setting; there are {', '.join(table) or 'none'}"
        if problem := table[name].problem(value):
            return name, problem
    return None


def _shown(value: Setting) -> str:
    return repr(value) if len(str(value)) <= 40 else f"{str(value)[:40]!r}..."
