"""Family `sparse`: variables that one test accesses densely and sparsely.

TensorFlow keeps the tensor of a variable in one of two modes. At first, a dense read shares
the tensor, and a dense update copies it if a reader still holds it. The first sparse op (a
scatter, a gather, or an assignment to a slice) switches the variable to *copy on read*: a read
then makes a copy, and updates work in place. So the effect of an op depends on earlier ops,
and the chains of a test are histories, such as a scatter, then a read, then a dense update.
One chain switches the mode while others access the variable.

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
"""Histories of chains; "sparse" and "dense" stand for any such op."""
# Long rows take long enough to copy that other ops run meanwhile.
_LANES: Final = ((), (16,), (256,), (1024,), (4096,), (4096,))


def generate(rng: random.Random, support: Support) -> LitmusTest:
    """Generate a test of the family within a support; all choices come from `rng`."""
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
        # No value flows between chains: their histories race.
        body = BodyGenerator(context)
        last: tuple[str, ...] = ()
        for op in history:
            before = len(body.nodes)
            effect = body.effect(OPS[op], last)
            if has_too_many_orders(context, [*nodes, *body.nodes]):
                del body.nodes[before:]
                break
            last = (effect,) if context.rng.random() < 0.9 else last
        nodes += body.nodes
    return built("sparse", context, nodes)


def _histories(context: Context) -> list[list[str]]:
    """Ops of two or three chains, of which one writes sparsely and another has a dense op."""
    rng = context.rng
    chains = [list(rng.choice(_HISTORIES)) for _ in range(rng.choice((2, 2, 3)))]
    switches, shares = rng.sample(chains[:2], 2)
    switches[rng.randrange(len(switches))] = rng.choice(("scatter", "scatter", "slice"))
    shares[rng.randrange(len(shares))] = rng.choice(_DENSE)
    return [[_random_op(context, kind) for kind in chain] for chain in chains]


def _random_op(context: Context, kind: str) -> str:
    """A random op of that kind that fits the variables of the test."""
    kind = context.rng.choice({"sparse": _SPARSE, "dense": _DENSE}.get(kind, (kind,)))
    for names in (_OPS[kind], _OPS["update"]):
        if possible := context.possible(names):
            return context.rng.choice(possible)
    return "ReadVariableOp"
