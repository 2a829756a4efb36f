"""What a shared library needs to have loaded before."""

from __future__ import annotations

import ctypes
import os
from importlib.metadata import PackageNotFoundError, files


def preload(engine: str) -> None:
    """Load the runtime that an engine of ours is linked with, from where its wheel put it.

    A virtual environment's ``lib``, where the library looks by itself, is the rule;
    a wheel may also have gone elsewhere (``pip --target``, a user's site).
    """
    if engine == "openmp":
        # Read by libgomp when it is loaded: by default its threads spin for
        # milliseconds after each loop, beside the work of others.
        os.environ.setdefault("GOMP_SPINCOUNT", "100")
    if engine == "tbb":
        try:
            found = files("tbb") or ()
        except PackageNotFoundError:
            return
        for each in found:
            if each.name == "libtbb.so.12":
                ctypes.CDLL(str(each.locate()))
