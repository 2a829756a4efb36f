"""Runs a pack: several small tests in few sessions.

Making a session and three callables (`session`) costs more than 16 executions of a test in one
copy. In a pack several tests share the session, the call that initializes, and the call that reads
the variables at the end. The race of each test remains a call of its own, one after the other: so
the tests do not race with each other, and each shows as many outcomes as it does alone. (As one
call for all races, and without threads that begin anew for each, they showed 1.5 outcomes in 16
executions instead of 2.1.)

The race of a test executes the graph that it has alone, with the same noise from the same seed, up
to a prefix of all names and to what the graph says to XLA. That holds where nothing rewrites the
graph: rewriting, or a cluster of XLA's, could span the initialization of two tests.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import tensorflow as tf

from litmusfuzz.fuzz.executors.tensorflow import lowering
from litmusfuzz.fuzz.executors.tensorflow.histogram import Batch, HistogramBuilder
from litmusfuzz.fuzz.executors.tensorflow.session import callable_of, load
from litmusfuzz.fuzz.executors.tensorflow.session_options import run_options, session_config

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.executors.protocol import Histogram, Noise
    from litmusfuzz.fuzz.executors.tensorflow.clock import Clock
    from litmusfuzz.fuzz.executors.tensorflow.configurations import Settings
    from litmusfuzz.fuzz.executors.tensorflow.lowering import Shown, Template

_SHARING: Final = 8
"""Tests that share a session, at most: each call copies the graph of all of them, so that with
sixteen it takes a tenth longer, and with four each pays for more of the session."""
_KEPT_BYTES: Final = 1 << 24
"""Bytes of values that wait to be counted, at most; those of small tests fit a core's cache."""


class PackedTests:
    """Lowered tests, each of one run that can neither block nor fail, on one device.

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
        with clock.part("building_s"):
            self._templates = [lowering.lower(test) for test in tests]
        self._settings = settings
        self._clock = clock

    def run(self, count: int, noise: Noise, seeds: Sequence[int]) -> list[Histogram]:
        """Execute each test `count` times, rounded up to a step of `noise.copies`.

        No op of these tests may fail. If one does, an exception of TensorFlow's ends the run.
        """
        found: list[Histogram] = []
        for start in range(0, len(self._tests), _SHARING):
            part = slice(start, start + _SHARING)
            found += self._run_part(part, count, noise, seeds[part])
        return found

    def _run_part(
        self, part: slice, count: int, noise: Noise, seeds: Sequence[int]
    ) -> list[Histogram]:
        """Execute some of the tests, in sessions that they share."""
        rngs = [np.random.default_rng(seed) for seed in seeds]
        builders = [HistogramBuilder(test) for test in self._tests[part]]
        while builders[0].count < count:
            with self._clock.part("building_s"):
                live = PackedSession(self._templates[part], self._settings, noise, rngs)
            left = -(-(count - builders[0].count) // noise.copies)
            with closing(live):
                parts = live.steps(min(noise.steps, left))
                while True:
                    with self._clock.part("running_s"):
                        batches = next(parts, None)
                    if batches is None:
                        break
                    with self._clock.part("counting_s"):
                        for builder, batch in zip(builders, batches, strict=True):
                            builder.add(batch)
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

    def steps(self, number: int) -> Iterator[list[Batch]]:
        """Execute each copy of each test so often; the values of each test, of many steps at once.

        What a step fetches is copied as it is, and sorted out later: it may share memory with
        TensorFlow, and to sort out the values of each step would take as long as to execute it.

        Raises
        ------
        tensorflow.errors.OpError
            If an op fails.
        """
        kept: list[npt.NDArray[Any]] = []
        filled = 0
        for left in reversed(range(number)):
            fetched = self._step()
            if not kept:
                size = sum(array.nbytes for array in fetched)
                rows = min(left + 1, max(1, _KEPT_BYTES // size)) if size else left + 1
                kept = [np.empty((rows, *array.shape), array.dtype) for array in fetched]
            for place, array in zip(kept, fetched, strict=True):
                place[filled] = array
            filled += 1
            if filled == rows or not left:
                yield self._batches([array[:filled] for array in kept])
                filled = 0

    def _step(self) -> list[npt.NDArray[Any]]:
        """Execute each copy of each test once: what the tests observe, and then their variables."""
        self._initialize()
        fetched = [array for race in self._races for array in race()]
        fetched += self._read()
        return fetched

    def _batches(self, kept: Sequence[npt.NDArray[Any]]) -> list[Batch]:
        """The values of each test in several steps.

        Parameters
        ----------
        kept : sequence of (steps, n * copies, *shape) array
            In each step, n values in all copies.
        """
        arrays = iter(kept)
        values: list[dict[str, npt.NDArray[Any]]] = []
        for built in self._built:
            values.append({})
            self._unstack(built.units[0].observed, arrays, values[-1])
        for built, of in zip(self._built, values, strict=True):
            self._unstack(built.final, arrays, of)
        return [Batch(each) for each in values]

    def _unstack(
        self,
        shown: Sequence[Shown],
        arrays: Iterator[npt.NDArray[Any]],
        values: dict[str, npt.NDArray[Any]],
    ) -> None:
        for each in shown:
            array = next(arrays)
            for position, name in enumerate(each.names):
                part = array[:, position * self._copies : (position + 1) * self._copies]
                values[name] = part.reshape(-1, *array.shape[2:])

    def close(self) -> None:
        """Release graph and threads."""
        del self._initialize, self._races, self._read
        self.session.close()
