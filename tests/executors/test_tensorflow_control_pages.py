"""TensorFlow under control: switches between the pages of a tensor that a kernel touches."""

from __future__ import annotations

import ctypes
import signal
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING

from helpers import LITMUS, corpus_entry

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.textfile import loads, plain_of
from litmusfuzz.fuzz.executors import messages
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.fuzz.executors.tensorflow.executor import TensorFlowExecutor
from litmusfuzz.fuzz.executors.worker import Worker
from tests.executors.control_tests import forbidden, two_pages

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest

LOCKS = configuration("tf", "controlled_locks")
PAGES = configuration("tf", "controlled_pages")
LIMIT = 20_000


def prepared(test: LitmusTest, config=PAGES):
    return closing(TensorFlowExecutor().prepare(test, config))


TORN = two_pages("scatter-beside-read")


def test_a_switch_between_two_pages_shows_what_no_order_of_locks_does() -> None:
    """A read beside a scatter is torn (docs/tensorflow-findings.md)."""
    with prepared(TORN, LOCKS) as executor:
        by_locks = executor.explore(LIMIT)
    assert by_locks.complete
    assert not forbidden(TORN, by_locks)
    with prepared(TORN) as executor:
        by_pages = executor.explore(LIMIT)
    assert by_pages.complete
    assert len(by_pages.histogram) == 3
    (torn,) = forbidden(TORN, by_pages)
    with prepared(TORN) as executor:  # another session
        for _ in range(25):
            assert executor.follow(by_pages.schedules[torn]) == torn


def test_one_switch_is_enough_and_the_schedule_says_where() -> None:
    with prepared(TORN) as executor:
        without = executor.explore(LIMIT, preemptions=0)
        found = executor.explore(LIMIT, preemptions=1)
    assert without.complete
    assert not forbidden(TORN, without)
    assert found.complete
    (torn,) = forbidden(TORN, found)
    assert [str(each) for each in found.schedules[torn] if "page" in each.point] == [
        "r0/read of page 0 of X",
        "w0/read of page 0 of X",
        "w0/write of page 0 of X",
        "w0/read of page 1 of X",
        "w0/write of page 1 of X",
        "r0/read of page 1 of X",
    ]


def test_pages_add_no_outcome_where_a_kernel_holds_the_lock() -> None:
    test = litmus("X+=1 || X+=2 || r0=X", shape=(1, 2048))
    with prepared(test) as executor:
        found = executor.explore(LIMIT, preemptions=1)
    assert found.complete
    assert any("page" in each.point for each in next(iter(found.schedules.values())))
    assert not forbidden(test, found)


def test_reads_of_a_page_commute() -> None:
    """They are events, and there are no more schedules for it."""
    gather = "{op: ResourceGather, resources: [X], indices: [0]}"
    test = loads(f"""\
litmusfuzz: 2
name: two-gathers
variables:
  X: {{dtype: int32, shape: [1, 2048], init: 1}}
graphs:
  main:
    r0: {gather}
    r1: {gather}
observe: [r0, r1]
""").test
    counts = []
    for config in (LOCKS, PAGES):
        with prepared(test, config) as executor:
            found = executor.explore(LIMIT)
        assert found.complete
        counts.append(sum(found.histogram.values()))
        (schedule,) = found.schedules.values()
        reads = [str(each) for each in schedule if each.point.startswith("read of page")]
        expected = [f"{r}/read of page {page} of X" for r in ("r0", "r1") for page in (0, 1)]
        assert sorted(reads) == (expected if config is PAGES else [])
    assert counts[0] == counts[1]


def test_small_tensors_have_no_pages() -> None:
    test = corpus_entry(next(path for path in LITMUS if path.stem == "MP")).test
    found = []
    for config in (LOCKS, PAGES):
        with prepared(test, config) as executor:
            found.append(executor.explore(LIMIT))
    assert found[0] == found[1]


def test_a_worker_runs_by_pages() -> None:
    """The worker is forked, and has another handler of faults before ours."""
    with closing(Worker("tf")) as worker:
        request = messages.Request(
            test=plain_of(TORN), config="controlled_pages", count=320, seed=1, noise={}
        )
        reply = worker.ask(request, 60.0, TORN)
    assert len(reply.rows) == 3


# --- faults ------------------------------------------------------------------------------


def handler() -> int:
    """The process's handler of SIGSEGV."""
    action = (ctypes.c_uint64 * 32)()
    assert ctypes.CDLL(None).sigaction(int(signal.SIGSEGV), None, action) == 0
    return action[0]


def handlers_in(config) -> set[int]:
    """The handlers that an execution finds."""
    seen = set()
    with prepared(TORN, config) as executor:
        (schedule,) = executor.explore(1).schedules.values()
        execute = executor._steering._execute

        def looking() -> None:
            seen.add(handler())
            execute()

        executor._steering._execute = looking
        executor.follow(schedule)
    return seen


def test_faults_are_handled_in_executions_by_pages_alone() -> None:
    before = handler()
    assert handlers_in(LOCKS) == {before}
    assert before not in handlers_in(PAGES)
    assert handler() == before


CRASH = """\
import ctypes, faulthandler, sys
from litmusfuzz.fuzz.executors.tensorflow.control_library import Steering
faulthandler.enable()
with Steering([], lambda: None, level="pages"):
    print("now", flush=True)
    ctypes.string_at(8)
"""


def test_a_fault_that_is_not_ours_goes_to_the_handler_before() -> None:
    done = subprocess.run(
        [sys.executable, "-c", CRASH], capture_output=True, text=True, check=False
    )
    assert done.stdout == "now\n", done.stderr
    assert done.returncode == -signal.SIGSEGV
    assert "Fatal Python error: Segmentation fault" in done.stderr
    assert "ctypes" in done.stderr  # the traceback of the thread that crashed
