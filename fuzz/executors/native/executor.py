"""The native executor: the executor protocol on top of the C++ core."""

from __future__ import annotations

import platform
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from itertools import count as count_from
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from litmusfuzz.corpus.model import FEATURES
from litmusfuzz.corpus.ops import DEFINED_OPS, OPS
from litmusfuzz.corpus.outcome import Outcome
from litmusfuzz.corpus.shapes import copies_of
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.engines.settings import (
    MAX_DEPTH,
    MAX_THREADS,
    SCHEDULERS,
    EngineSettings,
    UnknownEngine,
)
from litmusfuzz.fuzz.executors.native import _executor
from litmusfuzz.fuzz.executors.native.accelerators import (
    GATED,
    IN_ORDER,
    OPENCL_SETTINGS,
    Accelerators,
    OpenCl,
)
from litmusfuzz.fuzz.executors.native.lowering import lower
from litmusfuzz.fuzz.executors.native.outcomes import Rows
from litmusfuzz.fuzz.executors.native.running_engine import RunningEngine
from litmusfuzz.fuzz.executors.native.two_processes import (
    TWO_DEVICES,
    Peer,
    TwoProcessTest,
    devices_for,
)
from litmusfuzz.fuzz.executors.protocol import (
    Config,
    Diverged,
    ForkAfter,
    Noise,
    Refused,
    TooLarge,
    Unavailable,
)
from litmusfuzz.fuzz.executors.setting_types import Flag, Number, OneOf, Text
from litmusfuzz.fuzz.support import Support

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.executors.native.lowering import Program, Strictness
    from litmusfuzz.fuzz.executors.protocol import Choice, EventKey, Histogram, Prepared
    from litmusfuzz.fuzz.executors.setting_types import SettingType

_THREADS: Final = 2
# `pool` pops at random and shows all outcomes of IRIW within thousands of copies;
# `fifo` needs ten times as many.
_ENGINES: Final = (
    *((engine, _THREADS) for engine in ("pool", "fifo", "stealing", "gang", "tbb", "openmp")),
    ("inline", 1),
)
# Scheduler and depth of each controlled configuration. Depth 3 covers outcomes that need
# three ordering constraints, like most defects studied by PCT's authors.
_SCHEDULERS: Final = {
    "controlled": ("random", 0),
    "pct": ("pct", 3),
    "pos": ("pos", 0),
    "urw": ("urw", 0),
    "surw": ("surw", 0),
}


def engine_config(name: str, engine: str, threads: int, *, split_updates: bool) -> Config:
    """Return a configuration of the executor with an engine.

    Parameters
    ----------
    name : str
        Name of the configuration.
    engine : str
        As in `fuzz.engines.settings.EngineSettings`.
    threads : int
        The engine's limit on threads.
    split_updates : bool
        Split dense updates into reads and writes; the configuration then guarantees `rfc`.
    """
    settings = (("engine", engine), ("threads", threads), ("split_updates", split_updates))
    return Config(name, "rfc" if split_updates else "executor", settings)


def controlled_config(name: str, scheduler: str, depth: int = 0, *, split_updates: bool) -> Config:
    """Return a configuration with the controlled engine: one event at a time.

    Parameters
    ----------
    name : str
        Name of the configuration.
    scheduler : str
        Rule that chooses the next event: ``random``, ``pct``, ``pos``, ``urw``, ``surw``,
        or ``uniform``, which only takes small tests without conditionals and loops. See
        ``docs/engines.md``.
    depth : int
        Depth of ``pct``, 1 to 64.
    split_updates : bool
        Split dense updates into reads and writes; the configuration then guarantees `rfc`.
    """
    made = engine_config(name, "controlled", 1, split_updates=split_updates)
    settings = (*made.settings, ("scheduler", scheduler))
    return replace(made, settings=(*settings, ("depth", depth)) if depth else settings)


def config_for(settings: EngineSettings) -> Config:
    """Return the configuration with those engine settings, named after them."""
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
    opencl: OpenCl = IN_ORDER,
) -> Config:
    """Return a configuration that places tests on several devices.

    For loops on several devices the executor guarantees only the model `rfc`, so
    `config` must guarantee `rfc`.

    Parameters
    ----------
    config : Config
        A configuration that splits updates.
    name : str
        Name of the new configuration.
    processes : int
    devices : sequence of str
        Devices for resources and nodes without one.
    gpus : str
        ``real`` or ``emulated`` (`fuzz.executors.native.accelerators`), if a device is a GPU.
    opencl : OpenCl
        How OpenCL devices are used.
    """
    assert config.guarantees == "rfc", config.name
    settings = [*config.settings, ("devices", " ".join(devices))]
    if processes > 1:
        settings.append(("processes", processes))
    if gpus:
        settings.append(("gpus", gpus))
    settings += opencl.settings
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
    yield on_devices(pool, "opencl", devices=WITH_OPENCL[1:])
    yield on_devices(pool, "cpu_and_opencl", devices=WITH_OPENCL)
    yield on_devices(pool, "two_opencl", devices=TWO_OPENCL, opencl=OpenCl(sub_devices=2))
    out_of_order = OpenCl(queues=2, out_of_order=True)
    yield on_devices(pool, "opencl_out_of_order", devices=WITH_OPENCL, opencl=out_of_order)
    yield on_devices(pool, "opencl_gated", devices=WITH_OPENCL, opencl=GATED)


WITH_GPU: Final = ("cpu:0", "gpu:0")
"""The devices of the configurations that have a GPU."""
WITH_OPENCL: Final = ("cpu:0", "opencl:0")
TWO_OPENCL: Final = ("opencl:0", "opencl:1")
_CONFIGURATIONS: Final = tuple(_configurations())


_DEVICE: Final = "(cpu|gpu|opencl):[0-9]{1,3}"
SETTING_TYPES: Final[Mapping[str, SettingType]] = MappingProxyType(
    {
        "engine": Text("[^;,]+", "the name of an engine, without ';' and ','"),
        "threads": Number(1, MAX_THREADS),
        "split_updates": Flag(),
        "scheduler": OneOf(SCHEDULERS),
        "depth": Number(1, MAX_DEPTH),
        "devices": Text(f"{_DEVICE}( {_DEVICE}){{0,7}}", "devices, as cpu:0"),
        "processes": Number(2, 2),
        "gpus": OneOf(("real", "emulated")),
        **OPENCL_SETTINGS,
    }
)
"""The values that each setting of a configuration may have."""

MEASURES: Final = ("preemptions", "delays")
"""Quantities that `PreparedTest.search` can bound."""


@dataclass(frozen=True, slots=True)
class Searched:
    """Outcomes of all executions within a bound.

    Parameters
    ----------
    bound : int
        Largest number of preemptions, or delays, of an execution.
    histogram : mapping of Outcome to int
    executions : int
    complete : bool
        True if all executions within the bound were visited.
    whole : bool
        True if no execution exceeds the bound, so that a higher bound adds nothing.
    """

    bound: int
    histogram: Histogram
    executions: int
    complete: bool
    whole: bool


@dataclass(frozen=True, slots=True)
class Exhausted:
    """Result of the exhaustive scheduler.

    Parameters
    ----------
    histogram : mapping of Outcome to int
        Number of traces with each outcome.
    traces : int
        Executions that differ in more than the order of independent events.
    executions : int
        Executions begun.
    complete : bool
        True if all traces within the bound were visited.
    whole : bool
        True if, moreover, no trace is beyond the bound.
    """

    histogram: Histogram
    traces: int
    executions: int
    complete: bool
    whole: bool


class NativeExecutor:
    """LitmusFuzz's own dataflow runtime, whose threads run without the GIL."""

    name: ClassVar[str] = "native"
    module: ClassVar[Any] = _executor
    """The C++ core."""
    device_defect: ClassVar[str] = ""
    """Defect of the devices of a mutant."""
    support: ClassVar[Support] = Support(
        ops=frozenset(OPS) - DEFINED_OPS,
        features=FEATURES - {"clusters", "computed indices", "gradients"},
    )
    fork_after: ClassVar[ForkAfter] = ForkAfter(("litmusfuzz.fuzz.executors.native.executor",))
    setting_types: ClassVar[Mapping[str, SettingType]] = SETTING_TYPES

    @classmethod
    def configurations(cls) -> tuple[Config, ...]:
        """Return the configurations: each engine, with indivisible and split dense updates.

        ``plain`` is a thread pool that runs ready closures in random order, ``fifo`` a
        pool that runs them in order; ``inline`` has one thread. The controlled
        configurations run one event at a time: ``controlled`` chooses each enabled event
        with equal probability; ``pct``, ``pos``, ``urw`` and ``surw`` use the scheduler of
        that name (``docs/engines.md``). ``tbb`` and ``openmp`` are unavailable without
        their runtimes. ``two_devices`` and ``two_processes`` split updates and distribute
        nodes without a device over two devices, each with a pool of its own; ``gpu`` does
        so for the host and a GPU, ``emulated_gpu`` for the host and an emulated GPU.
        ``opencl`` puts everything on an OpenCL device, ``two_opencl`` on two parts of one;
        ``cpu_and_opencl`` distributes nodes over the host and an OpenCL device, and so do
        ``opencl_out_of_order`` and ``opencl_gated``, where it has two queues that execute
        commands out of order, when the driver likes or in a random order.
        """
        return _CONFIGURATIONS

    @classmethod
    def configured(cls, name: str) -> Config:
        """Return the configuration with that name: ``engine=NAME;threads=N;split``.

        Also any scheduler, of any depth: ``engine=controlled;scheduler=pct;depth=5``.

        Raises
        ------
        UnknownEngine
            With one line.
        """
        return config_for(EngineSettings.from_name(name))

    def check(self, config: Config) -> None:
        """Start and end the configuration's engine, and check its devices.

        Raises
        ------
        Unavailable
            If the engine or a device is missing.
        """
        check_engine(config)
        for device in devices_for(config):
            if lacking := Accelerators.of(config, self.module, self.device_defect).lacks(device):
                raise Unavailable(f"device {device} ({lacking})")

    @classmethod
    def versions(cls) -> Mapping[str, str]:
        """Return the versions of NumPy and Python; the executor is part of this package."""
        return {"numpy": np.__version__, "python": platform.python_version()}

    def __init__(self) -> None:
        self.peer: Peer | None = None
        """The second process, once a test has needed it; reused for later tests."""

    def prepare(self, test: LitmusTest, config: Config) -> Prepared:
        """Lower and load the test.

        Raises
        ------
        Refused
            If the test has clusters or a missing device; in two processes, if it has any
            GPU, or a loop, conditional or section that needs both processes.
        """
        if not dict(config.settings).get("processes"):
            return PreparedTest(test, config)
        if self.peer is None or not self.peer.alive:
            self.peer = Peer()
        return TwoProcessTest(test, config, self.peer)

    def close(self) -> None:
        """End the second process, if there is one."""
        if self.peer is not None:
            self.peer.close()
            self.peer = None


def check_engine(config: Config) -> None:
    """Start and end the configuration's engine.

    Raises
    ------
    Unavailable
        If the engine is missing.
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


@contextmanager
def _refused_if_too_large() -> Iterator[None]:
    try:
        yield
    except MemoryError as error:
        raise TooLarge(f"so much memory ({error})") from None


class PreparedTest:
    """A loaded test.

    Parameters
    ----------
    test : LitmusTest
    config : Config
        One of `NativeExecutor.configurations`.
    strictness : mapping, optional
        Strictness by name of a loop or conditional.

    Raises
    ------
    Refused
        If the test has clusters or a missing device, or needs more memory than that has.
    """

    module: ClassVar[Any] = _executor
    device_defect: str = ""
    """Defect of the devices of a mutant."""

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
        self._accelerators = Accelerators.of(config, self.module, self.device_defect)
        self._backends: dict[int, list[_executor.Gpu]] = {}  # by lanes
        self._program = self.lowered(lanes=1)
        with _refused_if_too_large():
            self._core = self.load(self._program)
        self._rows = Rows(test, test.observe)

    def load(self, program: Program) -> _executor.Program:
        """Load a lowered test into the core."""
        return _executor.load(program, self.backends(program))

    def backends(self, program: Program) -> list[_executor.Gpu | None]:
        """Return the backend of each device of a lowered test; None where the core computes."""
        try:
            made = self._accelerators.backends(program.device_names)
        except RuntimeError as error:
            raise Unavailable(str(error)) from None
        self._backends[program.lanes] = [each for each in made if each is not None]
        return made

    def run(self, count: int, noise: Noise, seed: int) -> Histogram:
        """Execute the test `count` times, rounded up to a step of `noise.copies`.

        The noise settings `steps` and `padding` have no effect: the executor rebuilds
        nothing, and random scheduling needs no padding. A controlled execution has no
        noise, since copies do not run concurrently.

        Raises
        ------
        Refused
            If the scheduler ``uniform`` does not accept the test.
        TooLarge
            If memory is used up.
        """
        with _refused_if_too_large():
            return self._run(count, noise, seed)

    def _run(self, count: int, noise: Noise, seed: int) -> Histogram:
        self._reseed(seed)
        if self._settings.engine == "controlled":
            try:
                found = self._core.walk(self._scheduler, self._depth, count, seed)
            except ValueError as error:
                if self._scheduler != "uniform":
                    raise
                raise Refused(str(error)) from None
            return self._histogram(found)
        if self._threads is None or self._noise != noise:
            self._threads = None  # unpins its threads before new ones are pinned
            self._engines = self._engines or [
                RunningEngine(self._settings, self.module) for _ in range(self._program.devices)
            ]
            self._threads = self._perturbed(noise)
            self._noise = noise
            self._reseed(seed)
        rows, _, _ = self._threads.run(count, noise.shuffle, noise.transfer_delay_us_max, seed)
        return self._histogram(rows)

    def drivers(self) -> Mapping[str, str]:
        """Return name, platform and driver's version of each of its devices that has a driver."""
        found = {name: self._accelerators.driver(name) for name in self._program.device_names}
        return {name: text for name, text in found.items() if text}

    def _reseed(self, seed: int) -> None:
        """Make what devices do at random depend on the seed."""
        for gpu in chain.from_iterable(self._backends.values()):
            gpu.reseed(seed)

    def close(self) -> None:
        """End the engines' threads."""
        self._threads = None
        for engine in self._engines:
            engine.close()
        self._engines = []

    def lowered(self, lanes: int) -> Program:
        """Lower the test, with that many lanes added where it has none."""
        return lower(
            self._test,
            split_updates=self._settings.split,
            strictness=self._strictness,
            lanes=lanes,
            devices=self._devices,
            lacks=self._accelerators.lacks,
        )

    def _perturbed(self, noise: Noise) -> _executor.Threads:
        self._backends = {1: self._backends.get(1, [])}  # without those of earlier noise
        core = self._core if noise.lanes == 1 else self.load(self.lowered(noise.lanes))
        engines = [engine.core for engine in self._engines]
        copies = copies_of(self._test, noise.copies)
        threads: _executor.Threads = self.module.Threads(core, engines, copies)
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

    def exhaust(
        self, limit: int, preemptions: int | None = None, *, reduced: bool = True
    ) -> Exhausted:
        """Visit all executions that differ in more than the order of independent events.

        Parameters
        ----------
        limit : int
            Largest number of executions to begin.
        preemptions : int, optional
            Largest number of switches from an op that has begun and could go on. Then some
            executions differ in the order of independent events alone.
        reduced : bool
            False to visit every execution within the bound, for comparison.

        References
        ----------
        ``fuzz/native/core/exhaustive.h``.
        """
        rows, traces, executions, complete, whole = self._core.exhaust(limit, preemptions, reduced)
        return Exhausted(self._histogram(rows), traces, executions, complete, whole)

    def search(self, measure: str, bound: int, limit: int) -> Searched:
        """Visit all executions with few switches between chains of events.

        Parameters
        ----------
        measure : str
            One of `MEASURES`: switches away from a chain that could continue, or chains
            skipped in their fixed order.
        bound : int
            Largest value of the measure.
        limit : int
            Largest number of executions to begin.

        References
        ----------
        ``fuzz/native/core/schedulers/bounded.h``.
        """
        rows, executions, complete, whole = self._core.search(measure, bound, limit)
        return Searched(bound, self._histogram(rows), executions, complete, whole)

    def widen(self, measure: str, limit: int) -> Iterator[Searched]:
        """Yield `search` for bounds 0, 1, 2, ... until the search is whole or incomplete."""
        for bound in count_from():
            found = self.search(measure, bound, limit)
            yield found
            if found.whole or not found.complete:
                return

    def record(self, seed: int) -> tuple[Outcome, list[Choice]]:
        """Run one controlled execution; return its outcome and its choices.

        The method replays the choices at once, as a check.

        Raises
        ------
        Diverged
            If the replay differs: the executor is not deterministic.
        """
        self._reseed(0)
        row, choices = self._core.record(self._scheduler, self._depth, seed)
        outcome = self._outcome(row)
        if self.replay(choices) != outcome:
            raise Diverged("the same choices led to another outcome")
        return outcome, choices

    def replay(self, choices: Sequence[Choice]) -> Outcome:
        """Replay recorded choices; return the outcome.

        Raises
        ------
        Diverged
            If the enabled events differ from the recorded ones.
        """
        self._reseed(0)
        row, made = self._core.replay(list(choices))
        if row is None:
            raise Diverged(f"after {made} of {len(choices)} choices other events may come next")
        return self._outcome(row)

    def force(self, order: Sequence[EventKey], timeout_s: float = 60.0) -> Outcome:
        """Execute exactly that total order; return its outcome.

        Raises
        ------
        Diverged
            If an event is not enabled at its place in the order, or an event is enabled
            after the last one.
        TimeoutError
            If the execution takes longer than `timeout_s`.
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
    """Return an event in the notation of the oracles."""
    run = f"{event.run}." if event.run else ""
    return f"{event.access}({event.resource}) {run}{event.frame}{event.node}"
