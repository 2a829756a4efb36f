"""Family `cycles`: critical cycles, the classic shapes, each written in one of many ways.

Each test *asks for* one outcome: the one that a critical cycle
(`litmusfuzz.fuzz.generators.critical`) makes forbidden. A cycle consists of *points*, each a
read or a write of one variable. Reads and writes are ReadVariableOp and AssignVariableOp, or
gathers, updates and scatters over whole variables. Written values are unique, so that an
outcome shows what each read saw. Program order is enforced by a control edge, a path through a
pure node, a dependence of the written value on the read, a predicate, a critical section, or
the client's order of two runs. A chain may be a graph of its own, or lie in a loop of one
iteration or in a section.

In one of five tests an edge of program order is left out, which makes the outcome allowed: an
executor that never shows it may be too strict.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model import (
    Body,
    BranchAttrs,
    FreshNames,
    Graph,
    LitmusTest,
    LoopAttrs,
    Mutex,
    NestAttrs,
    Node,
    Run,
    Variable,
)
from litmusfuzz.corpus.ops import (
    DTYPES,
    FLOATS,
    OPS,
    Attrs,
    ConstAttrs,
    RowsAttrs,
    SectionAttrs,
    SliceAttrs,
    TensorType,
)
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.generators import critical
from litmusfuzz.fuzz.generators.structured import MAX_ORDERS, MAX_ORDERS_OF_BODIES
from litmusfuzz.fuzz.support import EVERYTHING
from litmusfuzz.oracles.bounds import count_all

if TYPE_CHECKING:
    import random

    from litmusfuzz.fuzz.generators.critical import Cycle
    from litmusfuzz.fuzz.support import Support

_SHAPES: Final = ((), (), (), (1,), (2,), (3,), (1, 16), (2, 256), (1, 1024), (2, 4096))
_SCATTERS: Final = tuple(
    f"ResourceScatter{each}" for each in ("Update", "Add", "Sub", "NdUpdate", "NdAdd", "NdSub")
)
_READ: Final = ("ReadVariableOp", None)
_ASSIGN: Final = ("AssignVariableOp", None)
_TAKES_AWAY: Final = ("Sub", "Descent")
_OPS_OF: Final = {
    "noop": ("NoOp",),
    "identity": ("Identity",),
    "relu": ("Neg", "Relu", "AddV2"),
    "less": ("Less", "Select"),
    "difference": ("Sub", "AddV2"),
    "branch": ("If", "Less"),
    "section first": ("CriticalSection",),
    "section second": ("CriticalSection",),
    "section": ("CriticalSection",),
    "loop": ("While", "Less", "AddV2"),
}
"""Ops that a way to keep program order, or a place for a chain, is written with."""
_LIMIT: Final = 1_000_000
"""A number above every value of a test."""
COUNTER: Final = TensorType("int32", ())


@dataclass(frozen=True, slots=True)
class Plan:
    """A cycle, and the way in which a test contains it.

    Parameters
    ----------
    cycle : Cycle
    type : TensorType
        Type of all variables; each element is `init` at first.
    init : int
    ops : tuple of (str, Attrs or None)
        Op and attributes of each point.
    orders : tuple of str
        Way in which each chain keeps program order; "" for not, or for a single point.
    around : tuple of str
        What each chain lies in: "loop", "section", or "" for nothing.
    several : bool
        Each chain is a graph of its own.
    """

    cycle: Cycle
    type: TensorType
    init: int
    ops: tuple[tuple[str, Attrs | None], ...]
    orders: tuple[str, ...]
    around: tuple[str, ...]
    several: bool

    def without(self, chain: int) -> Plan:
        """The same plan without the program order of one chain."""
        orders = (*self.orders[:chain], "", *self.orders[chain + 1 :])
        return replace(self, orders=orders)

    @property
    def complete(self) -> bool:
        """True if the plan keeps all program order of the cycle."""
        return all(
            bool(order) == (len(chain) == 2)
            for order, chain in zip(self.orders, self.cycle.chains, strict=True)
        )

    def amount(self, point: int) -> int:
        """The value that a write assigns or adds: 11, 24, 39, ..., unique."""
        return 10 * (point + 1) + (point + 1) ** 2

    def value(self, point: int | None) -> int:
        """Contents of a variable after a write of the cycle; initial contents for None."""
        if point is None:
            return self.init
        before = self.value(self.cycle.sees[point]) if _adds(self.ops[point][0]) else 0
        return before + self.amount(point)


def generate(rng: random.Random, support: Support) -> LitmusTest:
    """Generate a test of the family within a support; all choices come from `rng`."""
    plan = random_plan(rng, support)
    chains = [i for i, order in enumerate(plan.orders) if order]
    if rng.random() < 0.2:
        plan = plan.without(rng.choice(chains))
    test, asked = test_of(plan)
    values = " ".join(f"{name}={value}" for name, value in asked.items())
    said = "forbidden" if plan.complete else "allowed, as one edge is left out"
    return replace(test, description=f"{plan.cycle}\nasks for {values}: {said}")


def random_plan(rng: random.Random, support: Support = EVERYTHING) -> Plan:
    """A random plan with all program order, whose test is small enough."""
    cycle = critical.random_cycle(rng)
    plain = Plan(
        cycle,
        TensorType(
            rng.choice([each for each in DTYPES if each in support.dtypes]),
            support.nearest(rng.choice(_SHAPES)),
        ),
        rng.choice((0, 0, 1)),
        tuple(_READ if p.kind == "R" else _ASSIGN for p in cycle.points),
        tuple("edge" if len(chain) == 2 else "" for chain in cycle.chains),
        ("",) * len(cycle.chains),
        several=False,
    )
    for _ in range(4):
        plan = _varied(rng, support, plain)
        test, _ = test_of(plan)
        bodies = {"loops", "conditionals"} & test.features
        limit = MAX_ORDERS_OF_BODIES if bodies else MAX_ORDERS
        if count_all(test, limit) < limit:
            return plan
    return plain


def _varied(rng: random.Random, support: Support, plan: Plan) -> Plan:
    """The plan with random ops, ways to keep program order, and places for chains."""
    ops: list[tuple[str, Attrs | None]] = []
    summed: set[int] = set()  # variables with an update that adds
    for point in plan.cycle.points:
        op = _random_op(rng, point.kind, plan.type)
        if op[0] not in support.ops:
            op = _READ if point.kind == "R" else _ASSIGN
        if _adds(op[0]):
            # The sum of two updates would not show which came first.
            op = op if point.variable not in summed else _ASSIGN
            summed.add(point.variable)
        ops.append(op)
    several = len(plan.cycle.chains) > 1 and rng.random() < 0.2
    several = several and "several runs" in support.features
    plan = replace(plan, ops=tuple(ops), several=several)
    orders, around = [], []
    for numbers in plan.cycle.numbers:
        ways = [""]
        if len(numbers) == 2:
            ways = [way for way in _ways(plan, *numbers) if _supported(support, way)]
        order = rng.choice(ways)
        orders.append(order)
        inside = ("", "", "", "", "loop", "section") if order != "runs" else ("",)
        # Two whole chains in sections would exclude each other, which forbids more outcomes. So at
        # most one chain lies in a section.
        where = rng.choice([each for each in inside if _supported(support, each)])
        if where == "section" and (where in around or "section" in order):
            where = ""
        around.append(where)
    return replace(plan, orders=tuple(orders), around=tuple(around))


def _supported(support: Support, way: str) -> bool:
    """True if a support has all that a test written that way contains."""
    if way == "loop" and COUNTER.dtype not in support.dtypes:
        return False
    return all(support.takes_op(op) for op in _OPS_OF.get(way, ()))


def _random_op(rng: random.Random, kind: str, of: TensorType) -> tuple[str, Attrs | None]:
    """A random read, or a random op that writes all elements of a variable."""
    rows = of.shape[0] if of.shape else 0
    choice = rng.random()
    if kind == "R":
        if rows and choice < 0.3:
            some = rng.sample(range(rows), rng.randint(1, rows))
            return rng.choice(("ResourceGather", "ResourceGatherNd")), RowsAttrs(tuple(some))
        return _READ
    if choice < 0.6:
        return _ASSIGN
    if rows and choice < 0.75:
        if rng.random() < 0.2:
            return "ResourceStridedSliceAssign", SliceAttrs(0, rows, 1)
        return rng.choice(_SCATTERS), RowsAttrs(tuple(rng.sample(range(rows), rows)))
    dense = ["AssignAddVariableOp", "AssignAddVariableOp", "AssignSubVariableOp"]
    if of.dtype in FLOATS:
        dense.append("ResourceApplyGradientDescent")
    return rng.choice(dense), None


def _adds(op: str) -> bool:
    """True for an op whose result depends on the old contents."""
    return any(part in op for part in ("Add", *_TAKES_AWAY))


def _ways(plan: Plan, first: int, second: int) -> list[str]:
    """Ways to make the second of two points wait for the first."""
    ways = ["edge"] * 5 + ["noop", "section first", "section second"]
    if plan.several:
        ways += ["runs"] * 2
    if plan.cycle.points[first].kind == "R":
        read = _read_type(plan, first)
        ways += ["identity"]
        if plan.cycle.points[second].kind == "W" and read == plan.type:
            ways += ["relu", "less", "difference"]
        if not read.shape or read.shape[0] == 1:
            ways += ["branch"] * 2
    return ways


def _read_type(plan: Plan, point: int) -> TensorType:
    """Type of the value that a read returns."""
    attrs = plan.ops[point][1]
    if not isinstance(attrs, RowsAttrs):
        return plan.type
    return TensorType(plan.type.dtype, (len(attrs.indices), *plan.type.shape[1:]))


def test_of(plan: Plan) -> tuple[LitmusTest, dict[str, int]]:
    """The test of a plan, and the outcome that it asks for, one int for all elements of a value."""
    writer = _Writer(plan)
    client: list[Run] = []
    shown: dict[str, int] = {}  # key of an outcome, and number of the read
    for number, chain in enumerate(plan.cycle.numbers):
        writer.chain(number, chain)
        after: tuple[str, ...] = ()
        for graph, reads in writer.finished():
            run = Run(graph, graph, after)
            after = (run.name,) if plan.orders[number] == "runs" else ()
            client.append(run)
            shown |= {f"{graph}.{name}": point for point, name in reads.items()}
    if not plan.several:
        client = []
        shown = {name.partition(".")[2]: point for name, point in shown.items()}
    kind = plan.type
    names = "XYZW"[: plan.cycle.variables]
    test = LitmusTest(
        "cycles",
        tuple(Variable(name, kind.dtype, kind.shape, plan.init) for name in names),
        tuple(Graph(name, tuple(nodes)) for name, nodes in writer.graphs.items()),
        tuple(shown),
        mutexes=tuple(Mutex(name) for name in sorted(writer.mutexes)),
        client=tuple(client) if any(run.after for run in client) else (),
    )
    asked = {key: plan.value(plan.cycle.sees[point]) for key, point in shown.items()}
    asked |= {name: plan.value(plan.cycle.last(i)) for i, name in enumerate(names)}
    return test, asked


class _Writer:
    """Builder of the nodes of a plan, chain by chain.

    Attributes
    ----------
    graphs : dict of str to list of Node
        Nodes written so far, by graph.
    nodes : list of Node
        Nodes of the current graph or body.
    reads : dict of int to str
        Names of the values that reads of the current graph or body return, by number of the point.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.graphs: dict[str, list[Node]] = {}
        self.mutexes: set[str] = set()
        self.nodes: list[Node] = []
        self.reads: dict[int, str] = {}
        self.names = FreshNames()
        self.begun: list[tuple[str, dict[int, str]]] = []

    def begin(self) -> None:
        """Continue in the next graph, or in the only graph."""
        name = f"g{len(self.graphs)}" if self.plan.several else "main"
        self.nodes = self.graphs.setdefault(name, [])
        self.reads = {}
        self.begun.append((name, self.reads))

    def finished(self) -> list[tuple[str, dict[int, str]]]:
        """Graphs that contain the last chain, with its reads in each."""
        begun, self.begun = self.begun, []
        return begun

    def chain(self, number: int, points: tuple[int, ...]) -> None:
        """Write one chain."""
        self.begin()
        around, order = self.plan.around[number], self.plan.orders[number]
        if around == "loop":
            self.loop(points, order)
            return
        before = len(self.nodes)
        self.ordered(points, order)
        if around == "section":
            self.section("N", [n.name for n in self.nodes[before:] if not n.definition.constant])

    def ordered(self, points: tuple[int, ...], order: str) -> None:
        """Write one or two points."""
        first = self.point(points[0])
        for second in points[1:]:
            if order == "":
                self.point(second)
            elif order == "runs":
                self.begin()
                self.point(second)
            elif order == "branch":
                self.branch(first, second)
            elif order == "section first":
                self.point(second, (self.section("M", [first]),))
            elif order == "section second":
                self.section("M", [self.point(second)], (first,))
            elif order in ("relu", "less", "difference"):
                self.point(second, read=first, how=order)
            else:
                through = {"edge": "", "noop": "NoOp", "identity": "Identity"}[order]
                inputs = (first,) if order == "identity" else ()
                after = (first,) if order == "noop" else ()
                self.point(
                    second, (self.add("t", through, inputs, after=after) if through else first,)
                )

    def point(
        self, number: int, after: tuple[str, ...] = (), *, read: str = "", how: str = ""
    ) -> str:
        """Write one point; return its name."""
        op, attrs = self.plan.ops[number]
        point = self.plan.cycle.points[number]
        inputs: tuple[str, ...] = ()
        if point.kind == "W":
            less = any(part in op for part in _TAKES_AWAY)
            amount = self.plan.amount(number) * (-1 if less else 1)
            inputs = (self.operand(amount, read, how),)
            if OPS[op].scalars:
                inputs = (self.constant(1), *inputs)
        name = self.add(
            point.kind.lower(),
            op,
            inputs,
            resources=("XYZW"[point.variable],),
            after=after,
            attrs=attrs,
        )
        if point.kind == "R":
            self.reads[number] = name
        return name

    def operand(self, amount: int, read: str, how: str) -> str:
        """Write the number `amount`, computed from `read` if given, whatever its value is."""
        constant = self.constant(amount, self.plan.type)
        if how == "relu":  # no value is negative
            nothing = self.add("t", "Relu", (self.add("t", "Neg", (read,)),))
            return self.add("t", "AddV2", (nothing, constant))
        if how == "less":
            low = self.add("t", "Less", (read, self.constant(_LIMIT)))
            other = self.constant(_LIMIT, self.plan.type)
            return self.add("t", "Select", (low, constant, other))
        if how == "difference":
            return self.add("t", "AddV2", (constant, self.add("t", "Sub", (read, read))))
        return constant

    def section(self, mutex: str, members: list[str], after: tuple[str, ...] = ()) -> str:
        """Write a critical section around nodes; return its name."""
        self.mutexes.add(mutex)
        attrs = SectionAttrs(tuple(members))
        return self.add("s", "CriticalSection", resources=(mutex,), after=after, attrs=attrs)

    def branch(self, first: str, second: int) -> None:
        """Write a point in a branch that is always taken, with a predicate on another read."""
        flag = self.add("t", "Less", (first, self.constant(_LIMIT)))
        outer, reads = self.nodes, self.reads
        self.nodes, self.reads = [], {}
        self.point(second)
        is_read = second in self.reads
        kind = _read_type(self.plan, second) if is_read else TensorType(self.plan.type.dtype, ())
        result = self.reads[second] if is_read else self.constant(0)
        then = Body(tuple(self.nodes), (result,))
        self.nodes = []
        result = self.constant(0, kind)
        orelse = Body(tuple(self.nodes), (result,))
        self.nodes, self.reads = outer, reads
        value = self.fresh("o")
        name = self.add("cond", "If", (flag,), attrs=BranchAttrs((), then, orelse, (value,)))
        if is_read:
            reads[second] = f"{name}.{value}"

    def loop(self, points: tuple[int, ...], order: str) -> None:
        """Write points as the only iteration of a loop; their values leave it as carried values."""
        outer, reads = self.nodes, self.reads
        self.nodes, self.reads = [], {}
        self.ordered(points, order)
        counter = self.fresh("i")
        following = self.add("t", "AddV2", (counter, self.constant(1, COUNTER)))
        body = Body(tuple(self.nodes), (following, *self.reads.values()))
        inside, self.nodes = self.reads, []
        more = self.add("t", "Less", (counter, self.constant(1, COUNTER)))
        condition = Body(tuple(self.nodes), (more,))
        self.nodes, self.reads = outer, reads
        carried = {point: self.fresh("v") for point in inside}
        first = [self.constant(0, _read_type(self.plan, point)) for point in inside]
        name = self.add(
            "loop",
            "While",
            (self.constant(0, COUNTER), *first),
            attrs=LoopAttrs((counter, *carried.values()), (), condition, body),
        )
        reads |= {point: f"{name}.{value}" for point, value in carried.items()}

    def constant(self, value: int, kind: TensorType | None = None) -> str:
        """Write a constant, a scalar if no type is given; return its name."""
        kind = kind or TensorType(self.plan.type.dtype, ())
        return self.add("c", "Const", attrs=ConstAttrs(kind.dtype, kind.shape, value))

    def add(
        self,
        prefix: str,
        op: str,
        inputs: tuple[str, ...] = (),
        *,
        resources: tuple[str, ...] = (),
        after: tuple[str, ...] = (),
        attrs: Attrs | NestAttrs | None = None,
    ) -> str:
        """Append a node; return its name."""
        name = self.fresh(prefix)
        self.nodes.append(Node(name, op, inputs, resources, after, attrs))
        return name

    def fresh(self, prefix: str) -> str:
        """A name that nothing else has."""
        return self.names.counted(prefix)
