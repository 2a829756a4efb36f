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
from litmusfuzz.fuzz.generators.context import Block, Draft
from litmusfuzz.fuzz.generators.dag import built, drawn, has_too_many_orders

if TYPE_CHECKING:
    import random

    from litmusfuzz.corpus.model import LitmusTest, Node

_OPS: Final = {
    "read": ("ReadVariableOp",),
    "gather": ("ResourceGather", "ResourceGatherNd"),
    "scatter": tuple(n for n in EFFECT_OPS if n.startswith("ResourceScatter")),
    "slice": ("ResourceStridedSliceAssign",),
    "write": ("AssignVariableOp",),
    "update": ("AssignAddVariableOp", "AssignSubVariableOp"),
    "apply": tuple(n for n in EFFECT_OPS if n.startswith("ResourceApply")),
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


def draw(rng: random.Random) -> LitmusTest:
    """One random test; all choices come from `rng`."""
    return drawn(rng, _test, _draft)


def _draft(rng: random.Random, *, arithmetic: bool) -> Draft:
    dtype = rng.choice((*DTYPES, *FLOATS))
    shape = (rng.choice((1, 2, 2, 3, 4)), *rng.choice(_LANES))
    names = rng.choice(("X", "X", "XY"))
    variables = tuple(Variable(name, dtype, shape, rng.choice((0, 1))) for name in names)
    return Draft(rng, dtype, variables, arithmetic=arithmetic)


def _test(draft: Draft) -> LitmusTest:
    nodes: list[Node] = []
    for history in _histories(draft):
        # Values do not go from chain to chain: it is histories that race.
        block = Block(draft)
        last: tuple[str, ...] = ()
        for op in history:
            before = len(block.nodes)
            effect = block.effect(OPS[op], last)
            if has_too_many_orders(built("sparse", draft, [*nodes, *block.nodes])):
                del block.nodes[before:]
                break
            last = (effect,) if draft.rng.random() < 0.9 else last
        nodes += block.nodes
    return built("sparse", draft, nodes)


def _histories(draft: Draft) -> list[list[str]]:
    """The ops of two or three chains; one of the first writes sparsely, another is dense."""
    rng = draft.rng
    chains = [list(rng.choice(_HISTORIES)) for _ in range(rng.choice((2, 2, 3)))]
    switches, shares = rng.sample(chains[:2], 2)
    switches[rng.randrange(len(switches))] = rng.choice(("scatter", "scatter", "slice"))
    shares[rng.randrange(len(shares))] = rng.choice(_DENSE)
    return [[_drawn_op(draft, kind) for kind in chain] for chain in chains]


def _drawn_op(draft: Draft, kind: str) -> str:
    """An op of that kind that fits the test's variables."""
    kind = draft.rng.choice({"sparse": _SPARSE, "dense": _DENSE}.get(kind, (kind,)))
    possible = [name for name in _OPS[kind] if draft.possible(OPS[name])]
    return draft.rng.choice(possible or _OPS["update"])
