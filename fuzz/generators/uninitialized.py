"""Family `uninitialized`: variables that have no value until they are first written.

A test is one of `runs` or of `mixed`, in which some variables lose their initial value, and some
reads become VarIsInitializedOp. Control edges keep most reads behind a write: once an op fails,
nothing more is specified.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model import Graph, MalformedTest, all_nodes, head
from litmusfuzz.corpus.ops import Kind
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.generators import mixed, runs

if TYPE_CHECKING:
    import random

    from litmusfuzz.corpus.model import LitmusTest, Node
    from litmusfuzz.fuzz.support import Support

_MIXED: Final = frozenset({"critical sections", "queues", "conditionals", "loops"})
_TRIES: Final = 12


def generate(rng: random.Random, support: Support) -> LitmusTest:
    """Generate a test of the family within a support; all choices come from `rng`."""
    mixes = rng.random() < 0.4 and support.features >= _MIXED
    base = mixed.generate if mixes else runs.generate
    for _ in range(_TRIES):
        test = base(rng, support)
        try:
            made = _without_values(rng, test)
        except MalformedTest:  # an edge made a cycle through a section
            continue
        if made is not None:
            return made
    return replace(test, name="uninitialized")


def _without_values(rng: random.Random, test: LitmusTest) -> LitmusTest | None:
    """The test in which variables that something writes have no initial value."""
    writes = {n.resources[0] for n in test.nodes if n.definition.kind is Kind.WRITE}
    # A momentum step of which one variable has no value ends TensorFlow's process.
    several = {name for n in test.nodes if len(n.resources) > 1 for name in n.resources}
    candidates = [v.name for v in test.variables if v.name in writes - several]
    if not candidates:
        return None
    empty = set(rng.sample(candidates, rng.randint(1, len(candidates))))
    used = {head(name) for n in test.nodes for name in n.references}
    used |= {name for n in test.nodes for name in n.members}
    graphs = tuple(
        Graph(graph.name, _edited(rng, graph.nodes, empty, used)) for graph in test.graphs
    )
    variables = (replace(v, init=None) if v.name in empty else v for v in test.variables)
    return replace(test, name="uninitialized", variables=tuple(variables), graphs=graphs)


def _edited(
    rng: random.Random, nodes: tuple[Node, ...], empty: set[str], used: set[str]
) -> tuple[Node, ...]:
    """Nodes of a graph, of which most that need a value come after a first write."""
    first: dict[str, str] = {}
    made = []
    for node in nodes:
        needs = [name for each in all_nodes([node]) for name in each.resources if name in empty]
        if node.op == "ReadVariableOp" and node.name not in used and rng.random() < 0.5:
            node = replace(node, op="VarIsInitializedOp")
        elif node.definition.kind is Kind.WRITE and needs and not node.after:
            first.setdefault(node.resources[0], node.name)
        elif needs and rng.random() < 0.8:
            before = dict.fromkeys(first[name] for name in needs if name in first)
            after = (name for name in before if name not in node.inputs)
            node = replace(node, after=tuple(dict.fromkeys((*node.after, *after))))
        made.append(node)
    return tuple(made)
