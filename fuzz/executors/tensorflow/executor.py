"""The executor protocol over TensorFlow sessions."""

from __future__ import annotations

import importlib
import platform
from contextlib import closing
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from fuzz.executors.protocol import Config, Unavailable
from fuzz.executors.tensorflow.tally import Tally

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType

    from corpus.graph import LitmusTest
    from fuzz.executors.protocol import Histogram, Noise

# Four threads: with two, the second is mostly asleep when a racing op is ready,
# and two scatters of 16 lanes tear in 1 session of 10 instead of in each; with
# eight nothing is gained.
_PLAIN: Final = (("inter_op_threads", 4), ("executor_type", ""), ("grappler", False))

_CONFIGURATIONS: Final = (
    Config("plain", "executor", _PLAIN),
    Config("grappler", "executor", (*_PLAIN[:2], ("grappler", True))),
    Config(
        "single_threaded",
        "executor",
        (_PLAIN[0], ("executor_type", "SINGLE_THREADED_EXECUTOR"), _PLAIN[2]),
    ),
)


class TensorFlowExecutor:
    """TensorFlow's graph executor on the CPU."""

    name: ClassVar[str] = "tf"
    features: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def configurations(cls) -> tuple[Config, ...]:
        """As TensorFlow executes exactly the test; with graph rewriting; on one thread."""
        return _CONFIGURATIONS

    @classmethod
    def versions(cls) -> Mapping[str, str]:
        """Of TensorFlow, NumPy and Python."""
        return {
            "tensorflow": str(_import_tensorflow().__version__),
            "numpy": np.__version__,
            "python": platform.python_version(),
        }

    def prepare(self, test: LitmusTest, config: Config) -> PreparedTest:
        """Lower the test; graphs and sessions are built by each run.

        Raises
        ------
        Refused
            Naming the op or device.
        Unavailable
            Without TensorFlow.
        """
        _import_tensorflow()
        return PreparedTest(test, config)


class PreparedTest:
    """A lowered test. Holds nothing between runs.

    Parameters
    ----------
    test : LitmusTest
    config : Config
        Of `TensorFlowExecutor.configurations`.
    """

    def __init__(self, test: LitmusTest, config: Config) -> None:
        from fuzz.executors.tensorflow import lowering, session

        settings: dict[str, Any] = dict(config.settings)
        self._test = test
        self._template = lowering.lower(test)
        self._config = session.session_config(**settings)

    def run(self, count: int, noise: Noise, seed: int) -> Histogram:
        """Execute the test `count` times, rounded up to a step of `noise.copies`.

        Of the noise, `copies`, `steps`, `shuffle` and `padding` say something here:
        the threads, and what they do between ops, are TensorFlow's own.

        TensorFlow reports an op that fails as an exception of
        `tensorflow.errors`, which ends the run.
        """
        from fuzz.executors.tensorflow import lowering, session

        rng = np.random.default_rng(seed)
        tally = Tally(self._test)
        while tally.count < count:
            built = lowering.build(self._template, noise, rng)
            with closing(session.LiveSession(built, self._config, noise.copies)) as live:
                for _ in range(noise.steps):
                    tally.add(live.step())
                    if tally.count >= count:
                        break
        return tally.histogram()

    def close(self) -> None:
        """Nothing: each run releases its sessions."""


def _import_tensorflow() -> ModuleType:
    try:
        return importlib.import_module("tensorflow")
    except ModuleNotFoundError as error:
        if error.name != "tensorflow":  # TensorFlow is there, but broken
            raise
        message = "tensorflow is not installed: pip install tensorflow-cpu"
        raise Unavailable(message) from None
