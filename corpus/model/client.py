"""Runs of graphs by the client."""

from __future__ import annotations

from typing import TYPE_CHECKING

from litmusfuzz.corpus.struct import Struct

if TYPE_CHECKING:
    from litmusfuzz.corpus.model.graph import Graph
    from litmusfuzz.corpus.ops import Nested


class Run(Struct, frozen=True):
    """One run of a graph by the client, after other runs have ended.

    Parameters
    ----------
    name, graph : str
    after : tuple of str
        Runs that have ended before this one begins.
    fetches : tuple of str
        Values that the client asks for: nodes of the graph outside bodies, and results of loops
        and conditionals as ``node.result``.
    targets : tuple of str
        Nodes that are to run, whose values the client does not ask for.
    feeds : tuple of (str, Nested)
        The value of each placeholder, by its name.

    Notes
    -----
    A run that names fetches or targets executes what these need, and nothing else
    (`LitmusTest.graph_of`); a run that names none executes its whole graph.

    References
    ----------
    semantics.md, section 1, "Run".
    """

    name: str
    graph: str
    after: tuple[str, ...] = ()
    fetches: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    feeds: tuple[tuple[str, Nested], ...] = ()

    @property
    def wanted(self) -> tuple[str, ...]:
        """What the run fetches, then its targets; if none, it executes its whole graph."""
        return self.fetches + self.targets


def runs_of(client: tuple[Run, ...], graphs: tuple[Graph, ...]) -> tuple[Run, ...]:
    """The client's runs, or one of each graph if it lists none."""
    return client or tuple([Run(graph.name, graph.name) for graph in graphs])


def listed(runs: tuple[Run, ...], graphs: tuple[Graph, ...]) -> tuple[Run, ...]:
    """The runs that a client lists: none where those of `runs_of` are the same.

    The name of a single run does not matter, as no key of an outcome has it.
    """
    if len(runs) != len(graphs) or any(run.wanted or run.feeds for run in runs):
        return runs
    return () if len(runs) == 1 or runs == runs_of((), graphs) else runs
