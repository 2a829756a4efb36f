"""Scanner for herd's files, and parsers for locations and conditions in tests and logs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.condition import Condition, Name, Propositions, Words, read_quantifier
from litmusfuzz.corpus.document import FileError

if TYPE_CHECKING:
    from litmusfuzz.corpus.condition import Cell

MAX_DIGITS: Final = 18
FINAL: Final = frozenset({"exists", "forall", "locations", "~", "final"})
"""Words that end the threads."""

_TOKEN = re.compile(
    r"0[xX][0-9a-fA-F]+|[0-9]+|[A-Za-z_%$][A-Za-z0-9_]*"
    r"|/\\|\\/|=>|[=!<>+*/%&|^-]=|&&|\|\||\+\+|--|->|<<|>>|.",
    re.ASCII | re.DOTALL,
)
_BLANK = re.compile(r"\s+")
_OCAML = re.compile(r"\(\*|\*\)")


class Scanner(Words[FileError]):
    """The tokens of a text, one by one, and the line of the next.

    `ocaml` says whether ``(* *)`` is a comment here; in C it may be code.
    """

    def __init__(self, text: str, source: str) -> None:
        self.text = text
        self.source = source
        self.position = 0
        self.line = 1
        self.ocaml = True
        self.fields: tuple[str | int, ...] = ()

    def error(self, message: str, line: int = 0) -> FileError:
        """At the next word, if no line is given."""
        return FileError(self.source, line or self.line, self.fields, message)

    def go_to(self, end: int) -> None:
        """Go to a place further on."""
        self.line += self.text.count("\n", self.position, end)
        self.position = end

    def skip(self) -> None:
        """Pass blanks and comments."""
        text = self.text
        while self.position < len(text):
            blank = _BLANK.match(text, self.position)
            if blank:
                self.go_to(blank.end())
            elif text.startswith("//", self.position):
                end = text.find("\n", self.position)
                self.go_to(len(text) if end < 0 else end)
            elif text.startswith("/*", self.position):
                end = text.find("*/", self.position + 2)
                if end < 0:
                    raise self.error("a comment without its end")
                self.go_to(end + 2)
            elif self.ocaml and text.startswith("(*", self.position):
                self.skip_ocaml()
            else:
                return

    def skip_ocaml(self) -> None:
        """Pass a comment, which may hold others."""
        depth = 0
        for match in _OCAML.finditer(self.text, self.position):
            depth += 1 if match.group() == "(*" else -1
            if depth == 0:
                self.go_to(match.end())
                return
        raise self.error("a comment without its end")

    def peek(self) -> str:
        """The next word; "" at the end."""
        self.skip()
        match = _TOKEN.match(self.text, self.position)
        return match.group() if match else ""

    def peek_after(self) -> str:
        """The word after the next one."""
        position, line = self.position, self.line
        self.take()
        word = self.peek()
        self.position, self.line = position, line
        return word

    def move(self) -> None:
        """Go behind the next word."""
        self.position += len(self.peek())

    def name(self, what: str) -> str:
        """Take an identifier."""
        if not is_name(self.peek()):
            raise self.unexpected(what)
        return self.take()

    def integer(self) -> int:
        """A number, with its sign."""
        sign = -1 if self.accept("-") else 1
        word = self.peek()
        if not is_number(word):
            raise self.unexpected("a number")
        if len(word) > MAX_DIGITS or re.fullmatch("0[0-9]+", word):
            why = "too long" if len(word) > MAX_DIGITS else "octal"
            raise self.error(f"a number that is {why}: {word[:40]!r}")
        return sign * int(self.take(), 0)

    def location(self) -> str:
        """A place in a state: ``0:r0``, ``x``, ``[x]`` or ``*x``, as ``0:r0`` or ``x``."""
        if self.accept("["):
            name = self.name("a variable")
            self.expect("]")
            return name
        self.accept("*")
        thread = re.fullmatch(r"P?([0-9]{1,4})", self.peek(), re.ASCII)
        if not thread:
            return self.name("a location, 0:r0 or x")
        self.take()
        self.expect(":")
        return f"{int(thread[1])}:{self.name('a register')}"


def is_number(word: str) -> bool:
    """True if a word begins with a digit, hence is a number without sign."""
    return word[:1].isascii() and word[:1].isdigit()


def is_name(word: str) -> bool:
    """True if a word is an identifier."""
    return bool(re.fullmatch(r"[A-Za-z_%$][A-Za-z0-9_]*", word, re.ASCII))


def read_locations(scanner: Scanner, known: frozenset[str]) -> list[str]:
    """The locations listed, which must be `known`; none if there is no list."""
    if not scanner.accept("locations"):
        return []
    scanner.fields = ("locations",)
    scanner.expect("[")
    found: list[str] = []
    while not scanner.accept("]"):
        found.append(_known(scanner, known))
        while is_name(scanner.peek()) or scanner.peek() == "*":  # its type
            scanner.take()
        if scanner.peek() != "]":
            scanner.expect(";")
    return found


def _known(scanner: Scanner, known: frozenset[str]) -> str:
    scanner.skip()
    line = scanner.line
    place = scanner.location()
    if place not in known:
        raise scanner.error(f"no {place[:40]} in the test", line)
    if scanner.peek() == "[":
        raise scanner.error(f"{place[:40]}: an array; only scalars are read")
    return place


def read_condition(scanner: Scanner, known: frozenset[str]) -> Condition | None:
    """The final condition, over `known` locations; None at the end of the text."""
    scanner.fields = ("condition",)
    word = scanner.peek()
    if not word:
        return None
    if word in ("filter", "observed", "with"):
        raise scanner.error(f"{word} is not read")
    quantifier = read_quantifier(scanner)
    if not quantifier:
        if word != "(" and not scanner.accept("final"):
            raise scanner.unexpected("exists, ~exists or forall")
        quantifier = "exists"
    places = Propositions(scanner, lambda: _known(scanner, known), lambda _: _value(scanner, known))
    prop = places.disjunction()
    scanner.accept(";")
    if scanner.peek() in ("filter", "with"):
        raise scanner.error(f"{scanner.peek()} is not read")
    return Condition(quantifier, prop)


def _value(scanner: Scanner, known: frozenset[str]) -> Cell | Name:
    word = scanner.peek()
    if word in ("[", "*") or (is_number(word) and scanner.peek_after() == ":"):
        return Name(_known(scanner, known))
    if word in ("{", "&") or is_name(word):
        raise scanner.error("a value is a number or a location, 0:r0 or [x]")
    return scanner.integer()
