"""Configures JAX, which must happen before the first array."""

from __future__ import annotations

import litmusfuzz.fuzz.executors.jax_refs.configured  # noqa: F401
