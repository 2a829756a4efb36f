"""Random edits of a litmus test, one small change each.

An edit returns a rewriter and a short description, or None if the test has nothing to edit. It
need not obey all rules of the format: `LitmusTest` refuses malformed tests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model import (
    Body,
    FreshNames,
    Graph,
    LoopAttrs,
    Mutex,
    Node,
    Run,
    bodies,
    head,
    levels,
    redirected,
    renamed,
)
from litmusfuzz.corpus.ops import (
    BOOL,
    DTYPES,
    EFFECT_OPS,
    OPS,
    Attrs,
    ConstAttrs,
    Kind,
    RowsAttrs,
    SectionAttrs,
    SliceAttrs,
)
from litmusfuzz.corpus.rewriter import Rewriter
from litmusfuzz.corpus.shapes import refitted, with_dtype
from litmusfuzz.corpus.struct import replace

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping, Sequence

    from litmusfuzz.corpus.model import LitmusTest, Queue, Variable
    from litmusfuzz.corpus.ops import TensorType

Edited = tuple[str, Rewriter] | None
"""Description of an edit, and the edited test; None if the edit does not fit."""
_LANES: Final = ((), (16,), (256,), (1024,))
_INTERCHANGEABLE: Final = (
    *(("AddV2", "Sub", "Maximum", "Minimum"), ("Less", "Equal"), ("Identity", "Neg", "Relu")),
    tuple(n for n in EFFECT_OPS if OPS[n].kind is Kind.READ),
    # One operand, of the variable's shape: an assignment, or an update by it.
    tuple(n for n in EFFECT_OPS if OPS[n].operands in (("value",), ("updates",))),
    ("ResourceApplyMomentum", "ResourceApplyKerasMomentum"),
)
"""Groups of ops that can replace each other, if the types fit."""


# --- edges -----------------------------------------------------------------------------


def drop_edge(rng: random.Random, test: LitmusTest) -> Edited:
    """Remove a control edge."""
    edges = [(node, name) for node in _nodes(test) for name in node.after]
    if not edges:
        return None
    node, source = rng.choice(edges)
    after = tuple(name for name in node.after if name != source)
    return f"without edge {source}->{node.name}", _with(test, replace(node, after=after))


def add_edge(rng: random.Random, test: LitmusTest) -> Edited:
    """Add a control edge."""
    place = _place(rng, test)
    if place is None:
        return None
    node, earlier = place
    new = [name for name in earlier if name not in node.edges]
    if not new:
        return None
    source = rng.choice(new)
    changed = replace(node, after=(*node.after, source))
    return f"edge {source}->{node.name}", _with(test, changed)


def redirect_edge(rng: random.Random, test: LitmusTest) -> Edited:
    """An edge, of control or of data, from another node."""
    place = _place(rng, test)
    if place is None:
        return None
    node, earlier = place
    edges = [*node.edges]
    if not edges:
        return None
    old = rng.choice(edges)
    new = [n for n in earlier if n != old]
    if old in node.inputs:
        new = [n for n in new if test.types[n] == test.types[old]]
    if not new:
        return None
    source = rng.choice(new)

    def swap(name: str) -> str:
        return source if name == old else name

    changed = replace(
        node,
        inputs=tuple(map(swap, node.inputs)),
        after=tuple(dict.fromkeys(map(swap, node.after))),
    )
    return f"edge {source}->{node.name} for {old}->{node.name}", _with(test, changed)


# --- nodes -----------------------------------------------------------------------------


def other_op(rng: random.Random, test: LitmusTest) -> Edited:
    """Replace the op of a node by another one of its kind."""
    nodes = _nodes(test)
    if not nodes:
        return None
    node = rng.choice(nodes)
    shape = test.type_of(node.resources[0]).shape if node.definition.on_variables else ()
    others = [
        op
        for group in _INTERCHANGEABLE
        for op in group
        if node.op in group and op != node.op and (shape or not OPS[op].sparse)
    ]
    if not others:
        return None
    op = rng.choice(others)
    attrs = node.attrs
    if OPS[op].attrs is not OPS[node.op].attrs:
        attrs = _whole(OPS[op].attrs, shape[0] if shape else 0)
    changed = replace(node, op=op, attrs=attrs)
    return f"{node.name} is {op}", _with(test, changed)


def _whole(attrs: type[Attrs] | None, rows: int) -> Attrs | None:
    """Attributes of that type that select all rows."""
    if attrs is RowsAttrs:
        return RowsAttrs(tuple(range(rows)))
    return SliceAttrs(0, rows, 1) if attrs is SliceAttrs else None


def other_constant(rng: random.Random, test: LitmusTest) -> Edited:
    """Change a constant, or the initial contents of a variable."""
    value = rng.choice((0, 1, 1, 2, 3, rng.randint(4, 200)))
    places: list[Node | Variable] = [*_nodes(test, "Const"), *test.variables]
    if not places:
        return None
    place = rng.choice(places)
    if not isinstance(place, Node):
        variables = (replace(v, init=value) if v is place else v for v in test.variables)
        description = f"{place.name}={value} at first"
        return description, replace(Rewriter.of(test), variables=tuple(variables))
    assert isinstance(place.attrs, ConstAttrs)
    value = value % 2 if place.attrs.dtype == BOOL else value
    attrs = replace(place.attrs, value=value)
    return f"{place.name}={value}", _with(test, replace(place, attrs=attrs))


def other_resource(rng: random.Random, test: LitmusTest) -> Edited:
    """Move a node to another resource; a variable may be new."""
    nodes = [node for node in _nodes(test) if node.resources]
    if not nodes:
        return None
    node = rng.choice(nodes)
    place = rng.randrange(len(node.resources))
    old = next(each for each in test.resources if each.name == node.resources[place])
    others = [each.name for each in test.resources if type(each) is type(old) and each is not old]
    rewriter = Rewriter.of(test)
    new = ""
    if node.definition.on == "variable" and (not others or rng.random() < 0.3):
        new = _names(test).numbered("V_")
        variable = replace(next(v for v in test.variables if v is old), name=new)
        rewriter = replace(rewriter, variables=(*rewriter.variables, variable))
    elif not others:
        return None
    new = new or rng.choice(others)
    resources = (*node.resources[:place], new, *node.resources[place + 1 :])
    return f"{node.name} on {new}", rewriter.with_node(replace(node, resources=resources))


def duplicate_node(rng: random.Random, test: LitmusTest) -> Edited:
    """Duplicate a node, with the same inputs."""
    nodes = [
        node for node in _nodes(test) if node.resources and node.definition.kind is not Kind.SECTION
    ]
    if not nodes:
        return None
    node = rng.choice(nodes)
    copy = replace(node, name=_names(test).numbered(f"{node.name[:56]}_"))

    def edit(body: Body) -> Body:
        twice = (each for n in body.nodes for each in ((n, copy) if n.name == node.name else (n,)))
        return replace(body, nodes=tuple(twice))

    return f"{node.name} twice", _observing(
        Rewriter.of(test).each_level(edit), {node.name: copy.name}
    )


def wrap(rng: random.Random, test: LitmusTest) -> Edited:
    """Add a critical section around one or two ops, on a new or existing mutex."""
    everywhere = [level.nodes for graph in test.graphs for level in levels(graph)]
    holding = [nodes for nodes in everywhere if any(n.resources for n in nodes)]
    if not holding:
        return None
    ops = [
        n
        for n in rng.choice(holding)
        if n.definition.has_effect and n.definition.kind is not Kind.SECTION
    ]
    if not ops:
        return None
    first = rng.randrange(len(ops))
    members = tuple(n.name for n in ops[first : first + rng.choice((1, 2, 2))])
    mutexes = test.mutexes
    if not mutexes or rng.random() < 0.3:
        mutexes = (*mutexes, Mutex(_names(test).numbered("M_")))
    mutex = rng.choice(mutexes).name
    section = Node(
        _names(test).numbered("s_"),
        "CriticalSection",
        resources=(mutex,),
        attrs=SectionAttrs(members),
    )

    def edit(body: Body) -> Body:
        inside = any(n.name == members[0] for n in body.nodes)
        return replace(body, nodes=(*body.nodes, section)) if inside else body

    rewriter = replace(Rewriter.of(test), mutexes=mutexes).each_level(edit)
    return f"section on {mutex} around {' '.join(members)}", rewriter


# --- whole tests -----------------------------------------------------------------------


def other_dtype(rng: random.Random, test: LitmusTest) -> Edited:
    """Replace a dtype in the whole test."""
    found = {each.dtype for each in _holding(test)}
    if not found:
        return None
    old = rng.choice(sorted(found))
    new = rng.choice([dtype for dtype in DTYPES if dtype != old])
    return f"{new} for {old}", with_dtype(test, old, new)


def other_lanes(rng: random.Random, test: LitmusTest) -> Edited:
    """Change the lanes of all values with rows; without any, add a row and lanes to all values."""
    lanes = rng.choice(_LANES)
    description = f"lanes {list(lanes)}"
    if any(each.shape for each in _holding(test)):

        def of(kind: TensorType) -> tuple[int, ...]:
            return (*kind.shape[:1], *lanes) if kind.shape else ()

        return description, refitted(test, of)
    shape = (1, *lanes)

    def widened(node: Node) -> Node:
        if isinstance(node.attrs, ConstAttrs) and node.attrs.dtype != BOOL:
            return replace(node, attrs=replace(node.attrs, shape=shape))
        return node

    rewriter = Rewriter.of(test).each_node(widened)
    variables = tuple(replace(v, shape=shape) for v in rewriter.variables)
    queues = tuple(replace(q, shape=shape) for q in rewriter.queues)
    accumulators = tuple(replace(a, shape=shape) for a in rewriter.accumulators)
    changed = replace(rewriter, variables=variables, queues=queues, accumulators=accumulators)
    return description, changed


def other_bound(rng: random.Random, test: LitmusTest) -> Edited:
    """Change `parallel_iterations` of a loop, or the capacity of a queue."""
    places: list[Node | Queue] = [*_nodes(test, "While"), *test.queues]
    if not places:
        return None
    place = rng.choice(places)
    bound = rng.choice((1, 1, 2, 3, 10))
    if isinstance(place, Node):
        assert isinstance(place.attrs, LoopAttrs)
        attrs = replace(place.attrs, parallel_iterations=bound)
        description = f"{place.name}: {bound} parallel iterations"
        return description, _with(test, replace(place, attrs=attrs))
    queues = (replace(q, capacity=bound) if q is place else q for q in test.queues)
    return f"{place.name}: capacity {bound}", replace(Rewriter.of(test), queues=tuple(queues))


def other_client(rng: random.Random, test: LitmusTest) -> Edited:
    """Change the order of two runs; for a single run, add a second one."""
    rewriter = Rewriter.of(test)
    if len(rewriter.client) == 1:
        (run,) = rewriter.client
        name = _names(test).numbered("again_")
        again = replace(run, name=name, after=rng.choice(((), (run.name,))))
        observe = (*rewriter.observe, *((again.name, key) for _, key in rewriter.observe))
        how = "after itself" if again.after else "concurrent with itself"
        return f"{run.graph} {how}", replace(
            rewriter, client=(*rewriter.client, again), observe=observe
        )
    i, j = sorted(rng.sample(range(len(rewriter.client)), 2))
    first, second = rewriter.client[i], rewriter.client[j]
    client = list(rewriter.client)
    how = rng.choice(("swap", "toggle"))
    if how == "swap":  # their graphs, and the values that are observed of them
        client[i], client[j] = (
            replace(second, name=first.name, after=first.after),
            replace(first, name=second.name, after=second.after),
        )
        names = {first.name: second.name, second.name: first.name}
        observe = tuple((names.get(run, run), key) for run, key in rewriter.observe)
        description = f"{first.name} and {second.name} swapped"
        return description, replace(rewriter, client=tuple(client), observe=observe)
    ordered = first.name in second.after
    after = tuple(n for n in second.after if n != first.name)
    client[j] = replace(second, after=after if ordered else (*after, first.name))
    description = f"{second.name} {'concurrent with' if ordered else 'after'} {first.name}"
    return description, replace(rewriter, client=tuple(client))


def duplicate_chain(rng: random.Random, test: LitmusTest) -> Edited:
    """Duplicate a chain."""
    graph = rng.choice(test.graphs)
    chains = [c for c in _chains(graph.nodes) if not any(bodies(node) for node in c)]
    if not chains:
        return None
    chain = rng.choice(chains)
    fresh = _names(test)
    copied = {node.name: fresh.numbered(f"{node.name[:56]}_") for node in chain}
    # `redirected` to the same names drops control edges that a data edge implies.
    copies = tuple(renamed(redirected(node, str), copied) for node in chain)
    rewriter = Rewriter.of(test)
    graphs = (replace(g, nodes=(*g.nodes, *copies)) if g is graph else g for g in rewriter.graphs)
    description = f"chain of {_first(chain)} twice"
    return description, _observing(replace(rewriter, graphs=tuple(graphs)), copied)


def move_chain(rng: random.Random, test: LitmusTest) -> Edited:
    """Move a chain to a new graph, which runs concurrently."""
    if len(test.runs) > 1:
        return None
    (run,), nodes = test.runs, test.graphs[0].nodes
    chains = _chains(nodes)
    if len(chains) < 2:
        return None
    chain = rng.choice(chains)
    names = {node.name for node in chain}
    # Constants that both use are copied.
    used = {ref for node in chain for ref in node.sources.union(node.members)} - names
    fresh = _names(test)
    copied = {name: fresh.numbered(f"{name[:56]}_") for name in sorted(used)}
    constants = tuple(replace(n, name=copied[n.name]) for n in nodes if n.name in copied)
    moved = tuple(redirected(node, lambda n: copied.get(n, n)) for node in chain)
    other = fresh.numbered("beside_")
    rewriter = Rewriter.of(test)
    rest = tuple(node for node in nodes if node.name not in names)
    left, right = _shared_out(run, names, copied)
    if run.wanted and not (left.wanted and right.wanted):
        return None  # one of the two would execute its whole graph
    return f"chain of {_first(chain)} in a graph of its own", replace(
        rewriter,
        graphs=(Graph(run.graph, rest), Graph(other, (*constants, *moved))),
        client=(replace(left, name=run.graph), replace(right, name=other, graph=other)),
        observe=tuple(
            (other if head(key) in names else run.graph, key) for _, key in rewriter.observe
        ),
    )


EDITS: Final[tuple[Callable[[random.Random, LitmusTest], Edited], ...]] = (
    *(drop_edge, drop_edge, add_edge, redirect_edge, other_op, other_op, other_constant),
    *(other_resource, duplicate_node, wrap, other_dtype, other_lanes, other_bound),
    *(other_client, duplicate_chain, move_chain),
)
"""All edits, each as often as it is to be tried."""


# --- what edits need --------------------------------------------------------------------


def _with(test: LitmusTest, node: Node) -> Rewriter:
    return Rewriter.of(test).with_node(node)


def _holding(test: LitmusTest) -> tuple[Variable | Queue, ...]:
    """Variables and queues."""
    return (*test.variables, *test.queues)


def _nodes(test: LitmusTest, op: str = "") -> list[Node]:
    """All nodes, or those with one op."""
    nodes = test.nodes
    return [node for node in nodes if op in ("", node.op)]


def _place(rng: random.Random, test: LitmusTest) -> tuple[Node, list[str]] | None:
    """A random node and the nodes before it in its body, without constants."""
    filled = [each.nodes for graph in test.graphs for each in levels(graph) if each.nodes]
    if not filled:
        return None
    level = [node for node in rng.choice(filled) if not node.definition.constant]
    level = level or [node for node in filled[0] if not node.definition.constant] or list(filled[0])
    position = rng.randrange(len(level))
    return level[position], [node.name for node in level[:position]]


def _chains(nodes: Sequence[Node]) -> list[list[Node]]:
    """Chains: nodes connected by edges, where constants connect nothing."""
    group: dict[str, set[str]] = {}
    for node in nodes:
        if node.definition.constant and not node.after:
            continue
        joined = {node.name}.union(
            *(group[r] for r in node.sources.union(node.members) if r in group)
        )
        for name in joined:
            group[name] = joined
    found = {id(names): names for names in group.values()}
    return [[node for node in nodes if node.name in names] for names in found.values()]


def _first(chain: Sequence[Node]) -> str:
    """Name of the first node of a chain that has an effect."""
    return next((node.name for node in chain if node.definition.has_effect), chain[0].name)


def _names(test: LitmusTest) -> FreshNames:
    """Source of names that nothing in the test has."""
    named = (*test.resources, *test.clusters, *test.graphs, *test.runs)
    return FreshNames((*test.types, *(each.name for each in named)))


def _observing(rewriter: Rewriter, copies: dict[str, str]) -> Rewriter:
    """The rewriter with the copies of observed values observed as well."""
    new = [(run, copies[key]) for run, key in rewriter.observe if key in copies]
    client = (
        replace(
            run,
            fetches=(*run.fetches, *(copies[name] for name in run.fetches if name in copies)),
            targets=(*run.targets, *(copies[name] for name in run.targets if name in copies)),
            feeds=(*run.feeds, *((copies[n], value) for n, value in run.feeds if n in copies)),
        )
        for run in rewriter.client
    )
    return replace(rewriter, client=tuple(client), observe=(*rewriter.observe, *new))


def _shared_out(run: Run, moved: set[str], copied: Mapping[str, str]) -> tuple[Run, Run]:
    """What a run asks for of the nodes that stay, and of those that are moved or copied."""
    stays, goes = (
        replace(
            run,
            fetches=tuple(name for name in run.fetches if (head(name) in moved) is there),
            targets=tuple(name for name in run.targets if (head(name) in moved) is there),
        )
        for there in (False, True)
    )
    fed = {name: value for name, value in run.feeds if name in moved}
    fed |= {copied[name]: value for name, value in run.feeds if name in copied}
    kept = tuple(each for each in run.feeds if each[0] not in moved)
    return replace(stays, feeds=kept), replace(goes, feeds=tuple(fed.items()))
