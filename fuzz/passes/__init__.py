"""Translation passes: functions from a litmus test to a litmus test.

Each pass either keeps the test's allowed set or makes it smaller, and its docstring
says which. A pass knows only the litmus test (`corpus`), no executor and no oracle:
tests use an oracle to check the pass.

- `placement`: puts nodes and resources on devices, and adds transfers.
- `autodiff`: adds gradients and training steps.
- `clustering`: chooses clusters, by the analyses `safety` (unsafe pairs) and `waits`
  (blocking ops that a node waits for).
- `ssa`: converts a cluster to a pure function; `listing` prints it.
- `gates`: adds queues with which a client forces a total order.
"""
