"""A shard: a short campaign on one executor in one environment, as plain data.

What goes out is all that a worker needs, wherever it is; what comes back is all that the
writer takes over. On the same machine that is a folder (`fuzz.campaign.nightly.shard_log`)
which the writer reads as it grows; from another machine its files come as text, at the end.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.textfile import loads
from litmusfuzz.fuzz.campaign.loop import Campaign
from litmusfuzz.fuzz.campaign.nightly.shard_log import ShardLog
from litmusfuzz.fuzz.campaign.selftest import selftest
from litmusfuzz.fuzz.campaign.settings import MAX_REDUCTION_S, Settings
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.reports.records import ReportedFinding

if TYPE_CHECKING:
    from collections.abc import Mapping

RANGE: Final = 1 << 20
"""Graphs of a family that a shard may draw; shard n begins with number n times that."""


@dataclass(frozen=True, slots=True)
class Known:
    """A minimized finding: what it is known by, its file's text, and who showed it."""

    key: str
    text: str
    configs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Shard:
    """A short campaign.

    Parameters
    ----------
    number : int
        In the night. With `seed` and a family it says which graphs are generated.
    seed : int
        Of the night.
    executor : str
    configs : tuple of str
        All of one environment, and of one class (`fuzz.campaign.canonical`).
    time_s : float
        For graphs and findings; starting the executor comes on top.
    until : float
        Seconds since 1970: it ends then at the latest.
    families : mapping of str to float
        With their weights; empty for all that the executor runs.
    minimizing_share : float
        Of the time.
    count : int or None
        Executions of each graph; None for the usual number.
    python : str or None
        Another environment's interpreter, where the shard is done.
    known : tuple of Known
        Of this executor in this class.
    pending : tuple of str
        Files of findings that are still to be minimized, as text.
    fast : str or None
        Another configuration of the executor, where findings are made small if that is fast.
    seconds : mapping of str to float
        What a graph took in these configurations so far, as far as is known.
    spool : str or None
        The folder to write to; None on a machine that does not have the night's.
    """

    number: int
    seed: int
    executor: str
    configs: tuple[str, ...]
    time_s: float
    until: float
    families: Mapping[str, float] = field(default_factory=dict)
    minimizing_share: float = 0.5
    count: int | None = None
    python: str | None = None
    known: tuple[Known, ...] = ()
    pending: tuple[str, ...] = ()
    fast: str | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)
    spool: str | None = None


SELFTEST: Final = "selftest"
"""In place of an executor: the shard hunts mutants."""
SELFTEST_WORKERS: Final = 2


def work(shard: Shard) -> dict[str, str]:
    """Do a shard; its files, by name, unless it has a spool.

    A worker's process that is killed leaves the spool as it is.
    """
    if shard.spool is not None:
        _work(shard, Path(shard.spool))
        return {}
    with tempfile.TemporaryDirectory() as folder:
        _work(shard, Path(folder))
        files = (path for path in sorted(Path(folder).rglob("*")) if path.is_file())
        return {str(p.relative_to(folder)): p.read_text(encoding="utf-8") for p in files}


def _selftest(shard: Shard, folder: Path) -> None:
    """Hunt all mutants; of a hunt that is cut short nothing is told."""
    begun = time.monotonic()
    with ShardLog(folder, shard.executor, ()) as spool:
        spool.started({})

        def told(_: object) -> None:
            if spool.told_to_stop or time.time() >= shard.until:
                raise KeyboardInterrupt  # as it takes Ctrl-C

        found = selftest(
            time_s=shard.time_s, workers=SELFTEST_WORKERS, seed=shard.seed % (1 << 31), told=told
        )
        if not found.interrupted:
            for kill in found.kills:
                if kill.mutant not in found.unavailable:
                    spool.killed(kill)
        spool.finished(time.monotonic() - begun)


def _work(shard: Shard, folder: Path) -> None:
    if shard.executor == SELFTEST:
        _selftest(shard, folder)
        return
    begun = time.monotonic()
    known = []
    for each in shard.known:
        known.append(reported := ReportedFinding(loads(each.text), each.key, ""))
        reported.configs.update(each.configs)
    with ShardLog(folder, shard.executor, [each.key for each in shard.known]) as spool:

        def stop() -> bool:
            return spool.told_to_stop or time.time() >= shard.until

        campaign = Campaign(_settings(shard, folder), lambda _: None, spool, known, stop)
        campaign.remember({(shard.executor, name): s for name, s in shard.seconds.items()})
        for text in shard.pending:
            campaign.add_unreduced(loads(text))
        record = campaign.run()
        restarts = sum(each.restarts for each in record.executors)
        spool.finished(time.monotonic() - begun, record.problem, restarts)


def _settings(shard: Shard, folder: Path) -> Settings:
    configs = [configuration(shard.executor, name) for name in shard.configs]
    settings = Settings(
        seed=shard.seed,
        out=folder,
        executors=((shard.executor, *configs),),
        time_s=shard.time_s,
        families=tuple(shard.families),
        weights=shard.families,
        model=None,
        first_index=shard.number * RANGE,
        minimizing_share=shard.minimizing_share,
        defers_minimization=True,
        reduction_s=max(MAX_REDUCTION_S, shard.time_s / 2),
        python=shard.python,
        fast={shard.executor: configuration(shard.executor, shard.fast)} if shard.fast else {},
    )
    return settings if shard.count is None else replace(settings, count=shard.count)
