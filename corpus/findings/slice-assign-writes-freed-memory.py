"""ResourceStridedSliceAssign beside AssignVariableOp corrupts the heap (TensorFlow, CPU).

Needs TensorFlow only. One graph, two ops on one variable without an edge between
them. The memory model allows two final values; the process dies instead, with
"free(): corrupted unsorted chunks" or the like: the slice is written into the
buffer that the assignment has just given back. Most runs die, by signal 6 or 11,
some only after many of the sessions below; one that survives exits 0.
"""

import tensorflow as tf

LANES, COPIES, STEPS, SESSIONS = 64, 64, 1000, 20
raw = tf.raw_ops

graph = tf.Graph()
with graph.as_default():
    zeros, ones, twos = (tf.fill([2, LANES], float(v)) for v in (0, 1, 2))
    starts, done = [], []
    for copy in range(COPIES):

        def handle(copy=copy):
            return raw.VarHandleOp(dtype=tf.float32, shape=[2, LANES], shared_name=f"X{copy}")

        # Maximum: a buffer of the variable's own, not the constant's.
        start = raw.Maximum(x=zeros, y=zeros)
        starts.append(raw.AssignVariableOp(resource=handle(), value=start))
        with tf.control_dependencies(done):
            begin = tf.no_op()
        with tf.control_dependencies([begin]):
            slice_handle, assign_handle = handle(), handle()
        part = raw.ResourceStridedSliceAssign(
            ref=slice_handle, begin=[0], end=[2], strides=[1], value=ones
        )
        whole = raw.AssignVariableOp(resource=assign_handle, value=twos)
        done = [part, whole]
    race, start_all = tf.group(*done), tf.group(*starts)

config = tf.compat.v1.ConfigProto(inter_op_parallelism_threads=4, use_per_session_threads=True)
config.graph_options.rewrite_options.disable_meta_optimizer = True
config.graph_options.optimizer_options.opt_level = tf.compat.v1.OptimizerOptions.L0
for _ in range(SESSIONS):
    with tf.compat.v1.Session(graph=graph, config=config) as session:
        run_start = session.make_callable(start_all)
        run_race = session.make_callable(race)
        for _ in range(STEPS):
            run_start()
            run_race()
print(f"TensorFlow {tf.__version__}: survived {COPIES * STEPS * SESSIONS} races")
