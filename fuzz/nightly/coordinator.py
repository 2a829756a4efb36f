"""Runs a campaign: one shard in this process, or many in processes of a pool.

`Coordinator` has what both share: time, signals, progress, the state on a terminal and in the file
`stats`, and the reports at the end. All state is in the store, so that a campaign that was
interrupted or killed is resumed by running a coordinator on its store again.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import shlex
import signal
import sqlite3
import time
import traceback
from abc import ABC, abstractmethod
from collections import deque
from concurrent.futures import FIRST_COMPLETED, CancelledError, wait
from datetime import UTC, datetime
from itertools import groupby
from typing import TYPE_CHECKING, Final, NoReturn

import psutil

from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import Script, save, write_into, write_text
from litmusfuzz.fuzz.campaign.scripts import script_of
from litmusfuzz.fuzz.campaign.settings import extra_minimizing_s
from litmusfuzz.fuzz.campaign.shard import Shard, run_shard, run_watched
from litmusfuzz.fuzz.executors.configuration_generator import listed
from litmusfuzz.fuzz.executors.process_log import in_a_line
from litmusfuzz.fuzz.nightly.announcer import Announcer
from litmusfuzz.fuzz.nightly.live_page import LivePage
from litmusfuzz.fuzz.nightly.planner import (
    ShardPlanner,
    base_settings,
    check_settings,
    generated,
    known_causes,
    known_findings,
    presets_of,
    reduced_crashes,
    unconfirmed,
    unreduced,
)
from litmusfuzz.fuzz.nightly.pools import PoolError, is_worker_lost
from litmusfuzz.fuzz.store.pruning import prune
from litmusfuzz.fuzz.store.report_builder import ReportBuilder
from litmusfuzz.fuzz.store.shard_log import is_writing, kill_writer, request_stop
from litmusfuzz.fuzz.store.store import StoreError
from litmusfuzz.reports.events import (
    CampaignEnded,
    Generated,
    Problem,
    Progress,
    ScriptRun,
    ShardEnded,
    ShardPlanned,
    ShardStarted,
    now,
)
from litmusfuzz.reports.outputs import STATS, write_all
from litmusfuzz.reports.report import Pruned
from litmusfuzz.reports.script import NoScript
from litmusfuzz.reports.seen import SeenTest
from litmusfuzz.reports.stats import text
from litmusfuzz.reports.tables import in_short, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from concurrent.futures import Future
    from types import FrameType

    from litmusfuzz.fuzz.campaign.engine import Engine
    from litmusfuzz.fuzz.executors.protocol import Config
    from litmusfuzz.fuzz.finding.known_findings import KnownFindings
    from litmusfuzz.fuzz.nightly.pools import Pool
    from litmusfuzz.fuzz.store.store import Store
    from litmusfuzz.reports.events import CampaignStarted, Configured, Event
    from litmusfuzz.reports.report import Report
    from litmusfuzz.reports.seen import Said

SHOW_S: Final = 0.25
"""Seconds between two reports to `show`; more if building a report takes long."""
STATS_S: Final = 3.0
"""Seconds, at least, between two writes of the file `stats`."""
PROGRESS_S: Final = 20.0
"""Seconds, at most, between two events that record the progress; less in a short campaign."""
RESERVE_S: Final = 5.0
"""Seconds, or a tenth of the nightly run, kept at the end for shards to stop and reports to be
written."""
MIN_SHARD_TIME_S: Final = 3.0
"""No shard starts with less time than this."""
STOP_GRACE_S: Final = 60.0
"""Seconds to wait for shards that were asked to stop: they end within one, on a free machine."""
ORPHAN_GRACE_S: Final = 60.0
"""Seconds to wait for shards of a coordinator that was killed; they end within seconds."""
BROKEN: Final = 2
"""Exit code of a campaign whose verdict is not known."""
MAX_LOST_SHARDS: Final = 20
"""Shards lost in succession before the nightly run is given up."""


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
        self.settings: CampaignStarted = store.fold.settings
        self.known = known
        self.report_builder = ReportBuilder(store, known)
        self.show = show
        self.say = say
        self.page = LivePage(store.directory)
        self.announcer = Announcer(
            store.folder,
            {each.key: each.name for each in known.entries if each.cause},
            self.settings.python,
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
            _end_processes(self.others)
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
        command = "nightly" if self.settings.unattended else "run"
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
        if now > self.progress_at + min(PROGRESS_S, max(1.0, self.settings.asked_s / 30)):
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
        size, most = self.store.disk_bytes(), self.settings.disk_bytes
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


class SingleShard(Coordinator):
    """A campaign as one shard in this process.

    Parameters
    ----------
    store, known, show, say
        As of `Coordinator`.
    time_s : float
        For new tests; `extra_minimizing_s` more are for findings.
    tests : int, optional
        Limit on new tests. A run that was limited by a number of tests from its start also runs
        those that were generated and not run, and the same new ones as if it had not been
        interrupted.
    """

    def __init__(
        self,
        store: Store,
        known: KnownFindings,
        show: Callable[[Report], None],
        *,
        time_s: float,
        tests: int | None,
        say: Callable[[Said], None] = lambda _: None,
    ) -> None:
        super().__init__(store, known, show, say)
        self.time_s = time_s
        self.tests = tests

    def _run_shards(self) -> None:
        report = self.store.fold.report(str(self.store.folder))
        number = self.store.next_shard
        pending = unreduced(self.store, report.pending)
        again = unconfirmed(self.store, report.unconfirmed)
        settings = replace(
            base_settings(self.store, number),
            executors=executors_of(
                self.settings.configurations,
                # A campaign limited by a number of tests generates them all again.
                {} if self._earlier() is not None else generated(report),
            ),
            time_s=self.time_s,
            extra_minimizing_s=extra_minimizing_s(self.time_s),
            tests=self.tests,
        )
        earlier = self._earlier()
        if earlier is not None and self.tests is not None:
            settings = replace(settings, tests=len(earlier) + self.tests, first_index=0)
        shard = Shard(
            number,
            settings,
            known=(*known_causes(self.store, self.known), *known_findings(report)),
            pending=tuple(pending.values()),
            unconfirmed=again,
            earlier=earlier or {},
            known_deaths=self.known.patterns(datetime.now(UTC).date()),
            reduced=reduced_crashes(self.store),
        )
        planned = ShardPlanned(
            configurations=shard.configurations,
            minimizes=tuple(pending),
            workers=settings.workers,
        )
        self.store.append(number, planned)

        def write(added: Sequence[Event]) -> None:
            if any(isinstance(event, ShardStarted) for event in added):
                self.begun = time.monotonic()  # starting the frameworks does not count
            self.store.append(number, *added)
            for event in added:
                if isinstance(event, ShardEnded) and event.problem:
                    self._note_problem(event.problem)

        try:
            campaign = shard.campaign(write)
            asyncio.run(run_watched(campaign, self._watch(campaign)))
        finally:
            self.store.finish_shard(number)

    async def _watch(self, campaign: Engine) -> None:
        """Report the state, until the campaign is asked to end or the disk is full."""
        try:
            while not self.stopping:
                self._report()
                await asyncio.sleep(SHOW_S)
        finally:
            campaign.stop()

    def _earlier(self) -> dict[int, set[str]] | None:
        """Tests generated so far, with the titles of configurations that have yet to run them.

        None if the families of tests depended on time.
        """
        started = self.store.started
        if started is None or started.tests is None:
            return None
        made: dict[int, set[str]] = {e.index: set() for _, e in self.store.events_of(Generated)}
        for index, executor, config in self.store.fold.not_run:
            if index in made:
                made[index].add(f"{executor}/{config}")
        return made


def executors_of(
    configurations: Sequence[Configured], skipped: Mapping[str, int]
) -> tuple[tuple[str, *tuple[Config, ...]], ...]:
    """The executors of a campaign, as its settings have them.

    Parameters
    ----------
    configurations : sequence of Configured
    skipped : mapping of str to int
        By executor, the generated configurations that earlier shards have had.
    """
    presets = presets_of(configurations)
    return tuple(
        (
            executor,
            *(
                listed(executor, each.name, skipped.get(executor, 0), presets[executor])
                for each in group
            ),
        )
        for (executor, _), group in groupby(configurations, lambda c: (c.executor, c.group))
    )


# --- many shards -----------------------------------------------------------------------


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
        asked_s = self.settings.asked_s
        return asked_s - min(RESERVE_S, asked_s / 10) - self.spent_s

    def _run_shards(self) -> None:
        try:
            while self.left_s > 0 and not self.stopping:
                self._round()
            self._stop()
        finally:
            if self.running:  # they did not end in time
                _end_processes(self.others)
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
        made = self.planner.next(self.left_s, write_log=self.local)
        if made is None:
            return None
        shard, given = made
        planned = ShardPlanned(configurations=shard.configurations, minimizes=tuple(given))
        self.store.append(shard.number, planned)
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


def _end_processes(others: Collection[psutil.Process]) -> None:
    """Kill all processes that this one started, and their descendants, but not these others."""
    killed = []
    started = [child for child in psutil.Process().children() if child not in others]
    for each in (*started, *(below for child in started for below in _descendants(child))):
        with contextlib.suppress(psutil.NoSuchProcess):
            # It ends with this process, and prints an error if it is killed.
            if "resource_tracker" not in " ".join(each.cmdline()):
                each.kill()
                killed.append(each)
    psutil.wait_procs(killed, timeout=10)


def _descendants(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.NoSuchProcess:
        return []
