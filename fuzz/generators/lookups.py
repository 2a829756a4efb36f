"""Family `lookups`: rows of a table by their ids, as an embedding is looked up.

A lookup reads ids and makes them distinct with Unique; it gathers these rows of a table, and its
second result puts the rows in the places of the ids, or adds them up by segments. Chains of ops
change the table and the ids meanwhile; what was looked up is written, and observed. The edges into
a lookup lead to any of its ops. TensorFlow's optimizers look for such a group of ops.

All ids are rows of the table: no op fails.

References
----------
TensorFlow, ``tensorflow/python/ops/embedding_ops.py``, `embedding_lookup_sparse`;
``tensorflow/core/grappler/optimizers/arithmetic_optimizer.cc``, `SimplifyEmbeddingLookupStage`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from litmusfuzz.corpus.model import Graph, LitmusTest, Variable
from litmusfuzz.corpus.ops import DTYPES, FLOATS, OPS, Kind, PureAttrs, TensorType
from litmusfuzz.corpus.pure.definition import INTS
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.tensors import MAX_ELEMENTS, UNKNOWN
from litmusfuzz.fuzz.generators.context import Context
from litmusfuzz.fuzz.generators.dag import bounded, has_too_many_orders
from litmusfuzz.fuzz.generators.family import NotGenerated
from litmusfuzz.fuzz.generators.pure import NEEDED as FITTED
from litmusfuzz.fuzz.generators.pure import PureBody

if TYPE_CHECKING:
    import random

    from litmusfuzz.fuzz.support import Support

_LOOKUP: Final = frozenset(
    {"Unique", "UniqueV2", "GatherV2", "SparseSegmentSum", "EnsureShape", "ReadVariableOp"}
)
NEEDED: Final = FITTED | _LOOKUP | {"AssignVariableOp"}
"""Ops that the family cannot do without."""
_TABLES: Final = ((2,), (3,), (2, 1), (3, 1), (2, 2), (4, 2))
_IDS: Final = "I"
_SEGMENTS: Final = ((0, 0, 0), (0, 0, 1), (0, 1, 1), (0, 1, 2))
"""By the place of an id, the sum that its row is added to."""
_CHANGES: Final = (
    *("AssignVariableOp", "AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp"),
    *("ReadVariableOp", "ResourceScatterUpdate", "ResourceScatterAdd"),
)


def generate(rng: random.Random, support: Support) -> LitmusTest:
    """Generate a test of the family within a support; all choices come from `rng`."""
    if not support.dtypes >= {*INTS} or not support.takes_shape((4,)):
        raise NotGenerated("family lookups: the support lacks ids, or vectors of four elements")
    if support.elements_max < MAX_ELEMENTS:
        raise NotGenerated("family lookups: the support lacks values of any number of elements")
    return bounded(rng, support, _test, _context)


def _context(rng: random.Random, support: Support, *, arithmetic: bool) -> Context:
    dtype = rng.choice([each for each in (*DTYPES, *FLOATS) if each in support.dtypes])
    shape = support.nearest(rng.choice(_TABLES))
    rows = rng.choice((tuple(range(1, shape[0] + 1)), 1))
    tables = tuple(Variable(name, dtype, shape, rows) for name in "XY"[: rng.choice((1, 2))])
    return Context(rng, support, dtype, tables, arithmetic=arithmetic, matrices=True)


def _test(context: Context) -> LitmusTest:
    rng, tables = context.rng, context.variables
    count = len(_SEGMENTS[0])
    ids = Variable(_IDS, rng.choice(INTS), (count,), _some_rows(rng, tables[0], count))
    body = _Body(context, ids)
    changes = context.possible(_CHANGES)
    chains: list[str] = [""] * rng.choice((2, 2, 3))
    looks_up = rng.randrange(2)
    for number in range(rng.choice((3, 4, 4, 5))):
        before = len(body.nodes), list(body.computed), list(body.sources)
        chain = number % len(chains)
        after = (chains[chain],) if chains[chain] else ()
        if number == looks_up or rng.random() < 0.15:
            effect = body.lookup(after)
        elif rng.random() < 0.25:
            effect = body.other_ids(after)
        else:
            effect = body.effect(OPS[rng.choice(changes)], after)
        if has_too_many_orders(context, body.nodes):
            length, body.computed, body.sources = before
            del body.nodes[length:]
            break
        chains[chain] = effect
    nodes = tuple(body.nodes)
    there = {node.name for node in nodes}
    shown = [
        node.name
        for node in nodes
        if node.definition.kind is Kind.READ and not body.types[node.name].dynamic
    ]
    shown += [name for name in body.computed if name in there]
    return LitmusTest("lookups", (*tables, ids), (Graph("main", nodes),), tuple(shown))


def _some_rows(rng: random.Random, table: Variable, count: int) -> tuple[int, ...]:
    """Rows of a table, some of them twice."""
    return tuple(rng.randrange(table.shape[0]) for _ in range(count))


class _Body(PureBody):
    """Generator of the graph.

    Parameters
    ----------
    context : Context
        Its variables are the tables.
    ids : Variable
    """

    def __init__(self, context: Context, ids: Variable) -> None:
        super().__init__(context)
        self.ids = ids

    def operand(self, kind: TensorType) -> str:
        """A tensor of that type: a constant, or what was read or looked up."""
        if not self.sources or not self.context.arithmetic or self.rng.random() < 0.5:
            return self.literal(kind, self.rng.randint(1, 9))
        return self.fitted(self.small(self.rng.choice(self.sources)), kind)

    def other_ids(self, after: tuple[str, ...]) -> str:
        """Append a write of other ids; its name."""
        rows = _some_rows(self.rng, self.context.variables[0], self.ids.shape[0])
        value = self.literal(self.ids.type, rows)
        name = self.context.fresh("w")
        return self.add(name, "AssignVariableOp", (value,), resources=(_IDS,), after=after)

    def lookup(self, after: tuple[str, ...]) -> str:
        """Append a lookup, one of whose ops comes after `after`; its last op on a variable."""
        rng = self.rng
        first = rng.choice(("ids", "distinct", "table", "found", "placed"))
        edges = {first: after}
        ids = self.read(_IDS, self.ids.type, edges.get("ids", ()))
        rows, places = self.distinct(ids, edges.get("distinct", ()))
        table = rng.choice(self.context.variables)
        last = self.context.fresh("r")
        if rng.random() < 0.5 and "ResourceGather" in self.context.support.ops:
            # Of a gather from a variable the op on the table is the one that finds the rows.
            edge = edges.get("table", ()) or edges.get("found", ())
            found = self.add(last, "ResourceGather", (rows,), resources=(table.name,), after=edge)
            self.types[found] = TensorType(table.dtype, (UNKNOWN,) * len(table.shape))
        else:
            last = self.read(table.name, table.type, edges.get("table", ()))
            found = self.after(edges.get("found", ()), self.gathered(last, rows))
        if rng.random() < 0.7:
            segments = rng.choice(_SEGMENTS)
            segment_of = self.literal(TensorType("int32", (len(segments),)), segments)
            placed = self.made("SparseSegmentSum", (found, places, segment_of), _SUM)
            extent = segments[-1] + 1
        else:
            placed, extent = self.gathered(found, places), self.ids.shape[0]
        self.after(edges.get("placed", ()), placed)
        shape = (extent, *table.shape[1:])
        if self.types[placed].dynamic:
            attrs = _attributes("EnsureShape", shape=shape)
            placed = self.made("EnsureShape", (placed,), attrs)
        self.computed.append(placed)
        self.sources.append(placed)
        if rng.random() < 0.5:
            return last
        target = rng.choice(self.context.variables)
        value = self.fitted(self.small(placed), target.type)
        name = self.context.fresh("w")
        return self.add(name, "AssignVariableOp", (value,), resources=(target.name,))

    def read(self, variable: str, kind: TensorType, after: tuple[str, ...]) -> str:
        """Append a read of a variable."""
        name = self.context.fresh("r")
        return self.add(name, "ReadVariableOp", resources=(variable,), after=after, kind=kind)

    def distinct(self, ids: str, after: tuple[str, ...]) -> tuple[str, str]:
        """Append the distinct ids, and the place of each id among them: two results of one op."""
        op = "Unique"
        inputs: tuple[str, ...] = (ids,)
        if self.rng.random() < 0.3:
            op = "UniqueV2"
            inputs = (ids, self.literal(TensorType("int32", (1,)), (0,)))
        index = self.rng.choice(INTS)
        rows, places = (
            self.after(after, self.made(op, inputs, _attributes(op, result=result, out_idx=index)))
            for result in ("y", "idx")
        )
        return rows, places

    def gathered(self, table: str, rows: str) -> str:
        """Append a gather of rows of a value."""
        axis = self.literal(TensorType("int32", ()), 0)
        return self.made("GatherV2", (table, rows, axis), _attributes("GatherV2"))

    def after(self, edges: tuple[str, ...], name: str) -> str:
        """Add control edges into the node that was appended last, which has that name."""
        node = self.nodes[-1]
        assert node.name == name, (node.name, name)
        self.nodes[-1] = replace(node, after=edges)
        return name


def _attributes(op: str, **values: Any) -> PureAttrs:
    """Attributes of an op of the table."""
    row = OPS[op].meaning
    assert row is not None
    return row.attributes(values)


_SUM: Final = _attributes("SparseSegmentSum")
