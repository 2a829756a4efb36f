"""Devices ``gpu:N``: real GPUs, or threads that emulate them.

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
    """The GPUs of a configuration.

    Parameters
    ----------
    emulated : bool
        True for emulated GPUs, any number of them: each is a host thread with the same
        kernels. False for the machine's GPUs.
    """

    emulated: bool = False

    @classmethod
    def of(cls, config: Config) -> Gpus:
        """Return the GPUs of a configuration's settings."""
        return cls(dict(config.settings).get("gpus") == "emulated")

    @staticmethod
    def library() -> str | None:
        """Return the path of the CUDA plug-in; None if it was not built."""
        found = importlib.util.find_spec("litmusfuzz.fuzz.executors.native._cuda")
        return found.origin if found else None

    def lacks(self, device: str) -> str:
        """Say in a few words why a device is missing; "" if it is there."""
        if device.startswith("cpu:") or self.emulated:
            return ""
        return _missing(_number(device))

    def backends(self, devices: Sequence[str]) -> list[_executor.Backend | None]:
        """Return the backend of each device; None where the core computes."""
        return [None if each.startswith("cpu:") else self._backend(each) for each in devices]

    def _backend(self, device: str) -> _executor.Backend:
        if self.emulated:
            return _executor.emulated_gpu()
        library = self.library()
        assert library is not None
        return _executor.cuda_gpu(library, _number(device))


def _number(device: str) -> int:
    return int(device.partition(":")[2])


@cache  # opening a GPU is slow, and the answer does not change
def _missing(number: int) -> str:
    library = Gpus.library()
    if library is None:
        return "no CUDA toolkit when this was built"
    try:
        _executor.cuda_gpu(library, number)
    except RuntimeError as error:
        return " ".join(str(error).split())
    return ""
