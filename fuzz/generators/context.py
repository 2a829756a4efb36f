"""What all families draw with: a test, and a graph of it, while they are drawn.

A `Context` is what the graphs of a test share: the source of choices, the
resources, the counter that makes names and values unique. A `BodyGenerator` is one
graph, or one body of a loop or conditional: nodes in topological order, and the
values in reach.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model import FreshNames, Node
from litmusfuzz.corpus.ops import (
    BOOL,
    EFFECT_OPS,
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

    from litmusfuzz.corpus.model import BranchAttrs, LoopAttrs, Mutex, Queue, Variable
    from litmusfuzz.corpus.ops import OpDef
    from litmusfuzz.fuzz.support import Support

# Kinds alike, but twice those that fit few tests, and the reads among them,
# which show what happened. (All tests take ReadVariableOp; it comes often.)
_TWICE: Final = (
    *("ResourceGather", "ResourceGatherNd"),
    *("ResourceApplyMomentum", "ResourceApplyKerasMomentum"),
)
RESOURCE_OPS: Final = (*EFFECT_OPS, *_TWICE)
"""Ops on variables, as often as they are to be drawn."""
_PURE: Final = (
    *("AddV2", "AddV2", "Sub", "Identity", "Neg", "Relu"),
    *("Maximum", "Minimum", "Mul", "Select", "ReluGrad"),
)


@dataclass(slots=True)
class Context:
    """What the graphs of one test share while they are drawn.

    Parameters
    ----------
    rng : random.Random
        All choices come from it.
    support : Support
        Ops of other sorts are not generated.
    dtype : str
        Of all variables and queues.
    variables : tuple of Variable
        All of one type.
    arithmetic : bool
        Whether values are computed; if not they are only copied, and stay small.
    matrices : bool
        Whether MatMul may be drawn.
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
    wrote: int = 0
    """Values made so far that no other op writes."""

    @property
    def type(self) -> TensorType:
        """Of every variable."""
        return self.variables[0].type

    @property
    def scalar(self) -> TensorType:
        """Of the variables' dtype."""
        return TensorType(self.dtype, ())

    def fresh(self, prefix: str) -> str:
        """A name that no node, value or resource of the test has."""
        return self.names.counted(prefix)

    def possible(self, op: OpDef) -> bool:
        """Whether an op on variables is supported, and fits those of the test."""
        return (
            op.name in self.support.ops
            and self.dtype in op.dtypes
            and len(op.roles) <= len(self.variables)
            and (bool(self.variables[0].shape) or not op.sparse)
        )

    def unique(self, kind: TensorType) -> Nested:
        """A literal that no other op of the test writes."""
        self.wrote += 1
        # 10, 20, ...: sums of two differ from a third, for the first few.
        base = 10 * self.wrote + self.wrote * self.wrote
        many = kind.shape and not self.matrices and kind.shape[0] > 1
        if many and self.rng.random() < 0.7:
            return tuple(base + row for row in range(kind.shape[0]))
        return base


@dataclass(slots=True)
class Captures:
    """What the bodies of one loop or conditional share: all that comes in.

    Parameters
    ----------
    outer : BodyGenerator
        Where the node will stand.
    names : dict of str to str
        Names outside, each with its name inside.
    scope : dict of str to TensorType
        Types of what has come in, carried values included.
    sources : list of str
        Those of them that tell what happened.
    """

    outer: BodyGenerator
    names: dict[str, str] = field(default_factory=dict)
    scope: dict[str, TensorType] = field(default_factory=dict)
    sources: list[str] = field(default_factory=list)

    def take(self, name: str) -> str:
        """Let a value in; its name inside."""
        if name not in self.names:
            self.names[name] = self.outer.context.fresh("a")
            self.scope[self.names[name]] = self.outer.types[name]
            if name in self.outer.sources:
                self.sources.append(self.names[name])
        return self.names[name]


class BodyGenerator:
    """A graph or body while it is drawn.

    Attributes
    ----------
    nodes : list of Node
        So far, in topological order.
    types : dict of str to TensorType
        Of all values in reach.
    sources : list of str
        Those of them that tell what happened: what was read, taken, chosen.
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
        attrs: Attrs | BranchAttrs | LoopAttrs | None = None,
        kind: TensorType | None = None,
    ) -> str:
        """Append a node whose result has type `kind`; its name."""
        self.nodes.append(Node(name, op, inputs, resources, after, attrs))
        if kind is not None:
            self.types[name] = kind
        return name

    def effect(self, op: OpDef, after: tuple[str, ...]) -> str:
        """Add one op on a variable, with whatever it needs; its name."""
        rng, context = self.rng, self.context
        resources = tuple(v.name for v in rng.sample(context.variables, len(op.roles)))
        target = next(v for v in context.variables if v.name == resources[0])
        attrs, touched = attributes(rng, op, target)
        kind = TensorType(context.dtype, touched)
        inputs = []
        for role in op.operands:
            if role in op.scalars:
                # Powers of two would do; small ints keep every product exact.
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
        """Sources of that type; in a body now and then one from outside."""
        found = [name for name in self.sources if self.types[name] == kind]
        if self.captures is not None and self.rng.random() < 0.3:
            outer = self.captures.outer
            beyond = [name for name in outer.sources if outer.types[name] == kind]
            if beyond:
                taken = self.take(self.rng.choice(beyond))
                found += [taken] if taken not in found else []
        return found

    def take(self, name: str) -> str:
        """Let a value of the block outside in; its name here."""
        assert self.captures is not None
        inner = self.captures.take(name)
        self.types[inner] = self.captures.scope[inner]
        if inner in self.captures.sources and inner not in self.sources:
            self.sources.append(inner)
        return inner

    def operand(self, kind: TensorType) -> str:
        """A tensor of that type: a fresh unique value, or computed from sources."""
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
        """A pure op, or a few, on a source and perhaps another."""
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
        """A Const node; without a value, one that no other op writes."""
        literal = self.context.unique(kind) if value is None else value
        attrs = ConstAttrs(kind.dtype, kind.shape, literal)
        return self.add(self.context.fresh("c"), "Const", attrs=attrs, kind=kind)

    def pure(self, op: str, inputs: tuple[str, ...], kind: TensorType) -> str:
        """A node without effect."""
        return self.add(self.context.fresh("t"), op, inputs, kind=kind)


def attributes(
    rng: random.Random, op: OpDef, target: Variable
) -> tuple[Attrs | None, tuple[int, ...]]:
    """An op's attributes, and the shape of what it touches of the variable."""
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
