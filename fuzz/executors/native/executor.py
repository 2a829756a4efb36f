"""The executor protocol over the native core."""

from __future__ import annotations

import platform
from dataclasses import dataclass, replace
from itertools import count as count_from
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from litmusfuzz.corpus.model import FEATURES
from litmusfuzz.corpus.outcome import Outcome
from litmusfuzz.fuzz.engines.settings import EngineSettings, UnknownEngine
from litmusfuzz.fuzz.executors.native import _executor
from litmusfuzz.fuzz.executors.native.gpus import Gpus
from litmusfuzz.fuzz.executors.native.lowering import lower
from litmusfuzz.fuzz.executors.native.outcomes import Rows
from litmusfuzz.fuzz.executors.native.pair import TWO_DEVICES, PairedTest, Peer, devices_for
from litmusfuzz.fuzz.executors.native.running import RunningEngine
from litmusfuzz.fuzz.executors.protocol import Config, Diverged, Noise, Refused, Unavailable
from litmusfuzz.fuzz.support import Support

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.executors.native.lowering import Program, Strictness
    from litmusfuzz.fuzz.executors.protocol import Choice, EventKey, Histogram, Prepared

_THREADS: Final = 2
# Popped at random a pool shows all outcomes of IRIW within thousands of copies;
# first in, first out it takes ten times as many.
_ENGINES: Final = (
    *((engine, _THREADS) for engine in ("pool", "fifo", "stealing", "gang", "tbb", "openmp")),
    ("inline", 1),
)
# Of the controlled engine, by the configuration's name. Depth 3: what three ordering
# constraints bring about, as most of what PCT's authors looked at.
_SCHEDULERS: Final = {
    "controlled": ("random", 0),
    "pct": ("pct", 3),
    "pos": ("pos", 0),
    "urw": ("urw", 0),
    "surw": ("surw", 0),
}


def engine_config(name: str, engine: str, threads: int, *, split_updates: bool) -> Config:
    """A way to run the executor.

    Parameters
    ----------
    name : str
        Of the configuration.
    engine : str
        As in `fuzz.engines.settings.EngineSettings`.
    threads : int
        Its limit.
    split_updates : bool
        Whether dense updates are in parts; the promise is then `rfc`.
    """
    settings = (("engine", engine), ("threads", threads), ("split_updates", split_updates))
    return Config(name, "rfc" if split_updates else "executor", settings)


def controlled_config(name: str, scheduler: str, depth: int = 0, *, split_updates: bool) -> Config:
    """A way to run the executor one event at a time.

    Parameters
    ----------
    name : str
        Of the configuration.
    scheduler : str
        What draws the next event: ``random``, ``pct``, ``pos``, ``urw``, ``surw``,
        or ``uniform``, which takes small tests without conditionals and loops
        only. See ``docs/engines.md``.
    depth : int
        Of ``pct``: 1 to 64.
    split_updates : bool
        Whether dense updates are in parts; the promise is then `rfc`.
    """
    made = engine_config(name, "controlled", 1, split_updates=split_updates)
    settings = (*made.settings, ("scheduler", scheduler))
    return replace(made, settings=(*settings, ("depth", depth)) if depth else settings)


def config_for(settings: EngineSettings) -> Config:
    """A way to run the executor, under the name that spells it out."""
    name, split = settings.name, settings.split
    if settings.engine == "controlled":
        scheduler = settings.scheduler or "random"
        return controlled_config(name, scheduler, settings.depth, split_updates=split)
    return engine_config(name, settings.engine, settings.threads, split_updates=split)


def on_devices(
    config: Config,
    name: str,
    *,
    processes: int = 1,
    devices: Sequence[str] = TWO_DEVICES,
    gpus: str = "",
) -> Config:
    """The same on several devices, for what has none, in one process or two.

    Nothing is promised of the iterations of a loop on several devices beyond
    what the model `rfc` says; so `config` promises that alone.

    Parameters
    ----------
    config : Config
        One that splits updates.
    name : str
        Of the new one.
    processes : int
    devices : sequence of str
    gpus : str
        ``real`` or ``emulated`` (`fuzz.executors.native.gpus`), where a device is one.
    """
    assert config.guarantees == "rfc", config.name
    settings = [*config.settings, ("devices", " ".join(devices))]
    if processes > 1:
        settings.append(("processes", processes))
    if gpus:
        settings.append(("gpus", gpus))
    return Config(name, "rfc", tuple(settings))


def _configurations() -> Iterator[Config]:
    for split in (False, True):
        for engine, threads in _ENGINES:
            name = "plain" if engine == "pool" else engine
            if split:
                name = "split" if engine == "pool" else f"{engine}_split"
            yield engine_config(name, engine, threads, split_updates=split)
        for name, (scheduler, depth) in _SCHEDULERS.items():
            full = f"{name}_split" if split else name
            yield controlled_config(full, scheduler, depth, split_updates=split)
    pool = engine_config("", "pool", _THREADS, split_updates=True)
    yield on_devices(pool, "two_devices")
    yield on_devices(pool, "two_processes", processes=2)
    yield on_devices(pool, "gpu", devices=WITH_GPU, gpus="real")
    yield on_devices(pool, "emulated_gpu", devices=WITH_GPU, gpus="emulated")


WITH_GPU: Final = ("cpu:0", "gpu:0")
"""The devices of the configurations that have a GPU."""
_CONFIGURATIONS: Final = tuple(_configurations())


MEASURES: Final = ("preemptions", "delays")
"""What `PreparedTest.search` can bound."""


@dataclass(frozen=True, slots=True)
class Searched:
    """What all executions within a bound show.

    Parameters
    ----------
    bound : int
        How many preemptions, or delays, each has at most.
    histogram : mapping of Outcome to int
    executions : int
    complete : bool
        Whether these are all within the bound.
    whole : bool
        Whether there are none beyond it, so that a higher bound shows the same.
    """

    bound: int
    histogram: Histogram
    executions: int
    complete: bool
    whole: bool


@dataclass(frozen=True, slots=True)
class Exhausted:
    """What the exhaustive scheduler found.

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
    support: ClassVar[Support] = Support(features=FEATURES - {"clusters"})

    @classmethod
    def configurations(cls) -> tuple[Config, ...]:
        """Each engine, with dense updates indivisible and (`split`) in parts.

        Plain is a pool of threads that takes what is ready at random; fifo one
        that takes it in turn; inline has one thread. Some do one event at a time:
        controlled each possible one with the same probability, pct, pos, urw and
        surw by the scheduler of that name (``docs/engines.md``). Those over a
        runtime that is missing (tbb, openmp) are unavailable. Two_devices and
        two_processes are split, and put what has no device on two in turn, each
        with a pool of its own. So do gpu, for the host and a GPU, and emulated_gpu,
        for the host and a thread that plays one.
        """
        return _CONFIGURATIONS

    @classmethod
    def configured(cls, name: str) -> Config:
        """Any engine with any number of threads: ``engine=NAME;threads=N;split``.

        Also any scheduler, of any depth: ``engine=controlled;scheduler=pct;depth=5``.

        Raises
        ------
        UnknownEngine
            In one line.
        """
        return config_for(EngineSettings.from_name(name))

    def check(self, config: Config) -> None:
        """Start the configuration's engine and end it; look for its devices.

        Raises
        ------
        Unavailable
            Saying what is missing.
        """
        check_engine(config)
        for device in devices_for(config):
            if lacking := Gpus.of(config).lacks(device):
                raise Unavailable(f"device {device} ({lacking})")

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
            For a test with clusters, or on a GPU that is not there; in two processes,
            for any GPU, and for a loop, conditional or section that would be in both.
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


def check_engine(config: Config) -> None:
    """Start the configuration's engine and end it.

    Raises
    ------
    Unavailable
        Saying what is missing.
    """
    settings = _engine_settings(config)
    if settings.engine != "controlled":
        RunningEngine(settings).close()


def _engine_settings(config: Config) -> EngineSettings:
    settings: dict[str, Any] = dict(config.settings)
    try:
        return EngineSettings(settings["engine"], settings["threads"], settings["split_updates"])
    except UnknownEngine as error:
        raise Unavailable(str(error)) from None


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
        For a test with clusters, or on a GPU that is not there.
    """

    module: ClassVar[Any] = _executor

    def __init__(
        self,
        test: LitmusTest,
        config: Config,
        strictness: Mapping[str, Strictness] | None = None,
    ) -> None:
        self._test = test
        self._settings = _engine_settings(config)
        settings: dict[str, Any] = dict(config.settings)
        self._scheduler: str = settings.get("scheduler", "random")
        self._depth: int = settings.get("depth", 0)
        self._engines: list[RunningEngine] = []
        self._threads: _executor.Threads | None = None
        self._noise = Noise()
        self._strictness = strictness
        self._devices = devices_for(config)
        self._gpus = Gpus.of(config)
        self._program = self.lowered(lanes=1)
        self._core = self.load(self._program)
        self._rows = Rows(test, test.observe)

    def load(self, program: Program) -> _executor.Program:
        """The lowered test, in the core."""
        return _executor.load(program, self._gpus.backends(program.device_names))

    def run(self, count: int, noise: Noise, seed: int) -> Histogram:
        """Execute the test `count` times, rounded up to a step of `noise.copies`.

        Of the noise, `steps` and `padding` say nothing here: nothing is built
        afresh, and threads that take what is ready at random need no padding. A
        controlled execution has no noise: no copies run side by side.

        Raises
        ------
        Refused
            Under ``uniform``, which does not take every test.
        """
        if self._settings.engine == "controlled":
            try:
                found = self._core.walk(self._scheduler, self._depth, count, seed)
            except ValueError as error:
                if self._scheduler != "uniform":
                    raise
                raise Refused(str(error)) from None  # it does not take every test
            return self._histogram(found)
        if self._threads is None or self._noise != noise:
            self._threads = None  # the last one's threads are unpinned before new ones are pinned
            self._engines = self._engines or [
                RunningEngine(self._settings, self.module) for _ in range(self._program.devices)
            ]
            self._threads = self._perturbed(noise)
            self._noise = noise
        rows, _, _ = self._threads.run(count, noise.shuffle, noise.transfer_delay_us_max, seed)
        return self._histogram(rows)

    def close(self) -> None:
        """End the engines' threads."""
        self._threads = None
        for engine in self._engines:
            engine.close()
        self._engines = []

    def lowered(self, lanes: int) -> Program:
        """The test as the core takes it, with so many lanes where it has none."""
        return lower(
            self._test,
            split_updates=self._settings.split,
            strictness=self._strictness,
            lanes=lanes,
            devices=self._devices,
            lacks=self._gpus.lacks,
        )

    def _perturbed(self, noise: Noise) -> _executor.Threads:
        core = self._core if noise.lanes == 1 else self.load(self.lowered(noise.lanes))
        engines = [engine.core for engine in self._engines]
        threads: _executor.Threads = self.module.Threads(core, engines, noise.copies)
        together = self._settings.threads if noise.together else 0
        if noise.disturbs:
            try:
                threads.perturb(
                    barrier=noise.barrier,
                    pinned=noise.pinned,
                    delay_us_max=noise.delay_us_max,
                    yield_percent=noise.yield_percent,
                    together=together,
                )
            except ValueError as error:
                raise Unavailable(str(error)) from None
        return threads

    def exhaust(self, limit: int) -> Exhausted:
        """All executions that differ in more than the order of independent events.

        Parameters
        ----------
        limit : int
            Executions to begin, at most.
        """
        rows, traces, executions, complete = self._core.exhaust(limit)
        return Exhausted(self._histogram(rows), traces, executions, complete)

    def search(self, measure: str, bound: int, limit: int) -> Searched:
        """All executions with few switches between chains of events.

        Parameters
        ----------
        measure : str
            Of `MEASURES`: switches away from a chain that could go on, or chains
            passed over in their fixed order.
        bound : int
            At most so many.
        limit : int
            Executions to begin, at most.

        References
        ----------
        ``fuzz/native/core/schedulers/bounded.h``.
        """
        rows, executions, complete, whole = self._core.search(measure, bound, limit)
        return Searched(bound, self._histogram(rows), executions, complete, whole)

    def widen(self, measure: str, limit: int) -> Iterator[Searched]:
        """`search` with bound 0, 1, 2, ..., up to the whole or an incomplete one."""
        for bound in count_from():
            found = self.search(measure, bound, limit)
            yield found
            if found.whole or not found.complete:
                return

    def record(self, seed: int) -> tuple[Outcome, list[Choice]]:
        """One controlled execution, with the choices that lead to it.

        They are made again at once.

        Raises
        ------
        Diverged
            If that leads elsewhere: the executor is not deterministic.
        """
        row, choices = self._core.record(self._scheduler, self._depth, seed)
        outcome = self._outcome(row)
        if self.replay(choices) != outcome:
            raise Diverged("the same choices led to another outcome")
        return outcome, choices

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

    def force(self, order: Sequence[EventKey], timeout_s: float = 60.0) -> Outcome:
        """The outcome of exactly that total order.

        Raises
        ------
        Diverged
            If an event cannot come where the order has it, or more can come
            when it ends.
        TimeoutError
            If that takes longer.
        """
        numbers = [self._core.event(*self._program.locate(e)) for e in order]
        row, made, late = self._core.force(numbers, timeout_s)
        if late:
            raise TimeoutError(f"after {made} of {len(order)} events {timeout_s:g} s were over")
        if row is None:
            where = (
                f"{_named(order[made])} cannot come now" if made < len(order) else "more can come"
            )
            raise Diverged(f"after {made} of {len(order)} events: {where}")
        return self._outcome(row)

    def _histogram(self, rows: Sequence[tuple[list[int], int]]) -> dict[Outcome, int]:
        ordered = sorted(rows, key=lambda each: (-each[1], each[0]))
        return {self._outcome(row): count for row, count in ordered}

    def _outcome(self, row: list[int]) -> Outcome:
        status, values = self._rows.read(row)
        return Outcome.of(self._test, values, status)


def _named(event: EventKey) -> str:
    """An event as an oracle writes it."""
    run = f"{event.run}." if event.run else ""
    return f"{event.access}({event.resource}) {run}{event.frame}{event.node}"
