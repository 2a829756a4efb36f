"""Mutants of OpenCL devices: the native executor on a device with one defect.

The OpenCL plug-in is compiled a second time with all defects, one of which a mutant switches on
(``fuzz/native/plugins/opencl/device.cpp``). ``tests/kills/test_opencl_mutants.py`` names what kills
and what survives each. Where there is no OpenCL device they are unavailable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.executors.native.executor import NativeExecutor
from litmusfuzz.fuzz.executors.native.lowering import NOT_ON_DEVICES
from litmusfuzz.fuzz.mutants.native import NativeMutant, uses_opencl

if TYPE_CHECKING:
    from litmusfuzz.fuzz.executors.protocol import Config
    from litmusfuzz.fuzz.support import Support


class OpenClMutant(NativeMutant):
    """The native executor on OpenCL devices with one defect."""

    support: ClassVar[Support] = replace(
        NativeExecutor.support, features=NativeExecutor.support.features - NOT_ON_DEVICES
    )

    @classmethod
    def configurations(cls) -> tuple[Config, ...]:
        """Configurations of the executor that have an OpenCL device."""
        return tuple(filter(uses_opencl, NativeExecutor.configurations()))

    @classmethod
    def control(cls) -> type[NativeExecutor]:
        """The same devices with no defect switched on."""
        return _Control

    @property
    def device_defect(self) -> str:  # type: ignore[override]  # a property in place of a member
        """Defect of the devices."""
        return self.defect


class _Control(OpenClMutant):
    name = "control"
    defect = ""


class UnawaitedOperand(OpenClMutant):
    """A kernel does not wait for the commands that wrote its operands.

    Killed by an increment of a computed value. Survives in an in-order queue, and an increment of
    a constant.
    """

    name = "mutant/opencl-unawaited-operand"
    defect = "unawaited operand"


class EventOfWrongQueue(OpenClMutant):
    """A command waits for the last command of its own queue instead of one of another queue.

    Killed by a chain of kernels in two queues. Survives in one queue.
    """

    name = "mutant/opencl-event-of-wrong-queue"
    defect = "event of wrong queue"


class EarlyReuse(OpenClMutant):
    """The memory of a value is used again while commands of the last execution may write it.

    Killed by a value that nobody reads. Survives where each value is waited for.
    """

    name = "mutant/opencl-early-reuse"
    defect = "early reuse"


class UnawaitedUpload(OpenClMutant):
    """No command waits for a copy to the device.

    Killed by a value that the host sends. Survives on a device alone, whose constants are there.
    """

    name = "mutant/opencl-unawaited-upload"
    defect = "unawaited upload"


class UnawaitedDownload(OpenClMutant):
    """The host does not wait for a copy from the device.

    Killed by the first value that it reads. Survives maps.
    """

    name = "mutant/opencl-unawaited-download"
    defect = "unawaited download"


class StaleMap(OpenClMutant):
    """A buffer is mapped without waiting for the commands that write it.

    Killed by a computed value that the host reads. Survives in an in-order queue.
    """

    name = "mutant/opencl-stale-map"
    defect = "stale map"


class Contraction(OpenClMutant):
    """The compiler may fuse a multiplication and an addition, which rounds once.

    Killed by the comparison of kernels, before a test runs. No test could: the values of a litmus
    test are never rounded.
    """

    name = "mutant/opencl-contraction"
    defect = "contraction"
