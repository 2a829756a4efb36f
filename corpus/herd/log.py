"""Logs of results on litmus tests, in the format of herd and litmus, for mcompare7.

Two extensions look like a value and a location to mcompare7: a torn value is the name
``torn``, and if some outcome did not complete, each state has the location `STATUS`. A state
leaves out values that a blocked outcome lacks; the arrays of a queue follow one another.

References
----------
herdtools7, `tools/lexLog_tools.mll` (what mcompare7 accepts), `herd/top_herd.ml`.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.condition import TRUE, Condition
from litmusfuzz.corpus.herd.writer import layout
from litmusfuzz.corpus.outcome import TORN, Outcome, Status
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import Entry, FileError
from litmusfuzz.corpus.textfile import dumps as file_text

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Value

Cell = int | str | tuple[int, ...]
"""A value in a state: an int, a word, or an array's elements."""
State = tuple[tuple[str, Cell], ...]
"""A final state: locations, ``0:r0`` or ``x``, sorted, with their values."""

STATUS: Final = "outcome.status"
"""A location that no test has, since names have no dot: completed, blocked or
failed. A state without it is of an outcome that completed."""
MAX_STATES: Final = 1_000_000
_KINDS: Final = {"exists": "Allowed", "~exists": "Forbidden", "forall": "Required"}


@dataclass(frozen=True, slots=True)
class LoggedTest:
    """Entry of a log: the states of one test.

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
        """Locations that every state has."""
        found = [frozenset(name for name, _ in state) for state in self.states]
        return frozenset.intersection(*found) if found else frozenset()


# --- writing ---------------------------------------------------------------------------


def state_of(test: LitmusTest, outcome: Outcome) -> State:
    """An outcome of `test` as a state; with `STATUS` unless it completed."""
    return _state(layout(test).places, outcome)


def _state(places: Mapping[str, str], outcome: Outcome) -> State:
    state = [(places[name], _cell_of(value)) for name, value in outcome.values]
    if outcome.status is not Status.COMPLETED:
        state.append((STATUS, str(outcome.status)))
    return tuple(sorted(state, key=lambda each: each[0]))


def _cell_of(value: Value) -> Cell:
    """A value as text in a state: an int, an array, or a word."""
    if value is TORN:
        return "torn"
    queue = not value or isinstance(value[0], tuple)
    flat = tuple(i for part in value for i in (part if isinstance(part, tuple) else (part,)))
    return flat[0] if len(flat) == 1 and not queue else flat


def log(
    test: LitmusTest,
    states: Mapping[Outcome, int],
    condition: Condition | None = None,
    *,
    histogram: bool = False,
    locations: Collection[str] = (),
) -> str:
    """The outcomes of one test as an entry of herd's log.

    Parameters
    ----------
    states : mapping of Outcome to int
        Each with how often it was seen; 1 for each of an allowed set.
    condition : Condition, optional
        What is asked; ``forall (true)`` if not given, as in herd.
    histogram : bool
        In litmus7's form, which has the counts.
    locations : collection of str
        Those to show, as herd shows what a test lists; all if not given. The
        condition's are among them.

    Notes
    -----
    ``Positive`` counts what satisfies exists and forall, and what refutes
    ~exists; ``Observation`` counts the proposition itself, as herd does. A state
    that lacks a location of the condition does not satisfy it. The hash is of
    our file, not herd's: mcompare7 warns that they differ.
    """
    asked = condition or Condition("forall", TRUE)
    places = layout(test).places
    ended = all(outcome.status is Status.COMPLETED for outcome in states)
    by_state: dict[State, int] = {}
    for outcome, count in states.items():
        state = _state(places, outcome)
        if locations:
            state = tuple(each for each in state if each[0] in (*locations, STATUS))
        if not ended and outcome.status is Status.COMPLETED:
            state = tuple(sorted((*state, (STATUS, "completed")), key=lambda each: each[0]))
        # States that differ only in values that are not shown count as one.
        by_state[state] = by_state.get(state, 0) + count if histogram else count
    holds = {state: asked.holds(dict(state)) for state in by_state}
    true = sum(count for state, count in by_state.items() if holds[state])
    false = sum(by_state.values()) - true
    positive, negative = (false, true) if asked.quantifier == "~exists" else (true, false)
    seen = "Sometimes" if true and false else "Always" if true else "Never"
    found = asked.satisfied(found=bool(false if asked.quantifier == "forall" else true))
    lines = [f"Test {test.name} {_KINDS[asked.quantifier]}"]
    lines.append(f"Histogram ({len(by_state)} states)" if histogram else f"States {len(by_state)}")
    for state, count in sorted(by_state.items(), key=lambda each: _order(each[0])):
        mark = f"{count:<8}{'*>' if holds[state] else ':>'}" if histogram else ""
        lines.append(mark + " ".join(f"{_place(name)}={_cell(cell)};" for name, cell in state))
    body = file_text(Entry(replace(test, description="")))
    lines += [
        "Ok" if found else "No",
        "Witnesses",
        f"Positive: {positive} Negative: {negative}",
        f"Condition {asked}",
        f"Observation {test.name} {seen} {true} {false}",
        f"Hash={hashlib.md5(body.encode(), usedforsecurity=False).hexdigest()}",
    ]
    return "\n".join(lines) + "\n\n"


def _order(state: State) -> tuple[tuple[str, bool, Cell], ...]:
    """Sort key: by value, words after numbers."""
    return tuple((name, isinstance(cell, str), cell) for name, cell in state)


def _place(name: str) -> str:
    return name if ":" in name else f"[{name}]"


def _cell(cell: Cell) -> str:
    return "{" + ",".join(map(str, cell)) + "}" if isinstance(cell, tuple) else str(cell)


# --- reading ---------------------------------------------------------------------------

_TEST = re.compile(r"Test[ \t]+([A-Za-z0-9_/.+\[\]-]+)(?:[ \t]+([A-Za-z]+))?[ \t]*")
_STATES = re.compile(r"(?:States(?:[ \t]+([0-9]+))?|Histogram(?:[ \t]+\(([0-9]+) states *\))?)\s*")
_COUNT = re.compile(r"[ \t]*([0-9]+)[ \t]*[:*]>")
# What follows the word is for people; a state may be of a variable that is called like one.
_VERDICT = re.compile(r"(Loop[ \t]+)?(Undef|Succeeded|Failed|Ok|No|\?\?)(?![\w.:\[])(?![ \t]*=)")
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
        self.places: dict[str, str] = {}  # each once: a log may have a million states

    def error(self, message: str) -> FileError:
        line = min(self.at + 1, len(self.lines))
        return FileError(self.source, line, (self.name,) if self.name else (), message)

    def line(self) -> str:
        """The current line, without its end; "" past the last."""
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
        end = len(line.rstrip())
        while position < end:
            match = _BINDING.match(line, position)
            if not match:
                raise self.error(f"not a state: {line[position:].strip()[:60]!r}")
            place = match["place"].strip("[]") if match["place"][0] == "[" else match["place"]
            if ":" in place:
                thread, _, register = place.partition(":")
                place = f"{self.number(thread)}:{register}"
            if place in values:
                raise self.error(f"{place[:40]} stands twice")
            values[self.places.setdefault(place, place)] = self.cell(match["value"])
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
