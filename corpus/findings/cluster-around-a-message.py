"""A cluster that XLA compiles waits for an element that it holds up itself, for ever.

Needs TensorFlow only (auto-clustering on the CPU, with its safety checks on). One graph, X = 1
and Y = 0 at first, and an empty queue:

    a = X, then put a into the queue
    b = an element of the queue
    Y = a + b

Nothing in it waits in a circle: a is read, put and taken, and Y becomes 2. TensorFlow puts
"a = X" and "Y = a + b" into one cluster. The cluster waits for b, b waits for the element, and the
element waits for the cluster. Without clusters (say "off") no run waits. Exits 1 if one does.

A run is called waiting when it is not over after two seconds; it takes milliseconds.
"""

import os
import sys

if "off" not in sys.argv:
    os.environ["TF_XLA_FLAGS"] = (
        "--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit --tf_xla_min_cluster_size=1"
    )

import tensorflow as tf

RUNS = 4
raw = tf.raw_ops


def one_run(run):
    with tf.Graph().as_default():
        x, y = (
            raw.VarHandleOp(dtype=tf.int32, shape=[], shared_name=f"{name}{run}") for name in "XY"
        )
        queue = raw.FIFOQueueV2(component_types=[tf.int32], shapes=[[]], capacity=1)
        begin = [
            raw.AssignVariableOp(resource=x, value=1),
            raw.AssignVariableOp(resource=y, value=0),
        ]
        a = raw.ReadVariableOp(resource=x, dtype=tf.int32)
        put = raw.QueueEnqueueV2(handle=queue, components=[a])
        (b,) = raw.QueueDequeueV2(handle=queue, component_types=[tf.int32])
        write = raw.AssignVariableOp(resource=y, value=raw.AddV2(x=a, y=b))
        see_y = raw.ReadVariableOp(resource=y, dtype=tf.int32)
        with tf.compat.v1.Session() as session:
            session.run(begin)
            try:
                session.run([put, write], options=tf.compat.v1.RunOptions(timeout_in_ms=2000))
                how = "ends"
            except tf.errors.DeadlineExceededError:
                how = "waits"
            return how, int(session.run(see_y))


counts = {}
for run in range(RUNS):
    outcome = one_run(run)
    counts[outcome] = counts.get(outcome, 0) + 1
for (how, seen), count in sorted(counts.items()):
    note = "  FORBIDDEN" if how == "waits" else ""
    print(f"{count:3} of {RUNS}: {how}, Y={seen}{note}")
sys.exit(any(how == "waits" for how, _ in counts))
