"""Why an outcome is forbidden: the fewest edges and rules that forbid it, and a cycle.

A *reason* is a set of control edges, orders of runs and rules of the model that
alone forbid the outcome, none of which can be left out: found by leaving out
one after the other, and asking the reference oracle each time. Where the
values seen put events in an order of their own, the contradiction is told as a
cycle, as herd and Elle do.

References
----------
Alglave, Maranget, Tautschnig, "Herding Cats", TOPLAS 2014, section 4.8 (cycles
as explanations); Kingsbury, Alvaro, "Elle", VLDB 2020, section 4; Junker,
"QuickXplain", AAAI 2004 (minimal conflicts by deletion).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from corpus.graph import Graph, LitmusTest, Node, Run, predecessors
from corpus.outcome import TORN, plain_value
from oracles.events import Access, Event, unfold
from oracles.model import Axiom, Model
from oracles.reference import allowed_outcomes, orders_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from corpus.outcome import Outcome, Value


@dataclass(frozen=True, slots=True)
class Edge:
    """`target` waits for `source`: nodes of one graph, or (`runs`) two runs."""

    source: str
    target: str
    runs: bool = False

    def __str__(self) -> str:
        return f"{self.target} waits for {self.source}"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why an outcome is forbidden.

    Parameters
    ----------
    edges : tuple of Edge
    rules : tuple of str
        Names of axioms (`oracles.model.Axiom`) beyond dependencies.
    cycle : tuple of str
        One sentence for each step, back to where it began; empty where no
        single cycle explains it.
    """

    edges: tuple[Edge, ...]
    rules: tuple[str, ...]
    cycle: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.cycle:
            return "; ".join(self.cycle)
        parts = [*map(str, self.edges), *(f"rule: {rule}" for rule in self.rules)]
        return "; ".join(parts) or "no order of these events yields these values"


def explain(
    test: LitmusTest, model: Model, wanted: Mapping[str, Value], budget_orders: int
) -> Reason | None:
    """The reason why `model` forbids every outcome with the values wanted.

    Parameters
    ----------
    wanted : mapping
        Values by name; what it does not name may be anything.

    Returns
    -------
    Reason or None
        None if one is allowed, or some question to the reference
        oracle took more than `budget_orders` total orders.
    """
    if TORN in wanted.values():
        return Reason((), ("reads and writes of a whole variable are atomic",))
    edges, rules = _constraints(test, model)
    if _forbids(_relaxed(test, edges), _with(model, rules), wanted, budget_orders) is not True:
        return None
    # Edges that are far apart go first, so that what is left is close by.
    for edge in sorted(edges, key=str, reverse=True):
        fewer = [each for each in edges if each != edge]
        verdict = _forbids(_relaxed(test, fewer), _with(model, rules), wanted, budget_orders)
        if verdict is None:
            return None
        if verdict:
            edges = fewer
    for rule in list(rules):
        fewer_rules = [each for each in rules if each != rule]
        verdict = _forbids(_relaxed(test, edges), _with(model, fewer_rules), wanted, budget_orders)
        if verdict is None:
            return None
        if verdict:
            rules = fewer_rules
    cycle = _cycle(test, model, edges, rules, wanted, budget_orders)
    return Reason(tuple(edges), tuple(str(rule) for rule in rules), cycle)


def _constraints(test: LitmusTest, model: Model) -> tuple[list[Edge], list[Axiom]]:
    """Every order between effects of one graph, every order of runs, every rule.

    All paths, not only the edges as drawn: leaving out one edge of a chain then
    leaves the order of its ends.
    """
    edges = []
    for graph in test.graphs:
        effects = {n.name for n in graph.effects}
        for node, above in predecessors(graph):
            if node.name in effects:
                edges += [Edge(name, node.name) for name in sorted(above & effects)]
    edges += [Edge(name, run.name, runs=True) for run in test.runs for name in run.after]
    return edges, sorted(model.axioms - {Axiom.DEPENDENCIES}, key=str)


def _relaxed(test: LitmusTest, edges: Iterable[Edge]) -> LitmusTest:
    """The test with those orders only; data edges stay, as values need them."""
    kept = set(edges)
    graphs = []
    for graph in test.graphs:
        nodes: list[Node] = []
        for node in graph.nodes:
            waits = tuple(
                e.source for e in edges if not e.runs and e.target == node.name and e in kept
            )
            nodes.append(replace(node, after=waits))
        graphs.append(Graph(graph.name, tuple(nodes)))
    client = tuple(
        Run(run.name, run.graph, tuple(n for n in run.after if Edge(n, run.name, True) in kept))  # noqa: FBT003
        for run in test.client
    )
    return replace(test, graphs=tuple(graphs), client=client)


def _with(model: Model, rules: Iterable[Axiom]) -> Model:
    return replace(model, axioms=frozenset({Axiom.DEPENDENCIES, *rules}))


def _forbids(
    test: LitmusTest, model: Model, wanted: Mapping[str, Value], budget: int
) -> bool | None:
    allowed = allowed_outcomes(test, model, budget)
    if any(matches(outcome, wanted) for outcome in allowed.witnesses):
        return False
    return True if allowed.complete else None


def matches(outcome: Outcome, wanted: Mapping[str, Value]) -> bool:
    """Whether an outcome has the values wanted."""
    values = dict(outcome.values)
    return all(name in values and values[name] == value for name, value in wanted.items())


def _cycle(
    test: LitmusTest,
    model: Model,
    edges: list[Edge],
    rules: list[Axiom],
    wanted: Mapping[str, Value],
    budget: int,
) -> tuple[str, ...]:
    """The shortest cycle of edges of the reason and orders that the values demand."""
    free = _relaxed(test, ())
    bare = _with(model, rules)
    always: set[tuple[int, int]] | None = None
    events = unfold(free, bare).events
    for count, (outcome, order) in enumerate(orders_of(free, bare)):
        if count == budget:
            return ()
        if not matches(outcome, wanted):
            continue
        position = {event: i for i, event in enumerate(order)}
        pairs = {
            (a, b)
            for a, first in enumerate(events)
            for b, second in enumerate(events)
            if first in position and second in position and position[first] < position[second]
        }
        always = pairs if always is None else always & pairs
    if always is None:
        return ()
    waits = {
        (a, b): f"{_name(second)} waits for {_name(first)}"
        for edge in edges
        for a, first in enumerate(events)
        for b, second in enumerate(events)
        if _is_between(edge, first, second)
    }
    steps = {(a, b): _words(events[a], events[b], wanted) for a, b in always}
    # Reads-from, from-read and write order first: they can be seen in the values.
    close = {pair: words for pair, words in steps.items() if _conflict(events, *pair)}
    return _shortest(close | waits) or _shortest(steps | waits)


def _conflict(events: tuple[Event, ...], a: int, b: int) -> bool:
    """Whether two events touch one variable and one of them changes it, or are one op."""
    first, second = events[a], events[b]
    shared = set(first.variables) & set(second.variables)
    reads = first.access is Access.READ and second.access is Access.READ
    return first.node == second.node or bool(shared and not reads)


def _is_between(edge: Edge, first: Event, second: Event) -> bool:
    if edge.runs:
        return (first.run, second.run) == (edge.source, edge.target)
    same_run = first.run == second.run
    return same_run and (first.node.name, second.node.name) == (edge.source, edge.target)


def _writes(event: Event) -> bool:
    return event.access in (Access.WRITE, Access.UPDATE)


def _name(event: Event) -> str:
    return f"{event.run}.{event.node.name}" if event.run else event.node.name


def _words(first: Event, second: Event, values: Mapping[str, Value]) -> str:
    """Why the values put `first` before `second`."""
    shared = [name for name in first.variables if name in second.variables]
    if first.node == second.node:
        return f"{_name(first)} reads before it writes"
    for reader, writer, relation in ((first, second, "before"), (second, first, "after")):
        key = _name(reader)
        if reader.access is Access.READ and _writes(writer) and shared and key in values:
            read = plain_value(values[key])
            return f"{key} read {read} of {shared[0]}, so it came {relation} {_name(writer)}"
    if shared and shared[0] in values and _writes(first) and _writes(second):
        final = plain_value(values[shared[0]])
        return f"{shared[0]} ended as {final}, so {_name(first)} came before {_name(second)}"
    return f"the values put {_name(first)} before {_name(second)}"


def _shortest(steps: dict[tuple[int, int], str]) -> tuple[str, ...]:
    """The words along a shortest cycle; empty if there is none."""
    best: tuple[str, ...] = ()
    following: dict[int, list[int]] = {}
    for a, b in sorted(steps):
        following.setdefault(a, []).append(b)
    for start in following:
        came: dict[int, int] = {}
        queue = deque([start])
        while queue and start not in came:
            node = queue.popleft()
            for other in following.get(node, ()):
                if other not in came:
                    came[other] = node
                    queue.append(other)
        if start not in came:
            continue
        path = [start]
        while len(path) == 1 or path[-1] != start:
            path.append(came[path[-1]])
        words = tuple(steps[a, b] for b, a in pairwise(path))[::-1]
        if not best or len(words) < len(best):
            best = words
    return best
