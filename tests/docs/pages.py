"""Parser for the pages: blocks of commands, files to save, commands in the text.

A block that begins with ``sh`` contains commands, one with ``console`` commands after ``$``
and what they print. Other words in that line are for the tests:

- ``no-run``: it cannot run everywhere (another machine, minutes of building);
- ``varies``: what it prints depends on chance or on the machine;
- a name such as ``python quick.py``: the reader saves the block as that file.

A line ``...`` in the output stands for any lines. A comment ``# exit 1`` gives an exit code
other than 0, and ``# exit 0 or 1`` several that are possible.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = (*sorted(ROOT.glob("[A-Z]*.md")), *sorted((ROOT / "docs").rglob("*.md")))
_BLOCK = re.compile(r"^```(\w+)(.*)\n((?:.*\n)*?)```$", re.MULTILINE)
_INLINE = re.compile(r"`(litmusfuzz\s[^`]*)`")
_EXIT = re.compile(r"#.*\bexit (\d(?:(?:, | or )\d)*)")


@dataclass(frozen=True, slots=True)
class Command:
    """One command of a page.

    Parameters
    ----------
    text : str
    line : int
        In the page.
    exits : frozenset of int
    prints : tuple of str or None
        Lines of the expected output, None if the page does not say.
    """

    text: str
    line: int
    exits: frozenset[int]
    prints: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its language, the words beside it, and its lines."""

    language: str
    words: tuple[str, ...]
    text: str
    line: int

    @property
    def runs(self) -> bool:
        """True if a reader can run it anywhere."""
        return self.language in ("sh", "console") and "no-run" not in self.words

    def commands(self) -> list[Command]:
        """The block's commands, with continued lines joined."""
        found: list[Command] = []
        lines = self.text.splitlines()
        number = 0
        while number < len(lines):
            start, text = number, lines[number]
            number += 1
            if self.language == "console":
                assert text.startswith("$ "), f"line {self.line + start}: no command: {text}"
                text = text[2:]
            while text.endswith("\\"):
                text = f"{text[:-1].rstrip()} {lines[number].removeprefix('> ').lstrip()}"
                number += 1
            prints: list[str] = []
            while self.language == "console" and number < len(lines):
                if lines[number].startswith("$ "):
                    break
                prints.append(lines[number])
                number += 1
            if not text or text.startswith("#"):
                continue
            exits = _EXIT.search(text)
            known = self.language == "console" and "varies" not in self.words
            found.append(
                Command(
                    text,
                    self.line + start,
                    frozenset(map(int, re.findall(r"\d", exits[1]))) if exits else frozenset({0}),
                    tuple(prints) if known else None,
                )
            )
        return found


def blocks(page: Path) -> list[Block]:
    """The page's fenced blocks."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(m[1], tuple(m[2].split()), m[3], text.count("\n", 0, m.start(3)) + 1)
        for m in _BLOCK.finditer(text)
    ]


def named_commands(page: Path) -> list[str]:
    """Every `litmusfuzz` command that the page names, in a block or in the text."""
    inline = _INLINE.findall(page.read_text(encoding="utf-8"))
    fenced = [
        command.text.partition(" #")[0]
        for block in blocks(page)
        if block.language in ("sh", "console")
        for command in block.commands()
        if command.text.startswith("litmusfuzz")
    ]
    return [" ".join(each.split()) for each in (*inline, *fenced)]
