"""The executor protocol over the native core."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from corpus.outcome import Outcome
from fuzz.executors.native import _executor
from fuzz.executors.native.lowering import lower
from fuzz.executors.native.outcomes import Rows
from fuzz.executors.native.pair import TWO_DEVICES, PairedTest, Peer, devices_for
from fuzz.executors.protocol import Config

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from corpus.graph import LitmusTest
    from fuzz.executors.native.lowering import EventKey, Strictness
    from fuzz.executors.protocol import Histogram, Noise, Prepared

Choice = tuple[int, int, int]
"""Of a controlled execution: index of the event chosen, how many could have come
next, and a digest of which."""

_THREADS: Final = 2
# Popped at random a pool shows all outcomes of IRIW within thousands of copies;
# first in, first out it takes ten times as many.
_ENGINES: Final = (("pool", _THREADS), ("fifo", _THREADS), ("inline", 1), ("controlled", 1))


def engine_config(name: str, engine: str, threads: int, *, split_updates: bool) -> Config:
    """A way to run the executor.

    Parameters
    ----------
    name : str
        Of the configuration.
    engine : str
        A built-in one, or the path of a shared library, with a slash (see
        ``fuzz/native/include/litmusfuzz/engine.h``).
    threads : int
        Its limit.
    split_updates : bool
        Whether dense updates are in parts; the promise is then `rfc`.
    """
    settings = (("engine", engine), ("threads", threads), ("split_updates", split_updates))
    return Config(name, "rfc" if split_updates else "executor", settings)


def on_devices(config: Config, name: str, *, processes: int = 1) -> Config:
    """The same on two devices, for what has none, in one process or two.

    Nothing is promised of the iterations of a loop on several devices beyond
    what the model `rfc` says; so `config` promises that alone.
    """
    assert config.promises == "rfc", config.name
    placed = (*config.settings, ("devices", " ".join(TWO_DEVICES)))
    return Config(name, "rfc", (*placed, ("processes", 2)) if processes > 1 else placed)


def _configurations() -> Iterator[Config]:
    for split in (False, True):
        for engine, threads in _ENGINES:
            name = "plain" if engine == "pool" else engine
            if split:
                name = "split" if engine == "pool" else f"{engine}_split"
            yield engine_config(name, engine, threads, split_updates=split)
    pool = engine_config("", "pool", _THREADS, split_updates=True)
    yield on_devices(pool, "two_devices")
    yield on_devices(pool, "two_processes", processes=2)


_CONFIGURATIONS: Final = tuple(_configurations())


class Diverged(ValueError):
    """A record or total order that the executor cannot follow; says how far it came."""


@dataclass(frozen=True, slots=True)
class Exhausted:
    """What the exhaustive strategy found.

    Parameters
    ----------
    histogram : mapping of Outcome to int
        In how many traces each outcome shows.
    traces : int
        Executions that differ in more than the order of independent events.
    executions : int
        How many were begun for that.
    complete : bool
        Whether these are all.
    """

    histogram: Histogram
    traces: int
    executions: int
    complete: bool


class NativeExecutor:
    """A dataflow executor of our own, with threads outside the GIL."""

    name: ClassVar[str] = "native"

    @classmethod
    def configurations(cls) -> tuple[Config, ...]:
        """Each engine, with dense updates indivisible and (`split`) in parts.

        Plain is a pool of threads that takes what is ready at random; fifo one
        that takes it in turn; inline and controlled have one thread, controlled
        does one event at a time, each possible one with the same probability.
        Two_devices and two_processes are split, and put what has no device on
        two in turn, each with a pool of its own.
        """
        return _CONFIGURATIONS

    @classmethod
    def versions(cls) -> Mapping[str, str]:
        """Of NumPy and Python; the executor itself goes with this package."""
        return {"numpy": np.__version__, "python": platform.python_version()}

    def __init__(self) -> None:
        self.peer: Peer | None = None
        """The second process, once a test has needed one; kept for the next."""

    def prepare(self, test: LitmusTest, config: Config) -> Prepared:
        """Lower and load the test.

        Raises
        ------
        Refused
            For a test with clusters; in two processes, for a loop, conditional
            or section that would be in both.
        """
        if not dict(config.settings).get("processes"):
            return PreparedTest(test, config)
        if self.peer is None or not self.peer.alive:
            self.peer = Peer()
        return PairedTest(test, config, self.peer)

    def close(self) -> None:
        """End the second process, if there is one."""
        if self.peer is not None:
            self.peer.close()
            self.peer = None


class PreparedTest:
    """A loaded test.

    Parameters
    ----------
    test : LitmusTest
    config : Config
        Of `NativeExecutor.configurations`.
    strictness : mapping, optional
        By name of a loop or conditional.

    Raises
    ------
    Refused
        For a test with clusters.
    """

    def __init__(
        self,
        test: LitmusTest,
        config: Config,
        strictness: Mapping[str, Strictness] | None = None,
    ) -> None:
        settings: dict[str, Any] = dict(config.settings)
        self._test = test
        self._engine: str = settings["engine"]
        self._thread_count: int = settings["threads"]
        self._threads: _executor.Threads | None = None
        self._copies = 0
        self._program = lower(
            test,
            split_updates=settings["split_updates"],
            strictness=strictness,
            devices=devices_for(config),
        )
        self._core = _executor.load(self._program)
        self._rows = Rows(test, test.observe)

    def run(self, count: int, noise: Noise, seed: int) -> Histogram:
        """Execute the test `count` times, rounded up to a step of `noise.copies`.

        Of the noise, `copies`, `shuffle` and `transfer_delay_us_max` say
        something here: nothing is built afresh, and threads that take what is
        ready at random need no padding. Of a controlled execution no copies run side by side.
        """
        if self._engine == "controlled":
            return self._histogram(self._core.walk(count, seed))
        if self._threads is None or self._copies != noise.copies:
            self._threads = _executor.Threads(
                self._core, self._engine, self._thread_count, noise.copies
            )
            self._copies = noise.copies
        rows, _, _ = self._threads.run(count, noise.shuffle, noise.transfer_delay_us_max, seed)
        return self._histogram(rows)

    def close(self) -> None:
        """End the engine's threads."""
        self._threads = None

    def exhaust(self, limit: int) -> Exhausted:
        """All executions that differ in more than the order of independent events.

        Parameters
        ----------
        limit : int
            Executions to begin, at most.
        """
        rows, traces, executions, complete = self._core.exhaust(limit)
        return Exhausted(self._histogram(rows), traces, executions, complete)

    def record(self, seed: int) -> tuple[Outcome, list[Choice]]:
        """One controlled execution, with the choices that lead to it."""
        row, choices = self._core.record(seed)
        return self._outcome(row), choices

    def replay(self, choices: Sequence[Choice]) -> Outcome:
        """The execution that those choices lead to.

        Raises
        ------
        Diverged
            If other events could come next than when they were recorded.
        """
        row, made = self._core.replay(list(choices))
        if row is None:
            raise Diverged(f"after {made} of {len(choices)} choices other events may come next")
        return self._outcome(row)

    def force(self, order: Sequence[EventKey]) -> Outcome:
        """The outcome of exactly that total order.

        Raises
        ------
        Diverged
            If an event cannot come where the order has it, or more can come
            when it ends.
        """
        row, made = self._core.force([self._core.event(*self._program.locate(e)) for e in order])
        if row is None:
            where = f"{order[made]} cannot come now" if made < len(order) else "more can come"
            raise Diverged(f"after {made} of {len(order)} events: {where}")
        return self._outcome(row)

    def _histogram(self, rows: Sequence[tuple[list[int], int]]) -> dict[Outcome, int]:
        ordered = sorted(rows, key=lambda each: (-each[1], each[0]))
        return {self._outcome(row): count for row, count in ordered}

    def _outcome(self, row: list[int]) -> Outcome:
        status, values = self._rows.read(row)
        return Outcome.of(self._test, values, status)
