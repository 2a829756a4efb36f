"""Mutants: executors with one deliberate defect each.

`litmusfuzz selftest` and `tests/kills` kill them: they see a forbidden outcome on each,
which shows that LitmusFuzz would find a defect of that kind. A mutant's *control* is the
same executor without the defect, and must show nothing forbidden.

- `native`, `opencl`, `tensorflow`, `jax`, `jax_refs`: mutants of the executors `native` (`opencl`:
  of its OpenCL devices), `tf`, `jax` and `jax_refs`.
- `changed_test`: what mutants have in common that execute another test than they are given.
  `runs`: such changes, of what a run executes and is fed, for `native` and for `tensorflow`.
- `clustering`: wrong clusterers, convicted without an execution.
- `stale_reads`: a mutant that needs no framework. `canary`: always wrong.
- `scatter`: mutants with a known defect and a second one that hides behind it.
"""
