"""Campaigns of which any process is killed, in any phase: nothing is lost, doubled or left running.

And nothing else is touched: beside each campaign runs a process of the same session and group.

A double stops in the phase that a test asks for, and marks the place (`campaign.blocking`): no
clock decides what is killed where.
"""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Self

import psutil
import pytest
from campaign.blocking import COUNT, FOLDER, Barrier, Blocking
from campaign.doubles import installed
from helpers import PATIENCE_S

from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import load
from litmusfuzz.fuzz.finding.known_findings import KnownFindings
from litmusfuzz.fuzz.store.folder import StoreError
from litmusfuzz.fuzz.store.report_builder import ReportBuilder
from litmusfuzz.fuzz.store.store import Store
from litmusfuzz.reports.events import (
    Executed,
    FindingAdded,
    Generated,
    NotRun,
    ShardPlanned,
    ShardStarted,
    Unconfirmed,
    WorkerDied,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.reports.report import Report

RELOADS = '<meta http-equiv="refresh"'
PHASES = ("start", "run", "reduction", "confirmation")
"""Those in which a worker runs; the last phase is "report"."""
TESTS = 30
ASKED = (
    *("--executors", Blocking.name, "--families", "dag", "--count", str(COUNT), "--seed", "5"),
)
COUNTED = ("--tests", str(TESTS), "--time", "30m")
NIGHTLY = ("--time", "59m", "--shard-time", "10m", "--workers", "1")


@pytest.fixture(scope="module", autouse=True)
def doubles(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = installed(tmp_path_factory.mktemp("doubles"), [Blocking])
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        tests = Path(__file__).parent.parent
        patch.setenv("PYTHONPATH", os.pathsep.join([folder, str(tests)]))
        yield


class Victims:
    """A campaign in processes of its own, of which a test kills one after another."""

    def __init__(self, tmp_path: Path) -> None:
        self.folder = tmp_path / "campaign"
        self.folder.mkdir()
        self.barrier = Barrier(tmp_path / "barrier")
        self.marks: set[Path] = set()
        self.writer: psutil.Popen | None = None
        self.bystander = psutil.Popen(["sleep", "1000"])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """After a failure, nothing is left either."""
        for each in self.processes():
            each.kill()
        self.bystander.kill()
        self.bystander.wait()
        if self.writer is not None:
            self.writer.communicate()

    def start(self, *arguments: str) -> None:
        """Start the writer: the process of `run`, or the coordinator of `nightly`."""
        self.writer = psutil.Popen(
            [sys.executable, "-P", "-m", "litmusfuzz", *arguments],
            env=os.environ | {FOLDER: str(self.barrier.folder)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def begin(self, command: str, *arguments: str) -> None:
        """Start a new campaign."""
        self.start(command, *ASKED, *arguments, "--out", str(self.folder))

    def resume(self, command: str) -> None:
        """Continue it."""
        self.start(command, "--resume", str(self.folder))

    def reach(self, following: str) -> psutil.Process:
        """Wait until a worker stops; another one is to stop in the following phase, or never."""
        worker = self.barrier.wait(self.marks, self.writer)
        self.barrier.phase = following
        return worker

    def reach_report(self) -> None:
        """Wait until the writer writes outputs, and cannot go on; those before are complete."""
        self.barrier.holds_report = True
        self.barrier.wait_for_report(self.writer)
        assert (self.folder / "findings.sarif").exists()

    def wait(self, until: Callable[[Store], object]) -> None:
        """Wait until the store says so."""
        end = time.monotonic() + PATIENCE_S
        while True:
            assert self.writer.poll() is None, self.writer.communicate()
            assert time.monotonic() < end
            try:
                with Store(self.folder, write=False) as store:
                    if until(store):
                        return
            except StoreError:
                pass  # it is being created
            time.sleep(0.1)

    def kill_writer(self) -> None:
        """All that it started ends with it."""
        assert self.processes()
        self.writer.kill()
        killed = time.monotonic()
        self.writer.communicate()
        while left := self.processes():
            assert time.monotonic() - killed < PATIENCE_S, left
            time.sleep(0.01)

    def blame(self, pid: int) -> None:
        """Let each record say that this process has run the shards."""

        def changed(text: str) -> str:  # of the same length: a log is read on from a position
            return re.sub(r'"pid":(\d+)', lambda was: f'"pid":{pid:>{len(was[1])}}', text)

        with closing(sqlite3.connect(self.folder / "campaign.sqlite")) as db, db:
            stored = dict(db.execute("SELECT number, data FROM events"))
            named = {number: changed(data) for number, data in stored.items()}
            rows = [(data, number) for number, data in named.items() if data != stored[number]]
            db.executemany("UPDATE events SET data = ? WHERE number = ?", rows)
        logs = {log: log.read_text() for log in self.folder.glob("shards/*/events.jsonl")}
        for log, text in logs.items():
            log.write_text(changed(text))
        assert rows or any(changed(text) != text for text in logs.values())

    def end(self) -> str:
        """Wait for the end of the campaign, which has new findings; nothing is left then."""
        out, err = self.writer.communicate()
        assert self.writer.returncode == 1, err
        assert "Traceback" not in err
        ended = time.monotonic()
        while left := self.processes():
            assert time.monotonic() - ended < PATIENCE_S, left
            time.sleep(0.01)
        return str(out)

    def processes(self) -> list[psutil.Process]:
        """All processes of the campaign that run, however they were started."""
        found = []
        for each in psutil.process_iter():
            try:
                ours = each.environ().get(FOLDER) == str(self.barrier.folder)
                if ours and each.status() != psutil.STATUS_ZOMBIE:
                    found.append(each)
            except psutil.Error:
                continue
        return found

    def check(self) -> Report:
        """Nothing is lost, nothing is double, nobody else is hurt; the report of the campaign."""
        assert self.bystander.poll() is None
        with Store(self.folder, write=False) as store:
            assert not store.running
            generated = Counter(event.index for _, event in store.events_of(Generated))
            executed = [event for _, event in store.events_of(Executed)]
            ran = Counter((e.index, e.executor, e.configuration) for e in executed)
            not_run = {e.index for _, e in store.events_of(NotRun)}
            given_up = {index for index, *_ in store.fold.not_run}
            added = Counter(event.key for _, event in store.events_of(FindingAdded))
            named = {event.file for _, event in store.events_of(FindingAdded)}
            others = {event.file for _, event in store.events_of(Unconfirmed)}
            others |= {event.file for _, event in store.events_of(WorkerDied)}
            report = ReportBuilder(store, KnownFindings()).build()
        assert set(generated.values()) == {1}
        assert set(ran.values()) == {1}
        assert {index for index, *_ in ran} | not_run | given_up == set(generated)
        assert set(added.values()) <= {1}
        (share,) = report.by_config
        assert share.graphs + share.refused + share.not_run == report.generated == len(generated)
        # Each test that showed a forbidden outcome is a sighting, unconfirmed, or waits.
        forbidden = [event for event in executed if event.verdicts.get("forbidden")]
        found = [each for each in report.findings if each.kind == "forbidden"]
        explained = sum(each.in_this_run for each in found)
        assert explained + len(report.unconfirmed) + len(report.pending) == len(forbidden)
        others |= {str(event.unreduced) for event in forbidden}
        for file in named | others:
            load(self.folder / file)
        assert {f"findings/{p.name}" for p in (self.folder / "findings").glob("*")} == named
        assert {each.file for each in found} == named
        assert not list(self.folder.rglob(".*"))
        assert not list((self.folder / "shards").glob("*"))
        return report


@pytest.fixture
def campaign(tmp_path: Path) -> Iterator[Victims]:
    with Victims(tmp_path) as campaign:
        yield campaign


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """A campaign of which nothing is killed."""
    with Victims(tmp_path_factory.mktemp("undisturbed")) as campaign:
        campaign.begin("run", *COUNTED)
        campaign.end()
        report = campaign.check()
    assert len(report.findings) > 1
    assert not report.pending
    assert not report.unconfirmed
    return report


def findings(report: Report) -> dict[str, LitmusTest]:
    """Findings by key, without the crashes that a test has caused, nor names of files."""
    found = [each for each in report.findings if each.kind == "forbidden"]
    return {each.key: replace(each.entry.test, name="finding") for each in found}


def indices(folder: Path) -> set[int]:
    with Store(folder, write=False) as store:
        return {event.index for _, event in store.events_of(Generated)}


@pytest.mark.parametrize("victim", ["worker", "fork server"])
def test_a_run_goes_on_without_it(victim: str, campaign: Victims, undisturbed: Report) -> None:
    """It is killed in every phase of one run. Its crashes are reported, beside all findings."""
    campaign.barrier.phase = PHASES[0]
    campaign.begin("run", *COUNTED)
    for following in (*PHASES[1:], ""):
        worker = campaign.reach(following)
        (worker if victim == "worker" else worker.parent()).kill()
    campaign.reach_report()
    servers = [each for each in campaign.processes() if each != campaign.writer]
    assert len(servers) == 2  # that of the canary, too; all workers have ended
    if victim == "fork server":
        for server in servers:
            server.kill()
    campaign.barrier.holds_report = False
    campaign.end()
    report = campaign.check()
    assert findings(report) == findings(undisturbed)
    assert not report.pending
    assert not report.unconfirmed
    assert report.generated == TESTS
    (share,) = report.by_config
    assert share.crashed == 1


def test_a_nightly_run_goes_on_without_a_shard_process(campaign: Victims) -> None:
    """One shard process is killed in each phase, the last one while reports are written."""
    campaign.barrier.phase = PHASES[0]
    campaign.begin("nightly", *NIGHTLY)
    for following in (*PHASES[1:], ""):
        campaign.reach(following).parent().parent().kill()
    campaign.wait(lambda store: any(store.events_of(FindingAdded)))
    campaign.writer.terminate()
    campaign.reach_report()
    (shard,) = (each for each in campaign.writer.children() if "spawn_main" in str(each.cmdline()))
    shard.kill()
    campaign.barrier.holds_report = False
    campaign.end()
    report = campaign.check()
    assert [each.state for each in report.shards] == ["lost"] * 4 + ["done"]


@pytest.mark.parametrize(("command", "asked"), [("run", COUNTED), ("nightly", NIGHTLY)])
def test_a_campaign_is_resumed_after_its_writer_was_killed(
    command: str, asked: tuple[str, ...], campaign: Victims, undisturbed: Report
) -> None:
    """It is killed in each phase, and resumed each time."""
    for number, phase in enumerate(PHASES):
        campaign.barrier.phase = phase
        if number:
            campaign.resume(command)
        else:
            campaign.begin(command, *asked)
        campaign.reach("")
        campaign.kill_writer()
        if phase != "start":  # no shard is recorded before
            campaign.blame((campaign.bystander.pid, 0, -1)[number - 1])
    campaign.resume(command)
    # It has then removed what the others have left.
    campaign.wait(lambda store: len(list(store.events_of(ShardPlanned))) == 5)
    if command == "nightly":
        campaign.wait(lambda store: any(store.events_of(FindingAdded)))
        campaign.writer.terminate()
    campaign.reach_report()
    campaign.kill_writer()
    campaign.barrier.holds_report = False
    page = campaign.folder / "report.html"
    assert RELOADS in page.read_text(encoding="utf-8")  # the last one of a campaign that runs
    campaign.resume(command)
    if command == "nightly":
        campaign.wait(lambda store: len(list(store.events_of(ShardStarted))) > 4)
        campaign.writer.terminate()
    campaign.end()
    report = campaign.check()
    assert RELOADS not in page.read_text(encoding="utf-8")
    assert [each.state for each in report.shards[:4]] == ["lost"] * 4
    if command == "run":
        assert findings(report) == findings(undisturbed)
        assert not report.pending
        assert not report.unconfirmed
        assert report.generated == TESTS
        (share,) = report.by_config
        assert share.not_run == 0
        assert indices(campaign.folder) == indices(Path(undisturbed.folder))
