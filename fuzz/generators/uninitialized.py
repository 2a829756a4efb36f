"""Family `uninitialized`: variables that have no value until they are first written.

A test is one of `runs` or of `mixed`, in which some variables lose their initial value, and some
reads become VarIsInitializedOp. Mostly the first op on such a variable writes it, and control
edges keep most reads behind a write: once an op fails, nothing more is specified.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model import Graph, Node, all_nodes, bodies
from litmusfuzz.corpus.ops import ConstAttrs, Kind
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.generators import mixed, runs
from litmusfuzz.fuzz.generators.structured import small

if TYPE_CHECKING:
    import random
    from collections.abc import Collection, Mapping

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.generators.context import Context
    from litmusfuzz.fuzz.generators.structured import Attempt
    from litmusfuzz.fuzz.generators.unbuilt import UnbuiltTest
    from litmusfuzz.fuzz.support import Support

_MIXED: Final = frozenset({"critical sections", "queues", "conditionals", "loops"})
_ADDS: Final = frozenset({"AssignAddVariableOp", "AssignSubVariableOp"})
"""Updates that are assignments under another name."""
_TRIES: Final = 8
"""Tests generated for an attempt, until one has a variable that can do without a value."""


def generate(rng: random.Random, support: Support) -> LitmusTest:
    """Generate a test of the family within a support; all choices come from `rng`."""
    base: Attempt = runs.attempt
    most = rng.randint(10, 15)
    if rng.random() < 0.4 and support.features >= _MIXED:
        base = partial(mixed.attempt, pair=rng.choice(mixed.PAIRS), runs=rng.random() < 0.25)
        most = rng.randint(8, 12)
    return small(rng, support, partial(_attempt, base=base), most)


def _attempt(
    rng: random.Random, support: Support, events: int, *, arithmetic: bool, base: Attempt
) -> UnbuiltTest:
    for _ in range(_TRIES):
        made = base(rng, support, events, arithmetic=arithmetic)
        uses: dict[str, list[str]] = {}  # by node: the resources that it and its bodies use
        several: set[str] = set()
        touched: set[str] = set()
        for graph in made.graphs:
            for node in graph.nodes:
                uses[node.name] = found = [*node.resources]
                within = [node]
                if bodies(node):
                    within = [*all_nodes(within)]
                    found += (name for each in within for name in each.resources)
                touched.update(found)
                for each in within:
                    if len(each.resources) > 1:
                        several.update(each.resources)
        # A momentum step of which one variable has no value ends TensorFlow's process.
        free = touched - several
        candidates = [v.name for v in made.context.variables if v.name in free]
        if candidates:
            empty = rng.sample(candidates, rng.randint(1, len(candidates)))
            return _without_values(rng, made, empty, uses)
    return replace(made, name="uninitialized")


def _without_values(
    rng: random.Random, made: UnbuiltTest, empty: list[str], uses: Mapping[str, list[str]]
) -> UnbuiltTest:
    """The test in which these variables have no initial value."""
    context = made.context
    graphs = {graph.name: graph.nodes for graph in made.graphs}
    order = dict.fromkeys(run.graph for run in made.client) or graphs
    for variable in empty:
        # An op that reads it, and comes before all that write it, would always fail.
        if rng.random() < 0.85:
            for name in order:
                written = _written(context, graphs[name], variable, uses)
                if written:
                    graphs[name] = written
                    break
    context.variables = tuple(
        replace(v, init=None) if v.name in empty else v for v in context.variables
    )
    more = len(graphs[made.graphs[-1].name]) - len(made.graphs[-1].nodes)
    edited = (Graph(name, _edited(rng, nodes, empty, uses)) for name, nodes in graphs.items())
    return replace(
        made,
        name="uninitialized",
        graphs=tuple(edited),
        ends=tuple(end + more for end in made.ends),
    )


def _written(
    context: Context, nodes: tuple[Node, ...], variable: str, uses: Mapping[str, list[str]]
) -> tuple[Node, ...]:
    """The nodes of a graph, of which the first that uses a variable writes it; () if none does."""
    for place, node in enumerate(nodes):
        if variable in uses.get(node.name, ()):
            if node.definition.kind is Kind.WRITE:
                return nodes
            if node.op in _ADDS:
                write = replace(node, op="AssignVariableOp")
                return (*nodes[:place], write, *nodes[place + 1 :])
            kind = context.type
            attrs = ConstAttrs(kind.dtype, kind.shape, context.unique(kind))
            value = Node(context.fresh("c"), "Const", attrs=attrs)
            name = context.fresh("w")
            write = Node(name, "AssignVariableOp", (value.name,), (variable,))
            return (value, write, *nodes)
    return ()


def _edited(
    rng: random.Random,
    nodes: tuple[Node, ...],
    empty: Collection[str],
    uses: Mapping[str, list[str]],
) -> tuple[Node, ...]:
    """Nodes of a graph, of which most that need a value come after a first write."""
    used: set[str] = set()
    for node in nodes:
        used.update(node.references, node.members)
    first: dict[str, str] = {}
    made = []
    for node in nodes:
        needs = [name for name in uses.get(node.name, node.resources) if name in empty]
        if not needs:
            pass
        elif node.op == "ReadVariableOp" and node.name not in used and rng.random() < 0.5:
            node = replace(node, op="VarIsInitializedOp")
        elif node.definition.kind is Kind.WRITE and not node.after:
            first.setdefault(node.resources[0], node.name)
        elif rng.random() < 0.8:
            before = dict.fromkeys(first[name] for name in needs if name in first)
            # The writes stand before in the graph, and the members of a section together: no
            # edge makes a cycle through one.
            after = (name for name in before if name not in node.inputs)
            node = replace(node, after=tuple(dict.fromkeys((*node.after, *after))))
        made.append(node)
    return tuple(made)
