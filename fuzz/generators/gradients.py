"""Adds gradients to a generated test of any family, for executors of programs of one thread."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model import MalformedTest
from litmusfuzz.corpus.ops import FLOATS, ConstAttrs, PlaceholderAttrs
from litmusfuzz.corpus.rewriter import Rewriter
from litmusfuzz.corpus.struct import replace
from litmusfuzz.oracles import sequential
from litmusfuzz.oracles.errors import NoAllowedSet

if TYPE_CHECKING:
    import random
    from collections.abc import Collection

    from litmusfuzz.corpus.model import LitmusTest, Node
    from litmusfuzz.fuzz.support import Support

SHARE: Final = 0.5
"""How often a test that can have gradients has some."""
_FLOAT: Final = {"int32": "float32", "int64": "float64"}
_NO_PROGRAM: Final = frozenset({"queues", "critical sections"})


def takes_programs(support: Support) -> bool:
    """True for the support of an executor of programs of one thread, and of nothing else."""
    return "gradients" in support.features and not support.features & _NO_PROGRAM


def add(test: LitmusTest, support: Support, rng: random.Random) -> LitmusTest:
    """The test, or the test with gradients of some of its variables, for a program of one thread.

    Its client orders all runs, since one thread executes them one after another.

    Parameters
    ----------
    support : Support
        Gradients are added only if it has them, and nothing that no program of one thread has.
    """
    if not takes_programs(support):
        return test
    test = _in_line(test)
    floats = [v.name for v in test.variables if v.dtype in FLOATS and v.init is not None]
    if not floats or rng.random() >= SHARE:
        return test
    chosen = rng.sample(floats, rng.randint(1, len(floats)))
    return differentiated(test, chosen) or test


def _in_line(test: LitmusTest) -> LitmusTest:
    """The test whose client runs one graph after another, in the order of the file."""
    runs = test.runs
    client = [runs[0]]
    for before, run in pairwise(runs):
        after = run.after if before.name in run.after else (*run.after, before.name)
        client.append(replace(run, after=after))
    return test if tuple(client) == runs else replace(test, client=tuple(client))


def differentiated(test: LitmusTest, by: Collection[str]) -> LitmusTest | None:
    """The test with the gradients of these variables; None if they are not defined."""
    variables = tuple(replace(v, gradient=v.name in by) for v in test.variables)
    try:
        made = replace(test, variables=variables)
        return made if sequential.gradients(made) else None
    except (MalformedTest, NoAllowedSet):  # lanes, a maximum of equals, large values
        return None


def in_floats(test: LitmusTest) -> LitmusTest:
    """The test with floats in place of integers of as many bits, but for indices.

    A test stays as it is if its indices are made of what was read.
    """
    rows = _choices(test)

    def edit(node: Node) -> Node:
        if node.name in rows or not isinstance(node.attrs, (ConstAttrs, PlaceholderAttrs)):
            return node
        dtype = _FLOAT.get(node.attrs.dtype, node.attrs.dtype)
        return replace(node, attrs=replace(node.attrs, dtype=dtype))

    rewriter = Rewriter.of(test).each_node(edit)
    variables = (replace(v, dtype=_FLOAT.get(v.dtype, v.dtype)) for v in test.variables)
    try:
        return replace(rewriter, variables=tuple(variables)).build()
    except MalformedTest:
        return test


def _choices(test: LitmusTest) -> set[str]:
    """The nodes that indices are chosen from, and those that choose."""
    nodes = {node.name: node for node in test.nodes}
    found: set[str] = set()
    waiting = [node.inputs[0] for node in test.nodes if node.definition.computed]
    while waiting:
        node = nodes.get(waiting.pop())
        if node is not None and node.name not in found:
            found.add(node.name)
            if node.op in ("Select", "Identity"):
                waiting += node.inputs[1:] if node.op == "Select" else node.inputs
    return found
