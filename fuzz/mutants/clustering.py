"""Clusterers that are wrong on purpose, one defect each.

Each is ours with a rule left out, or an analysis that looks away. What they
choose is convicted by validation without a run: `tests/kills` has the graph
that kills each, and one that it survives.
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
        From a test without clusters to how it is clustered.
    """

    name: str
    about: str
    options: Callable[[LitmusTest], Clustering]

    def cluster(self, test: LitmusTest, rng: random.Random | None = None) -> LitmusTest:
        """As `fuzz.passes.clustering.cluster`.

        Raises
        ------
        MalformedTest
            If what it chose is no litmus test: there is a cycle through a cluster.
        """
        return cluster(test, self.options(test), rng)


def _whole(test: LitmusTest) -> Clustering:
    """Each graph a region, from its first op on variables to its last, if it can be compiled."""
    regions = []
    for graph in test.graphs:
        working = [i for i, node in enumerate(graph.nodes) if access(node) is not None]
        region = graph.nodes[working[0] : working[-1] + 1] if working else ()
        if region and all(compilable(node) for node in region):
            regions.append(tuple(node.name for node in region))
    left_out = frozenset({Rule.UNSAFE_PAIR, Rule.WAITS_ALIKE})
    return Clustering(regions=tuple(regions), without=left_out)


def _always(options: Clustering) -> Callable[[LitmusTest], Clustering]:
    return lambda _: options


_ALL: Final = (
    ClusteringMutant(
        "mutant/no-safety-analysis",
        "BLOG's problem: unsafe pairs are not looked for",
        _always(Clustering(without=frozenset({Rule.UNSAFE_PAIR}))),
    ),
    ClusteringMutant(
        "mutant/direct-dependencies-only",
        "a pair is unsafe only if there is an edge, not a path",
        _always(Clustering(analysis=Analysis(transitive=False))),
    ),
    ClusteringMutant(
        "mutant/data-edges-only",
        "control edges are no paths",
        _always(Clustering(analysis=Analysis(control=False))),
    ),
    ClusteringMutant(
        "mutant/update-taken-for-a-write",
        "an update is not known to read",
        _always(Clustering(analysis=Analysis(update_reads=False))),
    ),
    ClusteringMutant(
        "mutant/update-taken-for-a-read",
        "an update is not known to write",
        _always(Clustering(analysis=Analysis(update_writes=False))),
    ),
    ClusteringMutant(
        "mutant/no-cycle-check",
        "a path may leave a cluster and come back",
        _always(Clustering(without=frozenset({Rule.CYCLE}))),
    ),
    ClusteringMutant(
        "mutant/region-without-analysis",
        "RFC, last paragraph: all that must be compiled is, without analysis",
        _whole,
    ),
)
CLUSTERING_MUTANTS: Final = MappingProxyType({mutant.name: mutant for mutant in _ALL})
"""Name to mutant."""
