"""Batch normalization that a placeholder switches between training and inference.

Source: TensorFlow 1, slim's batch_norm with is_training as a tensor
Check: session_cond:graph --run step=output
"""

import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_control_flow_v2()
graph = tf.Graph()
with graph.as_default():
    x = tf1.placeholder(tf.float32, [8, 4])
    is_training = tf1.placeholder(tf.bool, [])
    moving = tf1.get_variable("moving_mean", [4], trainable=False, use_resource=True)

    def train():
        mean = tf.reduce_mean(x, 0)
        with tf.control_dependencies([moving.assign(0.9 * moving + 0.1 * mean)]):
            return tf.identity(mean)

    mean = tf.cond(is_training, train, lambda: moving.read_value())
    tf.subtract(x, mean, name="output")
