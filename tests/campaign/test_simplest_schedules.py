"""The schedule of a finding: the fewest preemptions, at the coarsest level at which it shows."""

from __future__ import annotations

import asyncio
import random
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from litmusfuzz import corpus
from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.outcome import Outcome, Verdict
from litmusfuzz.corpus.schedule import Decision, switches
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import Schedule, load
from litmusfuzz.fuzz.campaign import recording
from litmusfuzz.fuzz.campaign.best import Best
from litmusfuzz.fuzz.campaign.recording import ScheduleRecorder
from litmusfuzz.fuzz.campaign.target import Target
from litmusfuzz.fuzz.executors import messages
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.fuzz.executors.worker import Worker
from litmusfuzz.fuzz.finding.judge import judge
from litmusfuzz.oracles.model import EXECUTOR

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.campaign.job import Job, Result
    from litmusfuzz.fuzz.executors.protocol import Config

TWICE = load(Path(corpus.__file__).parent / "findings" / "first-assignment-writes-twice.yaml")
SB = litmus("X=1; r0=Y || Y=1; r1=X")
LOCKS = configuration("tf", "controlled_locks")


def target_of(config: Config) -> Target:
    """A configuration of TensorFlow."""
    return Target("tf", config, EXECUTOR, "tf")


class RealSlot:
    """A slot on a real worker, without what a campaign needs beside."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.executor = SimpleNamespace(name="tf", sample=target_of)
        self.config = LOCKS
        self.executions = 0

    def switch_to(self, target: Target) -> None:
        """Continue in another configuration."""
        self.config = target.config

    async def why_unavailable(self) -> str:
        """Nothing: the worker has said so."""
        return ""

    async def run(self, job: Job) -> Result:
        """The result of one job, as `Slot.run` has it."""
        reply = self.worker.ask(job.request(self.config), 600.0, job.test)
        assert isinstance(reply, messages.Reply), reply
        if reply.explored is None:
            return reply
        found = messages.explored(job.test, reply)
        self.executions += found.executions - (job.search.done if job.search else 0)
        return found


@pytest.fixture(scope="module")
def worker():
    with closing(Worker("tf")) as made:
        yield made


def best_of(test: LitmusTest, outcome: Outcome) -> Best:
    """A finding that shows under control of locks."""
    oracle = Forbids(outcome)
    schedule = Schedule(outcome, events=(Decision("", test.nodes[0].name),))
    return Best(test, replace(judge(oracle, {outcome: 1}), schedule=schedule), target_of(LOCKS))


class Forbids:
    """An oracle that forbids one outcome."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome

    def judge(self, outcome: Outcome) -> Verdict:
        """The verdict on one outcome."""
        return Verdict.FORBIDDEN if outcome == self.outcome else Verdict.ALLOWED


def recorded(worker: Worker, test: LitmusTest, outcome: Outcome) -> tuple[Best, int]:
    """What is recorded of an outcome that shows under control of locks; executions of searches."""
    best, slot = best_of(test, outcome), RealSlot(worker)
    asyncio.run(ScheduleRecorder().record(slot, best, random.Random(1)))
    assert slot.config == best.target.config
    return best, slot.executions


def test_what_needs_a_switch_between_locks_has_one_switch(worker: Worker) -> None:
    assert TWICE.finding is not None
    wrong = TWICE.finding.forbidden[0][0]
    best, _ = recorded(worker, TWICE.test, wrong)
    assert best.target.config.name == "controlled_locks"
    assert best.schedule.outcome == wrong
    assert len(switches(best.schedule.events)) == 1


def test_what_an_order_of_ops_shows_moves_to_that_level(worker: Worker) -> None:
    outcome = Outcome.of(SB, {"r0": (0,), "r1": (1,), "X": (1,), "Y": (1,)})
    best, _ = recorded(worker, SB, outcome)
    assert best.target.config.name == "controlled"
    assert switches(best.schedule.events) == ()


def test_the_search_is_counted_and_then_the_schedule_that_was_there_stays(
    worker: Worker, monkeypatch
) -> None:
    monkeypatch.setattr(recording, "MAX_SEARCHED", 1)
    assert TWICE.finding is not None
    wrong = TWICE.finding.forbidden[0][0]
    best, executions = recorded(worker, TWICE.test, wrong)
    assert executions == 2
    assert best.target.config == LOCKS
    assert best.schedule == best_of(TWICE.test, wrong).schedule


def test_how_many_schedules_show_it_is_counted(worker: Worker) -> None:
    assert TWICE.finding is not None
    best, _ = recorded(worker, TWICE.test, TWICE.finding.forbidden[0][0])
    assert (best.judgement.forbidden_count, best.judgement.executions) == (4, 19)
