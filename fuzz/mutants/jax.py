"""Mutants of the executor over JAX: each has one defect, in its clusterer or its core.

A clusterer that is wrong (`litmusfuzz.fuzz.mutants.clustering`) is wrong without a run; here it
is run. A core that is wrong about clusters is the native one's, compiled once more
with the defects in (``fuzz/native/core/defect.h``). The tests in
``tests/kills/test_jax_mutants.py`` have for each the shape that kills it and one that
it survives.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from litmusfuzz.corpus.model import MalformedTest
from litmusfuzz.fuzz.executors.jax_clustered.executor import JaxClusteredExecutor, PreparedJaxTest
from litmusfuzz.fuzz.mutants import _mutants
from litmusfuzz.fuzz.mutants.clustering import CLUSTERING_MUTANTS
from litmusfuzz.fuzz.passes.clustering import RegionRefused, chosen

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import Cluster, LitmusTest
    from litmusfuzz.fuzz.executors.jax_clustered.functions import Compiler
    from litmusfuzz.fuzz.executors.native import _executor
    from litmusfuzz.fuzz.executors.native.lowering import Program
    from litmusfuzz.fuzz.executors.protocol import Config


# --- clusterers ------------------------------------------------------------------------


class WrongClusterer(JaxClusteredExecutor):
    """The executor with the clusterer of the same name; its own clusters a test keeps."""

    @classmethod
    def control(cls) -> type[JaxClusteredExecutor]:
        """With the clusterer that looks at everything."""
        return JaxClusteredExecutor

    @classmethod
    def clustered(cls, test: LitmusTest, config: Config) -> LitmusTest:
        """The test with the clusters that it runs as."""
        if test.clusters:
            return test
        try:
            return CLUSTERING_MUTANTS[cls.name].cluster(test)
        except RegionRefused:  # across a section, say: it is not compiled
            return test


class NoSafetyAnalysis(WrongClusterer):
    """BLOG's problem: unsafe pairs are not looked for."""

    name: ClassVar[str] = "mutant/no-safety-analysis"


class DirectDependenciesOnly(WrongClusterer):
    """A pair is unsafe only if there is an edge, not a path."""

    name: ClassVar[str] = "mutant/direct-dependencies-only"


class DataEdgesOnly(WrongClusterer):
    """Control edges are no paths."""

    name: ClassVar[str] = "mutant/data-edges-only"


class UpdateTakenForAWrite(WrongClusterer):
    """An update is not known to read."""

    name: ClassVar[str] = "mutant/update-taken-for-a-write"


class UpdateTakenForARead(WrongClusterer):
    """An update is not known to write."""

    name: ClassVar[str] = "mutant/update-taken-for-a-read"


class RegionWithoutAnalysis(WrongClusterer):
    """RFC, last paragraph: all that must be compiled is, without analysis."""

    name: ClassVar[str] = "mutant/region-without-analysis"


class NoCycleCheck(WrongClusterer):
    """A path may leave a cluster and come back: the cluster waits for what waits for it."""

    name: ClassVar[str] = "mutant/no-cycle-check"

    def prepare(self, test: LitmusTest, config: Config) -> PreparedJaxTest:
        """Cluster, compile and load the test."""
        try:
            return super().prepare(test, config)
        except MalformedTest:  # no litmus test has such clusters
            clusters = chosen(test, CLUSTERING_MUTANTS[self.name].options(test))
            return _Cyclic(test, config, self.compiler(), clusters)


class _Cyclic(PreparedJaxTest):
    """Members run by themselves, but for those of clusters on a cycle: they never begin."""

    def __init__(
        self, test: LitmusTest, config: Config, compiler: Compiler, clusters: tuple[Cluster, ...]
    ) -> None:
        alone = [each for each in clusters if _is_cyclic(test, each)]
        self._never = {name for each in alone or clusters for name in each.members}
        super().__init__(test, config, compiler)

    def lowered(self, lanes: int) -> Program:
        """The test as the core takes it, with so many lanes where it has none."""
        program = super().lowered(lanes)
        for body in program.bodies:
            nobody = body.new_slots(1)
            for node in body.nodes:
                if node.name in self._never:
                    node.waits = [*node.waits, nobody]
        return program


def _is_cyclic(test: LitmusTest, cluster: Cluster) -> bool:
    try:
        replace(test, clusters=(cluster,))
    except MalformedTest:
        return True
    return False


# --- cores -----------------------------------------------------------------------------


class PreparedMutant(PreparedJaxTest):
    """A test, loaded into the core with the defect."""

    module: ClassVar[Any] = _mutants

    def __init__(self, test: LitmusTest, config: Config, compiler: Compiler, defect: str) -> None:
        self._defect = defect
        super().__init__(test, config, compiler)

    def load_with(
        self, program: Program, backends: list[_executor.PythonBackend]
    ) -> _executor.Program:
        """The program, in the core."""
        return _mutants.load(program, self._defect, backends)


class WrongCore(JaxClusteredExecutor):
    """The executor with a core that has a defect."""

    defect: ClassVar[str]

    @classmethod
    def control(cls) -> type[JaxClusteredExecutor]:
        """The same core, in which no defect is on."""
        return _Sound

    def prepare(self, test: LitmusTest, config: Config) -> PreparedJaxTest:
        """Cluster, compile and load the test."""
        return PreparedMutant(self.clustered(test, config), config, self.compiler(), self.defect)


class _Sound(WrongCore):
    name: ClassVar[str] = "control"
    defect: ClassVar[str] = ""


class SplitSnapshot(WrongCore):
    """A snapshot reads one variable at a time."""

    name: ClassVar[str] = "mutant/split-snapshot"
    defect: ClassVar[str] = "split snapshot"


class SplitWriteBack(WrongCore):
    """A write-back writes one variable at a time."""

    name: ClassVar[str] = "mutant/split-write-back"
    defect: ClassVar[str] = "split write-back"


class AliasedSnapshot(WrongCore):
    """A snapshot is the variables' own buffers, which updates change in place."""

    name: ClassVar[str] = "mutant/aliased-snapshot"
    defect: ClassVar[str] = "aliased snapshot"


class EarlySnapshot(WrongCore):
    """Reads are hoisted above the edges that lead into the cluster."""

    name: ClassVar[str] = "mutant/early-snapshot"
    defect: ClassVar[str] = "early snapshot"
