"""Adam with an exponentially decayed rate and a global step.

Source: tensorflow.org/api_docs/python/tf/compat/v1/train/exponential_decay
Check: session_decay:graph --run train=train_step --run rate=learning_rate
"""

import tensorflow as tf

tf1 = tf.compat.v1
graph = tf.Graph()
with graph.as_default():
    x = tf1.placeholder(tf.float32, [None, 16])
    w = tf1.get_variable("w", [16, 1], use_resource=True)
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w)))
    global_step = tf1.train.get_or_create_global_step()
    learning_rate = tf1.train.exponential_decay(0.1, global_step, 100000, 0.96, staircase=True)
    learning_rate = tf.identity(learning_rate, name="learning_rate")
    optimizer = tf1.train.AdamOptimizer(learning_rate)
    optimizer.minimize(loss, global_step=global_step, name="train_step")
