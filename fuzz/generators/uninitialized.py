"""Family `uninitialized`: variables that have no value until they are first written.

A test is one of `runs` or of `mixed`, in which some variables lose their initial value, and some
reads of these become VarIsInitializedOp. Mostly the first op on such a variable writes it, and
control edges keep most reads behind a write: once an op fails, nothing more is specified.
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
"""Updates whose operand is one value: with another op they are assignments of it."""
_TRIES: Final = 8
"""Tests that an attempt generates, at most, until one has a variable that can do without a value.

If none has, the last one stays as it is, and all its variables have initial values.
"""


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
    """Generate a test of `base`, and take the initial values of some of its variables away."""
    for _ in range(_TRIES):
        test = base(rng, support, events, arithmetic=arithmetic)
        uses: dict[str, list[str]] = {}  # by node of a graph: resources of it and of its bodies
        with_others: set[str] = set()  # resources that some op uses together with another one
        used: set[str] = set()
        for graph in test.graphs:
            for node in graph.nodes:
                uses[node.name] = own = [*node.resources]
                within = [node]
                if bodies(node):
                    within = [*all_nodes(within)]
                    own += (name for each in within for name in each.resources)
                used.update(own)
                for each in within:
                    if len(each.resources) > 1:
                        with_others.update(each.resources)
        # A momentum step of which one variable has no value ends TensorFlow's process.
        free = used - with_others
        candidates = [v.name for v in test.context.variables if v.name in free]
        if candidates:
            valueless = rng.sample(candidates, rng.randint(1, len(candidates)))
            return _without_values(rng, test, valueless, uses)
    return replace(test, name="uninitialized")


def _without_values(
    rng: random.Random, test: UnbuiltTest, valueless: list[str], uses: Mapping[str, list[str]]
) -> UnbuiltTest:
    """The test without initial values of some variables, most of which are written first.

    Parameters
    ----------
    rng : random.Random
    test : UnbuiltTest
    valueless : list of str
    uses : mapping of str to list of str
        By node of a graph, the resources that it and its bodies use.
    """
    context = test.context
    graphs = {graph.name: graph.nodes for graph in test.graphs}
    in_order_of_runs = dict.fromkeys(run.graph for run in test.client) or graphs
    for variable in valueless:
        # An op that reads it, and comes before all that write it, would always fail.
        if rng.random() < 0.85:
            for name in in_order_of_runs:
                written_first = _written_first(context, graphs[name], variable, uses)
                if written_first:
                    graphs[name] = written_first
                    break
    context.variables = tuple(
        replace(v, init=None) if v.name in valueless else v for v in context.variables
    )
    # New nodes stand at the front, so that the last graph may end as many nodes later.
    added = len(graphs[test.graphs[-1].name]) - len(test.graphs[-1].nodes)
    changed = (
        Graph(name, _with_reads_after_writes(rng, nodes, valueless, uses))
        for name, nodes in graphs.items()
    )
    return replace(
        test,
        name="uninitialized",
        graphs=tuple(changed),
        ends=tuple(end + added for end in test.ends),
    )


def _written_first(
    context: Context, nodes: tuple[Node, ...], variable: str, uses: Mapping[str, list[str]]
) -> tuple[Node, ...]:
    """The nodes of a graph, changed so that the first that uses a variable writes it.

    If that node is a write, they stay; an update becomes an assignment if its op alone makes it
    one. Otherwise a new write of a new constant is put at the front of the graph. Empty if no node
    uses the variable.
    """
    for place, node in enumerate(nodes):
        if variable in uses.get(node.name, ()):
            if node.definition.kind is Kind.WRITE:
                return nodes
            if node.op in _ADDS:
                write = replace(node, op="AssignVariableOp")
                return (*nodes[:place], write, *nodes[place + 1 :])
            of_type = context.type
            attrs = ConstAttrs(of_type.dtype, of_type.shape, context.unique(of_type))
            value = Node(context.fresh("c"), "Const", attrs=attrs)
            name = context.fresh("w")
            write = Node(name, "AssignVariableOp", (value.name,), (variable,))
            return (value, write, *nodes)
    return ()


def _with_reads_after_writes(
    rng: random.Random,
    nodes: tuple[Node, ...],
    valueless: Collection[str],
    uses: Mapping[str, list[str]],
) -> tuple[Node, ...]:
    """The nodes of a graph, of which most that use a variable without a value are made harmless.

    Half of the reads whose value nothing takes become VarIsInitializedOp, which needs no value.
    Most other nodes get control edges from the first writes of the variables that they use.
    """
    taken: set[str] = set()  # names of values that other nodes take, and of members of sections
    for node in nodes:
        taken.update(node.references, node.members)
    first_writes: dict[str, str] = {}  # by variable, the first write without control edges
    changed = []
    for node in nodes:
        needs = [name for name in uses.get(node.name, node.resources) if name in valueless]
        if not needs:
            pass
        elif node.op == "ReadVariableOp" and node.name not in taken and rng.random() < 0.5:
            node = replace(node, op="VarIsInitializedOp")
        elif node.definition.kind is Kind.WRITE and not node.after:
            # With a control edge it might not happen: what it waits for may fail.
            first_writes.setdefault(node.resources[0], node.name)
        elif rng.random() < 0.8:
            # The writes stand before the node in the graph, and the members of a section stand
            # together, so that no cycle comes about.
            writes = [first_writes[name] for name in needs if name in first_writes]
            more = (name for name in writes if name not in node.inputs)
            node = replace(node, after=tuple(dict.fromkeys((*node.after, *more))))
        changed.append(node)
    return tuple(changed)
