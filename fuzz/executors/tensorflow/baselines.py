"""Loops around `Session.run` without LitmusFuzz's bookkeeping: baselines of the benchmarks.

`litmusfuzz bench` compares its own speed with them. No test runs through them. They
stand here because only this package imports TensorFlow.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np
import tensorflow as tf

from litmusfuzz.fuzz.executors.protocol import Refused
from litmusfuzz.fuzz.executors.tensorflow import lowering, session
from litmusfuzz.fuzz.executors.tensorflow.configurations import Settings
from litmusfuzz.fuzz.executors.tensorflow.session_options import run_options, session_config

if TYPE_CHECKING:
    from tensorflow.core.protobuf import config_pb2

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.executors.protocol import Config, Noise
    from litmusfuzz.fuzz.executors.tensorflow.engines import DrivenEngine
    from litmusfuzz.fuzz.executors.tensorflow.lowering import Built

_LAYER: Final = 10


class SessionLoop:
    """Sets the variables, runs the graph and fetches its outputs, and ignores them.

    A user would write this loop to run one graph many times. It takes tests that cannot
    block; several runs execute one after the other.

    Parameters
    ----------
    built : Built
    config : ConfigProto
        From `session_options.session_config`.
    """

    def __init__(self, built: Built, config: config_pb2.ConfigProto) -> None:
        self._session = tf.compat.v1.Session(graph=session.load(built.graph_def), config=config)
        self._set = session.callable_of(self._session, (), lowering.INIT)
        self._races = []
        for unit in built.units:
            observed = (shown.tensor for shown in unit.observed)
            race = session.callable_of(self._session, observed, unit.target)
            self._races += [race] * len(unit.runs)
        self._get = session.callable_of(self._session, (shown.tensor for shown in built.final))

    def __call__(self) -> None:
        """Execute every copy once."""
        self._set()
        for race in self._races:
            race()
        self._get()

    def close(self) -> None:
        """Release graph and threads."""
        del self._set, self._races, self._get
        self._session.close()


def run_naively(test: LitmusTest, config: Config, noise: Noise, seed: int) -> None:
    """Build a graph, run it `noise.steps` times by three callables, and close its session.

    Raises
    ------
    Refused
        If the test may block: the loop would never end.
    """
    settings = replace(Settings.of(config), spinning=True)  # TensorFlow's default
    template = lowering.lower(test)
    if template.may_block:
        raise Refused("a naive loop of a test that may block")
    built = lowering.build(
        template,
        noise,
        np.random.default_rng(seed),
        share_handles=settings.shared_handles,
    )
    with closing(SessionLoop(built, session_config(settings))) as loop:
        for _ in range(noise.steps):
            loop()


class UnobservedLoop:
    """Executes copies of a test in one graph, without initialization or fetches.

    Variables keep their contents from one call to the next. The time of a call is thus
    the time of TensorFlow's executor alone.

    Parameters
    ----------
    test : LitmusTest
    copies : int
    threads : int
        Size of the session's own thread pool; the calling thread waits.
    executor_type : str
        As in `Settings`.

    Attributes
    ----------
    session : tf.compat.v1.Session
    """

    def __init__(
        self, test: LitmusTest, copies: int, *, threads: int, executor_type: str = ""
    ) -> None:
        graph_def = lowering.unobserved_copies(lowering.lower(test), copies)
        config = session_config(Settings(threads, executor_type=executor_type))
        self.session = tf.compat.v1.Session(graph=session.load(graph_def), config=config)
        session.callable_of(self.session, (), lowering.INIT)()
        self._race = session.callable_of(self.session, (), lowering.RACE)

    def __call__(self) -> None:
        """Return when every op of every copy has been executed."""
        self._race()

    def close(self) -> None:
        """Release graph and threads."""
        del self._race
        self.session.close()


class SmallOps:
    """Executes a graph of additions of two scalars, again and again.

    They stand in layers of ten. Each adds two of the layer before, so that a layer may run at once.

    Parameters
    ----------
    ops : int
        Additions, a multiple of ten.
    settings : Settings
        The pool of TensorFlow's that runs the ops.
    engine : DrivenEngine, optional
        Runs them in place of a pool.
    """

    def __init__(self, ops: int, settings: Settings, engine: DrivenEngine | None = None) -> None:
        with tf.Graph().as_default() as graph:
            layer = [tf.constant(each) for each in range(_LAYER)]
            for _ in range(ops // _LAYER):
                pairs = zip(layer, layer[1:] + layer[:1], strict=True)
                layer = [tf.raw_ops.AddV2(x=one, y=other) for one, other in pairs]
            last = [each.op.name for each in layer]
        config = session_config(settings, 1, engine.executor_type if engine else "")
        self._session = tf.compat.v1.Session(graph=graph, config=config)
        options = run_options(settings)
        self._run = session.callable_of(self._session, (), *last, options=options)

    def __call__(self) -> None:
        """Execute every op once."""
        self._run()

    def close(self) -> None:
        """Release graph and threads."""
        del self._run
        self._session.close()
