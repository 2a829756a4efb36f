"""The long path of a test: its events and their order, straight from its nodes.

On the long path every loop reaches its bound and every conditional takes its larger branch. The
path is what the test's unfolding under `rfc` has left when the events of other paths are dead.
A generator asks for it for each of its attempts, most of which are too large: so there are no
tokens here, but sets of events as bits, and the test need not be validated.

References
----------
semantics.md, sections 2, 3 and 5. `litmusfuzz.oracles.events` unfolds the same way, under any
model.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from litmusfuzz.corpus.model import (
    BranchAttrs,
    CallAttrs,
    Cluster,
    Graph,
    LoopAttrs,
    Node,
    all_nodes,
    bodies,
    captures_of,
    nested_pairs,
    pruned,
    steps,
)
from litmusfuzz.corpus.ops import CLUSTER, OPS, AccumulatorUse, Kind, SectionAttrs
from litmusfuzz.corpus.struct import Struct
from litmusfuzz.oracles.events import QUEUE_ACCESSES, Access, Strictness

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from litmusfuzz.corpus.model import Queue, Run

_ON_ACCUMULATORS: Final = MappingProxyType(
    {
        AccumulatorUse.APPLY: (Access.UPDATE,),
        AccumulatorUse.TAKE: (Access.JOIN, Access.TAKE),
        AccumulatorUse.COUNT: (Access.READ,),
        AccumulatorUse.STEP: (Access.WRITE,),
    }
)
"""Events of an op on an accumulator, one after another."""
_NODES: Final = ("silent", "node", "nested")
"""Kinds of steps that are nodes, apart from sections."""
_SILENT: Final = (Kind.PURE, Kind.TRANSFER, Kind.HANDLE)
"""Kinds of nodes without events."""
_NESTED: Final = (Kind.BRANCH, Kind.LOOP, Kind.CALL)
"""Kinds of nodes with bodies."""
_STEP_OF: Final = {
    name: "silent" if op.kind in _SILENT else "nested" if op.kind in _NESTED else "node"
    for name, op in OPS.items()
}
"""Kind of the step of a node that is no section."""


class Countable(Protocol):
    """A test, validated or not."""

    @property
    def graphs(self) -> tuple[Graph, ...]:
        """As `LitmusTest.graphs`."""

    @property
    def runs(self) -> tuple[Run, ...]:
        """As `LitmusTest.runs`."""

    @property
    def nodes(self) -> tuple[Node, ...]:
        """As `LitmusTest.nodes`."""

    @property
    def clusters(self) -> tuple[Cluster, ...]:
        """As `LitmusTest.clusters`."""

    @property
    def queues(self) -> tuple[Queue, ...]:
        """As `LitmusTest.queues`."""

    @property
    def bounds(self) -> Mapping[str, int]:
        """As `LitmusTest.bounds`."""

    @property
    def blocks(self) -> bool:
        """As `LitmusTest.blocks`."""

    def elements(self, node: Node) -> int:
        """As `LitmusTest.elements`."""


class PathEvent(Struct, frozen=True):
    """One atomic step of one op instance."""

    node: Node
    access: Access
    variables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Path:
    """The events of one path through a test, and their order.

    Parameters
    ----------
    events : tuple of PathEvent
    before : tuple of int
        For each, the events that come before it, as bits by position.
    shares : bool
        Conditionals share a predicate: without some events, another branch may be the larger one.
    """

    events: tuple[PathEvent, ...]
    before: tuple[int, ...]
    shares: bool = False

    def only(self, kept: Sequence[int]) -> Path:
        """The path without all but these events, of which each keeps those before it."""
        runs: list[tuple[int, int, int]] = []  # of events that stay next to each other
        for new, old in enumerate(kept):
            if runs and old == kept[new - 1] + 1:
                first, place, bits = runs[-1]
                runs[-1] = first, place, bits << 1 | 1
            else:
                runs.append((old, new, 1))
        masks = [self.before[event] for event in kept]
        before = [sum((mask >> old & bits) << new for old, new, bits in runs) for mask in masks]
        return Path(tuple(self.events[event] for event in kept), tuple(before), self.shares)


_LOOSEST: Final[dict[str, Strictness]] = {}


class LongPaths:
    """The long paths of one test, each under another choice of strictness."""

    def __init__(self, test: Countable) -> None:
        self.test = test
        self._plans: dict[int, _Plan] = {}
        graphs = {graph.name: graph for graph in test.graphs}
        self._executed = {
            run.name: (
                pruned(graphs[run.graph], run.wanted) if run.wanted else graphs[run.graph]
            ).nodes
            for run in test.runs
        }

    def path(self, strictness: Mapping[str, Strictness] = _LOOSEST) -> Path:
        """Path on which every loop reaches its bound and every conditional its larger branch.

        Parameters
        ----------
        strictness : mapping, optional
            Strictness by name of a loop or conditional.
        """
        walker = _Walker(self.test, self._executed, self._plans, strictness, {})
        walker.walk()
        taken = {
            value: walker.sizes[(value, True)] >= walker.sizes[(value, False)]
            for value, _ in walker.taken
        }
        # Conditionals that share a predicate take the same branch.
        if any(taken[value] is not own for value, own in walker.taken):
            walker = _Walker(self.test, self._executed, self._plans, strictness, taken)
            walker.walk()
        return walker.path()


class _Plan(NamedTuple):
    """Nodes of one graph or body, and the order in which they are walked."""

    steps: Sequence[tuple[str, Node | Cluster]]
    """As `litmusfuzz.corpus.model.steps`; "nested" for a node with bodies, "silent" for one without
    events."""
    around: Mapping[str, Sequence[str]]
    """By section: those that it lies inside."""
    within: Mapping[str, Sequence[str]]
    """By section: those that lie inside it."""


class _Frame(NamedTuple):
    """Context shared by all instances of a graph or body.

    `waits` and `guards` are the events before it, and those before the predicates that chose it.
    """

    waits: int
    guards: int = 0
    body: bool = False


_Mark = tuple[int, int]
"""Number of events, and of instances in bodies without events."""


class _Walker:
    """Walks the long path. A value is known by a number; `masks` has the events behind it.

    `taken` has by number of a predicate whether its conditionals take their first branch; without
    it, each takes its own larger one.
    """

    def __init__(
        self,
        test: Countable,
        executed: Mapping[str, tuple[Node, ...]],
        plans: dict[int, _Plan],
        strictness: Mapping[str, Strictness],
        taken: Mapping[int, bool],
    ) -> None:
        self.test = test
        self.executed = executed
        self.plans = plans
        self.strictness = strictness
        self.chosen = taken
        self.taken: set[tuple[int, bool]] = set()
        self.branches = 0
        """Instances of conditionals: more than in `taken` if some share a predicate."""
        self.sizes: Counter[tuple[int, bool]] = Counter()
        """Events of the branches, by predicate and by what it is in them."""
        self.events: list[PathEvent] = []
        self.before: list[int] = []
        self.done: list[int] = []
        """By event: itself and the events before it; none if it is dead."""
        self.silent: list[int] = []
        """By instance in a body without an event: the events before it."""
        self.masks: list[int] = []
        self.first_members = {each.members[0]: each for each in test.clusters}

    def walk(self) -> None:
        """Walk all runs."""
        ended: dict[str, int] = {}
        for run in self.test.runs:
            source = 0
            for name in run.after:
                source |= ended[name]
            first = self.mark()
            done = self.level(self.executed[run.name], {}, _Frame(source))
            ended[run.name] = source | done | self.finished(first)

    def path(self) -> Path:
        """The path, without the events that are dead."""
        whole = Path(tuple(self.events), tuple(self.before), self.branches > len(self.taken))
        live = [event for event, done in enumerate(self.done) if done]
        return whole if len(live) == len(self.done) else whole.only(live)

    # --- values and events ---------------------------------------------------------------

    def value(self, mask: int) -> int:
        """Add a value; its number."""
        self.masks.append(mask)
        return len(self.masks) - 1

    def behind(self, values: Iterable[int]) -> int:
        """The events before all of the values."""
        mask, masks = 0, self.masks
        for value in values:
            mask |= masks[value]
        return mask

    def event(self, node: Node, access: Access, variables: tuple[str, ...], before: int) -> int:
        """Add an event; itself and the events before it."""
        done = before | 1 << len(self.events)
        self.events.append(PathEvent(node, access, variables))
        self.before.append(before)
        self.done.append(done)
        return done

    def mark(self) -> _Mark:
        """The position of the next instance."""
        return len(self.events), len(self.silent)

    def finished(self, first: _Mark, end: _Mark | None = None) -> int:
        """All events of the instances between two marks, and those before them."""
        (event, silent), (events, silents) = first, end or self.mark()
        mask = 0
        for done in self.done[event:events]:
            mask |= done
        for done in self.silent[silent:silents]:
            mask |= done
        return mask

    # --- graphs and bodies ---------------------------------------------------------------

    def planned(self, nodes: tuple[Node, ...]) -> _Plan:
        """The order in which the nodes of a graph or body are walked."""
        found = self.plans.get(id(nodes))
        if found is None:
            clusters: list[Cluster] = []
            if self.first_members:
                firsts = (self.first_members.get(node.name) for node in nodes)
                clusters = [each for each in firsts if each is not None]
            sections = [n for n in nodes if type(n.attrs) is SectionAttrs]
            around, within = nested_pairs(sections)
            ordered: Sequence[tuple[str, Node | Cluster]]
            if sections or clusters:
                ordered = [
                    (_STEP_OF[step.op] if type(step) is Node and kind == "node" else kind, step)
                    for kind, step in steps(Graph("", nodes), clusters)
                ]
            else:
                ordered = [(_STEP_OF[node.op], node) for node in nodes]
            found = self.plans[id(nodes)] = _Plan(ordered, around, within)
        return found

    def level(self, nodes: tuple[Node, ...], values: dict[str, int], frame: _Frame) -> int:
        """Add the instances of a graph or body; the events before all of their values.

        `values` has the values that come into it, and receives those of its nodes and of their
        results.
        """
        plan = self.planned(nodes)
        masks = self.masks
        everything = 0
        held: dict[str, int] = {}  # by node: the acquires of the sections around it
        inside: dict[str, int] = {}  # by node with bodies: all of its events
        for kind, step in plan.steps:
            waits = frame.waits
            if kind == "cluster":
                assert isinstance(step, Cluster)
                for name in step.members:
                    waits |= held.get(name, 0)
                everything |= self.cluster(nodes, step, values, waits, frame)
                continue
            assert isinstance(step, Node)
            for name in step.after:
                waits |= masks[values[name]]
            if held:
                waits |= held.get(step.name, 0) if kind in _NODES else 0
            if kind == "silent":
                for name in step.inputs:
                    waits |= masks[values[name]]
                if step.handle:
                    waits |= masks[values[step.handle]]
                if frame.body:
                    self.silent.append(frame.guards | waits)
                everything |= waits
                values[step.name] = len(masks)
                masks.append(waits)
            elif kind == "node":
                done = self.instance(step, waits, values)
                everything |= done
                values[step.name] = len(masks)
                masks.append(done)
            elif kind == "nested":
                first = self.mark()
                everything |= self.nested(step, waits, values, frame)
                if held:
                    inside[step.name] = self.finished(first)
            elif kind == "acquire":
                for name in plan.around.get(step.name, ()):
                    waits |= held[name]
                taken = self.event(step, Access.ACQUIRE, step.resources, waits)
                held[step.name] = taken
                for name in step.members:
                    held[name] = held.get(name, 0) | taken
            else:
                waits = held[step.name]
                for name in step.members:
                    if name in values:
                        waits |= masks[values[name]]
                    waits |= inside.get(name, 0)
                for name in plan.within.get(step.name, ()):
                    waits |= masks[values[name]]
                released = self.event(step, Access.RELEASE, step.resources, waits)
                everything |= released
                values[step.name] = self.value(released)
        return everything

    def nested(self, node: Node, waits: int, values: dict[str, int], frame: _Frame) -> int:
        """Add one instance of a node with bodies; the events before its value.

        `values` receives that, and those of its results.
        """
        attrs = node.attrs
        if isinstance(attrs, BranchAttrs):
            return self.branch(node, attrs, waits, values, frame)
        if isinstance(attrs, LoopAttrs):
            return self.loop(node, attrs, waits, values, frame)
        assert isinstance(attrs, CallAttrs)
        return self.call(node, attrs, waits, values, frame)

    def instance(self, node: Node, waits: int, values: Mapping[str, int]) -> int:
        """Add one instance of a node with events of its own; these and the events before them."""
        masks = self.masks
        for name in node.inputs:
            waits |= masks[values[name]]
        if node.handle:
            waits |= masks[values[node.handle]]
        kind = node.definition.kind
        if kind is Kind.READ and not node.handle:  # one event: most nodes are reads
            return self.event(node, Access.READ, node.resources, waits)
        if kind is Kind.QUEUE:
            for _ in range(self.test.elements(node)):
                waits = self.event(node, QUEUE_ACCESSES[node.op], node.resources, waits)
            return waits
        if kind is Kind.ACCUMULATOR:
            # Nothing here holds up a take: each order that ends blocked is part of one counted.
            use = node.definition.accumulator
            assert use is not None
            for access in _ON_ACCUMULATORS[use]:
                waits = self.event(node, access, node.resources, waits)
            return waits
        if kind is not Kind.WRITE:
            waits = self.group(node, Access.READ, waits)
        if not kind.only_reads:
            waits = self.group(node, Access.WRITE, waits)
        return waits

    def group(self, node: Node, access: Access, before: int) -> int:
        """Add an event for each resource, in any order; all of them and those before."""
        if node.handle:  # one of them
            return self.event(node, access, node.resources, before)
        done = before
        for name in node.resources:
            done |= self.event(node, access, (name,), before)
        return done

    def branch(
        self, node: Node, attrs: BranchAttrs, waits: int, values: dict[str, int], frame: _Frame
    ) -> int:
        """Add both branches of a conditional; the smaller one is dead."""
        strict = self.strictness.get(node.name, Strictness())
        scope = {inner: values[outer] for inner, outer in attrs.captures}
        predicate = values[node.inputs[0]]
        behind = self.masks[predicate]
        if strict.gathers:
            waits |= behind | self.behind(scope.values())
        inner = _Frame(waits, frame.guards | behind, body=True)
        marks = [self.mark()]
        chosen: list[list[int]] = []
        for body in (attrs.then, attrs.orelse):
            results = scope.copy()
            self.level(body.nodes, results, inner)
            chosen.append([results[name] for name in body.results])
            marks.append(self.mark())
        first, middle, last = marks
        self.sizes[(predicate, True)] += middle[0] - first[0]
        self.sizes[(predicate, False)] += last[0] - middle[0]
        own = middle[0] - first[0] >= last[0] - middle[0]
        taken = self.chosen.get(predicate, own)
        self.taken.add((predicate, taken))
        self.branches += 1
        dead, end = (middle, last) if taken else (first, middle)
        self.done[dead[0] : end[0]] = [0] * (end[0] - dead[0])
        self.silent[dead[1] : end[1]] = [inner.guards] * (end[1] - dead[1])
        leaves = waits | behind
        if strict.late:
            leaves |= self.finished(first)
        masks = [leaves | self.masks[result] for result in chosen[not taken]]
        return self.results(node, attrs.results, masks, values)

    def results(
        self, node: Node, names: Sequence[str], masks: Sequence[int], values: dict[str, int]
    ) -> int:
        """Add the values of results, and one after all of them: that of the node."""
        everything = 0
        for name, mask in zip(names, masks, strict=True):
            values[f"{node.name}.{name}"] = self.value(mask)
            everything |= mask
        values[node.name] = self.value(everything)
        return everything

    def call(
        self, node: Node, attrs: CallAttrs, waits: int, values: dict[str, int], frame: _Frame
    ) -> int:
        """Add the instances of a call's body."""
        strict = self.strictness.get(node.name, Strictness())
        scope = {inner: values[outer] for inner, outer in attrs.captures}
        if strict.gathers:
            waits |= self.behind(scope.values())
        first = self.mark()
        made = self.level(attrs.body.nodes, scope, _Frame(waits, frame.guards, frame.body))
        done = waits | made | self.finished(first)
        leaves = done if strict.late else waits
        masks = [leaves | self.masks[scope[result]] for result in attrs.body.results]
        leaving = self.results(node, attrs.results, masks, values)
        values[node.name] = self.value(done)
        if frame.body:
            self.silent.append(frame.guards | done)
        return leaving | done

    def loop(
        self, node: Node, attrs: LoopAttrs, waits: int, values: dict[str, int], frame: _Frame
    ) -> int:
        """Add a loop's iterations, up to its bound."""
        strict = self.strictness.get(node.name, Strictness())
        masks = self.masks
        captures = {inner: values[outer] for inner, outer in attrs.captures}
        carried = [self.value(masks[values[name]] | waits) for name in node.inputs]
        guards = frame.guards
        start = self.mark()
        ends: list[_Mark] = []  # of each iteration
        instances: list[int] = []  # by iteration: the events before its nodes' values
        predicates = 0
        leaving: list[int] = []  # results of the last iteration
        bound = self.test.bounds[node.name]
        result = attrs.condition.results[0]
        for number in range(bound + 1):
            scope = captures.copy()
            scope.update(zip(attrs.carried, carried, strict=True))
            begins = waits
            if strict.parallel is not None and number >= strict.parallel:
                begins |= self.finished(start, ends[number - strict.parallel])
                for over in instances[: number - strict.parallel + 1]:
                    begins |= over
            gathered = self.behind(scope.values()) if strict.gathers else 0
            first = self.mark()
            starts = begins | gathered | masks[carried[0]]
            testing = self.level(attrs.condition.nodes, scope, _Frame(starts, guards, body=True))
            predicate = masks[scope[result]] | starts
            if number == bound:
                leaving = [masks[value] | begins | predicate for value in carried]
                break
            tested = self.mark()
            predicates |= predicate
            guards |= predicate
            goes_on = begins
            if strict.gathers:
                goes_on |= gathered | self.finished(first, tested)
            # No name in the body is one of a value in the condition.
            working = self.level(attrs.body.nodes, scope, _Frame(goes_on, guards, body=True))
            carried = [
                self.value(masks[scope[name]] | goes_on | predicate) for name in attrs.body.results
            ]
            ends.append(self.mark())
            instances.append(testing | working)
        everything = predicates | (self.finished(start) if strict.late else 0)
        return self.results(node, attrs.carried, [each | everything for each in leaving], values)

    # --- clusters --------------------------------------------------------------------------

    def cluster(
        self,
        nodes: tuple[Node, ...],
        cluster: Cluster,
        values: dict[str, int],
        waits: int,
        frame: _Frame,
    ) -> int:
        """Add one instance of a cluster; the events before the values of its members."""
        named = {node.name: node for node in nodes}
        members = [named[name] for name in cluster.members]
        for member in members:
            for name in (*member.inputs, *member.after, *(o for _, o in captures_of(member))):
                if name.partition(".")[0] not in cluster.members:
                    waits |= self.masks[values[name]]
        inner = [n for n in all_nodes(members) if n.resources]
        reads = [v for n in inner if n.definition.kind is not Kind.WRITE for v in n.resources]
        writes = [v for n in inner if n.definition.kind is not Kind.READ for v in n.resources]
        node = Node(cluster.name, CLUSTER.name, resources=tuple(dict.fromkeys(reads + writes)))
        written = self.written(members)
        if reads:
            waits = self.event(node, Access.SNAPSHOT, tuple(dict.fromkeys(reads)), waits)
        if written:
            group = tuple(dict.fromkeys(name for name in writes if name in written))
            waits = self.event(node, Access.WRITE_BACK, group, waits)
        if frame.body:
            self.silent.append(frame.guards | waits)
        value = self.value(waits)
        values.update((key, value) for member in members for key in member.keys)
        return waits

    def written(self, nodes: Iterable[Node]) -> set[str]:
        """Variables that a cluster's nodes write; a loop without iterations writes none."""
        found: set[str] = set()
        for node in nodes:
            if node.definition.kind is not Kind.READ:
                found.update(node.resources)
            parts = bodies(node)
            if isinstance(node.attrs, LoopAttrs) and not self.test.bounds[node.name]:
                parts = parts[:1]
            for _, body in parts:
                found |= self.written(body.nodes)
        return found
