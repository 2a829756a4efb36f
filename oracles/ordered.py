"""Whether a test orders two of its nodes, in all executions that reach both.

A path of edges is no proof: what a branch uses that is not taken, nobody waits for; and nodes of a
branch that is never taken have no order to keep.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model import (
    Body,
    FreshNames,
    LoopAttrs,
    MalformedTest,
    Naming,
    NestAttrs,
    Node,
    TensorType,
    Variable,
    all_nodes,
    captures_of,
    levels,
    map_levels,
    map_nodes,
)
from litmusfuzz.corpus.ops import ConstAttrs, Kind
from litmusfuzz.corpus.outcome import Status
from litmusfuzz.corpus.struct import replace
from litmusfuzz.oracles.errors import NoAllowedSet
from litmusfuzz.oracles.explorer import DEFAULT_BUDGET, allowed_outcomes
from litmusfuzz.oracles.model import RFC

if TYPE_CHECKING:
    from collections.abc import Sequence

    from litmusfuzz.corpus.model import Graph, LitmusTest, Run
    from litmusfuzz.oracles.explorer import Budget

_BASE: Final = 256
"""The counters of nested loops are the digits of one number; the outermost may be larger."""
_MAX_DIGITS: Final = 3
"""With more, twice the number may reach 2**24."""


class _NotAsked(Exception):
    """Iterations cannot be distinguished, or what blocks is no op on a queue."""


def is_ordered(
    test: LitmusTest, earlier: str, later: str, budget: Budget = DEFAULT_BUDGET
) -> bool | None:
    """True if `later` is never done before `earlier` begins; None if it is not known.

    Both are instances of one run and of one iteration of each loop around both nodes. One run that
    orders them is enough. False if no execution does both nodes. None if that is so and one blocks,
    or if one fails, unless an execution does `later` first. A queue op `earlier` that blocks in all
    executions counts as done.

    Parameters
    ----------
    test : LitmusTest
        Without clusters.
    earlier, later : str
        Two nodes of one graph; they may lie in bodies.
    budget : Budget, optional
        Limit of each question, of which there are at most five; each run has its share.
    """
    ordered: bool | None = False
    runs = [
        run
        for run in test.runs
        if {node.name for node in all_nodes(test.graph_of(run).nodes)}.issuperset((earlier, later))
    ]
    for run in runs:
        share = replace(budget, states=budget.states // len(runs))
        try:
            answer = _orders(test, run, earlier, later, share)
        except (_NotAsked, MalformedTest, NoAllowedSet):  # too large with some nodes more
            answer = None
        if answer:
            return True
        ordered = None if answer is None else ordered
    return ordered


def _orders(test: LitmusTest, run: Run, earlier: str, later: str, budget: Budget) -> bool | None:
    """Whether one run orders two nodes; None if it is not known."""
    free, blocks = _may_see(_asked(test, run, later, earlier, before=True), budget)
    if free is not False:
        return None if free is None else False
    outside = {node.name for node in test.graph_of(run).nodes}
    if not blocks and outside.issuperset((earlier, later)):
        return True
    reached, blocks = _may_do_both(test, run, earlier, later, budget)
    if not blocks:
        return reached
    # `later` may wait for `earlier` alone, which blocks.
    reached, _ = _may_do_both(_unblocked(test, earlier), run, earlier, later, budget)
    return reached or None


def _may_do_both(
    test: LitmusTest, run: Run, earlier: str, later: str, budget: Budget
) -> tuple[bool | None, bool]:
    """Whether an execution does both nodes; None if it is not known.

    The second answer is true if none does and one blocks.
    """
    seen, blocks = _may_see(_asked(test, run, earlier, later, before=False), budget)
    if seen:
        return True, False
    # `later` may lie inside `earlier`, which is then done after it.
    swapped, _ = _may_see(_asked(test, run, later, earlier, before=False), budget)
    if swapped:
        return True, False
    return None if seen is None else swapped, blocks


def _may_see(asked: LitmusTest, budget: Budget) -> tuple[bool | None, bool]:
    """Whether the added read may see the added write; None if it is not known.

    The second answer is true if it is not seen and an execution blocks.
    """
    found = allowed_outcomes(asked, RFC, budget)
    kept = asked.variables[-1].name
    if any(dict(outcome.values).get(kept) == (0,) for outcome in found.witnesses):
        return True, False
    statuses = {outcome.status for outcome in found.witnesses}
    # An execution that fails does not show what its read has seen.
    decided = found.complete and Status.FAILED not in statuses
    return False if decided else None, Status.BLOCKED in statuses


def _unblocked(test: LitmusTest, name: str) -> LitmusTest:
    """The test where an op on a queue reads or writes a variable instead."""
    node = next(each for each in test.nodes if each.name == name)
    if not {*node.resources} & {each.name for each in test.queues} or len(node.inputs) > 1:
        raise _NotAsked
    kind = test.types[node.inputs[0] if node.inputs else name]
    if kind is None or (node.inputs and test.types.get(name)):
        raise _NotAsked
    names = FreshNames((*test.types, *(each.name for each in test.resources)))
    variable = Variable(names.like("element"), kind.dtype, kind.shape)
    op = "AssignVariableOp" if node.inputs else "ReadVariableOp"
    instead = replace(node, op=op, resources=(variable.name,), attrs=None)
    graphs = map_nodes(test.graphs, lambda each: instead if each == node else each)
    return replace(test, variables=(*test.variables, variable), graphs=graphs)


def _asked(test: LitmusTest, run: Run, written: str, read: str, *, before: bool) -> LitmusTest:
    """The test with a write after one node, and a read before or after the other.

    The write writes a number of its iteration. The last variable is 0 if the read has seen the
    number of its own iteration: a run that is blocked returns nothing.
    """
    names = FreshNames((*test.types, *(each.name for each in test.resources)))
    test, run, (written, read) = _alone(test, run, (written, read), names)
    flag, kept, seen, keep, difference, write = map(
        names.like, ("flag", "kept", "seen", "keep", "difference", "write")
    )
    graph = next(each for each in test.graphs if each.name == run.graph)
    around = {node.name: level.around for level in levels(graph) for node in level.nodes}
    loops = [
        node
        for node in all_nodes(graph.nodes)
        if isinstance(node.attrs, LoopAttrs) and node.name in {*around[written]} & {*around[read]}
    ]
    types = {test.types[loop.arguments[0]] for loop in loops}
    kind = types.pop() if types else TensorType("int32", ())
    if types or kind is None or kind.shape or len(loops) > _MAX_DIGITS:
        raise _NotAsked
    if not all(_is_digit(loop, graph, test.bounds[loop.name]) for loop in loops[1:]):
        raise _NotAsked
    to_write, to_read = (
        _Number.of(around[name], loops, kind.dtype, names) for name in (written, read)
    )
    added = (Variable(flag, kind.dtype, ()), Variable(kept, kind.dtype, (), 1))
    new_captures = (*to_write.captures, *to_read.captures)

    def changed(node: Node) -> Node:
        more = tuple(pair for holder, pair in new_captures if holder == node.name)
        if more:
            assert isinstance(node.attrs, NestAttrs)
            attrs = replace(node.attrs, captures=(*node.attrs.captures, *more))
            node = replace(node, attrs=attrs)
        return replace(node, after=(*node.after, seen)) if before and node.name == read else node

    def larger(body: Body) -> Body:
        nodes = list(map(changed, body.nodes))
        if any(node.name == read for node in nodes):
            reading = [
                Node(seen, "ReadVariableOp", (), (flag,), () if before else (read,)),
                *to_read.nodes,
                Node(difference, "Sub", (seen, to_read.value)),
                Node(keep, "AssignVariableOp", (difference,), (kept,)),
            ]
            nodes = [*reading, *nodes] if before else [*nodes, *reading]
        if any(node.name == written for node in nodes):
            nodes += to_write.nodes
            nodes.append(Node(write, "AssignVariableOp", (to_write.value,), (flag,), (written,)))
        return replace(body, nodes=tuple(nodes))

    (changed_graph,) = map_levels((graph,), larger)
    wanted = {keep, write}.intersection(node.name for node in changed_graph.nodes)
    if run.wanted:
        run = replace(run, targets=(*run.targets, *sorted(wanted)))
    return replace(
        test,
        variables=(*test.variables, *added),
        graphs=tuple(changed_graph if each is graph else each for each in test.graphs),
        client=tuple(run if each.name == run.name else each for each in test.client),
        observe=(),
    )


def _is_digit(loop: Node, graph: Graph, iterations: int) -> bool:
    """True if each value of a loop's counter, the last one included, is a digit."""
    assert isinstance(loop.attrs, LoopAttrs)
    nodes = {node.name: node for node in all_nodes(graph.nodes)}
    outside = dict(pair for node in nodes.values() for pair in captures_of(node))

    def origin(name: str) -> Node:
        """The node that makes a value, through captures and transfers between devices."""
        while name in outside or nodes[name].definition.kind is Kind.TRANSFER:
            name = outside[name] if name in outside else nodes[name].inputs[0]
        return nodes[name]

    added = origin(loop.attrs.body.results[0])
    start, step = (origin(name).attrs for name in (loop.inputs[0], added.inputs[1]))
    # Otherwise they would not bound the loop (`corpus.model.loop_bound`).
    assert isinstance(start, ConstAttrs)
    assert isinstance(start.value, int)
    assert isinstance(step, ConstAttrs)
    assert isinstance(step.value, int)
    return start.value >= 0 and start.value + step.value * iterations < _BASE


def _alone(
    test: LitmusTest, run: Run, nodes: tuple[str, ...], names: FreshNames
) -> tuple[LitmusTest, Run, tuple[str, ...]]:
    """The test, run and nodes, where no other run has the run's graph: it may have a copy."""
    if sum(each.graph == run.graph for each in test.runs) == 1:
        return test, run, nodes
    new = {name: names.like(name) for name in test.types if "." not in name}
    graph = FreshNames(each.name for each in test.graphs).like(run.graph)
    copy = test.renamed(Naming(nodes=new, graphs={run.graph: graph}))
    copied = next(each for each in copy.runs if each.name == run.name)
    made = replace(
        test,
        graphs=(*test.graphs, next(each for each in copy.graphs if each.name == graph)),
        client=tuple(copied if each.name == run.name else each for each in test.runs),
        observe=(),
    )
    return made, copied, tuple(new[name] for name in nodes)


@dataclass(frozen=True, slots=True)
class _Number:
    """An odd number of an iteration, in a body, and what is needed to compute it there."""

    value: str
    nodes: tuple[Node, ...]
    captures: tuple[tuple[str, tuple[str, str]], ...]
    """The node that takes a counter into its bodies; its name inside, its name outside."""

    @classmethod
    def of(
        cls, around: Sequence[str], loops: Sequence[Node], dtype: str, names: FreshNames
    ) -> _Number:
        """The number of the iteration of these loops, in a body with these nodes around it."""
        captures = []
        counters = []
        for loop in loops:
            counter = loop.arguments[0]
            for holder in around[around.index(loop.name) + 1 :]:
                outside, counter = counter, names.like("count")
                captures.append((holder, (counter, outside)))
            counters.append(counter)
        one, base, twice, odd = map(names.like, ("one", "base", "twice", "odd"))
        nodes = [
            Node(name, "Const", attrs=ConstAttrs(dtype, (), value))
            for name, value in ((one, 1), (base, _BASE))
        ]
        value, *rest = counters or [one]
        for counter in rest:
            product, total = names.like("product"), names.like("total")
            nodes.append(Node(product, "Mul", (value, base)))
            nodes.append(Node(total, "AddV2", (product, counter)))
            value = total
        nodes.append(Node(twice, "AddV2", (value, value)))
        nodes.append(Node(odd, "Sub", (twice, one)))
        return cls(odd, tuple(nodes), tuple(captures))
