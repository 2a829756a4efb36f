"""Events are handed on in their order: those of one moment together, and none too late."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from campaign.campaigns import Run
from campaign.doubles import Packs
from helpers_settings import settings_of

from litmusfuzz.fuzz.campaign.event_log import EventLog
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.fuzz.executors.worker import Worker
from litmusfuzz.reports.events import CanaryRun, Event, Executed, Generated, Progress

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


TESTS = 48


class Written(list[list[Event]]):
    """What was handed on, each time."""

    def __call__(self, events: Sequence[Event]) -> None:
        """Takes events."""
        self.append(list(events))


def prepared(out: Path) -> Run:
    """A campaign that runs its tests in packs, as they were generated."""
    configurations = ((Packs.name, configuration(Packs.name)),)
    common = {"count": 16, "workers": 1, "as_generated": True}
    return Run(
        settings_of(1, out, configurations, time_s=600, tests=TESTS, families=("dag",), **common)
    )


def generated(index: int) -> Generated:
    return Generated(index=index, family="dag", executor="tf", ops={})


def test_an_event_is_handed_on_at_once() -> None:
    log = EventLog(written := Written())
    first, second = Progress(spent_s=1.0), CanaryRun(reported=True)
    log(first)
    assert written == [[first]]
    log(second)
    assert written == [[first], [second]]


def test_a_generated_test_waits_for_the_next_event() -> None:
    log = EventLog(written := Written())
    one, two, other = generated(1), generated(2), Progress(spent_s=1.0)
    log(one)
    log(two)
    assert written == []
    log(other)
    assert written == [[one, two, other]]
    log(one)
    log.flush()
    log.flush()
    assert written == [[one, two, other], [one]]


def test_events_of_one_moment_are_handed_on_together() -> None:
    log = EventLog(written := Written())
    events = [generated(1), Progress(spent_s=1.0), generated(2), CanaryRun(reported=False)]
    with log.together():
        for each in events:
            log(each)
        assert written == []
    assert written == [events]
    log(events[1])
    assert written == [events, [events[1]]]


def test_what_was_seen_before_an_error_is_handed_on() -> None:
    log = EventLog(written := Written())
    event = Progress(spent_s=1.0)

    def failing() -> None:
        with log.together():
            log(event)
            raise OSError

    with pytest.raises(OSError):  # noqa: PT011 - without a message
        failing()
    assert written == [[event]]
    log(event)
    assert written == [[event], [event]]


@pytest.mark.usefixtures("doubles")
def test_a_test_is_run_after_its_event_is_handed_on(tmp_path: Path, monkeypatch) -> None:
    """Whenever the campaign is killed, the events name every test that a worker had."""
    run = prepared(tmp_path)
    asked: set[int] = set()

    def look(tests: object) -> None:
        sent = tests if isinstance(tests, tuple) else (tests,)
        unfinished = run.campaign.dispatcher.comparisons.unfinished
        indices = {each.index for each in unfinished if any(each.test is test for test in sent)}
        assert indices <= {event.index for event in run.of(Generated)}
        asked.update(indices)

    ask, queue = Worker.run, Worker.queue

    async def watched_run(self, request, timeout_s, tests):
        look(tests)
        return await ask(self, request, timeout_s, tests)

    def watched_queue(self, request, tests):
        look(tests)
        queue(self, request, tests)

    monkeypatch.setattr(Worker, "run", watched_run)
    monkeypatch.setattr(Worker, "queue", watched_queue)
    run.run()
    assert asked >= {event.index for event in run.of(Executed)}
    assert len(asked) == TESTS


@pytest.mark.usefixtures("doubles")
def test_the_runs_of_a_pack_are_handed_on_together(tmp_path: Path) -> None:
    run = prepared(tmp_path)
    written = Written()
    write = run.campaign.log.write

    def watched(events: Sequence[Event]) -> None:
        written(events)
        write(events)

    run.campaign.log.write = watched
    run.run()
    runs = [sum(isinstance(event, Executed) for event in each) for each in written]
    assert sum(runs) == TESTS
    assert max(runs) > 1
    assert [event for each in written for event in each] == run.events
