"""Sources of clusters for `litmusfuzz validate --clusters`.

A clustering comes from the file itself, from our clustering pass, from a mutant of that pass,
or from an executor that chooses clusters itself (`EXECUTOR_SOURCES`).
"""

from __future__ import annotations

from functools import partial
from itertools import combinations
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import plain_of
from litmusfuzz.fuzz.campaign.tuning import JOB_TIMEOUT_S
from litmusfuzz.fuzz.executors import messages
from litmusfuzz.fuzz.executors.worker import Died, Worker
from litmusfuzz.fuzz.mutants.clustering import CLUSTERING_MUTANTS
from litmusfuzz.fuzz.passes.clustering import cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.executors.protocol import ChosenClusters

EXECUTOR_SOURCES: Final = MappingProxyType(
    {"tf": ("tf", "autocluster"), "tf-unchecked": ("mutant/tf-unchecked-clusters", "autocluster")}
)
"""Source name to an executor that chooses clusters, and the configuration in which it does."""


def _clustered_by(clusterer: Callable[[LitmusTest], LitmusTest], test: LitmusTest) -> LitmusTest:
    return clusterer(replace(test, clusters=()))


CLUSTERINGS: Final[Mapping[str, Callable[[LitmusTest], LitmusTest]]] = MappingProxyType(
    {
        "file": lambda test: test,
        "ours": partial(_clustered_by, cluster),
        **{name: partial(_clustered_by, each.cluster) for name, each in CLUSTERING_MUTANTS.items()},
    }
)
"""Source name to a function from a test to the test with clusters of that source."""


class NoClusters(Exception):
    """The executor gives no clusters to judge; the message says why in one line."""


class ExecutorClusters:
    """Asks an executor for the clusters that it chooses. Holds a worker until it is closed.

    Parameters
    ----------
    source : str
        One of `EXECUTOR_SOURCES`.
    """

    def __init__(self, source: str) -> None:
        executor, self._config = EXECUTOR_SOURCES[source]
        self.worker = Worker(executor)

    def chosen(self, test: LitmusTest) -> ChosenClusters:
        """Ask the executor for its clusters.

        Raises
        ------
        NoClusters
            If it refuses the test, or dies on it.
        """
        plain = replace(test, clusters=())
        request = messages.Request(test=plain_of(plain), task="clusters", config=self._config)
        reply = self.worker.ask(request, JOB_TIMEOUT_S, plain)
        if isinstance(reply, Died):
            raise NoClusters(f"{self.worker.executor}: {reply.message}")
        if reply.refused or reply.unavailable:
            raise NoClusters(f"{self.worker.executor}: {reply.refused or reply.unavailable}")
        (chosen,) = messages.chosen_clusters(reply)
        return chosen

    def close(self) -> None:
        """End the worker."""
        self.worker.close()


def pairs_kept_apart(test: LitmusTest) -> list[tuple[str, str]]:
    """Pairs of resource ops that our clustering pass would cluster but this test does not.

    A resource op here is also a node whose body contains some. A difference is not necessarily
    a defect: our pass contracts edges in node order, and where only one of two edges can be
    contracted, another clusterer may choose the other.
    """
    cluster_of = {name: each.name for each in test.clusters for name in each.members}
    resource_ops = {node.name for graph in test.graphs for node in graph.effects}
    return [
        (a, b)
        for ours in cluster(replace(test, clusters=())).clusters
        for a, b in combinations((name for name in ours.members if name in resource_ops), 2)
        if a not in cluster_of or cluster_of[a] != cluster_of.get(b)
    ]
