"""The executor protocol over TensorFlow sessions."""

from __future__ import annotations

import importlib
import platform
import random
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np

from litmusfuzz.corpus.model import FEATURES
from litmusfuzz.fuzz.executors.messages import NO_CLUSTERS
from litmusfuzz.fuzz.executors.protocol import Noise, Refused, Unavailable
from litmusfuzz.fuzz.executors.tensorflow.clock import Clock
from litmusfuzz.fuzz.executors.tensorflow.configurations import CONFIGURATIONS, Settings
from litmusfuzz.fuzz.executors.tensorflow.histogram import HELD_UP, HistogramBuilder
from litmusfuzz.fuzz.executors.tensorflow.workers import Workers
from litmusfuzz.fuzz.passes.placement import place

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import ModuleType

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Outcome
    from litmusfuzz.fuzz.executors.protocol import Config, EventKey, Histogram
    from litmusfuzz.fuzz.executors.tensorflow.forced import Forcing
    from litmusfuzz.fuzz.executors.tensorflow.lowering import Built

# Compiling a cluster takes some 10 ms: on random graphs, 32 copies come to 700
# executions a second, 8 copies to 1,600.
_CLUSTERED_COPIES: Final = 8

# A session is spent when an execution blocks or closes a queue, and another takes some
# 100 ms to make: 3,072 executions of a test that always blocks would take half a minute.
_MOST_SPENT: Final = 16


class TensorFlowExecutor:
    """TensorFlow's graph executor on the CPU."""

    name: ClassVar[str] = "tf"
    features: ClassVar[frozenset[str]] = FEATURES - {"clusters"}

    def __init__(self) -> None:
        self._clock = Clock()
        self._workers: Workers | None = None

    def counters(self) -> Mapping[str, float]:
        """Seconds spent on building graphs and sessions, on running, on counting outcomes."""
        return {name: round(seconds, 3) for name, seconds in self._clock.seconds.items()}

    @classmethod
    def configurations(cls) -> tuple[Config, ...]:
        """All of `profiles`."""
        return CONFIGURATIONS

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
        settings = Settings.of(config)
        if settings.workers and self._workers is None:
            self._workers = Workers(settings.workers, settings.inter_op_threads)
        target = self._workers.target if settings.workers and self._workers else ""
        return PreparedTest(test, config, self._clock, target)


class PreparedTest:
    """A lowered test. Holds nothing between runs, and a session between forced orders.

    Parameters
    ----------
    test : LitmusTest
    config : Config
        Of `TensorFlowExecutor.configurations`.
    clock : Clock
    target : str
        As in `LiveSession`.
    """

    def __init__(self, test: LitmusTest, config: Config, clock: Clock, target: str = "") -> None:
        from litmusfuzz.fuzz.executors.tensorflow import lowering, regions, sections

        self._test = test
        self._clock = clock
        self._settings = Settings.of(config)
        for feature in sorted(test.features & self._settings.refuses):
            raise Refused(f"{feature} in configuration {config.name}")
        if self._settings.compiled == "region":
            test = regions.without_clusters(test)
        if self._settings.front_end == "critical_section":
            sections.check(test)
        if self._settings.workers and "loops" not in test.features:
            # A loop's iterations keep less order on several devices than on one.
            test = place(test, [f"cpu:{number}" for number in range(self._settings.workers)])
        self._template = lowering.lower(test)
        if self._settings.one_device and self._template.devices > 1:
            raise Refused(f"several devices in configuration {config.name}")
        if 0 < self._settings.workers < self._template.devices:
            most = self._settings.workers
            raise Refused(f"more than {most} devices in configuration {config.name}")
        self._target = target
        self._clustered = bool(self._settings.compiled)
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
        from litmusfuzz.fuzz.executors.tensorflow import session

        if self._clustered:
            copies = min(noise.copies, _CLUSTERED_COPIES)
            noise = replace(noise, copies=copies, steps=noise.steps * noise.copies // copies)
        rng = np.random.default_rng(seed)
        builder = HistogramBuilder(self._template.test)
        sequential, spent = True, 0
        while builder.count < count and spent < _MOST_SPENT:
            with self._clock.part("building_s"):
                built = self._build(noise, rng, sequential=sequential)
                live = session.LiveSession(
                    self._template, built, self._settings, noise.copies, self._target
                )
            with closing(live):
                for _ in range(noise.steps):
                    before = builder.count
                    with self._clock.part("running_s"):
                        values = live.step()
                    with self._clock.part("counting_s"):
                        builder.add(values)
                    if builder.count >= count or not live.usable:
                        break
                spent += not live.usable
                # Where most copies block, a row of them ends with its first.
                sequential = sequential and 2 * (builder.count - before) >= noise.copies
        if not builder.count:
            raise Refused(HELD_UP)
        with self._clock.part("counting_s"):
            return builder.histogram()

    def _build(self, noise: Noise, rng: np.random.Generator, *, sequential: bool) -> Built:
        """A graph of copies, as the profile's front end makes it."""
        from litmusfuzz.fuzz.executors.tensorflow import (
            functions,
            lowering,
            model_code,
            regions,
            sections,
        )

        traced = self._settings.front_end == "function"
        if traced:  # the order of creation is what is tested
            noise = replace(noise, shuffle=False)
        shared = self._settings.shared_handles
        built = lowering.build(
            self._template,
            noise,
            rng,
            share_handles=shared,
            sequential=sequential,
            front_end=self._settings.front_end,
        )
        if self._settings.model_code:
            built = model_code.surrounded(built, self._template.test, rng)
        if traced:
            return functions.as_function(built)
        if self._settings.front_end == "critical_section":
            return sections.as_written(built, self._test)
        if self._settings.workers:
            return lowering.on_workers(built)
        if self._settings.compiled == "region":
            clustered = regions.with_regions(self._test, random.Random(int(rng.integers(1 << 32))))
            return functions.as_compiled(built, clustered)
        return built

    def clusters(self) -> Mapping[str, Sequence[str]]:
        """Of one copy, without noise, built and run once."""
        from litmusfuzz.fuzz.executors.tensorflow import clusters, lowering, session

        test = self._template.test
        if self._settings.compiled != "clusters":
            raise Refused(NO_CLUSTERS)
        for feature in sorted(test.features):
            raise Refused(feature)  # of which it has no clusters to tell
        quiet = Noise(copies=1, shuffle=False, padding=0)
        built = lowering.build(self._template, quiet, np.random.default_rng(0), share_handles=True)
        with clusters.dumping() as folder:
            made = session.LiveSession(self._template, built, self._settings, quiet.copies)
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
        from litmusfuzz.fuzz.executors.tensorflow.forced import Forcing

        if not self._settings.may_wait:
            raise Refused(f"forced orders in configuration {self._name}")
        if self._forcing is None:
            self._forcing = Forcing(self._template.test, self._settings)
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
