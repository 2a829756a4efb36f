"""Mutants of the native executor, each with one defect.

What can be said as a change of the test is a `ChangedTest`, in Python: the sound core executes the
changed test. All other defects are in the C++ core. It is compiled a second time with all of them,
one of which a mutant switches on (``fuzz/native/core/defect.h``). Engines and configurations are
those of the executor. The tests in ``tests/kills/test_native_mutants.py`` name, for each mutant, a
shape that kills it and a shape that it survives. ``litmusfuzz selftest`` kills each mutant with
tests that are the same for every executor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from litmusfuzz.corpus.ops import Kind
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.executors.native.executor import NativeExecutor, PreparedTest
from litmusfuzz.fuzz.executors.protocol import Refused
from litmusfuzz.fuzz.mutants import _mutants, runs
from litmusfuzz.fuzz.mutants.changed_test import ChangesTest, with_nodes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from litmusfuzz.corpus.model import LitmusTest, Node
    from litmusfuzz.fuzz.executors.native import _executor
    from litmusfuzz.fuzz.executors.native.lowering import Program, Strictness
    from litmusfuzz.fuzz.executors.protocol import Config
    from litmusfuzz.fuzz.support import Support


class PreparedMutant(PreparedTest):
    """A test, loaded into the core that has the defect."""

    module: ClassVar[Any] = _mutants

    def __init__(
        self,
        test: LitmusTest,
        config: Config,
        defect: str,
        strictness: Mapping[str, Strictness] | None = None,
    ) -> None:
        self._defect = defect
        super().__init__(test, config, strictness)

    @property
    def device_defect(self) -> str:  # type: ignore[override]  # a property in place of a member
        """Defect of the devices."""
        return self._defect

    def load(self, program: Program) -> _executor.Program:
        """Load the lowered test into the core."""
        return _mutants.load(program, self._defect, self.backends(program))


def uses_opencl(config: Config) -> bool:
    """True for a configuration with an OpenCL device, which the mutants in `opencl` have."""
    return "opencl:" in str(dict(config.settings).get("devices", ""))


class NativeMutant(NativeExecutor):
    """The native executor with one defect."""

    module: ClassVar[Any] = _mutants
    defect: ClassVar[str]
    needs: ClassVar[str] = ""
    """The feature that a test must have to reach the defect, if there is one."""

    @classmethod
    def reaches(cls, test: LitmusTest, config: Config) -> bool:
        """False for a test that lacks the feature which the defect is about."""
        del config
        return not cls.needs or cls.needs in test.features

    @classmethod
    def configurations(cls) -> tuple[Config, ...]:
        """Configurations of the executor that use one process, and no OpenCL device."""
        every = super().configurations()
        here = (config for config in every if not dict(config.settings).get("processes"))
        return tuple(config for config in here if not uses_opencl(config))

    @classmethod
    def control(cls) -> type[NativeExecutor]:
        """The same core with no defect switched on."""
        return _Control

    def prepare(self, test: LitmusTest, config: Config) -> PreparedTest:
        """Lower and load the test."""
        return PreparedMutant(test, config, self.defect)


class _Control(NativeMutant):
    name = "control"
    defect = ""


class _OverInitializedMemory(NativeMutant):
    """A defect in the memory of variables, which have a value."""

    support: ClassVar[Support] = replace(
        NativeExecutor.support,
        features=NativeExecutor.support.features - {"uninitialized variables"},
    )

    @classmethod
    def control(cls) -> type[NativeExecutor]:
        """The same core with no defect switched on, and the same support."""
        return _ControlOverInitializedMemory

    def prepare(self, test: LitmusTest, config: Config) -> PreparedTest:
        """Lower and load the test, if all of its variables have a value."""
        if "uninitialized variables" in test.features:
            raise Refused("uninitialized variables")
        return super().prepare(test, config)


class _ControlOverInitializedMemory(_OverInitializedMemory):
    name = "control"
    defect = ""


class RelaxedAtomics(_OverInitializedMemory):
    """Reads and writes of a word are relaxed atomics, without the variable's lock.

    A node that waits only for a write runs next on the same thread. Killed by SB on two
    cores, through the processor's store buffers. Survives MP: x86 keeps the order of
    stores and the order of loads.
    """

    name = "mutant/relaxed-atomics"
    defect = "relaxed atomics"


class StoreBuffers(_OverInitializedMemory):
    """Each thread buffers its writes until its next update or the end of its chain.

    Killed by SB. Survives MP: the buffer is first in, first out.
    """

    name = "mutant/store-buffers"
    defect = "store buffers"


class StaleCache(_OverInitializedMemory):
    """Values read are cached; a write empties the cache, and an update does not.

    Killed by a read after an update after a read. Survives SB and MP, which have no
    update.
    """

    name = "mutant/stale-cache"
    defect = "stale cache"


class TornWrite(_OverInitializedMemory):
    """A write copies its elements one by one while other ops read them.

    Killed by a wide write that races with a write or a read. Survives scalars.
    """

    name = "mutant/torn-write"
    defect = "torn write"


class InPlaceUpdate(_OverInitializedMemory):
    """An update changes a buffer that a reader shares.

    Killed by a wide read before an update. Survives scalars, which have no buffer.
    """

    name = "mutant/in-place-update"
    defect = "in-place update"


class AlwaysInitialized(NativeMutant):
    """VarIsInitializedOp tells that each variable has a value.

    Killed by the op before the first write. Survives it after the write.
    """

    name = "mutant/always-initialized"
    defect = "always initialized"
    needs = "uninitialized variables"


class ZeroForNoValue(NativeMutant):
    """A read of a variable that has no value returns zeros.

    Killed by such a read. Survives reads after the first write.
    """

    name = "mutant/zero-for-no-value"
    defect = "zero for no value"
    needs = "uninitialized variables"


class DroppedControlEdge(NativeMutant):
    """Each graph and body loses its last control edge between two ops on variables.

    Killed by MP. Survives a chain of values, which has data edges only.
    """

    name = "mutant/dropped-control-edge"
    defect = "dropped control edge"


class EarlySink(NativeMutant):
    """A run counts as done before its last op is.

    Killed by two runs, one after the other. Survives a run whose last op changes nothing.
    """

    name = "mutant/early-sink"
    defect = "early sink"


class OneRunWaitedFor(NativeMutant):
    """A run that comes after several others waits only for the first of them.

    Killed by a run after two others. Survives a sequence of runs.
    """

    name = "mutant/one-run-waited-for"
    defect = "one run waited for"
    needs = "several runs"


class EarlyTransfer(NativeMutant):
    """The transfer of a control edge does not wait for the source of the edge.

    Killed by MP on two devices. Survives on one.
    """

    name = "mutant/early-transfer"
    defect = "early transfer"


class CopiedVariables(NativeMutant):
    """Each device has its own copy of every variable.

    Killed on two devices by a read after a write. Survives on one.
    """

    name = "mutant/copied-variables"
    defect = "copied variables"


class SplitUpdates(NativeMutant):
    """Dense updates are split, although the guarantee is `executor`.

    Killed by two increments, under `executor`. Survives everything under `rfc`.
    """

    name = "mutant/split-updates"
    defect = ""

    @classmethod
    def configurations(cls) -> tuple[Config, ...]:
        """Configurations of the executor, with split updates and an unchanged guarantee."""
        return tuple(
            replace(
                config, settings=tuple((dict(config.settings) | {"split_updates": True}).items())
            )
            for config in super().configurations()
            if config.guarantees == "executor"
        )


class TwoHolders(NativeMutant):
    """Every acquire of a mutex succeeds at once.

    Killed by two sections on one mutex, both of which read and write. Survives a
    section alone.
    """

    name = "mutant/two-holders"
    defect = "two holders"
    needs = "critical sections"


class EarlyRelease(NativeMutant):
    """A mutex is released before the last member of its section has run.

    Killed by sections that read and then write. Survives sections whose result
    does not depend on the last member.
    """

    name = "mutant/early-release"
    defect = "early release"
    needs = "critical sections"


class LastInFirstOut(NativeMutant):
    """A dequeue takes the newest element.

    Killed by two elements enqueued one after the other. Survives a queue of capacity 1.
    """

    name = "mutant/last-in-first-out"
    defect = "last in, first out"
    needs = "queues"


class OverCapacity(NativeMutant):
    """A queue takes one element more than its capacity.

    Killed by an op after an enqueue on a full queue. Survives a queue that is
    never full.
    """

    name = "mutant/over-capacity"
    defect = "over capacity"
    needs = "queues"


class StaleGradient(NativeMutant):
    """An accumulator adds stale gradients.

    Killed by a gradient after the step has advanced. Survives gradients of the present step.
    """

    name = "mutant/stale-gradient"
    defect = "stale gradient"
    needs = "accumulators"


class GradientTwice(NativeMutant):
    """An accumulator adds each gradient twice, and counts it once.

    Killed by a take of one gradient. Survives where only counts are observed.
    """

    name = "mutant/gradient-twice"
    defect = "gradient twice"
    needs = "accumulators"


class TooFewGradients(NativeMutant):
    """A take goes on as soon as there is one gradient.

    Killed by a take of two. Survives takes of one.
    """

    name = "mutant/too-few-gradients"
    defect = "too few gradients"
    needs = "accumulators"


class KeptSum(NativeMutant):
    """A take empties the count, and keeps the sum.

    Killed by a take, whose accumulator then holds a sum. Survives where nothing is taken.
    """

    name = "mutant/kept-sum"
    defect = "kept sum"
    needs = "accumulators"


class OldStep(NativeMutant):
    """A take does not advance the accumulator's step.

    Killed by a gradient of the old step after a take. Survives a take of all gradients.
    """

    name = "mutant/old-step"
    defect = "old step"
    needs = "accumulators"


class LostWakeUp(NativeMutant):
    """Of several ops that wait for one queue or mutex, only one is woken.

    Killed by two blocked dequeues: the test blocks. Survives one waiting op. It cannot
    show on the controlled engine, which never starts an op that must wait.
    """

    name = "mutant/lost-wake-up"
    defect = "lost wake-up"


class OldFrame(NativeMutant):
    """The body of an iteration uses the carried values of the previous iteration.

    Killed by a loop that sums. Survives a loop that only counts.
    """

    name = "mutant/old-frame"
    defect = "old frame"
    needs = "loops"


class EarlyBody(NativeMutant):
    """A loop's body begins before its condition is known.

    Killed by a loop whose body writes. Survives one whose body only computes.
    """

    name = "mutant/early-body"
    defect = "early body"
    needs = "loops"


class NoWindow(NativeMutant):
    """`parallel_iterations` is ignored.

    Killed, under `executor`, by a loop with a window of 1 whose iterations race.
    Survives under `rfc`, which has no window.
    """

    name = "mutant/no-window"
    defect = "no window"
    needs = "loops"


class EarlyReturn(NativeMutant):
    """Control edges out of a call follow its results only.

    Killed by a read after a call that writes, and returns what was there before. Survives a call
    without effects.
    """

    name = "mutant/early-return"
    defect = "early return"
    needs = "calls"


class PrunedCall(NativeMutant):
    """A call none of whose results is used is not executed.

    Killed by a call that writes and returns nothing. Survives one whose result is observed.
    """

    name = "mutant/pruned-call"
    defect = "pruned call"
    needs = "calls"


class MissedAlias(NativeMutant):
    """What works on a variable through a handle works on a copy of it.

    Killed by a read through a handle after a write without one. Survives if all ops of a variable
    go through handles, but for the final value.
    """

    name = "mutant/missed-alias"
    defect = "missed alias"
    needs = "handles"


class ChangedTest(ChangesTest, NativeMutant):
    """The native executor, given a changed test."""

    defect = ""

    def prepare(self, test: LitmusTest, config: Config) -> PreparedTest:
        """Lower the changed test."""
        return super().prepare(self.executed(test), config)


class NamedNode(ChangedTest):
    """An op on a resource waits for no control edge if it is named c1.

    A compiler fails like this that takes a node for a constant by its name. Killed by MP whose
    later read is named so. Survives MP under other names, and tests in which a constant has that
    name, as in generated ones.
    """

    name = "mutant/named-node"
    node: ClassVar[str] = "c1"

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """The test without the control edges to that node."""

        def fails(node: Node) -> bool:
            return node.name == cls.node and bool(node.resources)

        return _without_control_edges(test, fails)


class LargeEarlyRead(ChangedTest):
    """A read of more than 2**18 lanes waits for no control edge.

    A runtime fails like this that starts to copy a large tensor as early as it can. Killed by MP
    with 2**19 lanes. Survives MP with 2**18 lanes.
    """

    name = "mutant/large-early-read"
    lanes: ClassVar[int] = 1 << 18

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """The test without the control edges to such reads."""
        large = {
            v.name for v in test.variables if v.shape and v.type.size // v.shape[0] > cls.lanes
        }

        def fails(node: Node) -> bool:
            return node.definition.kind is Kind.READ and not large.isdisjoint(node.resources)

        return _without_control_edges(test, fails)


class Unpruned(ChangedTest):
    """A run executes its whole graph, whatever it fetches.

    Killed by a write that nothing fetched needs. Survives runs that fetch nothing.
    """

    name = "mutant/unpruned"

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """The test with that defect."""
        return runs.unpruned(test)


class DataOnlyNeeds(ChangedTest):
    """What a run fetches needs what data edges lead to, and not what control edges lead to.

    Killed by a write before a fetched read. Survives a fetched chain of values.
    """

    name = "mutant/data-only-needs"

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """The test with that defect."""
        return runs.data_only(test)


class SectionNotEntered(ChangedTest):
    """A run that executes some members of a critical section does not acquire the mutex.

    Killed by two fetched reads in a section, of three members. Survives a run of the whole
    section.
    """

    name = "mutant/section-not-entered"

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """The test with that defect."""
        return runs.without_sections(test)


class BodyWithoutEffects(ChangedTest):
    """Of a fetched loop or conditional only what its results need is executed.

    Killed by a loop that writes what it does not return. Survives it in a run that fetches
    nothing.
    """

    name = "mutant/body-without-effects"

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """The test with that defect."""
        return runs.without_effects(test)


class SwappedFeeds(ChangedTest):
    """Runs of one graph are fed each other's values.

    Killed by two runs, one after the other, that are fed different values. Survives a single
    run.
    """

    name = "mutant/swapped-feeds"

    @classmethod
    def changed(cls, test: LitmusTest) -> LitmusTest:
        """The test with that defect."""
        return runs.swapped_feeds(test)


def _without_control_edges(test: LitmusTest, fails: Callable[[Node], bool]) -> LitmusTest:
    """The test in which some nodes wait for no control edge."""

    def freed(node: Node) -> Node:
        return replace(node, after=()) if fails(node) else node

    return with_nodes(test, freed)
