"""The writer of a night: hands out shards, takes over what they did, tells how it stands."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from concurrent.futures import FIRST_COMPLETED, CancelledError, wait
from typing import TYPE_CHECKING, Any, Final

import psutil

from litmusfuzz.corpus.textfile import write_text
from litmusfuzz.fuzz.campaign.nightly.planner import Plan
from litmusfuzz.fuzz.campaign.nightly.report_builder import ReportBuilder, summary
from litmusfuzz.fuzz.campaign.nightly.shard import work
from litmusfuzz.fuzz.campaign.nightly.shard_log import STOP, held
from litmusfuzz.fuzz.campaign.pools import is_lost
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
"""How often `stats` is written, unless that takes long."""
MOMENT_S: Final = 20.0
RESERVE_S: Final = 5.0
"""Before the end, or a tenth of the night: for shards to end, and reports to be written."""
LEAST_S: Final = 3.0
"""What is left at least when a shard begins."""
GRACE_S: Final = 15.0
"""How long shards that were told to stop are waited for."""
ORPHAN_S: Final = 60.0
"""How long those of a writer that was killed are waited for; they end within seconds."""
MAX_LOST: Final = 20
"""Turns lost in a row, none of which did anything, before the night is given up."""


class Nightly:
    """One night, from its beginning or from where it was.

    Parameters
    ----------
    store : Store
        With what was asked for in `meta`: `new` says what that is.
    known : KnownFindings
    pool : Pool
    show : callable
        Called every few seconds with the night so far.
    local : bool
        Whether the workers see this machine's files.
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
        self.plan = Plan(store)
        self.teller = ReportBuilder(store, known)
        self.pool = pool
        self.show = show
        self.local = local
        self.running: dict[Future[dict[str, str]], Shard] = {}
        self.again: list[Shard] = []
        """Turns without a spool whose worker was lost."""
        self.stopping = self.interrupted = False
        self.lost = 0
        self.told_at = self.moment_at = self.telling_s = 0.0
        self.before_s = float(store.meta["spent_s"])
        self.begun = time.monotonic()

    # --- time --------------------------------------------------------------------------

    @property
    def spent_s(self) -> float:
        """That the night has run, over all its processes."""
        return self.before_s + time.monotonic() - self.begun

    @property
    def left_s(self) -> float:
        """For shards."""
        asked_s = self.plan.asked_s
        return asked_s - min(RESERVE_S, asked_s / 10) - self.spent_s

    # --- the loop ----------------------------------------------------------------------

    def run(self) -> NightlyReport:
        """Go on until the time is up, or a signal comes; the night as it then is."""
        self.store.note(ended=None, interrupted=False, problem="")
        with self._signals():
            self._recover()
            try:
                while self.left_s > 0 and not self.stopping:
                    self._round()
                self._stop()
            finally:
                if self.running:  # they do not end
                    self._end_processes()
            for shard in self.running.values():
                self.store.finish(shard.number, lost=True)
            return self._finish()

    def _round(self) -> None:
        """Submit, wait a little, take over, tell."""
        while len(self.running) < self.pool.workers and self.left_s >= LEAST_S:
            shard = self.again.pop() if self.again else self._next()
            if shard is None:
                break
            self.running[self.pool.submit(work, shard)] = shard
        if not self.running and self.left_s >= LEAST_S:
            self._give_up("nothing that was asked for can run here")
        self._collect(0.5)
        self._tell()

    def _next(self) -> Shard | None:
        """A new shard, if there is anything that can run."""
        made = self.plan.next(self.left_s, time.time() + self.left_s, spooled=self.local)
        if made is None:
            return None
        shard, given = made
        self.store.begin(shard, given)
        return shard

    def _collect(self, timeout_s: float) -> None:
        """Take over what shards did, and those that have ended."""
        if not self.running:
            time.sleep(timeout_s)
        done, _ = wait(self.running, timeout=timeout_s, return_when=FIRST_COMPLETED)
        for shard in self.running.values():
            if shard.spool is not None:
                self.store.ingest(shard.number)
        for future in done:
            self._ended(future, self.running.pop(future))

    def _ended(self, future: Future[dict[str, str]], shard: Shard) -> None:
        """A shard came to its end, or its worker did."""
        lost = True
        try:
            files = future.result()
            lost = False
            if shard.spool is None:
                self.store.put(shard.number, files)
        except (Exception, CancelledError) as error:  # noqa: BLE001 - whatever it may end of
            if not is_lost(error):
                self._note_problem(f"shard {shard.number}: {type(error).__name__}: {error}")
            elif shard.spool is None:
                self.again.append(shard)
                return
        if lost and shard.spool is not None:
            self._await(shard.number)
        self.store.finish(shard.number, lost=lost)
        self.lost = self.lost + 1 if lost else 0
        if self.lost >= MAX_LOST:
            self._give_up(f"the last {self.lost} shards lost their worker")

    def _await(self, number: int) -> None:
        """Wait for a process that still writes a spool; end it if it does not end."""
        end = time.monotonic() + ORPHAN_S
        while held(self.store.spool(number)):
            if time.monotonic() > end:
                pid = self.store.rows("SELECT pid FROM shards WHERE number = ?", number)[0][0]
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                end = float("inf")
            time.sleep(0.05)

    def _recover(self) -> None:
        """Take over what an earlier writer left behind."""
        for number in self.store.running:
            spool = self.store.spool(number)
            if spool.is_dir():
                (spool / STOP).touch()
            self._await(number)
            self.store.finish(number, lost=True)
        self.store.sweep()

    # --- the end -----------------------------------------------------------------------

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """The first asks for the end; a second ends it at once."""

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
        """Tell the shards to end, and wait a while."""
        for shard in self.running.values():
            if shard.spool is not None:
                spool = self.store.spool(shard.number)
                spool.mkdir(parents=True, exist_ok=True)
                (spool / STOP).touch()
        for future in self.running:
            future.cancel()
        end = time.monotonic() + (GRACE_S if self.local else 0.0)
        while self.running and time.monotonic() < end:
            self._collect(0.2)

    @staticmethod
    def _end_processes() -> None:
        """Every process that we started, and theirs."""
        children = psutil.Process().children(recursive=True)
        for each in children:
            with contextlib.suppress(psutil.NoSuchProcess):
                # It ends with us, and complains if it cannot tidy up.
                if "resource_tracker" not in " ".join(each.cmdline()):
                    each.kill()
        psutil.wait_procs(children, timeout=10)

    def _give_up(self, why: str) -> None:
        self._note_problem(why)
        self.stopping = True

    def _note_problem(self, why: str) -> None:
        """The first is told."""
        if not self.store.meta.get("problem"):
            self.store.note(problem=why)

    # --- telling -----------------------------------------------------------------------

    def _tell(self) -> None:
        """Write how it stands, now and then."""
        now = time.monotonic()
        if now < self.told_at + max(STATS_S, 20 * self.telling_s):
            return
        if now > self.moment_at + MOMENT_S:
            self._moment()
        self.store.note(spent_s=self.spent_s)
        night = self.teller.night()
        self._write_stats(night)
        self.show(night)
        self.told_at = time.monotonic()
        self.telling_s = self.told_at - now

    def _moment(self) -> None:
        """Note how far it is, and keep the disk within its bound."""
        self.moment_at = time.monotonic()
        most = self.store.meta["disk_bytes"]
        size = self.store.shrink(most, self.teller.kept)
        if size > most:
            self._give_up(f"--disk: {most} bytes are full of findings and records")
        self.store.moment(size)

    def _write_stats(self, night: NightlyReport) -> None:
        write_text(text(night), self.store.folder / "stats")

    def _finish(self) -> NightlyReport:
        """The last word, for now: reports, and what later nights want to know."""
        self._moment()
        self.store.note(spent_s=self.spent_s, interrupted=self.interrupted, ended=int(time.time()))
        night = self.teller.night()
        self.store.note(summary=summary(night))
        self._write_stats(night)
        write_all(night, self.store.folder)
        self.show(night)
        return night


def asked(**facts: Any) -> dict[str, Any]:
    """What a new night's `meta` holds."""
    return facts | {"started": int(time.time()), "spent_s": 0.0}
