"""TensorFlow executor: queues, sections, several runs, and blocked or failed executions."""

from __future__ import annotations

import hashlib
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import tensorflow as tf
from helpers import LITMUS, corpus_entry, for_each

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.model import Graph, LitmusTest, Node, Queue, Variable
from litmusfuzz.corpus.ops import CountAttrs
from litmusfuzz.corpus.outcome import Outcome, Status, Verdict
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import loads
from litmusfuzz.fuzz.executors.protocol import Noise, Refused
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.fuzz.executors.tensorflow import TensorFlowExecutor, lowering, session
from litmusfuzz.fuzz.executors.tensorflow.configurations import Settings
from litmusfuzz.fuzz.executors.tensorflow.histogram import (
    DROPPED,
    STATUSES,
    Batch,
    HistogramBuilder,
)
from litmusfuzz.fuzz.executors.tensorflow.quiescence import is_quiescent, stays_quiescent
from litmusfuzz.fuzz.finding.judge import judge
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import EXECUTOR

if TYPE_CHECKING:
    from pathlib import Path

    from litmusfuzz.fuzz.executors.protocol import Histogram

PLAIN = TensorFlowExecutor.configurations()[0]
BY_NAME = {path.stem: path for path in LITMUS}
FINDINGS = LITMUS[0].parents[1] / "findings"
FEATURED = [
    path
    for path in LITMUS
    if (test := corpus_entry(path).test).features and not TensorFlowExecutor.support.lacking(test)
]


def execute(test: LitmusTest, count: int, noise: Noise, seed: int = 1) -> Histogram:
    prepared = TensorFlowExecutor().prepare(test, PLAIN)
    histogram = prepared.run(count, noise, seed)
    prepared.close()
    return histogram


@for_each("path", FEATURED, every=6)
def test_every_outcome_is_one_that_the_model_allows(path: Path) -> None:
    """Forced orders (`litmusfuzz cover`) show that each allowed outcome is reachable."""
    test = corpus_entry(path).test
    seen = execute(test, 24, Noise(copies=8, steps=2, padding=64))
    assert sum(seen.values()) >= 16  # as many sessions as a test that fails has
    judged = judge(Explorer(test, EXECUTOR), seen)
    assert judged.verdicts.keys() <= {Verdict.ALLOWED, Verdict.UNSPECIFIED}, seen


# How an execution ends.


@pytest.mark.parametrize("copies", [1, 5])
def test_a_blocked_run_hides_its_values_and_not_its_effects(copies: int) -> None:
    test = litmus("X=1; r0=Q?; Y=1 || r1=Z", queues={"Q": 1})
    seen = execute(test, 12, Noise(copies, padding=8))
    hidden = Outcome.of(test, {"X": (1,), "Y": (0,), "Z": (0,), "Q": ()}, Status.BLOCKED)
    assert seen.keys() == {hidden}


def test_a_completed_run_shows_its_values_when_another_run_blocks() -> None:
    (outcome,) = execute(corpus_entry(BY_NAME["blocked-hides-run-not-effects"]).test, 12, Noise(4))
    assert str(outcome) == "_status=blocked other.t2=4 other.r2=4 X=4 P=[] Q=[]"


@pytest.mark.parametrize(
    ("text", "queues"),
    [
        ("Q!1; Q!2; P!3; P!4; r0=Q?", {"Q": 2, "P": 1}),
        ("Q!1; P!3; P!4; r0=Q?; Q!5; P!6", {"Q": 1, "P": 1}),
        ("Q!1; Q!2; r0=Q? || P!3; P!4; r1=P?", {"Q": 1, "P": 1}),
        ("P!3; P!4; r0=R? || R!1; r1=R?2", {"P": 1, "R": 2}),
    ],
)
@pytest.mark.parametrize("copies", [1, 6])
def test_reading_a_full_queue_lets_no_blocked_op_go_on(
    text: str, queues: dict[str, int], copies: int
) -> None:
    """Who waits to put would, if something were taken out, and then what comes after it.

    What that took from another queue was gone before we looked, in half of the executions.
    """
    test = litmus(text, queues=queues)
    seen = execute(test, 24, Noise(copies, padding=8))
    assert {outcome.status for outcome in seen} == {Status.BLOCKED}
    judged = judge(Explorer(test, EXECUTOR), seen)
    assert judged.verdicts.keys() == {Verdict.ALLOWED}, seen


@pytest.mark.timeout(100)
def test_a_queue_that_nobody_puts_into_is_read_before_a_full_one() -> None:
    """Found by a campaign: who waited to put into P went on, and freed the lock.

    The dequeue that waited for the lock then took from Q what was counted there, and the look at Q
    never ended, in one of some dozen steps.
    """
    both = litmus("lock M; r0=Q?2; unlock M || lock M; P!7; unlock M", queues={"P": 1, "Q": 2})
    full = {"P": (3,), "Q": (1, 2)}
    queues = tuple(replace(each, init=full[each.name]) for each in both.queues)
    test = replace(both, queues=queues)
    seen = execute(test, 200, Noise())
    assert any(outcome.status is Status.BLOCKED for outcome in seen)
    judged = judge(Explorer(test, EXECUTOR), seen)
    assert judged.verdicts.keys() == {Verdict.ALLOWED}, seen


SECTIONS = {
    "waits": "lock M; {}S!0; P!1; P!2; unlock M ||| r0=S?; lock M; Q!7; unlock M",
    "has had it": "r0=S?; lock M; {}P!1; P!2; unlock M ||| lock M; Q!7; unlock M; S!0",
}
"""One run is blocked on an enqueue in a section; the other waits for its lock or had it."""


@pytest.mark.parametrize(
    ("other", "full", "shown"),
    [
        ("waits", "", "P=[1] Q=[] S=[]"),
        ("waits", "R!9; ", None),
        ("has had it", "", "P=[1] Q=[7] S=[]"),
        ("has had it", "R!9; ", "P=[1] Q=[7] R=[9] S=[]"),
    ],
)
def test_a_copy_that_a_freed_lock_may_have_changed_is_dropped(
    other: str, full: str, shown: str | None
) -> None:
    """With two full queues the executor cancels the blocked run, which frees its lock."""
    queues = dict.fromkeys("PQRS" if full else "PQS", 1)
    test = litmus(SECTIONS[other].format(full), queues=queues)
    if shown is None:
        with pytest.raises(Refused, match="sections in several runs"):
            execute(test, 1, Noise(1))
    else:
        (outcome,) = execute(test, 4, Noise(2))
        assert str(outcome) == f"_status=blocked {shown}"


@pytest.mark.parametrize("name", ["close-many-too-few", "close-one-too-many"])
def test_an_op_that_fails_ends_its_own_copy_only(name: str) -> None:
    seen = execute(corpus_entry(BY_NAME[name]).test, 6, Noise(3, steps=4, padding=0))
    assert {outcome.status for outcome in seen} == {Status.FAILED}


def test_a_run_that_waits_after_a_failure_is_not_blocked() -> None:
    """TensorFlow may never end it (docs/tensorflow-findings.md, "A step that fails may never end").

    On busy cores one step in five is such a one, on idle ones few. The next test leaves nothing to
    chance.
    """
    path = FINDINGS / "failed-step-never-ends.yaml"
    test = loads(path.read_text(encoding="utf-8"), str(path)).test
    seen = execute(test, 12 * 32, Noise(copies=32, steps=12))
    judged = judge(Explorer(test, EXECUTOR), seen)
    assert judged.verdicts.keys() <= {Verdict.ALLOWED, Verdict.UNSPECIFIED}, seen
    assert Verdict.UNSPECIFIED in judged.verdicts


LOCKED = litmus("lock M; r0=Q?; unlock M", queues={"Q": 1})
NO, YES = np.array([False]), np.array([True])
NO_VALUE = tf.errors.FailedPreconditionError(None, None, "{{node c0/r0}} has no value")


@pytest.mark.parametrize(
    ("test", "error", "doubtful"),
    [
        (LOCKED, NO_VALUE, True),
        (LOCKED, tf.errors.CancelledError(None, None, "Session was closed"), False),
        (LOCKED, tf.errors.InvalidArgumentError(None, None, "abort/a : Tensor had NaN"), False),
        # Without a lock, the run that failed had ended; one that fails now was let go.
        (
            litmus("r0=Q?", queues={"Q": 1}),
            tf.errors.OutOfRangeError(None, None, "is closed and has insufficient elements"),
            False,
        ),
    ],
    ids=["no-value", "cancelled", "aborted", "no-lock"],
)
def test_a_run_that_ends_with_an_error_of_its_own_may_not_have_been_blocked(
    test: LitmusTest, error: tf.errors.OpError, *, doubtful: bool
) -> None:
    """A run that waits until it is cancelled, and then ends with the error of its first op."""
    cancelled = threading.Event()

    def waits() -> list[Any]:
        cancelled.wait()
        raise error

    template, noise = lowering.lower(test), Noise(1, padding=0)
    graph = lowering.build(template, noise, np.random.default_rng(0))
    live = session.LiveSession(template, graph, Settings.of(PLAIN), noise.copies)
    live.initialize()
    with ThreadPoolExecutor(1) as threads:
        race = session._Race(test, {"main": waits}, threads)
        race.go(watched=True, stuck=lambda: True)
        assert race.blocked
        cancelled.set()
        live._cancel(race)
        status, _ = live._endings(race, {"main/done": NO, "main/begun": YES})
    live.close()
    expected = DROPPED if doubtful else STATUSES.index(Status.BLOCKED)
    assert status.tolist() == [expected]


def test_a_step_leaves_nothing_for_the_next() -> None:
    """Elements or a lock from one step would show in the next."""
    test = litmus("Q!1; lock M; X=1; unlock M", queues={"Q": 2})
    (outcome,) = execute(test, 40, Noise(4, steps=10, padding=0))
    assert outcome.plain == {"X": 1, "Q": [1]}


@pytest.mark.parametrize(
    ("text", "queues", "shown"),
    [
        ("lock M; X=1; r0=Q?; unlock M", {"Q": 1}, "_status=blocked X=1 Q=[]"),
        ("Q!1; Q!2 || P!3; P!4", {"P": 1, "Q": 1}, "_status=blocked P=[3] Q=[1]"),
        (
            "X=1; Q!1; Q!2 ||| lock M; Y=1; r0=R?; unlock M",
            {"Q": 1, "R": 1},
            "_status=blocked X=1 Y=1 Q=[1] R=[]",
        ),
        ("Q!1; close Q", {"Q": 2}, "Q=[1]"),
        ("Q!1; close Q; r0=Q?; r1=Q?", {"Q": 2}, "_status=failed"),
    ],
)
def test_a_session_goes_on_after_a_step_that_ends_in_any_way(
    text: str, queues: dict[str, int], shown: str
) -> None:
    """A lock that is still held, or a queue that is still closed, would show in the next step."""
    test = litmus(text, queues=queues)
    template, noise = lowering.lower(test), Noise(1, padding=0)
    graph = lowering.build(template, noise, np.random.default_rng(0))
    live = session.LiveSession(template, graph, Settings.of(PLAIN), noise.copies)
    for _ in range(4):
        builder = HistogramBuilder(test)
        builder.add(live.step())
        assert list(map(str, builder.histogram())) == [shown]
        assert live.usable
        assert live.hindered == shown.startswith("_status")
    live.close()


@pytest.mark.parametrize("text", ["Q!1; close Q", "close Q"])
def test_a_queue_that_an_op_still_holds_is_made_again(text: str) -> None:
    """A real error of the session, at a moment of our choice: the queue is gone after `INIT`."""
    test = litmus(text, queues={"Q": 2})
    template, noise = lowering.lower(test), Noise(1, padding=0)
    graph = lowering.build(template, noise, np.random.default_rng(0))
    live = session.LiveSession(template, graph, Settings.of(PLAIN), noise.copies)
    first = [live.step(), live.step()]
    initialize, missing = live.initialize, [tf.errors.NotFoundError(None, None, "Q does not exist")]

    def fails_once() -> None:
        initialize()
        if missing:
            raise missing.pop()

    live.initialize = fails_once
    after = [live.step(), live.step()]
    assert not missing
    assert [counted(test, each) for each in after] == [counted(test, each) for each in first]
    live.close()
    live = session.LiveSession(template, graph, Settings.of(PLAIN), noise.copies)
    missing.append(tf.errors.NotFoundError(None, None, "Q does not exist"))
    initialize, live.initialize = live.initialize, fails_once
    with pytest.raises(tf.errors.NotFoundError):  # no earlier queue can be held
        live.step()
    live.close()


def test_one_graph_can_run_several_times() -> None:
    test = corpus_entry(BY_NAME["runs-ordered"]).test
    assert len(test.runs) > 1
    seen = execute(test, 20, Noise(4, steps=5, padding=0))
    assert not judge(Explorer(test, EXECUTOR), seen).forbidden


def test_quiescent_means_that_no_other_thread_runs() -> None:
    """Hashing releases the interpreter's lock, so that its thread runs during the check."""
    begun, stop = threading.Event(), threading.Event()

    def work() -> None:
        data = bytes(1 << 20)
        while not stop.is_set():
            hashlib.sha256(data)
            begun.set()

    worker = threading.Thread(target=work)
    worker.start()
    begun.wait()
    busy = [is_quiescent() for _ in range(200)]
    stop.set()
    worker.join()
    assert not any(busy)


def test_a_thread_that_a_timer_wakes_is_not_blocked() -> None:
    """As one that waits for a contended mutex of TensorFlow: it sleeps for a millisecond."""
    begun, stop = threading.Event(), threading.Event()

    def work() -> None:
        while not stop.is_set():
            begun.set()
            time.sleep(0.001)

    worker = threading.Thread(target=work)
    worker.start()
    begun.wait()
    blocked = [stays_quiescent() for _ in range(200)]
    stop.set()
    worker.join()
    assert not any(blocked)


# What is counted.


def counted(test: LitmusTest, batch: Batch) -> dict[str, int]:
    builder = HistogramBuilder(test)
    builder.add(batch)
    return {str(outcome): count for outcome, count in builder.histogram().items()}


def queued() -> LitmusTest:
    return LitmusTest(
        "test",
        (Variable("X", "int32", ()),),
        (Graph("main", (Node("r", "ReadVariableOp", (), ("X",)),)),),
        ("r",),
        queues=(Queue("Q", "int32", (2, 2), 3),),
    )


def test_queue_contents_go_to_their_copies_and_may_be_torn() -> None:
    elements = np.array([[[1, 1], [2, 2]], [[3, 3], [4, 4]], [[5, 6], [7, 7]]], np.int32)
    x = np.zeros(4, np.int32)
    batch = Batch({"r": x, "X": x}, {"Q": (np.array([2, 0, 1, 0], np.int32), elements)})
    assert counted(queued(), batch) == {
        "r=0 X=0 Q=[[1,2],[3,4]]": 1,
        "r=0 X=0 Q=[]": 2,
        "r=0 X=0 Q=torn": 1,
    }


def test_absent_values_dropped_and_failed_executions() -> None:
    x = np.array([1, 2, 3, 4], np.int32)
    none: Any = (np.zeros(4, np.int32), np.zeros((0, 2, 2), np.int32))
    absent = {"r": np.array([False, True, True, True])}
    status = np.array([0, 1, 2, DROPPED])
    assert counted(queued(), Batch({"r": x, "X": x}, {"Q": none}, status, absent)) == {
        "r=1 X=1 Q=[]": 1,
        "_status=blocked X=2 Q=[]": 1,
        "_status=failed": 1,
    }


def test_batches_of_all_kinds_count_together_as_they_do_alone() -> None:
    """Of completed and of ended steps, with values of two dtypes; their arrays are used again."""
    x, wide = np.array([1, 2], np.int32), np.array([3, 3], np.int64)
    sizes, elements = np.array([1, 0], np.int32), np.array([[[1, 1], [2, 2]]], np.int32)
    none: Any = (np.zeros(2, np.int32), np.zeros((0, 2, 2), np.int32))
    batches = [
        Batch({"r": x, "X": x}, {"Q": (sizes, elements)}),
        Batch({"r": x, "X": x}, {"Q": none}, np.array([1, 2]), {"r": np.array([True, False])}),
        Batch({"r": wide, "X": wide}, {"Q": none}, np.array([0, DROPPED])),
        Batch({"r": x, "X": x}, {"Q": none}, empty={"X": np.array([False, True])}),
    ] * 2
    alone: Counter[str] = Counter()
    for batch in batches:
        alone.update(counted(queued(), batch))
    builder = HistogramBuilder(queued())
    for batch in batches:
        copied = batch.copied()
        builder.add(copied)
        for array in copied.values.values():
            array[:] = 9
    assert builder.count == alone.total() == 14
    assert Counter({str(o): count for o, count in builder.histogram().items()}) == alone
    assert len(alone) == 7


def test_a_failed_dequeue_puts_back_more_than_the_queue_may_hold() -> None:
    """TensorFlow gives back what a dequeue of many has taken when the queue is closed too early."""
    queues = (Queue("Q", "int32", (), 1),)
    many = Node("m", "QueueDequeueManyV2", (), ("Q",), attrs=CountAttrs(3))
    test = LitmusTest("test", (), (Graph("main", (many,)),), ("m",), queues=queues)
    elements = np.array([5, 6, 7, 8], np.int32)
    sizes = np.array([2, 1, 1], np.int32)
    values = {"m": np.zeros((3, 3), np.int32)}
    status = np.array([2, DROPPED, 1])
    batch = Batch(values, {"Q": (sizes, elements)}, status, {"m": np.array([True] * 3)})
    assert counted(test, batch) == {"_status=failed": 1, "_status=blocked Q=[8]": 1}


def test_a_queue_that_is_closed_too_early_for_a_dequeue_of_many() -> None:
    """The element in the queue, and the one that is put, are given back into one place."""
    test = loads(
        """
litmusfuzz: 2
name: too-few
queues:
  Q: {dtype: int32, shape: [], capacity: 1, init: [5]}
graphs:
  p:
    c: {op: Const, dtype: int32, shape: [], value: 6}
    w: {op: QueueEnqueueV2, resources: [Q], inputs: [c]}
    e: {op: QueueCloseV2, resources: [Q], after: [w]}
  c:
    m: {op: QueueDequeueManyV2, resources: [Q], count: 3}
observe: [c.m]
"""
    ).test
    for noise in (Noise(copies=1, steps=16), Noise(copies=4, steps=4)):
        seen = execute(test, 16, noise)
        assert set(map(str, seen)) == {"_status=failed"}
        assert not judge(Explorer(test, EXECUTOR), seen).forbidden


CAPTURED_HANDLE = """\
litmusfuzz: 2
name: captured-handle
variables:
  X: {dtype: int32, shape: [], init: 7}
graphs:
  main:
    h: {op: VarHandleOp, variable: X}
    c0: {op: Const, dtype: int32, shape: [], value: 0}
    c2: {op: Const, dtype: int32, shape: [], value: 2}
    loop:
      op: While
      inputs: [c0, c0]
      carried: [i, v]
      captures: {a: h, n: c2}
      condition:
        nodes:
          t0: {op: Less, inputs: [i, n]}
        results: [t0]
      body:
        nodes:
          r: {op: ReadVariableOp, resources: [X], handle: a}
          c1: {op: Const, dtype: int32, shape: [], value: 1}
          t1: {op: AddV2, inputs: [i, c1]}
        results: [t1, r]
observe: [loop.v]
"""


def test_an_op_of_a_body_with_a_captured_handle_ends_with_its_loop() -> None:
    """Nothing else leads to the read: executed after the last iteration, it would begin others."""
    test = loads(CAPTURED_HANDLE, "captured-handle").test
    with closing(TensorFlowExecutor().prepare(test, configuration("tf", "plain"))) as prepared:
        shown = prepared.run(32, Noise(copies=4, steps=8), 1)
    assert shown == {Outcome.of(test, {"loop.v": (7,), "X": (7,)}): 32}
