"""The same copy without its control dependency on the step, as one often finds it.

Source: github.com/ADGEfficiency/energy-py, the copy of online weights to a target network
Check: session_moving_target:graph --run train=train,update_target
"""

import tensorflow as tf

tf1 = tf.compat.v1
graph = tf.Graph()
with graph.as_default():
    states = tf1.placeholder(tf.float32, [8, 4])
    online = tf1.get_variable("online", [4, 2], use_resource=True)
    target = tf1.get_variable("target", [4, 2], trainable=False, use_resource=True)
    best = tf.reduce_max(tf.matmul(states, target), 1)
    loss = tf.reduce_mean(tf.square(tf.reduce_max(tf.matmul(states, online), 1) - best))
    tf1.train.GradientDescentOptimizer(0.01).minimize(loss, name="train")
    tf.group(target.assign(0.99 * target + 0.01 * online), name="update_target")
