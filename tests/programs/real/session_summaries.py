"""Merged summaries, fetched with the step.

Source: TensorFlow 1, "TensorBoard: Visualizing Learning" (mnist_with_summaries.py)
Check: session_summaries:graph --run train=merged,train_step
"""

import tensorflow as tf

tf1 = tf.compat.v1
graph = tf.Graph()
with graph.as_default():
    x = tf1.placeholder(tf.float32, [None, 16])
    y_ = tf1.placeholder(tf.int64, [None])
    weights = tf1.get_variable("weights", [16, 4], use_resource=True)
    biases = tf1.get_variable("biases", [4], use_resource=True)
    preactivate = tf.matmul(x, weights) + biases
    tf1.summary.histogram("weights", weights)
    tf1.summary.scalar("mean", tf.reduce_mean(biases))
    cross_entropy = tf1.losses.sparse_softmax_cross_entropy(labels=y_, logits=preactivate)
    tf1.summary.scalar("cross_entropy", cross_entropy)
    tf1.train.AdamOptimizer(0.001).minimize(cross_entropy, name="train_step")
    tf.identity(tf1.summary.merge_all(), name="merged")
