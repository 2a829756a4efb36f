"""The words of a text that a person types, each with its place, and errors that show the place."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from litmusfuzz.corpus.condition import Name, Propositions, Words
from litmusfuzz.corpus.model.names import CONTROL
from litmusfuzz.corpus.outcome import STATUS_KEY
from litmusfuzz.corpus.tensors import MalformedTest

if TYPE_CHECKING:
    from collections.abc import Callable

    from litmusfuzz.corpus.condition import Cell, Prop

MAX_DIGITS: Final = 18
MAX_SHOWN: Final = 100
"""Characters of the line with the mistake that are shown, at most."""

_WORD: Final = re.compile(
    r"[A-Za-z_][A-Za-z0-9_]*|[0-9]+|\|\|\||\|\||/\\|\\/|&&|=>|==|!=|<<|>>|\+=|-=|\*=|/=|\S"
)
_BLANK: Final = re.compile(r"\s*")


class Word(NamedTuple):
    """A word and the index of its first character."""

    text: str
    begin: int

    @property
    def end(self) -> int:
        """Index after its last character."""
        return self.begin + len(self.text)


class NotationError(MalformedTest):
    """A mistake in a text, and its place.

    Parameters
    ----------
    message : str
    text : str
        All of it.
    place : int
        Index of the character at which the mistake is.
    path : tuple of str or int
        The part of the test at fault, if a rule of the format is broken.
    """

    def __init__(
        self, message: str, text: str, place: int, path: tuple[str | int, ...] = ()
    ) -> None:
        super().__init__(message, path)
        before = text[:place]
        self.line = before.count("\n") + 1
        begin = before.rfind("\n") + 1
        self.column = place - begin + 1
        self._shown = text[begin:].partition("\n")[0]
        self._several = "\n" in text

    @property
    def where(self) -> str:
        """``column 12``, in a text of several lines ``line 2, column 12``."""
        line = f"line {self.line}, " if self._several else ""
        return f"{line}column {self.column}"

    def __str__(self) -> str:
        return f"{self.where}: {MalformedTest(self.message)}"

    @property
    def picture(self) -> tuple[str, str]:
        """The line with the mistake, and below it a caret under the place."""
        begin = max(0, min(self.column - 1 - MAX_SHOWN // 2, len(self._shown) - MAX_SHOWN))
        shown = self._shown[begin : begin + MAX_SHOWN]
        # As wide as what it stands below: no tab, and nothing that moves the cursor.
        plain = CONTROL.sub("?", shown.expandtabs(1))
        return plain.rstrip(), " " * (self.column - 1 - begin) + "^"


class Text(Words[NotationError]):
    """The words of a text, one by one.

    Parameters
    ----------
    text : str
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.words = [Word(each.group(), each.start()) for each in _WORD.finditer(text)]
        self.words.append(Word("", len(text.rstrip()) if text.strip() else 0))
        self.number = 0

    # --- looking -------------------------------------------------------------------------

    @property
    def next(self) -> Word:
        """The next word; its text is "" at the end."""
        return self.words[self.number]

    def peek(self) -> str:
        """Text of the next word; "" at the end."""
        return self.next.text

    def after(self, count: int = 1) -> str:
        """Text of the word so many after the next one; "" beyond the end."""
        place = self.number + count
        return self.words[place].text if place < len(self.words) else ""

    @property
    def on_a_new_line(self) -> bool:
        """True if a line break stands before the next word."""
        return self._breaks(self.number)

    @property
    def new_line_after(self) -> bool:
        """True if a line break stands between the next word and the one after it."""
        return self._breaks(self.number + 1)

    def _breaks(self, number: int) -> bool:
        """True if a line break stands before that word."""
        begin = self.words[number - 1].end if number else 0
        return number < len(self.words) and "\n" in self.text[begin : self.words[number].begin]

    # --- taking --------------------------------------------------------------------------

    def move(self) -> None:
        """Go to the word after the next one."""
        self.number += 1

    def name(self, what: str) -> Word:
        """Take a name."""
        if not is_name(self.peek()):
            raise self.unexpected(what)
        word = self.next
        self.take()
        return word

    def integer(self, what: str = "a number", digits: int = MAX_DIGITS) -> int:
        """Take a number, with its sign."""
        sign = -1 if self.accept("-") else 1
        word = self.peek()
        if not is_number(word):
            raise self.unexpected(what)
        if len(word) > digits:
            raise self.error(f"a number of more than {digits} digits")
        return sign * int(self.take())

    # --- errors --------------------------------------------------------------------------

    def error(self, message: str, at: int | None = None) -> NotationError:
        """An error at a place, or else at the next word."""
        return NotationError(message, self.text, self.next.begin if at is None else at)


def is_name(word: str) -> bool:
    """True for a letter, then letters, digits or underscores."""
    return word[:1].isascii() and word[:1].isalpha()


def is_number(word: str) -> bool:
    """True for digits."""
    return word[:1].isascii() and word[:1].isdigit()


def read_proposition(text: Text, known: Callable[[str], str | None]) -> Prop:
    """A proposition over keys of an outcome.

    Parameters
    ----------
    text : Text
    known : callable
        Gives the key that a name stands for, or None if there is none.
    """

    def named() -> str:
        begin = text.next
        if text.accept("["):  # as herd writes a variable
            name = text.name("a variable").text
            text.expect("]")
        elif begin.text == STATUS_KEY:
            return text.take()
        elif is_number(begin.text) and text.after() == ":":  # as herd writes a register
            text.take()
            text.take()
            name = f"{begin.text}:{text.name('a register').text}"
        else:
            name = text.name("a register, a variable or a queue").text
            if name == "grad" and text.accept("("):
                name = f"grad({text.name('a variable').text})"
                text.expect(")")
            while text.accept("."):
                name += f".{text.name('a name').text}"
        key = known(name)
        if key is None:
            raise text.error(f"no {name[:80]} in an outcome of this test", begin.begin)
        return key

    def value(left: str) -> Cell | Name:
        if left == STATUS_KEY:
            return text.name("completed, blocked or failed").text
        if text.peek() == "[" and not is_name(text.after()):
            return cell(0)
        if text.peek() == "[" or is_name(text.peek()) or text.after() == ":":
            return Name(named())
        return text.integer("a number, a list or a name")

    def cell(depth: int) -> Cell:
        if not text.accept("["):
            return text.integer()
        if depth > 1:
            raise text.error("a list is nested too deeply")
        parts: list[Cell] = []
        while not text.accept("]"):
            if parts:
                text.expect(",")
            parts.append(cell(depth + 1))
        return tuple(parts)

    return Propositions(text, named, value).disjunction()
