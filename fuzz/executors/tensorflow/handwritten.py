"""What a person would write to run one graph often: what our own loop is measured beside."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tensorflow as tf

from litmusfuzz.fuzz.executors.tensorflow import session
from litmusfuzz.fuzz.executors.tensorflow.lowering import INIT

if TYPE_CHECKING:
    from tensorflow.core.protobuf import config_pb2

    from litmusfuzz.fuzz.executors.tensorflow.lowering import Built


class HandWritten:
    """Sets variables, runs, fetches what is observed, and looks at none of it.

    Of tests with one run, that cannot block.

    Parameters
    ----------
    built : Built
    config : ConfigProto
        Of `options.session_config`.
    """

    def __init__(self, built: Built, config: config_pb2.ConfigProto) -> None:
        self._session = tf.compat.v1.Session(graph=session.load(built.graph_def), config=config)
        self._set = session.callable_of(self._session, (), INIT)
        (unit,) = built.units
        observed = (shown.tensor for shown in unit.observed)
        self._race = session.callable_of(self._session, observed, unit.target)
        self._get = session.callable_of(self._session, (shown.tensor for shown in built.final))

    def __call__(self) -> None:
        """Every copy once."""
        self._set()
        self._race()
        self._get()

    def close(self) -> None:
        """Release graph and threads."""
        del self._set, self._race, self._get
        self._session.close()
