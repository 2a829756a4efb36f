"""Shards on a mutant that needs no framework, run until their log has what a test needs.

No clock decides: a shard is asked to stop when its log says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from campaign.counted import counted_clock
from helpers_settings import settings_of

from litmusfuzz.fuzz.campaign import shard as module
from litmusfuzz.fuzz.campaign.shard import Shard, run_shard
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.fuzz.nightly.shard_settings import TESTS_PER_FAMILY
from litmusfuzz.fuzz.store.shard_log import EVENTS, ShardLog
from litmusfuzz.fuzz.store.store import Store
from litmusfuzz.reports.events import (
    CampaignStarted,
    Configured,
    Event,
    Executed,
    FindingAdded,
    SeenAgain,
    ShardPlanned,
    Unconfirmed,
    decode,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

STALE = "mutant/stale-reads"
STARTED = CampaignStarted(
    at=1_800_000_000,
    command="litmusfuzz nightly",
    seed=1,
    asked_s=60.0,
    configurations=(Configured(STALE, "plain", "executor", "executor", f"{STALE}/executor"),),
    unattended=True,
)


def shard(folder: Path, number: int = 1, *, log: bool = True, **changes: Any) -> Shard:
    """A shard of the campaign in a folder that would run for ten minutes.

    Parameters
    ----------
    folder : Path
    number : int
    log : bool
        False if its process does not see the folder.
    **changes
        Of the shard, or of its settings.
    """
    of_shard = {name for name in changes if name in Shard.__dataclass_fields__}
    settings = settings_of(
        **{
            "seed": 1,
            "out": folder,
            "executors": ((STALE, configuration(STALE, "plain")),),
            "time_s": 600.0,
            "families": ("dag",),
            "count": 64,
            "first_index": (number - 1) * TESTS_PER_FAMILY,
            "suffix": f"-shard{number}" if number > 1 else "",
            **{name: value for name, value in changes.items() if name not in of_shard},
        }
    )
    return Shard(
        number,
        settings,
        600.0,
        log_folder=str(folder / "shards" / str(number)) if log else None,
        **{name: changes[name] for name in of_shard},
    )


def run_until(asked: Shard, enough: Callable[[Sequence[Event]], bool]) -> Mapping[str, str]:
    """Run a shard until its events are enough, on a clock that its executions turn."""

    class Until(ShardLog):
        @property
        def stop_requested(self) -> bool:
            """Whether they are."""
            return enough(events_of(self.folder))

    with pytest.MonkeyPatch.context() as patch, counted_clock():
        patch.setattr(module, "ShardLog", Until)
        return run_shard(asked)


def events_of(folder: Path) -> list[Event]:
    """The events of a shard log."""
    return [decode(line) for line in (folder / EVENTS).read_bytes().splitlines()]


def pending(events: Sequence[Event]) -> set[int]:
    """Tests that wait to be minimized."""
    shown = {e.index for e in events if isinstance(e, Executed) and e.unreduced and not e.key}
    resolved = {e.index for e in events if isinstance(e, FindingAdded | SeenAgain | Unconfirmed)}
    return shown - resolved


def begun(folder: Path, shards: int = 1) -> Store:
    """A store in which shards are planned."""
    store = Store(folder, write=True)
    if store.started is None:
        store.append(0, STARTED)
        for number in range(1, shards + 1):
            planned = ShardPlanned(at=1_800_000_001, configurations={STALE: ("plain",)})
            store.append(number, planned)
    return store
