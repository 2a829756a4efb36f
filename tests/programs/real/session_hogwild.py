"""Lock-free descent: two towers in one step, without a barrier.

Source: Recht et al., "Hogwild!", NIPS 2011, as two towers of one graph
Check: session_hogwild:graph --run train=train_op
"""

import tensorflow as tf

tf1 = tf.compat.v1
graph = tf.Graph()
with graph.as_default():
    w = tf1.get_variable("w", [4, 1], use_resource=True)
    optimizer = tf1.train.GradientDescentOptimizer(0.1)
    steps = []
    for tower in range(2):
        x = tf1.placeholder(tf.float32, [8, 4], name=f"x{tower}")
        steps.append(optimizer.minimize(tf.reduce_mean(tf.square(tf.matmul(x, w)))))
    tf.group(*steps, name="train_op")
