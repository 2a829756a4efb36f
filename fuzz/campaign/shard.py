"""A shard: a part of a campaign that one process runs.

A shard is plain data: all that a process on any machine needs. `run` has one shard, in its own
process. Those of a nightly run are short and on one executor in one environment. On the
coordinator's machine their processes write a shard log (`fuzz.store.shard_log`), which the
coordinator reads as it grows; on another machine they return its text, and the files that it names,
when the shard has ended.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.campaign.earlier import Earlier
from litmusfuzz.fuzz.campaign.engine import Engine
from litmusfuzz.fuzz.campaign.selftest import selftest
from litmusfuzz.fuzz.executors.entries import loads
from litmusfuzz.fuzz.executors.memory import SHARE
from litmusfuzz.fuzz.executors.table import SELFTEST
from litmusfuzz.fuzz.finding.known_findings import NOTHING, KnownFindings
from litmusfuzz.fuzz.finding.minimized_finding import MinimizedFinding
from litmusfuzz.fuzz.finding.versions import EVERYWHERE, Versions
from litmusfuzz.fuzz.store.shard_log import EVENTS, ShardLog
from litmusfuzz.reports.events import MutantRun, ShardEnded, ShardStarted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence

    from litmusfuzz.fuzz.campaign.settings import Settings
    from litmusfuzz.reports.events import Event


@dataclass(frozen=True, slots=True)
class ShardFinding:
    """A minimized finding of an earlier shard, or a cause of the known-findings file.

    It has its key, its file's text, and the configurations that have shown it. `cause` is its name
    in the known-findings file; `unchecked` is True if nothing of this campaign has shown yet
    whether the cause still shows. `versions` are those that a cause holds for.
    """

    key: str
    text: str
    configs: tuple[str, ...]
    cause: str = ""
    unchecked: bool = False
    unseen: int = 0
    versions: Versions = EVERYWHERE


@dataclass(frozen=True, slots=True)
class Shard:
    """A part of a campaign.

    Parameters
    ----------
    number : int
        In the campaign, from 1 on.
    settings : Settings
        `out` is the campaign's folder.
    limit_s : float
        The shard ends at the latest so many seconds after its process has taken it.
    known : tuple of ShardFinding
    pending : tuple of (str, bool)
        Files of unreduced findings that this shard minimizes, as text; True for a suspect.
    unconfirmed : tuple of str
        Files, as text, of tests that fresh processes of earlier shards did not show again.
    earlier : mapping of int to set of str
        As of `fuzz.campaign.dispatcher.Dispatcher`.
    known_deaths, reduced
        As `deaths` and `reduced` of `fuzz.campaign.earlier.Earlier`.
    log_folder : str or None
        Folder for the shard log; None if the shard's process does not see the campaign's folder.
    """

    number: int
    settings: Settings
    limit_s: float = float("inf")
    known: tuple[ShardFinding, ...] = ()
    pending: tuple[tuple[str, bool], ...] = ()
    unconfirmed: tuple[str, ...] = ()
    earlier: Mapping[int, Collection[str]] = field(default_factory=dict)
    known_deaths: KnownFindings = NOTHING
    reduced: tuple[tuple[str, str], ...] = ()
    log_folder: str | None = None

    @property
    def configurations(self) -> dict[str, tuple[str, ...]]:
        """Names of its configurations by executor."""
        names: dict[str, tuple[str, ...]] = {}
        for executor, *configs in self.settings.executors:
            names[executor] = (*names.get(executor, ()), *(each.name for each in configs))
        return names

    @property
    def is_selftest(self) -> bool:
        """True if it runs the mutants instead of a campaign."""
        return SELFTEST in self.configurations

    def campaign(self, write: Callable[[Sequence[Event]], None]) -> Engine:
        """The campaign that it stands for."""
        known = [
            MinimizedFinding(
                loads(each.text),
                each.key,
                set(each.configs),
                cause=each.cause,
                unchecked=each.unchecked,
                unseen=each.unseen,
                versions=each.versions,
            )
            for each in self.known
        ]
        earlier = Earlier(
            known=known,
            pending=[loads(text) for text, suspect in self.pending if not suspect],
            suspects=[loads(text) for text, suspect in self.pending if suspect],
            unconfirmed=[loads(text) for text in self.unconfirmed],
            tests=self.earlier,
            deaths=self.known_deaths,
            reduced=self.reduced,
        )
        return Engine(self.settings, write, earlier)


SELFTEST_WORKERS: Final = 2


def run_shard(shard: Shard) -> dict[str, str]:
    """Run a shard; return its files by name, or nothing if it has a folder for its log.

    A process that is killed leaves all as it is.
    """
    if shard.log_folder is not None:
        _run_logged(shard, Path(shard.log_folder))
        return {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # Nobody knows how many shards this machine runs; usually there is one for each processor.
        share = SHARE / (os.cpu_count() or 1)
        settings = replace(shard.settings, out=folder, machine_share=share)
        _run_logged(replace(shard, settings=settings), folder)
        files = (*sorted(folder.glob("*/*")), folder / EVENTS)
        return {str(p.relative_to(folder)): p.read_text(encoding="utf-8") for p in files}


def _run_logged(shard: Shard, folder: Path) -> None:
    """Run a shard with its log in a folder."""
    deadline = time.monotonic() + shard.limit_s
    with ShardLog(folder) as log:

        def stopped() -> bool:
            return log.stop_requested or time.monotonic() >= deadline

        if shard.is_selftest:
            _selftest(shard, log, stopped)
        else:
            asyncio.run(_run_and_watch(shard, log, stopped))


def _selftest(shard: Shard, log: ShardLog, stopped: Callable[[], bool]) -> None:
    """Run all mutants; an interrupted self-test logs no result."""
    start = time.monotonic()
    log.write([ShardStarted(host=os.uname().nodename, pid=os.getpid(), versions={})])

    def stop_if_requested(_: object) -> None:
        if stopped():
            raise KeyboardInterrupt  # as it takes Ctrl-C

    found = selftest(
        time_s=shard.settings.time_s,
        workers=SELFTEST_WORKERS,
        seed=shard.settings.options.seed % (1 << 31),
        show=stop_if_requested,
    )
    if not found.interrupted:
        log.write([MutantRun(kill=e) for e in found.kills if e.mutant not in found.unavailable])
    log.write([ShardEnded(seconds=round(time.monotonic() - start, 3))])


async def _run_and_watch(shard: Shard, log: ShardLog, stopped: Callable[[], bool]) -> None:
    """Run the campaign until its time is over, or the coordinator or the deadline ends it."""
    campaign = shard.campaign(log.write)

    async def watch() -> None:
        while not stopped():
            await campaign.course.changed()
        campaign.stop()

    await run_watched(campaign, watch())


async def run_watched(campaign: Engine, watch: Coroutine[Any, Any, None]) -> None:
    """Run a campaign, and as long as it runs the coroutine that may stop it."""
    watching = asyncio.create_task(watch)
    try:
        await campaign.run()
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
