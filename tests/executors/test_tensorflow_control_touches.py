"""TensorFlow under control: switches between any two instructions that touch a small tensor."""

from __future__ import annotations

import platform
from contextlib import closing

import pytest

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.library import FOLDERS
from litmusfuzz.corpus.schedule import need
from litmusfuzz.corpus.textfile import load, plain_of
from litmusfuzz.fuzz.executors import messages
from litmusfuzz.fuzz.executors.protocol import Unavailable
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.fuzz.executors.tensorflow.executor import TensorFlowExecutor
from litmusfuzz.fuzz.executors.worker import Worker
from tests.executors.control_tests import TWO_UPDATES, forbidden

PAGES = configuration("tf", "controlled_pages")
TOUCHES = configuration("tf", "controlled_touches")
LIMIT = 20_000
SMALL = load(FOLDERS[1] / "slice-assign-beside-add.yaml").test
ASSIGNED = load(FOLDERS[1] / "slice-assign-beside-assign.yaml").test


def prepared(test, config=TOUCHES):
    return closing(TensorFlowExecutor().prepare(test, config))


def test_a_small_tensor_is_touched_in_schedules_of_touches_alone() -> None:
    """An update is lost between the read and the write of one element."""
    with prepared(SMALL, PAGES) as executor:
        by_pages = executor.explore(LIMIT)
    assert by_pages.complete
    assert not forbidden(SMALL, by_pages)
    with prepared(SMALL) as executor:
        without = executor.explore(LIMIT, preemptions=0)
        found = executor.explore(LIMIT, preemptions=1)
    assert without.complete
    assert not forbidden(SMALL, without)
    assert found.complete
    (lost,) = forbidden(SMALL, found)
    assert need(SMALL, found.schedules[lost]) == (
        "needs a switch inside ResourceStridedSliceAssign, between an unlock and a touch"
    )
    with prepared(SMALL) as executor:  # another session
        for _ in range(25):
            assert executor.follow(found.schedules[lost]) == lost


def test_every_touch_of_an_element_is_an_event() -> None:
    """Between two writes of one element, another op reads that."""
    with prepared(TWO_UPDATES) as executor:
        found = executor.explore(LIMIT, preemptions=1)
    assert found.complete
    (half,) = forbidden(TWO_UPDATES, found)
    assert "r0=1" in str(half)
    touches = [str(each) for each in found.schedules[half] if "element" in each.point]
    assert [each for each in touches if "w0" in each] == [
        "w0/read at element 1 of X",
        "w0/write at element 1 of X",
        "w0/read at element 1 of X (2)",
        "w0/write at element 1 of X (2)",
    ]
    first, second = ("w0/write at element 1 of X", "w0/write at element 1 of X (2)")
    read = touches.index("r0/read at element 1 of X")
    assert touches.index(first) < read < touches.index(second)


def test_an_op_that_has_given_back_a_lock_may_wait_before_it_goes_on() -> None:
    """A slice is assigned to the buffer that another assignment has made, and fills.

    That buffer is the variable's before it is touched. Tensors of 32 KiB are touched as at the
    level of pages.
    """
    with prepared(ASSIGNED, PAGES) as executor:
        by_pages = executor.explore(LIMIT)
    assert by_pages.complete
    assert not forbidden(ASSIGNED, by_pages)
    points = {e.point for events in by_pages.schedules.values() for e in events if e.node == "w0"}
    assert "write of page 1 of X" in points
    with prepared(ASSIGNED) as executor:
        found = executor.explore(LIMIT, preemptions=2)
    assert found.complete
    (torn,) = forbidden(ASSIGNED, found)
    points = {event.point for event in found.schedules[torn]}
    assert "after unlock of X" in points
    assert not any("element" in point for point in points)


def test_touches_add_no_outcome_where_a_kernel_holds_the_lock() -> None:
    test = litmus("X+=1 || X+=2 || r0=X")
    with prepared(test) as executor:
        found = executor.explore(LIMIT, preemptions=1)
    assert found.complete
    assert any("element" in each.point for each in next(iter(found.schedules.values())))
    assert not forbidden(test, found)


def test_a_worker_runs_by_touches() -> None:
    """The worker is forked, and samples schedules as a campaign does."""
    with closing(Worker("tf")) as worker:
        request = messages.Request(
            test=plain_of(TWO_UPDATES), config="controlled_touches", count=320, seed=1, noise={}
        )
        reply = worker.ask(request, 60.0, TWO_UPDATES)
    assert len(reply.rows) == 3


def test_another_processor_has_no_touches(monkeypatch: pytest.MonkeyPatch) -> None:
    from litmusfuzz.fuzz.executors.tensorflow.control_library import Steering, load

    monkeypatch.setattr(load(), "litmusfuzz_sees_touches", lambda: 0)
    why = rf"^control of each touch on {platform.machine()} \(x86-64 only\)$"
    with pytest.raises(Unavailable, match=why):
        Steering([], lambda: None, level="touches")
    Steering([], lambda: None, level="pages")
