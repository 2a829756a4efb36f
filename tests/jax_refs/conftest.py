"""Configures JAX, which must happen before the first array."""

from __future__ import annotations

import litmusfuzz.fuzz.executors.jax_refs.lowering  # noqa: F401
