"""Passes of the test-case reducer: each yields smaller variants of a litmus test.

A pass yields rewriters, some of which build no valid test. The reducer skips those, so that a pass
need not know every rule of the format. Every pass covers all graphs, and all bodies of loops,
branches and calls. `PASSES` has them from coarse to fine.

References
----------
Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input",
TSE 2002, section 3 (ddmin): halves are removed before single elements.
MacIver and Donaldson, "Test-Case Reduction via Test-Case Generation", ECOOP
2020, section 3: passes in an order from coarse to fine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import combinations
from typing import Final, TypeVar

from litmusfuzz.corpus.model import (
    Body,
    BranchAttrs,
    CallAttrs,
    Graph,
    LitmusTest,
    LoopAttrs,
    NestAttrs,
    Node,
    Run,
    all_nodes,
    bodies,
    captures_of,
    map_bodies,
    redirected,
)
from litmusfuzz.corpus.ops import (
    BOOL,
    OPS,
    Attrs,
    ConstAttrs,
    CountAttrs,
    Kind,
    MomentumAttrs,
    RowsAttrs,
    SectionAttrs,
    SliceAttrs,
    TensorType,
)
from litmusfuzz.corpus.rewriter import Rewriter, constant
from litmusfuzz.corpus.shapes import Shapes, contents, fewer_rows_touched, refitted, with_dtype
from litmusfuzz.corpus.struct import replace

Pass = Callable[[LitmusTest], Iterator[Rewriter]]
T = TypeVar("T")


def _groups(names: Sequence[str]) -> Iterator[frozenset[str]]:
    """The halves of a list of names, then its quarters, down to single names."""
    size = max(1, len(names) // 2)
    while names:
        for start in range(0, len(names), size):
            yield frozenset(names[start : start + size])
        if size == 1:
            return
        size //= 2


def _spliced(parts: tuple[T, ...], place: int, *new: T) -> tuple[T, ...]:
    """The parts with `new`, which may be nothing, instead of the part at `place`."""
    return (*parts[:place], *new, *parts[place + 1 :])


def _nodes(test: LitmusTest) -> Iterator[Node]:
    for graph in test.graphs:
        yield from all_nodes(graph.nodes)


def _only_computes(node: Node) -> bool:
    return not node.resources and not bodies(node)


# --- runs, nodes, bodies ---------------------------------------------------------------


def drop_runs(test: LitmusTest) -> Iterator[Rewriter]:
    """Remove runs."""
    for group in _groups([run.name for run in test.runs]):
        if len(group) < len(test.runs):
            yield Rewriter.of(test).without_runs(group)


def drop_effects(test: LitmusTest) -> Iterator[Rewriter]:
    """Remove nodes with an effect; a loop or branch is removed with its bodies."""
    effects = [node.name for node in test.effects]
    for group in _groups(effects):
        if len(group) < len(effects):
            yield Rewriter.of(test).without(group, test.types)


def drop_interfaces(test: LitmusTest) -> Iterator[Rewriter]:
    """Remove the captures and results of loops, branches and calls that nothing uses.

    First all of them; then the results alone, and each capture, for which a call waits.
    """
    whole = Rewriter.of(test)
    yield whole.tidy(nodes=False)
    yield whole.tidy(nodes=False, captures=False)
    for node in _nodes(test):
        if isinstance(node.attrs, NestAttrs):
            for place in range(len(node.attrs.captures)):
                fewer = replace(node.attrs, captures=_spliced(node.attrs.captures, place))
                yield whole.with_node(replace(node, attrs=fewer))


def join_runs(test: LitmusTest) -> Iterator[Rewriter]:
    """Join two concurrent runs of different graphs into one run of a joint graph."""
    rewriter = Rewriter.of(test)
    graphs = {graph.name: graph for graph in rewriter.graphs}
    for kept, gone in combinations(rewriter.client, 2):
        once = all(sum(r.graph == run.graph for r in rewriter.client) == 1 for run in (kept, gone))
        whole = bool(kept.wanted) is bool(gone.wanted)
        if not once or kept.after != gone.after or not whole:
            continue
        nodes = graphs[kept.graph].nodes + graphs[gone.graph].nodes
        client = (
            replace(
                r if r is not kept else _both(kept, gone),
                after=tuple(dict.fromkeys(kept.name if a == gone.name else a for a in r.after)),
            )
            for r in rewriter.client
            if r is not gone
        )
        yield replace(
            rewriter,
            graphs=tuple(
                Graph(g.name, nodes if g.name == kept.graph else g.nodes)
                for g in rewriter.graphs
                if g.name != gone.graph
            ),
            client=tuple(client),
            observe=tuple(
                (kept.name if run == gone.name else run, key) for run, key in rewriter.observe
            ),
        )


def _both(one: Run, other: Run) -> Run:
    """The first run, which asks for what the other one asks for as well."""
    return replace(
        one,
        fetches=one.fetches + other.fetches,
        targets=one.targets + other.targets,
        feeds=one.feeds + other.feeds,
    )


def inline(test: LitmusTest) -> Iterator[Rewriter]:
    """Replace a loop, branch or call by the nodes of one of its bodies.

    Nodes with a control edge from it get control edges from all these nodes. A second variant
    drops those edges, because a node that uses a loop's results may run concurrently with other
    ops of the loop.
    """
    for node in _nodes(test):
        attrs = node.attrs
        whole = Rewriter.of(test)
        free = whole.each_node(partial(_not_after, node.name))
        for rewriter in (whole,) if free == whole else (whole, free):
            if isinstance(attrs, BranchAttrs):
                inner = dict(attrs.captures)
                for body in (attrs.then, attrs.orelse):
                    # Control edges keep the nodes after the predicate, whatever its value.
                    yield _inlined(rewriter, node, body, inner, attrs.results, node.inputs)
            elif isinstance(attrs, LoopAttrs):
                inner = dict(attrs.captures) | dict(zip(attrs.carried, node.inputs, strict=True))
                both = Body(attrs.condition.nodes + attrs.body.nodes, attrs.body.results)
                for body in (attrs.body, both):
                    yield _inlined(rewriter, node, body, inner, attrs.carried, ())
            elif isinstance(attrs, CallAttrs):
                inner = dict(attrs.captures)
                yield _inlined(rewriter, node, attrs.body, inner, attrs.results, ())


def _not_after(name: str, node: Node) -> Node:
    return replace(node, after=tuple(each for each in node.after if each != name))


def _inlined(
    rewriter: Rewriter,
    node: Node,
    body: Body,
    inner: dict[str, str],
    results: tuple[str, ...],
    gates: tuple[str, ...],
) -> Rewriter:
    def swap(ref: str) -> str:
        return inner.get(ref, ref)

    before = (*node.after, *gates)
    nodes = (
        redirected(replace(n, after=tuple(dict.fromkeys((*n.after, *before)))), swap)
        for n in body.nodes
    )
    refs = {
        f"{node.name}.{result}": swap(value)
        for result, value in zip(results, body.results, strict=True)
    }
    return rewriter.instead(node.name, refs, tuple(nodes))


# --- loops, sections -------------------------------------------------------------------


def fewer_iterations(test: LitmusTest) -> Iterator[Rewriter]:
    """Lower the limit of a loop: to one iteration, to half of them, by one."""
    counters = Counters(test)
    for node in _nodes(test):
        if not isinstance(node.attrs, LoopAttrs):
            continue
        if node.attrs.parallel_iterations != 10:
            attrs = replace(node.attrs, parallel_iterations=10)
            yield Rewriter.of(test).with_node(replace(node, attrs=attrs))
        bound = test.bounds[node.name]
        start, limit, step = counters.of(node)
        for fewer in dict.fromkeys((1, bound // 2, bound - 1)):
            if 0 < fewer < bound:
                most = _int(start) + (fewer - 1) * _int(step) + 1
                yield Rewriter.of(test).with_node(_valued(limit, most))


def drop_carried(test: LitmusTest) -> Iterator[Rewriter]:
    """Replace a carried value, other than the counter, by its initial value."""
    for node in _nodes(test):
        if not isinstance(node.attrs, LoopAttrs):
            continue
        attrs = node.attrs
        for place in range(1, len(attrs.carried)):
            name, first = attrs.carried[place], node.inputs[place]
            smaller = replace(
                attrs,
                carried=_spliced(attrs.carried, place),
                captures=(*attrs.captures, (name, first)),
                body=replace(attrs.body, results=_spliced(attrs.body.results, place)),
            )
            inputs = _spliced(node.inputs, place)
            refs = {f"{node.name}.{name}": first}
            rewriter = Rewriter.of(test).each_level(partial(_swapped, refs))
            observe = tuple(each for each in rewriter.observe if each[1] not in refs)
            client = (
                replace(run, fetches=tuple(name for name in run.fetches if name not in refs))
                for run in rewriter.client
            )
            rewriter = replace(rewriter, observe=observe, client=tuple(client))
            yield rewriter.with_node(replace(node, attrs=smaller, inputs=inputs))


def _swapped(refs: dict[str, str], body: Body) -> Body:
    def swap(ref: str) -> str:
        return refs.get(ref, ref)

    nodes = tuple(redirected(node, swap) for node in body.nodes)
    return Body(nodes, tuple(map(swap, body.results)))


def drop_members(test: LitmusTest) -> Iterator[Rewriter]:
    """Remove a node from a critical section, or from a cluster."""
    for node in _nodes(test):
        if isinstance(node.attrs, SectionAttrs):
            for member in range(len(node.attrs.members)):
                fewer = SectionAttrs(_spliced(node.attrs.members, member))
                yield Rewriter.of(test).with_node(replace(node, attrs=fewer))
    rewriter = Rewriter.of(test)
    for place, cluster in enumerate(rewriter.clusters):
        for member in range(len(cluster.members)):
            smaller = replace(cluster, members=_spliced(cluster.members, member))
            kept = _spliced(rewriter.clusters, place, smaller)
            yield replace(rewriter, clusters=tuple(c for c in kept if c.members))


# --- values and edges ------------------------------------------------------------------


def drop_pure(test: LitmusTest) -> Iterator[Rewriter]:
    """Replace a node without an effect by a constant, and remove a constant that nothing uses."""
    used = {name for node in _nodes(test) for name in node.references}
    used.update(name for n in _nodes(test) for _, body in bodies(n) for name in body.results)
    used.update(name for run in test.runs for name in run.wanted)
    for node in _nodes(test):
        if _only_computes(node) and not (node.definition.constant and node.name in used):
            yield Rewriter.of(test).without({node.name}, test.types)


def bypass_pure(test: LitmusTest) -> Iterator[Rewriter]:
    """Replace a node without an effect by one of its inputs."""
    for node in _nodes(test):
        if not _only_computes(node) or node.after:
            continue
        for name in dict.fromkeys(node.inputs):
            if test.types[name] == test.types[node.name]:
                yield Rewriter.of(test).instead(node.name, {node.name: name})


def drop_handles(test: LitmusTest) -> Iterator[Rewriter]:
    """Replace a handle by one of the variables that it stands for."""
    for node in _nodes(test):
        for name in node.resources if node.handle else ():
            yield Rewriter.of(test).with_node(replace(node, handle="", resources=(name,)))


def cut_data(test: LitmusTest) -> Iterator[Rewriter]:
    """Replace one use of a value by a constant, without a control edge in its place."""
    constants = {node.name for node in _nodes(test) if node.definition.constant}
    for node in _nodes(test):
        refs = (*node.inputs, *(outer for _, outer in captures_of(node)))
        for which, ref in enumerate(dict.fromkeys(refs)):
            kind = test.types[ref]
            if ref in constants or kind is None or not kind.is_tensor:
                continue
            new = constant(f"{node.name}k{which}", kind)
            cut = _using(node, {ref: new.name})
            yield Rewriter.of(test).each_level(partial(_put, (new, cut)))
    yield from _cut_results(test, constants)


def _using(node: Node, refs: dict[str, str]) -> Node:
    """The node with other inputs and captures, and the same control edges."""
    after = node.after
    swapped = redirected(replace(node, after=()), lambda ref: refs.get(ref, ref))
    return replace(swapped, after=after)


def _cut_results(test: LitmusTest, constants: set[str]) -> Iterator[Rewriter]:
    """Replace a result of a body by a constant."""
    for node in _nodes(test):
        for which, (_, body) in enumerate(bodies(node)):
            for place, ref in enumerate(body.results):
                kind = test.types[ref]
                if ref in constants or kind is None or not kind.is_tensor:
                    continue
                new = constant(f"{node.name}k{which}r{place}", kind)
                changed = Body((*body.nodes, new), _spliced(body.results, place, new.name))
                cut = map_bodies(node, partial(_instead, body, changed))
                yield Rewriter.of(test).with_node(cut)


def _instead(old: Body, new: Body, body: Body) -> Body:
    # By identity: two bodies of a node may be equal.
    return new if body is old else body


def drop_edges(test: LitmusTest) -> Iterator[Rewriter]:
    """Remove a control edge, or an edge between two runs."""
    for node in _nodes(test):
        for edge in range(len(node.after)):
            fewer = replace(node, after=_spliced(node.after, edge))
            yield Rewriter.of(test).with_node(fewer)
    rewriter = Rewriter.of(test)
    for place, run in enumerate(rewriter.client):
        for edge in range(len(run.after)):
            freer = replace(run, after=_spliced(run.after, edge))
            yield replace(rewriter, client=_spliced(rewriter.client, place, freer))


def observe_less(test: LitmusTest) -> Iterator[Rewriter]:
    """Observe fewer values."""
    rewriter = Rewriter.of(test)
    for group in _groups(test.observe):
        kept = (
            each
            for key, each in zip(test.observe, rewriter.observe, strict=True)
            if key not in group
        )
        yield replace(rewriter, observe=tuple(kept))


def differentiate_less(test: LitmusTest) -> Iterator[Rewriter]:
    """Leave out gradients."""
    rewriter = Rewriter.of(test)
    for group in _groups([each.name for each in test.variables if each.gradient]):
        kept = (replace(v, gradient=v.gradient and v.name not in group) for v in test.variables)
        yield replace(rewriter, variables=tuple(kept))


def ask_less(test: LitmusTest) -> Iterator[Rewriter]:
    """Let a run execute its whole graph, or fetch and target fewer nodes, or feed zeros."""
    rewriter = Rewriter.of(test)
    observed = set(rewriter.observe)
    for place, run in enumerate(rewriter.client):
        changed = []
        if run.wanted:
            changed.append(replace(run, fetches=(), targets=()))
        for group in _groups([name for name in run.wanted if (run.name, name) not in observed]):
            fewer = replace(
                run,
                fetches=tuple(name for name in run.fetches if name not in group),
                targets=tuple(name for name in run.targets if name not in group),
            )
            changed += [fewer] if fewer.wanted else []
        for fed, (name, value) in enumerate(run.feeds):
            if value != 0:
                changed.append(replace(run, feeds=_spliced(run.feeds, fed, (name, 0))))
        for each in changed:
            yield replace(rewriter, client=_spliced(rewriter.client, place, each))


def plainer_ops(test: LitmusTest) -> Iterator[Rewriter]:
    """Replace an op by the simplest one of its kind, and an update also by a write."""
    for node in _nodes(test):
        kind = node.definition.kind
        if kind is Kind.READ and not node.definition.whole_read:
            yield _with_op(test, node, "ReadVariableOp")
        elif kind is Kind.UPDATE:
            # In two steps: a sparse update has a kernel of its own, so the first mostly fails.
            plainest = node.op == "AssignAddVariableOp"
            yield _with_op(test, node, "AssignVariableOp" if plainest else "AssignAddVariableOp")
        elif node.definition.several and node.definition.puts:
            yield _with_op(test, node, "QueueEnqueueV2")
        elif node.definition.several:
            yield _with_op(test, node, "QueueDequeueV2")


def _with_op(test: LitmusTest, node: Node, op: str) -> Rewriter:
    """Replace a node's op; it uses the first resource, and an input of its type if it takes one."""
    kind = contents(test)[node.resources[0]]
    fitting = [name for name in node.inputs if test.types[name] == kind]
    before = [] if fitting or not OPS[op].operands else [constant(f"{node.name}v", kind)]
    inputs = [*fitting[-1:], *(each.name for each in before)] if OPS[op].operands else []
    changed = replace(node, op=op, inputs=tuple(inputs), resources=node.resources[:1], attrs=None)
    return Rewriter.of(test).each_level(partial(_put, (*before, changed)))


def _put(nodes: tuple[Node, ...], body: Body) -> Body:
    """Replace the node that has the name of the last of `nodes` by `nodes`."""
    found = (nodes if n.name == nodes[-1].name else (n,) for n in body.nodes)
    return replace(body, nodes=tuple(node for each in found for node in each))


# --- resources -------------------------------------------------------------------------


def merge_resources(test: LitmusTest) -> Iterator[Rewriter]:
    """Merge two variables of one type, two mutexes, two queues or two accumulators of one type."""
    pairs = [
        *((a.name, b.name) for a, b in combinations(test.variables, 2) if a.type == b.type),
        *((a.name, b.name) for a, b in combinations(test.mutexes, 2)),
        *((a.name, b.name) for a, b in combinations(test.queues, 2) if a.type == b.type),
        *((a.name, b.name) for a, b in combinations(test.accumulators, 2) if a.type == b.type),
    ]
    for kept, gone in pairs:
        yield Rewriter.of(test).each_node(partial(_on, kept, gone))


def _on(kept: str, gone: str, node: Node) -> Node:
    """The node with resource `gone` replaced by `kept`."""
    resources = tuple(kept if name == gone else name for name in node.resources)
    return replace(node, resources=resources)


def smaller_queues(test: LitmusTest) -> Iterator[Rewriter]:
    """Shrink queues: fewer initial elements, a lower capacity, fewer elements of a many-op."""
    rewriter = Rewriter.of(test)
    for place, queue in enumerate(rewriter.queues):
        rest = [_spliced(queue.init, i) for i in range(len(queue.init))]
        smaller = [replace(queue, init=init) for init in ((), *rest)] if queue.init else []
        for capacity in dict.fromkeys((max(1, len(queue.init)), queue.capacity - 1)):
            if len(queue.init) <= capacity < queue.capacity and capacity:
                smaller.append(replace(queue, capacity=capacity))
        for each in smaller:
            yield replace(rewriter, queues=_spliced(rewriter.queues, place, each))
    for node in _nodes(test):
        if isinstance(node.attrs, CountAttrs) and node.attrs.count > 1:
            yield fewer_rows_touched(test, node, CountAttrs(node.attrs.count - 1))


def drop_devices(test: LitmusTest) -> Iterator[Rewriter]:
    """Move variables to the default device: all, then groups, then single ones."""
    rewriter = Rewriter.of(test)
    placed = [v.name for v in rewriter.variables if v.device]
    for gone in (frozenset(placed), *_groups(placed)) if placed else ():
        variables = (replace(v, device="") if v.name in gone else v for v in rewriter.variables)
        yield replace(rewriter, variables=tuple(variables))


def fewer_rows(test: LitmusTest) -> Iterator[Rewriter]:
    """Reduce the rows that an op touches, then those of all tensors, then those of constants."""
    if test.whole:
        return
    for node in _nodes(test):
        for attrs in _smaller_attrs(node.attrs):
            yield fewer_rows_touched(test, node, attrs)
    rows = max((t.shape[0] for t in contents(test).values() if t.shape), default=0)
    if rows > 1:
        yield refitted(test, lambda t: (min(t.shape[0], rows - 1), *t.shape[1:]) if t.shape else ())
    elif rows == 1:
        yield refitted(test, lambda t: t.shape[1:])
    shapes = Shapes(test)
    for node in _nodes(test):
        alone = not any(shapes.together(node.name, name) for name in contents(test))
        if isinstance(node.attrs, ConstAttrs) and node.attrs.shape and alone:
            # Elements of an EnqueueMany, or values that no op combines with a resource.
            count, *rest = node.attrs.shape
            yield shapes.resized({node.name: (count - 1, *rest) if count > 1 else tuple(rest)})


def _smaller_attrs(attrs: object) -> Iterator[Attrs]:
    if isinstance(attrs, RowsAttrs):
        for position in range(len(attrs.indices)):
            if len(attrs.indices) > 1:
                yield RowsAttrs(_spliced(attrs.indices, position))
        if attrs.indices != tuple(range(len(attrs.indices))):
            yield RowsAttrs(tuple(range(len(attrs.indices))))
    if isinstance(attrs, SliceAttrs):
        if len(attrs.rows) > 1:
            yield SliceAttrs(attrs.begin, attrs.begin + 1, 1)
        if attrs.begin:
            yield SliceAttrs(0, attrs.end - attrs.begin, attrs.strides)
        if attrs.strides > 1:
            yield SliceAttrs(attrs.begin, attrs.end, 1)
    if isinstance(attrs, MomentumAttrs) and attrs.use_nesterov:
        yield MomentumAttrs(use_nesterov=False)


LANES: Final = 4096
"""The width of a row in every reduced test with more than one lane.

TensorFlow tears values much more often at this width than at 32 lanes. One width for all tests
also makes two reductions of one defect end in the same test; the least width that still shows a
finding depends on chance.
"""


def narrower(test: LitmusTest) -> Iterator[Rewriter]:
    """Reduce more lanes than `LANES` to `LANES`, or else to the least power of two that shows.

    Halves the distance to the present number of lanes as long as a candidate does not show.
    """
    lanes = 0 if test.whole else width(test)
    low, high = LANES.bit_length() - 1, (lanes - 1).bit_length()
    while low < high and lanes > LANES:
        yield refitted(test, partial(_with_lanes, (1 << low,)))
        low = max(low + 1, (low + high) // 2)


def give_values(test: LitmusTest) -> Iterator[Rewriter]:
    """Give variables without a value 0, else 1: all of them, then groups, then single ones.

    With 0, a product would not show; with 1, an assignment of 1.
    """
    rewriter = Rewriter.of(test)
    without = [v.name for v in rewriter.variables if v.init is None]
    for names in (frozenset(without), *_groups(without)) if without else ():
        for value in (0, 1):
            given = (replace(v, init=value) if v.name in names else v for v in rewriter.variables)
            yield replace(rewriter, variables=tuple(given))


def fewer_lanes(test: LitmusTest) -> Iterator[Rewriter]:
    """Reduce the lanes to one, or else set them to `LANES`."""
    if test.whole or not any(len(t.shape) > 1 for t in contents(test).values()):
        return
    yield refitted(test, partial(_with_lanes, ()))
    if width(test) != LANES:
        yield refitted(test, partial(_with_lanes, (LANES,)))


def _with_lanes(lanes: tuple[int, ...], kind: TensorType) -> tuple[int, ...]:
    return (kind.shape[0], *lanes) if len(kind.shape) > 1 else kind.shape


def wider_lanes(test: LitmusTest) -> Iterator[Rewriter]:
    """Widen rows to `LANES` lanes if they have fewer; the opposite of a reduction."""
    if not test.whole and 0 < width(test) < LANES:
        yield refitted(test, lambda t: (t.shape[0], LANES) if t.shape else ())


def width(test: LitmusTest) -> int:
    """Lanes of the widest variable; 0 if all are scalars."""
    return max((v.type.size // v.shape[0] for v in test.variables if v.shape), default=0)


def simpler_dtype(test: LitmusTest) -> Iterator[Rewriter]:
    """Give all tensors one dtype: int32, or else float32."""
    dtypes = dict.fromkeys(t.dtype for t in contents(test).values())
    for new in ("int32", "float32"):
        if new in dtypes:
            return
        for old in dtypes:
            yield with_dtype(test, old, new)


def smaller_values(test: LitmusTest) -> Iterator[Rewriter]:
    """Minimize all values at once; then one by one, and distinct where they must be."""
    rewriter = Rewriter.of(test)
    counters = Counters(test).names
    numbers = [
        node
        for node in rewriter.nodes
        if isinstance(node.attrs, ConstAttrs)
        and node.attrs.dtype != BOOL
        and node.name not in counters
    ]
    names = {node.name for node in numbers}
    yield replace(
        rewriter.each_node(lambda node: _valued(node, 1) if node.name in names else node),
        variables=tuple(replace(v, init=v.init and 0) for v in rewriter.variables),
        queues=tuple(replace(q, init=(1,) * len(q.init)) for q in rewriter.queues),
    )
    for place, variable in enumerate(rewriter.variables):
        if variable.init not in (None, 0):
            small_variable = replace(variable, init=0)
            yield replace(rewriter, variables=_spliced(rewriter.variables, place, small_variable))
    for place, queue in enumerate(rewriter.queues):
        small = tuple(range(1, len(queue.init) + 1))
        if queue.init != small:
            small_queue = replace(queue, init=small)
            yield replace(rewriter, queues=_spliced(rewriter.queues, place, small_queue))
    for number, node in enumerate(numbers, start=1):
        assert isinstance(node.attrs, ConstAttrs)
        for value in (1, number):
            if isinstance(node.attrs.value, int) and abs(node.attrs.value) <= value:
                break
            yield rewriter.with_node(_valued(node, value))


# --- counters --------------------------------------------------------------------------


class Counters:
    """The constants that bound loops (`corpus.model.loop_bound`)."""

    def __init__(self, test: LitmusTest) -> None:
        self._nodes = {node.name: node for node in _nodes(test)}
        self._taken = {inner: outer for n in _nodes(test) for inner, outer in captures_of(n)}
        loops = [node for node in _nodes(test) if isinstance(node.attrs, LoopAttrs)]
        self.names = {each.name for loop in loops for each in self.of(loop)}

    def of(self, loop: Node) -> tuple[Node, Node, Node]:
        """A loop's start, limit and step."""
        attrs = loop.attrs
        assert isinstance(attrs, LoopAttrs)
        less = self._nodes[attrs.condition.results[0]]
        if less.op == "Select":
            less = self._nodes[less.inputs[0]]
        step = self._nodes[attrs.body.results[0]]
        return (
            self._constant(loop.inputs[0]),
            self._constant(less.inputs[1]),
            self._constant(step.inputs[1]),
        )

    def _constant(self, name: str) -> Node:
        while name in self._taken:
            name = self._taken[name]
        return self._nodes[name]


def _int(node: Node) -> int:
    assert isinstance(node.attrs, ConstAttrs)
    assert isinstance(node.attrs.value, int)
    return node.attrs.value


def _valued(node: Node, value: int) -> Node:
    assert isinstance(node.attrs, ConstAttrs)
    return replace(node, attrs=replace(node.attrs, value=value))


PASSES: Final[tuple[Pass, ...]] = (
    narrower,  # first: an execution of a large test takes long
    drop_runs,
    drop_interfaces,  # early: what they bring in stays otherwise
    drop_effects,
    give_values,  # early: one that fails takes long too, and no cluster of it is validated
    inline,
    fewer_lanes,  # early: at `LANES` lanes a finding is frequent, and later passes are fast
    fewer_iterations,
    join_runs,
    drop_carried,
    drop_members,
    drop_handles,
    drop_pure,
    bypass_pure,
    cut_data,
    drop_edges,
    ask_less,
    drop_devices,
    merge_resources,
    smaller_queues,
    fewer_rows,
    plainer_ops,
    smaller_values,
    simpler_dtype,
    observe_less,
    differentiate_less,
)
"""All passes, from coarse to fine."""
