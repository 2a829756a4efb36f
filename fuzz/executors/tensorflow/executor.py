"""The executor protocol over TensorFlow sessions."""

from __future__ import annotations

import importlib
import platform
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from corpus.graph import FEATURES
from fuzz.executors.protocol import Config, Noise, Refused, Unavailable
from fuzz.executors.tensorflow.clock import Clock
from fuzz.executors.tensorflow.tally import Tally
from fuzz.executors.wire import NO_CLUSTERS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import ModuleType

    from corpus.graph import LitmusTest
    from corpus.outcome import Outcome
    from fuzz.executors.protocol import EventKey, Histogram
    from fuzz.executors.tensorflow.forced import Forcing

# Four threads: with two, the second is mostly asleep when a racing op is ready,
# and two scatters of 16 lanes tear in 1 session of 10 instead of in each; with
# eight nothing is gained.
_PLAIN: Final = (("inter_op_threads", 4), ("executor_type", ""), ("grappler", False))

# Read when TensorFlow is imported, or first used.
_XLA_FLAGS: Final = (
    "--tf_xla_cpu_global_jit",
    "--tf_xla_min_cluster_size=1",
    # Else the first executions may run a cluster's ops one by one.
    "--tf_xla_enable_lazy_compilation=false",
    "--tf_xla_clustering_debug",  # for `clusters.read`
)


# Compiling a cluster takes some 10 ms: on random graphs, 32 copies come to 700
# executions a second, 8 copies to 1,600.
_CLUSTERED_COPIES: Final = 8

# A session is spent when an execution blocks or closes a queue, and another takes some
# 100 ms to make: 3,072 executions of a test that always blocks would take half a minute.
_MOST_SPENT: Final = 16


def clustering(name: str, *flags: str) -> Config:
    """A configuration in which XLA compiles clusters, with further flags for it."""
    environment = (
        ("TF_XLA_FLAGS", " ".join((*_XLA_FLAGS, *flags))),
        ("TF_CPP_VMODULE", "xla_compiler=2"),  # for `clusters.read`
    )
    return Config(name, "rfc", (*_PLAIN, ("clusters", True)), environment)


# A queue that is cancelled writes a line for each op that waits at it.
_QUIET: Final = (("TF_CPP_MIN_LOG_LEVEL", "2"),)

_CONFIGURATIONS: Final = (
    Config("plain", "executor", _PLAIN, _QUIET),
    Config("grappler", "executor", (*_PLAIN[:2], ("grappler", True)), _QUIET),
    Config(
        "single_threaded",
        "executor",
        (_PLAIN[0], ("executor_type", "SINGLE_THREADED_EXECUTOR"), _PLAIN[2]),
        _QUIET,
    ),
    clustering("autocluster"),
)


class TensorFlowExecutor:
    """TensorFlow's graph executor on the CPU."""

    name: ClassVar[str] = "tf"
    features: ClassVar[frozenset[str]] = FEATURES - {"clusters"}

    def __init__(self) -> None:
        self._clock = Clock()

    def counters(self) -> Mapping[str, float]:
        """Seconds spent on building graphs and sessions, on running, on counting outcomes."""
        return {name: round(seconds, 3) for name, seconds in self._clock.seconds.items()}

    @classmethod
    def configurations(cls) -> tuple[Config, ...]:
        """Exactly the test; rewritten; on one thread; in clusters that TensorFlow chooses."""
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
        return PreparedTest(test, config, self._clock)


class PreparedTest:
    """A lowered test. Holds nothing between runs, and a session between forced orders.

    Parameters
    ----------
    test : LitmusTest
    config : Config
        Of `TensorFlowExecutor.configurations`.
    clock : Clock
    """

    def __init__(self, test: LitmusTest, config: Config, clock: Clock) -> None:
        from fuzz.executors.tensorflow import lowering, session

        settings: dict[str, Any] = dict(config.settings)
        self._clock = clock
        self._template = lowering.lower(test)
        self._config = session.session_config(**settings)
        self._clustered = bool(settings.get("clusters"))
        # The single-threaded executor has no other thread to go on when an op waits.
        self._may_wait = not (self._clustered or settings.get("executor_type"))
        self._name = config.name
        self._forcing: Forcing | None = None

    def run(self, count: int, noise: Noise, seed: int) -> Histogram:
        """Execute the test `count` times, rounded up to a step of `noise.copies`.

        Of the noise, `copies`, `steps`, `shuffle` and `padding` say something here:
        the threads, and what they do between ops, are TensorFlow's own. With clusters
        a graph has fewer copies, and more steps: each copy's clusters are compiled. Of a
        test that blocks, or closes a queue, there are fewer executions than `count` if
        that takes more than some sessions.

        TensorFlow reports an op that fails as an exception of
        `tensorflow.errors`, which ends the run.
        """
        from fuzz.executors.tensorflow import lowering, session

        if self._clustered:
            copies = min(noise.copies, _CLUSTERED_COPIES)
            noise = replace(noise, copies=copies, steps=noise.steps * noise.copies // copies)
        rng = np.random.default_rng(seed)
        tally = Tally(self._template.test)
        in_a_row, spent = True, 0
        while tally.count < count and spent < _MOST_SPENT:
            with self._clock.part("building_s"):
                built = lowering.build(
                    self._template, noise, rng, share_handles=self._clustered, in_a_row=in_a_row
                )
                live = session.LiveSession(self._template, built, self._config, noise.copies)
            with closing(live):
                for _ in range(noise.steps):
                    before = tally.count
                    with self._clock.part("running_s"):
                        values = live.step()
                    with self._clock.part("counting_s"):
                        tally.add(values)
                    if tally.count >= count or not live.usable:
                        break
                spent += not live.usable
                # Where most copies block, a row of them ends with its first.
                in_a_row = in_a_row and 2 * (tally.count - before) >= noise.copies
        with self._clock.part("counting_s"):
            return tally.histogram()

    def clusters(self) -> Mapping[str, Sequence[str]]:
        """Of one copy, without noise, built and run once."""
        from fuzz.executors.tensorflow import clusters, lowering, session

        test = self._template.test
        if not self._clustered:
            raise Refused(NO_CLUSTERS)
        for feature in sorted(test.features):
            raise Refused(feature)  # of which it has no clusters to tell
        quiet = Noise(copies=1, shuffle=False, padding=0)
        built = lowering.build(self._template, quiet, np.random.default_rng(0), share_handles=True)
        with clusters.dumping() as folder:
            made = session.LiveSession(self._template, built, self._config, quiet.copies)
            with closing(made) as live:
                live.step()
            return clusters.read(test, folder)

    def force(self, order: Sequence[EventKey], timeout_s: float) -> Outcome:
        """The outcome of exactly that total order, by gates; see `forced`.

        Raises
        ------
        Diverged
            If TensorFlow does not follow it.
        TimeoutError
            If that takes longer.
        Refused
            With clusters or the single-threaded executor, or of too many op instances.
        """
        from fuzz.executors.tensorflow.forced import Forcing

        if not self._may_wait:
            raise Refused(f"forced orders in configuration {self._name}")
        if self._forcing is None:
            self._forcing = Forcing(self._template.test, self._config)
        return self._forcing.force(order, timeout_s)

    def close(self) -> None:
        """Each run releases its sessions; what forces orders has one."""
        if self._forcing is not None:
            self._forcing.close()
            self._forcing = None


def _import_tensorflow() -> ModuleType:
    try:
        return importlib.import_module("tensorflow")
    except ModuleNotFoundError as error:
        if error.name != "tensorflow":  # TensorFlow is there, but broken
            raise
        message = "tensorflow is not installed: pip install tensorflow-cpu"
        raise Unavailable(message) from None
