"""Clusters compiled by XLA, everything else op by op with JAX, as a system under test.

- `arrays`: model values -> JAX arrays and back; sets JAX's switches.
- `ops`: what each op computes, in JAX.
- `functions`: ops and clusters -> compiled functions, cached by structure.

Nothing here knows what is allowed.
"""
