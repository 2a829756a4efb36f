"""The family `dag`: random acyclic graphs over a few variables that race.

Several chains of resource ops, now and then an edge from one chain to another,
values that flow from reads through pure ops into writes. Op kinds are drawn
alike. Written values are unique where that is possible, so that an outcome
tells which write a read saw.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from corpus.graph import Graph, LitmusTest, Node, Variable
from corpus.ops import (
    BOOL,
    EFFECT_OPS,
    FLOATS,
    MAX_MAGNITUDE,
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
from fuzz.strategies.magnitude import largest_magnitude
from oracles.events import count_orders, unfold
from oracles.model import RFC

if TYPE_CHECKING:
    import random

    from corpus.ops import OpDef

MAX_ORDERS: Final = 200_000
"""Total orders under `rfc` that a drawn test has at most. The explorer judges
an outcome of such a test in microseconds; more would only make a test harder to
read, and its whole set, which a finding's file lists, larger."""

# Kinds alike, but twice those that fit few tests, and the reads among them,
# which show what happened. (All tests take ReadVariableOp; it comes often.)
_TWICE: Final = (
    *("ResourceGather", "ResourceGatherNd"),
    *("ResourceApplyMomentum", "ResourceApplyKerasMomentum"),
)
_DRAWN: Final = (*EFFECT_OPS, *_TWICE)
_PURE: Final = (
    *("AddV2", "AddV2", "Sub", "Identity", "Neg", "Relu"),
    *("Maximum", "Minimum", "Mul", "Select", "ReluGrad"),
)
# One lane, for graphs without tearing in mind; up to 16 KiB a row in four-byte
# lanes, which takes long enough to write that others run meanwhile.
_LANES: Final = ((), (16,), (256,), (1024,), (4096,))


def draw(rng: random.Random) -> LitmusTest:
    """One random test; all choices come from `rng`."""
    for _ in range(8):
        test = _Draft(rng).test()
        if largest_magnitude(test) < MAX_MAGNITUDE:
            return test
    # Products of products; without arithmetic between ops the bound is small.
    return _Draft(rng, arithmetic=False).test()


class _Draft:
    """A test while it is drawn."""

    def __init__(self, rng: random.Random, *, arithmetic: bool = True) -> None:
        self.rng = rng
        self.arithmetic = arithmetic
        self.matrices = arithmetic and rng.random() < 0.04
        # Floats more often, since a few ops take nothing else.
        self.dtype = rng.choice(("int32", "int64", "float32", "float64", *FLOATS))
        self.variables = self._variables()
        self.nodes: list[Node] = []
        self.types: dict[str, TensorType] = {}
        self.number = 0  # of nodes made; also makes values unique
        self.wrote = 0

    def _variables(self) -> list[Variable]:
        rng = self.rng
        lanes = () if self.matrices else rng.choice(_LANES)
        rows = rng.randint(1, 3)
        shape: tuple[int, ...] = (rows, *lanes)
        if self.matrices:
            shape = (2, 2)
        elif rng.random() < 0.15:
            shape = ()
        count = rng.choice((1, 2, 2, 2, 3))
        init = rng.choice((0, 0, 1))
        return [Variable(name, self.dtype, shape, init) for name in "XYZ"[:count]]

    def test(self) -> LitmusTest:
        rng = self.rng
        chains: list[str] = [""] * rng.randint(2, 4)  # each one's last effect
        effects: list[str] = []
        for _ in range(rng.choice((2, 3, 3, 4, 4, 5, 6, 7, 8))):
            before = len(self.nodes)
            chain = rng.randrange(len(chains))
            after = [chains[chain]] if chains[chain] else []
            if effects and rng.random() < 0.15:
                other = rng.choice(effects)
                after += [other] if other not in after else []
            effect = self.effect(tuple(after), [n for n in self.types if self.is_read(n)])
            if count_orders(unfold(self.build(), RFC), MAX_ORDERS) >= MAX_ORDERS:
                del self.nodes[before:]
                self.types = {
                    n.name: self.types[n.name] for n in self.nodes if n.name in self.types
                }
                break
            chains[chain] = effect
            effects.append(effect)
        return self.build()

    def build(self) -> LitmusTest:
        # Nearly every read is observed; one that is not leaves TensorFlow free
        # to drop its result at once.
        observed = [
            n.name
            for n in self.nodes
            if n.definition.kind is Kind.READ and int(n.name[1:]) % 8 != 7
        ]
        return LitmusTest(
            "dag", tuple(self.variables), (Graph("main", tuple(self.nodes)),), tuple(observed)
        )

    def is_read(self, name: str) -> bool:
        return name.startswith("r")

    def effect(self, after: tuple[str, ...], reads: list[str]) -> str:
        """Add one resource op, with whatever it needs, and return its name."""
        rng = self.rng
        op = OPS[rng.choice([name for name in _DRAWN if self.possible(OPS[name])])]
        resources = tuple(v.name for v in rng.sample(self.variables, len(op.roles)))
        target = next(v for v in self.variables if v.name == resources[0])
        attrs, touched = self.attributes(op, target)
        inputs = []
        for role in op.operands:
            if role in ("alpha", "lr", "momentum"):
                # Powers of two would do; small ints keep every product exact.
                inputs.append(self.constant(TensorType(self.dtype, ()), rng.choice((1, 1, 2))))
            elif op.name == "ResourceScatterMul":
                inputs.append(self.constant(TensorType(self.dtype, touched), rng.choice((2, 3))))
            else:
                inputs.append(self.operand(TensorType(self.dtype, touched), reads))
        name = self.fresh("r" if op.kind is Kind.READ else "w")
        self.nodes.append(Node(name, op.name, tuple(inputs), resources, after, attrs))
        if op.kind is Kind.READ:
            self.types[name] = TensorType(self.dtype, touched)
        return name

    def possible(self, op: OpDef) -> bool:
        return (
            self.dtype in op.dtypes
            and len(op.roles) <= len(self.variables)
            and (bool(self.variables[0].shape) or not op.sparse)
        )

    def attributes(self, op: OpDef, target: Variable) -> tuple[Attrs | None, tuple[int, ...]]:
        """The op's attributes, and the shape of what it touches."""
        rng = self.rng
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
            if not op.name.endswith("Update") and rng.random() < 0.2:
                indices.append(rng.choice(indices))
            return RowsAttrs(tuple(indices)), (len(indices), *target.shape[1:])
        return None, target.shape

    def operand(self, kind: TensorType, reads: list[str]) -> str:
        """A tensor of that type: a fresh unique value, or computed from reads."""
        fitting = [name for name in reads if self.types[name] == kind]
        if not fitting or self.rng.random() < 0.5:
            return self.constant(kind, None)
        source = self.rng.choice(fitting)
        if not self.arithmetic:
            return self.pure("Identity", (source,), kind)
        return self.expression(source, kind, fitting)

    def expression(self, source: str, kind: TensorType, fitting: list[str]) -> str:
        """A pure op, or a few, on what `source` read."""
        rng = self.rng
        scalar = TensorType(kind.dtype, ())
        op = rng.choice(_PURE)
        if self.matrices and kind.shape == (2, 2) and rng.random() < 0.5:
            return self.pure("MatMul", (source, rng.choice(fitting)), kind)
        if op in ("Identity", "Neg", "Relu"):
            return self.pure(op, (source,), kind)
        if op == "Mul":
            return self.pure(op, (source, self.constant(scalar, rng.choice((-1, 2, 3)))), kind)
        if op == "Select":
            compare = rng.choice(("Less", "Equal"))
            level = self.constant(scalar, rng.randint(0, 40))
            condition = self.pure(compare, (source, level), TensorType(BOOL, kind.shape))
            return self.pure(op, (condition, rng.choice(fitting), self.constant(kind, None)), kind)
        if op == "ReluGrad":
            return self.pure(op, (self.constant(kind, None), source), kind)
        other = rng.choice(fitting) if rng.random() < 0.3 else self.constant(kind, None)
        return self.pure(op, (source, other), kind)

    def constant(self, kind: TensorType, value: int | None) -> str:
        """A Const node; without a value, one that no other op writes."""
        literal: Nested
        if value is not None:
            literal = value
        else:
            self.wrote += 1
            # 10, 20, ...: sums of two differ from a third, for the first few.
            base = 10 * self.wrote + self.wrote * self.wrote
            many = kind.shape and not self.matrices and kind.shape[0] > 1
            literal = base
            if many and self.rng.random() < 0.7:
                literal = tuple(base + row for row in range(kind.shape[0]))
        name = self.fresh("c")
        self.nodes.append(Node(name, "Const", attrs=ConstAttrs(kind.dtype, kind.shape, literal)))
        self.types[name] = kind
        return name

    def pure(self, op: str, inputs: tuple[str, ...], kind: TensorType) -> str:
        name = self.fresh("t")
        self.nodes.append(Node(name, op, inputs))
        self.types[name] = kind
        return name

    def fresh(self, prefix: str) -> str:
        self.number += 1
        return f"{prefix}{self.number}"
