"""TensorFlow's executor on one graph again and again: what others are measured beside."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tensorflow as tf

from litmusfuzz.fuzz.executors.tensorflow import lowering, session
from litmusfuzz.fuzz.executors.tensorflow.configurations import Settings
from litmusfuzz.fuzz.executors.tensorflow.session_options import session_config

if TYPE_CHECKING:
    from litmusfuzz.corpus.graph import LitmusTest


class Steady:
    """Executes copies of a test, side by side in one graph, once at each call.

    Variables keep what the last call left in them, and nothing is fetched: the time of
    a call is the executor's. Graph and variables are ready before the first.

    Parameters
    ----------
    test : LitmusTest
    copies : int
    threads : int
        Of the session's own pool; who calls waits meanwhile.
    executor_type : str
        As in `Settings`.
    """

    def __init__(
        self, test: LitmusTest, copies: int, *, threads: int, executor_type: str = ""
    ) -> None:
        graph_def = lowering.side_by_side(lowering.lower(test), copies)
        config = session_config(Settings(threads, executor_type=executor_type))
        self._session = tf.compat.v1.Session(graph=session.load(graph_def), config=config)
        session.callable_of(self._session, (), lowering.INIT)()
        self._race = session.callable_of(self._session, (), lowering.RACE)

    def __call__(self) -> None:
        """Return when every op of every copy has been executed."""
        self._race()

    def close(self) -> None:
        """Release graph and threads."""
        del self._race
        self._session.close()
