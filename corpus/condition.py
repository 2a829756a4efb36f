r"""Final conditions of a test: ``exists (r0=0 /\ r1=0)``, over the values of an outcome.

The same data serves our tests, whose atoms name keys of an outcome (`LitmusTest.names`), and
herd's, whose atoms name locations, ``0:r0`` or ``x``. The grammar of propositions is herd's, and is
read here once, from whatever gives the words.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from litmusfuzz.corpus.outcome import STATUS_KEY, Outcome, Status, plain_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from litmusfuzz.corpus.outcome import Plain

Cell = int | str | tuple["Cell", ...]
"""A value in a state: an int, a word, or the elements of an array."""
MAX_DEPTH: Final = 40
"""Propositions inside one another."""
_MAX_READ: Final = 2 * MAX_DEPTH + 4
"""Signs and parentheses inside one another, in a text. A proposition is written with two for each
one that it is in, at most, so that every condition can be read as it is written."""
MAX_ATOMS: Final = 2_000
"""Comparisons of a condition, which each final state is compared with."""
QUANTIFIERS: Final = ("exists", "~exists", "forall")


@dataclass(frozen=True, slots=True)
class Name:
    """The value of another name, on the right of an atom."""

    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Atom:
    """``left = right``, or ``left != right``.

    `left` is a name; `right` a value, or another name.
    """

    left: str
    right: Cell | Name
    equal: bool = True

    def __str__(self) -> str:
        return f"{self.left}{'=' if self.equal else '!='}{_written(self.right)}"


def _written(value: Cell | Name) -> str:
    if isinstance(value, tuple):
        return f"[{','.join(map(_written, value))}]"
    return str(value)


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
FALSE: Final = Join("\\/", ())


@dataclass(frozen=True, slots=True)
class Condition:
    """A final condition; `quantifier` is exists, ~exists or forall."""

    quantifier: str
    prop: Prop

    def __str__(self) -> str:
        return f"{self.quantifier} ({self.prop})"

    def holds(self, state: Mapping[str, Cell]) -> bool:
        """True if the proposition holds in one final state.

        An execution that blocked or failed lacks some values. A comparison with one is neither
        true nor false, and a proposition holds if it is true whatever those values are taken for
        by itself: ``_status=completed => r0=1`` does in each blocked state.

        References
        ----------
        S. C. Kleene, Introduction to Metamathematics, 1952, section 64: the strong connectives.
        """
        return _holds(self.prop, state) is True

    def holds_in(self, outcome: Outcome) -> bool:
        """True if the proposition holds in one outcome of the test; see `holds`."""
        values = dict(outcome.values)
        state: dict[str, Cell] = {STATUS_KEY: str(outcome.status)}
        for name in self.names:
            if name in values:
                state[name] = _cell(plain_value(values[name]))
        return self.holds(state)

    def decides(self, outcome: Outcome) -> bool:
        """True if this outcome alone answers the condition.

        It is the witness of an ``exists``, or the counterexample of a ``~exists`` or ``forall``.
        """
        return self.holds_in(outcome) is not (self.quantifier == "forall")

    def satisfied(self, *, found: bool) -> bool:
        """True if the condition is met, where some outcome `decides` it or (not `found`) none."""
        return found is (self.quantifier == "exists")

    def validated(self, states: Iterable[Mapping[str, Cell]]) -> bool:
        """True if a set of final states satisfies the quantifier."""
        wanted = self.quantifier != "forall"
        return self.satisfied(found=any(self.holds(state) is wanted for state in states))

    @property
    def depth(self) -> int:
        """Propositions inside one another, at most `MAX_DEPTH` in a test."""
        depth, level = 0, [self.prop]
        while inside := [part for prop in level for part in _parts(prop)]:
            depth, level = depth + 1, inside
        return depth

    @property
    def names(self) -> tuple[str, ...]:
        """Names in it, each once."""
        return tuple(dict.fromkeys(_named(self.prop)))

    @property
    def atoms(self) -> tuple[Atom, ...]:
        """Its comparisons."""
        return tuple(_atoms(self.prop))

    @property
    def values(self) -> dict[str, Plain] | None:
        """The value that it asks for by name, if it asks for all of them together, else None."""
        given: dict[str, Plain] = {}
        parts = [self.prop]
        for part in parts:
            if isinstance(part, Join) and part.operator == "/\\":
                parts += part.parts
            elif isinstance(part, Atom) and part.equal and not isinstance(part.right, Name):
                if given.setdefault(part.left, plain := _plain(part.right)) != plain:
                    return None
            else:
                return None
        return given or None

    def mapped(self, change: Callable[[Atom], Prop]) -> Condition:
        """The condition with another proposition for each atom."""
        return Condition(self.quantifier, _mapped(self.prop, change))

    def renamed(self, names: Mapping[str, str]) -> Condition:
        """The condition under other names; one that is not in the mapping stays."""

        def change(atom: Atom) -> Atom:
            right = atom.right
            if isinstance(right, Name):
                right = Name(names.get(right.text, right.text))
            return Atom(names.get(atom.left, atom.left), right, atom.equal)

        return self.mapped(change)


def _cell(plain: object) -> Cell:
    if isinstance(plain, list):
        return tuple(map(_cell, plain))
    assert isinstance(plain, int | str)
    return plain


def _plain(cell: Cell) -> Any:
    return [_plain(each) for each in cell] if isinstance(cell, tuple) else cell


def _holds(prop: Prop, state: Mapping[str, Cell]) -> bool | None:
    """True, false, or None if that depends on a value that the state lacks."""
    if isinstance(prop, Atom):
        right = state.get(prop.right.text) if isinstance(prop.right, Name) else prop.right
        left = state.get(prop.left)
        return None if left is None or right is None else (left == right) is prop.equal
    if isinstance(prop, Not):
        held = _holds(prop.part, state)
        return None if held is None else not held
    if prop.operator == "=>":
        return _holds(Join("\\/", (Not(prop.parts[0]), *prop.parts[1:])), state)
    parts = [_holds(part, state) for part in prop.parts]
    decides = prop.operator != "/\\"  # one false part decides a conjunction, a true one the others
    if decides in parts:
        return decides
    return None if None in parts else not decides


def _parts(prop: Prop) -> tuple[Prop, ...]:
    if isinstance(prop, Atom):
        return ()
    return (prop.part,) if isinstance(prop, Not) else prop.parts


def _atoms(prop: Prop) -> list[Atom]:
    if isinstance(prop, Atom):
        return [prop]
    return [atom for part in _parts(prop) for atom in _atoms(part)]


def _named(prop: Prop) -> list[str]:
    found = []
    for atom in _atoms(prop):
        found.append(atom.left)
        if isinstance(atom.right, Name):
            found.append(atom.right.text)
    return found


def _mapped(prop: Prop, change: Callable[[Atom], Prop]) -> Prop:
    if isinstance(prop, Atom):
        return change(prop)
    if isinstance(prop, Not):
        return Not(_mapped(prop.part, change))
    return Join(prop.operator, tuple(_mapped(part, change) for part in prop.parts))


def status_values() -> tuple[str, ...]:
    """Words that ``_status`` is compared with."""
    return tuple(map(str, Status))


# --- reading -----------------------------------------------------------------------------

E = TypeVar("E", bound=Exception)


class Words(ABC, Generic[E]):
    """What propositions are read from: the words of a text, one by one."""

    @abstractmethod
    def peek(self) -> str:
        """The next word; "" at the end."""

    @abstractmethod
    def move(self) -> None:
        """Go to the word after the next one, of which there is one."""

    @abstractmethod
    def error(self, message: str) -> E:
        """An error at the next word."""

    def take(self) -> str:
        """Take the next word; "" at the end."""
        word = self.peek()
        if word:
            self.move()
        return word

    def accept(self, word: str) -> bool:
        """Take the next word if it is this one."""
        if self.peek() != word:
            return False
        self.take()
        return True

    def expect(self, word: str) -> None:
        """Take this word, or raise the error."""
        if not self.accept(word):
            raise self.unexpected(repr(word))

    def unexpected(self, wanted: str) -> E:
        """The error: another word stands where `wanted` was expected."""
        word = self.peek()
        got = f"got {word[:40]!r}" if word else "the text ends"
        return self.error(f"expected {wanted}, {got}")


def read_quantifier(words: Words[Any]) -> str:
    """``exists``, ``~exists`` or ``forall``; "" if none stands there."""
    if words.accept("~"):
        words.expect("exists")
        return "~exists"
    word = words.peek()
    return words.take() if word in QUANTIFIERS else ""


@dataclass
class Propositions:
    r"""Reads propositions. ``=>`` binds closer than ``/\``, as in herd's grammar.

    Parameters
    ----------
    words : Words
    place : callable
        Reads the name on the left of an atom.
    value : callable
        Reads what stands on its right, which may depend on the name.
    """

    words: Words[Any]
    place: Callable[[], str]
    value: Callable[[str], Cell | Name]
    depth: int = 0
    atoms: int = 0

    def disjunction(self) -> Prop:
        """A whole proposition."""
        return self._joined("\\/", ("\\/", "||", "or"), self._conjunction)

    def _conjunction(self) -> Prop:
        return self._joined("/\\", ("/\\", "&&", "and"), self._implication)

    def _joined(self, operator: str, signs: tuple[str, ...], part: Callable[[], Prop]) -> Prop:
        parts = [part()]
        while self.words.peek() in signs:
            self.words.take()
            parts.append(part())
        return parts[0] if len(parts) == 1 else Join(operator, tuple(parts))

    def _deeper(self) -> None:
        self.depth += 1
        if self.depth > _MAX_READ:
            raise self.words.error("is nested too deeply")

    def _implication(self) -> Prop:
        self._deeper()
        left = self._atom()
        if self.words.accept("=>"):
            left = Join("=>", (left, self._implication()))
        self.depth -= 1
        return left

    def _atom(self) -> Prop:
        words = self.words
        word = words.peek()
        if word in ("~", "not", "!"):
            words.take()
            self._deeper()
            part = self._atom()
            self.depth -= 1
            return Not(part)
        if word in ("true", "false"):
            words.take()
            return TRUE if word == "true" else FALSE
        if word == "(":
            words.take()
            inside = self.disjunction()
            words.expect(")")
            return inside
        self.atoms += 1
        if self.atoms > MAX_ATOMS:
            raise words.error(f"more than {MAX_ATOMS} comparisons")
        left = self.place()
        relation = words.peek()
        if relation not in ("=", "==", "!="):
            raise words.unexpected("'=' or '!='")
        words.take()
        return Atom(left, self.value(left), relation != "!=")
