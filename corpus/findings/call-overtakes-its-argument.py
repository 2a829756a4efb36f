"""In a session, a function's body may run before a read whose value it is given.

`step` assigns 1, reads, and calls `body` with what it read; `body` assigns 2. Automatic control
dependencies put an edge from the read to the call, and the read must give 1. Once the call is
inlined, the read may come after the assignment of 2. If the call is given a constant instead, it
never does. Chance has a part: 90 of 2,000 executions showed it. Needs TensorFlow only.
"""

import os
import sys
from collections import Counter

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf

EXECUTIONS = 2_000


def reads(*, given: bool) -> Counter[int]:
    """What the read gave, and how often."""
    raw = tf.raw_ops
    with tf.Graph().as_default() as graph:
        x = raw.VarHandleOp(dtype=tf.int32, shape=[], shared_name="x")
        y = raw.VarHandleOp(dtype=tf.int32, shape=[], shared_name="y")
        cleared = [raw.AssignVariableOp(resource=each, value=0) for each in (x, y)]

        @tf.function(autograph=False)
        def body(value: tf.Tensor) -> None:
            raw.AssignVariableOp(resource=x, value=2)
            raw.AssignVariableOp(resource=y, value=value)

        @tf.function(autograph=False)
        def step() -> tf.Tensor:
            raw.AssignVariableOp(resource=x, value=1)
            read = raw.ReadVariableOp(resource=x, dtype=tf.int32)
            body(read if given else tf.constant(7))
            return read

        shown = step()
    config = tf.compat.v1.ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    found: Counter[int] = Counter()
    with tf.compat.v1.Session(graph=graph, config=config) as session:
        for _ in range(EXECUTIONS):
            session.run(cleared)
            found[int(session.run(shown))] += 1
    return found


constant, argument = reads(given=False), reads(given=True)
print(f"given a constant, the read gave {dict(constant)} (expected {{1: {EXECUTIONS}}})")
print(f"given the read, it gave {dict(argument)} (expected {{1: {EXECUTIONS}}})")
sys.exit(len({*constant, *argument}) > 1)
