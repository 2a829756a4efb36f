"""A shard: a short campaign of a nightly run, on one executor in one environment.

A shard is plain data: all that a shard process on any machine needs. On the coordinator's
machine the shard process writes a shard log (`fuzz.campaign.nightly.shard_log`), which the
coordinator reads as it grows. A shard process on another machine returns the files of its shard
log as text when the shard has ended.
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

TESTS_PER_FAMILY: Final = 1 << 20
"""Tests of a family that a shard may generate; shard n starts with number n times that."""


@dataclass(frozen=True, slots=True)
class ShardFinding:
    """A minimized finding of an earlier shard: its key, its file's text, and who showed it."""

    key: str
    text: str
    configs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Shard:
    """A short campaign.

    Parameters
    ----------
    number : int
        In the nightly run. Number, `seed` and family determine the tests that are generated.
    seed : int
        Of the nightly run.
    executor : str
    configs : tuple of str
        Configurations of one environment and one class (`fuzz.campaign.canonical`).
    time_s : float
        For tests and findings; starting the executor comes on top.
    deadline : float
        Seconds since 1970: the shard ends then at the latest.
    families : mapping of str to float
        With their weights; empty for all that the executor supports.
    minimizing_share : float
        Share of the time for minimizing.
    count : int or None
        Executions of each test; None for the default.
    python : str or None
        Another environment's interpreter, on the shard process's machine.
    known : tuple of ShardFinding
        Findings of this executor and class.
    pending : tuple of str
        Files of unreduced findings that this shard minimizes, as text.
    fast_config : str or None
        Another configuration of the executor, in which findings are minimized if that is faster.
    seconds_per_test : mapping of str to float
        By configuration, as far as known.
    log_folder : str or None
        Folder for the shard log; None on a machine that does not see the coordinator's files.
    """

    number: int
    seed: int
    executor: str
    configs: tuple[str, ...]
    time_s: float
    deadline: float
    families: Mapping[str, float] = field(default_factory=dict)
    minimizing_share: float = 0.5
    count: int | None = None
    python: str | None = None
    known: tuple[ShardFinding, ...] = ()
    pending: tuple[str, ...] = ()
    fast_config: str | None = None
    seconds_per_test: Mapping[str, float] = field(default_factory=dict)
    log_folder: str | None = None


SELFTEST: Final = "selftest"
"""Stands in place of an executor: the shard runs the mutants."""
SELFTEST_WORKERS: Final = 2


def run_shard(shard: Shard) -> dict[str, str]:
    """Run a shard; return the files of its log by name, or nothing if it has a folder.

    A shard process that is killed leaves the folder as it is.
    """
    if shard.log_folder is not None:
        _run_campaign(shard, Path(shard.log_folder))
        return {}
    with tempfile.TemporaryDirectory() as folder:
        _run_campaign(shard, Path(folder))
        files = (path for path in sorted(Path(folder).rglob("*")) if path.is_file())
        return {str(p.relative_to(folder)): p.read_text(encoding="utf-8") for p in files}


def _selftest(shard: Shard, folder: Path) -> None:
    """Run all mutants; an interrupted self-test logs no result."""
    start = time.monotonic()
    with ShardLog(folder, shard.executor, ()) as log:
        log.started({})

        def stop_if_requested(_: object) -> None:
            if log.stop_requested or time.time() >= shard.deadline:
                raise KeyboardInterrupt  # as it takes Ctrl-C

        found = selftest(
            time_s=shard.time_s,
            workers=SELFTEST_WORKERS,
            seed=shard.seed % (1 << 31),
            show=stop_if_requested,
        )
        if not found.interrupted:
            for kill in found.kills:
                if kill.mutant not in found.unavailable:
                    log.mutant_done(kill)
        log.finished(time.monotonic() - start)


def _run_campaign(shard: Shard, folder: Path) -> None:
    if shard.executor == SELFTEST:
        _selftest(shard, folder)
        return
    start = time.monotonic()
    known = []
    for each in shard.known:
        known.append(reported := ReportedFinding(loads(each.text), each.key, ""))
        reported.configs.update(each.configs)
    with ShardLog(folder, shard.executor, [each.key for each in shard.known]) as log:

        def stop() -> bool:
            return log.stop_requested or time.time() >= shard.deadline

        campaign = Campaign(_settings(shard, folder), lambda _: None, log, known, stop)
        campaign.set_earlier_costs(
            {(shard.executor, name): s for name, s in shard.seconds_per_test.items()}
        )
        for text in shard.pending:
            campaign.add_unreduced(loads(text))
        record = campaign.run()
        restarts = sum(each.restarts for each in record.executors)
        log.finished(time.monotonic() - start, record.problem, restarts)


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
        first_index=shard.number * TESTS_PER_FAMILY,
        minimizing_share=shard.minimizing_share,
        defers_minimization=True,
        reduction_s=max(MAX_REDUCTION_S, shard.time_s / 2),
        python=shard.python,
        fast={shard.executor: configuration(shard.executor, shard.fast_config)}
        if shard.fast_config
        else {},
    )
    return settings if shard.count is None else replace(settings, count=shard.count)
