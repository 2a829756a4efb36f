"""Tests for `agreement` of what few generated tests have: each pure op, and transfers.

A family draws ops at random, and most of its nodes make operands. `every_op` takes the next few
ops of a shuffled table instead, so that in so many tests each op occurs about as often.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model import Graph, LitmusTest, MalformedTest, Variable
from litmusfuzz.corpus.ops import BOOL, DTYPES, OPS, Kind, PureAttrs
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.generators import generate
from litmusfuzz.fuzz.generators.computed import out_of_range
from litmusfuzz.fuzz.generators.context import Context
from litmusfuzz.fuzz.generators.pure import PureBody
from litmusfuzz.fuzz.generators.sampling import PURE_OPS
from litmusfuzz.fuzz.passes.placement import CannotPlace, place
from litmusfuzz.fuzz.support import EVERYTHING
from litmusfuzz.oracles import reference
from litmusfuzz.oracles.bounds import has_small_values
from litmusfuzz.oracles.errors import NoAllowedSet
from litmusfuzz.oracles.model import RFC

if TYPE_CHECKING:
    from litmusfuzz.corpus.pure.definition import PureOp

AT_ONCE: Final = 9
"""Ops of the table in one test."""
_MOST: Final = 100
"""What a value is taken to be at most that is not bounded (as in `PureBody`)."""
_OPAQUE: Final = OPS["Opaque"].meaning
assert _OPAQUE is not None
TABLE: Final[tuple[PureOp, ...]] = (*PURE_OPS, _OPAQUE)
"""All pure ops that one function defines, of which no framework has the last."""
_TRIES: Final = 6
"""Draws of operands for an op, until its result has elements, and small ones."""
_SHAPES: Final = ((), (2,), (3,), (2, 2), (2, 3))
_PLACED: Final = ("calls", "conditionals", "loops", "queues", "runs", "sections", "sparse")
"""Families of tests to be placed on devices."""


def every_op(seed: int, index: int) -> LitmusTest:
    """Return a small race of which the values go through ops of the table.

    Tests of the indices from 0 up to ``len(TABLE) / AT_ONCE`` try every op once.
    """
    first = index * AT_ONCE
    chosen = []
    for place_ in range(first, first + AT_ONCE):
        turn, at = divmod(place_, len(TABLE))
        order = list(TABLE)
        random.Random(f"{seed}/{turn}/every op").shuffle(order)
        chosen.append(order[at])
    rng = random.Random(f"{seed}/{index}/every op")
    while True:
        test = _racing(rng, chosen)
        if rng.random() < 0.2:  # some of the ops may fail
            raised = out_of_range(rng, test)
            test = raised if has_small_values(raised) and _is_well_formed(raised) else test
        if has_small_values(test):
            return test


def _is_well_formed(test: LitmusTest) -> bool:
    """Return True if no op has operands for which TensorFlow's kernel says nothing."""
    try:
        reference.allowed_outcomes(test, RFC)
    except NoAllowedSet:
        return False
    return True


def _racing(rng: random.Random, ops: list[PureOp]) -> LitmusTest:
    dtype, shape = rng.choice(DTYPES), rng.choice(_SHAPES)
    variable = Variable("X", dtype, shape, rng.choice((0, 1)))
    context = Context(rng, EVERYTHING, dtype, (variable,), matrices=True)
    body = PureBody(context)
    read = body.effect(OPS["ReadVariableOp"], ())
    for op in ops:
        for _ in range(_TRIES):
            source = rng.choice([read, *body.computed])
            count = len(body.nodes)
            if op is _OPAQUE:
                _add_term(body, source)
            else:
                body.applied(source, [op])
            if op.name in body.used:
                break
            del body.nodes[count:]
    if len(shape) == 2 and shape[0] == shape[1]:
        _add_product(body, read)
    body.sources.append(rng.choice([read, *body.computed]))
    before = body.add(context.fresh("n"), "NoOp", after=(read,)) if rng.random() < 0.5 else read
    body.effect(OPS["AssignVariableOp"], (before,))
    change = rng.choice(("AssignVariableOp", "AssignAddVariableOp"))
    body.sources = []
    changed = body.effect(OPS[change], ())
    if rng.random() < 0.5:
        body.effect(OPS["ReadVariableOp"], (changed,) if rng.random() < 0.5 else ())
    body.flat(read)  # without it a test of ops on single elements has lanes
    nodes = tuple(body.nodes)
    there = {node.name for node in nodes}
    shown = [node.name for node in nodes if node.definition.kind is Kind.READ]
    shown += [name for name in body.computed if name in there]
    return LitmusTest("every-op", (variable,), (Graph("main", nodes),), tuple(shown))


def _add_term(body: PureBody, source: str) -> None:
    """Append an Opaque of the source; of as many equal ones as it has operands."""
    if body.types[source].dtype == BOOL:
        return
    attrs = PureAttrs((("label", body.rng.randint(0, 9)), ("salt", 0)))
    term = body.call(OPS["Opaque"], (source,) * body.rng.randint(1, 3), attrs)
    if term is not None:
        body.used.add("Opaque")
        body.computed.append(term)


def _add_product(body: PureBody, source: str) -> None:
    """Append the square of a matrix."""
    small = body.small(source)
    product = body.pure("MatMul", (small, small), body.types[source])
    body.largest[product] = body.types[source].shape[0] * body.largest.get(small, _MOST) ** 2
    body.computed.append(product)


def placed(seed: int, index: int) -> LitmusTest:
    """Return a generated test on two devices, with what is sent between them."""
    rng = random.Random(f"{seed}/{index}/placed")
    while True:
        test = generate(rng.choice(_PLACED), seed, rng.getrandbits(60))
        devices = (["cpu:0", "cpu:1"], ["cpu:1", "cpu:0"])[rng.random() < 0.5]
        try:
            found = place(_with_a_node_elsewhere(test, rng), devices)
        except (CannotPlace, MalformedTest):
            continue
        if "transfers" in found.features:
            return found


def _with_a_node_elsewhere(test: LitmusTest, rng: random.Random) -> LitmusTest:
    """Return the test of one resource with a pure node on another device than that."""
    names = [n.name for g in test.graphs for n in g.nodes if n.definition.pure]
    if len(test.resources) > 1 or not names:
        return test
    away = rng.choice(names)
    graphs = tuple(
        Graph(g.name, tuple(replace(n, device="cpu:2") if n.name == away else n for n in g.nodes))
        for g in test.graphs
    )
    return replace(test, graphs=graphs)
