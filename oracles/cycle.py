"""The sentences that explain why an outcome is forbidden.

They describe a cycle of events, each before the next, or, for a blocked outcome, the events
that could still happen. A step of a cycle puts one event before another for one of four
reasons: an edge; a value that must exist before its use; the observed values (the opposite
order has no solution); or a rule that extends one step to others. For example, of two critical
sections on one mutex, all of one comes before all of the other.

References
----------
See `litmusfuzz.oracles.reason`.
"""

from __future__ import annotations

from collections import deque
from itertools import combinations, pairwise, product
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model import all_nodes, bodies
from litmusfuzz.corpus.ops import Kind, SectionAttrs
from litmusfuzz.corpus.outcome import plain_value
from litmusfuzz.oracles.axiomatic import Axiomatic, Case, Question
from litmusfuzz.oracles.events import Access, Event, unfold
from litmusfuzz.oracles.model import Axiom
from litmusfuzz.oracles.relaxed import BY_EDGE, relaxed, with_rules

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from litmusfuzz.corpus.model import LitmusTest, Node
    from litmusfuzz.corpus.outcome import Value
    from litmusfuzz.oracles.axiomatic import Budget
    from litmusfuzz.oracles.model import Model
    from litmusfuzz.oracles.relaxed import Edge

Pair = tuple[int, int]
Step = tuple[str, str, str]
"""A step of a cycle: the sentence, the node of the first event, the node of the second."""
Steps = dict[Pair, str]
"""Pairs of an earlier and a later event, each with its sentence."""

EXTENDING: Final = (Axiom.DENSE_UPDATES_INDIVISIBLE, Axiom.CRITICAL_SECTIONS, Axiom.FIFO)
"""Rules that extend one step to others, and so give steps of their own."""
MOST_PAIRS: Final = 3_000
"""Largest number of pairs of events to ask about; with more there is no cycle."""


def find_cycle(
    test: LitmusTest,
    model: Model,
    edges: Sequence[Edge],
    rules: Sequence[Axiom],
    question: Question,
    budget: Budget,
) -> tuple[Step, ...]:
    """Return a shortest cycle of steps from a reason's edges and rules, data flow, and values.

    The first attempt uses the extending rules as steps of the cycle. If that finds no
    cycle, the second attempt makes them constraints on the values instead.
    """
    extending = [rule for rule in rules if rule in EXTENDING]
    others = [rule for rule in rules if rule not in EXTENDING]
    if (len(edges) + len(model.axioms)) * Axiomatic(test, model, budget).size > budget.asked:
        return ()
    for constraints, step_rules in ((others, extending), (rules, [])):
        search = _Search(test, with_rules(model, constraints), edges, question, budget)
        found = search.cycle(step_rules)
        if found or not extending:
            return found
    return ()


class _Search:
    """Search for a cycle among the events of a test without its control edges."""

    def __init__(
        self,
        test: LitmusTest,
        model: Model,
        edges: Sequence[Edge],
        question: Question,
        budget: Budget,
    ) -> None:
        self.test = test
        self.model = model
        self.question = question
        self.budget = budget
        self.case = self._case(model, ())
        self.events = self.case.events
        self.index = {_key(event): i for i, event in enumerate(self.events)}
        self.steps: Steps = {}
        self._add_what_is_known(edges)

    def _case(self, model: Model, edges: Iterable[Edge]) -> Case:
        oracle = Axiomatic(relaxed(self.test, edges), model, self.budget)
        return next(iter(oracle.cases(self.question)))

    def _add_what_is_known(self, edges: Iterable[Edge]) -> None:
        """Add the orders that hold for all values: from data, rules and the reason's edges."""
        rules = sorted(self.model.axioms - BY_EDGE)
        # These rules decide which events exist, so they stay.
        kept = [rule for rule in rules if rule in (*EXTENDING, Axiom.CLUSTERS)]
        for a, b in self._pairs(self._case(with_rules(self.model, kept), ())):
            first, second = self.events[a], self.events[b]
            words = f"{_phrase(second)} needs what {_phrase(first)} returned"
            if _instance(first) == _instance(second):
                words = f"{_phrase(first)} comes before {_phrase(second)}"
            self.steps[a, b] = words
        for rule in (rule for rule in rules if rule not in kept):
            for a, b in self._pairs(self._case(with_rules(self.model, [*kept, rule]), ())):
                words = f"{_name(self.events[b])} waits for {_name(self.events[a])} (rule: {rule})"
                self.steps.setdefault((a, b), words)
        for edge in edges:
            for a, b in self._pairs(self._case(self.model, (edge,))):
                words = f"{_name(self.events[b])} waits for {_name(self.events[a])}"
                self.steps.setdefault((a, b), words)

    def _pairs(self, case: Case) -> Iterator[Pair]:
        """Yield pairs of indices of events; the first precedes the second in every total order."""
        numbers = [self.index.get(_key(event)) for event in case.events]
        for later, above in enumerate(case.above):
            for earlier in range(len(numbers)):
                a, b = numbers[earlier], numbers[later]
                if above >> earlier & 1 and a is not None and b is not None:
                    yield a, b

    def cycle(self, step_rules: Sequence[Axiom]) -> tuple[Step, ...]:
        """Return the shortest cycle, where `step_rules` extend steps to others."""
        forced = self._forced()
        if forced is None:
            return ()
        for pair in forced:
            self.steps.setdefault(pair, self._words(*pair))
        extensions = {
            Axiom.DENSE_UPDATES_INDIVISIBLE: self._extended_by_updates,
            Axiom.CRITICAL_SECTIONS: self._extended_by_sections,
            Axiom.FIFO: self._extended_by_queues,
        }
        while True:
            found = _shortest(self.steps)
            more: Steps = {}
            for rule in step_rules if not found else ():
                more |= dict(extensions[rule]())
            more = {pair: words for pair, words in more.items() if pair not in self.steps}
            if not more:
                return tuple(
                    (self.steps[a, b], self.events[a].node.name, self.events[b].node.name)
                    for a, b in found
                )
            self.steps |= more

    # --- orders that the values force -------------------------------------------------------

    def _forced(self) -> list[Pair] | None:
        """Return pairs of events on one resource or op whose order the values force.

        None if no order yields the values, or if that is unknown.
        """
        answer = self.case.solve()
        if answer is None or answer.order is None:
            return None
        left = [pair for pair in self._in(answer.order) if pair not in self.steps]
        if len(left) > MOST_PAIRS:
            return None
        forced: list[Pair] = []
        while left:
            a, b = left.pop()
            answer = self.case.solve([(b, a)])
            if answer is None:
                continue
            if answer.order is None:
                forced.append((a, b))
            else:
                # A counterexample to one pair is often one to others.
                left = sorted(set(left) & set(self._in(answer.order)))
        return sorted(forced)

    def _in(self, order: Sequence[int]) -> list[Pair]:
        """Return the pairs of events that conflict or belong to one op instance, earlier first."""
        return [(a, b) for a, b in combinations(order, 2) if self._meet(a, b)]

    def _meet(self, a: int, b: int) -> bool:
        """Return True if two events conflict or belong to one op instance."""
        first, second = self.events[a], self.events[b]
        reads = (Access.READ, Access.SNAPSHOT, Access.SIZE)
        unseen = first.access in reads and second.access in reads
        shared = set(first.variables) & set(second.variables)
        return _instance(first) == _instance(second) or bool(shared and not unseen)

    def _words(self, a: int, b: int) -> str:
        """Return the sentence that says why the values put `a` before `b`."""
        first, second = self.events[a], self.events[b]
        values = self.question.values
        shared = [name for name in first.variables if name in second.variables]
        for seer, other, relation in ((first, second, "before"), (second, first, "after")):
            saw = _saw(seer, values)
            if saw and shared and other.access not in _QUIET:
                return f"{saw}, so it came {relation} {_phrase(other)}"
        changes = first.access not in _QUIET and second.access not in _QUIET
        if changes and shared and shared[0] in values:
            ended = f"{shared[0]} ended as {plain_value(values[shared[0]])}"
            return f"{ended}, so {_phrase(first)} came before {_phrase(second)}"
        return f"the values put {_phrase(first)} before {_phrase(second)}"

    # --- rules that extend one step to others -------------------------------------------------

    def _extended_by_updates(self) -> Iterator[tuple[Pair, str]]:
        """Extend a step to or from one event of an indivisible update to all its events."""
        groups: dict[int, list[int]] = {}
        by_instance: dict[tuple[str, str, str], list[int]] = {}
        for index, event in enumerate(self.events):
            if event.node.definition.dense:
                groups[index] = by_instance.setdefault(_instance(event), [])
                groups[index].append(index)
        yield from self._extended(groups, "an update is one step")

    def _extended_by_sections(self) -> Iterator[tuple[Pair, str]]:
        """Extend a step between two sections on one mutex to all of their events."""
        for mutex in self.test.mutexes:
            groups: dict[int, list[int]] = {}
            for members, depth in _sections(self.test, mutex.name):
                instances: dict[tuple[str, str], list[int]] = {}
                for index, event in enumerate(self.events):
                    if event.node.name in members:
                        frame = "/".join(event.frame.split("/")[:depth])
                        groups[index] = instances.setdefault((event.run, frame), [])
                        groups[index].append(index)
            words = f"{mutex.name} is held by one section at a time"
            yield from self._extended(groups, words, both=True)

    def _extended(
        self, groups: Mapping[int, list[int]], words: str, *, both: bool = False
    ) -> Iterator[tuple[Pair, str]]:
        """Extend each step to all events in the groups of its two ends.

        An end without a group stands for itself; if `both`, such a step is skipped.
        """
        for (a, b), why in sorted(self.steps.items()):
            ours, theirs = groups.get(a), groups.get(b)
            if ours is theirs or (both and (ours is None or theirs is None)):
                continue
            for pair in product(ours or [a], theirs or [b]):
                first, second = (_phrase(self.events[i]) for i in pair)
                yield pair, f"{why}, and {words}: so {first} came before {second}"

    def _extended_by_queues(self) -> Iterator[tuple[Pair, str]]:
        """Extend an order of enqueues to their dequeues, and the reverse."""
        taken = dict(self._taken())
        for (put, take), (other_put, other_take) in product(taken.items(), repeat=2):
            same = self.events[put].variables == self.events[other_put].variables
            for ours, theirs in (((put, other_put), (take, other_take)),) * same:
                for given, made in ((ours, theirs), (theirs, ours)):
                    if given in self.steps:
                        first, second = (_phrase(self.events[i]) for i in made)
                        rule = "elements leave in the order of their enqueues"
                        why = f"{self.steps[given]}, and {rule}"
                        yield made, f"{why}: so {first} came before {second}"

    def _taken(self) -> Iterator[Pair]:
        """Yield each enqueue with the dequeue that took its element, according to the values."""
        for take, event in enumerate(self.events):
            seen = self.case.seen[take]
            if event.access is not Access.DEQUEUE or seen is None:
                continue
            (name,) = event.variables
            puts = [
                i
                for i in self.case.touching[name]
                if self.events[i].access is Access.ENQUEUE
                and self.case.stored[i].get(name) == seen[0]
            ]
            if len(puts) == 1:
                yield puts[0], take


_QUIET: Final = (Access.READ, Access.SNAPSHOT, Access.SIZE, Access.ACQUIRE, Access.RELEASE)
"""Accesses that change no value that another event reads."""


def _key(event: Event) -> tuple[object, ...]:
    """Return a key that identifies an event in every unfolding of one test."""
    return (*_instance(event), event.access, event.variables, event.part)


def _instance(event: Event) -> tuple[str, str, str]:
    return event.run, event.frame, event.node.name


def _name(event: Event) -> str:
    name = f"{event.frame}{event.node.name}"
    name = f"{event.run}.{name}" if event.run else name
    return f"{name}[{event.part}]" if event.node.definition.several else name


def _phrase(event: Event) -> str:
    """Return an event in words, with its part where its op has several events."""
    parts = {
        Access.ACQUIRE: "the lock",
        Access.RELEASE: "the unlock",
        Access.SNAPSHOT: "the snapshot",
        Access.WRITE_BACK: "the write-back",
    }
    if event.node.definition.kind is Kind.UPDATE:
        parts |= {Access.READ: "the read", Access.WRITE: "the write"}
    part = parts.get(event.access)
    return f"{part} of {_name(event)}" if part else _name(event)


def _saw(event: Event, values: Mapping[str, Value]) -> str:
    """Return a phrase for the value that an event read; empty if the outcome lacks it."""
    verb = {Access.READ: "read", Access.DEQUEUE: "took", Access.SIZE: "counted"}.get(event.access)
    key = f"{event.run}.{event.node.name}" if event.run else event.node.name
    if verb is None or event.frame or key not in values:
        return ""
    return f"{key} {verb} {plain_value(values[key])} of {event.variables[0]}"


def _sections(test: LitmusTest, mutex: str) -> Iterator[tuple[frozenset[str], int]]:
    """Yield for each section on a mutex its nodes, bodies included, and its loop depth."""

    def within(nodes: Iterable[Node], depth: int) -> Iterator[tuple[frozenset[str], int]]:
        nodes = list(nodes)
        for node in nodes:
            if isinstance(node.attrs, SectionAttrs) and mutex in node.resources:
                members = [n for n in nodes if n.name in node.attrs.members]
                yield frozenset(n.name for n in all_nodes(members)), depth
            deeper = depth + (node.definition.kind is Kind.LOOP)
            for _, body in bodies(node):
                yield from within(body.nodes, deeper)

    for graph in test.graphs:
        yield from within(graph.nodes, 0)


def _shortest(steps: Iterable[Pair]) -> tuple[Pair, ...]:
    """Return a shortest cycle; empty if there is none."""
    best: list[int] = []
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
        if not best or len(path) < len(best):
            best = path
    return tuple((a, b) for b, a in pairwise(best))[::-1]


# --- blocked outcomes ---------------------------------------------------------------------


def still_possible(
    test: LitmusTest, model: Model, question: Question, budget: Budget
) -> tuple[str, ...]:
    """Return sentences that say why an execution with this outcome is not really blocked.

    Each names one event that could still happen. The outcome needs an order in which such an
    event never happens although nothing prevents it, and the memory model allows none.
    """
    unfolding = unfold(test, model)
    found = []
    count = len(unfolding.events)
    for index, event in enumerate(unfolding.events[: budget.asked // max(1, count)]):
        answer = Case(test, unfolding, question, budget, held_up=index).solve()
        if answer is not None and answer.order is not None:
            name = event.variables[0]
            why = {
                Access.ENQUEUE: f"{name} is not full",
                Access.DEQUEUE: f"{name} has an element",
                Access.ACQUIRE: f"nobody holds {name}",
            }.get(event.access, "all that it waits for is done")
            found.append(f"{_phrase(event)} would still happen: {why}")
    return tuple(found)
