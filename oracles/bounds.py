"""Sizes of tests, and bounds on their values, without visiting every order.

Generators ask for both: the reference oracle visits every order, and must come to an end.
`count_all` counts orders by downsets, of which there are far fewer. It assumes that every
loop reaches its bound and every conditional its larger branch: where data decides, the count
is that of one long path; elsewhere it is exact. `largest_magnitude` bounds every value.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict, deque
from functools import partial
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model import bodies, captures_of
from litmusfuzz.corpus.ops import MAX_MAGNITUDE, ConstAttrs, Kind
from litmusfuzz.oracles import _explorer
from litmusfuzz.oracles.arithmetic import bound_of_result, bound_of_stored, growth
from litmusfuzz.oracles.events import (
    QUEUE_ACCESSES,
    Access,
    Gathered,
    Held,
    Known,
    Pick,
    Pure,
    Result,
    Seen,
    Stack,
    Stored,
    count_choices,
    every_stricter,
    unfold,
)
from litmusfuzz.oracles.model import EXECUTOR, RFC, Axiom
from litmusfuzz.oracles.paths import LongPaths

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from litmusfuzz.corpus.model import LitmusTest, Node
    from litmusfuzz.corpus.ops import Nested
    from litmusfuzz.oracles.arithmetic import Bound
    from litmusfuzz.oracles.events import Unfolding
    from litmusfuzz.oracles.model import Model
    from litmusfuzz.oracles.paths import Countable, Path

_STORING: Final = (Access.WRITE, Access.UPDATE, Access.WRITE_BACK, Access.ENQUEUE, Access.TAKE)
_SEEING: Final = (Access.READ, Access.DEQUEUE, Access.TAKE)
"""Events with a result that depends on the contents of a resource."""
_RACE_ALIKE: Final = (Access.ENQUEUE, Access.DEQUEUE, Access.ACQUIRE)
"""Accesses that race with accesses of the same sort."""
_CHANGING: Final = (Access.WRITE, Access.UPDATE, Access.WRITE_BACK)
"""Accesses that race with any other one."""
_MOVING: Final = (Access.ENQUEUE, Access.DEQUEUE)
"""Accesses that race with the size of a queue."""
_GATED: Final = (Access.ACQUIRE, Access.ENQUEUE, Access.DEQUEUE)
"""Accesses that may have to wait for their resource."""
_ONE_INSTANCE: Final = frozenset(("several runs", "critical sections", "queues"))
"""Features with which a run still has one instance of each node, computed from values of its own
graph and from the contents of variables and queues."""

_SMALL: Final[deque[LitmusTest]] = deque(maxlen=64)
"""Tests with small values under `rfc`, the newest last: as many as wait in a campaign's queues."""


def has_small_values(
    test: LitmusTest, model: Model = RFC, unfolding: Unfolding | None = None
) -> bool:
    """True if a bound shows that each value stays below 2**24 in every total order of the model.

    `unfolding` is that of the test under the model, if the caller has it.

    A test that had small values under `rfc` is remembered for a while, since a generator asks
    first, and then each model that judges the test: a model with more axioms has fewer orders.
    """
    as_written = Axiom.ONE_CLUSTER not in model.axioms
    if as_written and model.axioms >= RFC.axioms and any(each is test for each in _SMALL):
        return True
    # The coarse bound knows few of the ops that need whole tensors.
    coarse = None if test.whole else coarse_bound(test)
    small = coarse is not None and coarse < MAX_MAGNITUDE
    if not small:
        if test.features <= _ONE_INSTANCE:
            unfolding = None  # it takes longer with one
        elif unfolding is None:
            # It looks at no order, and holds whether an update is one event or two: the unfolding
            # under the model of executors is the one that the campaign needs next.
            unfolding = unfold(test, EXECUTOR if model is RFC else model)
        small = largest_magnitude(test, unfolding, MAX_MAGNITUDE) < MAX_MAGNITUDE
    if small and model is RFC:
        _SMALL.append(test)
    return small


def coarse_bound(test: LitmusTest) -> int | None:
    """Upper bound on the magnitude of every value, from the ops alone; None if there is none.

    Each instance of a node happens at most once, and its values are at most so many times the
    largest magnitude that there was before (`growth`). So the largest constant, times all of these
    factors, bounds every value under any model. It is far above `largest_magnitude`, which takes
    five times as long, and still small enough for nearly every test that is generated.
    """
    if "gradients" in test.features:
        return None
    constants = {n.name: _most(n.attrs.value) for n in test.nodes if type(n.attrs) is ConstAttrs}
    given = [v.init for v in test.variables if v.init is not None]
    for queue in test.queues:
        given += [queue.capacity, *queue.init]
    given += [value for run in test.runs for _, value in run.feeds]
    largest = max([1, *constants.values(), *map(_most, given)])
    for run in test.runs:
        factor = _growth(test, test.graph_of(run).nodes, constants)
        if factor is None:
            return None
        largest *= factor
    return largest


def _growth(test: LitmusTest, nodes: Iterable[Node], constants: dict[str, int]) -> int | None:
    """The product of the factors of all instances in a graph or body; None if one has none."""
    product = 1
    for node in nodes:
        parts = bodies(node)
        if not parts:
            factor = growth(node, constants)
            if factor is None:
                return None
            product *= factor
            continue
        constants |= {inner: constants[o] for inner, o in captures_of(node) if o in constants}
        bound = test.bounds.get(node.name, 1)
        for name, body in parts:
            inside = _growth(test, body.nodes, constants)
            if inside is None:
                return None
            product *= inside ** (bound + (name == "condition"))
    return product


def _most(value: Nested) -> int:
    """The largest magnitude in a literal."""
    return abs(value) if isinstance(value, int) else max(map(_most, value), default=0)


def largest_magnitude(
    test: LitmusTest, unfolding: Unfolding | None = None, limit: float = math.inf
) -> int:
    """Upper bound on the magnitude of every value, intermediate values included.

    Where it reaches `limit`, it may be too low.

    semantics.md, section 1, wants each below 2**24. The reference oracle checks that exactly,
    for the orders that it visits; this bound holds for all orders and costs little, but may
    be far too large.

    Parameters
    ----------
    test : LitmusTest
        Any test.
    unfolding : Unfolding, optional
        That of the test under any model: the bound is the same. It is made where it is needed:
        not with the features of `_ONE_INSTANCE` alone.
    limit : float
        What the caller compares the bound with.

    Notes
    -----
    The contents of a resource come from a chain of events that store, and each event
    happens at most once. In each round, every such event acts on the largest contents of
    the round before; after as many rounds as there are such events, nothing larger can be
    reached. Loops are unrolled, and both branches of a conditional count.
    """
    if unfolding is None and test.features <= _ONE_INSTANCE:
        equations = _of_nodes(test)
    else:
        equations = _of_events(test, unfolding or unfold(test, RFC))
    return equations.solve(limit)


class _Equations:
    """How the bound of each value follows from those of other values.

    The values are numbered: first the contents of each resource, then what is computed.
    """

    def __init__(self, contents: Iterable[int]) -> None:
        self._values = list(contents)
        """Bounds, by number; the initial contents at first."""
        self._resources = len(self._values)
        self._varies = bytearray(b"\1" * self._resources)
        """By number: whether it depends on the contents of a resource."""
        self._computed: list[tuple[int, Bound, Sequence[int]]] = []
        self._stores: list[tuple[Sequence[int], Bound, Sequence[int]]] = []
        self.stored = 0
        """How often something is stored in a resource, at most."""

    def known(self, value: int) -> int:
        """Add a value; its number."""
        self._values.append(value)
        self._varies.append(0)
        return len(self._values) - 1

    def compute(self, bound: Bound, parts: Sequence[int]) -> int:
        """Add what is computed from values with these numbers; its number."""
        varies, values = self._varies, self._values
        for part in parts:
            if varies[part]:
                values.append(0)
                varies.append(1)
                self._computed.append((len(values) - 1, bound, parts))
                return len(values) - 1
        return self.known(bound([values[part] for part in parts]))

    def store(self, resources: Sequence[int], bound: Bound, parts: Sequence[int]) -> None:
        """Add an event that stores what is computed from these values in each of the resources."""
        self._stores.append((resources, bound, parts))

    def solve(self, limit: float) -> int:
        """The largest bound of all values; it may be too low where it reaches `limit`."""
        values, resources = self._values, self._resources
        largest = 0
        for _ in range(self.stored + 1):
            for number, bound, parts in self._computed:
                values[number] = bound([values[part] for part in parts])
            largest = max(largest, max(values, default=0))
            if largest >= limit:
                break
            before = values[:resources]
            after = before.copy()
            for stored, bound, parts in self._stores:
                value = bound([values[part] for part in parts])
                for resource in stored:
                    if value > after[resource]:
                        after[resource] = value
            if after == before:
                break
            values[:resources] = after
        # The last round may have stored more than it saw.
        return max(largest, max(values[:resources], default=0))


def _of_nodes(test: LitmusTest) -> _Equations:
    """The equations of a test in which each run has one instance of each of its nodes.

    All instances of a node have one bound, however many runs there are.
    """
    resources, equations = _contents(test)
    executed = [test.graph_of(run).nodes for run in test.runs]
    times = Counter(map(id, executed))
    for nodes in {id(each): each for each in executed}.values():
        numbers: dict[str, int] = {}
        for node in nodes:
            op = node.definition
            inputs = [numbers[name] for name in node.inputs]
            if op.constant:
                numbers[node.name] = equations.known(_constant(node))
            elif op.kind is Kind.PURE:
                if op.has_value:
                    numbers[node.name] = equations.compute(_bound_of_result(test, node), inputs)
            elif op.kind is not Kind.SECTION:
                used = [resources[name] for name in node.resources]
                access = QUEUE_ACCESSES.get(node.op)
                if op.kind.writes or access is Access.ENQUEUE:
                    equations.store(used, bound_of_stored(node, len(used)), used + inputs)
                    stored = len(used) if access is None else test.elements(node)
                    equations.stored += stored * times[id(nodes)]
                elif access is Access.SIZE:
                    (capacity,) = (q.capacity for q in test.queues if q.name == node.resources[0])
                    numbers[node.name] = equations.known(capacity)
                elif op.has_value:  # what it reads or takes
                    numbers[node.name] = used[0]
    return equations


def _contents(test: LitmusTest) -> tuple[dict[str, int], _Equations]:
    """The number of each resource, and the equations of what these hold initially."""
    contents = {v.name: max(map(abs, test.initial(v)), default=0) for v in test.variables}
    for each in test.accumulators:
        contents |= {each.sum.name: 0, each.count.name: 0, each.step.name: 0, each.line: 0}
    for queue in test.queues:
        elements = test.initial_elements(queue)
        contents[queue.name] = max((abs(v) for each in elements for v in each), default=0)
    return {name: number for number, name in enumerate(contents)}, _Equations(contents.values())


def _of_events(test: LitmusTest, unfolding: Unfolding) -> _Equations:
    """The equations of the tokens and events of a test."""
    resources, equations = _contents(test)
    nothing = equations.known(0)
    numbers: list[int] = []
    for token in unfolding.tokens:
        number = nothing
        # The most frequent ones first.
        if type(token) is Pure:
            node, op = token.node, token.node.definition
            if op.constant:
                number = equations.known(_constant(node))
            elif op.has_value or op.computed:
                parts = [numbers[part] for part in token.inputs]
                number = equations.compute(_bound_of_result(test, node), parts)
        elif type(token) is Held or type(token) is Gathered:
            number = numbers[token.token]
        elif type(token) is Result or type(token) is Stack:
            done = token.event if isinstance(token, Result) else token.events[0]
            event = unfolding.events[done]
            if event.access is Access.SIZE:
                (capacity,) = (q.capacity for q in test.queues if q.name == event.variables[0])
                number = equations.known(capacity)
            elif event.access in _SEEING:
                number = resources[event.variables[0]]
        elif type(token) is Pick:
            number = equations.compute(max, (numbers[token.then], numbers[token.other]))
        elif type(token) is Known:
            number = equations.known(max(map(abs, token.value)))
        elif type(token) is Seen:
            number = resources[unfolding.events[token.event].variables[token.place]]
        elif type(token) is Stored:
            parts = [numbers[part] for part in (*token.seen, *token.operands)]
            number = equations.compute(bound_of_stored(token.node, len(token.seen)), parts)
        numbers.append(number)
    for event in unfolding.events:
        if event.access not in _STORING:
            continue
        stored = [resources[name] for name in event.variables]
        # An update of two variables counts as two also where it is one event: the bound is then
        # the same under all models.
        equations.stored += len(stored) if event.access is Access.UPDATE else 1
        operands = [numbers[token] for token in event.operands]
        if event.access is Access.WRITE_BACK:
            for place, resource in enumerate(stored):
                equations.store([resource], max, [operands[2 * place]])
        elif event.node.definition.computed:
            bound = _bound_of_result(test, event.node)
            for resource in stored:
                equations.store([resource], bound, [resource, *operands])
        else:
            seen = [resources[name] for name in event.node.resources]
            equations.store(stored, bound_of_stored(event.node, len(seen)), seen + operands)
    return equations


def _bound_of_result(test: LitmusTest, node: Node) -> Bound:
    """The bound for the result of a pure node by those of its inputs."""
    op = node.definition
    if op.meaning is not None:
        return partial(op.meaning.largest, test.call(node))
    # Only a product of matrices asks for shapes.
    shapes = [test.type_of(name).shape for name in node.inputs] if op.matrices else ()
    return bound_of_result(node, shapes)


def _constant(node: Node) -> int:
    """The largest magnitude in a constant."""
    assert isinstance(node.attrs, ConstAttrs)
    return _most(node.attrs.value)


def count_all(test: Countable, limit: int) -> int:
    """Number of orders that the reference oracle visits under `rfc`, or more; at most `limit`.

    Counts the orders of every choice of strictness if an op may block: those that do not matter
    included, since what a seed generates depends on this number.
    """
    paths = LongPaths(test)
    total = count(test, paths.path(), limit)
    return total + count_stricter(paths, limit - total)


def count_stricter(paths: LongPaths, limit: int) -> int:
    """The part of `count_all` that all choices of strictness have but the loosest."""
    total = 0
    test = paths.test
    if test.blocks:
        for strictness in every_stricter(test.nodes, test.clusters, test.bounds):
            if total >= limit:
                break
            total += count(test, paths.path(strictness), limit - total)
    return total


def reaches(paths: LongPaths, loosest: int, limit: int) -> bool:
    """True if `count_all` reaches the limit, of which `loosest` are under the loosest choice.

    Every other choice has at most as many: an order under more order, complete or blocked, is the
    beginning of one under less, and no two of them are the beginning of the same one.
    """
    if loosest >= limit or not paths.test.blocks:
        return loosest >= limit
    test = paths.test
    choices = count_choices(test.nodes, test.clusters, test.bounds)
    return loosest * choices >= limit and loosest + count_stricter(paths, limit - loosest) >= limit


def count(test: Countable, path: Path, limit: int) -> int:
    """Number of total orders of one path, at most `limit`.

    Raises
    ------
    ValueError
        If it has more than 4096 events, and too many orders for a bound to show that.

    Notes
    -----
    A random order puts an event after all those before it with probability 1 / (1 + their
    number), and these chances are positively correlated: n! divided by all of these numbers is a
    lower bound, which decides at once that most paths with too many orders have too many.

    References
    ----------
    Hammett and Pittel, "How often are two permutations comparable?", Trans. AMS 360, 2008,
    section 1: the lower bound for the linear extensions of any poset.
    """
    events = len(path.events)
    gated = [i for i, each in enumerate(path.events) if each.access in _GATED]
    if not gated:
        heights = math.prod(1 + above.bit_count() for above in path.before)
        if math.factorial(events) >= limit * heights:
            return limit
    size = (events + 63) // 64 * 8
    above = b"".join([each.to_bytes(size, "little") for each in path.before])
    gates = _gates(test, path, gated, size) if gated else []
    return _explorer.count_orders(events, above, gates, limit)


def _gates(
    test: Countable, path: Path, gated: Iterable[int], size: int
) -> list[tuple[int, bool, int, int, bytes, bytes, bytes]]:
    """When the resource of each gated event lets it happen: by the elements and locks it holds."""
    # By resource, as bits: its events that add an element or a lock, that take one, that close it.
    more: defaultdict[str, int] = defaultdict(int)
    fewer: defaultdict[str, int] = defaultdict(int)
    closed: defaultdict[str, int] = defaultdict(int)
    for i, event in enumerate(path.events):
        access = event.access
        if access is Access.ACQUIRE or access is Access.ENQUEUE:
            more[event.variables[0]] |= 1 << i
        elif access is Access.RELEASE or access is Access.DEQUEUE:
            fewer[event.variables[0]] |= 1 << i
        elif access is Access.CLOSE:
            closed[event.variables[0]] |= 1 << i
    filled = {queue.name: (len(queue.init), queue.capacity) for queue in test.queues}
    gates = []
    for i in gated:
        name = path.events[i].variables[0]
        held, capacity = filled.get(name, (0, 1))
        sets = [each[name].to_bytes(size, "little") for each in (more, fewer, closed)]
        takes = path.events[i].access is Access.DEQUEUE
        gates.append((i, takes, held, capacity, sets[0], sets[1], sets[2]))
    return gates


def count_races(path: Path, limit: int) -> int:
    """Number of unordered pairs of events on one resource whose order matters, at most `limit`.

    The order of two events matters if an outcome may show it. Counts events of different nodes
    only: instances of one node are often alike.
    """
    found = 0
    touching: dict[str, int] = {}  # by resource: its events so far, as bits
    for i, one in enumerate(path.events):
        rest = 0
        for name in one.variables:
            rest |= touching.get(name, 0)
            touching[name] = touching.get(name, 0) | 1 << i
        rest &= ~path.before[i]
        while rest:
            j = rest.bit_length() - 1
            rest ^= 1 << j
            other = path.events[j]
            if one.node is not other.node and not path.before[j] >> i & 1:
                found += _races(one.access, other.access)
        if found >= limit:
            return limit
    return found


def _races(one: Access, other: Access) -> bool:
    """True if the order of two accesses to one resource may be observable."""
    if one in _CHANGING or other in _CHANGING:
        return True
    # An acquire and a release come in the order in which they can.
    if one is other:
        return one in _RACE_ALIKE
    return (one is Access.SIZE and other in _MOVING) or (other is Access.SIZE and one in _MOVING)
