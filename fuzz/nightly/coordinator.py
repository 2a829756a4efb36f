"""Runs a campaign: what one shard in this process (`single`) and many in a pool (`many`) share.

That is time, signals, progress, the state on a terminal and in the file `stats`, and the reports at
the end. All state is in the store, so that a campaign that was
interrupted or killed is resumed by running a coordinator on its store again.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import sqlite3
import time
import traceback
from abc import ABC, abstractmethod
from collections import deque
from typing import TYPE_CHECKING, Final, NoReturn

import psutil

from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import Script, save, write_into, write_text
from litmusfuzz.fuzz.campaign.scripts import script_of
from litmusfuzz.fuzz.nightly.announcer import Announcer
from litmusfuzz.fuzz.nightly.live_page import LivePage
from litmusfuzz.fuzz.nightly.pools import PoolError
from litmusfuzz.fuzz.nightly.processes import end_processes
from litmusfuzz.fuzz.nightly.shard_settings import (
    check_settings,
)
from litmusfuzz.fuzz.store.folder import StoreError
from litmusfuzz.fuzz.store.report_builder import ReportBuilder
from litmusfuzz.reports.events import (
    CampaignEnded,
    Problem,
    Progress,
    ScriptRun,
    now,
)
from litmusfuzz.reports.outputs import STATS, write_all
from litmusfuzz.reports.report import Pruned
from litmusfuzz.reports.script import NoScript
from litmusfuzz.reports.seen import SeenTest
from litmusfuzz.reports.stats import text
from litmusfuzz.reports.tables import in_short, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import FrameType

    from litmusfuzz.fuzz.finding.known_findings import KnownFindings
    from litmusfuzz.fuzz.store.store import Store
    from litmusfuzz.reports.events import CampaignStarted, Event
    from litmusfuzz.reports.report import Report
    from litmusfuzz.reports.seen import Said

SHOW_S: Final = 0.25
"""Seconds between two reports to `show`; more if building a report takes long."""
STATS_S: Final = 3.0
"""Seconds, at least, between two writes of the file `stats`."""
PROGRESS_S: Final = 20.0
"""Seconds, at most, between two events that record the progress; less in a short campaign."""
BROKEN: Final = 2
"""Exit code of a campaign whose verdict is not known."""


class Coordinator(ABC):
    """One campaign, new or resumed.

    Parameters
    ----------
    store : Store
        Has the event `CampaignStarted`, and after that `CampaignResumed` if it is resumed.
    known : KnownFindings
    show : callable
        Called several times a second with the report so far.
    say : callable
        Called with each forbidden outcome when it is judged, and what becomes of it later.

    Raises
    ------
    StoreError
        If its executors or models are unknown here.
    """

    def __init__(
        self,
        store: Store,
        known: KnownFindings,
        show: Callable[[Report], None],
        say: Callable[[Said], None] = lambda _: None,
    ) -> None:
        check_settings(store)
        self.store = store
        self.options: CampaignStarted = store.fold.options
        self.known = known
        self.report_builder = ReportBuilder(store, known)
        self.show = show
        self.say = say
        self.page = LivePage(store.directory)
        self.announcer = Announcer(
            store.folder,
            {each.key: each.name for each in known.entries if each.cause},
            self.options.python,
        )
        self.others = psutil.Process().children()
        """Children that are none of the campaign's: those of a program that this one replaced."""
        self.stopping = self.interrupted = False
        self.ending = False
        """True once a second signal ends the process."""
        self.problem = ""
        """The first problem; it is stored as well, unless the disk is full."""
        self.built = store.fold.report(str(store.folder))
        """The latest report."""
        self.before_s = self.built.spent_s
        self.begun: float | None = None
        """Since when time counts, on the monotonic clock; None if it does not yet."""
        self.shown_at = self.stats_at = self.progress_at = 0.0
        self.building_s: deque[float] = deque(maxlen=3)
        """Seconds that the latest reports took."""

    @property
    def spent_s(self) -> float:
        """Seconds that the campaign has run, over all its processes."""
        return self.before_s + (time.monotonic() - self.begun if self.begun is not None else 0.0)

    def run(self) -> Report:
        """Run until the time is over or a signal comes; return the final report."""
        self.store.on_stored = self._say
        with self._signals():
            try:
                self._recover()
                self._run_shards()
            except (PoolError, StoreError) as error:
                self._give_up(str(error))
            except (OSError, sqlite3.Error) as error:
                self._fail(error)
            self._end_shards()
            return self._finish()

    @abstractmethod
    def _run_shards(self) -> None:
        """Run shards until the campaign ends."""

    def _recover(self) -> None:
        """End the shards that an earlier coordinator left behind."""
        since = self.store.unfinished_since
        for number in self.store.running:
            self.store.finish_shard(number)
        self.store.remove_stale(since)
        self._write_scripts()

    def _write_scripts(self) -> None:
        """Write the scripts that a killed process has not; they are not run."""
        for each in self.store.fold.report(str(self.store.folder)).findings:
            found = each.entry.finding
            if each.script or found is None or not found.confirmed:
                continue
            try:
                made = script_of(each.entry, in_short(each.reason))
            except NoScript:
                continue
            path = self.store.folder / each.file
            write_text(made, path.with_suffix(".py"))
            save(replace(each.entry, finding=replace(found, script=Script.UNCONFIRMED)), path)
            self.store.append(0, ScriptRun(key=each.key, file=each.file, shows_it=False))

    def _end_shards(self) -> None:
        """End the shards that are left because of a failure."""
        try:
            for number in self.store.running:
                self.store.finish_shard(number)
        except StoreError as error:
            self._give_up(str(error))
        except (OSError, sqlite3.Error) as error:
            self._fail(error)

    # --- signals and problems ----------------------------------------------------------

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """Handle signals: the first asks for the end, a second ends the process at once."""

        def handle(_: int, __: FrameType | None) -> None:
            if self.interrupted and not self.ending:
                self.store.when_whole(self._end_at_once)
            self.stopping = self.interrupted = True

        asking = [signal.SIGINT, signal.SIGTERM]
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # `nohup`
            asking.append(signal.SIGHUP)  # the terminal was closed
        before = {which: signal.signal(which, handle) for which in asking}
        try:
            yield
        finally:
            for which, former in before.items():
                signal.signal(which, former)

    def _end_at_once(self) -> NoReturn:
        """End the process with the reports of what is stored; nothing more is run or minimized.

        A signal may come while a report is built or something is printed: this report is built
        anew, and nothing but the last line is said.
        """
        self.ending = True
        self.store.on_stored = lambda _: None
        code = BROKEN
        try:
            end_processes(self.others)
            with contextlib.suppress(StoreError, OSError, sqlite3.Error):  # a resumption says so
                for number in self.store.running:
                    while self.store.ingest(number):
                        pass
            self.report_builder = ReportBuilder(self.store, self.known, self.report_builder.history)
            report = self._last_report()
            code = report.exit_code()
            with contextlib.suppress(OSError):  # nobody may read it
                os.write(2, f"{self._cut_short(report)}\n".encode())
            if not self.store.is_gone:
                with contextlib.suppress(OSError):
                    write_all(report, self.store.directory)
        except Exception:  # noqa: BLE001 - our own defect, which nobody above a handler reports
            traceback.print_exc()
        finally:
            os._exit(code)

    def _cut_short(self, report: Report) -> str:
        """What a campaign says that a second signal ends."""
        command = "nightly" if self.options.unattended else "run"
        folder = shlex.quote(str(self.store.folder))
        return printable(
            f"litmusfuzz: interrupted twice: {report.verdict};"
            f" `litmusfuzz {command} --resume {folder}` continues"
        )

    def _give_up(self, why: str) -> None:
        """End the campaign because of a problem."""
        self.stopping = True
        self._note_problem(why)

    def _note_problem(self, why: str) -> None:
        """Note a problem; only the first is kept."""
        if not self.problem:
            self.problem = self._behind(why)
            self._append(Problem(message=self.problem))

    def _fail(self, error: OSError | sqlite3.Error | StoreError) -> None:
        """Give up because the store cannot be read or a file not be written.

        What is stored is still reported.
        """
        if isinstance(error, OSError):
            name = error.filename2 or error.filename or ""
            # A file that is written by its folder's descriptor is named without the folder.
            file = name if os.path.dirname(name) else self.store.folder / name
            why = f"{file}: {error.strerror or error}"
        elif isinstance(error, StoreError):
            why = str(error)
        else:
            why = f"{self.store.path}: {error}"
        self.stopping = True
        self.problem = self.problem or self._behind(why)

    def _behind(self, why: str) -> str:
        """What is behind a problem: without a folder, much else fails, and may be noticed first."""
        return self._gone if self.store.is_gone else why

    @property
    def _gone(self) -> str:
        return f"{self.store.folder}: was removed or renamed while the campaign ran"

    def _append(self, event: Event) -> None:
        """Store an event of the campaign."""
        try:
            self.store.append(0, event)
        except (OSError, sqlite3.Error, StoreError) as error:
            self._fail(error)

    # --- reports -----------------------------------------------------------------------

    def _build(self) -> Report:
        """The report as of now."""
        report = self.report_builder.build()
        if self.problem and self.problem not in report.problem:  # it could not be stored
            report = replace(report, problem=self.problem)
        self.built = report if report.ended else replace(report, spent_s=self.spent_s)
        return self.built

    def _say(self, stored: Sequence[Event]) -> None:
        """Say what is in stored events.

        What is seen is in the file `stats` before it is said: whoever ends the campaign then.
        """
        said = list(self.announcer.said_of(stored))
        if any(isinstance(each, SeenTest) for each in said):
            with contextlib.suppress(OSError):  # the next report gives up
                self._write_stats(self._build())
        for each in said:
            self.say(each)

    def _write_stats(self, report: Report) -> None:
        """Write the file `stats`."""
        self.stats_at = time.monotonic()
        write_into(self.store.directory, STATS, text(report))

    def _report(self) -> None:
        """Show and write the state, each at its interval."""
        if self.store.is_gone:
            self._give_up(self._gone)
            return
        now = time.monotonic()
        # One slow report, on a machine that was busy, does not put off the next one.
        if now < self.shown_at + max(SHOW_S, 20 * min(self.building_s, default=0.0)):
            return
        if now > self.progress_at + min(PROGRESS_S, max(1.0, self.options.asked_s / 30)):
            self._record_progress()
        start = time.monotonic()
        report = self._build()
        self.building_s.append(time.monotonic() - start)
        self.show(report)
        if now > self.stats_at + STATS_S:
            self._write_stats(report)
        with contextlib.suppress(OSError):  # the last one is written, or that says why not
            self.page(report)
        self.shown_at = time.monotonic()

    def _record_progress(self) -> None:
        """Record the time spent, and keep the folder within its size limit."""
        self.progress_at = time.monotonic()
        size, most = self.store.disk_bytes(), self.options.disk_bytes
        if most and size > most:
            report = self.store.fold.report(str(self.store.folder))
            kept = self.report_builder.kept | {each.file for each in report.open_tests}
            size = self.store.shrink(most, kept)
            if size > most:
                self._give_up(f"--disk: {most} bytes are full of findings and events")
        self._append(Progress(spent_s=round(self.spent_s, 3), disk_bytes=size))

    def _finish(self) -> Report:
        """Write the final reports."""
        try:
            self._record_progress()
        except StoreError as error:
            self._fail(error)
        replaced = self.store.is_replaced  # another campaign has begun in the folder
        report = self._last_report()
        self.show(report)
        if replaced:
            return report
        try:
            write_all(report, self.store.directory)
            if (pruned := self._prune()).lines:
                report = replace(report, pruned=pruned)
                write_all(report, self.store.directory)
        except OSError as error:
            self._fail(error)
            report = replace(report, problem=report.problem or self.problem)
            with contextlib.suppress(OSError):  # those that can be written say so
                write_all(report, self.store.directory)
        return report

    def _last_report(self) -> Report:
        """Store the end of the campaign; the last report, which says that it has ended.

        It is the latest one that could be built, with the problem, if the store cannot be read.
        """
        spent_s = round(self.spent_s, 3)
        self._append(CampaignEnded(spent_s=spent_s, interrupted=self.interrupted))
        if self.store.is_gone and not self.store.is_replaced:
            self._restore()
        try:
            report = self._build()
        except StoreError as error:
            self._fail(error)
            report = replace(self.built, spent_s=spent_s, problem=self.problem)
        if report.ended is None:  # it could not be stored
            report = replace(report, ended=int(now()), interrupted=self.interrupted)
        return report

    def _prune(self) -> Pruned:
        """Remove old campaigns; the report of this one is written."""
        return Pruned((), 0, {})

    def _restore(self) -> None:
        """Write the store and the findings into the campaign's folder again."""
        try:
            self.store.restore()
            for each in self.store.fold.report(str(self.store.folder)).findings:
                save(each.entry, self.store.folder / each.file)
        except (OSError, sqlite3.Error, StoreError) as error:
            self._fail(error)


# --- one shard -------------------------------------------------------------------------
# --- many shards -----------------------------------------------------------------------
