"""Outcomes of processes that crash later are believed only if a fresh process shows them."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from campaign.campaigns import Run
from campaign.doubles import Crashing, Damaged, Damaging
from helpers_settings import settings_of

from litmusfuzz.corpus.textfile import load
from litmusfuzz.fuzz.campaign.job import Job, Result
from litmusfuzz.fuzz.campaign.slots import Slot
from litmusfuzz.fuzz.executors.messages import Reply
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.fuzz.generators import generate
from litmusfuzz.reports.events import (
    Confirmed,
    Executed,
    FindingAdded,
    FindingKind,
    SeenAgain,
    ShardEnded,
    Unconfirmed,
    WorkerDied,
)

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("doubles")
SEED = 3
"""Of 24 tests, some show a forbidden outcome in the first and in the second half."""


def campaign(name: str, out: Path, pending=(), suspects=(), **changes) -> Run:
    asked = {"tests": 24, "count": 64, "families": ("dag",), "time_s": 600} | changes
    settings = settings_of(SEED, out, ((name, configuration(name)),), **asked)
    return Run(settings, pending, suspects=suspects)


def processes(ended: Run) -> list[list[Executed]]:
    """The tests that were fuzzed, by process: the last one of each but the last crashed."""
    found: list[list[Executed]] = [[]]
    for each in ended.of(Executed):
        found[-1].append(each)
        if each.end == "crashed":
            found.append([])
    return found


def forbidden(executed: list[Executed]) -> list[int]:
    return [each.index for each in executed if "forbidden" in each.verdicts]


@pytest.fixture(scope="module")
def crashed(tmp_path_factory) -> Run:
    return campaign(Crashing.name, tmp_path_factory.mktemp("crashed")).run()


def test_a_crash_names_what_its_process_has_shown(crashed: Run) -> None:
    first, second, rest = processes(crashed)
    assert [len(first), len(second), len(rest)] == [12, 12, 0]
    died = [each for each in crashed.of(WorkerDied) if not each.minimizing]
    assert [each.kind for each in died] == [FindingKind.CRASHED] * 2
    for process, death in zip((first, second), died, strict=True):
        assert [index for index, _ in death.suspects] == forbidden(process) != []
        assert {config for _, config in death.suspects} == {"plain"}


def test_a_suspect_counts_once_a_fresh_process_has_shown_it(crashed: Run) -> None:
    shown = [index for process in processes(crashed) for index in forbidden(process)]
    assert Counter(each.index for each in crashed.of(Confirmed)) == Counter(shown)
    confirmed: set[int] = set()
    for event in crashed.events:
        if isinstance(event, Confirmed):
            confirmed.add(event.index)
        elif isinstance(event, FindingAdded | SeenAgain):
            assert event.index in confirmed
    report = crashed.report
    assert report.forbidden_graphs == len(shown)
    assert sum(each.count for each in report.findings) == len(shown)
    assert (report.unconfirmed, report.pending) == ((), ())
    assert all(each.entry.finding.confirmed for each in report.findings if each.entry.finding)


def test_after_the_last_reply_of_a_process_its_slot_begins_anew() -> None:
    """What was shown is not in doubt if the next process crashes, whose counters begin at 0."""
    slot = Slot(None, None, None, on_death=lambda *_: None, jobs_run=5, shown=[None])
    slot._note(Reply(counters={"graphs": 3}))
    assert (slot.jobs_run, slot.shown) == (5, [None])
    slot._note(Reply(refused="so much memory", last=True, counters={"graphs": 4}))
    assert (slot.jobs_run, slot.shown) == (0, [])
    slot._note(Reply(counters={"graphs": 2}))
    assert slot.take_counters() == {"graphs": 6}


def test_until_then_it_was_seen_and_shows_no_finding(tmp_path: Path) -> None:
    """The campaign ends right after the second crash."""
    run = campaign(Crashing.name, tmp_path)
    write = run.campaign.log.write

    def stopping(events) -> None:
        write(events)
        if len(run.of(WorkerDied)) == 2:
            run.campaign.stop()

    run.campaign.log.write = stopping
    report = run.run().report
    shown = [index for process in processes(run) for index in forbidden(process)]
    assert [each.index for each in report.pending if each.suspect] == sorted(shown) != []
    assert (report.forbidden_graphs, report.findings) == (len(set(shown)), ())
    assert [each.state for each in report.open_tests] == ["suspect"] * len(shown)


def test_suspects_of_an_earlier_shard_are_confirmed_first(tmp_path: Path, crashed: Run) -> None:
    """A known finding that explains one is no proof that its process was sound."""
    files = sorted(crashed.path("unreduced").iterdir())
    entries = [load(path) for path in files]
    run = campaign(Crashing.name, tmp_path, (), entries, tests=0).run()
    indices = [entry.finding.index for entry in entries if entry.finding]
    assert sorted(each.index for each in run.of(Confirmed)) == sorted(indices)
    assert not run.report.pending
    assert sum(each.count for each in run.report.findings) == len(indices)


def test_what_only_a_damaged_process_shows_is_no_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("litmusfuzz.fuzz.campaign.probing.ATTEMPT_S", 0.05)
    ended = campaign(Damaged.name, tmp_path).run()
    first, second, rest = processes(ended)
    assert not rest
    for process in (first, second):
        assert not forbidden(process[:2])
        assert forbidden(process[2:])
    shown = forbidden(first) + forbidden(second)
    report = ended.report
    # Each is tried once more at the end.
    assert Counter(each.index for each in ended.of(Unconfirmed)) == Counter(2 * shown)
    assert {each.attempts for each in report.unconfirmed} == {2}
    assert all(each.tried >= 2 * each.executions for each in report.unconfirmed)
    assert not ended.of(Confirmed)
    assert not ended.of(FindingAdded)
    assert len(report.unconfirmed) == report.forbidden_graphs == len(shown)
    assert (report.findings, report.pending) == ((), ())
    assert len(list(ended.path("unconfirmed").iterdir())) == len(shown)
    assert isinstance(ended.events[-1], ShardEnded)


def test_a_test_with_a_damaging_op_is_the_last_of_its_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first test of a process counts its ID; the others count nothing."""
    monkeypatch.setattr("litmusfuzz.fuzz.campaign.campaign_executor.DAMAGING_EVERY", 1)
    ended = campaign(Damaging.name, tmp_path).run()
    pid, by_pid = 0.0, {}
    for each in ended.of(Executed):
        pid = each.counters.get("pid", pid)
        by_pid.setdefault(pid, []).append(each)
    assert all(process[0].counters for process in by_pid.values())
    last, together = 0, 0
    for process in by_pid.values():
        tests = [generate(each.family, SEED, each.index) for each in process]
        damaging = [
            any(node.op in Damaging.damaging_ops for node in test.effects) for test in tests
        ]
        assert not any(damaging[:-1])
        last += damaging[-1]
        together += len(damaging) > 1
    assert last > 3
    assert together > 0
    assert not ended.report.forbidden_graphs


def test_a_damaged_process_is_asked_nothing_more(tmp_path: Path) -> None:
    """Neither for another test, as in a reduction, nor if it can run a configuration."""
    tests = [generate("dag", SEED, 32 * number) for number in range(24)]
    damaging, plain = (
        [
            test
            for test in tests
            if any(node.op in Damaging.damaging_ops for node in test.effects) is wanted
        ]
        for wanted in (True, False)
    )
    slot, _ = campaign(Damaging.name, tmp_path).campaign.slots
    pids = []

    async def run() -> None:
        for test in (plain[0], plain[1], damaging[0], damaging[0], plain[0], damaging[1]):
            assert isinstance(await slot.run(Job(test, 1)), dict)
            pids.append(slot.worker.pid)
        assert not await slot.why_unavailable()
        pids.append(slot.worker.pid)
        slot.worker.close()

    asyncio.run(run())
    processes = list(dict.fromkeys(pids))
    assert [processes.index(each) for each in pids] == [0, 0, 0, 1, 2, 2, 3]


def test_a_process_that_has_shown_much_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it has shown is then believed; otherwise the list would grow without a bound."""
    monkeypatch.setattr("litmusfuzz.fuzz.campaign.slots.MAX_SHOWN", 2)
    run = campaign("mutant/stale-reads", tmp_path, tests=30)
    most = []
    honest = Slot.run

    async def counting(self: Slot, job: Job) -> Result:
        result = await honest(self, job)
        if not self.canary:
            most.append(len(self.shown))
        return result

    monkeypatch.setattr(Slot, "run", counting)
    report = run.run().report
    assert max(most) == 1  # before the test that is judged
    assert report.forbidden_graphs > 4
    assert not any(each.suspects for each in run.of(WorkerDied))
    assert sum(each.count for each in report.findings) == report.forbidden_graphs
