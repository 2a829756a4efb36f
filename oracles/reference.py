"""The reference oracle: every total order, one by one, from the rules alone.

Short, slow, obviously right. Whatever is faster is tested equal to it.

References
----------
RFC, "Concurrency Semantics": "Resource variable reads and writes follow
sequential semantics as if they were executed in this total order."
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from corpus.ops import Kind
from corpus.outcome import Outcome
from oracles.allowed import AllowedSet
from oracles.arithmetic import gathered, pure, written
from oracles.events import Access, Event, events_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from corpus.graph import LitmusTest, Node
    from oracles.allowed import Witness
    from oracles.arithmetic import Ints
    from oracles.model import Model

DEFAULT_BUDGET: Final = 200_000
"""Total orders; some seconds of work."""


def allowed_outcomes(
    test: LitmusTest, model: Model, budget_orders: int = DEFAULT_BUDGET
) -> AllowedSet:
    """Outcomes of every total order that `model` allows.

    Parameters
    ----------
    budget_orders : int
        Total orders to look at; past it the set is not `complete`.

    Returns
    -------
    AllowedSet
        Never empty: index order is always legal.

    Raises
    ------
    ValueTooLarge
        If a value reaches 2**24 in an order looked at: the test is ill-formed.
    """
    walk = _Walk(test, model)
    found: dict[Outcome, Witness] = {}
    orders = 0
    for outcome in walk.outcomes():
        if orders == budget_orders:
            return AllowedSet(model.name, found, orders, complete=False)
        orders += 1
        if outcome not in found:
            found[outcome] = tuple(walk.prefix)
    return AllowedSet(model.name, found, orders, complete=True)


class _Walk:
    """Depth-first over prefixes of total orders, with one memory and its undoing.

    `memory` holds each variable's contents after the prefix; `seen` what each
    read event of the prefix saw, by node and variable.
    """

    def __init__(self, test: LitmusTest, model: Model) -> None:
        self.test = test
        order = events_of(test, model)
        self.events = order.events
        self.before = [sum(1 << i for i in above) for above in order.before]
        self.nodes = {node.name: node for node in test.graph.nodes}
        self.constants = {
            node.name: test.constant(node) for node in test.graph.nodes if node.op == "Const"
        }
        self.pure_inputs = {node.name: self._pure_above(node) for node in test.graph.nodes}
        self.memory: dict[str, Ints] = {v.name: test.initial(v) for v in test.variables}
        self.row_size = {
            v.name: len(self.memory[v.name]) // v.shape[0] if v.shape else 1 for v in test.variables
        }
        self.seen: dict[tuple[str, str], Ints] = {}
        self.prefix: list[Event] = []

    def _pure_above(self, node: Node) -> list[Node]:
        """Pure nodes that `node` (itself included) needs computed, in order."""
        needed = {node.name, *node.inputs}
        found = []
        for each in reversed(self.test.graph.nodes):
            if each.name in needed and not each.definition.has_effect and each.op != "Const":
                needed.update(each.inputs)
                found.append(each)
        return found[::-1]

    def outcomes(self) -> Iterator[Outcome]:
        """The outcome of each total order; `prefix` is then that order."""
        done = 0
        trail: list[tuple[int, dict[str, Ints]]] = []  # events executed, with what they overwrote
        untried = [self.ready(done)]  # for each prefix: what may come next and was not tried
        while untried:
            if len(trail) == len(self.events):
                yield self.outcome()
            if untried[-1]:
                index = untried[-1].pop()
                event = self.events[index]
                trail.append((index, {name: self.memory[name] for name in event.variables}))
                self.prefix.append(event)
                self.step(event)
                done |= 1 << index
                untried.append(self.ready(done))
            else:
                untried.pop()
                if trail:
                    index, overwritten = trail.pop()
                    self.prefix.pop()
                    self.memory.update(overwritten)
                    done &= ~(1 << index)

    def ready(self, done: int) -> list[int]:
        """Events not done whose predecessors all are; the first is last."""
        return [
            i
            for i in reversed(range(len(self.events)))
            if not done >> i & 1 and not self.before[i] & ~done
        ]

    def step(self, event: Event) -> None:
        """Execute one event: reads see memory, writes change it."""
        node = event.node
        if event.access is not Access.WRITE:
            for name in event.variables:
                self.seen[node.name, name] = self.memory[name]
        if event.access is not Access.READ:
            reads = node.definition.kind is Kind.UPDATE
            seen = [self.seen[node.name, name] for name in node.resources] if reads else []
            values = self.values_for(node)
            operands = [values[name] for name in node.inputs]
            stored = written(node, seen, operands, self.row_size[node.resources[0]])
            for name, value in zip(node.resources, stored, strict=True):
                if name in event.variables:
                    self.memory[name] = value

    def values_for(self, node: Node) -> dict[str, Ints]:
        """Values of what `node` needs, and its own if it is pure, by node name."""
        values: dict[str, Ints] = {}

        def value(name: str) -> Ints:
            if name in values:
                return values[name]
            if name in self.constants:
                return self.constants[name]
            source = self.nodes[name]
            variable = source.resources[0]
            return gathered(source, self.seen[name, variable], self.row_size[variable])

        for each in self.pure_inputs[node.name]:
            if each.op != "NoOp":
                shapes = [self.test.type_of(i).shape for i in each.inputs]
                values[each.name] = pure(each, [value(i) for i in each.inputs], shapes)
        for name in (node.name, *node.inputs) if not node.definition.kind.writes else node.inputs:
            values[name] = value(name)
        return values

    def outcome(self) -> Outcome:
        """The outcome of the order just completed."""
        values = {name: self.values_for(self.nodes[name])[name] for name in self.test.observe}
        return Outcome.of(self.test, values | self.memory)
