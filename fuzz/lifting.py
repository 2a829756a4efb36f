"""Clusters that a system under test chose itself, as ours."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, count
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.graph import Cluster, MalformedTest
from litmusfuzz.corpus.textfile import Entry, dumps
from litmusfuzz.fuzz.executors import messages
from litmusfuzz.fuzz.executors.worker import Died, Worker
from litmusfuzz.fuzz.passes.clustering import cluster

if TYPE_CHECKING:
    from litmusfuzz.corpus.graph import LitmusTest

SOURCES: Final = MappingProxyType(
    {"tf": ("tf", "autocluster"), "tf-unchecked": ("mutant/tf-unchecked-clusters", "autocluster")}
)
"""Executors that choose clusters, and the configurations in which they do."""
_TIMEOUT_S: Final = 60.0


class NotLifted(Exception):
    """There are no clusters to judge; says why in one line."""


class Lifter:
    """Asks an executor for its clusters. Holds its worker until it is closed.

    Parameters
    ----------
    source : str
        One of `SOURCES`.
    """

    def __init__(self, source: str) -> None:
        executor, self._config = SOURCES[source]
        self.worker = Worker(executor)

    def __call__(self, test: LitmusTest) -> LitmusTest:
        """The test with the clusters that the executor chooses for it.

        Raises
        ------
        NotLifted
            If the executor refuses the test, or dies of it; if its clusters are
            none in the sense of semantics.md.
        """
        plain = replace(test, clusters=())
        request = messages.Request(test=dumps(Entry(plain)), task="clusters", config=self._config)
        reply = self.worker.ask(request, _TIMEOUT_S)
        if isinstance(reply, Died):
            raise NotLifted(f"{self.worker.executor}: {reply.message}")
        if reply.refused or reply.unavailable:
            raise NotLifted(f"{self.worker.executor}: {reply.refused or reply.unavailable}")
        taken = {*test.types, *(each.name for each in test.resources)}
        names = (name for name in (f"c{i}" for i in count()) if name not in taken)
        clusters = zip(names, map(tuple, reply.clusters.values()), strict=False)
        try:
            return replace(plain, clusters=tuple(Cluster(*each) for each in clusters))
        except MalformedTest as error:
            raise NotLifted(f"no clusters as we know them: {error}") from None

    def close(self) -> None:
        """End the worker."""
        self.worker.close()


def kept_apart(test: LitmusTest) -> list[tuple[str, str]]:
    """Nodes on variables that our clusterer joins, and the test's clusters do not.

    Ours takes edges in the order of the nodes: of two that exclude each other it
    contracts the first, and another clusterer may well take the second.
    """
    theirs = {name: each.name for each in test.clusters for name in each.members}
    effects = {node.name for graph in test.graphs for node in graph.effects}
    return [
        (a, b)
        for ours in cluster(replace(test, clusters=())).clusters
        for a, b in combinations((name for name in ours.members if name in effects), 2)
        if a not in theirs or theirs[a] != theirs.get(b)
    ]
