"""Logs: what herd, or litmus, found on tests; written so that mcompare7 reads them.

References
----------
herdtools7, `tools/lexLog_tools.mll` (what mcompare7 accepts), `herd/top_herd.ml`.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from corpus.herd.condition import TRUE, Cell, Condition
from corpus.herd.writer import DoesNotFit, layout
from corpus.outcome import Outcome, Status, plain_value
from corpus.textfile import Entry, FileError
from corpus.textfile import dumps as file_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpus.graph import LitmusTest

State = tuple[tuple[str, Cell], ...]
"""A final state: locations, ``0:r0`` or ``x``, sorted, with their values."""

MAX_STATES: Final = 1_000_000
_KINDS: Final = {"exists": "Allowed", "~exists": "Forbidden", "forall": "Required"}


@dataclass(frozen=True, slots=True)
class LoggedTest:
    """What a log says of one test.

    Parameters
    ----------
    name : str
    line : int
        Where it begins.
    states : mapping of State to int
        The final states, each with how often it was seen (1 in herd's logs).
    condition : str
        As it stands there; "" if it does not.
    """

    name: str
    line: int
    states: Mapping[State, int]
    condition: str = ""

    @property
    def locations(self) -> frozenset[str]:
        """Those that every state has."""
        found = [frozenset(name for name, _ in state) for state in self.states]
        return frozenset.intersection(*found) if found else frozenset()


# --- writing ---------------------------------------------------------------------------


def state_of(test: LitmusTest, outcome: Outcome) -> State:
    """An outcome of `test` as a state.

    Raises
    ------
    DoesNotFit
        If the outcome is blocked, failed or torn, or has a queue of arrays.
    """
    return _state(layout(test).places, outcome)


def _state(places: Mapping[str, str], outcome: Outcome) -> State:
    if outcome.status is not Status.COMPLETED:
        raise DoesNotFit(f"a log has no {outcome.status} outcome")
    state: list[tuple[str, Cell]] = []
    for name, value in outcome.values:
        plain = plain_value(value)
        if isinstance(plain, list) and all(isinstance(each, int) for each in plain):
            state.append((places[name], tuple(v for v in plain if isinstance(v, int))))
        elif isinstance(plain, int):
            state.append((places[name], plain))
        else:
            raise DoesNotFit(f"a log has no value {name}={plain}")
    return tuple(sorted(state))


def log(
    test: LitmusTest,
    states: Mapping[Outcome, int],
    condition: Condition | None = None,
    *,
    histogram: bool = False,
) -> str:
    """The outcomes of one test as herd would tell them.

    Parameters
    ----------
    states : mapping of Outcome to int
        Each with how often it was seen; 1 for each of an allowed set.
    condition : Condition, optional
        What is asked; ``forall (true)`` if not given, as in herd.
    histogram : bool
        In litmus7's form, which has the counts.

    Raises
    ------
    DoesNotFit
        See `state_of`; tests of any form have logs.

    Notes
    -----
    ``Positive`` counts what satisfies exists and forall, and what refutes
    ~exists; ``Observation`` counts the proposition itself, as herd does. The
    hash is of our file, not herd's: mcompare7 warns that they differ.
    """
    asked = condition or Condition("forall", TRUE)
    places = layout(test).places
    told = {_state(places, outcome): count for outcome, count in states.items()}
    true = sum(count for state, count in told.items() if asked.holds(dict(state)))
    false = sum(told.values()) - true
    positive, negative = (false, true) if asked.quantifier == "~exists" else (true, false)
    seen = "Sometimes" if true and false else "Always" if true else "Never"
    valid = asked.validated([dict(state) for state in told])
    lines = [f"Test {test.name} {_KINDS[asked.quantifier]}"]
    lines.append(f"Histogram ({len(told)} states)" if histogram else f"States {len(told)}")
    for state, count in sorted(told.items()):
        mark = f"{count:<8}{'*>' if asked.holds(dict(state)) else ':>'}" if histogram else ""
        lines.append(mark + " ".join(f"{_place(name)}={_cell(cell)};" for name, cell in state))
    body = file_text(Entry(replace(test, about="")))
    lines += [
        "Ok" if valid else "No",
        "Witnesses",
        f"Positive: {positive} Negative: {negative}",
        f"Condition {asked}",
        f"Observation {test.name} {seen} {true} {false}",
        f"Hash={hashlib.md5(body.encode(), usedforsecurity=False).hexdigest()}",
    ]
    return "\n".join(lines) + "\n\n"


def _place(name: str) -> str:
    return name if ":" in name else f"[{name}]"


def _cell(cell: Cell) -> str:
    return "{" + ",".join(map(str, cell)) + "}" if isinstance(cell, tuple) else str(cell)


# --- reading ---------------------------------------------------------------------------

_TEST = re.compile(r"Test[ \t]+([A-Za-z0-9_/.+\[\]-]+)(?:[ \t]+([A-Za-z]+))?[ \t]*")
_STATES = re.compile(r"(?:States(?:[ \t]+([0-9]+))?|Histogram(?:[ \t]+\(([0-9]+) states *\))?)\s*")
_COUNT = re.compile(r"[ \t]*([0-9]+)[ \t]*[:*]>")
_VERDICT = re.compile(r"(Loop[ \t]+)?(Undef|Succeeded|Failed|Ok|No|\?\?)")
_NUMBER = r"-?(?:0[xX][0-9a-fA-F]+|[0-9]+)"
_BINDING = re.compile(
    r"[ \t]*(?P<place>[0-9]+:[A-Za-z_%$][\w.]*|\[[A-Za-z_][\w.]*\]|[A-Za-z_][\w.]*(?:\[[0-9]+\])?)"
    rf"[ \t]*=[ \t]*(?P<value>{_NUMBER}|[A-Za-z_][\w.]*|\{{[-0-9a-fA-FxX, ]*\}})[ \t]*;",
    re.ASCII,
)


def read_log(text: str, source: str = "<log>") -> tuple[LoggedTest, ...]:
    """The tests of a log of herd7, litmus7 or `log`, in their order.

    Lines outside of tests are passed over, as mcompare7 does.

    Raises
    ------
    FileError
        If there is no test, or one is cut short, or a state cannot be read.
    """
    return _Log(text, source).tests()


class _Log:
    def __init__(self, text: str, source: str) -> None:
        self.lines = text.split("\n")
        self.source = source
        self.at = 0
        self.name = ""

    def error(self, message: str) -> FileError:
        line = min(self.at + 1, len(self.lines))
        return FileError(self.source, line, (self.name,) if self.name else (), message)

    def line(self) -> str:
        """The present line, without its end; "" past the last."""
        return self.lines[self.at].rstrip("\r") if self.at < len(self.lines) else ""

    def tests(self) -> tuple[LoggedTest, ...]:
        found: dict[str, LoggedTest] = {}
        while self.at < len(self.lines):
            begin = _TEST.fullmatch(self.line())
            if begin:
                name = re.sub(r"[/\[\]]", "_", begin[1])  # as in the reader of tests
                if name in found:
                    raise self.error(f"test {name} stands twice; also in line {found[name].line}")
                self.name = name
                found[name] = self.test(name)
                self.name = ""
            else:
                self.at += 1
        if not found:
            self.at = 0
            raise self.error("no test in this log")
        return tuple(found.values())

    def test(self, name: str) -> LoggedTest:
        begin = self.at + 1
        self.at += 1
        while not (head := _STATES.fullmatch(self.line())):
            if self.at >= len(self.lines) or _TEST.fullmatch(self.line()):
                raise self.error("a test without its states")
            self.at += 1
        self.at += 1
        stated = head[1] or head[2]
        states = self.states()
        if stated == "1" and not states:
            states = {(): 1}  # nothing is observed: herd shows an empty line
        if stated is not None and int(stated[:18]) != len(states):
            raise self.error(f"{stated[:18]} states stated, {len(states)} listed")
        self.at += 1
        condition = ""
        while self.at < len(self.lines) and not _TEST.fullmatch(self.line()):
            if self.line().startswith("Condition "):
                condition = self.line().removeprefix("Condition ").strip()
            self.at += 1
        return LoggedTest(name, begin, states, condition)

    def states(self) -> dict[State, int]:
        """The states, up to the line that says Ok or No."""
        found: dict[State, int] = {}
        while not _VERDICT.match(self.line()):
            if self.at >= len(self.lines):
                raise self.error("ends among its states")
            if self.line().strip():
                count, state = self.state()
                if state in found:
                    raise self.error("a state stands twice")
                found[state] = count
                if len(found) > MAX_STATES:
                    raise self.error(f"more than {MAX_STATES} states")
            self.at += 1
        return found

    def state(self) -> tuple[int, State]:
        line, _, _ = self.line().partition("#")
        counted = _COUNT.match(line)
        position = counted.end() if counted else 0
        values: dict[str, Cell] = {}
        while line[position:].strip():
            match = _BINDING.match(line, position)
            if not match:
                raise self.error(f"not a state: {line[position:].strip()[:60]!r}")
            place = match["place"].strip("[]") if match["place"][0] == "[" else match["place"]
            if ":" in place:
                thread, _, register = place.partition(":")
                place = f"{self.number(thread)}:{register}"
            if place in values:
                raise self.error(f"{place[:40]} stands twice")
            values[place] = self.cell(match["value"])
            position = match.end()
        count = self.number(counted[1]) if counted else 1
        return count, tuple(sorted(values.items(), key=lambda each: each[0]))

    def cell(self, text: str) -> Cell:
        if text[0] == "{":
            parts = text[1:-1].replace(" ", ",").split(",")
            return tuple(self.number(part) for part in parts if part)
        return self.number(text) if text[0] in "-0123456789" else text

    def number(self, text: str) -> int:
        if not re.fullmatch(_NUMBER, text) or len(text) > 20:
            raise self.error(f"not a number of 64 bits: {text[:40]!r}")
        digits = text.lstrip("-")
        value = int(digits, 16 if digits[:2] in ("0x", "0X") else 10)
        return -value if text[0] == "-" else value
