"""Epochs, counted up to a limit, beside a training step.

Source: TensorFlow 1, tf.train.limit_epochs
Check: session_epochs:graph --run train=train_op
"""

import tensorflow as tf

tf1 = tf.compat.v1
graph = tf.Graph()
with graph.as_default():
    data = tf.ones([8, 4])
    x = tf1.train.limit_epochs(data, num_epochs=5)
    w = tf1.get_variable("w", [4, 1], use_resource=True)
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w)))
    tf1.train.AdadeltaOptimizer(0.1).minimize(loss, name="train_op")
