"""Family `computed`: gathers, scatters and slices of variables at computed places.

Two or three chains read and write a few small variables, mostly through ops whose indices are
operands: values that were read, kept in range by a modulus, or placeholders that the client
feeds. In some tests an index may leave its range, and the op then fails.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model import Graph, LitmusTest, MalformedTest, Run, Variable
from litmusfuzz.corpus.ops import (
    COMPUTED,
    DTYPES,
    FLOATS,
    OPS,
    ConstAttrs,
    Kind,
    PlaceholderAttrs,
    TensorType,
)
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.generators.context import Context
from litmusfuzz.fuzz.generators.dag import bounded, has_too_many_orders
from litmusfuzz.fuzz.generators.family import NotGenerated
from litmusfuzz.fuzz.generators.pure import NEEDED as NEEDED
from litmusfuzz.fuzz.generators.pure import PureBody, nested
from litmusfuzz.fuzz.generators.sampling import Operand, sample

if TYPE_CHECKING:
    import random

    from litmusfuzz.corpus.model import Node
    from litmusfuzz.corpus.ops import Nested, OpDef
    from litmusfuzz.fuzz.support import Support

_SHAPES: Final = ((2,), (3,), (4,), (2, 2), (3, 2), (2, 3))
_TRIES: Final = 20
"""Draws of operands, until the support has all of them."""
_COMPUTED: Final = tuple(COMPUTED)
_DENSE: Final = ("ReadVariableOp", "AssignVariableOp", "AssignVariableOp", "AssignAddVariableOp")


def generate(rng: random.Random, support: Support) -> LitmusTest:
    """Generate a test of the family within a support; all choices come from `rng`."""
    if "int32" not in support.dtypes or not support.takes_shape((4,)):
        message = "family computed: the support lacks int32, or vectors of four elements"
        raise NotGenerated(message)
    return bounded(rng, support, _test, _context)


def _context(rng: random.Random, support: Support, *, arithmetic: bool) -> Context:
    dtype = rng.choice([each for each in (*DTYPES, *FLOATS) if each in support.dtypes])
    shape = support.nearest(rng.choice(_SHAPES))
    rows = rng.choice((tuple(range(shape[0])), 0, 1))
    variables = tuple(Variable(name, dtype, shape, rows) for name in "XY")
    variables = variables[: rng.choice((1, 2, 2))]
    return Context(rng, support, dtype, variables, arithmetic=arithmetic, matrices=True)


def _test(context: Context, tries: int = _TRIES) -> LitmusTest:
    rng = context.rng
    body = _Body(context)
    named = [COMPUTED[name] for name in context.possible(_COMPUTED)]
    dense = [OPS[name] for name in context.possible(_DENSE)]
    chains: list[str] = [""] * rng.choice((2, 2, 3))
    for number in range(rng.choice((3, 4, 4, 5, 6))):
        before = len(body.nodes), list(body.sources), dict(body.feeds)
        chain = number % len(chains)
        op = rng.choice(named if named and rng.random() < 0.7 else dense or named)
        effect = body.effect(op, (chains[chain],) if chains[chain] else ())
        if has_too_many_orders(context, body.nodes):
            count, body.sources, body.feeds = before
            del body.nodes[count:]
            break
        chains[chain] = effect
    nodes = tuple(body.nodes)
    if not any(node.definition.computed for node in nodes):
        # It is not about indices; and values with a number for each element fit whole tests only.
        if not tries:
            raise NotGenerated("family computed: the support lacks the operands of its ops")
        return _test(context, tries - 1)
    shown = tuple(node.name for node in nodes if node.definition.kind is Kind.READ)
    fed = {node.name for node in nodes if node.definition.fed}
    feeds = tuple((name, value) for name, value in body.feeds.items() if name in fed)
    client = (Run("main", "main", feeds=feeds),) if feeds else ()
    test = LitmusTest("computed", context.variables, (Graph("main", nodes),), shown, client=client)
    return out_of_range(rng, test) if rng.random() < 0.25 else test


def out_of_range(rng: random.Random, test: LitmusTest) -> LitmusTest:
    """The test, of one graph, with larger moduli: indices may leave their range."""
    moduli = {node.inputs[1] for node in test.nodes if node.op == "FloorMod"}

    def raised(node: Node) -> Node:
        attrs = node.attrs
        if node.name not in moduli or not isinstance(attrs, ConstAttrs):
            return node
        if not isinstance(attrs.value, int):
            return node
        return replace(node, attrs=replace(attrs, value=attrs.value + rng.choice((1, 2, 5))))

    nodes = tuple(map(raised, test.graph.nodes))
    try:
        return replace(test, graphs=(Graph("main", nodes),))
    except MalformedTest:
        return test


class _Body(PureBody):
    """Generator of the graph.

    Attributes
    ----------
    feeds : dict of str to nested ints
        Values of placeholders.
    """

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.feeds: dict[str, Nested] = {}

    def effect(self, op: OpDef, after: tuple[str, ...]) -> str:
        """Append an op on a variable, with the nodes that compute its operands; its name."""
        if not op.computed:
            return super().effect(op, after)
        rng, context = self.rng, self.context
        row = op.meaning
        assert row is not None
        variable = rng.choice(context.variables)
        for _ in range(_TRIES):
            sampled = sample(rng, row, variable.dtype, variable.shape)
            if sampled is not None and all(self.takes(each.type) for each in sampled.operands):
                break
        else:  # the support lacks matrices of indices
            return super().effect(OPS["AssignVariableOp"], after)
        attrs, inputs = sampled.attrs, tuple(self.filled(each) for each in sampled.operands[1:])
        if op.name == "ResourceStridedSliceAssign" and self.sources and rng.random() < 0.4:
            attrs, inputs = row.attributes({}), self.one_row(variable)
        reads = op.kind is Kind.READ
        name = context.fresh("r" if reads else "w")
        resources = (variable.name,)
        self.add(name, op.name, inputs, resources=resources, after=after, attrs=attrs)
        if reads:
            indices = sampled.operands[1].type.shape
            rest = variable.shape[indices[-1] :] if op.nd else variable.shape[1:]
            shape = (*(indices[:-1] if op.nd else indices), *rest)
            self.types[name] = TensorType(variable.dtype, shape)
            self.sources.append(name)
        return name

    def one_row(self, variable: Variable) -> tuple[str, ...]:
        """Operands of a slice of the row that a read names, which counts up or down.

        A slice that counts down from row 0 ends at row -1, the last: it has no row.
        """
        kind = TensorType("int32", (1,))
        step = self.rng.choice((-1, 1))
        operand = Operand("begin", kind, (0,), limit=variable.shape[0])
        begin = self.made_from(self.rng.choice(self.sources), operand, operand.limit)
        stride = self.literal(kind, step)
        end = self.pure("AddV2", (begin, stride), kind)
        value = self.operand(TensorType(variable.dtype, (1, *variable.shape[1:])))
        return begin, end, stride, value

    def operand(self, kind: TensorType) -> str:
        """A tensor of that type: a constant, what was read, or computed from it."""
        chance = self.rng.random()
        if not self.sources or chance < 0.4:
            return self.literal(kind, self.rng.randint(1, 9))
        if chance < 0.8:
            return self.fitted(self.small(self.rng.choice(self.sources)), kind)
        return super().operand(kind)

    def filled(self, operand: Operand) -> str:
        """A node for a sampled operand: computed, fed or constant."""
        rng = self.rng
        if operand.replaceable:
            return self.operand(operand.type)
        if operand.limit and self.sources and rng.random() < 0.75:
            return self.made_from(rng.choice(self.sources), operand, operand.limit)
        fed = "placeholders" in self.context.support.features
        if fed and "Placeholder" in self.context.support.ops and rng.random() < 0.2:
            kind = operand.type
            name = self.context.fresh("p")
            attrs = PlaceholderAttrs(kind.dtype, kind.shape)
            self.add(name, "Placeholder", attrs=attrs, kind=kind)
            self.feeds[name] = nested(operand.values, kind.shape)
            return name
        return self.given(operand)
