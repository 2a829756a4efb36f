"""Campaigns that are stopped, whose workers are killed, or whose disk is full, in each phase."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
from typing import TYPE_CHECKING

import pytest
from campaign.campaigns import Run
from helpers import PATIENCE_S
from helpers_settings import settings_of
from msgspec import structs

from litmusfuzz.corpus.textfile import Script, load
from litmusfuzz.fuzz.campaign import finding_scripts
from litmusfuzz.fuzz.campaign.counters import SLOW
from litmusfuzz.fuzz.campaign.script_runner import ScriptRunner
from litmusfuzz.fuzz.campaign.slots import Slot
from litmusfuzz.fuzz.executors.table import CANARY, configuration
from litmusfuzz.fuzz.executors.worker import Died, Worker
from litmusfuzz.reports.events import (
    CanaryRun,
    ConfigurationUnavailable,
    Event,
    Executed,
    FindingAdded,
    FindingKind,
    Generated,
    NotRun,
    ReductionEnded,
    ReductionStarted,
    ScriptRun,
    SeenAgain,
    ShardEnded,
    ShardStarted,
    WorkerDied,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from litmusfuzz.fuzz.campaign.job import Job
    from litmusfuzz.fuzz.campaign.settings import Settings
    from litmusfuzz.fuzz.executors.fork_server import ForkedProcess

MUTANT = "mutant/last-in-first-out"
"""Deterministic, on an engine that records schedules."""
KINDS = (
    *(Generated, ShardStarted, Executed, CanaryRun),
    *(ReductionStarted, FindingAdded, ReductionEnded, SeenAgain, ShardEnded),
)
"""Events of a campaign on it, by the phase that they end."""


pytestmark = pytest.mark.usefixtures("doubles")


def settings(out: Path, **changes) -> Settings:
    asked = {
        "executors": ((MUTANT, configuration(MUTANT, "controlled")),),
        "tests": 20,
        "count": 64,
        "families": ("queues",),
        "time_s": 600,
    }
    return settings_of(1, out, **asked | changes)


class Until(Run):
    """A campaign in which something happens at an event of one kind, the first if not given."""

    kind: type[Event]
    does: Callable[[Event], None]
    number: int
    done = False

    def log(self, event: Event) -> None:
        """Takes an event."""
        if not self.done and type(event) is self.kind and len(self.of(self.kind)) == self.number:
            self.done = True
            self.does(event)
        super().log(event)


def until(
    out: Path, kind: type[Event], does: Callable[[Event], None], number: int = 0, **changes
) -> Until:
    Until.kind, Until.does, Until.number = kind, staticmethod(does), number
    return Until(settings(out, **changes))


def check_nothing_is_lost(ended: Run) -> None:
    """Each test with a forbidden outcome is in a finding or pending, and its file is there."""
    report = ended.report
    shown = {each.index for each in ended.of(Executed) if "forbidden" in each.verdicts}
    assert report.forbidden_graphs == len(shown)
    found = sum(each.count for each in report.findings)
    assert found + len(report.pending) + len(report.unconfirmed) == len(shown)
    for each in report.pending:
        assert load(ended.path(each.file)).finding is not None
    for finding in report.findings:
        assert load(ended.path(finding.file)) == finding.entry
    assert not report.minimizing
    assert len(ended.of(ReductionStarted)) == len(ended.of(ReductionEnded))
    # Each generated test is accounted for.
    given = [each.index for each in ended.events if isinstance(each, Executed | NotRun)]
    assert sorted(given) == sorted(each.index for each in ended.of(Generated))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_stopped_campaign_ends_in_order(tmp_path: Path, kind: type[Event]) -> None:
    run = until(tmp_path, kind, lambda _: run.campaign.stop(), workers=2)
    run.run()
    assert run.done
    check_nothing_is_lost(run)
    assert run.of(ShardEnded)[0].problem == ""


@pytest.mark.parametrize(
    ("kind", "number"),
    [*((kind, 0) for kind in KINDS), (Generated, 12), (Executed, 19)],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_a_full_disk_ends_the_campaign_at_once(
    tmp_path: Path, kind: type[Event], number: int
) -> None:
    def full(_: Event) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "campaign.sqlite")

    run = until(tmp_path, kind, full, number, workers=2)
    with pytest.raises(OSError, match="No space left"):
        asyncio.run(asyncio.wait_for(run.campaign.run(), PATIENCE_S))
    assert run.done
    assert all(slot.worker.pid is None for slot in run.campaign.slots)
    assert not run.ended


def test_a_full_disk_at_the_start_ends_the_campaign_at_once(tmp_path: Path) -> None:
    """While the other workers start."""

    def full(_: Event) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "campaign.sqlite")

    name = "double/profiled"
    missing = (name, configuration(name, "missing"), configuration(name, "sound"))
    others = ((MUTANT, configuration(MUTANT, "controlled")), missing)
    run = until(tmp_path, ConfigurationUnavailable, full, executors=others)
    with pytest.raises(OSError, match="No space left"):
        asyncio.run(asyncio.wait_for(run.campaign.run(), PATIENCE_S))
    assert run.done
    assert not run.of(ShardStarted)
    assert all(slot.worker.pid is None for slot in run.campaign.slots)


def test_a_file_that_cannot_be_written_ends_the_campaign(tmp_path: Path) -> None:
    """No event names it."""
    (tmp_path / "unreduced").write_text("in the way", encoding="utf-8")
    run = Run(settings(tmp_path))
    with pytest.raises(OSError, match="unreduced"):
        asyncio.run(run.campaign.run())
    assert not [each for each in run.of(Executed) if each.unreduced]
    assert all(slot.worker.pid is None for slot in run.campaign.slots)


PHASES: dict[str, Callable[[Slot, Job], bool]] = {
    "run": lambda slot, job: not slot.minimizing,
    "probe": lambda slot, job: slot.minimizing and not (job.fresh or job.wanted),
    "record": lambda slot, job: bool(job.wanted),
    "replay": lambda slot, job: job.recorded is not None,
    "confirm": lambda slot, job: job.fresh and job.recorded is None,
}


@pytest.mark.parametrize("phase", PHASES)
def test_a_worker_killed_while_it_works_loses_no_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, phase: str
) -> None:
    """The first time that it works on such a job."""
    honest, killed = Slot.run, []

    async def murderous(self: Slot, job: Job):
        is_victim = not (killed or self.canary) and PHASES[phase](self, job)
        if is_victim and self.worker.pid is not None and not job.fresh:
            os.kill(self.worker.pid, signal.SIGSTOP)  # so that it cannot answer before
        running = asyncio.ensure_future(honest(self, job))
        if is_victim:
            await asyncio.sleep(0)  # it has the job now
            self.worker.kill("killed by a test")
        result = await running
        if isinstance(result, Died):
            killed.append(result)
        return result

    monkeypatch.setattr(Slot, "run", murderous)
    executor = {}
    if phase == "confirm":  # of an executor without schedules: the first job of a fresh process
        name = "mutant/stale-reads"
        executor = {"executors": ((name, configuration(name)),), "families": ("dag",)}
    ended = Run(settings(tmp_path, **executor)).run()
    assert [each.message for each in killed] == ["killed by a test"]
    (died,) = ended.of(WorkerDied)
    assert died.minimizing is (phase != "run")
    report = ended.report
    check_nothing_is_lost(ended)
    assert (report.unconfirmed, report.pending) == ((), ())
    assert report.findings
    for each in report.findings:
        assert each.entry.finding is not None
        assert (each.entry.finding.schedule is None) is (phase == "confirm")
    assert sum(each.end == "crashed" for each in ended.of(Executed)) == (phase == "run")


def test_a_worker_that_hangs_loses_its_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What its process has shown is not doubted: it was killed by LitmusFuzz."""
    honest, jobs, hung = Slot._ask, 0, []

    async def stopped(self: Slot, *asked: Job, **limits: float):
        nonlocal jobs
        if self.canary or asked[0].test is None:
            return await honest(self, *asked, **limits)
        jobs += not limits
        retried = bool(limits) and hung == [asked[0].test]  # in a fresh process that has longer
        if retried or (jobs >= 8 and not limits and not hung):
            assert self.worker.pid is not None
            os.kill(self.worker.pid, signal.SIGSTOP)
            limits = {"timeout_s": 3.0 if retried else 2.0}
        reply = await honest(self, *asked, **limits)
        if jobs >= 8 and not hung and isinstance(reply, Died):
            hung.append(asked[0].test)
        return reply

    monkeypatch.setattr(Slot, "_ask", stopped)
    ended = Run(settings(tmp_path)).run()
    (died,) = (each for each in ended.of(WorkerDied) if each.kind is FindingKind.TIMED_OUT)
    assert died.message == "no answer in 2 s, no answer in 3 s in a fresh process"
    assert died.file == "timed-out/timed-out-1-1.yaml"
    assert not died.suspects
    lost = [each for each in ended.of(Executed) if each.end == "timed out"]
    # The eighth job may have been answered already: a worker gets its next job ahead.
    assert lost in ([each] for each in ended.of(Executed)[7:9])
    assert [each for each in ended.of(Executed)[:7] if "forbidden" in each.verdicts]
    check_nothing_is_lost(ended)
    assert not ended.report.pending


def test_a_campaign_that_is_stopped_while_a_job_is_tried_again_reports_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once: it does not wait for the longer try."""
    honest, retried = Slot._ask, []

    async def late(self: Slot, *asked: Job, timeout_s: float | None = None):
        if self.canary or asked[0].test is None or len(run.of(Executed)) < 8:
            return await honest(self, *asked, timeout_s=timeout_s)
        if timeout_s is None:
            self.worker.close()
            return Died("no answer in 60 s", "", timed_out=True)
        retried.append(asked[0].test)
        assert self.worker.pid is not None
        os.kill(self.worker.pid, signal.SIGSTOP)
        run.campaign.stop()
        return await honest(self, *asked, timeout_s=timeout_s)

    monkeypatch.setattr(Slot, "_ask", late)
    run = Run(settings(tmp_path))
    asyncio.run(asyncio.wait_for(run.campaign.run(), PATIENCE_S))
    assert len(retried) == 1
    (died,) = run.of(WorkerDied)
    assert died.kind is FindingKind.TIMED_OUT
    assert died.message == "no answer in 60 s; the campaign ended before a longer try"
    assert load(tmp_path / died.file).test.nodes == retried[0].nodes
    assert all(slot.worker.pid is None for slot in run.campaign.slots)


@pytest.mark.parametrize("phase", ["first executions", "reduction"])
def test_a_job_that_is_slow_is_no_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, phase: str
) -> None:
    """A job has no answer in time, and a few executions of its test take long."""
    reducing = phase == "reduction"
    honest, slow = Slot._ask, []

    async def late(self: Slot, *asked: Job, timeout_s: float | None = None):
        job = asked[0]
        if self.canary or self.minimizing != reducing or job.test is None or len(slow) == 2:
            return await honest(self, *asked, timeout_s=timeout_s)
        slow.append(job)
        if timeout_s is None:
            self.worker.close()
            return Died("no answer in 60 s", "", timed_out=True)
        reply = await honest(self, *asked, timeout_s=timeout_s)
        return structs.replace(reply, seconds=1e3)

    monkeypatch.setattr(Slot, "_ask", late)
    ended = Run(settings(tmp_path)).run()
    job, few = slow
    assert (few.test, few.seed) == (job.test, job.seed)
    assert few.count <= 16
    assert not ended.of(WorkerDied)
    assert not (tmp_path / "timed-out").exists()
    assert few.count < job.count
    assert sum(each.counters.get(SLOW, 0) for each in ended.of(ReductionEnded)) == reducing
    assert sum(share.counters.get(SLOW, 0) for share in ended.report.by_config) == 1
    ends = [each.end for each in ended.of(Executed) if each.end != "judged"]
    assert ends == ([] if reducing else ["refused: time"])
    refused = [share.refused_for for share in ended.report.by_config if share.refused_for]
    assert refused == ([] if reducing else [{"time": 1}])
    check_nothing_is_lost(ended)
    assert ended.report.findings


def test_a_script_runs_beside_the_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The only worker runs further tests meanwhile: if it did not, the script would never end."""

    async def waiting(runner: ScriptRunner, path: Path) -> bool:
        executed = len(run.of(Executed))
        while len(run.of(Executed)) < executed + 3:
            await asyncio.sleep(0.01)
        run.campaign.stop()
        return True

    monkeypatch.setattr(finding_scripts, "script_of", lambda entry, reason: "")
    monkeypatch.setattr(ScriptRunner, "shows_it", waiting)
    run = Run(settings(tmp_path, tests=None))
    run.run()
    (script,) = run.of(ScriptRun)
    assert script.shows_it


def test_a_script_that_is_cut_short_is_kept_unconfirmed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = ScriptRunner.shows_it

    async def stopping(runner: ScriptRunner, path: Path) -> bool:
        run.campaign.stop()
        return await honest(runner, path)

    monkeypatch.setattr(
        finding_scripts, "script_of", lambda entry, reason: "import time; time.sleep(600)\n"
    )
    monkeypatch.setattr(ScriptRunner, "shows_it", stopping)
    run = Run(settings(tmp_path))
    run.run()
    (script,) = run.of(ScriptRun)
    (found,) = run.report.findings
    assert (script.file, script.shows_it) == (found.file, False)
    entry = load(run.path(found.file))
    assert entry == found.entry
    assert entry.finding is not None
    assert entry.finding.script is Script.UNCONFIRMED
    assert run.path(found.script).is_file()
    check_nothing_is_lost(run)


@pytest.mark.parametrize("times", [1, 2])
def test_a_worker_killed_at_its_start_gets_another_chance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """Not a third one: then the only configuration cannot run here."""
    honest, killed = Worker._forked, []

    def stillborn(self: Worker, variables: Mapping[str, str]) -> ForkedProcess:
        process = honest(self, variables)
        if self.executor != CANARY and len(killed) < times:
            process.kill()  # before it has a request that it could answer
            killed.append(process.pid)
        return process

    monkeypatch.setattr(Worker, "_forked", stillborn)
    ended = Run(settings(tmp_path)).run()
    assert len(killed) == times
    (end,) = ended.of(ShardEnded)
    if times == 1:
        check_nothing_is_lost(ended)
        assert (end.problem, ended.of(ConfigurationUnavailable)) == ("", [])
        assert ended.report.findings
    else:
        why = "does not start: signal 9"
        assert end.problem == f"{MUTANT}: {why}"
        assert [each.why for each in ended.of(ConfigurationUnavailable)] == [why]
        assert not ended.of(Executed)


def test_a_crash_in_the_check_of_another_configuration_is_that_of_the_test_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not of the configuration; and what the process has shown is confirmed."""
    name = "double/profiled"
    configs = (configuration(name, "stale"), configuration(name, "sound"))
    honest, killed = Slot.why_unavailable, []

    async def murderous(self: Slot) -> str:
        is_victim = self.config.name == "sound" and not killed
        if is_victim:
            killed.append(self)
            assert self.worker.pid is not None
            os.kill(self.worker.pid, signal.SIGSTOP)  # so that it cannot answer before
        running = asyncio.ensure_future(honest(self))
        if is_victim:
            await asyncio.sleep(0)  # it is asked now
            self.worker.kill("killed by a test")
        return await running

    monkeypatch.setattr(Slot, "why_unavailable", murderous)
    ended = Run(
        settings(tmp_path, executors=((name, *configs),), families=("dag",), tests=12)
    ).run()
    assert killed
    (died,) = ended.of(WorkerDied)
    (first, *_) = ended.of(Executed)
    assert (died.configuration, died.message) == ("sound", "killed by a test")
    assert not ended.of(ConfigurationUnavailable)
    if "forbidden" in first.verdicts:
        assert died.suspects == ((first.index, "stale"),)
    assert {each.configuration for each in ended.of(Executed)} == {"stale", "sound"}
    check_nothing_is_lost(ended)


def test_a_campaign_ends_when_the_last_configuration_cannot_run_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says so, and keeps what it has found."""
    honest = Slot.why_unavailable
    asked = 0

    async def failing(self: Slot) -> str:
        nonlocal asked
        asked += not self.canary
        return "no such device" if asked > 12 else await honest(self)

    monkeypatch.setattr(Slot, "why_unavailable", failing)
    ended = Run(settings(tmp_path, tests=None)).run()
    (end,) = ended.of(ShardEnded)
    assert end.problem == f"{MUTANT}: no such device"
    assert end.seconds < 60
    check_nothing_is_lost(ended)


def test_an_unreduced_finding_waits_where_its_configuration_cannot_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not taken for one that a fresh process does not show."""
    first = until(tmp_path / "first", ReductionStarted, lambda _: first.campaign.stop())
    first.run()
    pending = [load(first.path(each.file)) for each in first.report.pending]
    assert pending
    honest = Slot.why_unavailable

    async def failing(self: Slot) -> str:
        return "no such device" if self.minimizing else await honest(self)

    monkeypatch.setattr(Slot, "why_unavailable", failing)
    again = Run(settings(tmp_path / "again", tests=0), pending).run()
    assert (again.report.unconfirmed, len(again.report.pending)) == ((), len(pending))
    assert again.of(ShardEnded)[0].problem == f"{MUTANT}: no such device"


def test_the_command_says_why_an_executor_cannot_run(litmusfuzz_here) -> None:
    ended = litmusfuzz_here("run", "--executors", "double/profiled:missing", "--tests", "4")
    assert ended.returncode == 2, ended.stderr
    assert "double/profiled: no such device" in ended.stdout
