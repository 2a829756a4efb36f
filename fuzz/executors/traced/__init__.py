"""Traced, sequential systems: what their executors share, apart from any one of them.

Such a system takes a program of one thread, in which Python code reads and writes mutable
references, and makes a pure function of it: JAX with its references, for one. Its documentation
guarantees program order, which leaves a test a single outcome (the model `sequential`).

- `walk`: executes the nodes of a test in program order over a `System`, which has the references,
  the control flow and the calls.
- `pure_uses`: what is known of pure nodes before a program runs.
- `indices`: which indices that are operands a program can have.
- `inputs`: the arrays that a program takes: contents, constants, indices, what is fed.
- `failures`: tells refusals from failures of the system.
- `prepared`: runs a test and counts its outcomes.

An executor for one system adds a `System`, its configuration space, and the transformations that
its settings name; `litmusfuzz.fuzz.executors.jax_refs` is one.
"""
