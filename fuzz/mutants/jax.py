"""Mutants of the executor `jax_clustered`, each with one defect in its clusterer or its core.

The wrong clusterers are those of `litmusfuzz.fuzz.mutants.clustering`; here their
clusters are executed. A wrong core is the native executor's C++ core, compiled with
defects in its handling of clusters (``fuzz/native/core/defect.h``). The tests in
``tests/kills/test_jax_mutants.py`` name, for each mutant, a shape that kills it and a
shape that it survives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from litmusfuzz.corpus.model import MalformedTest
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.executors.jax_clustered.executor import JaxClusteredExecutor, PreparedJaxTest
from litmusfuzz.fuzz.mutants import _mutants
from litmusfuzz.fuzz.mutants.clustering import CLUSTERING_MUTANTS
from litmusfuzz.fuzz.passes.clustering import RegionRefused, choose_clusters

if TYPE_CHECKING:
    from collections.abc import Iterable

    from litmusfuzz.corpus.model import Cluster, LitmusTest, Node
    from litmusfuzz.fuzz.executors.jax_clustered.functions import Compiler
    from litmusfuzz.fuzz.executors.native import _executor
    from litmusfuzz.fuzz.executors.native.lowering import Program
    from litmusfuzz.fuzz.executors.protocol import Config


# --- clusterers ------------------------------------------------------------------------


class WrongClusterer(JaxClusteredExecutor):
    """The executor with the wrong clusterer of the same name. A test keeps clusters of its own."""

    @classmethod
    def control(cls) -> type[JaxClusteredExecutor]:
        """The executor with the correct clusterer."""
        return JaxClusteredExecutor

    @classmethod
    def reaches(cls, test: LitmusTest, config: Config) -> bool:
        """False if both clusterers choose the same."""
        try:
            return cls.clustered(test, config) != cls.control().clustered(test, config)
        except MalformedTest:  # cyclic clusters
            return True

    @classmethod
    def clustered(cls, test: LitmusTest, config: Config) -> LitmusTest:
        """The test with the clusters that it is executed with."""
        if test.clusters or test.features - cls.support.features:
            return test
        try:
            return CLUSTERING_MUTANTS[cls.name].cluster(test)
        except RegionRefused:  # the region crosses a section, for example: no clusters
            return test


class NoSafetyAnalysis(WrongClusterer):
    """Unsafe pairs are not checked (BLOG, "The Problem")."""

    name: ClassVar[str] = "mutant/no-safety-analysis"


class DirectDependenciesOnly(WrongClusterer):
    """A pair is unsafe only if an edge joins it, not a longer path."""

    name: ClassVar[str] = "mutant/direct-dependencies-only"


class DataEdgesOnly(WrongClusterer):
    """Paths through control edges are ignored."""

    name: ClassVar[str] = "mutant/data-edges-only"


class UpdateTakenForAWrite(WrongClusterer):
    """An update does not count as a read."""

    name: ClassVar[str] = "mutant/update-taken-for-a-write"


class UpdateTakenForARead(WrongClusterer):
    """An update does not count as a write."""

    name: ClassVar[str] = "mutant/update-taken-for-a-read"


class RegionWithoutAnalysis(WrongClusterer):
    """A region that must be compiled skips the analysis (RFC, last paragraph)."""

    name: ClassVar[str] = "mutant/region-without-analysis"


class NoCycleCheck(WrongClusterer):
    """A path may leave a cluster and return to it, so that the cluster waits for itself."""

    name: ClassVar[str] = "mutant/no-cycle-check"

    def prepare(self, test: LitmusTest, config: Config) -> PreparedJaxTest:
        """Cluster, compile and load the test."""
        try:
            return super().prepare(test, config)
        except MalformedTest:  # a litmus test must not have cyclic clusters
            clusters = choose_clusters(test, CLUSTERING_MUTANTS[self.name].options(test))
            return _Cyclic(test, config, self.compiler(), clusters)


class _Cyclic(PreparedJaxTest):
    """A test with cyclic clusters, whose members never begin; all other nodes run alone."""

    def __init__(
        self, test: LitmusTest, config: Config, compiler: Compiler, clusters: tuple[Cluster, ...]
    ) -> None:
        alone = [each for each in clusters if _is_cyclic(test, each)]
        self._never = {name for each in alone or clusters for name in each.members}
        super().__init__(test, config, compiler)

    def lowered(self, lanes: int) -> Program:
        """The program for the core, in which the members wait for a slot that nothing fills."""
        program = super().lowered(lanes)
        for body in program.bodies:
            never_filled = body.new_slots(1)
            for node in body.nodes:
                if node.name in self._never:
                    node.waits = [*node.waits, never_filled]
        return program


def _is_cyclic(test: LitmusTest, cluster: Cluster) -> bool:
    try:
        replace(test, clusters=(cluster,))
    except MalformedTest:
        return True
    return False


# --- cores -----------------------------------------------------------------------------


class PreparedMutant(PreparedJaxTest):
    """A test, loaded into the core that has the defect."""

    module: ClassVar[Any] = _mutants

    def __init__(self, test: LitmusTest, config: Config, compiler: Compiler, defect: str) -> None:
        self._defect = defect
        super().__init__(test, config, compiler)

    def load_with(
        self, program: Program, backends: list[_executor.PythonBackend]
    ) -> _executor.Program:
        """Load the program into the core."""
        return _mutants.load(program, self._defect, backends)


def _clusters(test: LitmusTest) -> list[list[Node]]:
    """The ops on variables of each cluster."""
    members = [set(each.members) for each in test.clusters]
    return [
        [n for n in test.nodes if n.name in names and n.definition.on_variables]
        for names in members
    ]


def _several(nodes: Iterable[Node]) -> bool:
    """True if ops work on several variables."""
    return len({name for node in nodes for name in node.resources}) > 1


class WrongCore(JaxClusteredExecutor):
    """The executor with a core that has one defect."""

    defect: ClassVar[str]

    @classmethod
    def control(cls) -> type[JaxClusteredExecutor]:
        """The same core with no defect switched on."""
        return _Control

    @classmethod
    def reaches(cls, test: LitmusTest, config: Config) -> bool:
        """False if nothing is clustered."""
        return bool(cls.clustered(test, config).clusters)

    def prepare(self, test: LitmusTest, config: Config) -> PreparedJaxTest:
        """Cluster, compile and load the test."""
        self.take(test)
        return PreparedMutant(self.clustered(test, config), config, self.compiler(), self.defect)


class _Control(WrongCore):
    name: ClassVar[str] = "control"
    defect: ClassVar[str] = ""


class SplitSnapshot(WrongCore):
    """A snapshot reads one variable at a time."""

    name: ClassVar[str] = "mutant/split-snapshot"
    defect: ClassVar[str] = "split snapshot"

    @classmethod
    def reaches(cls, test: LitmusTest, config: Config) -> bool:
        """False if each cluster works on one variable."""
        return any(_several(each) for each in _clusters(cls.clustered(test, config)))


class SplitWriteBack(WrongCore):
    """A write-back writes one variable at a time."""

    name: ClassVar[str] = "mutant/split-write-back"
    defect: ClassVar[str] = "split write-back"

    @classmethod
    def reaches(cls, test: LitmusTest, config: Config) -> bool:
        """False if each cluster writes one variable."""
        clusters = _clusters(cls.clustered(test, config))
        return any(_several([n for n in each if n.definition.kind.writes]) for each in clusters)


class AliasedSnapshot(WrongCore):
    """A snapshot shares the variables' buffers, which updates change in place."""

    name: ClassVar[str] = "mutant/aliased-snapshot"
    defect: ClassVar[str] = "aliased snapshot"

    @classmethod
    def reaches(cls, test: LitmusTest, config: Config) -> bool:
        """False if no variable of a cluster is changed in place by others."""
        clustered = cls.clustered(test, config)
        clusters = _clusters(clustered)
        inside = {node.name for each in clusters for node in each}
        taken = {name for each in clusters for node in each for name in node.resources}
        return any(
            node.definition.kind.writes
            and node.op != "AssignVariableOp"
            and node.name not in inside
            and not taken.isdisjoint(node.resources)
            for node in clustered.nodes
        )


class EarlySnapshot(WrongCore):
    """Reads of a cluster do not wait for the edges that lead into the cluster."""

    name: ClassVar[str] = "mutant/early-snapshot"
    defect: ClassVar[str] = "early snapshot"
