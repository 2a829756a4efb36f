"""What the stored events of a campaign say together: their fold, and which shards run."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from litmusfuzz.corpus.document import FileError
from litmusfuzz.fuzz.executors.configuration_generator import PRODUCT, is_generated
from litmusfuzz.fuzz.executors.entries import loads
from litmusfuzz.fuzz.executors.trust import outside_code
from litmusfuzz.fuzz.store.folder import StoreError
from litmusfuzz.reports.events import CampaignStarted, Configured, ShardEnded, ShardPlanned
from litmusfuzz.reports.fold import Fold

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from litmusfuzz.corpus.textfile import Entry
    from litmusfuzz.reports.events import AnyEvent, Event


class FoldedEvents:
    """The events of a store up to one of them.

    Parameters
    ----------
    path : Path
        Of the database, for errors.

    Attributes
    ----------
    fold : Fold
    started : CampaignStarted or None
        The settings; None if no campaign has started.
    last : int
        Number of the last event that is folded.
    running : dict of int to float
        When each shard started that has not ended.
    positions : dict of int to int
        Highest position of each shard that has events.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.fold = Fold(self._load_entry)
        self.started: CampaignStarted | None = None
        self.last = 0
        self.running: dict[int, float] = {}
        self.positions: dict[int, int] = {}
        self._trusted: set[tuple[str, str]] = set()
        """Executors and configurations that load no code that the settings do not name."""

    def last_position(self, shard: int) -> int:
        """Highest position of a shard; -1 if it has no events."""
        return self.positions.get(shard, -1)

    def apply(self, number: int, shard: int, position: int, event: Event) -> None:
        """Fold a stored event, unless it contradicts those before it."""
        try:
            for each in _configurations(event):
                self._refuse_outside(*each)
            self.fold.apply(shard, cast("AnyEvent", event))
        except FileError as error:  # the entry of a finding
            raise StoreError(f"{self.path}: event {number}: {error}") from None
        except (LookupError, ValueError, TypeError, ArithmeticError) as error:
            raise StoreError(
                f"{self.path}: event {number}: {type(event).__name__} contradicts the events"
                f" before it, or itself: {error!r:.1000}"
            ) from error
        if isinstance(event, CampaignStarted):
            self.started = event
        self.last = number
        self.positions[shard] = max(position, self.last_position(shard))
        if isinstance(event, ShardPlanned):
            self.running[shard] = event.at
        elif isinstance(event, ShardEnded):
            self.running.pop(shard, None)

    def _load_entry(self, text: str, source: str) -> Entry:
        """The entry of a finding; its configuration is none of code that only it names."""
        entry = loads(text, source)
        if (found := entry.finding) is not None:
            self._refuse_outside(found.executor, found.configuration)
        return entry

    def _refuse_outside(self, executor: str, configuration: str) -> None:
        """Raise if a configuration loads code that the settings of the campaign do not name.

        The settings are what a user trusts who resumes a campaign, and all its other events can
        only have those configurations and generated ones, which load no code.
        """
        if (executor, configuration) in self._trusted:
            return
        if wants := outside_code(executor, configuration):
            settings = self.started.configurations if self.started else ()
            named = {(each.executor, each.name) for each in settings}
            if (executor, configuration) not in named and not (
                (executor, PRODUCT) in named and is_generated(executor, configuration)
            ):
                raise ValueError(f"names {wants}, which the campaign's settings do not")
        self._trusted.add((executor, configuration))


def _configurations(event: Event) -> Iterator[tuple[str, str]]:
    """Executors and configurations that an event names, if tests may run in them."""
    if (name := getattr(event, "configuration", None)) is not None:
        made = isinstance(name, Configured)
        yield (name.executor, name.name) if made else (getattr(event, "executor", ""), name)
