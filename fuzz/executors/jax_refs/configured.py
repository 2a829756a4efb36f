"""Configures JAX for the executors that run it; import it before the first array."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import jax

from litmusfuzz.fuzz.executors.protocol import Refused

if TYPE_CHECKING:
    from collections.abc import Sequence

# Workers share a GPU: JAX would give the first of them three quarters of its memory.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
# int64 and float64 are dtypes of the model.
jax.config.update("jax_enable_x64", val=True)  # type: ignore[no-untyped-call]
# Virtual CPU devices, for tests on several devices.
jax.config.update("jax_num_cpu_devices", val=4)  # type: ignore[no-untyped-call]
# A call must end when it returns, so that the engine alone controls the schedule.
jax.config.update("jax_cpu_enable_async_dispatch", val=False)  # type: ignore[no-untyped-call]
# Failures are grouped by the place in JAX that raised them.
jax.config.update("jax_traceback_filtering", val="off")  # type: ignore[no-untyped-call]


def jax_devices(names: Sequence[str]) -> list[jax.Device]:
    """JAX's devices for the device names of a test.

    Raises
    ------
    Refused
        If JAX lacks a device; the message names it.
    """
    found = []
    for name in names:
        platform, _, number = name.partition(":")
        try:
            available = jax.devices(platform)
        except RuntimeError:
            raise Refused(f"device {name} (JAX sees no {platform.upper()})") from None
        if int(number) >= len(available):
            raise Refused(f"device {name} (JAX has {len(available)} of them)")
        found.append(available[int(number)])
    return found
