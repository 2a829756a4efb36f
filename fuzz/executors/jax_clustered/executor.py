"""The executor `jax`: XLA compiles clusters, and JAX computes all other ops one by one.

The C++ core, engines and schedulers of the executor `native` decide when each op runs.
The core calls JAX for every computation (``fuzz/native/core/backend.h``).
"""

from __future__ import annotations

import platform
from dataclasses import asdict
from importlib.metadata import version
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final

from litmusfuzz.corpus.model import FEATURES
from litmusfuzz.corpus.ops import DEFINED_OPS, OPS
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.engines.settings import EngineSettings
from litmusfuzz.fuzz.executors.native import _executor
from litmusfuzz.fuzz.executors.native.executor import (
    SETTING_TYPES,
    PreparedTest,
    check_engine,
    config_for,
    controlled_config,
    engine_config,
    on_devices,
)
from litmusfuzz.fuzz.executors.native.lowering import lower
from litmusfuzz.fuzz.executors.native.two_processes import devices_for
from litmusfuzz.fuzz.executors.protocol import ForkAfter, Refused, Unavailable
from litmusfuzz.fuzz.executors.setting_types import OneOf
from litmusfuzz.fuzz.passes.clustering import cluster
from litmusfuzz.fuzz.passes.placement import place
from litmusfuzz.fuzz.support import Support

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.executors.jax_clustered.functions import Compiler
    from litmusfuzz.fuzz.executors.native.lowering import Program, Strictness
    from litmusfuzz.fuzz.executors.protocol import Config
    from litmusfuzz.fuzz.executors.setting_types import SettingType

_CLUSTERS: Final = "clusters"
"""Setting: how a test without clusters is clustered, `greedy` or `none`."""


_LOWERING: Final = "lowering"
"""Setting: what clusters are compiled from, their `ssa` form or functions over `references`."""


def _config(made: Config, clusters: str = "greedy", lowering: str = "ssa") -> Config:
    return replace(made, settings=(*made.settings, (_CLUSTERS, clusters), (_LOWERING, lowering)))


def _configurations() -> Iterator[Config]:
    for name, engine, threads in (
        ("plain", "pool", 2),
        ("fifo", "fifo", 2),
        ("stealing", "stealing", 2),
        ("inline", "inline", 1),
    ):
        yield _config(engine_config(name, engine, threads, split_updates=True))
    for name, scheduler, depth in (
        ("controlled", "random", 0),
        ("pct", "pct", 3),
        ("pos", "pos", 0),
    ):
        yield _config(controlled_config(name, scheduler, depth, split_updates=True))
    pool = engine_config("", "pool", 2, split_updates=True)
    yield _config(on_devices(pool, "two_devices"))
    yield _config(on_devices(pool, "gpu", devices=("gpu:0",)))
    yield _config(on_devices(pool, "cpu_and_gpu", devices=("cpu:0", "gpu:0")))
    yield _config(replace(pool, name="unclustered"), "none")
    yield _config(replace(pool, name="references"), lowering="references")
    controlled = controlled_config("references_controlled", "random", 0, split_updates=True)
    yield _config(controlled, lowering="references")


_CONFIGURATIONS: Final = tuple(_configurations())
_TYPES: Final = {_CLUSTERS: OneOf(("greedy", "none")), _LOWERING: OneOf(("ssa", "references"))}


class JaxClusteredExecutor:
    """Executor over JAX, with clusters that XLA compiles."""

    name: ClassVar[str] = "jax"
    support: ClassVar[Support] = Support(
        ops=frozenset(OPS) - DEFINED_OPS,
        features=FEATURES
        - {"fetches", "placeholders", "uninitialized variables", "handles"}
        - {"accumulators", "computed indices", "gradients"},
    )
    fork_after: ClassVar[ForkAfter] = ForkAfter(
        (
            *("jax", "jax.numpy"),
            "litmusfuzz.fuzz.executors.jax_clustered.backend",
            "litmusfuzz.fuzz.executors.jax_clustered.executor",
            "litmusfuzz.fuzz.executors.jax_clustered.functions",
            "litmusfuzz.fuzz.executors.jax_clustered.references",
        ),
        # JAX reads its options when it is imported; XLA_FLAGS is read with the first array.
        ("JAX_*", "TF_CPP_*"),
    )
    setting_types: ClassVar[Mapping[str, SettingType]] = MappingProxyType(
        {**SETTING_TYPES, **_TYPES}
    )

    @classmethod
    def configurations(cls) -> tuple[Config, ...]:
        """Configurations with the engines and schedulers of `native`; all guarantee `rfc`.

        A test's own clusters are compiled as they are. A test without clusters is
        clustered by `fuzz.passes.clustering`, except in `unclustered`. Clusters are compiled
        from their SSA form; in `references` and `references_controlled` from functions over
        JAX's references, of which JAX makes pure ones. Resources and nodes without
        a device are placed on two CPU devices in `two_devices`, on the first GPU in `gpu`,
        and round-robin on the first CPU and GPU in `cpu_and_gpu`.
        """
        return _CONFIGURATIONS

    @classmethod
    def configured(cls, name: str) -> Config:
        """A configuration by engine or scheduler, as in `native`: ``engine=NAME;threads=N``.

        Raises
        ------
        UnknownEngine
            If there is no such engine or scheduler.
        """
        settings = EngineSettings.from_name(name)
        made = config_for(replace(settings, split=True))
        return _config(replace(made, name=settings.name))

    def check(self, config: Config) -> None:
        """Start and stop the configuration's engine, and check for its devices.

        Raises
        ------
        Unavailable
            If an engine or device is missing; the message names it.
        """
        check_engine(config)
        devices = devices_for(config)
        if len(devices) > 1 or not devices[0].startswith("cpu:"):
            from litmusfuzz.fuzz.executors.jax_refs.configured import jax_devices

            try:
                jax_devices(devices)
            except Refused as error:
                raise Unavailable(str(error)) from None

    @classmethod
    def versions(cls) -> Mapping[str, str]:
        """Versions of JAX, its compiler, NumPy and Python."""
        names = ("jax", "jaxlib", "numpy")
        return {name: version(name) for name in names} | {"python": platform.python_version()}

    @classmethod
    def clustered(cls, test: LitmusTest, config: Config) -> LitmusTest:
        """The test with its own clusters, or else with clusters that the clusterer chooses.

        A test with a feature beyond `support`, which `prepare` refuses, stays as it is: some of
        these features may not be beside clusters.
        """
        beyond = test.features - cls.support.features
        if test.clusters or beyond or dict(config.settings)[_CLUSTERS] == "none":
            return test
        devices = devices_for(config)
        return cluster(test if len(devices) == 1 else place(test, devices))

    @classmethod
    def refuse_unsupported(cls, test: LitmusTest) -> None:
        """Refuse a test with a feature beyond `support`, by its name."""
        if beyond := test.features - cls.support.features:
            raise Refused(", ".join(sorted(beyond)))

    def __init__(self) -> None:
        self._compiler: Compiler | None = None

    def prepare(self, test: LitmusTest, config: Config) -> PreparedJaxTest:
        """Cluster, compile and load the test.

        Raises
        ------
        Refused
            If a device is missing, a cluster is on several devices, or the test has a feature
            beyond `support`.
        """
        self.refuse_unsupported(test)
        return PreparedJaxTest(self.clustered(test, config), config, self.compiler())

    def compiler(self) -> Compiler:
        """The compiler of this process; created, and JAX imported, with the first test."""
        if self._compiler is None:
            from litmusfuzz.fuzz.executors.jax_clustered.functions import Compiler

            self._compiler = Compiler()
        return self._compiler

    def counters(self) -> Mapping[str, float]:
        """Compiled structures, reused structures, and seconds of compiling, so far."""
        if self._compiler is None:
            return {}
        return asdict(self._compiler.statistics)


class PreparedJaxTest(PreparedTest):
    """A loaded test. Not thread-safe."""

    def __init__(
        self,
        test: LitmusTest,
        config: Config,
        compiler: Compiler,
        strictness: Mapping[str, Strictness] | None = None,
    ) -> None:
        self._compiler = compiler
        self._lowering = str(dict(config.settings)[_LOWERING])
        super().__init__(test, config, strictness)

    def lowered(self, lanes: int) -> Program:
        """The program for the core; variables without lanes get `lanes` lanes."""
        return lower(
            self._test,
            split_updates=True,
            strictness=self._strictness,
            lanes=lanes,
            devices=self._devices,
            compiles=True,
        )

    def drivers(self) -> Mapping[str, str]:
        """Name, and platform with its version, of each device that is no CPU."""
        from litmusfuzz.fuzz.executors.jax_refs.configured import jax_devices

        names = [name for name in self._program.device_names if not name.startswith("cpu:")]
        return {
            name: f"{each.device_kind} ({each.client.platform_version.splitlines()[0]})"
            for name, each in zip(names, jax_devices(names), strict=True)
        }

    def load(self, program: Program) -> _executor.Program:
        """Load the lowered test into the core."""
        from litmusfuzz.fuzz.executors.jax_clustered.backend import JaxBackend

        jax_backend = JaxBackend(program, self._compiler, self._lowering)
        backend = self.module.PythonBackend(jax_backend.calls, jax_backend)
        return self.load_with(jax_backend.program, [backend] * len(program.device_names))

    def load_with(
        self, program: Program, backends: list[_executor.PythonBackend]
    ) -> _executor.Program:
        """Load the program into the core."""
        return _executor.load(program, backends)
