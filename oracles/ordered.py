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
    levels,
    map_levels,
)
from litmusfuzz.corpus.ops import ConstAttrs
from litmusfuzz.corpus.outcome import Status
from litmusfuzz.corpus.struct import replace
from litmusfuzz.oracles.explorer import DEFAULT_BUDGET, allowed_outcomes
from litmusfuzz.oracles.model import RFC

if TYPE_CHECKING:
    from collections.abc import Sequence

    from litmusfuzz.corpus.model import LitmusTest, Run
    from litmusfuzz.oracles.explorer import Budget

_BASE: Final = 256
"""The counters of nested loops are the digits of one number."""
_MAX_DIGITS: Final = 3
"""With more, twice the number may reach 2**24."""


class _NotAsked(Exception):
    """Iterations of a loop around both nodes cannot be distinguished."""


def is_ordered(
    test: LitmusTest, earlier: str, later: str, budget: Budget = DEFAULT_BUDGET
) -> bool | None:
    """True if `later` is never done before `earlier` begins; None if it is not known.

    Both are instances of one run and of one iteration of each loop around both nodes. One run that
    orders them is enough. False if no execution reaches the bodies of both nodes.

    Parameters
    ----------
    test : LitmusTest
        Without clusters.
    earlier, later : str
        Two nodes of one graph; they may lie in bodies.
    budget : Budget, optional
        Limit of all questions of one kind, of which there are two; each run has its share.

    Raises
    ------
    NoAllowedSet
        If an order makes a value too large.
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
        except (_NotAsked, MalformedTest):  # malformed: too large with some nodes more
            answer = None
        if answer:
            return True
        ordered = None if answer is None else ordered
    return ordered


def _orders(test: LitmusTest, run: Run, earlier: str, later: str, budget: Budget) -> bool | None:
    """Whether one run orders two nodes; None if it is not known."""
    free, _ = _may_see(_asked(test, run, later, earlier, tied=True), budget)
    if free is not False:
        return None if free is None else False
    outside = {node.name for node in test.graph_of(run).nodes}
    if not run.after and outside.issuperset((earlier, later)):
        return True
    reached, blocks = _may_see(_asked(test, run, earlier, later, tied=False), budget)
    # An execution that blocks might reach both nodes if `later` did not wait for `earlier`.
    return None if blocks and not reached else reached


def _may_see(asked: LitmusTest, budget: Budget) -> tuple[bool | None, bool]:
    """Whether the added read may see the added write; None if it is not known.

    The second answer is true if an execution blocks.
    """
    found = allowed_outcomes(asked, RFC, budget)
    kept = asked.variables[-1].name
    statuses = {outcome.status for outcome in found.witnesses}
    blocks = Status.BLOCKED in statuses
    if any(dict(outcome.values).get(kept) == (0,) for outcome in found.witnesses):
        return True, blocks
    # Of an execution that fails nothing is specified: the others decide.
    return (False if found.complete and statuses - {Status.FAILED} else None), blocks


def _asked(test: LitmusTest, run: Run, written: str, read: str, *, tied: bool) -> LitmusTest:
    """The test with a write in the body of one node, and a read in that of the other.

    If they are tied, the write comes after the first node, and the read before the second. The
    write writes a number of its iteration. The last variable is 0 if the read has seen the number
    of its own iteration: a run that is blocked returns nothing.
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
        return replace(node, after=(*node.after, seen)) if tied and node.name == read else node

    def larger(body: Body) -> Body:
        nodes = list(map(changed, body.nodes))
        if any(node.name == read for node in nodes):
            nodes[:0] = [
                Node(seen, "ReadVariableOp", (), (flag,)),
                *to_read.nodes,
                Node(difference, "Sub", (seen, to_read.value)),
                Node(keep, "AssignVariableOp", (difference,), (kept,)),
            ]
        if any(node.name == written for node in nodes):
            after = (written,) if tied else ()
            nodes += to_write.nodes
            nodes.append(Node(write, "AssignVariableOp", (to_write.value,), (flag,), after))
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
