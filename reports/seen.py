"""What a campaign says at once: a forbidden outcome when it is judged, and later what became of it.

The terminal prints these, and ``--json`` has them as lines of JSON. A file that they name exists,
and the store has the events that they are about, before anything is said.
"""

from __future__ import annotations

import os.path
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from litmusfuzz.corpus.notation import notation
from litmusfuzz.corpus.textfile import Digest
from litmusfuzz.reports import drawing
from litmusfuzz.reports.events import Executed
from litmusfuzz.reports.tables import one_line, the_model
from litmusfuzz.reports.text import violation

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Outcome
    from litmusfuzz.corpus.textfile import Entry
    from litmusfuzz.reports.events import Executions, Run

MOST_CHARACTERS: Final = 88
"""Of a test that is printed in notation; another one is a drawing."""
MOST_LINES: Final = 14
MOST_WIDE: Final = 120
"""Lines of a drawing that is printed, and characters of each. A larger test is named by its index,
family and file."""


@dataclass(frozen=True, slots=True)
class SeenTest:
    """A test that has just shown a forbidden outcome.

    Parameters
    ----------
    event : Executions
        What its executions showed.
    folder : str
        Of the campaign; the event's file is relative to it.
    entry : Entry or None
        What the file has; None if it cannot be read.
    near : Outcome or None
        The allowed outcome that differs in fewest values.
    replay : str
        The command that shows it again.
    looks_like : str
        Name of what is known that it contains; "" for nothing.
    """

    event: Executions
    folder: str
    entry: Entry | None
    near: Outcome | None
    replay: str
    looks_like: str = ""

    @property
    def file(self) -> str:
        """Its file, as a user here names it."""
        return os.path.join(self.folder, self.event.unreduced or "")

    @property
    def name(self) -> str:
        """The test and its configuration."""
        return name_of(self.event.run)

    @property
    def _forbidden(self) -> int:
        return self.event.verdicts.get("forbidden", 0)

    @property
    def _executions(self) -> int:
        return sum(self.event.verdicts.values())

    @property
    def _searched(self) -> str:
        """How many schedules were executed, and whether these are all; "" without control."""
        event = self.event
        found = event.searched if isinstance(event, Executed) else None
        return "" if found is None else found.extent

    def text(self) -> str:
        """The block that is printed."""
        event = self.event
        lines = [
            f"FORBIDDEN: {self.name}, family {event.family}, judged by {the_model(event.model)}"
        ]
        if self.entry is not None:
            lines += _small(self.entry.test)
        found = None if self.entry is None else self.entry.finding
        if found is not None and found.forbidden:
            on = f"{event.executor}/{event.configuration}"
            counts = list(found.forbidden)
            lines += violation(counts, self._executions, on, self.near, event.model)
        else:
            lines.append(f"  seen      in {self._forbidden} of {self._executions} executions")
        if self._searched:
            lines.append(f"  searched  {self._searched}")
        if self.looks_like:
            lines.append(
                f"  known?    looks like {self.looks_like}, which no experiment has decided"
            )
        lines += [f"  file      {self.file}", f"  replay    {self.replay}"]
        return "\n".join(map(one_line, lines))

    def as_json(self) -> dict[str, Any]:
        """Plain data with everything that `text` has."""
        event = self.event
        found = None if self.entry is None else self.entry.finding
        return {
            "event": "forbidden",
            "index": event.index,
            "family": event.family,
            "executor": event.executor,
            "configuration": event.configuration,
            "model": event.model,
            "forbidden": self._forbidden,
            "executions": self._executions,
            "searched": self._searched,
            "outcomes": [
                {"outcome": outcome.plain, "count": count}
                for outcome, count in (found.forbidden if found else ())
            ],
            "nearest": self.near and self.near.plain,
            "test": drawing.text(self.entry.test) if self.entry else "",
            "looks_like": self.looks_like,
            "file": self.file,
            "replay": self.replay,
        }


@dataclass(frozen=True, slots=True)
class Became:
    """What became of a test that was printed."""

    run: Run
    what: str
    """A sentence without its end."""
    file: str = ""
    """Of a finding, for example; as a user here names it."""

    def text(self) -> str:
        """The line that is printed."""
        file = f": {self.file}" if self.file else ""
        return one_line(f"{name_of(self.run)}: {self.what}{file}")

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        index, executor, configuration = self.run
        return {
            "event": "became",
            "index": index,
            "executor": executor,
            "configuration": configuration,
            "what": self.what,
            "file": self.file,
        }


Said = SeenTest | Became


def name_of(run: Run) -> str:
    """A test and its configuration, in words."""
    index, executor, configuration = run
    return f"graph {index} on {executor}/{configuration}"


def allowed_of(entry: Entry, model: str) -> tuple[Outcome, ...]:
    """The allowed outcomes that a file lists, if it lists them."""
    listed = entry.allowed.get(model, frozenset())
    return () if isinstance(listed, Digest) else tuple(sorted(listed, key=str))


def _small(test: LitmusTest) -> list[str]:
    """A small test in notation, or as a drawing; nothing for a large one."""
    written = notation(test)
    if written is not None and len(written) <= MOST_CHARACTERS and "\n" not in written:
        # Notation is of int32 scalars that begin as 0, unless something else is said beside it.
        plain = {f"{each.name}: int32[] = 0" for each in test.variables}
        more = [each for each in drawing.declarations(test) if each not in plain]
        return [f"  test      {written}", *(f"            {each}" for each in more)]
    picture = [line for line in drawing.text(test).splitlines()[1:] if line.strip()]
    small = len(picture) <= MOST_LINES and max(map(len, picture)) <= MOST_WIDE
    return picture if small else []
