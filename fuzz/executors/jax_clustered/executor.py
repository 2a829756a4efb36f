"""The executor protocol over JAX: clusters are compiled, the rest runs op by op.

Who runs what when is decided by the same core, engines and schedulers as in the
executor `native`; it asks JAX for whatever is computed
(``fuzz/native/core/backend.h``).
"""

from __future__ import annotations

import platform
from dataclasses import asdict, replace
from importlib.metadata import version
from typing import TYPE_CHECKING, ClassVar, Final

from litmusfuzz.fuzz.engines.settings import EngineSettings
from litmusfuzz.fuzz.executors.native import _executor
from litmusfuzz.fuzz.executors.native.executor import (
    PreparedTest,
    check_engine,
    config_for,
    controlled_config,
    engine_config,
    on_devices,
)
from litmusfuzz.fuzz.executors.native.lowering import lower
from litmusfuzz.fuzz.executors.native.pair import devices_for
from litmusfuzz.fuzz.executors.protocol import Refused, Unavailable
from litmusfuzz.fuzz.passes.clustering import cluster
from litmusfuzz.fuzz.passes.placement import place
from litmusfuzz.fuzz.support import EVERYTHING, Support

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.executors.jax_clustered.functions import Compiler
    from litmusfuzz.fuzz.executors.native.lowering import Program, Strictness
    from litmusfuzz.fuzz.executors.protocol import Config

_CHOSEN: Final = "clusters"
"""Of a configuration: who chooses clusters, where a test has none."""


def _config(made: Config, clusters: str = "greedy") -> Config:
    return replace(made, settings=(*made.settings, (_CHOSEN, clusters)))


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


_CONFIGURATIONS: Final = tuple(_configurations())


class JaxClusteredExecutor:
    """Resource graphs cut into clusters that XLA compiles."""

    name: ClassVar[str] = "jax"
    support: ClassVar[Support] = EVERYTHING

    @classmethod
    def configurations(cls) -> tuple[Config, ...]:
        """Engines and schedulers as those of `native`; all promise `rfc`.

        A test's own clusters are taken as they are; where it has none, all but
        `unclustered` choose some (`fuzz.passes.clustering`). Two_devices puts what
        has no device on two of JAX's; gpu on its first GPU, and cpu_and_gpu on that
        and its first CPU in turn, where there is one.
        """
        return _CONFIGURATIONS

    @classmethod
    def configured(cls, name: str) -> Config:
        """Any engine or scheduler, as those of `native`: ``engine=NAME;threads=N``.

        Raises
        ------
        UnknownEngine
            In one line.
        """
        settings = EngineSettings.from_name(name)
        made = config_for(replace(settings, split=True))
        return _config(replace(made, name=settings.name))

    def check(self, config: Config) -> None:
        """Start the configuration's engine and end it, and look for its devices.

        Raises
        ------
        Unavailable
            Saying what is missing.
        """
        check_engine(config)
        devices = devices_for(config)
        if len(devices) > 1 or not devices[0].startswith("cpu:"):
            from litmusfuzz.fuzz.executors.jax_clustered.backend import jax_devices

            try:
                jax_devices(devices)
            except Refused as error:
                raise Unavailable(str(error)) from None

    @classmethod
    def versions(cls) -> Mapping[str, str]:
        """Of JAX, its compiler, NumPy and Python."""
        names = ("jax", "jaxlib", "numpy")
        return {name: version(name) for name in names} | {"python": platform.python_version()}

    @classmethod
    def clustered(cls, test: LitmusTest, config: Config) -> LitmusTest:
        """The test with the clusters that it runs as: its own, or those chosen."""
        if test.clusters or dict(config.settings)[_CHOSEN] == "none":
            return test
        devices = devices_for(config)
        return cluster(test if len(devices) == 1 else place(test, devices))

    def __init__(self) -> None:
        self._compiler: Compiler | None = None

    def prepare(self, test: LitmusTest, config: Config) -> PreparedJaxTest:
        """Cluster, compile and load the test.

        Raises
        ------
        Refused
            For a device that is not there, or a cluster on several.
        """
        return PreparedJaxTest(self.clustered(test, config), config, self.compiler())

    def compiler(self) -> Compiler:
        """For all tests of this process. Made with the first one: it imports JAX."""
        if self._compiler is None:
            from litmusfuzz.fuzz.executors.jax_clustered.functions import Compiler

            self._compiler = Compiler()
        return self._compiler

    def counters(self) -> Mapping[str, float]:
        """So far: structures compiled, those wanted again, and the time that took."""
        if self._compiler is None:
            return {}
        return asdict(self._compiler.statistics)


class PreparedJaxTest(PreparedTest):
    """A loaded test. Not to be run by several threads at once."""

    def __init__(
        self,
        test: LitmusTest,
        config: Config,
        compiler: Compiler,
        strictness: Mapping[str, Strictness] | None = None,
    ) -> None:
        self._compiler = compiler
        super().__init__(test, config, strictness)

    def lowered(self, lanes: int) -> Program:
        """The test as the core takes it, with so many lanes where it has none."""
        return lower(
            self._test,
            split_updates=True,
            strictness=self._strictness,
            lanes=lanes,
            devices=self._devices,
            compiles=True,
        )

    def load(self, program: Program) -> _executor.Program:
        """The lowered test, in the core."""
        from litmusfuzz.fuzz.executors.jax_clustered.backend import Computing

        computing = Computing(program, self._compiler)
        backend = self.module.PythonBackend(computing.calls, computing)
        return self.load_with(computing.program, [backend] * len(program.device_names))

    def load_with(
        self, program: Program, backends: list[_executor.PythonBackend]
    ) -> _executor.Program:
        """The program, in the core."""
        return _executor.load(program, backends)
