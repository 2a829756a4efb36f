"""Batch normalization with moving averages as update ops, which the step depends on.

Source: tensorflow.org/api_docs/python/tf/compat/v1/layers/batch_normalization (the note)
Check: session_batch_norm:graph --run train=train_op --run predict=predictions
"""

import tensorflow as tf
from tensorflow.python.training import moving_averages

tf1 = tf.compat.v1
graph = tf.Graph()
with graph.as_default():
    x = tf1.placeholder(tf.float32, [8, 16])
    w = tf1.get_variable("w", [16, 4], use_resource=True)
    beta = tf1.get_variable("beta", [4], use_resource=True)
    moving_mean = tf1.get_variable("moving_mean", [4], trainable=False, use_resource=True)
    moving_variance = tf1.get_variable("moving_variance", [4], trainable=False, use_resource=True)
    logits = tf.matmul(x, w)
    mean, variance = tf.nn.moments(logits, [0])
    for average, value in ((moving_mean, mean), (moving_variance, variance)):
        update = moving_averages.assign_moving_average(average, value, 0.99, zero_debias=False)
        tf1.add_to_collection(tf1.GraphKeys.UPDATE_OPS, update)
    normed = tf.nn.batch_normalization(logits, mean, variance, beta, None, 1e-3)
    loss = tf.reduce_mean(tf.square(normed))
    update_ops = tf1.get_collection(tf1.GraphKeys.UPDATE_OPS)
    with tf.control_dependencies(update_ops):
        tf1.train.GradientDescentOptimizer(0.1).minimize(loss, name="train_op")
    tf.nn.batch_normalization(
        logits, moving_mean, moving_variance, beta, None, 1e-3, name="inference"
    )
    tf.identity(graph.get_tensor_by_name("inference/add_1:0"), name="predictions")
