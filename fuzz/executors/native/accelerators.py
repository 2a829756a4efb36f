"""Devices beside the host: ``gpu:N``, real or emulated GPUs, and ``opencl:N``.

References
----------
``docs/decisions/0005-devices.md``.
"""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.executors.native import _executor
from litmusfuzz.fuzz.executors.setting_types import Flag, Number, Text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from litmusfuzz.fuzz.executors.protocol import Config
    from litmusfuzz.fuzz.executors.setting_types import SettingType

OPENCL_SETTINGS: Final[dict[str, SettingType]] = {
    "opencl_platform": Text("[ -~]{1,80}", "number of an OpenCL platform, or part of its name"),
    "opencl_sub_devices": Number(1, 64),
    "opencl_queues": Number(1, 8),
    "opencl_out_of_order": Flag(),
    "opencl_gated": Flag(),
}
"""Settings of configurations, each a field of `OpenCl`."""
_COMPARED: Final = (1, 6)
"""Elements of the values with which a device's kernels are compared with the host's."""


@dataclass(frozen=True, slots=True)
class OpenCl:
    """How devices ``opencl:N`` are chosen and used.

    Parameters
    ----------
    platform : str
        Number of a platform, or a part of its name; "" for all platforms. Devices are numbered
        through the platforms.
    sub_devices : int
        Parts into which each device is partitioned; each part is a device. One that cannot be
        partitioned counts once.
    queues : int
        Command queues of a device, which take commands in turns.
    out_of_order : bool
        A queue starts each command when those are done that it waits for.
    gated : bool
        Commands are held back, and released one by one in a random order that their waits allow.
    defect : str
        Of a mutant; "" for none.
    """

    platform: str = ""
    sub_devices: int = 1
    queues: int = 1
    out_of_order: bool = False
    gated: bool = False
    defect: str = ""

    @classmethod
    def of(cls, config: Config, defect: str = "") -> OpenCl:
        """Return what a configuration's settings say."""
        given: dict[str, Any] = {
            name.removeprefix("opencl_"): value
            for name, value in config.settings
            if name in OPENCL_SETTINGS
        }
        return cls(**given, defect=defect)

    @property
    def settings(self) -> list[tuple[str, str | int | bool]]:
        """Settings of a configuration that differ from the default."""
        fields = (name.removeprefix("opencl_") for name in OPENCL_SETTINGS)
        return [
            (f"opencl_{name}", value)
            for name in fields
            if (value := getattr(self, name)) != getattr(IN_ORDER, name)
        ]

    def open(self, module: Any, number: int) -> _executor.Gpu:
        """Open a device; raises RuntimeError, with one line, if that is not possible."""
        refuse_beside_tensorflow()
        gpu: _executor.Gpu = module.plugin_gpu(
            library("opencl", module),
            platform=self.platform,
            number=number,
            sub_devices=self.sub_devices,
            queues=self.queues,
            out_of_order=self.out_of_order,
            gated=self.gated,
            defect=self.defect,
        )
        return gpu


IN_ORDER: Final = OpenCl()
"""One queue, which executes commands in their order."""
GATED: Final = OpenCl(queues=2, out_of_order=True, gated=True)


@dataclass(frozen=True, slots=True)
class Accelerators:
    """The devices beside the host of a configuration.

    Parameters
    ----------
    emulated : bool
        True for emulated GPUs, any number of them: each is a host thread with the same
        kernels. False for the machine's GPUs.
    opencl : OpenCl
    module : module
        The core: `_executor`, or that of the mutants.
    """

    emulated: bool = False
    opencl: OpenCl = IN_ORDER
    module: Any = _executor

    @classmethod
    def of(cls, config: Config, module: Any = _executor, defect: str = "") -> Accelerators:
        """Return the devices of a configuration's settings."""
        emulated = dict(config.settings).get("gpus") == "emulated"
        return cls(emulated, OpenCl.of(config, defect), module)

    def lacks(self, device: str) -> str:
        """Say in a few words why a device cannot be used; "" if it can.

        An OpenCL device can be used only if its kernels compute what the host's do.
        """
        sort, number = _parts(device)
        if sort == "cpu" or (sort == "gpu" and self.emulated):
            return ""
        if library("cuda" if sort == "gpu" else sort, self.module) is None:
            what = "CUDA toolkit" if sort == "gpu" else "OpenCL headers"
            return f"no {what} when this was built"
        if sort == "gpu":
            return _missing_gpu(number)
        try:
            refuse_beside_tensorflow()  # not cached: it may have been loaded since
        except RuntimeError as error:
            return str(error)
        return _missing_opencl(self, number)

    def driver(self, device: str) -> str:
        """Return name, platform and driver's version of a device that is there; "" without one."""
        sort, number = _parts(device)
        if sort == "cpu" or (sort == "gpu" and self.emulated):
            return ""
        found = _listed(self, "cuda" if sort == "gpu" else sort)
        return found[number] if number < len(found) else ""

    def backends(self, devices: Sequence[str]) -> list[_executor.Gpu | None]:
        """Return the backend of each device; None where the core computes."""
        return [None if each.startswith("cpu:") else self._backend(each) for each in devices]

    def _backend(self, device: str) -> _executor.Gpu:
        sort, number = _parts(device)
        gpu: _executor.Gpu
        if sort == "opencl":
            gpu = self.opencl.open(self.module, number)
        elif self.emulated:
            gpu = self.module.emulated_gpu()
        else:
            gpu = self.module.plugin_gpu(library("cuda", self.module), number=number)
        return gpu


def library(name: str, module: Any = _executor) -> str | None:
    """Return the path of a plug-in, ``cuda`` or ``opencl``; None if it was not built.

    Parameters
    ----------
    name : str
    module : module
        The core that loads it: the mutants have an OpenCL plug-in of their own.
    """
    package = "litmusfuzz.fuzz.executors.native" if name == "cuda" else module.__name__
    package = package if name == "cuda" else package.rpartition(".")[0]
    found = importlib.util.find_spec(f"{package}._{name}")
    return found.origin if found else None


def opencl_devices(platform: str = "", sub_devices: int = 1) -> list[str]:
    """Describe the OpenCL devices of this machine, by number; loads their drivers.

    Raises
    ------
    RuntimeError
        With one line, if there is no plug-in, or no OpenCL.
    """
    path = library("opencl")
    if path is None:
        raise RuntimeError("no OpenCL headers when this was built")
    refuse_beside_tensorflow()
    return _executor.plugin_devices(path, platform=platform, sub_devices=sub_devices)


def refuse_beside_tensorflow() -> None:
    """Refuse OpenCL in a process that has loaded TensorFlow; raises RuntimeError, with one line.

    A driver may bring a compiler of its own, as pocl brings LLVM. TensorFlow has another LLVM, and
    loads it with symbols for all: the driver then calls functions of the wrong one, and the process
    crashes. Workers of the native executor do not load TensorFlow.
    """
    if "tensorflow" in sys.modules:
        raise RuntimeError("OpenCL is not used in a process that has loaded TensorFlow")


def _parts(device: str) -> tuple[str, int]:
    sort, _, number = device.partition(":")
    return sort, int(number)


@cache
def _listed(accelerators: Accelerators, plug_in: str) -> list[str]:
    path = library(plug_in, accelerators.module)
    assert path is not None  # a device of it has been opened
    opencl = accelerators.opencl
    found: list[str] = accelerators.module.plugin_devices(
        path, platform=opencl.platform, sub_devices=opencl.sub_devices
    )
    return found


@cache  # opening a device is slow, and the answer does not change
def _missing_gpu(number: int) -> str:
    try:
        _executor.plugin_gpu(str(library("cuda")), number=number)
    except RuntimeError as error:
        return " ".join(str(error).split())
    return ""


@cache
def _missing_opencl(accelerators: Accelerators, number: int) -> str:
    try:
        gpu = accelerators.opencl.open(accelerators.module, number)
        # Of kernels alone: in the queues' order, one by one.
        plain = replace(accelerators.opencl, queues=1, out_of_order=False, gated=False)
        gpu = plain.open(accelerators.module, number)
        different = gpu.kernel_differences(_COMPARED)
    except RuntimeError as error:
        return " ".join(str(error).split())
    more = f", and {len(different) - 1} more" if len(different) > 1 else ""
    return f"its kernels differ from the host's: {different[0]}{more}" if different else ""
