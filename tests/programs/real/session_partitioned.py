"""An embedding in three parts, on three parameter servers.

Source: tensorflow.org/api_docs/python/tf/compat/v1/fixed_size_partitioner
Check: session_partitioned:graph --run train=train_op --run predict=score
"""

import tensorflow as tf

tf1 = tf.compat.v1
graph = tf.Graph()
with graph.as_default():
    ids = tf1.placeholder(tf.int64, [8])
    table = tf1.get_variable(
        "table", [99, 4], partitioner=tf1.fixed_size_partitioner(3), use_resource=True
    )
    embed = tf.nn.embedding_lookup(table, ids)
    score = tf.reduce_sum(embed, 1, name="score")
    tf1.train.AdamOptimizer(0.1).minimize(tf.reduce_mean(score), name="train_op")
