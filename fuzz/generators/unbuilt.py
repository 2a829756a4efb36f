"""A test that is generated and not yet validated: most attempts at a test are given up."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from litmusfuzz.corpus.model import Graph, LitmusTest, Run, all_nodes, head

if TYPE_CHECKING:
    from collections.abc import Mapping

    from litmusfuzz.corpus.model import Cluster, Node, Queue
    from litmusfuzz.fuzz.generators.context import Context


@dataclass(frozen=True, slots=True)
class UnbuiltTest:
    """A test that is not validated: most attempts are too large, and go without."""

    name: str
    context: Context
    graphs: tuple[Graph, ...]
    observe: tuple[str, ...]
    client: tuple[Run, ...] = ()
    clusters: tuple[Cluster, ...] = ()
    ends: tuple[int, ...] = ()
    """Numbers of nodes after which the last graph may end; the least number first."""

    def ending(self, end: int) -> UnbuiltTest:
        """The test whose last graph has only so many nodes, one of `ends`."""
        *others, last = self.graphs
        gone = {node.name for node in last.nodes[end:]}
        names = (key.partition(".")[2] if self.client else key for key in self.observe)
        return replace(
            self,
            graphs=(*others, Graph(last.name, last.nodes[:end])),
            observe=tuple(
                key for key, name in zip(self.observe, names, strict=True) if head(name) not in gone
            ),
            ends=tuple(each for each in self.ends if each < end),
        )

    def build(self) -> LitmusTest:
        """The test."""
        return LitmusTest(
            self.name,
            self.context.variables,
            self.graphs,
            self.observe,
            mutexes=self.context.mutexes,
            queues=self.queues,
            client=self.client,
            clusters=self.clusters,
        )

    @property
    def runs(self) -> tuple[Run, ...]:
        """As `LitmusTest.runs`."""
        return self.client or tuple(Run(graph.name, graph.name) for graph in self.graphs)

    @property
    def nodes(self) -> tuple[Node, ...]:
        """As `LitmusTest.nodes`."""
        return tuple(all_nodes(node for graph in self.graphs for node in graph.nodes))

    @property
    def queues(self) -> tuple[Queue, ...]:
        """As `LitmusTest.queues`."""
        return self.context.queues

    @property
    def bounds(self) -> Mapping[str, int]:
        """As `LitmusTest.bounds`."""
        return self.context.bounds

    @property
    def blocks(self) -> bool:
        """As `LitmusTest.blocks`."""
        return bool(self.context.mutexes or self.context.queues)

    def elements(self, node: Node) -> int:
        """As `LitmusTest.elements`."""
        return self.context.elements.get(node.name, 1)
