"""Adds gates to a test: queues with which a client decides when each op instance runs.

Each op instance with an effect takes an element from a queue of its own, its *gate*,
before it runs. Afterwards it puts its number into a *done queue*. A client that fills
one gate after the other, and waits for the number each time, forces a total order on an
executor that supports nothing but queues, such as TensorFlow.

Gates only delay ops, so that every outcome of the test with gates is an outcome of the
original test. A critical section has two gates, one before the acquire and one before
the release. In a loop there is a gate for each iteration, selected by a carried counter.
If a graph has several runs, each run gets a copy of the graph.

References
----------
semantics.md, section 3.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model import (
    Body,
    BranchAttrs,
    CallAttrs,
    FreshNames,
    Graph,
    LitmusTest,
    LoopAttrs,
    NestAttrs,
    Node,
    Queue,
    Run,
    all_nodes,
    renamed,
)
from litmusfuzz.corpus.ops import ConstAttrs, SectionAttrs
from litmusfuzz.corpus.struct import replace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

Instance = tuple[str, str, str, str]
"""Run ("" if there is only one), frame, node, and for a section "lock" or "unlock"."""

_SCALAR: Final[tuple[int, ...]] = ()


@dataclass(frozen=True, slots=True)
class Gate:
    """The gate of one op instance.

    The instance waits for an element of `queue`. When it is done it puts `number` into
    the queue `done`, of which each device has one.
    """

    number: int
    queue: str
    done: str


@dataclass(frozen=True, slots=True)
class Gated:
    """A test with a gate for each op instance of the original test.

    `test` observes the same values in the same order as the original.
    """

    test: LitmusTest
    gates: Mapping[Instance, Gate]


def with_gates(test: LitmusTest) -> Gated:
    """The test with a gate before each op that uses a resource.

    Parameters
    ----------
    test : LitmusTest
        A test without clusters. Where a run fetches, its graph becomes the part that it executes.

    Raises
    ------
    MalformedTest
        If the test with gates has too many queues or nodes.
    """
    inserter = _GateInserter(test)
    graphs: list[Graph] = []
    runs = []
    names: dict[str, str] = {}  # observed name: its new name
    often = Counter(run.graph for run in test.runs)
    one = len(test.runs) == 1
    for run in test.runs:
        graph = _alone(test.graph_of(run))
        names_of_copy = {name: name for name in _names(graph)}
        if often[graph.name] > 1:
            names_of_copy = inserter.copied(graph)
            graph = Graph(
                inserter.fresh.numbered("graph"),
                tuple(renamed(node, names_of_copy) for node in graph.nodes),
            )
        feeds = tuple((names_of_copy[name], value) for name, value in run.feeds)
        # A gate is no part of what a run fetches: the run executes all of the graph made here.
        runs.append(Run(run.name, graph.name, run.after, feeds=feeds))
        inserter.run = "" if one else run.name
        inserter.original = {new: old for old, new in names_of_copy.items()}
        graphs.append(Graph(graph.name, inserter.level(graph.nodes, ())))
        names |= {old if one else f"{run.name}.{old}": new for old, new in names_of_copy.items()}
    observe = tuple(
        names[name] if one else f"{name.partition('.')[0]}.{names[name]}" for name in test.observe
    )
    made = replace(
        test,
        graphs=tuple(graphs),
        client=tuple(runs),
        queues=(*test.queues, *inserter.queues, *inserter.done.values()),
        observe=observe,
    )
    return Gated(made, inserter.gates)


def _alone(part: Graph) -> Graph:
    """The part of a graph that a run executes, as a graph.

    A member of a section that the run does not execute becomes a NoOp, which has no event: which
    sections lie inside each other depends on their members.
    """
    there = {node.name for node in part.nodes}
    left_out = dict.fromkeys(n for node in part.nodes for n in node.members if n not in there)
    return Graph(part.name, (*(Node(name, "NoOp") for name in left_out), *part.nodes))


@dataclass(frozen=True, slots=True)
class _Frame:
    """An enclosing loop: its name, number of iterations, and the name of its counter."""

    loop: str
    count: int
    counter: str


@dataclass(slots=True)
class _GateInserter:
    test: LitmusTest
    run: str = ""
    original: Mapping[str, str] = field(default_factory=dict)
    """Original names by the names in the current copy."""
    gates: dict[Instance, Gate] = field(default_factory=dict)
    queues: list[Queue] = field(default_factory=list)
    done: dict[str, Queue] = field(default_factory=dict)
    fresh: FreshNames = field(default_factory=FreshNames)
    lives: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        resources = self.test.resources
        self.lives = {resource.name: resource.device for resource in resources}
        graphs = {graph.name for graph in self.test.graphs}
        self.fresh.take(*self.test.types, *self.lives, *graphs)

    def copied(self, graph: Graph) -> dict[str, str]:
        """New names for all nodes and values of a graph."""
        new = {name: self.fresh.numbered("copy") for name in _names(graph) if "." not in name}
        for name in _names(graph):
            node, dot, result = name.partition(".")
            if dot:  # results of a loop are named like its carried values
                loop = any(n.name == node and n.op == "While" for n in all_nodes(graph.nodes))
                new[name] = f"{new[node]}.{new[result] if loop else result}"
        return new

    def level(self, nodes: Iterable[Node], frames: tuple[_Frame, ...]) -> tuple[Node, ...]:
        """The nodes of a graph or body with gates."""
        made: list[Node] = []
        index = self.index(frames, made)
        nodes = tuple(nodes)
        extra: dict[str, tuple[str, ...]] = {}  # section: its new members
        sections: list[Node] = []
        for node in nodes:
            if isinstance(node.attrs, SectionAttrs):
                entered, entry = self.gate(node, "lock", frames, index, made)
                left, leave = self.gate(node, "unlock", frames, index, made)
                inside = self.put(node, entered, index, made, ())
                extra[node.name] = (inside, *leave)
                sections.append(replace(node, after=(*node.after, *entry)))
                made.append(sections[-1])
                self.put(node, left, index, made, (node.name,))
            elif isinstance(node.attrs, BranchAttrs):
                made.append(self.branch(node, node.attrs, frames))
            elif isinstance(node.attrs, LoopAttrs):
                made.append(self.loop(node, node.attrs, frames, made))
            elif isinstance(node.attrs, CallAttrs):
                made.append(self.call(node, node.attrs, frames))
            elif node.resources:
                first, gate = self.gate(node, "", frames, index, made)
                made.append(replace(node, after=(*node.after, *gate)))
                self.put(node, first, index, made, (node.name,))
            else:
                made.append(node)
        return tuple(self.with_members(node, sections, extra) for node in made)

    def with_members(
        self, node: Node, sections: Iterable[Node], extra: Mapping[str, tuple[str, ...]]
    ) -> Node:
        """A section with the new members of itself and of the sections inside it."""
        if not isinstance(node.attrs, SectionAttrs):
            return node
        mine = set(node.attrs.members)
        more = [
            name
            for each in sections
            if isinstance(each.attrs, SectionAttrs) and mine.issuperset(each.attrs.members)
            for name in extra[each.name]
        ]
        return replace(node, attrs=SectionAttrs((*node.attrs.members, *more)))

    def index(self, frames: tuple[_Frame, ...], made: list[Node]) -> str:
        """Add the value that numbers the instances of a level; "" if there is only one."""
        number = ""
        for frame in frames:
            if number:
                count = self.constant(frame.count, made)
                number = self.add(made, "Mul", (number, count))
                number = self.add(made, "AddV2", (number, frame.counter))
            else:
                number = frame.counter
        return number

    def add(self, made: list[Node], op: str, inputs: tuple[str, ...]) -> str:
        made.append(Node(self.fresh.numbered("index"), op, inputs))
        return made[-1].name

    def constant(self, value: int, made: list[Node]) -> str:
        made.append(
            Node(self.fresh.numbered("index"), "Const", attrs=ConstAttrs("int32", _SCALAR, value))
        )
        return made[-1].name

    def gate(
        self, node: Node, half: str, frames: tuple[_Frame, ...], index: str, made: list[Node]
    ) -> tuple[int, tuple[str, ...]]:
        """Add gates for all instances of a node; the first number, and the control input."""
        first = len(self.gates)
        device = self.device(node)
        for numbers in product(*(range(frame.count) for frame in frames)):
            around = "".join(
                f"{self.original[frame.loop]}[{number}]/"
                for frame, number in zip(frames, numbers, strict=True)
            )
            instance = (self.run, around, self.original[node.name], half)
            queue = Queue(self.fresh.numbered("gate"), "int32", _SCALAR, 1, device=device)
            self.queues.append(queue)
            self.gates[instance] = Gate(len(self.gates), queue.name, self.done_queue(device))
        gates = [gate.queue for gate in self.gates.values()][first:]
        return first, (self.opened(gates, 0, index, made).partition(".")[0],) if gates else ()

    def opened(self, gates: list[str], before: int, index: str, made: list[Node]) -> str:
        """Add the dequeue from gate number `index - before`, chosen by conditionals; its value."""
        if len(gates) == 1:
            made.append(
                Node(self.fresh.numbered("opened"), "QueueDequeueV2", resources=(gates[0],))
            )
            return made[-1].name
        half = len(gates) // 2
        less = self.add(made, "Less", (index, self.constant(before + half, made)))
        inner = self.fresh.numbered("index")

        def half_of(gates: list[str], before: int) -> Body:
            nodes: list[Node] = []
            result = self.opened(gates, before, inner, nodes)
            return Body(tuple(nodes), (result,))

        then, orelse = half_of(gates[:half], before), half_of(gates[half:], before + half)
        attrs = BranchAttrs(((inner, index),), then, orelse, ("opened",))
        made.append(Node(self.fresh.numbered("opened"), "If", (less,), attrs=attrs))
        return f"{made[-1].name}.opened"

    def put(
        self, node: Node, first: int, index: str, made: list[Node], after: tuple[str, ...]
    ) -> str:
        """Add the enqueue of an instance's number into the done queue."""
        number = self.constant(first, made)
        if index:
            number = self.add(made, "AddV2", (index, number))
        queue = self.done_queue(self.device(node))
        made.append(Node(self.fresh.numbered("done"), "QueueEnqueueV2", (number,), (queue,), after))
        return made[-1].name

    def done_queue(self, device: str) -> str:
        """The done queue of a device."""
        if device not in self.done:
            # Enough for all instances: a test has at most 64 queues, and hence gates.
            self.done[device] = Queue(
                self.fresh.numbered("done"), "int32", _SCALAR, 64, device=device
            )
        return self.done[device].name

    def device(self, node: Node) -> str:
        """Device of a node, and of its gate."""
        return node.device or self.lives[node.resources[0]]

    def branch(self, node: Node, attrs: BranchAttrs, frames: tuple[_Frame, ...]) -> Node:
        captures, inside = self.passed(frames)
        return replace(
            node,
            attrs=replace(
                attrs,
                captures=(*attrs.captures, *captures),
                then=Body(self.level(attrs.then.nodes, inside), attrs.then.results),
                orelse=Body(self.level(attrs.orelse.nodes, inside), attrs.orelse.results),
            ),
        )

    def call(self, node: Node, attrs: CallAttrs, frames: tuple[_Frame, ...]) -> Node:
        captures, inside = self.passed(frames)
        body = Body(self.level(attrs.body.nodes, inside), attrs.body.results)
        attrs = replace(attrs, captures=(*attrs.captures, *captures), body=body)
        return replace(node, attrs=attrs)

    def loop(
        self, node: Node, attrs: LoopAttrs, frames: tuple[_Frame, ...], made: list[Node]
    ) -> Node:
        """A loop with gates inside, and a counter of its iterations from 0."""
        bound = self.test.bounds[self.original[node.name]]
        captures, outside = self.passed(frames)
        counter = self.fresh.numbered("index")
        zero = self.constant(0, made)
        tested = _Frame(node.name, bound + 1, counter)
        worked = _Frame(node.name, bound, counter)
        body = list(self.level(attrs.body.nodes, (*outside, worked)))
        following = self.add(body, "AddV2", (counter, self.constant(1, body)))
        return replace(
            node,
            inputs=(*node.inputs, zero),
            attrs=replace(
                attrs,
                carried=(*attrs.carried, counter),
                captures=(*attrs.captures, *captures),
                condition=Body(
                    self.level(attrs.condition.nodes, (*outside, tested)), attrs.condition.results
                ),
                body=Body(tuple(body), (*attrs.body.results, following)),
            ),
        )

    def passed(
        self, frames: tuple[_Frame, ...]
    ) -> tuple[list[tuple[str, str]], tuple[_Frame, ...]]:
        """The counters of the enclosing loops, as captures of a body."""
        inside = tuple(replace(frame, counter=self.fresh.numbered("index")) for frame in frames)
        return [(i.counter, o.counter) for i, o in zip(inside, frames, strict=True)], inside


def _names(graph: Graph) -> Iterator[str]:
    """All names of nodes, values and results in a graph."""
    for node in all_nodes(graph.nodes):
        yield node.name
        if isinstance(node.attrs, NestAttrs):
            yield from (inner for inner, _ in node.attrs.captures)
        if isinstance(node.attrs, (BranchAttrs, CallAttrs)):
            yield from (f"{node.name}.{result}" for result in node.attrs.results)
        elif isinstance(node.attrs, LoopAttrs):
            yield from node.attrs.carried
            yield from (f"{node.name}.{name}" for name in node.attrs.carried)
