"""The executor `tf`: prepares a litmus test and runs it in TensorFlow sessions."""

from __future__ import annotations

import importlib
import platform
import random
from contextlib import closing
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np

from litmusfuzz.corpus.model import FEATURES, MalformedTest
from litmusfuzz.corpus.shapes import copies_of
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.engines.settings import UnknownEngine
from litmusfuzz.fuzz.executors import network
from litmusfuzz.fuzz.executors.configuration_space import NotAConfiguration
from litmusfuzz.fuzz.executors.messages import NO_CLUSTERS
from litmusfuzz.fuzz.executors.protocol import (
    LEVELS,
    ChosenClusters,
    ForkAfter,
    Noise,
    Refused,
    Unavailable,
)
from litmusfuzz.fuzz.executors.tensorflow import space
from litmusfuzz.fuzz.executors.tensorflow.clock import Clock
from litmusfuzz.fuzz.executors.tensorflow.configurations import (
    CONFIGURATIONS,
    DEPTHS,
    SETTING_TYPES,
    Settings,
)
from litmusfuzz.fuzz.executors.tensorflow.grpc_servers import grpc_servers
from litmusfuzz.fuzz.executors.tensorflow.histogram import ALL_DROPPED, HistogramBuilder
from litmusfuzz.fuzz.passes.placement import CannotPlace, place
from litmusfuzz.fuzz.support import Support

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import ModuleType

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Outcome
    from litmusfuzz.corpus.textfile import Setting
    from litmusfuzz.fuzz.executors.configuration_space import ConfigurationSpace, Point
    from litmusfuzz.fuzz.executors.protocol import Config, EventKey, Histogram
    from litmusfuzz.fuzz.executors.setting_types import SettingType
    from litmusfuzz.fuzz.executors.tensorflow.control_library import Steering
    from litmusfuzz.fuzz.executors.tensorflow.controlled import PreparedControlled
    from litmusfuzz.fuzz.executors.tensorflow.eager import PreparedEager
    from litmusfuzz.fuzz.executors.tensorflow.engines import DrivenEngine
    from litmusfuzz.fuzz.executors.tensorflow.forced import Forcing
    from litmusfuzz.fuzz.executors.tensorflow.lowering import Built
    from litmusfuzz.fuzz.executors.tensorflow.packs import PackedTests
    from litmusfuzz.fuzz.executors.tensorflow.session import LiveSession

# Compiling a cluster takes about 10 ms, so that fewer copies give more executions a second.
_CLUSTERED_COPIES: Final = 8

# A step with an execution that blocks takes more than 10 ms: a limit for a test that always does.
_MOST_SLOW: Final = 16

# Sixteen copies in one graph, of whichever tests: with eight, a test takes a twentieth more time.
_PACKED_COPIES: Final = 16


_MODULES: Final = (
    *("executor", "lowering", "session", "functional", "functions", "model_code", "regions"),
    *("sections", "clusters", "forced", "grpc_server_main", "packs", "program", "traced"),
    *("eager", "python_graphs", "keras_steps", "engines"),
)
"""Modules of this package that import TensorFlow, and that tests need."""


class TensorFlowExecutor:
    """TensorFlow's graph executor on the CPU."""

    name: ClassVar[str] = "tf"
    support: ClassVar[Support] = Support(features=FEATURES - {"clusters", "gradients"})
    fork_after: ClassVar[ForkAfter] = ForkAfter(
        (
            "litmusfuzz.fuzz.executors.tensorflow.without_jax",  # imports TensorFlow
            *(f"litmusfuzz.fuzz.executors.tensorflow.{name}" for name in _MODULES),
        ),
        # TF_XLA_FLAGS and all others are read with the first graph.
        ("TF_CPP_*", "TF_ENABLE_*", "TF_USE_*", "TF2_BEHAVIOR"),
    )
    damaging_ops: ClassVar[frozenset[str]] = frozenset({"ResourceStridedSliceAssign"})
    setting_types: ClassVar[Mapping[str, SettingType]] = SETTING_TYPES
    space: ClassVar[ConfigurationSpace] = space.SPACE
    schedulers: ClassVar[tuple[str, ...]] = tuple(DEPTHS)

    def __init__(self) -> None:
        self._clock = Clock()

    def counters(self) -> Mapping[str, float]:
        """Seconds of building graphs and sessions, of running, and of counting outcomes."""
        return {name: round(seconds, 3) for name, seconds in self._clock.seconds.items()}

    @classmethod
    def configurations(cls) -> tuple[Config, ...]:
        """The presets; the first, `plain`, is the default."""
        return CONFIGURATIONS

    @classmethod
    def configured(cls, name: str) -> Config:
        """The configuration whose settings `name` lists: ``loop_optimizer=true;pool=second``.

        Raises
        ------
        NotAConfiguration
            Naming the setting, the value, or the values that exclude each other.
        """
        return cls.configuration_at(space.parsed(name))

    @classmethod
    def configuration_at(cls, point: Mapping[str, Setting]) -> Config:
        """The configuration with these settings: a preset, or else named by them."""
        return space.configuration_at(point)

    @classmethod
    def point_of(cls, config: Config) -> Point | None:
        """The point of a configuration; None if the space does not have it."""
        return space.point_of(config)

    @classmethod
    def switches_inside(cls, config: Config) -> bool | None:
        """True if ops stop inside (`Explores`): at locks, not where they begin."""
        level = cls.level_of(config)
        return level != LEVELS[0] if level else None

    @classmethod
    def level_of(cls, config: Config) -> str:
        """Its level of control (`Explores`)."""
        return Settings.of(config).control

    @classmethod
    def controlled(cls, config: Config, level: str, *, plain_threads: bool = False) -> Config:
        """The configuration under control, at a level (`Explores`).

        Raises
        ------
        NotAConfiguration
            Naming the setting that excludes it.
        """
        point = cls.point_of(config)
        if point is None:  # the engine is somebody's
            raise NotAConfiguration(f"control={level} excludes the settings of {config.name}")
        threads = space.threads_at(level) if plain_threads else {}
        point = {**point, **threads, "control": level}
        if problem := cls.space.problem(point):
            raise NotAConfiguration(problem)
        return cls.configuration_at(point)

    @classmethod
    def versions(cls) -> Mapping[str, str]:
        """Versions of TensorFlow, NumPy and Python."""
        return {
            "tensorflow": str(_import_tensorflow().__version__),
            "numpy": np.__version__,
            "python": platform.python_version(),
        }

    def check(self, config: Config) -> None:
        """Check that the process has what the configuration needs.

        A network of its own for workers; the library for control, which is compiled if need be;
        the engine, which is started and ended.

        Raises
        ------
        Unavailable
            With the reason.
        """
        if Settings.of(config).workers:
            network.require()
        if Settings.of(config).control:
            _import_tensorflow()
            _import_control()
            from litmusfuzz.fuzz.executors.tensorflow import control_library

            control_library.load()
        if Settings.of(config).engine:
            _import_tensorflow()
            _driven(Settings.of(config)).close()

    def prepare(
        self, test: LitmusTest, config: Config
    ) -> PreparedTest | PreparedEager | PreparedControlled:
        """Lower the test; each run builds its own graphs and sessions.

        Raises
        ------
        Refused
            If the configuration cannot run the test; names the feature, op or device.
        Unavailable
            If TensorFlow is not installed, or the configuration cannot run on this machine.
        """
        _import_tensorflow()
        settings = Settings.of(config)
        target = ""
        if settings.workers:
            target = grpc_servers(settings.workers, settings.inter_op_threads).target
        if settings.eager:
            from litmusfuzz.fuzz.executors.tensorflow.eager import PreparedEager
            from litmusfuzz.fuzz.executors.tensorflow.keras_steps import PreparedKeras

            eager = PreparedKeras if settings.front_end == "keras" else PreparedEager
            return eager(test, config, self._clock)
        prepared = PreparedTest(test, config, self._clock, target)
        return prepared.controlled() if settings.control else prepared

    @classmethod
    def pack_size(cls, config: Config, noise: Noise) -> int:
        """Small tests that share a session, where nothing rewrites their graph."""
        changed = cls.prepare is not TensorFlowExecutor.prepare  # a mutant, which prepares another
        if changed or not Settings.of(config).packs:
            return 1
        return max(1, _PACKED_COPIES // noise.copies)

    @classmethod
    def may_pack(cls, test: LitmusTest, config: Config) -> bool:
        """True for a test that can neither block nor fail, of one run on one device."""
        if test.features - {"loops", "conditionals"} or Settings.of(config).refuses & test.features:
            return False
        if test.failing:  # an error ends the call, and the pack
            return False
        placed = any(each.device for each in (*test.resources, *test.nodes))
        return not (placed or any(node.op in cls.damaging_ops for node in test.effects))

    def prepare_pack(self, tests: Sequence[LitmusTest], config: Config) -> PackedTests:
        """Lower several tests; each run builds its own graphs and sessions.

        Raises
        ------
        Refused
            If one of them cannot be packed.
        """
        _import_tensorflow()
        from litmusfuzz.fuzz.executors.tensorflow.packs import PackedTests

        settings = Settings.of(config)
        if not (settings.packs and all(self.may_pack(test, config) for test in tests)):
            raise Refused(f"a pack of such tests in configuration {config.name}")
        return PackedTests(tests, settings, self._clock)


class PreparedTest:
    """A lowered test. It keeps a session between forced orders, and nothing between runs.

    Parameters
    ----------
    test : LitmusTest
    config : Config
        One of `TensorFlowExecutor.configurations`.
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
        if self._settings.compiled == "whole":
            regions.refuse_uncompiled(test)
        if self._settings.front_end == "critical_section":
            sections.check(test)
        devices = self._settings.workers or self._settings.devices
        if devices > 1 and "loops" not in test.features:
            # Loops stay on one device: on several, iterations keep less order.
            try:
                test = place(test, [f"cpu:{number}" for number in range(devices)])
            except (CannotPlace, MalformedTest) as error:
                raise Refused(f"{error} in configuration {config.name}") from None
        if self._settings.front_end == "functional" and (loop := lowering.changes_handles(test)):
            # docs/tensorflow-findings.md: TensorFlow takes a loop's handles for constants.
            raise Refused(f"a loop that exchanges handles ({loop}) in configuration {config.name}")
        if self._settings.loops_hold_thread and (loop := lowering.waits_inside(test)):
            # The op that would end the wait may be the next of the same thread, even in one copy.
            raise Refused(f"a loop that waits ({loop}) in configuration {config.name}")
        lowering.refuse_takes(test)
        if self._settings.leaves_out_reads:
            try:
                lowering.refuse_unread(test)
            except Refused as error:
                raise Refused(f"{error} in configuration {config.name}") from None
        with clock.part("building_s"):
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
        self._engine: DrivenEngine | None = None
        self._clusters: dict[ChosenClusters, None] = {}

    def run(self, count: int, noise: Noise, seed: int) -> Histogram:
        """Execute the test `count` times, rounded up to a step of `noise.copies`.

        Of the noise, only `copies`, `steps`, `shuffle` and `padding` have an effect:
        TensorFlow controls its own threads. With clusters a graph has fewer copies and
        runs for more steps, since XLA compiles the clusters of each copy; so has a graph
        with large tensors. A test that blocks or fails may be executed fewer than `count`
        times.

        An op that fails raises an exception of `tensorflow.errors`, which ends the run.
        """
        copies = min(noise.copies, _CLUSTERED_COPIES) if self._clustered else noise.copies
        copies = 1 if self._template.uneven else copies_of(self._template.test, copies)
        if copies < noise.copies:
            noise = replace(noise, copies=copies, steps=noise.steps * noise.copies // copies)
        rng = np.random.default_rng(seed)
        builder = HistogramBuilder(self._template.test)
        sequential, slow = True, 0
        self._clusters = {}
        while builder.count < count and slow < _MOST_SLOW:
            with self._clock.part("building_s"):
                built = self.build(noise, rng, sequential=sequential)
                live = self.live(built, noise.copies)
            with closing(live):
                for _ in range(noise.steps):
                    before = builder.count
                    with self._clock.part("running_s"):
                        values = live.step()
                    with self._clock.part("counting_s"):
                        builder.add(values)
                    slow += live.hindered
                    # If most copies block, sequential copies stop at the first.
                    most = 2 * (builder.count - before) >= noise.copies
                    if builder.count >= count or slow >= _MOST_SLOW or not live.usable:
                        break
                    if sequential and not most:
                        break
                sequential = sequential and most
        if not builder.count:
            raise Refused(ALL_DROPPED)
        with self._clock.part("counting_s"):
            return builder.histogram()

    def build(self, noise: Noise, rng: np.random.Generator, *, sequential: bool) -> Built:
        """A graph of copies, built by the configuration's front end."""
        from litmusfuzz.fuzz.executors.tensorflow import (
            functions,
            lowering,
            model_code,
            regions,
            sections,
        )

        shared = self._settings.shared_handles
        built = lowering.build(
            self._template,
            noise,
            rng,
            share_handles=shared,
            sequential=sequential,
            front_end=self._settings.front_end,
            compiled=self._settings.compiled == "whole",
        )
        if self._settings.model_code:
            built = model_code.surrounded(built, self._template.test, rng)
        if self._settings.front_end == "critical_section":
            return sections.as_written(built, self._test)
        if self._settings.workers:
            return lowering.on_workers(built)
        if self._settings.compiled == "region":
            clustered = regions.with_regions(self._test, random.Random(int(rng.integers(1 << 32))))
            if not self._test.clusters:  # ours, and judged as TensorFlow's are
                chosen = tuple(each.members for each in clustered.clusters)
                self._clusters[ChosenClusters(chosen)] = None
            return functions.as_compiled(built, clustered)
        return built

    def live(self, built: Built, copies: int, steering: Steering | None = None) -> LiveSession:
        """A session over a built graph; the clusters that TensorFlow made of it are read."""
        from litmusfuzz.fuzz.executors.tensorflow import clusters, session

        if self._settings.engine and self._engine is None:
            self._engine = _driven(self._settings)

        def made() -> LiveSession:
            return session.LiveSession(
                self._template,
                built,
                self._settings,
                copies,
                self._target,
                steering,
                engine=self._engine,
            )

        if self._settings.compiled != "clusters":
            return made()
        if problem := clusters.not_read(self._test, self._settings):
            self._clusters[ChosenClusters((), (), problem)] = None
            return made()
        with clusters.dumping() as folder:
            live = made()
            with self._clock.part("clusters_s"):
                names = frozenset(node.name for node in self._test.nodes)
                read = clusters.read(self._template, built, folder, copies, names, self._settings)
        self._clusters.update(dict.fromkeys(read))
        return live

    def controlled(self) -> PreparedControlled:
        """The same test, to be run under control.

        Raises
        ------
        Unavailable
            If TensorFlow cannot be controlled here.
        """
        _import_control()
        from litmusfuzz.fuzz.executors.tensorflow.controlled import PreparedControlled

        return PreparedControlled(self, self._template, self._settings, self._clock)

    def clusters(self) -> Sequence[ChosenClusters]:
        """Clusters that TensorFlow makes of one copy without noise, which is not executed."""
        from litmusfuzz.fuzz.executors.tensorflow import lowering

        if self._settings.compiled != "clusters":
            raise Refused(NO_CLUSTERS)
        still = Noise(copies=1, shuffle=False, padding=0)
        built = lowering.build(
            self._template,
            still,
            np.random.default_rng(0),
            share_handles=True,
            front_end=self._settings.front_end,
        )
        self._clusters = {}
        self.live(built, still.copies).close()
        return tuple(self._clusters)

    def clusters_run(self) -> Sequence[ChosenClusters]:
        """The distinct clusterings of the copies of the last run."""
        return tuple(self._clusters)

    def force(self, order: Sequence[EventKey], timeout_s: float) -> Outcome:
        """The outcome of exactly that total order, forced by gates (`forced`).

        Raises
        ------
        Diverged
            If TensorFlow does not follow the order.
        TimeoutError
            If it takes longer than `timeout_s`.
        Refused
            If the configuration has no gates, or the test has too many op instances.
        """
        from litmusfuzz.fuzz.executors.tensorflow.forced import Forcing

        if not self._settings.may_wait:
            raise Refused(f"forced orders in configuration {self._name}")
        if self._forcing is None:
            self._forcing = Forcing(self._template.test, self._settings)
        return self._forcing.force(order, timeout_s)

    def close(self) -> None:
        """Release the session that forces orders and the engine, if there are any."""
        if self._forcing is not None:
            self._forcing.close()
            self._forcing = None
        if self._engine is not None:
            self._engine.close()
            self._engine = None


def _driven(settings: Settings) -> DrivenEngine:
    """The engine of a configuration, with its threads.

    Raises
    ------
    Unavailable
    """
    _import_control()
    from litmusfuzz.fuzz.executors.tensorflow.engines import DrivenEngine

    try:
        return DrivenEngine(settings.engine_settings, settings.intra_op_threads)
    except UnknownEngine as error:  # a library that is not there any more
        raise Unavailable(str(error)) from None


def _import_control() -> None:
    try:
        importlib.import_module("litmusfuzz.fuzz.executors.tensorflow._control")
    except ImportError as error:
        raise Unavailable(f"control of TensorFlow: our compiled module ({error})") from None


def _import_tensorflow() -> ModuleType:
    try:
        return importlib.import_module("tensorflow")
    except ModuleNotFoundError as error:
        if error.name != "tensorflow":  # TensorFlow is installed, but broken
            raise
        message = "tensorflow is not installed: pip install tensorflow-cpu"
        raise Unavailable(message) from None
