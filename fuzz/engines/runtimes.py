"""Loading of the runtimes that our engines need: oneTBB and OpenMP."""

from __future__ import annotations

import ctypes
import os
from importlib.metadata import PackageNotFoundError, files


def preload(engine: str) -> None:
    """Load the runtime of an engine of ours from its wheel.

    The engine's library finds a runtime in the virtual environment's ``lib`` by itself,
    but the wheel may be elsewhere (``pip --target``, a user's site).
    """
    if engine == "openmp":
        # libgomp reads it on load. By default its threads spin for milliseconds after each
        # loop, and take the cores from other threads.
        os.environ.setdefault("GOMP_SPINCOUNT", "100")
    if engine == "tbb":
        try:
            found = files("tbb") or ()
        except PackageNotFoundError:
            return
        for each in found:
            if each.name == "libtbb.so.12":
                ctypes.CDLL(str(each.locate()))
