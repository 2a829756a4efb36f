"""The events of a campaign on their way to a store or a shard log: in order, and several at once.

Most of what it takes to store an event is for its transaction, and many together need one. So those
of one moment are handed on together.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from litmusfuzz.reports.events import Generated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from litmusfuzz.reports.events import Event


class EventLog:
    """Takes each event of a campaign, and hands it on.

    That a test was generated waits for the next event, or until a worker takes a test, whichever is
    first. Every other event is handed on at once, with those that wait; in `together`, at its end.
    So a killed process has handed on the events of all tests that a worker had from it.

    Parameters
    ----------
    write : callable
        Receives the events, in their order, one or more at a time.
    """

    def __init__(self, write: Callable[[Sequence[Event]], None]) -> None:
        self.write = write
        self._waiting: list[Event] = []
        self._gathers = False

    def __call__(self, event: Event) -> None:
        """Take an event."""
        self._waiting.append(event)
        if not (self._gathers or isinstance(event, Generated)):
            self.flush()

    def flush(self) -> None:
        """Hand on what waits."""
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            self.write(waiting)

    @contextmanager
    def together(self) -> Iterator[None]:
        """Hand on the events of the block at its end, which comes before anything else is done.

        Nothing may be awaited in it.
        """
        self._gathers = True
        try:
            yield
        finally:
            self._gathers = False
            self.flush()
