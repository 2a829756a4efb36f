"""Mutants of the TensorFlow executor, to check that LitmusFuzz finds their defects.

A mutant changes the test before TensorFlow runs it, and reports the outcomes under the
names of the original test. TensorFlow itself stays unmodified and correct. One more
mutant, `UncheckedClusters`, switches off a check inside TensorFlow. The tests in
``tests/kills/test_tensorflow_mutants.py`` name, for each mutant, a shape that kills it
and a shape that it survives. docs/decisions/0006-mutants.md says which mutants of the
native executor have no counterpart here.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, ClassVar

from litmusfuzz.corpus.model import (
    FEATURES,
    MAX_CAPACITY,
    MAX_ITERATIONS,
    Body,
    BranchAttrs,
    CallAttrs,
    FreshNames,
    Graph,
    LoopAttrs,
    MalformedTest,
    Node,
    bodies,
    handles_of,
    map_nodes,
    predecessors,
    redirected,
)
from litmusfuzz.corpus.ops import (
    BOOL,
    DEFINED_OPS,
    OPS,
    ConstAttrs,
    HandleAttrs,
    Kind,
    RowsAttrs,
    SectionAttrs,
)
from litmusfuzz.corpus.outcome import Outcome
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.executors.protocol import Explorable, Refused
from litmusfuzz.fuzz.executors.tensorflow.configurations import Settings, configuration
from litmusfuzz.fuzz.executors.tensorflow.executor import PreparedTest, TensorFlowExecutor
from litmusfuzz.fuzz.mutants import runs
from litmusfuzz.fuzz.mutants.changed_test import ChangesTest, with_levels, with_nodes
from litmusfuzz.fuzz.support import Support

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import numpy as np

    from litmusfuzz.corpus.model import LitmusTest, Run
    from litmusfuzz.corpus.schedule import Decision
    from litmusfuzz.corpus.textfile import Setting
    from litmusfuzz.fuzz.executors.protocol import (
        Config,
        Explored,
        Histogram,
        Noise,
        Prepared,
        Search,
    )
    from litmusfuzz.fuzz.executors.tensorflow.eager import PreparedEager
    from litmusfuzz.fuzz.executors.tensorflow.eager_program import EagerProgram
    from litmusfuzz.fuzz.executors.tensorflow.lowering import Built

Nodes = tuple[Node, ...]


class UncheckedClusters(TensorFlowExecutor):
    """Mutant: TensorFlow makes clusters without its safety analysis.

    Killed by the example in BLOG, "The Problem": TensorFlow puts the write of v0 and the
    later read of v1 into one cluster. Survives S, in which a read comes before a write:
    that pair is safe in one cluster.

    References
    ----------
    BLOG, "The Problem"; semantics.md, section 5.
    """

    name: ClassVar[str] = "mutant/tf-unchecked-clusters"

    @classmethod
    def configurations(cls) -> tuple[Config, ...]:
        """One configuration; the mutant breaks its guarantee."""
        unchecked = "--tf_xla_disable_resource_variable_safety_checks_for_debugging"
        return (configuration("autocluster", unchecked, compiled="clusters"),)

    @classmethod
    def control(cls) -> type[TensorFlowExecutor]:
        """The same configuration with the safety analysis."""
        return _CheckedClusters

    @classmethod
    def reaches(cls, test: LitmusTest, config: Config) -> bool:
        """False if no write comes before a read: the analysis separates only such pairs."""
        del config

        def unsafe(nodes: Nodes) -> bool:
            writing = {node.name for node in nodes if node.definition.kind.writes}
            return any(bodies(node) for node in nodes) or any(
                not node.definition.pure and node.definition.kind is not Kind.WRITE
                for node, before in predecessors(Graph("", nodes))
                if not writing.isdisjoint(before)
            )

        return any(unsafe(each.nodes) for each in test.graphs)


class _CheckedClusters(TensorFlowExecutor):
    name: ClassVar[str] = "control"

    @classmethod
    def configurations(cls) -> tuple[Config, ...]:
        return (configuration("autocluster", compiled="clusters"),)


# --- mutants that change the test --------------------------------------------------------


class PreparedMutant:
    """The changed test, prepared; reports outcomes under the names of the original test."""

    def __init__(self, test: LitmusTest, changed: Prepared) -> None:
        self._test = test
        self._prepared = changed

    def run(self, count: int, noise: Noise, seed: int) -> Histogram:
        """Execute the changed test."""
        return self._named(self._prepared.run(count, noise, seed))

    def _named(self, histogram: Histogram) -> Histogram:
        seen: Counter[Outcome] = Counter()
        for outcome, times in histogram.items():
            values = dict(outcome.values)
            seen[Outcome.of(self._test, values, outcome.status)] += times
        return dict(seen)

    def close(self) -> None:
        """Release what it holds."""
        self._prepared.close()


class ControlledMutant(PreparedMutant):
    """The changed test under control; reports outcomes under the names of the original test."""

    def __init__(self, test: LitmusTest, changed: Explorable) -> None:
        super().__init__(test, changed)
        self._explorable = changed

    def search(self, preemptions: int | None = None) -> NamedSearch:
        """The search of the changed test."""
        return NamedSearch(self, self._explorable.search(preemptions))

    def explore(self, limit: int, preemptions: int | None = None) -> Explored:
        """Execute the schedules of the changed test, up to `limit` executions."""
        return self.search(preemptions).go_on(limit)

    def sample(self, scheduler: str, executions: int, seed: int) -> Explored:
        """Execute schedules of the changed test that a scheduler chooses."""
        return self.renamed(self._explorable.sample(scheduler, executions, seed))

    def follow(self, schedule: Sequence[Decision]) -> Outcome:
        """The outcome of a schedule of the changed test."""
        (outcome,) = self._named({self._explorable.follow(schedule): 1})
        return outcome

    def renamed(self, explored: Explored) -> Explored:
        """What schedules of the changed test have shown."""
        schedules: dict[Outcome, tuple[Decision, ...]] = {}
        for outcome, schedule in explored.schedules.items():
            (named,) = self._named({outcome: 1})
            schedules.setdefault(named, schedule)
        histogram = self._named(explored.histogram)
        return replace(explored, histogram=histogram, schedules=schedules)


class NamedSearch:
    """A search of a changed test (`fuzz.executors.protocol.Search`)."""

    def __init__(self, of: ControlledMutant, search: Search) -> None:
        self._of, self._search = of, search

    def go_on(self, executions: int) -> Explored:
        """Begin so many more executions, at most."""
        return self._of.renamed(self._search.go_on(executions))


def reported(test: LitmusTest, changed: Prepared) -> PreparedMutant:
    """The changed test, with the outcomes of the original one."""
    if isinstance(changed, Explorable):
        return ControlledMutant(test, changed)
    return PreparedMutant(test, changed)


class TensorFlowMutant(ChangesTest, TensorFlowExecutor):
    """TensorFlow, given a changed test."""

    @classmethod
    def configurations(cls) -> tuple[Config, ...]:
        """The configurations `plain` and `controlled`, which searches all schedules."""
        return tuple(e for e in super().configurations() if e.name in ("plain", "controlled"))

    @classmethod
    def control(cls) -> type[TensorFlowExecutor]:
        """The same executor with unchanged tests."""
        return _Unchanged

    def prepare(self, test: LitmusTest, config: Config) -> PreparedMutant:  # type: ignore[override]
        """Lower the changed test."""
        return reported(test, super().prepare(self.executed(test), config))


class _Unchanged(TensorFlowMutant):
    name = "control"

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        return test

    @classmethod
    def reaches(cls, test: LitmusTest, config: Config) -> bool:
        del test, config
        return True


class _UnchangedInAll(_Unchanged):
    @classmethod
    def configurations(cls) -> tuple[Config, ...]:
        return TensorFlowExecutor.configurations()


def _on_variables(node: Node) -> bool:
    return node.definition.on_variables


# --- order -------------------------------------------------------------------------------


class DroppedControlEdge(TensorFlowMutant):
    """Each graph and body loses its last control edge between two ops on variables.

    Killed by MP. Survives a chain of values, which has data edges only.
    """

    name = "mutant/tf-dropped-control-edge"

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """The test without those edges."""

        def change(nodes: Nodes) -> Nodes:
            working = {node.name for node in nodes if _on_variables(node)}
            edges = [(n, s) for n in nodes if n.name in working for s in n.after if s in working]
            if not edges:
                return nodes
            target, source = edges[-1]
            after = tuple(name for name in target.after if name != source)
            return tuple(replace(n, after=after) if n is target else n for n in nodes)

        return with_levels(test, change)


class StoreBuffers(TensorFlowMutant):
    """A read does not wait for an earlier write of another variable.

    The remaining order is that of a processor with store buffers (TSO). Killed by SB.
    Survives MP, in which no read comes after a write.
    """

    name = "mutant/tf-store-buffers"

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """The test in which such a read waits for the write's predecessors instead."""

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

        return with_levels(test, change)


class StaleCache(TensorFlowMutant):
    """A read returns the value of an earlier read, unless a write comes between the two.

    Killed by a read after an update after a read. Survives SB, which reads each
    variable once.
    """

    name = "mutant/tf-stale-cache"

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """The test in which such a read is an Identity of the earlier read."""

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

        return with_levels(test, change)


class EarlySink(TensorFlowMutant):
    """A run does not wait for earlier runs.

    Killed by two runs, one after the other. Survives every test of one run.
    """

    name = "mutant/tf-early-sink"

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """The test with all runs concurrent."""
        return replace(test, client=tuple(replace(run, after=()) for run in test.client))


class OneRunWaitedFor(TensorFlowMutant):
    """A run that comes after several others waits only for the first of them.

    Killed by a run after two others. Survives a sequence of runs.
    """

    name = "mutant/tf-one-run-waited-for"

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """The test with at most one edge into each run."""
        return replace(test, client=tuple(replace(run, after=run.after[:1]) for run in test.client))


# --- what a run executes -----------------------------------------------------------------


class Unpruned(TensorFlowMutant):
    """A run executes its whole graph, whatever it fetches.

    Killed by a write that nothing fetched needs. Survives runs that fetch nothing.
    """

    name = "mutant/tf-unpruned"

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """The test with that defect."""
        return runs.unpruned(test)


class DataOnlyNeeds(TensorFlowMutant):
    """What a run fetches needs what data edges lead to, and not what control edges lead to.

    Killed by a write before a fetched read. Survives a fetched chain of values.
    """

    name = "mutant/tf-data-only-needs"

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """The test with that defect."""
        return runs.data_only(test)


class SectionNotEntered(TensorFlowMutant):
    """A run that executes some members of a critical section does not acquire the mutex.

    Killed by two fetched reads in a section, of three members. Survives a run of the whole
    section.
    """

    name = "mutant/tf-section-not-entered"

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """The test with that defect."""
        return runs.without_sections(test)


class BodyWithoutEffects(TensorFlowMutant):
    """Of a fetched loop or conditional only what its results need is executed.

    Killed by a loop that writes what it does not return. Survives it in a run that fetches
    nothing.
    """

    name = "mutant/tf-body-without-effects"

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """The test with that defect."""
        return runs.without_effects(test)


class SwappedFeeds(TensorFlowMutant):
    """Runs of one graph are fed each other's values.

    Killed by two runs, one after the other, that are fed different values. Survives a single
    run.
    """

    name = "mutant/tf-swapped-feeds"

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """The test with that defect."""
        return runs.swapped_feeds(test)


# --- initial values ----------------------------------------------------------------------


class AlwaysInitialized(TensorFlowMutant):
    """VarIsInitializedOp tells that each variable has a value.

    Killed by the op before the first write. Survives it after the write.
    """

    name = "mutant/tf-always-initialized"

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """The test with constants in place of the op."""

        def change(node: Node) -> Node:
            if node.definition.kind is not Kind.STATE:
                return node
            return replace(node, op="Const", resources=(), attrs=ConstAttrs(BOOL, (), 1))

        return with_nodes(test, change)


class ZeroForNoValue(TensorFlowMutant):
    """A variable that has no value holds zeros.

    Killed by a read before the first write. Survives reads after it.
    """

    name = "mutant/tf-zero-for-no-value"

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """The test with initial values."""
        variables = (replace(v, init=v.init or 0) for v in test.variables)
        return replace(test, variables=tuple(variables))


# --- devices -----------------------------------------------------------------------------


def _placed(test: LitmusTest) -> LitmusTest:
    """The test with every other variable on a second device; variables of one op stay together."""
    together = [node.resources for node in test.effects if len(node.resources) > 1]
    first = {name: min(names) for names in together for name in names}
    lone = sorted({first.get(each.name, each.name) for each in test.variables})
    variables = tuple(
        replace(v, device=f"cpu:{lone.index(first.get(v.name, v.name)) % 2}")
        for v in test.variables
    )
    return replace(test, variables=variables)


class EarlyTransfer(TensorFlowMutant):
    """Control edges between two devices are dropped; every other variable is on a second device.

    Killed by MP, whose variables are then on two devices. Survives a test of one variable.
    """

    name = "mutant/tf-early-transfer"

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """The placed test without those edges."""
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

        return with_levels(placed, change)


class CopiedVariables(TensorFlowMutant):
    """Each variable has a second copy: reads use the second copy, writes and updates the first.

    Killed by a read after a write. Survives a test that observes only final contents.
    """

    name = "mutant/tf-copied-variables"

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """The test in which all reads use the second copies."""
        fresh = _fresh(test)
        copies = {each.name: fresh(f"{each.name}_there") for each in test.variables}
        extra = tuple(replace(v, name=copies[v.name]) for v in test.variables)

        def change(node: Node) -> Node:
            if node.definition.kind is not Kind.READ:
                return node
            return replace(node, resources=tuple(copies[name] for name in node.resources))

        return with_nodes(replace(test, variables=(*test.variables, *extra)), change)


class OnePairOfSettings(CopiedVariables):
    """Copied variables, only with the loop optimizer and in one thread.

    Killed by what kills the copied variables, in a configuration with both settings. Survives it in
    all configurations that lack one of them.
    """

    name = "mutant/tf-one-pair-of-settings"
    needs: ClassVar[Mapping[str, Setting]] = {"loop_optimizer": True, "inter_op_threads": 1}

    @classmethod
    def configurations(cls) -> tuple[Config, ...]:
        """All presets: the space is that of the executor."""
        return TensorFlowExecutor.configurations()

    @classmethod
    def control(cls) -> type[TensorFlowExecutor]:
        """The executor with unchanged tests, in all presets."""
        return _UnchangedInAll

    @classmethod
    def _fails(cls, config: Config) -> bool:
        return cls.needs.items() <= (cls.point_of(config) or {}).items()

    @classmethod
    def reaches(cls, test: LitmusTest, config: Config) -> bool:
        """False in all other configurations, and if the test stays as it is."""
        return cls._fails(config) and super().reaches(test, config)

    def prepare(self, test: LitmusTest, config: Config) -> PreparedMutant:  # type: ignore[override]
        """Lower the changed test only if the configuration has both settings."""
        if self._fails(config):
            return super().prepare(test, config)
        return _Unchanged().prepare(test, config)


# --- updates and writes ------------------------------------------------------------------


class SplitUpdates(TensorFlowMutant):
    """AssignAdd, AssignSub and ApplyGradientDescent are a read, arithmetic and a write.

    Killed by two increments, under `executor`. Survives everything under `rfc`.
    """

    name = "mutant/tf-split-updates"

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """The test with three or four nodes in place of one."""
        fresh = _fresh(test)

        def split(node: Node) -> Nodes:
            if node.op not in _ARITHMETIC:
                return (node,)
            after = _unique((*node.after, *node.inputs))
            seen = Node(fresh(f"{node.name}_seen"), "ReadVariableOp", (), node.resources, after)
            made: list[Node] = [seen]
            by = node.inputs[-1]
            if len(node.inputs) == 2:
                by = fresh(f"{node.name}_step")
                made.append(Node(by, "Mul", node.inputs))
            total = Node(fresh(f"{node.name}_sum"), _ARITHMETIC[node.op], (seen.name, by))
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

        return with_levels(test, change)


_ARITHMETIC = {
    "AssignAddVariableOp": "AddV2",
    "AssignSubVariableOp": "Sub",
    "ResourceApplyGradientDescent": "Sub",
}


class TornWrite(TensorFlowMutant):
    """A write of a variable with rows is a ResourceScatterUpdate of all rows.

    That op tears (docs/tensorflow-findings.md). Killed by a wide write that races with a
    read. Survives scalars.
    """

    name = "mutant/tf-torn-write"

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """The test with scatters in place of assignments."""
        rows = {v.name: v.shape[0] for v in test.variables if v.shape}

        def change(node: Node) -> Node:
            if node.op != "AssignVariableOp" or node.resources[0] not in rows:
                return node
            attrs = RowsAttrs(tuple(range(rows[node.resources[0]])))
            return replace(node, op="ResourceScatterUpdate", attrs=attrs)

        return with_nodes(test, change)


# --- sections ----------------------------------------------------------------------------


class TwoHolders(TensorFlowMutant):
    """Sections are left out; their members stay, and keep the order of the section.

    Killed by two sections on one mutex, both of which read and write. Survives a
    section alone.
    """

    name = "mutant/tf-two-holders"

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """The test without sections."""

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

        return with_levels(test, change)


class EarlyRelease(TensorFlowMutant):
    """The last member of a section is not in the section.

    Killed by sections that read and then write. Survives sections of one member.
    """

    name = "mutant/tf-early-release"

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """The test in which each section has one member less."""

        def change(node: Node) -> Node:
            if not isinstance(node.attrs, SectionAttrs) or len(node.attrs.members) < 2:
                return node
            return replace(node, attrs=SectionAttrs(node.attrs.members[:-1]))

        return with_nodes(test, change)


# --- queues ------------------------------------------------------------------------------


class OverCapacity(TensorFlowMutant):
    """A queue takes one element more than its capacity.

    Killed by an op after an enqueue on a full queue. Survives a queue that is
    never full.
    """

    name = "mutant/tf-over-capacity"

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """The test with larger queues."""
        larger = (replace(q, capacity=min(q.capacity + 1, MAX_CAPACITY)) for q in test.queues)
        return replace(test, queues=tuple(larger))


class OutOfOrder(TensorFlowMutant):
    """Of two enqueues, one after the other, the second's element comes first.

    Killed by two elements enqueued one after the other. Survives one enqueue.
    """

    name = "mutant/tf-out-of-order"

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """The test in which the first such pair of each body exchanges its elements."""

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

        return with_levels(test, change)


# --- accumulators ------------------------------------------------------------------------


def _with_operand(test: LitmusTest, op: str, constant: ConstAttrs) -> LitmusTest:
    """The test in which the first operand of each such op is a constant."""
    fresh = _fresh(test)

    def change(nodes: Nodes) -> Nodes:
        changed: list[Node] = []
        for node in nodes:
            if node.op == op:
                changed.append(Node(fresh(f"{node.name}_first"), "Const", attrs=constant))
                node = replace(node, inputs=(changed[-1].name, *node.inputs[1:]))
            changed.append(node)
        return tuple(changed)

    return with_levels(test, change)


class StaleGradient(TensorFlowMutant):
    """An accumulator adds stale gradients: all come from a late step.

    Killed by a gradient after the step has advanced. Survives gradients of the present step.
    """

    name = "mutant/tf-stale-gradient"

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """The test with other local steps."""
        late = ConstAttrs("int64", (), 1 << 20)
        return _with_operand(test, "ResourceAccumulatorApplyGradient", late)


class TooFewGradients(TensorFlowMutant):
    """A take goes on as soon as there is one gradient.

    Killed by a take of two. Survives takes of one.
    """

    name = "mutant/tf-too-few-gradients"

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """The test with takes of one."""
        one = ConstAttrs("int32", (), 1)
        return _with_operand(test, "ResourceAccumulatorTakeGradient", one)


class _RewiredMutant(TensorFlowMutant):
    """TensorFlow, given another graph of the test than the executor built."""

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """The test as it is."""
        return test

    @classmethod
    def reaches(cls, test: LitmusTest, config: Config) -> bool:
        """False if there is no accumulator."""
        del config
        return "accumulators" in test.features

    @classmethod
    def rewire(cls, node: Any) -> None:
        """Change a node of the graph, or of one of its functions, a NodeDef."""
        raise NotImplementedError

    def prepare(self, test: LitmusTest, config: Config) -> PreparedMutant:  # type: ignore[override]
        """Lower the test, and change each graph that is built of it."""
        super().prepare(test, config).close()  # it says what the executor refuses
        rewire = self.rewire

        class Rewired(PreparedTest):
            def build(self, noise: Noise, rng: np.random.Generator, *, sequential: bool) -> Built:
                built = super().build(noise, rng, sequential=sequential)
                functions = built.graph_def.library.function
                bodies = (node for each in functions for node in each.node_def)
                for node in (*built.graph_def.node, *bodies):
                    rewire(node)
                return built

        rewired = Rewired(test, config, self._clock)
        controlled = Settings.of(config).control
        return reported(test, rewired.controlled() if controlled else rewired)


class MeanOfGradients(_RewiredMutant):
    """An accumulator divides the sum by the number of gradients (TensorFlow's reduction MEAN).

    Killed by a take of two gradients. Survives takes of one.
    """

    name = "mutant/tf-mean-of-gradients"

    @classmethod
    def rewire(cls, node: Any) -> None:
        """Set the reduction."""
        if node.op == "ResourceConditionalAccumulator":
            node.attr["reduction_type"].s = b"MEAN"


class StepNotReset(_RewiredMutant):
    """An accumulator keeps its step from one execution to the next.

    Killed by a gradient of step 0, which is stale in the second execution. Survives a gradient
    after a SetGlobalStep.
    """

    name = "mutant/tf-step-not-reset"

    @classmethod
    def rewire(cls, node: Any) -> None:
        """Leave out the initial step, which is a helper."""
        if node.op == "ResourceAccumulatorSetGlobalStep" and "_XlaCompile" in node.attr:
            waits = [source for source in node.input if source.startswith("^")]
            node.op = "NoOp"
            node.input[:] = waits


# --- loops and conditionals --------------------------------------------------------------


class NoWindow(TensorFlowMutant):
    """`parallel_iterations` is ignored.

    Killed, under `executor`, by a loop with a window of 1 whose iterations race.
    Survives under `rfc`, which has no window.
    """

    name = "mutant/tf-no-window"

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """The test in which all iterations may overlap."""

        def change(node: Node) -> Node:
            if not isinstance(node.attrs, LoopAttrs):
                return node
            return replace(node, attrs=replace(node.attrs, parallel_iterations=MAX_ITERATIONS))

        return with_nodes(test, change)


class UnorderedIterations(TensorFlowMutant):
    """The next iteration does not wait for ops that its carried values do not need.

    Killed by a loop that writes one variable, then another, in each iteration. Survives
    a loop whose carried values depend on all its ops.
    """

    name = "mutant/tf-unordered-iterations"

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """The test without control edges to the results of loop bodies."""

        def change(node: Node) -> Node:
            if not isinstance(node.attrs, LoopAttrs):
                return node
            body = node.attrs.body
            nodes = tuple(replace(n, after=()) if n.name in body.results else n for n in body.nodes)
            return replace(node, attrs=replace(node.attrs, body=replace(body, nodes=nodes)))

        return with_nodes(test, change)


class OldFrame(TensorFlowMutant):
    """The body of an iteration uses the carried values of the previous iteration.

    Killed by a loop that sums. Survives a loop that only counts.
    """

    name = "mutant/tf-old-frame"

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """The test in which each carried value but the counter arrives one iteration late."""
        fresh = _fresh(test)

        def change(node: Node) -> Node:
            attrs = node.attrs
            if not isinstance(attrs, LoopAttrs) or len(attrs.carried) < 2:
                return node
            old = {name: fresh(f"{name}_before") for name in attrs.carried[1:]}
            delayed = tuple(
                redirected(each, lambda name: old.get(name, name)) for each in attrs.body.nodes
            )
            results = (*(old.get(r, r) for r in attrs.body.results), *attrs.carried[1:])
            carried = (*attrs.carried, *old.values())
            body = Body(delayed, results)
            return replace(
                node,
                inputs=(*node.inputs, *node.inputs[1:]),
                attrs=replace(attrs, carried=carried, body=body),
            )

        return with_nodes(test, change)


class EarlyBody(TensorFlowMutant):
    """A loop's body executes its writes before the condition is known.

    Killed by a loop whose body writes. Survives one whose body only computes.
    """

    name = "mutant/tf-early-body"

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """The test with such writes in the condition."""
        fresh = _fresh(test)

        def change(node: Node) -> Node:
            attrs = node.attrs
            if not isinstance(attrs, LoopAttrs):
                return node
            body, moved = _without_writes(attrs.body, {}, fresh)
            condition = replace(attrs.condition, nodes=(*attrs.condition.nodes, *moved))
            return replace(node, attrs=replace(attrs, condition=condition, body=body))

        return with_nodes(test, change)


class EarlyBranch(TensorFlowMutant):
    """Both branches execute their writes before the predicate is known.

    Killed by a conditional that writes in one branch. Survives one that only computes.
    """

    name = "mutant/tf-early-branch"

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """The test with such writes before the conditional."""
        fresh = _fresh(test)

        def change(nodes: Nodes) -> Nodes:
            changed: list[Node] = []
            for node in nodes:
                attrs = node.attrs
                if isinstance(attrs, BranchAttrs):
                    captures = dict(attrs.captures)
                    then, moved = _without_writes(attrs.then, captures, fresh)
                    orelse, others = _without_writes(attrs.orelse, captures, fresh)
                    changed += [
                        replace(n, after=_unique((*n.after, *node.after)))
                        if n.definition.has_effect
                        else n
                        for n in (*moved, *others)
                    ]
                    node = replace(node, attrs=replace(attrs, then=then, orelse=orelse))
                changed.append(node)
            return tuple(changed)

        return with_levels(test, change)


# --- calls -------------------------------------------------------------------------------


class EarlyReturn(TensorFlowMutant):
    """Control edges out of a call follow its results only: TensorFlow drops the others.

    Killed by a read after a call that writes, and returns what was there before. Survives a call
    without effects.
    """

    name = "mutant/tf-early-return"

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """The test in which control edges lead from the results of calls, if there are any."""
        calls = {n.name: n for n in test.nodes if isinstance(n.attrs, CallAttrs) and n.results}

        def change(node: Node) -> Node:
            after = [
                each
                for name in node.after
                for each in (calls[name].keys[1:] if name in calls else (name,))
            ]
            return replace(node, after=_unique(after))

        return with_nodes(test, change)


class PrunedCall(TensorFlowMutant):
    """A call none of whose results is used is not executed.

    Killed by a call that writes and returns nothing. Survives one whose result is observed.
    """

    name = "mutant/tf-pruned-call"

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """The test in which such calls are empty."""
        keys = test.nodes_by_key()
        used = {keys[key] for key in test.observe}
        for node in test.nodes:
            used.update(node.references)
            used.update(name for _, body in bodies(node) for name in body.results)

        def change(node: Node) -> Node:
            if not isinstance(node.attrs, CallAttrs) or used.intersection(node.keys[1:]):
                return node
            return replace(node, attrs=CallAttrs((), Body((), ()), ()))

        return with_nodes(test, change)


# --- handles -----------------------------------------------------------------------------


class MissedAlias(TensorFlowMutant):
    """What works on a variable through a handle works on a copy of it.

    Killed by a write through a handle. Survives a test without handles.
    """

    name = "mutant/tf-missed-alias"

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """The test in which all handles are of second copies."""
        fresh = _fresh(test)
        copies = {each.name: fresh(f"{each.name}_there") for each in test.variables}
        extra = tuple(replace(v, name=copies[v.name]) for v in test.variables)

        def change(node: Node) -> Node:
            if isinstance(node.attrs, HandleAttrs):
                return replace(node, attrs=HandleAttrs(copies[node.attrs.variable]))
            if not node.handle:
                return node
            return replace(node, resources=tuple(copies[name] for name in node.resources))

        return with_nodes(replace(test, variables=(*test.variables, *extra)), change)


class FirstHandle(TensorFlowMutant):
    """A conditional returns the handle of its first branch, whatever the predicate is.

    Killed by a conditional that chooses among two variables. Survives one that chooses numbers.
    """

    name = "mutant/tf-first-handle"

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """The test in which both branches return captured handles of the first."""

        def change(node: Node) -> Node:
            attrs = node.attrs
            if not isinstance(attrs, BranchAttrs):
                return node
            handles = {
                inner
                for inner, outer in attrs.captures
                if (kind := test.types[outer]) is not None and kind.is_handle
            }
            results = tuple(
                one if one in handles else other
                for one, other in zip(attrs.then.results, attrs.orelse.results, strict=True)
            )
            orelse = replace(attrs.orelse, results=results)
            return replace(node, attrs=replace(attrs, orelse=orelse))

        graphs = map_nodes(test.graphs, change)
        stands = handles_of(graphs)

        def listed(node: Node) -> Node:
            return replace(node, resources=tuple(stands[node.handle])) if node.handle else node

        return replace(test, graphs=map_nodes(graphs, listed))


# --- computed indices ----------------------------------------------------------------------


class EarlyIndex(TensorFlowMutant):
    """An index that is read from a variable is read before everything else in its graph or body.

    Killed by a write, a read of an index, and a gather of that row, one after another. Survives
    where nothing writes the index.
    """

    name = "mutant/tf-early-index"

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """The test in which such indices come from second reads, which all others wait for."""
        fresh = _fresh(test)

        def change(nodes: Nodes) -> Nodes:
            reads = {n.name: n for n in nodes if n.definition.kind is Kind.READ and not n.inputs}
            early = {
                n.inputs[0]: replace(reads[n.inputs[0]], name=fresh("early"), after=())
                for n in nodes
                if n.definition.computed and n.inputs[0] in reads
            }
            names = tuple(each.name for each in early.values())

            def late(node: Node) -> Node:
                inputs = node.inputs
                if node.definition.computed and inputs[0] in early:
                    inputs = (early[inputs[0]].name, *inputs[1:])
                waits = _on_variables(node) or bool(bodies(node))
                after = (*node.after, *names) if waits else node.after
                return replace(node, inputs=inputs, after=after)

            return (*early.values(), *map(late, nodes)) if early else nodes

        return with_levels(test, change)


class ClippedIndex(TensorFlowMutant):
    """An index beyond a variable's rows stands for the last row, one below 0 for the first.

    Killed by a gather whose index names no row: it must fail. Survives indices in range.

    References
    ----------
    XLA, "Gather": it clamps indices.
    """

    name = "mutant/tf-clipped-index"

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """The test with the indices of gathers and scatters of rows in their range."""
        fresh = _fresh(test)

        def change(nodes: Nodes) -> Nodes:
            made: list[Node] = []
            for node in nodes:
                if node.definition.computed and node.definition.operands[0] == "indices":
                    kind = test.types[node.inputs[0]]
                    assert kind is not None
                    last = test.type_of(node.resources[0]).shape[0] - 1
                    index = node.inputs[0]
                    for op, limit in (("Maximum", 0), ("Minimum", last)):
                        bound, name = fresh("limit"), fresh("clipped")
                        made.append(Node(bound, "Const", attrs=ConstAttrs(kind.dtype, (), limit)))
                        made.append(Node(name, op, (index, bound)))
                        index = name
                    node = replace(node, inputs=(index, *node.inputs[1:]))
                made.append(node)
            return tuple(made)

        return with_levels(test, change)


# --- eager threads -----------------------------------------------------------------------


class _EagerMutant(TensorFlowExecutor):
    """Eager threads that execute another program."""

    support: ClassVar[Support] = Support(
        ops=frozenset(OPS) - DEFINED_OPS, features=FEATURES - Settings(front_end="eager").refuses
    )

    @classmethod
    def configurations(cls) -> tuple[Config, ...]:
        """The configuration `eager_threads`."""
        return (configuration("eager_threads", front_end="eager"),)

    @classmethod
    def control(cls) -> type[TensorFlowExecutor]:
        """The same threads without the defect."""
        return _EagerThreads

    @classmethod
    def wrong(cls) -> type[EagerProgram]:
        """The program with the defect; imports TensorFlow."""
        raise NotImplementedError

    @classmethod
    def reaches(cls, test: LitmusTest, config: Config) -> bool:
        """True, as far as is known here."""
        del test, config
        return True

    def prepare(self, test: LitmusTest, config: Config) -> PreparedEager:
        """Prepare the program with the defect."""
        from litmusfuzz.fuzz.executors.tensorflow.eager import PreparedEager

        for lacking in self.support.lacking(test):
            raise Refused(lacking)
        prepared = super().prepare(test, config)
        assert isinstance(prepared, PreparedEager)
        prepared.new_program = self.wrong()
        return prepared


class _EagerThreads(_EagerMutant):
    name = "control"

    @classmethod
    def wrong(cls) -> type[EagerProgram]:
        from litmusfuzz.fuzz.executors.tensorflow.eager_program import EagerProgram

        return EagerProgram


class OwnVariables(_EagerMutant):
    """Each thread has variables of its own.

    Killed by a run that reads what an earlier one wrote. Survives one run.
    """

    name = "mutant/tf-eager-own-variables"

    @classmethod
    def reaches(cls, test: LitmusTest, config: Config) -> bool:
        """False for a single run."""
        del config
        return len(test.runs) > 1

    @classmethod
    def wrong(cls) -> type[EagerProgram]:
        """A program with others beside it, one for each further run."""
        from litmusfuzz.fuzz.executors.tensorflow.eager_program import EagerProgram

        class Apart(EagerProgram):
            def __init__(self, test: LitmusTest, seed: int) -> None:
                super().__init__(test, seed)
                self.apart = {run.name: EagerProgram(test, seed) for run in test.runs[1:]}

            def reset(self) -> None:
                super().reset()
                for each in self.apart.values():
                    each.reset()

            def execute_run(self, run: Run) -> dict[str, Any]:
                program = self.apart.get(run.name)
                return super().execute_run(run) if program is None else program.execute_run(run)

        return Apart


class SharedFrame(_EagerMutant):
    """Threads that run one graph share its intermediate values.

    Killed by two runs of a graph that reads what it changes. Survives one run.
    """

    name = "mutant/tf-eager-shared-frame"

    @classmethod
    def reaches(cls, test: LitmusTest, config: Config) -> bool:
        """False if each graph has one run."""
        del config
        return len(test.runs) > len({run.graph for run in test.runs})

    @classmethod
    def wrong(cls) -> type[EagerProgram]:
        """A program that keeps the values of each graph."""
        from litmusfuzz.fuzz.executors.tensorflow.eager_program import EagerProgram

        class Shared(EagerProgram):
            def __init__(self, test: LitmusTest, seed: int) -> None:
                super().__init__(test, seed)
                self.frames: dict[str, dict[str, Any]] = {}

            def values_of(self, run: Run) -> dict[str, Any]:
                return self.frames.setdefault(run.graph, {})

        return Shared


class LastOpFirst(_EagerMutant):
    """A thread executes the last op in the file first whose operands and control inputs are there.

    Killed by SB in one run. Survives one chain.
    """

    name = "mutant/tf-eager-last-op-first"

    @classmethod
    def wrong(cls) -> type[EagerProgram]:
        """A program with another order of the nodes."""
        from litmusfuzz.fuzz.executors.tensorflow.eager_program import EagerProgram

        class Reversed(EagerProgram):
            def nodes_of(self, run: Run) -> tuple[Node, ...]:
                left = list(super().nodes_of(run))
                placed: list[Node] = []
                while left:
                    names = {node.name for node in left}
                    node = next(n for n in reversed(left) if not n.sources & names)
                    left.remove(node)
                    placed.append(node)
                return tuple(placed)

        return Reversed


# --- functions ---------------------------------------------------------------------------


class _FunctionMutant(TensorFlowMutant):
    """TensorFlow in the configuration `function`, given a changed test."""

    support: ClassVar[Support] = replace(
        TensorFlowExecutor.support,
        features=TensorFlowExecutor.support.features - Settings(front_end="function").refuses,
    )

    @classmethod
    def configurations(cls) -> tuple[Config, ...]:
        """The configuration `function`."""
        return (configuration("function", front_end="function"),)

    @classmethod
    def control(cls) -> type[TensorFlowExecutor]:
        """The same configuration with unchanged tests."""
        return _Functions

    def prepare(self, test: LitmusTest, config: Config) -> PreparedMutant:  # type: ignore[override]
        """Lower the changed test."""
        for lacking in self.support.lacking(test):
            raise Refused(lacking)
        return super().prepare(test, config)


class _Functions(_FunctionMutant):
    name = "control"

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        return test

    @classmethod
    def reaches(cls, test: LitmusTest, config: Config) -> bool:
        del test, config
        return True


class LostFunctionEdge(_FunctionMutant):
    """Control edges out of a function call are lost.

    Killed by another run that sees what comes after the call, but not what the call does. Survives
    one variable, whose ops automatic control dependencies order.
    """

    name = "mutant/tf-function-lost-edge"

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """The test without those edges."""
        calls = {node.name for node in test.nodes if isinstance(node.attrs, CallAttrs)}
        return with_nodes(
            test, lambda n: replace(n, after=tuple(name for name in n.after if name not in calls))
        )


class FunctionWithoutOrder(_FunctionMutant):
    """A function is traced without automatic control dependencies.

    Killed by SB, of which a function has one outcome. Survives a chain.
    """

    name = "mutant/tf-function-without-order"

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """The test as it is."""
        return test

    @classmethod
    def reaches(cls, test: LitmusTest, config: Config) -> bool:
        """False if no op could come before another."""
        del config
        return len(test.effects) > 1

    def prepare(self, test: LitmusTest, config: Config) -> PreparedMutant:  # type: ignore[override]
        """Prepare the test without a function."""
        plain = configuration("plain", control=Settings.of(config).control)
        return super().prepare(test, plain)


class ClusterInParts(FunctionWithoutOrder):
    """A function with ``jit_compile`` is executed op by op.

    Killed by SB, of which a function has one outcome. Survives a chain.
    """

    name = "mutant/tf-cluster-in-parts"

    @classmethod
    def configurations(cls) -> tuple[Config, ...]:
        """The configuration `function_compiled`."""
        return (configuration("function_compiled", front_end="function", compiled="whole"),)

    @classmethod
    def control(cls) -> type[TensorFlowExecutor]:
        """The same configuration without the defect."""
        return _CompiledFunctions


class _CompiledFunctions(_Functions):
    @classmethod
    def configurations(cls) -> tuple[Config, ...]:
        return ClusterInParts.configurations()


class _MixedMutant(_EagerMutant):
    """Threads that mix ops and functions, and execute another program."""

    @classmethod
    def configurations(cls) -> tuple[Config, ...]:
        """The configuration `eager_functions`."""
        return (configuration("eager_functions", front_end="eager_functions"),)

    @classmethod
    def control(cls) -> type[TensorFlowExecutor]:
        """The same threads without the defect."""
        return _MixedThreads


class _MixedThreads(_MixedMutant):
    name = "control"

    @classmethod
    def wrong(cls) -> type[EagerProgram]:
        from litmusfuzz.fuzz.executors.tensorflow.eager_parts import MixedProgram

        return MixedProgram


class StaleTrace(_MixedMutant):
    """A function keeps the arguments that it was traced with.

    Killed by a value that changes from one execution to the next. Survives one that does not.
    """

    name = "mutant/tf-stale-trace"

    @classmethod
    def wrong(cls) -> type[EagerProgram]:
        """A program whose functions get what they got first."""
        from litmusfuzz.fuzz.executors.tensorflow.eager_parts import MixedProgram, Part

        class Stale(MixedProgram):
            def __init__(self, test: LitmusTest, seed: int) -> None:
                super().__init__(test, seed)
                self.first: dict[int, list[Any]] = {}

            def arguments(self, part: Part, values: dict[str, Any]) -> list[Any]:
                return self.first.setdefault(id(part.function), super().arguments(part, values))

        return Stale


def _without_writes(
    body: Body, outside: Mapping[str, str], fresh: Callable[[str], str]
) -> tuple[Body, Nodes]:
    """A body without its writes that can run early, and those writes with outside names.

    These are writes and updates of variables, in no section, whose operands depend only
    on values from outside, together with the nodes that compute the operands. Their
    control edges are dropped.
    """
    nodes = {node.name: node for node in body.nodes}
    members = {
        name for n in body.nodes if isinstance(n.attrs, SectionAttrs) for name in n.attrs.members
    }
    names = dict(outside)
    moved: list[Node] = []

    def available(name: str) -> bool:
        """Move the nodes that compute a value, if it depends on outside values only."""
        node = nodes.get(name)
        if node is None or name in names:
            return True
        if node.definition.kind is not Kind.PURE or not all(map(available, node.inputs)):
            return False
        names[name] = fresh(f"{name}_early")
        inputs = tuple(names.get(each, each) for each in node.inputs)
        moved.append(replace(node, name=names[name], inputs=inputs, after=()))
        return True

    gone: set[str] = set()
    for node in body.nodes:
        writes = node.definition.kind in (Kind.WRITE, Kind.UPDATE) and node.name not in members
        if writes and all(map(available, node.inputs)):
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
    """Nodes of one graph or body in topological order."""
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
    """A source of names that nothing in the test has."""
    return FreshNames((*test.types, *(each.name for each in test.resources))).like
