"""What a campaign says of its events once they are stored: see `litmusfuzz.reports.seen`.

A forbidden outcome is said when it is judged. Many tests may show one defect, so few of a kind are
said while what became of them is open; the others are counted, and reports list them all. The first
of a kind is always said.
"""

from __future__ import annotations

import os.path
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.outcome import nearest
from litmusfuzz.corpus.textfile import FileError
from litmusfuzz.fuzz.executors.entries import load, loads
from litmusfuzz.reports.commands import replay_command
from litmusfuzz.reports.events import (
    Confirmed,
    Executions,
    FindingAdded,
    FindingKind,
    SeenAgain,
    Unconfirmed,
    WorkerDied,
)
from litmusfuzz.reports.seen import Became, SeenTest, allowed_of
from litmusfuzz.reports.text import MINIMIZED_IN_PART

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from litmusfuzz.reports.events import Event, Run
    from litmusfuzz.reports.seen import Said

    Kind = tuple[str, tuple[str, ...], str]

MOST_OPEN: Final = 3
"""Tests of a kind that are said while none knows what becomes of them."""
MOST_LIKE: Final = 1
"""Of those that look like one that is known."""
MOST_MORE: Final = 200
"""Tests that one process says besides the first of each kind."""


class Announcer:
    """Chooses what is said of stored events.

    Parameters
    ----------
    folder : Path
        Of the campaign.
    names : mapping of str to str
        Names of known causes, by key.
    python : str or None
        Interpreter of another environment, which runs the tests.
    """

    def __init__(self, folder: Path, names: Mapping[str, str], python: str | None) -> None:
        self.folder = folder
        self.names = names
        self._files: dict[str, str] = {}
        """Files of findings, by key."""
        self.python = python
        self._kinds: dict[Run, Kind] = {}
        """Of the tests that were said."""
        self._open: defaultdict[Kind, set[Run]] = defaultdict(set)
        """Of each kind, the tests that were said and of which the end is not known."""
        self._more = 0
        """Tests that were said and were not the first of their kind."""
        self._became: dict[Run, str] = {}

    def said_of(self, stored: Sequence[Event]) -> Iterator[Said]:
        """What is said of events, which are stored."""
        for event in stored:
            if isinstance(event, Executions):
                if event.unreduced and self._is_said(event):
                    yield self._seen(event)
            elif isinstance(event, FindingAdded):
                file = os.path.join(self.folder, event.file)
                self._files.setdefault(event.key, file)
                if event.kind is FindingKind.FORBIDDEN and event.run in self._kinds:
                    yield from self._closed(event.run, _how_far(event), file)
            elif isinstance(event, SeenAgain):
                if event.index is not None:
                    run = event.index, event.executor, event.configuration
                    if (name := self.names.get(event.key)) is not None:
                        yield from self._closed(run, f"known cause {name}")
                    else:
                        file = self._files.get(event.key, "")
                        yield from self._closed(run, "shows what another one does", file)
            elif isinstance(event, Confirmed):
                yield from self._news(event.run, "a fresh process shows it again")
            elif isinstance(event, Unconfirmed):
                what = f"not shown again by a fresh process in {event.executions:,} executions"
                file = os.path.join(self.folder, event.file)
                yield from self._closed(event.run, what, file)
            elif isinstance(event, WorkerDied):
                for index, configuration in event.suspects:
                    what = "its process crashed later; it counts once a fresh process shows it"
                    yield from self._news((index, event.executor, configuration), what)

    def _is_said(self, event: Executions) -> bool:
        """True if a test is said, and not only counted."""
        kind = event.executor, event.symptoms, event.looks_like
        if event.run in self._kinds:
            return False
        if kind in self._open:
            most = MOST_LIKE if event.looks_like else MOST_OPEN
            if len(self._open[kind]) >= most or self._more >= MOST_MORE:
                return False
            self._more += 1
        self._kinds[event.run] = kind
        self._open[kind].add(event.run)
        return True

    def _seen(self, event: Executions) -> SeenTest:
        assert event.unreduced is not None
        try:
            entry = load(self.folder / event.unreduced)
        except (FileError, OSError):  # the report says what is wrong with it
            entry = None
        near = None
        if entry is not None and entry.finding is not None and entry.finding.forbidden:
            allowed = allowed_of(entry, event.model)
            near = nearest(entry.finding.forbidden[0][0], allowed) if allowed else None
        # A command runs code that a configuration's name lists only if it names it too.
        named = f"{event.executor}:{event.configuration}" if "=" in event.configuration else ""
        return SeenTest(
            event,
            str(self.folder),
            entry,
            near,
            replay_command(
                FindingKind.FORBIDDEN, event.unreduced, str(self.folder), self.python, named
            ),
            self.names.get(event.looks_like) or self._files.get(event.looks_like, event.looks_like),
        )

    def _news(self, run: Run, what: str, file: str = "") -> Iterator[Became]:
        """Say what became of a test, if that was printed, and this was not."""
        if run in self._kinds and self._became.get(run) != what:
            self._became[run] = what
            yield Became(run, what, file)

    def _closed(self, run: Run, what: str, file: str = "") -> Iterator[Became]:
        """Say what became of a test in the end: another one of its kind may be said."""
        if run in self._kinds:
            self._open[self._kinds[run]].discard(run)
        yield from self._news(run, what, file)


def _how_far(event: FindingAdded) -> str:
    """How far the test of a new finding was minimized."""
    found = loads(event.entry, event.file).finding
    return "minimized" if found is None or found.minimized else MINIMIZED_IN_PART
