"""A campaign as many shards in the processes of a pool."""

from __future__ import annotations

import errno
import time
from concurrent.futures import FIRST_COMPLETED, CancelledError, wait
from typing import TYPE_CHECKING, Final

from litmusfuzz.fuzz.campaign.shard import Shard, run_shard
from litmusfuzz.fuzz.executors.process_log import in_a_line
from litmusfuzz.fuzz.nightly.coordinator import SHOW_S, Coordinator
from litmusfuzz.fuzz.nightly.planner import ShardPlanner
from litmusfuzz.fuzz.nightly.pools import is_worker_lost
from litmusfuzz.fuzz.nightly.processes import end_processes
from litmusfuzz.fuzz.store.pruning import prune
from litmusfuzz.fuzz.store.shard_log import is_writing, kill_writer, request_stop
from litmusfuzz.reports.events import (
    ShardPlanned,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from litmusfuzz.fuzz.finding.known_findings import KnownFindings
    from litmusfuzz.fuzz.nightly.pools import Pool
    from litmusfuzz.fuzz.store.store import Store
    from litmusfuzz.reports.report import Pruned, Report
    from litmusfuzz.reports.seen import Said


RESERVE_S: Final = 5.0
"""Seconds, or a tenth of the nightly run, kept at the end for shards to stop and reports to be
written."""
MIN_SHARD_TIME_S: Final = 3.0
"""No shard starts with less time than this."""
STOP_GRACE_S: Final = 60.0
"""Seconds to wait for shards that were asked to stop: they end within one, on a free machine."""
ORPHAN_GRACE_S: Final = 60.0
"""Seconds to wait for shards of a coordinator that was killed; they end within seconds."""
MAX_LOST_SHARDS: Final = 20
"""Shards lost in succession before the nightly run is given up."""


class Nightly(Coordinator):
    """A campaign as many shards in processes of a pool.

    Parameters
    ----------
    store, known, show, say
        As of `Coordinator`.
    pool : Pool
    local : bool
        True if the shard processes see this machine's files.
    keep : int
        Nightly runs beside each other that stay: see `prune`.
    """

    def __init__(
        self,
        store: Store,
        known: KnownFindings,
        show: Callable[[Report], None],
        pool: Pool,
        *,
        local: bool,
        keep: int = 0,
        say: Callable[[Said], None] = lambda _: None,
    ) -> None:
        super().__init__(store, known, show, say)
        self.begun = time.monotonic()
        self.keep = keep
        self.planner = ShardPlanner(store, known)
        self.pool = pool
        self.local = local
        self.running: dict[Future[dict[str, str]], Shard] = {}
        self.resubmit: list[Shard] = []
        """Shards on other machines whose shard process was lost."""
        self.lost = 0

    @property
    def left_s(self) -> float:
        """Seconds left for shards."""
        asked_s = self.options.asked_s
        return asked_s - min(RESERVE_S, asked_s / 10) - self.spent_s

    def _run_shards(self) -> None:
        try:
            while self.left_s > 0 and not self.stopping:
                self._round()
            self._stop()
        finally:
            if self.running:  # they did not end in time
                end_processes(self.others)
        for shard in self.running.values():
            self.store.finish_shard(shard.number)

    def _round(self) -> None:
        """Submit shards, wait a little, ingest, report."""
        while len(self.running) < self.pool.workers and self.left_s >= MIN_SHARD_TIME_S:
            shard = self.resubmit.pop() if self.resubmit else self._next()
            if shard is None:
                break
            self.running[self.pool.submit(run_shard, shard)] = shard
        if not self.running and self.left_s >= MIN_SHARD_TIME_S:
            self._give_up("nothing that was asked for can run here")
        self._collect(SHOW_S)
        self._report()

    def _next(self) -> Shard | None:
        """A new shard, if anything can run."""
        planned = self.planner.next_shard(self.left_s, write_log=self.local)
        if planned is None:
            return None
        shard, minimizes = planned
        event = ShardPlanned(configurations=shard.configurations, minimizes=minimizes)
        self.store.append(shard.number, event)
        return shard

    def _collect(self, timeout_s: float) -> None:
        """Ingest the logs of running shards, and handle the shards that have ended."""
        if not self.running:
            time.sleep(timeout_s)
        done, _ = wait(self.running, timeout=timeout_s, return_when=FIRST_COMPLETED)
        for shard in self.running.values():
            if shard.log_folder is not None:
                self.store.ingest(shard.number)
        for future in done:
            self._ended(future, self.running.pop(future))

    def _ended(self, future: Future[dict[str, str]], shard: Shard) -> None:
        """Handle a shard that has ended, or lost its process."""
        lost = True
        try:
            files = future.result()
            lost = False
            if shard.log_folder is None:
                self.store.add_files(shard.number, files)
        except (Exception, CancelledError) as error:  # noqa: BLE001 - any failure of a shard process
            if not is_worker_lost(error):
                why = in_a_line(f"{type(error).__name__}: {error}")
                self._note_problem(f"shard {shard.number}: {why}")
            elif shard.log_folder is None:
                self.resubmit.append(shard)
                return
        if lost and shard.log_folder is not None:
            self._await(shard.number)
        self.store.finish_shard(shard.number)
        self.lost = self.lost + 1 if lost else 0
        if self.lost >= MAX_LOST_SHARDS:
            self._give_up(f"the last {self.lost} shards lost their process")

    def _await(self, number: int) -> None:
        """Wait for a process that still writes a shard log; kill it if it does not end.

        Raises
        ------
        TimeoutError
            If it cannot be killed: it is on another machine, or of another user.
        """
        folder = self.store.log_folder(number)
        end, killed = time.monotonic() + ORPHAN_GRACE_S, False
        while is_writing(folder):
            if time.monotonic() > end:
                if killed or not kill_writer(folder):
                    why = f"a process that cannot be found here still writes shard {number}"
                    raise TimeoutError(errno.ETIMEDOUT, f"{why}; end it, and resume", str(folder))
                end, killed = time.monotonic() + ORPHAN_GRACE_S, True
            time.sleep(0.05)

    def _recover(self) -> None:
        """Ingest the shard logs that an earlier coordinator left behind."""
        for number in self.store.running:
            if self.store.log_folder(number).is_dir():
                request_stop(self.store.log_folder(number))
            self._await(number)
        super()._recover()

    def _prune(self) -> Pruned:
        return prune(self.report_builder.history, self.keep)

    def _stop(self) -> None:
        """Ask the shards to stop, and wait a while."""
        for shard in self.running.values():
            if shard.log_folder is not None:
                request_stop(self.store.log_folder(shard.number))
        for future in self.running:
            future.cancel()
        end = time.monotonic() + (STOP_GRACE_S if self.local else 0.0)
        while self.running and time.monotonic() < end:
            self._collect(0.2)
