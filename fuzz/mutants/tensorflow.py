"""Mutants on real TensorFlow: each lowers another test than it was given.

The test is changed before TensorFlow sees it, and what that shows is reported under the
names of the test as it was: TensorFlow itself keeps to what it was told. Beside these
stands one that we did not write, `UncheckedClusters`. The tests in
``tests/kills/test_tensorflow_mutants.py`` have for each the shape that kills it and one
that it survives; docs/decisions/0006-mutants.md says which mutants of the
native executor cannot be said like this.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from litmusfuzz.corpus.model import (
    MAX_CAPACITY,
    MAX_ITERATIONS,
    Body,
    BranchAttrs,
    FreshNames,
    Graph,
    LoopAttrs,
    MalformedTest,
    Node,
    map_levels,
    map_nodes,
    predecessors,
    redirected,
)
from litmusfuzz.corpus.ops import Kind, RowsAttrs, SectionAttrs
from litmusfuzz.corpus.outcome import Outcome
from litmusfuzz.fuzz.executors.tensorflow.configurations import clustering_configuration
from litmusfuzz.fuzz.executors.tensorflow.executor import TensorFlowExecutor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.executors.protocol import Config, Histogram, Noise
    from litmusfuzz.fuzz.executors.tensorflow.executor import PreparedTest

Nodes = tuple[Node, ...]


class UncheckedClusters(TensorFlowExecutor):
    """Mutant: TensorFlow makes clusters without its safety analysis.

    Killed by BLOG's problem, where it puts the write of v0 and the read of v1
    after it into one cluster. Survives MP's mirror image, S: a read before a write
    is safe in one cluster.

    References
    ----------
    BLOG, "The Problem"; semantics.md, section 5.
    """

    name: ClassVar[str] = "mutant/tf-unchecked-clusters"

    @classmethod
    def configurations(cls) -> tuple[Config, ...]:
        """One; the promise is what it breaks."""
        unchecked = "--tf_xla_disable_resource_variable_safety_checks_for_debugging"
        return (clustering_configuration("autocluster", unchecked),)

    @classmethod
    def control(cls) -> type[TensorFlowExecutor]:
        """With the analysis."""
        return _Checked


class _Checked(TensorFlowExecutor):
    name: ClassVar[str] = "control"

    @classmethod
    def configurations(cls) -> tuple[Config, ...]:
        return (clustering_configuration("autocluster"),)


# --- a test, lowered as another ----------------------------------------------------------


class PreparedMutant:
    """Another test, prepared; its outcomes under the names of the one asked for."""

    def __init__(self, test: LitmusTest, other: PreparedTest) -> None:
        self._test = test
        self._prepared = other

    def run(self, count: int, noise: Noise, seed: int) -> Histogram:
        """Execute the other test."""
        seen: Counter[Outcome] = Counter()
        for outcome, times in self._prepared.run(count, noise, seed).items():
            values = dict(outcome.values)
            seen[Outcome.of(self._test, values, outcome.status)] += times
        return dict(seen)

    def close(self) -> None:
        """Release what it holds."""
        self._prepared.close()


class TensorFlowMutant(TensorFlowExecutor):
    """TensorFlow, which is given another test."""

    @classmethod
    def configurations(cls) -> tuple[Config, ...]:
        """The plain one."""
        return super().configurations()[:1]

    @classmethod
    def control(cls) -> type[TensorFlowExecutor]:
        """With the test left as it was."""
        return _Unchanged

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """The test that is run instead; it has all names of the one asked for."""
        raise NotImplementedError

    def prepare(self, test: LitmusTest, config: Config) -> PreparedMutant:  # type: ignore[override]
        """Lower the other test."""
        try:
            other = self.changed(test)
        except MalformedTest:  # what it would be is no litmus test
            other = test
        return PreparedMutant(test, super().prepare(other, config))


class _Unchanged(TensorFlowMutant):
    name = "control"

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        return test


def _levels(test: LitmusTest, change: Callable[[Nodes], Nodes]) -> LitmusTest:
    """The test with the nodes of each graph and body changed, inner ones first."""
    graphs = map_levels(test.graphs, lambda body: replace(body, nodes=change(body.nodes)))
    return replace(test, graphs=graphs)


def _each(test: LitmusTest, change: Callable[[Node], Node]) -> LitmusTest:
    """The test with every node changed."""
    return replace(test, graphs=map_nodes(test.graphs, change))


def _on_variables(node: Node) -> bool:
    return node.definition.kind in (Kind.READ, Kind.WRITE, Kind.UPDATE)


# --- order -------------------------------------------------------------------------------


class DroppedControlEdge(TensorFlowMutant):
    """The last control edge between two ops on variables, in each body, is dropped.

    Killed by MP. Survives a chain of values, which has data edges only.
    """

    name = "mutant/tf-dropped-control-edge"

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """Without those edges."""

        def change(nodes: Nodes) -> Nodes:
            working = {node.name for node in nodes if _on_variables(node)}
            edges = [(n, s) for n in nodes if n.name in working for s in n.after if s in working]
            if not edges:
                return nodes
            target, source = edges[-1]
            after = tuple(name for name in target.after if name != source)
            return tuple(replace(n, after=after) if n is target else n for n in nodes)

        return _levels(test, change)


class StoreBuffers(TensorFlowMutant):
    """A read does not wait for the write before it, if that is of another variable.

    What is left is what a processor with store buffers keeps (TSO). Killed by SB.
    Survives MP, in which no read comes after a write.
    """

    name = "mutant/tf-store-buffers"

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """With what comes before the write in its place."""

        def change(nodes: Nodes) -> Nodes:
            named = {node.name: node for node in nodes}

            def passed(node: Node, source: str) -> tuple[str, ...]:
                write = named.get(source)
                if write is None or write.definition.kind is not Kind.WRITE:
                    return (source,)
                same = set(write.resources) & set(node.resources)
                return (source,) if same else (*write.inputs, *write.after)

            return tuple(
                replace(n, after=_unique(each for s in n.after for each in passed(n, s)))
                if n.definition.kind is Kind.READ
                else n
                for n in nodes
            )

        return _levels(test, change)


class StaleCache(TensorFlowMutant):
    """A read takes what an earlier one saw, unless there is a write in between.

    Killed by a read after an update after a read. Survives SB, which reads nothing twice.
    """

    name = "mutant/tf-stale-cache"

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """With such reads as copies of the earlier ones."""

        def change(nodes: Nodes) -> Nodes:
            above = {node.name: before for node, before in predecessors(Graph("", nodes))}
            done: list[Node] = []
            for node in nodes:
                cached = [
                    other.name
                    for other in done
                    if node.op == other.op == "ReadVariableOp"
                    and other.resources == node.resources
                    and other.name in above[node.name]
                    and not any(
                        each.definition.kind is Kind.WRITE
                        and each.resources == node.resources
                        and other.name in above[each.name]
                        and each.name in above[node.name]
                        for each in nodes
                    )
                ]
                done.append(node)
                if cached:
                    done[-1] = Node(node.name, "Identity", (cached[-1],), (), node.after)
            return tuple(done)

        return _levels(test, change)


class EarlySink(TensorFlowMutant):
    """A run does not wait for those before it.

    Killed by two runs, one after the other. Survives every test of one run.
    """

    name = "mutant/tf-early-sink"

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """With all runs at once."""
        return replace(test, client=tuple(replace(run, after=()) for run in test.client))


class OneRunWaitedFor(TensorFlowMutant):
    """Of several runs that come before one, it waits for the first.

    Killed by a run after two others. Survives runs in a row.
    """

    name = "mutant/tf-one-run-waited-for"

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """With one edge to each run."""
        return replace(test, client=tuple(replace(run, after=run.after[:1]) for run in test.client))


# --- devices -----------------------------------------------------------------------------


def _placed(test: LitmusTest) -> LitmusTest:
    """Every other variable on a second device, but for those that one op works on."""
    together = [node.resources for node in test.effects if len(node.resources) > 1]
    first = {name: min(names) for names in together for name in names}
    lone = sorted({first.get(each.name, each.name) for each in test.variables})
    variables = tuple(
        replace(v, device=f"cpu:{lone.index(first.get(v.name, v.name)) % 2}")
        for v in test.variables
    )
    return replace(test, variables=variables)


class EarlyTransfer(TensorFlowMutant):
    """A control edge between ops of two devices is dropped; every second variable is on a second.

    Killed by MP, whose variables are then on two. Survives a test of one variable.
    """

    name = "mutant/tf-early-transfer"

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """Placed, and without those edges."""
        placed = _placed(test)
        lives = {each.name: each.device for each in placed.variables}

        def change(nodes: Nodes) -> Nodes:
            on = {n.name: lives[n.resources[0]] for n in nodes if _on_variables(n)}
            return tuple(
                replace(n, after=tuple(s for s in n.after if s not in on or on[s] == on[n.name]))
                if n.name in on
                else n
                for n in nodes
            )

        return _levels(placed, change)


class CopiedVariables(TensorFlowMutant):
    """Each of two devices has a copy of its own of every variable; ops are dealt out in turn.

    Killed by a read after a write. Survives a test in which nothing is read but the end.
    """

    name = "mutant/tf-copied-variables"

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """With every second op that reads a variable on a copy, and all that read no other."""
        free = _fresh(test)
        copies = {each.name: free(f"{each.name}_there") for each in test.variables}
        extra = tuple(replace(v, name=copies[v.name]) for v in test.variables)

        def change(node: Node) -> Node:
            if node.definition.kind is not Kind.READ:
                return node
            return replace(node, resources=tuple(copies[name] for name in node.resources))

        return _each(replace(test, variables=(*test.variables, *extra)), change)


# --- updates and writes ------------------------------------------------------------------


class SplitUpdates(TensorFlowMutant):
    """AssignAdd, AssignSub and ApplyGradientDescent as a read, arithmetic and a write.

    Killed by two increments, under `executor`. Survives everything under `rfc`.
    """

    name = "mutant/tf-split-updates"

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """With three nodes, or four, for one."""
        free = _fresh(test)

        def split(node: Node) -> Nodes:
            if node.op not in _ARITHMETIC:
                return (node,)
            after = _unique((*node.after, *node.inputs))
            seen = Node(free(f"{node.name}_seen"), "ReadVariableOp", (), node.resources, after)
            made: list[Node] = [seen]
            by = node.inputs[-1]
            if len(node.inputs) == 2:
                by = free(f"{node.name}_step")
                made.append(Node(by, "Mul", node.inputs))
            total = Node(free(f"{node.name}_sum"), _ARITHMETIC[node.op], (seen.name, by))
            write = replace(node, op="AssignVariableOp", inputs=(total.name,))
            return (*made, total, write)

        def change(nodes: Nodes) -> Nodes:
            parts = {node.name: split(node) for node in nodes}
            whole: list[Node] = []
            for node in nodes:
                for part in parts[node.name]:
                    if isinstance(part.attrs, SectionAttrs):
                        members = [m for name in part.attrs.members for m in parts[name]]
                        attrs = SectionAttrs(tuple(member.name for member in members))
                        whole.append(replace(part, attrs=attrs))
                    else:
                        whole.append(part)
            return tuple(whole)

        return _levels(test, change)


_ARITHMETIC = {
    "AssignAddVariableOp": "AddV2",
    "AssignSubVariableOp": "Sub",
    "ResourceApplyGradientDescent": "Sub",
}


class TornWrite(TensorFlowMutant):
    """A write of a variable with rows is a ResourceScatterUpdate of all of them.

    That one tears (docs/tensorflow-findings.md). Killed by a wide write beside a read.
    Survives scalars.
    """

    name = "mutant/tf-torn-write"

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """With scatters for assignments."""
        rows = {v.name: v.shape[0] for v in test.variables if v.shape}

        def change(node: Node) -> Node:
            if node.op != "AssignVariableOp" or node.resources[0] not in rows:
                return node
            attrs = RowsAttrs(tuple(range(rows[node.resources[0]])))
            return replace(node, op="ResourceScatterUpdate", attrs=attrs)

        return _each(test, change)


# --- sections ----------------------------------------------------------------------------


class TwoHolders(TensorFlowMutant):
    """Sections are left out; their members stay, and come after what the section did.

    Killed by two sections on one mutex, both of which read and write. Survives a
    section alone.
    """

    name = "mutant/tf-two-holders"

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """Without sections."""

        def change(nodes: Nodes) -> Nodes:
            sections = {n.name: (n, n.attrs) for n in nodes if isinstance(n.attrs, SectionAttrs)}

            def passed(source: str) -> tuple[str, ...]:
                return sections[source][1].members if source in sections else (source,)

            changed = []
            for node in nodes:
                if node.name in sections:
                    continue
                around = [s for s, attrs in sections.values() if node.name in attrs.members]
                waits = [*node.after, *(source for each in around for source in each.after)]
                after = _unique(name for source in waits for name in passed(source))
                changed.append(replace(node, after=after))
            return tuple(changed)

        return _levels(test, change)


class EarlyRelease(TensorFlowMutant):
    """The last member of a section stands outside it.

    Killed by sections that read and then write. Survives sections of one member.
    """

    name = "mutant/tf-early-release"

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """With sections of one member less."""

        def change(node: Node) -> Node:
            if not isinstance(node.attrs, SectionAttrs) or len(node.attrs.members) < 2:
                return node
            return replace(node, attrs=SectionAttrs(node.attrs.members[:-1]))

        return _each(test, change)


# --- queues ------------------------------------------------------------------------------


class OverCapacity(TensorFlowMutant):
    """A queue takes one element more than it has room for.

    Killed by what comes after an enqueue on a full queue. Survives a queue that is
    never full.
    """

    name = "mutant/tf-over-capacity"

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """With larger queues."""
        larger = (replace(q, capacity=min(q.capacity + 1, MAX_CAPACITY)) for q in test.queues)
        return replace(test, queues=tuple(larger))


class OutOfOrder(TensorFlowMutant):
    """Of two enqueues, one after the other, the second's element comes first.

    Killed by two elements enqueued one after the other. Survives one enqueue.
    """

    name = "mutant/tf-out-of-order"

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """With the elements of the first such pair, in each body, exchanged."""

        def change(nodes: Nodes) -> Nodes:
            above = {node.name: before for node, before in predecessors(Graph("", nodes))}
            for second in nodes:
                for first in nodes:
                    if (
                        first.op == second.op == "QueueEnqueueV2"
                        and first.resources == second.resources
                        and first.name in above[second.name]
                        and first.name not in above.get(second.inputs[0], ())
                    ):
                        new = {first.name: second.inputs, second.name: first.inputs}
                        return _sorted(replace(n, inputs=new.get(n.name, n.inputs)) for n in nodes)
            return nodes

        return _levels(test, change)


# --- loops and conditionals --------------------------------------------------------------


class NoWindow(TensorFlowMutant):
    """`parallel_iterations` is ignored.

    Killed, under `executor`, by a loop with a window of 1 whose iterations race.
    Survives under `rfc`, which has no window.
    """

    name = "mutant/tf-no-window"

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """With as many at once as there may be."""

        def change(node: Node) -> Node:
            if not isinstance(node.attrs, LoopAttrs):
                return node
            return replace(node, attrs=replace(node.attrs, parallel_iterations=MAX_ITERATIONS))

        return _each(test, change)


class UnorderedIterations(TensorFlowMutant):
    """What a body carries on does not wait for the body's other ops.

    Killed by a loop that writes one variable, then another, in each iteration. Survives
    a loop whose carried values need all that it does.
    """

    name = "mutant/tf-unordered-iterations"

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """Without control edges to results of bodies of loops."""

        def change(node: Node) -> Node:
            if not isinstance(node.attrs, LoopAttrs):
                return node
            body = node.attrs.body
            nodes = tuple(replace(n, after=()) if n.name in body.results else n for n in body.nodes)
            return replace(node, attrs=replace(node.attrs, body=replace(body, nodes=nodes)))

        return _each(test, change)


class OldFrame(TensorFlowMutant):
    """The body of an iteration reads the carried values of the one before.

    Killed by a loop that sums. Survives a loop that only counts.
    """

    name = "mutant/tf-old-frame"

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """With each carried value but the counter carried once more, an iteration late."""
        free = _fresh(test)

        def change(node: Node) -> Node:
            attrs = node.attrs
            if not isinstance(attrs, LoopAttrs) or len(attrs.carried) < 2:
                return node
            old = {name: free(f"{name}_before") for name in attrs.carried[1:]}
            late = tuple(
                redirected(each, lambda name: old.get(name, name)) for each in attrs.body.nodes
            )
            results = (*(old.get(r, r) for r in attrs.body.results), *attrs.carried[1:])
            carried = (*attrs.carried, *old.values())
            body = Body(late, results)
            return replace(
                node,
                inputs=(*node.inputs, *node.inputs[1:]),
                attrs=replace(attrs, carried=carried, body=body),
            )

        return _each(test, change)


class EarlyBody(TensorFlowMutant):
    """What a loop's body only writes it writes before the condition is known.

    Killed by a loop whose body writes. Survives one whose body only computes.
    """

    name = "mutant/tf-early-body"

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """With such writes in the condition."""
        free = _fresh(test)

        def change(node: Node) -> Node:
            attrs = node.attrs
            if not isinstance(attrs, LoopAttrs):
                return node
            body, moved = _without_writes(attrs.body, {}, free)
            condition = replace(attrs.condition, nodes=(*attrs.condition.nodes, *moved))
            return replace(node, attrs=replace(attrs, condition=condition, body=body))

        return _each(test, change)


class EarlyBranch(TensorFlowMutant):
    """What a branch only writes is written before the predicate is known, whatever it is.

    Killed by a conditional that writes in one branch. Survives one that only computes.
    """

    name = "mutant/tf-early-branch"

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """With such writes outside."""
        free = _fresh(test)

        def change(nodes: Nodes) -> Nodes:
            changed: list[Node] = []
            for node in nodes:
                attrs = node.attrs
                if isinstance(attrs, BranchAttrs):
                    captures = dict(attrs.captures)
                    then, moved = _without_writes(attrs.then, captures, free)
                    orelse, others = _without_writes(attrs.orelse, captures, free)
                    changed += [
                        replace(n, after=_unique((*n.after, *node.after)))
                        if n.definition.has_effect
                        else n
                        for n in (*moved, *others)
                    ]
                    node = replace(node, attrs=replace(attrs, then=then, orelse=orelse))
                changed.append(node)
            return tuple(changed)

        return _levels(test, change)


def _without_writes(
    body: Body, outside: Mapping[str, str], free: Callable[[str], str]
) -> tuple[Body, Nodes]:
    """A body without what it only writes, and that, under names that hold outside it.

    That is: writes and updates of variables, in no section, whose operands are computed
    from what is known outside, with all that computes them. Control edges are left out.
    """
    nodes = {node.name: node for node in body.nodes}
    members = {
        name for n in body.nodes if isinstance(n.attrs, SectionAttrs) for name in n.attrs.members
    }
    names = dict(outside)
    moved: list[Node] = []

    def brought(name: str) -> bool:
        """Bring along a value, if it is computed from what is known outside."""
        node = nodes.get(name)
        if node is None or name in names:
            return True
        if node.definition.kind is not Kind.PURE or not all(map(brought, node.inputs)):
            return False
        names[name] = free(f"{name}_early")
        inputs = tuple(names.get(each, each) for each in node.inputs)
        moved.append(replace(node, name=names[name], inputs=inputs, after=()))
        return True

    gone: set[str] = set()
    for node in body.nodes:
        writes = node.definition.kind in (Kind.WRITE, Kind.UPDATE) and node.name not in members
        if writes and all(map(brought, node.inputs)):
            inputs = tuple(names.get(each, each) for each in node.inputs)
            moved.append(replace(node, inputs=inputs, after=()))
            gone.add(node.name)
    kept = tuple(
        replace(node, after=tuple(name for name in node.after if name not in gone))
        for node in body.nodes
        if node.name not in gone
    )
    return replace(body, nodes=kept), tuple(moved)


def _sorted(nodes: Iterable[Node]) -> Nodes:
    """Nodes of one graph or body, each after those that it takes something from."""
    left = {node.name: node for node in nodes}
    done: dict[str, Node] = {}
    while left:
        for node in left.values():
            if not any(name in left for name in node.sources):
                done[node.name] = left.pop(node.name)
                break
        else:
            raise MalformedTest(f"cycle: {', '.join(left)}")
    return tuple(done.values())


def _unique(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def _fresh(test: LitmusTest) -> Callable[[str], str]:
    """Gives names that nothing in the test has, each like the one asked for."""
    return FreshNames((*test.types, *(each.name for each in test.resources))).like
