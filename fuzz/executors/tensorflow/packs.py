"""Runs a pack: several small tests in one session.

Making a session and three callables (`session`) costs more than 16 executions of a test in one
copy. In a pack all tests share the session, the call that initializes, and the call that reads the
variables at the end. The race of each test remains a call of its own, one after the other: so the
tests do not race with each other, and each shows as many outcomes as it does alone. (As one call
for all races, and without threads that begin anew for each, they showed 1.5 outcomes in
16 executions instead of 2.1.)

The race of a test executes the graph that it has alone, with the same noise from the same seed, up
to a prefix of all names. That holds where nothing rewrites the graph: rewriting, or a cluster of
XLA's, could span the initialization of two tests.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from litmusfuzz.fuzz.executors.tensorflow import lowering
from litmusfuzz.fuzz.executors.tensorflow.histogram import Batch, HistogramBuilder
from litmusfuzz.fuzz.executors.tensorflow.session import callable_of, load
from litmusfuzz.fuzz.executors.tensorflow.session_options import run_options, session_config

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.executors.protocol import Histogram, Noise
    from litmusfuzz.fuzz.executors.tensorflow.clock import Clock
    from litmusfuzz.fuzz.executors.tensorflow.configurations import Settings
    from litmusfuzz.fuzz.executors.tensorflow.lowering import Shown, Template


class PackedTests:
    """Lowered tests, each of one run that cannot block, on one device.

    Parameters
    ----------
    tests : sequence of LitmusTest
    settings : Settings
    clock : Clock

    Raises
    ------
    Refused
        If one cannot be lowered.
    """

    def __init__(self, tests: Sequence[LitmusTest], settings: Settings, clock: Clock) -> None:
        self._tests = tests
        self._templates = [lowering.lower(test) for test in tests]
        self._settings = settings
        self._clock = clock

    def run(self, count: int, noise: Noise, seeds: Sequence[int]) -> list[Histogram]:
        """Execute each test `count` times, rounded up to a step of `noise.copies`.

        An op that fails raises an exception of `tensorflow.errors`, which ends the run.
        """
        rngs = [np.random.default_rng(seed) for seed in seeds]
        builders = [HistogramBuilder(test) for test in self._tests]
        while builders[0].count < count:
            with self._clock.part("building_s"):
                live = PackedSession(self._templates, self._settings, noise, rngs)
            with closing(live):
                for _ in range(noise.steps):
                    with self._clock.part("running_s"):
                        batches = live.step()
                    with self._clock.part("counting_s"):
                        for builder, batch in zip(builders, batches, strict=True):
                            builder.add(batch)
                    if builders[0].count >= count:
                        break
        with self._clock.part("counting_s"):
            return [builder.histogram() for builder in builders]


class PackedSession:
    """A session over a pack; it owns threads until it is closed.

    Parameters
    ----------
    templates : sequence of Template
    settings : Settings
    noise : Noise
    rngs : sequence of numpy.random.Generator
        For each test, the source of the random choices of its graph.
    """

    def __init__(
        self,
        templates: Sequence[Template],
        settings: Settings,
        noise: Noise,
        rngs: Sequence[np.random.Generator],
    ) -> None:
        self._copies = noise.copies
        self._built = lowering.pack(templates, noise, rngs)
        graph = load(self._built[0].graph_def)
        self.session = tf.compat.v1.Session(graph=graph, config=session_config(settings))
        initial = map(lowering.initial_target, range(len(self._built)))
        self._initialize = callable_of(self.session, (), *initial)
        self._races = []
        for built in self._built:
            (unit,) = built.units
            fetches = (shown.tensor for shown in unit.observed)
            options = run_options(settings)
            self._races.append(callable_of(self.session, fetches, unit.target, options=options))
        final = (shown.tensor for built in self._built for shown in built.final)
        self._read = callable_of(self.session, final)

    def step(self) -> list[Batch]:
        """Execute each copy of each test once; the values of each test.

        Raises
        ------
        tensorflow.errors.OpError
            If an op fails.
        """
        self._initialize()
        observed = [race() for race in self._races]
        final = iter(self._read())
        batches = []
        for built, arrays in zip(self._built, observed, strict=True):
            values: dict[str, npt.NDArray[Any]] = {}
            self._unstack(built.units[0].observed, arrays, values)
            self._unstack(built.final, [next(final) for _ in built.final], values)
            batches.append(Batch(values))
        return batches

    def _unstack(
        self,
        shown: Sequence[Shown],
        arrays: Sequence[npt.NDArray[Any]],
        values: dict[str, npt.NDArray[Any]],
    ) -> None:
        for each, array in zip(shown, arrays, strict=True):
            for position, name in enumerate(each.names):
                values[name] = array[position * self._copies : (position + 1) * self._copies]

    def close(self) -> None:
        """Release graph and threads."""
        del self._initialize, self._races, self._read
        self.session.close()
