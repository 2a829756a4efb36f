"""Structured generator: statements of every kind, nested in each other.

A `StructuredGenerator` generates a body in chains, as the family `dag` does, but its
statements may also be critical sections, queue ops, conditionals and loops.
`StatementWeights` say how often each kind stands inside another statement.

Tests must be small: the reference oracle looks at every total order, and where something
may block, under every choice of strictness as well. So a test has a budget of events
(`StructuredContext.events_left`). Of a test with too many orders, `small` leaves out the last
statements, or tries again with a smaller budget.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from litmusfuzz.corpus.model import (
    Body,
    BranchAttrs,
    CallAttrs,
    Graph,
    LitmusTest,
    LoopAttrs,
    Mutex,
    Queue,
    Variable,
    all_nodes,
    bodies,
    done_before,
    head,
    predecessors,
)
from litmusfuzz.corpus.ops import (
    BOOL,
    DTYPES,
    EFFECT_OPS,
    OPS,
    CountAttrs,
    Kind,
    RowsAttrs,
    SectionAttrs,
    TensorType,
    model_size,
)
from litmusfuzz.fuzz.generators.context import BodyGenerator, Captures, Context
from litmusfuzz.fuzz.generators.unbuilt import UnbuiltTest
from litmusfuzz.oracles.bounds import count, count_races, has_small_values, reaches
from litmusfuzz.oracles.paths import LongPaths

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping, Sequence

    from litmusfuzz.corpus.model import Node
    from litmusfuzz.corpus.ops import OpDef
    from litmusfuzz.fuzz.support import Support
    from litmusfuzz.oracles.paths import Path

MAX_ORDERS: Final = 4_000
"""Limit on the total orders of a test under `rfc`, over all choices of strictness where
something may block."""
MAX_ORDERS_OF_BODIES: Final = 2_000
"""The same for a test with loops or conditionals, on which the oracle is slower."""
MIN_RACES: Final = 3
"""Least number of pairs of events that race visibly; with fewer, most tests have a single
outcome."""
TRIES: Final = 24
"""Attempts at a test that is small enough."""
_PLAIN_OPS: Final = {
    kind: tuple(name for name in EFFECT_OPS if OPS[name].kind is kind)
    for kind in (Kind.READ, Kind.WRITE, Kind.UPDATE)
}
"""Ops on variables by kind."""
_KINDS: Final = (*(Kind.READ,) * 4, *(Kind.WRITE,) * 2, *(Kind.UPDATE,) * 3)
"""Kinds of ops on variables, each as often as it is generated."""
_BODY_DEPTH: Final = 2
"""Bodies inside each other, at most."""


@dataclass(frozen=True, slots=True)
class StatementWeights:
    """Weight of each kind of statement inside another one: how often it is generated there."""

    section: int = 0
    queue: int = 0
    branch: int = 0
    loop: int = 0
    call: int = 0
    plain: int = 6
    first: str = ""
    """Kind of the first statement in the test that stands inside another one; "" for any."""


class TooManyEvents(Exception):
    """An attempt is certainly too large, before it is complete."""


@dataclass(slots=True)
class StructuredContext:
    """Further state that the structured generators of one test share.

    Parameters
    ----------
    events_left : int
        Events that may still be generated, counting each iteration.
    most : int, optional
        Once so many events are generated, the attempt is too large, and given up
        (`TooManyEvents`). `events_left` only keeps further statements from being begun.
    """

    context: Context
    weights: StatementWeights
    events_left: int
    balanced: bool = True
    """Put as many elements into queues as are taken out, as far as is known."""
    most: int | None = None
    spent: int = 0
    """Events generated so far."""
    held: dict[str, int] = field(init=False)
    """Elements of each queue after all ops that are generated so far."""

    first: str = field(init=False)
    """`StatementWeights.first`, until a statement of that kind is generated."""

    possible: Mapping[Kind, Sequence[str]] = field(init=False)
    """Ops on variables that fit the test, by kind."""

    kinds: Sequence[Kind] = field(init=False)
    """Kinds that have such an op, each as often as it is to be generated."""

    def __post_init__(self) -> None:
        self.first = self.weights.first
        self.possible = {kind: self.context.possible(names) for kind, names in _PLAIN_OPS.items()}
        self.kinds = [kind for kind in _KINDS if self.possible[kind]]
        self.held = {queue.name: len(queue.init) for queue in self.context.queues}

    def may_end(self) -> bool:
        """True if nothing blocks, in the order of generation, without further statements."""
        return not self.balanced or all(
            0 <= self.held[queue.name] <= queue.capacity for queue in self.context.queues
        )

    def spend(self, events: int) -> None:
        """Subtract events from the budget.

        Raises
        ------
        TooManyEvents
            If there are `most`.
        """
        self.events_left -= events
        self.spent += events
        if self.most is not None and self.spent >= self.most:
            raise TooManyEvents


def resources(
    rng: random.Random,
    support: Support,
    *,
    mutexes: int = 0,
    queues: int = 0,
    arithmetic: bool = True,
) -> Context:
    """A random context with one to three variables, and with mutexes and queues if supported."""
    dtype = rng.choice([each for each in DTYPES if each in support.dtypes])
    shape: tuple[int, ...] = ()
    if rng.random() < 0.5:
        shape = (rng.randint(1, 3), *rng.choice(((), (), (16,), (256,))))
        shape = support.nearest(shape)
    mutexes = mutexes if support.takes_op("CriticalSection") else 0
    queues = queues if "queues" in support.features else 0
    count = rng.choice((1, 1, 2, 2, 2, 3))
    init = rng.choice((0, 0, 1))
    variables = tuple(Variable(name, dtype, shape, init) for name in "XYZ"[:count])
    context = Context(rng, support, dtype, variables, arithmetic=arithmetic)
    context.mutexes = tuple(Mutex(name) for name in "MN"[:mutexes])
    queue_list = []
    for name in "QP"[:queues]:
        element = () if rng.random() < 0.75 else shape
        capacity = rng.choice((1, 1, 2, 2, 3, 3, 4))
        held = rng.choice((0, 0, 0, 1, 1, 2))
        first = tuple(
            context.unique(TensorType(dtype, element)) for _ in range(min(held, capacity))
        )
        queue_list.append(Queue(name, dtype, element, capacity, first))
    context.queues = tuple(queue_list)
    return context


class StructuredGenerator(BodyGenerator):
    """Generator of a body in chains, with statements of all kinds.

    Parameters
    ----------
    shared : StructuredContext
    captures : Captures, optional
        Values from outside that a body may use.
    times : int
        Executions of each node, at most.
    depth : int
        Number of enclosing bodies.
    held : sequence of str
        Mutexes of the enclosing sections.
    """

    def __init__(
        self,
        shared: StructuredContext,
        *,
        captures: Captures | None = None,
        times: int = 1,
        depth: int = 0,
        held: Sequence[str] = (),
    ) -> None:
        super().__init__(shared.context, captures)
        self.shared = shared
        self.times = times
        self.depth = depth
        self.held = list(held)
        self.waits: list[str] = []
        """Nodes that later statements may come after."""
        self.shown: list[str] = []
        """Values that an outcome may contain."""
        self.ends: list[int] = []
        """Number of nodes after each statement that may be the last one."""

    def inner(self, captures: Captures, times: int) -> StructuredGenerator:
        """Generator of a body of a statement here."""
        return StructuredGenerator(
            self.shared, captures=captures, times=times, depth=self.depth + 1, held=self.held
        )

    def generate(self, plan: Sequence[str], chains: int) -> None:
        """Generate the statements of a plan, each in one of several chains.

        The first statement of each chain is always generated, the others while events are
        left.
        """
        last = [""] * chains
        if self.captures is not None and self.types and self.rng.random() < 0.4:
            # A captured value orders the first statement of a body.
            last[0] = self.rng.choice(list(self.types))
        for number, kind in enumerate(plan):
            if number >= chains and self.shared.events_left <= 0:
                return
            chain = number % chains if number < chains else self.rng.randrange(chains)
            last[chain] = self.statement(kind, last[chain])
            if self.depth == 0 and self.shared.may_end():
                self.ends.append(len(self.nodes))

    def statement(self, kind: str, previous: str) -> str:
        """Generate a statement after `previous`; return what the next one comes after."""
        after = [previous] if previous and self.rng.random() < 0.9 else []
        if self.waits and self.rng.random() < 0.12:
            other = self.rng.choice(self.waits)
            after += [other] if other not in after else []
        waits = tuple(after)
        if kind == "section":
            free = [m.name for m in self.context.mutexes if m.name not in self.held]
            # A section inside one on the same mutex always blocks: now and then.
            if self.held and not free and self.rng.random() < 0.05:
                free = self.held
            if free and len(self.held) < 2:
                return self.section(self.rng.choice(free), waits)
        if kind == "branch" and self.may_hold("If"):
            return self.branch(waits)
        if kind == "loop" and self.may_hold("While"):
            return self.loop(waits)
        if kind == "call" and self.may_hold("Call"):
            return self.call(waits)
        if kind == "queue" and self.context.queues:
            return self.queue_op(waits)
        return self.plain(waits)

    def some(self, count: int) -> list[str]:
        """Kinds of the statements inside another one."""
        wanted = self.shared.weights
        weights = {
            "plain": wanted.plain,
            "section": wanted.section,
            "queue": wanted.queue,
            "branch": wanted.branch if self.may_hold("If") else 0,
            "loop": wanted.loop if self.may_hold("While") else 0,
            "call": wanted.call if self.may_hold("Call") else 0,
        }
        kinds = self.rng.choices(list(weights), list(weights.values()), k=count)
        if kinds and self.shared.first:
            kinds[0], self.shared.first = self.shared.first, ""
        return kinds

    def may_hold(self, op: str) -> bool:
        """True if a node with bodies may stand here."""
        return self.depth < _BODY_DEPTH and self.context.support.takes_op(op)

    # --- ops on variables ------------------------------------------------------------

    def plain(self, after: tuple[str, ...], kinds: Sequence[Kind] = ()) -> str:
        """Generate an op on variables: a read, write or update."""
        possible = self.shared.possible
        # Of the kinds asked for, or of any, those that have an op.
        wanted = [kind for kind in kinds if possible[kind]] or self.shared.kinds
        # Without any: a test that `Family.test` refuses.
        names = possible[self.rng.choice(wanted)] if wanted else ["ReadVariableOp"]
        return self.noted(self.effect(OPS[self.rng.choice(names)], after))

    def effect(self, op: OpDef, after: tuple[str, ...]) -> str:
        """Generate an op on variables, within the budget of events."""
        self.shared.spend(self.times * len(op.roles) * (2 if op.kind is Kind.UPDATE else 1))
        return super().effect(op, after)

    def noted(self, name: str) -> str:
        """Allow later statements to wait for a node, and outcomes to contain its value."""
        self.waits.append(name)
        if name in self.types:
            self.shown.append(name)
        return name

    # --- critical sections -----------------------------------------------------------

    def section(self, mutex: str, waits: tuple[str, ...]) -> str:
        """Generate a section around a few statements, with edges to it or to its members."""
        rng = self.rng
        self.shared.spend(2 * self.times)
        first = len(self.nodes)
        # The edge is the section's own, or its first member's, or both.
        which = rng.choice(("section", "section", "member", "both"))
        last = waits[0] if waits and which != "section" else ""
        count = rng.choice((1, 1, 2)) if self.held else rng.choice((1, 2, 2, 3))
        self.held.append(mutex)
        for number, kind in enumerate(self.some(count)):
            if number and self.shared.events_left <= 0:
                break
            # Now and then two members have no edge between them.
            previous = last if number == 0 or rng.random() < 0.85 else ""
            last = self.statement(kind, previous)
        self.held.pop()
        within = [
            frozenset(n.attrs.members)
            for n in self.nodes[first:]
            if isinstance(n.attrs, SectionAttrs)
        ]
        members = [n.name for n in self.nodes[first:] if not (n.definition.constant or n.members)]
        if frozenset(members) in within:
            # One that holds exactly what another holds lies neither inside nor outside.
            last = self.plain((last,))
            members.append(last)
        pure = {n.name for n in self.nodes[first:] if n.definition.kind is Kind.PURE}
        if pure and not within and rng.random() < 0.3:
            members = [name for name in members if name not in pure]
        name = self.add(
            self.context.fresh("s"),
            "CriticalSection",
            resources=(mutex,),
            after=waits if which != "member" else (),
            attrs=SectionAttrs(tuple(members)),
        )
        self.noted(name)
        # What follows waits for the section, or for its last member only.
        follows_member = last in {n.name for n in self.nodes[first:-1]} and rng.random() < 0.3
        return last if follows_member else name

    # --- queues ----------------------------------------------------------------------

    def queue_op(self, after: tuple[str, ...]) -> str:
        """Generate an op on a queue: mostly a put or a take of one or several elements."""
        rng = self.rng
        queue = rng.choice(self.context.queues)
        how = rng.choice(("put", "put", "put", "take", "take", "take", "size"))
        takes = self.context.support.takes_op
        if how == "size" and takes("QueueSizeV2"):
            return self.size(queue, after)
        how = "put" if how == "size" else how
        held = self.shared.held[queue.name]
        if self.shared.balanced:
            # In the order of generation, nothing blocks.
            if how == "take" and held < self.times:
                how = "put"
            elif how == "put" and held + self.times > queue.capacity:
                how = "take"
        count = 0
        many = takes("QueueEnqueueManyV2" if how == "put" else "QueueDequeueManyV2")
        if many and queue.shape == () and rng.random() < 0.5:
            count = rng.choice((1, 2, 2, 3))
            space = held if how == "take" else queue.capacity - held
            if self.shared.balanced:
                count = max(0, min(count, space // self.times))
        if how == "put":
            return self.put(queue, count, after)
        return self.take_from(queue, count, after)

    def size(self, queue: Queue, after: tuple[str, ...]) -> str:
        """Generate an op that returns the number of elements of a queue."""
        self.shared.spend(self.times)
        name = self.add(
            self.context.fresh("z"),
            "QueueSizeV2",
            resources=(queue.name,),
            after=after,
            kind=TensorType("int32", ()),
        )
        self.sources.append(name)
        return self.noted(name)

    def put(self, queue: Queue, count: int, after: tuple[str, ...]) -> str:
        """Generate a put of one element, or of `count` elements if that is not 0."""
        events = self.times * max(1, count)
        self.shared.spend(events)
        self.shared.held[queue.name] += events
        element = self.operand(TensorType(self.context.dtype, (count,) if count else queue.shape))
        op = "QueueEnqueueManyV2" if count else "QueueEnqueueV2"
        name = self.context.fresh("e")
        self.context.elements[name] = max(1, count)
        return self.noted(self.add(name, op, (element,), resources=(queue.name,), after=after))

    def take_from(self, queue: Queue, count: int, after: tuple[str, ...]) -> str:
        """Generate a take of one element, or of `count` elements if that is not 0."""
        events = self.times * max(1, count)
        self.shared.spend(events)
        self.shared.held[queue.name] -= events
        name = self.add(
            self.context.fresh("d"),
            "QueueDequeueManyV2" if count else "QueueDequeueV2",
            resources=(queue.name,),
            after=after,
            attrs=CountAttrs(count) if count else None,
            kind=TensorType(self.context.dtype, (count,) if count else queue.shape),
        )
        self.context.elements[name] = max(1, count)
        self.sources.append(name)
        return self.noted(name)

    def balance(self) -> None:
        """Add puts for the takes that would block, or takes for the puts."""
        for queue in self.context.queues:
            before = ""
            for _ in range(8):
                held = self.shared.held[queue.name]
                if 0 <= held <= queue.capacity:
                    break
                after = (before,) if before else ()
                do = self.put if held < 0 else self.take_from
                before = do(queue, 0, after)

    def close(self, *, more: bool) -> None:
        """Generate an op that closes a queue, after all puts into it.

        Parameters
        ----------
        more : bool
            Generate a take after it, which fails if the queue is empty.
        """
        if not self.context.support.takes_op("QueueCloseV2"):
            return
        queue = self.context.queues[0]
        puts = tuple(
            n.name
            for n in self.nodes
            if any(m.definition.puts and queue.name in m.resources for m in all_nodes([n]))
        )
        self.shared.spend(1)
        name = self.add(
            self.context.fresh("q"), "QueueCloseV2", resources=(queue.name,), after=puts
        )
        self.waits.append(name)
        if more:
            self.take_from(queue, 0, (name,))
        elif self.rng.random() < 0.5:
            self.size(queue, (name,))

    # --- conditionals ----------------------------------------------------------------

    def predicate(self, after: tuple[str, ...], *, loop: bool = False) -> tuple[str, TensorType]:
        """Generate a bool of one element, mostly computed from a racing read; its name and type.

        Parameters
        ----------
        loop : bool
            The bool ends a loop: then it is mostly true at first, and does not depend on
            the counter.
        """
        rng = self.rng
        single = [
            name
            for name in self.sources
            if self.types[name].dtype != BOOL
            and self.one(self.types[name])
            and not (loop and name[0] == "i")
        ]
        if not loop and rng.random() < 0.08:
            # A constant: one branch is dead in every total order.
            flag = TensorType(BOOL, ())
            return self.constant(flag, rng.randint(0, 1)), flag
        known = single and rng.random() < 0.5
        source = rng.choice(single) if known else self.probe(after)
        kind = self.types[source]
        high = loop and rng.random() < 0.8
        level = self.constant(
            TensorType(kind.dtype, ()), rng.choice((2, 5, 20)) if high else self.level(source)
        )
        flag = TensorType(BOOL, kind.shape)
        tests = [("Less", (source, level))]
        if not high:
            tests += [("Less", (level, source)), ("Equal", (source, level))]
        supported = [each for each in tests if each[0] in self.context.support.ops]
        op, operands = rng.choice(supported or tests)
        return self.pure(op, operands, flag), flag

    def one(self, kind: TensorType) -> bool:
        """True if a value of that type is a single int in the model."""
        return model_size(kind.shape, whole=False) == 1

    def level(self, source: str) -> int:
        """A value to compare a source with, such that both results are possible."""
        if source[0] in "iz":  # a counter, a size
            return self.rng.randint(0, 1)
        if self.context.unique_values and self.rng.random() < 0.3:
            number = self.rng.randint(1, self.context.unique_values)
            return 10 * number + number * number
        return self.rng.choice((0, 1, 5))

    def probe(self, after: tuple[str, ...]) -> str:
        """Generate a read of one element of a variable."""
        variable = self.rng.choice(self.context.variables)
        attrs = None
        kind = variable.type
        op = "ReadVariableOp"
        if not self.one(kind):
            op = "ResourceGather"
            attrs = RowsAttrs((self.rng.randrange(variable.shape[0]),))
            kind = TensorType(kind.dtype, (1, *variable.shape[1:]))
        self.shared.spend(self.times)
        name = self.add(
            self.context.fresh("r"),
            op,
            resources=(variable.name,),
            after=after,
            attrs=attrs,
            kind=kind,
        )
        self.sources.append(name)
        return self.noted(name)

    def branch(self, waits: tuple[str, ...]) -> str:
        """Generate a conditional, with ops in one branch or in both."""
        rng, context = self.rng, self.context
        flag, _ = self.predicate(waits if rng.random() < 0.7 else ())
        captures = Captures(self)
        kinds = [self.result_type() for _ in range(rng.choice((1, 1, 2)))]
        counts = rng.choice(((1, 0), (0, 1), (1, 1), (2, 1), (1, 2), (2, 0)))
        branches = []
        for size in counts:
            inner = self.inner(captures, self.times)
            inner.generate(inner.some(size), 1 if rng.random() < 0.7 else 2)
            results = tuple(inner.result(kind) for kind in kinds)  # which may add nodes
            branches.append(Body(tuple(inner.nodes), results))
        names = tuple(context.fresh("o") for _ in kinds)
        captured = tuple((inside, outside) for outside, inside in captures.names.items())
        name = self.add(
            context.fresh("cond"),
            "If",
            (flag,),
            after=waits if rng.random() < 0.7 else (),
            attrs=BranchAttrs(captured, branches[0], branches[1], names),
        )
        self.waits.append(name)
        for result, kind in zip(names, kinds, strict=True):
            self.leave(f"{name}.{result}", kind)
        return name

    def leave(self, name: str, kind: TensorType) -> None:
        """Allow later nodes to use, and outcomes to contain, a result of a loop or conditional."""
        self.types[name] = kind
        self.shown.append(name)
        self.sources.append(name)

    def result_type(self) -> TensorType:
        """Random type of a result of a body."""
        return self.context.type if self.rng.random() < 0.7 else self.context.scalar

    def result(self, kind: TensorType) -> str:
        """A value of that type as a body's result: preferably one that was read in it."""
        own = {n.name for n in self.nodes}
        fitting = [name for name in self.sources if self.types[name] == kind]
        recent = [name for name in fitting if name in own or name.partition(".")[0] in own]
        choice = self.rng.random()
        if recent and choice < 0.6:
            return self.rng.choice(recent)
        if fitting and choice < 0.75:
            return self.rng.choice(fitting)
        if kind == self.context.type and self.shared.events_left > 0 and choice < 0.9:
            return self.effect(OPS["ReadVariableOp"], tuple(self.waits[-1:]))
        return self.operand(kind)

    # --- calls -----------------------------------------------------------------------

    def call(self, waits: tuple[str, ...]) -> str:
        """Generate a function call, of one to three statements."""
        rng, context = self.rng, self.context
        captures = Captures(self)
        if self.sources and rng.random() < 0.4:
            captures.take(rng.choice(self.sources))
        kinds = [self.result_type() for _ in range(rng.choice((0, 1, 1, 2)))]
        inner = self.inner(captures, self.times)
        inner.generate(inner.some(rng.choice((1, 2, 2, 3))), rng.choice((1, 1, 2)))
        results = tuple(inner.result(kind) for kind in kinds)
        names = tuple(context.fresh("o") for _ in kinds)
        captured = tuple((inside, outside) for outside, inside in captures.names.items())
        name = self.add(
            context.fresh("call"),
            "Call",
            after=waits,
            attrs=CallAttrs(captured, Body(tuple(inner.nodes), results), names),
        )
        self.waits.append(name)
        for result, kind in zip(names, kinds, strict=True):
            self.leave(f"{name}.{result}", kind)
        return name

    # --- loops -----------------------------------------------------------------------

    def loop(self, waits: tuple[str, ...]) -> str:
        """Generate a loop of at most three iterations, which data may end earlier."""
        rng, context = self.rng, self.context
        bound = rng.choice((1, 2, 2, 2, 2, 3)) if self.times == 1 else rng.choice((1, 2, 2))
        if self.shared.events_left <= 4:
            bound = min(bound, 2 if self.times == 1 else 1)
        if rng.random() < 0.03:
            bound = 0
        counting = context.scalar
        if rng.random() >= 0.75 and "int32" in context.support.dtypes:
            counting = TensorType("int32", ())
        captures = Captures(self)
        carried = [context.fresh("i")]
        kinds = [counting]
        inputs = [self.constant(counting, 0)]
        for _ in range(rng.choice((0, 1, 1, 1, 2))):
            kind = self.result_type()
            fitting = [name for name in self.sources if self.types[name] == kind]
            kinds.append(kind)
            carried.append(context.fresh("v"))
            first = self.constant(kind, 0) if not fitting or rng.random() < 0.5 else ""
            inputs.append(first or rng.choice(fitting))
        captures.scope.update(zip(carried, kinds, strict=True))
        captures.sources += carried
        # Constants are captured from outside, or stand inside.
        step, limit = (
            self.constant(counting, value) if rng.random() < 0.5 else "" for value in (1, bound)
        )
        condition = self.condition(captures, carried[0], limit, bound)
        body = self.inner(captures, self.times * max(1, bound))
        # The first statement of each chain is generated even over budget.
        chains = rng.choice((1, 1, 2)) if self.shared.events_left > 4 else 1
        body.generate(body.some(rng.choice((1, 1, 2, 2, 3))), chains)
        results = [
            body.pure(
                "AddV2",
                (carried[0], body.take(step) if step else body.constant(counting, 1)),
                counting,
            )
        ]
        results += [body.result(kind) for kind in kinds[1:]]
        captured = tuple((inside, outside) for outside, inside in captures.names.items())
        parallel = rng.choice((1, 1, 2, 2, 3, 10))
        name = self.add(
            context.fresh("loop"),
            "While",
            tuple(inputs),
            after=waits,
            attrs=LoopAttrs(
                tuple(carried),
                captured,
                condition,
                Body(tuple(body.nodes), tuple(results)),
                parallel,
            ),
        )
        context.bounds[name] = bound
        self.waits.append(name)
        for result, kind in zip(carried, kinds, strict=True):
            self.leave(f"{name}.{result}", kind)
        return name

    def condition(self, captures: Captures, counter: str, limit: str, bound: int) -> Body:
        """Body of the loop's condition: a comparison of the counter, and often of data."""
        rng = self.rng
        inner = self.inner(captures, self.times * (bound + 1))
        if rng.random() < 0.3:
            inner.generate(inner.some(1), 1)
        counting = captures.scope[counter]
        most = inner.take(limit) if limit else inner.constant(counting, bound)
        more = inner.pure("Less", (counter, most), TensorType(BOOL, ()))
        if rng.random() < 0.4 and "Select" in self.context.support.ops:
            flag, kind = inner.predicate((counter,) if rng.random() < 0.3 else (), loop=True)
            never = inner.constant(kind, 0)
            more = inner.pure("Select", (more, flag, never), kind)
        return Body(tuple(inner.nodes), (more,))


# --- whole tests -------------------------------------------------------------------------


def observed(rng: random.Random, shown: Sequence[str]) -> tuple[str, ...]:
    """Most of the values that outcomes may contain; an executor may drop the others."""
    return tuple(name for name in shown if rng.random() < 0.92)


def one_graph(name: str, generator: StructuredGenerator) -> UnbuiltTest:
    """The test of the single graph that a generator has generated."""
    context = generator.context
    graphs = (Graph("main", tuple(generator.nodes)),)
    shown = observed(context.rng, generator.shown)
    return UnbuiltTest(name, context, graphs, shown, ends=tuple(generator.ends))


class Attempt(Protocol):
    """A function that generates a test of about so many events."""

    def __call__(
        self, rng: random.Random, support: Support, events: int, *, arithmetic: bool
    ) -> UnbuiltTest:
        """Generate a test; see `Context.arithmetic`.

        Raises
        ------
        TooManyEvents
        """


def small(
    rng: random.Random,
    support: Support,
    attempt: Attempt,
    most: int,
) -> LitmusTest:
    """The first of several attempts that is small enough for the reference oracle.

    It has few enough total orders (`MAX_ORDERS`), at least `MIN_RACES`
    races unless many attempts had fewer, no queue that closes early, and small values.

    Parameters
    ----------
    rng : random.Random
    support : Support
    attempt : callable
    most : int
        Events of the first attempt; one that is too large is followed by a smaller one.
    """
    large: list[UnbuiltTest] = []
    too_large = 0
    for number in range(TRIES):
        races = MIN_RACES if number < TRIES // 2 else 0
        # Smaller after one that was too large, and not after one in which too little races.
        smaller = 2 * too_large if races else max(2 * too_large, number)
        events = max(1, round(most * (1 - smaller / (TRIES - 4))))
        try:
            unbuilt = attempt(rng, support, events, arithmetic=races > 0)
        except TooManyEvents:
            too_large += 1
            continue
        has_bodies = any(bodies(node) for graph in unbuilt.graphs for node in graph.nodes)
        limit = MAX_ORDERS_OF_BODIES if has_bodies else MAX_ORDERS
        paths = LongPaths(unbuilt)
        path = paths.path()
        # The cheapest check first, the most costly ones last.
        if count_races(path, races) < races:
            continue
        if reaches(paths, count(unbuilt, path, limit), limit):
            too_large += 1
            large.append(unbuilt)
            shorter = _shorter(unbuilt, limit, races, path)
            if shorter is None:
                continue
            unbuilt = shorter
        if not closes_early(unbuilt) and (test := _if_small_values(unbuilt)) is not None:
            return test
    # The last attempts are so small that one of them qualifies.
    for unbuilt in reversed(large):
        if not closes_early(unbuilt) and (test := _if_small_values(unbuilt)) is not None:
            return test
    raise AssertionError("no value of the smallest attempts is small enough")


def closes_early(unbuilt: UnbuiltTest) -> bool:
    """True if a queue is closed after a loop or branch that need not wait for its enqueues."""
    for graph in unbuilt.graphs:
        for close in graph.nodes:
            if not close.definition.closes:
                continue
            holders = {
                inner.name: node
                for node in graph.nodes
                for inner in all_nodes([node])
                if inner.definition.puts and inner.resources == close.resources
            }
            # Each of several results is to wait: a seed makes what it always did.
            if not all(_all_wait_for(node, name) for name, node in holders.items()):
                return True
            if done_before(graph, holders)[close.name] != holders.keys():
                return True
    return False


def _all_wait_for(node: Node, inner: str) -> bool:
    """True if paths lead to each result of a node from an op in its bodies, and in all of them."""
    if node.name == inner or isinstance(node.attrs, CallAttrs):
        return True
    for _, body in bodies(node):
        for holder in body.nodes:
            if any(each.name == inner for each in all_nodes([holder])):
                above = {each.name: names for each, names in predecessors(Graph("", body.nodes))}
                results = map(head, body.results)
                after = all(holder.name in {name, *above.get(name, ())} for name in results)
                return after and _all_wait_for(holder, inner)
    return False


def _shorter(unbuilt: UnbuiltTest, limit: int, races: int, path: Path) -> UnbuiltTest | None:
    """An attempt with too many orders without the last statements of its last graph.

    The longest one that has few enough; None if it does not race any more, or there is none.
    """
    places = {
        node.name: place
        for place, outer in enumerate(unbuilt.graphs[-1].nodes)
        for node in all_nodes([outer])
    }
    of_events = [places.get(event.node.name, -1) for event in path.events]
    for end in reversed(unbuilt.ends):
        kept = path.only([event for event, place in enumerate(of_events) if place < end])
        if count_races(kept, races) < races:
            return None
        if count(unbuilt, kept, limit) < limit:
            shorter = unbuilt.ending(end)
            if not (path.shares or unbuilt.blocks):
                return shorter
            paths = LongPaths(shorter)
            if not reaches(paths, count(shorter, paths.path(), limit), limit):
                return shorter
    return None


def _if_small_values(unbuilt: UnbuiltTest) -> LitmusTest | None:
    """The test, validated; None if a value may grow too large."""
    test = unbuilt.build()
    return test if has_small_values(test) else None
