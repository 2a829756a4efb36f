"""The reference oracle: enumerates every total order, directly from the rules.

It is short, slow and easy to verify. Tests compare the faster oracles with it.

References
----------
RFC, "Concurrency Semantics": "Resource variable reads and writes follow
sequential semantics as if they were executed in this total order."
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from litmusfuzz.corpus.ops import Kind
from litmusfuzz.corpus.outcome import Outcome, Status
from litmusfuzz.oracles import sequential
from litmusfuzz.oracles.allowed import AllowedSet
from litmusfuzz.oracles.arithmetic import called, gathered, pure, written
from litmusfuzz.oracles.errors import OpFails, TestTooLarge
from litmusfuzz.oracles.events import (
    Access,
    Event,
    Finished,
    Gathered,
    Held,
    Known,
    Pick,
    Pure,
    Result,
    Seen,
    Stack,
    Stored,
    has_value,
    parts_of,
    strictnesses,
    unfold,
)
from litmusfuzz.oracles.model import Axiom

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from litmusfuzz.corpus.model import LitmusTest, Node
    from litmusfuzz.corpus.pure.definition import Call
    from litmusfuzz.oracles.allowed import Witness
    from litmusfuzz.oracles.arithmetic import Ints
    from litmusfuzz.oracles.events import Strictness
    from litmusfuzz.oracles.model import Model

DEFAULT_BUDGET: Final = 200_000
"""Total orders; a few seconds of work."""


def allowed_outcomes(
    test: LitmusTest, model: Model, budget_orders: int = DEFAULT_BUDGET
) -> AllowedSet:
    """Outcomes of every total order that `model` allows.

    Parameters
    ----------
    budget_orders : int
        Largest number of total orders to visit; past it the set is not `complete`.

    Returns
    -------
    AllowedSet
        Never empty: index order is always legal.

    Raises
    ------
    ValueTooLarge
        If a value reaches 2**24 in a visited order: the test is ill-formed.
    """
    test, gradients = sequential.gradients_apart(test, model)
    found: dict[Outcome, Witness] = {}
    orders = 0
    for number, strictness in enumerate(strictnesses(test, model)):
        if number and not test.blocks:
            break  # a stricter executor yields nothing more, unless some op can block
        try:
            walk = _Walk(test, model, strictness)
        except TestTooLarge:
            return AllowedSet(model.name, found, orders, complete=False)
        for plain in walk.outcomes():
            outcome = sequential.differentiated(plain, gradients)
            if orders == budget_orders:
                return AllowedSet(model.name, found, orders, complete=False)
            orders += 1
            if number and outcome.status is not Status.BLOCKED:
                assert outcome in found, "a stricter executor yields a new outcome"
            if outcome not in found:
                found[outcome] = tuple(walk.prefix)
    return AllowedSet(model.name, found, orders, complete=True)


def orders_of(test: LitmusTest, model: Model) -> Iterator[tuple[Outcome, Witness]]:
    """Yield every total order of the loosest executor, with its outcome."""
    walk = _Walk(test, model, {})
    for outcome in walk.outcomes():
        yield outcome, tuple(walk.prefix)


def outcome_of(test: LitmusTest, model: Model, order: Witness) -> Outcome:
    """Return the outcome of one total order.

    Parameters
    ----------
    order : Witness
        A total order of `test` under `model`, for an executor of any strictness: events
        are matched by name. `model` has the axiom `FIFO`.
    """
    walk = _Walk(test, model, {})
    number = {str(event): i for i, event in enumerate(walk.events)}
    assert len(number) == len(walk.events), "two events with one name"
    for event in order:
        index = number[str(event)]
        walk.prefix.append(event)
        walk.done.add(index)
        if walk.fails(event):
            return Outcome.of(test, {}, Status.FAILED)
        walk.step(index, 0)
    if walk.failing(needed=True):
        return Outcome.of(test, {}, Status.FAILED)
    return walk.outcome()


def at_once(test: LitmusTest, model: Model, order: Witness) -> tuple[Witness, Outcome] | None:
    """Return a variant of a total order in which each many-op runs as early as possible.

    A many-op that has begun continues before any other event; of several, the one that
    began first.

    Parameters
    ----------
    order : Witness
        A total order of `test` under `model`, for the loosest executor. The result
        begins ops in the same order.

    Returns
    -------
    tuple of Witness and Outcome, or None
        None if an op cannot begin at its place in `order`, or fails.
    """
    walk = _Walk(test, model, {})
    number = {str(event): i for i, event in enumerate(walk.events)}
    left = [number[str(event)] for event in order]
    begun: dict[tuple[str, str, str], int] = {}
    while True:
        enabled = {index for index, _ in walk.enabled()}
        going_on = [index for index in enabled if walk.events[index].part]
        if not (left or enabled):
            return tuple(walk.prefix), walk.outcome()
        if going_on:
            index = min(going_on, key=lambda i: begun[walk.events[i].instance])
        elif left and left[0] in enabled:
            index = left[0]
        else:
            return None
        event = walk.events[index]
        if walk.fails(event):
            return None
        begun.setdefault(event.instance, len(begun))
        left = [other for other in left if other != index]
        walk.prefix.append(event)
        walk.done.add(index)
        walk.step(index, 0)


class _Walk:
    """Depth-first search over prefixes of total orders, with undo.

    After the prefix, `memory` holds each variable's contents, each queue's elements,
    and the state of each mutex; `closed` holds the closed queues; `seen` holds the
    values that each event of the prefix read: one for each of its variables, the
    element, or the size.
    """

    def __init__(
        self, test: LitmusTest, model: Model, strictness: Mapping[str, Strictness]
    ) -> None:
        self.test = test
        self.unfolding = unfold(test, model, strictness)
        self.events = self.unfolding.events
        cells = [cell for each in test.accumulators for cell in (each.sum, each.count, each.step)]
        self.memory: dict[str, Any] = {v.name: test.initial(v) for v in (*test.variables, *cells)}
        self.memory |= {each.line: () for each in test.accumulators}
        self.row_size = {
            v.name: test.size_of(v.shape) // v.shape[0] if v.shape else 1 for v in test.variables
        }
        self.capacity: dict[str, float] = {queue.name: queue.capacity for queue in test.queues}
        if Axiom.CAPACITY not in model.axioms:
            self.capacity = dict.fromkeys(self.capacity, math.inf)
        self.memory |= {queue.name: test.initial_elements(queue) for queue in test.queues}
        self.memory |= {mutex.name: False for mutex in test.mutexes}
        # Tokens that are ready when all their parts are; precomputed for speed.
        self.joint = [
            None if isinstance(token, (Result, Stack, Finished, Pick, Seen)) else parts_of(token)
            for token in self.unfolding.tokens
        ]
        # By pure token; the test would compute them again each time.
        self.constants: dict[int, Ints] = {}
        self.shapes: dict[int, list[tuple[int, ...]]] = {}
        self.calls: dict[int, Call] = {}
        for index, token in enumerate(self.unfolding.tokens):
            if isinstance(token, Pure) and token.node.definition.constant:
                self.constants[index] = test.constant(token.node)
            elif isinstance(token, Pure) and token.node.definition.meaning is not None:
                self.calls[index] = test.call(token.node)
            elif isinstance(token, Pure) and has_value(token.node):
                self.shapes[index] = [test.type_of(name).shape for name in token.node.inputs]
        self.known: dict[int, Ints] = {}  # values of tokens, computed on demand
        self.computed: list[list[int]] = [[]]  # tokens computed at each length of the prefix
        self.closed: set[str] = set()
        self.seen: dict[int, list[Ints]] = {}
        self.prefix: list[Event] = []
        self.done: set[int] = set()

    def outcomes(self) -> Iterator[Outcome]:
        """Yield the outcome of each total order; `prefix` is then that order."""
        trail: list[tuple[int, dict[str, Any]]] = []  # events executed, with what they overwrote
        if self.failing(needed=True):
            yield Outcome.of(self.test, {}, Status.FAILED)
            return
        untried = [self.enabled()]  # by prefix: enabled events not yet tried
        if not untried[-1]:
            yield from self.ends()
        while untried:
            if not untried[-1]:
                untried.pop()
                if trail:
                    index, overwritten = trail.pop()
                    self.done.remove(index)
                    self.prefix.pop()
                    # Values computed since may depend on the values it read.
                    for token in self.computed.pop():
                        del self.known[token]
                    self.memory.update(overwritten)
                    if self.events[index].access is Access.CLOSE:
                        self.closed.remove(self.events[index].variables[0])
                continue
            index, element = untried[-1].pop()
            event = self.events[index]
            trail.append((index, {name: self.memory[name] for name in event.variables}))
            self.prefix.append(event)
            self.computed.append([])
            self.done.add(index)
            if self.fails(event):
                # The order ends here (semantics.md, 3, "Not specified").
                untried.append([])
                self.done.remove(index)  # it has no result that could choose others
                chosen = self.chosen()
                self.done.add(index)
                if chosen:
                    yield Outcome.of(self.test, {}, Status.FAILED)
                continue
            self.step(index, element)
            if self.failing(needed=True):
                untried.append([])
                if self.chosen():
                    yield Outcome.of(self.test, {}, Status.FAILED)
                continue
            untried.append(self.enabled())
            if not untried[-1] and self.chosen():
                yield from self.ends()

    def ends(self) -> Iterator[Outcome]:
        """Yield the outcome, and `failed` too if an op fails that an executor may leave out."""
        yield self.outcome()
        if self.failing(needed=False):
            yield Outcome.of(self.test, {}, Status.FAILED)

    def failing(self, *, needed: bool) -> bool:
        """Return True if a pure op has failed by now, among those needed or among the others.

        An op fails as soon as it can: no event uses what has failed.
        """
        checks = [check for check in self.unfolding.checks if check.needed is needed]
        if not checks:
            return False
        ready = self.ready()
        for check in checks:
            live = all(ready[t] and self.holds(t) is wanted for t, wanted in check.guards)
            if ready[check.token] and live:
                try:
                    self.values([check.token])
                except OpFails:
                    return True
        return False

    def enabled(self) -> list[tuple[int, int]]:
        """Return the enabled events, each with the element a dequeue takes, in reverse order."""
        ready = self.ready()
        if Axiom.PREDICATES not in self.unfolding.axioms and any(
            self.dead(event, ready) for event in self.prefix
        ):
            return []  # an event came early and its predicate did not choose it: no order
        return [
            (i, element)
            for i, event in reversed(list(enumerate(self.events)))
            if i not in self.done
            and all(ready[token] for token in event.needs)
            and all(other in self.done for other in event.after)
            and self.may_come(event, ready)
            and self.possible(event)
            for element in self.elements(event)
        ]

    def elements(self, event: Event) -> range:
        """Return the queue positions a dequeue may take from; one for any other event."""
        if event.access is Access.DEQUEUE and Axiom.FIFO not in self.unfolding.axioms:
            return range(max(1, len(self.memory[event.variables[0]])))
        return range(1)

    def may_come(self, event: Event, ready: list[bool]) -> bool:
        """Return True if its predicates let the event happen now."""
        if Axiom.PREDICATES not in self.unfolding.axioms:
            return not self.dead(event, ready)
        return all(ready[token] and self.holds(token) is wanted for token, wanted in event.guards)

    def chosen(self) -> bool:
        """Return True if every early event was chosen by its predicates in the end."""
        if Axiom.PREDICATES in self.unfolding.axioms:
            return True
        ready = self.ready()
        return all(
            ready[token] and self.holds(token) is wanted
            for event in self.prefix
            for token, wanted in event.guards
        )

    def holds(self, token: int) -> bool | None:
        """Return True if a predicate that is ready is true; None if it has failed."""
        if token not in self.known:
            try:
                self.values([token])
            except OpFails:
                return None
        return bool(self.known[token][0])

    def dead(self, event: Event, ready: list[bool]) -> bool:
        """Return True if a guard is ready and has the wrong value."""
        return any(
            ready[token] and self.holds(token) is (not wanted) for token, wanted in event.guards
        )

    def possible(self, event: Event) -> bool:
        """Return True if its resource lets the event happen (semantics.md, 3, rules 2, 4)."""
        held = self.memory[event.variables[0]]
        if event.access is Access.ACQUIRE:
            return not held
        if event.access is Access.ENQUEUE:
            return self.fails(event) or len(held) < self.capacity[event.variables[0]]
        if event.access is Access.DEQUEUE:
            return self.fails(event) or len(held) > 0
        if event.access is Access.TAKE:
            return self.may_take(event)
        return True

    def may_take(self, event: Event) -> bool:
        """Return True if an accumulator has enough gradients for the head of its line."""
        _, count, _, line = event.variables
        required = self.values(event.operands)[event.operands[0]][0] if event.operands else 1
        first = self.memory[line][0] == event.after[0]
        return first and bool(self.memory[count][0] >= required)

    def fails(self, event: Event) -> bool:
        """Return True if the op ends in an error instead."""
        if event.access in (Access.READ, Access.UPDATE):
            needs_value = event.node.definition.kind is not Kind.STATE
            return needs_value and any(not self.memory[name] for name in event.variables)
        if event.access is Access.JOIN:
            return self.values(event.operands)[event.operands[0]][0] <= 0
        if event.variables[0] not in self.closed:
            return False
        empty = not self.memory[event.variables[0]]
        return event.access is Access.ENQUEUE or (event.access is Access.DEQUEUE and empty)

    def ready(self) -> list[bool]:
        """Return for each token whether it is ready."""
        ready: list[bool] = []
        for token, parts in zip(self.unfolding.tokens, self.joint, strict=True):
            if parts is not None:
                ready.append(not parts or False not in map(ready.__getitem__, parts))
            elif isinstance(token, (Result, Seen)):
                ready.append(token.event in self.done)
            elif isinstance(token, Stack):
                ready.append(all(event in self.done for event in token.events))
            elif isinstance(token, Finished):
                ready.append(
                    all(
                        event in self.done or self.dead(self.events[event], ready)
                        for event in token.events
                    )
                )
            else:
                assert isinstance(token, Pick)
                holds = self.holds(token.predicate) if ready[token.predicate] else None
                ready.append(holds is not None and ready[token.then if holds else token.other])
        return ready

    def step(self, index: int, element: int) -> None:
        """Execute one event: reads see memory, writes change it."""
        event = self.events[index]
        name = event.variables[0]
        if event.access in (Access.READ, Access.UPDATE, Access.SNAPSHOT):
            self.seen[index] = [self.memory[name] for name in event.variables]
        if event.access in (Access.WRITE, Access.UPDATE):
            self.write(index)
        elif event.access is Access.WRITE_BACK:
            for i, target in enumerate(event.variables):
                value, flag = event.operands[2 * i : 2 * i + 2]
                if self.holds(flag):
                    self.memory[target] = self.values([value])[value]
        elif event.access is Access.JOIN:
            self.memory[name] = (*self.memory[name], index)
        elif event.access is Access.TAKE:
            self.take(index)
        elif event.access in (Access.ACQUIRE, Access.RELEASE):
            self.memory[name] = event.access is Access.ACQUIRE
        elif event.access is Access.ENQUEUE:
            put = self.values(event.operands)[event.operands[0]]
            if event.node.definition.several:
                put = put[event.part : event.part + 1]
            self.memory[name] = (*self.memory[name], put)
        elif event.access is Access.DEQUEUE:
            held = self.memory[name]
            self.seen[index] = [held[element]]
            self.memory[name] = held[:element] + held[element + 1 :]
        elif event.access is Access.SIZE:
            self.seen[index] = [(len(self.memory[name]),)]
        elif event.access is Access.CLOSE:
            self.closed.add(name)

    def take(self, index: int) -> None:
        """Take an accumulator's sum: sum and count are empty, the step is one more."""
        total, count, step, line = self.events[index].variables
        self.seen[index] = [self.memory[total]]
        self.memory[total] = (0,) * len(self.memory[total])
        self.memory[count] = (0,)
        self.memory[step] = (self.memory[step][0] + 1,)
        self.memory[line] = self.memory[line][1:]

    def write(self, index: int) -> None:
        """Store the result of a write, or of the write of an update."""
        event = self.events[index]
        node = event.node
        # An update in one event has just read its values; a split update has read
        # them in its read events; a write reads nothing.
        saw = self.seen[index] if event.access is Access.UPDATE else []
        saw = saw + [value for other in event.after for value in self.seen[other]]
        values = self.values(event.operands)
        stored = self.stored(node, saw, [values[token] for token in event.operands])
        for name, value in zip(node.resources, stored, strict=True):
            if name in event.variables:
                self.memory[name] = value

    def stored(self, node: Node, saw: list[Ints], operands: list[Ints]) -> list[Ints]:
        """Return the values that a write or update stores in its resources."""
        if node.definition.computed:
            return [called(node, self.test.call(node), [*saw, *operands])]
        return written(node, saw, operands, self.row_size.get(node.resources[0], 1))

    def values(self, wanted: Iterable[int]) -> dict[int, Ints]:
        """Compute the values of the given tokens, which are ready, and of their parts."""
        stack = [token for token in wanted if token not in self.known]
        while stack:
            index = stack[-1]
            missing = [part for part in self.parts(index) if part not in self.known]
            if missing:
                stack += missing
            else:
                stack.pop()
                if index not in self.known:
                    self.compute(index)
                    self.computed[-1].append(index)
        return self.known

    def parts(self, index: int) -> tuple[int, ...]:
        """Return the tokens whose values determine the value of this one, as far as known."""
        token = self.unfolding.tokens[index]
        if isinstance(token, Pure):
            return token.inputs
        if isinstance(token, Held):
            return (token.token,)
        if isinstance(token, Pick):
            if token.predicate not in self.known:
                return (token.predicate,)
            return (token.then if self.known[token.predicate][0] else token.other,)
        return parts_of(token) if isinstance(token, (Gathered, Stored)) else ()

    def compute(self, index: int) -> None:
        """Store the value of a token that has one; the values of its parts are known."""
        values = self.known
        token = self.unfolding.tokens[index]
        if isinstance(token, Result):
            event = self.events[token.event]
            if event.node.definition.kind is Kind.STATE:
                values[index] = (int(bool(self.seen[token.event][0])),)
            elif event.access in (Access.READ, Access.DEQUEUE, Access.SIZE, Access.TAKE):
                (saw,) = self.seen[token.event]
                row = self.row_size.get(event.variables[0], 1)
                values[index] = gathered(event.node, saw, row)
        elif isinstance(token, Stack):
            seen = [self.seen[event][0] for event in token.events if event in self.seen]
            values[index] = tuple(v for part in seen for v in part)
        elif isinstance(token, Known):
            values[index] = token.value
        elif isinstance(token, Seen):
            values[index] = self.seen[token.event][token.place]
        elif isinstance(token, Gathered):
            row = self.row_size[token.node.resources[0]]
            values[index] = gathered(token.node, values[token.token], row)
        elif isinstance(token, Stored):
            values[index] = self.stored(
                token.node,
                [values[part] for part in token.seen],
                [values[part] for part in token.operands],
            )[token.place]
        elif isinstance(token, (Held, Pick)):
            values[index] = values[self.parts(index)[0]]
        elif index in self.constants:
            values[index] = self.constants[index]
        elif index in self.calls:
            assert isinstance(token, Pure)
            operands = [values[part] for part in token.inputs]
            values[index] = called(token.node, self.calls[index], operands)
        elif index in self.shapes:
            assert isinstance(token, Pure)
            operands = [values[part] for part in token.inputs]
            values[index] = pure(token.node, operands, self.shapes[index])

    def outcome(self) -> Outcome:
        """Return the outcome of an order without further events: completed or blocked."""
        ready = self.ready()
        over = all(i in self.done or self.dead(e, ready) for i, e in enumerate(self.events))
        status = Status.COMPLETED if over else Status.BLOCKED
        shown = [(name, token) for name, token, ended in self.unfolding.observed if ready[ended]]
        values = self.values(token for _, token in shown)
        finals = {name: self.memory[name] for name in self.test.names if name in self.memory}
        observed = {name: values[token] for name, token in shown}
        return Outcome.of(self.test, observed | finals, status)
