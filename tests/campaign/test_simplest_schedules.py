"""The schedule of a finding: the fewest preemptions, at the coarsest level at which it shows."""

from __future__ import annotations

import random
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from litmusfuzz import corpus
from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.outcome import Outcome
from litmusfuzz.corpus.schedule import switches
from litmusfuzz.corpus.textfile import Schedule, load
from litmusfuzz.fuzz.campaign import recording
from litmusfuzz.fuzz.campaign.recording import ScheduleRecorder
from litmusfuzz.fuzz.campaign.target import Target
from litmusfuzz.fuzz.executors import messages
from litmusfuzz.fuzz.executors.protocol import Noise
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.fuzz.executors.worker import Worker
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
        if job.search:
            self.executions += found.executions - job.search.done
            return found
        ((outcome, events),) = found.schedules.items()
        return Schedule(outcome, events=events)


@pytest.fixture(scope="module")
def worker():
    with closing(Worker("tf")) as made:
        yield made


def recorded(worker: Worker, test: LitmusTest, outcome: Outcome) -> tuple[SimpleNamespace, int]:
    """What is recorded of an outcome that shows under control of locks; executions of searches."""
    import asyncio

    best = SimpleNamespace(
        test=test,
        noise=Noise(),
        judgement=SimpleNamespace(forbidden=((outcome, 1),)),
        target=target_of(LOCKS),
        schedule=None,
    )

    slot = RealSlot(worker)
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


def test_the_search_is_counted_and_then_luck_is_tried(worker: Worker, monkeypatch) -> None:
    """With one execution at each level the search ends, and a sampled schedule is kept."""
    monkeypatch.setattr(recording, "MAX_SEARCHED", 1)
    assert TWICE.finding is not None
    wrong = TWICE.finding.forbidden[0][0]
    best, executions = recorded(worker, TWICE.test, wrong)
    assert executions == 2
    assert best.target.config == LOCKS
    assert best.schedule.outcome == wrong
    assert best.schedule.events
