"""Mutants of the executor `jax_clustered`, each with one defect in its clusterer or its core.

The wrong clusterers are those of `litmusfuzz.fuzz.mutants.clustering`; here their
clusters are executed. A wrong core is the native executor's C++ core, compiled with
defects in its handling of clusters (``fuzz/native/core/defect.h``). The tests in
``tests/kills/test_jax_mutants.py`` name, for each mutant, a shape that kills it and a
shape that it survives.

A class's `reaches` says if a test could kill the mutant at all: if it is False, the mutant executes
the test just as its control does, and a self-test leaves the test out.

References
----------
semantics.md, which names RFC and BLOG.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from litmusfuzz.corpus.model import MalformedTest
from litmusfuzz.corpus.ops import Kind
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
    """The executor with the wrong clusterer of the same name.

    A test that has clusters is not clustered again, so the mutant executes it as its control does.
    """

    @classmethod
    def control(cls) -> type[JaxClusteredExecutor]:
        """The executor with the correct clusterer."""
        return JaxClusteredExecutor

    @classmethod
    def reaches(cls, test: LitmusTest, config: Config) -> bool:
        """False if both clusterers choose the same."""
        correct = cls.control().clustered(test, config)
        try:
            return cls.clustered(test, config) != correct
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
        self.refuse_unsupported(test)
        try:
            clustered = self.clustered(test, config)
        except MalformedTest:  # a litmus test must not have cyclic clusters
            clusters = choose_clusters(test, CLUSTERING_MUTANTS[self.name].options(test))
            return _Cyclic(test, config, self.compiler(), clusters)
        return PreparedJaxTest(clustered, config, self.compiler())


class _Cyclic(PreparedJaxTest):
    """A test with cyclic clusters, whose members never begin.

    All other nodes are executed one by one: the test is loaded without clusters.
    """

    def __init__(
        self, test: LitmusTest, config: Config, compiler: Compiler, clusters: tuple[Cluster, ...]
    ) -> None:
        # Clusters of which none waits for itself wait for each other.
        cyclic = [cluster for cluster in clusters if _waits_for_itself(test, cluster)] or clusters
        # Before the base's __init__, which calls `lowered`.
        self._never = {name for cluster in cyclic for name in cluster.members}
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


def _waits_for_itself(test: LitmusTest, cluster: Cluster) -> bool:
    """True if a path leaves a cluster and returns to it."""
    try:
        replace(test, clusters=(cluster,))  # validates the test; cyclic clusters are malformed
    except MalformedTest:
        return True
    return False


# --- cores -----------------------------------------------------------------------------


class PreparedMutant(PreparedJaxTest):
    """A test, loaded into the core that has the defect."""

    module: ClassVar[Any] = _mutants
    """The extension module with the C++ core: for a mutant, the one compiled with defects."""

    def __init__(self, test: LitmusTest, config: Config, compiler: Compiler, defect: str) -> None:
        # Before the base's __init__, which calls `load_with`.
        self._defect = defect
        super().__init__(test, config, compiler)

    def load_with(
        self, program: Program, backends: list[_executor.PythonBackend]
    ) -> _executor.Program:
        """Load the program into the core."""
        core: _executor.Program = self.module.load(program, self._defect, backends)
        return core


def _ops_of_clusters(test: LitmusTest) -> list[list[Node]]:
    """The ops on variables of each cluster, those in bodies of loops and conditionals as well."""
    members = [set(cluster.members) for cluster in test.clusters]
    return [
        [n for n in test.nodes if n.name in names and n.definition.on_variables]
        for names in members
    ]


def _on_several_variables(nodes: Iterable[Node]) -> bool:
    """True if the nodes together work on more than one variable."""
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
        self.refuse_unsupported(test)
        return PreparedMutant(self.clustered(test, config), config, self.compiler(), self.defect)


class _Control(WrongCore):
    """The control of each wrong core: the core that is compiled with defects, none switched on.

    It stands in no table of executors; its mutants' `control` names it.
    """

    name: ClassVar[str] = "control"
    defect: ClassVar[str] = ""


class SplitSnapshot(WrongCore):
    """A snapshot reads one variable at a time."""

    name: ClassVar[str] = "mutant/split-snapshot"
    defect: ClassVar[str] = "split snapshot"

    @classmethod
    def reaches(cls, test: LitmusTest, config: Config) -> bool:
        """False if each cluster works on one variable."""
        clusters = _ops_of_clusters(cls.clustered(test, config))
        return any(_on_several_variables(ops) for ops in clusters)


class SplitWriteBack(WrongCore):
    """A write-back writes one variable at a time."""

    name: ClassVar[str] = "mutant/split-write-back"
    defect: ClassVar[str] = "split write-back"

    @classmethod
    def reaches(cls, test: LitmusTest, config: Config) -> bool:
        """False if each cluster writes one variable."""
        clusters = _ops_of_clusters(cls.clustered(test, config))
        writes = [[n for n in ops if n.definition.kind.writes] for ops in clusters]
        return any(_on_several_variables(ops) for ops in writes)


class AliasedSnapshot(WrongCore):
    """A snapshot shares the variables' buffers, which updates change in place."""

    name: ClassVar[str] = "mutant/aliased-snapshot"
    defect: ClassVar[str] = "aliased snapshot"

    @classmethod
    def reaches(cls, test: LitmusTest, config: Config) -> bool:
        """False if no variable of a cluster is changed in place by an op outside of clusters."""
        clustered = cls.clustered(test, config)
        members = [node for ops in _ops_of_clusters(clustered) for node in ops]
        names = {node.name for node in members}
        variables = {name for node in members for name in node.resources}
        return any(
            node.definition.kind is Kind.UPDATE  # a write gives the variable another buffer
            and node.name not in names
            and not variables.isdisjoint(node.resources)
            for node in clustered.nodes
        )


class EarlySnapshot(WrongCore):
    """Reads of a cluster do not wait for the edges that lead into the cluster."""

    name: ClassVar[str] = "mutant/early-snapshot"
    defect: ClassVar[str] = "early snapshot"
