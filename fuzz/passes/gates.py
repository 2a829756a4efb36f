"""Gates: a test in which nothing happens before the client lets it.

Each op instance with an effect gets a *gate*, a queue of its own out of which it must
take an element first, and when it is done it puts its number into a queue of what is
done. Who puts an element into one gate after the other, and each time waits for the
number, forces a total order on an executor that has nothing but queues: TensorFlow.

Gates only wait, so that whatever the test with them shows, the test without may show
as well. A section has two, one before it is entered and one before it is left. In a loop
there is one for each iteration: a counter, carried along, says which. Runs of one graph
get a copy of it each.

References
----------
semantics.md, section 3.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model import (
    Body,
    BranchAttrs,
    FreshNames,
    Graph,
    LitmusTest,
    LoopAttrs,
    Node,
    Queue,
    all_nodes,
    renamed,
)
from litmusfuzz.corpus.ops import ConstAttrs, SectionAttrs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

Instance = tuple[str, str, str, str]
"""Run ("" if there is only one), frame, node, and of a section "lock" or "unlock"."""

_SCALAR: Final[tuple[int, ...]] = ()


@dataclass(frozen=True, slots=True)
class Gate:
    """What holds one instance back, and tells that it is done.

    `queue` is the gate; `number` goes into the queue `done`, of which there is one on
    each device.
    """

    number: int
    queue: str
    done: str


@dataclass(frozen=True, slots=True)
class Gated:
    """A test with gates, for all instances of the original.

    `test` observes the same, in the same order.
    """

    test: LitmusTest
    gates: Mapping[Instance, Gate]


def gated(test: LitmusTest) -> Gated:
    """Put a gate before each effect of `test`, which has no clusters.

    Raises
    ------
    MalformedTest
        If it then has too many queues or nodes.
    """
    gater = _Gater(test)
    graphs: list[Graph] = []
    runs = []
    names: dict[str, str] = {}  # observed nodes, where they have another name now
    often = Counter(run.graph for run in test.runs)
    one = len(test.runs) == 1
    for run in test.runs:
        (graph,) = (g for g in test.graphs if g.name == run.graph)
        new = {name: name for name in _names(graph)}
        if often[graph.name] > 1:
            new = gater.copied(graph)
            graph = Graph(gater.name("graph"), tuple(renamed(node, new) for node in graph.nodes))
        runs.append(replace(run, graph=graph.name))
        gater.run = "" if one else run.name
        gater.original = {copy: old for old, copy in new.items()}
        graphs.append(Graph(graph.name, gater.level(graph.nodes, ())))
        names |= {old if one else f"{run.name}.{old}": copy for old, copy in new.items()}
    observe = tuple(
        names[name] if one else f"{name.partition('.')[0]}.{names[name]}" for name in test.observe
    )
    made = replace(
        test,
        graphs=tuple(graphs),
        client=tuple(runs),
        queues=(*test.queues, *gater.queues, *gater.done.values()),
        observe=observe,
    )
    return Gated(made, gater.gates)


@dataclass(frozen=True, slots=True)
class _Frame:
    """A loop around: its name, how many instances a level inside has, and its counter."""

    loop: str
    count: int
    counter: str


@dataclass(slots=True)
class _Gater:
    test: LitmusTest
    run: str = ""
    original: Mapping[str, str] = field(default_factory=dict)
    """Names in the test, of those in the copy at work."""
    gates: dict[Instance, Gate] = field(default_factory=dict)
    queues: list[Queue] = field(default_factory=list)
    done: dict[str, Queue] = field(default_factory=dict)
    names: FreshNames = field(default_factory=FreshNames)
    lives: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        resources = self.test.resources
        self.lives = {resource.name: resource.device for resource in resources}
        graphs = {graph.name for graph in self.test.graphs}
        self.names.take(*self.test.types, *self.lives, *graphs)

    def name(self, what: str) -> str:
        """A new one."""
        return self.names.numbered(f"{what}_")

    def copied(self, graph: Graph) -> dict[str, str]:
        """New names for everything in a graph."""
        new = {name: self.name("copy") for name in _names(graph) if "." not in name}
        for name in _names(graph):
            node, dot, result = name.partition(".")
            if dot:  # a loop's results have the names of its carried values
                loop = any(n.name == node and n.op == "While" for n in all_nodes(graph.nodes))
                new[name] = f"{new[node]}.{new[result] if loop else result}"
        return new

    def level(self, nodes: Iterable[Node], frames: tuple[_Frame, ...]) -> tuple[Node, ...]:
        """The nodes of a graph or body, with gates."""
        made: list[Node] = []
        turn = self.turn(frames, made)
        nodes = tuple(nodes)
        extra: dict[str, tuple[str, ...]] = {}  # sections: what is a member as well
        sections: list[Node] = []
        for node in nodes:
            if isinstance(node.attrs, SectionAttrs):
                entered, entry = self.gate(node, "lock", frames, turn, made)
                left, leave = self.gate(node, "unlock", frames, turn, made)
                inside = self.put(node, entered, turn, made, ())
                extra[node.name] = (inside, *leave)
                sections.append(replace(node, after=(*node.after, *entry)))
                made.append(sections[-1])
                self.put(node, left, turn, made, (node.name,))
            elif isinstance(node.attrs, BranchAttrs):
                made.append(self.branch(node, node.attrs, frames))
            elif isinstance(node.attrs, LoopAttrs):
                made.append(self.loop(node, node.attrs, frames, made))
            elif node.resources:
                first, gate = self.gate(node, "", frames, turn, made)
                made.append(replace(node, after=(*node.after, *gate)))
                self.put(node, first, turn, made, (node.name,))
            else:
                made.append(node)
        return tuple(self.grown(node, sections, extra) for node in made)

    def grown(
        self, node: Node, sections: Iterable[Node], extra: Mapping[str, tuple[str, ...]]
    ) -> Node:
        """A section with its own new members, and those of the sections inside it."""
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

    def turn(self, frames: tuple[_Frame, ...], made: list[Node]) -> str:
        """The value that numbers a level's instances; "" where there is one."""
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
        made.append(Node(self.name("turn"), op, inputs))
        return made[-1].name

    def constant(self, value: int, made: list[Node]) -> str:
        made.append(Node(self.name("turn"), "Const", attrs=ConstAttrs("int32", _SCALAR, value)))
        return made[-1].name

    def gate(
        self, node: Node, half: str, frames: tuple[_Frame, ...], turn: str, made: list[Node]
    ) -> tuple[int, tuple[str, ...]]:
        """Gates for all instances of a node; the first one's number, and what to wait for."""
        first = len(self.gates)
        device = self.device(node)
        for numbers in product(*(range(frame.count) for frame in frames)):
            around = "".join(
                f"{self.original[frame.loop]}[{number}]/"
                for frame, number in zip(frames, numbers, strict=True)
            )
            instance = (self.run, around, self.original[node.name], half)
            queue = Queue(self.name("gate"), "int32", _SCALAR, 1, device=device)
            self.queues.append(queue)
            self.gates[instance] = Gate(len(self.gates), queue.name, self.told(device))
        gates = [gate.queue for gate in self.gates.values()][first:]
        return first, (self.opened(gates, 0, turn, made).partition(".")[0],) if gates else ()

    def opened(self, gates: list[str], before: int, turn: str, made: list[Node]) -> str:
        """Take from the gate at `turn`, of those from `before` on; what it held."""
        if len(gates) == 1:
            made.append(Node(self.name("opened"), "QueueDequeueV2", resources=(gates[0],)))
            return made[-1].name
        half = len(gates) // 2
        less = self.add(made, "Less", (turn, self.constant(before + half, made)))
        inner = self.name("turn")

        def side(gates: list[str], before: int) -> Body:
            nodes: list[Node] = []
            result = self.opened(gates, before, inner, nodes)
            return Body(tuple(nodes), (result,))

        then, orelse = side(gates[:half], before), side(gates[half:], before + half)
        attrs = BranchAttrs(((inner, turn),), then, orelse, ("opened",))
        made.append(Node(self.name("opened"), "If", (less,), attrs=attrs))
        return f"{made[-1].name}.opened"

    def put(
        self, node: Node, first: int, turn: str, made: list[Node], after: tuple[str, ...]
    ) -> str:
        """Tell that an instance is done; which says its number."""
        number = self.constant(first, made)
        if turn:
            number = self.add(made, "AddV2", (turn, number))
        queue = self.told(self.device(node))
        made.append(Node(self.name("done"), "QueueEnqueueV2", (number,), (queue,), after))
        return made[-1].name

    def told(self, device: str) -> str:
        """The queue of what is done, there."""
        if device not in self.done:
            # More than there are instances: queues, and hence gates, are at most 64.
            self.done[device] = Queue(self.name("done"), "int32", _SCALAR, 64, device=device)
        return self.done[device].name

    def device(self, node: Node) -> str:
        """Where it is told to be; its gate is there, too."""
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

    def loop(
        self, node: Node, attrs: LoopAttrs, frames: tuple[_Frame, ...], made: list[Node]
    ) -> Node:
        """A loop that counts its iterations from 0."""
        bound = self.test.bounds[self.original[node.name]]
        captures, outside = self.passed(frames)
        counter = self.name("turn")
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
        """The counters of the loops around, as a body takes them."""
        inside = tuple(replace(frame, counter=self.name("turn")) for frame in frames)
        return [(i.counter, o.counter) for i, o in zip(inside, frames, strict=True)], inside


def _names(graph: Graph) -> Iterator[str]:
    """All names that stand for something in a graph, those of results included."""
    for node in all_nodes(graph.nodes):
        yield from (node.name, *node.arguments)
        yield from (f"{node.name}.{result}" for result in node.results)
