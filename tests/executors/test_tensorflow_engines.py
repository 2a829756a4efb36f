"""Engines that run TensorFlow's closures: what they guarantee, seen in real sessions.

The threads are counted by ops of the graph (`Meter`), which know of no engine, and by the driver.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import tensorflow as tf
from helpers import LITMUS, PATIENCE_S, compiled, corpus_entry
from tensorflow.core.protobuf import config_pb2

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.outcome import Status, Verdict
from litmusfuzz.fuzz.engines.settings import OVER_RUNTIMES, EngineSettings, MissingEngine
from litmusfuzz.fuzz.executors.protocol import Noise, Refused, Unavailable
from litmusfuzz.fuzz.executors.table import UnknownExecutor, configuration
from litmusfuzz.fuzz.executors.tensorflow.configurations import Settings
from litmusfuzz.fuzz.executors.tensorflow.engines import DrivenEngine
from litmusfuzz.fuzz.executors.tensorflow.executor import TensorFlowExecutor
from litmusfuzz.fuzz.executors.tensorflow.session_options import session_config
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import EXECUTOR

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FUTURES = "concurrent.futures:ThreadPoolExecutor"
OURS = ("inline", "pool", "fifo", "stealing", "gang", "tbb", "openmp")
ENGINES = (*((name, 1 if name == "inline" else 3) for name in (*OURS, FUTURES)), ("pool", 1))
CLIENTS = 16
WIDTH, DEPTH, RUNS = 6, 3, 3
v1 = tf.compat.v1

every_engine = pytest.mark.parametrize(("name", "threads"), ENGINES)


def settings_of(name: str, threads: int) -> EngineSettings:
    settings = EngineSettings(name, threads)
    if name in OVER_RUNTIMES:
        try:
            assert settings.library
        except MissingEngine as error:
            pytest.skip(str(error))
    return settings


@contextmanager
def driven(name: str, threads: int, intra_op_threads: int = 1) -> Iterator[DrivenEngine]:
    """An engine that has broken nothing when it ends."""
    engine = DrivenEngine(settings_of(name, threads), intra_op_threads)
    try:
        yield engine
        engine.check()
        assert engine.driver.most <= threads
    finally:
        engine.close()


@contextmanager
def session(engine: DrivenEngine, build: Callable, devices: int = 1) -> Iterator[list[Callable]]:
    """Callables, one for each tensor or op that `build` returns, with initialized variables."""
    with tf.Graph().as_default() as graph:
        made = build()
        initialize = v1.global_variables_initializer()
    settings = Settings(engine="pool")  # whichever: the executor type says it
    config = session_config(settings, devices, engine.executor_type)
    with v1.Session(graph=graph, config=config) as opened:
        opened.run(initialize)
        yield [opened.make_callable(each) for each in made]


class Meter:
    """A function that ops call, which counts the threads that are in it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.running = self.most = self.calls = 0
        self.threads: set[int] = set()

    def __call__(self) -> np.int32:
        """Do the work of an op."""
        with self._lock:
            self.calls += 1
            self.running += 1
            self.most = max(self.most, self.running)
            self.threads.add(threading.get_native_id())
        time.sleep(0.0002)  # the work of an op, without the GIL
        with self._lock:
            self.running -= 1
        return np.int32(1)


def metered(meter: Meter) -> list[tf.Operation]:
    """Layers of ops, each of which adds to a variable once all of the layer before have."""
    count = v1.get_variable("count", (), tf.int32, v1.zeros_initializer(), use_resource=True)
    before: list[tf.Operation] = []
    for _ in range(DEPTH):
        layer = []
        for _ in range(WIDTH):
            with tf.control_dependencies(before):
                one = v1.py_func(meter, [], tf.int32)
            one.set_shape(())
            layer.append(tf.raw_ops.AssignAddVariableOp(resource=count.handle, value=one))
        before = layer
    return [tf.group(*before), count.read_value()]


def at_once(*calls: Callable[[], object]) -> list[object]:
    """What calls return that begin together, each in a thread of its own."""
    start = threading.Barrier(len(calls))

    def begin(call: Callable[[], object]) -> object:
        start.wait()
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return [each.result() for each in [pool.submit(begin, call) for call in calls]]


@every_engine
def test_sixteen_runs_at_once_keep_the_limit_and_lose_no_op(name: str, threads: int) -> None:
    """In two sessions, which share the engine."""
    meter = Meter()
    callers: set[int] = set()
    with (
        driven(name, threads) as engine,
        session(engine, lambda: metered(meter)) as (first, first_count),
        session(engine, lambda: metered(meter)) as (second, second_count),
    ):

        def client(run: Callable) -> None:
            callers.add(threading.get_native_id())
            for _ in range(RUNS):
                run()

        at_once(*(lambda run=run: client(run) for run in (first, second) * (CLIENTS // 2)))
        ops = WIDTH * DEPTH * RUNS * CLIENTS // 2
        assert first_count() == second_count() == ops
        assert meter.calls == 2 * ops
        assert meter.most <= threads
        # Those that called, and the engine's own: OpenMP has a team for each of them.
        assert meter.threads & callers
        if name != "openmp":
            assert len(meter.threads - callers) < threads + (name in ("tbb", FUTURES))
        driver = engine.driver
        assert 0 < driver.by_caller <= driver.closures
        assert driver.by_caller == driver.closures or threads > 1


@every_engine
def test_an_op_that_fails_ends_its_run_and_no_other(name: str, threads: int) -> None:
    def build() -> list[tf.Operation]:
        meter = Meter()
        wrong = v1.py_func(lambda: np.int32(-1), [], tf.int32)
        good = [v1.py_func(meter, [], tf.int32) for _ in range(WIDTH)]
        with tf.control_dependencies([tf.raw_ops.Assert(condition=wrong > 0, data=[wrong])]):
            after = tf.identity(good[0])
        return [tf.group(*good, after), tf.add_n(good)]

    with driven(name, threads) as engine, session(engine, build) as (fails, works):

        def error() -> str:
            with pytest.raises(tf.errors.InvalidArgumentError) as found:
                fails()
            return found.value.message

        for _ in range(RUNS):
            *messages, total = at_once(error, error, works)
            assert all("assertion failed" in str(each) for each in messages)
            assert total == WIDTH


def queued() -> list[tf.Operation]:
    queue = v1.FIFOQueue(4, tf.int32, ())
    taken = queue.dequeue()
    sums = [taken + each for each in range(WIDTH)]
    return [tf.add_n(sums), queue.enqueue(7), queue.size()]


@every_engine
def test_a_run_that_waits_holds_no_thread_and_goes_on(name: str, threads: int) -> None:
    """Its op comes back in a thread of another run; with one thread as well."""
    with driven(name, threads) as engine, session(engine, queued) as (take, put, size):
        for _ in range(RUNS):
            with ThreadPoolExecutor(1) as waiting:
                taken = waiting.submit(take)
                assert size() == 0
                put()
                assert taken.result(PATIENCE_S) == 7 * WIDTH + sum(range(WIDTH))


@every_engine
def test_a_run_that_is_cancelled_ends(name: str, threads: int) -> None:
    """By its deadline, for which its caller waits; another thread works in the caller's place."""
    with tf.Graph().as_default() as graph:
        take, put, _ = queued()
    with driven(name, threads) as engine:
        config = session_config(Settings(engine="pool"), 1, engine.executor_type)
        with v1.Session(graph=graph, config=config) as opened:
            soon = config_pb2.RunOptions(timeout_in_ms=50)
            with pytest.raises(tf.errors.DeadlineExceededError):
                opened.run(take, options=soon)
            opened.run(put)
            late = config_pb2.RunOptions(timeout_in_ms=int(1000 * PATIENCE_S))
            assert opened.run(take, options=late) == 7 * WIDTH + sum(range(WIDTH))


@every_engine
def test_a_run_on_two_devices_is_one_run(name: str, threads: int) -> None:
    def build() -> list[tf.Operation]:
        made = []
        for number in range(2):
            with tf.device(f"/cpu:{number}"):
                made.append(v1.py_func(lambda: np.int32(5), [], tf.int32))
        with tf.device("/cpu:0"):
            there = made[1] + 1
        with tf.device("/cpu:1"):
            return [made[0] + 2 + there]

    with driven(name, threads) as engine, session(engine, build, devices=2) as (total,):
        before = engine.driver.closures
        assert at_once(*[total] * CLIENTS) == [13] * CLIENTS
        assert engine.driver.closures > before
        assert engine.driver.by_caller > 0


@every_engine
def test_loops_and_functions_that_kernels_execute(name: str, threads: int) -> None:
    """The body of a While runs on the engine too, although its executor is TensorFlow's own."""

    def build() -> list[tf.Operation]:
        @tf.function(autograph=False)
        def body(i, total):
            return i + 1, total + i

        loop = tf.while_loop(lambda i, _: i < 20, body, (0, 0))
        condition = tf.function(lambda i, _: i < 20, autograph=False)
        int32 = tf.TensorSpec((), tf.int32)
        called = tf.raw_ops.While(
            input=[0, 0],
            cond=condition.get_concrete_function(int32, int32),
            body=body.get_concrete_function(int32, int32),
        )
        called[0].op._set_attr("_lower_using_switch_merge", v1.AttrValue(b=False))
        return [loop[1], called[1]]

    with driven(name, threads) as engine, session(engine, build) as (lowered, kernel):
        assert at_once(lowered, kernel, kernel) == [190] * 3
        before = engine.driver.closures
        kernel()
        assert engine.driver.closures > before + 20


def test_a_library_of_a_user_does_the_same(tmp_path: Path) -> None:
    source = Path(__file__).parents[1] / "native" / "example_engine.cpp"
    library = str(compiled(tmp_path / "mine.so", "-shared", "-fPIC", source))
    for check in (
        test_sixteen_runs_at_once_keep_the_limit_and_lose_no_op,
        test_an_op_that_fails_ends_its_run_and_no_other,
        test_a_run_that_waits_holds_no_thread_and_goes_on,
        test_a_run_that_is_cancelled_ends,
        test_a_run_on_two_devices_is_one_run,
        test_loops_and_functions_that_kernels_execute,
    ):
        check(library, 1)


def large() -> list[tf.Tensor]:
    values = tf.reshape(tf.range(1 << 20, dtype=tf.float32), (1024, 1024)) / (1 << 20)
    return [tf.reduce_sum(tf.sqrt(tf.exp(values) * 2.0 + 1.0))]


@pytest.mark.parametrize("name", [name for name in OURS if name != "openmp"])
def test_the_threads_inside_an_op_are_the_engines(name: str) -> None:
    """And count under its limit: one run has parts done by others, sixteen never wait for ever."""
    threads = 1 if name == "inline" else 4
    with driven(name, 1) as engine, session(engine, large) as (alone,):
        expected = alone()
        assert engine.driver.shared == 0
    with driven(name, threads, 4) as engine, session(engine, large) as (total,):
        assert total() == pytest.approx(expected, rel=1e-3)
        assert (engine.driver.shared > 0) == (threads > 1)
        totals = at_once(*[total] * CLIENTS)
        assert totals == pytest.approx([expected] * CLIENTS, rel=1e-3)


LITMUS_TESTS = ("IRIW", "call-in-a-loop", "nested-opposite", "mp-two-graphs", "uninitialized-race")
"""Chains, loops and calls, locks that may block, two runs, an op that fails."""


@pytest.mark.parametrize("name", OURS)
def test_litmus_tests_show_what_the_model_allows(name: str) -> None:
    """Blocked executions among it: they are recognized as on TensorFlow's own pool."""
    settings_of(name, 1)
    limit = "" if name == "inline" else ";threads=2"
    config = configuration("tf", f"engine={name}{limit}")
    for stem in LITMUS_TESTS:
        test = corpus_entry(next(path for path in LITMUS if path.stem == stem)).test
        with closing(TensorFlowExecutor().prepare(test, config)) as prepared:
            seen = prepared.run(32, Noise(copies=4), 1)
        judge = Explorer(test, EXECUTOR, loosest=True)
        assert all(judge.judge(outcome) is not Verdict.FORBIDDEN for outcome in seen), stem


def test_a_deadlock_is_recognized() -> None:
    """Each of two runs takes from the queue that the other fills afterwards."""
    test = corpus_entry(next(path for path in LITMUS if path.stem == "backpressure-blocked")).test
    for name in ("inline", "stealing"):
        config = configuration("tf", f"engine={name}")
        with closing(TensorFlowExecutor().prepare(test, config)) as prepared:
            seen = prepared.run(4, Noise(copies=1), 1)
        assert Status.BLOCKED in {outcome.status for outcome in seen}


def test_somebodys_engine_runs_what_cannot_be_blocked() -> None:
    config = configuration("tf", f"engine={FUTURES};threads=2")
    assert dict(config.settings)["engine"] == FUTURES
    test = litmus("X=1; r0=Y || Y=1; r1=X")
    with closing(TensorFlowExecutor().prepare(test, config)) as prepared:
        seen = prepared.run(64, Noise(copies=8), 1)
    judge = Explorer(test, EXECUTOR)
    assert all(judge.judge(outcome) is Verdict.ALLOWED for outcome in seen)
    blocking = corpus_entry(next(path for path in LITMUS if path.stem == "nested-opposite")).test
    with pytest.raises(Refused, match=f"critical sections in configuration engine={FUTURES}"):
        TensorFlowExecutor().prepare(blocking, config)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("engine=nobody", "no engine 'nobody'; there are pool, "),
        ("engine=controlled", "engine is one of '', pool, fifo, "),
        ("engine=./none.so", "no engine './none.so': there is no such file"),
        ("threads=2", "only an engine has it"),
        ("engine=inline;threads=2", "it has one thread"),
        ("engine=pool;pool=caller", "no threads of TensorFlow's run the ops"),
        ("engine=a:b;control=ops", "one or the other says when an op begins"),
        ("engine=openmp;intra_op_threads=2", "its teams keep their threads while an op waits"),
        ("engine=a:b;intra_op_threads=2", "whether a thread is free for a part of an op"),
        ("engine=pool;threads=3", "threads is one of 4, 1, 2, 8, 16, not '3'"),
    ],
)
def test_an_engine_that_cannot_be_is_refused_in_one_line(name: str, why: str) -> None:
    with pytest.raises(UnknownExecutor) as error:
        configuration("tf", name)
    assert why in str(error.value)
    assert "\n" not in str(error.value)


def test_an_engine_that_is_not_there_is_unavailable() -> None:
    for name, why in (
        ("nobody.at.all:engine", "No module named 'nobody'$"),
        (f"{Path(__file__)}", "invalid ELF header|file too short"),
    ):
        config = configuration("tf", f"engine={name}")
        with pytest.raises(Unavailable, match=why):
            TensorFlowExecutor().check(config)
