"""What mutants have in common that execute another test than they are given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from litmusfuzz.corpus.model import MalformedTest, map_levels, map_nodes
from litmusfuzz.corpus.struct import replace

if TYPE_CHECKING:
    from collections.abc import Callable

    from litmusfuzz.corpus.model import Body, LitmusTest, Node
    from litmusfuzz.fuzz.executors.protocol import Config


class ChangesTest:
    """A mutant that changes the test before it is executed."""

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """The changed test, which has all names of the original.

        Raises
        ------
        MalformedTest
            If the change does not apply to this test.
        """
        raise NotImplementedError

    @classmethod
    def executed(cls, test: LitmusTest) -> LitmusTest:
        """The changed test, or the test as it is where the change does not apply."""
        try:
            return cls.changed(test)
        except MalformedTest:
            return test

    @classmethod
    def reaches(cls, test: LitmusTest, config: Config) -> bool:
        """False if the test stays as it is."""
        del config
        return cls.executed(test) != test


def with_levels(
    test: LitmusTest, change: Callable[[tuple[Node, ...]], tuple[Node, ...]]
) -> LitmusTest:
    """The test with the nodes of each graph and body changed, innermost first."""

    def changed(body: Body) -> Body:
        return replace(body, nodes=change(body.nodes))

    return replace(test, graphs=map_levels(test.graphs, changed))


def with_nodes(test: LitmusTest, change: Callable[[Node], Node]) -> LitmusTest:
    """The test with every node changed, innermost first."""
    return replace(test, graphs=map_nodes(test.graphs, change))
