"""Family `pure`: pure ops of all kinds around small races.

Two or three chains read and write a few small variables. What they write is computed from what
was read, through a few pure ops of the whole table, with indices, axes and sizes that may be
computed as well. The results of some of these ops are observed. A test seldom has an op twice,
so that many ops meet each other.

All values are kept small, by a modulus, and all indices in range: no op fails.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model import Graph, LitmusTest, Variable
from litmusfuzz.corpus.ops import (
    BOOL,
    DTYPES,
    EFFECT_OPS,
    FLOATS,
    MAX_MAGNITUDE,
    OPS,
    ConstAttrs,
    Kind,
    MalformedTest,
    Nested,
    PureAttrs,
    RowsAttrs,
    SliceAttrs,
    TensorType,
)
from litmusfuzz.corpus.pure.definition import call_of, inferred, shape_value
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.tensors import UNKNOWN
from litmusfuzz.fuzz.generators.context import BodyGenerator, Context
from litmusfuzz.fuzz.generators.dag import bounded, has_too_many_orders
from litmusfuzz.fuzz.generators.family import NotGenerated
from litmusfuzz.fuzz.generators.gradients import takes_programs
from litmusfuzz.fuzz.generators.sampling import PURE_OPS, sample

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence

    from litmusfuzz.corpus.ops import Attrs, OpDef
    from litmusfuzz.corpus.pure.definition import PureOp
    from litmusfuzz.fuzz.generators.sampling import Operand
    from litmusfuzz.fuzz.support import Support

NEEDED: Final = frozenset(
    {"Any", "BroadcastTo", "Cast", "ConcatV2", "Const", "FloorMod", "Max", "NotEqual", "Reshape"}
    | {"Slice", "Sum"}
)
"""Ops that fit one value to the type of another."""
_LISTS: Final = frozenset({"TensorListFromTensor", "TensorListStack"})
"""Ops that make a list of a value, and a value of a list."""
DENSE: Final = tuple(
    name for name in EFFECT_OPS if not OPS[name].sparse and len(OPS[name].roles) == 1
)
"""Ops on one variable, all of it."""
ON_ONE: Final = tuple(name for name in EFFECT_OPS if len(OPS[name].roles) == 1)
"""Ops on one variable, all of it or rows."""
_VIEWS: Final = tuple(
    op for op in PURE_OPS if op.name in ("Bitcast", "ExpandDims", "Reshape", "Snapshot", "Squeeze")
)
"""Ops whose result has the elements of an operand in their order: it may have the same buffer."""
_SHAPES: Final = ((), (2,), (3,), (4,), (2, 2), (2, 3), (3, 2), (1, 4))
_WITH_ROWS: Final = ((), (2,), (3,), (4,), (5,), (8,), (2, 3), (3, 2), (4, 2))
"""Shapes of variables in traced programs, where rows move to others."""
_NO_KEEP: Final = PureAttrs((("keep_dims", False),))
MODULUS: Final = 13
"""What a value that may be large is taken modulo, before it is used again."""
_LARGE: Final = 1_000
"""A larger value is taken modulo `MODULUS` before it is used again."""
_MOST_READ: Final = 100
"""What a variable is taken to hold, at most; `bounded` checks it."""


def generate(rng: random.Random, support: Support) -> LitmusTest:
    """Generate a test of the family within a support; all choices come from `rng`."""
    if "int32" not in support.dtypes or not support.takes_shape((4,)):
        raise NotGenerated("family pure: the support lacks int32, or vectors of four elements")
    return bounded(rng, support, in_chains, small_context)


def small_context(rng: random.Random, support: Support, *, arithmetic: bool) -> Context:
    """A random context with one or two small variables."""
    dtype = rng.choice([each for each in (*DTYPES, *FLOATS) if each in support.dtypes])
    program = takes_programs(support)
    shape = support.nearest(rng.choice(_WITH_ROWS if program else _SHAPES))
    variables = tuple(Variable(name, dtype, shape, rng.choice((0, 1))) for name in "XY")
    variables = variables[: rng.choice((1, 2, 2))]
    if program and shape:  # one row may be taken for another
        variables = tuple(replace(each, init=tuple(range(shape[0]))) for each in variables)
    return Context(rng, support, dtype, variables, arithmetic=arithmetic, matrices=True)


def in_chains(
    context: Context, *, name: str = "pure", make_body: Callable[[Context], PureBody] | None = None
) -> LitmusTest:
    """A test in racing chains, whose operands go through pure ops, as the body applies them."""
    rng = context.rng
    program = make_body is None and takes_programs(context.support)
    body = PureProgram(context) if program else (make_body or PureBody)(context)
    names = context.possible(ON_ONE if program else DENSE)
    reads = [name for name in names if OPS[name].kind is Kind.READ]
    changes = [name for name in names if OPS[name].kind is not Kind.READ]
    chains: list[str] = [""] * rng.choice((2, 2, 3))
    # A race takes several accesses; what a compiler gets wrong may take two.
    sizes = (1, 2, 3, 4, 5) if program else (4, 4, 5, 5, 6)
    for number in range(rng.choice(sizes)):
        before = len(body.nodes), list(body.computed), list(body.sources)
        chain = number % len(chains)
        after = (chains[chain],) if chains[chain] else ()
        effect = body.moved(after, 1 / 4) if isinstance(body, PureProgram) else None
        if effect is None:
            op = rng.choice(reads if not body.sources or rng.random() < 0.4 else changes)
            effect = body.effect(OPS[op], after)
        if has_too_many_orders(context, body.nodes):
            count, body.computed, body.sources = before
            del body.nodes[count:]
            break
        chains[chain] = effect
    last = ""
    if isinstance(body, PureProgram):
        last = body.seen_at_last(tuple(filter(None, chains)))
    if body.sources:
        for _ in range(rng.choice((1, 1, 2))):
            body.applied(rng.choice(body.sources))  # a result that nothing uses but the outcome
        if not any(node.definition.whole for node in body.nodes):
            # Without such an op the test would have lanes.
            body.flat(rng.choice(body.sources))
    nodes = tuple(body.nodes)
    there = {node.name for node in nodes}
    shown = [node.name for node in nodes if node.definition.kind is Kind.READ]
    if program:  # a compiler may leave out what nobody looks at
        shown = [name for name in shown if rng.random() < 0.5]
        shown += [last] if last in body.computed else []
    computed = [each for each in body.computed if each in there and each != last]
    shown += rng.sample(computed, min(len(computed), rng.choice((1, 2, 3))))
    return LitmusTest(name, context.variables, (Graph("main", nodes),), tuple(shown))


class PureBody(BodyGenerator):
    """Generator of the graph, in which operands go through ops of the whole table.

    Attributes
    ----------
    largest : dict of str to int
        Bound on the magnitude of each value.
    values : dict of str to (tuple of int)
        Constants, and what is known of static shapes, flat: the shapes of other results follow from
        them, as when the test is validated.
    computed : list of str
        Results of ops of the table.
    used : set of str
        Ops of the table that the test has.
    """

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.largest: dict[str, int] = {}
        self.values: dict[str, tuple[int, ...]] = {}
        self.computed: list[str] = []
        self.used: set[str] = set()

    def operand(self, kind: TensorType) -> str:
        """A tensor of that type, computed from a source."""
        if not self.sources or self.rng.random() < 0.25:
            return self.literal(kind, self.rng.randint(1, 9))
        if not self.context.arithmetic:
            return super().operand(kind)
        value = self.rng.choice(self.sources)
        for _ in range(self.rng.choice((1, 1, 2, 3))):
            value = self.applied(value)
        return self.fitted(self.small(value), kind)

    def constant(self, kind: TensorType, value: Nested | None) -> str:
        """Append a Const node; its values are small and need not be unique."""
        if isinstance(value, int):
            return self.literal(kind, value)
        return self.literal(kind, self.rng.randint(1, 9))

    def literal(self, kind: TensorType, value: Nested) -> str:
        """Append a Const node with that value."""
        name = self.context.fresh("c")
        self.add(name, "Const", attrs=ConstAttrs(kind.dtype, kind.shape, value), kind=kind)
        flat = _flat(value)
        self.values[name] = flat * kind.size if len(flat) == 1 else flat
        self.largest[name] = max(map(abs, flat))
        return name

    # --- ops of the table ------------------------------------------------------------

    def applied(self, source: str, ops: Sequence[PureOp] = PURE_OPS) -> str:
        """The result of one of the ops, of which one operand is the source, or made from it.

        The source where none of a few of them can be applied.
        """
        rng = self.rng
        for op in rng.sample(ops, min(8, len(ops))):
            if op.name in self.used or not self.has(op):
                continue
            kind = self.types[source]
            sampled = rng.random() < 0.7 and sample(rng, op, kind.dtype, kind.shape)
            sampled = sampled or sample(rng, op, kind.dtype) or sample(rng, op)
            assert sampled is not None
            if not all(self.takes(each.type) for each in sampled.operands):
                continue
            free = [i for i, each in enumerate(sampled.operands) if each.replaceable]
            indices = [i for i, each in enumerate(sampled.operands) if self.may_compute(op, each)]
            chosen = {rng.choice(free)} if free else set()
            if indices and (not chosen or rng.random() < 0.5):
                chosen.add(rng.choice(indices))
            result = None
            for modulus in (MODULUS, 2):  # products need small factors
                before = len(self.nodes)
                inputs = tuple(
                    self.made_from(source, each, modulus) if i in chosen else self.given(each)
                    for i, each in enumerate(sampled.operands)
                )
                result = self.call(OPS[op.name], inputs, sampled.attrs)
                if result is not None:
                    break
                del self.nodes[before:]
            if result is None:
                continue
            self.used.add(op.name)
            result = self.tensor(result)
            if chosen and not self.types[result].dynamic:
                self.computed.append(result)
            return self.static(result)
        return source

    def has(self, op: PureOp) -> bool:
        """True if the support has an op, and what makes its lists and takes them apart."""
        supported = self.context.support.ops
        return op.name in supported and ("[" not in op.signature or supported >= _LISTS)

    def may_compute(self, op: PureOp, operand: Operand) -> bool:
        """True if a control operand of an op may be computed."""
        del op
        return bool(operand.limit)

    def takes(self, kind: TensorType) -> bool:
        """True if the support has that type, and a constant may have it."""
        dtypes = {*self.context.support.dtypes, BOOL}
        return (
            kind.stacked.dtype in dtypes
            and 0 not in kind.shape
            and self.context.support.takes_shape(kind.shape)
        )

    def given(self, operand: Operand) -> str:
        """A sampled operand as a constant, or as a list of constants."""
        kind = operand.type.stacked
        value = self.literal(kind, nested(operand.values, kind.shape))
        return self.listed(value) if operand.type.is_list else value

    def made_from(self, source: str, operand: Operand, modulus: int) -> str:
        """The source as an operand of another type; a control operand is kept in range."""
        if operand.type.is_list:
            return self.listed(self.fitted(self.small(source, modulus), operand.type.stacked))
        if operand.replaceable:
            return self.fitted(self.small(source, modulus), operand.type)
        number = TensorType("int32" if operand.type.dtype == BOOL else operand.type.dtype, ())
        limit = self.literal(number, operand.limit)
        index = self.fitted(self.small(source), TensorType(number.dtype, operand.type.shape))
        return self.fitted(self.made("FloorMod", (index, limit)), operand.type)

    def call(self, op: OpDef, inputs: tuple[str, ...], attrs: Attrs | None) -> str | None:
        """Append a pure op of the table; None if its result may be too large."""
        row = op.meaning
        assert row is not None
        assert attrs is None or isinstance(attrs, PureAttrs)
        kinds = tuple(self.types[name] for name in inputs)
        try:
            kind = inferred(row, attrs, kinds, [self.values.get(name) for name in inputs])
        except MalformedTest:  # a result without elements, or of a shape that is not known
            return None
        bounds = [self.largest.get(name, _MOST_READ) for name in inputs]
        largest = row.largest(call_of(row, attrs, kinds, kind), bounds)
        if largest >= MAX_MAGNITUDE or not (kind.dynamic or self.takes(kind)):
            return None
        name = self.add(self.context.fresh("t"), op.name, inputs, attrs=attrs, kind=kind)
        self.largest[name] = largest
        value = shape_value(op.name, kinds[0])
        if value is not None:
            self.values[name] = value
        return name

    def small(self, name: str, modulus: int = MODULUS) -> str:
        """The value, modulo a small number if it may be large."""
        largest, kind = self.largest.get(name, _MOST_READ), self.types[name]
        if kind.dtype == BOOL or largest <= (_LARGE if modulus == MODULUS else modulus):
            return name
        made = self.made("FloorMod", (name, self.literal(TensorType(kind.dtype, ()), modulus)))
        self.largest[made] = modulus
        return made

    def listed(self, name: str) -> str:
        """The rows of a value as a list."""
        shape = self.types[name].shape[1:]
        return self.made("TensorListFromTensor", (name, self.shape(shape)))

    def tensor(self, name: str) -> str:
        """The value, or the elements of a list as one tensor."""
        kind = self.types[name]
        if not kind.is_list:
            return name
        shape = (UNKNOWN,) * (len(kind.shape) - 1) if kind.dynamic else kind.shape[1:]
        attrs = PureAttrs((("num_elements", -1),))
        return self.made("TensorListStack", (name, self.shape(shape)), attrs)

    def shape(self, shape: tuple[int, ...]) -> str:
        """A shape as a constant."""
        return self.literal(TensorType("int32", (len(shape),)), shape)

    def static(self, name: str) -> str:
        """The value, or one of known shape made of it: some elements, or how many are not 0."""
        kind = self.types[name]
        if not kind.dynamic:
            return name
        number, vector = TensorType("int32", ()), TensorType("int32", (1,))
        if self.rng.random() < 0.3:
            before, truth = len(self.nodes), name
            if kind.dtype != BOOL:
                zero = self.literal(TensorType(kind.dtype, ()), 0)
                truth = self.made("NotEqual", (name, zero))
            axes = self.literal(TensorType("int32", (len(kind.shape),)), _axes(kind))
            number_of = self.call(OPS["Sum"], (self.cast(truth, "int32"), axes), _NO_KEEP)
            if number_of is not None:
                return number_of
            del self.nodes[before:]  # it may have too many elements for the bound on a sum
        count = self.rng.randint(1, 4)
        flat = self.flat(name)
        rest = self.literal(TensorType(kind.dtype, (count,)), 0)
        more = self.made("ConcatV2", (flat, rest, self.literal(number, 0)))
        return self.made("Slice", (more, self.literal(vector, 0), self.literal(vector, count)))

    def flat(self, name: str) -> str:
        """The elements of a value as a vector."""
        return self.made("Reshape", (name, self.literal(TensorType("int32", (1,)), -1)))

    def made(self, op: str, inputs: tuple[str, ...], attrs: PureAttrs | None = None) -> str:
        """Append a pure op of the table that always fits."""
        name = self.call(OPS[op], inputs, attrs)
        assert name is not None, (op, [self.types[each] for each in inputs])
        return name

    def cast(self, name: str, dtype: str) -> str:
        """The value in another dtype."""
        return self.made("Cast", (name,), PureAttrs((("DstT", dtype),)))

    def fitted(self, name: str, kind: TensorType) -> str:
        """The value in another type: cast, reshaped, or its largest element everywhere."""
        mine = self.types[name]
        if mine.dtype != kind.dtype:
            name = self.cast(name, kind.dtype)
        if mine.shape == kind.shape:
            return name
        if mine.size != kind.size or not kind.shape:
            name = self.scalar(name)
        if not kind.shape:
            return name
        op = "Reshape" if self.types[name].size == kind.size else "BroadcastTo"
        wanted = self.literal(TensorType("int32", (len(kind.shape),)), kind.shape)
        return self.made(op, (name, wanted))

    def scalar(self, name: str) -> str:
        """The largest element of a value; for a bool, whether any element is true."""
        kind = self.types[name]
        if not kind.shape:
            return name
        axes = self.literal(TensorType("int32", (len(kind.shape),)), _axes(kind))
        return self.made("Any" if kind.dtype == BOOL else "Max", (name, axes), _NO_KEEP)


class PureProgram(PureBody):
    """The same for a traced program: the shapes of all values are known before it runs.

    Half of what is written is what was read, where its type fits: rows go to other rows.
    """

    def operand(self, kind: TensorType) -> str:
        """A tensor of that type."""
        fitting = [name for name in self.sources if self.types[name] == kind]
        if fitting and self.rng.random() < 0.5:
            return self.rng.choice(fitting)
        return super().operand(kind)

    def seen_at_last(self, after: tuple[str, ...]) -> str:
        """Append a read of what is changed last, often rows that move; an op's result of it."""
        moved = self.moved(after, 1 / 2)
        changed = (name for node in reversed(self.nodes) for name in node.resources)
        on = next(changed, self.context.variables[0].name)
        among = [each for each in self.context.variables if each.name == on]
        read = self.effect_on(OPS["ReadVariableOp"], among, after if moved is None else (moved,))
        return self.applied(read, _VIEWS if self.rng.random() < 1 / 2 else PURE_OPS)

    def moved(self, after: tuple[str, ...], chance: float) -> str | None:
        """Append a read of consecutive rows and a write of them to others, with a probability.

        None for no such ops, which need a variable with two rows.
        """
        rng, variable = self.rng, self.rng.choice(self.context.variables)
        wanted = {"ResourceGather", "ResourceStridedSliceAssign"} <= self.context.support.ops
        if not wanted or variable.shape[:1] in ((), (1,)) or rng.random() > chance:
            return None
        rows = variable.shape[0]
        count = rng.randint(1, rows - 1)
        begin, to = (rng.randint(0, rows - count) for _ in range(2))
        names = self.context.fresh("r"), self.context.fresh("w")
        places = RowsAttrs(tuple(range(begin, begin + count)))
        kind = TensorType(variable.dtype, (count, *variable.shape[1:]))
        on = (variable.name,)
        self.add(names[0], "ResourceGather", resources=on, after=after, attrs=places, kind=kind)
        self.sources.append(names[0])
        return self.add(
            names[1],
            "ResourceStridedSliceAssign",
            names[:1],
            resources=on,
            attrs=SliceAttrs(to, to + count, 1),
        )

    def may_compute(self, op: PureOp, operand: Operand) -> bool:
        """True if the operand is an index of elements, and no axis or size."""
        return bool(operand.limit) and op.index == ("indices",)

    def call(self, op: OpDef, inputs: tuple[str, ...], attrs: Attrs | None) -> str | None:
        """Append a pure op of the table; None if its result may be too large, or has any shape."""
        before = len(self.nodes)
        name = super().call(op, inputs, attrs)
        if name is not None and self.types[name].dynamic:
            del self.nodes[before:]
            return None
        return name


def _axes(kind: TensorType) -> tuple[int, ...]:
    return tuple(range(len(kind.shape)))


def _flat(value: Nested) -> tuple[int, ...]:
    return (value,) if isinstance(value, int) else tuple(v for part in value for v in _flat(part))


def nested(values: tuple[int, ...], shape: tuple[int, ...]) -> Nested:
    """Flat values as a literal of that shape."""
    if not shape:
        return values[0]
    size = len(values) // shape[0]
    return tuple(
        nested(values[start : start + size], shape[1:]) for start in range(0, len(values), size)
    )
