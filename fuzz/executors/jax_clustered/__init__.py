"""Executor `jax`: compiles clusters with XLA, and runs all other ops one by one with JAX.

- `executor`: the executor protocol. Begin here.
- `arrays`: converts values of the model to JAX arrays and back.
- `ops`: implements each op with JAX.
- `functions`: compiles ops and clusters to functions, cached by structure.
- `references`: writes a cluster as a function over JAX's references.
- `backend`: gives these functions to the C++ core, which schedules them.

This package does not know which outcomes are allowed.
"""
