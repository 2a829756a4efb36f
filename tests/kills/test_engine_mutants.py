"""Engines with one defect each, killed in real TensorFlow, and the same engine without it.

``tests/native/defective_engine.cpp`` is the engine, a library as a user builds one.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import tensorflow as tf
from helpers import PATIENCE_S, compiled

from litmusfuzz.fuzz.engines.settings import EngineSettings
from litmusfuzz.fuzz.executors.tensorflow.configurations import Settings
from litmusfuzz.fuzz.executors.tensorflow.engines import BrokenEngine, DrivenEngine
from litmusfuzz.fuzz.executors.tensorflow.session_options import session_config

if TYPE_CHECKING:
    from collections.abc import Callable

SOURCE = Path(__file__).parents[1] / "native" / "defective_engine.cpp"
v1 = tf.compat.v1


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> str:
    output = tmp_path_factory.mktemp("engine") / "defective.so"
    return str(compiled(output, "-shared", "-fPIC", SOURCE))


class Meeting:
    """Ops that call it wait until so many are in it, or give up if there never are."""

    def __init__(self, threads: int) -> None:
        self._changed = threading.Condition()
        self._threads = threads
        self._in = self._most = self._calls = 0

    def __call__(self) -> np.int32:
        """Return how many ops have called it."""
        with self._changed:
            self._calls += 1
            self._in += 1
            self._most = max(self._most, self._in)
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._most >= self._threads, 0.02)
            self._in -= 1
            return np.int32(self._calls)


def run_on(library: str, threads: int, ops: int, function: Callable, clients: int = 1) -> None:
    """Run a graph of so many ops that call a function, in some threads at once.

    Raises
    ------
    BrokenEngine
    """
    with tf.Graph().as_default() as graph:
        calls = [v1.py_func(function, [], tf.int32) for _ in range(ops)]
        total = tf.group(*calls)
    engine = DrivenEngine(EngineSettings(library, threads))
    try:
        config = session_config(Settings(engine="pool"), 1, engine.executor_type)
        with v1.Session(graph=graph, config=config) as session:
            run = session.make_callable(total)
            others = [threading.Thread(target=run) for _ in range(clients - 1)]
            for each in others:
                each.start()
            run()
            for each in others:
                each.join(PATIENCE_S)
        engine.check()
    finally:
        engine.close()


@pytest.fixture
def defect(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    return lambda name: monkeypatch.setenv("LITMUSFUZZ_DEFECT", name)


def test_an_engine_that_exceeds_its_limit(library: str, defect) -> None:
    defect("exceeds")
    with pytest.raises(BrokenEngine, match=r"runs closures in 3 threads; its limit is 2$"):
        run_on(library, 2, 12, Meeting(3))
    run_on(library, 3, 12, Meeting(3))  # it has two threads, and one that waits
    defect("none")
    run_on(library, 2, 12, Meeting(3))


def test_a_thread_that_waits_for_one_run_and_works_on_another(library: str, defect) -> None:
    defect("strays")
    with pytest.raises(BrokenEngine, match=r"has a thread that waits for one run work on another$"):
        run_on(library, 4, 12, Meeting(2), clients=3)
    run_on(library, 4, 12, Meeting(2))  # one run
    defect("none")
    run_on(library, 4, 12, Meeting(2), clients=3)


def test_an_engine_that_throws_although_it_has_the_closure(library: str, defect) -> None:
    """The run ends, and each op has been executed once."""
    defect("refuses")
    meeting = Meeting(1)
    with pytest.raises(BrokenEngine, match=r"has had enough$"):
        run_on(library, 2, 12, meeting)
    assert meeting._calls == 12
    defect("none")
    run_on(library, 2, 12, Meeting(1))


def test_an_engine_that_starts_no_run(library: str, defect) -> None:
    defect("starts nothing")
    with pytest.raises(tf.errors.InternalError, match="the engine: starts nothing"):
        run_on(library, 2, 1, Meeting(1))
