"""Imports TensorFlow, but not JAX.

TensorFlow Lite's converter imports JAX where it is installed. A fork server has no use for it, and
JAX costs it half a second and 110 MB.
"""

from __future__ import annotations

import importlib
import sys

if "jax" in sys.modules:
    importlib.import_module("tensorflow")
else:
    sys.modules["jax"] = None  # type: ignore[assignment]  # importing it raises ImportError
    try:
        importlib.import_module("tensorflow")
    finally:
        del sys.modules["jax"]
