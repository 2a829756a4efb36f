"""A cluster that XLA compiles lets others see a read of x before the write that it read.

Needs TensorFlow only (auto-clustering on the CPU, with its safety checks on). One
graph, X = Y = Z = 0 at first; "before" is a control edge:

    a: X = 1        b = X, before c = Y        a and b, before d: Z = b
    e: Y = 1, before f = X

If b is 1 then a came before b. If c is 0 then c came before e. So if b is 1 and c
is 0, then a, b, c, e, f came in this order, and f is 1: "operations behave as if
they were executed in some total order". Exits 1 if some copy shows b=1, c=0, f=0.

TensorFlow puts a, b, c and d into one cluster: no write precedes a read there, so
that its analysis finds nothing unsafe. But nothing orders a and b, and XLA takes
the names' order: b reads what a wrote inside the cluster, c what Y was when the
cluster began, and f what X was before the cluster has written it back.
"""

import os
import sys

os.environ["TF_XLA_FLAGS"] = (
    "--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit --tf_xla_min_cluster_size=1"
)

import tensorflow as tf

COPIES, STEPS = 16, 1500
raw = tf.raw_ops
# What separates copies stays out of clusters: else it would join the two chains.
outside = tf.xla.experimental.jit_scope


def handle(name):
    return raw.VarHandleOp(dtype=tf.int32, shape=[], shared_name=name)


graph = tf.Graph()
with graph.as_default():
    starts, seen, before = [], [], []
    for copy in range(COPIES):
        # One copy after the other; the two chains of a copy race.
        with outside(compile_ops=False), tf.control_dependencies(before):
            begin = tf.no_op()
        names = [f"{name}{copy}" for name in "XYZ"]
        starts += [raw.AssignVariableOp(resource=handle(name), value=0) for name in names]
        with tf.control_dependencies([begin]):
            x, y, z = map(handle, names)
        with tf.name_scope(f"copy{copy}"):
            a = raw.AssignVariableOp(resource=x, value=1, name="a")
            b = raw.ReadVariableOp(resource=x, dtype=tf.int32, name="b")
            with tf.control_dependencies([b]):
                c = raw.ReadVariableOp(resource=y, dtype=tf.int32, name="c")
            with tf.control_dependencies([a]):
                d = raw.AssignVariableOp(resource=z, value=b, name="d")
            e = raw.AssignVariableOp(resource=y, value=1, name="e")
            with tf.control_dependencies([e]):
                f = raw.ReadVariableOp(resource=x, dtype=tf.int32, name="f")
        seen += [b, c, f]
        before = [c, d, f]
    with outside(compile_ops=False):
        race = tf.group(*before)
    start = tf.group(*starts)

config = tf.compat.v1.ConfigProto(inter_op_parallelism_threads=4, use_per_session_threads=True)
forbidden = 0
with tf.compat.v1.Session(graph=graph, config=config) as session:
    run_start = session.make_callable(start)
    run_race = session.make_callable([race, *seen])
    for _ in range(STEPS):
        run_start()
        values = run_race()[1:]
        copies = zip(values[::3], values[1::3], values[2::3], strict=True)
        forbidden += sum((b, c, f) == (1, 0, 0) for b, c, f in copies)
print(f"TensorFlow {tf.__version__}: b=1, c=0, f=0 in {forbidden} of {COPIES * STEPS}; allowed: 0")
sys.exit(1 if forbidden else 0)
