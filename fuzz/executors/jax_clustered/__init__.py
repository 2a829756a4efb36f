"""Clusters compiled by XLA, everything else op by op with JAX, as a system under test.

- `arrays`: model values -> JAX arrays and back; sets JAX's switches.
- `ops`: what each op computes, in JAX.
- `functions`: ops and clusters -> compiled functions, cached by structure.
- `backend`: what the native core asks for, with those functions.
- `executor`: the protocol.

Nothing here knows what is allowed.
"""
