"""TensorFlow's own graph executor, on the CPU, as a system under test.

Terms: a *copy* is the test once more under other names; a *step* executes all
copies of a graph once; a *helper* is a node that the test does not have.

- `lowering`: test -> GraphDef; adds no order to the test, and says why. A copy of a
  graph is written by `emission`, a node by `protos`.
- `session`: GraphDef -> arrays, in a few runs a step; says why what it sees is
  what a node returned. `quiescence` tells what is blocked.
- `histogram`: arrays -> histogram of outcomes. Knows NumPy only.
- `profiles`: the configurations, as data; `options` makes sessions of them.
- Other front ends: `functions` (`tf.function`, `jit_compile`, with `regions`),
  `functional` (While, If), `sections` (`tf.CriticalSection`), `model_code` around
  the races, `workers` (gRPC; each is a `task`).
- `clusters`: what TensorFlow dumps -> the clusters that it chose.
- `forced`: one total order, by gates that the client opens.
- `steady`, `handwritten`: what others are measured beside.
- `executor`: the protocol.

A defect of TensorFlow may outlive the test that shows it: in 2.21,
ResourceStridedSliceAssign beside an op that replaces its variable's buffer
(AssignVariableOp, AssignAddVariableOp, ResourceApplyGradientDescent) writes
into freed memory. The process then crashes, or worse, does not, and another
test shows the damage. A finding thus counts only when a fresh process shows it
again with this test alone.

TensorFlow is imported when a test is prepared, not before. Nothing here knows
what is allowed.
"""

from __future__ import annotations

from litmusfuzz.fuzz.executors.tensorflow.executor import TensorFlowExecutor

__all__ = ["TensorFlowExecutor"]
