"""Mutants: executors with one deliberate defect each.

`litmusfuzz selftest` and `tests/kills` kill them: they see a forbidden outcome on each,
which shows that LitmusFuzz would find a defect of that kind. A mutant's *control* is the
same executor without the defect, and must show nothing forbidden.

- `tensorflow`, `native`, `jax`: mutants of the executors `tf`, `native` and
  `jax_clustered`.
- `clustering`: wrong clusterers, convicted without an execution.
- `stale_reads`: a mutant that needs no framework. `canary`: always wrong.
- `scatter`: mutants with a known defect and a second one that hides behind it.
"""
