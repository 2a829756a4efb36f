"""Deep Q-learning: every thousand steps, the target network becomes the other's copy.

Source: Mnih et al., "Human-level control through deep reinforcement learning", with tf.cond
Check: session_dqn:graph --run train=train_op
"""

import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_control_flow_v2()
graph = tf.Graph()
with graph.as_default():
    states = tf1.placeholder(tf.float32, [8, 4])
    step = tf1.train.get_or_create_global_step()
    online = tf1.get_variable("online", [4, 2], use_resource=True)
    target = tf1.get_variable("target", [4, 2], trainable=False, use_resource=True)
    best = tf.reduce_max(tf.matmul(states, target), 1)
    loss = tf.reduce_mean(tf.square(tf.reduce_max(tf.matmul(states, online), 1) - best))
    train = tf1.train.RMSPropOptimizer(0.01).minimize(loss, global_step=step)
    with tf.control_dependencies([train]):
        copy = tf.cond(
            tf.equal(step.read_value() % 1000, 0),
            lambda: target.assign(online.read_value(), read_value=False),
            tf.no_op,
        )
    tf.group(copy, name="train_op")
