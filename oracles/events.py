"""From a graph to its events and the order that they must keep.

This is the one module that all oracles share: what it gets wrong, they get
wrong together. It is held by exact sets written by hand (`corpus/litmus`).

References
----------
semantics.md, sections 2 and 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from corpus.graph import predecessors
from corpus.ops import Kind
from oracles.model import Axiom

if TYPE_CHECKING:
    from corpus.graph import LitmusTest, Node
    from oracles.model import Model


class Access(Enum):
    """What an event does to its variables, atomically."""

    READ = "R"
    WRITE = "W"
    UPDATE = "U"
    """Reads all of its variables and writes all of them."""


@dataclass(frozen=True, slots=True)
class Event:
    """One atomic step of one op instance.

    `variables` is a single one, except for the indivisible update of several.
    """

    node: Node
    access: Access
    variables: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.access.value}({','.join(self.variables)}) {self.node.name}"


@dataclass(frozen=True, slots=True)
class EventOrder:
    """The events of a test and which must come before which.

    Invariant: ``before[i]`` is transitively closed, and holds indices below i
    only, so that index order is itself a total order that is allowed.
    """

    events: tuple[Event, ...]
    before: tuple[frozenset[int], ...]


def events_of(test: LitmusTest, model: Model) -> EventOrder:
    """All events of `test`, with the order that `model` demands of every run.

    Pure nodes have no events, but carry order from their inputs to their
    outputs.

    References
    ----------
    semantics.md, section 2 (the column "events") and section 3, rule 1; RFC,
    rule 1 and "Resource Update Operations".
    """
    events: list[Event] = []
    before: list[frozenset[int]] = []
    of_node: dict[str, frozenset[int]] = {}
    used: dict[str, frozenset[str]] = {}  # nodes whose values a node's value is made of
    for node, ancestors in predecessors(test.graph):
        used[node.name] = frozenset(node.inputs).union(*(used[name] for name in node.inputs))
        waits_for = ancestors if Axiom.DEPENDENCIES in model.axioms else used[node.name]
        earlier = frozenset[int]().union(*(of_node[name] for name in waits_for))
        first = len(events)
        for group in _groups(node, model):
            for event in group:
                events.append(event)
                before.append(earlier)
            # The events of one group are not ordered among themselves; the
            # groups are: an update reads, then writes.
            earlier |= frozenset(range(first, len(events)))
        of_node[node.name] = frozenset(range(first, len(events)))
    return EventOrder(tuple(events), tuple(before))


def _groups(node: Node, model: Model) -> list[list[Event]]:
    """A node's events: a list of groups, one after another."""
    kind = node.definition.kind
    if kind is Kind.PURE:
        return []
    reads = [Event(node, Access.READ, (name,)) for name in node.resources]
    writes = [Event(node, Access.WRITE, (name,)) for name in node.resources]
    if kind is Kind.READ:
        return [reads]
    if kind is Kind.WRITE:
        return [writes]
    if node.definition.dense and Axiom.DENSE_UPDATES_INDIVISIBLE in model.axioms:
        return [[Event(node, Access.UPDATE, node.resources)]]
    return [reads, writes]


def count_orders(order: EventOrder, limit: int) -> int:
    """How many total orders there are, or `limit` if there are at least as many.

    By downsets, so that the count itself stays cheap where enumeration is not.
    Assumes that no event ever waits for another's value, as is so in acyclic
    graphs.
    """
    before = [sum(1 << i for i in above) for above in order.before]
    ways = {0: 1}  # downsets of size k, with the number of orders of each
    for _ in order.events:
        larger: dict[int, int] = {}
        for done, count in ways.items():
            for i, above in enumerate(before):
                if not done >> i & 1 and not above & ~done:
                    grown = done | 1 << i
                    larger[grown] = larger.get(grown, 0) + count
        ways = larger
        # Every order of a prefix extends to at least one of the whole.
        if sum(ways.values()) >= limit:
            return limit
    return sum(ways.values())
