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

from corpus.graph import enclosing, section_order
from corpus.ops import CountAttrs, Kind, SectionAttrs
from oracles.model import Axiom

if TYPE_CHECKING:
    from corpus.graph import Graph, LitmusTest, Node
    from oracles.model import Model

Ints = tuple[int, ...]


class Access(Enum):
    """What an event does, atomically."""

    READ = "R"
    WRITE = "W"
    UPDATE = "U"
    """Reads all of its variables and writes all of them."""

    ACQUIRE = "lock"
    """Takes a mutex; possible while nobody holds it."""

    RELEASE = "unlock"

    ENQUEUE = "put"
    """Adds an element to a queue; possible while there is room."""

    DEQUEUE = "take"
    """Takes the oldest element; possible while there is one."""

    SIZE = "size"
    CLOSE = "close"


@dataclass(frozen=True, slots=True)
class Event:
    """One atomic step of one op instance.

    Parameters
    ----------
    node : Node
        The op.
    access : Access
    variables : tuple of str
        The resources that it touches: a single one, except for the indivisible
        update of several.
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
    part : int
        Which element of a many-op it is for, from 0.
    run : str
        Of which run; "" if there is only one.
    """

    node: Node
    access: Access
    variables: tuple[str, ...]
    needs: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    operands: tuple[int, ...] = ()
    guards: tuple[tuple[int, bool], ...] = ()
    part: int = 0
    run: str = ""

    def __str__(self) -> str:
        name = f"{self.run}.{self.node.name}" if self.run else self.node.name
        element = f"[{self.part}]" if "Many" in self.node.op else ""
        return f"{self.access.value}({','.join(self.variables)}) {name}{element}"


@dataclass(frozen=True, slots=True)
class Result:
    """Ready when the event is done; its value is what the event returned."""

    event: int


@dataclass(frozen=True, slots=True)
class Join:
    """Ready when all are ready; has no value."""

    tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Stack:
    """The results of events, one after another: ready when all are done."""

    events: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Pure:
    """The result of a pure node: ready when `inputs` and `waits` are."""

    node: Node
    inputs: tuple[int, ...]
    waits: tuple[int, ...] = ()


Token = Result | Join | Stack | Pure


@dataclass(frozen=True, slots=True)
class Unfolding:
    """All that may happen in a test.

    Invariant: an event needs tokens that stand on events before it, and comes
    after such events only. Where nothing blocks, index order is thus a total
    order that is allowed.

    Parameters
    ----------
    events : tuple of Event
    tokens : tuple of Token
    observed : tuple of (str, int, int)
        Name in an outcome, the token that has its value, and the token that is
        ready when its run has ended; in the order of `LitmusTest.observe`.
    """

    events: tuple[Event, ...]
    tokens: tuple[Token, ...]
    observed: tuple[tuple[str, int, int], ...]


def unfold(test: LitmusTest, model: Model) -> Unfolding:
    """All events of `test`, with the order that `model` demands of every run.

    Pure nodes have no events, but carry order from their inputs to their
    outputs.

    References
    ----------
    semantics.md, section 2 (the column "events") and section 3, rules 1 to 4;
    RFC, the same and "Resource Update Operations".
    """
    unfolder = _Unfolder(test, model)
    ended: dict[str, int] = {}  # runs: the token that is ready when all of it is done
    keys: dict[str, int] = {}
    run_of: dict[str, int] = {}
    for run in test.runs:
        graph = next(g for g in test.graphs if g.name == run.graph)
        # RFC, rule 3: a run's source is ordered after the sinks of those before it.
        source = tuple(ended[name] for name in run.after)
        token_of = unfolder.run(graph, run.name if len(test.runs) > 1 else "", source)
        ended[run.name] = unfolder.token(Join(tuple(token_of.values()) + source))
        for name, token in token_of.items():
            key = name if len(test.runs) == 1 else f"{run.name}.{name}"
            keys[key], run_of[key] = token, ended[run.name]
    observed = tuple((name, keys[name], run_of[name]) for name in test.observe)
    return Unfolding(tuple(unfolder.events), tuple(unfolder.tokens), observed)


_Step = tuple[Access, tuple[str, ...]]


class _Unfolder:
    def __init__(self, test: LitmusTest, model: Model) -> None:
        self.test = test
        self.model = model
        self.events: list[Event] = []
        self.tokens: list[Token] = []

    def token(self, token: Token) -> int:
        self.tokens.append(token)
        return len(self.tokens) - 1

    def run(self, graph: Graph, run: str, source: tuple[int, ...]) -> dict[str, int]:
        """Add one run of a graph that begins when `source` is ready.

        Returns
        -------
        dict of str to int
            Each node's token, ready when its instance is done; a section's
            when it has been released.
        """
        token_of: dict[str, int] = {}
        held: dict[str, tuple[int, ...]] = {}  # nodes: acquires of the sections around them
        sections = [n for n in graph.nodes if isinstance(n.attrs, SectionAttrs)]
        released: dict[str, int] = {}
        for kind, node in section_order(graph):
            inputs = tuple(token_of[name] for name in node.inputs)
            waits = source
            if Axiom.DEPENDENCIES in self.model.axioms:
                waits += tuple(token_of[name] for name in node.after)
            sectioned = Axiom.CRITICAL_SECTIONS in self.model.axioms
            if kind == "node":
                token_of[node.name] = self.instance(
                    node, inputs, waits + held.get(node.name, ()), run
                )
            elif not sectioned:
                # Without the rule a section is a node that waits and is waited for.
                assert isinstance(node.attrs, SectionAttrs)
                if kind == "release":
                    members = tuple(token_of[name] for name in node.attrs.members)
                    token_of[node.name] = self.token(Join(waits + members))
            elif kind == "acquire":
                outer = tuple(
                    token for other in enclosing(node, sections) for token in held[other.name]
                )
                acquire = Event(node, Access.ACQUIRE, node.resources, waits + outer, run=run)
                self.events.append(acquire)
                taken = self.token(Result(len(self.events) - 1))
                held[node.name] = (taken,)
                assert isinstance(node.attrs, SectionAttrs)
                for name in node.attrs.members:
                    held[name] = (*held.get(name, ()), taken)
            else:
                assert isinstance(node.attrs, SectionAttrs)
                inner = [s for s in sections if node in enclosing(s, sections)]
                needs = held[node.name]
                needs += tuple(token_of[name] for name in node.attrs.members)
                needs += tuple(released[s.name] for s in inner)
                self.events.append(Event(node, Access.RELEASE, node.resources, needs, run=run))
                released[node.name] = self.token(Result(len(self.events) - 1))
                token_of[node.name] = released[node.name]
        return token_of

    def instance(
        self, node: Node, inputs: tuple[int, ...], waits: tuple[int, ...], run: str
    ) -> int:
        """Add one op instance; the token that is ready when it is done."""
        kind = node.definition.kind
        if kind is Kind.PURE:
            return self.token(Pure(node, inputs, waits))
        if kind is Kind.QUEUE:
            return self.queue_op(node, inputs, waits, run)
        done: tuple[int, ...] = ()
        for group in self.groups(node):
            first = len(self.events)
            for access, variables in group:
                # The events of one group are not ordered among themselves; the
                # groups are: an update reads, then writes.
                self.events.append(
                    Event(node, access, variables, inputs + waits, done, inputs, run=run)
                )
            done = tuple(range(first, len(self.events)))
        results = [self.token(Result(event)) for event in done]
        return results[0] if len(results) == 1 else self.token(Join(tuple(results)))

    def queue_op(
        self, node: Node, inputs: tuple[int, ...], waits: tuple[int, ...], run: str
    ) -> int:
        """One event for each element, in index order; Size and Close have one."""
        access = {
            "QueueEnqueueV2": Access.ENQUEUE,
            "QueueEnqueueManyV2": Access.ENQUEUE,
            "QueueDequeueV2": Access.DEQUEUE,
            "QueueDequeueManyV2": Access.DEQUEUE,
            "QueueSizeV2": Access.SIZE,
            "QueueCloseV2": Access.CLOSE,
        }[node.op]
        parts = 1
        if isinstance(node.attrs, CountAttrs):
            parts = node.attrs.count
        elif "Many" in node.op:
            parts = self.test.type_of(node.inputs[0]).shape[0]
        first = len(self.events)
        for part in range(parts):
            after = (len(self.events) - 1,) if part else ()
            self.events.append(
                Event(
                    node, access, node.resources, inputs + waits, after, inputs, part=part, run=run
                )
            )
        if parts == 1 and "Many" not in node.op:
            return self.token(Result(first))
        return self.token(Stack(tuple(range(first, first + parts))))

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
            if isinstance(token, (Result, Stack)):
                events = (token.event,) if isinstance(token, Result) else token.events
                behind.append(frozenset(events).union(*(before[event] for event in events)))
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
    For unfoldings without choices, and without anything that blocks.
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
