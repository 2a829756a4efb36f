"""Packs in campaigns: the same verdicts and findings as without them, also after crashes."""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING

import pytest
from campaign.campaigns import Run
from campaign.doubles import CrashesInPacks, Packs, PacksOfOne, PacksThatCrash
from helpers_settings import settings_of

from litmusfuzz.corpus.textfile import Entry, dumps, loads
from litmusfuzz.fuzz.campaign.job import Job
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.fuzz.executors.worker import Died, Worker
from litmusfuzz.fuzz.generators import generate
from litmusfuzz.reports.events import Executed, FindingAdded, Generated, WorkerDied

if TYPE_CHECKING:
    from pathlib import Path

    from litmusfuzz.fuzz.executors import messages
    from litmusfuzz.fuzz.executors.worker import Tests

pytestmark = pytest.mark.usefixtures("doubles")
TESTS = 24


def prepared(executor: str, out: Path) -> Run:
    config = configuration(executor)
    settings = settings_of(
        1,
        out,
        ((executor, config),),
        time_s=600,
        tests=TESTS,
        families=("dag",),
        count=16,
        workers=1,
    )
    return Run(settings)


def run(executor: str, out: Path) -> Run:
    """With eight tests that wait before anything runs: what waits later is a matter of time."""
    made = prepared(executor, out)
    for _ in range(8):
        assert made.campaign.dispatcher.dispatch_next()
    return made.run()


def shown(ended: Run) -> dict[int, tuple[object, ...]]:
    """What each test was, and what it showed."""
    executed = ended.of(Executed)
    return {e.index: (e.sha256, e.end, e.run_seed, e.verdicts, e.reached) for e in executed}


def findings(ended: Run) -> list[tuple[str, object]]:
    """The minimized tests, and their outcomes; keys have the executor's name."""
    entries = [loads(each.entry) for each in ended.of(FindingAdded)]
    return [(dumps(Entry(e.test)), e.finding and e.finding.forbidden) for e in entries]


def packed(ended: Run) -> float:
    """Tests that ran in packs."""
    return sum(each.counters.get("packed", 0) for each in ended.of(Executed))


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run(PacksOfOne.name, tmp_path_factory.mktemp("alone"))


def test_packs_show_and_find_the_same(alone: Run, tmp_path: Path) -> None:
    ended = run(Packs.name, tmp_path)
    # Of the eight that wait at first, at least three may share a pack.
    assert 3 <= packed(ended) <= TESTS
    assert packed(alone) == 0
    assert shown(ended) == shown(alone)
    assert len(shown(ended)) == TESTS
    assert findings(ended) == findings(alone) != []


def test_after_a_crash_the_tests_of_a_pack_run_one_by_one(alone: Run, tmp_path: Path) -> None:
    """Only the test that crashes alone is crashed."""
    ended = run(PacksThatCrash.name, tmp_path)
    ops = {each.index: each.ops for each in ended.of(Generated)}
    crashing = {index for index in ops if PacksThatCrash.ends & set(ops[index])}
    assert crashing
    seen, sound = shown(ended), shown(alone)
    assert {index for index, each in seen.items() if each[1] == "crashed"} == crashing
    assert {i: e for i, e in seen.items() if i not in crashing} == {
        i: e for i, e in sound.items() if i not in crashing
    }
    fuzzing = [each for each in ended.of(WorkerDied) if not each.minimizing]
    assert len(fuzzing) == len(crashing)
    assert not any("pack" in each.message for each in fuzzing)


def test_a_crash_of_a_pack_that_no_test_shows_alone_is_kept(alone: Run, tmp_path: Path) -> None:
    died: list[WorkerDied] = []
    for attempt in range(8):  # which tests share a pack is a matter of time
        ended = run(CrashesInPacks.name, tmp_path / str(attempt))
        assert shown(ended) == shown(alone)
        died = ended.of(WorkerDied)
        if died:
            break
    assert died
    for each in died:
        assert each.message.startswith("in a pack of ")
        assert "none of which does so alone: " in each.message


def test_a_pack_counts_as_jobs_of_its_process(tmp_path: Path) -> None:
    slot, _ = prepared(Packs.name, tmp_path).campaign.slots
    tests = [test for test in (generate("dag", 1, n) for n in range(9)) if len(test.nodes) % 4]
    one, other = (Job(test, 1) for test in tests[:2])

    async def jobs() -> list[int]:
        """Jobs that the process had run after each step."""
        counts = []
        for again in (one, other):
            together = await slot.run_pack([one, other])
            counts.append(slot.jobs_run)
            alone = await slot.run(again)
            assert isinstance(alone, dict)
            assert alone == together[[one, other].index(again)]
            counts.append(slot.jobs_run)
        slot.worker.close()
        return counts

    assert asyncio.run(jobs()) == [2, 3, 5, 6]


def test_a_worker_is_sent_its_next_pack_before_it_is_asked_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nothing else is asked for between the two, which would end the process."""
    made = prepared(Packs.name, tmp_path)
    for _ in range(8):
        assert made.campaign.dispatcher.dispatch_next()
    asked: list[tuple[Worker, str, messages.Request]] = []
    queue, run = Worker.queue, Worker.run

    def noted_queue(worker: Worker, request: messages.Request, test: Tests = None) -> None:
        asked.append((worker, "queue", request))
        queue(worker, request, test)

    async def noted_run(
        worker: Worker, request: messages.Request, timeout_s: float, test: Tests = None
    ) -> messages.Reply | Died:
        asked.append((worker, "run", request))
        return await run(worker, request, timeout_s, test)

    monkeypatch.setattr(Worker, "queue", noted_queue)
    monkeypatch.setattr(Worker, "run", noted_run)
    made.run()
    fuzzed = made.campaign.slots[0].worker  # not the canary's
    its = [(how, request) for worker, how, request in asked if worker is fuzzed]
    queued = [request for how, request in its if how == "queue"]
    assert queued
    assert [two for (how, _), (_, two) in itertools.pairwise(its) if how == "queue"] == queued
    assert len(made.of(Executed)) == TESTS
