r"""Final conditions: ``exists (0:r0=1 /\ x=2)``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Cell = int | str | tuple[int, ...]
"""A value in a state: an int, the name of an address, or an array's elements."""


@dataclass(frozen=True, slots=True)
class Atom:
    """``left = right``, or ``left != right``.

    `left` is a location, ``0:r0`` or ``x``; `right` an int or a location.
    """

    left: str
    right: int | str
    equal: bool = True

    def __str__(self) -> str:
        return f"{self.left}{'=' if self.equal else '!='}{self.right}"


@dataclass(frozen=True, slots=True)
class Not:
    """Negation of a proposition."""

    part: Prop

    def __str__(self) -> str:
        return f"~({self.part})"


@dataclass(frozen=True, slots=True)
class Join:
    r"""Parts joined by ``/\``, ``\/`` or (two parts) ``=>``; none is the neutral one."""

    operator: str
    parts: tuple[Prop, ...]

    def __str__(self) -> str:
        if not self.parts:
            return "true" if self.operator == "/\\" else "false"
        return f" {self.operator} ".join(
            f"({part})" if isinstance(part, Join) and part.parts else str(part)
            for part in self.parts
        )


Prop = Atom | Not | Join
TRUE: Final = Join("/\\", ())


@dataclass(frozen=True, slots=True)
class Condition:
    """A final condition; `quantifier` is exists, ~exists or forall."""

    quantifier: str
    prop: Prop

    def __str__(self) -> str:
        return f"{self.quantifier} ({self.prop})"

    def holds(self, state: Mapping[str, Cell]) -> bool:
        """True if the proposition holds in one final state, a value for each location."""
        return _holds(self.prop, state)

    def validated(self, states: Iterable[Mapping[str, Cell]]) -> bool:
        """True if a set of final states satisfies the quantifier."""
        found = [self.holds(state) for state in states]
        return {"exists": any, "~exists": lambda f: not any(f), "forall": all}[self.quantifier](
            found
        )

    @property
    def locations(self) -> tuple[str, ...]:
        """Locations that it names, each once."""
        return tuple(dict.fromkeys(_named(self.prop)))


def _holds(prop: Prop, state: Mapping[str, Cell]) -> bool:
    if isinstance(prop, Atom):
        right = prop.right if isinstance(prop.right, int) else state[prop.right]
        return (state[prop.left] == right) is prop.equal
    if isinstance(prop, Not):
        return not _holds(prop.part, state)
    parts = (_holds(part, state) for part in prop.parts)
    if prop.operator == "=>":
        return not next(parts) or next(parts)
    return all(parts) if prop.operator == "/\\" else any(parts)


def _named(prop: Prop) -> list[str]:
    if isinstance(prop, Atom):
        return [each for each in (prop.left, prop.right) if isinstance(each, str)]
    parts = (prop.part,) if isinstance(prop, Not) else prop.parts
    return [name for part in parts for name in _named(part)]
