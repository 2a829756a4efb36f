"""Family `programs`: programs of one thread, for systems that trace and transform them.

Control flow and calls are nested three deep over variables of several shapes. What one op writes, a
later one reads through another view (the whole, or rows of it), and values that were read before a
write are used after it. Edges put all effects into program order, so that a test has a single
outcome under every model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model import (
    Body,
    BranchAttrs,
    CallAttrs,
    Graph,
    LitmusTest,
    LoopAttrs,
    Variable,
)
from litmusfuzz.corpus.ops import BOOL, DTYPES, EFFECT_OPS, OPS, Kind, RowsAttrs, TensorType
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.generators.context import BodyGenerator, Captures, Context
from litmusfuzz.oracles import sequential
from litmusfuzz.oracles.errors import ValueTooLarge

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from litmusfuzz.corpus.model import Node
    from litmusfuzz.corpus.ops import Nested, OpDef
    from litmusfuzz.fuzz.support import Support

NEEDED: Final = frozenset({"ReadVariableOp", "AddV2", "Identity", "Less", "Call", "If", "While"})
"""Ops that every test needs, or may."""
_SHAPES: Final = ((), (1,), (2,), (2,), (3,), (3, 2), (2, 16))
_MOST: Final = 20
"""Executions of ops on variables, about, at most."""
_DEPTH: Final = 3
_TRIES: Final = 8


def generate(rng: random.Random, support: Support) -> LitmusTest:
    """Generate a test of the family within a support; all choices come from `rng`."""
    for attempt in range(_TRIES):
        test = _attempt(rng, support, round(_MOST * (1 - attempt / _TRIES)), arithmetic=True)
        if _has_small_values(test):
            return test
    # The values were products in loops; without arithmetic they are small.
    return _attempt(rng, support, _MOST // 4, arithmetic=False)


def _has_small_values(test: LitmusTest) -> bool:
    """True if all values stay below 2**24: those of the single outcome."""
    try:
        sequential.outcome(test)
    except ValueTooLarge:
        return False
    return True


def _attempt(rng: random.Random, support: Support, most: int, *, arithmetic: bool) -> LitmusTest:
    dtype = rng.choice([each for each in DTYPES if each in support.dtypes])
    shapes = [support.nearest(rng.choice(_SHAPES)) for _ in range(rng.choice((0, 1, 1, 2)))]
    init = rng.choice((0, 0, 1))
    # A predicate needs a scalar.
    variables = tuple(
        Variable(name, dtype, shape, init)
        for name, shape in zip("XYZ", ((), *shapes), strict=False)
    )
    context = Context(rng, support, dtype, variables, arithmetic=arithmetic)
    program = _Program(context, _Budget(rng.randint(most // 3, most)))
    while program.budget.left > 0 and len(program.nodes) < most:
        program.statement()
    observe = tuple(name for name in program.shown if rng.random() < 0.92)
    return LitmusTest("programs", variables, (Graph("main", tuple(program.nodes)),), observe)


@dataclass(slots=True)
class _Budget:
    """What is left of a test while it is generated: executions of ops on variables."""

    left: int


class _Program(BodyGenerator):
    """Generator of a graph or body whose effects come in one order.

    Parameters
    ----------
    context : Context
    budget : _Budget
    captures : Captures, optional
        Values from outside that a body may use.
    times : int
        Executions of each node, at most.
    depth : int
        Number of enclosing bodies.
    """

    def __init__(
        self,
        context: Context,
        budget: _Budget,
        captures: Captures | None = None,
        times: int = 1,
        depth: int = 0,
    ) -> None:
        super().__init__(context, captures)
        self.budget = budget
        self.times = times
        self.depth = depth
        self.last: tuple[str, ...] = ()
        """What the next effect comes after."""
        self.shown: list[str] = []

    def inner(self, captures: Captures, times: int = 1) -> _Program:
        """Generator of a body of a statement here."""
        return _Program(self.context, self.budget, captures, self.times * times, self.depth + 1)

    def some(self) -> None:
        """Generate one to three statements."""
        for number in range(self.rng.choice((1, 1, 2, 2, 3))):
            if not number or self.budget.left > 0:
                self.statement()

    def statement(self) -> None:
        """Generate a statement of any kind."""
        kinds = [self.plain, self.seen, self.seen, self.kept]
        if self.depth < _DEPTH:
            kinds += [self.branch, self.loop, self.call]
        self.rng.choice(kinds)()

    # --- ops on variables ------------------------------------------------------------

    def plain(self) -> None:
        """Generate an op of any kind."""
        variable = self.rng.choice(self.context.variables)
        self.one(variable, self.rng.choice((Kind.READ, Kind.WRITE, Kind.UPDATE)))

    def seen(self) -> None:
        """Generate an op that changes a variable, and a read of it, often through another view."""
        variable = self.rng.choice(self.context.variables)
        self.one(variable, self.rng.choice((Kind.WRITE, Kind.UPDATE)))
        self.one(variable, Kind.READ)

    def kept(self) -> None:
        """Generate a read, a change of what was read, and a use of the value from before."""
        variable = self.rng.choice(self.context.variables)
        value = self.one(variable, Kind.READ)
        self.one(variable, self.rng.choice((Kind.WRITE, Kind.UPDATE)))
        fitting = [v for v in self.context.variables if v.type == self.types[value]]
        if fitting and "AssignVariableOp" in self.context.support.ops:
            into = self.rng.choice(fitting).name
            name = self.context.fresh("w")
            self.ordered(
                self.add(name, "AssignVariableOp", (value,), resources=(into,), after=self.last)
            )

    def one(self, variable: Variable, kind: Kind) -> str:
        """Generate an op of a kind on a variable; a read if there is none."""
        ops = [OPS[name] for name in EFFECT_OPS if OPS[name].kind is kind]
        possible = [op for op in ops if self.fits(op, variable)] or [OPS["ReadVariableOp"]]
        op = self.rng.choice(possible)
        among = (variable,) if len(op.roles) == 1 else self.like(variable)
        self.budget.left -= self.times
        name = self.effect_on(op, among, self.last)
        if isinstance(self.nodes[-1].attrs, RowsAttrs) and self.rng.random() < 0.15:
            self.compute_rows(variable)
        return self.ordered(name)

    def compute_rows(self, variable: Variable) -> None:
        """Let what was read choose the rows of the last op, or cells, if the support has it."""
        support, rng = self.context.support, self.rng
        node = self.nodes[-1]
        rows = node.attrs.indices if isinstance(node.attrs, RowsAttrs) else ()
        scalar = len(rows) == 1 and rng.random() < 0.5
        many = () if scalar else (len(rows),)
        depth = len(variable.shape) if node.definition.nd and rng.random() < 0.5 else 1
        kind = TensorType("int32", (*many, depth) if node.definition.nd else many)
        possible = "computed indices" in support.features and "Select" in support.ops
        if not possible or "int32" not in support.dtypes or not support.takes_shape(kind.shape):
            return
        self.nodes.pop()
        inputs, read = node.inputs, node.name in self.types
        row = TensorType(variable.dtype, (*many, *variable.shape[depth:]))
        other = scalar or depth > 1
        if other and not read:
            factor = rng.choice((2, 3)) if node.op == "ResourceScatterMul" else None
            inputs = (self.constant(row, factor) if factor else self.operand(row),)
        index = self.index(variable, node, kind, rows)
        self.nodes.append(replace(node, inputs=(index, *inputs), after=self.last, attrs=None))
        if other and read:
            self.types[node.name] = row

    def index(self, variable: Variable, node: Node, kind: TensorType, rows: tuple[int, ...]) -> str:
        """An index for an op: chosen by what was read, or that itself, clamped."""
        rng, every = self.rng, range(variable.shape[0])
        read = [name for name in self.sources if name != node.name and self.types[name] == kind]
        clamps = {"Minimum", "Maximum"} <= self.context.support.ops
        if read and clamps and not kind.shape and rng.random() < 0.5:
            least, most = self.constant(kind, 0), self.constant(kind, every[-1])
            return self.pure(
                "Minimum", (self.pure("Maximum", (rng.choice(read), least), kind), most), kind
            )
        distinct = node.definition.distinct
        others = rng.sample(every, len(rows)) if distinct else rng.choices(every, k=len(rows))
        flag = self.predicate()
        one, other = (
            self.constant(kind, self.places(variable, node, kind, each)) for each in (rows, others)
        )
        return self.pure("Select", (flag, one, other), kind)

    def places(
        self, variable: Variable, node: Node, kind: TensorType, rows: Sequence[int]
    ) -> Nested:
        """An index of these rows; or of cells in them, in any columns."""
        if not node.definition.nd or kind.shape[-1] == 1:
            return tuple(rows) if kind.shape else rows[0]
        columns = variable.shape[1:]
        cells = tuple((row, *map(self.rng.randrange, columns)) for row in rows)
        return cells if len(kind.shape) > 1 else cells[0]

    def fits(self, op: OpDef, variable: Variable) -> bool:
        """True if an op on variables is supported, and can work on this one."""
        return (
            op.name in self.context.support.ops
            and variable.dtype in op.dtypes
            and (bool(variable.shape) or not op.sparse)
            and len(op.roles) <= len(self.like(variable))
        )

    def like(self, variable: Variable) -> tuple[Variable, ...]:
        """All variables of the type of this one."""
        return tuple(each for each in self.context.variables if each.type == variable.type)

    def ordered(self, name: str) -> str:
        """Let the next effect come after a node; an outcome may have the node's value."""
        self.last = (name,)
        if name in self.types:
            self.shown.append(name)
        return name

    # --- bodies ----------------------------------------------------------------------

    def predicate(self) -> str:
        """A bool that depends on what was read."""
        rng = self.rng
        scalars = [name for name in self.sources if self.types[name] == self.context.scalar]
        if not scalars or rng.random() < 0.5:
            scalars = [self.one(self.context.variables[0], Kind.READ)]
        level = self.constant(self.context.scalar, rng.choice((0, 1, 5, 20)))
        operands = (rng.choice(scalars), level)
        return self.pure("Less", operands[:: rng.choice((1, -1))], TensorType(BOOL, ()))

    def result(self, kind: TensorType) -> str:
        """A value of that type, which comes after all effects here."""
        fitting = [name for name in self.sources if self.types[name] == kind]
        value = self.rng.choice(fitting) if fitting else self.operand(kind)
        return self.after_all("Identity", (value,), kind)

    def after_all(self, op: str, inputs: tuple[str, ...], kind: TensorType) -> str:
        """Append a pure node that comes after all effects here."""
        return self.add(self.context.fresh("t"), op, inputs, after=self.last, kind=kind)

    def kinds(self, least: int) -> list[TensorType]:
        """Types of the results of a body."""
        count = self.rng.choice((0, 1, 1, 2))
        return [self.rng.choice(self.context.variables).type for _ in range(max(least, count))]

    def left(self, name: str, results: tuple[str, ...], kinds: list[TensorType]) -> None:
        """Let later nodes come after a node with bodies, and use its results."""
        self.last = (name,)
        for result, kind in zip(results, kinds, strict=True):
            self.types[f"{name}.{result}"] = kind
            self.shown.append(f"{name}.{result}")
            self.sources.append(f"{name}.{result}")

    def branch(self) -> None:
        """Generate a conditional, with ops in one branch or in both."""
        flag, captures, kinds = self.predicate(), Captures(self), self.kinds(1)
        made = []
        empty = self.rng.choice((0, 1, 2, 2, 2))
        for number in range(2):
            inner = self.inner(captures)
            if number != empty:
                inner.some()
            results = tuple(inner.result(kind) for kind in kinds)
            made.append(Body(tuple(inner.nodes), results))
        names = tuple(self.context.fresh("o") for _ in kinds)
        attrs = BranchAttrs(_captured(captures), made[0], made[1], names)
        name = self.context.fresh("cond")
        self.left(self.add(name, "If", (flag,), after=self.last, attrs=attrs), names, kinds)

    def call(self) -> None:
        """Generate a call of a function, which may have no results."""
        captures, kinds = Captures(self), self.kinds(0)
        inner = self.inner(captures)
        inner.some()
        results = tuple(inner.result(kind) for kind in kinds)
        names = tuple(self.context.fresh("o") for _ in kinds)
        attrs = CallAttrs(_captured(captures), Body(tuple(inner.nodes), results), names)
        name = self.context.fresh("call")
        self.left(self.add(name, "Call", after=self.last, attrs=attrs), names, kinds)

    def loop(self) -> None:
        """Generate a loop of at most three iterations, which data may end earlier.

        The counter comes after all effects of an iteration.
        """
        rng, context = self.rng, self.context
        bound = rng.choice((1, 2, 2, 3)) if self.times * 2 <= self.budget.left else 1
        counting = context.scalar
        captures, others = Captures(self), self.kinds(0)
        carried = tuple(context.fresh("i" if not n else "v") for n in range(1 + len(others)))
        kinds = [counting, *others]
        inputs = [self.constant(counting, 0), *(self.operand(kind) for kind in others)]
        captures.scope.update(zip(carried, kinds, strict=True))
        captures.sources += carried
        condition = self.inner(captures, bound + 1)
        condition.last = carried[:1]
        limit = condition.constant(counting, bound)
        more = condition.pure("Less", (carried[0], limit), TensorType(BOOL, ()))
        if rng.random() < 0.4 and "Select" in context.support.ops:
            never = condition.constant(TensorType(BOOL, ()), 0)
            operands = (more, condition.predicate(), never)
            more = condition.pure("Select", operands, TensorType(BOOL, ()))
        body = self.inner(captures, bound)
        body.some()
        one = body.constant(counting, 1)
        results = [body.after_all("AddV2", (carried[0], one), counting)]
        results += [body.result(kind) for kind in others]
        attrs = LoopAttrs(
            carried,
            _captured(captures),
            Body(tuple(condition.nodes), (more,)),
            Body(tuple(body.nodes), tuple(results)),
            rng.choice((1, 10)),
        )
        name = context.fresh("loop")
        self.left(
            self.add(name, "While", tuple(inputs), after=self.last, attrs=attrs), carried, kinds
        )


def _captured(captures: Captures) -> tuple[tuple[str, str], ...]:
    return tuple((inside, outside) for outside, inside in captures.names.items())
