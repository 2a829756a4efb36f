"""Grappler's arithmetic optimizer loses the edges into a lookup of embeddings.

A graph assigns a table; after that, `tf.nn.embedding_lookup_sparse` looks up a row of it. The run
must return twice the new row, but returns twice the old one. The optimizer replaces Unique,
ResourceGather and SparseSegmentSum by a read of the whole table and one SparseSegmentSum, without
the control edges into what it replaces, so that nothing orders the assignment and the read: here
the new value takes long to compute. Sessions with default options, each over a new graph: the old
row showed in 14 of 20. Needs TensorFlow only.
"""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import sys

import tensorflow as tf



def lookup(config):
    """Twice the second row of a table, after an assignment."""
    with tf.Graph().as_default() as graph:
        table = tf.compat.v1.get_variable("table", initializer=[[1.0], [2.0]], use_resource=True)
        rows = tf.compat.v1.placeholder(tf.int32, [1])
        ids = tf.SparseTensor([[0, 0]], rows, [1, 1])
        ones = tf.fill([1000, tf.size(rows) * 1000], 1.0)
        thousand = tf.linalg.matmul(ones, ones)[0, 0]
        with tf.control_dependencies([table.assign([[thousand], [thousand]])]):
            row = 2.0 * tf.nn.embedding_lookup_sparse(table, ids, None, combiner="sum")
    with tf.compat.v1.Session(graph=graph, config=config) as session:
        session.run(table.initializer)
        return session.run(row, {rows: [1]}).item()


as_it_is = tf.compat.v1.ConfigProto()
as_it_is.graph_options.rewrite_options.disable_meta_optimizer = True
default = tf.compat.v1.ConfigProto()
failed = False
for name, config in (("as it is", as_it_is), ("default options", default)):
    shown = {lookup(config) for _ in range(20)}
    failed |= shown != {2000.0}
    print(f"{name} (expected [2000.0]): {sorted(shown)}")
sys.exit(failed)
