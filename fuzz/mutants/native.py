"""Mutants of the native executor: each breaks one rule, in C++, and nothing else.

They share its sources, compiled once more with the defects in
(``fuzz/native/core/defect.h``), its engines and its configurations. The tests in
``tests/kills/test_native_mutants.py`` have for each the shape that kills it and one
that it survives; ``litmusfuzz selftest`` kills each by what it tries on any executor.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from litmusfuzz.fuzz.executors.native.executor import NativeExecutor, PreparedTest
from litmusfuzz.fuzz.mutants import _mutants

if TYPE_CHECKING:
    from collections.abc import Mapping

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.executors.native import _executor
    from litmusfuzz.fuzz.executors.native.lowering import Program, Strictness
    from litmusfuzz.fuzz.executors.protocol import Config


class PreparedMutant(PreparedTest):
    """A test, loaded into the core with the defect."""

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

    def load(self, program: Program) -> _executor.Program:
        """The lowered test, in the core."""
        return _mutants.load(program, self._defect)


class NativeMutant(NativeExecutor):
    """The native executor with a defect."""

    defect: ClassVar[str]

    @classmethod
    def configurations(cls) -> tuple[Config, ...]:
        """Those of the executor that have one process."""
        every = super().configurations()
        return tuple(config for config in every if not dict(config.settings).get("processes"))

    @classmethod
    def control(cls) -> type[NativeExecutor]:
        """The same core, in which no defect is on."""
        return _Sound

    def prepare(self, test: LitmusTest, config: Config) -> PreparedTest:
        """Lower and load the test."""
        return PreparedMutant(test, config, self.defect)


class _Sound(NativeMutant):
    name = "control"
    defect = ""


class RelaxedAtomics(NativeMutant):
    """Reads and writes of a word are relaxed atomics, without the variable's lock.

    What only waits for a write goes on at once, on the same thread. Killed by SB on
    two cores, whose store buffers are real. Survives MP: x86 keeps the order of stores
    and that of loads.
    """

    name = "mutant/relaxed-atomics"
    defect = "relaxed atomics"


class StoreBuffers(NativeMutant):
    """Each thread keeps its writes to itself until its next update, or its chain's end.

    Killed by SB. Survives MP: the buffer is first in, first out.
    """

    name = "mutant/store-buffers"
    defect = "store buffers"


class StaleCache(NativeMutant):
    """A cache of what was read, which a write empties and an update does not.

    Killed by a read after an update after a read. Survives SB and MP, which have no
    update.
    """

    name = "mutant/stale-cache"
    defect = "stale cache"


class TornWrite(NativeMutant):
    """A write copies its elements one after another while others read them.

    Killed by two wide writes, or one beside a read. Survives scalars.
    """

    name = "mutant/torn-write"
    defect = "torn write"


class InPlaceUpdate(NativeMutant):
    """An update changes the buffer though a reader has a share in it.

    Killed by a wide read before an update. Survives scalars, which have no buffer.
    """

    name = "mutant/in-place-update"
    defect = "in-place update"


class DroppedControlEdge(NativeMutant):
    """The last control edge between two ops on variables, in each body, is dropped.

    Killed by MP. Survives a chain of values, which has data edges only.
    """

    name = "mutant/dropped-control-edge"
    defect = "dropped control edge"


class EarlySink(NativeMutant):
    """A run is taken for done before its last op is.

    Killed by two runs, one after the other. Survives every test of one run.
    """

    name = "mutant/early-sink"
    defect = "early sink"


class OneRunWaitedFor(NativeMutant):
    """Of several runs that come before one, it waits for the first to end.

    Killed by a run after two others. Survives runs in a row.
    """

    name = "mutant/one-run-waited-for"
    defect = "one run waited for"


class EarlyTransfer(NativeMutant):
    """What is sent for a control edge does not wait for where the edge begins.

    Killed by MP on two devices. Survives on one.
    """

    name = "mutant/early-transfer"
    defect = "early transfer"


class CopiedVariables(NativeMutant):
    """Each device has a copy of its own of every variable.

    Killed on two devices by a read after a write. Survives on one.
    """

    name = "mutant/copied-variables"
    defect = "copied variables"


class SplitUpdates(NativeMutant):
    """Dense updates are in parts, though the promise is `executor`.

    Killed by two increments, under `executor`. Survives everything under `rfc`.
    """

    name = "mutant/split-updates"
    defect = ""

    @classmethod
    def configurations(cls) -> tuple[Config, ...]:
        """Those of the executor, all of them with split updates, and the same promise."""
        return tuple(
            replace(
                config, settings=tuple((dict(config.settings) | {"split_updates": True}).items())
            )
            for config in super().configurations()
            if config.guarantees == "executor"
        )


class TwoHolders(NativeMutant):
    """A mutex is given to whoever asks.

    Killed by two sections on one mutex, both of which read and write. Survives a
    section alone.
    """

    name = "mutant/two-holders"
    defect = "two holders"


class EarlyRelease(NativeMutant):
    """A mutex is released before the last member of its section has run.

    Killed by sections that read and then write. Survives sections of which the order
    of the last members does not matter.
    """

    name = "mutant/early-release"
    defect = "early release"


class LastInFirstOut(NativeMutant):
    """A queue gives away its newest element.

    Killed by two elements enqueued one after the other. Survives a queue of capacity 1.
    """

    name = "mutant/last-in-first-out"
    defect = "last in, first out"


class OverCapacity(NativeMutant):
    """A queue takes one element more than it has room for.

    Killed by what comes after an enqueue on a full queue. Survives a queue that is
    never full.
    """

    name = "mutant/over-capacity"
    defect = "over capacity"


class LostWakeUp(NativeMutant):
    """Of several ops that wait for one queue or mutex, one is woken; the rest sleep on.

    Killed by two dequeues that wait: the test blocks. Survives one waiter. The
    controlled engine has no waiters: it never performs what must wait.
    """

    name = "mutant/lost-wake-up"
    defect = "lost wake-up"


class OldFrame(NativeMutant):
    """The body of an iteration reads the carried values of the one before.

    Killed by a loop that sums. Survives a loop that only counts.
    """

    name = "mutant/old-frame"
    defect = "old frame"


class EarlyBody(NativeMutant):
    """A loop's body begins before its condition is known.

    Killed by a loop whose body writes. Survives one whose body only computes.
    """

    name = "mutant/early-body"
    defect = "early body"


class NoWindow(NativeMutant):
    """`parallel_iterations` is ignored.

    Killed, under `executor`, by a loop with a window of 1 whose iterations race.
    Survives under `rfc`, which has no window.
    """

    name = "mutant/no-window"
    defect = "no window"
