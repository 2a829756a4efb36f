"""The reference oracle: every total order, one by one, from the rules alone.

Short, slow, obviously right. Whatever is faster is tested equal to it.

References
----------
RFC, "Concurrency Semantics": "Resource variable reads and writes follow
sequential semantics as if they were executed in this total order."
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from corpus.outcome import Outcome
from oracles.allowed import AllowedSet
from oracles.arithmetic import gathered, pure, written
from oracles.events import Access, Event, Join, Pure, Result, unfold

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from corpus.graph import LitmusTest
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

    `memory` holds each variable's contents after the prefix, `seen` what each
    event of the prefix that reads saw: one value for each of its variables.
    """

    def __init__(self, test: LitmusTest, model: Model) -> None:
        self.test = test
        self.unfolding = unfold(test, model)
        self.events = self.unfolding.events
        self.memory: dict[str, Ints] = {v.name: test.initial(v) for v in test.variables}
        self.row_size = {
            v.name: len(self.memory[v.name]) // v.shape[0] if v.shape else 1 for v in test.variables
        }
        self.seen: dict[int, list[Ints]] = {}
        self.prefix: list[Event] = []
        self.done: set[int] = set()

    def outcomes(self) -> Iterator[Outcome]:
        """The outcome of each total order; `prefix` is then that order."""
        trail: list[tuple[int, dict[str, Ints]]] = []  # events executed, with what they overwrote
        untried = [self.enabled()]  # for each prefix: what may come next and was not tried
        while untried:
            if len(trail) == len(self.events):
                yield self.outcome()
            if untried[-1]:
                index = untried[-1].pop()
                event = self.events[index]
                trail.append((index, {name: self.memory[name] for name in event.variables}))
                self.step(index)
                self.prefix.append(event)
                self.done.add(index)
                untried.append(self.enabled())
            else:
                untried.pop()
                if trail:
                    index, overwritten = trail.pop()
                    self.done.remove(index)
                    self.prefix.pop()
                    self.memory.update(overwritten)

    def enabled(self) -> list[int]:
        """Events that may come next; the first is last."""
        ready = self.ready()
        return [
            i
            for i, event in reversed(list(enumerate(self.events)))
            if i not in self.done
            and all(ready[token] for token in event.needs)
            and all(other in self.done for other in event.after)
        ]

    def ready(self) -> list[bool]:
        """Which tokens are ready."""
        ready: list[bool] = []
        for token in self.unfolding.tokens:
            if isinstance(token, Result):
                ready.append(token.event in self.done)
            else:
                parts = token.tokens if isinstance(token, Join) else token.inputs + token.waits
                ready.append(all(ready[part] for part in parts))
        return ready

    def step(self, index: int) -> None:
        """Execute one event: reads see memory, writes change it."""
        event = self.events[index]
        node = event.node
        if event.access is not Access.WRITE:
            self.seen[index] = [self.memory[name] for name in event.variables]
        if event.access is not Access.READ:
            # An update that is one event saw what it just read; one in parts,
            # what each of its reads saw; a write saw nothing.
            saw = self.seen[index] if event.access is Access.UPDATE else []
            saw = saw + [value for other in event.after for value in self.seen[other]]
            values = self.values(event.operands)
            row = self.row_size[node.resources[0]]
            stored = written(node, saw, [values[token] for token in event.operands], row)
            for name, value in zip(node.resources, stored, strict=True):
                if name in event.variables:
                    self.memory[name] = value

    def values(self, wanted: Iterable[int]) -> dict[int, Ints]:
        """Values of the tokens wanted, and of all that they are made of."""
        tokens = self.unfolding.tokens
        needed = set(wanted)
        for index in sorted(needed, reverse=True):
            self._add_inputs(index, needed)
        values: dict[int, Ints] = {}
        for index in sorted(needed):
            token = tokens[index]
            if isinstance(token, Result):
                node = self.events[token.event].node
                (saw,) = self.seen[token.event]
                values[index] = gathered(node, saw, self.row_size[node.resources[0]])
            elif isinstance(token, Pure) and token.node.op == "Const":
                values[index] = self.test.constant(token.node)
            elif isinstance(token, Pure) and token.node.op != "NoOp":
                shapes = [self.test.type_of(name).shape for name in token.node.inputs]
                operands = [values[part] for part in token.inputs]
                values[index] = pure(token.node, operands, shapes)
        return values

    def _add_inputs(self, index: int, needed: set[int]) -> None:
        stack = [index]
        while stack:
            token = self.unfolding.tokens[stack.pop()]
            if isinstance(token, Pure):
                stack += [part for part in token.inputs if part not in needed]
                needed.update(token.inputs)

    def outcome(self) -> Outcome:
        """The outcome of the order just completed."""
        values = self.values(token for _, token in self.unfolding.observed)
        observed = {name: values[token] for name, token in self.unfolding.observed}
        return Outcome.of(self.test, observed | self.memory)
