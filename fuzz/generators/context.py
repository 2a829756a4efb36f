"""Parts of all generators: the context of a test, and generators of its bodies.

The graphs of a test share a `Context`: the source of choices, the support, the resources,
and the counters that make names and values unique. A `BodyGenerator` generates one graph,
or one body of a loop or conditional: its nodes in topological order, and the values that
they can use. The bodies of one loop or conditional share their `Captures`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model import FreshNames, Node
from litmusfuzz.corpus.ops import (
    BOOL,
    EFFECT_OPS,
    OPS,
    Attrs,
    ConstAttrs,
    Kind,
    MomentumAttrs,
    Nested,
    RowsAttrs,
    SliceAttrs,
    TensorType,
)

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from litmusfuzz.corpus.model import Mutex, NestAttrs, Queue, Variable
    from litmusfuzz.corpus.ops import OpDef
    from litmusfuzz.fuzz.support import Support

# All ops equally often, but twice the ops that fit few tests. ReadVariableOp fits all
# tests, and thus is frequent.
_TWICE: Final = (
    *("ResourceGather", "ResourceGatherNd"),
    *("ResourceApplyMomentum", "ResourceApplyKerasMomentum"),
)
RESOURCE_OPS: Final = (*EFFECT_OPS, *_TWICE)
"""Ops on variables, each as often as it is to be generated."""
_PURE: Final = (
    *("AddV2", "AddV2", "Sub", "Identity", "Neg", "Relu"),
    *("Maximum", "Minimum", "Mul", "Select", "ReluGrad"),
)


@dataclass(slots=True)
class Context:
    """State that the graphs of one test share while they are generated.

    Parameters
    ----------
    rng : random.Random
        Source of all choices.
    support : Support
        Generated ops, dtypes and shapes lie within it, where the family can choose.
    dtype : str
        Of all variables and queues.
    variables : tuple of Variable
        All of one type.
    arithmetic : bool
        Compute values from others; without it, values are copied, and stay small.
    matrices : bool
        Allow MatMul.
    """

    rng: random.Random
    support: Support
    dtype: str
    variables: tuple[Variable, ...]
    mutexes: tuple[Mutex, ...] = ()
    queues: tuple[Queue, ...] = ()
    arithmetic: bool = True
    matrices: bool = False
    names: FreshNames = field(default_factory=FreshNames)
    unique_values: int = 0
    """Unique values given so far."""
    bounds: dict[str, int] = field(default_factory=dict)
    """Iterations of each loop, at most."""
    elements: dict[str, int] = field(default_factory=dict)
    """Elements that each op on a queue puts or takes."""

    @property
    def type(self) -> TensorType:
        """Type of every variable."""
        return self.variables[0].type

    @property
    def scalar(self) -> TensorType:
        """Scalar type of the variables' dtype."""
        return TensorType(self.dtype, ())

    def fresh(self, prefix: str) -> str:
        """A name that nothing else in the test has."""
        return self.names.counted(prefix)

    def possible(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Of these ops on variables, those that are supported and fit the test's variables."""
        rows = bool(self.variables[0].shape)
        return _possible(names, self.support, self.dtype, len(self.variables), rows=rows)

    def unique(self, kind: TensorType) -> Nested:
        """A literal that no other op of the test writes."""
        self.unique_values += 1
        # 11, 24, 39, ...: the sum of any two of the first few differs from a third.
        base = 10 * self.unique_values + self.unique_values * self.unique_values
        many = kind.shape and not self.matrices and kind.shape[0] > 1
        if many and self.rng.random() < 0.7:
            return tuple(base + row for row in range(kind.shape[0]))
        return base


@lru_cache(maxsize=1024)
def _possible(
    names: tuple[str, ...], support: Support, dtype: str, variables: int, *, rows: bool
) -> tuple[str, ...]:
    """As `Context.possible`, which each attempt at a test asks."""
    return tuple(
        name
        for name in names
        if name in support.ops
        and dtype in (op := OPS[name]).dtypes
        and len(op.roles) <= variables
        and (rows or not op.sparse)
    )


@dataclass(slots=True)
class Captures:
    """Values from outside that the bodies of one loop or conditional use.

    Parameters
    ----------
    outer : BodyGenerator
        Generator of the graph or body that will contain the node.
    names : dict of str to str
        Name of each captured value outside, and its name inside.
    scope : dict of str to TensorType
        Types of captured and carried values, by their names inside.
    sources : list of str
        Captured and carried values that depend on what was read.
    """

    outer: BodyGenerator
    names: dict[str, str] = field(default_factory=dict)
    scope: dict[str, TensorType] = field(default_factory=dict)
    sources: list[str] = field(default_factory=list)

    def take(self, name: str) -> str:
        """Capture a value; its name inside."""
        if name not in self.names:
            self.names[name] = self.outer.context.fresh("a")
            self.scope[self.names[name]] = self.outer.types[name]
            if name in self.outer.sources:
                self.sources.append(self.names[name])
        return self.names[name]


class BodyGenerator:
    """Generator of one graph or body.

    Attributes
    ----------
    nodes : list of Node
        Nodes generated so far, in topological order.
    types : dict of str to TensorType
        Types of all values that a node may use here.
    sources : list of str
        Values that depend on what ops read: results of reads, takes and conditionals.
    """

    def __init__(self, context: Context, captures: Captures | None = None) -> None:
        self.context = context
        self.rng = context.rng
        self.captures = captures
        self.nodes: list[Node] = []
        self.types: dict[str, TensorType] = dict(captures.scope) if captures else {}
        self.sources: list[str] = list(captures.sources) if captures else []

    def add(
        self,
        name: str,
        op: str,
        inputs: tuple[str, ...] = (),
        *,
        resources: tuple[str, ...] = (),
        after: tuple[str, ...] = (),
        attrs: Attrs | NestAttrs | None = None,
        kind: TensorType | None = None,
    ) -> str:
        """Append a node whose result has type `kind`; return its name."""
        self.nodes.append(Node(name, op, inputs, resources, after, attrs))
        if kind is not None:
            self.types[name] = kind
        return name

    def effect(self, op: OpDef, after: tuple[str, ...]) -> str:
        """Append an op on variables, with the nodes that it needs; return its name."""
        return self.effect_on(op, self.context.variables, after)

    def effect_on(self, op: OpDef, among: Sequence[Variable], after: tuple[str, ...]) -> str:
        """Append an op on one or more of these variables, which are of one type."""
        rng, context = self.rng, self.context
        # As `sample`, which takes longer.
        alone = len(op.roles) == 1
        variables = [rng.choice(among)] if alone else rng.sample(among, len(op.roles))
        resources = tuple([v.name for v in variables])
        target = variables[0]
        attrs, touched = attributes(rng, op, target)
        kind = TensorType(context.dtype, touched)
        inputs = []
        for role in op.operands:
            if role in op.scalars:
                # Small ints keep every product exact.
                inputs.append(self.constant(context.scalar, rng.choice((1, 1, 2))))
            elif op.name == "ResourceScatterMul":
                inputs.append(self.constant(kind, rng.choice((2, 3))))
            else:
                inputs.append(self.operand(kind))
        reads = op.kind is Kind.READ
        name = self.add(
            context.fresh("r" if reads else "w"),
            op.name,
            tuple(inputs),
            resources=resources,
            after=after,
            attrs=attrs,
            kind=kind if reads else None,
        )
        if reads:
            self.sources.append(name)
        return name

    def fitting(self, kind: TensorType) -> list[str]:
        """Sources of that type; in a body, sometimes one captured from outside."""
        found = [name for name in self.sources if self.types[name] == kind]
        if self.captures is not None and self.rng.random() < 0.3:
            outer = self.captures.outer
            outside = [name for name in outer.sources if outer.types[name] == kind]
            if outside:
                taken = self.take(self.rng.choice(outside))
                found += [taken] if taken not in found else []
        return found

    def take(self, name: str) -> str:
        """Capture a value of the enclosing body; return its name here."""
        assert self.captures is not None
        inner = self.captures.take(name)
        self.types[inner] = self.captures.scope[inner]
        if inner in self.captures.sources and inner not in self.sources:
            self.sources.append(inner)
        return inner

    def operand(self, kind: TensorType) -> str:
        """A tensor of that type: a new unique value, or one computed from sources."""
        fitting = self.fitting(kind)
        if not fitting or self.rng.random() < 0.5:
            scalars = [] if kind.shape == () else self.fitting(self.context.scalar)
            adds = self.context.arithmetic and "AddV2" in self.context.support.ops
            if adds and scalars and self.rng.random() < 0.5:
                source = self.rng.choice(scalars)
                return self.pure("AddV2", (source, self.constant(kind, None)), kind)
            return self.constant(kind, None)
        source = self.rng.choice(fitting)
        if not self.context.arithmetic:
            if "Identity" not in self.context.support.ops:
                return self.constant(kind, None)
            return self.pure("Identity", (source,), kind)
        return self.expression(source, kind, fitting)

    def expression(self, source: str, kind: TensorType, fitting: list[str]) -> str:
        """A value computed by one to three pure ops from a source, and perhaps another."""
        rng = self.rng
        scalar = TensorType(kind.dtype, ())
        supported = self.context.support.ops
        compares = [op for op in ("Less", "Equal") if op in supported]
        ops = [op for op in _PURE if op in supported and (op != "Select" or compares)]
        if not ops:
            return self.constant(kind, None)
        op = rng.choice(ops)
        if (
            "MatMul" in supported
            and self.context.matrices
            and kind.shape == (2, 2)
            and rng.random() < 0.5
        ):
            return self.pure("MatMul", (source, rng.choice(fitting)), kind)
        if op in ("Identity", "Neg", "Relu"):
            return self.pure(op, (source,), kind)
        if op == "Mul":
            return self.pure(op, (source, self.constant(scalar, rng.choice((-1, 2, 3)))), kind)
        if op == "Select":
            compare = rng.choice(compares)
            level = self.constant(scalar, rng.randint(0, 40))
            condition = self.pure(compare, (source, level), TensorType(BOOL, kind.shape))
            return self.pure(op, (condition, rng.choice(fitting), self.constant(kind, None)), kind)
        if op == "ReluGrad":
            return self.pure(op, (self.constant(kind, None), source), kind)
        other = rng.choice(fitting) if rng.random() < 0.3 else self.constant(kind, None)
        return self.pure(op, (source, other), kind)

    def constant(self, kind: TensorType, value: Nested | None) -> str:
        """Append a Const node; if no value is given, one that no other op writes."""
        literal = self.context.unique(kind) if value is None else value
        attrs = ConstAttrs(kind.dtype, kind.shape, literal)
        return self.add(self.context.fresh("c"), "Const", attrs=attrs, kind=kind)

    def pure(self, op: str, inputs: tuple[str, ...], kind: TensorType) -> str:
        """Append a pure node."""
        return self.add(self.context.fresh("t"), op, inputs, kind=kind)


def attributes(
    rng: random.Random, op: OpDef, target: Variable
) -> tuple[Attrs | None, tuple[int, ...]]:
    """Random attributes of an op, and the shape of the part of the variable that it accesses."""
    if op.attrs is MomentumAttrs:
        return MomentumAttrs(rng.random() < 0.5), target.shape
    if op.attrs is SliceAttrs:
        rows = target.shape[0]
        begin = rng.randrange(rows)
        slice_ = SliceAttrs(begin, rng.randint(begin + 1, rows), rng.randint(1, 2))
        return slice_, (len(slice_.rows), *target.shape[1:])
    if op.attrs is RowsAttrs:
        rows = target.shape[0]
        count = rng.randint(1, rows)
        indices = rng.sample(range(rows), count)
        if not op.distinct and rng.random() < 0.2:
            indices.append(rng.choice(indices))
        return RowsAttrs(tuple(indices)), (len(indices), *target.shape[1:])
    return None, target.shape
