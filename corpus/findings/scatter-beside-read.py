"""A read of a resource variable sees half of a ResourceScatterAdd (TensorFlow, CPU).

Needs TensorFlow only. One graph, two ops without an edge between them:

    ResourceScatterAdd(X, [0], ones)          r = ReadVariableOp(X)

X has one row of 4,096 lanes, all 0. The memory model says that reads and writes
of a whole variable are atomic ("a read never sees a partial write, even when it
is racing with the write"), so every lane of r is 0, or every lane is 1.
Exits 1 if some r is neither.
"""

import sys

import tensorflow as tf

LANES, COPIES, STEPS = 4096, 32, 3000
raw = tf.raw_ops

graph = tf.Graph()
with graph.as_default():
    zeros, ones = tf.zeros([1, LANES]), tf.ones([1, LANES])
    starts, reads, ends = [], [], []
    done = []
    for copy in range(COPIES):
        # One copy after the other; within a copy the two ops race. Each op has a
        # handle of its own, so that both become ready at once on two threads.
        def handle(copy=copy):
            return raw.VarHandleOp(dtype=tf.float32, shape=[1, LANES], shared_name=f"X{copy}")

        starts.append(raw.AssignVariableOp(resource=handle(), value=zeros))
        with tf.control_dependencies(done):
            begin = tf.no_op()
        with tf.control_dependencies([begin]):
            scatter_handle, read_handle = handle(), handle()
        add = raw.ResourceScatterAdd(resource=scatter_handle, indices=[0], updates=ones)
        read = raw.ReadVariableOp(resource=read_handle, dtype=tf.float32)
        reads.append(read)
        done = [add, read]
    race = tf.group(*done)
    seen = tf.stack(reads)
    start = tf.group(*starts)

config = tf.compat.v1.ConfigProto(inter_op_parallelism_threads=4, use_per_session_threads=True)
config.graph_options.rewrite_options.disable_meta_optimizer = True
config.graph_options.optimizer_options.opt_level = tf.compat.v1.OptimizerOptions.L0
torn = 0
with tf.compat.v1.Session(graph=graph, config=config) as session:
    run_start = session.make_callable(start)
    run_race = session.make_callable([seen, race])
    for _ in range(STEPS):
        run_start()
        values = run_race()[0]
        torn += int((values.min(axis=2) != values.max(axis=2)).sum())
print(f"TensorFlow {tf.__version__}: {torn} of {COPIES * STEPS} reads torn; none is allowed")
sys.exit(1 if torn else 0)
