"""Family `dag`: random acyclic graphs over a few variables.

A graph consists of chains of ops on variables that race, with a few edges between chains and
values that flow from reads through pure ops into writes. All ops are about equally frequent.
Written values are unique where possible, so that an outcome shows which write a read saw.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from litmusfuzz.corpus.model import Graph, LitmusTest, Variable
from litmusfuzz.corpus.ops import DTYPES, FLOATS, OPS, Kind
from litmusfuzz.fuzz.generators.context import RESOURCE_OPS, BodyGenerator, Context
from litmusfuzz.fuzz.generators.unbuilt import UnbuiltTest
from litmusfuzz.oracles.bounds import count, has_small_values
from litmusfuzz.oracles.paths import LongPaths

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence

    from litmusfuzz.corpus.model import Node
    from litmusfuzz.fuzz.support import Support

MAX_ORDERS: Final = 200_000
"""Limit on the total orders of a test under `rfc`. More orders would make a test harder to
read, and its allowed set, which the file of a finding lists, larger."""

_SIZES: Final = (2, 3, 3, 4, 4, 5, 6, 7, 8)
"""Numbers of ops on variables."""
# Without lanes; or up to 16 KiB a row in four-byte lanes, which takes long enough to write
# that other ops run meanwhile.
_LANES: Final = ((), (16,), (256,), (1024,), (4096,))


def generate(rng: random.Random, support: Support) -> LitmusTest:
    """Generate a test of the family within a support; all choices come from `rng`."""
    return bounded(rng, support, partial(racing, name="dag", ops=RESOURCE_OPS, sizes=_SIZES))


class MakeContext(Protocol):
    """A function that makes a random context."""

    def __call__(self, rng: random.Random, support: Support, *, arithmetic: bool) -> Context:
        """Make a random context; see `Context.arithmetic`."""


def context(rng: random.Random, support: Support, *, arithmetic: bool) -> Context:
    """A random context with one to three variables."""
    matrices = arithmetic and rng.random() < 0.04 and support.takes_shape((2, 2))
    # Floats more often, since a few ops take nothing else.
    dtype = rng.choice([each for each in (*DTYPES, *FLOATS) if each in support.dtypes])
    lanes = () if matrices else rng.choice(_LANES)
    rows = rng.randint(1, 3)
    shape: tuple[int, ...] = (rows, *lanes)
    if matrices:
        shape = (2, 2)
    elif rng.random() < 0.15:
        shape = ()
    shape = support.nearest(shape)
    count = rng.choice((1, 2, 2, 2, 3))
    init = rng.choice((0, 0, 1))
    variables = tuple(Variable(name, dtype, shape, init) for name in "XYZ"[:count])
    return Context(rng, support, dtype, variables, arithmetic=arithmetic, matrices=matrices)


def bounded(
    rng: random.Random,
    support: Support,
    test_of: Callable[[Context], LitmusTest],
    make_context: MakeContext = context,
) -> LitmusTest:
    """A test of a random context, with values below the bound of the model."""
    for _ in range(8):
        test = test_of(make_context(rng, support, arithmetic=True))
        if has_small_values(test):
            return test
    # The values were products of products; without arithmetic the bound is small.
    return test_of(make_context(rng, support, arithmetic=False))


def racing(
    context: Context, *, name: str, ops: tuple[str, ...], sizes: Sequence[int]
) -> LitmusTest:
    """A test in racing chains, of one of these sizes, with these ops."""
    rng = context.rng
    body = BodyGenerator(context)
    chains: list[str] = [""] * rng.randint(2, 4)  # each one's last effect
    effects: list[str] = []
    possible = context.possible(ops)
    for _ in range(rng.choice(sizes) if possible else 0):
        before = len(body.nodes)
        chain = rng.randrange(len(chains))
        after = [chains[chain]] if chains[chain] else []
        if effects and rng.random() < 0.15:
            other = rng.choice(effects)
            after += [other] if other not in after else []
        op = OPS[rng.choice(possible)]
        effect = body.effect(op, tuple(after))
        if has_too_many_orders(context, body.nodes):
            del body.nodes[before:]
            break
        chains[chain] = effect
        effects.append(effect)
    return built(name, context, body.nodes)


def has_too_many_orders(context: Context, nodes: Sequence[Node]) -> bool:
    """True if the test of these nodes has `MAX_ORDERS` total orders or more."""
    if most_orders(nodes) < MAX_ORDERS:  # most tests, until they are nearly complete
        return False
    test = UnbuiltTest("", context, (Graph("main", tuple(nodes)),), ())
    return count(test, LongPaths(test).path(), MAX_ORDERS) >= MAX_ORDERS


def most_orders(nodes: Sequence[Node]) -> int:
    """Upper bound on the total orders of a graph without bodies under `rfc`.

    Of n events in disjoint chains there are n! orders, divided by the orders of each chain.
    """
    events = 0
    chains: dict[str, int] = {}  # last op of a chain: events of the chain
    for node in nodes:
        if node.resources:
            # An update reads, then writes; of two variables, in any order within each group.
            groups = 2 if node.definition.kind is Kind.UPDATE else 1
            events += groups * len(node.resources)
            before = next((name for name in node.after if name in chains), "")
            chains[node.name] = groups + (chains.pop(before) if before else 0)
    return math.factorial(events) // math.prod(map(math.factorial, chains.values()))


def built(name: str, context: Context, nodes: Sequence[Node]) -> LitmusTest:
    """A test with one graph of these nodes."""
    # Seven of eight reads are observed. TensorFlow may drop the result of the others at once.
    observed = [
        n.name for n in nodes if n.definition.kind is Kind.READ and int(n.name[1:]) % 8 != 7
    ]
    return LitmusTest(name, context.variables, (Graph("main", tuple(nodes)),), tuple(observed))
