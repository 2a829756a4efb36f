"""From a litmus test to what may happen: op instances, their events, their order.

A test is *unfolded* into a finite list of events and tokens. Each oracle plays
the same game on it: pick an event that is enabled, execute it, until none is
left. This is the one module that all oracles share: what it gets wrong, they
get wrong together. It is held by exact sets written by hand (`corpus/litmus`).

Terms
-----
event
    One atomic step of one op instance.
token
    Something that becomes *ready*, and may then have a value: the result of an
    event, of a pure node, of a choice. Values and waiting go through tokens.
enabled
    An event whose `needs` are ready, whose `after` are done, whose guards hold
    and whose action is possible now.
dead
    An event one of whose guards is ready and does not hold: it never happens.

References
----------
semantics.md, sections 2 and 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from corpus.ops import Kind
from oracles.model import Axiom

if TYPE_CHECKING:
    from corpus.graph import LitmusTest, Node
    from oracles.model import Model

Ints = tuple[int, ...]


class Access(Enum):
    """What an event does, atomically."""

    READ = "R"
    WRITE = "W"
    UPDATE = "U"
    """Reads all of its variables and writes all of them."""


@dataclass(frozen=True, slots=True)
class Event:
    """One atomic step of one op instance.

    Parameters
    ----------
    node : Node
        The op.
    access : Access
    variables : tuple of str
        A single one, except for the indivisible update of several.
    needs : tuple of int
        Tokens that must be ready.
    after : tuple of int
        Events that must be done: for the write of an update, its reads, in the
        order of the node's resources. They say what the update saw.
    operands : tuple of int
        Tokens whose values it uses, in the order of the node's inputs; among
        `needs` too.
    guards : tuple of (int, bool)
        Tokens of predicates, and what each must be; outermost first.
    """

    node: Node
    access: Access
    variables: tuple[str, ...]
    needs: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    operands: tuple[int, ...] = ()
    guards: tuple[tuple[int, bool], ...] = ()

    def __str__(self) -> str:
        return f"{self.access.value}({','.join(self.variables)}) {self.node.name}"


@dataclass(frozen=True, slots=True)
class Result:
    """Ready when the event is done; its value is what the event returned."""

    event: int


@dataclass(frozen=True, slots=True)
class Join:
    """Ready when all are ready; has no value."""

    tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Pure:
    """The result of a pure node: ready when `inputs` and `waits` are."""

    node: Node
    inputs: tuple[int, ...]
    waits: tuple[int, ...] = ()


Token = Result | Join | Pure


@dataclass(frozen=True, slots=True)
class Unfolding:
    """All that may happen in a test.

    Invariant: a token or event refers to tokens and events that stand before
    it only, a `Result` to any event. Index order of events is a total order
    that is allowed.

    Parameters
    ----------
    events : tuple of Event
    tokens : tuple of Token
    observed : tuple of (str, int)
        Name in an outcome, and the token that has its value; in the order of
        `LitmusTest.observe`.
    """

    events: tuple[Event, ...]
    tokens: tuple[Token, ...]
    observed: tuple[tuple[str, int], ...]


def unfold(test: LitmusTest, model: Model) -> Unfolding:
    """All events of `test`, with the order that `model` demands of every run.

    Pure nodes have no events, but carry order from their inputs to their
    outputs.

    References
    ----------
    semantics.md, section 2 (the column "events") and section 3, rule 1; RFC,
    rule 1 and "Resource Update Operations".
    """
    return _Unfolder(test, model).unfolding()


_Step = tuple[Access, tuple[str, ...]]


class _Unfolder:
    def __init__(self, test: LitmusTest, model: Model) -> None:
        self.test = test
        self.model = model
        self.events: list[Event] = []
        self.tokens: list[Token] = []
        self.token_of: dict[str, int] = {}

    def unfolding(self) -> Unfolding:
        for node in self.test.graph.nodes:
            self.token_of[node.name] = self.instance(node)
        observed = tuple((name, self.token_of[name]) for name in self.test.observe)
        return Unfolding(tuple(self.events), tuple(self.tokens), observed)

    def instance(self, node: Node) -> int:
        """Add one op instance; the token that is ready when it is done."""
        inputs = tuple(self.token_of[name] for name in node.inputs)
        waits: tuple[int, ...] = ()
        if Axiom.DEPENDENCIES in self.model.axioms:
            waits = tuple(self.token_of[name] for name in node.after)
        if node.definition.kind is Kind.PURE:
            return self.token(Pure(node, inputs, waits))
        done: tuple[int, ...] = ()
        for group in self.groups(node):
            first = len(self.events)
            for access, variables in group:
                # The events of one group are not ordered among themselves; the
                # groups are: an update reads, then writes.
                self.events.append(Event(node, access, variables, inputs + waits, done, inputs))
            done = tuple(range(first, len(self.events)))
        results = [self.token(Result(event)) for event in done]
        return results[0] if len(results) == 1 else self.token(Join(tuple(results)))

    def token(self, token: Token) -> int:
        self.tokens.append(token)
        return len(self.tokens) - 1

    def groups(self, node: Node) -> list[list[_Step]]:
        """A node's events: a list of groups, one after another."""
        kind = node.definition.kind
        reads: list[_Step] = [(Access.READ, (name,)) for name in node.resources]
        writes: list[_Step] = [(Access.WRITE, (name,)) for name in node.resources]
        if kind is Kind.READ:
            return [reads]
        if kind is Kind.WRITE:
            return [writes]
        if node.definition.dense and Axiom.DENSE_UPDATES_INDIVISIBLE in self.model.axioms:
            return [[(Access.UPDATE, node.resources)]]
        return [reads, writes]


def events_before(unfolding: Unfolding) -> tuple[frozenset[int], ...]:
    """For each event, all events that come before it in every total order.

    Only for unfoldings without choices: there, what an event waits for is
    known beforehand.
    """
    before: list[frozenset[int]] = []
    behind: list[frozenset[int]] = []  # a token: the events that are done when it is ready
    position = 0

    def resolve(limit: int) -> None:
        nonlocal position
        while position < limit:
            token = unfolding.tokens[position]
            if isinstance(token, Result):
                behind.append(before[token.event] | {token.event})
            else:
                parts = token.tokens if isinstance(token, Join) else token.inputs + token.waits
                behind.append(frozenset[int]().union(*(behind[part] for part in parts)))
            position += 1

    for event in unfolding.events:
        assert not event.guards
        resolve(max(event.needs, default=-1) + 1)
        above = frozenset[int]().union(*(behind[token] for token in event.needs))
        before.append(above.union(event.after, *(before[other] for other in event.after)))
    return tuple(before)


def count_orders(unfolding: Unfolding, limit: int) -> int:
    """How many total orders there are, or `limit` if there are at least as many.

    By downsets, so that the count itself stays cheap where enumeration is not.
    For unfoldings without choices.
    """
    before = [sum(1 << i for i in above) for above in events_before(unfolding)]
    ways = {0: 1}  # downsets of size k, with the number of orders of each
    for _ in before:
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
