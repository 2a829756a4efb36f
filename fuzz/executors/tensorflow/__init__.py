"""Executor `tf`: runs litmus tests on TensorFlow's graph executor on the CPU.

Terms: a *copy* is one renamed instance of the test inside a larger graph; a *step*
executes all copies of a graph once; a *helper* is a node of that graph which the test
does not have.

- `executor`: the executor protocol. Begin here.
- `configurations`: the named configurations and their settings; `session_options`
  translates settings to TensorFlow's session options.
- `lowering`: translates a test to a GraphDef without adding order to it. `emission`
  writes one copy of a graph, `node_defs` one node.
- `session`: runs a GraphDef and returns arrays, in a few `Session.run` calls a step.
  `quiescence` detects a deadlock.
- `histogram`: counts the outcomes in those arrays. It needs NumPy only.
- Front ends, each another way to build the same graph: `functions` (`tf.function`, and
  `jit_compile` for the parts that `regions` chooses), `functional` (While and If),
  `sections` (`tf.CriticalSection`), `model_code` (layers and losses around the test),
  `workers` (several processes over gRPC; `task` is the program of one).
- `eager`: executes each run as a Python thread: `eager_program` op by op, `eager_parts` also as
  functions, `keras_steps` with the optimizers of Keras.
- `clusters`: reads from TensorFlow's dumps which clusters XLA compiled.
- `forced`: makes TensorFlow follow one given total order.
- `clock`: measures the executor's time by activity.
- `baselines`: loops that the benchmarks compare with.

A defect of TensorFlow may corrupt the process that shows it: in 2.21,
ResourceStridedSliceAssign that runs together with an op that replaces its variable's
buffer (AssignVariableOp, AssignAddVariableOp, ResourceApplyGradientDescent) writes
into freed memory. The process crashes then or later, or a later test shows a wrong
value. A finding therefore counts only when a fresh process shows it again with this
test alone.

TensorFlow is imported when the first test is prepared. This package does not know which
outcomes are allowed.
"""

from __future__ import annotations

from litmusfuzz.fuzz.executors.tensorflow.executor import TensorFlowExecutor

__all__ = ["TensorFlowExecutor"]
