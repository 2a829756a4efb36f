"""Softmax regression for beginners: the step, and the accuracy in a run of its own.

Source: TensorFlow 1, "MNIST For ML Beginners" (mnist_softmax.py)
Check: session_mnist:graph --run train=train_step --run test=accuracy
"""

import tensorflow as tf

tf1 = tf.compat.v1
graph = tf.Graph()
with graph.as_default():
    x = tf1.placeholder(tf.float32, [None, 784])
    W = tf1.Variable(tf.zeros([784, 10]), name="W", use_resource=False)
    b = tf1.Variable(tf.zeros([10]), name="b", use_resource=False)
    y = tf.matmul(x, W) + b
    y_ = tf1.placeholder(tf.int64, [None])
    cross_entropy = tf1.losses.sparse_softmax_cross_entropy(labels=y_, logits=y)
    train_step = tf1.train.GradientDescentOptimizer(0.5).minimize(cross_entropy, name="train_step")
    correct_prediction = tf.equal(tf.argmax(y, 1), y_)
    accuracy = tf.reduce_mean(tf.cast(correct_prediction, tf.float32), name="accuracy")
