"""Tables of outcomes as plain text, and the words that count things."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from litmusfuzz.corpus.model import CONTROL
from litmusfuzz.corpus.outcome import Outcome, Status, plain_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def counted(number: int, noun: str) -> str:
    """``1 finding``, ``2 findings``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def the_model(name: str) -> str:
    """A memory model beside what is tested: ``executor`` alone would be read as that."""
    return "the model executor" if name == "executor" else name


def each_once(lines: Iterable[str]) -> list[str]:
    """Each line once, and how often it came if that is more."""
    counts = Counter(lines).items()
    return [line if count == 1 else f"{line} ({count} times)" for line, count in counts]


def in_short(steps: Sequence[str], most: int = 6) -> str:
    """The steps of a reason in a line; of more than `most`, so many and the number of the rest.

    A loop that could go on has a few steps in each iteration. JSON has all of them.
    """
    more = len(steps) - most
    kept = (*steps[:most], f"and {counted(more, 'more step')}") if more > 0 else steps
    return "; ".join(kept)


def printable(text: str) -> str:
    """The text without control characters, and without those that XML and HTML forbid."""
    return CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def one_line(text: str) -> str:
    """The text without line breaks: text from outside begins no line of its own."""
    return " ".join(part.strip() if n else part for n, part in enumerate(text.splitlines()))


def table(
    header: Sequence[str], rows: Iterable[Sequence[str]], numeric: Sequence[bool] = ()
) -> str:
    """Columns as wide as their widest cell, two blanks between; `numeric` ones end together."""
    lines = [[one_line(cell) for cell in row] for row in (header, *rows)]
    aligned = [str.rjust if each else str.ljust for each in numeric or [False] * len(header)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    return "\n".join(
        "  ".join(f(cell, n) for f, cell, n in zip(aligned, line, widths, strict=True)).rstrip()
        for line in lines
    )


def verdict_cell(verdict: str | None) -> str:
    """A verdict in a table, in capitals unless it is "allowed"; "" for none."""
    return verdict if verdict == "allowed" else (verdict or "").upper()


def cells(outcome: Outcome, names: Sequence[str]) -> list[str]:
    """One outcome's values, as `table` cells; "-" where it has none."""
    values = dict(outcome.values)
    return [
        str(plain_value(values[name])).replace(" ", "") if name in values else "-" for name in names
    ]


def outcome_table(
    names: Sequence[str], titles: Sequence[str], rows: Iterable[tuple[Outcome, Sequence[str]]]
) -> str:
    """Outcomes one a line, each with further cells behind it, under `titles`.

    The status has a column if some outcomes did not complete.
    """
    listed = list(rows)
    ended = any(outcome.status is not Status.COMPLETED for outcome, _ in listed)
    return table(
        [*names, *(["ended"] if ended else []), *titles],
        (
            [*cells(outcome, names), *([str(outcome.status)] if ended else []), *extra]
            for outcome, extra in listed
        ),
    )
