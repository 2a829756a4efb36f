"""The store of a campaign: a SQLite database of its events, with one writer, and files.

A process that runs a shard itself appends its events; the coordinator of many shard processes
ingests their shard logs as these grow. The files that events name are written by the shard, into
the campaign's folder, under names that no other shard uses, before the event.

Notes
-----
Nothing is lost or doubled by ``kill -9``, of whichever process at whatever moment: what a process
has written to a file or committed is the kernel's. The events of one ingestion, and with them the
position up to which the log was read, are one transaction: an event's position is the offset of
its line's end, so that a log is read on from the highest position of its shard.

A power failure may take what the kernel had not written yet: the events of the last moments, never
one from the middle (SQLite's write-ahead log keeps the order), so that the store is as it was a
little earlier. Events are not synchronized one by one, which would cost a test some milliseconds.
But a shard log is deleted only after its events are on the disk (`Store.finish_shard`): until then
the log ingests again what the store has forgotten.
"""

from __future__ import annotations

import math
import os
import sqlite3
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final, Self, TypeVar

from litmusfuzz.fuzz.store.database import MAX_EVENT_BYTES, EventDatabase, files_of, from_outside
from litmusfuzz.fuzz.store.folded_events import FoldedEvents
from litmusfuzz.fuzz.store.folder import CampaignFolder, StoreError
from litmusfuzz.fuzz.store.shard_log import LineTooLong, lines_after, remove_log
from litmusfuzz.reports.events import VERSION, Event, ShardEnded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from litmusfuzz.reports.events import CampaignStarted
    from litmusfuzz.reports.fold import Fold

MAX_INGEST_BYTES: Final = 1 << 22
"""Bytes of one shard log that are ingested at once."""

E = TypeVar("E", bound=Event)


class Store(CampaignFolder):
    """The store in a folder.

    Parameters
    ----------
    folder : Path
    write : bool
        True for the process that runs the campaign, of which there is one: it creates what is
        missing.

    Raises
    ------
    StoreError
    """

    def __init__(self, folder: Path, *, write: bool) -> None:
        super().__init__(folder, write=write)
        self.on_stored: Callable[[Sequence[Event]], None] = lambda _: None
        """Called with events that this process has stored, once they are."""
        self._changing = 0
        """Nested changes of the fold that are under way."""
        self._waiting: Callable[[], None] | None = None
        """Called when they have ended."""
        self._folded = FoldedEvents(self.path)
        try:
            with ExitStack() as otherwise:
                otherwise.callback(self.release)
                self.db = EventDatabase(self.path, write=write)
                otherwise.callback(self.db.close)
                self._note_database()
                self._catch_up()
                otherwise.pop_all()
        except sqlite3.Error as error:
            raise StoreError(f"{self.path}: {error}") from None

    def close(self) -> None:
        """Close the database and release the lock."""
        self.db.close()
        self.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def restore(self) -> None:
        """Write a database that is gone again, with all of its events.

        Raises
        ------
        OSError, sqlite3.Error
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        self._open_directory()
        self.db.copy_to(self.path)

    # --- reading -----------------------------------------------------------------------

    def events(self) -> Iterator[tuple[int, Event]]:
        """All events in the order in which they were stored, each with its shard's number."""
        for _, shard, _, event in self.db.events():
            yield shard, event

    def events_of(self, kind: type[E]) -> Iterator[tuple[int, E]]:
        """All events of one type."""
        # By what they say, as the fold takes them: JSON has many ways to write the same.
        for shard, event in self.events():
            if isinstance(event, kind):
                yield shard, event

    def _caught_up(self) -> FoldedEvents:
        """All events that are stored, folded; those of other processes as well."""
        self._catch_up()
        return self._folded

    def _catch_up(self) -> None:
        """Fold the events that another process has stored since."""
        with self._change():
            for number, shard, position, event in self.db.events(self._folded.last):
                self._folded.apply(number, shard, position, event)

    @property
    def started(self) -> CampaignStarted | None:
        """The settings; None if no campaign has started."""
        return self._caught_up().started

    @property
    def fold(self) -> Fold:
        """The fold of all events."""
        return self._caught_up().fold

    @property
    def next_shard(self) -> int:
        """Number of the next shard, from 1 on."""
        return 1 + max(self._caught_up().positions, default=0)

    @property
    def running(self) -> list[int]:
        """Shards that have started and of which no end is stored."""
        return list(self._caught_up().running)

    @property
    def unfinished_since(self) -> float:
        """When the first of the running shards started; infinity if none is running."""
        return min(self._caught_up().running.values(), default=math.inf)

    def when_whole(self, call: Callable[[], None]) -> None:
        """Call once the store can be read and written: now, or when an event is folded in full.

        For handlers of signals, which run between any two instructions.
        """
        if self._changing:
            self._waiting = call
        else:
            call()

    @contextmanager
    def _change(self) -> Iterator[None]:
        """Change the fold: while the block runs, the state of the store is of no use."""
        self._changing += 1
        try:
            yield
        finally:
            self._changing -= 1
            if not self._changing and self._waiting is not None:
                call, self._waiting = self._waiting, None
                call()

    # --- writing -----------------------------------------------------------------------

    def append(self, shard: int, *added: Event) -> None:
        """Store events of a shard, or of the campaign (0).

        Raises
        ------
        OSError, sqlite3.Error
            A full disk, for example; nothing is stored then.
        """
        with self._storing():
            for event in added:
                self._add(shard, 1 + self._folded.last_position(shard), event)
        self.on_stored(added)

    def ingest(self, number: int) -> bool:
        """Store the next events of a shard log; False if there are none.

        Raises
        ------
        StoreError
            If it was written by another version.
        """
        position = max(0, self._caught_up().last_position(number))
        folder = self.log_folder(number)
        try:
            lines = lines_after(folder, position, MAX_INGEST_BYTES, MAX_EVENT_BYTES)
        except LineTooLong as error:
            raise StoreError(str(error)) from None
        placed = []
        for line in lines:
            position += len(line)
            placed.append((position, self._logged(number, line)))
        if placed:
            with self._storing():
                for position, event in placed:
                    self._add(number, position, event)
            self.on_stored([event for _, event in placed])
        return bool(placed)

    def _logged(self, number: int, line: bytes) -> Event:
        """An event of a shard log."""
        try:
            event = from_outside(line)
        except ValueError as error:
            problem = str(error)
        else:
            version = getattr(event, "version", VERSION)
            if version == VERSION:
                return event
            problem = f"is version {version} of a shard log, this program reads version {VERSION}"
        raise StoreError(
            f"{self.log_folder(number)}: {problem}: install the same LitmusFuzz on all machines"
        )

    @contextmanager
    def _storing(self) -> Iterator[None]:
        """Store the events that the block adds, all of them, or none if it raises.

        They are folded before they are committed: one that cannot be is not stored, where it
        would make the store unreadable.
        """
        with self._change():
            try:
                with self.db.transaction():
                    self._catch_up()  # what another process has stored; none can until this ended
                    yield
            except BaseException:
                self._folded = FoldedEvents(self.path)  # the fold has events that the store has not
                raise

    def _add(self, shard: int, position: int, event: Event) -> None:
        """Add an event to those that are being stored."""
        self._folded.apply(self.db.add(shard, position, event), shard, position, event)

    # --- shards ------------------------------------------------------------------------

    def finish_shard(self, number: int) -> None:
        """Ingest the rest of a shard whose process has ended, and remove its log.

        A shard that has logged no end is lost; its duration is that up to its last event.
        """
        while self.ingest(number):
            pass
        if number in self.running:
            seconds = round(self.fold.seconds_of(number), 3)
            self.append(number, ShardEnded(seconds=seconds, lost=True))
        folder = self.log_folder(number)
        if folder.is_dir():
            os.sync()  # the events are on the disk before their log is deleted
            remove_log(folder)

    def remove_stale(self, since: float = 0.0) -> None:
        """Remove what killed processes, of which the first started at `since`, have left."""
        named = {file for _, event in self.events() for file in files_of(event)}
        self.remove_unnamed(named, since)
