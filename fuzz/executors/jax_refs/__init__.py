"""Executor `jax_refs`: tests as programs over JAX's own references (`jax.new_ref`).

JAX documents that functions over references are sequenced in program order; its compiler makes
a pure function of them. A test has a single outcome there (the model `sequential`), in every
transformation that the documentation allows.

- `executor`: the executor protocol. Begin here.
- `space`: the configuration space: how a program is written, and how JAX transforms it.
- `configured`: configures JAX.
- `lowering`: one litmus op, loop, conditional or call as JAX code over references.
- `pure_ops`: the pure ops that JAX has; `written_values`: the same as text, for a script.
- `program`: the functions that are transformed: all runs of a test over its references.
- `refusals`: the reviewed messages with which JAX refuses a program.

`litmusfuzz.fuzz.executors.traced` has what is not JAX's own. JAX is imported with the first test.

References
----------
JAX, "Ref: mutable arrays for data plumbing and memory control" (docs/array_refs), of the installed
release; docs/jax-references.md has its rules in our words.
"""
