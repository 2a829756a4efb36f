"""Clusterers with one deliberate defect each.

A clusterer chooses which nodes are compiled as one function (a cluster). Each mutant is
LitmusFuzz's clusterer with one rule left out, or with an incomplete safety analysis.
Translation validation finds its unsound clusters without an execution. `tests/kills`
has, for each mutant, a graph that kills it and one that it survives.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from litmusfuzz.fuzz.passes.clustering import Clustering, Rule, cluster, compilable
from litmusfuzz.fuzz.passes.safety import Analysis, access

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from litmusfuzz.corpus.model import LitmusTest


@dataclass(frozen=True, slots=True)
class ClusteringMutant:
    """A clusterer with one defect.

    Parameters
    ----------
    name : str
    about : str
        The defect, in a few words.
    options : callable
        From a test without clusters to the options of the clusterer.
    """

    name: str
    about: str
    options: Callable[[LitmusTest], Clustering]

    def cluster(self, test: LitmusTest, rng: random.Random | None = None) -> LitmusTest:
        """The test with clusters, as from `fuzz.passes.clustering.cluster`.

        Raises
        ------
        MalformedTest
            If the chosen clusters make no valid test: a cycle leads through a cluster.
        """
        return cluster(test, self.options(test), rng)


def _whole(test: LitmusTest) -> Clustering:
    """Each compilable graph as one region, from its first to its last op on variables."""
    regions = []
    for graph in test.graphs:
        working = [i for i, node in enumerate(graph.nodes) if access(node) is not None]
        region = graph.nodes[working[0] : working[-1] + 1] if working else ()
        if region and all(compilable(node) for node in region):
            regions.append(tuple(node.name for node in region))
    left_out = frozenset({Rule.UNSAFE_PAIR, Rule.DIFFERENT_WAITS})
    return Clustering(regions=tuple(regions), without=left_out)


def _always(options: Clustering) -> Callable[[LitmusTest], Clustering]:
    return lambda _: options


_ALL: Final = (
    ClusteringMutant(
        "mutant/no-safety-analysis",
        "unsafe pairs are not checked (BLOG, The Problem)",
        _always(Clustering(without=frozenset({Rule.UNSAFE_PAIR}))),
    ),
    ClusteringMutant(
        "mutant/direct-dependencies-only",
        "a pair is unsafe only if an edge joins it, not a longer path",
        _always(Clustering(analysis=Analysis(transitive=False))),
    ),
    ClusteringMutant(
        "mutant/data-edges-only",
        "paths through control edges are ignored",
        _always(Clustering(analysis=Analysis(control=False))),
    ),
    ClusteringMutant(
        "mutant/update-taken-for-a-write",
        "an update does not count as a read",
        _always(Clustering(analysis=Analysis(update_reads=False))),
    ),
    ClusteringMutant(
        "mutant/update-taken-for-a-read",
        "an update does not count as a write",
        _always(Clustering(analysis=Analysis(update_writes=False))),
    ),
    ClusteringMutant(
        "mutant/no-cycle-check",
        "a path may leave a cluster and return to it",
        _always(Clustering(without=frozenset({Rule.CYCLE}))),
    ),
    ClusteringMutant(
        "mutant/region-without-analysis",
        "a region that must be compiled skips the analysis (RFC, last paragraph)",
        _whole,
    ),
)
CLUSTERING_MUTANTS: Final = MappingProxyType({mutant.name: mutant for mutant in _ALL})
"""Mutants by name."""
