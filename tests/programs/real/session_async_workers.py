"""Two workers of a parameter server, each with its own step.

Source: TensorFlow 1, "Distributed TensorFlow" (between-graph replication, asynchronous)
Check: session_async_workers:graph --run train=train_op --concurrent train
"""

import tensorflow as tf

tf1 = tf.compat.v1
graph = tf.Graph()
with graph.as_default():
    x = tf1.placeholder(tf.float32, [8, 4])
    w = tf1.get_variable("w", [4, 1], use_resource=True)
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w)))
    global_step = tf1.train.get_or_create_global_step()
    optimizer = tf1.train.AdagradOptimizer(0.01)
    optimizer.minimize(loss, global_step=global_step, name="train_op")
