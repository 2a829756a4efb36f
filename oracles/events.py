"""Unfolding of a litmus test into events: op instances, atomic events, their order.

The unfolding is a finite list of events and tokens. Each oracle executes enabled
events on it until none is left. All oracles share this module, so a defect here is
a defect in each of them. The exact allowed sets in `corpus/litmus`, written by hand,
guard against that.

Terms
-----
event
    One atomic step of one op instance.
token
    A result that becomes *ready*, and may then have a value: the result of an
    event, of a pure node, or of a conditional. Events wait for tokens.
enabled
    An event whose `needs` are ready, whose `after` are done, whose guards hold
    and whose action is possible now.
dead
    An event that never happens, since one of its guards is ready and does not hold.

References
----------
semantics.md, sections 2 and 3.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from enum import Enum
from itertools import product
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from litmusfuzz.corpus.model import (
    BranchAttrs,
    CallAttrs,
    Cluster,
    FreshNames,
    Graph,
    LoopAttrs,
    Node,
    all_nodes,
    bodies,
    captures_of,
    clusters_of,
    nested_pairs,
    steps,
    steps_before,
)
from litmusfuzz.corpus.ops import (
    CLUSTER,
    AccumulatorUse,
    HandleAttrs,
    Kind,
    MalformedTest,
    SectionAttrs,
)
from litmusfuzz.corpus.struct import Struct, replace
from litmusfuzz.oracles.errors import NoProgramOrder, NotOneCluster, OpFails, TestTooLarge
from litmusfuzz.oracles.model import FRONT_ENDS, Axiom

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from litmusfuzz.corpus.model import LitmusTest, Run, Step
    from litmusfuzz.corpus.ops import OpDef
    from litmusfuzz.oracles.model import Model

Ints = tuple[int, ...]
MAX_PARTS: Final = 5_000_000
"""Limit on the size of an unfolding (`Unfolding.parts`): some seconds of work."""
MAX_EVENTS: Final = 16_384
"""Limit on the events of an unfolding: the core keeps, for each, the set of earlier ones."""
KEPT_IN_A_PART: Final = 4
"""Ints of constants and initial contents that count as one part."""
MADE_IN_A_PART: Final = 1024
"""Ints that are computed, or multiplied, and count as one part."""


class Access(Enum):
    """Atomic action of an event."""

    # That of `Enum` is a function in Python, and this one is asked often.
    __hash__ = object.__hash__

    READ = "R"
    WRITE = "W"
    UPDATE = "U"
    """Reads all of its variables and writes all of them."""

    ACQUIRE = "lock"
    """Takes a mutex; possible while nobody holds it."""

    RELEASE = "unlock"

    ENQUEUE = "put"
    """Adds an element to a queue; possible while the queue is not full."""

    DEQUEUE = "take"
    """Takes the oldest element; possible while the queue is not empty."""

    SIZE = "size"
    CLOSE = "close"

    JOIN = "join"
    """A take joins the line of an accumulator."""

    TAKE = "take sum"
    """Takes an accumulator's sum; possible for the head of the line while the count is enough."""

    SNAPSHOT = "snapshot"
    """Reads all variables of a cluster."""

    WRITE_BACK = "write-back"
    """Writes the variables that the cluster wrote on the path taken."""


QUEUE_ACCESSES: Final = MappingProxyType(
    {
        "QueueEnqueueV2": Access.ENQUEUE,
        "QueueEnqueueManyV2": Access.ENQUEUE,
        "QueueDequeueV2": Access.DEQUEUE,
        "QueueDequeueManyV2": Access.DEQUEUE,
        "QueueSizeV2": Access.SIZE,
        "QueueCloseV2": Access.CLOSE,
    }
)
"""What an op on a queue does with each element, or once."""


class Event(Struct, frozen=True):
    """One atomic step of one op instance.

    Parameters
    ----------
    node : Node
        The op.
    access : Access
    variables : tuple of str
        Resources that the event touches: one, except for an indivisible update of
        several variables and for a cluster's events.
    needs : tuple of int
        Tokens that must be ready.
    after : tuple of int
        Events that must be done. For the write of an update: its reads, in the
        order of the node's resources; they hold the values that the update saw.
    operands : tuple of int
        Tokens whose values the event uses, in the order of the node's inputs; all
        are among `needs`. A write-back has two for each variable: its value, and
        1 or 0 for written or not.
    guards : tuple of (int, bool)
        Tokens of predicates, each with the value it must have; outermost first.
    part : int
        Number of the element of a many-op, from 0.
    run : str
        Name of the run; "" if there is only one.
    frame : str
        Loop iterations around the instance, outermost first: ``loop[2]/``.
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
    frame: str = ""

    @property
    def instance(self) -> tuple[str, str, str]:
        """The op instance of the event: run, frame, node."""
        return self.run, self.frame, self.node.name

    def __str__(self) -> str:
        name = self.frame + self.node.name
        name = f"{self.run}.{name}" if self.run else name
        element = f"[{self.part}]" if self.node.definition.several else ""
        return f"{self.access.value}({','.join(self.variables)}) {name}{element}"


class Result(Struct, frozen=True):
    """Ready when the event is done; its value is what the event returned."""

    event: int


class Join(Struct, frozen=True):
    """Ready when all `tokens` are ready; has no value."""

    tokens: tuple[int, ...]


class Stack(Struct, frozen=True):
    """The concatenated results of events: ready when all are done."""

    events: tuple[int, ...]


class Pure(Struct, frozen=True):
    """The result of a pure node: ready when `inputs` and `waits` are.

    Of a node on a variable whose indices are operands: its result, or what it stores; the
    first input is what it read.
    """

    node: Node
    inputs: tuple[int, ...]
    waits: tuple[int, ...] = ()


class Pick(Struct, frozen=True):
    """The value of `then` or of `other`: ready when predicate and chosen token are."""

    predicate: int
    then: int
    other: int


class Held(Struct, frozen=True):
    """The value of `token`, delayed until `waits` are ready as well."""

    token: int
    waits: tuple[int, ...]


class Finished(Struct, frozen=True):
    """Ready when each of the events is done or dead."""

    events: tuple[int, ...]


class Known(Struct, frozen=True):
    """A constant: always ready."""

    value: Ints


class Seen(Struct, frozen=True):
    """The value that a snapshot saw of its variable at `place`: ready when it is done."""

    event: int
    place: int


class Gathered(Struct, frozen=True):
    """The result of `node`, a read inside a cluster, of a variable with the token's value."""

    node: Node
    token: int


class Stored(Struct, frozen=True):
    """The value that `node`, inside a cluster, stores in its resource at `place`.

    `seen` holds the values that an update read; it is empty for a write.
    """

    node: Node
    place: int
    seen: tuple[int, ...]
    operands: tuple[int, ...]


Token = Result | Join | Stack | Pure | Pick | Held | Finished | Known | Seen | Gathered | Stored


class Check(Struct, frozen=True):
    """An instance that may fail; if it does, the order ends there (semantics.md, section 3).

    Parameters
    ----------
    token : int
        A `Pure` token. The instance fails as soon as that is ready, if its op has no value.
    guards : tuple of (int, bool)
        As of an event: the predicates that make the instance happen.
    needed : bool
        False if no effect, result or outcome needs it: an executor may leave it out.
    """

    token: int
    guards: tuple[tuple[int, bool], ...]
    needed: bool


@dataclass(frozen=True, slots=True)
class Unfolding:
    """All events of a test under a model, with their order.

    Invariant: an event depends only on events with a smaller index. Where nothing
    blocks, index order is thus an allowed total order.

    Parameters
    ----------
    events : tuple of Event
    tokens : tuple of Token
    observed : tuple of (str, int, int)
        Name in an outcome, the token of its value, and the token that is ready
        when its run has ended; in the order of `LitmusTest.observe`.
    axioms : frozenset of Axiom
        Axioms of the model. Events and tokens already express all of them except
        `FIFO`, `CAPACITY` and `PREDICATES`, which each oracle implements.
    parts : int
        Size: events, tokens, references between them, and the ints that pure nodes compute.
    ints : int
        Ints that pure nodes compute, or multiply.
    checks : tuple of Check
        In the order of their tokens.
    """

    events: tuple[Event, ...]
    tokens: tuple[Token, ...]
    observed: tuple[tuple[str, int, int], ...]
    axioms: frozenset[Axiom]
    parts: int
    ints: int
    checks: tuple[Check, ...] = ()


class Strictness(Struct, frozen=True):
    """Extra order that an executor adds to one loop, conditional or call.

    Parameters
    ----------
    parallel : int or None
        Largest number of iterations at once; None for the model's own limit.
    gathers : bool
        An iteration, branch or call begins only when all carried and captured values
        are ready; a body begins only when its condition is done.
    late : bool
        Results are ready only when every instance is done.

    References
    ----------
    semantics.md, section 3, "Loops": "in three separate ways".
    """

    parallel: int | None = None
    gathers: bool = False
    late: bool = False


_STRICTEST: Final = Strictness(parallel=1, gathers=True, late=True)
"""One thing at a time."""


def strictnesses(
    test: LitmusTest, model: Model, *, every: bool = False
) -> Iterator[dict[str, Strictness]]:
    """Yield the choices of strictness that may matter, or (`every`) all; the loosest first.

    Only blocked outcomes depend on the choice: an outcome that completes under a
    stricter choice completes under the loosest one as well. And only loops and conditionals
    in which something may wait for ever, while something else could go on: the strictness of
    others holds up what happens anyway (`_half_blocked`).
    """
    yield {}
    windows: dict[str, int] = {}
    open_ended = _open_ended(test.nodes, test.clusters)
    nodes = open_ended if every else _half_blocked(test, model)
    for node in nodes:
        if isinstance(node.attrs, LoopAttrs):
            most = test.bounds[node.name] + 1
            if has_window(test, node, model):
                most = min(most, node.attrs.parallel_iterations)
            windows[node.name] = most
    yield from _stricter(nodes, windows)


def every_stricter(
    nodes: Iterable[Node], clusters: Iterable[Cluster], bounds: Mapping[str, int]
) -> Iterator[dict[str, Strictness]]:
    """Yield all choices of strictness under `rfc` but the loosest.

    For a test that need not be validated; see `strictnesses`.

    Parameters
    ----------
    nodes : iterable of Node
        All nodes of a test.
    """
    windows = {name: bound + 1 for name, bound in bounds.items()}
    yield from _stricter(_open_ended(nodes, clusters), windows)


def count_choices(
    nodes: Iterable[Node], clusters: Iterable[Cluster], bounds: Mapping[str, int]
) -> int:
    """Number of the choices that `every_stricter` yields, and the loosest one."""
    windows = {name: bound + 1 for name, bound in bounds.items()}
    return math.prod(len(_options(each, windows)) for each in _open_ended(nodes, clusters))


def _stricter(nodes: Iterable[Node], windows: Mapping[str, int]) -> Iterator[dict[str, Strictness]]:
    """Yield all choices of strictness of these nodes but the loosest.

    `windows` has for each loop the largest number of iterations at once.
    """
    nodes = list(nodes)
    choices = product(*(_options(node, windows) for node in nodes))
    next(choices)  # the loosest
    for chosen in choices:
        yield {node.name: strict for node, strict in zip(nodes, chosen, strict=True)}


def _options(node: Node, windows: Mapping[str, int]) -> list[Strictness]:
    """Choices of strictness of one node, the loosest first."""
    parallels: list[int | None] = [None]
    if isinstance(node.attrs, LoopAttrs):
        parallels += range(windows[node.name] - 1, 0, -1)
    flags = [(gathers, late) for gathers in (False, True) for late in (False, True)]
    return [Strictness(parallel, *flag) for parallel in parallels for flag in flags]


def _open_ended(nodes: Iterable[Node], clusters: Iterable[Cluster]) -> list[Node]:
    """Loops, conditionals and calls that have events of their own: those outside clusters."""
    found = [node for node in nodes if bodies(node)]
    members = {name for cluster in clusters for name in cluster.members}
    compiled = {n.name for n in all_nodes(each for each in found if each.name in members)}
    return [node for node in found if node.name not in compiled]


def _half_blocked(test: LitmusTest, model: Model) -> list[Node]:
    """Loops, conditionals and calls whose strictness a blocked outcome may depend on.

    The strictness of one adds order from its instances, and from the values that it takes, to
    its instances and results. Where all of those happen in every order that reaches the
    loop or conditional, a state in which no event is enabled is the same without that order.
    So something inside it may block, or one of the values that it takes may never be there.
    """
    found: set[str] = set()

    def blocks(node: Node) -> bool:
        return any(each.definition.blocks for each in all_nodes([node]))

    def visit(nodes: tuple[Node, ...], late: set[str], *, top: bool = False) -> None:
        """`late` has the values that come into the body and may never be there."""
        graph = Graph("", nodes)
        if Axiom.PROGRAM_ORDER in model.axioms:
            graph = in_program_order(graph)
        in_turn = _in_turn(model, top=top)
        late = set(late)
        held_up = False  # one after another: a step before may never be done
        for kind, step in (
            one_by_one(graph) if in_turn else steps(graph, clusters_of(nodes, test.clusters))
        ):
            if isinstance(step, Cluster):
                here = [node for node in graph.nodes if node.name in step.members]
                if any(late.intersection(node.references) for node in here):
                    late.update(key for node in here for key in node.keys)
                continue
            if kind == "acquire":
                late.update(step.members)
            waits = kind != "node" or step.name in late or blocks(step) or held_up
            if waits or late.intersection(step.references):
                late.update(step.keys)
                held_up = in_turn
            if not bodies(step):
                continue
            outer = [outer for _, outer in captures_of(step)]
            taken = outer if isinstance(step.attrs, BranchAttrs) else [*outer, *step.inputs]
            matters = blocks(step) or bool(late.intersection(taken))
            if matters:
                found.add(step.name)
            for _, body in bodies(step):
                loop = isinstance(step.attrs, LoopAttrs) and step.attrs.body is body
                if loop and not test.bounds[step.name]:
                    continue  # program order may close a cycle in it, which no run has
                visit(body.nodes, set(step.arguments) if matters else set())

    graphs = list(test.graphs)
    if Axiom.FETCHES in model.axioms:
        # Nodes that no run executes may close a cycle that no run has.
        graphs = [test.graph_of(run) for run in test.runs]
    for graph in graphs:
        visit(graph.nodes, set(), top=True)
    return [node for node in _open_ended(test.nodes, test.clusters) if node.name in found]


def has_window(test: LitmusTest, loop: Node, model: Model) -> bool:
    """Return True if `parallel_iterations` orders the loop's iterations.

    References
    ----------
    semantics.md, section 3, "Loops": across devices that does not hold.
    """
    return Axiom.PARALLEL_ITERATIONS in model.axioms and not test.spans_devices(loop)


MAX_REMEMBERED: Final = 1 << 14
"""Parts of an unfolding that is remembered, at most."""
_RECENT: Final[deque[tuple[LitmusTest, frozenset[Axiom], Unfolding]]] = deque(maxlen=64)
"""Unfoldings of the loosest strictness, the newest last: as many as wait in a campaign's queues."""


def unfold(
    test: LitmusTest, model: Model, strictness: Mapping[str, Strictness] | None = None
) -> Unfolding:
    """Unfold `test` into its events, with the order that `model` requires.

    Pure nodes have no events, but carry order from their inputs to their outputs.
    Loops are unrolled to their bounds; events of iterations not reached are dead.
    The last small unfoldings are remembered: a generator asks first, and then each oracle.

    Parameters
    ----------
    strictness : mapping, optional
        Strictness by name of a loop or conditional.

    Raises
    ------
    NoProgramOrder
        If `model` has program order and the test has none.
    NotOneCluster
        If `model` takes each graph for a cluster, and one can be none.
    TestTooLarge
        If the unfolding has more than `MAX_PARTS` parts, or `MAX_EVENTS` events.

    References
    ----------
    semantics.md, section 2 (the column "events") and section 3; RFC, rules 1
    to 4 and "Resource Update Operations".
    """
    if strictness:
        return _unfolded(test, model, strictness)
    for known, axioms, unfolding in tuple(_RECENT):  # other threads may unfold, too
        if known is test and axioms == model.axioms:
            return unfolding
    unfolding = _unfolded(test, model, {})
    if unfolding.parts <= MAX_REMEMBERED:
        _RECENT.append((test, model.axioms, unfolding))
    return unfolding


def _unfolded(test: LitmusTest, model: Model, strictness: Mapping[str, Strictness]) -> Unfolding:
    """As `unfold`, always anew."""
    if test.clusters and FRONT_ENDS & model.axioms:
        name = test.clusters[0].name
        raise NoProgramOrder(f"clusters.{name}: no program has clusters (model {model.name})")
    if Axiom.ONE_CLUSTER in model.axioms:
        test = as_clusters(test)
    unfolder = _Unfolder(test, model, strictness)
    ended: dict[str, int] = {}  # by run: the token that is ready when the run is done
    keys: dict[str, int] = {}
    run_of: dict[str, int] = {}
    graphs = {graph.name: graph for graph in test.graphs}
    runs = test.runs  # made anew each time
    for run in runs:
        graph = test.graph_of(run) if Axiom.FETCHES in model.axioms else graphs[run.graph]
        # RFC, rule 3: a run's source comes after the sinks of the runs before it.
        source: tuple[int, ...] = ()
        if Axiom.RUNS in model.axioms:
            source = tuple(ended[name] for name in run.after)
        first = unfolder.mark()
        frame = _Frame(run.name if len(runs) > 1 else "", source)
        try:
            token_of = unfolder.graph(graph, unfolder.fed(run, graph), frame, top=True)
        except MalformedTest as error:  # only edges added here can make a cycle
            raise NoProgramOrder(f"{error}, by program order (model {model.name})") from None
        # When all events are done or dead, nothing is left for an instance without one to wait for.
        everything = unfolder.token(Finished(tuple(range(first[0], len(unfolder.events)))))
        ended[run.name] = unfolder.token(Join((*token_of.values(), everything, *source)))
        for name, token in token_of.items():
            key = name if len(runs) == 1 else f"{run.name}.{name}"
            keys[key], run_of[key] = token, ended[run.name]
    observed = tuple((name, keys[name], run_of[name]) for name in test.observe)
    return Unfolding(
        tuple(unfolder.events),
        tuple(unfolder.tokens),
        observed,
        model.axioms,
        MAX_PARTS - unfolder.parts_left,
        unfolder.ints,
        tuple(unfolder.checks),
    )


_Step = tuple[Access, tuple[str, ...]]
_Mark = tuple[int, int]
"""Position in the unfolding: number of events, and of instances without events."""


@dataclass(frozen=True, slots=True)
class _Frame:
    """Context shared by all instances of a graph or body."""

    run: str
    waits: tuple[int, ...]
    guards: tuple[tuple[int, bool], ...] = ()
    name: str = ""


class _Plan(NamedTuple):
    """How a graph or body is unfolded, in every frame alike."""

    graph: Graph
    """With the edges that the model adds."""
    steps: Sequence[tuple[str, Node | Cluster]]
    around: Mapping[str, Sequence[str]]
    """By section: those that it lies inside."""
    within: Mapping[str, Sequence[str]]
    """By section: those that lie inside it."""
    in_turn: bool
    """Each node waits for the one before it."""
    waits: bool
    """Something may wait for all instances inside a node with bodies."""
    pairs: int
    """Sections inside another."""


class _Unfolder:
    def __init__(
        self, test: LitmusTest, model: Model, strictness: Mapping[str, Strictness]
    ) -> None:
        self.test = test
        self.model = model
        self.strictness = strictness
        # Asked for each node.
        self.dependencies = Axiom.DEPENDENCIES in model.axioms
        self.effects_first = Axiom.EFFECTS_FIRST in model.axioms
        self.whole_updates = Axiom.UPDATES_INDIVISIBLE in model.axioms
        self.whole_dense_updates = Axiom.DENSE_UPDATES_INDIVISIBLE in model.axioms
        self.events: list[Event] = []
        self.checks: list[Check] = []
        self.needed = needed_nodes(test) if test.failing else frozenset()
        self.tokens: list[Token] = []
        self.silent: list[tuple[tuple[tuple[int, bool], ...], int]] = []
        """Instances in bodies without an event: what guards them, and the token of the value."""
        self.over: dict[int, int] = {}
        """By place in `silent`: the token that is ready when the instance is done or dead."""
        self.parts_left = MAX_PARTS
        self.ints = 0
        self.costs: dict[int, tuple[int, int]] = {}
        """By a node's id, which is quicker than its hash: what `cost` returns."""
        self.plans: dict[tuple[int, bool], _Plan] = {}
        """By the id of a graph's nodes, and whether the graph is that of a run."""
        for variable in test.variables:
            self.spend(test.size_of(variable.shape) // KEPT_IN_A_PART)
        for cell in test.cells:
            self.spend(test.size_of(cell.shape) // KEPT_IN_A_PART)
        for queue in test.queues:
            self.spend(len(queue.init) * test.size_of(queue.shape) // KEPT_IN_A_PART)
        self.first_members = {each.members[0]: each for each in test.clusters}
        self.places = {variable.name: place for place, variable in enumerate(test.variables)}
        self.handles = {name for name, kind in test.types.items() if kind and kind.is_handle}
        self.single: dict[tuple[str, str], Node] = {}
        """By node and variable: the node on that variable."""
        self.halves: dict[tuple[str, str], tuple[Node, Node]] = {}
        """By node and variable: the read and the write of an op whose indices are operands."""
        self.stands: dict[tuple[int, int], int | bool] = {}
        self.nothing = self.token(Join(()))

    def spend(self, parts: int) -> None:
        """Count parts of the unfolding; nested loops may have more than any memory holds."""
        self.parts_left -= parts
        if self.parts_left < 0:
            raise TestTooLarge(f"unfolds into more than {MAX_PARTS} parts")

    def token(self, token: Token) -> int:
        """Add a token and return its number."""
        # By far the most frequent kinds first.
        if type(token) is Pure:
            ints, parts = self.costs.get(id(token.node)) or self.cost(token.node)
            self.ints += ints
            parts += len(token.inputs) + len(token.waits)
        elif type(token) is Held:
            parts = 3 + len(token.waits)
        else:
            parts = 2 + _references(token)
        self.parts_left -= parts
        if self.parts_left < 0:
            self.spend(0)
        number = len(self.tokens)
        self.tokens.append(token)
        return number

    def cost(self, node: Node) -> tuple[int, int]:
        """Return the ints that a pure node computes, and the parts of its token by itself."""
        op = node.definition
        work = _work(self.test, node, op) if op.has_value or op.computed else 0
        parts = 2 + work // (KEPT_IN_A_PART if op.constant else MADE_IN_A_PART)
        self.costs[id(node)] = work, parts
        return work, parts

    def mark(self) -> _Mark:
        """Return the position of the next instance."""
        return len(self.events), len(self.silent)

    def finished(self, first: _Mark, end: _Mark | None = None) -> int:
        """Return a token that is ready when each instance between two marks is done or dead."""
        (event, silent), (events, silents) = first, end or self.mark()
        done = self.token(Finished(tuple(range(event, events))))
        others = [self.done_or_dead(place) for place in range(silent, silents)]
        return self.token(Join((done, *others))) if others else done

    def done_or_dead(self, place: int) -> int:
        """Return a token that is ready when an instance without an event is done or dead."""
        if place not in self.over:
            guards, token = self.silent[place]
            for predicate, wanted in reversed(guards):
                then, other = (token, self.nothing) if wanted else (self.nothing, token)
                token = self.token(Pick(predicate, then, other))
            self.over[place] = token
        return self.over[place]

    def strictness_of(self, node: Node) -> Strictness:
        """Return how strict the executor is with a loop, conditional or call."""
        if Axiom.SEQUENCE in self.model.axioms:
            return _STRICTEST
        return self.strictness.get(node.name, Strictness())

    def effects(self, first: _Mark) -> tuple[int, ...]:
        """Return what a body's results wait for by the axiom: each event since a mark.

        Instances without events are left out: a function waits for its stateful ops only.
        """
        if not self.effects_first:
            return ()
        return (self.token(Finished(tuple(range(first[0], len(self.events))))),)

    def fed(self, run: Run, graph: Graph) -> dict[str, int]:
        """Add the values that a run feeds; return their tokens by placeholder."""
        return {
            node.name: self.token(Known(self.test.fed(run, node)))
            for node in graph.nodes
            if node.definition.fed
        }

    def note_silent(self, frame: _Frame, token: int) -> None:
        """Record an instance inside a body that has no event of its own.

        Outside bodies a run waits for each node anyway.
        """
        if frame.guards or frame.name:
            self.silent.append((frame.guards, token))

    def event(
        self,
        frame: _Frame,
        node: Node,
        access: Access,
        variables: tuple[str, ...],
        needs: tuple[int, ...],
        *,
        after: tuple[int, ...] = (),
        operands: tuple[int, ...] = (),
        part: int = 0,
    ) -> int:
        """Add an event and return its index."""
        self.spend(4 + len(needs) + len(after) + len(operands) + len(frame.guards))
        if len(self.events) >= MAX_EVENTS:
            raise TestTooLarge(f"unfolds into more than {MAX_EVENTS} events")
        self.events.append(
            Event(
                node=node,
                access=access,
                variables=variables,
                needs=needs,
                after=after,
                operands=operands,
                guards=frame.guards,
                part=part,
                run=frame.run,
                frame=frame.name,
            )
        )
        return len(self.events) - 1

    def graph(
        self, graph: Graph, scope: Mapping[str, int], frame: _Frame, *, top: bool = False
    ) -> dict[str, int]:
        """Add the instances of a graph or body in one frame.

        Parameters
        ----------
        scope
            Tokens of captured values, by the names that they have inside.
        top
            True for the graph of a run.

        Returns
        -------
        dict of str to int
            Each node's token, ready when its instance is done (a section: when it
            is released; a loop or conditional: when all its results are ready),
            and the tokens of its results.
        """
        plan = self.plans.get((id(graph.nodes), top)) or self.plan(graph, top=top)
        around, within, in_turn = plan.around, plan.within, plan.in_turn
        self.spend(len(scope) + len(graph.nodes) + plan.pairs)
        values = dict(scope)  # tokens by name: captured values and results
        token_of: dict[str, int] = {}
        held: dict[str, tuple[int, ...]] = {}  # by node: acquires of the sections around it
        inside: dict[str, tuple[int, ...]] = {}  # by node with bodies: all instances done or dead
        before: tuple[int, ...] = ()  # one after another: what the step before leaves
        for kind, step in plan.steps:
            if kind == "cluster":
                assert isinstance(step, Cluster)
                # Members may be in different sections: the cluster waits for all their acquires.
                acquires = (token for name in step.members for token in held.get(name, ()))
                waits = frame.waits + tuple(dict.fromkeys(acquires))
                for name, token in self.cluster(plan.graph, step, values, waits, frame).items():
                    token_of[name] = values[name] = token
                continue
            assert isinstance(step, Node)
            node = step
            inputs = tuple([values[name] for name in node.inputs])
            waits = frame.waits
            if node.after and self.dependencies:
                waits += tuple([values[name] for name in node.after])
            waits += before
            if kind == "node":
                if held:
                    waits += held.get(node.name, ())
                if not bodies(node):
                    made = self.instance(node, inputs, waits, values, frame)
                    token_of[node.name] = values[node.name] = made
                    if in_turn and not node.definition.fed:  # what is fed waits for nothing
                        before = (made,)
                    continue
                first = self.mark()
                results = self.nested(node, inputs, waits, values, frame)
                token_of |= results
                values |= results
                if plan.waits:
                    inside[node.name] = (self.finished(first),)
                if in_turn:
                    before = (results[node.name], *inside[node.name])
                continue
            assert isinstance(node.attrs, SectionAttrs)
            members = tuple(values[name] for name in node.attrs.members if name in values)
            if Axiom.CRITICAL_SECTIONS not in self.model.axioms:
                # Without the rule a section is an ordinary node with edges.
                if kind == "release":
                    token_of[node.name] = values[node.name] = self.token(Join(waits + members))
            elif kind == "acquire":
                outside = around.get(node.name, ())
                waits += tuple(token for name in outside for token in held[name])
                taken = self.event(frame, node, Access.ACQUIRE, node.resources, waits)
                held[node.name] = (self.token(Result(taken)),)
                before = held[node.name] if in_turn else ()
                for name in node.attrs.members:
                    held[name] = (*held.get(name, ()), *held[node.name])
            else:
                needs = held[node.name] + members
                needs += tuple(t for name in node.attrs.members for t in inside.get(name, ()))
                needs += tuple(token_of[name] for name in within.get(node.name, ()))
                needs += before
                released = self.event(frame, node, Access.RELEASE, node.resources, needs)
                token_of[node.name] = values[node.name] = self.token(Result(released))
                before = (token_of[node.name],) if in_turn else ()
        return token_of

    def plan(self, graph: Graph, *, top: bool) -> _Plan:
        """Return in which order the nodes of a graph or body are unfolded, in every frame."""
        nodes = graph.nodes
        if Axiom.PROGRAM_ORDER in self.model.axioms:
            graph = in_program_order(graph)
        in_turn = _in_turn(self.model, top=top)
        sections = [n for n in graph.nodes if type(n.attrs) is SectionAttrs]
        around, within = nested_pairs(sections)
        clusters = [self.first_members[n.name] for n in graph.nodes if n.name in self.first_members]
        pairs = sum(map(len, around.values()))
        waits = bool(sections) or in_turn
        taken = one_by_one(graph) if in_turn else steps(graph, clusters)
        made = _Plan(graph, taken, around, within, in_turn, waits, pairs)
        self.plans[(id(nodes), top)] = made
        return made

    def cluster(
        self,
        graph: Graph,
        cluster: Cluster,
        values: Mapping[str, int],
        waits: tuple[int, ...],
        frame: _Frame,
    ) -> dict[str, int]:
        """Add one instance of a cluster; return the tokens of its members and their results.

        References
        ----------
        semantics.md, section 5.
        """
        nodes = {node.name: node for node in graph.nodes}
        members = [nodes[name] for name in cluster.members]
        for each in all_nodes(members):
            if each.name in self.test.failing:  # a compiler does not report it
                raise OpFails(f"{each.name} ({each.op}) may fail inside cluster {cluster.name}")
        # Edges into any member precede the snapshot.
        sources = [name for n in members for name in n.inputs]
        sources += [outer for n in members for _, outer in captures_of(n)]
        if self.dependencies:
            sources += [name for n in members for name in n.after]
        outside = [s for s in sources if s.partition(".")[0] not in cluster.members]
        needs = waits + tuple(values[name] for name in dict.fromkeys(outside))
        inner = [n for n in all_nodes(members) if n.resources]
        reads = [v for n in inner if n.definition.kind is not Kind.WRITE for v in n.resources]
        writes = [v for n in inner if n.definition.kind is not Kind.READ for v in n.resources]
        node = Node(cluster.name, CLUSTER.name, resources=tuple(dict.fromkeys(reads + writes)))

        store: dict[str, int] = {}
        snapshots: list[int] = []
        for group in self.at_once(reads):
            event = self.event(frame, node, Access.SNAPSHOT, group, needs)
            snapshots.append(self.token(Result(event)))
            for place, name in enumerate(group):
                store[name] = self.token(Seen(event, place))
        function = _Function(self, store)
        results = function.run(members, values)
        # A loop without iterations writes nothing, whatever its body holds.
        writes = [name for name in writes if name in function.written]
        done = needs + tuple(snapshots)
        # Edges out of any member follow the write-back.
        events = [
            self.event(
                frame,
                node,
                Access.WRITE_BACK,
                group,
                done,
                operands=tuple(t for v in group for t in (function.store[v], function.written[v])),
            )
            for group in self.at_once(writes)
        ]
        done += tuple(self.token(Result(event)) for event in events)
        self.note_silent(frame, self.token(Join(done)))
        return {name: self.token(Held(token, done)) for name, token in results.items()}

    def at_once(self, variables: Iterable[str]) -> list[tuple[str, ...]]:
        """Return the groups of variables that a cluster reads or writes in one event each."""
        distinct = tuple(dict.fromkeys(variables))
        if Axiom.CLUSTERS in self.model.axioms:
            return [distinct] if distinct else []
        return [(name,) for name in distinct]

    def branch(
        self,
        node: Node,
        attrs: BranchAttrs,
        predicate: int,
        waits: tuple[int, ...],
        values: Mapping[str, int],
        frame: _Frame,
    ) -> dict[str, int]:
        """Add both branches of a conditional; the branch not taken is dead."""
        strict = self.strictness_of(node)
        scope = {inner: values[outer] for inner, outer in attrs.captures}
        if strict.gathers:
            waits += (predicate, *scope.values())
        first = self.mark()
        chosen: list[list[int]] = []
        for taken, body in ((True, attrs.then), (False, attrs.orelse)):
            inner = _Frame(frame.run, waits, (*frame.guards, (predicate, taken)), frame.name)
            inside = scope | self.graph(Graph(node.name, body.nodes), scope, inner)
            chosen.append([inside[name] for name in body.results])
        leaves = waits
        if strict.late:
            leaves += (predicate, self.finished(first))
        leaves += self.effects(first)
        results = {
            f"{node.name}.{name}": self.token(
                Held(self.token(Pick(predicate, then, other)), leaves)
            )
            for name, then, other in zip(attrs.results, *chosen, strict=True)
        }
        return {node.name: self.token(Join(tuple(results.values())))} | results

    def call(
        self,
        node: Node,
        attrs: CallAttrs,
        waits: tuple[int, ...],
        values: Mapping[str, int],
        frame: _Frame,
    ) -> dict[str, int]:
        """Add the instances of a call's body; the call itself is ready when all are done."""
        strict = self.strictness_of(node)
        scope = {inner: values[outer] for inner, outer in attrs.captures}
        if strict.gathers:
            waits += tuple(scope.values())
        first = self.mark()
        inner = _Frame(frame.run, waits, frame.guards, frame.name)
        made = self.graph(Graph(node.name, attrs.body.nodes), scope, inner)
        # The nodes of the body are live when the call is; loops inside may have live
        # instances that none of their results needs.
        everything = self.token(Join((*waits, *made.values(), self.finished(first))))
        leaves = (everything,) if strict.late else (*waits, *self.effects(first))
        inside = scope | made
        results = {
            f"{node.name}.{name}": self.token(Held(inside[result], leaves))
            for name, result in zip(attrs.results, attrs.body.results, strict=True)
        }
        self.note_silent(frame, everything)
        done = everything
        if Axiom.CALLS not in self.model.axioms:
            done = self.token(Join((*waits, *results.values())))
        return {node.name: done} | results

    def loop(
        self,
        node: Node,
        attrs: LoopAttrs,
        inputs: tuple[int, ...],
        waits: tuple[int, ...],
        values: Mapping[str, int],
        frame: _Frame,
    ) -> dict[str, int]:
        """Add a loop's iterations, up to its bound."""
        strict = self.strictness_of(node)
        parallel = strict.parallel
        if parallel is None and has_window(self.test, node, self.model):
            parallel = attrs.parallel_iterations
        captures = {inner: values[outer] for inner, outer in attrs.captures}
        condition = Graph(node.name, attrs.condition.nodes)
        body = Graph(node.name, attrs.body.nodes)
        carried = [self.token(Held(token, waits)) for token in inputs]
        guards = frame.guards
        start = self.mark()
        ends: list[_Mark] = []  # of each iteration
        instances: list[tuple[int, ...]] = []  # by iteration: tokens of its nodes
        predicates: list[int] = []
        leaving: list[list[int]] = []  # by iteration: results, if it is the last
        bound = self.test.bounds[node.name]
        for number in range(bound + 1):
            name = f"{frame.name}{node.name}[{number}]/"
            scope = captures | dict(zip(attrs.carried, carried, strict=True))
            begins = waits
            if parallel is not None and number >= parallel:
                # The next iteration begins when this one is done: all earlier
                # iterations are done by then.
                over = tuple(t for each in instances[: number - parallel + 1] for t in each)
                begins += (self.finished(start, ends[number - parallel]), *over)
            gathered = tuple(scope.values()) if strict.gathers else ()
            first = self.mark()
            starts = (*begins, *gathered)
            if Axiom.ITERATIONS in self.model.axioms:
                starts += (carried[0],)
            testing = self.graph(condition, scope, _Frame(frame.run, starts, guards, name))
            inside = scope | testing
            tested = self.mark()
            predicate = self.token(Held(inside[attrs.condition.results[0]], starts))
            predicates.append(predicate)
            leaving.append([self.token(Held(token, (*begins, predicate))) for token in carried])
            if number == bound:
                break  # the counter has reached its limit: the condition is false
            guards = (*guards, (predicate, True))
            goes_on = begins
            if strict.gathers:
                goes_on += (*gathered, self.finished(first, tested))
            working = self.graph(body, scope, _Frame(frame.run, goes_on, guards, name))
            inside = scope | working
            after = (*goes_on, predicate, *self.effects(first))
            carried = [self.token(Held(inside[result], after)) for result in attrs.body.results]
            ends.append(self.mark())
            # Ready whenever a later iteration is live, since this body is live then.
            instances.append((*testing.values(), *working.values()))
        # By the axiom, also what the last condition does, which no carried value waits for.
        everything = (self.finished(start),) if strict.late else self.effects(start)
        results: dict[str, int] = {}
        for position, name in enumerate(attrs.carried):
            result = leaving[bound][position]
            for number in reversed(range(bound)):
                result = self.token(Pick(predicates[number], result, leaving[number][position]))
            results[f"{node.name}.{name}"] = self.token(Held(result, everything))
        return {node.name: self.token(Join(tuple(results.values())))} | results

    def nested(
        self,
        node: Node,
        inputs: tuple[int, ...],
        waits: tuple[int, ...],
        values: Mapping[str, int],
        frame: _Frame,
    ) -> dict[str, int]:
        """Add one instance of a node with bodies; return its token, and those of its results."""
        if type(node.attrs) is BranchAttrs:
            return self.branch(node, node.attrs, inputs[0], waits, values, frame)
        if type(node.attrs) is LoopAttrs:
            return self.loop(node, node.attrs, inputs, waits, values, frame)
        assert type(node.attrs) is CallAttrs
        return self.call(node, node.attrs, waits, values, frame)

    def instance(
        self,
        node: Node,
        inputs: tuple[int, ...],
        waits: tuple[int, ...],
        values: Mapping[str, int],
        frame: _Frame,
    ) -> int:
        """Add one instance of an op without bodies; return its token, ready when it is done."""
        op = node.definition
        kind = op.kind
        if op.fed:
            return values[node.name]
        if node.handle:
            return self.chosen(node, values[node.handle], inputs, waits, frame)
        if kind is Kind.PURE or kind is Kind.TRANSFER:
            # A transfer is transparent: its value is its input.
            # So is an Identity of a handle.
            transfer = kind is Kind.TRANSFER or node.name in self.handles
            done_when = self.token(
                Held(inputs[0], waits) if transfer else Pure(node, inputs, waits)
            )
            self.note_silent(frame, done_when)
            if self.test.failing:
                self.check(node, done_when, frame)
            return done_when
        if type(node.attrs) is HandleAttrs:
            number = self.places[node.attrs.variable]
            done_when = self.token(Held(self.token(Known((number,))), waits))
            self.note_silent(frame, done_when)
            return done_when
        if kind is Kind.QUEUE:
            return self.queue_op(node, inputs, waits, frame)
        if kind is Kind.ACCUMULATOR:
            return self.accumulator_op(node, inputs, waits, frame)
        return self.on_variables(node, inputs, waits, frame)

    def accumulator_op(
        self, node: Node, inputs: tuple[int, ...], waits: tuple[int, ...], frame: _Frame
    ) -> int:
        """Add the events of an op on an accumulator, each on some of its cells.

        References
        ----------
        semantics.md, section 2, "Accumulators".
        """
        accumulator = self.test.accumulator(node)
        cells = (accumulator.sum.name, accumulator.count.name, accumulator.step.name)
        line = accumulator.line
        use = node.definition.accumulator
        axioms = self.model.axioms

        def event(
            access: Access,
            touched: tuple[str, ...],
            operands: tuple[int, ...] = inputs,
            after: tuple[int, ...] = (),
        ) -> int:
            key = (node.name, access.value)
            if key not in self.single:
                self.single[key] = replace(node, resources=touched)
            return self.event(
                *(frame, self.single[key], access, touched, inputs + waits),
                after=after,
                operands=operands,
            )

        if use is AccumulatorUse.APPLY:
            # Without its local step, a gradient is never stale.
            done = event(Access.UPDATE, cells, inputs if Axiom.STALE in axioms else inputs[1:])
        elif use is AccumulatorUse.COUNT:
            done = event(Access.READ, cells[1:2])
        elif use is AccumulatorUse.STEP:
            done = event(Access.WRITE, cells[2:])
        else:
            # Without its number, a take wants one gradient.
            needed = inputs if Axiom.ENOUGH in axioms else ()
            joined = (event(Access.JOIN, (line,)),)
            done = event(Access.TAKE, (*cells, line), needed, joined)
        return self.token(Result(done))

    def on_variables(
        self, node: Node, inputs: tuple[int, ...], waits: tuple[int, ...], frame: _Frame
    ) -> int:
        """Add the events of an op on variables."""
        if node.definition.computed:
            return self.at_computed_places(node, inputs, waits, frame)
        done: tuple[int, ...] = ()
        needs = inputs + waits
        for group in self.groups(node):
            # The events of one group are not ordered among themselves; the
            # groups are: an update reads, then writes.
            events = [
                self.event(frame, node, access, variables, needs, after=done, operands=inputs)
                for access, variables in group
            ]
            done = tuple(events)
        results = [self.token(Result(event)) for event in done]
        return results[0] if len(results) == 1 else self.token(Join(tuple(results)))

    def at_computed_places(
        self, node: Node, inputs: tuple[int, ...], waits: tuple[int, ...], frame: _Frame
    ) -> int:
        """Add a gather, scatter or slice whose indices are operands.

        It reads the whole variable; a pure function of what it read, and of its operands, is
        its result, or what it then writes. So oracles need nothing but the function, which may
        fail.
        """
        key = node.name, node.resources[0]
        if key not in self.halves:
            plain = replace(node, inputs=(), attrs=None, handle="")
            self.halves[key] = (
                replace(plain, op="ReadVariableOp"),
                replace(plain, op="AssignVariableOp"),
            )
        read, write = self.halves[key]
        needs = inputs + waits
        if self.whole_updates and node.definition.kind is Kind.UPDATE:
            # One event; whether it fails depends on the operands alone.
            variable = self.test.type_of(node.resources[0])
            seen = self.token(Known((0,) * self.test.size_of(variable.shape)))
            self.check(node, self.token(Pure(node, (seen, *inputs), waits)), frame)
            done = self.event(frame, node, Access.UPDATE, node.resources, needs, operands=inputs)
            return self.token(Result(done))
        saw = self.token(Result(self.event(frame, read, Access.READ, node.resources, needs)))
        made = self.token(Pure(node, (saw, *inputs)))
        self.check(node, made, frame)
        if node.definition.kind is Kind.READ:
            return made
        done = self.event(
            frame, write, Access.WRITE, node.resources, (*needs, made), operands=(made,)
        )
        return self.token(Result(done))

    def check(self, node: Node, token: int, frame: _Frame) -> None:
        """Note that an instance may fail."""
        if node.name in self.test.failing:
            needed = node.definition.has_effect or node.name in self.needed
            self.checks.append(Check(token, frame.guards, needed))

    def chosen(
        self,
        node: Node,
        handle: int,
        inputs: tuple[int, ...],
        waits: tuple[int, ...],
        frame: _Frame,
    ) -> int:
        """Add an op on the variable that its handle stands for; on the others, it is dead.

        References
        ----------
        semantics.md, section 1, "Handle": the instance touches the chosen resource only.
        """
        waits += (handle,)
        done: int | None = None
        for name in reversed(node.resources):
            flag = self.stands_for(handle, self.places[name])
            if flag is False:
                continue
            if (node.name, name) not in self.single:
                self.single[node.name, name] = replace(node, resources=(name,), handle="")
            inner = frame
            if flag is not True:
                inner = replace(frame, guards=(*frame.guards, (flag, True)))
            token = self.on_variables(self.single[node.name, name], inputs, waits, inner)
            if flag is True:
                return token
            done = token if done is None else self.token(Pick(flag, token, done))
        assert done is not None, node.name
        return done

    def stands_for(self, handle: int, place: int) -> int | bool:
        """A token that is 1 where the handle stands for that variable, or what it always is."""
        key = handle, place
        if key not in self.stands:
            token = self.tokens[handle]
            found: int | bool
            if isinstance(token, Known):
                found = token.value == (place,)
            elif isinstance(token, Held):
                found = self.stands_for(token.token, place)
                if not isinstance(found, bool):
                    found = self.token(Held(found, token.waits))
            elif isinstance(token, Pure):  # an Identity in a cluster
                assert not token.waits
                found = self.stands_for(token.inputs[0], place)
            else:
                assert isinstance(token, Pick)
                sides = [self.stands_for(each, place) for each in (token.then, token.other)]
                if isinstance(sides[0], bool) and sides[0] is sides[1]:
                    found = sides[0]
                else:
                    then, other = (
                        self.token(Known((int(each),))) if isinstance(each, bool) else each
                        for each in sides
                    )
                    found = self.token(Pick(token.predicate, then, other))
            self.stands[key] = found
        return self.stands[key]

    def queue_op(
        self, node: Node, inputs: tuple[int, ...], waits: tuple[int, ...], frame: _Frame
    ) -> int:
        """Add one event for each element, in index order; Size and Close have one."""
        access = QUEUE_ACCESSES[node.op]
        many = node.definition.several
        done: list[int] = []
        for part in range(self.test.elements(node)):
            done.append(
                self.event(
                    frame,
                    node,
                    access,
                    node.resources,
                    inputs + waits,
                    after=tuple(done[-1:]),
                    operands=inputs,
                    part=part,
                )
            )
        return self.token(Stack(tuple(done)) if many else Result(done[0]))

    def groups(self, node: Node) -> list[list[_Step]]:
        """Return a node's events in groups; each group comes after the one before."""
        kind = node.definition.kind
        reads: list[_Step] = [(Access.READ, (name,)) for name in node.resources]
        writes: list[_Step] = [(Access.WRITE, (name,)) for name in node.resources]
        if kind.only_reads:
            return [reads]
        if kind is Kind.WRITE:
            return [writes]
        if self.whole_updates or (self.whole_dense_updates and node.definition.dense):
            return [[(Access.UPDATE, node.resources)]]
        return [reads, writes]


def has_value(node: Node) -> bool:
    """Return True if a `Pure` token of the node has a value."""
    return node.definition.has_value or node.definition.computed


def needed_nodes(test: LitmusTest) -> frozenset[str]:
    """Names of the nodes that an effect, a result of a body, a run or the outcome needs."""
    keys = test.nodes_by_key()
    needed = {keys[key].partition(".")[0] for key in test.observe}
    for run in test.runs:
        needed.update(name.partition(".")[0] for name in (*run.fetches, *run.targets))
    for node in test.nodes:
        for _, body in bodies(node):
            needed.update(name.partition(".")[0] for name in body.results)
    for node in test.effects:
        needed.update(name.partition(".")[0] for name in (*node.references, *node.members))
    named = {node.name: node for node in test.nodes}
    stack = [named[name] for name in needed if name in named]
    while stack:
        node = stack.pop()
        for name in (*node.references, *node.members):
            source = name.partition(".")[0]
            if source not in needed:
                needed.add(source)
                if source in named:
                    stack.append(named[source])
    return frozenset(needed)


def _in_turn(model: Model, *, top: bool) -> bool:
    """Return True if the nodes of a graph (`top`) or of a body come one after another."""
    return Axiom.SEQUENCE in model.axioms or (top and Axiom.IN_TURN in model.axioms)


def one_by_one(graph: Graph) -> list[tuple[str, Node | Cluster]]:
    """Steps of a graph (`steps`) with its nodes in the order of the file.

    A section's acquire stands just before its first member, its release just after its last. Other
    nodes between these stay where they are.

    Raises
    ------
    MalformedTest
        If an edge into or out of a section asks for another order.

    References
    ----------
    semantics.md, section 3, model `program`.
    """
    sections = [node for node in graph.nodes if type(node.attrs) is SectionAttrs]
    # Of two that begin or end with one member, one lies inside the other, and has fewer.
    sections.sort(key=lambda section: -len(section.members))
    begin: dict[str, list[Node]] = {}
    end: dict[str, list[Node]] = {}
    for section in sections:
        inside = set(section.members)
        here = [node.name for node in graph.nodes if node.name in inside]
        begin.setdefault(here[0], []).append(section)
        end.setdefault(here[-1], []).insert(0, section)
    ordered: list[tuple[str, Node | Cluster]] = []
    for node in graph.nodes:
        if type(node.attrs) is SectionAttrs:
            continue
        ordered += (("acquire", section) for section in begin.get(node.name, ()))
        ordered.append(("node", node))
        ordered += (("release", section) for section in end.get(node.name, ()))
    if sections:
        seen: set[Step] = set()
        before = steps_before(graph)
        for kind, step in ordered:
            for other, name in sorted(before[kind, step.name] - seen):
                message = f"cycle through a section: {other} of {name}, {kind} of {step.name}"
                raise MalformedTest(message, (name if other == "release" else step.name,))
            seen.add((kind, step.name))
    return ordered


def in_program_order(graph: Graph) -> Graph:
    """Return the graph with an edge wherever two nodes conflict on a resource's handle.

    Automatic control dependencies add the same edges (TensorFlow,
    ``python/framework/auto_control_deps.py``). Mutexes are left out, since critical sections have
    an order of their own.
    """
    handles = {node.name for node in graph.nodes if isinstance(node.attrs, HandleAttrs)}
    same = {n.name: n.inputs[0] for n in graph.nodes if n.op == "Identity"}
    nodes: list[Node] = []
    uses: list[tuple[str, dict[str, bool]]] = []
    for node in graph.nodes:
        here = {} if node.name in handles else touched(node, same)
        before = [
            name
            for name, seen in uses
            if any(seen[key] or here[key] for key in seen.keys() & here.keys())
        ]
        uses.append((node.name, here))
        nodes.append(replace(node, after=tuple(dict.fromkeys((*node.after, *before)))))
    return Graph(graph.name, tuple(nodes))


def touched(node: Node, same: Mapping[str, str]) -> dict[str, bool]:
    """Return the handles through which a node touches resources; true where it may change them.

    Ops without a handle of their own use one that stands for all of them: its key is the resource,
    after a dot. `same` has the Identities of the body, which automatic control dependencies look
    through. Handles that a body makes, or gets from a loop or conditional inside it, are left out:
    what is ordered by less is allowed more.
    """
    found: dict[str, bool] = {}

    def add(name: str, *, changes: bool) -> None:
        while name in same:
            name = same[name]
        found[name] = found.get(name, False) or changes

    if node.resources and node.definition.kind is not Kind.SECTION:
        for name in (node.handle,) if node.handle else (f".{each}" for each in node.resources):
            add(name, changes=not node.definition.kind.only_reads)
    outside = dict(captures_of(node))
    if isinstance(node.attrs, LoopAttrs):
        outside |= dict(zip(node.attrs.carried, node.inputs, strict=True))
    for _, body in bodies(node):
        inner = {each.name: each.inputs[0] for each in body.nodes if each.op == "Identity"}
        for each in body.nodes:
            for name, changes in touched(each, inner).items():
                if name[0] == "." or name in outside:
                    add(outside.get(name, name), changes=changes)
    return found


def as_clusters(test: LitmusTest) -> LitmusTest:
    """Return the test with each whole graph as one cluster, in the order of the file.

    Raises
    ------
    NotOneCluster
        If a graph can be no cluster; says why.

    References
    ----------
    semantics.md, section 5; TensorFlow, ``compiler/jit/xla_launch_util.h``: XlaLaunch reads all
    variables under their locks, and writes those that changed under their locks.
    """
    taken = FreshNames(each.name for each in (*test.resources, *test.graphs, *test.runs))
    for node in test.nodes:
        taken.take(node.name, *node.arguments, *node.results)
    clusters = tuple(
        Cluster(taken.like("whole"), tuple(node.name for node in graph.nodes))
        for graph in test.graphs
        if graph.nodes
    )
    try:
        return replace(test, clusters=clusters)
    except MalformedTest as error:
        raise NotOneCluster(f"{error} (model one_cluster)") from None


class _Function:
    """A cluster's members as a pure function of the snapshot's values (SSA conversion).

    `store` has the token of each variable's current value; `written` has a token that
    is 1 if a member wrote the variable on the path taken. The function has no events:
    a body is evaluated, not executed.
    """

    def __init__(self, unfolder: _Unfolder, store: Mapping[str, int]) -> None:
        self.unfolder = unfolder
        self.store = dict(store)
        self.written: dict[str, int] = {}
        self.no = unfolder.token(Known((0,)))
        self.yes = unfolder.token(Known((1,)))

    def run(self, nodes: Iterable[Node], scope: Mapping[str, int]) -> dict[str, int]:
        """Evaluate the nodes in order; return their tokens and those of their results."""
        values = dict(scope)
        found: dict[str, int] = {}
        for node in nodes:
            for name, token in self.node(node, values).items():
                found[name] = values[name] = token
        return found

    def node(self, node: Node, values: Mapping[str, int]) -> dict[str, int]:
        token = self.unfolder.token
        inputs = tuple(values[name] for name in node.inputs)
        if isinstance(node.attrs, BranchAttrs):
            return self.branch(node, node.attrs, inputs[0], values)
        if isinstance(node.attrs, LoopAttrs):
            return self.loop(node, node.attrs, inputs, values)
        if isinstance(node.attrs, CallAttrs):
            return self.call(node, node.attrs, values)
        kind = node.definition.kind
        if kind is Kind.PURE:
            return {node.name: token(Pure(node, inputs))}
        if node.definition.computed:
            made = token(Pure(node, (self.store[node.resources[0]], *inputs)))
            if kind is Kind.READ:
                return {node.name: made}
            self.store[node.resources[0]] = made
            self.written[node.resources[0]] = self.yes
            return {node.name: self.yes}
        if kind is Kind.READ:
            return {node.name: token(Gathered(node, self.store[node.resources[0]]))}
        seen: tuple[int, ...] = ()
        if kind is Kind.UPDATE:
            seen = tuple(self.store[name] for name in node.resources)
        for place, name in enumerate(node.resources):
            self.store[name] = token(Stored(node, place, seen, inputs))
            self.written[name] = self.yes
        return {node.name: self.yes}

    def branch(
        self, node: Node, attrs: BranchAttrs, predicate: int, values: Mapping[str, int]
    ) -> dict[str, int]:
        scope = {inner: values[outer] for inner, outer in attrs.captures}
        before = self.state()
        then = self.body(attrs.then.nodes, attrs.then.results, scope)
        left = self.state()
        self.store, self.written = before
        orelse = self.body(attrs.orelse.nodes, attrs.orelse.results, scope)
        self.merge(predicate, left, self.state())
        results = {
            f"{node.name}.{name}": self.pick(predicate, one, other)
            for name, one, other in zip(attrs.results, then, orelse, strict=True)
        }
        return {node.name: self.yes} | results

    def call(self, node: Node, attrs: CallAttrs, values: Mapping[str, int]) -> dict[str, int]:
        scope = {inner: values[outer] for inner, outer in attrs.captures}
        returned = self.body(attrs.body.nodes, attrs.body.results, scope)
        results = {
            f"{node.name}.{name}": token
            for name, token in zip(attrs.results, returned, strict=True)
        }
        return {node.name: self.yes} | results

    def loop(
        self, node: Node, attrs: LoopAttrs, inputs: tuple[int, ...], values: Mapping[str, int]
    ) -> dict[str, int]:
        captures = {inner: values[outer] for inner, outer in attrs.captures}
        carried = inputs
        left: list[tuple[int, tuple[int, ...], _State]] = []  # state if iteration i is the last
        bound = self.unfolder.test.bounds[node.name]
        for number in range(bound + 1):
            self.unfolder.spend(len(captures) + len(carried) + len(self.store))
            scope = captures | dict(zip(attrs.carried, carried, strict=True))
            inside = scope | self.run(attrs.condition.nodes, scope)
            left.append((inside[attrs.condition.results[0]], carried, self.state()))
            if number < bound:
                carried = self.body(attrs.body.nodes, attrs.body.results, inside)
        _, carried, _ = left.pop()
        for predicate, leaving, state in reversed(left):
            carried = tuple(map(self.pick, [predicate] * len(carried), carried, leaving))
            self.merge(predicate, self.state(), state)
        results = {
            f"{node.name}.{name}": token for name, token in zip(attrs.carried, carried, strict=True)
        }
        return {node.name: self.yes} | results

    def body(
        self, nodes: Iterable[Node], results: Iterable[str], scope: Mapping[str, int]
    ) -> tuple[int, ...]:
        inside = dict(scope) | self.run(nodes, scope)
        return tuple(inside[name] for name in results)

    def state(self) -> _State:
        return dict(self.store), dict(self.written)

    def merge(self, predicate: int, then: _State, other: _State) -> None:
        """Merge the states after two paths, of which the predicate takes one."""
        # A variable that no path reads and only one path writes has no value on
        # the other path. It needs none, since that path does not write it.
        self.store = other[0] | then[0]
        for name in then[0].keys() & other[0].keys():
            self.store[name] = self.pick(predicate, then[0][name], other[0][name])
        self.written = {
            name: self.pick(predicate, then[1].get(name, self.no), other[1].get(name, self.no))
            for name in self.store
            if name in then[1] or name in other[1]
        }

    def pick(self, predicate: int, then: int, other: int) -> int:
        return then if then == other else self.unfolder.token(Pick(predicate, then, other))


_State = tuple[dict[str, int], dict[str, int]]


def parts_of(token: Token) -> tuple[int, ...]:
    """Return the tokens that a token depends on."""
    if type(token) is Join:
        return token.tokens
    if type(token) is Pure:
        return token.inputs + token.waits
    if type(token) is Pick:
        return token.predicate, token.then, token.other
    if type(token) is Held:
        return (token.token, *token.waits)
    if type(token) is Gathered:
        return (token.token,)
    if type(token) is Stored:
        return token.seen + token.operands
    return ()


def _references(token: Token) -> int:
    """Number of other tokens and of events that a token names."""
    if type(token) is Stack or type(token) is Finished:
        return len(token.events)
    return len(parts_of(token)) + (len(token.value) if type(token) is Known else 0)


def _work(test: LitmusTest, node: Node, op: OpDef) -> int:
    """Number of ints that a pure node of an op computes, or multiplies."""
    if op.meaning is not None:
        # A call costs as much as hundreds of ints.
        call = test.call(node)
        assert call.result is not None
        return 256 + min(sum(each.size for each in (*call.inputs, call.result)), 1 << 14)
    kind = test.type_of(node.name)
    inner = test.type_of(node.inputs[0]).shape[1] if op.matrices else 1
    return inner * test.size_of(kind.shape)
