"""The coordinator of a nightly run: submits shards, ingests their logs, and reports the state."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from concurrent.futures import FIRST_COMPLETED, CancelledError, wait
from typing import TYPE_CHECKING, Any, Final

import psutil

from litmusfuzz.corpus.textfile import write_text
from litmusfuzz.fuzz.campaign.nightly.planner import ShardPlanner
from litmusfuzz.fuzz.campaign.nightly.report_builder import ReportBuilder, summary
from litmusfuzz.fuzz.campaign.nightly.shard import run_shard
from litmusfuzz.fuzz.campaign.nightly.shard_log import STOP, is_writing
from litmusfuzz.fuzz.campaign.pools import is_worker_lost
from litmusfuzz.reports.outputs import write_all
from litmusfuzz.reports.stats import text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future
    from types import FrameType

    from litmusfuzz.fuzz.campaign.known_findings import KnownFindings
    from litmusfuzz.fuzz.campaign.nightly.shard import Shard
    from litmusfuzz.fuzz.campaign.nightly.store import Store
    from litmusfuzz.fuzz.campaign.pools import Pool
    from litmusfuzz.reports.nightly_report import NightlyReport

STATS_S: Final = 3.0
"""Seconds between two writes of the file `stats`; more if building the report takes long."""
PROGRESS_S: Final = 20.0
RESERVE_S: Final = 5.0
"""Seconds, or a tenth of the nightly run, kept at the end for shards to stop and reports to be
written."""
MIN_SHARD_TIME_S: Final = 3.0
"""No shard starts with less time than this."""
STOP_GRACE_S: Final = 15.0
"""Seconds to wait for shards that were asked to stop."""
ORPHAN_GRACE_S: Final = 60.0
"""Seconds to wait for shards of a coordinator that was killed; they end within seconds."""
MAX_LOST_SHARDS: Final = 20
"""Shards lost in succession before the nightly run is given up."""


class Nightly:
    """One nightly run, new or resumed.

    Parameters
    ----------
    store : Store
        With the settings in `meta`, see `new_run_facts`.
    known : KnownFindings
    pool : Pool
    show : callable
        Called every few seconds with the report so far.
    local : bool
        True if the shard processes see this machine's files.
    """

    def __init__(
        self,
        store: Store,
        known: KnownFindings,
        pool: Pool,
        show: Callable[[NightlyReport], None],
        *,
        local: bool,
    ) -> None:
        self.store = store
        self.planner = ShardPlanner(store)
        self.report_builder = ReportBuilder(store, known)
        self.pool = pool
        self.show = show
        self.local = local
        self.running: dict[Future[dict[str, str]], Shard] = {}
        self.resubmit: list[Shard] = []
        """Shards on other machines whose shard process was lost."""
        self.stopping = self.interrupted = False
        self.lost = 0
        self.reported_at = self.progress_at = self.reporting_s = 0.0
        self.before_s = float(store.meta["spent_s"])
        self.begun = time.monotonic()

    # --- time --------------------------------------------------------------------------

    @property
    def spent_s(self) -> float:
        """Seconds that the nightly run has run, over all its processes."""
        return self.before_s + time.monotonic() - self.begun

    @property
    def left_s(self) -> float:
        """Seconds left for shards."""
        asked_s = self.planner.asked_s
        return asked_s - min(RESERVE_S, asked_s / 10) - self.spent_s

    # --- the loop ----------------------------------------------------------------------

    def run(self) -> NightlyReport:
        """Run until the time is over or a signal comes; return the final report."""
        self.store.set_meta(ended=None, interrupted=False, problem="")
        with self._signals():
            self._recover()
            try:
                while self.left_s > 0 and not self.stopping:
                    self._round()
                self._stop()
            finally:
                if self.running:  # they did not end in time
                    self._end_processes()
            for shard in self.running.values():
                self.store.finish_shard(shard.number, lost=True)
            return self._finish()

    def _round(self) -> None:
        """Submit shards, wait a little, ingest, report."""
        while len(self.running) < self.pool.workers and self.left_s >= MIN_SHARD_TIME_S:
            shard = self.resubmit.pop() if self.resubmit else self._next()
            if shard is None:
                break
            self.running[self.pool.submit(run_shard, shard)] = shard
        if not self.running and self.left_s >= MIN_SHARD_TIME_S:
            self._give_up("nothing that was new_run_facts for can run here")
        self._collect(0.5)
        self._report()

    def _next(self) -> Shard | None:
        """A new shard, if anything can run."""
        made = self.planner.next(self.left_s, time.time() + self.left_s, write_log=self.local)
        if made is None:
            return None
        shard, given = made
        self.store.begin_shard(shard, given)
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
                self._note_problem(f"shard {shard.number}: {type(error).__name__}: {error}")
            elif shard.log_folder is None:
                self.resubmit.append(shard)
                return
        if lost and shard.log_folder is not None:
            self._await(shard.number)
        self.store.finish_shard(shard.number, lost=lost)
        self.lost = self.lost + 1 if lost else 0
        if self.lost >= MAX_LOST_SHARDS:
            self._give_up(f"the last {self.lost} shards lost their process")

    def _await(self, number: int) -> None:
        """Wait for a process that still writes a shard log; kill it if it does not end."""
        end = time.monotonic() + ORPHAN_GRACE_S
        while is_writing(self.store.log_folder(number)):
            if time.monotonic() > end:
                pid = self.store.rows("SELECT pid FROM shards WHERE number = ?", number)[0][0]
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                end = float("inf")
            time.sleep(0.05)

    def _recover(self) -> None:
        """Ingest the shard logs that an earlier coordinator left behind."""
        for number in self.store.running:
            log_folder = self.store.log_folder(number)
            if log_folder.is_dir():
                (log_folder / STOP).touch()
            self._await(number)
            self.store.finish_shard(number, lost=True)
        self.store.remove_stale_logs()

    # --- the end -----------------------------------------------------------------------

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """Handle signals: the first asks for the end, a second ends the process at once."""

        def handle(_: int, __: FrameType | None) -> None:
            if self.interrupted:
                self._end_processes()
                os._exit(2)
            self.stopping = self.interrupted = True

        before = {which: signal.signal(which, handle) for which in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for which, former in before.items():
                signal.signal(which, former)

    def _stop(self) -> None:
        """Ask the shards to stop, and wait a while."""
        for shard in self.running.values():
            if shard.log_folder is not None:
                log_folder = self.store.log_folder(shard.number)
                log_folder.mkdir(parents=True, exist_ok=True)
                (log_folder / STOP).touch()
        for future in self.running:
            future.cancel()
        end = time.monotonic() + (STOP_GRACE_S if self.local else 0.0)
        while self.running and time.monotonic() < end:
            self._collect(0.2)

    @staticmethod
    def _end_processes() -> None:
        """Kill all processes that this one started, and their children."""
        children = psutil.Process().children(recursive=True)
        for each in children:
            with contextlib.suppress(psutil.NoSuchProcess):
                # It ends with this process, and prints an error if it is killed.
                if "resource_tracker" not in " ".join(each.cmdline()):
                    each.kill()
        psutil.wait_procs(children, timeout=10)

    def _give_up(self, why: str) -> None:
        self._note_problem(why)
        self.stopping = True

    def _note_problem(self, why: str) -> None:
        """Note a problem; only the first is kept."""
        if not self.store.meta.get("problem"):
            self.store.set_meta(problem=why)

    # --- reports -----------------------------------------------------------------------

    def _report(self) -> None:
        """Write the state at intervals."""
        now = time.monotonic()
        if now < self.reported_at + max(STATS_S, 20 * self.reporting_s):
            return
        if now > self.progress_at + PROGRESS_S:
            self._record_progress()
        self.store.set_meta(spent_s=self.spent_s)
        report = self.report_builder.build()
        self._write_stats(report)
        self.show(report)
        self.reported_at = time.monotonic()
        self.reporting_s = self.reported_at - now

    def _record_progress(self) -> None:
        """Record the totals so far, and keep the folder within its size limit."""
        self.progress_at = time.monotonic()
        most = self.store.meta["disk_bytes"]
        size = self.store.shrink(most, self.report_builder.kept)
        if size > most:
            self._give_up(f"--disk: {most} bytes are full of findings and records")
        self.store.record_progress(size)

    def _write_stats(self, report: NightlyReport) -> None:
        write_text(text(report), self.store.folder / "stats")

    def _finish(self) -> NightlyReport:
        """Write the final reports, and the summary that later nightly runs read."""
        self._record_progress()
        self.store.set_meta(
            spent_s=self.spent_s, interrupted=self.interrupted, ended=int(time.time())
        )
        report = self.report_builder.build()
        self.store.set_meta(summary=summary(report))
        self._write_stats(report)
        write_all(report, self.store.folder)
        self.show(report)
        return report


def new_run_facts(**facts: Any) -> dict[str, Any]:
    """The `meta` of a new nightly run."""
    return facts | {"started": int(time.time()), "spent_s": 0.0}
