"""The passes of a reduction: from one test to smaller ones, the coarsest first.

A pass yields rewriters; what is no test is left out by the reducer, so that a
pass need not know every rule of the format. Each looks at all graphs and
bodies alike.

References
----------
Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input",
TSE 2002, section 3 (ddmin): in halves before one by one.
MacIver and Donaldson, "Test-Case Reduction via Test-Case Generation", ECOOP
2020, section 3: passes in an order from coarse to fine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Final

from litmusfuzz.corpus.model import (
    Body,
    BranchAttrs,
    Graph,
    LitmusTest,
    LoopAttrs,
    Node,
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

Pass = Callable[[LitmusTest], Iterator[Rewriter]]


def _groups(names: Sequence[str]) -> Iterator[frozenset[str]]:
    """Halves, quarters, and so on to single ones."""
    size = max(1, len(names) // 2)
    while names:
        for start in range(0, len(names), size):
            yield frozenset(names[start : start + size])
        if size == 1:
            return
        size //= 2


def _nodes(test: LitmusTest) -> Iterator[Node]:
    for graph in test.graphs:
        yield from all_nodes(graph.nodes)


def _only_computes(node: Node) -> bool:
    return not node.resources and not bodies(node)


# --- runs, nodes, bodies ---------------------------------------------------------------


def drop_runs(test: LitmusTest) -> Iterator[Rewriter]:
    """Fewer runs."""
    for group in _groups([run.name for run in test.runs]):
        if len(group) < len(test.runs):
            yield Rewriter.of(test).without_runs(group)


def drop_effects(test: LitmusTest) -> Iterator[Rewriter]:
    """Fewer nodes that do something; a loop or branch goes with all that it holds."""
    effects = [node.name for node in test.effects]
    for group in _groups(effects):
        if len(group) < len(effects):
            yield Rewriter.of(test).without(group, test.types)


def join_runs(test: LitmusTest) -> Iterator[Rewriter]:
    """Two concurrent runs of two graphs become one run of both."""
    rewriter = Rewriter.of(test)
    graphs = {graph.name: graph for graph in rewriter.graphs}
    for kept, gone in combinations(rewriter.client, 2):
        once = all(sum(r.graph == run.graph for r in rewriter.client) == 1 for run in (kept, gone))
        if not once or kept.after != gone.after:
            continue
        nodes = graphs[kept.graph].nodes + graphs[gone.graph].nodes
        client = (
            replace(
                r, after=tuple(dict.fromkeys(kept.name if a == gone.name else a for a in r.after))
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


def inline(test: LitmusTest) -> Iterator[Rewriter]:
    """A branch's nodes, or those of one iteration, in the place of the node around them.

    What comes after that node comes after them; or else not even that: what is in a loop may
    run beside what waits for the loop's values.
    """
    for node in _nodes(test):
        attrs = node.attrs
        whole = Rewriter.of(test)
        free = whole.each_node(partial(_not_after, node.name))
        for rewriter in (whole,) if free == whole else (whole, free):
            if isinstance(attrs, BranchAttrs):
                inner = dict(attrs.captures)
                for body in (attrs.then, attrs.orelse):
                    # They come after the predicate, whatever it is.
                    yield _inlined(rewriter, node, body, inner, attrs.results, node.inputs)
            elif isinstance(attrs, LoopAttrs):
                inner = dict(attrs.captures) | dict(zip(attrs.carried, node.inputs, strict=True))
                both = Body(attrs.condition.nodes + attrs.body.nodes, attrs.body.results)
                for body in (attrs.body, both):
                    yield _inlined(rewriter, node, body, inner, attrs.carried, ())


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
    """A smaller limit: one iteration, half of them, one less."""
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
    """A carried value, not the counter, becomes what it is at first."""
    for node in _nodes(test):
        if not isinstance(node.attrs, LoopAttrs):
            continue
        attrs = node.attrs
        for place in range(1, len(attrs.carried)):
            name, first = attrs.carried[place], node.inputs[place]
            results = attrs.body.results
            smaller = replace(
                attrs,
                carried=attrs.carried[:place] + attrs.carried[place + 1 :],
                captures=(*attrs.captures, (name, first)),
                body=replace(attrs.body, results=results[:place] + results[place + 1 :]),
            )
            inputs = node.inputs[:place] + node.inputs[place + 1 :]
            refs = {f"{node.name}.{name}": first}
            rewriter = Rewriter.of(test).each_level(partial(_swapped, refs))
            observe = tuple(each for each in rewriter.observe if each[1] not in refs)
            rewriter = replace(rewriter, observe=observe)
            yield rewriter.with_node(replace(node, attrs=smaller, inputs=inputs))


def _swapped(refs: dict[str, str], body: Body) -> Body:
    def swap(ref: str) -> str:
        return refs.get(ref, ref)

    nodes = tuple(redirected(node, swap) for node in body.nodes)
    return Body(nodes, tuple(map(swap, body.results)))


def drop_members(test: LitmusTest) -> Iterator[Rewriter]:
    """A node is no longer in a section, or in a cluster."""
    for node in _nodes(test):
        if isinstance(node.attrs, SectionAttrs):
            for member in node.attrs.members:
                fewer = tuple(name for name in node.attrs.members if name != member)
                yield Rewriter.of(test).with_node(replace(node, attrs=SectionAttrs(fewer)))
    rewriter = Rewriter.of(test)
    for place, cluster in enumerate(rewriter.clusters):
        for member in cluster.members:
            smaller = replace(cluster, members=tuple(m for m in cluster.members if m != member))
            kept = [*rewriter.clusters[:place], smaller, *rewriter.clusters[place + 1 :]]
            yield replace(rewriter, clusters=tuple(c for c in kept if c.members))


# --- values and edges ------------------------------------------------------------------


def drop_pure(test: LitmusTest) -> Iterator[Rewriter]:
    """A pure node's value becomes a constant."""
    for node in _nodes(test):
        if _only_computes(node) and not node.definition.constant:
            yield Rewriter.of(test).without({node.name}, test.types)


def bypass_pure(test: LitmusTest) -> Iterator[Rewriter]:
    """What uses a pure node uses one of its inputs instead."""
    for node in _nodes(test):
        if not _only_computes(node) or node.after:
            continue
        for name in dict.fromkeys(node.inputs):
            if test.types[name] == test.types[node.name]:
                yield Rewriter.of(test).instead(node.name, {node.name: name})


def cut_data(test: LitmusTest) -> Iterator[Rewriter]:
    """A value that is used becomes a constant, without an edge in its place."""
    constants = {node.name for node in _nodes(test) if node.definition.constant}

    for node in _nodes(test):
        refs = (*node.inputs, *(outer for _, outer in captures_of(node)))
        for which, ref in enumerate(dict.fromkeys(refs)):
            kind = test.types[ref]
            if ref in constants or kind is None:
                continue
            new = constant(f"{node.name}k{which}", kind)
            yield Rewriter.of(test).each_level(partial(_cut, node.name, ref, new))
    yield from _cut_results(test, constants)


def _cut(user: str, ref: str, new: Node, body: Body) -> Body:
    """`new` in the place of `ref` where the node `user` uses it."""
    nodes: list[Node] = []
    for node in body.nodes:
        if node.name == user:
            nodes.append(new)
            nodes.append(_using(node, {ref: new.name}))
        else:
            nodes.append(node)
    return replace(body, nodes=tuple(nodes))


def _using(node: Node, refs: dict[str, str]) -> Node:
    """The node with other inputs and captures, and the same control edges."""
    after = node.after
    swapped = redirected(replace(node, after=()), lambda ref: refs.get(ref, ref))
    return replace(swapped, after=after)


def _cut_results(test: LitmusTest, constants: set[str]) -> Iterator[Rewriter]:
    """A body returns a constant."""
    for node in _nodes(test):
        for which, (_, body) in enumerate(bodies(node)):
            for place, ref in enumerate(body.results):
                kind = test.types[ref]
                if ref in constants or kind is None:
                    continue
                new = constant(f"{node.name}k{which}r{place}", kind)
                results = (*body.results[:place], new.name, *body.results[place + 1 :])
                changed = Body((*body.nodes, new), results)
                yield Rewriter.of(test).with_node(
                    map_bodies(node, partial(_instead, body, changed))
                )


def _instead(old: Body, new: Body, body: Body) -> Body:
    # By identity: two bodies of a node may be equal.
    return new if body is old else body


def drop_edges(test: LitmusTest) -> Iterator[Rewriter]:
    """A control edge less, or a run that waits for one less."""
    for node in _nodes(test):
        for name in node.after:
            after = tuple(n for n in node.after if n != name)
            yield Rewriter.of(test).with_node(replace(node, after=after))
    rewriter = Rewriter.of(test)
    for place, run in enumerate(rewriter.client):
        for name in run.after:
            fewer = replace(run, after=tuple(n for n in run.after if n != name))
            client = (*rewriter.client[:place], fewer, *rewriter.client[place + 1 :])
            yield replace(rewriter, client=client)


def observe_less(test: LitmusTest) -> Iterator[Rewriter]:
    """Fewer values that are seen."""
    rewriter = Rewriter.of(test)
    for group in _groups(test.observe):
        kept = (
            each
            for key, each in zip(test.observe, rewriter.observe, strict=True)
            if key not in group
        )
        yield replace(rewriter, observe=tuple(kept))


def plainer_ops(test: LitmusTest) -> Iterator[Rewriter]:
    """An op becomes the plainest of its kind; an update also a write."""
    for node in _nodes(test):
        kind = node.definition.kind
        if kind is Kind.READ and not node.definition.whole_read:
            yield _with_op(test, node, "ReadVariableOp")
        elif kind is Kind.UPDATE:
            # In two steps, of which the first mostly fails: a scatter has another kernel.
            plainest = node.op == "AssignAddVariableOp"
            yield _with_op(test, node, "AssignVariableOp" if plainest else "AssignAddVariableOp")
        elif node.definition.several and node.definition.puts:
            yield _with_op(test, node, "QueueEnqueueV2")
        elif node.definition.several:
            yield _with_op(test, node, "QueueDequeueV2")


def _with_op(test: LitmusTest, node: Node, op: str) -> Rewriter:
    """Another op on the node's first resource, with an input of its type if it takes one."""
    kind = contents(test)[node.resources[0]]
    fitting = [name for name in node.inputs if test.types[name] == kind]
    before = [] if fitting or not OPS[op].operands else [constant(f"{node.name}v", kind)]
    inputs = [*fitting[-1:], *(each.name for each in before)] if OPS[op].operands else []
    changed = replace(node, op=op, inputs=tuple(inputs), resources=node.resources[:1], attrs=None)
    return Rewriter.of(test).each_level(partial(_put, (*before, changed)))


def _put(nodes: tuple[Node, ...], body: Body) -> Body:
    """Nodes in the place of the one with the last one's name."""
    found = (nodes if n.name == nodes[-1].name else (n,) for n in body.nodes)
    return replace(body, nodes=tuple(node for each in found for node in each))


# --- resources -------------------------------------------------------------------------


def merge_resources(test: LitmusTest) -> Iterator[Rewriter]:
    """Two variables become one, or two mutexes, or two queues."""
    pairs = [
        *((a.name, b.name) for a, b in combinations(test.variables, 2) if a.type == b.type),
        *((a.name, b.name) for a, b in combinations(test.mutexes, 2)),
        *((a.name, b.name) for a, b in combinations(test.queues, 2) if a.type == b.type),
    ]
    for kept, gone in pairs:
        yield Rewriter.of(test).each_node(partial(_on, kept, gone))


def _on(kept: str, gone: str, node: Node) -> Node:
    """The node on one resource in place of another."""
    resources = tuple(kept if name == gone else name for name in node.resources)
    return replace(node, resources=resources)


def smaller_queues(test: LitmusTest) -> Iterator[Rewriter]:
    """Fewer initial elements, a smaller capacity, fewer elements at once."""
    rewriter = Rewriter.of(test)
    for place, queue in enumerate(rewriter.queues):
        rest = [queue.init[:i] + queue.init[i + 1 :] for i in range(len(queue.init))]
        smaller = [replace(queue, init=init) for init in ((), *rest)] if queue.init else []
        for capacity in dict.fromkeys((max(1, len(queue.init)), queue.capacity - 1)):
            if len(queue.init) <= capacity < queue.capacity and capacity:
                smaller.append(replace(queue, capacity=capacity))
        for each in smaller:
            queues = (*rewriter.queues[:place], each, *rewriter.queues[place + 1 :])
            yield replace(rewriter, queues=queues)
    for node in _nodes(test):
        if isinstance(node.attrs, CountAttrs) and node.attrs.count > 1:
            yield fewer_rows_touched(test, node, CountAttrs(node.attrs.count - 1))


def drop_devices(test: LitmusTest) -> Iterator[Rewriter]:
    """All on the default device, or one variable."""
    rewriter = Rewriter.of(test)
    placed = [v.name for v in rewriter.variables if v.device]
    for gone in (frozenset(placed), *_groups(placed)) if placed else ():
        variables = (replace(v, device="") if v.name in gone else v for v in rewriter.variables)
        yield replace(rewriter, variables=tuple(variables))


def fewer_rows(test: LitmusTest) -> Iterator[Rewriter]:
    """Fewer rows touched by an op, then fewer rows at all, then of values by themselves."""
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
            # What an EnqueueMany puts, or values that meet no resource.
            count, *rest = node.attrs.shape
            yield shapes.resized({node.name: (count - 1, *rest) if count > 1 else tuple(rest)})


def _smaller_attrs(attrs: object) -> Iterator[Attrs]:
    if isinstance(attrs, RowsAttrs):
        for position in range(len(attrs.indices)):
            rest = attrs.indices[:position] + attrs.indices[position + 1 :]
            if rest:
                yield RowsAttrs(rest)
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
"""The one width of tests that need lanes.

Of a race that tears, TensorFlow shows a half of the executions at this width, where it
shows a hundredth of them at 32 lanes and takes half the time. And what is found twice ends
in one test, which it would not if each finding kept the least width that chance allowed it.
"""


def fewer_lanes(test: LitmusTest) -> Iterator[Rewriter]:
    """One lane, or else `LANES` of them."""
    if test.whole or not any(len(t.shape) > 1 for t in contents(test).values()):
        return
    yield refitted(test, partial(_with_lanes, ()))
    if _width(test) != LANES:
        yield refitted(test, partial(_with_lanes, (LANES,)))


def _with_lanes(lanes: tuple[int, ...], kind: TensorType) -> tuple[int, ...]:
    return (kind.shape[0], *lanes) if len(kind.shape) > 1 else kind.shape


def wider_lanes(test: LitmusTest) -> Iterator[Rewriter]:
    """No reduction: `LANES`, if there are fewer."""
    if not test.whole and 0 < _width(test) < LANES:
        yield refitted(test, lambda t: (t.shape[0], LANES) if t.shape else ())


def _width(test: LitmusTest) -> int:
    return max((v.type.size // v.shape[0] for v in test.variables if v.shape), default=0)


def simpler_dtype(test: LitmusTest) -> Iterator[Rewriter]:
    """All of int32, or else of float32."""
    dtypes = dict.fromkeys(t.dtype for t in contents(test).values())
    for new in ("int32", "float32"):
        if new in dtypes:
            return
        for old in dtypes:
            yield with_dtype(test, old, new)


def smaller_values(test: LitmusTest) -> Iterator[Rewriter]:
    """All values as small as they get at once; then one by one, distinct if necessary."""
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
        variables=tuple(replace(v, init=0) for v in rewriter.variables),
        queues=tuple(replace(q, init=(1,) * len(q.init)) for q in rewriter.queues),
    )
    for place, variable in enumerate(rewriter.variables):
        if variable.init != 0:
            variables = list(rewriter.variables)
            variables[place] = replace(variable, init=0)
            yield replace(rewriter, variables=tuple(variables))
    for place, queue in enumerate(rewriter.queues):
        small = tuple(range(1, len(queue.init) + 1))
        if queue.init != small:
            queues = list(rewriter.queues)
            queues[place] = replace(queue, init=small)
            yield replace(rewriter, queues=tuple(queues))
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
    drop_runs,
    drop_effects,
    inline,
    fewer_lanes,  # early: what shows often is quickly seen in each later candidate
    fewer_iterations,
    join_runs,
    drop_carried,
    drop_members,
    drop_pure,
    bypass_pure,
    cut_data,
    drop_edges,
    drop_devices,
    merge_resources,
    smaller_queues,
    fewer_rows,
    plainer_ops,
    smaller_values,
    simpler_dtype,
    observe_less,
)
"""From coarse to fine."""
