"""The family `sparse`: variables that are used densely and sparsely in one test.

TensorFlow keeps a variable's tensor in two ways. A dense read shares it, and a dense
update copies it first where somebody still holds it. The first sparse op, a scatter, a
gather or an assignment to a slice, switches the variable to *copy on read*: from then on
a read makes a copy, and updates work in place. What each op does thus depends on what
was done before. So the chains of a test are histories, such as a scatter, then a read,
then a dense update; one switches the variable over while others are at it.

References
----------
TensorFlow, ``core/framework/resource_var.h``, ``Var::copy_on_read_mode``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model import Variable
from litmusfuzz.corpus.ops import DTYPES, EFFECT_OPS, FLOATS, OPS
from litmusfuzz.fuzz.generators.context import BodyGenerator, Context
from litmusfuzz.fuzz.generators.dag import bounded, built, has_too_many_orders

if TYPE_CHECKING:
    import random

    from litmusfuzz.corpus.model import LitmusTest, Node
    from litmusfuzz.fuzz.support import Support

_OPS: Final = {
    "read": ("ReadVariableOp",),
    "gather": ("ResourceGather", "ResourceGatherNd"),
    "scatter": tuple(n for n in EFFECT_OPS if OPS[n].scatter),
    "slice": ("ResourceStridedSliceAssign",),
    "write": ("AssignVariableOp",),
    "update": ("AssignAddVariableOp", "AssignSubVariableOp"),
    "apply": tuple(n for n in EFFECT_OPS if OPS[n].scalars),
}
_SPARSE: Final = ("gather", "scatter", "scatter", "slice")
_DENSE: Final = ("read", "write", "update", "apply")
_HISTORIES: Final = (
    *(("sparse", "read", "dense"), ("sparse", "read"), ("sparse", "dense", "read")),
    *(("read", "sparse"), ("read", "dense", "sparse"), ("read", "sparse", "read")),
    *(("dense", "read"), ("dense", "gather"), ("read", "gather"), ("dense", "sparse")),
    *(("sparse",), ("dense",), ("read",), ("gather",), ("read", "read"), ("sparse", "sparse")),
)
"""Chains, by what they do one after another; "sparse" and "dense" are any such op."""
# Rows of some length take long enough to copy that others come in between.
_LANES: Final = ((), (16,), (256,), (1024,), (4096,), (4096,))


def generate(rng: random.Random, support: Support) -> LitmusTest:
    """One random test; all choices come from `rng`."""
    return bounded(rng, support, _test, _context)


def _context(rng: random.Random, support: Support, *, arithmetic: bool) -> Context:
    dtype = rng.choice([each for each in (*DTYPES, *FLOATS) if each in support.dtypes])
    shape = support.nearest((rng.choice((1, 2, 2, 3, 4)), *rng.choice(_LANES)))
    names = rng.choice(("X", "X", "XY"))
    variables = tuple(Variable(name, dtype, shape, rng.choice((0, 1))) for name in names)
    return Context(rng, support, dtype, variables, arithmetic=arithmetic)


def _test(context: Context) -> LitmusTest:
    nodes: list[Node] = []
    for history in _histories(context):
        # Values do not go from chain to chain: it is histories that race.
        block = BodyGenerator(context)
        last: tuple[str, ...] = ()
        for op in history:
            before = len(block.nodes)
            effect = block.effect(OPS[op], last)
            if has_too_many_orders(built("sparse", context, [*nodes, *block.nodes])):
                del block.nodes[before:]
                break
            last = (effect,) if context.rng.random() < 0.9 else last
        nodes += block.nodes
    return built("sparse", context, nodes)


def _histories(context: Context) -> list[list[str]]:
    """The ops of two or three chains; one of the first writes sparsely, another is dense."""
    rng = context.rng
    chains = [list(rng.choice(_HISTORIES)) for _ in range(rng.choice((2, 2, 3)))]
    switches, shares = rng.sample(chains[:2], 2)
    switches[rng.randrange(len(switches))] = rng.choice(("scatter", "scatter", "slice"))
    shares[rng.randrange(len(shares))] = rng.choice(_DENSE)
    return [[_random_op(context, kind) for kind in chain] for chain in chains]


def _random_op(context: Context, kind: str) -> str:
    """An op of that kind that fits the test's variables."""
    kind = context.rng.choice({"sparse": _SPARSE, "dense": _DENSE}.get(kind, (kind,)))
    for names in (_OPS[kind], _OPS["update"]):
        possible = [name for name in names if context.possible(OPS[name])]
        if possible:
            return context.rng.choice(possible)
    return "ReadVariableOp"
