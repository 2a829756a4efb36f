"""Devices ``gpu:N``: GPUs where there are some, or a thread that plays one.

References
----------
``docs/decisions/0005-devices.md``.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from litmusfuzz.fuzz.executors.native import _executor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from litmusfuzz.fuzz.executors.protocol import Config


@dataclass(frozen=True, slots=True)
class Gpus:
    """Which GPUs a configuration has.

    Parameters
    ----------
    emulated : bool
        As many as are asked for, each a thread of the host with the same kernels.
        Else those of the machine.
    """

    emulated: bool = False

    @classmethod
    def of(cls, config: Config) -> Gpus:
        """Those that a configuration's settings say."""
        return cls(dict(config.settings).get("gpus") == "emulated")

    @staticmethod
    def library() -> str | None:
        """The plug-in for real ones, if it was built."""
        found = importlib.util.find_spec("litmusfuzz.fuzz.executors.native._cuda")
        return found.origin if found else None

    def lacks(self, device: str) -> str:
        """What is missing for a device, in a few words; nothing if it is there."""
        if device.startswith("cpu:") or self.emulated:
            return ""
        return _missing(_number(device))

    def backends(self, devices: Sequence[str]) -> list[_executor.Backend | None]:
        """Who computes on each of those devices, none of which is missing."""
        return [None if each.startswith("cpu:") else self._backend(each) for each in devices]

    def _backend(self, device: str) -> _executor.Backend:
        if self.emulated:
            return _executor.emulated_gpu()
        library = self.library()
        assert library is not None
        return _executor.cuda_gpu(library, _number(device))


def _number(device: str) -> int:
    return int(device.partition(":")[2])


@cache  # to ask a real GPU takes a moment, and it does not come or go
def _missing(number: int) -> str:
    library = Gpus.library()
    if library is None:
        return "no CUDA toolkit when this was built"
    try:
        _executor.cuda_gpu(library, number)
    except RuntimeError as error:
        return " ".join(str(error).split())
    return ""
